"""How many clusters a tree of dissimilarities has: the aids that people use, for what they are worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita.labels import ordered_by_size

__all__ = ["Gap", "cut_linkage", "gap_statistic", "lifetimes"]


def lifetimes(linkage: Any) -> dict[int, float]:
    """For each number of clusters, the range of heights over which the tree has so many.

    The longest one is the "gap in the lengths of the links" by which dendrograms are cut. One cluster has no end, so
    it never wins: a tree of noise has a longest lifetime too. Every object alone is no answer either (distances in many
    columns are all far from 0), and is left out unless there are but two.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> lifetimes(linkage([[0.0], [1.0], [10.0], [11.5]]))
    {3: 0.5, 2: 7.5}
    """
    heights = np.concatenate([[0.0], np.asarray(linkage, float)[:, 2]])
    n = len(heights)
    return {n - t: float(heights[t + 1] - heights[t]) for t in range(1 if n > 2 else 0, n - 1)}


def cut_linkage(linkage: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels of the leaves when the last merges are undone until there are ``n_clusters``, largest cluster first.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> cut_linkage(linkage([[0.0], [9.0], [10.0], [11.5]]), 2)
    array([1, 0, 0, 0])
    """
    m = len(linkage) + 1
    owner = np.arange(2 * m - 1)
    for t in range(m - n_clusters):
        owner[linkage[t, :2].astype(int)] = m + t
    for node in range(2 * m - 2, -1, -1):  # parents have larger numbers, so they are settled first
        owner[node] = owner[owner[node]]
    return ordered_by_size(owner[:m])


class Gap(NamedTuple):
    """The gap statistic of 1, 2, ... clusters, its error, and the number of clusters that it chooses."""

    gaps: np.ndarray
    errors: np.ndarray
    n_clusters: int


def gap_statistic(
    X: np.ndarray,
    grow: Callable[[np.ndarray], np.ndarray],
    linkage: np.ndarray,
    rng: np.random.Generator,
    *,
    max_clusters: int = 10,
    n_references: int = 10,
) -> Gap:
    """Compare the log of the within-cluster dispersion with that of uniform points (Tibshirani et al. 2001).

    The references fill the box of the principal axes. Chosen is the smallest K whose gap is not below that of K + 1
    less its error, so that one cluster can win.

    Parameters
    ----------
    X : ndarray (N, D)
    grow : callable
        From points to a linkage matrix.
    linkage : ndarray
        That of X.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 9])
    >>> grow = lambda points: linkage(points, "average")
    >>> gap_statistic(X, grow, grow(X), rng).n_clusters
    2
    """
    K = min(max_clusters, len(X))
    middle = X.mean(axis=0)
    axes = np.linalg.svd(X - middle, full_matrices=False)[2]
    turned = (X - middle) @ axes.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    own = _log_dispersions(X, linkage, K)
    references = np.array(
        [
            _log_dispersions(points, grow(points), K)
            for points in (rng.uniform(low, high, turned.shape) @ axes for _ in range(n_references))
        ]
    )
    gaps = references.mean(axis=0) - own
    errors = references.std(axis=0) * np.sqrt(1.0 + 1.0 / n_references)
    good = np.flatnonzero(gaps[:-1] >= gaps[1:] - errors[1:])
    return Gap(gaps, errors, int(good[0]) + 1 if len(good) else K)


def _log_dispersions(X: np.ndarray, linkage: np.ndarray, K: int) -> np.ndarray:
    out = np.empty(K)
    for k in range(1, K + 1):
        z = cut_linkage(linkage, k)
        means = np.stack([X[z == c].mean(axis=0) for c in range(k)])
        out[k - 1] = np.log(max(float(((X - means[z]) ** 2).sum()), 1e-300))
    return out
