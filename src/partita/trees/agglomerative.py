"""Agglomerative clustering on any dissimilarity, through scipy or fastcluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster import hierarchy
from sklearn.utils._param_validation import StrOptions

from partita.trees.base import PairwiseTree

__all__ = ["Agglomerative"]

LINKS = ("single", "complete", "average", "ward")


class Agglomerative(PairwiseTree):
    """Single, complete, average or Ward linkage of a table, or of ready dissimilarities.

    Good for a look at how rows hang together, under any dissimilarity. Not for the number of clusters: a tree of noise
    looks like any other, and ``criterion`` is only an aid; :class:`~partita.BayesianTree` has odds instead.

    Parameters
    ----------
    n_clusters : int, optional
        Cut the tree into so many clusters. Left out, ``criterion`` chooses.
    linkage : {"average", "single", "complete", "ward"}, default "average"
        The dissimilarity of two groups: mean, least or largest of their pairs; "ward": the rise of the sum of squares
        (for Euclidean distances).
    metric : str or mapping, default "auto"
        How rows are compared: "auto" (Euclidean; the root of the weighted sum of
        :func:`partita.similarity.dissimilarity` for mixed or incomplete tables), a name or mapping that function knows,
        a scipy metric for numbers ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine",
        "canberra"), or "precomputed". Numbers are compared in units of their standard deviation.
    criterion : {"lifetime", "gap"}, default "lifetime"
        How the number of clusters is chosen: by the longest range of heights without a merge (two clusters or more), or
        by the gap statistic, which compares with uniform points.
    optimal_ordering : bool, default False
        Whether the leaves are ordered so that neighbours are as similar as they can be: for drawing, O(N^2) and slow.
    max_rows : int, default 5000
        A table of numbers with more rows is first reduced to k-means centres.
    n_centers : int, default 1000
        How many centres.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the centres and the gap statistic.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    linkage_ : ndarray (n_leaves - 1, 4)
        scipy's linkage matrix; the leaves are rows, or centres.
    row_leaves_ : ndarray (n_rows,)
        The leaf of each row.
    lifetimes_ : dict
        For each number of clusters, the range of heights over which the tree has so many.
    gaps_ : ndarray
        Gap statistic of 1, 2, ... clusters, with ``criterion="gap"``.
    fit_report_ : FitReport
        What was unusual about the data.
    schema_, n_features_in_, feature_names_in_
        The table that was fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import Agglomerative
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (30, 2)), rng.normal(4, 1, (20, 2))])
    >>> model = Agglomerative().fit(X)
    >>> model.n_clusters_, np.bincount(model.labels_)
    (2, array([30, 20]))
    """

    _parameter_constraints: dict[str, Any] = {
        **PairwiseTree._parameter_constraints,
        "linkage": [StrOptions(set(LINKS))],
        "optimal_ordering": ["boolean"],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        linkage="average",
        metric="auto",
        criterion="lifetime",
        optimal_ordering=False,
        max_rows=5000,
        n_centers=1000,
        kinds=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.criterion = criterion
        self.optimal_ordering = optimal_ordering
        self.max_rows = max_rows
        self.n_centers = n_centers
        self.kinds = kinds
        self.random_state = random_state

    def _grow(self, pairs, points, rng) -> np.ndarray:
        Z = _linkage(pairs.condensed, self.linkage)
        return hierarchy.optimal_leaf_ordering(Z, pairs.condensed) if self.optimal_ordering else Z


def _linkage(condensed: np.ndarray, method: str) -> np.ndarray:
    try:
        import fastcluster
    except ImportError:
        return hierarchy.linkage(condensed, method)
    return fastcluster.linkage(condensed, method)
