"""Two clusterings of the same objects side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from partita.metrics import adjusted_rand

__all__ = ["Flow", "flow"]


class Flow(NamedTuple):
    """How many objects are in each pair of groups; the columns are in the order that matches the rows best."""

    row_names: list[str]
    column_names: list[str]
    counts: NDArray[np.int64]  # [row group, column group]
    adjusted_rand: float
    n_left_out: int  # objects that one of the two does not label


def flow(a: ArrayLike, b: ArrayLike) -> Flow:
    """Contingency table of two clusterings with labels of any kind (None, NaN and -1 are not seen).

    Rows are the groups of `a`, the largest first; the columns are put in the order of the best matching.

    Examples
    --------
    >>> found = flow(["u", "u", "v", None], [7, 7, 3, 3])
    >>> found.row_names, found.column_names, found.counts.tolist(), found.n_left_out
    (['u', 'v'], ['7', '3'], [[2, 0], [0, 1]], 1)
    """
    left, seen_left = _codes(a)
    right, seen_right = _codes(b)
    if len(seen_left) != len(seen_right):
        raise ValueError(f"a labels {len(seen_left)} objects and b {len(seen_right)}: give the same objects")
    both = seen_left & seen_right
    if not both.any():
        raise ValueError("no object is labelled by both clusterings: there is nothing to compare")
    row_names, z = np.unique(left[both], return_inverse=True)
    column_names, y = np.unique(right[both], return_inverse=True)
    counts = np.zeros((len(row_names), len(column_names)), np.int64)
    np.add.at(counts, (z, y), 1)
    rows = np.argsort(-counts.sum(axis=1), kind="stable")
    columns = _matched_order(counts[rows])
    return Flow(
        [str(name) for name in row_names[rows]],
        [str(name) for name in column_names[columns]],
        counts[np.ix_(rows, columns)],
        float(adjusted_rand(z, y)) if both.sum() > 1 else float("nan"),
        int((~both).sum()),
    )


def _codes(labels: Any) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """Names of the groups as text, and which objects have one."""
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    seen = np.array(
        [not (v is None or v != v or (not isinstance(v, str) and v == -1)) for v in values], dtype=bool
    )
    return np.array([str(v) for v in values], dtype=str), seen


def _matched_order(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns in the order of the rows they match; the others after them, the largest first."""
    rows, columns = linear_sum_assignment(-counts)
    matched = columns[np.argsort(rows)]
    rest = np.setdiff1d(np.arange(counts.shape[1]), matched)
    return np.concatenate([matched, rest[np.argsort(-counts[:, rest].sum(axis=0), kind="stable")]])
