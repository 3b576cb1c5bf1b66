"""Student's t: against scipy, and the law of families that are not conjugate, with planted bugs."""

import math

import numpy as np
import pytest
from scipy import stats

from partita.dispatch import interpreted
from partita.families import NON_CONJUGATE, GaussianDiagonal, Student, family_entry
from partita.families import contract as family
from partita.families.rows import project_rows
from partita.testing import LawViolation, check_explicit_family

LIK, DATA = NON_CONJUGATE["student"].examples(np.random.default_rng(2))[0]


def log_density(lik, data, theta):
    L = np.zeros((len(data), theta.shape[1]))
    project_rows(lik, data, np.arange(len(data)), theta, L)
    return L


def test_density_is_that_of_scipy_compiled_and_not(global_random_seed):
    theta = family.draw(LIK, np.zeros((4, 3)), np.random.default_rng(global_random_seed))
    right = sum(
        stats.t.logpdf(DATA[:, d, None], LIK.df[d], theta[2 * d], np.exp(theta[2 * d + 1])) for d in range(2)
    )
    np.testing.assert_allclose(log_density(LIK, DATA, theta), right, rtol=1e-12)
    with interpreted():
        np.testing.assert_allclose(log_density(LIK, DATA, theta), right, rtol=1e-12)


def test_a_missing_cell_adds_nothing(global_random_seed):
    holes = DATA.copy()
    holes[0] = np.nan
    holes[1, 0] = np.nan
    theta = family.draw(LIK, np.zeros((4, 3)), np.random.default_rng(global_random_seed))
    with interpreted():
        L = log_density(LIK, holes, theta)
    assert np.all(L[0] == 0.0)
    right = stats.t.logpdf(DATA[1, 1], LIK.df[1], theta[2], np.exp(theta[3]))
    np.testing.assert_allclose(L[1], right)


def test_prior_is_that_of_scipy(global_random_seed):
    theta = family.draw(LIK, np.zeros((4, 3)), np.random.default_rng(global_random_seed))
    mean = np.stack([LIK.m, LIK.a], axis=1).ravel()[:, None]
    deviation = np.stack([LIK.s, LIK.b], axis=1).ravel()[:, None]
    right = stats.norm.logpdf(theta, mean, deviation).sum(axis=0)
    np.testing.assert_allclose(family.log_prior(LIK, theta), right)


def test_summary_is_in_the_order_of_the_columns():
    theta = np.array([[1.0], [math.log(2.0)], [3.0], [0.0]])
    summary = family.summarize(LIK, theta)
    np.testing.assert_allclose(summary["means"], [[1.0, 3.0]])
    np.testing.assert_allclose(summary["variances"], [[4.0 * 2.0, 7.0 / 5.0]])
    assert family.n_parameters(LIK) == 4


def test_hyper_parameters_go_to_the_free_scale_and_back():
    for name, value in family.unconstrained(LIK).items():
        for again, field in zip(family.constrained(LIK, name, value), LIK, strict=True):
            np.testing.assert_allclose(again, field)


def test_wild_values_do_not_move_the_prior(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(100, 3))
    X[:, 1] = 7.0  # constant
    X[:50, 2] = np.nan
    calm = family_entry("student").block(X, list("abc"), np.ones(100))
    X[3, 0] = 1e6
    wild = family_entry("student").block(X, list("abc"), np.ones(100), df=3)
    for old, new in zip(calm.family[:4], wild.family[:4], strict=True):
        np.testing.assert_allclose(old, new, atol=0.25)
        assert np.isfinite(new).all()
    assert wild.family.df.tolist() == [3.0] * 3 and wild.family.m[1] == 7.0


def test_the_law_holds():
    check_explicit_family(LIK)
    with pytest.raises(ValueError, match="check_family"):
        check_explicit_family(GaussianDiagonal.default(1))


class Narrow(Student):
    """Its log_prior forgets to square the deviation of the location."""


class Unscaled(Student):
    """Its density lacks the normalizing constant."""


class Thin(Student):
    """Its simulation is Gaussian."""


@family.log_prior.register(Narrow)
def _(lik, theta):
    return family.log_prior(Student(*lik)._replace(s=np.sqrt(lik.s)), theta)


@family.project.register(Unscaled)
def _(lik, d, theta, x, L, j):
    family.project(Student(*lik), d, theta, x, L, j)
    for k in range(L.shape[1]):
        L[j, k] += theta[1, k]


@family.simulate.register(Thin)
def _(lik, theta, z, rng):
    return theta[0::2, z].T + np.exp(theta[1::2, z].T) * rng.standard_normal((len(z), len(lik.m)))


@pytest.mark.parametrize("cls", [Narrow, Unscaled, Thin])
def test_planted_bugs_break_the_law(cls):
    with pytest.raises(LawViolation, match="simulated data move"):
        check_explicit_family(cls(*LIK)._replace(df=np.array([2.0, 2.0])), n_objects=3)
