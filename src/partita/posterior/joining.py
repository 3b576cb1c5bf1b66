"""Trees over the clusters of a mixture: the two that are most confused are joined, again and again.

The confusion of two clusters k and l is the share of the rows of one that would be assigned to the other: with
responsibilities R,

    P[k, l] = sum_i R_ik [argmax R_i = l] / sum_i R_ik

(the *directly estimated misclassification probabilities* of Hennig 2010), the larger one of P[k, l] and P[l, k]. After
each join the responsibilities of the two are summed, and everything is computed again: a cluster that overlaps with
several others is joined with them one after the other. Where no two clusters overlap, the confusion does not tell which
are near each other; then the pair is joined whose union loses least, see :class:`Separation`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MIN_CONFUSION = 0.01  # below it two clusters are separate, and the confusion is that of a few rows


class Separation(Protocol):
    """What joining two groups would lose; groups are numbered as in the tree so far."""

    def losses(self) -> NDArray[np.float64]:
        """Loss of joining each pair, a symmetric matrix; the diagonal is not read."""

    def join(self, k: int, l: int) -> None:
        """Group l becomes a part of group k < l; the groups after l move up by one."""


class Joins(NamedTuple):
    """The joins of a tree and their heights, as in a :class:`~partita.posterior.Grain`."""

    joins: NDArray[np.int64]
    heights: NDArray[np.float64]


def join_most_confused(
    responsibilities: Any, weights: NDArray[np.float64], certain: NDArray[np.float64], separation: Separation
) -> Joins:
    """Join the groups of a mixture by their confusion.

    Parameters
    ----------
    responsibilities : sparse or dense array (n_rows, n_groups)
        Of the rows that more than one group may contain.
    weights : ndarray (n_rows,)
        Weights of these rows.
    certain : ndarray (n_groups,)
        Total weight of the other rows of each group.
    separation : Separation
        Tells which groups are near each other where none are confused.

    Returns
    -------
    Joins

    Examples
    --------
    >>> class Apart:
    ...     def losses(self):
    ...         return np.zeros((3, 3))
    ...
    ...     def join(self, k, l):
    ...         self.losses = lambda: np.zeros((2, 2))
    >>> R = np.array([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0]])
    >>> found = join_most_confused(R, np.ones(2), np.array([1.0, 1.0, 2.0]), Apart())
    >>> found.joins.tolist(), found.heights.tolist()
    ([[0, 1], [2, 3]], [0.2, 0.0])
    """
    R = sparse.csr_array(responsibilities)
    G = R.shape[1]
    node = np.arange(G)
    joins, heights = np.empty((max(G - 1, 0), 2), np.int64), np.empty(max(G - 1, 0))
    for t in range(G - 1):
        confused = confusion(R, weights, certain)
        k, l = _nearest_pair(confused, separation.losses())
        joins[t], heights[t] = sorted((node[k], node[l])), confused[k, l]
        onto = np.arange(G - t) - (np.arange(G - t) > l)
        onto[l] = k
        R = _summed(R, onto)
        certain = np.bincount(onto, certain).astype(float)
        node = np.delete(node, l)
        node[k] = G + t
        separation.join(k, l)
    return Joins(joins, heights)


def confusion(R: Any, weights: NDArray[np.float64], certain: NDArray[np.float64]) -> NDArray[np.float64]:
    """The larger share of the rows of one group that would be assigned to the other, for each pair.

    Examples
    --------
    >>> R = sparse.csr_array(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> confusion(R, np.ones(2), np.array([0.0, 1.0]))
    array([[0.  , 0.25],
           [0.25, 0.  ]])
    """
    K = R.shape[1]
    row = np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))
    mass = R.data * weights[row]
    moved = np.bincount(R.indices * np.int64(K) + _best_columns(R)[row], mass, minlength=K * K).reshape(K, K)
    total = np.bincount(R.indices, mass, minlength=K) + certain
    share = moved / np.maximum(total, np.finfo(float).tiny)[:, None]
    np.fill_diagonal(share, 0.0)
    return np.maximum(share, share.T)


def _best_columns(R: Any) -> NDArray[np.int64]:
    """Column of the largest entry of each row, the first of equal ones; every row has entries."""
    if not R.nnz:
        return np.zeros(0, np.int64)
    lengths = np.diff(R.indptr)
    is_best = R.data == np.repeat(np.maximum.reduceat(R.data, R.indptr[:-1]), lengths)
    at = np.flatnonzero(is_best)
    first = np.searchsorted(at, R.indptr[:-1])
    return R.indices[at[first]].astype(np.int64)


def _summed(R: Any, onto: NDArray[np.int64]) -> Any:
    """Columns that are sent to the same one are added."""
    G = len(onto)
    to = sparse.csr_array((np.ones(G), (np.arange(G), onto)), shape=(G, int(onto.max()) + 1))
    R = sparse.csr_array(R @ to)
    R.sort_indices()
    return R


def _nearest_pair(confused: NDArray[np.float64], losses: NDArray[np.float64]) -> tuple[int, int]:
    """The most confused pair, and of equally confused or separate pairs the one that loses least; k < l."""
    k, l = np.triu_indices(len(confused), 1)
    height = np.where(confused[k, l] < MIN_CONFUSION, 0.0, confused[k, l])
    best = np.flatnonzero(height == height.max())
    chosen = best[np.argmin(losses[k[best], l[best]])]
    return int(k[chosen]), int(l[chosen])


# ---- trees that exist already --------------------------------------------------------------------------------------


def top_of_tree(
    children: NDArray[np.integer], heights: NDArray[np.float64], n_groups: int
) -> tuple[NDArray[np.int64], Joins]:
    """The last joins of a tree over many leaves, those of its ``n_groups`` last groups, and the group of each leaf.

    ``children`` are the nodes that are joined, step by step, as in a linkage matrix. Groups are numbered by their first
    leaf.

    Examples
    --------
    >>> groups, found = top_of_tree(np.array([[0, 3], [1, 2], [4, 5]]), np.arange(3.0), 2)
    >>> groups, found.joins.tolist(), found.heights
    (array([0, 1, 1, 0]), [[0, 1]], array([2.]))
    """
    children = np.asarray(children, dtype=np.int64)
    s = len(children) + 1
    below = s - n_groups  # joins that are inside of the groups
    node = np.arange(2 * s - 1)
    for t in range(below - 1, -1, -1):
        node[children[t]] = node[s + t]
    roots, first, groups = np.unique(node[:s], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    name = np.full(2 * s - 1, -1)
    name[roots] = rank
    name[s + below :] = n_groups + np.arange(n_groups - 1)
    return rank[groups], Joins(np.sort(name[children[below:]], axis=1), np.asarray(heights)[below:])


def without_empty_groups(found: Joins, onto: NDArray[np.int64]) -> tuple[Joins, NDArray[np.int64]]:
    """The same tree over groups with other numbers, of which those that are sent to -1 have no rows and are left out.

    Also returns the numbers of groups of the new tree that those of the old one become, for 1, 2, ... groups.

    Examples
    --------
    >>> tree = Joins(np.array([[0, 1], [2, 3]]), np.array([0.5, 0.9]))
    >>> kept, become = without_empty_groups(tree, np.array([1, -1, 0]))
    >>> kept.joins.tolist(), kept.heights, become
    ([[0, 1]], array([0.9]), array([1, 2, 2]))
    """
    G = int((onto >= 0).sum())
    name = np.append(onto, np.full(len(found.joins), -1))
    joins: list[list[int]] = []
    heights: list[float] = []
    become = [G]
    for t, (a, b) in enumerate(found.joins):
        sides = sorted(int(side) for side in name[[a, b]] if side >= 0)
        name[len(onto) + t] = sides[0] if sides else -1
        if len(sides) == 2:
            name[len(onto) + t] = G + len(joins)
            joins.append(sides)
            heights.append(float(found.heights[t]))
        become.append(G - len(joins))
    return Joins(np.array(joins, np.int64).reshape(-1, 2), np.array(heights)), np.array(become[::-1])


def renumbered(
    found: Joins, sizes: NDArray[np.float64], clusters: NDArray[np.int64]
) -> tuple[Joins, NDArray[np.int64], NDArray[np.int64]]:
    """The same tree with its groups in the order of the clusters that they are parts of, the largest part first.

    Groups of size 0 are left out. Also returns the new number of each group (-1: left out), and what
    :func:`without_empty_groups` returns besides.

    Examples
    --------
    >>> tree = Joins(np.array([[0, 1], [2, 3]]), np.array([0.5, 0.9]))
    >>> renumbered(tree, np.array([1.0, 5.0, 6.0]), np.array([1, 1, 0]))[1]
    array([2, 1, 0])
    """
    order = np.lexsort((-sizes, clusters))
    order = order[sizes[order] > 0.0]
    onto = np.full(len(sizes), -1)
    onto[order] = np.arange(len(order))
    kept, become = without_empty_groups(found, onto)
    return kept, onto, become


def grown_levels(n_rows: float, n_clusters: int, n_leaves: int) -> int:
    """How many groups the finest level of a tree over rows has.

    Twice the square root of the number of rows, or as many as the answer has clusters, if those are more.

    Examples
    --------
    >>> grown_levels(100, 3, 60), grown_levels(100, 30, 60), grown_levels(100, 3, 4)
    (20, 30, 4)
    """
    return min(n_leaves, max(n_clusters, int(2.0 * np.sqrt(n_rows))))
