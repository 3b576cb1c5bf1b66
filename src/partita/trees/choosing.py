"""The number of clusters of a tree of dissimilarities: lifetimes and the gap statistic, and the cut itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita.estimator import FitReport, as_generator
from partita.labels import ordered_by_size

MIN_REFERENCES = 2  # sets of uniform points that are compared with in any case


def limit_clusters(n_clusters: int, n_rows: int, report: FitReport) -> int:
    """Limit a given number of clusters to the number of rows, with a note in the report."""
    if n_clusters > n_rows:
        report.add(
            "few_rows",
            f"n_clusters is {n_clusters}, and there are only {n_rows} rows: each row is a cluster",
            level="warning",
        )
    return min(n_clusters, n_rows)


def lifetimes(linkage: Any) -> dict[int, float]:
    """For each number of clusters, the range of heights over which the tree has that many.

    Dendrograms are often cut where the lifetime is longest. One cluster has no lifetime, because the tree has no merge
    above the root; so this rule never chooses one cluster, not even for data without groups. The partition into single
    objects is left out as well, unless there are only two objects: with many columns all distances are far from 0, and
    its lifetime would often be the longest.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> lifetimes(linkage([[0.0], [1.0], [10.0], [11.5]]))
    {3: 0.5, 2: 7.5}
    """
    heights = np.concatenate([[0.0], np.asarray(linkage, float)[:, 2]])
    n = len(heights)
    lengths = np.diff(heights).tolist()
    return {n - t: lengths[t] for t in range(1 if n > 2 else 0, n - 1)}


def cut_linkage(linkage: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels of the leaves when the last merges are undone until there are ``n_clusters``, largest cluster first.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> cut_linkage(linkage([[0.0], [9.0], [10.0], [11.5]]), 2)
    array([1, 0, 0, 0])
    """
    m = len(linkage) + 1
    n_merges = m - n_clusters
    owner = np.arange(2 * m - 1)
    owner[linkage[:n_merges, :2].astype(int)] = np.arange(m, m + n_merges)[:, None]
    owners = owner.tolist()
    for node in range(m + n_merges - 1, -1, -1):  # parents have larger numbers: their owner is known already
        owners[node] = owners[owners[node]]
    return ordered_by_size(np.array(owners[:m]))


class GapResult(NamedTuple):
    """The gap statistic of 1, 2, ... clusters, its errors, and the number of clusters that it chooses."""

    gaps: np.ndarray
    errors: np.ndarray
    n_clusters: int


def gap_statistic(
    X: np.ndarray,
    grow: Callable[[np.ndarray], np.ndarray],
    linkage: np.ndarray,
    *,
    max_clusters: int = 10,
    n_references: int = 10,
    random_state: Any = None,
    stop: Callable[[], bool] = lambda: False,
) -> GapResult:
    """Compare the log within-cluster dispersion with that of uniform points (Tibshirani et al. 2001).

    The uniform points fill the box of the principal axes of X. The choice is the smallest K whose gap is at least the
    gap of K + 1 minus its error, so that one cluster can be chosen.

    Parameters
    ----------
    X : ndarray (n_rows, n_columns)
        Points.
    grow : callable
        Grows a tree: from points to a linkage matrix.
    linkage : ndarray (n_rows - 1, 4)
        The tree of X.
    max_clusters : int, default=10
        Largest number of clusters that is considered.
    n_references : int, default=10
        Sets of uniform points.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the uniform points.
    stop : callable
        Asked before each set of uniform points; where it returns True the sets so far are used (two at least).

    Returns
    -------
    GapResult

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 9])
    >>> grow = lambda points: linkage(points, "average")
    >>> gap_statistic(X, grow, grow(X), random_state=0).n_clusters
    2
    """
    rng = as_generator(random_state)
    K = min(max_clusters, len(X))
    mean = X.mean(axis=0)
    axes = np.linalg.svd(X - mean, full_matrices=False)[2]
    rotated = (X - mean) @ axes.T
    low, high = rotated.min(axis=0), rotated.max(axis=0)
    own = _log_dispersions(X, linkage, K)
    references: list[np.ndarray] = []
    while len(references) < n_references and not (len(references) >= MIN_REFERENCES and stop()):
        points = rng.uniform(low, high, rotated.shape) @ axes
        references.append(_log_dispersions(points, grow(points), K))
    gaps = np.mean(references, axis=0) - own
    errors = np.std(references, axis=0) * np.sqrt(1.0 + 1.0 / len(references))
    good = np.flatnonzero(gaps[:-1] >= gaps[1:] - errors[1:])
    return GapResult(gaps, errors, int(good[0]) + 1 if len(good) else K)


def _log_dispersions(X: np.ndarray, linkage: np.ndarray, K: int) -> np.ndarray:
    """Log sum of squared distances to the cluster means, for 1 to K clusters."""
    out = np.empty(K)
    for k in range(1, K + 1):
        z = cut_linkage(linkage, k)
        means = np.stack([X[z == c].mean(axis=0) for c in range(k)])
        out[k - 1] = np.log(max(float(((X - means[z]) ** 2).sum()), 1e-300))
    return out
