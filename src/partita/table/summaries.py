"""Summaries of the columns of a chunk of rows, and the schema of the whole table from them.

The summary of a column holds the values that determine its kind and levels: all distinct values if they are few,
otherwise the smallest, the largest, and values that are typical of measurements. The rules of
:mod:`partita.table.kinds` and :mod:`partita.table.columns` are then applied to these values, so that a table in chunks
and the same table in memory have the same schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from partita.table.cells import RawColumn, common_number_type
from partita.table.columns import Policy
from partita.table.kinds import CODED_KINDS, KindsLike, resolve_kinds
from partita.table.levels import distinct_values
from partita.table.notes import Findings
from partita.table.reading import learn_schema
from partita.table.scaling import Moments, center_of, merge_moments, moments
from partita.table.schema import Schema
from partita.table.sources import ArraySource, open_source

MAX_VALUES = 1 << 17  # distinct values of a column in a summary
ROW = re.compile(r"row (\d+)")


@dataclass(frozen=True, eq=False)
class ColumnSummary(RawColumn):
    """Characteristic values of a column, and the numbers of missing cells, missing codes and observed cells."""

    n_absent: int = 0
    n_code: int = 0
    n_seen: int = 0
    many: bool = False  # whether the column has more distinct values than these
    moments: Moments | None = None

    @property
    def n_missing(self) -> int:
        return self.n_absent

    def without_code(self, code: int) -> tuple[RawColumn, int]:
        """Return the column itself: the code was removed before the summary was made."""
        return self, self.n_code


class TableSummary(NamedTuple):
    """The summary of one chunk: the names of its columns, and a summary per column (None: ignored)."""

    n_rows: int
    names: list[str]
    labels: Sequence[Any]
    named: bool
    dtype: str | None  # dtype.kind of an array; None for frames, whose columns have their own dtypes
    columns: list[ColumnSummary | None]
    n_empty: int = 0  # rows without observed cells
    first_empty: int = 0


def summarize(
    container: Any, kinds: KindsLike, weights: np.ndarray | None = None, missing_code: int | None = None
) -> TableSummary:
    """Summarize a chunk of rows.

    Parameters
    ----------
    container : array or data frame
        The chunk.
    kinds : as in ``read_table``
        The declared kinds of the columns.
    weights : ndarray, default=None
        Weights of the rows; rows of weight zero are ignored.
    missing_code : int, default=None
        An integer that means missing in columns that are declared categorical, ordinal or binary.

    Examples
    --------
    >>> chunk = summarize(np.array([[1.5, 2.0], [np.nan, 2.0]]), None)
    >>> [(column.n_seen, column.n_missing) for column in chunk.columns]
    [(1, 1), (2, 0)]
    """
    source = open_source(container)
    declared = resolve_kinds(kinds, source.names, source.labels)
    active = None if weights is None or weights.all() else weights > 0
    empty = np.ones(source.n_rows, bool)
    columns: list[ColumnSummary | None] = []
    for position, kind in enumerate(declared):
        if kind == "ignore":
            columns.append(None)
            continue
        raw = source.column(position)
        n_code = 0
        if missing_code is not None and kind in CODED_KINDS and raw.family != "bool":
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
) -> ColumnSummary:
    seen = raw.observed(active)
    if raw.family in ("int", "float") and kind in (None, "real"):
        about = moments(raw.as_floats(), weights)
    else:
        about = None
    many = False
    if kind == "real" or (kind is None and raw.family == "float" and not raw.is_integral(active)):
        values, many = _characteristic(seen), True
    else:
        values = _as_array(distinct_values(seen), seen.dtype)
        if len(values) > MAX_VALUES and kind not in CODED_KINDS:
            values, many = np.concatenate([values[:MAX_VALUES], _characteristic(seen)]), True
    return ColumnSummary(
        raw.name, values, None, raw.family, raw.labeled, raw.declared,
        raw.n_missing, n_code, len(seen), many, about,
    )  # fmt: skip


def _characteristic(seen: np.ndarray) -> np.ndarray:
    """Return the smallest and the largest value, and if present a zero and a value that is not an integer."""
    if len(seen) == 0:
        return seen[:0]
    values = [seen[:11], [seen.min(), seen.max()], seen[seen == 0][:1]]
    if seen.dtype.kind == "f":
        values.append(seen[seen != np.floor(seen)][:1])
    return np.unique(np.concatenate([np.asarray(part, dtype=seen.dtype) for part in values]))


def _as_array(values: list[Any], dtype: np.dtype[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=dtype)
    out[:] = values
    return out


class SummarySource:
    """The merged summaries of a table as a `Source`, in place of its columns."""

    def __init__(self, parts: Sequence[TableSummary], columns: list[ColumnSummary | None]):
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
        return common_number_type(families)


def learn_from_summaries(
    parts: Sequence[TableSummary], kinds: KindsLike, policy: Policy, findings: Findings
) -> Schema:
    """Learn the schema of the whole table from the summaries of its chunks, in the order of the rows.

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


def _merged(parts: Sequence[ColumnSummary | None]) -> ColumnSummary | None:
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
    if (many or n_seen > len(distinct)) and len(distinct):  # some value occurs twice: not an identifier
        distinct = np.concatenate([distinct, distinct[:1]])
    summed = [part.moments for part in there if part.moments is not None]
    return ColumnSummary(
        there[0].name, distinct, None, family,
        any(part.labeled for part in there), max((part.declared for part in there), key=len),
        sum(part.n_absent for part in there), sum(part.n_code for part in there), n_seen, many,
        merge_moments(summed) if summed else None,
    )  # fmt: skip


def _common_family(parts: Sequence[ColumnSummary]) -> str:
    families = {part.family for part in parts}
    if "str" in families and len(families) > 1:
        raise ValueError(
            f"column {parts[0].name!r} holds text in some chunks and numbers in others; convert it to one type"
        )
    return next(family for family in ("str", "float", "int", "bool") if family in families)


def shift_rows(message: str, start: int) -> str:
    """Turn a row number of a chunk into the row number of the table, in a message.

    Examples
    --------
    >>> shift_rows("column 'a', row 3 (rows count from 0): no number", 100)
    "column 'a', row 103 (rows count from 0): no number"
    """
    return ROW.sub(lambda found: f"row {int(found[1]) + start}", message)
