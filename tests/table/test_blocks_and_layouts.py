"""Blocks, subsets of rows, and independence of the memory layout of the input."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import partita.table
from partita.table import read_table

FRAME = pd.DataFrame(
    {
        "r1": [0.5, np.nan, 2.5, 1.0],
        "c1": ["b", "a", None, "b"],
        "n1": [3, 0, 1, 2],
        "b1": [True, False, True, True],
        "r2": [5.5, 6.5, 7.5, np.nan],
        "c2": [7, 8, 9, 7],
        "b2": ["no", "yes", None, "no"],
    }
)
KINDS = {"n1": "count", "b2": "binary"}


def assert_same_table(one, two):
    assert one.schema == two.schema
    assert one.notes == two.notes
    for a, b in zip(one.columns, two.columns, strict=True):
        assert a.values.dtype == b.values.dtype
        assert a.values.tobytes() == b.values.tobytes()


def test_blocks():
    table = read_table(FRAME, KINDS)
    real, count = table.block("real"), table.block("count")
    binary, categorical = table.block("binary"), table.block("categorical")
    assert (real.names, count.names) == (("r1", "r2"), ("n1",))
    assert (binary.names, categorical.names) == (("b1", "b2"), ("c1", "c2"))
    np.testing.assert_array_equal(real.values[:, 0], table.standardized("r1"))
    np.testing.assert_array_equal(real.values, table.reals())
    assert count.values.dtype == np.float64 and count.values[:, 0].tolist() == [3, 0, 1, 2]
    np.testing.assert_array_equal(table.counts, count.values)
    assert binary.values.dtype == np.int8
    assert binary.values.tolist() == [[1, 0], [0, 1], [1, -1], [1, 0]]
    assert binary.n_levels.tolist() == [2, 2]
    assert categorical.values.tolist() == [[1, 0], [0, 1], [-1, 2], [1, 0]]
    assert categorical.n_levels.tolist() == [2, 3]
    assert real.n_levels.size == 0


@pytest.mark.parametrize("kind", ["real", "count", "binary", "categorical"])
def test_blocks_are_owned_contiguous_and_writable(kind):
    table = read_table(FRAME, KINDS)
    before = table.block(kind).values.copy()
    values = table.block(kind).values
    assert values.flags.c_contiguous and values.flags.writeable and values.flags.owndata
    values[:] = 0
    np.testing.assert_array_equal(table.block(kind).values, before)


def test_absent_kinds_are_zero_columns_wide():
    table = read_table([[0.5], [1.5]])
    for kind in ("count", "binary", "categorical"):
        block = table.block(kind)
        assert block.values.shape == (2, 0) and block.names == () and block.n_levels.size == 0
    with pytest.raises(ValueError, match="ignored columns are not read"):
        table.block("ignore")
    with pytest.raises(ValueError, match="unknown kind"):
        table.block("numbers")


def test_columns_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        read_table(FRAME).columns[0].values[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        read_table(FRAME).take([0, 1]).columns[0].values[0] = 1


def test_column_lookup():
    table = read_table(FRAME, {"c1": "ignore"})
    with pytest.raises(ValueError, match="column 'c1' has no array of values: it is 'ignore'"):
        table.column("c1")
    with pytest.raises(ValueError, match="no column 'zz'"):
        table.column("zz")


@pytest.mark.parametrize(
    "rows", [[2, 0, 2], np.array([True, False, True, False]), slice(1, 3), [], np.array([-1])]
)
def test_take(rows):
    table = read_table(FRAME, KINDS, sample_weight=[1, 2, 3, 4])
    part = table.take(rows)
    index = np.arange(4)[rows if not isinstance(rows, list) else np.array(rows, dtype=int)]
    assert part.n_rows == len(index)
    assert part.schema is table.schema
    np.testing.assert_array_equal(part.weights, table.weights[index])
    for kind in ("real", "count", "binary", "categorical"):
        np.testing.assert_array_equal(part.block(kind).values, table.block(kind).values[index])


def test_take_is_one_dimensional():
    with pytest.raises(ValueError, match="one-dimensional"):
        read_table(FRAME).take([[0, 1]])


def layouts(X, tmp_path):
    wide = np.empty((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    reverse = np.ascontiguousarray(X[::-1, ::-1])
    locked = X.copy()
    locked.flags.writeable = False
    mapped = np.memmap(tmp_path / "x.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    yield "C", np.ascontiguousarray(X)
    yield "F", np.asfortranarray(X)
    yield "strided", wide[::2, ::3]
    yield "negative strides", reverse[::-1, ::-1]
    yield "read-only", locked
    yield "memmap", mapped
    yield "big-endian", X.astype(X.dtype.newbyteorder(">"))
    yield "list", X.tolist()
    yield "broadcast mask", np.ma.MaskedArray(X, mask=False)


INPUTS = {
    "real": np.random.default_rng(0).normal(size=(501, 3)) * 1e5 + 1e9,
    "holes": np.where(
        np.random.default_rng(1).random((501, 3)) < 0.2, np.nan, np.random.default_rng(2).random((501, 3))
    ),
    "codes": np.random.default_rng(3).integers(0, 7, (501, 3)),
    "counts": np.random.default_rng(4).poisson(20, (501, 3)) * (np.arange(501) > 3)[:, None],
    "wide codes": np.random.default_rng(6).integers(0, 2**62, (501, 3)),
    "flags": np.random.default_rng(5).random((501, 3)) < 0.5,
    "text": np.random.default_rng(7).choice(["a", "bb", "ccc"], (501, 3)),
}


@pytest.mark.parametrize("X", INPUTS.values(), ids=INPUTS.keys())
def test_memory_layout_changes_nothing(X, tmp_path):
    reference = read_table(X.copy())
    block = reference.block(reference.columns[0].kind).values
    for name, same in layouts(X, tmp_path):
        before = same if isinstance(same, list) else np.array(same, copy=True)
        table = read_table(same)
        assert_same_table(reference, table)
        assert table.block(table.columns[0].kind).values.tobytes() == block.tobytes(), name
        np.testing.assert_array_equal(np.asarray(same), np.asarray(before))
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    from_frame = read_table(frame, reference.schema.kinds)
    for a, b in zip(reference.columns, from_frame.columns, strict=True):
        assert a.values.tobytes() == b.values.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, object])
def test_what_lies_under_a_mask_is_not_touched(order, dtype):
    data = np.array([[1, 2], [3, 4], [5, 6]]).astype(dtype, order=order)
    X = np.ma.MaskedArray(data, mask=[[True, False], [False, True], [False, False]], copy=False)
    read_table(X)
    read_table(X, "real")
    assert data.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_later_changes_of_the_input_do_not_reach_the_table():
    for X in (
        np.zeros((3, 1)) + 0.5,
        np.asfortranarray(np.zeros((3, 2)) + 0.5),
        pd.DataFrame({"a": [0.5, 0.5]}),
    ):
        table = read_table(X)
        if isinstance(X, np.ndarray):
            X[:] = 9
        else:
            X.loc[:, "a"] = 9.0
        assert set(table.columns[0].values.tolist()) == {0.5}


def test_float32_equals_its_float64_copy():
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    assert_same_table(read_table(X), read_table(X.astype(np.float64)))


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.int16, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(0, 30)),
    st.randoms(use_true_random=False),
)
def test_rows_may_be_permuted(X, random):
    order = list(range(len(X)))
    random.shuffle(order)
    straight, permuted = read_table(X, "categorical"), read_table(X[order], "categorical")
    assert straight.schema == permuted.schema
    np.testing.assert_array_equal(
        straight.block("categorical").values[order], permuted.block("categorical").values
    )


def test_many_rows_of_codes_are_read_without_large_copies():
    X = np.random.default_rng(0).integers(0, 8, (200_000, 20), dtype=np.int8).astype(np.int64)
    assert read_table(X).schema.kinds == ("categorical",) * 20
    tracemalloc.start()
    read_table(X, "categorical")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * X.size  # four times the int8 result


def test_memory_follows_distinct_values_not_their_size():
    X = np.array([[0], [10**6], [2**63 - 1]])
    tracemalloc.start()
    read_table(X, "categorical")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_import_is_cheap():
    # a bare parent package, so that this is about partita.table alone
    program = (
        "import sys, types; house = types.ModuleType('partita'); house.__path__ = [sys.argv[1]]; "
        "sys.modules['partita'] = house; import partita.table; print(*sys.argv[2:], sep='\\n') if "
        "set(sys.argv[2:]) & set(sys.modules) else print('cheap')"
    )
    heavy = ["pandas", "polars", "pyarrow", "narwhals", "numba", "sklearn", "scipy.sparse"]
    home = str(Path(partita.table.__file__).parents[1])
    found = subprocess.run(
        [sys.executable, "-c", program, home, *heavy], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "cheap"
