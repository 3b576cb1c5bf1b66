"""The prior of chains by default: a mixture of finite mixtures whose Dirichlet parameter is held."""

import math

import numpy as np
import pytest

from partita import Mixture
from partita.fitting.chains import AUTO_GAMMA
from partita.partitions import marginal_n_clusters_prior, n_clusters_prior

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")

QUICK = {"n_chains": 2, "n_draws": 10, "burn_in": 5}


def test_the_concentration_is_held_unless_a_prior_is_named(rng, global_random_seed):
    X = rng.normal(size=(40, 2))
    default, named, given = (
        Mixture(random_state=global_random_seed, **options, **QUICK).fit(X)
        for options in ({}, {"prior": "mfm"}, {"concentration": 0.7})
    )
    assert set(default.trace_.concentration) == {AUTO_GAMMA} and default.prior_.gamma == AUTO_GAMMA
    assert len(set(named.trace_.concentration)) > 5
    assert set(given.trace_.concentration) == {0.7}
    expected = n_clusters_prior(default.prior_, 40), marginal_n_clusters_prior(named.prior_, 40)
    for model, p in zip((default, named), expected, strict=True):
        assert model.n_clusters_prior_[3] == pytest.approx(p[3])


def partition_sizes(N, largest=None):
    """All ways to write N as a sum of sizes, in decreasing order."""
    if N == 0:
        yield ()
    for size in range(min(N, largest or N), 0, -1):
        for rest in partition_sizes(N - size, size):
            yield (size, *rest)


def probability_of_k(N, gamma):
    """P(K) by the definition: M is geometric, M weights are Dirichlet(gamma), and every partition of N is summed."""
    p = np.zeros(N + 1)
    for sizes in partition_sizes(N):
        K, n_equal = len(sizes), np.bincount(sizes)
        n_partitions = math.factorial(N) / math.prod(map(math.factorial, sizes))
        n_partitions /= math.prod(map(math.factorial, n_equal))
        given = sum(
            0.5**M
            * math.perm(M, K)
            * math.exp(math.lgamma(M * gamma) - math.lgamma(M * gamma + N))
            * math.prod(math.exp(math.lgamma(gamma + n) - math.lgamma(gamma)) for n in sizes)
            for M in range(K, 120)
        )
        p[K] += n_partitions * given
    return p


@pytest.mark.parametrize("limit", [None, 3])
def test_the_shown_prior_is_that_of_the_held_parameter(limit, rng, global_random_seed):
    model = Mixture("gaussian", max_clusters=limit, random_state=global_random_seed, **QUICK)
    model.fit(rng.normal(size=(7, 1)))
    expected = probability_of_k(7, 3.0)
    assert expected.sum() == pytest.approx(1.0)
    expected = expected[: (limit or 7) + 1]
    shown = [model.n_clusters_prior_.get(K, 0.0) for K in range(len(expected))]
    np.testing.assert_allclose(shown, expected / expected.sum(), atol=1e-10)


def test_variational_bayes_learns_its_own(rng):
    assert Mixture(inference="vb", random_state=0).fit(rng.normal(size=(60, 2))).prior_.concentration != 1.0


@pytest.mark.slow
def test_few_scattered_rows_are_no_group(rng):
    """One heavy-tailed group: a learned concentration makes clusters of its outer rows.

    Over ten tables the difference of the means was 0.50, with a standard deviation of 0.39: the sum over six tables is
    below 0 about once in a thousand runs.
    """
    mean = np.zeros(2)
    for _ in range(6):
        X = rng.standard_t(4, size=(300, 2))
        for i, prior in enumerate(("auto", "mfm")):
            model = Mixture("gaussian_full", prior, random_state=0, n_draws=60, burn_in=60).fit(X)
            mean[i] += sum(K * p for K, p in model.n_clusters_posterior_.items())
    assert mean[0] < mean[1]
