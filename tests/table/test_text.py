"""Columns of text in frames: numbers, dates, missing words, strays; the same at predict time."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from partita.table import read_table
from partita.table.formats import TextFormat, find_format


def table_of(**columns):
    return read_table({name: np.array(values, dtype=object) for name, values in columns.items()})


def notes_of(table):
    return {note.code: note for note in table.notes}


def test_money_and_percent_are_real_in_every_frame():
    columns = {"price": ["$340.76", "$1,340.00", None, "-"], "share": ["12.0%", "3%", "0%", "n/a"]}
    for X in (pd.DataFrame(columns), pl.DataFrame(columns), columns, pd.DataFrame(columns, dtype="string")):
        table = read_table(X)
        assert table.schema.kinds == ("real", "real")
        np.testing.assert_array_equal(table.column("price").values, [340.76, 1340.0, np.nan, np.nan])
        np.testing.assert_array_equal(table.column("share").values, [12.0, 3.0, 0.0, np.nan])
        notes = notes_of(table)
        assert "'price' (numbers in $, with thousands separated by a comma)" in notes["text_numbers"].message
        assert "'share' (percent: 12.0% is read as 12)" in notes["text_numbers"].message
        assert notes["missing_words"].columns == ("price", "share")


def test_few_plain_integers_in_text_may_be_codes():
    assert table_of(code=["1", "2", "3"] * 9).schema.kinds == ("categorical",)
    assert table_of(code=["0.5", "1.5"] * 9).schema.kinds == ("real",)
    many = table_of(code=[str(k % 40) for k in range(80)])
    assert many.schema.kinds == ("count",) and "text_numbers" in notes_of(many)


def test_words_that_may_be_answers_are_levels():
    table = table_of(pain=["none", "mild", "severe", "unknown", "NA", "?", ".", "-", ""])
    assert table.schema.column("pain").levels == ("mild", "none", "severe", "unknown")
    numbers = table_of(pain=["1.5", "none", "2.5", "unknown", "missing"])
    np.testing.assert_array_equal(numbers.column("pain").values, [1.5, np.nan, 2.5, np.nan, np.nan])


def test_a_declaration_is_taken_literally():
    texts = np.array(["-", "$5", "2024-01-31", "NA"], dtype=object)
    table = read_table({"a": texts}, {"a": "categorical"})
    assert table.schema.column("a").levels == ("$5", "-", "2024-01-31", "NA")


def test_numbers_among_objects_with_missing_words():
    table = read_table(pd.DataFrame({"age": np.array([31, "-", 44.5, "n/a", None], dtype=object)}))
    np.testing.assert_array_equal(table.column("age").values, [31.0, np.nan, 44.5, np.nan, np.nan])


def test_strays_among_numbers_are_missing_and_named():
    values = [f"{k / 7:.3f}" for k in range(60)] + ["refused", "1O"]
    table = table_of(size=values)
    assert table.schema.kinds == ("real",) and np.isnan(table.column("size").values[-2:]).all()
    note = notes_of(table)["strays"]
    assert note.level == "warning" and "'size' ('1O', 'refused')" in note.message
    words = table_of(size=[str(k) for k in range(30)] + ["a", "b", "c", "d", "e"])  # too many of them
    assert "strays" not in notes_of(words)


def test_several_units_stay_text_and_are_named():
    table = table_of(price=["$5", "€6", "$7"] * 5)
    assert table.schema.kinds == ("categorical",)
    assert "'price' ($, €)" in notes_of(table)["mixed_units"].message


def test_words_that_differ_only_in_their_letters_are_named():
    table = table_of(
        sex=["m", "f", "M", "F"] * 6, plan=["free", "Free ", "pro"] * 8, answer=["yes", "no"] * 12
    )
    message = notes_of(table)["spellings"].message
    assert "'sex' ('F' and 'f'; 'M' and 'm')" in message and "answer" not in message


def test_units_are_read_as_numbers():
    size, rent = np.arange(20, 60), np.arange(900, 940)
    table = table_of(
        size=[f"{value} m²" for value in size], rent=[f"${value:,}.50/mo" for value in rent + 500],
        age=[f"{value / 10:.1f} years" if value != 10 else "1 year" for value in np.arange(10, 50)],
        weight=[f"{value} {'kg' if value % 2 else 'lbs'}" for value in size],
        street=[f"{value} Main St" for value in size],
    )  # fmt: skip
    kinds = dict(zip(table.schema.names, table.schema.kinds, strict=True))
    assert [kinds[name] for name in ("size", "rent", "age")] == ["real"] * 3
    assert kinds["weight"] not in ("real", "count") and kinds["street"] not in ("real", "count")
    assert table.column("size").values[0] == 20 and table.column("rent").values[0] == 1400.5
    assert (
        table.column("age").values[0] == 1.0 and "'weight' (kg, lb)" in notes_of(table)["mixed_units"].message
    )


@pytest.mark.parametrize("kind", ["real", "count"])
def test_refusals_name_the_column_and_the_row(kind):
    with pytest.raises(ValueError, match=f"column 'a', row 2 .*'b' is text but the column is '{kind}'"):
        read_table({"a": np.array(["1", "$2", "b"], dtype=object)}, kind)
    with pytest.raises(ValueError, match=r"column 'a', row 1 .*'soon' is no date"):
        read_table({"a": np.array(["2024-01-31", "soon"], dtype=object)}, "date")
    with pytest.raises(ValueError, match=r"column 'a', row 1 .*20241399.* is no date"):
        read_table({"a": np.array([20240131, 20241399])}, "date")
    with pytest.raises(ValueError, match="column 'a' is 'date' but its cells have different formats"):
        read_table({"a": np.array(["31/01/2024", "01-31-2024"], dtype=object)}, "date")


def test_dates_in_text_are_a_kind_of_their_own():
    table = table_of(born=["31/01/1970", "02/02/1970", "-"])
    assert table.schema.kinds == ("date",) and table.column("born").kind == "real"
    np.testing.assert_array_equal(table.column("born").values, [30.0, 32.0, np.nan])
    assert "day/month/year" in notes_of(table)["dates"].message
    assert "date" in table.schema.describe() and "1970-02-01" in table.schema.describe()
    compact = read_table({"born": np.array([19700102, 19700201])}, {"born": "date"})
    np.testing.assert_array_equal(compact.column("born").values, [1.0, 31.0])


def test_day_and_month_in_doubt_are_a_warning():
    note = notes_of(table_of(born=["03/04/1970", "01/02/1970"]))["ambiguous_text"]
    assert note.level == "warning" and "the other way round" in note.message


def test_new_data_are_read_in_the_format_of_the_fit():
    fitted = table_of(price=["$1,200.50", "$3"], born=["31/01/1970", "02/02/1970"], word=["a", "b"])
    new = {
        "price": ["$1,234", "7", "€9", None],
        "born": ["03/04/1970", "soon", "NA", None],
        "word": list("a-b?"),
    }
    read = read_table(
        {name: np.array(values, dtype=object) for name, values in new.items()}, schema=fitted.schema
    )
    np.testing.assert_array_equal(read.column("price").values, [1234.0, 7.0, np.nan, np.nan])
    np.testing.assert_array_equal(read.column("born").values, [92.0, np.nan, np.nan, np.nan])
    assert read.column("word").values.tolist() == [0, -1, 1, -1]
    note = notes_of(read)["unreadable"]
    assert "'price' (1, the first is '€9' in row 2), 'born' (1, the first is 'soon' in row 1)" in note.message
    with pytest.raises(ValueError, match=r"column 'price', row 2 .*'€9' cannot be read as at fit"):
        read_table(
            {name: np.array(values, dtype=object) for name, values in new.items()},
            schema=fitted.schema,
            handle_unknown="error",
        )


def test_new_data_of_another_type_are_refused():
    dates, numbers = table_of(a=["2024-01-31", "2024-02-01"]), read_table({"a": [1.5, 2.5]})
    with pytest.raises(ValueError, match="column 'a' held dates at fit but holds numbers now"):
        read_table({"a": [1.5]}, schema=dates.schema)
    with pytest.raises(ValueError, match="column 'a' held numbers at fit but holds dates now"):
        read_table({"a": np.array(["2024-01-31"], dtype="M8[D]")}, schema=numbers.schema)
    with pytest.raises(ValueError, match="'red' is text"):
        read_table({"a": np.array(["red"], dtype=object)}, schema=numbers.schema)
    read = read_table({"a": np.array(["1.5", "red"], dtype=object)}, schema=numbers.schema)
    np.testing.assert_array_equal(read.column("a").values, [1.5, np.nan])


def test_missing_codes_of_columns():
    X = {
        "age": [31.0, 999.0, 44.5],
        "q1": [1, 9, 5],
        "q2": [9, 2, 3],
        "pay": np.array(["$999", "$5", "$7"], dtype=object),
    }
    table = read_table(X, missing_codes={"age": 999, "q*": [9, 8], "pay": "999"})
    assert [int(np.isnan(table.column(name).values).sum()) for name in ("age", "pay")] == [1, 1]
    assert [int((table.column(name).values < 0).sum()) for name in ("q1", "q2")] == [1, 1]
    assert notes_of(table)["missing_code"].columns == ("age", "q1", "q2", "pay")
    again = read_table({**X, "age": [999.0, 1.0, 2.0]}, schema=table.schema)
    assert np.isnan(again.column("age").values[0])


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (np.r_[np.linspace(18, 80, 50).round(), [999, 999]], "999 in 2 rows"),
        (np.r_[np.tile([1, 2, 3, 4, 5], 9), [99] * 3], "99 in 3 rows"),
        (np.r_[np.tile([1, 2, 3, 4, 5], 9), [9] * 3], "9 in 3 rows"),
        (np.r_[np.tile([1, 2, 3, 4, 5], 9), [-9] * 3, [-8] * 2], "-9 in 3 rows, -8 in 2 rows"),
        (np.r_[np.linspace(0.1, 2, 50), [-999] * 4], "-999 in 4 rows"),
    ],
)
def test_values_that_look_like_missing_codes_are_named(values, code):
    note = notes_of(read_table({"x": values}))["suspected_code"]
    assert note.level == "warning" and f"'x' ({code})" in note.message and "--na column=code" in note.message
    first = int(code.split()[0])
    cleaned = read_table({"x": values}, missing_codes=[first, -8])
    assert "suspected_code" not in notes_of(cleaned)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(18, 100),  # ages up to 99
        np.tile([1, 2, 3, 4, 5, 6, 7, 8, 9], 5),
        np.r_[np.linspace(18, 80, 50), [999]],  # once
        np.array([9, 9, 9, 9]),
        np.array([0, 9, 0, 9]),
        np.random.default_rng(0).poisson(3, 200),
        np.random.default_rng(0).normal(0, 5, 200).round(),
    ],
)
def test_values_that_do_not_look_like_missing_codes(values):
    assert "suspected_code" not in notes_of(read_table({"x": values}))


# ---- more ways to write numbers and dates --------------------------------------------------------------------------


def test_limits_are_read_as_numbers_if_most_cells_have_none():
    low = [f"{value / 10:.1f}" if value >= 10 else "<1.0" for value in range(40)]
    table = table_of(crp=low)
    assert table.schema.kinds == ("real",) and table.column("crp").values[0] == 1.0
    assert "'<1.0' is read as its limit" in notes_of(table)["text_numbers"].message
    bands = table_of(income=["<10", "10", ">50"] * 8)
    assert bands.schema.kinds == ("categorical",)


def test_letters_for_thousands_and_millions():
    table = table_of(people=[f"{k}k" for k in range(50, 90)] + [f"{k / 10:.1f}M" for k in range(10, 30)])
    assert table.column("people").values[[0, -1]].tolist() == [50_000.0, 2_900_000.0]
    assert "M and k stand for thousands and millions" in notes_of(table)["text_numbers"].message
    assert table_of(rooms=[f"{k}B" for k in range(30)] + ["2A"] * 2).schema.kinds != ("real",)


def test_units_of_one_quantity_are_converted():
    table = table_of(
        weight=[f"{k} g" for k in range(100, 130)] + [f"{k / 10} kg" for k in range(11, 30)],
    )
    assert table.column("weight").values[[0, -1]] == pytest.approx([0.1, 2.9])
    new = read_table(pd.DataFrame({"weight": ["250 g", "1 kg", "3 lb"]}), schema=table.schema)
    assert new.column("weight").values[:2] == pytest.approx([0.25, 1.0]) and np.isnan(
        new.column("weight").values[2]
    )


def test_a_common_denominator_is_a_unit_and_others_are_pairs():
    table = table_of(
        rating=[f"{k / 10:.1f}/5" for k in range(20, 50)], pressure=[f"{k}/{k - 40}" for k in range(100, 130)]
    )
    kinds = dict(zip(table.schema.names, table.schema.kinds))
    assert kinds["rating"] == "real" and table.column("rating").values[0] == 2.0
    assert kinds["pressure"] == "ignore" and "'100/60'" in notes_of(table)["pairs"].message
    assert "free_text" not in notes_of(table)


def test_dates_of_several_formats_agree_on_day_and_month():
    mixed = ["31.01.2024", "2024-02-01", "02.03.24", "Mar 4, 2024"] * 8
    table = table_of(since=mixed)
    days = [(np.datetime64(day) - np.datetime64("1970-01-01")).astype(int) for day in
            ("2024-01-31", "2024-02-01", "2024-03-02", "2024-03-04")]  # fmt: skip
    assert table.column("since").values[:4].tolist() == days
    decided = table_of(since=["31/01/2024", "05-06-2024"] * 15)  # the first decides that days come first
    assert decided.column("since").values[1] == (np.datetime64("2024-06-05") - np.datetime64(0, "D")).astype(
        int
    )
    assert notes_of(decided).keys() & {"dates", "ambiguous_text"} == {"dates"}
    doubtful = table_of(since=["03/04/2024", "05-06-2024"] * 15)
    assert "ambiguous_text" in notes_of(doubtful)
    assert table_of(since=["31/01/2024", "01-31-2024"] * 15).schema.kinds != ("date",)


def test_a_format_with_a_remark_is_stored():
    found = find_format([f"{k}.5" for k in range(9)] + ["<0.5"])
    assert TextFormat.from_dict(found.to_dict()) == found and found.remark


def test_codes_of_several_columns_are_suspected_in_others():
    answers = [1, 2, 3, 4, 5, 99] * 10
    table = table_of(q1=answers, q2=answers[::-1], age=[*range(20, 78), 99, 99], size=list(range(60)))
    message = notes_of(table)["suspected_code"].message
    assert "'age' (99 in 2 rows)" in message and "size" not in message
    alone = table_of(q1=answers, age=[*range(20, 78), 99, 99])
    assert "age" not in notes_of(alone)["suspected_code"].message


def test_numbers_under_the_name_of_an_identifier_are_set_aside_also_if_some_repeat():
    codes = [4006381000000 + 7919 * (k % 50) for k in range(60)]
    table = table_of(
        EAN=codes, user_id=[k % 40 + 500_000 for k in range(60)], n_ids=[k % 30 + 50 for k in range(60)]
    )
    assert dict(zip(table.schema.names, table.schema.kinds)) == {
        "EAN": "ignore",
        "user_id": "ignore",
        "n_ids": "real",
    }


def test_months_in_words_leave_no_doubt():
    table = table_of(sent=[f"{day:02d} May 2025 10:30" for day in range(1, 29)])
    assert "dates" in notes_of(table) and "ambiguous_text" not in notes_of(table)


def test_cells_that_list_choices_are_named(rng):
    tools = np.array(["Excel", "Python", "R", "SQL"])
    ticks = rng.random((200, 4)) < 0.5
    table = table_of(
        uses=[", ".join(tools[row]) or "none" for row in ticks],
        town=rng.choice(["Paris, France", "Lyon, France", "Ulm, Germany", "Köln, Germany"], 200),
    )
    note = notes_of(table)["choices"]
    assert (
        note.level == "warning"
        and note.columns == ("uses",)
        and "'uses' ('Excel', 'Python', 'R'" in note.message
    )


def test_dates_in_order_are_named(rng):
    days = np.datetime64("2024-01-01") + np.repeat(np.arange(40), 2)
    table = table_of(time=days, day=rng.permutation(days), n=np.arange(80.0) ** 2)
    assert notes_of(table)["in_order"].columns == ("time",)
    assert "in_order" not in notes_of(table_of(time=days[:10], n=np.arange(10.0) ** 2))


def test_numbers_about_a_value_are_numbers(rng):
    values = rng.normal(6.5, 0.5, 60).round(2)
    table = table_of(ph=[f"{'~' if i % 9 == 0 else ''}{value}" for i, value in enumerate(values)])
    np.testing.assert_array_equal(table.column("ph").values, values)
    assert "is read without its sign" in notes_of(table)["text_numbers"].message


def test_a_word_among_whole_numbers_is_named(rng):
    grades = rng.integers(1, 7, 200).astype(str)
    grades[::30] = "absent"
    table = table_of(grade=grades, place=rng.choice(["north", "south", "1"], 200))
    assert table.schema.kinds[0] == "categorical"
    assert (
        notes_of(table)["no_answers"].columns == ("grade",)
        and "'absent'" in notes_of(table)["no_answers"].message
    )
