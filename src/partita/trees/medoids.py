"""K-medoids, from the library of its authors."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from partita.trees.base import PairwiseEstimator

__all__ = ["KMedoids"]


class KMedoids(PairwiseEstimator):
    """A given number of clusters around rows of the data: the sum of dissimilarities to the nearest medoid is least.

    FasterPAM (Schubert and Rousseeuw 2021) by its authors' package ``kmedoids``, which is GPL and comes with
    ``pip install 'partita[medoids]'``. What affinity propagation maximises at a given number of exemplars, searched for
    by swaps.

    Parameters
    ----------
    n_clusters : int, default 8
        How many medoids.
    metric : str or mapping, default "auto"
        How rows are compared, as in :class:`~partita.Agglomerative`; "precomputed" for ready dissimilarities.
    n_init : int, default 10
        Random starts; the least sum wins.
    max_iter : int, default 100
        Passes over the rows in one start.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the starts.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    medoids_ : ndarray (n_clusters,)
        The row that is the medoid of each cluster.
    inertia_ : float
        Sum of the dissimilarities to the medoids.
    n_iter_ : int
        Passes of the best start.
    fit_report_ : FitReport
        What was unusual about the data.
    schema_, n_features_in_, feature_names_in_
        The table that was fitted.

    Examples
    --------
    >>> from partita import KMedoids
    >>> KMedoids(2)
    KMedoids(n_clusters=2)
    """

    _parameter_constraints: dict[str, Any] = {
        **PairwiseEstimator._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self, n_clusters=8, *, metric="auto", n_init=10, max_iter=100, kinds=None, random_state=None
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.n_init = n_init
        self.max_iter = max_iter
        self.kinds = kinds
        self.random_state = random_state

    def _fit_pairs(self, pairs, points, rng) -> None:
        try:
            import kmedoids
        except ImportError as error:
            raise ImportError(
                "KMedoids needs the package kmedoids, which is not installed: pip install 'partita[medoids]'"
            ) from error
        D = pairs.square()
        K = min(self.n_clusters, pairs.n)
        if self.n_clusters > pairs.n:
            self.fit_report_.add(
                "few_rows",
                f"{self.n_clusters} clusters were asked for, and there are only {pairs.n} rows: each is its own",
                level="warning",
            )
        best: Any = None
        for seed in rng.integers(2**31, size=self.n_init):
            start = np.random.default_rng(seed).choice(pairs.n, size=K, replace=False).astype(np.uint64)
            found = kmedoids.fasterpam(D, start, max_iter=self.max_iter, n_cpu=1)
            if best is None or found.loss < best.loss:
                best = found
        medoids = np.asarray(best.medoids, np.int64)
        labels = D[:, medoids].argmin(axis=1)
        labels[medoids] = np.arange(K)  # of equal rows only one is the medoid, and it belongs to itself
        sizes = np.bincount(labels, minlength=K)
        order = np.lexsort((medoids, -sizes))
        rank = np.empty_like(order)
        rank[order] = np.arange(K)
        self.labels_, self.medoids_ = rank[labels], medoids[order]
        self.n_clusters_, self.inertia_, self.n_iter_ = K, float(best.loss), max(int(best.n_iter), 1)
