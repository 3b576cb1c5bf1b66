"""Label matrices as they come: FAULTS rows 1-11, 13-29, 41-45, 47-51, 64, 65 as far as reading goes."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from partita.consensus.labelings import Labelings
from partita.consensus.soft_members import DRAWS, draw_labels
from partita.estimator import DataWarning

Y = np.array([[0, 1, 2], [0, 1, -1], [1, 0, 2], [1, 1, 0], [0, 0, 0]])


@pytest.fixture
def fit(first_labels, global_random_seed):
    def fit(X, quiet=True, noise="missing", **weights):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if quiet else "error", DataWarning)
            return first_labels(noise=noise, random_state=global_random_seed).fit(X, **weights)

    return fit


# ---- kinds of labels and containers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda Y: Y.tolist(),
        lambda Y: Y.astype(np.int8),
        lambda Y: Y.astype(">i4"),
        lambda Y: np.asfortranarray(Y),
        lambda Y: np.where(Y < 0, np.nan, Y.astype(float)),
        lambda Y: np.ma.array(Y, mask=Y < 0),
        lambda Y: pd.DataFrame(Y),
        lambda Y: pd.DataFrame(Y).replace(-1, pd.NA).astype("Int64"),
        lambda Y: pd.DataFrame(Y).replace(-1, None).astype("category"),
        lambda Y: pl.DataFrame(Y, schema=["a", "b", "c"]),
        lambda Y: pa.table({name: column for name, column in zip("abc", Y.T, strict=True)}),
        lambda Y: {name: column for name, column in zip("abc", Y.T, strict=True)},
        lambda Y: np.where(Y < 0, -1, 7 * Y + 100),  # gaps
        lambda Y: np.where(Y < 0, -1, Y * (2**61)),  # sparse huge codes
        lambda Y: np.array([[None if y < 0 else "abc"[y] for y in row] for row in Y], dtype=object),
    ],
)
def test_one_matrix_in_any_container(fit, make):
    found, plain = fit(make(Y)), fit(Y)
    assert np.array_equal(found.labels_, plain.labels_)
    assert np.array_equal(found.seen.codes, plain.seen.codes)
    assert np.array_equal(found.seen.n_levels, [2, 2, 2])


def test_codes_are_small_and_dense(fit):
    wide = np.column_stack([np.arange(400) // 2, np.arange(400) % 3])
    assert fit(wide).seen.codes.dtype == np.int16  # row 24: 200 levels do not fit int8
    assert np.array_equal(fit(wide).seen.n_levels, [200, 3])
    assert fit(Y).seen.codes.dtype == np.int8


def test_bool_and_text_members(fit):
    frame = pd.DataFrame({"b": [True, False, True], "t": ["x", "y", None]})
    assert np.array_equal(fit(frame).seen.codes, [[1, 0], [0, 1], [1, -1]])


def test_input_is_not_touched(fit):
    for X in (Y.copy(), np.ascontiguousarray(Y[::-1])[::-1]):
        X.flags.writeable = False
        before = X.copy()
        fit(X)
        assert np.array_equal(X, before)


# ---- noise ---------------------------------------------------------------------------------------------------


def test_minus_one_is_missing_and_said_so(fit, first_labels):
    with pytest.warns(DataWarning, match="missing code"):
        model = first_labels().fit(Y)
    assert model.fit_report_["missing_code"].columns == ("x2",)
    assert model.seen.codes[1, 2] == -1


def test_noise_as_a_cluster(fit):
    model = fit(Y, quiet=False, noise="cluster")
    assert np.array_equal(model.seen.n_levels, [2, 2, 3])
    assert model.seen.codes[1, 2] == 0
    assert "noise" in model.fit_report_


def test_noise_as_singletons(fit):
    X = np.array([[-1, 0], [-1, 0], [3, 1], [3, 1], [4, 1]])
    model = fit(X, noise="singletons")
    assert model.seen.n_levels[0] == 4
    assert len(set(model.seen.codes[:, 0])) == 4
    # new noise is none of the old singletons
    assert model._new_codes(np.array([[-1, 0], [4, 1]]))[:, 0].tolist() == [-1, 1]


@pytest.mark.parametrize("noise", ["missing", "cluster", "singletons"])
def test_other_negative_labels_are_refused(fit, noise):
    bad = Y.copy()
    bad[3, 1] = -2
    with pytest.raises(ValueError, match=r"column 'x1', row 3 .*negative code -2"):
        fit(bad, noise=noise)
    frame = pd.DataFrame(bad).astype("category")
    assert fit(frame, noise=noise).seen.n_levels[1] == 3


# ---- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((3, 0), int), "0 feature"),
        (np.zeros((0, 2), int), "0 sample"),
        (np.full((3, 2), np.nan), "every cell is missing"),
        (np.full((3, 2), -1), "every cell is missing"),
        (np.array([[0.5, 1.0], [1.0, 2.0]]), "0.5 is not an integer code"),
        (np.array([[0, np.inf], [1, 2]]), "infinity"),
        ([[1, 0], ["a", 1]], "mixes text"),
        (np.array([0, 1, 1]), "Expected 2D"),
        (pd.DataFrame([[0, 1]], columns=["a", "a"]), "duplicate column names"),
    ],
)
def test_refused(fit, X, words):
    with pytest.raises(ValueError, match=words):
        fit(X)


def test_np_matrix_is_refused(fit):
    with pytest.raises(TypeError, match=r"np\.matrix"):
        fit(Y.view(np.matrix))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1, 1], "one number each"),
        ([1, -1, 1], "member 1 is -1.0"),
        ([0, 0, 0], "every member"),
        ("abc", "one number per member"),
    ],
)
def test_member_weights_are_checked(fit, weight, words):
    with pytest.raises(ValueError, match=words):
        fit(Y, member_weight=weight)


@pytest.mark.parametrize("weight", [[1, 1], [1, 1, 1, 1, -1], [0] * 5, [1, 1, 1, 1, np.nan]])
def test_sample_weights_are_checked(fit, weight):
    with pytest.raises(ValueError, match="sample_weight"):
        fit(Y, sample_weight=weight)


# ---- what takes part ------------------------------------------------------------------------------------------


def test_weight_zero_is_absent_but_labelled(fit):
    model, without = fit(Y, sample_weight=[1, 1, 1, 0, 1]), fit(Y[[0, 1, 2, 4]])
    assert np.array_equal(model.seen.codes, without.seen.codes)
    assert np.array_equal(model.seen.rows, [0, 1, 2, 4])
    assert np.array_equal(model.labels_[[0, 1, 2, 4]], without.labels_)
    assert model.labels_[3] == without.predict(Y[3:4])[0]


def test_member_of_weight_zero_is_absent(fit):
    model, without = fit(Y, member_weight=[1, 0, 2]), fit(Y[:, [0, 2]], member_weight=[1, 2])
    assert np.array_equal(model.seen.codes, without.seen.codes)
    assert np.array_equal(model.member_weights_, [1, 0, 2])
    new = Y.copy()
    new[:, 1] = 9 - Y[:, 1]
    assert np.array_equal(model.predict(Y), without.predict(Y[:, [0, 2]]))


def test_rows_without_labels_get_shares(fit):
    X = np.vstack([Y, [[-1, -1, -1]]])
    model = fit(X)
    assert "empty_rows" in model.fit_report_
    assert len(model.seen.codes) == 5
    assert model.labels_[5] == 0
    assert model.confidence_[5] == pytest.approx(0.6)


def test_members_that_say_nothing_are_listed(fit):
    X = np.column_stack([Y[:, :2], np.zeros(5, int), np.arange(5)])
    model = fit(X, quiet=False)  # no warning: it is a note
    assert np.array_equal(model.member_weights_, [1, 1, 0, 0])
    assert model.fit_report_["one_cluster"].columns == ("x2",)
    assert model.fit_report_["all_alone"].columns == ("x3",)
    assert fit(np.zeros((4, 2), int)).n_clusters_ == 1  # nothing else is there: it is the answer


def test_empty_member_is_ignored_with_a_warning(fit):
    X = np.column_stack([Y[:, 0], np.full(5, np.nan)])
    model = fit(X)
    assert model.fit_report_["empty_columns"].level == "warning"
    assert np.array_equal(model.member_weights_, [1, 0])
    assert model.n_features_in_ == 2


def test_one_row(fit):
    model = fit([[3, 4]])
    assert model.labels_.tolist() == [0]
    assert model.predict_proba([[3, 4]]).tolist() == [[1.0]]


# ---- soft members --------------------------------------------------------------------------------------------


def test_draws_match_memberships_to_within_one(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    P = rng.dirichlet([0.5] * 4, size=500)
    P[3] = np.nan
    drawn = draw_labels(P, rng)
    assert drawn.mask[3].all()
    counts = np.stack([(drawn.data == j).sum(axis=1) for j in range(4)], axis=1)
    seen = np.arange(500) != 3
    assert np.abs(counts - DRAWS * P)[seen].max() < 1.0
    # unbiased: the mean over 499 rows of counts has a standard error of at most 0.5/sqrt(499)
    assert np.abs((counts - DRAWS * P)[seen].mean(axis=0)).max() < 5 * 0.5 / np.sqrt(499)


def test_certain_memberships_are_labels(fit):
    soft = fit([Y[:, 0], np.eye(2)[Y[:, 1]]])
    assert np.array_equal(soft.seen.codes, np.column_stack([Y[:, 0], *[Y[:, 1]] * DRAWS]))
    assert np.allclose(soft.seen.member_weights, [1] + [1 / DRAWS] * DRAWS)
    assert np.array_equal(soft.member_weights_, [1, 1])
    assert soft.n_features_in_ == 2
    assert np.array_equal(soft.predict([Y[:, 0], np.eye(2)[Y[:, 1]]]), soft.labels_)


def test_soft_members_by_name(fit):
    P = np.array([[1.0, 0.0], [np.nan, np.nan], [0.5, 0.5], [0.0, 1.0], [0.2, 0.8]])
    model = fit({"hard": Y[:, 0], "soft": P}, member_weight=[1, 2])
    assert model.seen.owners.tolist() == [0] + [1] * DRAWS
    assert np.allclose(model.member_weights_, [1, 2])
    assert (model.seen.codes[1, 1:] == -1).all()
    with pytest.raises(ValueError, match="soft in fit and are hard now"):
        model.predict(Y[:, :2])


@pytest.mark.parametrize(
    ("P", "words"),
    [
        ([[0.5, 0.6], [1, 0]], "row 0 .*sum to 1"),
        ([[1, 0], [1.5, -0.5]], "row 1 .*negative"),
        ([[1, np.nan]], "partly NaN"),
    ],
)
def test_bad_memberships_are_named(fit, P, words):
    with pytest.raises(ValueError, match=words):
        fit([P])


# ---- predict time, and scikit-learn's ways -------------------------------------------------------------------


def test_predict_reads_as_fit_did(fit, first_labels):
    frame = pd.DataFrame(Y, columns=["a", "b", "c"]).astype("category")
    model = fit(frame)
    assert np.array_equal(model.predict(frame), model.labels_)
    with pytest.warns(DataWarning, match="another order"):
        assert np.array_equal(model.predict(frame[["b", "a", "c"]]), model.labels_)
    with pytest.raises(ValueError, match="2 features"):
        fit(Y).predict(Y[:, :2])
    with pytest.warns(DataWarning, match="not seen at fit"):
        fit(Y).predict(np.array([[0, 1, 99]]))
    with pytest.raises(ValueError, match="was not seen at fit"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first_labels(handle_unknown="error").fit(Y).predict(np.array([[0, 1, 99]]))


def test_probabilities_sum_to_one_and_order_is_by_size(fit):
    model = fit(Y)
    proba = model.predict_proba(Y)
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.all(np.diff(np.bincount(model.labels_)) <= 0)
    assert np.array_equal(fit(Y).labels_, model.labels_)


def test_no_hidden_state(fit, first_labels):
    model = fit(Y)
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict(Y)
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(copied.predict(Y), model.labels_)
    with pytest.raises(ValueError, match="negative"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(Y - 5)
    assert np.array_equal(model.predict(Y), model.labels_)  # a fit that fails changes nothing
    with pytest.raises(ValueError, match="random_state is -1"):
        first_labels(random_state=-1).fit(Y)


def test_labelings_of_codes():
    made = Labelings.of([[0, 1], [2, -1]], weights=[1, 2])
    assert made.n_levels.tolist() == [3, 2]
    assert made.codes.dtype == np.int8
