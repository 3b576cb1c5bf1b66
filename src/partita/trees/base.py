"""What trees of dissimilarities share: reading tables or ready pairs, centres first, the cut, storage."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils._param_validation import Interval, StrOptions

from partita.estimator import FitReport, TableEstimator, as_generator
from partita.labels import ordered_by_size
from partita.table import Schema
from partita.trees.choosing import cut_linkage, gap_statistic, lifetimes
from partita.trees.pairs import Pairs, read_pairs, table_coordinates, table_pairs

__all__ = ["PairwiseEstimator", "PairwiseTree"]

NOT_SAVED = ("schema_", "fit_report_", "n_features_in_", "feature_names_in_")


class PairwiseEstimator(ClusterMixin, TableEstimator):
    """Base of the estimators that look at pairs of rows only.

    A subclass has the parameters ``metric``, ``kinds`` and ``random_state``, writes
    ``_fit_pairs(self, pairs, points, rng)``, and keeps as attributes nothing but arrays, numbers, text, dicts and
    lists.
    """

    _parameter_constraints: dict[str, Any] = {
        "metric": [str, dict],
        "kinds": "no_validation",
        "random_state": "no_validation",
    }

    metric: Any
    kinds: Any
    random_state: Any
    labels_: np.ndarray
    _fitted_names: list[str]

    @property
    def _is_given(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def fit(self, X, y=None):
        """Fit to a table, or to dissimilarities with ``metric="precomputed"``.

        Parameters
        ----------
        X : array or data frame; dissimilarities as a square matrix or as pairs i < j if they are precomputed
        y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        with self._whole_or_not_at_all():
            for name in getattr(self, "_fitted_names", ()):
                self.__dict__.pop(name, None)
            before = set(self.__dict__)
            rng = as_generator(self.random_state)
            if self._is_given:
                pairs = read_pairs(X)
                self.schema_, self.n_features_in_ = None, pairs.n
                self.fit_report_ = FitReport()
                self._fit_pairs(pairs, None, rng)
            else:
                self._fit_table(X, rng)
            self._fitted_names = sorted(set(self.__dict__) - before)
        self.fit_report_.warn()
        return self

    def _fit_table(self, X: Any, rng: np.random.Generator) -> None:
        table = self._read_training(X, self.kinds, None)
        points = table_coordinates(table)
        self._fit_pairs(table_pairs(table, self.metric, points), points, rng)

    def _fit_pairs(self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def fit_predict(self, X, y=None):
        """Fit, and return ``labels_``."""
        return self.fit(X).labels_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_given
        tags.input_tags.allow_nan = not self._is_given
        tags.input_tags.categorical = tags.input_tags.string = not self._is_given
        return tags

    def _state(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in self._fitted_names if name not in NOT_SAVED}
        state: dict[str, Any] = {"report": self.fit_report_.to_list(), "fitted": kept}
        if self._is_given:
            return {**state, "n_features_in": self.n_features_in_}
        return {**state, "schema": self.schema_.to_dict()}

    def _restore(self, state: dict[str, Any]) -> None:
        self.fit_report_ = FitReport.from_list(state["report"])
        if self._is_given:
            self.schema_, self.n_features_in_ = None, int(state["n_features_in"])
        else:
            self._remember(Schema.from_dict(state["schema"]))
        for name, value in state["fitted"].items():
            setattr(self, name, value)
        self._fitted_names = [*state["fitted"], *(name for name in NOT_SAVED if hasattr(self, name))]
        if self.labels_.ndim != 1 or self.labels_.dtype.kind != "i":
            raise ValueError("the labels are not a list of integers")


class PairwiseTree(PairwiseEstimator):
    """Base of the trees: a subclass writes ``_grow(pairs, points, rng) -> linkage matrix``."""

    _parameter_constraints: dict[str, Any] = {
        **PairwiseEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"lifetime", "gap"})],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "n_centres": [Interval(Integral, 2, None, closed="left")],
    }

    n_clusters: Any
    criterion: str
    max_rows: int
    n_centres: int

    def _fit_table(self, X: Any, rng: np.random.Generator) -> None:
        table = self._read_training(X, self.kinds, None)
        points = table_coordinates(table)
        if table.n_rows <= self.max_rows or points is None:
            # a mixed table has no means: asked for the pairs, it is refused if they would not fit into memory
            self._fit_pairs(table_pairs(table, self.metric, points), points, rng)
            return
        centres, leaf = self._centres(points, rng)
        shrunk = _Reduced(len(centres))
        self._fit_pairs(table_pairs(shrunk, self.metric, centres), centres, rng)
        self.leaf_of_row_, self.labels_ = leaf, ordered_by_size(self.labels_[leaf])
        self.fit_report_.add(
            "reduced",
            f"{table.n_rows:,} rows were reduced to {len(centres):,} k-means centres, which are the leaves of the tree",
        )

    def _centres(self, points: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        seed = int(rng.integers(2**31))
        found = MiniBatchKMeans(self.n_centres, n_init=1, batch_size=4096, random_state=seed).fit(points)
        used, leaf = np.unique(found.labels_, return_inverse=True)
        return found.cluster_centers_[used], leaf

    def _fit_pairs(self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator) -> None:
        self.leaf_of_row_ = np.arange(pairs.n)
        self.linkage_ = self._grow(pairs, points, rng) if pairs.n > 1 else np.zeros((0, 4))
        self.lifetimes_ = lifetimes(self.linkage_) if pairs.n > 1 else {}
        self.n_clusters_ = self._choose(pairs, points, rng)
        self.labels_ = cut_linkage(self.linkage_, self.n_clusters_)

    def _grow(self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def _grow_points(self, points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self._grow(table_pairs(_Reduced(len(points)), self.metric, points), points, rng)

    def _choose(self, pairs: Pairs, points: np.ndarray | None, rng: np.random.Generator) -> int:
        if self.n_clusters is not None:
            if self.n_clusters > pairs.n:
                self.fit_report_.add(
                    "few_rows",
                    f"{self.n_clusters} clusters were asked for, and there are only {pairs.n} rows: each is its own",
                    level="warning",
                )
            return min(self.n_clusters, pairs.n)
        if pairs.n == 1 or not self.linkage_[:, 2].any():  # nothing differs
            return 1
        if self.criterion == "lifetime":
            return max(self.lifetimes_, key=lambda K: (self.lifetimes_[K], -K))
        if points is None:
            raise ValueError(
                "criterion='gap' compares with uniform points, so it needs a table of numbers without missing values: "
                "use criterion='lifetime', or give n_clusters"
            )
        found = gap_statistic(points, lambda X: self._grow_points(X, rng), self.linkage_, rng)
        self.gaps_ = found.gaps
        return found.n_clusters


class _Reduced:
    """Stands for a table whose rows are points already: only their number is asked for."""

    def __init__(self, n_rows: int):
        self.n_rows = n_rows
