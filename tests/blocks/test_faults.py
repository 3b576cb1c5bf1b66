"""Faulty input of relations; the numbers are those of the table of faults."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from partita import RelationalBlocks, load
from partita.estimator import ModelFileError
from partita.execution import memory

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")

TINY = {"n_chains": 1, "n_draws": 8, "burn_in": 5, "n_moves": 2, "random_state": 0}


@pytest.fixture
def tiny():
    return lambda **options: RelationalBlocks(**{**TINY, **options})


def test_row_01_and_03_missing_cells(tiny, planted, quiet):
    X, _, _ = planted
    mixed, plain = X.astype(object), X.copy()
    for row, hole in enumerate([None, pd.NA, pd.NaT, np.nan]):
        mixed[row, 0], plain[row, 0] = hole, np.nan
    with quiet():
        a, b = tiny(family="bernoulli").fit(mixed), tiny(family="bernoulli").fit(plain)
    assert np.array_equal(a.row_trace_.labels, b.row_trace_.labels)
    assert "'x0' (4)" in a.fit_report_["missing"].message
    assert a.missing_cells().tolist() == [[0, 0], [1, 0], [2, 0], [3, 0]]


def test_row_02_infinity(tiny, planted):
    X, _, _ = planted
    model = tiny().fit(X * 1.5)
    X[5, 1] = np.inf
    with pytest.raises(ValueError, match=r"column 'x1', row 5 .*replace inf"):
        tiny().fit(X)
    with pytest.raises(ValueError, match=r"column 'x1', row 5 .*replace inf"):
        model.predict(X)


@pytest.mark.filterwarnings("ignore")
def test_row_04_and_05_nothing_seen(tiny, planted):
    X, _, _ = planted
    X[3], X[:, 2] = np.nan, np.nan
    model = tiny().fit(X)
    assert "the first is row 3" in model.fit_report_["empty_rows"].message
    assert model.fit_report_["empty_columns"].columns == ("x2",)
    assert "by the prior only" in model.fit_report_["empty_columns"].message
    assert model.row_labels_.shape == (16,) and model.column_labels_.shape == (18,)
    assert np.isfinite(model.row_confidence_).all()
    assert len(model.missing_cells()) == 16 + 18 - 1


def test_row_06_everything_missing(tiny):
    with pytest.raises(ValueError, match=r"every cell is missing.*check how the data"):
        tiny().fit(np.full((4, 3), np.nan))


def test_row_07_and_08_constant(tiny, quiet):
    for value in (1.0, 3.25):
        with quiet():
            model = tiny(n_draws=20).fit(np.full((6, 5), value))
        assert model.row_labels_.shape == (6,) and "constant" not in model.fit_report_
        assert np.isfinite(model.row_trace_.log_joint).all()


def test_row_09_10_13_sizes(tiny, quiet):
    with pytest.raises(ValueError, match="0 sample"):
        tiny().fit(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="0 feature"):
        tiny().fit(np.zeros((3, 0)))
    with quiet():
        model = tiny().fit(np.array([[1.5, 2.5, 9.0]]))
    assert model.n_row_clusters_ == 1
    with quiet():
        assert tiny().fit(np.array([[1], [0], [1]])).n_column_clusters_ == 1


def test_row_16_to_21_words_and_codes(tiny, planted, quiet):
    X, _, _ = planted
    words = np.where(X == 1, "yes", "no")
    with quiet():
        expected = tiny().fit(words)
        frame = tiny().fit(pd.DataFrame(words, columns=[f"x{d}" for d in range(18)]).astype("category"))
        enum = tiny().fit(pl.DataFrame({f"x{d}": words[:, d] for d in range(18)}))
        yes_no = tiny(family="bernoulli").fit(words)
    assert expected.levels_ == [("no", "yes")] and yes_no.levels_ == [("no", "yes")]
    for model in (frame, enum):
        assert np.array_equal(model.row_trace_.labels, expected.row_trace_.labels)
    with pytest.raises(ValueError, match=r"0.5 is not an integer code.*'categorical'"):
        tiny(family="categorical").fit(X + 0.5)
    with pytest.raises(ValueError, match=r"hold 3 different values.*family='categorical'"):
        tiny(family="bernoulli").fit(pd.DataFrame({"a": [0, 1, 0], "b": [1, 2, 2]}))


def test_one_sort_of_cells(tiny, quiet):
    """Columns of a data frame may differ in type and still form one relation, but not text and numbers."""
    frame = pd.DataFrame({"a": [0, 1] * 6, "b": np.arange(12) % 5 * 9, "c": np.arange(12) % 7})
    with quiet():
        model = tiny().fit(frame)
    assert model.family_name_ == "poisson"  # eleven values in all, too many for levels
    few = tiny().fit(frame[["a", "c"]])
    assert few.family_name_ == "categorical" and few.levels_ == [(0, 1, 2, 3, 4, 5, 6)]
    with pytest.raises(ValueError, match=r"'name' holds text and column 'a' numbers.*Mixture"):
        tiny().fit(frame.assign(name=list("pqrspqrspqrs")))
    with pytest.raises(ValueError, match=r"gaussian_full' reads whole rows"):
        tiny(family="gaussian_full").fit(frame)
    with pytest.raises(ValueError, match=r"column 'a', row 0.*is not positive.*gaussian"):
        tiny(family="exponential").fit(frame)
    with pytest.raises(ValueError, match="unknown family 'gauss'"):
        tiny(family="gauss").fit(frame)
    with pytest.raises(ValueError, match="a pair"):
        tiny(family=3).fit(frame)


def test_square_relations_are_square(tiny, planted):
    X, _, _ = planted
    with pytest.raises(ValueError, match=r"16 rows and 18 columns: use relation=.table."):
        tiny(relation="directed").fit(X)
    Y = X[:, :16].copy()
    Y[:] = np.triu(Y) + np.triu(Y, 1).T
    Y[2, 5] = 1 - Y[5, 2]
    with pytest.raises(ValueError, match=r"cells \(2, 5\) and \(5, 2\) differ"):
        tiny(relation="undirected").fit(Y)
    Y[2, 5] = np.nan
    with pytest.raises(ValueError, match=r"cells \(2, 5\) and \(5, 2\) differ"):
        tiny(relation="undirected").fit(Y)
    with pytest.raises(ValueError, match=r"shapes \[\(16, 18\), \(16, 16\)\].*same rows and columns"):
        tiny().fit([X, Y])


def test_row_27_unknown_value_at_predict(tiny, planted):
    X, _, _ = planted
    model = tiny(family="categorical").fit(X.astype(int))
    new = X[:2].astype(int)
    new[0, 0] = 7
    with pytest.warns(UserWarning, match=r"not seen at fit.*'x0' \(1\)"):
        model.predict(new)
    model.handle_unknown = "error"
    with pytest.raises(ValueError, match=r"column 'x0', row 0.*not seen at fit"):
        model.predict(new)


def test_row_28_and_29_names(tiny, planted):
    X, _, _ = planted
    frame = pd.DataFrame(X, columns=[f"c{d}" for d in range(18)])
    model = tiny().fit(frame)
    with pytest.raises(ValueError, match=r"now missing:\n- c17"):
        model.predict(frame.iloc[:, :17])
    with pytest.warns(UserWarning, match="another order"):
        np.testing.assert_array_equal(model.predict(frame.iloc[:, ::-1]), model.predict(frame))
    with pytest.raises(ValueError, match=r"(?s)duplicate column names"):
        tiny().fit(pd.DataFrame(X[:, :2], columns=["a", "a"]))


@pytest.mark.parametrize("scale, offset", [(1e200, 0.0), (1e-200, 0.0), (1.0, 1e9)])
def test_row_30_units(tiny, scale, offset, quiet, global_random_seed):
    X = np.kron([[1.0, 8.0], [8.0, 1.0]], np.ones((4, 3)))
    X = X + np.random.default_rng(global_random_seed).normal(size=X.shape).round(3)
    with quiet():
        expected, model = tiny().fit(X), tiny().fit(X * scale + offset)
    assert np.array_equal(model.row_trace_.labels, expected.row_trace_.labels)
    means = (model.block_values_ - offset) / scale
    assert np.allclose(means, expected.block_values_, atol=1e-4)


def test_row_31_41_42_containers(tiny, planted, tmp_path, quiet):
    X, _, _ = planted
    expected = tiny().fit(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    holes = np.zeros(X.shape, bool)
    for given in (
        X.astype(np.float32), np.asfortranarray(X), X[::-1, ::-1].copy()[::-1, ::-1], read_only, X.tolist(),
        np.ma.MaskedArray(X, holes), X.astype(X.dtype.newbyteorder(">")),
    ):  # fmt: skip
        with quiet():
            model = tiny().fit(given)
        assert np.array_equal(model.row_trace_.labels, expected.row_trace_.labels)
    with pytest.raises(ValueError, match="Complex data not supported"):
        tiny().fit(X.astype(complex))
    with pytest.raises(TypeError, match=r"np.matrix is not supported"):
        tiny().fit(np.asmatrix(X))
    with pytest.raises(ValueError, match=r"Expected 2D array"):
        tiny().fit(X[:, 0])
    for family in ("auto", "bernoulli"):
        with pytest.raises((TypeError, ValueError), match="toarray"):
            tiny(family=family).fit(sp.csr_array(X))


def test_row_46_memory(tiny, planted, monkeypatch):
    monkeypatch.setattr(memory, "memory_limit", lambda: 1000)
    with pytest.raises(ValueError, match="chains over 288 cells need about"):
        tiny().fit(planted[0])


def test_row_51_random_states(tiny, planted, global_random_seed):
    X, _, _ = planted
    before = np.random.get_state()[1].copy()
    for state in (
        None,
        3,
        np.random.RandomState(0),
        np.random.default_rng(global_random_seed),
        np.random.SeedSequence(1),
    ):
        tiny(random_state=state).fit(X)
    assert np.array_equal(np.random.get_state()[1], before)
    with pytest.raises(ValueError, match="random_state is -1"):
        tiny(random_state=-1).fit(X)


def test_row_53_interrupt_and_failed_fits_leave_the_model_as_it_was(tiny, planted):
    X, _, _ = planted
    model = tiny().fit(X)
    labels = model.row_labels_

    def stop(progress):
        raise KeyboardInterrupt

    model.callback = stop
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:10])
    assert model.row_labels_ is labels


def test_row_59_damaged_files(tiny, planted, tmp_path):
    path = tmp_path / "model.npz"
    tiny().fit(planted[0]).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelFileError, match="not a complete partita model"):
        load(path)


def test_row_59_parts_that_do_not_fit(tiny, planted):
    model = tiny().fit(planted[0])

    def changed(state, name, change):
        return state | {"fitted": state["fitted"] | {name: change(state["fitted"][name])}}

    damages = {
        "statistics": lambda state: changed(state, "_statistics", lambda S: S[:, :, :1]),
        "labels": lambda state: changed(state, "row_labels_", lambda z: z + 1),
        "draws": lambda state: state | {"drawn": state["drawn"] | {"families": []}},
        "blocks of a draw": lambda state: (
            state | {"drawn": state["drawn"] | {"labels": [z + 9 for z in state["drawn"]["labels"]]}}
        ),
        "trace": lambda state: state | {"traces": [state["traces"][0]._replace(chain=np.zeros(1))] * 2},
    }
    for name, damage in damages.items():
        with pytest.raises((ValueError, TypeError)):
            tiny()._restore(damage(model._state()))
            pytest.fail(name)


def test_row_79_levels_of_one_column_were_added(tiny, rng):
    """By the schema of the first column the family has its levels, and codes of another one are beyond its end."""
    state = tiny().fit(rng.integers(4, size=(12, 9)))._state()
    for name, value in (("levels", list(range(60))), ("kind", "count")):
        forged = copy.deepcopy(state)
        column = forged["schemas"][0]["columns"][5]
        column[name] = value
        if name == "kind":
            column |= {"levels": [], "family": None}
        with pytest.raises(ValueError, match="does not have 9 columns of one kind"):
            tiny()._restore(forged)
    tiny()._restore(state)


def test_row_64_and_65_life(tiny, planted):
    X, _, _ = planted
    model = tiny()
    for ask in (lambda: model.predict(X), lambda: model.predict_cells(), lambda: model.save("x")):
        with pytest.raises(NotFittedError):
            ask()
    first = model.fit(X).row_trace_.labels
    assert np.array_equal(model.fit(X).row_trace_.labels, first)
    assert not hasattr(clone(model), "row_labels_")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict(X), model.predict(X))


def test_cells_that_are_not_there(tiny, planted):
    X, _, _ = planted
    model = tiny().fit(X)
    assert model.predict_cells().shape == (0,)
    with pytest.raises(
        ValueError, match=r"cell \(0, 18\) \(entry 1\) is not among the 16 rows and 18 columns"
    ):
        model.predict_cells([[0, 0], [0, 18]])
    with pytest.raises(ValueError, match=r"pass integers \(cells, 2\)"):
        model.predict_cells([0, 1])
    with pytest.raises(ValueError, match="pass one value per cell"):
        model.score_cells([1.0], [[0, 0], [1, 1]])
    with pytest.raises(ValueError, match="have no levels"):
        tiny().fit(X + 0.5).predict_cells_proba([[0, 0]])
