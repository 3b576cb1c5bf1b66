"""Learning concentration and discount: updates leave the posterior invariant, fits never get worse."""

import numpy as np
import pytest

from partita.dispatch import lacks
from partita.partitions import (
    Beta,
    DirichletProcess,
    Gamma,
    PitmanYor,
    bind,
    fit_hyper,
    log_eppf,
    log_labeled,
    sample_hyper,
    slice_sample,
    specify,
    with_concentration,
)

SIZES = np.array([7.0, 1.0, 4.0, 2.0])
N_UPDATES = 3000


def objective(prior, n):
    if not lacks(type(prior), log_labeled):
        return log_labeled(prior, n)
    return log_eppf(prior, n, len(n))


def concentration_of(prior):
    return prior[0]


def sizes_for(prior):
    return SIZES[: getattr(prior, "n_components", 4)]


def effective_error(chain, n_batches=30):
    """Standard error of the mean of a correlated chain, from batch means."""
    batches = np.array_split(chain, n_batches)
    return np.std([b.mean() for b in batches], ddof=1) / np.sqrt(n_batches)


def assert_chain_agrees(chain, grid, log_density):
    """Mean and three quantile levels of a chain against a density on a grid, within 5.5 of its own errors."""
    p = np.exp(log_density - log_density.max())
    p /= p.sum()
    assert abs(chain.mean() - p @ grid) < 5.5 * effective_error(chain)
    for level in (0.1, 0.5, 0.9):
        cut = grid[np.searchsorted(np.cumsum(p), level)]
        below = (chain <= cut).astype(float)
        assert abs(below.mean() - p[grid <= cut].sum()) < 5.5 * effective_error(below) + 1e-3


def test_updates_leave_the_posterior_of_the_concentration_invariant(prior, rng):
    if isinstance(prior, PitmanYor):
        pytest.skip("two parameters: tested on a grid of both below")
    n, hyperprior = sizes_for(prior), Gamma(1.5, 0.8)
    chain = np.empty(N_UPDATES)
    for i in range(N_UPDATES):
        prior = sample_hyper(prior, n, rng, hyperprior)
        chain[i] = np.log(concentration_of(prior))
    grid = np.linspace(np.log(1e-5), np.log(60.0), 1200)
    log_density = [
        objective(with_concentration(prior, np.exp(x)), n) + hyperprior.log_density(np.exp(x)) + x
        for x in grid
    ]
    assert_chain_agrees(chain, grid, np.array(log_density))


@pytest.mark.parametrize("n", [[1.0], [1.0, 2.0]])
def test_escobar_and_west_on_few_objects(rng, n):
    """Few objects, so that the weights of the two gammas matter; long chains, because an update is cheap."""
    n, hyperprior = np.array(n), Gamma(0.6, 0.8)
    prior, chain = DirichletProcess(1.0), np.empty(40_000)
    for i in range(len(chain)):
        prior = sample_hyper(prior, n, rng, hyperprior)
        chain[i] = np.log(prior.concentration)
    grid = np.linspace(-40.0, np.log(60.0), 4000)
    log_density = [
        log_eppf(DirichletProcess(np.exp(x)), n, len(n)) + hyperprior.log_density(np.exp(x)) + x for x in grid
    ]
    assert_chain_agrees(chain, grid, np.array(log_density))


def test_updates_leave_the_posterior_of_both_pitman_yor_parameters_invariant(rng):
    hyperprior, on_discount = Gamma(1.5, 0.8), Beta(2.0, 1.5)
    prior = PitmanYor(1.0, 0.3)
    chain = np.empty((N_UPDATES, 2))
    for i in range(N_UPDATES):
        prior = sample_hyper(prior, SIZES, rng, hyperprior, on_discount)
        chain[i] = np.log(prior.concentration), prior.discount
    log_alpha, sigma = np.linspace(np.log(1e-5), np.log(60.0), 150), (np.arange(150) + 0.5) / 150
    log_density = np.array(
        [
            [
                log_eppf(PitmanYor(np.exp(x), s), SIZES, 4)
                + hyperprior.log_density(np.exp(x))
                + x
                + on_discount.log_density(s)
                for s in sigma
            ]
            for x in log_alpha
        ]
    )
    log_density -= log_density.max()
    assert_chain_agrees(chain[:, 0], log_alpha, np.log(np.exp(log_density).sum(axis=1)))
    assert_chain_agrees(chain[:, 1], sigma, np.log(np.exp(log_density).sum(axis=0)))


def test_without_objects_the_concentration_follows_its_hyperprior(rng):
    prior, chain = DirichletProcess(1.0), []
    for _ in range(2000):
        prior = sample_hyper(prior, np.zeros(3), rng, Gamma(2.0, 0.5))
        chain.append(prior.concentration)
    assert abs(np.mean(chain) - 4.0) < 5 * np.sqrt(8.0 / 2000)


@pytest.mark.parametrize("width", [0.2, 1.3, 20.0])
def test_slice_sampler_on_two_hills(rng, width):
    def log_density(x):
        return float(np.logaddexp(-0.5 * (x / 0.2) ** 2, np.log(0.6) - 0.5 * ((x - 1.5) / 0.6) ** 2))

    chain, x = np.empty(15_000), 0.0
    for i in range(len(chain)):
        chain[i] = x = slice_sample(log_density, x, rng, width=width)
    grid = np.linspace(-4, 6, 2000)
    assert_chain_agrees(chain, grid, np.array([log_density(x) for x in grid]))


def test_slice_sampler_crosses_a_gap_both_ways_alike(rng):
    """Two boxes: an interval that is not placed at random crosses more easily one way than the other."""

    def log_density(x):
        return 0.0 if 0.0 < x < 1.0 or 1.7 < x < 2.0 else -np.inf

    chain, x = np.empty(15_000), 0.5
    for i in range(len(chain)):
        chain[i] = x = slice_sample(log_density, x, rng, width=1.5)
    grid = np.linspace(-0.5, 2.5, 3001)
    assert_chain_agrees(chain, grid, np.array([log_density(x) for x in grid]))


# ---- empirical Bayes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n", [[7.0, 1.0, 4.0, 2.0], [14.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [5.5, 0.5, 2.25, 0.0]]
)
def test_fit_never_lowers_and_matches_a_grid(prior, n):
    n = np.array(n)[: getattr(prior, "n_components", 4)]
    if lacks(type(prior), log_labeled):
        n = np.ceil(n[n > 0])
    fitted = fit_hyper(prior, n)
    assert objective(fitted, n) >= objective(prior, n)
    fractions = np.linspace(0, 0.99, 34) if isinstance(prior, PitmanYor) else [None]
    best = -np.inf
    for alpha in np.geomspace(1e-3, 1e3, 200):
        for sigma in fractions:
            candidate = with_concentration(prior, alpha)
            if sigma is not None:
                candidate = candidate._replace(discount=sigma)
            best = max(best, objective(candidate, n))
    assert objective(fitted, n) >= best - 1e-9
    assert (
        objective(fitted, n) <= best + 0.01
    )  # the grid is fine enough that nothing hides between its points
    again = fit_hyper(fitted, n)
    assert objective(again, n) == pytest.approx(objective(fitted, n), abs=1e-8)


def test_fit_stays_in_its_box_and_keeps_a_better_start_outside():
    assert fit_hyper(DirichletProcess(1.0), np.array([9.0])).concentration == 1e-3
    assert fit_hyper(DirichletProcess(1.0), np.ones(9)).concentration == 1e3
    assert fit_hyper(DirichletProcess(1e5), np.ones(9)).concentration == 1e5


def test_a_bound_prior_comes_back_bound(rng):
    prior = bind(specify("mfm", max_components=30), 14)
    for learned in (fit_hyper(prior, SIZES), sample_hyper(prior, SIZES, rng)):
        assert learned.total == 14.0
        np.testing.assert_allclose(learned.log_V, bind(with_concentration(prior, learned.gamma), 14).log_V)


def test_a_tiny_concentration_is_updated_from_where_it_is(global_random_seed):
    """A start moved to a floor would not leave the posterior invariant; only one outside the support is moved."""
    n = np.array([3.0, 1.0])
    tiny, floor = (
        sample_hyper(PitmanYor(alpha, 0.3), n, np.random.default_rng(global_random_seed)).concentration
        for alpha in (1e-5, 1e-3)
    )
    assert tiny != floor
    assert (
        sample_hyper(PitmanYor(-0.2, 0.3), n, np.random.default_rng(global_random_seed)).concentration
        == floor
    )
