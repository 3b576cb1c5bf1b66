"""Blocks of a relation: clusters of rows by clusters of columns, with one value per block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class BlockMap(NamedTuple):
    """One value per block: what the model predicts for its cells, or their mean."""

    row_sizes: NDArray[np.int64]
    column_sizes: NDArray[np.int64]
    values: NDArray[np.float64]  # [row cluster, column cluster]; NaN for blocks without an observed cell
    meaning: str


def block_map(model: Any, X: Any = None) -> BlockMap | None:
    """Blocks of a fitted model; None if it does not cluster columns, or if the values of its blocks are unknown.

    The values are ``block_values_`` (of the first relation; of the last level of a categorical one). Without
    ``block_values_`` they are the means of the cells of X.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(row_labels_=np.array([0, 0, 1]), column_labels_=np.array([0, 1]))
    >>> block_map(model, [[1, 0], [1, 1], [0, 1]]).values
    array([[1. , 0.5],
           [0. , 1. ]])
    """
    rows, columns = getattr(model, "row_labels_", None), getattr(model, "column_labels_", None)
    if rows is None or columns is None:
        return None
    rows, columns = np.asarray(rows), np.asarray(columns)
    row_sizes, column_sizes = np.bincount(rows[rows >= 0]), np.bincount(columns[columns >= 0])
    predicted = _predicted(model, len(row_sizes), len(column_sizes))
    if predicted is not None:
        return BlockMap(row_sizes, column_sizes, *predicted)
    cells = _cells(X, (len(rows), len(columns)))
    if cells is None:
        return None
    R = np.eye(len(row_sizes))[rows] * (rows >= 0)[:, None]
    C = np.eye(len(column_sizes))[columns] * (columns >= 0)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (R.T @ np.nan_to_num(cells) @ C) / (R.T @ ~np.isnan(cells) @ C)
    return BlockMap(row_sizes, column_sizes, means, "mean of the cells")


def _predicted(model: Any, K: int, J: int) -> tuple[NDArray[np.float64], str] | None:
    found = getattr(model, "block_values_", None)
    if found is None:
        return None
    first = np.asarray(found[0] if isinstance(found, (list, tuple)) or np.ndim(found) == 4 else found, float)
    if first.shape == (K, J):
        return first, "expected value of a cell"
    if first.shape[:2] != (K, J):
        return None
    levels = getattr(model, "levels_", None) or [()]
    if first.shape[2] > 1 and len(levels[0]) == first.shape[2]:
        return first[:, :, -1], f"probability of {levels[0][-1]!r}"
    return first[:, :, -1], "expected value of a cell"


def _cells(X: Any, shape: tuple[int, int]) -> NDArray[np.float64] | None:
    if X is None:
        return None
    try:
        cells = np.asarray(X, dtype=float)
    except (TypeError, ValueError):  # cells that are not numbers have no mean
        return None
    return cells if cells.shape == shape else None
