"""Formatting a clean table with any dirt and reading it back gives the same typed table."""

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
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
