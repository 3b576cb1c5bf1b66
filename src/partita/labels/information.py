"""Entropy of counts, and mutual information of partitions from contingency tables and from counts of pairs."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, xlogy

SMALLEST_COUNT = 1e-9  # below it a number of pairs is zero up to rounding


def entropy(counts: ArrayLike, axis: int | None = None) -> Any:
    """Entropy, in nats, of the distribution that is proportional to the counts along an axis; 0 where all are zero.

    Examples
    --------
    >>> float(entropy([2, 2]).round(4)), entropy([[3, 0], [0, 0]], axis=1).tolist()
    (0.6931, [0.0, 0.0])
    """
    counts = np.asarray(counts, dtype=np.float64)
    totals = counts.sum(axis=axis, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return entr(shares).sum(axis=axis)


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

    It is 0 for a partition that says nothing about the other: one cluster, all singletons, or random labels.

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
    pairs = np.maximum(pairs, SMALLEST_COUNT)
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
