"""Rows 1 to 27 of the table of bad inputs: what cells and columns may hold."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


def test_row_01_nan_is_missing(mixture, two_groups, quiet, same_partition):
    X, z = two_groups
    X[3, 0] = X[50, 1] = np.nan
    with quiet():
        model = mixture().fit(X)
    same_partition(model.labels_, z)
    assert "'x0' (1), 'x1' (1)" in model.fit_report_["missing"].message
    assert np.isfinite(model.log_likelihood_)


def test_row_01_nan_in_answers(categorical, two_answers, quiet):
    X, _ = two_answers
    X = X.astype(float)
    X[4, 2] = np.nan
    with quiet():
        model = categorical().fit(X)
    assert "'x2' (1)" in model.fit_report_["missing"].message


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_row_02_infinity(mixture, two_groups, value):
    X, _ = two_groups
    X[5, 1] = value
    with pytest.raises(ValueError, match=r"column 'x1', row 5 .*replace inf"):
        mixture().fit(X)
    model = mixture().fit(two_groups[0][:5])
    with pytest.raises(ValueError, match=r"column 'x1', row 0 .*replace inf"):
        model.predict(X[5:])


def test_row_03_all_sorts_of_missing(mixture, two_groups, quiet):
    X, _ = two_groups
    mixed, plain = X.astype(object), X.copy()
    for row, hole in enumerate([None, pd.NA, pd.NaT, np.nan, float("nan")]):
        mixed[row, 0], plain[row, 0] = hole, np.nan
    with quiet():
        a, b = mixture().fit(mixed), mixture().fit(plain)
    assert np.array_equal(a.labels_, b.labels_) and a.log_likelihood_ == b.log_likelihood_


def test_row_04_all_missing_row(mixture, two_groups, one_warning):
    X, _ = two_groups
    X[3] = np.nan
    with one_warning("1 row without any observed value"):
        model = mixture().fit(X)
    assert "empty_rows" in model.fit_report_ and len(model.labels_) == len(X)
    # the prior: shares of the clusters, as sure as the largest of them
    assert np.allclose(model.predict_proba(X)[3], model.weights_, atol=5e-3)
    assert np.isclose(model.confidence_[3], model.weights_.max(), atol=5e-3)
    assert model.score_samples(X)[3] == pytest.approx(0.0, abs=1e-9)  # nothing seen, nothing to explain


def test_row_04_all_missing_answers(categorical, two_answers, one_warning):
    X = two_answers[0].astype(float)
    X[3] = np.nan
    with one_warning("the first is row 3"):
        model = categorical().fit(X)
    assert np.allclose(model.predict_proba(X)[3], model.weights_, atol=1e-2)


def test_row_05_all_missing_column(mixture, two_groups, one_warning):
    X, _ = two_groups
    alone = mixture().fit(X)
    with one_warning("columns without any observed value are ignored: 'x1'"):
        model = mixture().fit(np.column_stack([X[:, :1], np.full(80, np.nan), X[:, 1:]]))
    assert model.fit_report_["empty_columns"].columns == ("x1",)
    assert np.array_equal(model.labels_, alone.labels_)
    assert "x1" not in model.profiles_ and model.n_features_in_ == 3


def test_row_06_everything_missing(mixture, categorical):
    for model in (mixture(), categorical()):
        with pytest.raises(ValueError, match=r"every cell is missing.*check how the data"):
            model.fit(np.full((10, 3), np.nan))


def test_row_07_constant_column(mixture, two_groups, quiet, same_partition):
    X, _ = two_groups
    with quiet():
        alone = mixture().fit(X)
        model = mixture().fit(np.column_stack([X, np.full(80, 3.0)]))
    assert model.fit_report_["constant"].columns == ("x2",)
    same_partition(model.labels_, alone.labels_)
    assert np.allclose(model.profiles_["x2"]["mean"], 3.0)


def test_row_07_constant_answer(categorical, two_answers, quiet):
    X, _ = two_answers
    with quiet():
        alone = categorical().fit(X)
        model = categorical().fit(np.column_stack([X, np.full(80, 5)]))
    assert np.array_equal(model.labels_, alone.labels_)
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, abs=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, -7.5, 1e9])
def test_row_08_identical_rows(mixture, quiet, value):
    with quiet():
        model = mixture().fit(np.full((20, 3), value) + 0.25)
    assert model.n_clusters_ == 1
    assert np.allclose(model.profiles_["x0"]["mean"], value + 0.25)


def test_row_08_identical_answers(categorical, quiet):
    with quiet():
        assert categorical().fit([["a", "b"]] * 20).n_clusters_ == 1


def test_row_09_no_rows(mixture, categorical):
    for model in (mixture(), categorical()):
        with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1"):
            model.fit(np.empty((0, 3)))
        with pytest.raises(ValueError, match=r"0 feature\(s\).*minimum of 1"):
            model.fit(np.empty((3, 0)))


def test_row_10_one_row(mixture, quiet):
    with quiet():
        model = mixture(n_clusters=1 if mixture.inference == "em" else None).fit([[1.5, 2.0]])
    assert model.n_clusters_ == 1 and model.labels_.tolist() == [0]
    assert model.predict_proba([[1.5, 2.0]]).tolist() == [[1.0]]


def test_row_11_fewer_rows_than_clusters(mixture, two_groups, one_warning):
    X = two_groups[0][::20]
    with one_warning("10 clusters were asked for, but there are only 4 rows"):
        model = mixture(n_clusters=10, max_iter=10_000).fit(X)
    assert 1 <= model.n_clusters_ <= 4 and "few_rows" in model.fit_report_


def test_row_11_a_bound_may_be_larger(two_groups, quiet, global_random_seed):
    from partita import Mixture

    with quiet():
        assert (
            Mixture(inference="vb", max_clusters=500, n_init=1, random_state=global_random_seed)
            .fit(two_groups[0])
            .n_clusters_
            == 2
        )


def test_row_15_negative_codes(categorical, two_answers):
    X = two_answers[0] - 3
    first = np.flatnonzero(X[:, 0] == -3)[0]
    with pytest.raises(ValueError, match=rf"column 'x0', row {first} .*negative code -3.*NaN or None.*text"):
        categorical().fit(X)


def test_row_15_negative_codes_of_a_categorical_dtype(categorical, two_answers, quiet):
    X, _ = two_answers
    frame = pd.DataFrame(X - 3).astype("category").rename(columns=str)
    with quiet():
        assert np.array_equal(categorical().fit(frame).labels_, categorical().fit(X).labels_)


def test_row_16_strings(categorical, two_answers, quiet):
    X, _ = two_answers
    with quiet():
        model = categorical().fit(np.array(["no", "yes"])[X])
    assert np.array_equal(model.labels_, categorical().fit(X).labels_)
    assert model.profiles_["x0"]["levels"].tolist() == ["no", "yes"]


@pytest.mark.parametrize("ordered", [False, True])
def test_row_17_unused_levels(categorical, two_answers, quiet, ordered):
    X, _ = two_answers
    words = np.array(["lo", "hi"])[X]
    frame = pd.DataFrame(words, columns=list("abcdef")).astype(
        pd.CategoricalDtype(["hi", "unused", "lo"], ordered=ordered)
    )
    frame.loc[3, "a"] = None
    plain = words.astype(object)
    plain[3, 0] = None
    with quiet():
        model, expected = categorical().fit(frame), categorical().fit(plain)
    assert np.array_equal(model.labels_, expected.labels_)
    assert model.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-9)
    assert "'a' (1)" in model.fit_report_["missing"].message


def test_row_18_other_dictionaries(categorical, two_answers, quiet):
    X, _ = two_answers
    columns = {f"q{j}": np.array(["no", "yes"])[X[:, j]].tolist() for j in range(X.shape[1])}
    expected = categorical().fit(X)
    frames = [
        pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Categorical)),
        pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Enum(["yes", "unused", "no"]))),
        pa.table({name: pa.array(cells).dictionary_encode() for name, cells in columns.items()}),
    ]
    for frame in frames:
        with quiet():
            model = categorical().fit(frame)
        assert np.array_equal(model.labels_, expected.labels_)


def test_row_19_nullable_and_bool(categorical, two_answers, quiet):
    X, _ = two_answers
    expected = categorical().fit(X)
    plain = pd.DataFrame(X, columns=list("abcdef"))
    for dtype in ("bool", "boolean", "Int64", "string"):
        with quiet():
            model = categorical().fit(plain.astype(dtype))
        assert np.array_equal(model.labels_, expected.labels_), dtype


def test_row_20_mixed_text_and_numbers(mixture, categorical):
    X = np.array([[1, "a"], ["b", "a"], [2, "c"]], dtype=object)
    for model in (mixture(), categorical()):
        with pytest.raises(ValueError, match=r"column 'x0' mixes text \(row 1: 'b'\).*\.astype\(str\)"):
            model.fit(X)


def test_row_21_float_codes(categorical, two_answers, quiet):
    X, _ = two_answers
    with quiet():
        model = categorical().fit(X + 1.0)
    assert np.array_equal(model.labels_, categorical().fit(X).labels_)
    bad = X + 1.0
    bad[7, 2] = 1.5
    with pytest.raises(ValueError, match=r"column 'x2', row 7 .*1\.5 is not an integer code.*text"):
        categorical().fit(bad)


def test_row_22_codes_with_gaps(categorical, two_answers, quiet):
    X, _ = two_answers
    with quiet():
        model = categorical().fit(np.array([1, 17])[X])
    assert np.array_equal(model.labels_, categorical().fit(X).labels_)
    assert model.profiles_["x0"]["probabilities"].shape[1] == 2


def test_row_23_huge_codes(categorical, two_answers, quiet):
    X, _ = two_answers
    huge = np.array([10**6, 2**63 - 1])[X]
    huge[0, 0] = 0
    with quiet():
        model = categorical().fit(huge)
    assert sum(S.shape[0] for S in model._fitted.statistics.S) < 50  # memory by the number of distinct codes
    assert model.profiles_["x0"]["levels"].tolist() == [0, 10**6, 2**63 - 1]


@pytest.mark.parametrize("n_levels", [128, 129, 256, 300])
def test_row_24_many_levels(categorical, n_levels, quiet, global_random_seed):
    """Codes around the ends of int8 and uint8; the second group shifts every level by half of them."""
    rng = np.random.default_rng(global_random_seed)
    codes = np.tile(np.arange(n_levels), 2)
    z = np.repeat([0, 1], n_levels)
    marks = np.where(rng.random((2 * n_levels, 6)) < 0.95, z[:, None], 1 - z[:, None])
    X = np.column_stack([codes, marks])
    few = {} if categorical.inference == "latent_class" else {"n_clusters": 2}
    with quiet():
        model = categorical(**few).fit(X)
        if n_levels <= 256:
            assert np.array_equal(categorical(**few).fit(X.astype(np.uint8)).labels_, model.labels_)
    P = model.profiles_["x0"]["probabilities"]
    assert P.shape == (2, n_levels) and np.allclose(P.sum(axis=1), 1.0)
    assert np.allclose(model.weights_ @ P, 1 / n_levels, rtol=0.2)  # every level comes twice


def test_row_25_identifier(categorical, two_answers, one_warning):
    X, _ = two_answers
    names = np.array([f"id{i}" for i in range(80)], dtype=object)
    with one_warning("looks like an identifier: 'x6' (80)"):
        model = categorical().fit(np.column_stack([X.astype(str).astype(object), names]))
    assert "identifier_modeled" in model.fit_report_  # the family declares the kind


def test_row_26_different_numbers_of_levels(categorical, two_answers, quiet, global_random_seed):
    X, z = two_answers
    rng = np.random.default_rng(global_random_seed)
    wide = np.column_stack([X, rng.integers(7, size=80), 3 * z + rng.integers(3, size=80)])
    with quiet():
        model = categorical().fit(wide)
    shapes = [model.profiles_[f"x{j}"]["probabilities"].shape[1] for j in range(8)]
    assert shapes == [2] * 6 + [7, 6]


def test_row_27_unseen_category(categorical, two_answers, one_warning):
    X = np.array(["no", "yes"])[two_answers[0]].astype(object)
    new = X[:5].copy()
    new[2, 1] = "perhaps"
    hole = new.copy()
    hole[2, 1] = None
    model = categorical().fit(X)
    for method in ("predict", "predict_proba", "score_samples", "score"):
        with one_warning("values not seen at fit are read as missing: 'x1' (1)"):
            found = getattr(model, method)(new)
        assert np.array_equal(found, getattr(model, method)(hole))
    strict = categorical(handle_unknown="error").fit(X)
    with pytest.raises(ValueError, match=r"column 'x1', row 2 .*'perhaps' was not seen.*handle_unknown="):
        strict.predict(new)


def test_dates_are_days(mixture, quiet):
    X = [[datetime.date(2020, 1, 1), 1.5], [datetime.date(2021, 1, 1), 2.5]]
    with quiet():
        model = mixture().fit(X)
    assert model.schema_.kinds == ("date", "real") and "dates" in model.fit_report_
    assert model.schema_.columns[0].center == 18262 + 183
