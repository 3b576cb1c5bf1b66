"""Agglomerative clustering on any dissimilarity, through scipy or fastcluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster import hierarchy
from sklearn.utils._param_validation import StrOptions

from partita.trees.base import PairwiseTree

LINKAGES = ("single", "complete", "average", "ward")


class Agglomerative(PairwiseTree):
    """Single, complete, average or Ward linkage of a table, or of precomputed dissimilarities.

    Good for an overview of how rows group together, under any dissimilarity. Not for the number of clusters:
    ``criterion`` finds one in data without groups as well. :class:`~partita.BayesianTree` has odds for its merges
    instead.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters. By default ``criterion`` chooses it.
    linkage : {"average", "single", "complete", "ward"}, default="average"
        Dissimilarity of two groups: the mean, smallest or largest dissimilarity of their pairs; "ward": the increase of
        the sum of squares (for Euclidean distances).
    metric : str or mapping, default="auto"
        How rows are compared: "auto" (the Euclidean distance for complete tables of numbers, for all others the square
        root of :func:`partita.similarity.dissimilarity`), a name or mapping that this function takes, a scipy metric
        for numbers ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "canberra"), or
        "precomputed". Numbers are compared in units of their standard deviation.
    criterion : {"lifetime", "gap"}, default="lifetime"
        How the number of clusters is chosen: "lifetime" takes the number that the tree has over the longest range of
        heights (at least two), "gap" the gap statistic, which compares the tree with trees of uniform points.
    optimal_ordering : bool, default=False
        Whether leaves are ordered such that neighboring leaves are as similar as possible, for plots. Takes time
        O(N^2) or more.
    max_exact : int, default=5000
        A table of numbers with more rows is first reduced to k-means centers.
    n_centers : int, default=1000
        Number of these centers.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the centers and the gap statistic.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    n_clusters_scores_ : dict
        Score per number of clusters, high is good: its lifetime, which is the range of heights over which the tree has
        that many clusters; or its gap statistic, where ``criterion="gap"`` chose the number (the choice is then the
        smallest number whose gap is not clearly below the next one).
    linkage_ : ndarray (n_leaves - 1, 4)
        scipy's linkage matrix; leaves are rows or k-means centers.
    row_leaves_ : ndarray (n_rows,)
        Leaf of each row.
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
        "linkage": [StrOptions(set(LINKAGES))],
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
        max_exact=5000,
        n_centers=1000,
        kinds=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.criterion = criterion
        self.optimal_ordering = optimal_ordering
        self.max_exact = max_exact
        self.n_centers = n_centers
        self.kinds = kinds
        self.random_state = random_state

    def _grow(self, pairs, points, rng, control) -> np.ndarray:
        Z = _linkage(pairs.condensed, self.linkage, may_overwrite=pairs.is_own and not self.optimal_ordering)
        return hierarchy.optimal_leaf_ordering(Z, pairs.condensed) if self.optimal_ordering else Z


def _linkage(condensed: np.ndarray, method: str, *, may_overwrite: bool) -> np.ndarray:
    try:
        import fastcluster
    except ImportError:
        return hierarchy.linkage(condensed, method)
    return fastcluster.linkage(condensed, method, preserve_input=not may_overwrite)
