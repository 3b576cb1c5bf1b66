"""The base of all estimators that read tables: schema, storage, forgetting of earlier fits, scikit-learn's tags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from partita._version import __version__
from partita.estimator.describing import DescribesGroups, profiles_as_plain, profiles_from_plain
from partita.estimator.fetching import FetchesLater
from partita.estimator.report import FitReport, warn_user
from partita.estimator.resumption import claim_folder
from partita.estimator.storage import save
from partita.table import Schema, Table, read_table
from partita.table.notes import PREDICT_CODES

# What `_state` stores under keys of its own.
REMEMBERED = ("schema_", "n_features_in_", "feature_names_in_", "fit_report_", "_profiles")
# What `set_output`, `set_fit_request` and the callbacks of scikit-learn write; they are not results of a fit.
SKLEARN_SETTINGS = (
    "_sklearn_output_config",
    "_metadata_request",
    "_parent_callback_ctx",
    "_callback_fit_ctx",
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
)


class TableEstimator(DescribesGroups, FetchesLater, BaseEstimator):
    """Base of the estimators: reads tables with a remembered schema, saves and restores the fitted state.

    A subclass stores its parameters in ``__init__`` and nothing else. Its ``fit`` runs within ``_new_fit()`` and reads
    the data with ``_read_training``. All attributes that ``fit`` sets end with an underscore or begin with one.

    Four class attributes describe a subclass. ``_stored`` names the fitted attributes that a file holds as they are
    (arrays, numbers, text, priors, traces; lists, tuples and dicts of these); those that a fit has not set are left
    out. None, the default, stores all fitted attributes except those of ``_rebuilt``, which ``_restore`` of the
    subclass makes again. ``_array_laws`` states type, shape and range of every array of ``_state``
    (:mod:`partita.estimator.array_laws`), besides those of the bases. ``_input_tags`` holds entries of scikit-learn's
    input tags, which are added to those of the bases; a tag that depends on a parameter needs ``__sklearn_tags__``.
    """

    _stored: ClassVar[tuple[str, ...] | None] = None
    _rebuilt: ClassVar[tuple[str, ...]] = ()
    _array_laws: tuple[str, ...] = (
        *(f"profiles.*.*.{name} float (k) 0.." for name in ("n", "sd", "sd_elsewhere", "lump_share")),
        *(f"profiles.*.*.{name} float (k)" for name in ("mean", "median", "whole_median", "lump")),
        *(f"profiles.*.*.{name}_elsewhere float (k)" for name in ("mean", "median", "whole_median")),
        "profiles.*.*.probabilities float (k,l) 0..1",
    )
    _input_tags: ClassVar[dict[str, bool]] = {"allow_nan": True, "categorical": True, "string": True}

    # ---- fit ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _new_fit(self) -> Iterator[None]:
        """Remove the attributes of an earlier fit; if the new fit fails, restore them."""
        with self._whole_or_not_at_all():
            self._forget()
            yield
            table = self.__dict__.pop("_training_table", None)
            if table is not None:
                self._keep_profiles(table)

    @contextmanager
    def _whole_or_not_at_all(self) -> Iterator[None]:
        """If the fit fails, leave the estimator as it was: unfitted, or with its last successful fit."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _forget(self) -> None:
        """Remove all fitted attributes, so that none of an earlier fit stays beside those of a new one."""
        for name in self._fitted_attributes():
            del self.__dict__[name]

    def _fitted_attributes(self) -> list[str]:
        """Names of the attributes that ``fit`` has set: parameters neither begin nor end with an underscore."""
        return [
            name
            for name in vars(self)
            if (name.startswith("_") or name.endswith("_")) and name not in SKLEARN_SETTINGS
        ]

    # ---- tables ------------------------------------------------------------------------------------------------

    def _read_training(self, X: Any, kinds: Any, sample_weight: Any, **options: Any) -> Table:
        """Read X, remember its schema, open the report, and check the folder of ``resume=``."""
        options.setdefault("missing_codes", getattr(self, "missing_codes", None))
        options.setdefault("infer_ordinal", False)  # most models cannot use the order of levels
        table = read_table(
            X, kinds, sample_weight=sample_weight, estimator_name=type(self).__name__, **options
        )
        self._remember(table.schema)
        self.fit_report_ = FitReport(table.notes)
        self._claim_folder(table)
        self._training_table = table  # until the end of the fit, when its groups are described
        return table

    def _claim_folder(self, table: Table) -> None:
        """Check the folder of ``resume=``; estimators that know more than the table when they begin check it later."""
        claim_folder(self, table, table.weights)

    def _remember(self, schema: Any) -> None:
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if schema.feature_names is not None:
            self.feature_names_in_ = schema.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _read_new(self, X: Any, handle_unknown: str = "missing") -> Table:
        """Read X as the training table was read; warn of levels and texts that the training table did not have."""
        check_is_fitted(self)
        if isinstance(X, Table) and X.schema is self.schema_:
            return X
        table = read_table(
            X, schema=self.schema_, handle_unknown=handle_unknown, estimator_name=type(self).__name__
        )
        FitReport(note for note in table.notes if note.code in PREDICT_CODES).warn()
        return table

    # ---- scikit-learn ------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for cls in reversed(type(self).__mro__):
            for name, value in vars(cls).get("_input_tags", {}).items():
                setattr(tags.input_tags, name, value)
        return tags

    # ---- storage -----------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the fitted model to one file (npz with a JSON part; no pickle).

        The file is replaced as a whole or not at all. Read it with :func:`partita.load`. Parameters that cannot be
        written to a file (callbacks, generators) are None after loading.

        Parameters
        ----------
        path : path-like
            The file to write. Its folder must exist.
        """
        check_is_fitted(self)
        self._fetch_all()
        save(self, path)

    def _state(self) -> dict[str, Any]:
        """The fitted state as plain data; a subclass adds what needs conversion."""
        names = self._stored
        if names is None:
            names = tuple(
                name for name in self._fitted_attributes() if name not in (*REMEMBERED, *self._rebuilt)
            )
        schema = getattr(self, "schema_", None)
        return {
            "schema": None if schema is None else schema.to_dict(),
            "n_features_in": self.n_features_in_,
            "report": self.fit_report_.to_list(),
            "fitted": {name: getattr(self, name) for name in names if name in vars(self)},
            "profiles": [] if schema is None else profiles_as_plain(vars(self).get("_profiles", [])),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        """Make a new estimator the fitted one; the inverse of ``_state``.

        A subclass checks what it reads: the file may have been altered, and arrays whose shapes do not belong together
        must not reach compiled code.
        """
        if state["schema"] is None:  # the model was fitted to a matrix of similarities, not to a table
            self.schema_, self.n_features_in_ = None, int(state["n_features_in"])
        else:
            self._remember(Schema.from_dict(state["schema"]))
        self.fit_report_ = FitReport.from_list(state["report"])
        for name, value in state["fitted"].items():
            self._check_stored_name(name)
            setattr(self, name, value)
        if state.get("profiles") and self.schema_ is not None:
            self._profiles = profiles_from_plain(state["profiles"], self._column_of)

    def _check_stored_name(self, name: str) -> None:
        is_fitted = name.startswith("_") or name.endswith("_")
        is_listed = self._stored is None or name in self._stored
        if not (is_fitted and is_listed) or name in REMEMBERED or hasattr(type(self), name):
            raise ValueError(f"{name} is not a fitted attribute of {type(self).__name__}")

    def __getstate__(self) -> dict[str, Any]:
        self._fetch_all()
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
