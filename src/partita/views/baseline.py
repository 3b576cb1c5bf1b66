"""What the baselines share: a table of numbers in, several columns of labels out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

__all__ = ["NumericViews"]


class NumericViews(BaseEstimator):
    """An estimator of several clusterings of complete, numeric rows."""

    n_clusters: Any
    n_views: int
    scale: bool
    view_labels_: np.ndarray

    def _prepare(self, X: Any) -> tuple[np.ndarray, list[int]]:
        """Centred (and scaled) rows, and the number of clusters of each view."""
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        sizes: list[int] = np.atleast_1d(self.n_clusters).astype(int).tolist()
        if np.ndim(self.n_clusters) == 0:
            sizes = sizes * self.n_views
        if len(sizes) != self.n_views:
            raise ValueError(
                f"n_clusters has {len(sizes)} numbers for {self.n_views} views: give one number, or one for each view"
            )
        if max(sizes) > len(X):
            raise ValueError(
                f"n_clusters is {max(sizes)}, and there are only {len(X)} rows (n_samples={len(X)})"
            )
        self._center = X.mean(axis=0)
        spread = X.std(axis=0) if self.scale else np.full(X.shape[1], X.std())
        self._spread = np.where(spread > 0, spread, 1.0)
        return (X - self._center) / self._spread, sizes

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return ``view_labels_``."""
        return self.fit(X).view_labels_  # type: ignore[attr-defined]
