"""What a block of rows says of its columns, and how such words add up to the schema of the whole table.

A column is summed up by the values that tell its kind and its levels: all distinct ones where they are few, else the
smallest, the largest and those that betray a measurement. The rules of :mod:`partita.table.kinds` and
:mod:`partita.table.columns` are then applied to these values alone, so that a table in blocks and the same table in
memory have one schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from partita.table.cells import RawColumn
from partita.table.columns import Policy
from partita.table.kinds import KindsLike, resolve_kinds
from partita.table.levels import distinct_values
from partita.table.notes import Findings
from partita.table.reading import learn_schema
from partita.table.scaling import Moments, center_of, merge_moments, moments
from partita.table.schema import Schema
from partita.table.sources import ArraySource, open_source

MOST_VALUES = 1 << 17  # distinct values of a column that a summary holds
ROW = re.compile(r"row (\d+)")


@dataclass(frozen=True, eq=False)
class TellingColumn(RawColumn):
    """Telling values of a column, and how many of its cells are missing, hold the missing code, or were seen."""

    n_absent: int = 0
    n_code: int = 0
    n_seen: int = 0
    many: bool = False  # there are more distinct values than these
    moments: Moments | None = None

    @property
    def n_missing(self) -> int:
        return self.n_absent

    def without_code(self, code: int) -> tuple[RawColumn, int]:
        """The code was taken out before the values were summed up."""
        return self, self.n_code


class TableSummary(NamedTuple):
    """Of one block: how its container names the columns, and each of them (None: ignored)."""

    n_rows: int
    names: list[str]
    labels: Sequence[Any]
    named: bool
    dtype: str | None  # kind of dtype of an array; None for frames, whose columns have their own
    columns: list[TellingColumn | None]
    n_empty: int = 0  # rows without any observed cell
    first_empty: int = 0


def summarize(
    container: Any, kinds: KindsLike, weights: np.ndarray | None = None, missing_code: int | None = None
) -> TableSummary:
    """Sum up a block of rows.

    Parameters
    ----------
    container : array or data frame
        The block.
    kinds : as in ``read_table``
        What the user says of the columns.
    weights : ndarray, optional
        Of the rows; those of weight zero tell nothing.
    missing_code : int, optional
        Integer that means missing in columns that are declared categorical or binary.

    Examples
    --------
    >>> block = summarize(np.array([[1.5, 2.0], [np.nan, 2.0]]), None)
    >>> [(column.n_seen, column.n_missing) for column in block.columns]
    [(1, 1), (2, 0)]
    """
    source = open_source(container)
    declared = resolve_kinds(kinds, source.names, source.labels)
    active = None if weights is None or weights.all() else weights > 0
    empty = np.ones(source.n_rows, bool)
    columns: list[TellingColumn | None] = []
    for position, kind in enumerate(declared):
        if kind == "ignore":
            columns.append(None)
            continue
        raw = source.column(position)
        n_code = 0
        if missing_code is not None and kind in ("categorical", "binary") and raw.family != "bool":
            raw, n_code = raw.without_code(missing_code)
        empty &= False if raw.missing is None else raw.missing
        columns.append(_summarize_column(raw, kind, active, weights, n_code))
    dtype = source._data.dtype.kind if isinstance(source, ArraySource) else None
    return TableSummary(
        source.n_rows, source.names, source.labels, source.named, dtype, columns,
        int(np.count_nonzero(empty)), int(np.argmax(empty)),
    )  # fmt: skip


def _summarize_column(
    raw: RawColumn,
    kind: str | None,
    active: np.ndarray | None,
    weights: np.ndarray | None,
    n_code: int,
) -> TellingColumn:
    seen = raw.observed(active)
    if raw.family in ("int", "float") and kind in (None, "real"):
        about = moments(raw.as_floats(), weights)
    else:
        about = None
    many = False
    if kind == "real" or (kind is None and raw.family == "float" and not raw.is_integral(active)):
        values, many = _telling(seen), True
    else:
        values = _as_array(distinct_values(seen), seen.dtype)
        if len(values) > MOST_VALUES and kind not in ("categorical", "binary"):
            values, many = np.concatenate([values[:MOST_VALUES], _telling(seen)]), True
    return TellingColumn(
        raw.name, values, None, raw.family, raw.labeled, raw.declared,
        raw.n_missing, n_code, len(seen), many, about,
    )  # fmt: skip


def _telling(seen: np.ndarray) -> np.ndarray:
    """The smallest and the largest value, a zero, and one that is no integer, as far as they are there."""
    if len(seen) == 0:
        return seen[:0]
    telling = [seen[:11], [seen.min(), seen.max()], seen[seen == 0][:1]]
    if seen.dtype.kind == "f":
        telling.append(seen[seen != np.floor(seen)][:1])
    return np.unique(np.concatenate([np.asarray(part, dtype=seen.dtype) for part in telling]))


def _as_array(values: list[Any], dtype: np.dtype[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=dtype)
    out[:] = values
    return out


class SummarySource:
    """The telling columns of a whole table, in the place of its columns."""

    def __init__(self, parts: Sequence[TableSummary], columns: list[TellingColumn | None]):
        first = parts[0]
        self.names, self.labels, self.named = first.names, first.labels, first.named
        self.n_rows = sum(part.n_rows for part in parts)
        self._dtypes = {part.dtype for part in parts}
        self._columns = columns

    def column(self, position: int) -> RawColumn:
        column = self._columns[position]
        assert column is not None
        return column

    def uniform_family(self, positions: Sequence[int]) -> str | None:
        if None in self._dtypes:
            return None
        if self._dtypes <= set("biu") or self._dtypes == {"f"}:
            return {"b": "bool", "f": "float"}.get("".join(sorted(str(kind) for kind in self._dtypes)), "int")
        if not self._dtypes <= set("biufO"):
            return None
        families = {self.column(p).family for p in positions if getattr(self.column(p), "n_seen", 0)}
        if families <= {"int", "float"}:
            return "float" if "float" in families or not families else "int"
        return "bool" if families == {"bool"} else None


def learn_from_summaries(
    parts: Sequence[TableSummary], kinds: KindsLike, policy: Policy, findings: Findings
) -> Schema:
    """The schema of the whole table from the summaries of its blocks, in the order of the rows.

    Examples
    --------
    >>> parts = [summarize(np.array([[0], [3]]), None), summarize(np.array([[7], [0]]), None)]
    >>> learn_from_summaries(parts, None, Policy(), Findings()).columns[0].levels
    (0, 3, 7)
    """
    columns = [_merged([part.columns[p] for part in parts]) for p in range(len(parts[0].names))]
    source = SummarySource(parts, columns)
    schema, _ = learn_schema(source, kinds, np.ones(1), policy, findings)
    scaled = []
    for column, about in zip(schema.columns, columns, strict=True):
        if column.kind == "real" and about is not None and about.moments is not None:
            center, scale = center_of(about.moments)
            column = replace(column, center=center, scale=scale)
        scaled.append(column)
    return Schema(tuple(scaled), schema.named)


def _merged(parts: Sequence[TellingColumn | None]) -> TellingColumn | None:
    there = [part for part in parts if part is not None]
    if not there:
        return None
    voters = [part for part in there if part.n_seen] or there[:1]
    family = _common_family(voters)
    values = [part.values for part in voters]
    if family == "str":
        distinct = np.array(sorted({str(value) for part in values for value in part}), dtype=object)
    else:
        distinct = np.unique(np.concatenate(values))
    n_seen = sum(part.n_seen for part in there)
    many = any(part.many for part in there)
    if (many or n_seen > len(distinct)) and len(distinct):  # some value comes twice: no identifier
        distinct = np.concatenate([distinct, distinct[:1]])
    summed = [part.moments for part in there if part.moments is not None]
    return TellingColumn(
        there[0].name, distinct, None, family,
        any(part.labeled for part in there), max((part.declared for part in there), key=len),
        sum(part.n_absent for part in there), sum(part.n_code for part in there), n_seen, many,
        merge_moments(summed) if summed else None,
    )  # fmt: skip


def _common_family(parts: Sequence[TellingColumn]) -> str:
    families = {part.family for part in parts}
    if "str" in families and len(families) > 1:
        raise ValueError(
            f"column {parts[0].name!r} holds text in some blocks and numbers in others; convert it to one type"
        )
    return next(family for family in ("str", "float", "int", "bool") if family in families)


def shift_rows(message: str, start: int) -> str:
    """A message about a row of a block as one about the row of the table.

    Examples
    --------
    >>> shift_rows("column 'a', row 3 (rows count from 0): no number", 100)
    "column 'a', row 103 (rows count from 0): no number"
    """
    return ROW.sub(lambda found: f"row {int(found[1]) + start}", message)
