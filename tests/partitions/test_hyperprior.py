"""The prior of the number of clusters where the concentration is learned: simulation, limits, other hyperpriors."""

import math

import numpy as np
import pytest
from scipy.special import exp1

from partita.partitions import (
    Beta,
    DirichletProcess,
    FiniteDirichlet,
    Gamma,
    IndianBuffet,
    PitmanYor,
    StickBreaking,
    marginal_n_clusters_prior,
    n_clusters_prior,
    simulate,
    specify,
    with_parameters,
)
from partita.partitions.gibbs_type import log_stirling, n_occupied
from partita.partitions.hyperprior import occupied_by_node
from partita.testing import FALSE_ALARM, chi_square

PRIORS = {
    "DP": DirichletProcess(7.0),  # a learned value, which must not matter
    "Pitman-Yor": PitmanYor(7.0, 0.9),
    "MFM": specify("mfm", gamma=7.0),
    "finite": FiniteDirichlet(7.0, 5),
    "stick-breaking": StickBreaking(7.0, 5),
}
BY_DRAWS = (PitmanYor, StickBreaking)
N_SIMULATED = 4000


def simulated_counts(prior, N, hyperprior, discount_hyperprior, rng):
    """How often each number of clusters occurs if the hyper-parameters are drawn first."""
    K = []
    for _ in range(N_SIMULATED):
        concentration = rng.gamma(hyperprior.shape) / hyperprior.rate
        discount = rng.beta(*discount_hyperprior) if isinstance(prior, PitmanYor) else math.nan
        drawn = with_parameters(prior, max(concentration, 1e-300), discount)
        K.append(len(np.unique(simulate(drawn, N, rng))))
    return np.bincount(K)


@pytest.mark.parametrize("learned", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize(
    "hyper", [(Gamma(), Beta()), (Gamma(3.0, 2.0), Beta(2.0, 3.0))], ids=["unit", "other"]
)
def test_prior_of_k_is_that_of_simulation(learned, hyper, rng):
    N = 25
    p = marginal_n_clusters_prior(learned, N, hyperprior=hyper[0], discount_hyperprior=hyper[1])
    assert p.sum() == pytest.approx(1.0) and p[0] == 0.0
    counts = simulated_counts(learned, N, *hyper, rng)
    p = np.pad(p, (0, N + 1 - len(p)))
    effective = None
    if isinstance(learned, BY_DRAWS):  # the probabilities are shares of draws themselves
        p, effective = (p + 1e-7) / (p + 1e-7).sum(), 0.9 * N_SIMULATED
    assert chi_square(np.pad(counts, (0, N + 1 - len(counts))), p, effective) > FALSE_ALARM


def test_two_objects_have_a_closed_form():
    """The second object opens a cluster with probability alpha / (1 + alpha), alpha ~ Exp(1): 1 - e E1(1)."""
    p = marginal_n_clusters_prior(DirichletProcess(), 2)
    assert p[2] == pytest.approx(1.0 - math.e * exp1(1.0), abs=1e-7)


@pytest.mark.parametrize("learned", PRIORS.values(), ids=PRIORS)
def test_learned_values_do_not_matter_and_a_limit_cuts(learned):
    p = marginal_n_clusters_prior(learned, 30)
    other = with_parameters(learned, 0.3, 0.1 if isinstance(learned, PitmanYor) else math.nan)
    np.testing.assert_array_equal(marginal_n_clusters_prior(other, 30), p)
    cut = marginal_n_clusters_prior(learned, 30, max_clusters=3)
    np.testing.assert_allclose(cut, p[:4] / p[:4].sum())


def test_a_prior_without_concentration_is_refused():
    with pytest.raises(TypeError, match="IndianBuffet has no hyperprior of its concentration"):
        marginal_n_clusters_prior(IndianBuffet(1.0, 1.0), 5)


def test_several_concentrations_at_once_are_one_at_a_time():
    alpha, sigma = np.array([0.2, 1.0, 8.0]), np.array([0.0, 0.4, -2.0])
    found = occupied_by_node(alpha, sigma, 40)
    for row, a, s in zip(found, alpha, sigma, strict=True):
        expected = n_occupied(a, s, 40)
        np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-14)
    together = log_stirling(np.array([0.3, -1.5]), 12, 6)
    np.testing.assert_allclose(together[1], log_stirling(-1.5, 12, 6), rtol=1e-12)


def test_parameters_of_a_draw():
    assert with_parameters(PitmanYor(), 2.0, 0.5) == PitmanYor(2.0, 0.5)
    assert with_parameters(DirichletProcess(), 2.0) == DirichletProcess(2.0)
    assert with_parameters(DirichletProcess(3.0), math.nan) == DirichletProcess(3.0)
    assert n_clusters_prior(with_parameters(FiniteDirichlet(1.0, 2), 4.0), 3)[2] == pytest.approx(0.6)
