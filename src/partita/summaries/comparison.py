"""Comparison of two clusterings of the same objects, and of clusters with known groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from partita.metrics import adjusted_rand, normalized_mutual_info


class Flow(NamedTuple):
    """Number of objects per pair of groups; the columns are in the order that matches the rows best."""

    row_names: list[str]
    column_names: list[str]
    counts: NDArray[np.int64]  # [row group, column group]
    adjusted_rand: float
    n_left_out: int  # objects without a label in one of the two


def flow(a: ArrayLike, b: ArrayLike) -> Flow:
    """Contingency table of two clusterings with labels of any kind (None, NaN and -1 are missing).

    The rows are the groups of `a`, the largest first. The columns are the groups of `b`, in the order of the best
    matching.

    Examples
    --------
    >>> found = flow(["u", "u", "v", None], [7, 7, 3, 3])
    >>> found.row_names, found.column_names, found.counts.tolist(), found.n_left_out
    (['u', 'v'], ['7', '3'], [[2, 0], [0, 1]], 1)
    """
    left, seen_left = _codes(a)
    right, seen_right = _codes(b)
    if len(seen_left) != len(seen_right):
        raise ValueError(
            f"a has {len(seen_left)} labels and b {len(seen_right)}: give labels of the same objects"
        )
    both = seen_left & seen_right
    if not both.any():
        raise ValueError("no object has a label in both clusterings: there is nothing to compare")
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
    """Columns in the order of the rows that they match, then the others, the largest first."""
    rows, columns = linear_sum_assignment(-counts)
    matched = columns[np.argsort(rows)]
    rest = np.setdiff1d(np.arange(counts.shape[1]), matched)
    return np.concatenate([matched, rest[np.argsort(-counts[:, rest].sum(axis=0), kind="stable")]])


class Agreement(NamedTuple):
    """Contingency table of known groups and clusters, and how far they agree."""

    names: list[str]
    table: NDArray[np.int64]  # [known group, cluster]
    adjusted_rand: float
    normalized_mutual_info: float


def compare_with_truth(model: Any, truth: Any) -> Agreement:
    """Compare the clusters with known groups; objects without a known group and outliers are left out."""
    labels = np.asarray(model.labels_)
    known = np.asarray(truth, dtype=object)
    if known.shape != (len(labels),):
        raise ValueError(f"truth has shape {known.shape}: give one group per row, {len(labels)} in all")
    seen = np.array([value is not None and value == value for value in known])  # NaN is not itself
    seen &= labels >= 0
    names, codes = np.unique([str(value) for value in known[seen]], return_inverse=True)
    K = max(len(getattr(model, "weights_", ())), int(labels.max(initial=-1)) + 1)
    table = np.zeros((len(names), K), np.int64)
    np.add.at(table, (codes, labels[seen]), 1)
    return Agreement(
        list(names),
        table,
        float(adjusted_rand(codes, labels[seen])),
        float(normalized_mutual_info(codes, labels[seen])),
    )
