"""k-means on labels against brute force over all partitions, and its identity with the category utility."""

import numpy as np
import pytest

from partita.consensus.label_layout import lay_out
from partita.consensus.votes.onehot_means import assign, best_means, centers, utility
from partita.labels import set_partitions


def laid_out(codes, weights=None, powers=None):
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    powers = np.ones(codes.shape[1]) if powers is None else np.asarray(powers, float)
    return lay_out(codes, codes.max(axis=0) + 1, weights, powers)


def naive_error(codes, z, weights, powers):
    """Squared distances of one-hot vectors to the means of their clusters, over the labels that are there."""
    out = 0.0
    for m, power in enumerate(powers):
        for k in set(z):
            rows = np.flatnonzero((z == k) & (codes[:, m] >= 0))
            if len(rows):
                E = np.eye(codes[:, m].max() + 1)[codes[rows, m]]
                mean = weights[rows] @ E / weights[rows].sum()
                out += power * weights[rows] @ ((E - mean) ** 2).sum(axis=1)
    return out


def small(seed, holes):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=(8, 4))
    codes[:3] = np.arange(3)[:, None]  # every level occurs
    if holes:
        codes[rng.random(codes.shape) < 0.2] = -1
        codes[:3, 0] = [0, 1, 2]
    return codes, rng.integers(1, 4, size=8).astype(float), np.array([1.0, 2.0, 0.5, 1.0])


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_many_starts_find_the_best_of_all_partitions(seed, holes, global_random_seed):
    codes, weights, powers = small(global_random_seed + seed, holes)
    codes = codes[:, (codes >= 0).any(axis=0)]
    best = min(
        naive_error(codes, z, weights, powers) for z in map(np.array, set_partitions(8)) if z.max() == 2
    )
    found = best_means(
        laid_out(codes, weights, powers),
        3,
        np.random.default_rng(global_random_seed),
        n_init=100,
        max_iter=100,
    )
    assert found.error == pytest.approx(best, abs=1e-9)
    assert found.error == pytest.approx(naive_error(codes, found.labels, weights, powers), abs=1e-9)
    assert found.converged


def test_error_is_a_constant_minus_the_utility(global_random_seed):
    codes, weights, powers = small(global_random_seed + 5, holes=False)
    cells = laid_out(codes, weights, powers)
    one = naive_error(codes, np.zeros(8, int), weights, powers)
    for z in (np.array([0, 0, 1, 1, 2, 2, 0, 1]), np.array([0, 1, 2, 0, 0, 0, 1, 1])):
        assert naive_error(codes, z, weights, powers) == pytest.approx(
            one - weights.sum() * powers @ utility(cells, z, 3)
        )


def test_no_step_raises_the_error(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    codes = rng.integers(4, size=(200, 6))
    codes[rng.random(codes.shape) < 0.2] = -1
    cells, z, last = laid_out(codes), rng.integers(5, size=200), np.inf
    for _ in range(20):
        z, errors = assign(cells, centers(cells, z, 5))
        assert errors.sum() <= last + 1e-9
        last = errors.sum()
