"""What the baselines share: a complete table of numbers as input, one column of labels per view as output."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.utils.validation import validate_data

from partita.estimator import FitReport, RunningMixin, TableEstimator, claim_folder
from partita.execution.threads import one_thread_each

MAX_CLUSTERS = 10  # largest number of clusters that is considered without n_clusters
SILHOUETTE_ROWS = 2000  # rows of the sample that silhouettes are computed on


class NumericViews(RunningMixin, TableEstimator):
    """Base of the estimators of several clusterings of complete, numeric rows.

    A subclass lists the names of its fitted attributes in ``_saved``.
    """

    _array_laws: tuple[str, ...] = (
        "D = n_features_in",
        "fitted.view_labels_ int (N,V) 0..N-1",
        "fitted._center float (D)",
        "fitted._scale float (D) 0..",
    )
    _saved: tuple[str, ...] = ()
    _input_tags = {"allow_nan": False, "categorical": False, "string": False}

    n_clusters: Any
    n_views: int
    standardize: bool
    view_labels_: np.ndarray

    def _prepare(self, X: Any) -> np.ndarray:
        """Centered (and standardized) rows."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.fit_report_ = FitReport()
        claim_folder(self, X)
        self._center = X.mean(axis=0)
        scale = X.std(axis=0) if self.standardize else np.full(X.shape[1], X.std())
        self._scale = np.where(scale > 0, scale, 1.0)
        return self._scaled(X)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return (X - self._center) / self._scale

    def _given_sizes(self, n_rows: int) -> list[int] | None:
        """The number of clusters of each view; None if it has to be found."""
        if self.n_clusters is None:
            return None
        sizes: list[int] = np.atleast_1d(self.n_clusters).astype(int).tolist()
        if np.ndim(self.n_clusters) == 0:
            sizes = sizes * self.n_views
        if len(sizes) != self.n_views:
            raise ValueError(
                f"n_clusters has {len(sizes)} numbers for {self.n_views} views: give one number, or one per view"
            )
        if min(sizes) < 1:
            raise ValueError(f"n_clusters is {self.n_clusters}: every view needs at least one cluster")
        if max(sizes) > n_rows:
            raise ValueError(
                f"n_clusters is {max(sizes)}, and there are only {n_rows} rows (n_samples={n_rows})"
            )
        return sizes

    def _state(self) -> dict[str, Any]:
        names = list(getattr(self, "feature_names_in_", ()))
        state = {"n_features_in": self.n_features_in_, "names": names, "report": self.fit_report_.to_list()}
        return {**state, "fitted": {name: getattr(self, name) for name in self._saved}}

    def _restore(self, state: dict[str, Any]) -> None:
        self.n_features_in_ = int(state["n_features_in"])
        if state["names"]:
            self.feature_names_in_ = np.array(state["names"], dtype=object)
        self.fit_report_ = FitReport.from_list(state["report"])
        for name in self._saved:
            setattr(self, name, state["fitted"][name])
        if self.view_labels_.ndim != 2 or self.view_labels_.dtype.kind != "i":
            raise ValueError("the labels are not a matrix of integers")

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return ``view_labels_``.

        Parameters
        ----------
        X : array (n_rows, n_columns)
            Numbers without missing values.
        y : ignored

        Returns
        -------
        ndarray (n_rows, n_views)
        """
        return self.fit(X).view_labels_  # type: ignore[attr-defined]


def silhouette_scores(A: np.ndarray, rng: np.random.Generator) -> dict[int, float]:
    """Mean silhouette of k-means with 2, 3, ... clusters, on at most 2,000 rows; empty if no two rows differ.

    Examples
    --------
    >>> A = np.repeat([[0.0], [1.0], [5.0]], 10, axis=0) + 0.01 * np.arange(30)[:, None]
    >>> scores = silhouette_scores(A, np.random.default_rng(0))
    >>> max(scores, key=scores.get)
    3
    """
    seed = int(rng.integers(2**31))
    if len(A) > SILHOUETTE_ROWS:
        A = A[rng.choice(len(A), SILHOUETTE_ROWS, replace=False)]
    n_distinct = len(np.unique(A, axis=0))
    scores = {}
    with one_thread_each():
        for K in range(2, min(MAX_CLUSTERS, n_distinct, len(A) - 1) + 1):
            labels = KMeans(K, n_init=3, random_state=seed).fit(A).labels_
            scores[K] = float(silhouette_score(A, labels)) if len(set(labels)) > 1 else -1.0
    return scores


def best_size(scores: dict[int, float]) -> int:
    """The number of clusters with the largest score, the smallest of equals; 1 without scores."""
    return max(scores, key=lambda K: (scores[K], -K)) if scores else 1
