"""Agglomeration of distinct label rows: every cluster is a label histogram, and no matrix of pairs is formed.

The link of two clusters u and v with sizes n and label histograms h is a ratio of two sums over their pairs of objects,

    link(u, v) = (base n_u n_v + sum_c gain_c h_u(c) h_v(c)) / (seen_base n_u n_v + sum_c seen_c h_u(c) h_v(c)),

where c runs over the levels of all members, and over one more column per member with missing labels, which counts the
objects it saw. With seen_base = 1 and seen = 0 this is the average link; otherwise it is a pooled ratio. Both are
reducible (the link of a union is never above the better link of its parts), so that a nearest-neighbor chain finds the
merges of the greedy algorithm. Ties go to the cluster with the smallest leaf, so that with leaves in lexicographic
order the tree does not depend on the order of the rows. (If clusters share no member a pooled ratio is 0 / 0, which
counts as 0; only then may the chain break a tie in another order than the greedy algorithm.)
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.dispatch import kernel


class LabelLeaves(NamedTuple):
    """Label histograms of the leaves, as sparse rows: leaf i has weight `sizes[i]` in each of its columns.

    Column `offsets[m] + level` counts a level of member m. Column `seen_columns[m]` counts the objects that
    member m saw; it is -1 for a member that saw all of them, whose count is the size.
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.uint32]
    sizes: NDArray[np.float64]
    offsets: NDArray[np.int64]
    seen_columns: NDArray[np.int64]

    @property
    def n_columns(self) -> int:
        """Number of columns of the histograms."""
        return int(max(self.offsets[-1], self.seen_columns.max(initial=-1) + 1))


class Link(NamedTuple):
    """Coefficients of the link (see the module) over the columns of the histograms."""

    gain: NDArray[np.float64]
    base: float
    seen: NDArray[np.float64]
    seen_base: float


class Tree(NamedTuple):
    """Merges in the order of the greedy algorithm.

    Row t of `children` holds the nodes that are joined (leaves are 0..S-1, the result is node S + t), and
    `links[t]` is their link. Links do not rise, up to rounding.
    """

    children: NDArray[np.int64]
    links: NDArray[np.float64]


def label_leaves(Y: NDArray[Any], n_levels: NDArray[Any], sizes: NDArray[Any]) -> LabelLeaves:
    """Histograms of single rows of a label matrix (-1 missing), each repeated `sizes` times.

    Examples
    --------
    >>> leaves = label_leaves(np.array([[0, 1], [1, -1]]), np.array([2, 2]), np.array([1.0, 3.0]))
    >>> leaves.columns.tolist(), leaves.starts.tolist(), leaves.seen_columns.tolist()
    ([0, 3, 4, 1], [0, 3, 4], [-1, 4])
    """
    offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    holed = np.flatnonzero((Y < 0).any(axis=0))
    seen_columns = np.full(Y.shape[1], -1, dtype=np.int64)
    seen_columns[holed] = offsets[-1] + np.arange(holed.size)
    # the columns of a row are in ascending order: levels member by member, then the members with missing labels
    columns = np.concatenate(
        [Y + offsets[:-1], np.broadcast_to(seen_columns[holed], (len(Y), holed.size))], axis=1
    )
    present = np.concatenate([Y >= 0, Y[:, holed] >= 0], axis=1)
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
    return LabelLeaves(
        starts, columns[present].astype(np.uint32), np.asarray(sizes, np.float64), offsets, seen_columns
    )


def pair_link(
    leaves: LabelLeaves, same: NDArray[Any], different: NDArray[Any], seen: NDArray[Any] | None = None
) -> Link:
    """A link that adds `same[m]` for a pair with the same label in member m, `different[m]` otherwise.

    A pair with a missing label is left out of that member. Without `seen` the sum is divided by the number of pairs
    (the average link); with it, by the sum of `seen[m]` over members and pairs with both labels (the pooled ratio).

    Examples
    --------
    >>> leaves = label_leaves(np.array([[0, 1], [1, -1]]), np.array([2, 2]), np.ones(2))
    >>> pair_link(leaves, same=np.array([2.0, 3.0]), different=np.array([-1.0, -1.0])).gain.tolist()
    [3.0, 3.0, 4.0, 4.0, -1.0]
    """
    n_levels = np.diff(leaves.offsets)
    holed = leaves.seen_columns >= 0
    gain = np.zeros(leaves.n_columns)
    gain[: leaves.offsets[-1]] = np.repeat(np.subtract(same, different), n_levels)
    gain[leaves.seen_columns[holed]] = np.asarray(different)[holed]
    base = float(np.asarray(different)[~holed].sum())
    below = np.zeros(leaves.n_columns)
    if seen is None:
        return Link(gain, base, below, 1.0)
    below[leaves.seen_columns[holed]] = np.asarray(seen)[holed]
    return Link(gain, base, below, float(np.asarray(seen)[~holed].sum()))


def agglomerate(leaves: LabelLeaves, link: Link) -> Tree:
    """Merge the pair with the largest link until one cluster is left.

    Time is O(S^2 M) for S leaves and M members, memory that of the histograms, at most O(S M).

    Examples
    --------
    >>> Y = np.array([[0, 0], [0, 1], [1, 2]])
    >>> leaves = label_leaves(Y, np.array([2, 3]), np.ones(3))
    >>> half = np.array([0.5, 0.5])
    >>> tree = agglomerate(leaves, pair_link(leaves, same=half, different=0 * half))
    >>> tree.children.tolist(), tree.links.tolist()
    ([[0, 1], [2, 3]], [0.5, 0.0])
    """
    n = leaves.sizes.size
    pairs = np.empty((max(n - 1, 0), 2), dtype=np.int64)
    links = np.empty(max(n - 1, 0))
    if n > 1:
        _chain(leaves.starts, leaves.columns, leaves.sizes, link, bool(link.seen.any()), pairs, links)
    return greedy_order(pairs, links)


def cut(tree: Tree, n_clusters: int) -> NDArray[np.int64]:
    """Labels of the leaves when the first merges have left `n_clusters`, numbered by first appearance.

    Examples
    --------
    >>> cut(Tree(np.array([[0, 2], [1, 3]]), np.array([1.0, 0.5])), 2).tolist()
    [0, 1, 0]
    """
    n = tree.links.size + 1
    owner = np.arange(2 * n - 1)
    n_merges = n - n_clusters
    for t in range(n_merges):
        owner[tree.children[t]] = n + t
    for node in range(n + n_merges - 2, -1, -1):  # parents have larger numbers, so they are settled first
        owner[node] = owner[owner[node]]
    _, first, labels = np.unique(owner[:n], return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[labels]


def scipy_linkage(tree: Tree, top: float) -> NDArray[np.float64]:
    """The tree as scipy's linkage matrix, with `top` - link as the distance.

    Distances are not negative and never fall: what rounding would turn round is levelled.

    Examples
    --------
    >>> scipy_linkage(Tree(np.array([[0, 2], [1, 3]]), np.array([1.0, 0.5])), top=1.0).tolist()
    [[0.0, 2.0, 0.0, 2.0], [1.0, 3.0, 0.5, 3.0]]
    """
    n = tree.links.size + 1
    counts = np.ones(2 * n - 1)
    for t, pair in enumerate(tree.children):
        counts[n + t] = counts[pair].sum()
    distances = np.maximum.accumulate(np.maximum(top - tree.links, 0.0))
    return np.column_stack([tree.children, distances, counts[n:]]).astype(np.float64)


def greedy_order(pairs: NDArray[np.int64], links: NDArray[np.float64]) -> Tree:
    """Merges of a chain (named by the smallest leaves of both sides) in the order of their links.

    A merge may come only after those of its parts, whatever rounding does to the links.

    Examples
    --------
    >>> greedy_order(np.array([[0, 1], [2, 3], [0, 2]]), np.array([0.5, 0.9, 0.1])).children.tolist()
    [[2, 3], [0, 1], [4, 5]]
    """
    n = len(links) + 1
    latest: dict[int, int] = {}  # smallest leaf -> last merge of its cluster
    waits = np.zeros(n - 1, dtype=np.int64)
    parent = np.full(n - 1, -1, dtype=np.int64)
    for t, (u, v) in enumerate(pairs.tolist()):
        for side in (u, v):
            if side in latest:
                parent[latest[side]] = t
                waits[t] += 1
        latest[u] = t
    ready = [(-links[t], *pairs[t].tolist(), t) for t in range(n - 1) if waits[t] == 0]
    heapq.heapify(ready)
    node = np.arange(n)
    children, ordered = np.empty_like(pairs), np.empty_like(links)
    for done in range(n - 1):
        _, u, v, t = heapq.heappop(ready)
        children[done], ordered[done] = sorted((node[u], node[v])), links[t]
        node[u] = n + done
        if (after := parent[t]) >= 0:
            waits[after] -= 1
            if waits[after] == 0:
                heapq.heappush(ready, (-links[after], *pairs[after].tolist(), after))
    return Tree(children, ordered)


@kernel
def _chain(starts, leaf_columns, leaf_sizes, link, pooled, pairs, links):
    """Nearest-neighbor chain; the slot of a cluster is its smallest leaf.

    The histograms are sorted sparse rows in a pool. A merge appends its row; when the pool is full, the rows of the
    current clusters are copied to a second one, which always leaves half of it free.
    """
    n, n_entries = leaf_sizes.size, leaf_columns.size
    columns, spare_columns = np.empty(2 * n_entries, np.uint32), np.empty(2 * n_entries, np.uint32)
    counts, spare_counts = np.empty(2 * n_entries), np.empty(2 * n_entries)
    begin, end, sizes = starts[:-1].copy(), starts[1:].copy(), leaf_sizes.copy()
    for i in range(n):
        for p in range(begin[i], end[i]):
            columns[p], counts[p] = leaf_columns[p], sizes[i]
    used = n_entries
    alive, n_alive = np.arange(n), n
    place = np.full(n, -1)  # position of each cluster in the chain
    chain, length = np.empty(n, np.int64), 0
    gain, seen = np.zeros(link.gain.size), np.zeros(link.gain.size)
    for t in range(n - 1):
        if length == 0:
            chain[0], place[alive[0]], length = alive[0], 0, 1
        while True:
            tip = chain[length - 1]
            nearest, best = _nearest(
                tip, alive[:n_alive], sizes, begin, end, columns, counts, link, pooled, gain, seen
            )
            if place[nearest] >= 0:  # the one before the tip; an earlier one only if rounding made a tie
                break
            chain[length], place[nearest] = nearest, length
            length += 1
        kept = place[nearest]
        while length > kept:
            length -= 1
            place[chain[length]] = -1
        u, v = min(tip, nearest), max(tip, nearest)
        pairs[t, 0], pairs[t, 1], links[t] = u, v, best
        if used + end[u] - begin[u] + end[v] - begin[v] > columns.size:
            used = 0
            for a in range(n_alive):
                i, start = alive[a], used
                for p in range(begin[i], end[i]):
                    spare_columns[used], spare_counts[used] = columns[p], counts[p]
                    used += 1
                begin[i], end[i] = start, used
            columns, spare_columns = spare_columns, columns
            counts, spare_counts = spare_counts, counts
        start = used
        used = _join(columns, counts, begin[u], end[u], begin[v], end[v], used)
        begin[u], end[u] = start, used
        sizes[u] += sizes[v]
        after = False
        for a in range(n_alive - 1):
            after = after or alive[a] == v
            if after:
                alive[a] = alive[a + 1]
        n_alive -= 1


@kernel
def _nearest(tip, alive, sizes, begin, end, columns, counts, link, pooled, gain, seen):
    """The cluster with the best link to the tip; `gain` and `seen` must be zero, and are zero again afterwards."""
    for p in range(begin[tip], end[tip]):
        gain[columns[p]] = link.gain[columns[p]] * counts[p]
        seen[columns[p]] = link.seen[columns[p]] * counts[p]
    best, nearest = -np.inf, -1
    for v in alive:  # in rising order, so that the smallest leaf wins a tie
        if v == tip:
            continue
        n_pairs = sizes[tip] * sizes[v]
        row_columns, row_counts = columns[begin[v] : end[v]], counts[begin[v] : end[v]]
        total = link.base * n_pairs + _overlap(gain, row_columns, row_counts)
        both = link.seen_base * n_pairs
        if pooled:
            both += _overlap(seen, row_columns, row_counts)
        value = total / both if both > 0.0 else 0.0
        if value > best:
            best, nearest = value, v
    for p in range(begin[tip], end[tip]):
        gain[columns[p]] = 0.0
        seen[columns[p]] = 0.0
    return nearest, best


@kernel
def _overlap(weights, columns, counts):
    """Sum of weights times counts, as two independent sums, which the processor can overlap."""
    even, odd = 0.0, 0.0
    for p in range(columns.size // 2):
        even += weights[columns[2 * p]] * counts[2 * p]
        odd += weights[columns[2 * p + 1]] * counts[2 * p + 1]
    if columns.size % 2:
        even += weights[columns[columns.size - 1]] * counts[columns.size - 1]
    return even + odd


@kernel
def _join(columns, counts, p, p_end, q, q_end, used):
    """Append the sum of two sorted rows to the pool; returns where it ends."""
    while p < p_end or q < q_end:
        if q == q_end or (p < p_end and columns[p] < columns[q]):
            columns[used], counts[used] = columns[p], counts[p]
            p += 1
        elif p == p_end or columns[q] < columns[p]:
            columns[used], counts[used] = columns[q], counts[q]
            q += 1
        else:
            columns[used], counts[used] = columns[p], counts[p] + counts[q]
            p += 1
            q += 1
        used += 1
    return used
