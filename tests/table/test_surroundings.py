"""Lines around a table: titles, units, totals and remarks are left out; what could be data stays."""

from pathlib import Path

import numpy as np
import pytest

from partita.table import FileError, read_file
from partita.table.surroundings import Head, find_head
from partita.table.text_files import without_lines
from partita.table.text_records import append_to_text

BODY = "".join(f"r{i},{i},{i / 7:.2f},{'xy'[i % 2]}\n" for i in range(30))
TABLE = "name,count,size,kind\n" + BODY


def read(folder, text, **how):
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, **how)


def same(found, wanted):
    assert list(found.columns) == list(wanted.columns)
    for name, values in wanted.columns.items():
        assert np.array_equal(found.columns[name], values), name


@pytest.fixture
def plain(tmp_path):
    return read(tmp_path, TABLE)


SURROUNDED = {
    "a title": "Report of May\n" + TABLE,
    "a title with commas": "Report of May,,,\n,,,\n" + TABLE,
    "comments": "# made by a program, version 2, on Monday, at night, late\n# second\n" + TABLE,
    "a rule": TABLE.replace("\n", "\n---,---,---,---\n", 1),
    "units": TABLE.replace("\n", "\n,pieces,cm,\n", 1),
    "units in brackets": TABLE.replace("\n", "\n,[kg],[kg],\n", 1),
    "questions and units": TABLE.replace("\n", "\nWho?,How many?,How large?,What?\n,pieces,cm,\n", 1),
    "a total": TABLE + "Total,435,62.1,\n",
    "a total in another column": TABLE + ",Summe:,62.1,\n",
    "remarks": TABLE + "\nSource: the shop\nprinted on Monday\n",
    "remarks in the first column": TABLE + "* provisional,,,\nSource: the shop,,,\n,,,\n",
    "all of them": "May\n\n" + TABLE.replace("\n", "\n,pieces,cm,\n", 1) + "Total,435,62.1,\n\nSource: the shop\n",
    "lines that end as on Windows": ("Report of May\n" + TABLE + "Total,435,62.1,\n").replace("\n", "\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("text", SURROUNDED.values(), ids=SURROUNDED)
def test_lines_around_a_table_are_left_out_and_noted(tmp_path, plain, text):
    found = read(tmp_path, text)
    same(found, plain)
    rule_only = "---" in text
    assert [note.code.startswith("lines") for note in found.notes].count(True) >= (0 if rule_only else 1)


STAYS = {
    "a row with empty cells": TABLE + "r30,,,\n",
    "a row of a group called total": TABLE.replace("r29,29,4.14,y", "Total,29,4.14,y"),
    "a first row of words": TABLE.replace("r0,0,0.00,x", "r0,refused,0.00,x"),
    "a first row without numbers": TABLE.replace("r0,0,0.00,x", "r0,n/a,n/a,x"),
    "the same word for all": TABLE.replace("r0,0,0.00,x", "r0,SKIP,SKIP,x"),
    "a short last line of numbers": "a,b\n" + "".join(f"{i},{i}\n" for i in range(9)) + "9,\n",
    "names that begin with a hash": TABLE.replace("name", "#name", 1),
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_could_be_data_stays(tmp_path, text):
    found = read(tmp_path, text)
    assert found.n_rows == text.count("\n") - 1
    assert not any(note.code.startswith("lines") for note in found.notes)


def test_empty_lines_above_the_names_do_not_matter(tmp_path, plain):
    same(read(tmp_path, "\n\n" + TABLE), plain)


def test_columns_are_appended_to_the_rows_only(plain):
    text = SURROUNDED["all of them"].encode()
    groups = [str(i % 3) for i in range(plain.n_rows)]
    found, has_names = append_to_text(Path("table.csv"), text, {"group": groups})
    wanted, _ = append_to_text(Path("table.csv"), TABLE.encode(), {"group": groups})
    assert has_names and found.split() == wanted.split()
    assert found.decode().splitlines()[0] == "name,count,size,kind,group"


def test_all_lines_can_be_kept(tmp_path):
    found = read(tmp_path, SURROUNDED["a total"], skip=[0])
    assert found.n_rows == 31 and not any(note.code.startswith("lines") for note in found.notes)
    with pytest.raises(FileError, match="--skip 1-3"):
        read(tmp_path, SURROUNDED["a title"], skip=[0])
    same(read(tmp_path, SURROUNDED["a title"], skip=[0, 1]), read(tmp_path, TABLE))


def test_numbers_of_lines_count_quoted_line_ends(tmp_path):
    """The line of the total is counted as `without_lines` counts lines, also behind cells with several lines."""
    body = BODY.replace("r3,", '"r\n3",').replace("r5,", '"r\r5",')
    wanted = read(tmp_path, "name,count,size,kind\n" + body)
    found = read(tmp_path, "Report of May\nname,count,size,kind\n" + body + "Total,435,62.1,\n")
    same(found, wanted)
    assert without_lines(b"a\r\nb\rc\n", {2}) == b"a\r\nc\n"


def test_a_total_in_quotes_stays(tmp_path):
    """A line with quotes may be the end of a longer cell."""
    assert read(tmp_path, TABLE + '"Total",435,62.1,\n').n_rows == 31


def test_tables_of_r_have_names_of_rows_without_a_name(tmp_path):
    text = "count\tsize\n" + "".join(f"gene{i}\t{i}\t{i / 7:.2f}\n" for i in range(30))
    found = read(tmp_path, text)
    assert list(found.columns) == ["row", "count", "size"] and found.columns["row"][2] == "gene2"
    assert found.columns["count"].tolist() == list(range(30))
    trailing = read(tmp_path, "a,b\n" + "".join(f"{i},{i},\n" for i in range(9)).replace(",\n", "\n"))
    assert list(trailing.columns) == ["a", "b"]
    with pytest.raises(FileError, match="3 cells"):
        read(tmp_path, "a,b\n1,2\n1,2,3\n1,2\n")


def test_tables_of_r_are_divided_by_spaces(tmp_path):
    text = '"count" "kind"\n' + "".join(f'"{i + 1}" {i} "{"xy"[i % 2]} z"\n' for i in range(30))
    found = read(tmp_path, text)
    assert list(found.columns) == ["row", "count", "kind"] and found.columns["kind"][1] == "y z"
    words = read(tmp_path, "full name\n" + "".join(f"{a} {b}\n" for a in "ABC" for b in "XYZ"))
    assert list(words.columns) == ["full name"]


def test_a_separator_is_found_below_a_title(tmp_path):
    found = read(tmp_path, "Sales, in euro, by region; all\n" + TABLE.replace(",", ";"))
    assert list(found.columns) == ["name", "count", "size", "kind"]


def test_sheets_of_excel_lose_the_same_rows():
    records = [["May", "", ""], ["", "", ""], ["a", "b", "c"], ["x", "kg", "cm"]]
    records += [[f"r{i}", str(i), str(i)] for i in range(5)]
    assert find_head(records) == Head(2, 1)
    assert find_head(records[2:]) == Head(0, 1) and find_head([]) == Head(0, 0)
