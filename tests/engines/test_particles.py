"""The particle filter against all partitions of a few objects; interpreted, so that no compiler is waited for."""

import numpy as np
import pytest
from scipy.special import logsumexp

from partita.dispatch import interpreted
from partita.engines.passes.rows import predictive
from partita.engines.sequential import particles, population
from partita.families import (
    FAMILIES,
    Bernoulli,
    Block,
    Categorical,
    GaussianDiagonal,
    GaussianFull,
)
from partita.labels import canonical
from partita.partitions import DirichletProcess, FiniteDirichlet, PitmanYor, StickBreaking, specify
from partita.testing import enumerate_partitions, take, with_missing_cells

PRIORS = [
    DirichletProcess(0.8),
    PitmanYor(0.5, 0.4),
    FiniteDirichlet(1.5, 3),
    specify("mfm", rate=0.3, max_components=20),
]


pytestmark = pytest.mark.usefixtures("uncompiled_unless_slow")


def example(name, N=5, seed=0, holes=0.0):
    rng = np.random.default_rng(seed)
    lik, data = FAMILIES[name].examples(rng)[0]
    data = take(data, range(N))
    return Block(lik, with_missing_cells(data, holes, rng) if holes else data, ("x",))


def blobs(N, seed, D=2, spread=3.0):
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=N)
    X = rng.normal(0, spread, (3, D))[z] + rng.normal(size=(N, D))
    return Block(GaussianDiagonal.default(D), (X - X.mean(axis=0)) / X.std(axis=0), tuple(range(D)))


def filtered(blocks, prior, P, rows=None, **options):
    return particles.update(particles.init([b.family for b in blocks], prior, P, **options), blocks, rows)


def partition_posterior(state, exact, rows=None):
    """Weight of each enumerated partition."""
    Z, w = particles.draws(state)
    at = {tuple(z): k for k, z in enumerate(exact.labels)}
    out = np.zeros(len(exact.labels))
    for z, weight in zip(Z, w, strict=True):
        z = z if rows is None else z[np.argsort(rows)]
        out[at[tuple(canonical(z))]] += weight
    return out


def distance(state, exact, rows=None):
    return 0.5 * np.abs(partition_posterior(state, exact, rows) - exact.posterior).sum()


# ---- exact where nothing is resampled ------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("name", list(FAMILIES))
def test_enough_particles_are_the_posterior(name, prior, global_random_seed):
    blocks = [example(name, seed=global_random_seed)]
    exact = enumerate_partitions(blocks, prior)
    state = filtered(blocks, prior, 52)
    assert state.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
    np.testing.assert_allclose(partition_posterior(state, exact), exact.posterior, atol=1e-10)
    K = np.bincount(exact.labels.max(axis=1) + 1, weights=exact.posterior)
    got = particles.n_clusters_posterior(state)
    np.testing.assert_allclose(np.pad(got, (0, len(K) - len(got))), K, atol=1e-10)
    assert exact.posterior[(exact.labels == particles.labels(state)).all(axis=1)] == pytest.approx(
        exact.posterior.max()
    )


def test_missing_cells_and_mixed_blocks(global_random_seed):
    blocks = [
        example("categorical", holes=0.3, seed=global_random_seed),
        example("gaussian", holes=0.3, seed=global_random_seed),
        example("poisson", holes=0.3, seed=global_random_seed),
    ]
    blocks[1].data[3] = np.nan
    exact = enumerate_partitions(blocks, PRIORS[0])
    state = filtered(blocks, PRIORS[0], 52)
    assert state.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
    assert distance(state, exact) < 1e-10


def test_an_object_without_any_cell_follows_the_prior():
    block = Block(Bernoulli.default(2), np.array([[1, 1], [1, 1], [-1, -1]], np.int8), ("a", "b"))
    state = filtered([block], PRIORS[0], 10)
    seen = filtered([block], PRIORS[0], 10, rows=[0, 1])
    assert state.log_evidence == pytest.approx(seen.log_evidence)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
def test_the_mixture_is_the_predictive_density_of_the_next_object(prior, global_random_seed):
    blocks = [example("gaussian", seed=global_random_seed), example("categorical", seed=global_random_seed)]
    before, after = filtered(blocks, prior, 52, rows=range(4)), filtered(blocks, prior, 52)
    log_weights, sizes, S = particles.mixture(before)
    assert np.exp(log_weights).sum() == pytest.approx(1.0) and sizes[-1] == 0
    density = logsumexp(predictive(blocks, S, log_weights)(np.array([4]))[0])
    assert density == pytest.approx(after.log_evidence - before.log_evidence, abs=1e-9)


def test_clusters_of_the_best_particle_hold_its_objects(global_random_seed):
    block = blobs(9, global_random_seed)
    state = filtered([block], PRIORS[0], 10)
    log_weights, sizes, (S,) = particles.clusters(state)
    z = particles.labels(state)
    np.testing.assert_array_equal(sizes, [*np.bincount(z), 0])
    np.testing.assert_allclose(
        S[1, :-1], [block.data[z == k, 0].sum() for k in range(z.max() + 1)], atol=1e-12
    )
    assert np.exp(log_weights).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(log_weights), np.array([*np.bincount(z), 0.8]) / 9.8)


# ---- Monte Carlo where something is --------------------------------------------------------------------------


def evidence_ratios(blocks, prior, P, exact, n_seeds, rows=None):
    values = [
        filtered(blocks, prior, P, rows, seed=s, keep_labels=False).log_evidence for s in range(n_seeds)
    ]
    return np.exp(np.array(values) - exact.log_evidence)


def off_by(ratios):
    """Distance of the mean from 1 in standard errors."""
    return abs(ratios.mean() - 1.0) / (ratios.std(ddof=1) / np.sqrt(len(ratios)) + 1e-12)


@pytest.mark.parametrize(
    "name, prior", [("categorical", 0), ("gaussian", 0), ("gaussian", 1), ("categorical", 3)]
)
@pytest.mark.parametrize("P", [1, 3])
def test_the_evidence_is_unbiased(name, prior, P, global_random_seed):
    blocks = [example(name, seed=global_random_seed)]
    exact = enumerate_partitions(blocks, PRIORS[prior])
    ratios = evidence_ratios(blocks, PRIORS[prior], P, exact, 300)
    assert ratios.std() > 1e-3  # something was left to chance
    assert off_by(ratios) < 5


def test_the_order_of_arrival_matters_by_chance_only(global_random_seed):
    blocks = [example("gaussian", seed=global_random_seed)]
    exact = enumerate_partitions(blocks, PRIORS[0])
    for rows in ([4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        assert off_by(evidence_ratios(blocks, PRIORS[0], 3, exact, 200, rows)) < 5
        state = filtered(blocks, PRIORS[0], 52, rows)
        assert state.log_evidence == pytest.approx(exact.log_evidence)
        assert distance(state, exact, rows) < 1e-10


def test_more_particles_come_closer_to_the_posterior(global_random_seed):
    blocks = [example("gaussian", N=6, seed=global_random_seed)]
    exact = enumerate_partitions(blocks, PRIORS[0])
    mean = [
        np.mean([distance(filtered(blocks, PRIORS[0], P, seed=s), exact) for s in range(8)])
        for P in (3, 12, 48, 203)
    ]
    assert mean[0] > mean[1] > mean[2] > mean[3] and mean[3] < 1e-10 and mean[2] < 0.35


@pytest.mark.parametrize("seed", range(4))
def test_resampling_keeps_every_expected_weight(seed, global_random_seed):
    """The mean over a grid of uniforms is the weight itself; no child is held twice; the total never changes."""
    rng = np.random.default_rng([global_random_seed, seed])
    M, P = 17, 6
    lq = np.log(rng.dirichlet(np.full(M, 0.4))) - 300.0
    if seed == 3:
        lq[:] = -300.0  # all equal
    mean, grid = np.zeros(M), (np.arange(1000) + 0.5) / 1000
    for u in grid:
        kept, log_w = np.zeros(P, np.int64), np.zeros(P)
        m, gain = particles.keep(particles.Resample(P), lq, np.zeros(M, int), M, u, kept, log_w)
        assert m == P and len(set(kept)) == P
        assert np.exp(log_w).sum() == pytest.approx(1.0) and gain == pytest.approx(logsumexp(lq))
        mean[kept] += np.exp(log_w) / len(grid)
    np.testing.assert_allclose(mean, np.exp(lq - logsumexp(lq)), atol=2e-3)


def test_no_particle_is_held_twice(global_random_seed):
    state = filtered([blobs(14, global_random_seed + 1, spread=1.0)], PRIORS[0], 20)
    Z, w = particles.draws(state)
    assert len({tuple(z) for z in Z}) == len(w) == 20
    np.testing.assert_array_equal(Z.max(axis=1) + 1, state.population.K)


def test_a_child_of_no_weight_is_not_kept():
    kept, log_w = np.zeros(3, np.int64), np.zeros(3)
    lq = np.array([0.0, -np.inf, -2000.0, -1.0])
    m, _ = particles.keep(particles.Resample(3), lq, np.zeros(4, int), 4, 0.5, kept, log_w)
    assert kept[:m].tolist() == [0, 3]


def test_an_impossible_object_makes_the_evidence_zero_and_nothing_else():
    kept, log_w = np.zeros(3, np.int64), np.zeros(3)
    m, gain = particles.keep(
        particles.Resample(3), np.full(4, -np.inf), np.zeros(4, int), 4, 0.5, kept, log_w
    )
    assert (m, gain) == (3, -np.inf) and np.exp(log_w).sum() == pytest.approx(1.0)


# ---- a stream ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "gaussian_full", "categorical"])
def test_batches_do_not_matter_and_states_are_values(name, global_random_seed):
    block = example(name, N=8, seed=global_random_seed)
    whole = filtered([block], PRIORS[0], 4, seed=7)
    state = particles.init([block.family], PRIORS[0], 4, seed=7)
    for start, stop in ((0, 3), (3, 4), (4, 4), (4, 8)):
        kept, before = state, [array.copy() for array in state.population[1:]]
        state = particles.update(state, [block._replace(data=take(block.data, range(start, stop)))])
        for old, copy in zip(kept.population[1:], before, strict=True):
            np.testing.assert_array_equal(old, copy)
    assert state.n_seen == 8 and state.log_evidence == pytest.approx(whole.log_evidence, abs=1e-12)
    for a, b in zip(particles.draws(state), particles.draws(whole), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_seed_decides(global_random_seed):
    blocks = [blobs(12, global_random_seed, spread=1.0)]
    a, b, c = (filtered(blocks, PRIORS[0], 3, seed=s) for s in (1, 1, 2))
    assert a.log_evidence == b.log_evidence != c.log_evidence
    np.testing.assert_array_equal(particles.labels(a), particles.labels(b))
    np.testing.assert_array_equal(
        particles.labels(a),
        particles.labels(
            particles.update(
                particles.init([blocks[0].family], PRIORS[0], 3), blocks, u=particles.uniforms(1, 0, 12)
            )
        ),
    )


def test_without_labels_only_statistics_are_kept(global_random_seed):
    block = blobs(30, global_random_seed)
    state = filtered([block], PRIORS[0], 5, keep_labels=False)
    assert state.parent is None and state.log_evidence == filtered([block], PRIORS[0], 5).log_evidence
    with pytest.raises(ValueError, match="keep_labels=True"):
        particles.labels(state)


def test_many_clusters_find_room():
    block = Block(Categorical.default([20], alpha=0.01), np.arange(20, dtype=np.int8)[:, None], ("a",))
    state = filtered([block], DirichletProcess(5.0), 2)
    z = particles.labels(state)
    assert z.max() + 1 == state.population.K[particles.best_particle(state)] > 8  # more than the first slots
    log_weights, sizes, _ = particles.clusters(state)
    np.testing.assert_array_equal(sizes[:-1], np.bincount(z))


def test_a_finite_prior_never_opens_too_many(global_random_seed):
    state = filtered([blobs(15, global_random_seed)], FiniteDirichlet(5.0, 2), 8)
    assert state.population.K[: state.population.counts[0]].max() <= 2


def test_mistakes_have_names(global_random_seed):
    with pytest.raises(TypeError, match="exchangeable prior"):
        filtered([blobs(3, global_random_seed)], StickBreaking(1.0, 3), 2)
    with pytest.raises(ValueError, match="partly observed vectors"):
        filtered([Block(GaussianFull.default(2), np.array([[np.nan, 0.0]]), ("a", "b"))], PRIORS[0], 2)
    with pytest.raises(ValueError, match="n_particles is 0"):
        particles.init([Bernoulli.default(1)], PRIORS[0], 0)
    assert particles.labels(particles.init([Bernoulli.default(1)], PRIORS[0], 3)).tolist() == []


# ---- planted bugs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, bug",
    [
        ("log_seat", lambda prior, n: 0.0),
        ("log_new_seat", lambda prior, N, K: np.log(2 * prior.concentration)),
        ("move_slot", lambda *_: None),
        ("score_row", lambda *_: None),
        ("add_row", lambda *_: None),
    ],
)
def test_planted_bugs_are_caught(monkeypatch, name, bug):
    monkeypatch.setattr(
        population, "check", lambda *_: None
    )  # it asks the real functions who implements them
    monkeypatch.setattr(population, name, bug)
    with pytest.raises(AssertionError):
        test_enough_particles_are_the_posterior("gaussian", PRIORS[0], 0)


def test_resampling_without_weights_is_caught(monkeypatch, global_random_seed):
    """The best children with their own weights (a beam): the evidence comes out too low, every time."""

    def greedy(rule, lq, key, M, u, kept, log_w):
        m = min(M, len(log_w))
        kept[:m] = np.argsort(-lq[:M], kind="stable")[:m]
        total = logsumexp(lq[kept[:m]])
        log_w[:m] = lq[kept[:m]] - total
        return m, total

    monkeypatch.setattr(population, "keep", greedy)
    blocks = [example("gaussian", seed=global_random_seed)]
    exact = enumerate_partitions(blocks, PRIORS[0])
    assert off_by(evidence_ratios(blocks, PRIORS[0], 3, exact, 10)) > 5


# ---- compiled ------------------------------------------------------------------------------------------------


@pytest.mark.slow  # the compiler takes most of a minute where others want the cores too
def test_compiled_is_the_same(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    blocks = [Block(Bernoulli.default(3), rng.integers(2, size=(40, 3)).astype(np.int8), tuple("abc"))]
    with interpreted():
        slow = filtered(blocks, PRIORS[0], 6)
    fast = filtered(blocks, PRIORS[0], 6)
    assert fast.log_evidence == pytest.approx(slow.log_evidence)
    np.testing.assert_array_equal(particles.labels(fast), particles.labels(slow))


@pytest.mark.slow
def test_compiled_two_thousand_objects_in_few_clusters(global_random_seed):
    block = blobs(2000, global_random_seed, D=5)
    state = filtered([block], PRIORS[0], 50)
    assert len(particles.n_clusters_posterior(state)) < 15


@pytest.mark.slow
def test_compiled_memory_does_not_grow_with_the_stream(global_random_seed):
    block = Block(Categorical.default([4] * 6), np.zeros((0, 6), np.int8), tuple(range(6)))
    state = particles.init([block.family], PRIORS[0], 20, keep_labels=False)
    rng, sizes = np.random.default_rng(global_random_seed), []
    P = rng.dirichlet(np.full(4, 0.3), size=(3, 6))
    for _ in range(10):
        z = rng.integers(3, size=500)
        X = np.array([[rng.choice(4, p=P[k, d]) for d in range(6)] for k in z]).astype(np.int8)
        state = particles.update(state, [block._replace(data=X)])
        sizes.append(state.population.blocks[0].S.size)
    assert state.n_seen == 5000 and sizes[-1] <= 4 * sizes[0]
