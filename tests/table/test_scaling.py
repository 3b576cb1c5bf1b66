"""Centers and scales of real columns, at every magnitude."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.table import read_table
from partita.table.scaling import center_and_scale, standardize

RNG = np.random.default_rng(5)
BASE = RNG.normal(size=(50, 1))


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-160, 1.0, 1e160, 1e200, 1e300])
def test_scale_free(unit):
    reference = read_table(BASE)
    table = read_table(BASE * unit)
    np.testing.assert_allclose(table.reals(), reference.reals(), rtol=1e-12)
    column = table.schema.column("x0")
    np.testing.assert_allclose(column.scale / unit, BASE.std(), rtol=1e-12)
    np.testing.assert_allclose(column.center / unit, BASE.mean(), rtol=1e-12)


def test_powers_of_two_change_nothing_at_all():
    np.testing.assert_array_equal(read_table(BASE * 2.0**600).reals(), read_table(BASE).reals())


def test_extremes_of_float64():
    top = np.finfo(np.float64).max
    z = read_table(np.array([[-top], [top], [top], [-top]])).reals()
    np.testing.assert_allclose(z[:, 0], [-1, 1, 1, -1])
    lopsided = read_table(np.array([[-top], [-top], [top]])).reals()
    np.testing.assert_allclose(lopsided[:, 0], np.array([-1, -1, 2]) / math.sqrt(2))
    bottom = 5e-324
    z = read_table(np.array([[0.0], [bottom * 1000], [0.0], [bottom * 1000]]), "real").reals()
    np.testing.assert_allclose(z[:, 0], [-1, 1, -1, 1])
    assert np.isfinite(read_table(np.array([[0.0], [bottom]]), "real").reals()).all()


def test_offset():
    x = np.array([1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3.0])
    column = read_table(x[:, None], "real").schema.column("x0")
    assert column.center == 1e9 + 1.5
    np.testing.assert_allclose(column.scale, math.sqrt(1.25), rtol=1e-9)


def test_constant_column_has_scale_one():
    table = read_table(np.full((7, 1), 0.1))
    column = table.schema.column("x0")
    assert (column.center, column.scale) == (0.1, 1.0)
    assert not table.reals().any()


def test_constant_column_with_weights_is_centered_exactly():
    for seed in (124, 241, 713, 781):  # seeds whose rounded sums leave a spread of 1e-24
        rng = np.random.default_rng(seed)
        n, value = rng.integers(2, 60), rng.random()
        assert center_and_scale(np.full(n, value), rng.random(n)) == (value, 1.0)
    assert center_and_scale(np.full(3, 1e-320), np.array([1.0, 2.0, 4.0])) == (1e-320, 1.0)


def test_spread_of_one_rounding_unit():
    eps = np.finfo(float).eps
    assert center_and_scale(np.array([1.0, 1.0 + eps]))[1] == eps / 2


def test_missing_cells_do_not_count():
    with_missing_cells = np.concatenate([[np.nan], BASE[:, 0], [np.nan]])
    assert center_and_scale(with_missing_cells) == center_and_scale(BASE[:, 0])
    assert center_and_scale(np.full(3, np.nan)) == (0.0, 1.0)


def test_weights():
    x = np.array([1.5, 2.0, 4.0, 8.0])
    w = np.array([1.0, 2.0, 0.0, 3.0])
    repeated = np.array([1.5, 2.0, 2.0, 8.0, 8.0, 8.0])
    column = read_table(x[:, None], "real", sample_weight=w).schema.column("x0")
    np.testing.assert_allclose([column.center, column.scale], [repeated.mean(), repeated.std()], rtol=1e-14)
    for factor in (2.0**-1070, 1e-300, 1e12, 1e307):
        np.testing.assert_allclose(center_and_scale(x, w * factor), [column.center, column.scale], rtol=1e-14)


def test_weight_zero_is_bitwise_absent():
    x = RNG.normal(size=300)
    keep = RNG.random(300) < 0.7
    assert center_and_scale(x, keep.astype(float)) == center_and_scale(x[keep])


def test_zero_weight_rows_teach_neither_kinds_nor_levels():
    frame = pd.DataFrame(
        {"a": ["u", "v", "w"], "b": [0, 1, 7], "c": [1.5, 2.5, 1e300], "d": [np.nan, np.nan, 1.0]}
    )
    weighted = read_table(frame, sample_weight=[1, 1, 0])
    absent = read_table(frame[:2])
    assert weighted.schema == absent.schema
    assert weighted.schema.kinds == ("categorical", "binary", "real", "ignore")
    assert weighted.column("a").values.tolist() == [0, 1, -1]
    (note,) = [note for note in weighted.notes if note.code == "unweighted_levels"]
    assert note.columns == ("a", "b")


def test_log_scale_rows():
    X = np.array([[1.0, 10.0], [3.0, np.nan], [np.nan, np.nan], [5.5, 30.0]])
    table = read_table(X)
    logs = [math.log(table.schema.column(name).scale) for name in ("x0", "x1")]
    expected = [-logs[0] - logs[1], -logs[0], 0.0, -logs[0] - logs[1]]
    np.testing.assert_allclose(table.log_scale_rows(), expected)
    assert read_table([["a"], ["b"]]).log_scale_rows().tolist() == [0.0, 0.0]


def test_log_scale_rows_is_the_jacobian():
    table = read_table(BASE * 7.0 + 3.0)
    column = table.schema.column("x0")

    def log_normal(x, mean, scale):
        return -0.5 * ((x - mean) / scale) ** 2 - math.log(scale) - 0.5 * math.log(2 * math.pi)

    direct = log_normal(BASE[:, 0] * 7.0 + 3.0, column.center, column.scale)
    np.testing.assert_allclose(log_normal(table.reals()[:, 0], 0, 1) + table.log_scale_rows(), direct)


def test_standardized_by_name():
    table = read_table(pd.DataFrame({"a": [0.5, 2.5], "b": ["u", "v"]}))
    assert table.standardized("a").tolist() == [-1.0, 1.0]
    with pytest.raises(ValueError, match="column 'b' is categorical"):
        table.standardized("b")


def test_value_beyond_all_reach():
    schema = read_table(BASE * 1e-200).schema
    with pytest.raises(ValueError, match=r"column 'x0', row 1 .*overflows in units"):
        read_table(np.array([[0.0], [1e300]]), schema=schema)
    assert read_table(np.array([[0.0], [1.0]]), schema=schema).n_rows == 2


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_any_finite_column_standardizes(values):
    x = np.array(values)
    center, scale = center_and_scale(x)
    assert math.isfinite(center) and math.isfinite(scale) and scale > 0
    z = standardize(x, center, scale)
    assert np.isfinite(z).all()
    # n values of mean 0 and variance 1 cannot be further away than this (subnormal scales are coarse)
    if scale > 1e-300 and x.min() < x.max() and scale > 1e-12 * np.abs(x).max():
        assert np.abs(z).max() <= math.sqrt(len(x)) * (1 + 1e-6)
