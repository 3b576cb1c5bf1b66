"""Distinct values of a column, and their codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.table.cells import RawColumn


def code_dtype(n_levels: int) -> np.dtype[Any]:
    """Return the smallest signed integer dtype that holds the codes -1 .. n_levels - 1.

    Examples
    --------
    >>> code_dtype(128), code_dtype(129), code_dtype(40_000)
    (dtype('int8'), dtype('int16'), dtype('int32'))
    """
    for candidate in (np.int8, np.int16, np.int32):
        if n_levels - 1 <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    return np.dtype(np.int64)


def distinct_values(values: np.ndarray) -> list[Any]:
    """List the distinct values in order, as plain Python objects.

    The memory depends on the number of rows and of distinct values, not on the largest value.

    Examples
    --------
    >>> distinct_values(np.array([2**63 - 1, 0, 10**6, 0]))
    [0, 1000000, 9223372036854775807]
    >>> distinct_values(np.array(["b", "a", "b"], dtype=object))
    ['a', 'b']
    """
    kind = values.dtype.kind
    if len(values) == 0:
        return []
    if kind == "O":
        return sorted({str(value) for value in set(values)})
    if kind == "b":
        return [flag for flag in (False, True) if np.any(values == flag)]
    if kind in "iu":
        low, span = int(values.min()), int(values.max()) - int(values.min()) + 1
        if span <= _table_limit(len(values)):
            seen = np.zeros(span, bool)
            seen[_offsets(values, low).view(np.int64)] = True
            return [low + int(step) for step in np.flatnonzero(seen)]
        return np.unique(values).tolist()
    return (np.unique(values) + 0.0).tolist()  # adding zero turns -0.0 into 0.0, whichever came first


def has_more_distinct_than(values: np.ndarray, limit: int) -> bool:
    """Whether a column has more than `limit` distinct values; the first rows are checked first.

    Examples
    --------
    >>> has_more_distinct_than(np.arange(12), 10)
    True
    """
    return len(distinct_values(values[:1000])) > limit or (
        len(values) > 1000 and len(distinct_values(values)) > limit
    )


def encode(raw: RawColumn, levels: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Replace values by their positions in `levels`.

    Parameters
    ----------
    raw : RawColumn
        Text when the levels are text, numbers when they are numbers.
    levels : sequence
        Distinct values in increasing order.

    Returns
    -------
    codes : ndarray of the smallest integer dtype
        -1 for missing cells and for values that are not among the levels.
    unknown : ndarray of bool
        True for observed values that are not among the levels.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> encode(parse_values(np.array([3.0, np.nan, 7.0]), "x"), [3, 4])
    (array([ 0, -1, -1], dtype=int8), array([False, False,  True]))
    """
    dtype = code_dtype(len(levels))
    if raw.n_missing == len(raw.values):  # a column without observed values has no type to compare
        return np.full(len(raw.values), -1, dtype), np.zeros(len(raw.values), bool)
    if raw.family == "str":
        position = {level: code for code, level in enumerate(levels)}
        codes = np.fromiter((position.get(value, -1) for value in raw.values), dtype, len(raw.values))
    else:
        codes = _encode_numbers(raw.values, levels, dtype)
    if raw.missing is not None:
        codes[raw.missing] = -1
    unknown = codes < 0
    if raw.missing is not None:
        unknown &= ~raw.missing
    return codes, unknown


def _encode_numbers(values: np.ndarray, levels: Sequence[Any], dtype: np.dtype[Any]) -> np.ndarray:
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    # The few levels are converted to the dtype of the values, which is cheap. A level that this dtype cannot hold
    # cannot occur among the values.
    kept = [code for code, level in enumerate(levels) if _fits(level, values.dtype)]
    if not kept:
        return np.full(len(values), -1, dtype)
    known = np.array([levels[code] for code in kept], dtype=values.dtype)
    kept_codes = np.array(kept, dtype=dtype)
    low, span = int(known[0]), int(known[-1]) - int(known[0]) + 1
    if values.dtype.kind in "iu" and span <= _table_limit(len(values)):
        table = np.full(span + 1, -1, dtype)  # the last entry is for all values out of range
        table[_offsets(known, low).view(np.int64)] = kept_codes
        offsets = _offsets(values, low)
        np.minimum(offsets, np.uint64(span), out=offsets)
        return table[offsets.view(np.int64)]
    position = np.searchsorted(known, values)
    np.minimum(position, len(known) - 1, out=position)
    codes = kept_codes[position]
    codes[known[position] != values] = -1
    return codes


def _table_limit(n_rows: int) -> int:
    return max(2**16, 2 * n_rows)


def _offsets(values: np.ndarray, low: int) -> np.ndarray:
    # Unsigned arithmetic wraps around: 64-bit integers cannot overflow, and values below `low` become huge, so that
    # one comparison finds all values out of range.
    offsets = values.astype(np.uint64)
    offsets -= np.uint64(low % 2**64)
    return offsets


def _fits(level: Any, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return float(level) == level
    limits = np.iinfo(dtype)
    return int(level) == level and limits.min <= level <= limits.max
