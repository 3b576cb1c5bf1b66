"""The grain of a Bayesian tree: its upper part, and the probability that two rows share a cluster."""

from __future__ import annotations

import numpy as np

from partita.posterior import Grain
from partita.posterior.joining import Joins, grown_levels, renumbered
from partita.posterior.support import level_margins
from partita.trees.bayesian.cut import cut_nodes
from partita.trees.bayesian.merging import Merges

MAX_GROUPS = 64  # of the finest level, unless the answer has more clusters


def finest_nodes(merges: Merges, n_clusters: int) -> np.ndarray:
    """The nodes of the finest level, in the order of their numbers."""
    m = len(merges.children) + 1
    return cut_nodes(merges, grown_levels(min(m, (MAX_GROUPS / 2) ** 2), n_clusters, m))


def tree_grain(merges: Merges, labels: np.ndarray, n_clusters: int) -> tuple[Grain, np.ndarray]:
    """The levels that undo the least probable merges one after the other, from the root down.

    The level with ``n_clusters`` is ``labels``. Also returns the finest group of each of the :func:`finest_nodes`.
    """
    m = len(merges.children) + 1
    nodes = finest_nodes(merges, n_clusters)
    joins = _joins(merges, nodes)
    owner = owners(merges, nodes)
    sizes = np.bincount(owner[:m], minlength=len(nodes)).astype(float)
    clusters = np.zeros(len(nodes), np.int64)
    clusters[owner[:m]] = labels
    joins, onto, _ = renumbered(joins, sizes, clusters)
    finest = onto[owner[:m]]
    support = _support(merges, np.append(onto, -1)[owner], joins.joins, finest)
    sizes = np.bincount(finest).astype(float)
    kind = "probability of the join"
    return Grain(finest, joins.joins, joins.heights, support, sizes, kind, "probability"), onto


def _joins(merges: Merges, nodes: np.ndarray) -> Joins:
    """The joins of the finest groups, in the order of their nodes.

    Merges above the finest level are undone from the root down, the least probable first; here they are in the
    reverse order.
    """
    m, G = len(merges.children) + 1, len(nodes)
    name = np.full(2 * m - 1, -1)
    name[nodes] = np.arange(G)
    undone: list[int] = []
    open_nodes = {2 * m - 2} - set(nodes.tolist())
    while open_nodes:
        node = min(open_nodes, key=lambda v: (merges.log_odds[v - m], v))
        undone.append(node)
        open_nodes.remove(node)
        open_nodes |= {int(v) for v in merges.children[node - m] if name[v] < 0}
    joins, heights = np.empty((G - 1, 2), np.int64), np.empty(G - 1)
    for t, node in enumerate(undone[::-1]):
        name[node] = G + t
        joins[t] = np.sort(name[merges.children[node - m]])
        heights[t] = np.logaddexp(0.0, -merges.log_odds[node - m])
    return Joins(joins, heights)


def owners(merges: Merges, nodes: np.ndarray) -> np.ndarray:
    """Which of these nodes each node is or is below; -1 above them. The first ones are the rows.

    Examples
    --------
    >>> owners(Merges(np.array([[0, 2], [1, 3]]), np.zeros(2)), np.array([1, 3]))
    array([ 1,  0,  1,  1, -1])
    """
    m = len(merges.children) + 1
    owner = np.full(2 * m - 1, -1)
    owner[nodes] = np.arange(len(nodes))
    for t in range(m - 2, -1, -1):
        if owner[m + t] >= 0:
            owner[merges.children[t]] = owner[m + t]
    return owner


def _support(merges: Merges, owner: np.ndarray, joins: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Margins of the levels, where two rows share a cluster if a node above both is one, given the tree.

    The probability that it is so for two rows whose nearest common node is v is one minus the probability that v and
    all nodes above it are divided. Rows of one finest group have the same mean for every other group, so the groups
    are used in place of the rows.
    """
    m, G = len(merges.children) + 1, len(joins) + 1
    log_divided = -np.logaddexp(0.0, merges.log_odds)
    apart = np.zeros(2 * m - 1)  # log probability that a node and all nodes above it are divided
    mates = np.zeros(
        2 * m - 1
    )  # expected rows of its group that are in one cluster with each row below a node
    counts = np.ones(2 * m - 1)
    for t in range(m - 1):
        counts[m + t] = counts[merges.children[t]].sum()
    together = np.zeros((G, G))
    below = _groups_below(merges, owner)
    for t in range(m - 2, -1, -1):
        i, j = merges.children[t]
        apart[m + t] += log_divided[t]
        shared = -np.expm1(apart[m + t])
        for side, other in ((i, j), (j, i)):
            apart[side] = apart[m + t]
            if owner[m + t] >= 0:
                mates[side] = mates[m + t] + counts[other] * shared
            else:
                together[np.ix_(below[side], below[other])] = shared
    size = np.bincount(labels, minlength=G).astype(float)
    together *= size
    np.fill_diagonal(together, 1.0 + np.bincount(labels, mates[:m], minlength=G) / size)
    return level_margins(together, np.ones(G), np.arange(G), size, joins)


def _groups_below(merges: Merges, owner: np.ndarray) -> list[np.ndarray]:
    """The finest groups below each node that is above them, and the own group of the nodes of the finest level."""
    m = len(merges.children) + 1
    groups: list[np.ndarray] = [np.zeros(0, np.int64)] * (2 * m - 1)
    for t in range(m - 1):
        if owner[m + t] < 0:
            for v in merges.children[t]:
                if owner[v] >= 0:
                    groups[v] = owner[[v]]
            i, j = merges.children[t]
            groups[m + t] = np.concatenate([groups[i], groups[j]])
    return groups
