"""Hidden coordinates of partly observed vectors in chains, against sums and quadrature over all partitions."""

import math

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import partly_observed, sweep
from partita.families import FAMILIES, Block, CountVectors, GaussianFull, Multinomial
from partita.families.contract import hidden_rows
from partita.labels import canonical
from partita.partitions import DirichletProcess, StickBreaking, specify
from partita.testing import enumerate_labels, enumerate_partitions

PLAIN = chains.Schedule(n_moves=1, learn_concentration=False, learn_likelihood=False)


def vectors():
    """Four vectors in two groups, two of them half hidden; what the last one shows suits both groups."""
    X = np.array([[-1.0, -1.2], [-0.8, -1.0], [np.nan, 1.1], [0.1, np.nan]])
    return Block(GaussianFull.default(2, kappa=0.5, scale=0.5), X, ("a", "b"))


def documents():
    X = np.array([[3.0, 0.0, 1.0], [2.0, 1.0, np.nan], [0.0, 3.0, 2.0], [np.nan, 2.0, 1.0]])
    return Block(Multinomial.of(np.array([1.0, 1.5, 1.2])), CountVectors.from_dense(X), ("a", "b", "c"))


def batches(block, prior, n_batches, size, index, seed=0, schedule=PLAIN):
    """Share of each partition (or label vector) in each batch of a chain."""
    N = len(index(None))
    chain = chains.start([block], prior, np.zeros(N, int), seed, dtype=np.float64)
    counts = {}
    for b in range(n_batches):
        for _ in range(size):
            chain = chains.step(chain, schedule)
            key = index(sweep.labels(chain.seating))
            counts.setdefault(key, np.zeros(n_batches))[b] += 1 / size
    return counts


def assert_agree(counts, exact, n_batches, size):
    """Means of batches within 6.5 of their standard errors, which are at least those of draws half as many."""
    for key, p in exact.items():
        share = counts.get(key, np.zeros(n_batches))
        error = max(share.std(ddof=1), math.sqrt(2 * p * (1 - p) / size)) / math.sqrt(n_batches)
        assert abs(share.mean() - p) < 6.5 * error, (key, share.mean(), p)


def compare_partitions(block, prior, n_batches, size):
    exact = enumerate_partitions([block], prior)
    wanted = {tuple(z): p for z, p in zip(exact.labels, exact.posterior, strict=True)}
    counts = batches(block, prior, n_batches, size, lambda z: (0,) * 4 if z is None else tuple(canonical(z)))
    assert_agree(counts, wanted, n_batches, size)


@pytest.mark.parametrize("make", [vectors, documents])
@pytest.mark.parametrize("prior", [DirichletProcess(1.0), specify("mfm")], ids=["dp", "mfm"])
def test_chains_over_partly_seen_vectors_agree_with_quadrature(make, prior):
    with interpreted():
        compare_partitions(make(), prior, 20, 40)


@pytest.mark.slow  # compiled, and long enough to see one per cent
@pytest.mark.parametrize("make", [vectors, documents])
def test_long_chains_over_partly_seen_vectors_agree_with_quadrature(make):
    compare_partitions(make(), DirichletProcess(1.0), 40, 1000)


def test_fixed_labels_too(global_random_seed):
    block, prior, n_batches = vectors(), StickBreaking(1.0, 2), 20
    with interpreted():
        exact = enumerate_labels([block], prior)
        wanted = {tuple(z): p for z, p in zip(exact.labels, exact.posterior, strict=True)}
        counts = batches(
            block,
            prior,
            n_batches,
            40,
            lambda z: (0,) * 4 if z is None else tuple(z),
            seed=global_random_seed,
        )
    assert_agree(counts, wanted, n_batches, 40)


def test_an_object_that_suits_two_clusters_changes_between_them(global_random_seed):
    """Two groups that differ in the second coordinate only; the last object does not show it."""
    rng = np.random.default_rng(global_random_seed)
    X = np.column_stack([rng.normal(size=41), np.repeat([-6.0, 6.0], [20, 21]) + rng.normal(size=41)])
    X[40, 1] = np.nan
    block = FAMILIES["gaussian_full"].block(X / 6, ["a", "b"], np.ones(41))
    with interpreted():
        chain = chains.start([block], DirichletProcess(1.0), np.repeat([0, 1], [20, 21]), 3)
        seats = []
        for _ in range(60):
            chain = chains.step(chain, PLAIN)
            z = sweep.labels(chain.seating)
            seats.append(z[40] == z[0])
    assert 10 <= sum(seats) <= 50  # independent fair coins would leave this range once in 1e7


def test_what_is_shown_is_never_changed():
    block = vectors()
    X = block.data.copy()
    with interpreted():
        chain = chains.start([block], DirichletProcess(1.0), np.zeros(4, int), 1)
        for _ in range(3):
            chain = chains.step(chain, PLAIN)
    completed = chain.seating.blocks[0].data
    np.testing.assert_array_equal(block.data, X)
    np.testing.assert_array_equal(completed[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(completed).all()
    assert chain.hidden_rows.tolist() == hidden_rows(block.family, X).tolist() == [2, 3]


def test_a_seat_that_never_moves_is_caught(monkeypatch):
    monkeypatch.setattr(partly_observed, "reseat_shown", lambda *args: None)
    with pytest.raises(AssertionError):
        test_an_object_that_suits_two_clusters_changes_between_them(0)


@pytest.mark.slow
def test_a_completion_from_the_wrong_cluster_is_caught(monkeypatch):
    honest = partly_observed.impute

    def careless(lik, shown, theta, rows, z, rng, out):
        return honest(lik, shown, theta, rows, np.zeros_like(z), rng, out)

    monkeypatch.setattr(partly_observed, "impute", careless)
    with pytest.raises(AssertionError):
        compare_partitions(vectors(), DirichletProcess(1.0), 40, 1000)
