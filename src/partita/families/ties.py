"""Tied real values: a value that occurs in several rows stands for the interval that rounding leaves open.

Rows that share a value exactly would let a cluster be arbitrarily narrow in that column, and its density arbitrarily
high. A tied value therefore stands for its cell, which ends half-way to the neighboring values of the column. Chains
draw the value inside the cell anew in each iteration, given the cluster of the row and its other values (a normal
variable that is truncated to the cell), so a cluster is never much narrower than the cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.families.intervals import draw_interval
from partita.families.signal import Signal

MIN_REPEATS = 1.5  # mean number of rows per distinct value from which a column has ties
MIN_DISTINCT = 3
MIN_WIDTH = 0.01  # of a typical cell, where the column has deviation 1; narrower cells change nothing


class Ties(NamedTuple):
    """Cells of tied values in standardized columns; both ends are NaN where a value is exact."""

    values: NDArray[np.float64]  # [row, column], as they are in the table
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns with tied cells."""
        return np.flatnonzero(~np.isnan(self.low).all(axis=0))

    def take(self, rows: NDArray[np.integer]) -> Ties:
        """These rows only."""
        return Ties(*(np.ascontiguousarray(part[rows]) for part in self))

    def start(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Values that are drawn evenly from their cells: where a chain starts.

        Examples
        --------
        >>> ties = Ties(np.array([[1.0, 2.0]]), np.array([[0.5, np.nan]]), np.array([[1.5, np.nan]]))
        >>> ties.start(np.random.default_rng(0)).round(3)
        array([[1.137, 2.   ]])
        """
        u = rng.random(self.values.shape)
        return np.where(np.isnan(self.low), self.values, self.low + u * (self.high - self.low))


def find_ties(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    encode: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Ties | None:
    """The tied cells of columns; None if no column is coarse. Missing cells stay as they are.

    Parameters
    ----------
    X : ndarray [row, column]
        Values in the user's units.
    weights : ndarray [row]
        A row of weight 2 is two rows; rows of weight 0 do not count.
    encode : callable
        Standardized values from values in the user's units.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [2.0], [4.0], [4.0]])
    >>> ties = find_ties(X, np.ones(5), lambda values: values / 10)
    >>> ties.low[1:].ravel(), ties.high[1:].ravel()
    (array([0.15, 0.15, 0.3 , 0.3 ]), array([0.3, 0.3, 0.5, 0.5]))
    """
    low, high = np.full(X.shape, np.nan), np.full(X.shape, np.nan)
    for d, x in enumerate(X.T):
        seen = (weights > 0) & ~np.isnan(x)
        distinct, which = np.unique(x[seen], return_inverse=True)
        counts = np.bincount(which, weights[seen])
        if len(distinct) < MIN_DISTINCT or counts.sum() < MIN_REPEATS * len(distinct):
            continue
        at = np.minimum(np.searchsorted(distinct, x), len(distinct) - 1)
        tied = (distinct[at] == x) & (counts[at] > 1)
        ends = cell_ends(distinct)
        low[tied, d], high[tied, d] = ends[at[tied]], ends[at[tied] + 1]
    low, high = encode(low), encode(high)
    for d in range(X.shape[1]):
        widths = np.unique((high - low)[~np.isnan(low[:, d]), d])
        if len(widths) and np.median(widths) < MIN_WIDTH:
            low[:, d] = high[:, d] = np.nan
    return None if np.isnan(low).all() else Ties(encode(X), low, high)


def cell_ends(distinct: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ends between increasing values, half-way to the neighbors, and those of the extremes, as far on both sides.

    Examples
    --------
    >>> cell_ends(np.array([1.0, 2.0, 4.0]))
    array([0.5, 1.5, 3. , 5. ])
    """
    middle = distinct[:-1] + 0.5 * np.diff(distinct)
    return np.concatenate([[2 * distinct[0] - middle[0]], middle, [2 * distinct[-1] - middle[-1]]])


def redraw(
    ties: Ties,
    signal: Signal | None,
    means: NDArray[np.float64],
    precisions: NDArray[np.float64],
    z: NDArray[np.integer],
    values: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draw the tied cells anew, one column after the other, and return the data of the block.

    Parameters
    ----------
    means, precisions : ndarray [cluster, coordinate], [cluster, coordinate, coordinate]
        Of the data of the block: columns, or scores of the signal.
    z : ndarray [row]
        Clusters of the rows.
    values : ndarray [row, column]
        Standardized values; tied ones are overwritten.
    """
    if signal is not None:
        means, precisions = signal.column_means(means), signal.column_precisions(precisions)
    for d in ties.columns:
        rows = np.flatnonzero(~np.isnan(ties.low[:, d]))
        k = z[rows]
        own = precisions[k, d, d]
        gaps = values[rows] - means[k]
        pull = np.einsum("ie,ie->i", precisions[k, d], gaps) - own * gaps[:, d]
        center, sd = means[k, d] - pull / own, 1.0 / np.sqrt(own)
        low, high = ties.low[rows, d], ties.high[rows, d]
        drawn = draw_interval((low - center) / sd, (high - center) / sd, rng.random(len(rows)))
        values[rows, d] = np.clip(center + sd * drawn, low, high)
    return values if signal is None else signal.scores(values)
