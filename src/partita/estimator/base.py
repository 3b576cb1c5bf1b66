"""The base of all estimators that read tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from partita._version import __version__
from partita.estimator.report import FitReport, warn_user
from partita.estimator.storage import save
from partita.table import Table, read_table

__all__ = ["TableEstimator"]


class TableEstimator(BaseEstimator):
    """Reads tables with a remembered schema; knows how to save itself.

    A subclass stores its parameters in ``__init__`` and nothing else, and lists its fitted state in
    ``_state()`` / ``_restore()``.
    """

    @contextmanager
    def _whole_or_not_at_all(self) -> Iterator[None]:
        """A fit that fails leaves the estimator as it was: unfitted, or with its last good fit."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _read_training(self, X: Any, kinds: Any, sample_weight: Any, **options: Any) -> Table:
        """Read X, remember its schema, open the report."""
        table = read_table(
            X, kinds, sample_weight=sample_weight, estimator_name=type(self).__name__, **options
        )
        self._remember(table.schema)
        self.fit_report_ = FitReport(table.notes)
        return table

    def _remember(self, schema: Any) -> None:
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if schema.feature_names is not None:
            self.feature_names_in_ = schema.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _read_new(self, X: Any, handle_unknown: str = "missing") -> Table:
        """Read X as the training table was read; warn of what could not be."""
        check_is_fitted(self)
        table = read_table(
            X, schema=self.schema_, handle_unknown=handle_unknown, estimator_name=type(self).__name__
        )
        FitReport(n for n in table.notes if n.code == "unknown_levels").warn()
        return table

    def save(self, path: Any) -> None:
        """Write the fitted model to one file (npz with a JSON part; no pickle).

        The file is replaced as a whole or not at all. Read it with :func:`partita.load`. Parameters that no file
        can hold (callbacks, generators) come back as None.
        """
        check_is_fitted(self)
        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_partita_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        written_by = state.pop("_partita_version", None)
        if written_by != __version__:
            warn_user(
                f"this {type(self).__name__} was pickled by partita {written_by}, this is {__version__}: results may "
                "differ or fail; fit it again, or use save() and partita.load()",
                UserWarning,
            )
        super().__setstate__(state)

    def _state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, state: dict[str, Any]) -> None:
        raise NotImplementedError
