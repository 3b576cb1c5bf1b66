"""Single and complete linkage of label rows: by a spanning tree, and by a matrix of the rows.

The similarity of two rows is the weight of the members that give them the same label, over the weight of those that saw
both (0 if none did). Single linkage takes O(S) memory; complete linkage is not a function of label histograms and holds
an S x S matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.consensus.linkage.agglomeration import Tree, greedy_order
from partita.dispatch import kernel

BLOCK_ENTRIES = 2**22


def single_link(rows: NDArray[Any], member_weights: NDArray[np.float64]) -> Tree:
    """Join the most similar pair of rows first; of equal pairs the one with the smallest row numbers.

    Examples
    --------
    >>> tree = single_link(np.array([[0, 0], [0, 1], [1, 1]]), np.ones(2))
    >>> tree.children.tolist(), tree.links.tolist()
    ([[0, 1], [2, 3]], [0.5, 0.5])
    """
    S = len(rows)
    edges, values = np.empty((max(S - 1, 0), 2), dtype=np.int64), np.empty(max(S - 1, 0))
    if S > 1:
        _spanning_tree(np.ascontiguousarray(rows, dtype=np.int32), member_weights, edges, values)
    order = np.lexsort((edges[:, 1], edges[:, 0], -values))
    owner, node = np.arange(S), np.arange(S)  # the smallest row of each cluster, and its current node
    children = np.empty_like(edges)
    for done, t in enumerate(order):
        u, v = sorted((owner[edges[t, 0]], owner[edges[t, 1]]))
        children[done] = sorted((node[u], node[v]))
        owner[owner == v] = u
        node[u] = S + done
    return Tree(children, values[order])


def complete_link(rows: NDArray[Any], member_weights: NDArray[np.float64]) -> Tree:
    """Join the clusters whose least similar rows are most similar, by a nearest-neighbor chain.

    Examples
    --------
    >>> tree = complete_link(np.array([[0, 0], [0, 1], [1, 1]]), np.ones(2))
    >>> tree.children.tolist(), tree.links.tolist()
    ([[0, 1], [2, 3]], [0.5, 0.0])
    """
    S = len(rows)
    links = similarity_matrix(rows, member_weights)
    np.fill_diagonal(links, -np.inf)
    pairs, values = np.empty((max(S - 1, 0), 2), dtype=np.int64), np.empty(max(S - 1, 0))
    alive = np.ones(S, dtype=bool)
    chain: list[int] = []
    for t in range(S - 1):
        if not chain:
            chain = [int(np.argmax(alive))]
        while (nearest := int(np.argmax(links[chain[-1]]))) not in chain:  # the first of the largest
            chain.append(nearest)
        tip = chain[-1]
        del chain[chain.index(nearest) :]
        u, v = min(tip, nearest), max(tip, nearest)
        pairs[t], values[t] = (u, v), links[u, v]
        joined = np.minimum(links[u], links[v])
        links[u], links[:, u] = joined, joined
        links[v], links[:, v] = -np.inf, -np.inf
        links[u, u], alive[v] = -np.inf, False
    return greedy_order(pairs, values)


def similarity_matrix(rows: NDArray[Any], member_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The (S x S) matrix of the similarities of rows.

    Examples
    --------
    >>> similarity_matrix(np.array([[0, 0], [0, 1], [-1, 1]]), np.ones(2)).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    S = len(rows)
    matrix = np.empty((S, S))
    step = max(1, BLOCK_ENTRIES // max(S, 1))
    for start in range(0, S, step):
        block = rows[start : start + step]
        agreed, seen = np.zeros((2, len(block), S))
        for m, weight in enumerate(member_weights):
            both = (block[:, m, None] >= 0) & (rows[None, :, m] >= 0)
            seen += weight * both
            agreed += weight * (both & (block[:, m, None] == rows[None, :, m]))
        matrix[start : start + step] = np.divide(agreed, seen, out=np.zeros_like(seen), where=seen > 0)
    return matrix


@kernel
def _spanning_tree(rows, member_weights, edges, values):
    """Prim's algorithm; edges are ordered by similarity, then by their smaller and their larger row."""
    S, M = rows.shape
    best, source = np.full(S, -1.0), np.zeros(S, np.int64)
    outside = np.ones(S, np.bool_)
    outside[0] = False
    newest = 0
    for t in range(S - 1):
        chosen = -1
        for v in range(S):
            if not outside[v]:
                continue
            agreed, seen = 0.0, 0.0
            for m in range(M):
                if rows[newest, m] >= 0 and rows[v, m] >= 0:
                    seen += member_weights[m]
                    if rows[newest, m] == rows[v, m]:
                        agreed += member_weights[m]
            value = agreed / seen if seen > 0.0 else 0.0
            if value > best[v] or (value == best[v] and _before(newest, v, source[v], v)):
                best[v], source[v] = value, newest
            if (
                chosen < 0
                or best[v] > best[chosen]
                or (best[v] == best[chosen] and _before(source[v], v, source[chosen], chosen))
            ):
                chosen = v
        outside[chosen] = False
        edges[t, 0], edges[t, 1] = min(source[chosen], chosen), max(source[chosen], chosen)
        values[t] = best[chosen]
        newest = chosen


@kernel
def _before(i, j, k, l):
    """Whether the pair (i, j) is ordered before the pair (k, l)."""
    low, other = min(i, j), min(k, l)
    return low < other or (low == other and max(i, j) < max(k, l))
