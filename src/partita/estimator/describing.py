"""What all estimators say about their groups: names, sentences, profiles, and the answer in notebooks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from partita.descriptions import (
    GroupsDescription,
    GroupsSummary,
    ViewsInWords,
    describe_labels,
    profile_groups,
    tabulate_profiles,
)
from partita.estimator.judging import early_end
from partita.table import ColumnSchema, Table, read_table
from partita.table.frames import make_frame
from partita.wording import first_sentence

MAX_CELLS = 50_000_000  # of tables that are described after a fit
MAX_ENTRIES = 2_000_000  # of their profiles
PROFILE_ENTRIES = (
    "n", "mean", "sd", "median", "whole_median", "lump", "lump_share", "mean_elsewhere", "sd_elsewhere",
    "median_elsewhere", "whole_median_elsewhere", "probabilities",
)  # fmt: skip


class DescribesGroups:
    """Mixin of the estimators: ``summary_``, ``describe_groups``, ``profile_table`` and the answer in notebooks.

    Models with ``profiles_`` are described by these. For the others the base keeps the profiles of the table that was
    fitted (``_keep_profiles``). A subclass whose groups have other profiles overrides ``_own_profiles`` and
    ``_column_of``.

    Attributes
    ----------
    summary_ : GroupsSummary
        The groups in words: a name and a sentence for each, sizes, and the grade of the answer. Estimators of several
        views have a summary of each (:class:`partita.descriptions.ViewsInWords`).
    """

    _describes_members: ClassVar[bool] = False  # whether the columns are members of an ensemble
    _profiles: list[dict[str, dict[str, np.ndarray]]]  # for each view, or for the one clustering

    # ---- for users -----------------------------------------------------------------------------------------------

    @property
    def summary_(self) -> Any:
        """The groups in words: a name and a sentence for each, sizes, and the grade of the answer."""
        return self.describe_groups()

    def describe_groups(self, X: Any = None, *, at: int | str | None = None) -> Any:
        """Describe the groups in words: a name and a sentence for each.

        A sentence has the columns that distinguish the group most, at most six, each with the value of the whole table
        in parentheses: the share of the level that differs most, the mean of numbers, the median of skewed ones. Groups
        are numbered from 1.

        Parameters
        ----------
        X : array or data frame, default=None
            A table of the rows that were fitted, which may have other columns. None describes the groups by the columns
            that were fitted.
        at : int or str, default=None
            The scale: a number of groups, or the name of a level ("coarse"; estimators with a ``grain_``). None is the
            answer.

        Returns
        -------
        GroupsSummary
            A :class:`partita.descriptions.ViewsInWords` for estimators of several views.
        """
        described = self._described(X, at)
        reason, grade = self._verdict() if at is None else ("", "")
        noun = "object" if self._describes_members else "row"
        if hasattr(self, "view_labels_"):
            views = tuple(
                GroupsSummary(found.groups, found.n_rows, title=f"view {v + 1}")
                for v, (found, *_) in enumerate(described)
                if v in getattr(self, "counted_views_", range(len(described))) and len(found.groups) > 1
            )
            return ViewsInWords(views, len(self.view_labels_), reason)
        found = described[0][0]
        return GroupsSummary(found.groups, found.n_rows, grade, reason, noun)

    def profile_table(self, X: Any = None, *, at: int | str | None = None, as_frame: str = "pandas") -> Any:
        """Every column in every group and in the whole table, as a data frame.

        There is one line per column and statistic (mean, standard deviation, median; the share of each level), the
        columns that distinguish the groups most first. Groups are numbered from 1.

        Parameters
        ----------
        X : array or data frame, default=None
            A table of the rows that were fitted, which may have other columns. None gives the profiles of the columns
            that were fitted: those of the fitted model if it has ``profiles_``, otherwise those of the rows.
        at : int or str, default=None
            The scale: a number of groups, or the name of a level ("coarse"; estimators with a ``grain_``).
        as_frame : {"pandas", "polars", "pyarrow", "dict"}, default="pandas"
            The library of the data frame, which must be installed; "dict" gives lists by column name.

        Returns
        -------
        data frame
            With the columns "column", "kind", "statistic", "all", "group 1", "group 2", ... Estimators of several
            views have a column "view" before them.
        """
        described = self._described(X, at)
        if not any(profiles for _, profiles, _ in described):
            raise ValueError(
                f"this {type(self).__name__} does not know the columns of its rows: give a table of the same rows, "
                "profile_table(X)"
            )
        parts = []
        for found, profiles, column_of in described:
            order = [name for name, _ in found.informative_columns]
            shown = [group.label for group in found.groups]
            parts.append(tabulate_profiles(profiles, column_of, found.weights, order, shown))
        if not hasattr(self, "view_labels_"):
            return make_frame(parts[0], as_frame)
        return make_frame(_stacked(parts), as_frame)

    # ---- what is described -----------------------------------------------------------------------------------------

    def _described(self, X: Any, at: int | str | None) -> list[tuple[GroupsDescription, dict[str, Any], Any]]:
        """For each view, or for the one clustering: its description, its profiles, and the schemas of the columns."""
        check_is_fitted(self)
        labels, profiles, weights = self._groupings(at)
        column_of, members = self._column_of, self._describes_members
        if X is not None:
            table = self._read_described(X, len(labels[0]))
            profiles = [profile_groups(z, table, int(z.max(initial=-1)) + 1) for z in labels]
            weights, column_of, members = [None] * len(labels), table.schema.column, False
        observed = self._observed() if X is None else None
        return [
            (describe_labels(z, found, column_of, w, by_members=members, observed=observed), found, column_of)
            for z, found, w in zip(labels, profiles, weights, strict=True)
        ]

    def _groupings(self, at: int | str | None) -> tuple[list[Any], list[Any], list[Any]]:
        """Labels, profiles and sizes of the groups of each view, or of the one clustering."""
        if at is not None:
            if not hasattr(self, "at") or hasattr(self, "view_labels_"):
                raise ValueError(f"{type(self).__name__} is described at its answer only: leave at= out")
            level = self.at(at)
            return [level.labels], [level.profiles if isinstance(level.profiles, dict) else {}], [None]
        if hasattr(self, "view_labels_"):
            labels = list(np.asarray(self.view_labels_).T)
        else:
            labels = [np.asarray(self.labels_)]  # type: ignore[attr-defined]
        own = self._own_profiles() or [{} for _ in labels]
        weights = (
            getattr(self, "weights_", None) if isinstance(getattr(self, "profiles_", None), dict) else None
        )
        return labels, own, [None if weights is None else np.asarray(weights, float)] * len(labels)

    def _own_profiles(self) -> list[dict[str, Any]]:
        """The profiles of the groups by the columns that were fitted; empty if they are not known."""
        own = getattr(self, "profiles_", None)
        if own is not None:
            return [own] if isinstance(own, dict) else list(own)
        return getattr(self, "_profiles", [])

    def _observed(self) -> dict[str, float]:
        """The share of the cells of each column that are observed, as far as it is known."""
        account = getattr(getattr(self, "schema_", None), "account", None)
        if account is None or account.n_rows == 0:
            return {}
        return {column.column: 1.0 - column.n_missing / account.n_rows for column in account.columns}

    def _column_of(self, name: str) -> ColumnSchema:
        """The schema of a column of the profiles."""
        return self.schema_.column(name)  # type: ignore[attr-defined, no-any-return]

    def _read_described(self, X: Any, n_rows: int) -> Table:
        """The table that describes the rows, read as the training table if it has its columns."""
        table = read_table(X)
        schema = getattr(self, "schema_", None)
        if schema is not None and not self._describes_members and table.schema.names == schema.names:
            table = read_table(X, schema=schema)
        if table.n_rows != n_rows:
            raise ValueError(
                f"X has {table.n_rows} rows and the model was fitted to {n_rows}: give the same rows"
            )
        return table

    def _keep_profiles(self, table: Table) -> None:
        """Keep the profiles of the groups by the table that was fitted, of models that have none of their own."""
        if "profiles_" in vars(self):
            return
        labels = getattr(self, "view_labels_", getattr(self, "labels_", None))
        sampled = vars(self).get("_sampled_rows")  # of a model that was fitted to a sample
        if labels is not None and sampled is not None:
            labels = np.asarray(labels)[sampled]
        if labels is None or len(labels) != table.n_rows or table.n_rows * len(table.columns) > MAX_CELLS:
            return
        views = list(np.asarray(labels).reshape(table.n_rows, -1).T)
        n_groups = [int(z.max(initial=-1)) + 1 for z in views]
        entries = sum(max(table.schema.column(column.name).n_levels, 4) for column in table.columns)
        if entries * sum(n_groups) > MAX_ENTRIES:
            return
        self._profiles = [profile_groups(z, table, K) for z, K in zip(views, n_groups, strict=True)]

    def _verdict(self) -> tuple[str, str]:
        """The grade with its reason in one sentence, after what ended the fit early; and the grade."""
        inner = getattr(self, "consensus_", self)
        diagnostics = getattr(self, "diagnostics_", None)
        sentence = getattr(diagnostics, "sentence", "")
        told = first_sentence(sentence) if sentence else getattr(inner, "sentence_", "")
        end = early_end(self)
        if end is not None:
            told = f"{end.message[:1].upper()}{end.message[1:].rstrip('.')}. {told}".rstrip()
        return told, getattr(diagnostics, "grade", "")

    # ---- notebooks -------------------------------------------------------------------------------------------------

    def _answer_html(self) -> str:
        """The answer as HTML; empty before a fit."""
        try:
            check_is_fitted(self)
        except NotFittedError:
            return ""
        return str(self.summary_._repr_html_())

    def _repr_html_inner(self) -> str:
        return self._answer_html() + str(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        output: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in output:
            output["text/html"] = self._answer_html() + output["text/html"]
        return output


def profiles_as_plain(profiles: list[dict[str, dict[str, np.ndarray]]]) -> list[list[dict[str, Any]]]:
    """Profiles for a file, without the levels, which are in the schema."""
    return [
        [
            {"column": name, **{key: one[key] for key in PROFILE_ENTRIES if key in one}}
            for name, one in view.items()
        ]
        for view in profiles
    ]


def profiles_from_plain(saved: Any, column_of: Any) -> list[dict[str, dict[str, Any]]]:
    """The inverse of :func:`profiles_as_plain`; refuses columns and levels that the schema does not have."""
    out = []
    for view in saved:
        profiles: dict[str, dict[str, Any]] = {}
        for entry in view:
            one = {key: entry[key] for key in PROFILE_ENTRIES if key in entry}
            column = column_of(entry["column"])
            if "probabilities" in one:
                if one["probabilities"].shape[1] < len(column.levels):
                    raise ValueError(f"the profile of {column.name!r} does not have its levels")
                one["levels"] = np.array(column.levels, dtype=object)
            profiles[column.name] = one
        out.append(profiles)
    return out


def _stacked(parts: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """The tables of several views below each other, with a column of the view."""
    n_lines = [len(part["column"]) for part in parts]
    out: dict[str, list[Any]] = {"view": [v + 1 for v, n in enumerate(n_lines) for _ in range(n)]}
    for name in dict.fromkeys(name for part in parts for name in part):
        out[name] = [x for part, n in zip(parts, n_lines) for x in part.get(name, [float("nan")] * n)]
    return out
