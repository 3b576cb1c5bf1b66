"""The display of the progress: a bar in a terminal, nothing elsewhere, closed however the fit ends."""

import io
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from partita import EnsembleClustering, Mixture, dispatch, progress
from partita.engines.run import Control, Progress, best_run, iterate, run_restarts
from partita.execution import make_executor
from partita.progress import COMPILING, Bar, show_progress

QUICK = {"n_chains": 3, "n_draws": 4, "burn_in": 2, "random_state": 0}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard error is a terminal, and the bar is drawn as often as possible."""
    stream = Terminal()
    # pytest replaces sys.stderr itself between a fixture and its test
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))
    monkeypatch.setattr(progress, "SECONDS_BEFORE_A_BAR", 0.0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_DRAWINGS", 0.001)
    yield stream
    assert progress._shown is None
    assert "partita-progress" not in [thread.name for thread in threading.enumerate()]


def slowly(seen):
    """A callback that leaves the bar time to be drawn."""

    def callback(found):
        seen.append(found)
        time.sleep(0.01)

    return callback


def frames(stream):
    return [frame for frame in stream.getvalue().split("\r") if frame.strip()]


def is_clean(stream):
    """Whether the last line of the terminal is empty: the bar was removed."""
    return stream.getvalue().rsplit("\r", 1)[-1].strip() == ""


# ---- when it is shown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 3])
def test_one_bar_counts_all_chains(terminal, two_groups, uncompiled, n_jobs):
    seen = []
    Mixture("gaussian", n_jobs=n_jobs, callback=slowly(seen), **QUICK).fit(two_groups[0][::8])
    shown = frames(terminal)
    counted = [frame for frame in shown if "of 18 iterations" in frame]
    assert counted and all(frame.startswith("Mixture: ") for frame in shown)
    numbers = [int(frame.split("| ")[1].split(" of ")[0]) for frame in counted]
    assert numbers == sorted(numbers) and numbers[-1] > 12
    assert "of 3 chains done" in counted[-1] and " clusters [00:0" in counted[-1] and " left]" in counted[-1]
    assert any("summarizing" in frame for frame in shown) and is_clean(terminal)
    assert len(seen) == 18


@pytest.mark.parametrize("verbose", [None, False, 0])
def test_nothing_is_written_without_a_terminal(capsys, two_groups, uncompiled, verbose):
    Mixture("gaussian", verbose=verbose, **QUICK).fit(two_groups[0][::8])
    assert capsys.readouterr() == ("", "")


def test_verbose_false_shows_nothing_in_a_terminal(terminal, two_groups, uncompiled):
    Mixture("gaussian", verbose=False, callback=slowly([]), **QUICK).fit(two_groups[0][::8])
    table = two_groups[0]
    consensus = Mixture("categorical", inference="em", n_clusters=2, n_init=2, random_state=0)
    EnsembleClustering(n_members=3, verbose=False, random_state=0, consensus=consensus).fit(table)
    assert terminal.getvalue() == ""


def test_short_fits_show_nothing(terminal, monkeypatch, two_groups, uncompiled):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_A_BAR", 600.0)
    Mixture("gaussian", **QUICK).fit(two_groups[0][::8])
    assert terminal.getvalue() == ""


def test_notebooks_are_recognized(monkeypatch):
    class Shell:
        config = {"IPKernelApp": {}}

    class IPython:
        get_ipython = staticmethod(Shell)

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert progress.is_interactive()
    monkeypatch.setattr(Shell, "config", {})  # IPython in a terminal
    assert not progress.is_interactive()


def test_the_bar_of_a_notebook_gets_the_length_of_the_fit(monkeypatch):
    """tqdm sets the length of a widget only when its bar begins; it begins before the length is known."""

    class Widget:
        container, total, lengths, start_t, bar_format, n = object(), None, [], 0.0, "", 0

        def reset(self, total):
            self.lengths.append(total)

        def refresh(self):
            pass

    widget = Widget()
    monkeypatch.setattr(progress, "_make_tqdm", lambda text: widget)
    bar = Bar("Mixture", "clusters")
    bar._began = 0.0  # what `open` sets
    for total in (None, 300, 300, 500):
        monkeypatch.setattr(bar, "counts", lambda total=total: (1, total))
        bar.draw()
        assert widget.total == total
    assert widget.lengths == [300, 500]


def test_a_fit_within_a_fit_continues_its_bar(terminal, two_groups):
    with show_progress("outer") as outer, show_progress("inner", counted="views") as inner:
        assert inner is outer and inner.counted == "views"
    model = EnsembleClustering(n_members=3, random_state=0, callback=slowly([]))
    model.fit(two_groups[0])
    shown = frames(terminal)
    assert any("of 3 members" in frame for frame in shown)
    assert {frame.split(":")[0] for frame in shown} <= {"EnsembleClustering", "outer"}


def test_a_fit_beside_another_one_shows_nothing(terminal):
    found = []
    with show_progress("first") as first:
        beside = threading.Thread(target=lambda: found.append(show_progress("second").__enter__()))
        beside.start()
        beside.join()
    assert isinstance(first, Bar) and not isinstance(found[0], Bar)


def test_lines_have_the_stage_and_the_first_iteration_of_each_run(capsys, two_groups, uncompiled):
    Mixture("gaussian", verbose=True, **QUICK).fit(two_groups[0][::8])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Mixture: reading" and lines[-1] == "Mixture: summarizing"
    assert [line.split("  ")[0] for line in lines[1:-1]] == [f"Mixture: chain {c}" for c in (1, 2, 3)]


# ---- how it ends -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_bar_is_closed_when_the_fit_fails(terminal, two_groups, uncompiled, error, n_jobs):
    def fail(found):
        time.sleep(0.02)
        if found.iteration == 3:
            raise error

    with pytest.raises(error):
        Mixture("gaussian", callback=fail, n_jobs=n_jobs, **QUICK).fit(two_groups[0][::8])
    assert frames(terminal) and is_clean(terminal)


def test_the_bar_is_closed_when_the_fit_is_stopped(terminal, two_groups, uncompiled):
    def stop(found):
        time.sleep(0.02)
        return found.iteration == 3

    with pytest.warns(UserWarning):
        Mixture("gaussian", callback=stop, **QUICK).fit(two_groups[0][::8])
    assert frames(terminal) and is_clean(terminal)


def test_the_time_limit_bounds_the_estimate(terminal, two_groups, uncompiled):
    options = {**QUICK, "n_draws": 100_000, "n_chains": 1}
    with pytest.warns(UserWarning):
        Mixture("gaussian", time_limit=0.3, callback=slowly([]), **options).fit(two_groups[0][::8])
    shown = [frame for frame in frames(terminal) if "left]" in frame]
    assert shown and all("at most 00:00 left]" in frame for frame in shown) and is_clean(terminal)


def test_a_closed_terminal_does_not_end_the_fit(terminal, two_groups, uncompiled):
    def close(found):
        time.sleep(0.01)
        if found.iteration == 2:
            terminal.close()

    model = Mixture("gaussian", callback=close, **QUICK).fit(two_groups[0][::8])
    assert model.n_clusters_ > 0


# ---- totals ----------------------------------------------------------------------------------------------------


class State:
    def __init__(self, objective):
        self.objective = objective


def opened(control):
    """The control with a bar that is not drawn."""
    control.display = Bar("test")
    return control


def converge_at(n, number, control, max_iter=50):
    values = iter([*range(n - 1), *[n - 2] * 99])
    return iterate(
        lambda state: State(float(next(values))), State(0.0), max_iter=max_iter, tol=0.0, weight=1.0,
        number=number, control=control, n_clusters=lambda state: 1,
    )  # fmt: skip


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_iterations_that_a_start_did_not_need_are_not_expected(n_jobs):
    counts = []

    def look(found):
        counts.append(control.display.counts())

    control = opened(Control(callback=look))
    run_restarts(
        lambda number: converge_at(10, number, control), 3, control=control, executor=make_executor(n_jobs)
    )
    assert counts[0][1] == 150 and counts[-1][0] == 30
    if n_jobs is None:
        assert counts[10] == (11, 110) and counts[-1] == (30, 70)


def test_starts_in_a_row_are_counted_together():
    counts = []
    control = opened(Control(callback=lambda found: counts.append(control.display.counts())))
    best_run((converge_at(4, number, control) for number in range(2)), control, 2)
    assert counts[0] == (1, 100) and counts[4] == (5, 54) and counts[-1] == (8, 54)
    assert "summarizing" in control.display.text()


def test_a_single_run_needs_no_announcement():
    texts = []
    control = opened(Control(callback=lambda found: texts.append(control.display.text())))
    converge_at(5, 0, control)
    assert "1 of at most 50 iterations" in texts[0] and texts[0].startswith("test: fitting")


def test_a_resumed_run_counts_what_it_had(clock):
    bar = Bar("test")
    bar.begin_runs(2, "chain", 100, is_limit=False)
    for iteration in (51, 52, 53):
        clock.advance(2.0)
        bar.advance(Progress(0, iteration, 0.0, 3, 0.0))
    assert bar.counts() == (53, 200)
    assert bar.seconds_left() == pytest.approx(147 * 2.0)
    assert "53 of 200 iterations, 3 clusters [{elapsed}, 04:54 left]" in bar.text()


def test_an_upper_limit_is_called_so(clock):
    bar = Bar("test")
    bar.begin_runs(2, "chain", 100)
    for iteration in (1, 2):
        clock.advance(1.0)
        bar.advance(Progress(0, iteration, 0.0, 3, 0.0))
    assert "2 of at most 200 iterations, 3 clusters [{elapsed}, at most 03:18 left]" in bar.text()


# ---- compilation -----------------------------------------------------------------------------------------------


def test_compilation_is_named_and_does_not_count(clock):
    bar = Bar("test")
    bar.begin_runs(1, "chain", 10, is_limit=False)
    bar.advance(Progress(0, 1, 0.0, 1, 0.0))
    bar.compiling(True)
    bar.compiling(True)  # a kernel that calls another one
    clock.advance(100.0)
    bar.compiling(False)
    assert COMPILING in bar.text()
    bar.compiling(False)
    clock.advance(1.0)
    bar.advance(Progress(0, 2, 0.0, 1, 0.0))
    assert COMPILING not in bar.text() and bar.seconds_left() == pytest.approx(8.0)


def test_a_kernel_tells_that_it_is_compiled(terminal, caplog):
    scope = {}
    exec("def add(x):\n    return x + 1", scope)
    with show_progress("test") as bar:
        told = []
        bar.compiling = lambda begins: told.append(begins) or True
        assert dispatch.kernel(scope["add"])(1) == 2
    assert told and told.count(True) == told.count(False)
    assert "compiling" not in caplog.text


def test_text_above_the_bar(terminal):
    with show_progress("test") as bar:
        bar.draw()
        progress.say("a note")
    assert "a note\n" in terminal.getvalue() and is_clean(terminal)


def test_an_iteration_only_changes_counters(monkeypatch):
    """A bar is drawn by its own thread a few times per second, however fast the iterations are."""
    for name in ("draw", "stage"):
        monkeypatch.setattr(Bar, name, None)  # not called
    bar = Bar("test")
    bar.begin_runs(4, "chain", 1000)
    for iteration in range(10_000):
        bar.advance(Progress(1, iteration, 0.0, 3, 0.0))
    assert bar._drawer is None
