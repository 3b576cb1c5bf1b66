"""Summaries of the columns of a chunk of rows, and the schema of the whole table from them.

The summary of a column holds the values that determine its kind and levels: all distinct values if they are few,
otherwise the smallest, the largest, and values that are typical of measurements. The rules of
:mod:`partita.table.kinds` and :mod:`partita.table.columns` are then applied to these values, so that a table in chunks
and the same table in memory have the same schema.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita.table.cells import RawColumn, common_number_type
from partita.table.codes import CodesLike, resolve_codes
from partita.table.columns import Policy
from partita.table.kinds import CODED_KINDS, KindsLike, resolve_kinds
from partita.table.levels import distinct_values
from partita.table.notes import Findings
from partita.table.reading import learn_schema
from partita.table.scales import MAX_COMPARED_COLUMNS, PAIR_DISTANCES
from partita.table.scaling import Moments, center_of, merge_moments, moments
from partita.table.schema import Schema
from partita.table.sources import ArraySource, open_source
from partita.table.suspicion import NO_EVIDENCE, CodeEvidence, code_evidence, merge_evidence

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
    marks: tuple[int, int, int] = (0, 0, 0)  # as in `count_marks`
    spread: tuple[float, float] = (0.0, 0.0)  # mean and variance
    evidence: CodeEvidence = NO_EVIDENCE
    ends: tuple[float, float] | None = None  # first and last value, if every value is above the one before it
    counts: dict[str, int] | None = None  # of texts
    weights: dict[str, float] | None = None  # total weights of texts
    joint: Mapping[int, np.ndarray] = field(
        default_factory=dict
    )  # as in `joint_counts`, with following columns

    @property
    def n_missing(self) -> int:
        return self.n_absent

    @property
    def is_part(self) -> bool:
        return self.many

    def n_observed(self, active: np.ndarray | None = None) -> int:
        return self.n_seen

    def count_marks(self, active: np.ndarray | None = None) -> tuple[int, int, int]:
        return self.marks

    def joint_counts(
        self, other: RawColumn, distance: int, active: np.ndarray | None = None
    ) -> np.ndarray | None:
        return self.joint.get(distance)

    def mean_and_variance(self, active: np.ndarray | None = None) -> tuple[float, float]:
        return self.spread

    def center_and_scale(self, values: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
        return super().center_and_scale(values, weights) if self.moments is None else center_of(self.moments)

    def code_evidence(self, active: np.ndarray | None = None) -> CodeEvidence:
        return self.evidence

    def value_counts(self, active: np.ndarray | None = None) -> dict[Any, int]:
        return super().value_counts(active) if self.counts is None else self.counts

    def rises(self) -> bool:
        return self.ends is not None and self.n_seen > 1

    def never_falls(self) -> bool:
        """Whether every value is above the one before it; ties are not known."""
        return self.rises()

    def statistics(self, rows: slice) -> dict[str, Any]:
        """Return nothing: a summary does not say how often each value occurs."""
        return {}

    def without(self, codes: Collection[Any]) -> tuple[RawColumn, int]:
        """Return the column itself: codes were removed before the summary was made."""
        return self, self.n_code

    def recoded(self, values_of: Mapping[str, Any], family: str, **changes: Any) -> RawColumn:
        """Replace texts by numbers, or remove the missing ones, as for the whole column."""
        assert self.counts is not None and self.weights is not None
        values = {text: values_of.get(text, text) for text in self.counts}
        kept = [text for text, value in values.items() if value is not None]
        n_seen = sum(self.counts[text] for text in kept)
        n_absent = self.n_absent + self.n_seen - n_seen
        if family == "str":
            counts = {text: self.counts[text] for text in kept}
            weights = {text: self.weights[text] for text in kept}
            distinct = _with_repeat(np.array(sorted(kept), dtype=object), n_seen)
            return replace(
                self,
                values=distinct,
                n_seen=n_seen,
                n_absent=n_absent,
                counts=counts,
                weights=weights,
                **changes,
            )
        numbers = np.array([values[text] for text in kept], dtype=np.float64)
        times = np.array([self.counts[text] for text in kept])
        shares = np.array([self.weights[text] for text in kept])
        cells = np.repeat(numbers, times)
        return replace(
            self, values=_with_repeat(np.unique(numbers), n_seen), family=family, n_seen=n_seen, n_absent=n_absent,
            moments=moments(numbers, shares), evidence=code_evidence(cells),
            marks=RawColumn(self.name, cells, None, "float").count_marks() if n_seen else (0, 0, 0), **changes,
        )  # fmt: skip


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
    container: Any, kinds: KindsLike, weights: np.ndarray | None = None, missing_codes: CodesLike = None
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
    missing_codes : as in ``read_table``
        Values that mean missing.

    Examples
    --------
    >>> chunk = summarize(np.array([[1.5, 2.0], [np.nan, 2.0]]), None)
    >>> [(column.n_seen, column.n_missing) for column in chunk.columns]
    [(1, 1), (2, 0)]
    """
    source = open_source(container)
    declared = resolve_kinds(kinds, source.names, source.labels)
    codes = resolve_codes(missing_codes, source.names, source.labels)
    active = None if weights is None or weights.all() else weights > 0
    empty = np.ones(source.n_rows, bool)
    columns: list[ColumnSummary | None] = []
    inferred: dict[int, RawColumn] = {}  # columns before this one whose kinds are not declared
    for position, kind in enumerate(declared):
        if kind == "ignore":
            columns.append(None)
            continue
        raw, n_code = source.column(position).without(codes[position])
        empty &= False if raw.missing is None else raw.missing
        columns.append(_summarize_column(raw, kind, active, weights, n_code))
        if kind is None and position < MAX_COMPARED_COLUMNS:
            _compare_with_next(columns, inferred, raw, position, active)
    dtype = source._data.dtype.kind if isinstance(source, ArraySource) else None
    return TableSummary(
        source.n_rows, source.names, source.labels, source.named, dtype, columns,
        int(np.count_nonzero(empty)), int(np.argmax(empty)),
    )  # fmt: skip


def _compare_with_next(
    columns: list[ColumnSummary | None],
    inferred: dict[int, RawColumn],
    raw: RawColumn,
    position: int,
    active: np.ndarray | None,
) -> None:
    """Add the joint counts with this column to the summaries of the columns before it."""
    for distance in PAIR_DISTANCES:
        before = inferred.get(position - distance)
        summary = columns[position - distance] if before is not None else None
        counts = None if before is None else before.joint_counts(raw, distance, active)
        if summary is not None and counts is not None:
            columns[position - distance] = replace(summary, joint={**summary.joint, distance: counts})
    inferred.pop(position - max(PAIR_DISTANCES), None)
    inferred[position] = raw


def _summarize_column(
    raw: RawColumn,
    kind: str | None,
    active: np.ndarray | None,
    weights: np.ndarray | None,
    n_code: int,
) -> ColumnSummary:
    seen = raw.observed(active)
    if raw.family in ("int", "float") and kind in (None, "real", "date"):
        about = moments(raw.as_floats(), weights)
    else:
        about = None
    many = False
    measured = kind == "real" or (kind is None and raw.family == "float" and not raw.is_integral(active))
    if measured and raw.family != "str":
        values, many = _characteristic(seen), True
    else:
        values = _as_array(distinct_values(seen), seen.dtype)
        if len(values) > MAX_VALUES and kind not in CODED_KINDS and raw.family != "str":
            values, many = np.concatenate([values[:MAX_VALUES], _characteristic(seen)]), True
    summary = ColumnSummary(
        raw.name, values, None, raw.family, raw.labeled, raw.declared, raw.ordered, raw.format,
        n_absent=raw.n_missing, n_code=n_code, n_seen=len(seen), many=many, moments=about,
        evidence=raw.code_evidence(active),
    )  # fmt: skip
    if raw.family == "str":
        counts = raw.value_counts(active)
        return replace(summary, counts=counts, weights=_text_weights(raw, active, weights, counts))
    if len(seen) and raw.family in ("int", "float"):
        one_or_rising = raw.missing is None and (len(seen) == 1 or raw.rises())
        ends = (float(raw.values[0]), float(raw.values[-1])) if one_or_rising else None
        spread = raw.mean_and_variance(active)
        return replace(summary, marks=raw.count_marks(active), spread=spread, ends=ends)
    return summary


def _text_weights(
    raw: RawColumn, active: np.ndarray | None, weights: np.ndarray | None, counts: dict[str, int]
) -> dict[str, float]:
    """Return the total weight of each text."""
    if weights is None:
        return {text: float(count) for text, count in counts.items()}
    keep = np.ones(len(raw.values), bool) if raw.missing is None else ~raw.missing
    totals = dict.fromkeys(counts, 0.0)
    for text, weight in zip(raw.values[keep].tolist(), weights[keep].tolist(), strict=True):
        if weight > 0.0:
            totals[text] += weight
    return totals


def _characteristic(seen: np.ndarray) -> np.ndarray:
    """Return the smallest and the largest value, and if present one between them, a zero and one that is no integer."""
    if len(seen) == 0:
        return seen[:0]
    low, high = seen.min(), seen.max()
    values = [seen[:11], [low, high], seen[(seen > low) & (seen < high)][:1], seen[seen == 0][:1]]
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
    return learn_schema(source, kinds, np.ones(1), policy, findings)[0]


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
    if many and len(distinct):  # some value occurs twice: not an identifier
        distinct = np.concatenate([distinct, distinct[:1]])
    else:
        distinct = _with_repeat(distinct, n_seen)
    summed = [part.moments for part in there if part.moments is not None]
    return ColumnSummary(
        there[0].name, distinct, None, family, any(part.labeled for part in there),
        max((part.declared for part in there), key=len), any(part.ordered for part in there),
        next((part.format for part in voters if part.format is not None), None),
        n_absent=sum(part.n_absent for part in there), n_code=sum(part.n_code for part in there), n_seen=n_seen,
        many=many, moments=merge_moments(summed) if summed else None,
        marks=_merge_marks(voters), spread=_merge_spreads(voters),
        evidence=merge_evidence([part.evidence for part in voters]),
        ends=_merge_ends(there),
        counts=_summed([part.counts for part in voters]) if family == "str" else None,
        weights=_summed([part.weights for part in voters]) if family == "str" else None,
        joint=_summed([part.joint for part in voters]),
    )  # fmt: skip


def _with_repeat(distinct: np.ndarray, n_seen: int) -> np.ndarray:
    """Repeat one of the distinct values if some value occurs twice, so that they do not look like an identifier."""
    return np.concatenate([distinct, distinct[:1]]) if n_seen > len(distinct) > 0 else distinct


def _merge_marks(parts: Sequence[ColumnSummary]) -> tuple[int, int, int]:
    if any(part.family == "str" or not len(part.values) for part in parts):
        return 0, 0, 0
    highest = [part.values.max() for part in parts]
    n_high = sum(part.marks[2] for part, high in zip(parts, highest, strict=True) if high == max(highest))
    return sum(part.marks[0] for part in parts), sum(part.marks[1] for part in parts), n_high


def _merge_spreads(parts: Sequence[ColumnSummary]) -> tuple[float, float]:
    n = sum(part.n_seen for part in parts)
    if n == 0:
        return 0.0, 0.0
    mean = sum(part.n_seen * part.spread[0] for part in parts) / n
    return mean, sum(part.n_seen * (part.spread[1] + (part.spread[0] - mean) ** 2) for part in parts) / n


def _merge_ends(parts: Sequence[ColumnSummary]) -> tuple[float, float] | None:
    spans = [part.ends for part in parts]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans) or any(a[1] >= b[0] for a, b in pairwise(known)):
        return None
    return known[0][0], known[-1][1]


def _summed(parts: Sequence[Mapping[Any, Any] | None]) -> dict[Any, Any]:
    totals: dict[Any, Any] = {}
    for part in parts:
        for text, count in (part or {}).items():
            totals[text] = totals.get(text, 0) + count
    return totals


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
