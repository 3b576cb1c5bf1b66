"""Dissimilarities between rows of mixed, incomplete tables (Murphy, section 25.1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from partita.estimator import DataWarning, warn_user
from partita.execution.memory import check_memory
from partita.similarity.comparison import Comparison, Group, coordinates, learn_comparison
from partita.table import Table, read_table

CHUNK_PAIRS = 1 << 22  # pairs per chunk: 32 MB per array
PAIRWISE = {"squared_euclidean": "sqeuclidean", "ordinal": "sqeuclidean", "city_block": "cityblock"}


def dissimilarity(
    X: Any,
    metric: Any = "auto",
    *,
    Y: Any = None,
    weights: Any = None,
    orders: Any = None,
    kinds: Any = None,
    standardize: bool = True,
    condensed: bool = False,
) -> np.ndarray:
    """Dissimilarities of the rows of a table: a weighted sum over its columns.

    Missing cells: a pair is compared in the columns that are observed in both rows, and the sum is scaled to the weight
    of all columns. A pair without a common observed column gets the mean dissimilarity of two random rows, with a
    warning.

    Parameters
    ----------
    X : array, data frame or partita.table.Table
        The rows.
    metric : str or mapping, default="auto"
        One metric for all columns, or a mapping from column names, positions or kinds ("real", "count", "binary",
        "categorical") to metrics; other columns are "auto".

        - "squared_euclidean": the squared difference (25.2); "auto" for real and count columns;
        - "city_block": the absolute difference (25.3);
        - "hamming": 1 where two values differ (25.4); "auto" for binary and categorical columns;
        - "ordinal": levels become 1/L, 2/L, ..., 1 in their order, and are compared by squared difference;
        - "correlation": one minus the correlation of two rows over all columns with this metric, which count as one
          column with their mean weight. Values are not standardized, so the columns need a common unit, as the points
          of a curve have.
    Y : array, data frame or Table, optional
        Other rows with the same columns: the result is then (rows of X) x (rows of Y).
    weights : "balanced", array or mapping, optional
        Weight of each column (1 for columns that a mapping does not name; 0 excludes a column). "balanced" gives every
        column the same mean contribution.
    orders : mapping, optional
        For ordinal columns, all levels from low to high. By default the order that the column declares (a pandas
        Categorical), otherwise the order of the values.
    kinds : str, mapping or sequence, optional
        Kinds of the columns as in ``read_table``; inferred by default.
    standardize : bool, default=True
        Whether squared and absolute differences are in units of each column's standard deviation, instead of the
        user's units.
    condensed : bool, default=False
        Whether to return the pairs i < j only, as scipy's ``linkage`` takes them.

    Returns
    -------
    ndarray (n_rows, n_rows), or (n_rows * (n_rows - 1) / 2,) if ``condensed``, or (n_rows of X, n_rows of Y)

    Examples
    --------
    >>> X = [[1.5, "red"], [3.5, "red"], [None, "blue"]]
    >>> dissimilarity(X, standardize=False)
    array([[0., 4., 2.],
           [4., 0., 2.],
           [2., 2., 0.]])
    >>> dissimilarity(X, {"real": "city_block"}, standardize=False, condensed=True)
    array([2., 2., 2.])
    """
    table = (
        X
        if isinstance(X, Table)
        else read_table(X, kinds, infer_ordinal=False, estimator_name="dissimilarity")
    )
    _check_size(table.n_rows, Y, condensed)
    comparison = learn_comparison(table, metric, weights, orders, standardize)
    rows = Rows.of(table, comparison)
    if Y is not None:
        other = Y if isinstance(Y, Table) else read_table(Y, schema=table.schema)
        _check_cells(table.n_rows * other.n_rows, table.n_rows, other.n_rows)
        out = rows.against(Rows.of(other, comparison))
    else:
        out = _condensed(rows) if condensed else _square(rows)
    if rows.has_incomparable:
        warn_user(
            "some pairs of rows have no observed column in common: they get the mean dissimilarity of two random "
            f"rows, {comparison.mean:.3g}",
            DataWarning,
        )
    return out


class Rows:
    """The rows of a table in the coordinates of a comparison, for comparisons in chunks.

    Examples
    --------
    >>> from partita.table import read_table
    >>> table = read_table([[0.0], [1.0], [3.0]], "real")
    >>> rows = Rows.of(table, learn_comparison(table, "city_block", standardized=False))
    >>> rows.between(slice(0, 1), rows, slice(1, 3))
    array([[1., 3.]])
    """

    def __init__(self, comparison: Comparison, values: list[np.ndarray]):
        self.comparison = comparison
        self.values = values  # of each group: rows x columns, NaN where missing
        self.n_rows = len(values[0])
        self.holes = [np.isnan(values).any(axis=0) for values in self.values]
        self.has_incomparable = False  # whether some pair so far had no observed column in common

    @classmethod
    def of(cls, table: Table, comparison: Comparison) -> Rows:
        """The rows of a table."""
        return cls(comparison, [coordinates(table, group) for group in comparison.groups])

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(self.comparison, [values[rows] for values in self.values])

    def between(self, here: slice, other: Rows, there: slice) -> np.ndarray:
        """Dissimilarities of some rows here to some rows of the other table."""
        total = 0.0
        seen: Any = 0.0
        for g, group in enumerate(self.comparison.groups):
            parts = self.values[g][here], other.values[g][there]
            holes = self.holes[g] | other.holes[g]
            value, weight = _compare_group(group, *parts, holes)
            total, seen = total + value, seen + weight
        return self._scaled_up(np.asarray(total), seen)

    def against(self, other: Rows) -> np.ndarray:
        """Dissimilarities of all rows here to all rows of the other table."""
        out = np.empty((self.n_rows, other.n_rows))
        for here in row_chunks(self.n_rows, other.n_rows):
            out[here] = self.between(here, other, slice(None))
        return out

    def _scaled_up(self, total: np.ndarray, seen: Any) -> np.ndarray:
        """Scale from the columns observed in both rows to all columns."""
        if np.ndim(seen) == 0:
            return total
        whole = sum(group.weight for group in self.comparison.groups)
        incomparable = seen <= 0.0
        np.divide(whole, seen, out=seen, where=~incomparable)
        total *= seen
        if incomparable.any():
            self.has_incomparable = True
            total[incomparable] = self.comparison.mean
        return total


def row_chunks(n_rows: int, n_others: int) -> Iterator[slice]:
    """Slices of rows whose pairs with all others fit into a chunk."""
    step = max(1, CHUNK_PAIRS // max(n_others, 1))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def _compare_group(
    group: Group, A: np.ndarray, B: np.ndarray, holes: np.ndarray
) -> tuple[np.ndarray, np.ndarray | float]:
    """The group's part of the sum, and the weight of the columns observed in both rows (a number if all are)."""
    if group.metric == "correlation":
        return _correlation(group, A, B, bool(holes.any()))
    whole = ~holes
    total = np.zeros((len(A), len(B)))
    if whole.any():
        total = _whole_columns(group.metric, A[:, whole], B[:, whole], group.weights[whole])
    if not holes.any():
        return total, group.weight
    for j in np.flatnonzero(holes):
        difference = A[:, j, None] - B[None, :, j]
        difference = _of_difference(group.metric, difference)
        difference[np.isnan(difference)] = 0.0
        total += group.weights[j] * difference
    return total, ~np.isnan(A) * group.weights @ (~np.isnan(B)).T.astype(float)


def _whole_columns(metric: str, A: np.ndarray, B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if metric == "hamming":
        return cdist(A, B, "hamming", w=weights) * weights.sum()
    return cdist(A, B, PAIRWISE[metric], w=weights)


def _of_difference(metric: str, difference: np.ndarray) -> np.ndarray:
    if metric == "hamming":
        return np.where(np.isnan(difference), np.nan, difference != 0.0)
    if metric == "city_block":
        return np.abs(difference, out=difference)
    return np.square(difference, out=difference)


def _correlation(
    group: Group, A: np.ndarray, B: np.ndarray, has_holes: bool
) -> tuple[np.ndarray, np.ndarray | float]:
    """One minus the weighted correlation over the columns observed in both rows, at least two.

    The correlation with a constant row is not defined: the result is 1, and 0 for two constant rows.
    """
    w = group.weights
    here, there = ~np.isnan(A), ~np.isnan(B)
    A, B = _centered(A, here), _centered(B, there)
    Mw, M = here * w, there.astype(float)
    n = Mw @ M.T
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (A * w) @ M.T / n, Mw @ B.T / n
        squares_a, squares_b = (A * A * w) @ M.T / n, Mw @ (B * B).T / n
        spread_a, spread_b = squares_a - a * a, squares_b - b * b
        cross = (A * w) @ B.T / n - a * b
        out = 1.0 - np.clip(cross / np.sqrt(spread_a * spread_b), -1.0, 1.0)
    flat_a, flat_b = spread_a <= 1e-13 * squares_a, spread_b <= 1e-13 * squares_b
    out = np.where(flat_a | flat_b, np.where(flat_a & flat_b, 0.0, 1.0), out)
    weight = group.weight
    if not has_holes:
        return weight * out, weight
    enough = here.astype(float) @ M.T >= 2
    return np.where(enough, weight * out, 0.0), weight * enough


def _centered(A: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Rows minus their means, 0 where missing: the correlation is the same, and sums of squares lose fewer digits."""
    A = np.where(seen, A, 0.0)
    means = A.sum(axis=1, keepdims=True) / np.maximum(np.count_nonzero(seen, axis=1, keepdims=True), 1)
    centered = np.where(seen, A - means, 0.0)
    rounding = 1e-15 * np.abs(A).max(axis=1, keepdims=True)
    return np.where(np.abs(centered) <= rounding, 0.0, centered)


# ---- shapes ------------------------------------------------------------------------------------------------


def _check_size(n_rows: int, Y: Any, condensed: bool) -> None:
    if Y is not None and condensed:
        raise ValueError("condensed=True is for the pairs of one table: omit Y or condensed")
    if Y is None:
        _check_cells(n_rows * (n_rows - 1) // 2 if condensed else n_rows * n_rows, n_rows, n_rows)


def _check_cells(n_cells: int, n_rows: int, n_others: int) -> None:
    check_memory(
        8 * n_cells + 3 * 8 * CHUNK_PAIRS,
        f"the dissimilarities of {n_rows:,} x {n_others:,} rows",
        "compare a sample, reduce the rows to k-means centers first, or use a nearest-neighbor graph "
        "(partita.similarity.neighbor_graph)",
    )


def _square(rows: Rows) -> np.ndarray:
    n = rows.n_rows
    out = np.empty((n, n))
    for here in row_chunks(n, n):
        part = rows.between(here, rows, slice(here.start, None))
        out[here, here.start :] = part
        out[here.start :, here] = part.T  # exactly symmetric
        upper = np.triu(part[:, : here.stop - here.start], 1)
        out[here, here] = upper + upper.T
    return out


def _condensed(rows: Rows) -> np.ndarray:
    n = rows.n_rows
    out = np.empty(n * (n - 1) // 2)
    for here in row_chunks(n, n):
        part = rows.between(here, rows, slice(here.start, None))
        for i in range(here.start, here.stop):
            first = i * (n - 1) - i * (i - 1) // 2
            out[first : first + n - 1 - i] = part[i - here.start, i - here.start + 1 :]
    return out
