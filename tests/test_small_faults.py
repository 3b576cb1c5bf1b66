"""Faults that belong to no single package: memory, threads, warnings of numpy, text in spreadsheets and terminals."""

import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from partita import BCE, NBCE, QMI, CrossCat, Mixture, OverlappingViews, RelationalBlocks, Voting, dispatch
from partita.cli.clustering import cluster
from partita.cli.output import visible
from partita.dispatch import interpreted
from partita.fitting.objects import rows_of_objects


def test_row_87_huge_weights_in_chains_are_refused_before_allocation(monkeypatch):
    def repeat(*args, **kwargs):
        raise AssertionError("memory was taken")

    monkeypatch.setattr(np, "repeat", repeat)
    for weight in (1e12, 1e300):
        with pytest.raises(ValueError, match=r"divide the weights by a common factor"):
            rows_of_objects(np.full(100, weight))


def test_row_87_a_time_limit_bounds_the_memory_of_draws(two_groups):
    """Draws that no time is left for need no memory: a huge number with a limit means "as many as possible"."""
    X, _ = two_groups
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Mixture("gaussian", n_chains=1, burn_in=1, n_draws=10**9, time_limit=0.5, random_state=0).fit(
            X
        )
        assert "cut_short" in model.fit_report_
        with pytest.raises(ValueError, match="draws"):
            Mixture("gaussian", n_chains=1, burn_in=1, n_draws=10**9, random_state=0).fit(X)


LABELS = np.array([[0, 1, 2], [1, 2, 0], [0, 0, 1], [2, 1, 1]] * 4)
CHAINS = {
    "NBCE": (NBCE(), LABELS),
    "BCE": (BCE(n_clusters=2, inference="gibbs"), LABELS),
    "RelationalBlocks": (RelationalBlocks(), LABELS),
    "CrossCat": (CrossCat(), LABELS + 0.5),
    "OverlappingViews": (OverlappingViews(n_init=1), LABELS + 0.5),
}


@pytest.mark.parametrize("model, X", CHAINS.values(), ids=CHAINS)
def test_row_87_a_time_limit_bounds_the_draws_of_every_model(model, X):
    def begun(progress):
        raise AssertionError("a chain has begun")

    model = clone(model).set_params(n_chains=1, burn_in=1, n_draws=10**10, random_state=0)
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limited = clone(model).set_params(time_limit=0.3).fit(X)
        assert "cut_short" in limited.fit_report_
        with pytest.raises(ValueError, match=r"need about .* GB of memory"):
            model.set_params(callback=begun).fit(X)


def test_row_87_voting_says_when_there_are_fewer_rows_than_clusters():
    with pytest.warns(UserWarning, match="n_clusters=5, but there are only 3 distinct rows"):
        model = Voting(n_clusters=5, random_state=0).fit([[0, 0], [1, 1], [2, 2], [2, 2]])
    assert "few_rows" in model.fit_report_


def test_row_87_overloads_are_registered_before_any_thread_compiles(monkeypatch):
    """The second thread must wait for the first, which has taken the last overload but not registered it yet."""
    began, go, order = threading.Event(), threading.Event(), []

    def slow():
        began.set()
        go.wait(10)
        order.append("registered")

    monkeypatch.setattr(dispatch, "_waiting", [slow])

    def compile_after():
        dispatch._register_overloads()
        order.append("compiles")

    first = threading.Thread(target=dispatch._register_overloads)
    first.start()
    began.wait(10)
    second = threading.Thread(target=compile_after)
    second.start()
    second.join(0.05)
    go.set()
    first.join()
    second.join()
    assert order == ["registered", "compiles"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_row_87_warnings_of_numpy_stay_inside():
    one_column = np.column_stack([np.full((6, 2), np.nan), np.zeros(6)])
    silent = np.array([[0, -1], [1, -1], [0, -1], [1, -1], [-1, -1], [-1, -1]])
    with interpreted(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        OverlappingViews(n_init=1, n_chains=1, n_draws=2, burn_in=1, random_state=0).fit(one_column)
        QMI(n_clusters=2, random_state=0).fit(silent)
        QMI(n_clusters=1, random_state=0).fit(silent[:1, :1])


def test_row_87_formulas_in_files_of_text(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "people.csv"
    values = rng.normal(size=(30, 2)) + 9 * (np.arange(30) % 2)[:, None]
    names = [f"=cmd{k}" if k % 2 else f"name{k}" for k in range(30)]
    rows = [f"{name},{x:.3f},{y:.3f}" for name, (x, y) in zip(names, values, strict=True)]
    path.write_text("\n".join(["who,x,y", *rows]) + "\n")
    for escape in (False, True):
        out = tmp_path / str(escape)
        with interpreted():
            cluster(path, inference="vb", id_column="who", out=out, escape_formulas=escape)
        lines = (out / "labels.csv").read_text().splitlines()
        assert lines[2].startswith("'=cmd1" if escape else "=cmd1") and lines[1].startswith("name0")


def test_row_87_control_characters_in_terminals():
    assert visible("a\x1b[2Jb\x07\u202ec\r") == "a\\x1b[2Jb\\x07\\u202ec\\r"
    assert visible("Zürich\n\tβ 日本") == "Zürich\n\tβ 日本"
