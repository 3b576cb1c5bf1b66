"""Bayesian trees against a naive implementation, against enumeration, and against finite differences."""

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

from partita.families import FAMILIES, Bernoulli, Block, Counts, GaussianDiagonal, Poisson
from partita.families.contract import constrained, unconstrained
from partita.partitions import DirichletProcess
from partita.testing.enumeration import enumerate_partitions
from partita.trees.bayesian.cut import descend, in_height_order, n_clusters_posterior
from partita.trees.bayesian.growing import grow_in_groups
from partita.trees.bayesian.learning import climb, evidence_of, grow_and_learn
from partita.trees.bayesian.merging import TreeLeaves, grow, log_bound, row_leaves

sys.path.insert(0, str(Path(__file__).parent))
import naive_bhc


def three_groups(rng, name, n_rows):
    """Data with some structure, and a family with uneven hyper-parameters, so that no two pairs have equal odds."""
    z = rng.integers(3, size=n_rows)
    if name == "gaussian":
        X = rng.normal(size=(n_rows, 3)) + 2.0 * rng.normal(size=(3, 3))[z]
        hyper = (rng.normal(size=3), *(rng.uniform(0.3, 2.0, 3) for _ in range(3)))
        return Block(GaussianDiagonal(*hyper), X, tuple("abc")), X, hyper
    if name == "bernoulli":
        X = (rng.random((n_rows, 20)) < rng.uniform(0.1, 0.9, (3, 20))[z]).astype(np.int8)
        hyper = tuple(rng.uniform(0.3, 2.0, 20) for _ in range(2))
        return Block(Bernoulli(*hyper), X, tuple(map(str, range(20)))), X, hyper
    X = rng.poisson(rng.uniform(1.0, 20.0, (3, 4))[z]).astype(float)
    hyper = (rng.uniform(0.5, 2.0, 4), rng.uniform(0.1, 0.5, 4))
    return Block(Poisson(*hyper), Counts(X, np.ones(n_rows)), tuple("abcd")), X, hyper


def members_of(merges, n_rows):
    """Merges as pairs of sets of rows."""
    sets = [frozenset([i]) for i in range(n_rows)]
    pairs = []
    for i, j in merges.children.tolist():
        pairs.append((sets[i], sets[j]))
        sets.append(sets[i] | sets[j])
    return pairs


@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "poisson"])
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_merges_are_those_of_the_naive_algorithm(name, alpha, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    block, X, hyper = three_groups(rng, name, 30)
    expected, log_p, d = naive_bhc.merge_all(X, partial(getattr(naive_bhc, name), hyper=hyper), alpha)
    leaves = row_leaves([block], [block.family], 30, alpha)
    merges = grow([block.family], leaves, alpha)
    found = members_of(merges, 30)
    assert [set(pair) for pair in found] == [{a, b} for a, b, _, _ in expected]
    assert np.allclose(merges.log_odds, [odds for _, _, odds, _ in expected], atol=1e-8)
    evidence = evidence_of([block.family], merges.children, leaves, alpha)
    assert np.allclose(evidence.log_odds, merges.log_odds, atol=1e-9)
    bound = log_p + math.log(d) + gammaln(alpha) - gammaln(30 + alpha)
    assert log_bound(evidence, 30, alpha) == pytest.approx(bound, abs=1e-8)


def random_block(rng, n_rows, family):
    """A registered family's own example, its rows drawn anew with replacement so that some repeat."""
    from partita.families.data import take

    lik, data = FAMILIES[family].examples(rng)[0]
    return Block(lik, take(data, rng.integers(8, size=n_rows)), tuple("abcdefgh"))


def test_the_bound_is_never_above_the_evidence(global_random_seed):
    """Fifty random sets of seven objects; the tree's own sum is over some partitions, the process's over all 877."""
    rng = np.random.default_rng(global_random_seed)
    names = ["gaussian", "bernoulli", "categorical", "poisson", "multinomial", "gaussian_full", "exponential"]
    names = [name for name in names if name in FAMILIES]
    gaps = []
    for draw in range(50):
        block = random_block(rng, 7, names[draw % len(names)])
        alpha = float(rng.uniform(0.2, 3.0))
        leaves = row_leaves([block], [block.family], 7, alpha)
        merges = grow([block.family], leaves, alpha)
        bound = log_bound(evidence_of([block.family], merges.children, leaves, alpha), 7, alpha)
        evidence = enumerate_partitions([block], DirichletProcess(alpha)).log_evidence
        gaps.append(evidence - bound)
    assert min(gaps) > -1e-9 and max(gaps) > 1e-3, (min(gaps), max(gaps))


def test_two_objects_have_no_other_partition(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    block, _, _ = three_groups(rng, "gaussian", 2)
    leaves = row_leaves([block], [block.family], 2, 0.7)
    evidence = evidence_of([block.family], np.array([[0, 1]]), leaves, 0.7)
    exact = enumerate_partitions([block], DirichletProcess(0.7))
    assert log_bound(evidence, 2, 0.7) == pytest.approx(exact.log_evidence)
    assert evidence.cluster_probability[2] == pytest.approx(exact.posterior[0])


def tree_partitions(children, m):
    """Every partition that a tree allows, as lists of nodes."""
    allowed = [[[i]] for i in range(m)]
    for t, (i, j) in enumerate(children):
        allowed.append([[m + t]] + [left + right for left in allowed[i] for right in allowed[j]])
    return allowed[-1]


def test_probabilities_are_sums_over_the_partitions_of_the_tree(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    block, X, hyper = three_groups(rng, "gaussian", 7)
    alpha = 0.8
    leaves = row_leaves([block], [block.family], 7, alpha)
    merges = grow([block.family], leaves, alpha)
    found = evidence_of([block.family], merges.children, leaves, alpha)
    sets = [frozenset([i]) for i in range(7)]
    for i, j in merges.children:
        sets.append(sets[i] | sets[j])
    log_one = [
        np.log(alpha) + gammaln(len(s)) + naive_bhc.gaussian(X[sorted(s)], [h.copy() for h in hyper])
        for s in sets
    ]
    partitions = tree_partitions(merges.children, 7)
    weight = np.exp([sum(log_one[node] for node in p) - found.log_weight[-1] for p in partitions])
    assert weight.sum() == pytest.approx(1.0)
    for node in range(13):
        own = weight[[node in p for p in partitions]].sum()
        assert found.cluster_probability[node] == pytest.approx(own, abs=1e-12)
    law = n_clusters_posterior(merges)
    for k in range(1, 8):
        own = weight[[len(p) == k for p in partitions]].sum()
        assert law.get(k, 0.0) == pytest.approx(own, abs=1e-11)


@pytest.mark.parametrize(
    "name", ["gaussian", "bernoulli", "poisson", "gaussian_full", "categorical", "multinomial"]
)
def test_gradients_through_the_tree(name, global_random_seed):
    """The climb's own gradient against differences of the whole bound."""
    from partita.trees.bayesian import learning

    rng = np.random.default_rng(global_random_seed)
    block = random_block(rng, 9, name)
    leaves = row_leaves([block], [block.family], 9, 1.3)
    children = grow([block.family], leaves, 1.3).children

    def bound(family):
        return log_bound(evidence_of([family], children, leaves, 1.3), 9, 1.3)

    nodes = learning._nodes(children, leaves)
    probability = learning._weigh([block.family], nodes, 1.3).cluster_probability
    part = learning._free(block.family)
    found = learning._slopes(block.family, part, nodes.S[0], probability)
    expected = []
    for key, value in unconstrained(block.family).items():
        for e in range(value.size):
            step = np.zeros(value.size)
            step[e] = 1e-4
            up, down = (
                constrained(block.family, key, value + sign * step.reshape(value.shape)) for sign in (1, -1)
            )
            expected.append((bound(up) - bound(down)) / 2e-4)
    assert np.allclose(found, expected, atol=1e-5, rtol=1e-4)


def test_learning_never_lowers_the_bound_and_finds_the_optimum_of_the_concentration(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    block, _, _ = three_groups(rng, "bernoulli", 40)

    def leaves_under(families, alpha):
        return row_leaves([block], families, 40, alpha)

    options = {"n_rounds": 5, "tol": 1e-6}
    fixed = grow_and_learn(
        [block.family], leaves_under, 1.0, learn_likelihood=False, learn_concentration=False, **options
    )
    found = grow_and_learn(
        [block.family], leaves_under, 1.0, learn_likelihood=True, learn_concentration=True, **options
    )
    assert found.bound > fixed.bound + 1.0
    leaves = leaves_under(fixed.families, 1.0)
    _, alpha, best = climb(
        fixed.families, fixed.merges.children, leaves, 1.0, learn_likelihood=False, learn_concentration=True
    )
    grid = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 200))
    values = [log_bound(evidence_of(fixed.families, fixed.merges.children, leaves, a), 40, a) for a in grid]
    assert best >= max(values) - 1e-6 and abs(np.log(alpha / grid[np.argmax(values)])) < 0.1


def test_groups_give_one_tree_with_the_same_odds(global_random_seed):
    """Dealt into groups of eight: a binary tree over all rows whose odds and weight are those of its own merges."""
    rng = np.random.default_rng(global_random_seed)
    block, _, _ = three_groups(rng, "gaussian", 90)
    leaves = row_leaves([block], [block.family], 90, 1.0)
    merges = grow_in_groups([block.family], [block], leaves, 1.0, rng, max_rows=8)
    assert sorted(merges.children.ravel().tolist()) == list(range(178))
    evidence = evidence_of([block.family], merges.children, leaves, 1.0)
    assert np.allclose(evidence.log_odds, merges.log_odds, atol=1e-8)


def test_trees_may_be_leaves(global_random_seed):
    """Merging whole trees goes on from their weights."""
    rng = np.random.default_rng(global_random_seed)
    block, _, _ = three_groups(rng, "gaussian", 12)
    leaves = row_leaves([block], [block.family], 12, 1.0)
    merges = grow([block.family], leaves, 1.0)
    evidence = evidence_of([block.family], merges.children, leaves, 1.0)
    left, right = merges.children[-1]
    sets = [frozenset([i]) for i in range(12)]
    for i, j in merges.children:
        sets.append(sets[i] | sets[j])
    S = np.stack([leaves.S[0][sorted(sets[node])].sum(axis=0) for node in (left, right)])
    sizes = np.array([len(sets[left]), len(sets[right])], float)
    two = TreeLeaves((S,), sizes, evidence.log_weight[[left, right]])
    assert grow([block.family], two, 1.0).log_odds[0] == pytest.approx(merges.log_odds[-1])


def test_heights_rise_and_scipy_reads_them(global_random_seed):
    from scipy.cluster.hierarchy import fcluster, is_monotonic, is_valid_linkage

    rng = np.random.default_rng(global_random_seed)
    block, _, _ = three_groups(rng, "poisson", 40)
    merges, linkage = in_height_order(grow([block.family], row_leaves([block], [block.family], 40, 1.0), 1.0))
    assert is_valid_linkage(linkage) and is_monotonic(linkage)
    assert np.array_equal(linkage[:, :2], merges.children)
    own = np.logaddexp(0.0, -merges.log_odds)
    assert (linkage[:, 2] >= own - 1e-12).all()
    assert len(set(fcluster(linkage, 3, "maxclust"))) <= 3


def test_descending_divides_by_the_masses():
    """By hand: three clusters, ((0, 1), 2)."""
    mass = np.array([[2.0, 3.0, 4.0, 6.0, 8.0]])  # clusters 0, 1, 2, node (0, 1), root
    odds = np.array([3.0, 1 / 4])
    P, total = descend(np.log(mass), np.array([[0, 1], [3, 2]]), np.log(odds))
    left = 0.75 * 6 + 0.25 * 5
    assert np.allclose(P, [[left / (left + 4) * 0.4, left / (left + 4) * 0.6, 4 / (left + 4)]])
    assert np.exp(total[0]) == pytest.approx(0.2 * 8 + 0.8 * (left + 4))
