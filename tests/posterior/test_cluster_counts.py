import numpy as np
import pytest

from partita.labels import set_partitions
from partita.partitions import (
    DirichletProcess,
    MixtureOfFinite,
    PitmanYor,
    StickBreaking,
    bind,
    log_eppf,
    n_clusters_prior,
    simulate,
    specify,
    with_concentration,
)
from partita.posterior import ClusterCounts, concentration_sensitivity, credible_set, n_clusters_posterior


def test_posterior_beside_prior():
    draws = [[0, 0, 1, 2], [0, 0, 1, 1], [5, 5, 5, 5], [0, 1, 0, 1]]
    found = n_clusters_posterior(draws, DirichletProcess(2.0), weights=[1, 1, 1, 5])
    assert found.posterior.tolist() == [0.125, 0.75, 0.125, 0.0]
    assert np.allclose(found.prior, n_clusters_prior(DirichletProcess(2.0), 4)[1:])
    alone = n_clusters_posterior(draws)
    assert alone.n_clusters.tolist() == [1, 2, 3] and np.isnan(alone.prior).all()


def test_the_prior_is_the_share_of_its_own_draws(global_random_seed):
    """4000 draws of a prior: chi-square of 6 to 8 cells, false alarm rate 1e-4."""
    from scipy.stats import chisquare

    rng = np.random.default_rng(global_random_seed)
    prior = PitmanYor(1.0, 0.3)
    found = n_clusters_posterior([simulate(prior, 12, rng) for _ in range(4000)], prior)
    seen, wanted = found.posterior * 4000, found.prior * 4000
    body = wanted >= 20
    seen, wanted = (
        np.append(seen[body], seen[~body].sum()),
        np.append(wanted[body], 4000 - wanted[body].sum()),
    )
    assert chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-4


def test_the_credible_set_is_the_smallest():
    p = {1: 0.1, 2: 0.2, 3: 0.4, 4: 0.2, 5: 0.1}
    assert credible_set(p, 0.5).n_clusters == (3, 2)
    assert credible_set(p, 0.8) == ((3, 2, 4), pytest.approx(0.8))
    assert credible_set(p, 1.0).mass == pytest.approx(1.0)
    counts = ClusterCounts(np.array([1, 2]), np.array([0.3, 0.7]), np.array([0.5, 0.5]))
    assert credible_set(counts, 0.6).n_clusters == (2,)
    with pytest.raises(ValueError, match="level"):
        credible_set(p, 0.0)


def exact_P_K(prior, log_lik, N):
    """P(K) by enumeration; the likelihood is a table over partitions."""
    zs = np.array(list(set_partitions(N)))
    sizes = [np.bincount(z).astype(float) for z in zs]
    prior = bind(prior, N)
    log_p = np.array([log_eppf(prior, n, len(n)) for n in sizes]) + log_lik
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return zs, p, np.bincount(zs.max(axis=1) + 1, weights=p, minlength=N + 1)[1:]


@pytest.mark.parametrize(
    "prior", [DirichletProcess(1.0), PitmanYor(0.8, 0.2), specify("mfm"), specify("finite", n_components=5)]
)
def test_reweighted_draws_have_the_posterior_of_the_other_concentration(prior, global_random_seed):
    """2000 draws of the exact posterior. Each entry of P(K) within 5 standard errors of its weighted mean."""
    rng = np.random.default_rng(global_random_seed)
    N, B = 6, 2000
    log_lik = rng.normal(size=203)
    zs, p, _ = exact_P_K(prior, log_lik, N)
    draws = zs[rng.choice(len(zs), size=B, p=p)]
    found = concentration_sensitivity(draws, prior, [0.5, 1.7])
    assert not found.refused.any()
    for concentration, row, ess in zip(found.concentrations, found.posterior, found.ess, strict=True):
        _, _, wanted = exact_P_K(with_concentration(prior, concentration), log_lik, N)
        assert np.abs(row - wanted[: len(row)]).max() < 5 * np.sqrt(0.25 / ess)


def test_draws_with_a_learned_concentration_are_divided_by_their_own(global_random_seed):
    """Draws from z and concentration jointly: the same answer as fixed, 5 standard errors."""
    rng = np.random.default_rng(global_random_seed)
    N, B = 6, 4000
    log_lik = rng.normal(size=203)
    grid = rng.gamma(2.0, 0.5, size=20)  # a prior with 20 atoms
    tables = [exact_P_K(DirichletProcess(alpha), log_lik, N) for alpha in grid]
    zs = tables[0][0]
    sizes = [np.bincount(z).astype(float) for z in zs]
    joint = np.array(
        [[np.exp(log_eppf(DirichletProcess(a), n, len(n)) + l) for n, l in zip(sizes, log_lik)] for a in grid]
    )
    flat = rng.choice(joint.size, size=B, p=(joint / joint.sum()).ravel())
    which, row = np.unravel_index(flat, joint.shape)
    found = concentration_sensitivity(
        zs[row],
        DirichletProcess(1.0),
        [1.2],
        drawn_concentration=grid[which],
        drawn_discount=np.full(B, np.nan),
    )
    _, _, wanted = exact_P_K(DirichletProcess(1.2), log_lik, N)
    assert np.abs(found.posterior[0] - wanted[: found.posterior.shape[1]]).max() < 5 * np.sqrt(
        0.25 / found.ess[0]
    )


def test_a_far_concentration_is_refused_with_its_effective_sample_size(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    draws = [simulate(DirichletProcess(1.0), 40, rng) for _ in range(500)]
    found = concentration_sensitivity(draws, DirichletProcess(1.0), [1.0, 1000.0])
    assert found.refused.tolist() == [False, True]
    assert found.ess[0] == pytest.approx(500) and found.ess[1] < 100
    assert np.isnan(found.posterior[1]).all() and not np.isnan(found.posterior[0]).any()
    assert "Refused at concentration 1e+03" in found.sentence and "E[K]" in found.sentence


def test_priors_and_arguments_that_do_not_fit():
    with pytest.raises(TypeError, match="StickBreaking gives no probability to partitions"):
        concentration_sensitivity([[0, 1]], StickBreaking(1.0, 3))
    with pytest.raises(ValueError, match="there are 1 draws"):
        concentration_sensitivity([[0, 1]], DirichletProcess(1.0), drawn_concentration=[1.0, 2.0])
    assert isinstance(specify("mfm"), MixtureOfFinite)
