"""Trees on a sample of the rows: which rows are leaves, and which cluster the other rows join."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.labels import label_histograms

BLOCK_ENTRIES = 2**22


class LeafSample(NamedTuple):
    """Indices of the distinct rows that are leaves, and the number of objects of each."""

    rows: NDArray[np.int64]
    sizes: NDArray[np.float64]


def sample_leaves(sizes: NDArray[np.float64], max_leaves: int, rng: np.random.Generator) -> LeafSample:
    """Systematic sample of the objects, as large as possible with at most `max_leaves` distinct rows.

    Objects are taken at equal steps through the sorted rows. In lexicographic order the sample is stratified by the
    clusters of the first members, and does not depend on the order of the objects.

    Examples
    --------
    >>> len(sample_leaves(np.array([6.0, 1.0, 1.0]), 2, np.random.default_rng(0)).rows) <= 2
    True
    """
    ends = np.cumsum(sizes) / sizes.sum()
    u = rng.random()

    def draws(n: int) -> NDArray[np.float64]:
        return np.diff(np.floor(ends * n + u), prepend=0.0)

    # n draws have at most n distinct rows; more draws than objects would only repeat them
    low, high = max_leaves, max(max_leaves, int(min(sizes.sum(), 2.0**40)))
    while low < high:
        n = (low + high + 1) // 2
        if np.count_nonzero(draws(n)) <= max_leaves:
            low = n
        else:
            high = n - 1
    found = draws(low)
    rows = np.flatnonzero(found > 0)[:max_leaves]
    return LeafSample(rows, found[rows])


def average_links(
    codes: NDArray[Any],
    leaf_codes: NDArray[Any],
    leaf_sizes: NDArray[np.float64],
    leaf_labels: NDArray[np.int64],
    n_levels: NDArray[Any],
    same: NDArray[np.float64],
    different: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Average link of each row of labels with each cluster of leaves (see `agglomeration.pair_link`).

    Examples
    --------
    >>> leaves = np.array([[0], [1], [1]]), np.ones(3), np.array([0, 0, 1])
    >>> average_links(np.array([[1], [0], [-1]]), *leaves, np.array([2]), np.ones(1), -np.ones(1)).tolist()
    [[0.0, 1.0], [0.0, -1.0], [0.0, 0.0]]
    """
    counts, offsets = label_histograms(leaf_labels, leaf_codes, n_levels, weights=leaf_sizes)
    K = len(counts)
    totals = np.bincount(leaf_labels, leaf_sizes, minlength=K)
    seen = np.add.reduceat(counts, offsets[:-1], axis=1)
    table = counts * np.repeat(same - different, n_levels)
    table += np.repeat(seen * different, n_levels, axis=1)
    return _sum_over_members(codes, (table / totals[:, None]).T, offsets)


def pooled_links(
    codes: NDArray[Any],
    leaf_codes: NDArray[Any],
    leaf_sizes: NDArray[np.float64],
    leaf_labels: NDArray[np.int64],
    n_levels: NDArray[Any],
    gains: NDArray[np.float64],
    member_weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Pooled ratio of each row of labels with each cluster of leaves: gains of equal labels over common members.

    `gains` has one number for each level of each member. A row that shares no member with a cluster has the ratio 0.

    Examples
    --------
    >>> leaves = np.array([[0], [1], [1]]), np.ones(3), np.array([0, 0, 1])
    >>> pooled_links(np.array([[1], [0], [-1]]), *leaves, np.array([2]), np.ones(2), np.ones(1)).tolist()
    [[0.5, 1.0], [0.5, 0.0], [0.0, 0.0]]
    """
    counts, offsets = label_histograms(leaf_labels, leaf_codes, n_levels, weights=leaf_sizes)
    agreed = _sum_over_members(codes, (counts * gains).T, offsets)
    seen = (codes >= 0) * member_weights @ np.add.reduceat(counts, offsets[:-1], axis=1).T
    return np.divide(agreed, seen, out=np.zeros_like(seen), where=seen > 0)


def _sum_over_members(
    codes: NDArray[Any], table: NDArray[np.float64], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum, for each row of codes, of the rows of the table that belong to its labels."""
    K = table.shape[1]
    # missing labels refer to a last row of zeros
    by_level = np.concatenate([table, np.zeros((1, K))])
    sums = np.empty((len(codes), K))
    step = max(1, BLOCK_ENTRIES // K)
    for start in range(0, len(codes), step):
        block = codes[start : start + step]
        columns = np.where(block >= 0, block + offsets[:-1], len(by_level) - 1)
        out = by_level[columns[:, 0]]
        for m in range(1, columns.shape[1]):
            out += by_level[columns[:, m]]
        sums[start : start + step] = out
    return sums


def join(
    rows: NDArray[Any], leaf_labels: NDArray[np.int64], leaf_rows: NDArray[np.int64], score: Any
) -> NDArray[np.int64]:
    """Labels of all rows: leaves keep theirs, other rows take the cluster with the highest `score(rows)`.

    Examples
    --------
    >>> join(
    ...     np.array([[0], [1], [1]]), np.array([0, 1]), np.array([0, 2]), lambda rows: np.eye(2)[rows[:, 0]]
    ... ).tolist()
    [0, 1, 1]
    """
    labels = np.empty(len(rows), dtype=np.int64)
    step = max(1, BLOCK_ENTRIES // (int(leaf_labels.max()) + 1))
    for start in range(0, len(rows), step):
        labels[start : start + step] = score(rows[start : start + step]).argmax(axis=1)
    labels[leaf_rows] = leaf_labels
    return labels
