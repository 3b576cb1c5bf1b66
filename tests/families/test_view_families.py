"""Families of the view models, which are not registered by name, satisfy the same laws."""

import numpy as np
import pytest

from partita.families import Bernoulli, Categorical, Counts, GaussianDiagonal, Poisson
from partita.families.columns import column_by_column, put_columns, take_columns, take_data
from partita.families.crossed import CrossedData, crossed
from partita.families.known_noise import KnownNoise
from partita.testing import check_family, with_missing_cells

CELL_LAWS = {"add and remove", "chain rule", "merge", "touch", "ready", "predictive", "own"}
ARRAY_LAWS = ["project", "scatter", "expect", "draw", "mode"]


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_known_noise_meets_the_laws(holes, rng):
    X = with_missing_cells(rng.normal([1.0, -2.0], size=(8, 2)), holes, rng)
    checked = check_family(KnownNoise(np.array([0.4, 2.5])), X, rng)
    assert set(checked) >= {*CELL_LAWS, *ARRAY_LAWS}


def test_known_noise_is_the_gaussian_of_unit_variance(rng):
    """A normal-inverse-gamma prior that is nearly certain of the variance 1 gives the same predictive."""
    from partita.dispatch import interpreted
    from partita.testing.laws import nested_statistics, predictives

    X, sure = rng.normal(size=(6, 1)), 1e9
    near = GaussianDiagonal(np.zeros(1), np.array([0.7]), np.array([sure]), np.array([sure]))
    known = KnownNoise(np.array([0.7]))
    with interpreted():
        S = nested_statistics(known, X)
        np.testing.assert_allclose(predictives(known, S, X), predictives(near, S, X), atol=1e-6)


@pytest.mark.parametrize(
    ("lik", "draw"),
    [
        (Categorical.default([2, 3, 4], alpha=0.7), lambda rng: rng.integers(2, size=(8, 3))),
        (GaussianDiagonal.default(3), lambda rng: rng.normal(size=(8, 3))),
        (Bernoulli.default(3), lambda rng: rng.integers(2, size=(8, 3))),
    ],
    ids=["categorical", "gaussian", "bernoulli"],
)
def test_crossed_families_meet_the_laws_of_statistics(lik, draw, rng):
    n_groups = np.array([2, 3])
    group = np.column_stack([rng.integers(g, size=8) for g in n_groups])
    data = CrossedData(draw(rng), group)
    checked = check_family(crossed(lik, np.array([2, 0]), n_groups), data, rng, skip=ARRAY_LAWS)
    assert set(checked) >= CELL_LAWS


def test_columns_are_taken_and_put_back():
    lik = Categorical.default([3, 2, 4], alpha=0.5, power=[1.0, 2.0, 3.0])
    part = take_columns(lik, np.array([2, 0]))
    np.testing.assert_array_equal(part.n_levels, [4, 3])
    np.testing.assert_array_equal(part.power, [3.0, 1.0])
    back = put_columns(lik, np.array([2, 0]), part._replace(alpha=np.array([0.1, 0.2])))
    np.testing.assert_array_equal(back.alpha, [0.2, 0.5, 0.1])
    np.testing.assert_array_equal(lik.alpha, [0.5, 0.5, 0.5])
    rates = take_columns(Poisson(np.array([1.0, 2.0]), np.array([3.0, 4.0])), np.array([1]))
    assert (rates.a.tolist(), rates.b.tolist()) == ([2.0], [4.0])


def test_data_of_columns_keep_their_exposure():
    data = Counts(np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0]))
    part = take_data(data, [1])
    assert part.X.ravel().tolist() == [1.0, 3.0, 5.0] and part.exposure is data.exposure
    turned = column_by_column(data)
    assert turned.X.flags.f_contiguous
    np.testing.assert_array_equal(turned.X, data.X)
