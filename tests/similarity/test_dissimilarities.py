"""Dissimilarities against a pair-by-pair implementation written from the formulas."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import cdist, pdist, squareform

from partita.estimator import DataWarning
from partita.similarity import dissimilarity
from partita.table import read_table


def mixed_rows(n, rng, holes=0.0):
    columns = {
        "height": rng.normal(170.0, 10.0, n),
        "income": rng.normal(3e4, 1e4, n),
        "visits": rng.poisson(3.0, n) + 0.5,
        "size": rng.choice(["low", "medium", "high"], n).astype(object),
        "color": rng.choice(["red", "green", "blue"], n).astype(object),
    }
    for values in columns.values():
        values[rng.random(n) < holes] = np.nan if values.dtype == float else None
    return columns


ORDER = ["low", "medium", "high"]
METRIC = {
    "height": "squared_euclidean",
    "income": "city_block",
    "visits": "city_block",
    "size": "ordinal",
    "color": "hamming",
}


def naive(columns, weights, units):
    """Every pair by itself, columns that one of the two lacks left out, then scaled up."""
    n = len(columns["height"])
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            total, seen = 0.0, 0.0
            for name, metric in METRIC.items():
                a, b = columns[name][i], columns[name][j]
                if a is None or b is None or a != a or b != b:
                    continue
                if metric == "hamming":
                    value = float(a != b)
                elif metric == "ordinal":
                    value = ((ORDER.index(a) - ORDER.index(b)) / 3) ** 2
                else:
                    value = abs(a - b) / units[name]
                    value = value**2 if metric == "squared_euclidean" else value
                total, seen = total + weights[name] * value, seen + weights[name]
            if i != j:
                out[i, j] = total * sum(weights.values()) / seen
    return out


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("holes", [0.0, 0.15])
def test_mixed_tables_pair_by_pair(holes, standardize, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    columns = mixed_rows(25, rng, holes)
    columns["color"] = mixed_rows(25, rng, 0.0)["color"]  # every pair has a column in common
    weights = {"height": 2.0, "income": 0.5, "visits": 1.0, "size": 3.0, "color": 0.25}
    units = {
        name: np.nanstd(columns[name]) if standardize else 1.0 for name in ("height", "income", "visits")
    }
    options = {"weights": weights, "orders": {"size": ORDER}, "standardize": standardize}
    got = dissimilarity(columns, METRIC, **options)
    np.testing.assert_allclose(got, naive(columns, weights, units), rtol=1e-12, atol=1e-12)
    assert (got == got.T).all() and not got.diagonal().any()
    pairs = dissimilarity(columns, METRIC, condensed=True, **options)
    np.testing.assert_array_equal(squareform(pairs), got)


def test_blocks_do_not_matter(monkeypatch, global_random_seed):
    columns = mixed_rows(23, np.random.default_rng(global_random_seed), 0.2)
    whole = dissimilarity(columns), dissimilarity(columns, condensed=True)
    monkeypatch.setattr("partita.similarity.dissimilarities.CHUNK_PAIRS", 70)
    np.testing.assert_array_equal(dissimilarity(columns), whole[0])
    np.testing.assert_array_equal(dissimilarity(columns, condensed=True), whole[1])


def test_scipy_agrees_on_numbers(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(12, 4))
    for metric, theirs in [
        ("squared_euclidean", "sqeuclidean"),
        ("city_block", "cityblock"),
        ("correlation", "correlation"),
    ]:
        got = dissimilarity(X, metric, standardize=False, condensed=True)
        np.testing.assert_allclose(got, pdist(X, theirs), rtol=1e-12)
    np.testing.assert_allclose(
        dissimilarity(X[:5], "city_block", Y=X[5:], standardize=False), cdist(X[:5], X[5:], "cityblock")
    )


def test_correlation_is_squared_distance_of_standardised_rows(global_random_seed):
    # Murphy's identity in 25.1.1
    X = np.random.default_rng(global_random_seed).normal(size=(10, 6))
    T = X - X.mean(axis=1, keepdims=True)
    T /= np.linalg.norm(T, axis=1, keepdims=True)
    squared = dissimilarity(T, "squared_euclidean", standardize=False)
    np.testing.assert_allclose(squared, 2 * dissimilarity(X, "correlation"), atol=1e-13)


def test_correlation_over_common_columns(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(8, 7)) * 1e5 + 1e7
    X[:, 3:][rng.random((8, 4)) < 0.2] = np.nan  # every pair has three columns in common
    got = dissimilarity(X, "correlation")
    for i in range(8):
        for j in range(i):
            both = ~np.isnan(X[i]) & ~np.isnan(X[j])
            expected = 1.0 - np.corrcoef(X[i, both], X[j, both])[0, 1]
            assert got[i, j] == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_correlation_of_flat_rows():
    flat = [[0.1, 0.1, 0.1], [0.3, 0.3, 0.3], [1.0, 2.0, 4.0], [1e-9, 2e-9, 4e-9]]
    got = dissimilarity(flat, "correlation")
    np.testing.assert_allclose(got, [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]], atol=1e-14)


def test_order_declared_by_the_frame():
    size = pd.Categorical(["high", "low"], ["low", "medium", "high"], ordered=True)
    assert dissimilarity(pd.DataFrame({"size": size}), "ordinal", condensed=True) == pytest.approx([4 / 9])
    enum = pl.DataFrame({"size": pl.Series(["high", "low"], dtype=pl.Enum(["low", "medium", "high"]))})
    assert dissimilarity(enum, "ordinal", condensed=True) == pytest.approx([4 / 9])
    # without any declaration the values' own order counts: high < low
    plain = pd.DataFrame({"size": ["high", "low"]})
    assert dissimilarity(plain, "ordinal", condensed=True) == pytest.approx([1 / 4])


def test_balanced_columns_contribute_the_same(global_random_seed):
    columns = mixed_rows(40, np.random.default_rng(global_random_seed))
    n = 40
    for name in columns:
        others = {other: 0.0 for other in columns if other != name}
        alone = dissimilarity(columns, METRIC, weights={name: 1.0, **others}, orders={"size": ORDER})
        mean = alone.mean()  # over all pairs, the row with itself included
        got = dissimilarity(
            {name: columns[name]},
            {name: METRIC[name]},
            weights="balanced",
            orders={"size": ORDER} if name == "size" else None,
        )
        np.testing.assert_allclose(got, alone / mean, rtol=1e-10)
        assert got.sum() == pytest.approx(n * n)


def test_rows_without_a_common_column_get_the_mean_and_a_warning():
    X = [[1.0, None], [None, 2.0], [3.0, 4.0], [2.0, 6.0]]
    with pytest.warns(DataWarning, match="no observed column in common"):
        got = dissimilarity(X, "squared_euclidean", standardize=False)
    assert got[0, 1] == pytest.approx(2 * np.var([1.0, 3.0, 2.0]) + 2 * np.var([2.0, 4.0, 6.0]))
    assert np.isfinite(got).all()


def test_units_do_not_matter(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(9, 3))
    plain = dissimilarity(X)
    for factor, offset in [(1e200, 0.0), (1e-200, 0.0), (1.0, 1e9)]:
        np.testing.assert_allclose(dissimilarity(X * factor + offset), plain, rtol=1e-5)


def test_table_goes_in_as_it_is(global_random_seed):
    columns = mixed_rows(6, np.random.default_rng(global_random_seed))
    np.testing.assert_array_equal(
        dissimilarity(read_table(columns, infer_ordinal=False)), dissimilarity(columns)
    )


def test_sparse_counts(global_random_seed):
    from scipy.sparse import csr_array

    X = np.random.default_rng(global_random_seed).poisson(0.5, (7, 5)).astype(float)
    got = dissimilarity(csr_array(X), kinds="count")
    np.testing.assert_allclose(got, dissimilarity(X, kinds="count"), atol=1e-12)


def test_too_large_is_refused_before_it_is_allocated():
    X = np.zeros((200_000, 1))
    X[0] = 0.5
    with pytest.raises(ValueError, match=r"200,000 x 200,000 rows need about .* GB .*nearest-neighbor graph"):
        dissimilarity(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "euclid"}, "unknown metric 'euclid'"),
        ({"metric": 3}, "metric is 3"),
        ({"metric": {"nose": "hamming"}}, "names the column 'nose'"),
        ({"metric": {"height": "far"}}, "unknown metric 'far' for column 'height'"),
        ({"metric": {"height": "ordinal"}}, "'height' is 'real', but the metric 'ordinal'"),
        ({"metric": "city_block"}, "'size' is categorical"),
        ({"metric": {"height": "correlation"}}, "needs two columns or more"),
        ({"weights": [1.0, 2.0]}, "has 5 columns"),
        ({"weights": {"size": -1.0}}, "weight of column 'size' is -1.0"),
        ({"weights": {"size": np.nan}}, "weight of column 'size' is nan"),
        ({"weights": "even"}, "weights is 'even'"),
        ({"weights": np.zeros(5)}, "every column has the weight 0"),
        ({"orders": {"size": ORDER}}, "whose metric is not 'ordinal'"),
        ({"metric": {"size": "ordinal"}, "orders": {"size": ["low", "high"]}}, "lacks the level 'medium'"),
        ({"Y": [[1.0]], "condensed": True}, "omit Y"),
    ],
)
def test_what_cannot_be_is_refused(options, message, global_random_seed):
    columns = mixed_rows(12, np.random.default_rng(global_random_seed))
    with pytest.raises(ValueError, match=message):
        dissimilarity(columns, **options)


def test_raw_squares_that_overflow_are_refused():
    with pytest.raises(ValueError, match="squared differences of column 'x0' overflow"):
        dissimilarity([[1e200], [-1e200]], standardize=False)


def test_ordinal_columns_are_compared_by_the_ranks_of_their_levels():
    frame = pd.DataFrame({"size": ["small", "large", "medium"]})
    found = dissimilarity(frame, kinds={"size": "small < medium < large"})
    right = dissimilarity(frame, "ordinal", orders={"size": ["small", "medium", "large"]})
    np.testing.assert_allclose(found, right)
    assert found[0, 1] > found[0, 2] == pytest.approx(found[1, 2])
    with pytest.raises(ValueError, match="'size' is ordinal, and the metric 'city_block' is for numbers"):
        dissimilarity(frame, "city_block", kinds={"size": "small < medium < large"})
