"""Missing cells, infinite cells, all types of codes, and the notes about them."""

import numpy as np
import pandas as pd
import pytest

from partita.table import read_table


def note(table, code):
    found = [note for note in table.notes if note.code == code]
    assert len(found) == 1, [note.code for note in table.notes]
    return found[0]


def codes_noted(table):
    return {note.code for note in table.notes}


def decoded(table, name="x0"):
    return table.schema.decode(name, table.column(name).values).tolist()


def test_nan_is_missing_and_counted():
    table = read_table(np.array([[0.5, np.nan], [np.nan, np.nan], [1.5, 2.5]]))
    assert np.isnan(table.column("x0").values).tolist() == [False, True, False]
    missing = note(table, "missing")
    assert (missing.level, missing.columns) == ("info", ("x0", "x1"))
    assert "'x0' (1), 'x1' (2)" in missing.message


def test_every_sort_of_missing_in_one_column():
    holes = [None, pd.NA, pd.NaT, np.nan, np.float32("nan"), np.ma.masked, np.datetime64("NaT")]
    for seen, expected in (("a", "a"), (3, 3), (True, True), (2.5, None)):
        values = np.empty(len(holes) + 1, dtype=object)
        values[:-1] = holes
        values[-1] = seen
        table = read_table(pd.DataFrame({"a": values}))
        if expected is None:
            np.testing.assert_array_equal(table.column("a").values, [np.nan] * len(holes) + [seen])
        else:
            assert decoded(table, "a") == [None] * len(holes) + [expected]
            assert decoded(read_table(values[:, None])) == [None] * len(holes) + [expected]


def test_empty_row_stays():
    table = read_table([["a", 1.5], [None, None], ["b", 2.5], [None, None]])
    assert table.n_rows == 4
    empty = note(table, "empty_rows")
    assert empty.level == "warning"
    assert "2 rows" in empty.message and "row 1 " in empty.message
    assert "empty_rows" not in codes_noted(read_table([["a", None], [None, 1.5]]))


def test_empty_column_is_ignored():
    table = read_table(pd.DataFrame({"a": [0.5, 1.5], "b": [np.nan, np.nan], "c": [None, None]}))
    assert table.schema.kinds == ("real", "ignore", "ignore")
    empty = note(table, "empty_columns")
    assert (empty.level, empty.columns) == ("warning", ("b", "c"))
    declared = read_table(np.array([[1.0, np.nan], [2.0, np.nan]]), "categorical")
    assert declared.schema.kinds == ("categorical", "ignore")


@pytest.mark.parametrize(
    "X", [np.full((3, 2), np.nan), [[None], [None]], pd.DataFrame({"a": pd.array([None], dtype="Int64")})]
)
def test_everything_missing(X):
    with pytest.raises(ValueError, match="every cell is missing"):
        read_table(X)


def test_constant_columns_are_noted():
    frame = pd.DataFrame({"a": ["u", "u"], "b": [0.5, 0.5], "c": [1, 2], "d": [3, 3]})
    constant = note(read_table(frame, {"d": "count"}), "constant")
    assert (constant.level, constant.columns) == ("info", ("a", "b", "d"))


def test_identical_rows():
    table = read_table(np.full((5, 2), 2.5))
    np.testing.assert_array_equal(table.reals(), np.zeros((5, 2)))


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("kinds", [None, "real", "count", "categorical", "binary"])
def test_infinity_names_column_and_row(infinity, kinds):
    X = np.array([[1.0, 2.0], [1.0, np.nan], [1.0, infinity], [infinity, infinity]])
    for data in (X[:, 1:], X[:, 1:].astype(object), X[:, 1:].astype("f4")):
        with pytest.raises(ValueError, match=r"column 'x0', row 2 .*inf"):
            read_table(data, kinds)
    with pytest.raises(ValueError, match=r"column 'b', row 2 .*inf"):
        read_table(pd.DataFrame({"b": X[:, 1]}), kinds)


def test_longdouble():
    X = np.array([[1], [2]], dtype=np.longdouble)
    assert read_table(X / 3).column("x0").values.dtype == np.float64
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        X[1] = np.longdouble("1e4000")
        with pytest.raises(ValueError, match=r"column 'x0', row 1 .*overflows float64"):
            read_table(X)


def test_object_numbers_and_huge_integers():
    assert decoded(read_table(np.array([[3], [np.int8(1)], [None]], dtype=object), "categorical")) == [
        3,
        1,
        None,
    ]
    assert decoded(read_table([[2**64 - 1], [0]], "categorical")) == [2**64 - 1, 0]
    with pytest.raises(ValueError, match="column 'x0' holds integers beyond 64 bits"):
        read_table(np.array([[2**64], [0]], dtype=object))
    with pytest.raises(ValueError, match="column 'x0' holds integers beyond 64 bits"):
        read_table(np.array([[2**63], [-1]], dtype=object))


def test_float_codes():
    table = read_table(np.array([[2.0], [1.0], [np.nan]]), "categorical")
    assert decoded(table) == [2.0, 1.0, None]
    assert [type(level) for level in table.schema.column("x0").levels] == [float, float]
    with pytest.raises(ValueError, match=r"column 'x0', row 2 .*1\.5 is not an integer code"):
        read_table(np.array([[1.0], [2.0], [1.5]]), "categorical")


def test_negative_zero_is_zero():
    table = read_table(np.array([[-0.0], [0.0], [1.0]]), "categorical")
    assert str(table.schema.column("x0").levels) == "(0.0, 1.0)"
    assert table.column("x0").values.tolist() == [0, 0, 1]


def test_codes_with_gaps_and_different_cardinalities():
    table = read_table(np.array([[1, 5], [3, 5], [7, 6], [1, 5]]), "categorical")
    assert table.column("x0").values.tolist() == [0, 1, 2, 0]
    assert table.block("categorical").n_levels.tolist() == [3, 2]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("offset", [0, 5])
def test_huge_sparse_codes(dtype, offset):
    levels = [offset, 10**6, np.iinfo(dtype).max]
    X = np.array(levels, dtype=dtype)[[2, 0, 1, 0]][:, None]
    table = read_table(X, "categorical")
    assert table.column("x0").values.tolist() == [2, 0, 1, 0]
    assert table.schema.column("x0").levels == tuple(levels)


def test_extreme_integers_side_by_side():
    low, high = -(2**63), 2**63 - 1
    X = np.array([[high], [low], [0]])
    assert decoded(read_table(X, "categorical", negative="level")) == [high, low, 0]
    near = np.array([[2**64 - 1], [2**64 - 3]], dtype=np.uint64)
    assert decoded(read_table(near, "categorical")) == [2**64 - 1, 2**64 - 3]
    tiny = np.array([[-128], [127]], dtype=np.int8)
    assert decoded(read_table(tiny, "categorical", negative="level")) == [-128, 127]


@pytest.mark.parametrize(
    ("n_levels", "dtype"),
    [(2, np.int8), (128, np.int8), (129, np.int16), (300, np.int16), (32_768, np.int16), (32_769, np.int32)],
)
def test_code_dtype_follows_the_cardinality(n_levels, dtype):
    X = np.repeat(np.arange(n_levels), 2)[:, None]
    table = read_table(X, "categorical")
    codes = table.column("x0").values
    assert codes.dtype == dtype
    np.testing.assert_array_equal(codes, X[:, 0])
    text = read_table(np.char.zfill(X.astype(str), 6)[::-1], "categorical")
    assert text.column("x0").values.dtype == dtype
    assert text.column("x0").values[0] == n_levels - 1


def test_uint8_column_beside_a_wide_one():
    frame = pd.DataFrame({"a": np.arange(300) % 200, "b": np.arange(300) // 2 * 2}).astype({"a": "uint8"})
    block = read_table(frame, "categorical").block("categorical")
    assert block.values.dtype == np.int16
    np.testing.assert_array_equal(block.values[:, 0], np.arange(300) % 200)
    np.testing.assert_array_equal(block.values[:, 1], np.arange(300) // 2)


def test_declared_negative_codes():
    X = np.array([[0], [2], [-3], [-3]])
    with pytest.raises(ValueError, match=r"column 'x0', row 2 .*negative code -3"):
        read_table(X, "categorical")
    with pytest.raises(ValueError, match=r"column 'x0', row 2 .*negative code -3"):
        read_table(X.astype(float), "categorical")
    with pytest.raises(ValueError, match="negative code -1"):
        read_table(np.array([[-1], [0]]), "categorical")
    assert decoded(read_table(X, "categorical", negative="level")) == [0, 2, -3, -3]
    assert decoded(read_table(X.astype(str), "categorical")) == ["0", "2", "-3", "-3"]
    frame = pd.DataFrame({"x0": pd.Categorical(X[:, 0])})
    assert decoded(read_table(frame, "categorical")) == [0, 2, -3, -3]


def test_inferred_negative_values_are_noted():
    table = read_table(np.array([[-2], [-1], [0], [1], [2]]))
    assert table.schema.kinds == ("categorical",)
    assert note(table, "negative_levels").level == "info"
    table = read_table(np.array([[-1], [0], [1]]))
    assert note(table, "lone_minus_one").level == "warning"
    assert decoded(table) == [-1, 0, 1]


@pytest.mark.parametrize("dtype", [np.int64, float, object])
def test_missing_code(dtype):
    X = np.array([[-1, 4], [0, -1], [2, -1]]).astype(dtype)
    table = read_table(X, "categorical", missing_codes=-1)
    assert table.block("categorical").values.tolist() == [[-1, 0], [0, -1], [1, -1]]
    found = note(table, "missing_code")
    assert found.level == "warning" and "'x0' (1), 'x1' (2)" in found.message
    later = read_table(np.array([[-1, 4], [9, 4]]), schema=table.schema)
    assert later.block("categorical").values.tolist() == [[-1, 0], [-1, 0]]
    assert "(1)" in note(later, "missing_code").message and "(1)" in note(later, "unknown_levels").message
    with pytest.raises(ValueError, match="negative code -2"):
        read_table(X - 1, "categorical", missing_codes=-1)


def test_missing_code_under_a_mask_is_not_counted():
    X = np.ma.MaskedArray([[-1], [-1], [3]], mask=[[True], [False], [False]])
    assert "'x0' (1)" in note(read_table(X, "categorical", missing_codes=-1), "missing_code").message


def test_missing_code_and_inference():
    X = np.array([[-1, 1], [0, 1], [1, 0]])
    assert read_table(X, missing_codes=-1).schema.kinds == ("binary", "binary")
    assert read_table(X).schema.kinds == ("categorical", "categorical")
    counts = np.append(np.arange(20), -1)[:, None]
    table = read_table(counts, missing_codes=-1)
    assert table.schema.kinds == ("count",) and np.isnan(table.column("x0").values[-1])
    again = read_table(np.array([[-1], [3]]), schema=table.schema)
    np.testing.assert_array_equal(again.column("x0").values, [np.nan, 3.0])
    real = read_table(np.array([[-1.0], [0.5]]), missing_codes=-1)
    np.testing.assert_array_equal(real.column("x0").values, [np.nan, 0.5])
    declared = read_table(np.array([[-1], [3]]), "real", missing_codes=-1)
    np.testing.assert_array_equal(declared.column("x0").values, [np.nan, 3.0])


def test_identifiers_are_set_aside():
    names = np.array([f"id{row:03d}" for row in range(21)])
    sizes = np.linspace(0.5, 1.5, 21)
    table = read_table({"name": names, "size": sizes})
    found = note(table, "identifier")
    assert (found.level, found.columns) == ("warning", ("name",)) and table.schema.kinds == ("ignore", "real")
    assert "looks like an identifier" in found.message and "(21)" in found.message
    with pytest.raises(ValueError, match="column 'name' looks like an identifier"):
        read_table({"name": names, "size": sizes}, identifiers="error")
    assert "identifier" not in codes_noted(read_table({"name": names[:20], "size": sizes[:20]}))
    with_hole = np.append(names.astype(object), None)
    assert "identifier" in codes_noted(read_table({"name": with_hole, "size": np.append(sizes, 2.0)}))
    declared = read_table({"name": names, "size": sizes}, {"name": "categorical"})
    assert declared.schema.kinds == ("categorical", "real")
    assert "identifier_modeled" in codes_noted(declared)


def test_an_only_column_is_modeled_even_if_it_looks_like_an_identifier():
    names = np.array([f"id{row:03d}" for row in range(21)])[:, None]
    assert "identifier_modeled" in codes_noted(read_table(names))
    assert "identifier_modeled" not in codes_noted(read_table(np.vstack([names, names[:1]])))
    assert "identifier_modeled" in codes_noted(read_table(np.arange(30)[:, None], "categorical"))
    assert "identifier_modeled" not in codes_noted(read_table(np.arange(30)[:, None], "real"))


def test_no_warnings_are_emitted(recwarn):
    read_table(pd.DataFrame({"a": [None, None], "b": ["x", None], "c": pd.Categorical(["u", None])}))
    assert len(recwarn) == 0


def test_long_names_are_shortened_in_notes():
    table = read_table(pd.DataFrame({"n" * 10_000: [0.5, np.nan]}))
    assert all(len(note.message) < 200 for note in table.notes)
