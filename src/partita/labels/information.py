"""Entropy of a distribution, and mutual information of two labelings from their contingency table."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

Average = Literal["arithmetic", "geometric", "min", "max"]


def entropy(counts: ArrayLike) -> float:
    """Entropy, in nats, of the distribution that is proportional to `counts`.

    Parameters
    ----------
    counts : array-like of float, of any shape
        Counts or probabilities; zeros are allowed. They need not sum to 1.

    Returns
    -------
    float
        0 for a single outcome, and for counts that are all zero. Divide by log 2 for bits.

    Examples
    --------
    >>> round(entropy([1, 1, 0]), 6)  # log 2
    0.693147
    >>> entropy([3])
    0.0
    """
    p = np.asarray(counts, dtype=np.float64)
    total = p.sum()
    return abs(float(entr(p / total).sum())) if total > 0 else 0.0  # a single outcome gives -0.0


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
