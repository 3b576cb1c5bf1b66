"""A tree over the distinct rows of a label matrix, which merges where the members lose least information.

The loss of merging clusters A and B is ``r * (F(nA + nB) - F(nA) - F(nB))`` with ``F(x) = x log x`` and

    r = 1 - sum over members and labels [F(a + b) - F(a) - F(b)] / sum over members [F(NA + NB) - F(NA) - F(NB)],

where a and b are the counts of a label in A and B, and NA and NB those of all labels of the member. Without missing
labels this is N times the decrease of the mean mutual information between the clusters and a member (the agglomerative
information bottleneck of Slonim and Tishby, 2000); for two single objects r is the share of the members that separate
them. With missing labels r is computed from the labels that are present, and applies to all objects. Two clusters
without a common member are merged last.

Good for up to a few thousand distinct rows: O(s^2) memory, O(s^2 times common labels) time. With more rows, sample them
first (`sample_signatures`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.dispatch import kernel

UNSEEN_LOSS = 1e12  # the loss if no member saw objects of both clusters
MAX_TABLE = 1 << 22  # entries of the table of x log x


class LabelTree(NamedTuple):
    """Merges of s leaves, first to last: node s + t joins ``left[t]`` and ``right[t]`` at the loss ``loss[t]``.

    ``together[t]`` holds, for each member, the number of pairs of objects that share a cluster *and* a label before
    merge t (the last row: after all merges); ``in_cluster[t]`` that of the pairs that share a cluster and were both
    seen.
    """

    left: np.ndarray
    right: np.ndarray
    loss: np.ndarray
    together: np.ndarray  # [s, M]
    in_cluster: np.ndarray  # [s, M]


def grow_tree(
    codes: np.ndarray, weights: np.ndarray, n_levels: np.ndarray, member_weights: np.ndarray
) -> LabelTree:
    """Merge all rows of a label matrix into one cluster, the least loss first.

    Parameters
    ----------
    codes : array of int, shape (s, M)
        Distinct rows, -1 missing. The first row wins a tie, so the order should not depend on the names of labels.
    weights : array, shape (s,)
        Number of objects of each row.
    n_levels : array of int, shape (M,)
    member_weights : array, shape (M,)

    Returns
    -------
    LabelTree

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 1], [1, 2]])
    >>> tree = grow_tree(codes, np.ones(3), np.array([2, 3]), np.ones(2))
    >>> cut_tree(tree, 2)
    array([0, 0, 1])
    """
    s, M = codes.shape
    offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    total = float(weights.sum())
    whole = bool((weights == np.floor(weights)).all()) and total < MAX_TABLE
    x = np.arange(int(total) + 1 if whole else 1, dtype=float)
    table = np.zeros_like(x)
    table[1:] = x[1:] * np.log(x[1:])
    tree = LabelTree(
        np.zeros(max(s - 1, 0), np.int64),
        np.zeros(max(s - 1, 0), np.int64),
        np.zeros(max(s - 1, 0)),
        np.zeros((s, M)),
        np.zeros((s, M)),
    )
    seen = codes >= 0
    pairs = np.maximum(weights * (weights - 1.0) / 2.0, 0.0) @ seen
    tree.together[:1] = tree.in_cluster[:1] = pairs
    if s > 1:
        size = int(seen.sum()) + int(offsets[-1])
        _merge_all(
            np.ascontiguousarray(codes, dtype=np.int64),
            weights.astype(float),
            offsets,
            member_weights.astype(float),
            table,
            np.empty((s, s)),
            np.empty(2 * size, np.int64),
            np.empty(2 * size),
            bool(seen.all()),
            *tree,
        )
    return tree


def cut_tree(tree: LabelTree, n_clusters: int) -> np.ndarray:
    """Clusters of the leaves with the last ``n_clusters - 1`` merges undone, numbered by their first leaf.

    Examples
    --------
    >>> tree = grow_tree(np.array([[0], [1], [2]]), np.ones(3), np.array([3]), np.ones(1))
    >>> cut_tree(tree, 3), cut_tree(tree, 1)
    (array([0, 1, 2]), array([0, 0, 0]))
    """
    s = len(tree.left) + 1
    root = np.arange(2 * s - 1)
    for t in range(s - n_clusters - 1, -1, -1):
        root[tree.left[t]] = root[tree.right[t]] = root[s + t]
    _, first, z = np.unique(root[:s], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[z]


def coarser_cuts(tree: LabelTree, largest: int) -> np.ndarray:
    """The cuts of `cut_tree` into 2, ..., ``largest`` clusters (rows), each from the one after it.

    Examples
    --------
    >>> tree = grow_tree(np.array([[0], [1], [2]]), np.ones(3), np.array([3]), np.ones(1))
    >>> coarser_cuts(tree, 3)
    array([[0, 0, 1],
           [0, 1, 2]])
    """
    s = len(tree.left) + 1
    leaf = np.arange(2 * s - 1)  # one leaf of each node
    for t in range(s - 1):
        leaf[s + t] = leaf[tree.left[t]]
    cuts = np.empty((largest - 1, s), np.int64)
    cuts[-1] = cut_tree(tree, largest)
    for K in range(largest, 2, -1):
        t, z = s - K, cuts[K - 2]
        kept, joined = sorted((z[leaf[tree.left[t]]], z[leaf[tree.right[t]]]))
        cuts[K - 3] = np.where(z == joined, kept, z - (z > joined))
    return cuts


def sample_signatures(weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of objects of each row in a stratified sample with about ``size`` distinct rows.

    The rows, in order, are divided into steps of equal weight, and one object is drawn from each step: the number of
    objects of a row is within two of the sample size times its share. As the rows are sorted by their labels the
    sample is stratified, and it does not depend on the order of the objects.

    Examples
    --------
    >>> sample_signatures(np.array([2.0, 1.0, 1.0]), 5, np.random.default_rng(0))
    array([2., 1., 1.])
    >>> int((sample_signatures(np.ones(1000), 50, np.random.default_rng(0)) > 0).sum()) <= 50
    True
    """
    if len(weights) <= size:
        return weights.astype(float)
    edges = np.cumsum(weights)
    n, kept = size, np.zeros(0)
    while True:
        points = (np.arange(n) + rng.random(n)) * (edges[-1] / n)
        drawn = np.minimum(np.searchsorted(edges, points, side="right"), len(weights) - 1)
        counts = np.bincount(drawn, minlength=len(weights)).astype(float)
        if len(kept) and (counts > 0).sum() > size:
            return kept
        kept = counts
        n = int(1.3 * n)
        if n > edges[-1]:
            return kept


# ---- the loop -----------------------------------------------------------------------------------------------


@kernel
def _gain(a, b, table):
    """F(a + b) - F(a) - F(b)."""
    if table.shape[0] > 1:
        return table[int(a + b)] - table[int(a)] - table[int(b)]
    out = 0.0
    if a > 0.0 and b > 0.0:
        out = (a + b) * np.log(a + b) - a * np.log(a) - b * np.log(b)
    return out


@kernel
def _losses(
    node, alive, start, length, levels, counts, n, N, offsets, v, table, complete, histogram, above, out
):
    """out[j] = loss of merging ``node`` with each current node j (with ``above`` only j > node)."""
    s, M = N.shape
    for e in range(start[node], start[node] + length[node]):
        histogram[levels[e]] = counts[e]
    total = 0.0
    for m in range(M):
        total += v[m]
    for j in range(node + 1 if above else 0, s):
        if not alive[j] or j == node:
            continue
        size = _gain(n[node], n[j], table)
        seen = 0.0
        if complete:
            seen = total * size
        else:
            for m in range(M):
                if N[node, m] > 0.0 and N[j, m] > 0.0:
                    seen += v[m] * _gain(N[node, m], N[j, m], table)
        same = 0.0
        m = 0
        for e in range(start[j], start[j] + length[j]):
            level = levels[e]
            a = histogram[level]
            if a > 0.0:
                while level >= offsets[m + 1]:
                    m += 1
                same += v[m] * _gain(a, counts[e], table)
        out[j] = (1.0 - same / seen) * size if seen > 0.0 else UNSEEN_LOSS
    for e in range(start[node], start[node] + length[node]):
        histogram[levels[e]] = 0.0


@kernel
def _join(a, b, start, length, levels, counts, end, offsets, together):
    """Write the sum of the histograms of a and b at ``end``; pairs that share a label are added to ``together``."""
    i, j, e = start[a], start[b], end
    stop_i, stop_j = start[a] + length[a], start[b] + length[b]
    m = 0
    while i < stop_i or j < stop_j:
        if j >= stop_j or (i < stop_i and levels[i] < levels[j]):
            levels[e], counts[e] = levels[i], counts[i]
            i += 1
        elif i >= stop_i or levels[j] < levels[i]:
            levels[e], counts[e] = levels[j], counts[j]
            j += 1
        else:
            while levels[i] >= offsets[m + 1]:
                m += 1
            together[m] += counts[i] * counts[j]
            levels[e], counts[e] = levels[i], counts[i] + counts[j]
            i += 1
            j += 1
        e += 1
    return e


@kernel
def _pack(alive, start, length, levels, counts):
    """Close the gaps that merged histograms leave; the order in memory is kept."""
    order = np.argsort(start)
    end = 0
    for j in order:
        if alive[j]:
            at = start[j]
            for e in range(length[j]):
                levels[end + e], counts[end + e] = levels[at + e], counts[at + e]
            start[j] = end
            end += length[j]
    return end


@kernel
def _nearest(loss, alive, i):
    """The current node j > i with the least loss, -1 if there is none."""
    best = -1
    for j in range(i + 1, alive.shape[0]):
        if alive[j] and (best < 0 or loss[i, j] < loss[i, best]):
            best = j
    return best


@kernel
def _write_histograms(codes, weights, offsets, start, length, levels, counts, N):
    """Write the histogram of every row, one after the other; return the end of the last."""
    end = 0
    for i in range(codes.shape[0]):
        start[i] = end
        for m in range(codes.shape[1]):
            if codes[i, m] >= 0:
                N[i, m] = weights[i]
                levels[end], counts[end] = offsets[m] + codes[i, m], weights[i]
                end += 1
        length[i] = end - start[i]
    return end


@kernel
def _update_nearest(a, b, row, alive, loss, near):
    """Store the losses ``row`` of the new node a, which took the place of a and b, and the neighbors they change."""
    for j in range(alive.shape[0]):
        if not alive[j] or j == a:
            continue
        i, k = (j, a) if j < a else (a, j)
        loss[i, k] = row[j]
        if j < a and (row[j] < loss[j, near[j]] or (row[j] == loss[j, near[j]] and a < near[j])):
            near[j] = a
    for j in range(alive.shape[0]):
        if alive[j] and (j == a or near[j] == a or near[j] == b):
            near[j] = _nearest(loss, alive, j)


@kernel
def _merge_all(
    codes,
    weights,
    offsets,
    v,
    table,
    loss,
    levels,
    counts,
    complete,
    left,
    right,
    height,
    together,
    in_cluster,
):
    """Greedy merging with the nearest neighbor of every node stored; slot i holds the cluster named ``name[i]``."""
    s, M = codes.shape
    n, N = weights.copy(), np.zeros((s, M))
    start, length = np.zeros(s, np.int64), np.zeros(s, np.int64)
    alive, name = np.ones(s, np.bool_), np.arange(s)
    histogram, row = np.zeros(offsets[M]), np.zeros(s)
    end = _write_histograms(codes, weights, offsets, start, length, levels, counts, N)
    nodes = (alive, start, length, levels, counts, n, N, offsets, v, table, complete, histogram)
    for i in range(s):
        _losses(i, *nodes, True, loss[i])
    near = np.empty(s, np.int64)
    for i in range(s):
        near[i] = _nearest(loss, alive, i)
    for t in range(s - 1):
        a = -1
        for i in range(s):
            if alive[i] and near[i] >= 0 and (a < 0 or loss[i, near[i]] < loss[a, near[a]]):
                a = i
        b = near[a]
        left[t], right[t], height[t] = name[a], name[b], loss[a, b]
        for m in range(M):
            together[t + 1, m] = together[t, m]
            in_cluster[t + 1, m] = in_cluster[t, m] + N[a, m] * N[b, m]
        if end + length[a] + length[b] > levels.shape[0]:
            end = _pack(alive, start, length, levels, counts)
        stop = _join(a, b, start, length, levels, counts, end, offsets, together[t + 1])
        start[a], length[a], end = end, stop - end, stop
        alive[b] = False
        n[a] += n[b]
        for m in range(M):
            N[a, m] += N[b, m]
        name[a] = s + t
        _losses(a, *nodes, False, row)
        _update_nearest(a, b, row, alive, loss, near)
