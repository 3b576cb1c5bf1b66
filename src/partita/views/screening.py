"""Screening of columns for pairwise dependence, before any model is fitted.

Every column is given as a few levels. The product of the one-hot matrix of all levels with itself holds the contingency
tables of all pairs of columns, from which a likelihood ratio statistic per pair is computed. Pairs of numeric columns
are also judged by their correlation. Both statistics are measured in standard deviations above their expectation under
independence. Average linkage of the dependent pairs gives groups of columns, from which searches and chains start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.special import xlogy

MIN_EXCESS = 5.0  # standard deviations above independence that two columns of a group have on average


def dependence_excess(codes: Sequence[np.ndarray], scores: np.ndarray) -> np.ndarray:
    """How far each pair of columns is from independence, in standard deviations above it, or 0: [column, column].

    The larger value of two statistics: the likelihood ratio statistic of the contingency table of the levels, and the
    squared correlation of the scores. The diagonal is 0.

    Parameters
    ----------
    codes : sequence of ndarray of int
        Levels 0, 1, ... of each column; -1 where a cell is missing.
    scores : ndarray (n_rows, n_columns)
        Numbers whose correlations are judged; NaN where a cell is missing and in columns without numbers.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y, z = rng.normal(size=(3, 500))
    >>> codes = [(v > 0).astype(int) for v in (x, x + y, z, x)]
    >>> excess = dependence_excess(codes, np.column_stack([x, x + y, z, np.full(500, np.nan)]))
    >>> (excess > MIN_EXCESS).astype(int)
    array([[0, 1, 0, 1],
           [1, 0, 0, 1],
           [0, 0, 0, 0],
           [1, 1, 0, 0]])
    """
    excess = np.maximum(_table_excess(codes), _correlation_excess(scores))
    np.fill_diagonal(excess, 0.0)
    return np.maximum(excess, 0.0)


def _table_excess(codes: Sequence[np.ndarray]) -> np.ndarray:
    """Likelihood ratio statistics, standardized by mean and variance of their chi-squared distribution."""
    sizes = np.array([max(int(code.max(initial=-1)) + 1, 1) for code in codes])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    one_hot = np.zeros((len(codes[0]), starts[-1]), np.float32)
    for d, code in enumerate(codes):
        rows = np.flatnonzero(code >= 0)
        one_hot[rows, starts[d] + code[rows]] = 1.0
    C = (one_hot.T @ one_hot).astype(np.float64)
    heads = starts[:-1]
    margins = np.add.reduceat(C, heads, axis=1)  # [level, column]: rows in which both columns are seen

    def per_column(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, heads, axis=0)

    n = per_column(margins)
    within = per_column(xlogy(margins, margins))
    G = 2 * (np.add.reduceat(per_column(xlogy(C, C)), heads, axis=1) - within - within.T + xlogy(n, n))
    seen_levels = per_column((margins > 0).astype(np.float64))
    freedom = np.maximum(seen_levels - 1, 1) * np.maximum(seen_levels.T - 1, 1)
    return (G - freedom) / np.sqrt(2.0 * freedom)


def _correlation_excess(scores: np.ndarray) -> np.ndarray:
    """The same for squared correlations, which are chi-squared with one degree of freedom."""
    seen = ~np.isnan(scores)
    counts = np.maximum(seen.sum(axis=0), 1)
    centered = np.where(seen, scores, 0.0)
    centered = np.where(seen, centered - centered.sum(axis=0) / counts, 0.0)
    spread = np.sqrt((centered**2).sum(axis=0) / counts)
    centered /= np.where(spread > 0, spread, 1.0)
    n = np.maximum(seen.T.astype(float) @ seen.astype(float), 1.0)
    return ((centered.T @ centered) ** 2 / n - 1.0) / np.sqrt(2.0)


def linked_groups(strength: np.ndarray, threshold: float) -> list[np.ndarray]:
    """Groups by average linkage: two groups are joined if the mean strength between them is at least the threshold.

    Examples
    --------
    >>> linked_groups(np.array([[0.0, 9.0, 0.0], [9.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), 5.0)
    [array([0, 1]), array([2])]
    """
    if len(strength) < 2:
        return [np.arange(len(strength))] if len(strength) else []
    top = max(float(strength.max()), threshold) + 1.0
    distance = top - strength
    np.fill_diagonal(distance, 0.0)
    label = fcluster(linkage(squareform(distance, checks=False), "average"), top - threshold, "distance")
    return [np.flatnonzero(label == g) for g in np.unique(label)]
