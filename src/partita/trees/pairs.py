"""Dissimilarities that trees start from: given ones, and those of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist, squareform

from partita.execution import check_memory
from partita.table import Table

__all__ = ["COORDINATES", "Pairs", "read_pairs", "table_coordinates", "table_pairs"]

# metrics of scipy for tables of numbers; all others belong to partita.similarity
COORDINATES = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "canberra")
REMEDY = "reduce the rows to k-means centres first (max_rows), or fit a sample"


class Pairs(NamedTuple):
    """Dissimilarities of the pairs i < j in scipy's condensed order, and the number of objects."""

    condensed: np.ndarray
    n: int

    def square(self) -> np.ndarray:
        """All pairs, [object, object]."""
        check_memory(8 * self.n * self.n, f"the dissimilarities of {self.n:,} x {self.n:,} rows", REMEDY)
        return squareform(self.condensed) if self.n > 1 else np.zeros((1, 1))


def read_pairs(X: Any) -> Pairs:
    """Check dissimilarities that the user has made: a square matrix, or the pairs i < j in one dimension.

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
                f"X has {len(D)} dissimilarities in one dimension, which is no number of pairs: give n (n - 1) / 2 of "
                "them, or a square matrix"
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
            "fill the pair in"
        )


def table_coordinates(table: Table) -> np.ndarray | None:
    """The rows as points, if every column is a number or has two levels, and nothing is missing; None otherwise.

    Numbers are in units of their standard deviation, two levels are 0 and 1, so that squared distances are those of
    ``partita.similarity.dissimilarity(X, "auto")``.
    """
    if table.sparse is not None or table.schema.of_kind("categorical"):
        return None
    parts = []
    for kind in ("real", "count", "binary"):
        if not table.schema.of_kind(kind):
            continue
        values = np.asarray(table.block(kind).values, float)
        if kind == "binary":
            values = np.where(values < 0, np.nan, values)
        if kind == "count":
            deviation = values.std(axis=0)
            values = (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        parts.append(values)
    X = np.concatenate(parts, axis=1)
    return None if np.isnan(X).any() else X


def table_pairs(table: Any, metric: Any, X: np.ndarray | None) -> Pairs:
    """Dissimilarities of the rows of a table; ``X`` are its coordinates, where it has them.

    Of a table with coordinates, or of what stands for one, only ``n_rows`` is asked.
    """
    n = table.n_rows
    check_memory(8 * n * (n - 1) // 2, f"the dissimilarities of {n:,} rows", REMEDY)
    own = isinstance(metric, str) and metric in COORDINATES
    if own and X is None:
        raise ValueError(
            f"metric={metric!r} compares rows of numbers without missing values, and this table has others: use "
            "metric='auto', which reads every kind of column"
        )
    if X is not None and (own or (isinstance(metric, str) and metric == "auto")):
        condensed = pdist(X, metric if own else "euclidean") if n > 1 else np.zeros(0)
        return Pairs(np.nan_to_num(condensed, nan=1.0), n)  # the cosine of a row of zeros
    from partita.similarity import dissimilarity

    condensed = dissimilarity(table, metric, condensed=True)
    # "auto" adds squared differences up: its root is the distance that average links are used to
    return Pairs(np.sqrt(condensed) if isinstance(metric, str) and metric == "auto" else condensed, n)
