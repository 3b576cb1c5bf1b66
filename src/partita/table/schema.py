"""The schema of a table: what is needed to read new data in the same way, and to decode codes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from partita.table.account import TableAccount, shorten, text_table
from partita.table.formats import TextFormat
from partita.table.kinds import CODED_KINDS, KINDS
from partita.table.notes import list_names

_FORMAT = 2
_FAMILY_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


@dataclass(frozen=True)
class ColumnSchema:
    """The schema of one column.

    Attributes
    ----------
    name : str
        The column's name ("x0", "x1", ... for arrays).
    kind : {"real", "count", "binary", "categorical", "ordinal", "ignore"}
        How its values are modeled. Dates are real.
    family : {"bool", "int", "float", "str"} or None
        The type of the levels; None for columns without levels.
    levels : tuple
        The distinct values of a binary or categorical column in increasing order, those of an ordinal column from
        low to high; code k means `levels[k]`.
    levels_declared : tuple
        The categories that the container declared (pandas Categorical, polars Enum), including unused ones, in its
        order; empty if it declared none.
    center, scale : float
        Mean and standard deviation of a real column.
    missing_codes : tuple
        Values that are read as missing.
    format : TextFormat or None
        How text is read as numbers, or that the column holds dates, which are days since 1970-01-01.

    Examples
    --------
    >>> ColumnSchema("answer", "categorical", "str", ("no", "yes")).n_levels
    2
    """

    name: str
    kind: str
    family: str | None = None
    levels: tuple[Any, ...] = ()
    levels_declared: tuple[Any, ...] = ()
    center: float = 0.0
    scale: float = 1.0
    missing_codes: tuple[Any, ...] = ()
    format: TextFormat | None = None

    @property
    def declared_kind(self) -> str:
        """The kind that declares this column: "date" for real columns that hold dates."""
        return "date" if self.holds_dates and self.kind == "real" else self.kind

    @property
    def holds_dates(self) -> bool:
        """Whether the values are days since 1970-01-01."""
        return self.format is not None and self.format.holds == "date"

    @property
    def n_levels(self) -> int:
        """The number of levels; a binary column has two even if one of them does not occur."""
        return 2 if self.kind == "binary" else len(self.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain Python objects, which `json.dumps` accepts."""
        return {
            "name": self.name,
            "kind": self.kind,
            "family": self.family,
            "levels": list(self.levels),
            "levels_declared": list(self.levels_declared),
            "center": self.center,
            "scale": self.scale,
            "missing_codes": list(self.missing_codes),
            "format": None if self.format is None else self.format.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> ColumnSchema:
        """Restore from `to_dict`; raise an error for content that `to_dict` cannot have written."""
        try:
            column = cls(
                name=saved["name"],
                kind=saved["kind"],
                family=saved["family"],
                levels=tuple(saved["levels"]),
                levels_declared=tuple(saved["levels_declared"]),
                center=float(saved["center"]),
                scale=float(saved["scale"]),
                missing_codes=tuple(saved["missing_codes"]),
                format=None if saved["format"] is None else TextFormat.from_dict(saved["format"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(
                f"damaged schema: a column cannot be read ({problem!r}); save it again"
            ) from problem
        column._check()
        return column

    def _check(self) -> None:
        fault = None
        if not isinstance(self.name, str) or self.kind not in KINDS or self.kind == "date":
            fault = f"name {self.name!r} or kind {self.kind!r} is not valid"
        elif not (math.isfinite(self.center) and math.isfinite(self.scale) and self.scale > 0):
            fault = f"center {self.center} and scale {self.scale} must be finite, the scale positive"
        elif self.kind in CODED_KINDS:
            expected = _FAMILY_TYPES.get(str(self.family))
            if expected is None or any(type(level) is not expected for level in self.levels):
                fault = f"levels are not all of type {self.family!r}"
            elif len(set(self.levels)) < len(self.levels):
                fault = "levels are not distinct"
            elif self.kind != "ordinal" and any(not a < b for a, b in pairwise(self.levels)):
                fault = "levels are not in increasing order"
            elif not self.levels or (self.kind == "binary" and len(self.levels) > 2):
                fault = f"a {self.kind} column cannot have {len(self.levels)} levels"
        if fault is None and any(type(code) not in (int, float, str) for code in self.missing_codes):
            fault = f"missing_codes {self.missing_codes!r} are not numbers or text"
        if fault is not None:
            raise ValueError(f"damaged schema: column {self.name!r}: {fault}; save it again")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order: all that `predict` needs to read new data.

    Attributes
    ----------
    columns : tuple of ColumnSchema
        All columns, including ignored ones.
    named : bool
        Whether the names came with the data and must match at predict time.
    account : TableAccount or None
        How the table was read: kinds and how they were decided, missing cells, what is unusual about each column.

    Examples
    --------
    >>> from partita.table import read_table
    >>> schema = read_table([["red", 1.5], ["blue", 2.5]]).schema
    >>> schema.kinds
    ('categorical', 'real')
    >>> schema.decode("x0", [1, -1, 0]).tolist()
    ['red', None, 'blue']
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    columns: tuple[ColumnSchema, ...]
    named: bool = False
    account: TableAccount | None = field(default=None, compare=False)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.name: position for position, column in enumerate(self.columns)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all columns; with these as `kinds`, the same data are read in the same way (but for an order of
        levels that was declared: give it again).
        """
        return tuple(column.declared_kind for column in self.columns)

    @property
    def feature_names(self) -> np.ndarray | None:
        """The names as in `feature_names_in_` of scikit-learn; None if the data had no names."""
        return np.array(self.names, dtype=object) if self.named else None

    @property
    def n_features(self) -> int:
        """The number of columns that data must have."""
        return len(self.columns)

    def column(self, name: str | int) -> ColumnSchema:
        """Find a column by its name or position."""
        if isinstance(name, str):
            if name not in self._positions:
                raise ValueError(f"no column {name!r}; the columns are {list_names(self.names)}")
            return self.columns[self._positions[name]]
        if not 0 <= name < len(self.columns):
            raise ValueError(f"no column at position {name}; there are {len(self.columns)} columns")
        return self.columns[name]

    def of_kind(self, kind: str) -> tuple[ColumnSchema, ...]:
        """Return the columns of one kind, in order."""
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; choose from {', '.join(KINDS)}")
        return tuple(column for column in self.columns if column.kind == kind)

    def check_features(self, names: Sequence[str], named: bool, estimator_name: str) -> None:
        """Check that data have the columns of this schema; the messages are those of scikit-learn.

        Names are compared if both sides have names, in any order; otherwise only the number of columns.

        Examples
        --------
        >>> Schema((ColumnSchema("a", "real"),)).check_features(["x0", "x1"], False, "Mixture")
        Traceback (most recent call last):
        ValueError: X has 2 features, but Mixture is expecting 1 features as input.
        """
        expected = self.names
        if named and self.named and set(names) != set(expected):
            message = "The feature names should match those that were passed during fit.\n"
            unexpected, absent = sorted(set(names) - set(expected)), sorted(set(expected) - set(names))
            if unexpected:
                message += "Feature names unseen at fit time:\n" + _bullets(unexpected)
            if absent:
                message += "Feature names seen at fit time, yet now missing:\n" + _bullets(absent)
            raise ValueError(message)
        if len(names) != len(expected):
            raise ValueError(
                f"X has {len(names)} features, but {estimator_name} is expecting {len(expected)} features "
                "as input."
            )

    def positions_in(self, names: Sequence[str], named: bool) -> list[int]:
        """Where data with these names have the columns of this schema: by name if both have names, else in order.

        Examples
        --------
        >>> schema = Schema((ColumnSchema("a", "real"), ColumnSchema("b", "real")), named=True)
        >>> schema.positions_in(["b", "a"], True), schema.positions_in(["x0", "x1"], False)
        ([1, 0], [0, 1])
        """
        if not (named and self.named):
            return list(range(len(self.columns)))
        place = {name: position for position, name in enumerate(names)}
        return [place[name] for name in self.names]

    def decode(self, name: str | int, codes: Any) -> np.ndarray:
        """Decode the codes of a binary, categorical or ordinal column into the user's values.

        Parameters
        ----------
        name : str or int
            The column.
        codes : array-like of int
            Positions among the levels, -1 for missing.

        Returns
        -------
        ndarray of object
            The values, in the shape of `codes`; None for the code -1.
        """
        column = self.column(name)
        if column.kind not in CODED_KINDS:
            raise ValueError(
                f"column {column.name!r} is {column.kind} and has no codes; its values need no decoding"
            )
        positions = np.asarray(codes)
        if positions.dtype.kind not in "iu" and positions.size:
            raise ValueError(f"codes of column {column.name!r} must be integers, got dtype {positions.dtype}")
        if positions.size and not -1 <= int(positions.min()) <= int(positions.max()) < len(column.levels):
            raise ValueError(
                f"codes of column {column.name!r} must lie in -1 .. {len(column.levels) - 1}, "
                f"got {int(positions.min())} .. {int(positions.max())}"
            )
        # None comes last, so that code -1 refers to it
        lookup = np.array([*column.levels, None], dtype=object)
        return lookup[positions.astype(np.intp)]

    def describe(self) -> str:
        """Return a text table of the columns: kinds, how they were decided, missing cells, and what is unusual.

        Examples
        --------
        >>> from partita.table import read_table
        >>> print(read_table([["red", 1.5], ["blue", 2.5]]).schema.describe())
        column  kind         decided by  missing  distinct  most frequent  skewness  details
        x0      categorical  text        0        2         'blue' 50%               2 levels: 'blue', 'red'
        x1      real         numbers     0        2         1.5 50%        0.00      mean 2, standard deviation 0.5; ...
        2 rows.
        """
        details = [_details(column) for column in self.columns]
        if self.account is not None:
            return self.account.describe(details)
        rows = [("column", "kind", "details")]
        for column, detail in zip(self.columns, details, strict=True):
            rows.append((shorten(column.name, 40), column.declared_kind, detail))
        return text_table(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain Python objects, which `json.dumps` accepts."""
        return {
            "format": _FORMAT,
            "named": self.named,
            "columns": [column.to_dict() for column in self.columns],
            "account": None if self.account is None else self.account.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Schema:
        """Restore from `to_dict`; raise an error for content that `to_dict` cannot have written."""
        if not isinstance(saved, Mapping) or saved.get("format") != _FORMAT:
            raise ValueError(
                f"not a schema of format {_FORMAT}; it was written by another version of partita"
            )
        if not isinstance(saved.get("columns"), list) or not isinstance(saved.get("named"), bool):
            raise ValueError("damaged schema: its columns cannot be read; save it again")
        columns = tuple(ColumnSchema.from_dict(column) for column in saved["columns"])
        account = None if saved.get("account") is None else TableAccount.from_dict(saved["account"])
        schema = cls(columns, saved["named"], account)
        if len(schema._positions) != len(schema.columns):
            raise ValueError("damaged schema: two columns have the same name; save it again")
        return schema


def _bullets(names: Sequence[str]) -> str:
    return "".join(f"- {name}\n" for name in names[:5]) + ("- ...\n" if len(names) > 5 else "")


def _details(column: ColumnSchema) -> str:
    if column.holds_dates and column.kind == "real":
        day = np.datetime64(round(column.center), "D")
        return f"mean {day}, standard deviation {column.scale:.6g} days"
    if column.kind == "real":
        return f"mean {column.center:.6g}, standard deviation {column.scale:.6g}"
    if column.kind in CODED_KINDS:
        texts = [f"{level:g}" if isinstance(level, float) else repr(level) for level in column.levels[:5]]
        shown = [text if len(text) <= 20 else text[:17] + "..." for text in texts]
        between = " < " if column.kind == "ordinal" else ", "
        more = f"{between}..." if len(column.levels) > 5 else ""
        return f"{len(column.levels)} levels: {between.join(shown)}{more}"
    return ""
