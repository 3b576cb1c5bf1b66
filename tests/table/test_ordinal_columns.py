"""Ordinal columns: the order of their levels, and codes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from partita.table import Schema, read_table

WORDS = ["low", "high", "mid", "low"]


def levels(X, kinds="ordinal", **options):
    return read_table(X, kinds, **options).schema.columns[0].levels


def test_ordered_categoricals_bring_their_order_and_unused_levels():
    scale = ["none", "low", "mid", "high"]
    frame = pd.DataFrame({"a": pd.Categorical([*WORDS, None], categories=scale, ordered=True)})
    table = read_table(frame, {"a": "ordinal"})
    assert table.schema.columns[0].levels == tuple(scale)
    assert table.columns[0].values.tolist() == [1, 3, 2, 1, -1]
    assert levels(pl.DataFrame({"a": pl.Series(WORDS, dtype=pl.Enum(scale))})) == tuple(scale)


def test_numbers_have_their_order():
    assert levels(pd.DataFrame({"a": [3, 1, 2, 1]})) == (1, 2, 3)
    assert levels(np.array([[-1.5], [2.0], [0.5]])) == (-1.5, 0.5, 2.0)
    assert levels(pd.DataFrame({"a": ["10", "9", "2"]})) == ("2", "9", "10")
    assert levels(pd.DataFrame({"a": [True, False]})) == (False, True)


def test_the_order_of_words_is_declared_in_place_of_the_kind():
    frame = pd.DataFrame({"a": WORDS})
    table = read_table(frame, {"a": "low < mid < high < top"})
    assert table.schema.kinds == ("ordinal",)
    assert table.columns[0].values.tolist() == [0, 2, 1, 0]
    assert table.schema.decode("a", [3, -1]).tolist() == ["top", None]
    assert Schema.from_dict(table.schema.to_dict()) == table.schema
    assert "3 levels: 'low' < 'mid' < 'high'" in read_table(frame, "low<mid<high").schema.describe()


def test_the_order_of_numbers_may_be_declared():
    table = read_table(pd.DataFrame({"grade": [1, 3, 2, 1]}), {"grade": "3 < 2 < 1"})
    assert table.columns[0].values.tolist() == [2, 0, 1, 2]
    again = read_table(pd.DataFrame({"grade": [2, 5]}), schema=table.schema)
    assert again.columns[0].values.tolist() == [1, -1]


def test_missing_codes_are_missing():
    table = read_table(pd.DataFrame({"a": [1, 99, 2]}), "ordinal", missing_codes=99)
    assert table.columns[0].values.tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("X", "kinds", "message"),
    [
        (WORDS, "ordinal", r"order of its levels is not known: declare 'high < low < mid'"),
        (WORDS, "low < high", r"holds 'mid', which is not among its ordered levels \(low < high\)"),
        ([1, 2], "low < high", "holds numbers, but its declared order lists words"),
        (WORDS, "low < < high", "empty or equal levels"),
        (WORDS, "low < low", "empty or equal levels"),
    ],
)
def test_faults_are_named(X, kinds, message):
    with pytest.raises(ValueError, match=message):
        read_table(pd.DataFrame({"a": X}), kinds)


def test_the_usual_answers_have_their_order():
    assert levels(pd.DataFrame({"a": ["Agree", "Neutral", "Disagree"]})) == ("Disagree", "Neutral", "Agree")


def test_missing_words_are_missing_unless_they_are_levels():
    frame = pd.DataFrame({"a": ["low", "-", "high", "NA"]})
    assert read_table(frame, "low < high").columns[0].values.tolist() == [0, -1, 1, -1]
    table = read_table(frame, {"a": "- < low < high"})
    assert table.columns[0].values.tolist() == [1, 0, 2, -1]
    assert read_table(frame, schema=table.schema).columns[0].values.tolist() == [1, 0, 2, -1]


def test_categories_without_an_order_need_one():
    frame = pd.DataFrame({"a": pd.Categorical(WORDS)})
    with pytest.raises(ValueError, match="order of its levels is not known"):
        read_table(frame, "ordinal")


def test_patterns_declare_the_order_of_several_columns():
    frame = pd.DataFrame({"q1": WORDS, "q2": WORDS[::-1], "age": [1.5, 2.5, 3.5, 4.5]})
    table = read_table(frame, {"q*": "low < mid < high"})
    assert table.schema.kinds == ("ordinal", "ordinal", "real")


def test_tables_in_chunks_have_the_same_order():
    from partita.execution import open_chunks, read_chunks

    codes = np.array([[3, 1], [1, 2], [2, 2], [1, 1]])
    whole = read_table(codes, ["3 < 2 < 1", "ordinal"]).schema
    assert read_chunks(open_chunks(codes, rows=2), ["3 < 2 < 1", "ordinal"]).schema == whole
