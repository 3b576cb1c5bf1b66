"""The same table through every door: files, frames, arrays, chunks and predictions have the same kinds and values."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
from scipy import sparse

from partita.execution import open_chunks, read_chunks
from partita.table import read_file, read_table

N = 60
CODES = {"age": 999}
KINDS = {
    "order": "ignore", "spend": "real", "share": "real", "loss": "real", "euro": "real", "cents": "real",
    "age": "real", "since": "date", "mood": "ordinal", "plan": "categorical", "zip": "ignore", "remark": "ignore",
    "member": "binary",
}  # fmt: skip


def dirty():
    """Columns as people write them; numbers without any dirt are numbers, as every reader of files has them."""
    rng = np.random.default_rng(3)
    euro = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in rng.gamma(2.0, 900.0, N)]
    loss = [f"({value:.1f})" if k % 3 else f"{value:.1f}" for k, value in enumerate(rng.gamma(2.0, 9.0, N))]
    return {
        "order": (100 + 3 * np.arange(N)).tolist(),
        "spend": [f"${value:.2f}" for value in rng.gamma(2.0, 300.0, N)],
        "share": ["-" if k % 7 == 0 else f"{value:.1f}%" for k, value in enumerate(rng.uniform(0, 99, N))],
        "loss": loss,
        "euro": euro,
        "cents": [f"{value},{k % 10}{k // 10}5" for k, value in enumerate(rng.integers(1, 9, N))],
        "age": np.where(rng.random(N) < 0.1, 999, rng.integers(18, 80, N)).tolist(),
        "since": [f"{d:02d}/{m:02d}/2019" for d, m in zip(rng.integers(13, 29, N), rng.integers(1, 13, N))],
        "mood": rng.choice(["disagree", "neutral", "agree", "n/a"], N).tolist(),
        "plan": rng.choice(["basic", "plus"], N).tolist(),
        "zip": [f"{code:05d}" for code in rng.integers(100, 900, N)],
        "remark": [f"came by tram {k % 30} and left happy" for k in range(N)],
        "member": rng.integers(0, 2, N).tolist(),
    }


def as_text(columns, separator):
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows) + "\n"


def text_file(columns, folder, name, separator):
    (folder / name).write_text(as_text(columns, separator), encoding="utf-8")
    return read_file(folder / name).ordered()


def excel(columns, folder):
    pytest.importorskip("python_calamine")
    from tests.table.test_files import write_excel

    write_excel(folder / "t.xlsx", [list(columns), *map(list, zip(*columns.values(), strict=True))])
    return read_file(folder / "t.xlsx").ordered()


def parquet(columns, folder):
    pd.DataFrame(columns).to_parquet(folder / "t.parquet")
    return read_file(folder / "t.parquet").ordered()


def feather(columns, folder):
    pyarrow.feather.write_feather(pa.table(columns), folder / "t.feather")
    return read_file(folder / "t.feather").ordered()


DOORS = {
    "csv": lambda columns, folder: text_file(columns, folder, "t.csv", ","),
    "tsv": lambda columns, folder: text_file(columns, folder, "t.tsv", "\t"),
    "semicolons": lambda columns, folder: text_file(columns, folder, "t.csv", ";"),
    "excel": excel,
    "parquet": parquet,
    "feather": feather,
    "mapping": lambda columns, folder: columns,
    "pandas": lambda columns, folder: pd.DataFrame(columns),
    "pandas of pyarrow": lambda columns, folder: pd.DataFrame(columns).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "polars": lambda columns, folder: pl.DataFrame(columns),
    "arrow": lambda columns, folder: pa.table(columns),
    "objects": lambda columns, folder: pd.DataFrame(columns).astype(object),
}


@pytest.mark.parametrize("door", DOORS)
def test_dirty_columns_have_the_same_kinds_and_values(door, tmp_path):
    columns = dirty()
    table = read_table(DOORS[door](columns, tmp_path), missing_codes=CODES)
    kinds = {column.name: column.declared_kind for column in table.schema.columns}
    assert kinds == KINDS
    expected = read_table(columns, missing_codes=CODES)
    for column in expected.columns:
        np.testing.assert_allclose(
            table.column(column.name).values, column.values, rtol=1e-12, err_msg=column.name
        )
    assert table.column("cents").values.max() < 10  # the decimal commas of other columns decide
    assert table.schema.column("mood").levels == ("disagree", "neutral", "agree")
    account = {column.column: column for column in table.schema.account.columns}
    assert account["order"].remarks == "set aside: looks like an identifier"
    assert {note.code for note in table.notes} >= {
        "identifier",
        "postal_code",
        "free_text",
        "missing_code",
        "dates",
    }


@pytest.mark.parametrize("door", DOORS)
def test_new_rows_are_read_as_at_the_fit_through_every_door(door, tmp_path):
    columns = dirty()
    schema = read_table(columns, missing_codes=CODES).schema
    new = {name: values[:25] for name, values in columns.items()}
    new["spend"] = ["much", *new["spend"][1:]]
    new["mood"] = ["furious", *new["mood"][1:]]
    table = read_table(DOORS[door](new, tmp_path), schema=schema)
    notes = {note.code: note.message for note in table.notes}
    assert (
        "'spend' (1, the first is 'much' in row 0)" in notes["unreadable"]
        and "'mood' (1)" in notes["unknown_levels"]
    )
    whole = read_table(columns, schema=schema)
    for column in table.columns:
        expected = whole.column(column.name).values[1:25]
        np.testing.assert_allclose(column.values[1:], expected, rtol=1e-12, err_msg=column.name)


@pytest.mark.parametrize("rows", [7, 25, N])
def test_chunks_have_the_same_kinds_and_levels(rows, tmp_path):
    columns = dirty()
    pd.DataFrame(columns).to_parquet(tmp_path / "t.parquet", row_group_size=rows)
    found = read_chunks(open_chunks(tmp_path / "t.parquet", rows=rows), None, missing_codes=CODES).schema
    whole = read_table(columns, missing_codes=CODES).schema
    assert dict(zip(found.names, (column.declared_kind for column in found.columns), strict=True)) == KINDS
    for a, b in zip(found.columns, whole.columns, strict=True):
        assert a.levels == b.levels and a.format == b.format
        np.testing.assert_allclose([a.center, a.scale], [b.center, b.scale], rtol=1e-12)


def ordered_categories(folder, how):
    frame = pd.DataFrame(
        {
            "grade": pd.Categorical(["mid", "low", "top"] * 10, ["low", "mid", "top"], ordered=True),
            "size": np.arange(30) / 7,
        }
    )
    if how == "polars":
        grade = pl.Series("grade", frame["grade"].astype(str).tolist(), dtype=pl.Enum(["low", "mid", "top"]))
        return pl.DataFrame({"grade": grade, "size": frame["size"].to_numpy()})
    if how == "arrow":
        return pa.Table.from_pandas(frame)
    if how == "parquet":
        frame.to_parquet(folder / "t.parquet")
        return read_file(folder / "t.parquet").ordered()
    if how == "anndata":
        anndata = pytest.importorskip("anndata")
        frame.index = frame.index.astype(str)
        anndata.AnnData(np.zeros((30, 1)), obs=frame).write_h5ad(folder / "t.h5ad")
        return read_file(folder / "t.h5ad", key="obs").ordered()
    return frame


@pytest.mark.parametrize("how", ["pandas", "polars", "arrow", "parquet", "anndata"])
def test_ordered_categories_are_ordinal(how, tmp_path):
    table = read_table(ordered_categories(tmp_path, how))
    assert table.schema.kinds == ("ordinal", "real")
    assert table.schema.column("grade").levels == ("low", "mid", "top")
    assert table.column("grade").values[:3].tolist() == [1, 0, 2]


def number_doors(X, folder):
    """Containers of one matrix of counts."""
    anndata = pytest.importorskip("anndata")
    names = [f"word{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    np.save(folder / "t.npy", X)
    anndata.AnnData(sparse.csr_matrix(X.astype(np.float32))).write_h5ad(folder / "t.h5ad")
    return {
        "array": X,
        "list": X.tolist(),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "csv": read_file(folder / "t.csv").columns,
        "parquet": read_file(folder / "t.parquet").columns,
        "npy": read_file(folder / "t.npy").columns,
        "anndata": read_file(folder / "t.h5ad").columns,
    }


@pytest.mark.parametrize(("mean", "kind"), [(0.4, "count"), (6.0, "count"), (60.0, "real")])
def test_numbers_have_one_kind_through_every_door(mean, kind, rng, tmp_path):
    X = rng.poisson(mean, size=(200, 40))
    for door, container in number_doors(X, tmp_path).items():
        table = read_table(container)
        assert set(table.schema.kinds) == {kind}, door
        np.testing.assert_array_equal(np.column_stack([column.values for column in table.columns]), X)
    read = read_chunks(open_chunks(X, rows=33), None)
    assert set(read.schema.kinds) == {kind}
    if kind == "count":
        declared = read_table(sparse.csr_matrix(X), "count")
        assert set(declared.schema.kinds) == {"count"}
