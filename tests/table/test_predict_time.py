"""Reading new data with the schema of old data."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from partita.table import read_table

FRAME = pd.DataFrame({"color": ["red", "blue", "red"], "size": [1.5, 2.5, 4.5], "ok": [True, False, True]})
SCHEMA = read_table(FRAME).schema


@pytest.mark.parametrize(
    "again",
    [
        FRAME,
        pl.DataFrame(FRAME.to_dict("list")),
        pa.table(FRAME.to_dict("list")),
        FRAME.to_numpy(),
        FRAME.to_numpy().tolist(),
    ],
    ids=["pandas", "polars", "arrow", "object array", "list"],
)
def test_same_values_same_table_in_any_container(again):
    first, second = read_table(FRAME), read_table(again, schema=SCHEMA)
    assert second.schema is SCHEMA
    for one, two in zip(first.columns, second.columns, strict=True):
        assert one.values.dtype == two.values.dtype
        np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(first.reals(), second.reals())
    assert second.notes == []


def test_array_at_fit_and_frame_at_predict():
    schema = read_table(np.array([[0.5, 1.0], [2.5, 3.0]])).schema
    table = read_table(pd.DataFrame({"u": [0.5], "v": [3.0]}), schema=schema)
    assert table.reals().tolist() == [[-1.0, 1.0]]


def test_center_and_scale_come_from_the_schema():
    table = read_table(pd.DataFrame({"color": ["red"], "size": [100.0], "ok": [True]}), schema=SCHEMA)
    column = SCHEMA.column("size")
    assert table.reals()[0, 0] == (100.0 - column.center) / column.scale


def test_unseen_category_is_missing_with_a_note():
    new = FRAME.assign(color=["green", "red", "violet"])
    table = read_table(new, schema=SCHEMA)
    assert table.column("color").values.tolist() == [-1, 1, -1]
    (note,) = table.notes
    assert (note.code, note.level, note.columns) == ("unknown_levels", "warning", ("color",))
    assert "'color' (2)" in note.message
    with pytest.raises(ValueError, match=r"column 'color', row 0 .*'green' was not seen at fit"):
        read_table(new, schema=SCHEMA, handle_unknown="error")


def test_missing_is_not_unseen():
    new = FRAME.assign(color=["red", None, "blue"])
    table = read_table(new, schema=SCHEMA, handle_unknown="error")
    assert table.column("color").values.tolist() == [1, -1, 0]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint64, np.float32, np.float64, object])
@pytest.mark.parametrize("fit_dtype", [np.int64, np.uint64, np.float64])
def test_codes_match_across_number_types(dtype, fit_dtype):
    schema = read_table(np.array([[3], [7], [9]], dtype=fit_dtype), "categorical").schema
    table = read_table(np.array([[9], [4], [3], [100]], dtype=dtype), schema=schema)
    assert table.column("x0").values.tolist() == [2, -1, 0, -1]


def test_values_that_no_level_can_equal():
    schema = read_table(np.array([[-3], [7], [300]]), "categorical", negative="level").schema
    assert read_table(np.array([[253], [7]], dtype=np.uint8), schema=schema).column("x0").values.tolist() == [
        -1,
        1,
    ]
    assert read_table(np.array([[44], [7]], dtype=np.int8), schema=schema).column("x0").values.tolist() == [
        -1,
        1,
    ]
    assert read_table(np.array([[7.5], [300.0]]), schema=schema).column("x0").values.tolist() == [-1, 2]
    assert read_table(np.array([[1e300], [np.nan]]), schema=schema).column("x0").values.tolist() == [-1, -1]
    big = np.array([[2**64 - 3], [7]], dtype=np.uint64)  # -3 modulo 2**64
    assert read_table(big, schema=schema).column("x0").values.tolist() == [-1, 1]
    close = read_table(np.array([[2**53 + 1]]), "categorical").schema
    assert read_table(np.array([[2.0**53]]), schema=close).column("x0").values.tolist() == [-1]


def test_bool_and_zero_one_are_the_same():
    schema = read_table(pd.DataFrame({"a": [True, False]})).schema
    assert read_table([[1], [0], [2]], schema=schema).column("a").values.tolist() == [1, 0, -1]
    schema = read_table(pd.DataFrame({"a": [1, 1]})).schema
    assert read_table(pd.DataFrame({"a": [True, False]}), schema=schema).column("a").values.tolist() == [1, 0]


def test_text_where_numbers_were():
    schema = read_table(np.array([[1], [2]]), "categorical").schema
    with pytest.raises(ValueError, match="column 'x0' held numbers at fit but holds text now"):
        read_table([["1"], ["2"]], schema=schema)
    schema = read_table([["1"], ["2"]]).schema
    with pytest.raises(ValueError, match="column 'x0' held text at fit but holds numbers now"):
        read_table(np.array([[1], [2]]), schema=schema)
    assert read_table([[None]], schema=schema).column("x0").values.tolist() == [-1]
    schema = read_table(np.array([[0.5], [1.5]])).schema
    with pytest.raises(ValueError, match=r"column 'x0', row 0 .*'a' is text"):
        read_table([["a"]], schema=schema)


def test_all_missing_row_is_fine_at_predict():
    table = read_table(pd.DataFrame({"color": [None], "size": [np.nan], "ok": [None]}), schema=SCHEMA)
    assert {note.code for note in table.notes} == {"empty_rows", "missing"}
    assert table.n_rows == 1


def test_ignored_columns_may_hold_anything():
    schema = read_table(pd.DataFrame({"a": [0.5, 1.5], "b": [None, None]})).schema
    assert (
        read_table(pd.DataFrame({"a": [0.5], "b": pd.to_datetime(["2020-01-01"])}), schema=schema).n_rows == 1
    )


def test_feature_names_missing_and_extra():
    message = (
        "The feature names should match those that were passed during fit.\n"
        "Feature names unseen at fit time:\n- hue\n"
        "Feature names seen at fit time, yet now missing:\n- color\n"
    )
    with pytest.raises(ValueError) as caught:
        read_table(FRAME.rename(columns={"color": "hue"}), schema=SCHEMA)
    assert str(caught.value) == message
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- extra\n$"):
        read_table(FRAME.assign(extra=1), schema=SCHEMA)
    with pytest.raises(ValueError, match=r"yet now missing:\n- ok\n$"):
        read_table(FRAME.drop(columns="ok"), schema=SCHEMA)
    many = FRAME.assign(**{f"e{position}": 1 for position in range(7)})
    with pytest.raises(ValueError, match=r"- e4\n- ...\n$"):
        read_table(many, schema=SCHEMA)


def test_columns_in_another_order_are_matched_by_name():
    same, moved = read_table(FRAME, schema=SCHEMA), read_table(FRAME[["size", "color", "ok"]], schema=SCHEMA)
    assert [note.code for note in moved.notes if note.code == "reordered"] == ["reordered"]
    assert "reordered" not in [note.code for note in same.notes]
    for one, other in zip(same.columns, moved.columns, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_wrong_width():
    schema = read_table(np.array([[0.5, 1.0], [2.5, 3.0]])).schema
    for X in (np.zeros((4, 3)), pd.DataFrame(np.zeros((4, 3)), columns=list("abc"))):
        with pytest.raises(
            ValueError, match="X has 3 features, but Mixture is expecting 2 features as input"
        ):
            read_table(X, schema=schema, estimator_name="Mixture")


def test_kinds_and_schema_exclude_each_other():
    with pytest.raises(ValueError, match="kinds and schema were both given"):
        read_table(FRAME, "real", schema=SCHEMA)


def test_counts_are_checked_again():
    schema = read_table(np.array([[1], [2]]), "count").schema
    with pytest.raises(ValueError, match=r"column 'x0', row 1 .*negative"):
        read_table(np.array([[1], [-2]]), schema=schema)


def test_block_dtype_does_not_depend_on_the_new_rows():
    schema = read_table(np.arange(300)[:, None] // 2 * 2, "categorical").schema
    assert read_table(np.array([[0]]), schema=schema).block("categorical").values.dtype == np.int16
