"""Weights of the labeled priors, and the expansions of collapsed variational inference."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from partita.partitions import (
    FiniteDirichlet,
    StickBreaking,
    count_spread,
    cvb_log_mass,
    draw_log_weights,
    expect_log_weights,
    log_labeled,
    log_mass,
    log_prior_weights,
    mean_log_weights,
    mode_log_weights,
    truncation_bound,
    truncation_level,
)

SIZES = np.array([4.5, 0.3, 2.0, 1.2])


def sizes_for(prior):
    return SIZES[: prior.n_components]


def standard_errors(draws, expected):
    return np.abs(draws.mean(axis=0) - expected) / (draws.std(axis=0) / np.sqrt(len(draws)))


def test_draws_have_the_expected_logs_and_means(labeled, rng):
    n = sizes_for(labeled)
    draws = np.array([draw_log_weights(labeled, n, rng) for _ in range(20_000)])
    np.testing.assert_allclose(np.exp(draws).sum(axis=1), 1.0, atol=1e-12)
    assert (standard_errors(draws, expect_log_weights(labeled, n)) < 5).all()
    assert (standard_errors(np.exp(draws), np.exp(mean_log_weights(labeled, n))) < 5).all()


def test_mean_weights_are_the_seats(labeled):
    n = sizes_for(labeled)
    out = np.empty(len(n))
    log_mass(labeled, n, len(n), out)
    np.testing.assert_allclose(mean_log_weights(labeled, n), out - np.logaddexp.reduce(out), atol=1e-13)


def test_expected_logs_are_the_gradient_of_log_labeled(labeled):
    """d/dn_k log E[prod pi^n] = E[log pi_k]: this is why the VB bound is log_labeled plus an entropy."""
    n, h = sizes_for(labeled), 1e-5
    gradient = [
        (log_labeled(labeled, n + h * e) - log_labeled(labeled, n - h * e)) / (2 * h) for e in np.eye(len(n))
    ]
    np.testing.assert_allclose(gradient, expect_log_weights(labeled, n), rtol=1e-7)


@pytest.mark.parametrize("chosen", [FiniteDirichlet(6.0, 4), StickBreaking(2.5, 4)])
def test_mode_maximizes_likelihood_times_prior(chosen):
    def depth(x):
        if isinstance(chosen, StickBreaking):
            log_v, log_rest = -np.logaddexp(0, -x), -np.logaddexp(0, x)
            log_pi = np.append(log_v, 0.0) + np.append(0.0, np.cumsum(log_rest))
        else:
            log_pi = np.append(x, 0.0) - np.logaddexp.reduce(np.append(x, 0.0))
        return -(SIZES @ log_pi + log_prior_weights(chosen, log_pi))

    best = minimize(depth, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).fun
    log_pi = mode_log_weights(chosen, SIZES)
    assert np.exp(log_pi).sum() == pytest.approx(1.0)
    assert -(SIZES @ log_pi + log_prior_weights(chosen, log_pi)) == pytest.approx(best, abs=1e-7)


def test_flat_mode_is_the_maximum_likelihood(labeled):
    n = sizes_for(labeled)
    np.testing.assert_allclose(np.exp(mode_log_weights(labeled, n, flat=True)), n / n.sum(), atol=1e-14)


@pytest.mark.parametrize("chosen", [FiniteDirichlet(0.5, 3), StickBreaking(0.5, 3), StickBreaking(1.0, 3)])
@pytest.mark.parametrize("n", [[3.0, 0.0, 0.0], [0.2, 0.1, 0.0], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
@pytest.mark.parametrize("flat", [False, True])
def test_mode_on_the_boundary_is_still_a_distribution(chosen, n, flat):
    with np.errstate(all="raise"):
        pi = np.exp(mode_log_weights(chosen, np.array(n), flat=flat))
    assert pi.sum() == pytest.approx(1.0)
    assert (pi >= 0).all()


def test_tiny_concentrations_stay_finite(labeled, rng):
    small = labeled._replace(concentration=1e-4)
    n = np.zeros(labeled.n_components)
    for log_pi in (draw_log_weights(small, n, rng), expect_log_weights(small, n), mean_log_weights(small, n)):
        assert np.isfinite(log_pi).all()


# ---- collapsed variational inference -----------------------------------------------------------------------


def centered(log_p):
    return log_p - log_p.mean(axis=-1, keepdims=True)


def test_first_order_with_certain_labels_is_the_seat(labeled):
    K = labeled.n_components
    z = np.array([0, 1, 1, 2, 0, 1])
    R = np.eye(K)[z]
    found = cvb_log_mass(labeled, R.sum(axis=0), R)
    certain = cvb_log_mass(labeled, R.sum(axis=0), R, count_spread(R))
    out = np.empty(K)
    for i in range(len(z)):
        log_mass(labeled, np.delete(R, i, axis=0).sum(axis=0), K, out)
        np.testing.assert_allclose(centered(found[i]), centered(out), atol=1e-12)
    np.testing.assert_allclose(certain, found, atol=1e-13)  # no spread, no correction


@pytest.mark.parametrize("second", [False, True])
def test_an_object_does_not_count_itself(labeled, rng, second):
    """Subtracting a row from the sums gives the sums over the other rows."""
    R = rng.dirichlet(np.ones(labeled.n_components), size=5)
    found = cvb_log_mass(labeled, R.sum(axis=0), R, count_spread(R) if second else None)
    nothing = np.zeros((1, R.shape[1]))
    for i, row in enumerate(found):
        others = np.delete(R, i, axis=0)
        alone = cvb_log_mass(labeled, others.sum(axis=0), nothing, count_spread(others) if second else None)
        np.testing.assert_allclose(row, alone[0], atol=1e-12)


def exact_expectation(prior, R, i):
    """E_q[log p(z_i | others)] by enumeration of the labels of the others."""
    K = prior.n_components
    others = np.delete(R, i, axis=0)
    total, out = np.zeros(K), np.empty(K)
    for z in itertools.product(range(K), repeat=len(others)):
        log_mass(prior, np.bincount(z, minlength=K).astype(float), K, out)
        total += np.prod(others[np.arange(len(z)), z]) * (out - np.logaddexp.reduce(out))
    return total


def test_second_order_is_closer_to_the_truth_than_first(labeled, rng):
    K = labeled.n_components
    errors = []
    for _ in range(3):
        R = rng.dirichlet(np.full(K, 0.7), size=6)
        n, spread = R.sum(axis=0), count_spread(R)
        exact = np.array([exact_expectation(labeled, R, i) for i in range(2)])
        orders = [cvb_log_mass(labeled, n, R[:2]), cvb_log_mass(labeled, n, R[:2], spread)]
        errors.append([np.abs(found - exact).mean() for found in orders])
    first, second = np.mean(errors, axis=0)
    assert second < 0.8 * first


def expect_log(shift, N, p):
    """E[log(shift + x)] for x binomial(N, p), exactly."""
    x = np.arange(N + 1)
    return stats.binom.pmf(x, N, np.reshape(p, (-1, 1))) @ np.log(shift + x)


def test_expansions_converge_as_objects_grow(labeled):
    """With equal rows all sizes and tails are binomial: the error decreases as 1/N and 1/N^2."""
    K, alpha = labeled.n_components, labeled.concentration
    r = np.array([0.3, 0.2, 0.25, 0.25])[:K] / np.array([0.3, 0.2, 0.25, 0.25])[:K].sum()
    above = np.append(np.cumsum(r[:0:-1])[::-1], 0.0)
    errors = []
    for N in (200, 800):
        R = np.tile(r, (N, 1))
        if isinstance(labeled, StickBreaking):
            log_from = expect_log(1 + alpha, N - 1, (above + r)[:-1].clip(0, 1))
            exact = np.append(expect_log(1.0, N - 1, r[:-1]) - log_from, 0.0)
            exact[1:] += np.cumsum(expect_log(alpha, N - 1, above[:-1]) - log_from)
        else:
            exact = expect_log(alpha / K, N - 1, r) - np.log(alpha + N - 1)
        orders = [cvb_log_mass(labeled, N * r, R[:1], s)[0] for s in (None, count_spread(R))]
        errors.append([np.abs(found - exact).max() for found in orders])
    (first_200, second_200), (first_800, second_800) = errors
    assert first_800 < first_200 / 3  # by 4 in the limit
    assert second_800 < second_200 / 10  # by 16
    assert second_800 < first_800 / 10


def test_spread_adds_over_blocks_and_weights(rng):
    R = rng.dirichlet(np.ones(4), size=7)
    w = np.array([2.0, 1, 1, 3, 1, 1, 1])
    whole = count_spread(np.repeat(R, w.astype(int), axis=0))
    np.testing.assert_allclose(whole, count_spread(R, w))
    parts = np.array(count_spread(R[:3], w[:3])) + np.array(count_spread(R[3:], w[3:]))
    np.testing.assert_allclose(whole, parts)


# ---- truncation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [0.2, 1.0, 7.5])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-2, 1e5])
def test_truncation_level_inverts_the_bound(concentration, tolerance):
    level = truncation_level(concentration, 500, tolerance)
    assert truncation_bound(concentration, 500, level) <= tolerance
    assert level == 1 or truncation_bound(concentration, 500, level - 1) > tolerance
