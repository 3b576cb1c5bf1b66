"""Trees from the root down: dissimilarity analysis, bisection, spanning-tree splits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import StrOptions

from partita.trees.base import PairwiseTree
from partita.trees.divisive import diana_split, divide, medoid_split, spanning_linkage

__all__ = ["BisectingClusters", "Diana", "SpanningTreeSplits"]


class _Divisive(PairwiseTree):
    """Parameters that all divisive trees have."""

    def __init__(
        self,
        n_clusters=None,
        *,
        metric="auto",
        criterion="lifetime",
        max_rows=5000,
        n_centers=1000,
        kinds=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.criterion = criterion
        self.max_rows = max_rows
        self.n_centers = n_centers
        self.kinds = kinds
        self.random_state = random_state


class Diana(_Divisive):
    """Dissimilarity analysis: the widest group loses a splinter group, again and again.

    The most distant member starts the splinter group, and others follow while they are nearer to it than to those who
    stay (Macnaughton-Smith et al. 1964); means run over the *other* members. Splits are made in view of all the data,
    where merges are made in view of two groups.

    Good for the few large groups at the top of a tree. Not for thousands of leaves: memory grows as the square of their
    number.

    Parameters
    ----------
    n_clusters : int, optional
        Cut the tree into so many clusters. Left out, ``criterion`` chooses.
    metric : str or mapping, default "auto"
        How rows are compared, as in :class:`~partita.Agglomerative`; "precomputed" for ready dissimilarities.
    criterion : {"lifetime", "gap"}, default "lifetime"
        How the number of clusters is chosen, as in :class:`~partita.Agglomerative`.
    max_rows : int, default 5000
        A table of numbers with more rows is first reduced to k-means centres.
    n_centers : int, default 1000
        How many centres.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the centres and the gap statistic; Diana itself has no chance in it.

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
    >>> from partita import Diana
    >>> model = Diana(2).fit([[0.0], [1.0], [9.0], [10.0], [10.5]])
    >>> model.labels_
    array([1, 1, 0, 0, 0])
    """

    def _grow(self, pairs, points, rng) -> np.ndarray:
        D = pairs.square()
        return divide(D, lambda members: diana_split(D, members)).linkage


class BisectingClusters(_Divisive):
    """The group with the largest diameter is divided in two, again and again.

    With ``n_clusters`` it stops there, and below the clusters the tree has no order of its own: their members are
    joined by complete linkage.

    Parameters
    ----------
    n_clusters : int, optional
        Cut the tree into so many clusters. Left out, ``criterion`` chooses.
    metric : str or mapping, default "auto"
        How rows are compared, as in :class:`~partita.Agglomerative`; "precomputed" for ready dissimilarities.
    criterion : {"lifetime", "gap"}, default "lifetime"
        How the number of clusters is chosen, as in :class:`~partita.Agglomerative`.
    max_rows : int, default 5000
        A table of numbers with more rows is first reduced to k-means centres.
    n_centers : int, default 1000
        How many centres.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    inside : {"auto", "kmeans", "kmedoids"}, default "auto"
        What divides a group: k-means with two centres (complete tables of numbers), or two medoids (any dissimilarity).
        "auto" is k-means where it can be.
    random_state : None, int, RandomState, Generator or SeedSequence
        For k-means, the centres and the gap statistic.

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
    >>> from partita import BisectingClusters
    >>> model = BisectingClusters(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0], [10.5]])
    >>> model.labels_
    array([1, 1, 0, 0, 0])
    """

    _parameter_constraints: dict[str, Any] = {
        **PairwiseTree._parameter_constraints,
        "inside": [StrOptions({"auto", "kmeans", "kmedoids"})],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        inside="auto",
        metric="auto",
        criterion="lifetime",
        max_rows=5000,
        n_centers=1000,
        kinds=None,
        random_state=None,
    ):
        super().__init__(
            n_clusters,
            metric=metric,
            criterion=criterion,
            max_rows=max_rows,
            n_centers=n_centers,
            kinds=kinds,
            random_state=random_state,
        )
        self.inside = inside

    def _grow(self, pairs, points, rng) -> np.ndarray:
        D = pairs.square()
        if self.inside == "kmeans" and points is None:
            raise ValueError(
                "inside='kmeans' needs a table of numbers without missing values: use inside='kmedoids'"
            )

        by_medoids = self.inside == "kmedoids" or points is None

        def split(members: np.ndarray) -> np.ndarray:
            if by_medoids or len(members) == 2 or not np.ptp(points[members], axis=0).any():
                return medoid_split(D, members)
            seed = int(rng.integers(2**31))
            found = KMeans(2, n_init=1, random_state=seed).fit(points[members]).labels_ == 1
            return found if found.any() and not found.all() else medoid_split(D, members)

        wanted = None if self.n_clusters is None else min(self.n_clusters, pairs.n)
        found = divide(D, split, wanted)
        return found.linkage if wanted in (None, pairs.n) else _with_members(D, found)


class SpanningTreeSplits(_Divisive):
    """The minimum spanning tree loses its longest link, then the next one, and so on.

    The tree is that of single linkage (ties aside), in O(N^2) time.

    Good for groups of any shape with empty space between them. Not where a few rows bridge the groups.

    Parameters
    ----------
    n_clusters : int, optional
        Cut the tree into so many clusters. Left out, ``criterion`` chooses.
    metric : str or mapping, default "auto"
        How rows are compared, as in :class:`~partita.Agglomerative`; "precomputed" for ready dissimilarities.
    criterion : {"lifetime", "gap"}, default "lifetime"
        How the number of clusters is chosen, as in :class:`~partita.Agglomerative`.
    max_rows : int, default 5000
        A table of numbers with more rows is first reduced to k-means centres.
    n_centers : int, default 1000
        How many centres.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the centres and the gap statistic; the splits have no chance in them.

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
    >>> from partita import SpanningTreeSplits
    >>> model = SpanningTreeSplits(2).fit([[0.0], [1.0], [9.0], [10.0], [10.5]])
    >>> model.labels_
    array([1, 1, 0, 0, 0])
    """

    def _grow(self, pairs, points, rng) -> np.ndarray:
        return spanning_linkage(pairs.square())


def _with_members(D: np.ndarray, found: Any) -> np.ndarray:
    """The tree over groups, with a tree of complete linkage below each of them."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    N, K = len(D), len(found.linkage) + 1
    rows: list[tuple[float, int, int, int]] = []  # height, children, count
    roots = []
    for g in range(K):
        members = np.flatnonzero(found.labels == g)
        names = members.tolist()
        if len(members) > 1:
            for i, j, height, count in linkage(
                squareform(D[np.ix_(members, members)], checks=False), "complete"
            ):
                names.append(N + len(rows))
                rows.append((height, names[int(i)], names[int(j)], int(count)))
        roots.append((names[-1], len(members)))
    for i, j, height, _ in found.linkage:
        (left, a), (right, b) = roots[int(i)], roots[int(j)]
        roots.append((N + len(rows), a + b))
        rows.append((height, left, right, a + b))
    return _sorted(rows, N)


def _sorted(rows: list[tuple[float, int, int, int]], N: int) -> np.ndarray:
    """Merges in scipy's order: no group is wider than one that was divided, so those of the groups come last."""
    heights = np.array([row[0] for row in rows])
    n_inner = len(rows)
    order = np.argsort(heights, kind="stable")
    name = np.arange(N + n_inner)
    name[N + order] = N + np.arange(n_inner)
    out = np.empty((n_inner, 4))
    for t, e in enumerate(order):
        height, i, j, count = rows[e]
        out[t] = *sorted((name[i], name[j])), height, count
    return out
