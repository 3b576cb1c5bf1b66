"""Sample weights, and sparse matrices of counts."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from partita.table import check_weights, read_table


def test_accepted_weights():
    assert check_weights(None, 3).tolist() == [1.0, 1.0, 1.0]
    assert check_weights(2, 2).tolist() == [2.0, 2.0]
    assert check_weights(np.float32(0.5), 2).tolist() == [0.5, 0.5]
    assert check_weights([0, 1e12, 0.25], 3).tolist() == [0.0, 1e12, 0.25]
    assert check_weights([True, False], 2).tolist() == [1.0, 0.0]
    for weights in (pd.Series([1, 2]), np.array([1, 2], dtype=object), np.array([1, 2], dtype=">i4")):
        checked = check_weights(weights, 2)
        assert checked.dtype == np.float64 and checked.tolist() == [1.0, 2.0]


def test_weights_are_copied():
    weights = np.ones(3)
    checked = check_weights(weights, 3)
    checked[0] = 5
    assert weights[0] == 1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "has 2 entries but the data have 3 rows"),
        (np.ones((3, 2)), r"must be one-dimensional, got shape \(3, 2\)"),
        ([1, -1, -2], r"row 1 is negative \(-1.0\)"),
        ([1, 2, np.nan], "row 2 is nan"),
        ([1, np.inf, np.nan], "row 1 is inf"),
        ([0, 0, 0], "zero in every row"),
        (0, "zero in every row"),
        (["a", "b", "c"], "must be numbers"),
        ([1j, 1, 1], "must be numbers"),
        ([None, 1, 1], "row 0 is nan"),
        ([[1], [2, 3], 4], "must be numbers"),
        ([1e308, 1e308, 1e308], "overflows"),
        (np.ma.MaskedArray([1, 2, 3], mask=[False, True, False]), "row 1 is nan"),
        ("abc", "must be numbers"),
    ],
)
def test_refused_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        check_weights(weights, 3)
    with pytest.raises(ValueError, match=message):
        read_table(np.eye(3), sample_weight=weights)


def test_weights_are_kept():
    assert read_table(np.eye(2), sample_weight=[1, 3]).weights.tolist() == [1.0, 3.0]
    assert read_table(np.eye(2)).weights.tolist() == [1.0, 1.0]


COUNTS = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 0], [2, 5, 0]])


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.uint8])
def test_every_format_gives_the_same_counts(format, dtype):
    for container in (sparse.csr_array, sparse.csr_matrix):
        X = container(COUNTS.astype(dtype)).asformat(format)
        table = read_table(X, "count")
        assert table.sparse is table.counts
        assert table.counts.format == "csr" and table.counts.dtype == np.float64
        assert table.counts.data.tolist() == [3, 1, 2, 5] and table.counts.indices.tolist() == [1, 0, 0, 1]
        np.testing.assert_array_equal(table.counts.toarray(), COUNTS)
        assert (table.n_rows, table.schema.kinds) == (4, ("count",) * 3)
        (note,) = table.notes
        assert (note.code, note.columns) == ("constant", ("x2",))


def test_duplicates_are_summed_stored_zeros_dropped_input_untouched():
    X = sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2)).tocsr()
    X = sparse.csr_array((np.array([2.0, 1.0, 0.0]), np.array([1, 0, 0]), np.array([0, 2, 3])), shape=(2, 2))
    before = (X.data.copy(), X.indices.copy())
    counts = read_table(X, "count").counts
    assert counts.indices.tolist() == [0, 1] and counts.data.tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])
    twice = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    assert read_table(twice, "count").counts.toarray().tolist() == [[0.0, 3.0]]


def test_sparse_needs_a_declaration():
    for kinds in (None, "real", "categorical", ["count", "count", "real"], {0: "count"}):
        with pytest.raises(TypeError, match=r"Sparse data was passed.*kinds='count'"):
            read_table(sparse.csr_array(COUNTS), kinds)
    assert read_table(sparse.csr_array(COUNTS), ["count"] * 3).n_rows == 4


@pytest.mark.parametrize(
    ("value", "message"), [(-1.0, "-1.0"), (0.5, "0.5"), (np.nan, "nan"), (np.inf, "inf")]
)
def test_bad_sparse_values(value, message):
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, value]]))
    with pytest.raises(ValueError, match=f"column 'x1', row 2 .*{message} in a sparse count matrix"):
        read_table(X, "count")


def test_sparse_binary():
    X = sparse.csc_array(COUNTS > 0)
    table = read_table(X, "binary")
    assert table.schema.column("x0").levels == (0, 1)
    np.testing.assert_array_equal(table.block("binary").values.toarray(), COUNTS > 0)
    assert table.block("binary").n_levels.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match=r"row 0 .*3\.0 in a sparse binary matrix"):
        read_table(sparse.csr_array(COUNTS), "binary")
    words = read_table(pd.DataFrame({"x": ["no", "yes"]}), "binary").schema
    with pytest.raises(ValueError, match="column 'x' has the levels"):
        read_table(sparse.csr_array(np.eye(2)[:, :1]), schema=words)


def test_empty_sparse():
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1"):
        read_table(sparse.csr_array((0, 3)), "count")
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1"):
        read_table(sparse.csr_array((3, 0)), "count")
    with pytest.raises(ValueError, match="Complex data not supported"):
        read_table(sparse.csr_array(np.eye(2) * 1j), "count")
    line = sparse.coo_array(np.arange(3))
    if line.ndim == 1:  # before scipy 1.13 it was a matrix of one row
        with pytest.raises(ValueError, match="Expected 2D array"):
            read_table(line, "count")


def test_sparse_at_predict_time():
    schema = read_table(sparse.csr_array(COUNTS), "count").schema
    np.testing.assert_array_equal(
        read_table(sparse.csr_array(COUNTS[:1]), schema=schema).counts.toarray(), COUNTS[:1]
    )
    np.testing.assert_array_equal(read_table(COUNTS, schema=schema).counts, COUNTS)  # dense is as good
    dense = read_table(COUNTS, "count").schema
    np.testing.assert_array_equal(read_table(sparse.csr_array(COUNTS), schema=dense).counts.toarray(), COUNTS)
    with pytest.raises(ValueError, match="X has 2 features, but Mixture is expecting 3 features"):
        read_table(sparse.csr_array(COUNTS[:, :2]), schema=schema, estimator_name="Mixture")
    real = read_table(COUNTS, "real").schema
    with pytest.raises(TypeError, match="Sparse data was passed"):
        read_table(sparse.csr_array(COUNTS), schema=real)


def test_sparse_take_and_weights():
    table = read_table(sparse.csr_array(COUNTS), "count", sample_weight=[1, 0, 1, 2])
    part = table.take([3, 0])
    np.testing.assert_array_equal(part.counts.toarray(), COUNTS[[3, 0]])
    assert part.weights.tolist() == [2.0, 1.0]
    block = table.block("count")
    block.values.data[:] = 0
    np.testing.assert_array_equal(table.counts.toarray(), COUNTS)
    assert table.block("real").values.shape == (4, 0)
    with pytest.raises(ValueError, match="the table is sparse"):
        table.column("x0")
    with pytest.raises(ValueError, match="has 2 entries"):
        read_table(sparse.csr_array(COUNTS), "count", sample_weight=[1, 2])
