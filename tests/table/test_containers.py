"""All containers of tables, and containers that raise an error."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from partita.table import read_table


def codes(table, name):
    return table.column(name).values.tolist()


def values_of(table, name):
    column = table.column(name)
    if column.kind in ("binary", "categorical"):
        return table.schema.decode(name, column.values).tolist()
    return [None if np.isnan(v) else v for v in column.values.tolist()]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ">f8", "i1", "i4", ">i8", "u1", "u8", "?", "O"])
def test_any_numeric_dtype(dtype):
    X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    table = read_table(X, "real")
    assert [column.values.dtype for column in table.columns] == [np.float64, np.float64]
    assert table.column("x0").values.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ["U1", "O", ">U1"])
def test_text_arrays(dtype):
    table = read_table(np.array([["b", "x"], ["a", "x"]]).astype(dtype))
    assert table.schema.kinds == ("categorical", "categorical")
    assert codes(table, "x0") == [1, 0]
    assert table.schema.column("x0").levels == ("a", "b")
    assert type(table.schema.column("x0").levels[0]) is str


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy before 2.0 has no such strings")
def test_numpy_variable_width_strings():
    table = read_table(np.array([["b"], ["a"]], dtype=np.dtypes.StringDType()))
    assert codes(table, "x0") == [1, 0]


def test_masked_cells_are_missing_whatever_they_hold():
    X = np.ma.MaskedArray([[1.0, np.inf], [2.5, 3.0]], mask=[[False, True], [False, False]])
    assert values_of(read_table(X, "real"), "x1") == [None, 3.0]
    X = np.ma.MaskedArray([[7, 1], [2, 3], [2, -9]], mask=[[True, False], [False, False], [False, True]])
    table = read_table(X, "categorical")
    assert codes(table, "x0") == [-1, 0, 0]
    assert table.schema.column("x0").levels == (2,)
    assert values_of(table, "x1") == [1, 3, None]
    unmasked = read_table(np.ma.MaskedArray([[1, 2], [3, 4]]), "categorical")
    assert values_of(unmasked, "x0") == [1, 3]


def test_list_of_rows_keeps_types():
    table = read_table([[1, "a"], [2, "b"], [None, np.nan]])
    assert table.schema.kinds == ("categorical", "categorical")
    assert table.schema.column("x0").levels == (1, 2)  # not "1", "2" as np.asarray would have it
    assert values_of(table, "x1") == ["a", "b", None]  # nor "nan"


def test_list_of_numbers():
    assert read_table([[1.5, 2], [3, 4]]).schema.kinds == ("real", "real")
    assert read_table(((0, 1), (1, 1))).schema.kinds == ("binary", "binary")
    assert read_table([[1, None], [2, 3]]).schema.kinds == ("categorical", "categorical")


def test_ragged_list_names_the_row():
    with pytest.raises(ValueError, match="row 2 has 1 values but row 0 has 2"):
        read_table([[1, 2], [3, 4], [5]])


def test_matrix_is_a_type_error():
    with pytest.raises(TypeError, match=r"np\.matrix is not supported"):
        read_table(np.matrix([[1.0, 2.0]]))


@pytest.mark.parametrize("X", [np.arange(3.0), [1, 2, 3], ["a", "b"], []])
def test_one_dimension(X):
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array instead(.|\n)*reshape\(-1, 1\)"):
        read_table(X)


def test_other_dimensions():
    with pytest.raises(ValueError, match="Expected 2D array, got scalar array instead"):
        read_table(3.0)
    with pytest.raises(ValueError, match="Found array with dim 3"):
        read_table(np.zeros((2, 2, 2)))
    for series in (pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])):
        with pytest.raises(ValueError, match="Expected a 2-dimensional container but got"):
            read_table(series)


@pytest.mark.parametrize("X", ["text", None, {1, 2}])
def test_what_is_no_table(X):
    with pytest.raises(ValueError, match="pass an array, a data frame or a list of rows"):
        read_table(X)
    with pytest.raises(TypeError, match="cannot read a table"):
        read_table(object())


def test_structured_complex_bytes():
    with pytest.raises(ValueError, match="structured arrays are not supported"):
        read_table(np.zeros((2, 1), dtype=[("a", "f8"), ("b", "i4")]))
    with pytest.raises(ValueError, match="Complex data not supported"):
        read_table(np.ones((2, 2), dtype=complex))
    with pytest.raises(ValueError, match=r"Complex data not supported\ncolumn 'x0', row 1"):
        read_table(np.array([[1.0], [2j]], dtype=object))
    with pytest.raises(ValueError, match=r"Complex data not supported\ncolumn 'z'"):
        read_table(pd.DataFrame({"z": [1j, 2j]}))
    with pytest.raises(ValueError, match="column 'x0' holds bytes"):
        read_table(np.array([[b"a"], [b"b"]]))


@pytest.mark.parametrize(
    "empty", [np.empty((0, 3)), pd.DataFrame({"a": [], "b": []}), pl.DataFrame({"a": []}), np.empty((0, 0))]
)
def test_no_rows(empty):
    with pytest.raises(
        ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, \d\)\) while a minimum of 1"
    ):
        read_table(empty)


@pytest.mark.parametrize("empty", [np.empty((12, 0)), pd.DataFrame(index=range(12)), [[]] * 12])
def test_no_columns(empty):
    message = r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\."
    with pytest.raises(ValueError, match=message):
        read_table(empty)


def test_cells_that_are_neither_number_nor_text():
    X = np.array([[1.0], [{"foo": "bar"}]], dtype=object)
    with pytest.raises(TypeError, match=r"column 'x0', row 1 .*argument must be a string or a number"):
        read_table(X)
    with pytest.raises(TypeError, match="column 'lists'"):
        read_table(pl.DataFrame({"lists": [[1], [2]]}))
    with pytest.raises(TypeError, match="column 'range', row 0"):
        read_table(pd.DataFrame({"range": pd.cut([1, 2, 3], 2)}))


NULLABLE = {
    "whole": [2**62 + 1, None, 3],
    "flag": [True, None, False],
    "text": ["x", None, "y"],
    "part": [1.5, None, 2.5],
}


def pandas_nullable():
    dtypes = {"whole": "Int64", "flag": "boolean", "text": "string", "part": "Float64"}
    return pd.DataFrame({name: pd.array(NULLABLE[name], dtype=dtypes[name]) for name in NULLABLE})


def pandas_arrow():
    dtypes = {
        "whole": "int64[pyarrow]",
        "flag": "bool[pyarrow]",
        "text": "string[pyarrow]",
        "part": "double[pyarrow]",
    }
    return pd.DataFrame({name: pd.array(NULLABLE[name], dtype=dtypes[name]) for name in NULLABLE})


class ArrowStream:
    """A frame of an unknown library with Arrow's protocol."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Interchange:
    """A frame of an unknown library with the older interchange protocol."""

    def __init__(self, table):
        self._table = table

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self._table.__dataframe__(nan_as_null, allow_copy)


FRAMES = {
    "pandas nullable": pandas_nullable,
    "pandas arrow": pandas_arrow,
    "pandas object": lambda: pd.DataFrame(NULLABLE, dtype=object),
    "polars": lambda: pl.DataFrame(NULLABLE),
    "arrow": lambda: pa.table(NULLABLE),
    "arrow stream": lambda: ArrowStream(pa.table(NULLABLE)),
    "interchange": lambda: Interchange(pa.table(NULLABLE)),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_all_frames_read_alike(make):
    table = read_table(make(), {"whole": "categorical"})
    assert table.schema.named
    assert table.schema.names == ("whole", "flag", "text", "part")
    assert table.schema.kinds == ("categorical", "binary", "categorical", "real")
    for name, expected in NULLABLE.items():
        assert values_of(table, name) == expected  # 2**62 + 1 too: no detour through floats
    assert table.schema.feature_names.tolist() == list(NULLABLE)


def test_numbers_as_decimals_and_objects():
    table = read_table(pa.table({"d": pa.array([1, None, decimal.Decimal("2.5")], pa.decimal128(5, 2))}))
    assert values_of(table, "d") == [1.0, None, 2.5]
    table = read_table(pd.DataFrame({"o": np.array([1.5, 2, None], dtype=object)}))
    assert table.schema.kinds == ("real",)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"c": pd.Categorical(["b", None, "a"], categories=["z", "b", "a"], ordered=True)}),
        pd.DataFrame({"c": pd.Categorical(["b", None, "a"], categories=["z", "b", "a"])}),
        pl.DataFrame({"c": pl.Series(["b", None, "a"], dtype=pl.Enum(["z", "b", "a"]))}),
    ],
    ids=["pandas ordered", "pandas", "polars Enum"],
)
def test_unused_categories_are_kept_for_decoding_only(frame):
    table = read_table(frame)
    column = table.schema.column("c")
    assert (column.kind, column.levels, column.levels_declared) == (
        "categorical",
        ("a", "b"),
        ("z", "b", "a"),
    )
    assert codes(table, "c") == [1, -1, 0]
    assert table.block("categorical").n_levels.tolist() == [2]


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"c": pl.Series(["b", None, "a"], dtype=pl.Categorical)}),
        pa.table({"c": pa.array(["b", None, "a"]).dictionary_encode()}),
        pd.DataFrame(
            {"c": pd.array(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())))}
        ),
    ],
    ids=["polars Categorical", "arrow dictionary", "pandas arrow dictionary"],
)
def test_dictionaries(frame):
    assert codes(read_table(frame), "c") == [1, -1, 0]  # the null must not become one of the values


def test_integer_categories_stay_integers():
    frame = pd.DataFrame({"c": pd.Categorical([30, None, -10, 30])})
    table = read_table(frame)
    assert table.schema.kinds == ("categorical",)
    assert table.schema.column("c").levels == (-10, 30)
    assert codes(table, "c") == [1, -1, 0, 1]
    table = read_table(pa.table({"c": pa.array([10, None, 20]).dictionary_encode()}))
    assert values_of(table, "c") == [10, None, 20]
    table = read_table(pd.DataFrame({"c": pd.Categorical([1.5, 2.5])}))  # fractions are names here
    assert values_of(table, "c") == [1.5, 2.5]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"ok": [1.5, 2.5], "born": pd.to_datetime(["2020-01-01", None])}),
        pd.DataFrame({"ok": [1.5, 2.5], "born": pd.to_timedelta([1, 2], unit="s")}),
        pl.DataFrame({"ok": [1.5, 2.5], "born": [datetime.date(2020, 1, 1), None]}),
        pa.table({"ok": [1.5, 2.5], "born": pa.array([datetime.time(1), None])}),
        pd.DataFrame({"ok": [1.5, 2.5], "born": np.array([datetime.date(2020, 1, 1), None], dtype=object)}),
    ],
)
def test_dates_of_any_container_are_days(frame):
    table = read_table(frame)
    assert table.schema.kinds == ("real", "date") and table.column("born").kind == "real"
    assert "dates" in [note.code for note in table.notes]
    assert read_table(frame, {"born": "ignore"}).schema.kinds == ("real", "ignore")
    again = read_table(frame, schema=table.schema)
    np.testing.assert_array_equal(again.column("born").values, table.column("born").values)


def test_date_arrays():
    table = read_table(np.array([["2020-01-01"], ["NaT"], ["1970-01-03"]], dtype="M8[D]"))
    assert table.schema.kinds == ("date",)
    np.testing.assert_array_equal(table.column("x0").values, [18262.0, np.nan, 2.0])


def test_dates_with_a_time_zone_are_in_universal_time():
    stamps = pd.to_datetime(["1970-01-02 02:00", "1970-01-03 14:00"]).tz_localize("Europe/Berlin")
    for frame in (pd.DataFrame({"at": stamps}), pl.from_pandas(pd.DataFrame({"at": stamps}))):
        np.testing.assert_allclose(read_table(frame).column("at").values, [1 + 1 / 24, 2 + 13 / 24])


def test_array_protocol():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([[0.5, 1.0], [2.0, 3.0]])

    assert read_table(Wrapped()).reals().shape == (2, 2)


def test_lazy_frames_must_be_collected():
    with pytest.raises(ValueError, match="collect it"):
        read_table(pl.LazyFrame({"a": [1.0]}))


def test_duplicate_names():
    with pytest.raises(ValueError, match=r"duplicate column names(.|\n)*'a'"):
        read_table(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    with pytest.raises(ValueError, match=r"duplicate column names(.|\n)*'a'"):
        read_table(pa.table([[1], [2]], names=["a", "a"]))


def test_labels_that_are_not_text():
    frame = pd.DataFrame([[0.5, 1], [1.5, 2]], columns=[10, 20])
    table = read_table(frame, {20: "count"})
    assert table.schema.names == ("10", "20")
    assert table.schema.kinds == ("real", "count")
    assert not table.schema.named and table.schema.feature_names is None
    with pytest.raises(
        TypeError, match="Feature names are only supported if all input features have string names"
    ):
        read_table(pd.DataFrame([[0.5, 1.0]], columns=["a", 1]))


def test_pandas_sparse_columns():
    frame = pd.DataFrame({"s": pd.arrays.SparseArray([np.nan, 0.5, 1.0])})
    assert values_of(read_table(frame), "s") == [None, 0.5, 1.0]


def test_masked_objects_are_not_looked_at():
    X = np.ma.MaskedArray(np.array([["a"], [{}], [3]], dtype=object), mask=[[False], [True], [True]])
    assert values_of(read_table(X), "x0") == ["a", None, None]


def test_a_mapping_of_columns_is_a_table():
    columns = {"age": [31.5, None, 44.0], "plan": ["a", "b", None], "member": np.array([True, False, True])}
    table = read_table(columns)
    assert table.schema.names == ("age", "plan", "member")
    assert [column.kind for column in table.columns] == ["real", "categorical", "binary"]
    assert table.block("categorical").values.ravel().tolist() == [0, 1, -1]
    with pytest.raises(ValueError, match="column 'b' has 1 values but column 'a' has 2"):
        read_table({"a": [1.0, 2.0], "b": [1.0]})
    with pytest.raises(ValueError, match="column 'a' has 2 dimensions"):
        read_table({"a": [[1.0], [2.0]]})
    with pytest.raises(ValueError, match="0 sample"):
        read_table({})
