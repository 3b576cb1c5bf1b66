"""What is learned of the columns of an array on a device, there: ranges, levels, means and deviations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.execution.device import device_of, in_chunks, namespace, to_device, to_host, widest
from partita.execution.weights import are_ones
from partita.table.scaling import Moments, center_of

FIRST_ROWS = 1 << 16  # that show the levels of a column of codes, in most tables


class RealColumn(NamedTuple):
    """Center and scale of a column, and whether any of its cells is missing."""

    center: float
    scale: float
    has_holes: bool


def learn_ranges(X: Any) -> np.ndarray | None:
    """The smallest and the largest value [2, column] of an array of whole numbers; None of other arrays."""
    if "int" not in str(X.dtype):
        return None
    xp = namespace(X)
    ends = [to_host(function(X, axis=0)).astype(np.int64) for function in (xp.min, xp.max)]
    return np.stack(ends)


def learn_levels(X: Any, j: int, ends: np.ndarray | None) -> np.ndarray:
    """The distinct values of a column in ascending order, without NaN.

    Where the first rows have all whole numbers between the ends of the column, no column is sorted.
    """
    xp = namespace(X)
    if ends is not None:
        first = to_host(xp.unique_values(X[: min(FIRST_ROWS, int(X.shape[0])), j]))
        if len(first) == ends[1] - ends[0] + 1:
            return np.sort(first)
    found = to_host(xp.unique_values(X[:, j]))
    return np.sort(found[~np.isnan(found)] if found.dtype.kind == "f" else found)


def learn_reals(X: Any, columns: Sequence[int], weights: np.ndarray) -> list[RealColumn]:
    """Centers and scales as those of a table in memory, with sums in the best precision of the device.

    Values are scaled by an exact power of two to about 1, so that squares neither overflow nor underflow.
    """
    xp, kind = namespace(X), widest(X)
    unit = are_ones(weights)

    def chunk(lo: int, hi: int) -> tuple[Any, Any, Any]:
        """Values and their weights, both 0 where a cell does not count, and whether it is observed."""
        values = xp.astype(_columns_of(X, columns, lo, hi), kind)
        seen = ~xp.isnan(values)
        w = xp.astype(seen, kind)
        if not unit:
            w = w * to_device(weights[lo:hi, None], X, kind)
        return xp.where(w > 0, values, xp.zeros_like(values)), w, seen

    n_rows, width = int(X.shape[0]), 40 * len(columns)
    refuse_infinite(X, columns)
    infinity = xp.asarray(xp.inf, dtype=kind, device=device_of(X))

    def extent(lo: int, hi: int) -> Any:
        values, w, seen = chunk(lo, hi)
        low, high = (xp.where(w > 0, values, end) for end in (infinity, -infinity))
        whole = xp.astype(xp.all(seen, axis=0), kind)
        return xp.stack([xp.min(low, axis=0), xp.max(high, axis=0), xp.sum(w, axis=0), whole])

    parts = np.stack([to_host(part) for _, _, part in in_chunks(extent, n_rows, width)]).astype(float)
    low, high, total = parts[:, 0].min(axis=0), parts[:, 1].max(axis=0), parts[:, 2].sum(axis=0)
    largest = np.where(total > 0, np.maximum(np.abs(low), np.abs(high)), 1.0)
    exponents = np.frexp(largest)[1]
    halves = [
        to_device(np.ldexp(1.0, -e)[None, :], X, kind) for e in (exponents // 2, exponents - exponents // 2)
    ]

    def sums(power: int, centers: Any) -> np.ndarray:
        def one(lo: int, hi: int) -> Any:
            values, w, _ = chunk(lo, hi)
            gaps = values * halves[0] * halves[1] - centers
            return xp.stack([xp.sum(w * gaps, axis=0), xp.sum(w * gaps * gaps, axis=0)][:power])

        return np.sum([to_host(part) for _, _, part in in_chunks(one, n_rows, width)], axis=0).astype(float)

    observed = np.maximum(total, np.finfo(float).tiny)
    mean = sums(1, to_device(np.zeros((1, len(columns))), X, kind))[0] / observed
    first, second = sums(2, to_device(mean[None, :], X, kind))
    drift = first / observed
    squares = np.maximum(second - total * drift * drift, 0.0)
    found = []
    for d, whole in enumerate(parts[:, 3].min(axis=0) > 0):
        about = Moments(
            float(total[d]), mean[d], drift[d], squares[d], int(exponents[d]), float(low[d]), float(high[d])
        )
        found.append(RealColumn(*center_of(about), not whole))
    return found


def learn_totals(X: Any, columns: Sequence[int], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """The weighted sum and the weight of the observed cells of each column, and whether any cell is missing."""
    xp, kind = namespace(X), widest(X)
    unit = are_ones(weights)

    def one(lo: int, hi: int) -> Any:
        values = xp.astype(_columns_of(X, columns, lo, hi), kind)
        seen = ~xp.isnan(values)
        w = xp.astype(seen, kind)
        whole = xp.astype(xp.all(seen, axis=0), kind)
        if not unit:
            w = w * to_device(weights[lo:hi, None], X, kind)
        amounts = xp.where(seen, values, xp.zeros_like(values)) * w
        return xp.stack([xp.sum(amounts, axis=0), xp.sum(w, axis=0), whole])

    parts = [part for _, _, part in in_chunks(one, int(X.shape[0]), 40 * len(columns))]
    found = to_host(xp.stack(parts)).astype(float)
    return found[:, 0].sum(axis=0), found[:, 1].sum(axis=0), not found[:, 2].all()


def first_cell(
    X: Any, columns: Sequence[int], is_wrong: Callable[[Any, Any], Any]
) -> tuple[int, int, float] | None:
    """The first of these columns that has a wrong cell, its first such row and the value there.

    ``is_wrong(namespace, values)`` says it of each cell [row, column]. Whether there is any takes one transfer.
    """
    xp, n_rows, width = namespace(X), int(X.shape[0]), 24 * len(columns)

    def wrong(lo: int, hi: int) -> Any:
        return is_wrong(xp, _columns_of(X, columns, lo, hi))

    parts = [part for _, _, part in in_chunks(lambda lo, hi: xp.any(wrong(lo, hi), axis=0), n_rows, width)]
    hit = to_host(xp.any(xp.stack(parts), axis=0))
    if not hit.any():
        return None
    j = columns[int(np.argmax(hit))]
    for lo, _, cells in in_chunks(lambda lo, hi: is_wrong(xp, X[lo:hi, j][:, None])[:, 0], n_rows, width):
        if bool(xp.any(cells)):
            row = lo + int(xp.argmax(xp.astype(cells, xp.uint8)))
            return j, row, float(X[row, j])
    raise AssertionError("a wrong cell was seen in one pass and not in the next")


def _columns_of(X: Any, columns: Sequence[int], lo: int, hi: int) -> Any:
    rows = X[lo:hi, ...]
    if list(columns) == list(range(X.shape[1])):
        return rows
    xp = namespace(X)
    return xp.take(rows, to_device(np.array(columns), X, xp.int64), axis=1)


def refuse_infinite(X: Any, columns: Sequence[int]) -> None:
    """Name the first infinite cell."""
    if "float" not in str(X.dtype) or not len(columns):
        return
    found = first_cell(X, columns, lambda xp, values: xp.isinf(values))
    if found is not None:
        j, row, _ = found
        raise ValueError(f"column 'x{j}', row {row} is infinite: correct the value, or make it NaN (missing)")


def refuse_no_counts(X: Any, columns: Sequence[int]) -> None:
    """Name the first cell that is observed and not 0, 1, 2, ..."""
    if not len(columns) or "uint" in str(X.dtype) or "bool" in str(X.dtype):
        return
    floats = "float" in str(X.dtype)
    refuse_infinite(X, columns)

    def is_wrong(xp: Any, values: Any) -> Any:
        wrong = values < 0
        return wrong | ((values != xp.floor(values)) & ~xp.isnan(values)) if floats else wrong

    found = first_cell(X, columns, is_wrong)
    if found is not None:
        j, row, value = found
        fault = "negative" if value < 0 else "not an integer"
        raise ValueError(
            f"column 'x{j}', row {row} (rows count from 0): {value:g} is {fault} but the column is 'count'; counts are "
            "integers from 0 on; declare the column 'real' if it is a measurement"
        )


def refuse_no_durations(X: Any, columns: Sequence[int]) -> None:
    """Name the first cell that is not above zero."""
    found = first_cell(X, columns, lambda xp, values: values <= 0)
    if found is not None:
        j, row, value = found
        raise ValueError(
            f"column 'x{j}', row {row}: {value:g} is not positive; mark it as missing or remove the row"
        )


def refuse_holes(X: Any, columns: Sequence[int]) -> None:
    """Name the first missing cell of columns that are read as vectors."""
    if "float" not in str(X.dtype):
        return
    found = first_cell(X, columns, lambda xp, values: xp.isnan(values))
    if found is not None:
        j, row, _ = found
        raise ValueError(
            f"column 'x{j}', row {row} is missing, and vectors with missing cells are completed on the host only: "
            "move the table to the host, or choose a family of single columns (family='gaussian', family='poisson')"
        )
