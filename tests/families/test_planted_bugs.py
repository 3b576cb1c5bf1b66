"""Planted bugs: each defect is caught by a law, and by one that names the right equation.

A broken family is a subclass: it inherits every implementation but the one that is broken.
"""

import math

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.families import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Exponential,
    GaussianDiagonal,
    GaussianFull,
    Multinomial,
    Ordinal,
    Poisson,
    VonMisesFisher,
)
from partita.families import contract as family
from partita.families.rows import log_marginals
from partita.testing import LawViolation, check_family, with_missing_cells
from partita.testing.grids import grid

NAMES = {entry.cls: name for name, entry in FAMILIES.items()}


def wrong_dirichlet_constant(right):
    def log_marginal(lik, d, s):
        return right(lik, d, s) - math.lgamma(lik.alpha[d])

    return log_marginal


def missing_half_log_determinant(right):
    def score(lik, d, c, x, K, out):
        right(lik, d, c, x, K, out)
        p = len(x)
        for k in range(K):
            out[k] += sum(math.log(c[4 + p + a * (a + 1) // 2 + a, k]) for a in range(p))

    return score


def off_by_one_level(right):
    def observe(lik, d, s, x, w):
        right(lik, d, s, (x + 1) % (len(s) - 1) if x >= 0 else x, w)

    return observe


def weight_ignored(right):
    def observe(lik, d, s, x, w):
        right(lik, d, s, x, math.copysign(1.0, w))

    return observe


def stale_total(right):
    def touch(lik, d, s, c, k, x):
        total = c[0, k]
        right(lik, d, s, c, k, x)
        c[0, k] = total

    return touch


def ready_forgets(right):
    def ready(lik, d, s, c, x):
        c[:, 0] = 1.0

    return ready


def missing_normalizer(right):
    def score(lik, d, c, x, K, out):
        if x >= 0:
            out[:K] += c[1 + x, :K]

    return score


def missing_factorial(right):
    def score(lik, d, c, x, K, out):
        right(lik, d, c, x, K, out)
        if not math.isnan(x[0]):
            out[:K] += math.lgamma(x[0] + 1)

    return score


def missing_factorial_everywhere(right):
    def observe(lik, d, s, x, w):
        right(lik, d, s, x, w)
        if not math.isnan(x[0]):
            s[2] += w * math.lgamma(x[0] + 1)

    return observe


def scatter_counts_missing_cells(right):
    def scatter(lik, d, S, theta, x, R, j):
        right(lik, d, S, theta, x, R, j)
        if math.isnan(x):
            S[0] += R[j]
        return 0.0

    return scatter


def projected_twice(right):
    def project(lik, d, theta, x, L, j):
        right(lik, d, theta, x, L, j)
        right(lik, d, theta, x, L, j)

    return project


def hidden_entropy_of_the_wrong_sign(right):
    def scatter(lik, d, S, theta, x, R, j):
        return -right(lik, d, S, theta, x, R, j)

    return scatter


def hidden_coordinates_without_their_variance(right):
    def scatter(lik, d, S, theta, x, R, j):
        if not np.isnan(x).any() or np.isnan(x).all():
            return right(lik, d, S, theta, x, R, j)
        scratch = np.zeros_like(S)
        bound = right(lik, d, scratch, theta, x, R, j)
        n, p = scratch[0], len(x)
        S[: 1 + p] += scratch[: 1 + p]
        for e, (a, b) in enumerate(zip(*np.tril_indices(p), strict=True)):
            S[1 + p + e] += scratch[1 + a] * scratch[1 + b] / n
        return bound

    return scatter


def hidden_coordinates_not_renormalized(right):
    def score(lik, d, c, x, K, out):
        indices, counts = x
        keep = ~np.isnan(counts)
        right(lik, d, c, (indices[keep], counts[keep]), K, out)

    return score


def interval_without_its_upper_end(right):
    def project(lik, d, theta, x, L, j):
        right(lik, d, theta, (x[0], math.inf, x[2]), L, j)

    return project


def level_at_its_middle(right):
    """The density in the middle of the interval times its width, in place of the integral."""

    def score(lik, d, c, x, K, out):
        lo, hi, z = x
        if math.isnan(z) and math.isfinite(lo) and math.isfinite(hi):
            right(lik, d, c, (lo, hi, 0.5 * (lo + hi)), K, out)
            out[:K] += math.log(hi - lo)
        else:
            right(lik, d, c, x, K, out)

    return score


def latent_variables_without_their_variance(right):
    def scatter(lik, d, S, theta, x, R, j):
        scratch = np.zeros_like(S)
        bound = right(lik, d, scratch, theta, x, R, j)
        if math.isnan(x[2]) and scratch[0].any():
            scratch[2] = scratch[1] ** 2 / scratch[0]
        S += scratch
        return bound

    return scatter


def level_above(right):
    def datum(lik, data, i, d):
        lo, hi, z = right(lik, data, i, d)
        return (lo, hi, z) if math.isnan(z) else (lo, hi, z + 0.1)

    return datum


def expect_without_digamma(right):
    def expect(lik, S):
        zeros, ones = S[0::2] + lik.b[:, None], S[1::2] + lik.a[:, None]
        parts = [np.log(zeros / (zeros + ones)), np.log(ones / (zeros + ones))]
        return np.stack(parts, axis=1).reshape(-1, S.shape[1])

    return expect


def log_prior_missing(right):
    return lambda lik, theta: np.zeros(theta.shape[1])


def draw_from_too_many_degrees_of_freedom(right):
    return lambda lik, S, rng: right(lik._replace(nu=lik.nu + 1), S, rng)


def mode_is_the_mean(right):
    def mode(lik, S):
        rate = (lik.a[:, None] + S[0::2]) / (lik.b[:, None] + S[1::2])
        return np.stack([np.log(rate), -rate], axis=1).reshape(-1, S.shape[1])

    return mode


def simulated_with_precision_for_variance(right):
    def simulate(lik, theta, z, rng):
        tau = -2 * theta[2::3, z]
        return (theta[1::3, z] / tau + rng.standard_normal(tau.shape) * np.sqrt(tau)).T

    return simulate


def curvature_of_the_marginal(right):
    def curvature(lik, d, s, v, x):
        return 1.1 * right(lik, d, s, v, x)

    return curvature


def own_with_itself_in(right):
    def score_own(lik, d, s, c, k, x, acc):
        if x >= 0:
            acc[0] *= lik.alpha[d] + s[1 + x]
            acc[1] *= lik.alpha[d] * (len(s) - 1) + s[0] - 1.0

    return score_own


def direction_of_the_prior_forgotten(right):
    def log_marginal(lik, d, s):
        return right(lik._replace(mean=0.0 * lik.mean), d, s)

    return log_marginal


def length_without_the_new_vector(right):
    def score(lik, d, c, x, K, out):
        right(lik._replace(concentration=0.9 * lik.concentration), d, c, x, K, out)

    return score


def expect_is_the_mode(right):
    return lambda lik, S: family.mode(lik, S)


def drawn_twice_as_concentrated(right):
    return lambda lik, S, rng: right(lik, 2.0 * S, rng)


def simulated_half_as_concentrated(right):
    return lambda lik, theta, z, rng: right(
        lik._replace(concentration=0.5 * lik.concentration), theta, z, rng
    )


BUGS = [  # (family, what is broken, how, whether the data have holes, equation that catches it)
    (Categorical, "log_marginal", wrong_dirichlet_constant, False, "log_marginal"),
    (GaussianFull, "score", missing_half_log_determinant, False, "log_marginal"),
    (Categorical, "observe", off_by_one_level, False, "log p"),
    (GaussianDiagonal, "observe", weight_ignored, False, r"observe\(x, 2\)"),
    (Categorical, "touch", stale_total, False, "log p"),
    (Multinomial, "touch", stale_total, False, "log p"),
    (Multinomial, "ready", ready_forgets, False, "ready"),
    (Categorical, "score", missing_normalizer, False, "log p"),
    (Poisson, "score", missing_factorial, False, "log p"),
    (Poisson, "observe", missing_factorial_everywhere, False, "log p|= 1"),
    (GaussianDiagonal, "scatter", scatter_counts_missing_cells, True, "scatter"),
    (GaussianDiagonal, "project", projected_twice, False, "<theta, t"),
    (GaussianFull, "scatter", hidden_entropy_of_the_wrong_sign, True, "log Z"),
    (Multinomial, "scatter", hidden_entropy_of_the_wrong_sign, True, "log Z"),
    (GaussianFull, "scatter", hidden_coordinates_without_their_variance, True, r"E\[t"),
    (Multinomial, "score", hidden_coordinates_not_renormalized, True, "hidden coordinates of p"),
    (Ordinal, "scatter", hidden_entropy_of_the_wrong_sign, True, "log Z"),
    (Ordinal, "scatter", latent_variables_without_their_variance, True, r"E\[t"),
    (Ordinal, "project", interval_without_its_upper_end, True, "hidden coordinates of exp"),
    (Ordinal, "score", level_at_its_middle, True, "hidden coordinates of p"),
    (Ordinal, "datum", level_above, False, "simulated"),
    (Bernoulli, "expect", expect_without_digamma, False, "mean of draw"),
    (Bernoulli, "log_prior", log_prior_missing, False, "log_prior"),
    (GaussianFull, "draw", draw_from_too_many_degrees_of_freedom, False, "draw"),
    (Exponential, "mode", mode_is_the_mean, False, "mode"),
    (GaussianDiagonal, "simulate", simulated_with_precision_for_variance, False, "simulated"),
    (GaussianDiagonal, "curvature", curvature_of_the_marginal, False, "curvature"),
    (Categorical, "score_own", own_with_itself_in, False, "score_own"),
    (VonMisesFisher, "log_marginal", direction_of_the_prior_forgotten, False, "log_marginal|log p"),
    (VonMisesFisher, "score", length_without_the_new_vector, False, "log_marginal|log p"),
    (VonMisesFisher, "expect", expect_is_the_mode, False, "mean of draw"),
    (VonMisesFisher, "draw", drawn_twice_as_concentrated, False, "draw"),
    (VonMisesFisher, "simulate", simulated_half_as_concentrated, False, "simulated"),
]


@pytest.fixture
def plant():
    """A subclass of a family with one function broken; afterwards the tables forget it."""
    planted = []

    def make(base, name, bug):
        broken = type(f"Broken{base.__name__}", (base,), {})
        function = getattr(family, name)
        function.register(broken)(bug(function.dispatch(base)))
        if name in ("mode", "log_prior"):  # keep the priors that these are asked about in the broken class
            for other in (family.flat, family.interior):
                right = other.dispatch(base)
                other.register(broken)(lambda lik, right=right: broken(*right(lik)))
        planted.append((function, broken))
        return broken

    yield make
    for function, broken in planted:
        if hasattr(function, "table"):
            function.table.pop(broken)


@pytest.mark.parametrize(
    ("base", "name", "bug", "holes", "equation"),
    BUGS,
    ids=[f"{base.__name__}-{name}-{bug.__name__}" for base, name, bug, _, _ in BUGS],
)
def test_planted_bug_is_caught(base, name, bug, holes, equation, plant, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    lik, data = FAMILIES[NAMES[base]].examples(rng)[0]
    data = with_missing_cells(data, 0.2, rng) if holes else data
    skip = ("curvature",) if base is GaussianFull else ()
    check_family(lik, data, rng, skip=skip)  # the right one passes
    broken = plant(base, name, bug)
    with pytest.raises(LawViolation, match=equation) as caught:
        check_family(broken(*lik), data, rng, skip=skip)
    assert f"Broken{base.__name__} breaks" in str(caught.value)


def test_planted_bugs_leave_nothing_behind(plant, global_random_seed):
    lik, data = FAMILIES["categorical"].examples(np.random.default_rng(global_random_seed))[0]
    with interpreted():
        before = log_marginals(lik, np.ones((13, 1)))
        plant(Categorical, "log_marginal", wrong_dirichlet_constant)
        np.testing.assert_array_equal(log_marginals(lik, np.ones((13, 1))), before)
    assert grid(lik, 0).nodes.shape == (2, 3)
