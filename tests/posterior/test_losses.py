import itertools

import numpy as np
import pytest

from partita.metrics import normalized_mutual_info, variation_of_information
from partita.posterior import expected_loss, loss_matrix


def conditional_entropy(u, v):
    """H(u | v) in bits."""
    total = 0.0
    for cluster in set(v):
        inside = [x for x, y in zip(u, v, strict=True) if y == cluster]
        shares = [inside.count(x) / len(inside) for x in set(inside)]
        total -= len(inside) / len(v) * sum(p * np.log2(p) for p in shares)
    return total


def naive(name, a, c, z):
    n = len(c)
    if name == "vi":
        return a * conditional_entropy(c, z) + (2 - a) * conditional_entropy(z, c)
    if name == "binder":
        pairs = itertools.permutations(range(n), 2)
        return (
            sum(
                a * (z[i] == z[j] and c[i] != c[j]) + (2 - a) * (z[i] != z[j] and c[i] == c[j])
                for i, j in pairs
            )
            / n**2
        )
    if name == "nvi":
        return variation_of_information(z, c, normalized=True)
    return 1.0 - normalized_mutual_info(z, c, average="max")


CASES = [("vi", 1.0), ("vi", 0.3), ("binder", 1.0), ("binder", 1.7), ("nvi", 1.0), ("nid", 1.0)]


@pytest.mark.parametrize(("name", "a"), CASES)
def test_losses_are_the_textbook_ones(name, a, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    A, B = rng.integers(3, size=(6, 9)), rng.integers(5, size=(7, 9))
    A[0], B[0] = 0, 4  # one cluster on both sides
    found = loss_matrix(A, B, name, a=a)
    wanted = [[naive(name, a, c.tolist(), z.tolist()) for z in B] for c in A]
    assert np.allclose(found, wanted, atol=1e-12)


def test_variation_of_information_is_that_of_the_metrics(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    c, z = rng.integers(4, size=(2, 50))
    assert loss_matrix([c], [z])[0, 0] == pytest.approx(variation_of_information(z, c, base=2))


@pytest.mark.parametrize(("name", "a"), CASES)
def test_equal_partitions_cost_nothing_whatever_their_labels(name, a, partitions_of_8):
    some = partitions_of_8[::97]
    renamed = np.array([(7 - row) * 3 for row in some])
    assert np.abs(np.diag(loss_matrix(some, renamed, name, a=a))).max() < 1e-12


@pytest.mark.parametrize("name", ["vi", "binder", "nvi", "nid"])
def test_distances_obey_the_triangle(name, partitions_of_8, global_random_seed):
    some = partitions_of_8[
        np.random.default_rng(global_random_seed).choice(len(partitions_of_8), 60, replace=False)
    ]
    d = loss_matrix(some, some, name)
    assert np.allclose(d, d.T)
    assert (d[:, None, :] <= d[:, :, None] + d[None] + 1e-12).all()


def test_weights_count_draws():
    draws, w = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0]]), np.array([1, 3, 2])
    wanted = loss_matrix([[0, 0, 1]], draws)[0] @ w / 6
    assert expected_loss([0, 0, 1], draws, weights=w) == pytest.approx(wanted, abs=1e-15)
    assert expected_loss([0, 0, 1], np.repeat(draws, w, axis=0)) == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "rand"}, "use vi, binder, nvi or nid"),
        ({"a": 2.5}, "between 0 and 2"),
        ({"loss": "nid", "a": 0.5}, "nid has no such parameter"),
        ({"draws": [[0, -1, 0]]}, r"draws\[0, 1\] is -1"),
        ({"draws": [0, 1, 0]}, "one label vector per row"),
        ({"draws": [[0.5, 1.0, 2.0]]}, "labels of draws are integers"),
        ({"partition": [0, 1]}, "the draws label 3 objects"),
        ({"weights": [1.0, 2.0]}, "weights must have shape"),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        expected_loss(**{"partition": [0, 0, 1], "draws": [[0, 0, 1]], **change})
