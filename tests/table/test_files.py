"""Tables in files: formats that can be read, and the errors for other files."""

import gzip

import numpy as np
import pytest

from partita.table import FileError, read_file, read_table
from partita.table.encodings import guess_encoding


def written(tmp_path, text, name="table.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def columns(tmp_path, text, name="table.csv", **options):
    return read_file(written(tmp_path, text, name), **options).columns


def test_numbers_text_and_holes(tmp_path):
    found = columns(tmp_path, 'size,name\n1.5,"a, b"\n,NA\n3e2,\n')
    np.testing.assert_array_equal(found["size"], [1.5, np.nan, 300.0])
    assert found["name"].tolist() == ["a, b", None, None]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path, separator):
    text = "\n".join(separator.join(row) for row in (("a", "b", "c"), ("1", "x", "2"), ("3", "y", "4")))
    found = columns(tmp_path, text)
    assert list(found) == ["a", "b", "c"] and found["c"].tolist() == [2.0, 4.0]


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    found = columns(tmp_path, "\ufeffa,b\r\n1,2\r\n")
    assert list(found) == ["a", "b"]


def test_decimal_commas(tmp_path):
    found = columns(tmp_path, "a;b\n1,5;x\n2;y\n")
    assert found["a"].tolist() == [1.5, 2.0]
    quoted = columns(tmp_path, 'a,b\n"1,5",2\n')
    assert quoted["a"].tolist() == [1.5]
    assert columns(tmp_path, "a;b\n1,234;x\n2,500;y\n")["a"].tolist() == [1.234, 2.5]


def test_points_separate_thousands_in_a_file_with_decimal_commas(tmp_path):
    path = written(tmp_path, "a;pay;size\n1,5;1.234;1.5\n2,25;987;2.5\n")
    found = read_file(path)
    assert found.columns["pay"].tolist() == [1234.0, 987.0] and found.columns["size"].tolist() == [1.5, 2.5]
    assert {note.code: note.columns for note in found.notes} == {
        "decimal_comma": ("a",), "text_numbers": ("pay",)
    }  # fmt: skip
    assert columns(tmp_path, "a;pay\n1;1.234\n2;987.125\n")["pay"].tolist() == [1.234, 987.125]


def test_a_first_line_of_numbers_is_no_header(tmp_path):
    found = columns(tmp_path, "1,2\n3,4\n")
    assert list(found) == ["column_1", "column_2"] and found["column_1"].tolist() == [1.0, 3.0]
    assert list(columns(tmp_path, "1,2\n3,4\n", header=True)) == ["1", "2"]


def test_a_first_line_that_counts_the_columns_is_a_header(tmp_path):
    assert list(columns(tmp_path, "0,1,2\n5,6,7\n")) == ["0", "1", "2"]
    assert list(columns(tmp_path, ",0,1,2\n9,5,6,7\n")) == ["column_1", "0", "1", "2"]
    assert list(columns(tmp_path, "0,1\n5,6\n")) == ["column_1", "column_2"]  # too few to tell


def test_one_column_and_compressed_text(tmp_path):
    assert columns(tmp_path, "a\n1\n2\n")["a"].tolist() == [1.0, 2.0]
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert list(read_file(path).columns) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("a,b\n", "the table has no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells, but the first line has 2"),
        ("a,a\n1,2\n", "several columns are called a"),
        ('a,b\n"1,2\n3,4\n', "quotes"),
    ],
)
def test_text_that_is_no_table(tmp_path, text, words):
    with pytest.raises(FileError, match=words):
        read_file(written(tmp_path, text), separator=",")


def test_files_that_are_no_tables(tmp_path):
    for path, words in (
        (tmp_path / "nothing.csv", "no such file"),
        (tmp_path, "is a folder"),
        (written(tmp_path, "x", "table.doc"), "files of type .doc"),
        (written(tmp_path, "x", "table.parquet"), "damaged or has another format"),
        (written(tmp_path, "x", "table.npy"), "table.npy"),
    ):
        with pytest.raises(FileError, match=words):
            read_file(path)
    with pytest.raises(FileError, match="no column 'z'; the columns are a, b"):
        read_file(written(tmp_path, "a,b\n1,2\n")).take(["z"], "table.csv")


def test_arrow_formats_and_arrays(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pyarrow.table({"a": [1, None, 3], "b": ["x", None, "y"], "c": [True, False, None]})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        found = read_file(tmp_path / name).columns
        np.testing.assert_array_equal(found["a"], [1.0, np.nan, 3.0])
        np.testing.assert_array_equal(found["c"], [1.0, 0.0, np.nan])
        assert found["b"].tolist() == ["x", None, "y"]
    np.save(tmp_path / "t.npy", np.arange(6).reshape(3, 2))
    assert read_file(tmp_path / "t.npy").columns["column_2"].tolist() == [1.0, 3.0, 5.0]
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    with pytest.raises(FileError, match="3 dimensions"):
        read_file(tmp_path / "cube.npy")


def test_annotated_data(tmp_path):
    anndata = pytest.importorskip("anndata")
    import pandas as pd

    obs = pd.DataFrame(
        {"leiden": pd.Categorical(["0", "1", None]), "depth": [1.0, 2.0, 3.0]}, index=list("abc")
    )
    data = anndata.AnnData(np.eye(3), obs=obs, obsm={"X_pca": np.ones((3, 2))})
    data.write_h5ad(tmp_path / "cells.h5ad")
    path = tmp_path / "cells.h5ad"
    assert read_file(path).n_rows == 3 and len(read_file(path).columns) == 3
    assert read_file(path, key="obs").columns["leiden"].tolist() == ["0", "1", None]
    assert len(read_file(path, key="X_pca").columns) == 2
    with pytest.raises(FileError, match="no 'X_umap'; choose from obs, X_pca"):
        read_file(path, key="X_umap")


def test_what_is_read_becomes_a_typed_table(tmp_path):
    found = read_file(written(tmp_path, "a,b,c\n1.5,x,0\n2.5,y,1\n,x,1\n"))
    table = read_table(found.columns)
    assert [column.kind for column in table.schema.columns] == ["real", "categorical", "binary"]


TOWNS = "name,city\nJosé,Málaga\nRené,Orléans\nMüller,Köln\nZoë,Besançon\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_encodings_are_found(tmp_path, encoding):
    found = read_file(written(tmp_path, TOWNS, encoding=encoding))
    assert found.columns["city"].tolist() == ["Málaga", "Orléans", "Köln", "Besançon"]
    assert [note.code for note in found.notes] == (["encoding"] if encoding == "cp1252" else [])
    assert not found.notes or "read as cp1252" in found.notes[0].message


WORDS = {
    "cp1252": [
        "Hélène;très bien\nIrène;Alès",
        "São Paulo;não\nJoão;maçã",
        "Malmö;Åsa",
        "Größe;weiß",
        "è;più\nsarà",
    ],
    "cp1250": ["Dvořák;ano\nČerný;ne", "Łódź;Wałęsa\nŻółw", "Győr;Szűcs\nErdős", "Šibenik;Žuti\nČakovec"],
    "cp1254": ["İstanbul;Şişli\nYıldız;Güneş"],
    "cp1257": ["Šiauliai;Žemaitė\nPanevėžys;Ąžuolas"],
}


@pytest.mark.parametrize(
    ("encoding", "words"), [(name, words) for name, texts in WORDS.items() for words in texts]
)
def test_encodings_of_latin_script_are_told_apart_by_a_few_words(encoding, words):
    assert guess_encoding(f"town;answer\n{words}\n".encode(encoding)) == encoding


def test_an_encoding_is_given(tmp_path):
    path = written(tmp_path, "город,n\nМосква,1\n", encoding="koi8-r")
    found = read_file(path, encoding="koi8-r")
    assert found.columns["город"].tolist() == ["Москва"] and not found.notes
    with pytest.raises(FileError, match="there is no encoding 'klingon'"):
        read_file(path, encoding="klingon")
    with pytest.raises(FileError, match=r"line 1: the text is not utf-8 .*give another encoding"):
        read_file(path, encoding="utf-8")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, end):
    found = columns(tmp_path, end.join(["a,b", "1,x", "2,y", ""]))
    assert found["a"].tolist() == [1.0, 2.0] and found["b"].tolist() == ["x", "y"]


def test_words_that_mean_missing(tmp_path):
    found = read_file(written(tmp_path, "n,word\n1,none\nunknown,unknown\n-,-\n.,.\n5,x\n"))
    np.testing.assert_array_equal(found.columns["n"], [1, np.nan, np.nan, np.nan, 5])
    assert found.columns["word"].tolist() == ["none", "unknown", None, None, "x"]
    (note,) = found.notes
    assert note.code == "missing_words" and note.columns == ("n", "word")
    codes = read_file(written(tmp_path, "n,word\n1,refused\nrefused,x\n999,y\n"), missing=["refused", "999"])
    np.testing.assert_array_equal(codes.columns["n"], [1, np.nan, np.nan])
    assert codes.columns["word"].tolist() == [None, "x", "y"]


def test_leading_zeros_stay_text(tmp_path):
    found = columns(tmp_path, "zip,size,flag\n00501,0.5,0\n10115,1.5,1\n")
    assert found["zip"].tolist() == ["00501", "10115"]
    assert found["size"].tolist() == [0.5, 1.5] and found["flag"].tolist() == [0.0, 1.0]


def test_the_csv_module_reads_as_pyarrow_does(tmp_path, monkeypatch):
    from partita.table import text_files

    text = 'a,b,c,d\n1,"x, y",-,007\n 2.5 ,"line\nbreak",3,012\n,NA,none,1\n'
    by_arrow = read_file(written(tmp_path, text))
    monkeypatch.setattr(text_files, "_divide_by_arrow", lambda *_: None)
    by_csv = read_file(written(tmp_path, text))
    assert by_arrow.notes == by_csv.notes
    for name, values in by_arrow.columns.items():
        np.testing.assert_array_equal(values, by_csv.columns[name])


def write_excel(path, rows):
    """Write a small workbook by hand; dates are numbers with the date format."""
    import zipfile

    def cell(value, place):
        if value is None:
            return ""
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        style = ' s="1"' if isinstance(value, tuple) else ""
        return f'<c r="{place}"{style}><v>{value[0] if style else value}</v></c>'

    lines = "".join(
        f'<row r="{r + 1}">'
        + "".join(cell(value, f"{chr(65 + c)}{r + 1}") for c, value in enumerate(row))
        + "</row>"
        for r, row in enumerate(rows)
    )
    main, kind = (
        "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
        "http://schemas.openxmlformats.org",
    )
    office, package = f"{kind}/officeDocument/2006/relationships", f"{kind}/package/2006"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="xml" '
        'ContentType="application/xml"/><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="Sheet" sheetId="1" '
        'r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="{office}/styles" '
        'Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
        "</styleSheet>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text)


def test_excel(tmp_path):
    pytest.importorskip("python_calamine")
    day = (43861,)  # 2020-01-31
    write_excel(
        tmp_path / "t.xlsx",
        [
            ["age", "price", "born", "word"],
            [31, "$5", day, "a"],
            ["-", "$1,200", None, 7],
            [44.5, "$7", day, "b"],
        ],
    )
    found = read_file(tmp_path / "t.xlsx")
    np.testing.assert_array_equal(found.columns["age"], [31, np.nan, 44.5])
    assert found.columns["word"].tolist() == ["a", "7", "b"]
    table = read_table(found.columns)
    assert table.schema.kinds == ("real", "real", "date", "categorical")
    np.testing.assert_array_equal(table.column("born").values, [18292, np.nan, 18292])
    with pytest.raises(FileError, match="no sheet 'data'; choose from Sheet"):
        read_file(tmp_path / "t.xlsx", key="data")
    (tmp_path / "bad.xlsx").write_bytes(b"no workbook")
    with pytest.raises(FileError, match="damaged or has another format"):
        read_file(tmp_path / "bad.xlsx")
