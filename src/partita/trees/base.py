"""What estimators on pairwise dissimilarities share: reading tables or matrices, k-means centers first, the cut."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.engines.run import Control
from partita.estimator import FitReport, GrainMixin, as_generator, claim_folder
from partita.labels import ordered_by_size
from partita.posterior import Grain
from partita.posterior.joining import grown_levels, renumbered, top_of_tree
from partita.similarity.base import PrecomputedOrTable
from partita.table import Table
from partita.trees.choosing import cut_linkage, gap_statistic, lifetimes, limit_clusters
from partita.trees.pairs import Pairs, compares_points, complete_points, point_pairs, read_pairs, table_pairs


class PairwiseEstimator(PrecomputedOrTable):
    """Base of the estimators that use only the dissimilarities of pairs of rows.

    A subclass has the parameters ``metric``, ``kinds`` and ``random_state`` and implements
    ``_fit_pairs(self, pairs, points, rng, control)``. Its fitted attributes are arrays, numbers, text, dictionaries and
    lists.
    """

    _parameter_constraints: dict[str, Any] = {
        "metric": [str, dict],
        "kinds": "no_validation",
        "random_state": "no_validation",
    }

    kinds: Any
    random_state: Any

    def fit(self, X, y=None):
        """Fit to a table, or to dissimilarities with ``metric="precomputed"``.

        Parameters
        ----------
        X : array or data frame
            The table; with ``metric="precomputed"`` dissimilarities, as a square matrix or as the pairs i < j in one
            dimension.
        y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        with self._control() as control, self._new_fit():
            rng = as_generator(self.random_state)
            if self._is_precomputed:
                pairs = read_pairs(X)
                self.schema_, self.n_features_in_ = None, pairs.n
                self.fit_report_ = FitReport()
                claim_folder(self, pairs)
                self._fit_pairs(pairs, None, rng, control)
            else:
                self._fit_table(X, rng, control)
        self.fit_report_.warn()
        return self

    def _control(self) -> Control:
        """A control that never ends the fit, unless the estimator has the running parameters."""
        return Control()

    def _fit_table(self, X: Any, rng: np.random.Generator, control: Control) -> None:
        table = self._read_training(X, self.kinds, None)
        points = complete_points(table)
        self._fit_pairs(table_pairs(table, self.metric, points), points, rng, control)
        self._keep_points(table, points)

    def _fit_pairs(
        self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator, control: Control
    ) -> None:
        raise NotImplementedError

    def _keep_points(self, table: Table, points: np.ndarray | None) -> None:
        """Keep what ``predict`` needs of the table; ``points`` are its rows, or k-means centers."""

    def _new_dissimilarities(self, X: Any) -> np.ndarray:
        """Dissimilarities of new objects to those of ``fit``, for ``metric="precomputed"``."""
        check_is_fitted(self)
        matrix = np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != self.n_features_in_ or not np.isfinite(matrix).all():
            raise ValueError(
                f"X has the shape {matrix.shape}, or values that are not finite: with metric='precomputed' give finite "
                f"dissimilarities, new objects x the {self.n_features_in_} objects of fit"
            )
        return matrix


class PairwiseTree(GrainMixin, PairwiseEstimator):
    """Base of the trees: a subclass implements ``_grow(pairs, points, rng, control) -> linkage matrix``.

    ``control`` is None for the trees of uniform points that the gap statistic compares with. The grain is the upper
    part of the tree, with twice as many groups as the square root of the number of rows.

    Attributes
    ----------
    grain_ : Grain
        The upper part of the tree: labels and support at every number of groups (:class:`partita.posterior.Grain`).
    alternatives_ : list of Alternative
        The coarse (2 or 3), medium (4 to 8) and fine answers with the longest lifetimes; see :meth:`at`.
    """

    _rebuilt = (*PairwiseEstimator._rebuilt, "_grain")
    _array_laws: tuple[str, ...] = (
        "fitted.linkage_ float (n,4) 0..",
        "fitted.row_leaves_ int (N) 0..n",
    )
    _parameter_constraints: dict[str, Any] = {
        **PairwiseEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"lifetime", "gap"})],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
        "n_centers": [Interval(Integral, 2, None, closed="left")],
    }

    n_clusters: Any
    criterion: str
    max_exact: int
    n_centers: int

    @property
    def _n_clusters_score(self) -> str:
        """What ``n_clusters_scores_`` holds, in words."""
        return "lifetime in the tree" if self.criterion == "lifetime" else "gap statistic"

    def _fit_table(self, X: Any, rng: np.random.Generator, control: Control) -> None:
        table = self._read_training(X, self.kinds, None)
        points = complete_points(table)
        if table.n_rows <= self.max_exact or points is None or not compares_points(self.metric):
            # rows without means: the pairs are refused if they would not fit into memory
            self._fit_pairs(table_pairs(table, self.metric, points), points, rng, control)
            self._keep_points(table, points)
            return
        centers, leaves = self._find_centers(points, rng)
        self._fit_pairs(point_pairs(centers, self.metric), centers, rng, control)
        self.row_leaves_, self.labels_ = leaves, ordered_by_size(self.labels_[leaves])
        self._keep_points(table, centers)
        self.fit_report_.add(
            "reduced",
            f"{table.n_rows:,} rows were reduced to {len(centers):,} k-means centers, which are the leaves of the tree",
        )

    def _find_centers(self, points: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        seed = int(rng.integers(2**31))
        found = MiniBatchKMeans(self.n_centers, n_init=1, batch_size=4096, random_state=seed).fit(points)
        used, leaves = np.unique(found.labels_, return_inverse=True)
        return found.cluster_centers_[used], leaves

    def _fit_pairs(
        self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator, control: Control
    ) -> None:
        self.row_leaves_ = np.arange(pairs.n)
        self.linkage_ = self._grow(pairs, points, rng, control) if pairs.n > 1 else np.zeros((0, 4))
        self.n_clusters_scores_ = lifetimes(self.linkage_) if pairs.n > 1 else {}
        self.n_clusters_ = self._choose(pairs, points, rng, control)
        self.labels_ = cut_linkage(self.linkage_, self.n_clusters_)

    def _grow_grain(self) -> Grain:
        linkage, leaves = self.linkage_, self.row_leaves_
        G = grown_levels(len(leaves), self.n_clusters_, len(linkage) + 1)
        groups, joins = top_of_tree(linkage[:, :2].astype(np.int64), linkage[:, 2], G)
        labels, clusters = groups[leaves], np.zeros(G, np.int64)
        clusters[labels] = self.labels_
        joins, onto, _ = renumbered(joins, np.bincount(labels, minlength=G).astype(float), clusters)
        labels = onto[labels]
        sizes = np.bincount(labels).astype(float)
        below = linkage[len(linkage) - G, 2] if len(linkage) >= G > 0 else 0.0
        heights = np.concatenate([joins.heights[::-1], [below]])
        top = heights[0] if heights[0] > 0.0 else 1.0
        support = np.concatenate([[0.0], (heights[:-1] - heights[1:]) / top])[: len(sizes)]
        return Grain(
            labels, joins.joins, joins.heights, support.clip(0.0, 1.0), sizes, "dissimilarity", "lifetime"
        )

    def _grow(
        self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator, control: Control | None
    ) -> np.ndarray:
        raise NotImplementedError

    def _choose(
        self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator, control: Control
    ) -> int:
        if self.n_clusters is not None:
            return limit_clusters(self.n_clusters, pairs.n, self.fit_report_)
        if pairs.n == 1 or not self.linkage_[:, 2].any():  # all rows are equal
            return 1
        scores = self.n_clusters_scores_
        if self.criterion == "lifetime":
            return max(scores, key=lambda K: (scores[K], -K))
        if points is None:
            raise ValueError(
                "criterion='gap' compares with uniform points, so it needs a table of numbers without missing values: "
                "use criterion='lifetime', or give n_clusters"
            )
        found = gap_statistic(
            points,
            lambda reference: self._grow(point_pairs(reference, self.metric), reference, rng, None),
            self.linkage_,
            random_state=rng,
            stop=lambda: control.halted or control.late,
        )
        self.n_clusters_scores_ = {K: float(gap) for K, gap in enumerate(found.gaps, start=1)}
        return found.n_clusters
