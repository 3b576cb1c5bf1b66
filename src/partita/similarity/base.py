"""What the estimators on similarities share: tables or matrices as input, equal rows as one object, storage."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse as sp
from sklearn.base import ClusterMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.estimator import TableEstimator
from partita.execution.memory import check_memory
from partita.similarity.comparison import METRICS, Comparison, learn_comparison
from partita.similarity.dissimilarities import Rows
from partita.similarity.neighbors import distinct_rows


class PrecomputedOrTable(ClusterMixin, TableEstimator):
    """Base of the estimators whose X is a table, or with ``metric="precomputed"`` a matrix over pairs of objects.

    A subclass sets its fitted attributes inside ``with self._new_fit()``; these are arrays, numbers, text, dictionaries
    and lists, so that they can be saved by name.
    """

    metric: Any
    labels_: np.ndarray
    _rebuilt: ClassVar[tuple[str, ...]] = ("_rows",)

    _array_laws: tuple[str, ...] = (
        "K = fitted.n_clusters_",
        "D = n_features_in",
        "fitted.labels_ int (N) 0..K-1",
    )

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def fit_predict(self, X, y=None, **options):
        """Fit, and return ``labels_``.

        Parameters
        ----------
        X, **options
            As in ``fit``.
        y : ignored

        Returns
        -------
        ndarray (n_rows,)
        """
        return self.fit(X, **options).labels_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.allow_nan = not self._is_precomputed
        tags.input_tags.categorical = tags.input_tags.string = not self._is_precomputed
        return tags

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if self.labels_.ndim != 1 or self.labels_.dtype.kind != "i":
            raise ValueError("the labels are not a list of integers")


class SimilarityEstimator(PrecomputedOrTable):
    """Base of the estimators that need only similarities, computed from a table or given.

    A subclass has the parameters ``metric``, ``column_weights``, ``orders``, ``kinds``, ``standardize`` and
    ``handle_unknown``; its ``fit`` calls ``_open_table`` or :func:`read_matrix`.
    """

    _array_laws: tuple[str, ...] = (
        "fitted._first_rows int (R) 0..N-1",
        "rows.comparison.*.weights float (g) 0..",
        "rows.comparison.*.means float (g) 0..",
        "rows.comparison.*.centers float (g)",
        "rows.comparison.*.scales float (g) 0..",
        "rows.comparison.*.ranks.* float (r)",
        "rows.values.* number (R,g) nan",
    )
    _parameter_constraints: dict[str, Any] = {
        "metric": [StrOptions({"auto", "precomputed", *METRICS}), dict],
        "column_weights": "no_validation",
        "orders": [dict, None],
        "kinds": "no_validation",
        "standardize": ["boolean"],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
    }

    column_weights: Any
    orders: Any
    kinds: Any
    standardize: bool
    handle_unknown: str

    def _open_table(self, X: Any, sample_weight: Any = None) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Read a table whose equal rows are one object.

        Returns all rows, the total weight of each object, and the object of each row (-1 for rows of weight 0). The
        distinct rows are in ``_rows``, their first positions in the table in ``_first_rows``.
        """
        table = self._read_training(X, self.kinds, sample_weight)
        comparison = learn_comparison(table, self.metric, self.column_weights, self.orders, self.standardize)
        rows = Rows.of(table, comparison)
        taking_part = np.flatnonzero(table.weights > 0)
        first, objects = distinct_rows(rows.take(taking_part))
        if len(first) < len(taking_part):
            self.fit_report_.add(
                "equal_rows",
                f"{len(taking_part)} rows have {len(first)} distinct values: equal rows get the same label",
            )
        self._rows = rows.take(taking_part[first])
        self._first_rows = taking_part[first]
        row_objects = np.full(table.n_rows, -1)
        row_objects[taking_part] = objects
        return rows, np.bincount(objects, table.weights[taking_part]), row_objects

    def _note_incomparable_rows(self) -> None:
        if self._rows.has_incomparable:
            self.fit_report_.add(
                "incomparable_rows",
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._is_precomputed
        return tags

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if self._is_precomputed:
            return state
        return {
            **state,
            "rows": {"comparison": self._rows.comparison.to_state(), "values": self._rows.values},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        if "rows" in state:
            rows = state["rows"]
            self._rows = Rows(Comparison.from_state(rows["comparison"]), list(rows["values"]))
        super()._restore(state)


def read_matrix(X: Any, *, must_be_square: bool = False) -> Any:
    """Check precomputed similarities: a dense array, or CSR, whose entries that are not stored are unknown.

    Examples
    --------
    >>> read_matrix([[0, 1], [1, 0]], must_be_square=True).dtype
    dtype('float64')
    >>> read_matrix([[0, 1]], must_be_square=True)
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
        check_memory(
            8 * np.size(X), f"similarities of the shape {np.shape(X)}", "give them as a sparse matrix"
        )
        matrix = check_array(X, dtype=np.float64, ensure_all_finite=False, input_name="X")
        values = matrix
    if must_be_square and matrix.shape[0] != matrix.shape[1]:
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
