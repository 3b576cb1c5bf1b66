"""Dissimilarities of pairs of rows: given ones, those of a table, and those of new rows to rows of the fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.metrics.pairwise import nan_euclidean_distances

from partita.execution import check_memory
from partita.similarity.comparison import Comparison, learn_comparison
from partita.similarity.dissimilarities import Rows, dissimilarity
from partita.table import Table

# metrics of scipy for tables of numbers; all others belong to partita.similarity
POINT_METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "canberra")
REMEDY = "reduce the rows to k-means centers first (max_exact), or fit a sample"


class Pairs(NamedTuple):
    """Dissimilarities of the pairs i < j in scipy's condensed order, and the number of objects."""

    condensed: np.ndarray
    n: int
    is_own: bool = False  # whether a tree may overwrite the dissimilarities: nothing else holds the array

    def matrix(self) -> np.ndarray:
        """All pairs, [object, object]."""
        check_memory(8 * self.n * self.n, f"the dissimilarities of {self.n:,} x {self.n:,} rows", REMEDY)
        return squareform(self.condensed) if self.n > 1 else np.zeros((1, 1))


def read_pairs(X: Any) -> Pairs:
    """Check precomputed dissimilarities: a square matrix, or the pairs i < j in one dimension.

    Examples
    --------
    >>> read_pairs([[0, 2, 3], [2, 0, 4], [3, 4, 0]]).condensed
    array([2., 3., 4.])
    """
    D = np.asarray(X, dtype=np.float64)
    if D.ndim == 1:
        n = round((1 + np.sqrt(1 + 8 * len(D))) / 2)
        if n * (n - 1) // 2 != len(D):
            raise ValueError(
                f"X has {len(D)} dissimilarities in one dimension, which is not n (n - 1) / 2 for any n: give all "
                "pairs i < j, or a square matrix"
            )
        _refuse_bad(D[None, :])
        return Pairs(D, n)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or len(D) == 0:
        raise ValueError(
            f"X has shape {D.shape}: with metric='precomputed' give a square matrix of dissimilarities, or the pairs "
            "i < j in one dimension"
        )
    _refuse_bad(D)
    tolerance = 1e-8 * max(float(D.max()), 1e-300)
    if np.abs(np.diagonal(D)).max() > tolerance:
        i = int(np.abs(np.diagonal(D)).argmax())
        raise ValueError(
            f"X[{i}, {i}] is {D[i, i]}: an object is not dissimilar from itself, set the diagonal to 0"
        )
    if len(D) > 1 and np.abs(D - D.T).max() > tolerance:
        i, j = np.unravel_index(int(np.abs(D - D.T).argmax()), D.shape)
        raise ValueError(
            f"X is not symmetric: X[{i}, {j}] is {D[i, j]} and X[{j}, {i}] is {D[j, i]}; use (X + X.T) / 2"
        )
    return Pairs(D[np.triu_indices(len(D), 1)], len(D))


def _refuse_bad(D: np.ndarray) -> None:
    bad = ~(np.isfinite(D) & (D >= 0))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(
            f"dissimilarity [{i}, {j}] is {D[i, j]}: all must be finite and not negative; leave the object out, or "
            "replace the value"
        )


# ---- rows as points ----------------------------------------------------------------------------------------


class Units(NamedTuple):
    """Means and standard deviations of the count columns, in the rows of the fit."""

    means: np.ndarray
    scales: np.ndarray


def count_units(table: Table) -> Units:
    """Learn the units in which count columns are compared."""
    if table.sparse is not None or not table.schema.of_kind("count"):
        return Units(np.zeros(0), np.ones(0))
    values = np.asarray(table.block("count").values, float)
    deviations = np.nanstd(values, axis=0)
    return Units(np.nanmean(values, axis=0), np.where(deviations > 0, deviations, 1.0))


def row_points(table: Table, units: Units) -> np.ndarray | None:
    """Rows as points, NaN where a cell is missing; None if a column has more than two levels, or ordered ones.

    Numbers are in units of their standard deviation, two levels are 0 and 1, so that squared distances are those of
    ``partita.similarity.dissimilarity(X, "auto")``.
    """
    if table.sparse is not None or table.schema.of_kind("categorical") or table.schema.of_kind("ordinal"):
        return None
    parts = []
    for kind in ("real", "count", "binary"):
        if not table.schema.of_kind(kind):
            continue
        values = np.asarray(table.block(kind).values, float)
        if kind == "binary":
            values = np.where(values < 0, np.nan, values)
        if kind == "count":
            values = (values - units.means) / units.scales
        parts.append(values)
    return np.concatenate(parts, axis=1)


def complete_points(table: Table) -> np.ndarray | None:
    """The rows of the fit as points; None if some cell is missing or some column has more than two levels."""
    points = row_points(table, count_units(table))
    return None if points is None or np.isnan(points).any() else points


def compares_points(metric: Any) -> bool:
    """Whether a metric is defined by the coordinates of two points alone."""
    return isinstance(metric, str) and (metric == "auto" or metric in POINT_METRICS)


# ---- dissimilarities of the rows of a table ----------------------------------------------------------------


def point_pairs(points: np.ndarray, metric: str) -> Pairs:
    """Dissimilarities of points; "auto" is Euclidean."""
    n = len(points)
    check_memory(8 * n * (n - 1) // 2, f"the dissimilarities of {n:,} rows", REMEDY)
    condensed = pdist(points, "euclidean" if metric == "auto" else metric) if n > 1 else np.zeros(0)
    if not np.isfinite(condensed.max(initial=0.0)):  # NaN too; most tables need no second pass
        np.nan_to_num(condensed, copy=False, nan=1.0)  # the cosine distance of a row of zeros is not defined
    return Pairs(condensed, n, is_own=True)


def table_pairs(table: Table, metric: Any, points: np.ndarray | None) -> Pairs:
    """Dissimilarities of the rows of a table; ``points`` are its rows as points, where it has them."""
    if points is not None and compares_points(metric):
        return point_pairs(points, metric)
    n = table.n_rows
    check_memory(8 * n * (n - 1) // 2, f"the dissimilarities of {n:,} rows", REMEDY)
    if isinstance(metric, str) and metric in POINT_METRICS:
        raise ValueError(_NOT_POINTS.format(metric=metric))
    condensed = dissimilarity(table, metric, condensed=True)
    # "auto" adds squared differences: its root is the Euclidean distance of complete tables of numbers
    if isinstance(metric, str) and metric == "auto":
        np.sqrt(condensed, out=condensed)
    return Pairs(condensed, n, is_own=True)


_NOT_POINTS = (
    "metric={metric!r} compares rows of numbers without missing values, and this table has others: use metric='auto', "
    "which reads every kind of column"
)


# ---- new rows ----------------------------------------------------------------------------------------------


def keep_rows(table: Table, metric: Any, points: np.ndarray | None, rows: np.ndarray) -> dict[str, Any]:
    """What is needed to compare new rows with these rows of the fit, as a model file can hold it."""
    if points is not None and compares_points(metric):
        return keep_points(table, points[rows])
    comparison = learn_comparison(table, metric)
    return {"comparison": comparison.to_state(), "values": Rows.of(table, comparison).take(rows).values}


def keep_points(table: Table, points: np.ndarray) -> dict[str, Any]:
    """The same for points that need not be rows, such as means."""
    return {"points": points, **count_units(table)._asdict()}


def distances_to(kept: dict[str, Any], table: Table, metric: Any) -> np.ndarray:
    """Dissimilarities [new row, kept row]; 0 to all where a new row has no observed cell.

    Examples
    --------
    >>> from partita.table import read_table
    >>> table = read_table([[0.0], [1.0], [5.0]], "real")
    >>> kept = keep_rows(table, "auto", complete_points(table), np.array([0, 2]))
    >>> distances_to(kept, table, "auto").argmin(axis=1)
    array([0, 0, 1])
    """
    if "points" not in kept:
        comparison = Comparison.from_state(kept["comparison"])
        out = Rows.of(table, comparison).against(Rows(comparison, list(kept["values"])))
        return np.sqrt(out) if isinstance(metric, str) and metric == "auto" else out
    points = row_points(table, Units(kept["means"], kept["scales"]))
    assert points is not None  # the schema of the fit has no other columns
    if metric in ("auto", "euclidean"):
        return np.nan_to_num(nan_euclidean_distances(points, kept["points"]), nan=0.0)
    if np.isnan(points).any():
        raise ValueError(_NOT_POINTS.format(metric=metric))
    return np.nan_to_num(cdist(points, kept["points"], metric), nan=1.0)
