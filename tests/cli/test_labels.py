"""Labels in files: text until all of a column are proved integers."""

from pathlib import Path

import numpy as np
import pytest

from partita import load
from partita.cli.clustering import blocks, cluster, consensus
from partita.cli.labels import as_labels
from partita.cli.predicting import predict
from partita.cli.tools import compare
from partita.dispatch import interpreted
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


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_row_80_missing_codes_of_one_column(ending, tmp_path):
    """The code is a label in the other column, and new labels are read in the same way."""
    first, second = np.where(GROUPS == 0, -2, GROUPS), np.where(GROUPS == 1, 7, 9)
    path, out = tmp_path / f"labels{ending}", tmp_path / "out"
    if ending == ".csv":
        path.write_text("a,b\n" + "".join(f"{x},{y}\n" for x, y in zip(first, second, strict=True)))
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        parquet.write_table(pyarrow.table({"a": first, "b": second}), path)
    outcome = consensus(path, method="voting", n_clusters=2, out=out, na=["a=-2", "b=1"])
    assert any("hold the missing code are read as missing: 'a' (30)" in note for note in outcome.notes)
    assert load(out / "model.npz").schema_.column("a").levels == (1, 2)
    found = predict(out / "model.npz", path, out=tmp_path / "new.csv", na=["a=-2", "b=9"])
    assert any("the missing code are read as missing: 'a' (30), 'b' (60)" in note for note in found.notes)


def test_missing_codes_of_one_column_in_new_rows(tmp_path):
    """Given at the prediction; the codes of the fit are in the model."""
    rng = np.random.default_rng(0)
    table, new = tmp_path / "table.csv", tmp_path / "new.csv"
    values = rng.normal(size=(60, 2)) + 9 * (np.arange(60) % 2)[:, None]
    table.write_text("x,y\n" + "".join(f"{x:.3f},{y:.3f}\n" for x, y in values))
    new.write_text("x,y\n9,500\n0,0\n")
    with interpreted():
        cluster(table, inference="vb", out=tmp_path / "out")
        groups = {
            na: predict(tmp_path / "out" / "model.npz", new, out=tmp_path / "p.csv", na=na).notes
            for na in ((), ("y=500",), ("y=5",))
        }
    assert [any("'y' (1)" in note for note in notes) for notes in groups.values()] == [False, True, False]


def test_missing_codes_of_one_column_in_a_relation(tmp_path):
    path = tmp_path / "relation.csv"
    rows = np.random.default_rng(0).integers(2, size=(8, 6))
    rows[3, 4] = 9
    path.write_text("\n".join([",".join("abcdef"), *(",".join(map(str, row)) for row in rows)]) + "\n")
    with interpreted():
        blocks(path, n_chains=1, n_draws=5, burn_in=2, out=tmp_path / "out", na=["e=9"])
    assert load(tmp_path / "out" / "model.npz").missing_cells().tolist() == [[3, 4]]


def test_row_15_a_negative_code_is_told_with_its_option(tmp_path, capsys):
    from partita.cli import main

    path = tmp_path / "labels.csv"
    path.write_text("a,b\n-2,1\n-2,1\n2,2\n")
    assert main(["consensus", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "give --na 'a=-2' if it means missing" in capsys.readouterr().err


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
