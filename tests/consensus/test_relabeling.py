"""Relabelling and votes against brute force."""

import itertools

import numpy as np
import pytest

from partita.consensus.label_layout import lay_out
from partita.consensus.votes.voting import ballots, count_votes, elect, medoid, translate

PERMUTATIONS = list(itertools.permutations(range(3)))


def laid_out(codes, weights=None, powers=None):
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    powers = np.ones(codes.shape[1]) if powers is None else np.asarray(powers, float)
    return lay_out(codes, codes.max(axis=0) + 1, weights, powers)


@pytest.mark.parametrize("seed", range(5))
def test_names_are_the_best_of_all_permutations(seed, global_random_seed):
    table = np.random.default_rng([global_random_seed, seed]).integers(20, size=(4, 4))
    best = max(table[np.arange(4), list(names)].sum() for names in itertools.permutations(range(4)))
    assert table[np.arange(4), translate(table)].sum() == best


def test_clusters_left_over_are_called_like_their_largest_overlap():
    table = np.array([[9, 0], [5, 4], [0, 8], [1, 3]])
    assert translate(table).tolist() == [0, 0, 1, 1]
    assert translate(table.T[:, [0, 2, 1, 3]]).tolist() == [0, 1]


def test_votes_written_out():
    codes = np.array([[0, 1, 0], [0, 1, 1], [1, 0, -1], [1, 0, 1], [-1, -1, -1]])
    cells = laid_out(codes, powers=[1, 1, 2])
    ballot = ballots(cells, np.array([0, 0, 1, 1, -1]), 2, soft=False)
    assert ballot.names.tolist() == [0, 1, 1, 0, 0, 1]
    np.testing.assert_allclose(count_votes(cells, ballot.votes), [[1, 0], [0.5, 0.5], [0, 1], [0, 1], [0, 0]])
    soft = ballots(cells, np.array([0, 0, 1, 1, -1]), 2, soft=True)
    np.testing.assert_allclose(soft.votes[4:], [[1, 0], [0.5, 0.5]])


def test_the_medoid_is_the_member_most_agree_with(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(3, size=200)
    members = [np.where(rng.random(200) < p, rng.integers(3, size=200), z) for p in (0.7, 0.6, 0.02, 0.2)]
    cells = laid_out(np.stack(members, axis=1))
    assert medoid(cells, np.arange(4)) == 2
    assert medoid(cells, np.array([0, 1, 3])) == 3


@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_the_medoid_is_that_of_all_permutations(noise, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(10):
        z, members = rng.integers(3, size=(30, 1)), rng.integers(3, size=(30, 5))
        codes = np.where(rng.random((30, 5)) < noise, members, z)
        codes[:3] = np.arange(3)[:, None]  # each member has all three labels
        weights, powers = rng.integers(1, 4, size=30), rng.integers(1, 4, size=5)
        best = {
            m: sum(
                powers[other]
                * max(weights @ (np.array(names)[codes[:, other]] == codes[:, m]) for names in PERMUTATIONS)
                for other in range(5)
            )
            for m in range(5)
        }
        cells = laid_out(codes, weights, powers)
        for candidates in (np.arange(5), np.array([0, 2, 3])):
            assert best[medoid(cells, candidates)] == max(best[m] for m in candidates)


@pytest.mark.parametrize("soft", [False, True])
def test_an_election_ends_at_its_own_reference(soft, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(3, size=200)
    noisy = np.stack(
        [np.where(rng.random(200) < 0.3, rng.integers(3, size=200), (z + s) % 3) for s in range(7)], axis=1
    )
    cells = laid_out(noisy)
    found = elect(cells, noisy[:, 0], 3, soft=soft, max_iter=50)
    assert found.converged and found.n_iter < 50
    right = [(found.labels == (z + s) % 3).mean() for s in range(3)]
    assert max(right) > 0.9
    one = elect(cells, noisy[:, 0], 3, soft=soft, max_iter=1)
    assert one.n_iter == 1 and found.agreement >= one.agreement
