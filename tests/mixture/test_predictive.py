"""The density of a new row under chains is the posterior predictive: over all partitions, with a new cluster."""

import itertools

import numpy as np
import pytest

from partita import NBCE, Mixture, load
from partita.dispatch import interpreted
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs.chain import ChainDraw, Schedule
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.families import Bernoulli, Block, Categorical, GaussianFull
from partita.families.rows import add_statistics
from partita.fitting import predictive
from partita.fitting.objects import rows_of_objects
from partita.partitions import DirichletProcess, FiniteDirichlet, PitmanYor, specify
from partita.testing import effective_size, enumerate_partitions
from partita.trace import Trace

# the chains are too short to agree
pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")

N, D = 6, 3
ROWS = np.array(list(itertools.product([0, 1], repeat=D)), np.int8)  # all rows of D binary columns
PRIORS = {
    "DP": DirichletProcess(0.9),
    "Pitman-Yor": PitmanYor(0.6, 0.4),
    "MFM": specify("mfm", gamma=0.7, rate=0.3, max_components=30),
    "finite": FiniteDirichlet(1.5, 3),
}
GRID = np.concatenate([-np.geomspace(1e5, 1e-3, 4000), [0.0], np.geomspace(1e-3, 1e5, 4000)])
QUICK = {"n_chains": 2, "n_draws": 20, "burn_in": 10}
DENSITIES = {
    "DP": {"prior": "dirichlet_process"},
    "Pitman-Yor": {"prior": "pitman_yor"},
    "stick-breaking": {"prior": "stick_breaking", "max_clusters": 5},
    "finite": {"n_clusters": 3},
    "limit": {"max_clusters": 2},
    "fixed": {"learn_hyper": False, "concentration": 1.0},
    "full": {"family": "gaussian_full"},
    "student": {"family": "student"},
    "outliers": {"outliers": True},
    "subclusters": {"inference": "subclusters"},
    "beam": {"inference": "beam"},
}
STANDARD_ERRORS = 6.0  # false alarm below 1e-6 in eight rows, with room for the error of the effective size


def planted(rng):
    """A few binary rows of two groups."""
    return (rng.random((N, D)) < np.repeat([[0.2], [0.8]], N // 2, axis=0)).astype(np.int8)


def one_draw(z, family, prior, held=None):
    """What a chain keeps of one partition."""
    one = np.ones(1)
    concentration = getattr(prior, "concentration", getattr(prior, "gamma", np.nan))
    trace = Trace(
        np.asarray(z)[None], one, one, one * concentration, one * getattr(prior, "discount", np.nan), one
    )
    return ChainDraw(trace, (family,), held)


def log_densities(exact, block, prior, new):
    """Log density of each new row in each partition of the enumeration: [partition, row]."""
    n = exact.labels.shape[1]
    out = []
    for z in exact.labels:
        draw = predictive.predictive_draw(
            one_draw(z, block.family, prior), [block], np.arange(n), np.ones(n), prior, NO_LIMIT
        )
        out.append(predictive.average_log_density([draw], [new], len(new.data)))
    return np.array(out)


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_the_average_over_all_partitions_is_the_ratio_of_evidences(prior, rng):
    """p(x | X) = Z(X, x) / Z(X), both by enumeration."""
    X, family = planted(rng), Bernoulli.default(D)
    block, new = Block(family, X, tuple("abc")), Block(family, ROWS, tuple("abc"))
    with interpreted():
        exact = enumerate_partitions([block], prior)
        found = exact.posterior @ np.exp(log_densities(exact, block, prior, new))
        longer = [
            enumerate_partitions([block._replace(data=np.concatenate([X, row[None]]))], prior).log_evidence
            for row in ROWS
        ]
    np.testing.assert_allclose(found, np.exp(np.array(longer) - exact.log_evidence), rtol=1e-9)
    assert found.sum() == pytest.approx(1.0)


def check_against_enumeration(score, block, prior, new, trace):
    """The density of chains, from all of their draws, is the exact one within its standard error."""
    with interpreted():
        exact = enumerate_partitions([block], prior)
        each = np.exp(log_densities(exact, block, prior, new))
    expected = exact.posterior @ each
    sd = np.sqrt(exact.posterior @ (each - expected) ** 2)
    place = {tuple(z): s for s, z in enumerate(exact.labels.tolist())}
    states = np.array([place[tuple(z)] for z in trace.labels.tolist()])
    free = min(
        sum(effective_size(each[states[trace.chain == c], row]) for c in np.unique(trace.chain))
        for row in range(len(expected))
    )
    np.testing.assert_array_less(np.abs(np.exp(score) - expected), STANDARD_ERRORS * sd / np.sqrt(free))


def test_the_density_of_chains_is_that_of_the_enumeration(rng, global_random_seed, monkeypatch):
    monkeypatch.setattr(predictive, "N_DRAWS", 2000)
    X = planted(rng)
    model = Mixture(
        "bernoulli", "dirichlet_process", "gibbs", concentration=0.9, learn_hyper=False, n_chains=2,
        n_draws=1000, burn_in=30, thin=2, random_state=global_random_seed,
    ).fit(X)  # fmt: skip
    family = model._fitted.blocks[0].family
    block, new = (Block(family, data, tuple("abc")) for data in (X, ROWS))
    check_against_enumeration(model.score_samples(ROWS), block, DirichletProcess(0.9), new, model.trace_)


def test_the_probability_of_labels_is_that_of_the_enumeration(rng, global_random_seed, monkeypatch):
    monkeypatch.setattr(predictive, "N_DRAWS", 2000)
    Y = planted(rng)
    Y[:2], Y[-1] = [[0, 0, 1], [1, 1, 0]], 1  # every member has both labels
    model = NBCE(
        concentration=0.9, smoothing=0.7, n_chains=2, n_draws=1000, burn_in=30, thin=2,
        random_state=global_random_seed,
    ).fit(Y)  # fmt: skip
    family = Categorical(*model._family)
    block, new = (Block(family, data.astype(np.int8), tuple("abc")) for data in (Y, ROWS))
    score = model.score_samples(ROWS)
    assert np.exp(score).sum() == pytest.approx(1.0)
    check_against_enumeration(score, block, DirichletProcess(0.9), new, model.trace_)


@pytest.mark.parametrize("options", DENSITIES.values(), ids=DENSITIES)
def test_the_density_integrates_to_one_and_is_saved(options, rng, global_random_seed, tmp_path):
    X = 40.0 + 10.0 * rng.normal(size=(50, 1)) + np.repeat([[-25.0], [25.0]], 25, axis=0)
    model = Mixture(**({"family": "gaussian", "random_state": global_random_seed} | QUICK | options)).fit(X)
    x = 40.0 + 10.0 * GRID
    mass = np.trapezoid(np.exp(model.score_samples(x[:, None])), x)
    assert mass == pytest.approx(
        1.0, abs=2e-3
    )  # a Student t of few degrees of freedom has mass beyond the grid
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").score_samples(X), model.score_samples(X))


def test_the_density_of_a_stream_is_averaged_over_its_particles(rng, global_random_seed):
    X = rng.normal(size=(60, 1)) + np.repeat([[-1.5], [1.5]], 30, axis=0)
    model = Mixture("gaussian", random_state=global_random_seed, **QUICK).fit(X[::2])
    model.partial_fit(X[1::2])
    assert np.trapezoid(np.exp(model.score_samples(GRID[:, None])), GRID) == pytest.approx(1.0, abs=2e-3)


def test_draws_are_spread_over_all_chains(rng, global_random_seed):
    X = rng.normal(size=(40, 2))
    model = Mixture("gaussian", random_state=global_random_seed, n_chains=4, n_draws=30, burn_in=5).fit(X)
    chosen = predictive.evenly_spread(120, predictive.N_DRAWS)
    assert np.bincount(model.trace_.chain[chosen]).tolist() == [5] * 4
    found = [len(draw.log_weights) - 1 for draw in model._fitted.draws]
    assert found == model.trace_.n_clusters[chosen].tolist()


def test_large_statistics_leave_fewer_draws(rng, global_random_seed, monkeypatch):
    monkeypatch.setattr(predictive, "MAX_BYTES", 3 * 8 * 6)
    model = Mixture("gaussian", n_clusters=1, random_state=global_random_seed, **QUICK)
    model.fit(rng.normal(size=(40, 2)))
    assert len(model._fitted.draws) == 3


def test_objects_of_one_row_may_have_different_labels(rng):
    """Rows with weights have the statistics of the table in which they are repeated."""
    X, family, weights = planted(rng), Bernoulli.default(D), np.array([1.0, 3, 0, 2, 1, 1])
    rows = rows_of_objects(weights)
    z, prior = rng.permutation([0, 0, 1, 1, 2, 0, 1, 2]), DirichletProcess(1.0)
    draw = one_draw(z, family, prior)
    with interpreted():
        weighted = predictive.predictive_draw(
            draw, [Block(family, X, tuple("abc"))], rows, weights, prior, NO_LIMIT
        )
        repeated = predictive.predictive_draw(
            draw, [Block(family, X[rows], tuple("abc"))], np.arange(8), np.ones(8), prior, NO_LIMIT
        )
    np.testing.assert_allclose(weighted.clusters[0], repeated.clusters[0])
    np.testing.assert_allclose(weighted.log_weights, repeated.log_weights)


def test_a_draw_holds_the_statistics_of_completed_vectors(rng):
    X = rng.normal(size=(8, 2)) + np.repeat([[-2.0], [2.0]], 4, axis=0)
    X[[0, 5], [1, 0]] = np.nan
    block = Block(GaussianFull.default(2), X, ("a", "b"))
    with interpreted():
        chain = chains.start([block], DirichletProcess(1.0), np.array([1, 1, 0, 0, 2, 2, 2, 0]), seed=0)
        for _ in range(5):
            chain = chains.step(chain, Schedule())
        draw = chains.make_draw(chain, 0.0, 0, chains.held_clusters)
        S = np.zeros_like(draw.held[0])
        add_statistics(block.family, chain.seating.blocks[0].data, draw.trace.labels[0].astype(np.int64), S)
    np.testing.assert_allclose(draw.held[0], S, atol=1e-9)
