"""How the signal of a table is found: principal directions of few columns, a factor model of many.

Of many columns only the leading directions are ever formed, by multiplying a few vectors with the table again and
again, so that thousands of columns, and fewer rows than columns, take seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from partita.families.signal import Signal

# of a direction of the signal, and of the noise of a column, where a column has variance 1
LEAST_VARIANCE = 0.01
MAX_COLUMNS, ROWS_PER_COLUMN = (
    30,
    5,
)  # with more columns or fewer rows, directions count that vary beyond chance
MIN_DIRECTIONS, MAX_DIRECTIONS = 2, 30  # of those
ROWS_PER_DIRECTION = 10
# columns above which each has noise of its own: of fewer, one with little noise would dominate
MIN_OWN_NOISE = 100
N_SHUFFLES, QUANTILE, SEED = 20, 0.95, 0  # of parallel analysis
MAX_ROWS, MAX_CELLS = 2000, 5_000_000  # of the sample for it
FEW_SHUFFLES, MANY_CELLS = 5, 1_000_000  # largest singular values of large random tables hardly vary
SPARE_DIRECTIONS, N_POWERS, MAX_GRAM = (
    10,
    15,
    2000,
)  # of the subspace that converges to the leading directions
N_ROUNDS, TOLERANCE = 100, 1e-3  # of the noise of columns, as a share of the largest change
N_FILLS = 8  # rounds in which missing cells are filled in


class SignalMoments(NamedTuple):
    """What the factor model needs of the rows with a weight, missing cells filled in."""

    n_rows: int
    multiply: Callable[[NDArray[np.float64]], NDArray[np.float64]]  # covariance matrix times vectors
    squares: NDArray[np.float64]  # [column], means
    missing: NDArray[np.float64]  # [column], share of the weight


class SignalRows(Protocol):
    """Standardized rows of a table in memory, in shards or on a device, from which the signal is found."""

    n_rows: int  # with a weight
    n_columns: int
    has_holes: bool

    def sample(self) -> NDArray[np.float64]:
        """Rows at `sampled_positions` among those with a weight; 0 where a cell is missing."""

    def moments(self, signal: Signal | None = None) -> SignalMoments:
        """Moments with missing cells at 0, or at their expectation by a signal."""


class RowsInMemory:
    """Rows of an array."""

    def __init__(self, Z: NDArray[np.float64], weights: NDArray[np.float64]):
        kept = weights > 0
        self._Z, self._weights = (Z, weights) if kept.all() else (Z[kept], weights[kept])
        self.n_rows, self.n_columns = self._Z.shape
        self.has_holes = bool(np.isnan(self._Z).any())

    def sample(self) -> NDArray[np.float64]:
        """See :class:`SignalRows`."""
        return np.nan_to_num(self._Z[sampled_positions(self.n_rows, self.n_columns)])

    def moments(self, signal: Signal | None = None) -> SignalMoments:
        """See :class:`SignalRows`."""
        filled, weights = filled_in(self._Z, signal), self._weights
        total = weights.sum()
        return SignalMoments(
            self.n_rows,
            _covariance(filled, weights),
            weights @ filled**2 / total,
            (weights @ np.isnan(self._Z)) / total,
        )


def filled_in(Z: NDArray[np.float64], signal: Signal | None) -> NDArray[np.float64]:
    """Rows with missing cells at 0, or at their expectation by a signal.

    Examples
    --------
    >>> filled_in(np.array([[1.0, np.nan]]), None)
    array([[1., 0.]])
    """
    if signal is None or not np.isnan(Z).any():
        return np.nan_to_num(Z)
    return np.nan_to_num(signal.completed(Z / signal.widths).U * signal.widths)


def find_signal(Z: NDArray[np.float64], weights: NDArray[np.float64]) -> Signal | None:
    """The signal of standardized columns in memory, see :func:`signal_of`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(200, 3))
    >>> find_signal(Z, np.ones(200)) is None
    True
    >>> find_signal(np.column_stack([Z, Z[:, 0] + 0.01 * rng.normal(size=200)]), np.ones(200)).n_scores
    3
    """
    return signal_of(RowsInMemory(Z, weights))


def signal_of(rows: SignalRows) -> Signal | None:
    """The signal of standardized columns; None if all directions of few columns belong to it, or none of many.

    Up to `MAX_COLUMNS` complete columns, a direction belongs to the signal unless its variance is below
    `LEAST_VARIANCE`. With more columns, or few rows, the directions count whose variance is larger than in tables whose
    columns were shuffled (parallel analysis), and the rest is noise: with more than `MIN_OWN_NOISE` columns each has
    noise of its own (factor analysis), otherwise all have the same (probabilistic principal component analysis). Many
    columns without any such direction depend on each other no more than by chance.
    """
    n_rows, D = rows.n_rows, rows.n_columns
    moments = rows.moments()
    if not is_wide(n_rows, D):
        return _of_few_columns(moments.multiply(np.eye(D)))
    if not moments.squares.any():  # all rows are equal
        return None
    n_found = n_beyond_chance(rows.sample())
    if n_found == 0:
        return None
    most = max(min(MAX_DIRECTIONS, n_rows // ROWS_PER_DIRECTION, D, n_rows - 1), 1)
    n_scores, own_noise = min(max(n_found, MIN_DIRECTIONS), most), D > MIN_OWN_NOISE
    signal = fit_factors(moments, n_scores, own_noise=own_noise)
    for _ in range(N_FILLS - 1 if rows.has_holes else 0):
        # variance of the missing cells of a column given the observed ones, per row of the table
        lost = signal.noise * signal.widths**2 * moments.missing
        signal = fit_factors(rows.moments(signal), n_scores, lost, own_noise=own_noise)
    return signal


def is_wide(n_rows: int, n_columns: int) -> bool:
    """Whether a table has too many columns for its rows, or for full covariances.

    Examples
    --------
    >>> is_wide(1000, 30), is_wide(1000, 31), is_wide(100, 30)
    (False, True, True)
    """
    return n_columns > MAX_COLUMNS or n_rows < ROWS_PER_COLUMN * n_columns


def _of_few_columns(covariance: NDArray[np.float64]) -> Signal | None:
    variances, axes = np.linalg.eigh(covariance)
    variances, axes = np.maximum(variances[::-1], 0.0), np.ascontiguousarray(axes.T[::-1])
    n_scores = int(np.count_nonzero(variances >= LEAST_VARIANCE))
    return None if n_scores in (0, len(axes)) else Signal.of(axes, variances, n_scores)


# ---- the factor model --------------------------------------------------------------------------------------


def fit_factors(
    moments: SignalMoments,
    n_factors: int,
    lost: NDArray[np.float64] | float = 0.0,
    *,
    own_noise: bool = True,
) -> Signal:
    """Factor analysis of complete columns by maximum likelihood, with the widths of noise drawn together.

    Given the noise, the best axes are the leading principal directions of columns divided by it; given the axes, the
    noise of a column is the variance that they leave over (`lost` is variance that the table does not show), and at
    least `LEAST_VARIANCE` of its whole variance. Without ``own_noise`` all columns have the same.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = np.repeat([0.2, 0.8], 20)
    >>> Z = rng.normal(size=(500, 1)) + noise * rng.normal(size=(500, 40))
    >>> signal = fit_factors(RowsInMemory(Z, np.ones(500)).moments(), 1)
    >>> found = np.sqrt(signal.noise) * signal.widths
    >>> bool(np.abs(found / noise - 1).max() < 0.15)
    True
    """
    n_rows, D = moments.n_rows, len(moments.squares)
    squares = moments.squares + lost
    widths, noise = np.ones(D), 1.0
    Q = np.random.default_rng(SEED).standard_normal((D, min(n_factors + SPARE_DIRECTIONS, D, n_rows)))
    n_powers = N_POWERS
    degrees = 1.0 - n_factors / n_rows  # rows that are left for the noise
    for _ in range(N_ROUNDS):
        Q, variances = leading_directions(partial(_multiply_divided, moments.multiply, widths), Q, n_powers)
        n_powers = 1
        axes, variances = Q[:, :n_factors].T, variances[:n_factors]
        U2 = squares / widths**2
        noise = max(
            (U2.sum() - variances.sum()) / max(D - n_factors, 1) / degrees, LEAST_VARIANCE * U2.mean()
        )
        rest = np.maximum(U2 - np.maximum(variances - noise, 0.0) @ axes**2, 0.0) / degrees
        psi = np.maximum(rest * widths**2, LEAST_VARIANCE * np.maximum(squares, LEAST_VARIANCE))
        new = _shrunken_widths(psi, n_rows - n_factors)
        if not own_noise or np.abs(new / widths - 1.0).max() < TOLERANCE:
            break
        widths = new
    return Signal(np.ascontiguousarray(axes), np.maximum(variances, noise), n_factors, widths, float(noise))


def _shrunken_widths(psi: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Widths of the noise of columns, drawn together by the share of their differences that sampling explains.

    Where all columns have the same noise, this is probabilistic principal component analysis.
    """
    logs = np.log(psi)
    logs -= logs.mean()
    sampling, found = 2.0 / n_rows, logs.var()  # variance of the logarithm of an estimated variance
    return np.exp(0.5 * logs * max(1.0 - sampling / found, 0.0)) if found > 0.0 else np.ones(len(psi))


def _covariance(
    Z: NDArray[np.float64], weights: NDArray[np.float64]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """A function that multiplies the covariance matrix of the columns with vectors."""
    total = weights.sum()
    if Z.shape[1] <= min(len(Z), MAX_GRAM):
        C = (Z.T * weights) @ Z / total
        return lambda Q: C @ Q
    return lambda Q: Z.T @ (weights[:, None] * (Z @ Q)) / total


def _multiply_divided(
    multiply: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    widths: NDArray[np.float64],
    Q: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The same for columns that are divided by their widths."""
    return multiply(Q / widths[:, None]) / widths[:, None]


def leading_directions(
    multiply: Callable[[NDArray[np.float64]], NDArray[np.float64]], Q: NDArray[np.float64], n_powers: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Leading eigenvectors [column, direction] and eigenvalues, by powers of a symmetric matrix on a subspace.

    Examples
    --------
    >>> A = np.diag([3.0, 2.0, 1.0, 0.1])
    >>> Q, values = leading_directions(
    ...     lambda Q: A @ Q, np.ones((4, 2)) * [[1, 1], [1, -1], [1, 1], [1, 2]], 30
    ... )
    >>> values.round(6)
    array([3., 2.])
    """
    for _ in range(n_powers):
        Q = np.linalg.qr(multiply(Q))[0]
    values, turns = np.linalg.eigh(Q.T @ multiply(Q))
    return Q @ turns[:, ::-1], np.maximum(values[::-1], 0.0)


# ---- parallel analysis -------------------------------------------------------------------------------------


def sampled_positions(n_rows: int, n_columns: int) -> NDArray[np.intp]:
    """Positions of the rows that parallel analysis looks at, evenly spaced.

    Examples
    --------
    >>> sampled_positions(3, 2), len(sampled_positions(10_000, 2))
    (array([0, 1, 2]), 2000)
    """
    most = min(n_rows, MAX_ROWS, max(MAX_CELLS // n_columns, 100))
    return np.unique(np.linspace(0, n_rows - 1, most).round().astype(np.intp))


def n_beyond_chance(Z: NDArray[np.float64]) -> int:
    """Number of leading directions with more variance than those of columns that were shuffled (parallel analysis).

    At most `MAX_DIRECTIONS` + 1 are counted.
    """
    rng = np.random.default_rng(SEED)
    found = _leading_spectrum(Z)
    columns = np.ascontiguousarray(Z.T)
    n_shuffles = N_SHUFFLES if Z.size <= MANY_CELLS else FEW_SHUFFLES
    shuffled = [_leading_spectrum(rng.permuted(columns, axis=1).T) for _ in range(n_shuffles)]
    below = np.flatnonzero(found <= np.quantile(shuffled, QUANTILE, axis=0))
    return int(below[0]) if len(below) else len(found)


def _leading_spectrum(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest eigenvalues of the covariance matrix, from the smaller of the two products."""
    A = A - A.mean(axis=0)
    product = A.T @ A if A.shape[1] <= len(A) else A @ A.T
    n = len(product)
    first = max(n - MAX_DIRECTIONS - 1, 0)
    return eigh(product, eigvals_only=True, subset_by_index=[first, n - 1])[::-1] / len(A)
