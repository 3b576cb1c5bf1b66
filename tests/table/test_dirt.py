"""Formatting a clean table with any dirt and reading it back gives the same typed table."""

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.table import read_file, read_table

N = 30
CURRENCIES = ["$", "€", "£", "USD", "EUR", "CHF"]
CODES = ["", "NA", "n/a", "-", ".", "?", "null", "NaN"]


@st.composite
def dirts(draw):
    """How a number of hundredths is written: marks, unit, sign, and the file around it."""
    decimal, thousands = draw(
        st.sampled_from(
            [
                (".", ""),
                (".", ","),
                (",", ""),
                (",", "."),
                (".", " "),
                (",", " "),
                (".", "'"),
                (",", "\u202f"),
            ]
        )
    )
    return {
        "decimal": decimal,
        "thousands": thousands,
        "unit": draw(st.sampled_from(["", "%", *CURRENCIES])),
        "before": draw(st.booleans()),
        "space": draw(st.sampled_from(["", " ", "\u00a0"])),
        "negative": draw(st.sampled_from(["sign", "brackets", "after"])),
        "code": draw(st.sampled_from(CODES)),
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"])),
        "end": draw(st.sampled_from(["\n", "\r\n", "\r"])),
        "separator": draw(st.sampled_from([",", ";", "\t", "|"])),
        "compressed": draw(st.booleans()),
    }


def write(value, dirt):
    """Write a number with two decimals."""
    if value is None:
        return dirt["code"]
    whole, cents = divmod(abs(value), 100)
    body = f"{whole:,}".replace(",", dirt["thousands"]) + f"{dirt['decimal']}{cents:02d}"
    unit, space = dirt["unit"], dirt["space"]
    if unit and dirt["before"] and unit != "%":
        body = unit + space + body
    elif unit:
        body = body + space + unit
    if value >= 0:
        return body
    return {"sign": f"-{body}", "brackets": f"({body})", "after": f"{body}-"}[dirt["negative"]]


values = st.lists(st.one_of(st.none(), st.integers(-10_000_000, 10_000_000)), min_size=N, max_size=N).filter(
    lambda cells: len({cell for cell in cells if cell is not None}) > 2
)


def same(one, other):
    assert one.schema.kinds == other.schema.kinds
    for a, b in zip(one.columns, other.columns, strict=True):
        np.testing.assert_allclose(a.values, b.values, rtol=1e-12)


@settings(max_examples=150, deadline=None)
@given(values, dirts())
def test_numbers_in_a_file_come_back(cells, dirt):
    texts = [write(cell, dirt) for cell in cells]
    words = ["é" if k % 2 else "ü" for k in range(N)]
    if dirt["encoding"] == "cp1252":
        texts = [text.replace("\u202f", "\u00a0") for text in texts]
    clean = {
        "amount": np.array([np.nan if cell is None else cell / 100 for cell in cells]),
        "word": np.array(words, dtype=object),
    }
    rows = [["amount", "word"], *zip(texts, words, strict=True)]
    text = dirt["end"].join(dirt["separator"].join(f'"{cell}"' for cell in row) for row in rows) + dirt["end"]
    data = text.encode(dirt["encoding"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("table.csv.gz" if dirt["compressed"] else "table.csv")
        path.write_bytes(gzip.compress(data) if dirt["compressed"] else data)
        given = dirt["encoding"] if dirt["encoding"] == "cp1252" else None
        found = read_file(path, encoding=given)
    # a word beside it, so that the table has several kinds
    same(read_table(found.columns), read_table(clean, {"amount": "real"}))


@settings(max_examples=150, deadline=None)
@given(values, dirts())
def test_numbers_in_a_frame_come_back(cells, dirt):
    frame = pd.DataFrame({"amount": [write(cell, dirt) for cell in cells]})
    table = read_table(frame)
    assert table.schema.kinds == ("real",)
    expected = [np.nan if cell is None else cell / 100 for cell in cells]
    np.testing.assert_allclose(table.column("amount").values, expected, rtol=1e-12)
    again = read_table(frame[::-1], schema=table.schema, handle_unknown="error")
    np.testing.assert_allclose(again.column("amount").values, expected[::-1], rtol=1e-12)


DATE_FORMATS = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d %b %Y",
    "%B %d, %Y",
    "%Y-%m-%d %H:%M",
]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.dates(pd.Timestamp("1950-01-01").date(), pd.Timestamp("2050-01-01").date()), min_size=5, max_size=N
    ),
    st.sampled_from(DATE_FORMATS),
    st.sampled_from(CODES),
)
def test_dates_come_back(days, pattern, code):
    days = [pd.Timestamp("1980-12-31").date(), *days]  # no doubt about day and month
    texts = np.array([*(day.strftime(pattern) for day in days), code], dtype=object)
    table = read_table({"born": texts})
    native = read_table(pd.DataFrame({"born": pd.to_datetime([*days, None])}))
    assert table.schema.kinds == native.schema.kinds == ("date",)
    np.testing.assert_array_equal(table.column("born").values, native.column("born").values)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 500), min_size=22, max_size=N, unique=True).map(
        lambda cells: cells[:11] + [None] * (N - len(cells)) + cells[11:]
    ),
    st.sampled_from([999, -9, 9999, -99.5, "x", "refused"]),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
def test_declared_codes_are_missing(cells, code, separator, by_column):
    """A missing cell that is written as a code is missing, whatever the code is, in files and in frames."""
    clean = {
        "visits": np.array([np.nan if cell is None else cell for cell in cells]),
        "word": ["a", "b"] * (N // 2),
    }
    written = [code if cell is None else cell for cell in cells]
    if isinstance(code, str):  # text among numbers is text, as in frames that were read from files
        written = [str(cell) for cell in written]
    codes = {"visits": code} if by_column else [code]
    expected = read_table(clean)
    assert_same_cells(
        read_table({**clean, "visits": np.array(written, dtype=object)}, missing_codes=codes), expected
    )
    text = "".join(
        f"{a}{separator}{b}\n" for a, b in [("visits", "word"), *zip(written, clean["word"], strict=True)]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(text, encoding="utf-8")
        found = read_file(path, missing=[str(code)])
    assert_same_cells(read_table(found.columns, missing_codes=codes), expected)


def assert_same_cells(one, other):
    assert one.schema.kinds == other.schema.kinds
    for a, b in zip(one.columns, other.columns, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


REFUSED = {
    "real": ["$5 or so", "five", "1.2.3"],
    "count": ["-3", "2.5", "many"],
    "date": ["31/31/2020", "soon", "2020"],
    "a < b": ["c"],
}


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(REFUSED)),
    st.integers(0, 2),
    st.integers(0, N - 1),
    st.integers(0, 3),
    st.booleans(),
)
def test_refusals_name_the_column_and_the_row_or_the_value(kind, which, row, position, from_file):
    """A cell that the declared kind does not allow is refused by name; levels are refused by the value."""
    wrong = REFUSED[kind][which % len(REFUSED[kind])]
    good = {"real": "1.5", "count": "7", "date": "2020-01-31", "a < b": "a"}[kind]
    cells = [wrong if k == row else good for k in range(N)]
    names = ["u", "v", "w", "z"]
    columns = {
        name: cells if j == position else [str(k / 7) for k in range(N)] for j, name in enumerate(names)
    }
    if from_file:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            rows = [names, *zip(*columns.values(), strict=True)]
            path.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
            columns = read_file(path).columns
    with pytest.raises(ValueError) as caught:
        read_table(columns, {names[position]: kind})
    message = str(caught.value)
    assert f"column {names[position]!r}" in message
    assert repr(wrong) in message if kind == "a < b" else f"row {row} (rows count from 0)" in message


@settings(max_examples=100, deadline=None)
@given(values, dirts(), st.integers(0, N - 1), st.sampled_from(["much", "12 apples", "1,2,3,4"]))
def test_new_texts_that_cannot_be_read_are_named_by_row(cells, dirt, row, wrong):
    texts = [write(cell, dirt) for cell in cells]
    schema = read_table(pd.DataFrame({"amount": texts})).schema
    new = pd.DataFrame({"amount": [wrong if k == row else text for k, text in enumerate(texts)]})
    with pytest.raises(ValueError, match=rf"column 'amount', row {row} \(rows count from 0\): '{wrong}'"):
        read_table(new, schema=schema, handle_unknown="error")
    table = read_table(new, schema=schema)
    (note,) = [note for note in table.notes if note.code == "unreadable"]
    assert f"the first is {wrong!r} in row {row}" in note.message and np.isnan(
        table.column("amount").values[row]
    )
