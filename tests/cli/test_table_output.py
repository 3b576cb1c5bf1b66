"""Standard input, and `--output`: the table with its groups, its own cells byte for byte."""

import gzip
import io
import json
import sys

import numpy as np
import pytest

from partita.cli import main
from partita.cli.appended import check_output, write_appended
from partita.cli.sources import open_table
from partita.cli.standard_input import format_of
from partita.table import FileError, read_file
from partita.table.text_records import append_to_text

GROUPS = {"group": np.array([1, -1]), "confidence": np.array([0.5, 1.0])}
DIRTY = {
    "plain": (b"id,x\na,1\nb,2\n", b"id,x,group,confidence\na,1,1,0.5\nb,2,-1,1\n"),
    "no end of the last line": (b"x\n01\n2", b"x,group,confidence\n01,1,0.5\n2,-1,1"),
    "quotes and lines in cells": (
        b'a,b\r\n"x, ""y""\r\nz", 1\r\n\r\nw,"2"\r\n',
        b'a,b,group,confidence\r\n"x, ""y""\r\nz", 1,1,0.5\r\n\r\nw,"2",-1,1\r\n',
    ),
    "mark, semicolons, decimal commas": (
        b"\xef\xbb\xbfa;b\n1,50;x\n2,0;y\n",
        b"\xef\xbb\xbfa;b;group;confidence\n1,50;x;1;0,5\n2,0;y;-1;1\n",
    ),
    "another encoding": (
        "a,b\nZoë,1\nJosé,2\n".encode("cp1252"),
        "a,b,group,confidence\nZoë,1,1,0.5\nJosé,2,-1,1\n".encode("cp1252"),
    ),
    "sixteen bits": ("a,b\nx,1\ny,2\n".encode("utf-16"), None),
    "names that are there": (
        b"group,Partita_Group,confidence\n1,2,3\n4,5,6\n",
        b"group,Partita_Group,confidence,partita_group_2,partita_confidence\n1,2,3,1,0.5\n4,5,6,-1,1\n",
    ),
    "no header": (b"1,2\n3,4\n", b"1,2,1,0.5\n3,4,-1,1\n"),
}


@pytest.mark.parametrize("name", DIRTY)
def test_cells_stay_as_they_are_written(tmp_path, name):
    content, expected = DIRTY[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    found = write_appended("table", open_table(path), GROUPS, tmp_path / "out")
    written = (tmp_path / "out.csv").read_bytes()
    if expected is None:
        assert written.startswith(content[:2])
        expected = content.decode("utf-16").replace("\n", ",{}\n").format("group,confidence", "1,0.5", "-1,1")
        assert written.decode("utf-16") == expected
    else:
        assert written == expected
    assert list(found.files) == [str(tmp_path / "out.csv")]
    told = " ".join(found.notes)
    assert ("'group' is written as 'partita_group_2'" in told) == (name == "names that are there")
    assert ("no line with names" in told) == (name == "no header")


def test_compressed_tables_stay_compressed(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n1,2\n3,4\n"))
    write_appended("table", open_table(path), GROUPS, tmp_path / "out")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).startswith(b"x,y,group,confidence\n1,2,1,")


def test_formulas_are_escaped_if_that_is_asked_for(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n=1+1,-2\n+x,3\n")
    for escape, line in ((False, "=1+1,-2,1,0.5"), (True, "'=1+1,-2,1,0.5")):
        write_appended("table", open_table(path, escape_formulas=escape), GROUPS, tmp_path / "out")
        lines = (tmp_path / "out.csv").read_text().splitlines()
        assert lines[1] == line and lines[2].startswith("'+x" if escape else "+x")


def test_other_separators_and_formats(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.csv"
    path.write_text("code,when,size\n007,2024-01-31,1.50\n008,2024-02-01,\n")
    table = open_table(path)
    write_appended(str(tmp_path / "one.tsv"), table, GROUPS, tmp_path / "out")
    assert (tmp_path / "one.tsv").read_text().splitlines()[1] == "007\t2024-01-31\t1.50\t1\t0.5"
    write_appended(str(tmp_path / "two.parquet"), table, GROUPS, tmp_path / "out")
    again = open_table(tmp_path / "two.parquet")
    assert again.all_columns["code"].tolist() == ["007", "008"] and again.all_columns["group"].tolist() == [
        1,
        -1,
    ]
    write_appended("table", again, {"group": np.array([3, 4])}, tmp_path / "three")
    types = read_file(tmp_path / "three.parquet", exact=True).columns
    assert types["partita_group"].tolist() == [3, 4] and types["group"].dtype.kind == "i"
    write_appended(str(tmp_path / "four.csv"), again, GROUPS | {"group": np.array([1, 2])}, tmp_path / "out")
    assert (tmp_path / "four.csv").read_text().splitlines()[2].startswith("008,2024-02-01,,-1,1,2,1")


def test_a_table_that_changed_meanwhile_is_refused():
    with pytest.raises(FileError, match="has changed since it was read"):
        append_to_text("table.csv", b"x\n1\n2\n3\n", {"group": ["1", "2"]})
    with pytest.raises(FileError, match="has changed since it was read"):
        append_to_text("table.csv", b"x\n1\n", {"group": ["1", "2"]})


def test_what_names_no_table_is_refused(tmp_path):
    for output in ("results", "out.doc", "folder/"):
        with pytest.raises(ValueError, match="--out names the place of the other results"):
            check_output(output)
    assert main(["cluster", str(tmp_path / "absent.csv"), "--output", "results"]) == 2


# ---- standard input ------------------------------------------------------------------------------------------------


@pytest.fixture
def table(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) + 9.0 * z[:, None]
    return "id,x,y\n" + "".join(f"row{i},{x:.3f},{y:.3f}\n" for i, (x, y) in enumerate(X))


def give(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


QUICK = ["--inference", "em", "-K", "2", "-q"]


def test_a_table_of_standard_input_and_on_standard_output(table, tmp_path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    give(monkeypatch, table.encode())
    assert main(["cluster", "-", *QUICK, "--output", "-"]) == 0
    printed = capsysbinary.readouterr()
    lines = printed.out.decode().splitlines()
    assert lines[0].startswith("id,x,y,group,confidence") and len(lines) == 41
    assert {line.split(",")[3] for line in lines[1:]} == {"1", "2"}
    assert "2 groups" in printed.err.decode()
    assert {path.name for path in tmp_path.iterdir()} == {"stdin-partita"}
    assert json.loads((tmp_path / "stdin-partita" / "source.json").read_text())["file"] is None
    assert main(["report", "stdin-partita"]) == 0


def test_every_command_that_reads_a_table_reads_standard_input(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(table)
    assert main(["cluster", "people.csv", *QUICK]) == 0
    labels = (tmp_path / "people-partita" / "labels.csv").read_bytes()
    for command in (
        ["predict", "people-partita", "-"],
        ["tree", "-", "-q"],
        ["ensemble", "-", "-m", "3", "-o", "members.csv", "-q"],
    ):
        give(monkeypatch, table.encode())
        assert main(command) == 0, command
    give(monkeypatch, (tmp_path / "members.csv").read_bytes())
    assert main(["consensus", "-", "--id", "id", "-q"]) == 0
    capsys.readouterr()
    give(monkeypatch, labels)
    assert main(["compare", "-", "people-partita/labels.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["adjusted_rand"] == 1.0
    members = (tmp_path / "members.csv").read_text().splitlines()
    assert members[0] == "id,member_1,member_2,member_3"
    assert min(int(cell) for line in members[1:] for cell in line.split(",")[1:]) == 1


def test_formats_of_standard_input(tmp_path, monkeypatch):
    give(monkeypatch, b"x|y\n1|2\n3|4\n")
    assert list(open_table("-").columns) == ["x", "y"]
    give(monkeypatch, b"x y\n1 2\n3 4\n")
    assert list(open_table("-", format="tsv").columns) == ["x y"]
    file = io.BytesIO()
    np.save(file, np.arange(6.0).reshape(3, 2))
    for content in (file.getvalue(), gzip.compress(b"column_1,column_2\n0,1\n2,3\n4,5\n")):
        give(monkeypatch, content)
        assert list(open_table("-").columns["column_2"]) == [1, 3, 5]
    assert format_of(b"PK\x03\x04") == "xlsx" and format_of(b"\x89HDF\r\n") == "h5ad"
    (tmp_path / "table.data").write_text("x,y\n1,2\n3,4\n")
    assert list(open_table(tmp_path / "table.data", format="csv").columns) == ["x", "y"]
    with pytest.raises(FileError, match=r"files of type .data cannot be read; .* \(--format csv"):
        open_table(tmp_path / "table.data")


def test_faults_of_standard_input_are_those_of_stdin(monkeypatch, capsys):
    give(monkeypatch, b"")
    assert main(["cluster", "-"]) == 2
    assert "standard input is empty" in capsys.readouterr().err
    give(monkeypatch, b"x,y\n1,2\n3\n")
    assert main(["cluster", "-"]) == 2
    assert capsys.readouterr().err.startswith("partita: stdin, line 3: 1 cells")
