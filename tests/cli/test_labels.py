"""Labels in files: text until all of a column are proved integers."""

from pathlib import Path

import numpy as np
import pytest

from partita.cli.clustering import consensus
from partita.cli.labels import as_labels
from partita.cli.tools import compare
from partita.table import FileError, read_file

GROUPS = np.repeat([0, 1, 2], 30)
BIG = ["9007199254740992", "9007199254740993", "9007199254740994"]


def column(cells):
    return as_labels(np.array(cells, dtype=object), "first", Path("labels.csv")).tolist()


@pytest.mark.parametrize(
    "cells, labels",
    [
        (["7", "-1", "0"], [7, -1, 0]),
        (["7", None], [7, None]),
        (["7", "07", "007"], ["7", "07", "007"]),
        (["7", "+7"], ["7", "+7"]),
        (["0", "-0"], ["0", "-0"]),
        (["1.0", "-1.0", "2."], [1, -1, 2]),
        (["1.0", "1.00"], ["1.0", "1.00"]),
        (["1", "1.0"], ["1", "1.0"]),
        (["1e2", "100"], ["1e2", "100"]),
        (BIG, [int(label) for label in BIG]),
        ([str(2**63 - 1), str(-(2**63))], [2**63 - 1, -(2**63)]),
        ([str(2**63), "1"], [str(2**63), "1"]),
        (["red", "7"], ["red", "7"]),
        (["１", "1"], ["１", "1"]),
    ],
)
def test_row_80_labels_stay_text_until_proved_integers(cells, labels):
    assert column(cells) == labels


@pytest.mark.parametrize("cells", [["1", "inf", "2"], ["1", "0.5"], ["1", "-Infinity"]])
def test_row_80_numbers_that_are_no_labels_are_named(cells):
    with pytest.raises(FileError, match=rf"column 'first', row 2: .* there is {cells[1]}"):
        column(cells)
    with pytest.raises(FileError, match="column 'first', row 2"):
        as_labels(np.array([float(cell) for cell in cells]), "first", Path("labels.npy"))


@pytest.mark.parametrize("labels", [BIG, ["7", "07", "007"], ["1", "2", "3"]], ids=["big", "zeros", "small"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy"])
def test_row_80_labels_of_a_file_are_not_merged(labels, ending, tmp_path):
    path = tmp_path / f"labels{ending}"
    is_text = labels[1].startswith("0")
    values = np.array(labels)[GROUPS] if is_text else np.array(labels, dtype=np.int64)[GROUPS]
    if ending == ".csv":
        path.write_text("a,b\n" + "".join(f"{value},{value}\n" for value in values))
    elif ending == ".npy":
        np.save(path, np.column_stack([values, values]))
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        parquet.write_table(pyarrow.table({"a": values.tolist(), "b": values.tolist()}), path)
    outcome = consensus(path, method="voting", n_clusters=3, out=tmp_path / "out")
    assert outcome.figures["sizes"] == [30, 30, 30]
    figures = compare(path, tmp_path / "out" / "labels.csv", second_column="group").figures
    assert figures["n_clusters"] == [3, 3] and figures["adjusted_rand"] == 1.0


def test_row_80_exact_cells(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("code;size\n007;1,5\nNA;1e3\n")
    columns = read_file(path, exact=True).columns
    assert columns["code"].tolist() == ["007", None] and columns["size"].tolist() == ["1,5", "1e3"]


def test_a_header_of_very_many_columns(tmp_path):
    """Names are compared in one pass: in pairs, 100,000 columns would take hours."""
    names = [f"c{j}" for j in range(100_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join([*names, "c7"]) + "\n")
    with pytest.raises(FileError, match="several columns are called c7: rename them"):
        read_file(path)
