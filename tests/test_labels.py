"""Laws of label vectors, label matrices, the co-association operator and the enumeration of partitions."""

import datetime
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn import metrics

from partita.labels import (
    Coassociation,
    canonical,
    contingency,
    label_histograms,
    matrices,
    n_set_partitions,
    one_hot,
    ordered_by_size,
    set_partitions,
    signatures,
)
from partita.labels.information import entropy, mutual_information, normalized_mutual_information


def label_matrices(max_rows=12, max_members=5, max_label=3):
    shapes = st.tuples(st.integers(1, max_rows), st.integers(1, max_members))
    return shapes.flatmap(lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(-1, max_label)))


# ---------------------------------------------------------------------------------------- canonical


@pytest.mark.parametrize(
    "labels",
    [
        [7, 7, 3, 9, 3],
        np.array([200, 200, 3, 255, 3], dtype=np.uint8),
        np.array([-100, -100, 27, 100, 27], dtype=np.int8),
        np.array([2**63 + 5, 2**63 + 5, 3, 2**63 + 6, 3], dtype=np.uint64),
        [-(2**62), -(2**62), 2**62, 0, 2**62],
        [0.5, 0.5, -1.0, 2.0, -1.0],
        ["b", "b", "a", "", "a"],
        np.array([b"b", b"b", b"a", b"c", b"a"]),
        [1, 1.0, "1", (1,), "1"],
        np.array(["2020-01-02", "2020-01-02", "2020-01-01", "2021-01-01", "2020-01-01"], dtype="M8[D]"),
        pd.Series(["b", "b", "a", "c", "a"], dtype="category"),
        pd.Series(["b", "b", "a", "c", "a"], index=[4, 3, 2, 1, 0]),
        pl.Series(["b", "b", "a", "c", "a"]),
    ],
)
def test_canonical_numbers_by_first_appearance(labels):
    assert canonical(labels).tolist() == [0, 0, 1, 2, 1]


@pytest.mark.parametrize(
    "labels",
    [
        [3, None, 5, 3],
        [3.0, np.nan, 5.0, 3.0],
        ["a", None, "nan", "a"],
        ["a", np.nan, "nan", "a"],
        ["a", float("nan"), "b", "a"],
        [True, None, False, True],
        [2**60, None, 2**60 + 1, 2**60],
        ["a", pd.NA, "b", "a"],
        [datetime.date(2020, 1, 1), pd.NaT, datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)],
        np.array(["2020", "NaT", "2021", "2020"], dtype="M8[Y]"),
        np.ma.masked_array([3, 3, 5, 3], mask=[0, 1, 0, 0]),
        np.ma.masked_array(["a", "b", "b", "a"], mask=[0, 1, 0, 0]),
        pd.Series([3, None, 5, 3], dtype="Int64"),
        pd.Series(["a", None, "b", "a"], dtype="string"),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        pd.Series([3, None, 5, 3], dtype="category"),
        pl.Series([3, None, 5, 3]),
        pl.Series(["a", None, "b", "a"]),
    ],
)
def test_canonical_finds_missing_labels(labels):
    assert canonical(labels).tolist() == [0, -1, 1, 0]


def test_canonical_reads_minus_one_as_missing_only_when_told():
    assert canonical([4, -1, 4]).tolist() == [0, 1, 0]
    assert canonical([4, -1, 4], missing=-1).tolist() == [0, -1, 0]
    assert canonical([4.0, -1.0, np.nan], missing=-1).tolist() == [0, -1, -1]
    assert canonical([4, -1, None], missing=-1).tolist() == [0, -1, -1]
    assert canonical(["a", "-1", "a"], missing=-1).tolist() == [0, 1, 0]
    assert canonical(["a", "?", "a"], missing="?").tolist() == [0, -1, 0]
    assert canonical([True, False], missing=1).tolist() == [0, 1]
    assert canonical([True, "x"], missing=1).tolist() == [0, 1]
    assert canonical(np.array([4, 5], dtype=np.uint8), missing=-1).tolist() == [0, 1]


@given(hnp.arrays(np.int64, st.integers(0, 20), elements=st.integers(-1, 5)))
def test_canonical_is_idempotent_and_ignores_names(z):
    once = canonical(z, missing=-1)
    assert np.array_equal(canonical(once, missing=-1), once)
    names = np.array(["p", "q", "r", "s", "t", "u", None], dtype=object)
    assert np.array_equal(canonical(names[z]), once)
    assert np.array_equal(canonical(10**12 * z, missing=-(10**12)), once)  # by sorting, not by lookup


def test_canonical_refuses_what_is_no_labeling():
    for labels in (np.zeros((3, 1)), "abc", 5, pd.DataFrame({"a": [1]})):
        with pytest.raises(ValueError, match="one-dimensional"):
            canonical(labels)
    with pytest.raises(ValueError, match=r"labels\[1\] is a list"):
        canonical(["a", [1], 2])
    assert canonical([]).size == 0


# ------------------------------------------------------------------------------------ order by size


@given(hnp.arrays(np.int64, st.integers(0, 30), elements=st.integers(-1, 6)))
def test_ordered_by_size(z):
    found = ordered_by_size(z)
    # the same partition
    np.testing.assert_array_equal(canonical(found, missing=-1), canonical(z, missing=-1))
    seen = found[found >= 0]
    sizes = np.bincount(seen)
    assert (sizes > 0).all() and (np.diff(sizes) <= 0).all()
    first = np.unique(found, return_index=True)[1][-len(sizes) :] if len(sizes) else np.empty(0)
    assert all(first[k] < first[k + 1] for k in np.flatnonzero(np.diff(sizes) == 0))
    np.testing.assert_array_equal(ordered_by_size(found), found)


def test_ordered_by_size_counts_weights():
    z, weights = [3, 0, 0, 1, -1], [2.5, 1.0, 1.0, 0.0, 9.0]
    assert ordered_by_size(z, weights).tolist() == [0, 1, 1, 2, -1]
    repeated = np.repeat([2, 0, 1], [1, 4, 2])
    np.testing.assert_array_equal(
        np.repeat(ordered_by_size([2, 0, 1], [1, 4, 2]), [1, 4, 2]), ordered_by_size(repeated)
    )
    with pytest.raises(ValueError, match="integer labels"):
        ordered_by_size([0.5, 1.0])


# -------------------------------------------------------------------------------------- information


@pytest.mark.parametrize("average", ["arithmetic", "geometric", "min", "max"])
def test_information_of_tables_agrees_with_scikit_learn(average):
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(rng.integers(2, 6), size=(2, 40))
        table = contingency(a, b)
        assert entropy(table.sum(axis=1)) == pytest.approx(stats.entropy(np.bincount(a)))
        assert mutual_information(table) == pytest.approx(metrics.mutual_info_score(a, b))
        assert normalized_mutual_information(table, average) == pytest.approx(
            metrics.normalized_mutual_info_score(a, b, average_method=average)
        )


def test_information_without_information():
    assert entropy([0, 0]) == entropy([5]) == entropy([]) == 0.0
    assert mutual_information([[3, 4]]) == normalized_mutual_information([[3, 4]]) == 0.0
    assert normalized_mutual_information([[7]]) == 0.0


# -------------------------------------------------------------------------------------- contingency


@given(label_matrices(max_members=1), st.integers(0, 10**6))
def test_contingency_counts_every_pair_of_labels(Y, seed):
    rng = np.random.default_rng(seed)
    a, b, w = Y[:, 0], rng.integers(-1, 4, len(Y)), rng.integers(1, 5, len(Y))
    expected = np.zeros((a.max() + 1, b.max() + 1))
    weighted = expected.copy()
    for i, j, weight in zip(a, b, w):
        if i >= 0 and j >= 0:
            expected[i, j] += 1
            weighted[i, j] += weight
    assert np.array_equal(contingency(a, b), expected)
    assert np.array_equal(contingency(a, b, w), weighted)
    assert np.array_equal(contingency(a, b, w, sparse=True).toarray(), weighted)


def test_contingency_turns_sparse_where_it_is_large():
    a = np.arange(5000)
    assert isinstance(contingency(a[:100], a[:100]), np.ndarray)
    table = contingency(a, a)
    assert table.nnz == 5000
    assert table.dtype == np.int64
    assert contingency([0, 1], [0, 1], [1, 0], sparse=True).nnz == 1


@pytest.mark.parametrize(
    ("a", "b", "weights", "message"),
    [
        ([0, 1], [0], None, "a has 2 labels and b has 1"),
        ([0, -2], [0, 1], None, r"a\[1\] is -2"),
        ([0.5, 1], [0, 1], None, "dtype is float64"),
        ([0, 1], [0, 1], [1, -1], r"weights\[1\] is -1"),
        ([0, 1], [0, 1], [np.nan, 1], r"weights\[0\] is nan"),
        ([0, 1], [0, 1], [0, 0], "all 2 weights are zero"),
        ([0, 1], [0, 1], [1], "shape"),
    ],
)
def test_contingency_names_what_is_wrong(a, b, weights, message):
    with pytest.raises(ValueError, match=message):
        contingency(a, b, weights)


# --------------------------------------------------------------------------------------- signatures


def check_signatures(Y, weights=None):
    found = signatures(Y, weights)
    rows, first, inverse = np.unique(Y, axis=0, return_index=True, return_inverse=True)
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.first, first)
    assert np.array_equal(found.inverse, inverse.ravel())
    np.testing.assert_allclose(found.weights, np.bincount(inverse.ravel(), weights=weights))
    return found


@given(label_matrices(max_rows=20, max_members=4, max_label=2), st.integers(0, 1000))
def test_signatures_are_the_sorted_unique_rows(Y, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2, len(Y))
    found = check_signatures(Y, weights)
    order = rng.permutation(len(Y))
    shuffled = signatures(Y[order], weights[order])
    assert np.array_equal(shuffled.rows, found.rows)
    np.testing.assert_allclose(shuffled.weights, found.weights)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.uint64])
def test_signatures_of_rows_wider_than_one_word(dtype):
    rng = np.random.default_rng(1)
    Y = rng.integers(0, 12, (40, 50))[rng.integers(0, 40, 500)].astype(dtype)
    Y[::7, 49] = 0
    assert len(check_signatures(Y).rows) > 40
    check_signatures(np.asfortranarray(Y)[::2])


def test_signatures_of_huge_labels_and_small_words(monkeypatch):
    rng = np.random.default_rng(2)
    huge = np.array([-1, 0, 1, 2**61, 2**62, 2**63 - 1])
    check_signatures(huge[rng.integers(0, 6, (300, 4))])
    monkeypatch.setattr(matrices, "LARGEST_WORD", 400)
    check_signatures(rng.integers(-1, 30, (19, 7)))
    monkeypatch.setattr(matrices, "BLOCK_ROWS", 4)
    check_signatures(rng.integers(-1, 2, (19, 7)))


def test_signatures_at_the_edges():
    assert signatures(np.empty((0, 3), dtype=int)).rows.shape == (0, 3)
    assert signatures([[1, 2]], [0.5]).weights.tolist() == [0.5]
    assert signatures([[0], [1]], [0, 1]).weights.tolist() == [0, 1]
    with pytest.raises(ValueError, match="no columns"):
        signatures(np.empty((3, 0), dtype=int))
    with pytest.raises(ValueError, match="matrix"):
        signatures([0, 1])
    with pytest.raises(ValueError, match=r"Y\[1, 0\] is -3"):
        signatures([[0, 1], [-3, 0]])


# --------------------------------------------------------------------------- one-hot and histograms


@given(label_matrices())
def test_one_hot_marks_every_label_once(Y):
    A, offsets = one_hot(Y)
    dense = A.toarray()
    assert dense.sum() == (Y >= 0).sum()
    assert dense.shape[1] == offsets[-1]
    for n, m in zip(*np.nonzero(Y >= 0)):
        assert dense[n, offsets[m] + Y[n, m]] == 1


@given(label_matrices(), st.integers(0, 1000))
def test_histograms_are_products_of_one_hots(Y, seed):
    rng = np.random.default_rng(seed)
    z, weights = rng.integers(-1, 3, len(Y)), rng.uniform(0.1, 2, len(Y))
    levels = Y.max(axis=0) + 1 + rng.integers(0, 2, Y.shape[1])
    A, offsets = one_hot(Y, levels)
    member_of = (z[None, :] == np.arange(4)[:, None]).astype(float)
    counts, starts = label_histograms(z, Y, levels, n_clusters=4)
    assert np.array_equal(starts, offsets)
    assert np.array_equal(counts, member_of @ A.toarray())
    assert counts.dtype == np.int64
    weighted = label_histograms(z, Y, levels, weights=weights, n_clusters=4).counts
    np.testing.assert_allclose(weighted, (member_of * weights) @ A.toarray())
    assert label_histograms(z, Y).counts.shape[0] == z.max() + 1


def test_histograms_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"column 1 has the label 2, but n_levels\[1\] is 2"):
        label_histograms([0, 0], [[0, 1], [1, 2]], n_levels=[2, 2])
    with pytest.raises(ValueError, match="z has 1 labels and Y has 2 rows"):
        label_histograms([0], [[0], [1]])
    with pytest.raises(ValueError, match="cluster 3, but n_clusters is 2"):
        label_histograms([0, 3], [[0], [1]], n_clusters=2)


# ----------------------------------------------------------------------------------- co-association


def brute_force_coassociation(Y, weights):
    """Shares over all members, and over the members that saw both."""
    together = np.zeros((len(Y), len(Y)))
    ratio = np.full((len(Y), len(Y)), np.nan)
    for i, j in itertools.product(range(len(Y)), repeat=2):
        seen = agreed = 0.0
        for m, w in enumerate(weights):
            if Y[i, m] >= 0 and Y[j, m] >= 0:
                seen += w
                agreed += w * (Y[i, m] == Y[j, m])
        together[i, j] = agreed / sum(weights)
        if seen:
            ratio[i, j] = agreed / seen
    return together, ratio


@settings(max_examples=40)
@given(label_matrices(max_rows=8), st.integers(0, 1000), st.booleans())
def test_coassociation_operator_is_its_matrix(Y, seed, weighted):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 3, Y.shape[1]) if weighted else np.ones(Y.shape[1])
    together, ratio = brute_force_coassociation(Y, weights)
    C = Coassociation(Y, weights if weighted else None)
    n = len(Y)
    v, V = rng.normal(size=n), rng.normal(size=(n, 3))
    np.testing.assert_allclose(C.dense(), together, atol=1e-12)
    np.testing.assert_allclose(C @ v, together @ v, atol=1e-12)
    np.testing.assert_allclose(C @ V, together @ V, atol=1e-12)
    np.testing.assert_allclose(C.T @ v, together @ v, atol=1e-12)
    np.testing.assert_allclose(C.H @ V, together @ V, atol=1e-12)
    np.testing.assert_allclose(C.rmatvec(v), together @ v, atol=1e-12)
    np.testing.assert_allclose(C.diagonal(), np.diag(together), atol=1e-12)
    i, j = np.indices((n, n))
    np.testing.assert_allclose(C.pairs(i, j), ratio, atol=1e-12)


def test_coassociation_in_blocks(monkeypatch):
    rng = np.random.default_rng(3)
    Y = rng.integers(-1, 3, (30, 4))
    whole, pairs = Coassociation(Y).dense(), Coassociation(Y).pairs(np.arange(30), 7)
    monkeypatch.setattr("partita.labels.coassociation.BLOCK_ENTRIES", 50)
    assert np.array_equal(Coassociation(Y).dense(), whole)
    np.testing.assert_array_equal(Coassociation(Y).pairs(np.arange(30), 7), pairs)


def test_dense_coassociation_is_refused_before_it_is_allocated():
    C = Coassociation(np.zeros((200_000, 1), dtype=np.int8))  # 320 GB if it were formed
    with pytest.raises(MemoryError, match=r"320,000,000,000 bytes.*Coassociation operator"):
        C.dense()
    assert (C @ np.ones(200_000))[0] == 200_000
    with pytest.raises(MemoryError, match="max_bytes=71"):
        Coassociation([[0], [1], [0]]).dense(max_bytes=71)
    assert Coassociation([[0], [1], [0]]).dense(max_bytes=72).shape == (3, 3)


def test_coassociation_names_what_is_wrong():
    with pytest.raises(ValueError, match="no columns"):
        Coassociation(np.empty((3, 0), dtype=int))
    with pytest.raises(ValueError, match="member_weights must have shape"):
        Coassociation([[0, 1]], [1])
    with pytest.raises(ValueError, match="j must hold integers from 0 to 1"):
        Coassociation([[0], [1]]).pairs(0, [1, -1])


# -------------------------------------------------------------------------------------- enumeration


def test_bell_numbers():
    assert [n_set_partitions(n) for n in range(11)] == [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975]
    assert n_set_partitions(50) == 185724268771078270438257767181908917499221852770


@pytest.mark.parametrize("n", range(8))
def test_set_partitions_are_all_the_canonical_labelings(n):
    found = list(set_partitions(n))
    everything = (
        {tuple(canonical(z).tolist()) for z in itertools.product(range(n), repeat=n)} if n < 7 else None
    )
    assert len(found) == n_set_partitions(n)
    assert found == sorted(set(found))
    assert all(canonical(list(z)).tolist() == list(z) for z in found)
    assert everything is None or everything == set(found)


def test_enumeration_refuses_negative_sizes():
    for function in (set_partitions, n_set_partitions):
        with pytest.raises(ValueError, match="n is -1"):
            function(-1)
