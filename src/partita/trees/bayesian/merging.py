"""Bayesian hierarchical clustering: greedy merging by the odds that two trees are one cluster.

Heller and Ghahramani (2005), in unnormalized form. For a node k over n_k objects with the statistics S_k let

    E_k = alpha Gamma(n_k) p(D_k)          all its objects in one cluster,
    W_k = E_k + W_i W_j                    all partitions of them that the tree allows (i and j are its children),

and W = E at a leaf. The odds of a merge are ``E_k / (W_i W_j)``. In the notation of the paper, d_k is W_k with every
p(D) set to one, and p(D_k | T_k) is W_k / d_k. A Dirichlet process mixture gives the data at least
``W_root Gamma(alpha) / Gamma(N + alpha)``, because the sum at the root runs over some partitions and the process over
all of them.

The odds of a pair do not depend on the other trees. So each tree stores its best partner, and after a merge only the
odds of the new tree with the others are computed. A tree whose partner was merged keeps the old odds as an upper bound,
and looks for a new partner when this bound is the largest. That is exact, takes typically O(N^2) evaluations of a
marginal likelihood, and needs no matrix of pairs. Ties go to the smallest positions (a merged tree takes the later
position of its two).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.dispatch import kernel
from partita.families.contract import log_marginal, n_columns, stats_start
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals


class TreeLeaves(NamedTuple):
    """The leaves that merging starts from: single rows, or trees that were grown before.

    Statistics of each block [leaf, statistic], number of objects, and log W of each leaf.
    """

    S: tuple[np.ndarray, ...]
    n: np.ndarray
    log_weight: np.ndarray


class Merges(NamedTuple):
    """Merges in their order: row t joins two nodes into node ``n_leaves + t``, with the log odds of one cluster."""

    children: np.ndarray
    log_odds: np.ndarray


class Evidence(NamedTuple):
    """A tree under given hyper-parameters.

    Log odds of each merge, log W of each node, and the posterior probability that a node is a cluster of the partition,
    over the partitions that the tree allows.
    """

    log_odds: np.ndarray
    log_weight: np.ndarray
    cluster_probability: np.ndarray


def row_leaves(
    blocks: Sequence[Block], families: Sequence[Any], n_rows: int, concentration: float
) -> TreeLeaves:
    """Every row is a leaf.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> block = Block(Bernoulli.default(1), np.array([[1], [0]], np.int8), ("a",))
    >>> np.exp(row_leaves([block], [block.family], 2, 1.0).log_weight)
    array([0.5, 0.5])
    """
    S = []
    log_weight = np.full(n_rows, np.log(concentration))
    for block, family in zip(blocks, families, strict=True):
        s = np.zeros((int(stats_start(family, n_columns(family))), n_rows))
        add_statistics(family, block.data, np.arange(n_rows), s)
        s[:, np.isnan(s).any(axis=0)] = 0.0  # a vector without any observed coordinate carries no information
        log_weight += log_marginals(family, s).sum(axis=0)
        S.append(np.ascontiguousarray(s.T))
    return TreeLeaves(tuple(S), np.ones(n_rows), log_weight)


def grow(families: Sequence[Any], leaves: TreeLeaves, concentration: float) -> Merges:
    """Merge the pair with the highest odds until one tree is left.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> block = Block(
    ...     Bernoulli.default(3), np.array([[1, 1, 1], [0, 0, 0], [1, 1, 1]], np.int8), tuple("abc")
    ... )
    >>> leaves = row_leaves([block], [block.family], 3, 1.0)
    >>> merges = grow([block.family], leaves, 1.0)
    >>> merges.children.tolist(), np.exp(merges.log_odds).round(3).tolist()
    ([[0, 2], [1, 3]], [3.375, 0.057])
    """
    m = len(leaves.n)
    S, n, log_weight = tuple(s.copy() for s in leaves.S), leaves.n.copy(), leaves.log_weight.copy()
    node, alive = np.arange(m), np.arange(m)
    best, partner, fresh = np.full(m, -np.inf), np.full(m, -1), np.ones(m, bool)
    children, log_odds = np.empty((max(m - 1, 0), 2), np.int64), np.empty(max(m - 1, 0))

    def odds(i: int, others: np.ndarray) -> np.ndarray:
        out = gammaln(n[i] + n[others])
        out += np.log(concentration) - log_weight[i] - log_weight[others]
        for family, s in zip(families, S, strict=True):
            joined_log_marginals(family, s, i, others, out)
        return out

    def look(i: int, later: np.ndarray) -> None:
        fresh[i] = True
        best[i], partner[i] = -np.inf, -1
        if len(later):
            values = odds(i, later)
            first = int(values.argmax())
            best[i], partner[i] = values[first], later[first]

    for i in range(m - 1):
        look(i, alive[i + 1 :])
    for t in range(m - 1):
        i = int(best.argmax())
        while not fresh[i]:
            look(i, alive[np.searchsorted(alive, i) + 1 :])
            i = int(best.argmax())
        j = int(partner[i])
        children[t], log_odds[t] = sorted((node[i], node[j])), best[i]
        # W = E + W_i W_j, where E is the odds times W_i W_j
        log_weight[j] += log_weight[i] + np.logaddexp(0.0, best[i])
        for s in S:
            s[j] += s[i]
        n[j], node[j] = n[i] + n[j], m + t
        best[i], best[j], partner[j], fresh[j] = -np.inf, -np.inf, -1, True
        alive = np.delete(alive, np.searchsorted(alive, i))
        place = int(np.searchsorted(alive, j))
        before, after = alive[:place], alive[place + 1 :]
        fresh[before[(partner[before] == i) | (partner[before] == j)]] = False
        values = odds(j, before)
        better = (values > best[before]) | (~fresh[before] & (values == best[before]))
        best[before[better]], partner[before[better]], fresh[before[better]] = values[better], j, True
        look(j, after)
    return Merges(children, log_odds)


@kernel
def joined_log_marginals(lik, S, i, others, out):
    """``out[a] += log marginal of the trees i and others[a] as one cluster``."""
    s = np.empty(S.shape[1])
    for a in range(others.shape[0]):
        j = others[a]
        for e in range(s.shape[0]):
            s[e] = S[i, e] + S[j, e]
        for d in range(n_columns(lik)):
            out[a] += log_marginal(lik, d, s[stats_start(lik, d) : stats_start(lik, d + 1)])


# ---- a given tree ----------------------------------------------------------------------------------------------


def node_sums(children: np.ndarray, leaf_values: np.ndarray) -> np.ndarray:
    """Sums over the leaves below each node: sizes from ones, statistics from those of the rows [leaf, ...].

    Examples
    --------
    >>> node_sums(np.array([[0, 2], [1, 3]]), np.ones(3))
    array([1., 1., 1., 2., 3.])
    """
    m = len(leaf_values)
    flat = leaf_values.reshape(m, -1)
    out = np.empty((2 * m - 1, flat.shape[1]))
    out[:m] = flat
    add_children(children, out)
    return out.reshape((2 * m - 1, *leaf_values.shape[1:]))


def weigh(
    children: np.ndarray, log_marginal_of_nodes: np.ndarray, n: np.ndarray, concentration: float
) -> Evidence:
    """Odds, weights and probabilities of a tree whose nodes have these log marginals and sizes.

    The derivative of log W at the root by the log marginal of a node is the cluster probability of that node, so this
    is also the backward pass of any gradient through the tree.

    Examples
    --------
    >>> found = weigh(np.array([[0, 1]]), np.log([0.5, 0.5, 0.375]), np.array([1.0, 1.0, 2.0]), 1.0)
    >>> np.exp(found.log_odds), found.cluster_probability
    (array([1.5]), array([0.4, 0.4, 0.6]))
    """
    log_one = np.log(concentration) + gammaln(n) + log_marginal_of_nodes
    log_weight, probability = log_one.copy(), np.zeros(len(n))
    log_odds = np.empty(len(children))
    up_and_down(children, log_one, log_odds, log_weight, probability)
    return Evidence(log_odds, log_weight, probability)


def log_bound(evidence: Evidence, n_objects: float, concentration: float) -> float:
    """Lower bound of the log evidence of the Dirichlet process mixture.

    Examples
    --------
    >>> found = weigh(np.array([[0, 1]]), np.log([0.5, 0.5, 0.375]), np.array([1.0, 1.0, 2.0]), 1.0)
    >>> round(float(np.exp(log_bound(found, 2, 1.0))), 4)  # two objects: every partition is in the tree
    0.3125
    """
    return float(evidence.log_weight[-1] + gammaln(concentration) - gammaln(n_objects + concentration))


@kernel
def add_children(children, out):
    """Fill the rows of inner nodes with the sums of their children."""
    m = children.shape[0] + 1
    for t in range(m - 1):
        for e in range(out.shape[1]):
            out[m + t, e] = out[children[t, 0], e] + out[children[t, 1], e]


@kernel
def up_and_down(children, log_one, log_odds, log_weight, probability):
    """W and odds from the leaves to the root, then the probability of being a cluster from the root to the leaves."""
    m = children.shape[0] + 1
    for t in range(m - 1):
        apart = log_weight[children[t, 0]] + log_weight[children[t, 1]]
        log_odds[t] = log_one[m + t] - apart
        log_weight[m + t] = np.logaddexp(log_one[m + t], apart)
    reached = np.zeros(2 * m - 1)
    reached[2 * m - 2] = 1.0
    for t in range(m - 2, -1, -1):
        merged = 1.0 / (1.0 + np.exp(-log_odds[t]))
        probability[m + t] = merged * reached[m + t]
        for side in range(2):
            reached[children[t, side]] = reached[m + t] / (1.0 + np.exp(log_odds[t]))
    for i in range(m):
        probability[i] = reached[i]
