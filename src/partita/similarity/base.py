"""What the estimators on similarities share: tables or ready similarities in, equal rows together, storage."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.estimator import FitReport, TableEstimator
from partita.execution.memory import check_memory
from partita.similarity.comparison import METRICS, Comparison, learn_comparison
from partita.similarity.dissimilarities import Rows
from partita.similarity.neighbors import distinct_rows
from partita.table import Schema

__all__ = ["SimilarityEstimator", "largest_first", "read_matrix"]

NOT_SAVED = ("schema_", "fit_report_", "n_features_in_", "feature_names_in_", "_rows")


class SimilarityEstimator(ClusterMixin, TableEstimator):
    """Base of the estimators that need only similarities, made from a table or given.

    A subclass has the parameters ``metric``, ``column_weights``, ``orders``, ``kinds``, ``standardize`` and
    ``handle_unknown``; in ``fit`` it calls ``_open_table`` or :func:`read_matrix`, and keeps as attributes nothing
    but arrays, numbers, text, dicts and lists.
    """

    _parameter_constraints: dict[str, Any] = {
        "metric": [StrOptions({"auto", "precomputed", *METRICS}), dict],
        "column_weights": "no_validation",
        "orders": [dict, None],
        "kinds": "no_validation",
        "standardize": ["boolean"],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
    }

    metric: Any
    column_weights: Any
    orders: Any
    kinds: Any
    standardize: bool
    handle_unknown: str
    _fitted_names: list[str]

    @property
    def _is_given(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _open_table(self, X: Any, sample_weight: Any = None) -> tuple[Rows, np.ndarray, np.ndarray]:
        """The distinct rows of positive weight, their weights, and the number of each row's sort (-1: weight 0)."""
        table = self._read_training(X, self.kinds, sample_weight)
        comparison = learn_comparison(table, self.metric, self.column_weights, self.orders, self.standardize)
        rows = Rows.of(table, comparison)
        taking_part = np.flatnonzero(table.weights > 0)
        first, sort = distinct_rows(rows.take(taking_part))
        if len(first) < len(taking_part):
            self.fit_report_.add(
                "equal_rows", f"{len(taking_part)} rows are of {len(first)} sorts: equal rows go together"
            )
        self._rows = rows.take(taking_part[first])
        self._first_rows = taking_part[first]
        sorts = np.full(table.n_rows, -1)
        sorts[taking_part] = sort
        return rows, np.bincount(sort, table.weights[taking_part]), sorts

    def _note_strangers(self) -> None:
        if self._rows.has_strangers:
            self.fit_report_.add(
                "strangers",
                "some pairs of rows have no observed column in common: they get the mean dissimilarity of two "
                "random rows",
                level="warning",
            )

    def _new_rows(self, X: Any) -> Rows:
        return Rows.of(self._read_new(X, self.handle_unknown), self._rows.comparison)

    def _new_matrix(self, X: Any) -> Any:
        """Similarities of new objects to those of ``fit``."""
        check_is_fitted(self)
        matrix = read_matrix(X)
        if matrix.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {matrix.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input: with metric='precomputed' a row holds the similarities to all objects of fit"
            )
        return matrix

    def fit_predict(self, X, y=None, **options):
        """Fit, and return ``labels_``."""
        return self.fit(X, **options).labels_

    # ---- scikit-learn and storage ----------------------------------------------------------------------------

    def _forget(self) -> None:
        for name in getattr(self, "_fitted_names", ()):
            self.__dict__.pop(name, None)
        self._fitted_names = []

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_given
        tags.input_tags.sparse = self._is_given
        tags.input_tags.allow_nan = not self._is_given
        tags.input_tags.categorical = tags.input_tags.string = not self._is_given
        return tags

    def _state(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in self._fitted_names if name not in NOT_SAVED}
        state: dict[str, Any] = {"report": self.fit_report_.to_list(), "fitted": kept}
        if self._is_given:
            return {**state, "n_features_in": self.n_features_in_}
        rows = {"comparison": self._rows.comparison.to_state(), "values": self._rows.values}
        return {**state, "schema": self.schema_.to_dict(), "rows": rows}

    def _restore(self, state: dict[str, Any]) -> None:
        self.fit_report_ = FitReport.from_list(state["report"])
        for name, value in state["fitted"].items():
            setattr(self, name, value)
        if self._is_given:
            self.schema_, self.n_features_in_ = None, int(state["n_features_in"])
        else:
            self._remember(Schema.from_dict(state["schema"]))
            rows = state["rows"]
            self._rows = Rows(Comparison.from_state(rows["comparison"]), list(rows["values"]))
        self._fitted_names = [*state["fitted"], *(name for name in NOT_SAVED if hasattr(self, name))]
        if self.labels_.ndim != 1 or self.labels_.dtype.kind != "i":
            raise ValueError("the labels are not a list of integers")


def largest_first(clusters: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The clusters from the largest to the smallest, of equals that which appears first.

    Examples
    --------
    >>> largest_first(np.array([4, 9, 9, 2])).tolist()
    [9, 4, 2]
    """
    names, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    return names[np.lexsort((first, -np.bincount(inverse, weights)))]


def read_matrix(X: Any, square: bool = False) -> Any:
    """Check similarities that the user has made: a dense array, or CSR with what is not stored unknown.

    Examples
    --------
    >>> read_matrix([[0, 1], [1, 0]], square=True).dtype
    dtype('float64')
    >>> read_matrix([[0, 1]], square=True)
    Traceback (most recent call last):
    ...
    ValueError: the similarities have the shape (1, 2): give a square matrix, objects x objects
    """
    if sp.issparse(X):
        if X.ndim != 2:
            raise ValueError(f"the similarities have {X.ndim} dimensions: give a matrix, objects x objects")
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        values = matrix.data
    else:
        from sklearn.utils import check_array

        check_memory(
            8 * np.size(X), f"similarities of the shape {np.shape(X)}", "give them as a sparse matrix"
        )
        matrix = check_array(X, dtype=np.float64, ensure_all_finite=False, input_name="X")
        values = matrix
    if square and matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"the similarities have the shape {matrix.shape}: give a square matrix, objects x objects"
        )
    if matrix.shape[0] == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: give similarities")
    if not np.isfinite(values).all():
        raise ValueError(
            "the similarities contain NaN or inf: give finite numbers, and leave unknown ones out of a sparse matrix"
        )
    return matrix
