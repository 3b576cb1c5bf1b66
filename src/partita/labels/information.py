"""Entropy of counts, and mutual information of labelings from contingency tables and from counts of pairs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

MIN_COUNT = 1e-9  # below it a number of pairs is zero up to rounding

Average = Literal["arithmetic", "geometric", "min", "max"]


# as in scipy.special, whose import takes longer than most commands that need these two
def xlogy(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """``x log y``, which is 0 where x is 0; x is not negative.

    Examples
    --------
    >>> xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    return x * np.log(np.where(x == 0.0, 1.0, y))


def entr(x: NDArray[Any]) -> NDArray[np.float64]:
    """``-x log x``, which is 0 where x is 0; x is not negative.

    Examples
    --------
    >>> entr(np.array([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    return 0.0 - xlogy(x, x)  # not -0.0


def entropy(counts: ArrayLike, axis: int | None = None) -> Any:
    """Entropy, in nats, of the distribution that is proportional to `counts` along an axis.

    Parameters
    ----------
    counts : array-like of float, of any shape
        Counts or probabilities; zeros are allowed. They need not sum to 1.
    axis : int, default=None
        The axis of the outcomes; None: all entries are outcomes of one distribution.

    Returns
    -------
    float or ndarray
        0 for a single outcome, and for counts that are all zero. Divide by log 2 for bits.

    Examples
    --------
    >>> round(entropy([1, 1, 0]), 6)  # log 2
    0.693147
    >>> entropy([[3, 0], [0, 0]], axis=1).tolist()
    [0.0, 0.0]
    """
    counts = np.asarray(counts, dtype=np.float64)
    totals = counts.sum(axis=axis, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    found = np.abs(entr(shares).sum(axis=axis))  # a single outcome gives -0.0
    return float(found) if axis is None else found


def mutual_information(table: ArrayLike) -> float:
    """Mutual information, in nats, of the rows and columns of a contingency table.

    Parameters
    ----------
    table : array-like of float, shape (R, C)
        Counts, weights or probabilities, for example from `contingency`.

    Returns
    -------
    float
        Between 0 and the smaller of the two entropies; rounding does not make it negative.

    Examples
    --------
    >>> round(mutual_information([[2, 0], [0, 2]]), 6), mutual_information([[1, 1], [1, 1]])
    (0.693147, 0.0)
    """
    table = np.asarray(table, dtype=np.float64)
    return max(entropy(table.sum(axis=1)) + entropy(table.sum(axis=0)) - entropy(table), 0.0)


def normalized_mutual_information(table: ArrayLike, average: Average = "arithmetic") -> float:
    """Mutual information of a contingency table over an average of the entropies of its rows and columns.

    Parameters
    ----------
    table : array-like of float, shape (R, C)
        Counts, weights or probabilities.
    average : {"arithmetic", "geometric", "min", "max"}, default="arithmetic"
        How the two entropies are averaged.

    Returns
    -------
    float
        Between 0 and 1. It is 0 if one of the labelings has a single cluster, which carries no information.
        `partita.metrics.normalized_mutual_info` compares labelings, and gives 1 if both have a single cluster.

    Examples
    --------
    >>> round(normalized_mutual_information([[1, 1, 0], [0, 0, 2]]), 6)
    0.8
    >>> round(normalized_mutual_information([[1, 1, 0], [0, 0, 2]], "min"), 6)
    1.0
    """
    table = np.asarray(table, dtype=np.float64)
    rows, columns = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    if rows == 0.0 or columns == 0.0:
        return 0.0
    averages = {
        "arithmetic": (rows + columns) / 2.0,
        "geometric": float(np.sqrt(rows * columns)),
        "min": min(rows, columns),
        "max": max(rows, columns),
    }
    return max(rows + columns - entropy(table), 0.0) / averages[average]


def normalized_information(
    tables: NDArray[Any], starts: NDArray[np.int64], average: str = "arithmetic"
) -> NDArray[np.float64]:
    """Normalized mutual information of one partition with several others, from their contingency tables.

    Two partitions that both have one cluster score 1, one cluster against several 0; a pair without a common object is
    NaN.

    Parameters
    ----------
    tables : array (n_clusters, columns)
        The contingency tables side by side, clusters of the one partition as rows.
    starts : array of int
        The first column of each table.
    average : {"arithmetic", "geometric"}
        Mean of the two entropies that the information is divided by.

    Examples
    --------
    >>> tables = np.array([[2, 0, 1, 1], [0, 2, 1, 1]])
    >>> normalized_information(tables, np.array([0, 2]))
    array([1., 0.])
    """
    tables = np.asarray(tables, dtype=np.float64)
    rows = np.add.reduceat(tables, starts, axis=1)
    total = rows.sum(axis=0)
    joint = np.add.reduceat(xlogy(tables, tables).sum(axis=0), starts)
    columns = tables.sum(axis=0)
    own, other = xlogy(rows, rows).sum(axis=0), np.add.reduceat(xlogy(columns, columns), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        first = np.maximum(np.log(total) - own / total, 0.0)
        second = np.maximum(np.log(total) - other / total, 0.0)
        information = np.maximum(np.log(total) + (joint - own - other) / total, 0.0)
        mean = np.sqrt(first * second) if average == "geometric" else (first + second) / 2
        index = np.where(mean > 1e-15, information / mean, 0.0)
    index[(first <= 1e-15) & (second <= 1e-15)] = 1.0
    index[total == 0] = np.nan
    return index


def pair_information(together: Any, first: Any, second: Any, pairs: Any) -> NDArray[np.float64]:
    """Mutual information, in nats, of "together in one partition" and "together in another" over pairs of objects.

    It is 0 for a partition without information about the other: one cluster, all singletons, or random labels.

    Parameters
    ----------
    together, first, second, pairs : arrays that broadcast
        Numbers of pairs: together in both partitions, in the first, in the second; and all.

    Examples
    --------
    >>> float(pair_information(2.0, 2.0, 2.0, 6.0).round(4))  # equal partitions: the entropy of 1/3
    0.6365
    >>> float(pair_information(1.0, 2.0, 3.0, 6.0))  # independent answers
    0.0
    """
    pairs = np.maximum(pairs, MIN_COUNT)
    both, p, q = together / pairs, first / pairs, second / pairs
    cells = (both, p - both, q - both, 1.0 - p - q + both)
    joint = sum(entr(np.maximum(cell, 0.0)) for cell in cells)
    return np.maximum(binary_entropy(p) + binary_entropy(q) - joint, 0.0)


def binary_entropy(probability: Any) -> NDArray[np.float64]:
    """Entropy, in nats, of an event of this probability.

    Examples
    --------
    >>> binary_entropy([0.0, 0.5]).round(4).tolist()
    [0.0, 0.6931]
    """
    probability = np.asarray(probability, dtype=np.float64)
    return entr(probability) + entr(np.maximum(1.0 - probability, 0.0))
