"""The signal of real columns: the directions in which rows differ, without those that almost follow from others.

Columns that nearly follow from others (an area and a perimeter, a sum and its parts) give a table directions in which
all rows are almost equal. A cluster can be arbitrarily narrow there, and would be found for that reason alone. With
many columns, most directions hold nothing but noise. The clusters of a mixture therefore live in the first principal
directions; the rest carries one Gaussian for all rows (a factor model with common loadings), so that labels depend on
the scores alone, and densities are still those of whole rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LOG_2PI = math.log(2 * math.pi)
WIDTH_FLOOR = 1e-6  # variance of a direction that is determined by others, so that densities stay finite
LEAST_VARIANCE = 0.01  # of a direction of the signal, where a column has variance 1
MAX_COLUMNS, ROWS_PER_COLUMN = (
    30,
    5,
)  # with more columns or fewer rows, directions count that vary beyond chance
MIN_DIRECTIONS, MAX_DIRECTIONS = 6, 30  # of those
ROWS_PER_DIRECTION = 10
N_SHUFFLES, QUANTILE, MAX_ROWS, SEED = 20, 0.95, 2000, 0  # of parallel analysis


class Signal(NamedTuple):
    """Principal directions of standardized columns; the first ``n_scores`` are the signal."""

    axes: NDArray[np.float64]  # [direction, column], orthonormal
    variances: NDArray[np.float64]  # [direction], decreasing
    n_scores: int

    def scores(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows in the directions of the signal.

        Missing cells are filled with their expectation given the observed cells of the row; a row without any is
        missing as a whole.

        Examples
        --------
        >>> signal = Signal(np.sqrt([[0.5, 0.5], [0.5, 0.5]]) * [[1, 1], [1, -1]], np.array([1.9, 0.1]), 1)
        >>> signal.scores(np.array([[1.0, 1.0], [1.0, np.nan], [np.nan, np.nan]])).round(3)
        array([[1.414],
               [1.344],
               [  nan]])
        """
        filled = self._filled(np.asarray(Z, float))[0]
        return np.ascontiguousarray(filled @ self.axes[: self.n_scores].T)

    def log_rest(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log density of the rows apart from their scores.

        Of a row with missing cells it is the density of its observed cells, divided by that of its scores, both under
        one Gaussian for all rows.

        Examples
        --------
        >>> signal = Signal(np.eye(2), np.array([1.0, 0.5]), 1)
        >>> signal.log_rest(np.array([[7.0, 0.0], [np.nan, np.nan]])).round(4)
        array([-0.5724,  0.    ])
        """
        filled, log_observed = self._filled(np.asarray(Z, float))
        T = filled @ self.axes.T
        log_all = -0.5 * (T**2 / self._widths + np.log(self._widths) + LOG_2PI)
        log_scores, log_rest = (part.sum(axis=1) for part in np.split(log_all, [self.n_scores], axis=1))
        # where nothing is missing this is the same as log_observed - log_scores, with fewer rounding errors
        return np.nan_to_num(np.where(np.isnan(log_observed), log_rest, log_observed - log_scores))

    def column_means(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means of the columns from those of the scores, [cluster, column]."""
        return means @ self.axes[: self.n_scores]

    def column_variances(self, covariances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variances of the columns from the covariances of the scores, [cluster, column]."""
        A, B = self.axes[: self.n_scores], self.axes[self.n_scores :]
        return np.einsum("jd,kji,id->kd", A, covariances, A) + (
            self._widths[self.n_scores :, None] * B**2
        ).sum(0)

    def column_precisions(self, precisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Precision matrices of whole rows from those of the scores, [cluster, column, column]."""
        A, B = self.axes[: self.n_scores], self.axes[self.n_scores :]
        rest = (B.T / self._widths[self.n_scores :]) @ B
        return np.einsum("jd,kji,ie->kde", A, precisions, A) + rest

    def rows(self, scores: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Whole rows with the given scores, the rest drawn at random."""
        rest = rng.standard_normal((len(scores), len(self.axes) - self.n_scores))
        rest *= np.sqrt(self._widths[self.n_scores :])
        return np.concatenate([scores, rest], axis=1) @ self.axes

    @property
    def _widths(self) -> NDArray[np.float64]:
        return np.maximum(self.variances, WIDTH_FLOOR)

    def _filled(self, Z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows without missing cells, and the log density of the observed cells (NaN where none is missing)."""
        missing = np.isnan(Z)
        log_observed = np.full(len(Z), np.nan)
        if not missing.any():
            return Z, log_observed
        filled = Z.copy()
        R = (self.axes.T * self._widths) @ self.axes
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for p, lost in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == p)
            seen = ~lost
            if not lost.any():
                continue
            if not seen.any():
                filled[rows], log_observed[rows] = np.nan, np.nan
                continue
            L = np.linalg.cholesky(R[np.ix_(seen, seen)])
            u = np.linalg.solve(L, Z[np.ix_(rows, seen)].T)
            filled[np.ix_(rows, lost)] = (R[np.ix_(lost, seen)] @ np.linalg.solve(L.T, u)).T
            log_observed[rows] = (
                -0.5 * (u**2).sum(axis=0) - np.log(np.diag(L)).sum() - 0.5 * seen.sum() * LOG_2PI
            )
        return filled, log_observed


def find_signal(Z: NDArray[np.float64], weights: NDArray[np.float64]) -> Signal | None:
    """The signal of complete, standardized columns; None if every direction of a table of few columns belongs to it.

    Up to `MAX_COLUMNS` columns, a direction belongs to the signal unless its variance is below `LEAST_VARIANCE`. With
    more columns, or few rows, the directions count whose variance is larger than in tables whose columns were shuffled
    (parallel analysis).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(200, 3))
    >>> find_signal(Z, np.ones(200)) is None
    True
    >>> find_signal(np.column_stack([Z, Z[:, 0] + 0.01 * rng.normal(size=200)]), np.ones(200)).n_scores
    3
    """
    n_rows, D = int(np.count_nonzero(weights)), Z.shape[1]
    variances, axes = np.linalg.eigh((Z.T * weights) @ Z / weights.sum())
    variances, axes = np.maximum(variances[::-1], 0.0), np.ascontiguousarray(axes.T[::-1])
    if variances[0] == 0.0:  # all rows are equal
        return None
    if D <= MAX_COLUMNS and n_rows >= ROWS_PER_COLUMN * D:
        n_scores = int(np.count_nonzero(variances >= LEAST_VARIANCE))
        return None if n_scores in (0, D) else Signal(axes, variances, n_scores)
    most = min(MAX_DIRECTIONS, max(n_rows // ROWS_PER_DIRECTION, 2))
    return Signal(axes, variances, min(max(_n_beyond_chance(Z[weights > 0]), MIN_DIRECTIONS), most, D))


def _n_beyond_chance(Z: NDArray[np.float64]) -> int:
    """Number of leading directions with more variance than those of columns that were shuffled."""
    rng = np.random.default_rng(SEED)
    Z = Z[np.unique(np.linspace(0, len(Z) - 1, min(len(Z), MAX_ROWS)).round().astype(int))]

    def spectrum(A: NDArray[np.float64]) -> NDArray[np.float64]:
        A = A - A.mean(axis=0)
        return np.linalg.svd(A, compute_uv=False) / math.sqrt(len(A))

    found = spectrum(Z)
    chance = np.quantile([spectrum(rng.permuted(Z, axis=0)) for _ in range(N_SHUFFLES)], QUANTILE, axis=0)
    below = np.flatnonzero(found <= chance)
    return int(below[0]) if len(below) else len(found)
