"""Trees on label histograms against the greedy algorithm on all pairs."""

import itertools

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage

from partita.consensus.linkage.agglomeration import (
    agglomerate,
    cut,
    label_leaves,
    pair_link,
    scipy_linkage,
)
from partita.dispatch import interpreted
from partita.labels import canonical, signatures


def check_greedy(tree, Y, sizes, same, different, seen=None):
    """Each merge joins two clusters of the largest link at that time; sums over pairs of rows, no histograms.

    There are many ties, and any of the tied pairs may be joined.
    """
    both = (Y[:, None] >= 0) & (Y[None, :] >= 0)
    equal = both & (Y[:, None] == Y[None, :])
    copies = np.outer(sizes, sizes)
    above = copies * (equal @ same + (both & ~equal) @ different)
    below = copies * (1.0 if seen is None else both @ seen)

    def link_of(u, v):
        total, n = (table[np.ix_(members[u], members[v])].sum() for table in (above, below))
        return total / n if n > 0 else 0.0

    members = {i: [i] for i in range(len(Y))}
    for step, ((u, v), link) in enumerate(zip(tree.children, tree.links, strict=True)):
        assert link == link_of(u, v)
        assert link == max(link_of(*pair) for pair in itertools.combinations(members, 2))
        members[len(Y) + step] = members.pop(u) + members.pop(v)
    assert len(members) == 1


def distinct_rows(seed, holes):
    rng = np.random.default_rng(seed)
    Y = np.where(rng.random((25, 5)) < 0.5, rng.integers(3, size=(25, 5)), rng.integers(3, size=(25, 1)))
    Y = np.where(rng.random(Y.shape) < holes, -1, Y)
    found = signatures(Y)
    return found.rows, found.weights, rng


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("pooled", [False, True])
def test_the_chain_makes_merges_of_the_greedy_algorithm(seed, holes, pooled, global_random_seed):
    # whole numbers: sums are exact, so that ties are ties in both
    Y, sizes, rng = distinct_rows(global_random_seed + seed, holes)
    same, different = rng.integers(0, 3, size=5).astype(float), -rng.integers(0, 3, size=5).astype(float)
    seen = np.ones(5) if pooled else None
    if pooled:
        same, different = np.ones(5), np.zeros(5)
    leaves = label_leaves(Y, np.full(5, 3), sizes)
    tree = agglomerate(leaves, pair_link(leaves, same, different, seen))
    check_greedy(tree, Y, sizes, same, different, seen)
    linkage = scipy_linkage(tree, float(tree.links.max()))
    assert is_valid_linkage(linkage)
    assert linkage[-1, 3] == len(Y)


def test_compiled_and_interpreted_agree(global_random_seed):
    Y, sizes, _ = distinct_rows(global_random_seed, 0.3)
    leaves = label_leaves(Y, np.full(5, 3), sizes)
    link = pair_link(leaves, np.ones(5), -np.ones(5))
    compiled = agglomerate(leaves, link)
    with interpreted():
        plain = agglomerate(leaves, link)
    assert np.array_equal(compiled.children, plain.children)
    assert np.array_equal(compiled.links, plain.links)


def test_the_pool_is_tidied_when_it_is_full():
    # one cluster that takes in one row at a time: every merge writes a long row anew
    n = 60
    Y = np.minimum.outer(np.arange(n), np.arange(n))
    leaves = label_leaves(Y, np.full(n, n), np.ones(n))
    link = pair_link(leaves, np.ones(n), np.zeros(n))
    check_greedy(agglomerate(leaves, link), Y, np.ones(n), np.ones(n), np.zeros(n))


def test_cuts_are_nested_and_have_their_number(global_random_seed):
    Y, sizes, _ = distinct_rows(global_random_seed + 1, 0.0)
    leaves = label_leaves(Y, np.full(5, 3), sizes)
    tree = agglomerate(leaves, pair_link(leaves, np.ones(5), np.zeros(5)))
    finer = cut(tree, len(Y))
    assert np.array_equal(finer, np.arange(len(Y)))
    for K in range(len(Y) - 1, 0, -1):
        coarser = cut(tree, K)
        assert np.unique(coarser).size == K
        assert np.array_equal(coarser, canonical(coarser))
        assert len(set(zip(finer, coarser, strict=True))) == K + 1  # every finer cluster lies in one
        finer = coarser


def test_one_leaf_is_a_tree():
    leaves = label_leaves(np.array([[0, 0]]), np.ones(2, int), np.array([4.0]))
    tree = agglomerate(leaves, pair_link(leaves, np.ones(2), np.zeros(2)))
    assert tree.links.size == 0
    assert cut(tree, 1).tolist() == [0]
