"""A table in chunks has the schema and the notes of the table as a whole."""

import numpy as np
import pytest

from partita.execution import open_chunks, read_chunks
from partita.table import read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
RNG = np.random.default_rng(3)
N = 4500  # two shards

ARRAYS = {
    "floats": RNG.normal(size=(N, 2)) * [1.0, 1e-150] + [1e9, 0.0],
    "holes": np.where(RNG.random((N, 2)) < 0.3, np.nan, RNG.normal(size=(N, 2))),
    "counts": RNG.poisson(20, size=(N, 2)),
    "codes": RNG.integers(5, size=(N, 3)),
    "late code": np.where(np.arange(2 * N).reshape(N, 2) == 2 * N - 1, 9, 1),
    "late fraction": np.where(np.arange(2 * N).reshape(N, 2) == 2 * N - 1, 0.5, 1.0),
    "binary floats": RNG.integers(2, size=(N, 2)).astype(float),
    "bools": RNG.random((N, 2)) < 0.5,
    "text": np.array([["a", "b"], ["b", "zz"]])[RNG.integers(2, size=N)],
    "constant": np.ones((N, 2)) * [3.0, np.nan],
    "many integers": RNG.integers(-10_000, 10_000, size=(N, 1)),
    "objects": np.array([[1, "x"], [None, "y"]], dtype=object)[RNG.integers(2, size=N)],
}


def like(one, other):
    assert [c.to_dict() | {"center": 0, "scale": 0} for c in one.columns] == [
        c.to_dict() | {"center": 0, "scale": 0} for c in other.columns
    ]
    for a, b in zip(one.columns, other.columns, strict=True):
        assert abs(a.center - b.center) <= 1e-12 * max(abs(a.center), a.scale)
        assert a.scale == pytest.approx(b.scale, rel=1e-12)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("rows", [1000, None])
def test_arrays(name, rows):
    X = ARRAYS[name]
    whole, sharded = read_table(X), read_chunks(open_chunks(X, rows=rows), None)
    like(whole.schema, sharded.schema)
    assert {n.message for n in whole.notes} == {n.message for n in sharded.notes}
    for a, b in zip(whole.columns, sharded.collected().columns, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


def test_weights_of_zero_teach_nothing():
    X, w = ARRAYS["codes"].copy(), np.ones(N)
    X[0, 0], w[0] = 99, 0.0
    like(read_table(X, sample_weight=w).schema, read_chunks(open_chunks(X), None, sample_weight=w).schema)


@pytest.mark.parametrize("options", [{"missing_codes": -1}, {"negative": "level"}])
def test_label_matrices(options):
    Y = np.where(RNG.random((N, 3)) < 0.1, -1, RNG.integers(4, size=(N, 3)))
    whole = read_table(Y, "categorical", **options)
    sharded = read_chunks(open_chunks(Y, rows=77), "categorical", **options)
    like(whole.schema, sharded.schema)
    assert {n.message for n in whole.notes} == {n.message for n in sharded.notes}


def test_frames(tmp_path):
    table = pa.table(
        {
            "size": RNG.normal(size=N),
            "kind": [("a", "b", None)[i] for i in RNG.integers(3, size=N)],
            "visits": RNG.poisson(8, size=N),
            "flag": RNG.random(N) < 0.5,
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    sharded = read_chunks(open_chunks(tmp_path / "t.parquet"), None)
    like(read_table(table).schema, sharded.schema)
    assert sharded.schema.named


def test_errors_name_the_row_of_the_table():
    X = np.zeros((N, 2))
    X[4321, 1] = np.inf
    with pytest.raises(ValueError, match=r"'x1', row 4321 .*infinity"):
        read_chunks(open_chunks(X, rows=50), None)


def dirty_frame():
    days = np.datetime64("2020-01-01") + RNG.integers(2000, size=N)
    price = [f"${value:,.2f}" for value in RNG.gamma(2.0, 800.0, size=N)]
    return {
        "row": np.arange(N),
        "name": [f"visitor {k}" for k in range(N)],
        "zip": [f"{k:05d}" for k in RNG.integers(400, size=N)],
        "price": ["-" if RNG.random() < 0.1 else text for text in price],
        "share": [f"{value:.1f}%" for value in RNG.uniform(0, 100, size=N)],
        "size": [f"{value:.2f}".replace(".", ",") for value in RNG.normal(5, 1, size=N)],
        "age": np.where(RNG.random(N) < 0.1, 999, RNG.integers(18, 80, size=N)),
        "born": [str(day) for day in days],
        "seen": days,
        "mood": [("good", "bad", "NA")[k] for k in RNG.integers(3, size=N)],
        "remark": [f"came by tram number {k} and left" for k in RNG.integers(3000, size=N)],
    }


@pytest.mark.parametrize("rows", [300, 4000])
def test_dirty_columns_are_read_as_in_the_whole_table(tmp_path, rows):
    table = pa.table(dirty_frame())
    whole, sharded = read_table(table), read_chunks(in_chunks(table, tmp_path, rows), None)
    assert whole.schema.kinds == (
        "ignore", "ignore", "ignore", "real", "real", "real", "real", "date", "date", "categorical", "ignore",
    )  # fmt: skip
    like(whole.schema, sharded.schema)
    assert {n.message for n in whole.notes} == {n.message for n in sharded.notes}
    for a, b in zip(whole.columns, sharded.collected().columns, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


def in_chunks(table, folder, rows):
    pq.write_table(table, folder / "t.parquet", row_group_size=rows)
    return open_chunks(folder / "t.parquet", rows=rows)


def test_weights_of_text_numbers_count_in_chunks(tmp_path):
    columns, w = dirty_frame(), RNG.integers(0, 4, size=N).astype(float)
    table = pa.table({name: columns[name] for name in ("price", "age", "mood")})
    like(
        read_table(table, sample_weight=w, missing_codes={"age": 999}).schema,
        read_chunks(
            in_chunks(table, tmp_path, 500), None, sample_weight=w, missing_codes={"age": 999}
        ).schema,
    )


def test_uniform_tables_in_chunks(tmp_path):
    X = RNG.poisson(RNG.uniform(0.05, 0.6, size=40), size=(N, 40))
    X = {f"word{j}": X[:, j] for j in range(40)}
    whole, sharded = read_table(pa.table(X)), read_chunks(in_chunks(pa.table(X), tmp_path, 700), None)
    assert set(whole.schema.kinds) == set(sharded.schema.kinds) == {"count"}
    assert {n.message for n in whole.notes} == {n.message for n in sharded.notes}
