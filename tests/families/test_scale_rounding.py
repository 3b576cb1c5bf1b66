"""Full covariances at the limits of double precision: prior means far away, and precisions that are nearly singular."""

import numpy as np
import pytest

from partita.families import GaussianFull
from partita.families.contract import draw, simulate
from partita.families.gaussian_full import posterior_scale
from partita.families.gaussian_full_arrays import _posteriors, moments
from partita.families.rows import add_statistics, log_marginals

FAR = np.array([1e6 + 1 / 3, -2e6 - 1 / 7])  # the squares are rounded
SCALE = np.array([[3.0, 0.5], [0.5, 2.0]])


def family_at(m):
    return GaussianFull.of(m, 0.6, 5.5, SCALE)


def statistics(family, X):
    S = np.zeros((6, 2))
    add_statistics(family, X, np.zeros(len(X), np.int64), S)
    return S


def exact_scale(family, X):
    """The posterior scale matrix in long double precision."""
    X, m = X.astype(np.longdouble), family.m.astype(np.longdouble)
    n, mean = len(X), X.mean(axis=0)
    between = np.outer(mean - m, mean - m) * (family.kappa * n / (family.kappa + n))
    return (SCALE + (X - mean).T @ (X - mean) + between).astype(float)


@pytest.mark.usefixtures("uncompiled")
def test_without_data_the_scale_matrix_is_that_of_the_prior():
    family, S = family_at(FAR), np.zeros((6, 2))
    m, kappa, nu, Psi = _posteriors(family, S)
    assert (Psi == SCALE).all() and (kappa == 0.6).all() and (nu == 5.5).all()
    np.testing.assert_allclose(m, [FAR, FAR], rtol=1e-15)
    P, mean = np.empty((2, 2)), np.empty(2)
    assert posterior_scale(family, S[:, 0], mean, P) == 0.6
    assert (P == SCALE).all()
    np.testing.assert_allclose(mean, FAR, rtol=1e-15)


def test_compiled_log_marginals_do_not_depend_on_the_origin(rng):
    """An empty cluster has the log marginal 0, and so has the difference of two rows the same at any origin."""
    assert np.abs(log_marginals(family_at(FAR), np.zeros((6, 2)))).max() < 1e-12
    X = np.round(rng.normal(size=(7, 2)), 2)
    near = log_marginals(family_at(np.zeros(2)), statistics(family_at(np.zeros(2)), X))[0]
    moved = family_at(np.full(2, 2.0**10))  # the sums of squares keep 33 of their 53 bits
    assert log_marginals(moved, statistics(moved, X + 2.0**10))[0] == pytest.approx(near, abs=1e-6)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("n", [1, 2, 9])
def test_rows_far_from_the_prior_mean(n, rng):
    family, X = family_at(FAR), rng.normal(size=(n, 2))
    S = statistics(family, X)
    P, mean = np.empty((2, 2)), np.empty(2)
    posterior_scale(family, S[:, 0], mean, P)
    m, _, _, Psi = _posteriors(family, S)
    np.testing.assert_allclose(P, exact_scale(family, X), rtol=1e-14)
    np.testing.assert_array_equal(P, Psi[0])
    np.testing.assert_array_equal(mean, m[0])


def test_no_kappa_and_no_scale_give_the_sums_of_squares(rng):
    """The flat prior of maximum likelihood: sums of squares about the mean, and zeros without rows."""
    X = rng.normal(size=(8, 2))
    flat = GaussianFull(np.zeros(2), 0.0, -4.0, np.zeros((2, 2)), 0.0)
    m, _, _, Psi = _posteriors(flat, statistics(flat, X))
    np.testing.assert_allclose(Psi[0], 8 * np.cov(X.T, bias=True), rtol=1e-13)
    np.testing.assert_allclose(m[0], X.mean(axis=0), rtol=1e-13)
    assert not Psi[1].any() and not m[1].any()


@pytest.mark.parametrize("p", [2, 5])
def test_draws_with_few_degrees_of_freedom_are_definite(p, rng):
    """Many of these precisions are singular in double precision; what is drawn can be simulated from all the same."""
    family = GaussianFull.of(np.arange(p, dtype=float), 0.6, p - 0.95, np.eye(p) + 0.5)
    S = np.zeros((1 + p + p * (p + 1) // 2, 400))
    theta = draw(family, S, rng)
    assert np.isfinite(theta).all()
    values = np.linalg.eigvalsh(moments(theta, p)[1])
    assert (values[:, 0] > 0).all()
    assert (values[:, 0] < 1e-12 * values[:, -1]).any()  # such draws are among them
    assert np.isfinite(simulate(family, theta, np.arange(400), rng)).all()


def test_statistics_that_rounding_made_indefinite_are_drawn_from(rng):
    """Removals leave residues: sums of squares that are too small by their rounding error."""
    family = GaussianFull.of(np.zeros(2), 0.6, 5.5, 1e-9 * SCALE)
    S = statistics(family, rng.normal(size=(1, 2)) * 1e3)
    S[3:, 0] -= 1e-8  # the packed sums of squares
    assert np.isfinite(draw(family, S, rng)).all()
