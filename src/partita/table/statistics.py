"""Statistics of columns and rows for the account of a table: frequent values, skewness, duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MAX_ACCOUNT_ROWS = 100_000  # shares, skewness and duplicates of larger tables are those of an even sample


def sampled_rows(n_rows: int) -> slice:
    """Return an even sample of at most `MAX_ACCOUNT_ROWS` rows; all rows of smaller tables."""
    return slice(None, None, max(1, -(-n_rows // MAX_ACCOUNT_ROWS)))


def value_statistics(seen: np.ndarray) -> dict[str, Any]:
    """Return the number of distinct values, the most frequent value with its share, and the skewness.

    Examples
    --------
    >>> value_statistics(np.array([0.0, 0.0, 3.0]))["most_frequent_share"]
    0.6666666666666666
    """
    if len(seen) == 0:
        return {}
    if seen.dtype.kind == "O":
        distinct, counts = np.unique(seen.astype(str), return_counts=True)
    else:
        distinct, counts = np.unique(seen, return_counts=True)
    top = int(np.argmax(counts))
    shown = distinct[top].item()
    text = f"{shown:.6g}" if isinstance(shown, float) else repr(shown)
    found: dict[str, Any] = {
        "n_distinct": len(distinct),
        "most_frequent": text if len(text) <= 20 else text[:17] + "...",
        "most_frequent_share": float(counts[top] / len(seen)),
    }
    if seen.dtype.kind in "iuf":
        found["skewness"] = _skewness(seen)
    return found


def _skewness(seen: np.ndarray) -> float:
    largest = float(np.abs(seen).max()) or 1.0
    scaled = seen / largest
    scaled = scaled - scaled.mean()
    squares = scaled * scaled
    spread = float(np.sqrt(np.mean(squares)))
    if spread < 1e-12:
        return 0.0
    squares *= scaled  # numpy's power of 3 takes ten times as long as this product
    return round(float(np.mean(squares)) / spread**3, 6) + 0.0


def duplicate_columns(values: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return the columns that repeat an earlier one, and which one.

    Examples
    --------
    >>> duplicate_columns(
    ...     {"a": np.array([1.0, np.nan]), "b": np.array([1.0, np.nan]), "c": np.array([1.0, 2.0])}
    ... )
    {'b': 'a'}
    """
    first: dict[tuple[str, bytes], list[str]] = {}
    repeats: dict[str, str] = {}
    for name, column in values.items():
        key = (column.dtype.kind, column[:1000].astype(np.float64).tobytes())
        for other in first.setdefault(key, []):
            if np.array_equal(column, values[other], equal_nan=column.dtype.kind == "f"):
                repeats[name] = other
                break
        else:
            first[key].append(name)
    return repeats


def count_duplicate_rows(columns: Sequence[np.ndarray], rows: slice) -> int | None:
    """Return the number of rows that equal an earlier row, by a hash of 64 bits; None without columns."""
    if not columns:
        return None
    total = np.zeros(len(columns[0][rows]), np.uint64)
    for position, column in enumerate(columns):
        bits = column[rows].astype(np.float64) + 0.0  # -0.0 and 0.0 are equal
        bits[np.isnan(bits)] = np.nan  # one pattern of bits
        total = _mixed(total ^ (bits.view(np.uint64) + np.uint64(position + 1)))
    return len(total) - len(np.unique(total))


def _mixed(words: np.ndarray) -> np.ndarray:
    """Mix the bits of 64-bit words (the finalizer of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
