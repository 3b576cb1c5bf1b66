"""The progress of a fit on standard error: one bar for the whole fit, or lines where there is no terminal.

The driver of the engines (:mod:`partita.engines.run`) and the command line say what is being done; this module decides
whether and how it is shown. A bar is drawn by a thread of its own a few times per second, so that it lives while
compiled code runs, and chains in other threads only change its counters. tqdm is imported when the first bar is drawn.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
import warnings
from types import TracebackType
from typing import Any

SECONDS_BEFORE_A_BAR = 0.3  # shorter fits show none
SECONDS_BETWEEN_DRAWINGS = 0.2
SECONDS_BETWEEN_LINES = 10.0
COMPILING = "compiling, first time on this machine"

_shown: Display | None = None  # at most one at a time in a process: two bars would overwrite each other
_shown_lock = threading.Lock()


def is_interactive() -> bool:
    """Whether somebody watches standard error: a terminal or a notebook."""
    return bool(getattr(sys.stderr, "isatty", bool)()) or _in_notebook()


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", {})


def show_progress(
    title: str, verbose: bool | int | None = None, *, counted: str = "clusters", deadline: float = math.inf
) -> contextlib.AbstractContextManager[Display]:
    """A context manager that gives the display for a fit that begins now.

    Parameters
    ----------
    title : str
        What runs, for example the name of the estimator.
    verbose : bool, optional
        None: a bar in a terminal or a notebook, nothing elsewhere. True: a bar, elsewhere lines. False: nothing.
    counted : str, default="clusters"
        What ``n_clusters`` of the progress counts.
    deadline : float, default=inf
        When the fit ends at the latest, by ``time.perf_counter``.

    Returns
    -------
    context manager of a Display
        A fit within another one of the same thread continues the display of the outer one; a fit that runs beside
        another one, in a different thread, shows nothing.

    Examples
    --------
    >>> with show_progress("Mixture", verbose=False) as display:
    ...     display.stage("reading")
    """
    if verbose is not None and not verbose:
        return Display(title)
    shown = _shown
    if shown is not None:
        if shown.thread != threading.get_ident():
            return Display(title)
        shown.counted, shown.deadline = counted, deadline
        return contextlib.nullcontext(shown)  # the outer fit closes it
    if is_interactive():
        return Bar(title, counted, deadline)
    return Lines(title, counted) if verbose else Display(title)


def tell_compilation(begins: bool) -> bool:
    """Note that a compilation begins or ends; returns whether a bar shows it."""
    shown = _shown
    return shown is not None and shown.compiling(begins)


def tell_stage(name: str) -> None:
    """Name what is done now, in the display of this thread if there is one."""
    shown = _shown
    if shown is not None and shown.thread == threading.get_ident():
        shown.stage(name)


def say(text: str) -> None:
    """Print a line to standard error, above the bar if there is one."""
    shown = _shown
    with shown.cleared() if shown is not None else contextlib.nullcontext():
        print(text, file=sys.stderr, flush=True)


class Display:
    """What a fit tells about its progress; this class shows nothing."""

    def __init__(self, title: str = "", counted: str = "clusters", deadline: float = math.inf):
        self.title, self.counted, self.deadline = title, counted, deadline
        self.thread = threading.get_ident()

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def stage(self, name: str) -> None:
        """What is done now, where it is not an iteration: "reading", "summarizing"."""

    def begin_runs(self, n_runs: int, noun: str, n_iter: int | None = None, *, is_limit: bool = True) -> None:
        """Several runs begin: chains, starts or members, of at most ``n_iter`` iterations each if that is known."""

    def begin_run(self, number: int, n_iter: int) -> None:
        """One of the runs begins, or goes on for up to ``n_iter`` more iterations."""

    def advance(self, progress: Any) -> None:
        """An iteration of a run has ended."""

    def end_run(self, number: int) -> None:
        """One of the runs has ended, perhaps before its limit."""

    def end_runs(self) -> None:
        """All runs have ended, and their result is being summarized."""

    def compiling(self, begins: bool) -> bool:
        """A compilation begins or ends; returns whether this is shown."""
        return False

    def cleared(self) -> contextlib.AbstractContextManager[Any]:
        """Other text may be printed within this context."""
        return contextlib.nullcontext()


class _Shown(Display):
    """A display that occupies standard error until it is closed."""

    def __enter__(self) -> Display:
        global _shown
        with _shown_lock:
            if _shown is not None:  # another thread was faster
                return Display(self.title)
            _shown = self
        self.open()
        return self

    def __exit__(self, *exception: object) -> None:
        global _shown
        if _shown is self:
            try:
                self.close()
            finally:
                _shown = None

    def open(self) -> None:
        """Begin to show."""

    def close(self) -> None:
        """Leave nothing on the screen."""


class Lines(_Shown):
    """One line per stage, one at the first iteration of each run, and one every ten seconds."""

    def __init__(self, title: str, counted: str = "clusters"):
        super().__init__(title, counted)
        self._last, self._name = -math.inf, ""
        self._noun, self._is_short = "run", False

    def begin_runs(self, n_runs: int, noun: str, n_iter: int | None = None, *, is_limit: bool = True) -> None:
        """Remember what a run is called."""
        self._noun, self._is_short = noun, n_iter == 1

    def stage(self, name: str) -> None:
        """Print the name of the stage."""
        if name != self._name:
            self._name = name
            print(f"{self.title}: {name}", file=sys.stderr, flush=True)

    def end_runs(self) -> None:
        """Print the name of the next stage."""
        self.stage("summarizing")

    def advance(self, progress: Any) -> None:
        """Print the state of the run, unless the last line is new."""
        now = time.monotonic()
        is_first = progress.iteration == 1 and not self._is_short
        if is_first or now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            objective = getattr(progress, "objective", None)
            iteration = "" if self._is_short else f"iteration {progress.iteration:4d}  "
            value = "" if objective is None else f"objective {objective:.4f}  "
            print(
                f"{self.title}: {self._noun} {progress.run + 1}  {iteration}"
                f"{self.counted} {progress.n_clusters:3d}  {value}{progress.seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )


class _Run:
    """How far a run is, and at which iteration it ends at the latest."""

    def __init__(self, limit: int | None):
        self.before, self.done, self.limit, self.ended = 0, 0, limit, False


class Bar(_Shown):
    """One bar over all stages and runs, which vanishes when the fit ends.

    Examples
    --------
    >>> bar = Bar("Mixture")
    >>> bar.stage("reading")
    >>> bar.text()
    'Mixture: reading [{elapsed}]'
    >>> bar.begin_runs(4, "chain", 300, is_limit=False)
    >>> bar.counts()
    (0, 1200)
    """

    def __init__(self, title: str, counted: str = "clusters", deadline: float = math.inf):
        super().__init__(title, counted, deadline)
        self._lock = threading.Lock()
        self._name = "starting"
        self._n_compiling = 0
        self._compiled_since, self._compile_seconds = 0.0, 0.0
        self._groups = 0  # runs within runs: the outermost are counted
        self._forget_runs()
        self._tqdm: Any = None
        self._finished = threading.Event()
        self._drawer: threading.Thread | None = None

    def _forget_runs(self) -> None:
        self._runs: dict[int, _Run] = {}
        self._n_runs, self._noun, self._is_limit = 0, "", True
        self._n_iter: int | None = None
        self._n_performed, self._first = 0, 0.0
        self._n_clusters: int | None = None

    # ---- what the driver tells ---------------------------------------------------------------------------------

    def stage(self, name: str) -> None:
        """Show the name of the stage."""
        with self._lock:
            self._name = name

    def begin_runs(self, n_runs: int, noun: str, n_iter: int | None = None, *, is_limit: bool = True) -> None:
        """Count from the beginning, unless these runs are within another run."""
        with self._lock:
            self._groups += 1
            if self._groups == 1:
                self._forget_runs()
                self._n_runs, self._noun, self._n_iter, self._is_limit = n_runs, noun, n_iter, is_limit

    def begin_run(self, number: int, n_iter: int) -> None:
        """Count the iterations of this run after those that it has had."""
        with self._lock:
            run = self._runs.setdefault(number, _Run(n_iter))
            run.before = run.done
            if run.limit is None or run.limit <= run.done:
                run.limit = run.done + n_iter

    def advance(self, progress: Any) -> None:
        """Count an iteration."""
        with self._lock:
            run = self._runs.setdefault(progress.run, _Run(self._n_iter))
            run.done = run.before + progress.iteration
            if self._n_performed == 0:  # the starts before it are no measure of the speed
                self._first, self._compile_seconds = time.perf_counter(), 0.0
            self._n_performed += 1
            self._n_clusters = progress.n_clusters

    def end_run(self, number: int) -> None:
        """The iterations that the run did not need are not expected any more."""
        with self._lock:
            run = self._runs.setdefault(number, _Run(self._n_iter))
            run.ended = True
            run.limit = run.done

    def end_runs(self) -> None:
        """Show that the result is being summarized."""
        with self._lock:
            self._groups = max(self._groups - 1, 0)
            if self._groups == 0:
                self._forget_runs()
                self._name = "summarizing"

    def compiling(self, begins: bool) -> bool:
        """Show that code is being compiled; the time does not count in the estimate."""
        with self._lock:
            now = time.perf_counter()
            if begins and self._n_compiling == 0:
                self._compiled_since = now
            self._n_compiling = max(self._n_compiling + (1 if begins else -1), 0)
            if self._n_compiling == 0:
                self._compile_seconds += now - max(self._compiled_since, self._first)
        return True

    # ---- what is shown -----------------------------------------------------------------------------------------

    def counts(self) -> tuple[int, int | None]:
        """Iterations of all runs, and how many they will be (at most); None if that is not known."""
        with self._lock:
            return self._counts()

    def _counts(self) -> tuple[int, int | None]:
        done = sum(run.done for run in self._runs.values())
        limits = [run.limit for run in self._runs.values()]
        open_limits = [run.limit for run in self._runs.values() if not run.ended]
        expected = self._n_iter or max((limit for limit in open_limits if limit is not None), default=None)
        waiting = max(self._n_runs - len(self._runs), 0)
        if None in limits or (waiting and expected is None):
            return done, None
        return done, sum(max(run.limit or 0, run.done) for run in self._runs.values()) + waiting * (
            expected or 0
        )

    def seconds_left(self) -> float | None:
        """Estimate of the rest of the iterations, at the mean speed so far; None before the second iteration."""
        with self._lock:
            done, total = self._counts()
            now = time.perf_counter()
            if total is None or self._n_performed < 2:
                return None if math.isinf(self.deadline) else max(self.deadline - now, 0.0)
            spent = max(now - self._first - self._compile_seconds, 0.0)
            return min((total - done) * spent / (self._n_performed - 1), max(self.deadline - now, 0.0))

    def text(self) -> str:
        """The line that is drawn, in tqdm's format."""
        done, total = self.counts()
        left = self.seconds_left()
        with self._lock:
            name = self._name
            units = f"{self._noun}s" if self._n_iter == 1 else "iterations"
            if self._n_runs == 1 or self._n_iter == 1:
                name = "fitting"
            elif self._n_runs and not self._n_performed:
                name = f"starting {self._n_runs} {self._noun}s"
            elif self._n_runs:
                n_ended = sum(run.ended for run in self._runs.values())
                name = f"{n_ended} of {self._n_runs} {self._noun}s done"
            if self._n_compiling:
                name = COMPILING
            found = "" if self._n_clusters is None else f", {self._n_clusters} {self.counted}"
            most = "at most " if self._is_limit else ""
        head = f"{self.title}: {name}".replace("{", "{{").replace("}", "}}")
        if done == 0:
            return f"{head} [{{elapsed}}]"
        if total is None:
            return f"{head}, iteration {done}{found} [{{elapsed}}]"
        most_left = most if math.isinf(self.deadline) else "at most "
        rest = "" if left is None else f", {most_left}{_clock(left)} left"
        return (
            f"{head} {{percentage:3.0f}}%|{{bar}}| {done} of {most}{total} {units}{found} [{{elapsed}}{rest}]"
        )

    def open(self) -> None:
        """Start the thread that draws."""
        self._began = time.time()
        self._drawer = threading.Thread(
            target=self._draw_until_finished, name="partita-progress", daemon=True
        )
        self._drawer.start()

    def _draw_until_finished(self) -> None:
        wait = SECONDS_BEFORE_A_BAR
        while not self._finished.wait(wait):
            with contextlib.suppress(OSError, ValueError):  # the terminal was closed: the fit goes on
                self.draw()
            wait = SECONDS_BETWEEN_DRAWINGS

    def draw(self) -> None:
        """Draw the bar as it is now."""
        text, (done, total) = self.text(), self.counts()
        if self._tqdm is None:
            self._tqdm = _make_tqdm(text)
            self._tqdm.start_t = self._began
        if total != self._tqdm.total and hasattr(self._tqdm, "container"):
            # a bar of a notebook keeps the length and the width of its widget unless it begins again
            self._tqdm.reset(total)
            self._tqdm.start_t = self._began
        self._tqdm.bar_format, self._tqdm.n, self._tqdm.total = text, done, total
        self._tqdm.refresh()

    def close(self) -> None:
        """End the thread and remove the bar."""
        self._finished.set()
        if self._drawer is not None:
            self._drawer.join()
        if self._tqdm is not None:
            with contextlib.suppress(OSError, ValueError):
                self._tqdm.close()

    def cleared(self) -> contextlib.AbstractContextManager[Any]:
        """Remove the bar while other text is printed."""
        if self._tqdm is None:
            return contextlib.nullcontext()
        return self._tqdm.external_write_mode(file=sys.stderr)


def _make_tqdm(text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its bars for notebooks are experimental, or need ipywidgets
        from tqdm.auto import tqdm

        return tqdm(total=None, leave=False, bar_format=text, dynamic_ncols=True, file=sys.stderr)


def _clock(seconds: float) -> str:
    """Minutes and seconds, or hours, minutes and seconds.

    Examples
    --------
    >>> _clock(75.4), _clock(3601)
    ('01:15', '1:00:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
