import numpy as np
import pytest

from partita.execution import memory
from partita.posterior import (
    coclustering,
    coclustering_matrix,
    coclustering_pairs,
    coclustering_with_clusters,
    confidence,
    similarity,
)


@pytest.fixture
def draws(global_random_seed):
    return np.random.default_rng(global_random_seed).integers(4, size=(30, 12))


@pytest.fixture
def naive(draws):
    return (draws[:, :, None] == draws[:, None, :]).mean(axis=0)


def test_operator_matrix_and_pairs_agree_with_the_definition(draws, naive, global_random_seed):
    assert np.allclose(coclustering_matrix(draws), naive)
    v = np.random.default_rng(global_random_seed).normal(size=12)
    assert np.allclose(coclustering(draws) @ v, naive @ v)
    i, j = np.indices((12, 12))
    assert np.allclose(coclustering_pairs(draws, i, j), naive)


def test_weights_count_draws(draws, global_random_seed):
    weights = np.random.default_rng(global_random_seed).integers(0, 4, size=30)
    repeated = np.repeat(draws, weights, axis=0)
    assert np.allclose(coclustering_matrix(draws, weights=weights), coclustering_matrix(repeated))
    assert np.allclose(coclustering_pairs(draws, 0, 5, weights=weights), coclustering_pairs(repeated, 0, 5))
    z = np.arange(12) % 3
    assert np.allclose(
        coclustering_with_clusters(draws, z, weights=weights), coclustering_with_clusters(repeated, z)
    )


def test_chunks_of_pairs_are_the_same_as_all_at_once(draws, naive, monkeypatch):
    monkeypatch.setattr(similarity, "CHUNK_ENTRIES", 60)
    assert np.allclose(coclustering_pairs(draws, np.arange(12), 3), naive[3])
    with pytest.raises(ValueError, match="integers from 0 to 11"):
        coclustering_pairs(draws, 0, 12)


def test_means_with_clusters_leave_the_object_itself_out(draws, naive):
    z = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3])
    found = coclustering_with_clusters(draws, z)
    for i in range(11):
        for k in range(4):
            members = [j for j in range(12) if z[j] == k and j != i]
            assert found[i, k] == pytest.approx(naive[i, members].mean())
    alone = [(draw == draw[11]).sum() == 1 for draw in draws]
    assert found[11, 3] == pytest.approx(np.mean(alone))


def test_the_full_matrix_is_refused_before_it_is_allocated(monkeypatch):
    wide = np.zeros((2, 200_000), dtype=np.int8)
    monkeypatch.setattr(memory, "memory_limit", lambda: 2**34)
    monkeypatch.setattr(similarity, "coclustering", lambda *_, **__: pytest.fail("it went on"))
    with pytest.raises(MemoryError, match=r"200,000 objects need about 320.0 GB.*operator"):
        coclustering_matrix(wide)


def test_confidence_of_objects_and_clusters(draws, naive):
    z = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    found = confidence(draws, z)
    for k in range(3):
        inside = z == k
        within = naive[np.ix_(inside, inside)][~np.eye(4, dtype=bool)].mean()
        others = [naive[np.ix_(inside, z == l)].mean() if l != k else -1 for l in range(3)]
        assert found.within[k] == pytest.approx(within)
        assert found.nearest[k] == int(np.argmax(others))
        assert found.separation[k] == pytest.approx(within - max(others))
    assert found.objects[0] == pytest.approx(naive[0, 1:4].mean())


def test_singletons_and_single_clusters_have_a_confidence():
    found = confidence([[0, 1, 1], [0, 1, 2], [0, 0, 0], [1, 0, 0]], [0, 1, 1])
    assert found.objects.tolist() == [0.75, 0.75, 0.75]
    one = confidence([[0, 0], [0, 1]], [0, 0])
    assert (one.within.tolist(), one.nearest.tolist(), one.separation.tolist()) == ([0.5], [-1], [0.5])
    assert confidence([[0], [0]], [0]).objects.tolist() == [1.0]


def test_names_and_order_do_not_matter(draws, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    order, names = rng.permutation(12), rng.permutation(50)
    first, second = confidence(draws, z), confidence(names[draws][::-1][:, order], names[z][order])
    assert np.allclose(first.objects[order], second.objects)
    assert np.allclose(sorted(first.separation), sorted(second.separation))
