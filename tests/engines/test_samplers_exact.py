"""Collapsed Gibbs and split-merge leave the posterior invariant: pi P = pi on all partitions, no Monte Carlo."""

import contextlib
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from partita.dispatch import interpreted
from partita.engines.gibbs import split_merge as sm
from partita.engines.gibbs import sweep
from partita.engines.passes.rows import n_stats
from partita.families import FAMILIES, Block, Counts
from partita.families.rows import log_marginals, scatter_rows
from partita.labels import set_partitions
from partita.partitions import (
    DirichletProcess,
    FiniteDirichlet,
    PitmanYor,
    StickBreaking,
    bind,
    log_eppf,
    log_labeled,
    specify,
)

MOST = 3  # labels of the finite prior


def priors(N):
    return [DirichletProcess(1.3), PitmanYor(0.8, 0.3), bind(specify("mfm"), N), FiniteDirichlet(1.5, MOST)]


def canonical(z):
    names = {}
    return tuple(names.setdefault(label, len(names)) for label in z)


def example(name, N):
    """The first example of a family, cut to N rows, with a missing cell where the family reads cells."""
    entry = FAMILIES[name]
    lik, data = entry.examples(np.random.default_rng(1))[0]
    if isinstance(data, Counts):
        data = Counts(data.X[:N].copy(), data.exposure[:N])
        data.X[0, 0] = np.nan
    elif isinstance(data, np.ndarray):
        data = data[:N].copy()
        if not entry.vector:
            data[0, 0] = -1 if data.dtype.kind == "i" else np.nan
    return Block(lik, data, ())


def log_likelihood(block, z, K):
    S = np.zeros((n_stats(block.family), K))
    scatter_rows(block.family, block.data, np.arange(len(z)), S, np.eye(K)[np.array(z)], S)
    return log_marginals(block.family, S).sum()


def posterior(block, prior, N):
    """All partitions that the prior allows, and their exact probabilities."""
    states = [p for p in set_partitions(N) if not isinstance(prior, FiniteDirichlet) or max(p) < MOST]
    log_p = np.array(
        [
            log_eppf(prior, np.bincount(p).astype(float), max(p) + 1) + log_likelihood(block, p, max(p) + 1)
            for p in states
        ]
    )
    p = np.exp(log_p - log_p.max())
    return states, p / p.sum()


def seat_probabilities(block, prior, z, i):
    """Where a sweep would put object i, and with what probability."""
    s = sweep.seat([block], np.array(z))
    lp = np.empty(len(s.n))
    sweep.seat_weights(s.blocks, prior, s.z, s.n, s.slot_of, s.name_of, s.K, i, lp)
    weights = np.exp(lp[: s.K[0] + 1] - lp[: s.K[0] + 1].max())
    for k, p in enumerate(weights / weights.sum()):
        q = sweep.labels(s).copy()
        q[i] = k if k < s.K[0] else len(q)
        yield canonical(q), p


@pytest.mark.parametrize("which", range(4), ids=["dp", "pitman_yor", "mfm", "finite"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_gibbs_leaves_the_posterior_invariant(name, which):
    N = 5
    with interpreted():
        block, prior = example(name, N), priors(N)[which]
        states, pi = posterior(block, prior, N)
        index = {p: s for s, p in enumerate(states)}
        for i in range(N):
            P = np.zeros((len(states), len(states)))
            for z in states:
                for target, p in seat_probabilities(block, prior, z, i):
                    if p > 0:
                        P[index[z], index[target]] += p
            np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
            np.testing.assert_allclose(pi @ P, pi, atol=1e-10)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_gibbs_with_fixed_labels_leaves_the_posterior_invariant(name):
    """Stick-breaking: labels are not exchangeable, so the states are label vectors."""
    N, K, prior = 4, 3, StickBreaking(1.2, 3)
    with interpreted():
        block = example(name, N)
        states = list(itertools.product(range(K), repeat=N))
        log_p = np.array(
            [
                log_labeled(prior, np.bincount(z, minlength=K).astype(float)) + log_likelihood(block, z, K)
                for z in states
            ]
        )
        pi = np.exp(log_p - log_p.max())
        pi /= pi.sum()
        index = {z: s for s, z in enumerate(states)}
        for i in range(N):
            P = np.zeros((len(states), len(states)))
            for z in states:
                s = sweep.seat([block], np.array(z), n_components=K)
                lp = np.empty(K)
                sweep.fixed_weights(s.blocks, prior, s.z, s.n, i, lp)
                p = np.exp(lp - lp.max())
                for k in range(K):
                    P[index[z], index[(*z[:i], k, *z[i + 1 :])]] += p[k] / p.sum()
            np.testing.assert_allclose(pi @ P, pi, atol=1e-10)


def moves(block, prior, z, n_scans):
    """All split-merge moves from one partition: (target, probability of proposing, probability of accepting)."""
    N = len(z)
    s = sweep.seat([block], np.array(z))
    halves = sm.sides_of(s.blocks)
    for i, j in itertools.permutations(range(N), 2):
        if z[i] == z[j]:
            drawn = 0.5 / N / (s.n[z[i]] - 1)
        else:
            drawn = 0.5 / N * sm.partner_weights(s.blocks, i, z[i], s.K[0], -1, 0.0)[z[j]] / s.n[z[j]]
        others = [t for t in range(N) if t not in (i, j) and z[t] in (z[i], z[j])]
        orders = list(itertools.permutations(others))
        outcomes = list(itertools.product((0, 1), repeat=len(others)))
        for order, launch in itertools.product(orders, outcomes if n_scans else [()]):
            members = np.array(order, dtype=np.int64)
            u, m = np.ones(len(members)), np.empty(2)
            together = z[i] == z[j]
            now = tuple(0 if z[t] == z[i] else 1 for t in members)
            for outcome in outcomes if together else [now]:
                sm.start_sides(halves, i, j, m)
                sides = np.full(len(members), -1)
                log_launch = 0.0
                if n_scans:
                    log_launch = sm.allocate(halves, prior, members, sides, np.array(launch, np.int64), u, m)
                log_q = sm.allocate(halves, prior, members, sides, np.array(outcome, np.int64), u, m)
                ratio = sm.log_split_ratio(s.blocks, prior, s.n, s.K[0], z[i], z[j], m) - log_q
                ratio += sm.log_anchor_ratio(s.blocks, halves, i, z[i], z[j], s.K[0], m)
                proposed = drawn * math.exp(log_launch + (log_q if together else 0.0)) / len(orders)
                if together:
                    target = list(z)
                    target[j] = N
                    for t, side in zip(members, outcome, strict=True):
                        target[t] = N if side else target[t]
                    yield canonical(target), proposed, math.exp(min(ratio, 0.0))
                else:
                    target = canonical([z[i] if label == z[j] else label for label in z])
                    yield target, proposed, math.exp(min(-ratio, 0.0))


@pytest.mark.parametrize("n_scans", [0, 1], ids=["sequential", "restricted"])
@pytest.mark.parametrize("which", range(4), ids=["dp", "pitman_yor", "mfm", "finite"])
@pytest.mark.parametrize("name", ["gaussian", "categorical", "gaussian_full", "multinomial", "poisson"])
def test_split_merge_leaves_the_posterior_invariant(name, which, n_scans):
    N = 4
    with interpreted():
        block, prior = example(name, N), priors(N)[which]
        states, pi = posterior(block, prior, N)
        index = {p: s for s, p in enumerate(states)}
        P = np.zeros((len(states), len(states)))
        for z in states:
            for target, proposed, accepted in moves(block, prior, z, n_scans):
                if target in index:
                    P[index[z], index[target]] += proposed * accepted
                else:
                    assert accepted == 0.0  # more clusters than the finite prior has
                P[index[z], index[z]] += proposed * (1 - accepted)
        assert np.all(P.sum(axis=1) < 1 + 1e-12)  # what is missing is a wish for anchors that do not exist
        P[np.diag_indices(len(P))] += 1 - P.sum(axis=1)
        np.testing.assert_allclose(pi @ P, pi, atol=1e-10)


@pytest.mark.parametrize("z", [(0, 0, 1, 1, 2), (0, 0, 0, 0, 0), (0, 1, 2, 3, 4)])
def test_anchors_are_drawn_as_the_acceptance_believes(z, global_random_seed):
    """The frequencies of pairs against their probabilities (chi-square, false alarm 1e-6)."""
    N, n_draws = 5, 4000
    with interpreted():
        s = sweep.seat([example("gaussian", N)], np.array(z))
        expected, counts = np.zeros((N, N)), np.zeros((N, N))
        for i, j in itertools.permutations(range(N), 2):
            if z[i] == z[j]:
                expected[i, j] = 0.5 / N / (s.n[z[i]] - 1)
            else:
                expected[i, j] = (
                    0.5 / N * sm.partner_weights(s.blocks, i, z[i], s.K[0], -1, 0.0)[z[j]] / s.n[z[j]]
                )
        expected[0, 0] = 1 - expected.sum()
        for u in np.random.default_rng(global_random_seed).random((n_draws, 4)):
            i, j = sm.choose_anchors(s.blocks, s.z, s.n, s.slot_of, s.name_of, s.K[0], u)
            counts[(0, 0) if i == j else (i, j)] += 1
    seen = expected > 1e-12
    assert counts[~seen].sum() == 0
    statistic = ((counts - n_draws * expected)[seen] ** 2 / (n_draws * expected[seen])).sum()
    assert statistic < stats.chi2.ppf(1 - 1e-6, max(seen.sum() - 1, 1))


def mixed_blocks(N):
    return [example(name, N) for name in ("gaussian", "categorical", "poisson")]


@pytest.mark.slow  # compiles a sweep and a split-merge move over three families, twice
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_chain_agrees_with_enumeration_on_a_mixed_table(dtype, global_random_seed):
    """Gibbs and split-merge together, three families in one table, against the exact posterior."""
    N, prior = 5, DirichletProcess(1.3)
    blocks = mixed_blocks(N)
    states = list(set_partitions(N))
    log_p = np.array(
        [
            log_eppf(prior, np.bincount(p).astype(float), max(p) + 1)
            + sum(log_likelihood(block, p, max(p) + 1) for block in blocks)
            for p in states
        ]
    )
    pi = np.exp(log_p - log_p.max())
    pi /= pi.sum()
    rng = np.random.default_rng(global_random_seed)
    seating = sweep.seat(blocks, np.zeros(N, int), dtype=dtype)
    index = {p: s for s, p in enumerate(states)}
    n_batches, batch = 40, 500
    counts = np.zeros((n_batches, len(states)))
    for b in range(n_batches):
        for _ in range(batch):
            seating = sweep.reseat(seating, prior, np.arange(N), rng.random(N))
            seating, _ = sm.split_merge(seating, prior, rng)
            counts[b, index[canonical(sweep.labels(seating))]] += 1 / batch
    error = counts.std(axis=0, ddof=1) / math.sqrt(n_batches)
    assert np.all(np.abs(counts.mean(axis=0) - pi) < 6 * error + 1e-3)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_statistics_stay_those_of_the_labels(compiled):
    """After many moves, births, deaths and growth of the table of slots."""
    with contextlib.nullcontext() if compiled else interpreted():
        walk_and_compare(n_sweeps=30 if compiled else 3)


def walk_and_compare(n_sweeps):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    blocks = [
        FAMILIES["gaussian_full"].block(X, list("abc"), np.ones(60)),
        FAMILIES["categorical"].block(
            rng.integers(3, size=(60, 2)).astype(np.int8), list("de"), np.ones(60), n_levels=[3, 3]
        ),
    ]
    prior = PitmanYor(5.0, 0.5)
    seating = sweep.seat(blocks, np.zeros(60, int))
    for _ in range(n_sweeps):
        seating = sweep.reseat(seating, prior, np.arange(60), rng.random(60))
        for n_scans in (0, 2):
            seating, _ = sm.split_merge(seating, prior, rng, n_scans)
    z, K = sweep.labels(seating), int(seating.K[0])
    assert np.array_equal(np.bincount(z, minlength=K), sweep.sizes(seating))
    fresh = sweep.seat(blocks, z)
    for live, again in zip(seating.blocks, fresh.blocks, strict=True):
        np.testing.assert_allclose(live.S[:, :K], again.S[:, :K], atol=1e-8)
        np.testing.assert_allclose(live.C[:, : K + 1], again.C[:, : K + 1], rtol=1e-5, atol=1e-6)
