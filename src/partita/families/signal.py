"""The signal of real columns: the directions in which rows differ, without those that almost follow from others.

Columns that nearly follow from others (an area and a perimeter, a sum and its parts) give a table directions in which
all rows are almost equal. A cluster can be arbitrarily narrow there, and would be found for that reason alone. With
many columns, most directions hold nothing but noise. The clusters of a mixture therefore live in the first
directions; the rest carries one Gaussian for all rows (a factor model with common loadings), so that labels depend on
the scores alone, and densities are still those of whole rows.

The model of a row under one Gaussian is ``z = widths * u`` with ``u ~ N(0, noise I + A' diag(variances - noise) A)``,
where the rows of A, the axes, are orthonormal: low rank plus diagonal. The scores are the first coordinates of ``A u``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LOG_2PI = math.log(2 * math.pi)
WIDTH_FLOOR = 1e-6  # variance of a direction that is determined by others, so that densities stay finite
CHUNK_CELLS = 1 << 22  # of the arrays that hold a matrix per row with missing cells


class Signal(NamedTuple):
    """Directions of standardized columns, each divided by its width; the first ``n_scores`` are the signal."""

    axes: NDArray[np.float64]  # [direction, column], orthonormal; all directions, or the leading ones
    variances: NDArray[np.float64]  # [direction], decreasing
    n_scores: int
    widths: NDArray[np.float64]  # [column], of the noise of columns, with the geometric mean 1
    noise: float  # variance of the directions that are not among the axes

    @classmethod
    def of(cls, axes: NDArray[np.float64], variances: NDArray[np.float64], n_scores: int) -> Signal:
        """Return the signal of columns with equal noise, of which all directions are known."""
        return cls(axes, variances, n_scores, np.ones(axes.shape[1]), float(variances[-1]))

    def scores(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows in the directions of the signal.

        Missing cells are filled with their expectation given the observed cells of the row; a row without any is
        missing as a whole.

        Examples
        --------
        >>> signal = Signal.of(np.sqrt([[0.5, 0.5], [0.5, 0.5]]) * [[1, 1], [1, -1]], np.array([1.9, 0.1]), 1)
        >>> signal.scores(np.array([[1.0, 1.0], [1.0, np.nan], [np.nan, np.nan]])).round(3)
        array([[1.414],
               [1.344],
               [  nan]])
        """
        U = np.asarray(Z, float) / self.widths
        return np.ascontiguousarray(self.completed(U).U @ self.axes[: self.n_scores].T)

    def log_rest(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log density of the rows apart from their scores.

        Of a row with missing cells it is the density of its observed cells, divided by that of its scores, both under
        one Gaussian for all rows.

        Examples
        --------
        >>> signal = Signal.of(np.eye(2), np.array([1.0, 0.5]), 1)
        >>> signal.log_rest(np.array([[7.0, 0.0], [np.nan, np.nan]])).round(4)
        array([-0.5724,  0.    ])
        """
        Z = np.asarray(Z, float)
        filled, log_observed, _ = self.completed(Z / self.widths)
        T = filled @ self.axes.T
        log_axes = -0.5 * (T**2 / self._spreads + np.log(self._spreads) + LOG_2PI)
        log_scores, log_rest = (part.sum(axis=1) for part in np.split(log_axes, [self.n_scores], axis=1))
        n_others = filled.shape[1] - len(self.axes)
        if n_others:
            others = np.maximum((filled**2).sum(axis=1) - (T**2).sum(axis=1), 0.0)
            log_rest -= 0.5 * (others / self._noise + n_others * (math.log(self._noise) + LOG_2PI))
        # where nothing is missing this is the same as log_observed - log_scores, with fewer rounding errors
        log_rest = np.where(np.isnan(log_observed), log_rest, log_observed - log_scores)
        return np.nan_to_num(log_rest) - ~np.isnan(Z) @ np.log(self.widths)

    def rest_of_complete(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
        """:meth:`log_rest` of rows without missing cells as a quadratic form: P, c, a and b of
        ``(U @ P)**2 @ c + a * (U**2).sum() + b`` for rows U that are divided by the widths.

        Examples
        --------
        >>> signal = Signal.of(np.eye(2), np.array([1.0, 0.5]), 1)
        >>> P, c, a, b = signal.rest_of_complete()
        >>> u = np.array([[7.0, 0.3]])
        >>> bool(np.isclose((u @ P) ** 2 @ c + a * (u**2).sum() + b, signal.log_rest(u)).all())
        True
        """
        m, D = self.axes.shape
        spreads = self._spreads[self.n_scores :]
        coefficients = np.append(np.zeros(self.n_scores), -0.5 / spreads)
        constant = -0.5 * float((np.log(spreads) + LOG_2PI).sum()) - float(np.log(self.widths).sum())
        if m == D:
            return self.axes.T, coefficients, 0.0, constant
        constant -= 0.5 * (D - m) * (math.log(self._noise) + LOG_2PI)
        return self.axes.T, coefficients + 0.5 / self._noise, -0.5 / self._noise, constant

    def column_means(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means of the columns from those of the scores, [cluster, column]."""
        return means @ self.axes[: self.n_scores] * self.widths

    def column_variances(self, covariances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variances of the columns from the covariances of the scores, [cluster, column]."""
        A, B = self.axes[: self.n_scores], self.axes[self.n_scores :]
        of_scores = np.stack([((C @ A) * A).sum(axis=0) for C in covariances])
        of_rest = self._spreads[self.n_scores :] @ B**2
        of_rest += self._noise * np.maximum(1.0 - (self.axes**2).sum(axis=0), 0.0)
        return (of_scores + of_rest) * self.widths**2

    def share(self) -> float:
        """Share of the variance of the columns that the signal has.

        Examples
        --------
        >>> Signal.of(np.eye(2), np.array([3.0, 1.0]), 1).share()
        0.75
        """
        C = np.diag(self._spreads[: self.n_scores])[None]
        whole = self.column_variances(C).sum()
        return float(1.0 - self.column_variances(0.0 * C).sum() / whole)

    def column_precisions(self, precisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Precision matrices of whole rows from those of the scores, [cluster, column, column]."""
        A, B = self.axes[: self.n_scores], self.axes[self.n_scores :]
        rest = (B.T / self._spreads[self.n_scores :]) @ B
        if len(self.axes) < self.axes.shape[1]:
            rest += (np.eye(self.axes.shape[1]) - self.axes.T @ self.axes) / self._noise
        return (np.einsum("jd,kji,ie->kde", A, precisions, A) + rest) / np.outer(self.widths, self.widths)

    def rows(self, scores: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Whole rows with the given scores, the rest drawn at random."""
        m, D = self.axes.shape
        T = rng.standard_normal((len(scores), m)) * np.sqrt(self._spreads)
        if m < D:
            U = math.sqrt(self._noise) * rng.standard_normal((len(scores), D))
            T -= U @ self.axes.T  # takes the place of the part of U that lies in the axes
        else:
            U = np.zeros((len(scores), D))
        T[:, : self.n_scores] = scores - (U @ self.axes[: self.n_scores].T)
        return (U + T @ self.axes) * self.widths

    def undetermined(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of the variance of the scores that the missing cells of each row leave open.

        Examples
        --------
        >>> signal = Signal.of(np.eye(2), np.array([3.0, 1.0]), 2)
        >>> signal.undetermined(np.array([[1.0, 1.0], [1.0, np.nan], [np.nan, np.nan]]))
        array([0.  , 0.25, 1.  ])
        """
        found = self.completed(np.asarray(Z, float) / self.widths).open
        return found[:, : self.n_scores].sum(axis=1) / self._spreads[: self.n_scores].sum()

    @property
    def _spreads(self) -> NDArray[np.float64]:
        return np.maximum(self.variances, WIDTH_FLOOR)

    @property
    def _noise(self) -> float:
        return max(self.noise, WIDTH_FLOOR)

    def completed(self, U: NDArray[np.float64]) -> Completed:
        """Rows (divided by the widths) with missing cells filled in under one Gaussian for all rows."""
        log_observed = np.full(len(U), np.nan)
        left = np.zeros((len(U), len(self.axes)))
        missing = np.isnan(U)
        lacking = np.flatnonzero(missing.any(axis=1))
        if len(lacking) == 0:
            return Completed(U, log_observed, left)
        filled = U.copy()
        left[missing.all(axis=1)] = self._spreads
        lacking = lacking[~missing[lacking].all(axis=1)]
        m = len(self.axes)
        # u = loadings' f + noise, with f ~ N(0, I): the posterior of f given the observed cells of a row
        loadings = self.axes * np.sqrt(np.maximum(self._spreads - self._noise, 0.0))[:, None]
        products = (loadings[:, None, :] * loadings[None, :, :]).reshape(m * m, -1).T / self._noise
        for rows in np.array_split(lacking, 1 + len(lacking) * (m * m + U.shape[1]) // CHUNK_CELLS):
            seen = ~missing[rows]
            values = np.where(seen, U[rows], 0.0)
            precisions = (seen @ products).reshape(-1, m, m) + np.eye(m)
            b = values @ loadings.T / self._noise
            covariances = np.linalg.inv(precisions)
            f = np.einsum("nij,nj->ni", covariances, b)
            filled[rows] = np.where(seen, values, f @ loadings)
            square = (values**2).sum(axis=1) / self._noise - (b * f).sum(axis=1)
            log_det = np.linalg.slogdet(precisions)[1] + seen.sum(axis=1) * (math.log(self._noise) + LOG_2PI)
            log_observed[rows] = -0.5 * (square + log_det)
            left[rows] = self._left_open(~seen, loadings, covariances)
        return Completed(filled, log_observed, left)

    def _left_open(self, lost, loadings, covariances) -> NDArray[np.float64]:
        """Variances of ``A u`` given the observed cells; the cells that are missing are ``loadings' f + noise``."""
        out = np.empty((len(lost), len(self.axes)))
        for j, axis in enumerate(self.axes):
            through = (lost * axis) @ loadings.T
            out[:, j] = np.einsum("ni,nij,nj->n", through, covariances, through)
            out[:, j] += self._noise * (lost @ axis**2)
        return out


class Completed(NamedTuple):
    """Rows without missing cells and what filling them in means."""

    U: NDArray[np.float64]  # NaN remains in rows without any observed cell
    log_observed: NDArray[
        np.float64
    ]  # [row], log density of the observed cells; NaN where none is missing or seen
    open: NDArray[np.float64]  # [row, direction], variance given the observed cells
