"""Results of a tree with merge odds: scipy's linkage matrix, clusters, their number, and probabilities of new rows."""

from __future__ import annotations

import heapq

import numpy as np

from partita.labels import ordered_by_size
from partita.trees.bayesian.merging import Merges

MIN_PROBABILITY = 1e-12  # subtrees and numbers of clusters with a smaller probability are left out


def in_height_order(merges: Merges) -> tuple[Merges, np.ndarray]:
    """The same tree with its merges sorted by height, and scipy's linkage matrix of it.

    The height of a merge is minus the log of its probability, or the largest height below it if that is larger (odds
    may increase again towards the root): near 0 where the merge is almost certain, log 2 at even odds.

    Examples
    --------
    >>> merges, linkage = in_height_order(Merges(np.array([[0, 1], [2, 3]]), np.array([0.0, -2.0])))
    >>> linkage.round(3)
    array([[0.   , 1.   , 0.693, 2.   ],
           [2.   , 3.   , 2.127, 3.   ]])
    """
    m = len(merges.children) + 1
    heights = np.zeros(2 * m - 1)
    heights[m:] = np.logaddexp(0.0, -merges.log_odds)
    counts = np.ones(2 * m - 1)
    for t, (i, j) in enumerate(merges.children):
        heights[m + t] = max(heights[m + t], heights[i], heights[j])
        counts[m + t] = counts[i] + counts[j]
    order = np.argsort(heights[m:], kind="stable")
    name = np.arange(2 * m - 1)
    name[m + order] = m + np.arange(m - 1)
    children = np.sort(name[merges.children[order]], axis=1).reshape(-1, 2)
    linkage = np.column_stack([children, heights[m + order], counts[m + order]]).astype(float)
    return Merges(children, merges.log_odds[order]), linkage


def cut_nodes(merges: Merges, n_clusters: int | None = None) -> np.ndarray:
    """The nodes that are clusters: from the root down, the first on each path whose merge is more likely than not.

    With ``n_clusters`` the least likely merges are undone, from the root down, until there are that many clusters.

    Examples
    --------
    >>> merges = Merges(np.array([[0, 1], [2, 3], [4, 5]]), np.array([1.0, 2.0, -1.0]))
    >>> cut_nodes(merges), cut_nodes(merges, 3)
    (array([4, 5]), array([0, 1, 5]))
    """
    m = len(merges.children) + 1
    limit = m if n_clusters is None else n_clusters

    def odds(node: int) -> float:
        return merges.log_odds[node - m] if node >= m else np.inf

    heap = [(odds(2 * m - 2), 2 * m - 2)]
    while len(heap) < limit and heap[0][0] < (0.0 if n_clusters is None else np.inf):
        node = heapq.heappop(heap)[1]
        for child in merges.children[node - m].tolist():
            heapq.heappush(heap, (odds(child), child))
    return np.sort([node for _, node in heap])


def leaf_labels(merges: Merges, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the leaves when these nodes are the clusters, the largest cluster first, and the nodes in that order.

    Examples
    --------
    >>> merges = Merges(np.array([[1, 2], [0, 3]]), np.zeros(2))
    >>> leaf_labels(merges, np.array([0, 3]))
    (array([1, 0, 0]), array([3, 0]))
    """
    m = len(merges.children) + 1
    owner = np.full(2 * m - 1, -1)
    owner[nodes] = nodes
    for t in range(m - 2, -1, -1):
        if owner[m + t] >= 0:
            owner[merges.children[t]] = owner[m + t]
    labels = ordered_by_size(owner[:m])
    return labels, owner[np.unique(labels, return_index=True)[1]]


def n_clusters_posterior(merges: Merges) -> dict[int, float]:
    """Probability of each number of clusters, over the partitions that the tree allows.

    Examples
    --------
    >>> n_clusters_posterior(Merges(np.array([[0, 1], [2, 3]]), np.zeros(2)))
    {1: 0.5, 2: 0.25, 3: 0.25}
    """
    m = len(merges.children) + 1
    merged = 1.0 / (1.0 + np.exp(np.minimum(-merges.log_odds, 700.0)))
    reached = np.zeros(2 * m - 1)
    reached[-1] = 1.0
    for t in range(m - 2, -1, -1):
        reached[merges.children[t]] = reached[m + t] * (1.0 - merged[t])
    # distribution of the number of clusters below each node, from one cluster on
    below: dict[int, np.ndarray] = {}
    one = np.ones(1)
    for t in range(m - 1):
        if reached[m + t] <= MIN_PROBABILITY:
            continue
        i, j = merges.children[t].tolist()
        apart = np.convolve(below.pop(i, one), below.pop(j, one)) * (1.0 - merged[t])
        counts = np.concatenate([[merged[t]], apart])
        keep = np.flatnonzero(counts > MIN_PROBABILITY)[-1] + 1
        below[m + t] = counts[:keep]
    counts = below.get(2 * m - 2, one)
    return {k + 1: float(p) for k, p in enumerate(counts / counts.sum()) if p > MIN_PROBABILITY}


def most_probable_number(posterior: dict[int, float]) -> int:
    """The number of clusters with the highest probability; of equals the smallest.

    Examples
    --------
    >>> most_probable_number({1: 0.2, 2: 0.4, 3: 0.4})
    2
    """
    return max(posterior, key=lambda K: (posterior[K], -K))


def upper_nodes(merges: Merges, nodes: np.ndarray) -> np.ndarray:
    """The nodes above the clusters, each after its children.

    Examples
    --------
    >>> upper_nodes(Merges(np.array([[0, 1], [2, 3], [4, 5]]), np.zeros(3)), np.array([0, 1, 5]))
    array([4, 6])
    """
    m = len(merges.children) + 1
    above = np.zeros(2 * m - 1, bool)
    below = np.zeros(2 * m - 1, bool)
    below[nodes] = True
    for t in range(m - 1):
        i, j = merges.children[t]
        above[m + t] = not below[m + t] and (above[i] or below[i]) and (above[j] or below[j])
    return np.flatnonzero(above)


def descend(log_mass: np.ndarray, pairs: np.ndarray, log_odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each cluster for each row, from the root down, and the log of the mass at the root.

    ``log_mass[:, v]`` is ``log n_v p(x | D_v)`` of the K clusters and then of the K - 1 nodes above them, each after
    its children ``pairs``, numbered in the same way. The total mass of a node is its own mass with the probability that
    it is one cluster, and the sum of its children's total masses otherwise. On the way down, the probability of a row
    is divided between the children in proportion to these.

    Examples
    --------
    >>> P, total = descend(np.log([[3.0, 1.0, 4.0]]), np.array([[0, 1]]), np.array([0.0]))
    >>> P, np.exp(total)
    (array([[0.75, 0.25]]), array([4.]))
    """
    K = len(pairs) + 1
    mass = log_mass.copy()
    for t, (i, j) in enumerate(pairs):
        together = -np.logaddexp(0.0, -log_odds[t])
        apart = -np.logaddexp(0.0, log_odds[t])
        mass[:, K + t] = np.logaddexp(together + mass[:, K + t], apart + np.logaddexp(mass[:, i], mass[:, j]))
    log_share = np.zeros_like(mass)
    for t in range(K - 2, -1, -1):
        i, j = pairs[t]
        both = np.logaddexp(mass[:, i], mass[:, j])
        for side in (i, j):
            log_share[:, side] = log_share[:, K + t] + mass[:, side] - both
    P = np.exp(log_share[:, :K])
    return P / P.sum(axis=1, keepdims=True), mass[:, -1]
