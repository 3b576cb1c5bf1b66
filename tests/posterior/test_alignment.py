import itertools

import numpy as np
import pytest

from partita.posterior import align_draws, summarize_aligned


def test_permuting_the_names_of_draws_changes_nothing(noisy_copies, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    draws, z = noisy_copies(rng, 40, 60, 5, 0.2)
    renamed = np.array([rng.permutation(9)[row] for row in draws])
    first, second = align_draws(draws, z), align_draws(renamed, 8 - z)
    assert np.array_equal(first.labels, second.labels)
    assert np.array_equal(first.membership, second.membership)
    assert np.allclose(first.quality, second.quality)


def test_aligned_draws_are_the_same_partitions(noisy_copies, global_random_seed):
    draws, z = noisy_copies(np.random.default_rng(global_random_seed), 20, 30, 4, 0.4)
    found = align_draws(draws, z)
    for before, after, names in zip(draws, found.labels, found.assignment, strict=True):
        assert np.array_equal(before[:, None] == before, after[:, None] == after)
        assert np.array_equal(names[before], after)


def test_the_assignment_is_optimal(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(20):
        z, draw = rng.integers(4, size=(2, 15))
        z[:4] = draw[:4] = np.arange(4)
        best = max(np.mean(np.array(names)[draw] == z) for names in itertools.permutations(range(4)))
        found = align_draws(draw[None], z)
        assert found.quality[0] == pytest.approx(best)


def test_clusters_without_a_partner_get_names_of_their_own():
    found = align_draws([[0, 1, 2, 3]], [0, 0, 0, 0])
    assert sorted(found.labels[0].tolist()) == [0, 1, 2, 3]
    assert found.quality[0] == 0.25 and found.membership.shape == (4, 1)


def test_summaries_follow_clusters_through_switched_labels(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1, 2], 10)
    draws, values = [], []
    for _ in range(200):
        names = rng.permutation(3)
        draws.append(names[z])
        means = np.empty((3, 2))
        means[names] = rng.normal([[0, 0], [5, 5], [9, -9]], 0.5)
        values.append(means)
    found = summarize_aligned(values, align_draws(draws, z))
    # 5 standard errors of a mean of 200 draws, and of their standard deviation
    assert np.abs(found.mean - [[0, 0], [5, 5], [9, -9]]).max() < 5 * 0.5 / np.sqrt(200)
    assert np.abs(found.standard_error - 0.5).max() < 5 * 0.5 / np.sqrt(400)
    assert found.n_draws.tolist() == [200, 200, 200]


def test_standard_errors_are_refused_where_the_match_is_poor(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    draws = rng.integers(3, size=(30, 40))
    found = align_draws(draws, rng.integers(3, size=40))
    values = [np.zeros(int(row.max()) + 1) for row in draws]
    with pytest.raises(ValueError, match=r"no standard errors: .* cluster 0 .* \(match quality 0\.\d\d\)"):
        summarize_aligned(values, found)
    assert summarize_aligned(values, found, min_quality=0.0).mean.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="30 draws were aligned"):
        summarize_aligned(values[:-1], found)
    with pytest.raises(ValueError, match=r"values\[0\] has 1 rows"):
        summarize_aligned([np.zeros(1)] * 30, found, min_quality=0.0)
