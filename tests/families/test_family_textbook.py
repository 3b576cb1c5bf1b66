"""Each family against textbook formulas: estimates, prior densities, posterior summaries, hyper-parameters."""

import numpy as np
import pytest
from scipy import stats

from partita.engines.climb.vb import learn_hyper
from partita.families import FAMILIES, CountVectors, GaussianFull, Multinomial, VonMisesFisher
from partita.families.contract import (
    curvature,
    draw,
    expect,
    flat,
    interior,
    log_prior,
    mode,
    n_parameters,
    observe,
    refresh,
    scatter,
    simulate,
    spread,
    summarize,
    touch,
)
from partita.families.rows import log_marginals, project_rows, scatter_rows
from partita.testing import n_rows, row_statistics, take, with_missing_cells


def example(name, j=0, seed=3):
    return FAMILIES[name].examples(np.random.default_rng(seed))[j]


def statistics(lik, data):
    return sum(row_statistics(lik, data, i) for i in range(n_rows(data)))[:, None]


pytestmark = pytest.mark.usefixtures("uncompiled")


# ---- maximum likelihood ------------------------------------------------------------------------------------


def test_categorical_maximum_likelihood_is_the_frequency(global_random_seed):
    lik, X = example("categorical", seed=global_random_seed)
    theta = mode(flat(lik), statistics(lik, X))[:, 0]
    for d, lo in enumerate(lik.offsets[:-1]):
        V = lik.n_levels[d]
        np.testing.assert_allclose(np.exp(theta[lo + 1 : lo + 1 + V]), np.bincount(X[:, d], minlength=V) / 8)


def test_bernoulli_maximum_likelihood_is_the_frequency(global_random_seed):
    lik, X = example("bernoulli", seed=global_random_seed)
    theta = mode(flat(lik), statistics(lik, X))[:, 0]
    np.testing.assert_allclose(np.exp(theta[1::2]), X.mean(axis=0))


def test_poisson_maximum_likelihood_is_events_over_exposure(global_random_seed):
    lik, data = example("poisson", seed=global_random_seed)
    theta = mode(flat(lik), statistics(lik, data))[:, 0]
    np.testing.assert_allclose(-theta[0::3], data.X.sum(axis=0) / data.exposure.sum())


def test_exponential_maximum_likelihood_is_one_over_the_mean(global_random_seed):
    lik, X = example("exponential", seed=global_random_seed)
    np.testing.assert_allclose(-mode(flat(lik), statistics(lik, X))[1::2, 0], 1 / X.mean(axis=0))


def test_diagonal_gaussian_maximum_likelihood_is_mean_and_variance(global_random_seed):
    lik, X = example("gaussian", seed=global_random_seed)
    theta = mode(flat(lik), statistics(lik, X))[:, 0]
    tau = -2 * theta[2::3]
    np.testing.assert_allclose(1 / tau, X.var(axis=0))
    np.testing.assert_allclose(theta[1::3] / tau, X.mean(axis=0))


@pytest.mark.parametrize("j", [0, 1])
def test_full_gaussian_maximum_likelihood_is_mean_and_covariance(j, global_random_seed):
    lik, X = example("gaussian_full", j, seed=global_random_seed)
    theta = mode(flat(lik), statistics(lik, X))
    L = np.zeros((len(X), 1))
    project_rows(lik, X, np.arange(len(X)), theta, L)
    right = stats.multivariate_normal.logpdf(X, X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(L[:, 0], right)


def test_multinomial_maximum_likelihood_is_the_share_of_the_counts(global_random_seed):
    lik, data = example("multinomial", seed=global_random_seed)
    S = statistics(lik, data)
    np.testing.assert_allclose(np.exp(mode(flat(lik), S)[2:, 0]), S[2:, 0] / S[0, 0])


# ---- prior densities, constants and all --------------------------------------------------------------------


def prior_density(name, lik, theta):
    """The prior density of the usual parameters: probabilities, rates, (mean, variance), (mean, covariance)."""
    if name == "bernoulli":
        return stats.beta.logpdf(np.exp(theta[1::2]), lik.a, lik.b).sum()
    if name == "categorical":
        spans = zip(lik.offsets[:-1], lik.offsets[1:], lik.alpha, strict=True)
        return sum(
            stats.dirichlet.logpdf(np.exp(theta[lo + 1 : hi]), np.full(hi - lo - 1, a)) for lo, hi, a in spans
        )
    if name == "multinomial":
        return stats.dirichlet.logpdf(np.exp(theta[2:]), lik.alpha)
    if name in ("poisson", "exponential"):
        rate = -theta[0::3] if name == "poisson" else -theta[1::2]
        return stats.gamma.logpdf(rate, lik.a, scale=1 / lik.b).sum()
    if name in ("gaussian", "ordinal"):
        variance = -0.5 / theta[2::3]
        mean = theta[1::3] * variance
        density = stats.invgamma.logpdf(variance, lik.a, scale=lik.b)
        return (density + stats.norm.logpdf(mean, lik.m, np.sqrt(variance / lik.k))).sum()
    if name == "vonmises_fisher":
        direction = theta[1:] / np.linalg.norm(theta[1:])
        return stats.vonmises_fisher.logpdf(direction, lik.mean, lik.prior_concentration)
    p = len(lik.m)
    P = np.zeros((p, p))
    P[np.tril_indices(p)] = -theta[1 + p :]
    cov = np.linalg.inv(P + P.T)
    mean = cov @ theta[1 : 1 + p]
    density = stats.invwishart.logpdf(cov, lik.nu, lik.Psi)
    return density + stats.multivariate_normal.logpdf(mean, lik.m, cov / lik.kappa)


@pytest.mark.parametrize("name", FAMILIES)
def test_log_prior_is_the_density_of_the_textbook(name, rng):
    for lik, data in FAMILIES[name].examples(rng):
        theta = draw(lik, np.repeat(statistics(lik, data), 3, axis=1), rng)
        right = [prior_density(name, lik, theta[:, k]) for k in range(3)]
        np.testing.assert_allclose(log_prior(lik, theta), right, rtol=1e-8)


# ---- missing and hidden ------------------------------------------------------------------------------------


def test_missing_objects_say_nothing(example, global_random_seed):
    lik, data = example
    nothing = with_missing_cells(data, 1.0, np.random.default_rng(global_random_seed))
    N = n_rows(nothing)
    S, L = np.zeros((len(statistics(lik, data)), 2)), np.zeros((N, 2))
    theta = expect(lik, S)
    assert scatter_rows(lik, nothing, np.arange(N), theta, np.ones((N, 2)), S) == 0.0
    project_rows(lik, nothing, np.arange(N), theta, L)
    assert not S.any()
    assert not L.any()


def test_hidden_counts_add_to_the_total(rng):
    lik = Multinomial.of(np.array([1.5, 0.7, 2.0]))
    data = CountVectors.from_dense(np.array([[3.0, np.nan, 2.0]]))
    S = np.zeros((5, 2))
    scatter(lik, 0, S, expect(lik, np.zeros((5, 2))), (data.indices, data.counts), np.ones((1, 2)), 0)
    np.testing.assert_allclose(S[0], S[2:].sum(axis=0))
    assert (S[3] > 0).all()


# ---- the full Gaussian -------------------------------------------------------------------------------------


def test_rank_one_updates_hold_over_a_long_walk(rng, global_random_seed):
    """Clusters that shrink to nothing and grow again, far from the origin."""
    lik, _ = example("gaussian_full", 1, seed=global_random_seed)
    X = rng.normal(size=(60, 3)) * [1.0, 5.0, 0.2] + [0.0, 30.0, -4.0]
    s, c, fresh = np.zeros(10), np.zeros((13, 1)), np.zeros((13, 1))
    inside = np.zeros(len(X), bool)
    refresh(lik, 0, s, c, 0)
    for step in range(3000):
        i = rng.integers(len(X)) if (step // 500) % 2 == 0 else rng.choice(np.flatnonzero(inside))
        observe(lik, 0, s, X[i], -1.0 if inside[i] else 1.0)
        inside[i] = not inside[i]
        touch(lik, 0, s, c, 0, X[i])
        if not inside.any():
            break
    refresh(lik, 0, s, fresh, 0)
    np.testing.assert_allclose(c, fresh, rtol=1e-6, atol=1e-7)


def test_curvature_of_the_full_gaussian_is_right_for_gaussian_doubts(rng, global_random_seed):
    """The closure replaces fourth moments by those of a Gaussian: exact in the limit of many Gaussian objects."""
    lik, _ = example("gaussian_full", 0, seed=global_random_seed)
    X = rng.multivariate_normal([0.5, -0.2], [[1.0, 0.6], [0.6, 0.8]], size=3000)
    q, e = 0.01, 1e-2
    T = np.stack([row_statistics(lik, X, i) for i in range(len(X))], axis=1)
    s = T[:, :40].sum(axis=1)
    v = np.zeros(6)
    for x in X:
        spread(lik, 0, v, x, q)
    for x in ([0.0, 0.0], [2.5, -1.0], [-1.0, -2.0]):
        t = np.zeros(6)
        observe(lik, 0, t, np.array(x), 1.0)

        def log_p(S, t=t):
            return log_marginals(lik, S + t[:, None])[0] - log_marginals(lik, S)[0]

        at = s[:, None]
        second = (log_p(at + e * T) - 2 * log_p(at) + log_p(at - e * T)) / e**2
        exact, error = 0.5 * q * second.sum(), 0.5 * q * second.std() * np.sqrt(len(X))
        assert curvature(lik, 0, s.copy(), v, np.array(x)) == pytest.approx(
            exact, abs=5 * error + 0.01 * abs(exact)
        )


# ---- hyper-parameters and summaries ------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_learned_hyper_parameters_never_lower_the_evidence(name, rng, global_random_seed):
    lik, _ = example(name, seed=global_random_seed)
    n_stats = len(statistics(*example(name, seed=global_random_seed)))
    for trial in range(5):
        K = 2 + trial
        theta = draw(lik, np.zeros((n_stats, K)), rng)
        data, z = simulate(lik, theta, np.arange(40) % K, rng), np.arange(40) % K
        S = np.stack([sum(row_statistics(lik, data, i) for i in np.flatnonzero(z == k)) for k in range(K)], 1)
        n = np.bincount(z).astype(float)
        family, before = lik, log_marginals(lik, S).sum()
        for _ in range(4):
            family = learn_hyper(family, S, n)
            after = log_marginals(family, S).sum()
            assert after >= before - 1e-9 * abs(before)
            before = after
        assert type(family) is type(lik)


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"exponential"}))
def test_learning_finds_better_hyper_parameters_than_poor_ones(name, rng, global_random_seed):
    """Not only never worse: from a prior that does not fit, the evidence rises."""
    lik, data = example(name, seed=global_random_seed)
    S = np.repeat(statistics(lik, data), 3, axis=1) * np.array([1.0, 2.0, 3.0])
    poor = lik._replace(**{"alpha": lik.alpha * 20}) if "alpha" in lik._fields else None
    if name == "multinomial":
        poor = Multinomial.of(lik.alpha * 20)
    if name == "bernoulli":
        poor = lik._replace(a=lik.a * 20, b=lik.b)
    if name == "poisson":
        poor = lik._replace(b=lik.b * 100)
    if name in ("gaussian", "ordinal"):
        poor = lik._replace(m=lik.m + 10)
    if name == "vonmises_fisher":
        poor = VonMisesFisher.of(lik.mean, lik.prior_concentration, 20 * lik.concentration)
    if name == "gaussian_full":
        poor = GaussianFull.of(lik.m + 10, lik.kappa, lik.nu, lik.Psi)
    learned = poor
    for _ in range(5):
        learned = learn_hyper(learned, S, np.array([8.0, 16.0, 24.0]))
    assert log_marginals(learned, S).sum() > log_marginals(poor, S).sum() + 0.1


def test_interior_mode_is_inside(example):
    """No natural parameter is infinite under the interior prior, for any data, even for an empty cluster."""
    lik, data = example
    empty = np.zeros_like(statistics(lik, data))
    one = row_statistics(lik, data, 0)[:, None]
    for S in (empty, one, statistics(lik, data)):
        theta = mode(interior(lik), S)
        assert np.isfinite(theta).all()
        assert np.isfinite(log_prior(interior(lik), theta)).all()


@pytest.mark.parametrize("name", ["poisson", "exponential"])
def test_interior_rate_of_a_cluster_without_events_is_not_zero(name, rng, global_random_seed):
    """One event in expectation a priori: the mode under the interior prior is the mean under the plain one."""
    lik, data = example(name, seed=global_random_seed)
    lik = lik._replace(a=np.ones_like(lik.a))
    S = np.zeros_like(statistics(lik, data))
    rate = -mode(interior(lik), S)[(0 if name == "poisson" else 1) :: (3 if name == "poisson" else 2), 0]
    np.testing.assert_allclose(rate, summarize(lik, S)["rates"][0])


PARAMETERS = {  # of draws of the natural parameters, in the order of `summarize`
    "bernoulli": lambda lik, theta: {"probabilities": np.exp(theta[1::2])},
    "categorical": lambda lik, theta: {"probabilities": np.exp(np.delete(theta, lik.offsets[:-1], axis=0))},
    "multinomial": lambda lik, theta: {"probabilities": np.exp(theta[2:])},
    "poisson": lambda lik, theta: {"rates": -theta[0::3]},
    "exponential": lambda lik, theta: {"rates": -theta[1::2]},
    "gaussian": lambda lik, theta: {
        "means": -0.5 * theta[1::3] / theta[2::3],
        "variances": -0.5 / theta[2::3],
    },
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_summaries_are_posterior_means(name, rng, global_random_seed):
    lik, data = example(name, seed=global_random_seed)
    S = statistics(lik, data)
    draws = PARAMETERS[name](lik, draw(lik, np.repeat(S, 20_000, axis=1), rng))
    found = summarize(lik, S)
    assert found.keys() == draws.keys()
    for key, sample in draws.items():
        error = 5 * sample.std(axis=1) / np.sqrt(sample.shape[1])
        assert (np.abs(sample.mean(axis=1) - found[key][0]) <= error).all()


def test_means_and_covariances_are_posterior_means(rng, global_random_seed):
    lik, X = example("gaussian_full", 1, seed=global_random_seed)
    S = statistics(lik, X)
    p, M = 3, 20_000
    draws = draw(lik, np.repeat(S, M, axis=1), rng)
    P = np.zeros((M, p, p))
    rows, columns = np.tril_indices(p)
    P[:, rows, columns] = -draws[1 + p :].T
    cov = np.linalg.inv(P + P.transpose(0, 2, 1))
    mean = np.einsum("kab,kb->ka", cov, draws[1 : 1 + p].T)
    found = summarize(lik, S)
    for sample, value in ((mean, found["means"][0]), (cov, found["covariances"][0])):
        assert (np.abs(sample.mean(axis=0) - value) <= 5 * sample.std(axis=0) / np.sqrt(M)).all()


def test_number_of_parameters(global_random_seed):
    numbers = {name: n_parameters(example(name, seed=global_random_seed)[0]) for name in FAMILIES}
    assert numbers == {
        "bernoulli": 2,
        "categorical": 1 + 2 + 4,
        "exponential": 2,
        "gaussian": 4,
        "gaussian_full": 2 + 3,
        "multinomial": 3,
        "ordinal": 4,
        "poisson": 2,
        "vonmises_fisher": example("vonmises_fisher")[0].mean.size - 1,
    }


def test_take_repeats_objects(example):
    lik, data = example
    twice = take(data, [2, 2, 5])
    np.testing.assert_array_equal(row_statistics(lik, twice, 1), row_statistics(lik, data, 2))
    assert n_rows(twice) == 3
