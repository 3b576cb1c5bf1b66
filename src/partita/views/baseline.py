"""What the baselines share: a complete table of numbers as input, one column of labels per view as output."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from partita.estimator import RunningMixin, TableEstimator
from partita.execution.threads import one_thread_each
from partita.table import Table

MAX_CLUSTERS = 10  # largest number of clusters that is considered without n_clusters
SILHOUETTE_ROWS = 2000  # rows of the sample that silhouettes are computed on


class NumericViews(RunningMixin, TableEstimator):
    """Base of the estimators of several clusterings of complete, numeric rows.

    A subclass lists the names of its fitted attributes in ``_stored``.
    """

    _array_laws: tuple[str, ...] = (
        "fitted.view_labels_ int (N,V) 0..N-1",
        "fitted._center float (D)",
        "fitted._scale float (D) 0..",
    )
    _input_tags = {"allow_nan": False, "categorical": False, "string": False}

    n_clusters: Any
    n_views: int
    standardize: bool
    view_labels_: np.ndarray

    def _prepare(self, X: Any) -> np.ndarray:
        """Centered (and standardized) rows."""
        table = self._read_training(X, "real", None)
        if table.n_rows < 2:
            raise ValueError(
                f"Found array with {table.n_rows} sample(s) while a minimum of 2 is required: give rows"
            )
        X = _complete_numbers(table)
        self._center = X.mean(axis=0)
        scale = X.std(axis=0) if self.standardize else np.full(X.shape[1], X.std())
        self._scale = np.where(scale > 0, scale, 1.0)
        return self._scaled(X)

    def _new_rows(self, X: Any) -> np.ndarray:
        """New rows, centered and scaled as those of the fit."""
        return self._scaled(_complete_numbers(self._read_new(X)))

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

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if self.view_labels_.ndim != 2:
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


def _complete_numbers(table: Table) -> np.ndarray:
    """The columns as one array in row-major order, so that the layout of the input cannot change a sum."""
    for column in table.columns:
        missing = np.flatnonzero(np.isnan(column.values))
        if len(missing):
            raise ValueError(
                f"Input contains NaN: column {column.name!r} has no value in row {missing[0]}, and views by k-means "
                "need complete rows; fill or drop them, or use CrossCat or OverlappingViews"
            )
    return np.ascontiguousarray(
        np.column_stack([column.values for column in table.columns]), dtype=np.float64
    )


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
