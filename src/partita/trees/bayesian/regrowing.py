"""Better trees than the greedy one: a partition is searched, and a tree is grown around it.

The greedy algorithm never undoes a merge. Two rows of different clusters that are merged early stay together, and
clusters attract rows in proportion to their size, so on tables of several hundred rows its best partition can be
hundreds of nats below the best one. Every binary tree has a bound of the evidence and odds that are exact for it;
only the search is greedy. Here, short chains with the hyper-parameters of the tree search for a more probable
partition. The tree around it consists of one greedy tree for each of its clusters, and a greedy tree above these.
Whoever calls keeps the tree with the higher bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import gammaln

from partita.engines.climb.seeding import seed_labels
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.engines.passes.rows import assign_rows, predictive
from partita.execution import Serial
from partita.families import Block
from partita.families.rows import log_marginals
from partita.labels import canonical
from partita.partitions import DirichletProcess
from partita.trees.bayesian.merging import Merges, TreeLeaves, grow

MAX_ITERATIONS = 30  # of a chain
PATIENCE = 8  # iterations without a better partition that end it
MAX_ASCENT_STEPS = 5
SEARCH_SEED = 0  # fixed: the bound judges the result, and the same table should have the same tree
MAX_SEEDS, ROWS_PER_SEED = 30, 5  # clusters of the start with many clusters


class FoundPartition(NamedTuple):
    """A partition of the leaves, and its log joint probability with the data, up to a constant."""

    labels: np.ndarray
    log_joint: float


def partition_log_joint(
    families: Sequence[Any], leaves: TreeLeaves, labels: np.ndarray, concentration: float
) -> float:
    """Log joint probability of data and partition, up to a constant that does not depend on the partition.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> from partita.trees.bayesian.merging import row_leaves
    >>> block = Block(Bernoulli.default(1), np.array([[1], [1]], np.int8), ("a",))
    >>> leaves = row_leaves([block], [block.family], 2, 1.0)
    >>> one, two = (partition_log_joint([block.family], leaves, np.array(z), 1.0) for z in ([0, 0], [0, 1]))
    >>> float(np.exp(one - two).round(3))  # the odds of the merge
    1.5
    """
    N = len(labels)
    member = csr_matrix((np.ones(N), (labels, np.arange(N))))
    n = member @ leaves.n
    total = float((np.log(concentration) + gammaln(n)).sum())
    for family, s in zip(families, leaves.S, strict=True):
        total += float(log_marginals(family, np.ascontiguousarray((member @ s).T)).sum())
    return total


def search_partition(
    blocks: Sequence[Block], leaves: TreeLeaves, labels: np.ndarray, concentration: float, seed: int
) -> FoundPartition:
    """The most probable partition that a short chain from these labels visits, each visit followed by an ascent.

    The families of ``blocks`` and the concentration stay as they are.
    """
    families = [block.family for block in blocks]
    schedule = chains.Schedule(learn_concentration=False, learn_likelihood=False)
    chain = chains.start(blocks, DirichletProcess(concentration), labels, seed)
    best = FoundPartition(labels, partition_log_joint(families, leaves, labels, concentration))
    since = 0
    for _ in range(MAX_ITERATIONS):
        chain = chains.step(chain, schedule)
        found = _ascend(blocks, leaves, canonical(sweep.labels(chain.seating)), concentration)
        since += 1
        if found.log_joint > best.log_joint + 1e-9 * abs(best.log_joint):
            best, since = found, 0
        if since >= PATIENCE:
            break
    return best


def _ascend(
    blocks: Sequence[Block], leaves: TreeLeaves, labels: np.ndarray, concentration: float
) -> FoundPartition:
    """All rows to their most probable clusters at once, as long as the partition becomes more probable."""
    families = [block.family for block in blocks]
    best = FoundPartition(labels, partition_log_joint(families, leaves, labels, concentration))
    for _ in range(MAX_ASCENT_STEPS):
        z = best.labels
        member = csr_matrix((np.ones(len(z)), (z, np.arange(len(z)))))
        S = [np.ascontiguousarray((member @ s).T) for s in leaves.S]
        moved = canonical(assign_rows(predictive(blocks, S, np.log(member @ leaves.n)), len(z)).labels)
        value = partition_log_joint(families, leaves, moved, concentration)
        if not value > best.log_joint:
            break
        best = FoundPartition(moved, value)
    return best


def search_from_afar(
    blocks: Sequence[Block], leaves: TreeLeaves, concentration: float
) -> tuple[FoundPartition, FoundPartition]:
    """Two searches that know nothing of the tree: from one cluster, and from many."""
    N = len(leaves.n)
    one = np.zeros(N, np.int64)
    K = min(MAX_SEEDS, max(N // ROWS_PER_SEED, 1))
    many = canonical(seed_labels(blocks, K, np.random.default_rng(SEARCH_SEED)))
    return (
        search_partition(blocks, leaves, one, concentration, SEARCH_SEED + 1),
        search_partition(blocks, leaves, many, concentration, SEARCH_SEED + 2),
    )


# ---- trees over groups of rows ---------------------------------------------------------------------------------


def grow_around(
    families: Sequence[Any],
    leaves: TreeLeaves,
    labels: np.ndarray,
    concentration: float,
    *,
    executor: Any = None,
    grow_group: Callable[[np.ndarray], Merges] | None = None,
) -> Merges:
    """One tree over all leaves in which every cluster of a partition is a subtree.

    ``grow_group(rows)`` grows the tree of one cluster; by default it is the greedy tree.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> from partita.trees.bayesian.merging import row_leaves
    >>> block = Block(
    ...     Bernoulli.default(3), np.array([[1, 1, 1], [0, 0, 0], [1, 1, 1]], np.int8), tuple("abc")
    ... )
    >>> leaves = row_leaves([block], [block.family], 3, 1.0)
    >>> grow_around([block.family], leaves, np.array([0, 0, 1]), 1.0).children.tolist()
    [[0, 1], [3, 2]]
    """
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    grow_one = grow_group or (lambda rows: grow(families, some_leaves(leaves, rows), concentration))
    trees = list((Serial() if executor is None else executor).map(grow_one, groups))
    return join_trees(families, leaves, groups, trees, concentration)


def join_trees(
    families: Sequence[Any],
    leaves: TreeLeaves,
    groups: Sequence[np.ndarray],
    trees: Sequence[Merges],
    concentration: float,
) -> Merges:
    """One tree over all leaves from the trees of disjoint groups of them: a greedy tree whose leaves are trees."""
    children, log_odds, roots = [], [], []
    next_node = len(leaves.n)
    for rows, merges in zip(groups, trees, strict=True):
        names = np.concatenate([rows, next_node + np.arange(len(rows) - 1)])
        children.append(names[merges.children].reshape(-1, 2))
        log_odds.append(merges.log_odds)
        next_node += len(rows) - 1
        roots.append(names[-1])
    top = grow(families, _roots(leaves, groups, log_odds), concentration)
    names = np.concatenate([roots, next_node + np.arange(len(groups) - 1)])
    children.append(names[top.children].reshape(-1, 2))
    log_odds.append(top.log_odds)
    return Merges(np.concatenate(children).astype(np.int64), np.concatenate(log_odds))


def some_leaves(leaves: TreeLeaves, rows: np.ndarray) -> TreeLeaves:
    """The leaves with these numbers."""
    return TreeLeaves(tuple(s[rows] for s in leaves.S), leaves.n[rows], leaves.log_weight[rows])


def _roots(leaves: TreeLeaves, groups: Sequence[np.ndarray], log_odds: Sequence[np.ndarray]) -> TreeLeaves:
    """Whole trees as leaves: the weight of a merge is the product of both weights times one plus the odds."""
    S = tuple(np.stack([s[rows].sum(axis=0) for rows in groups]) for s in leaves.S)
    n = np.array([leaves.n[rows].sum() for rows in groups])
    weight = [
        leaves.log_weight[rows].sum() + np.logaddexp(0.0, odds).sum()
        for rows, odds in zip(groups, log_odds, strict=True)
    ]
    return TreeLeaves(S, n, np.array(weight))
