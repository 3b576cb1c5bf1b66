"""Declaring kinds, inferring kinds, and what each kind accepts."""

import numpy as np
import pandas as pd
import pytest

from partita.table import read_table


def kinds_of(X, **options):
    return read_table(X, **options).schema.kinds


def kind_in_frame(values):
    return kinds_of(pd.DataFrame({"a": values}))[0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, True], "binary"),
        (["no", "yes", "no"], "categorical"),
        ([0, 1, 1], "binary"),
        ([0.0, 1.0, np.nan], "binary"),
        ([1, 2, 3], "categorical"),
        ([1.0, 2.0, np.nan], "categorical"),
        (list(range(1, 11)), "categorical"),
        (list(range(0, 11)), "count"),
        ([float(v) for v in range(0, 11)], "count"),
        (list(range(1, 12)), "real"),
        (list(range(-1, 12)), "real"),
        ([0.5, 1.0, 2.0], "real"),
        ([1e200, 2e200, 3e200], "real"),
        ([1e20, 2e20, 3e20], "real"),
        (pd.Categorical([0, 1, 0]), "categorical"),
        (pd.Categorical([True, False, True]), "categorical"),
        (pd.array([0, 1, None], dtype="Int64"), "binary"),
        (np.array([0, True, None], dtype=object), "binary"),
    ],
)
def test_inference_in_frames(values, kind):
    assert kind_in_frame(values) == kind


def test_inference_in_frames_sees_late_rows():
    values = np.tile(np.arange(3), 1000)
    assert kind_in_frame(values) == "categorical"
    assert kind_in_frame(np.append(values, np.arange(3, 20))) == "count"
    assert kind_in_frame(np.append(values, 0.5)) == "real"
    assert kind_in_frame(np.append(values % 2, 7)) == "categorical"


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (np.array([[0.0, 1.0], [1.0, np.nan]]), "binary"),
        (np.array([[0.0, 1.0], [1.0, 2.0]]), "real"),
        (np.array([[0, 1], [1, 0]]), "binary"),
        (np.array([[0, 1], [1, 7]]), "categorical"),
        (np.array([[True, False]]), "binary"),
        (np.column_stack([np.arange(11), np.ones(11, int)]), "count"),
        (np.column_stack([np.arange(1, 12), np.ones(11, int)]), "real"),
        (np.column_stack([np.arange(1, 12), np.zeros(11, int)]), "count"),
        (np.column_stack([np.arange(11), -np.ones(11, int)]), "real"),
        (np.column_stack([np.arange(10), -np.ones(10, int)]), "categorical"),
        ([[1, None], [2, 3]], "categorical"),
        (np.array([[1.0, 2], [2, 2.5]], dtype=object), "real"),
    ],
)
def test_arrays_get_one_kind(X, kind):
    assert set(kinds_of(X)) == {kind}


def test_declared_columns_stay_out_of_common_inference():
    X = np.array([[0.0, 7.5], [1.0, 2.5]])
    assert kinds_of(X) == ("real", "real")
    assert kinds_of(X, kinds={1: "real"}) == ("binary", "real")


def test_mixed_object_arrays_are_inferred_by_column():
    X = np.array([["a", 0.5, True], ["b", 1.5, False]], dtype=object)
    assert kinds_of(X) == ("categorical", "real", "binary")


def test_inferred_kinds_are_noted():
    (note,) = [note for note in read_table(pd.DataFrame({"a": ["x", "y"], "b": [0.5, 1.5]})).notes]
    assert (note.code, note.level, note.columns) == ("kinds", "info", ("a", "b"))
    assert "categorical: 'a'; real: 'b'" in note.message
    assert not any(note.code == "kinds" for note in read_table([[0.5], [1.5]], "real").notes)


def test_ways_to_declare():
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert kinds_of(frame, kinds="count") == ("count", "count")
    assert kinds_of(frame, kinds=["real", "count"]) == ("real", "count")
    assert kinds_of(frame, kinds={"b": "real"}) == ("categorical", "real")
    assert kinds_of(frame, kinds={np.int64(1): "real"}) == ("categorical", "real")
    table = read_table(frame, kinds={"a": "ignore"})
    assert table.schema.kinds == ("ignore", "categorical")
    assert [column.name for column in table.columns] == ["b"]


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ("integer", "unknown kind 'integer' for column 'a'"),
        (["real"], "kinds has 1 entries but the data have 2 columns"),
        ({"c": "real"}, "the column 'c', which the data do not have"),
        ({2: "real"}, "the column 2, which the data do not have"),
        ({-1: "real"}, "the column -1"),
        ({True: "real"}, "the column True"),
        ({"a": "real", 0: "count"}, "declares column 'a' twice"),
        ("ignore", "every column is declared 'ignore'"),
    ],
)
def test_wrong_declarations(kinds, message):
    with pytest.raises(ValueError, match=message):
        read_table(pd.DataFrame({"a": [1, 2], "b": [3, 4]}), kinds)


def test_ignored_columns_are_not_read():
    X = np.array([[{}, 1.5], [object(), 2.5]], dtype=object)
    assert kinds_of(X, kinds={0: "ignore"}) == ("ignore", "real")
    assert kinds_of(np.array([[np.inf, 1.5]]), kinds={0: "ignore"}) == ("ignore", "real")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan, -2.0], r"column 'x0', row 2 .*-2\.0 is negative"),
        ([1.0, 2.5, -2.0], r"column 'x0', row 1 .*2\.5 is not an integer"),
    ],
)
def test_counts_must_be_counts(values, message):
    with pytest.raises(ValueError, match=message):
        read_table(np.array(values)[:, None], "count")


def test_count_values():
    table = read_table(np.array([[3.0], [np.nan], [0.0]]), "count")
    np.testing.assert_array_equal(table.column("x0").values, [3.0, np.nan, 0.0])


@pytest.mark.parametrize("kind", ["real", "count"])
def test_text_in_numeric_columns(kind):
    with pytest.raises(ValueError, match=f"column 'x0', row 1 .*'a' is text but the column is '{kind}'"):
        read_table([[None], ["a"]], kind)


def test_binary_levels():
    def levels(values, kind="binary"):
        return read_table(pd.DataFrame({"a": values}), kind).schema.column("a").levels

    assert levels(["yes", "no"]) == ("no", "yes")
    assert levels([1, 1]) == (0, 1)
    assert levels([2, 1]) == (1, 2)
    assert levels([-1, 1]) == (-1, 1)
    assert [type(level) for level in levels([1.0, np.nan])] == [float, float]
    assert levels([True, True]) == (False, True) and type(levels([True, True])[0]) is bool
    with pytest.raises(ValueError, match="column 'a' is declared 'binary' but has 3 distinct values"):
        levels([1, 2, 3])


def test_mixed_text_and_numbers():
    with pytest.raises(ValueError, match=r"column 'h' mixes text \(row 2: 'a'\) and numbers \(row 1: 1\)"):
        read_table(pd.DataFrame({"h": np.array([None, 1, "a"], dtype=object)}))
    with pytest.raises(ValueError, match="column 'x0' mixes text"):
        read_table([["a"], [True]])


@pytest.mark.parametrize(
    ("option", "value"), [("handle_unknown", "drop"), ("negative", "ok"), ("identifiers", "ignore")]
)
def test_wrong_options(option, value):
    with pytest.raises(ValueError, match=f"{option} must be '.*' or '.*', got '{value}'"):
        read_table([[1.5]], **{option: value})


def test_missing_codes_must_be_numbers_or_text():
    for wrong in (True, [object()], {"x0": [None]}):
        with pytest.raises(TypeError, match=r"missing_codes has .*; give numbers or text"):
            read_table([[1]], missing_codes=wrong)
    with pytest.raises(ValueError, match="missing_codes names the column 'age'"):
        read_table([[1]], missing_codes={"age": 9})
