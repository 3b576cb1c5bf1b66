"""Merges of a warm-up: pieces of one cluster are joined, clusters that overlap are not."""

import numpy as np

from partita.datasets import make_gaussian_clusters
from partita.engines.gibbs import sweep
from partita.engines.subclusters import sampler
from partita.engines.subclusters.moves import Stream, merge_odds
from partita.engines.subclusters.warm_up import log_ratio_apart, merge_pieces, merge_seated_pieces
from partita.families import Block, GaussianFull
from partita.metrics import adjusted_rand
from partita.partitions import DirichletProcess

PRIOR = DirichletProcess(1.0)


def seated(X, labels):
    blocks = [Block(GaussianFull.default(X.shape[1]), np.ascontiguousarray(X), tuple(range(X.shape[1])))]
    state = sampler.init(blocks, np.ones(len(X), int), PRIOR, np.random.default_rng(0), labels=labels)
    return blocks, state


def test_pieces_of_cut_clusters_are_joined_at_once(global_random_seed):
    """The labels are those that the rows were drawn with: in the most probable labels, clusters that overlap are cut
    already. None of 200 fresh seeds failed.
    """
    data = make_gaussian_clusters(20_000, 3, 5, separation=4.0, random_state=global_random_seed)
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    z = data.labels.copy()
    for k, piece in [(1, 5), (3, 6)]:
        inside = z == k
        z[inside & (X[:, 0] > np.median(X[inside, 0]))] = piece
    blocks, state = seated(X, z)
    seats, moves = merge_pieces(state.seats, blocks, PRIOR, Stream.of(0, 0))
    assert adjusted_rand(data.labels, seats.z) == 1.0 and moves.merges_accepted == 2
    _, again = seated(X, seats.z)
    np.testing.assert_array_equal(again.n, seats.n)
    np.testing.assert_allclose(again.seats.S[0], seats.S[0], rtol=1e-9, atol=1e-9)
    seating, moves = merge_seated_pieces(sweep.seat(blocks, z, dtype=np.float32), PRIOR)
    assert adjusted_rand(data.labels, sweep.labels(seating)) == 1.0 and moves.merges_accepted == 2
    assert seating.blocks[0].C.dtype == np.float32 and sweep.sizes(seating).sum() == len(X)


def test_two_clusters_that_overlap_stay_apart(global_random_seed):
    """One division of them is less probable than their union, all divisions together are not."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], 10_000)
    X = rng.normal(size=(20_000, 2))
    X[:, 0] += 2.5 * z
    true_odds = 2.5 * X[:, 0] - 2.5**2 / 2
    drawn = (rng.random(len(z)) < 1 / (1 + np.exp(-true_odds))).astype(int)
    blocks, state = seated(X / X.std(axis=0), drawn)
    assert merge_odds(blocks, PRIOR, state.seats)[0, 1] > 100.0
    assert log_ratio_apart(state.seats, blocks, PRIOR, 0, 1, Stream.of(0, 0), None) > 100.0
    seats, moves = merge_pieces(state.seats, blocks, PRIOR, Stream.of(0, 0))
    assert len(seats.n) == 2 and moves.merges == 1


def test_a_warm_up_finds_the_planted_clusters(global_random_seed):
    """Of 60 fresh seeds, 59 came to the planted clusters within 60 steps and the other one within 80."""
    data = make_gaussian_clusters(20_000, 4, 6, separation=8.0, random_state=global_random_seed + 1)
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    blocks, state = seated(X, None)
    for _ in range(120):
        state = sampler.step(state, blocks, PRIOR, warm_up=True)
        if len(state.n) == 6 and adjusted_rand(data.oracle, state.labels) > 0.95:
            return
    raise AssertionError(f"{len(state.n)} clusters, ARI {adjusted_rand(data.oracle, state.labels):.3f}")
