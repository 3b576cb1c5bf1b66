"""Row factors: what all columns of a row share beside the clusters of its views.

Every row of a table may have its own brightness, size or style of response, which all its cells share, or the cells of
a group of columns (:mod:`partita.views.overlapping.group_factors`). Clusters of independent columns describe such a
quantity badly, by many clusters along it. Here it is continuous: row i has factors
``f_ir ~ N(0, 1)``, and the part of cell (i, d) that is due to them is ``sum over r of f_ir l_rd`` with loadings l. The
rest of the cell may be multiplied by the size of the row, ``1 + sum over r of f_ir g_r``, with gains g.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.families import Block, GaussianDiagonal
from partita.views.draws import Draw

LOG_2PI = math.log(2.0 * math.pi)
MIN_SIZE = 0.1  # of a row whose cells are divided by it
GAIN_SPREAD = 0.3  # prior standard deviation of a gain


def row_precisions(seen: np.ndarray, loadings: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Posterior precision of the factors of each row, [row, rank, rank].

    ``loadings`` are [rank, column] or, per cell, [rank, row, column]; ``precision`` is that of the noise, per column or
    per cell; ``seen`` says which cells are observed.
    """
    R, D = loadings.shape[0], loadings.shape[-1]
    weight = np.where(seen, precision, 0.0)
    if loadings.ndim == 3:
        return np.einsum("nd,rnd,snd->nrs", weight, loadings, loadings, optimize=True) + np.eye(R)
    products = (loadings[:, None, :] * loadings[None, :, :]).reshape(R * R, D)
    return (weight @ products.T).reshape(len(seen), R, R) + np.eye(R)


def draw_row_factors(
    raw: np.ndarray, loadings: np.ndarray, precision: np.ndarray, rng: np.random.Generator | None
) -> np.ndarray:
    """Draw the factors of each row, [row, rank], from their posterior; without a generator, their means.

    Parameters
    ----------
    raw : ndarray (n_rows, n_columns)
        Cells minus everything but the row factors; NaN where missing.
    loadings : ndarray (rank, n_columns) or (rank, n_rows, n_columns)
        How much each column, or each cell, changes with each factor.
    precision : ndarray (n_columns,) or (n_rows, n_columns)
        Precision of the noise.
    rng : Generator or None
        Source of randomness.

    Examples
    --------
    >>> draw_row_factors(np.array([[1.0, 1.0], [-1.0, np.nan]]), np.ones((1, 2)), np.full(2, 2.0), None)
    array([[ 0.8       ],
           [-0.66666667]])
    """
    seen = ~np.isnan(raw)
    weighted = np.where(seen, raw * precision, 0.0)
    if loadings.ndim == 3:
        weighted = np.einsum("nd,rnd->nr", weighted, loadings)
    else:
        weighted = weighted @ loadings.T
    return _normal_draws(row_precisions(seen, loadings, precision), weighted, rng)


def along_rows(F: np.ndarray, loadings: np.ndarray) -> np.ndarray:
    """What is due to row factors in each cell, for loadings of columns or of cells as in :func:`draw_row_factors`.

    Examples
    --------
    >>> along_rows(np.array([[1.0], [2.0]]), np.array([[3.0]])).ravel()
    array([3., 6.])
    """
    return np.einsum("nr,rnd->nd", F, loadings) if loadings.ndim == 3 else F @ loadings


def row_sizes(F: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Size of each row: the factor by which all its cells differ beside its row factors.

    Examples
    --------
    >>> row_sizes(np.array([[1.0], [-2.0]]), np.array([0.2]))
    array([1.2, 0.6])
    """
    return 1.0 + F @ gain


def safe_sizes(sizes: np.ndarray) -> np.ndarray:
    """Sizes by which cells can be divided: at least ``MIN_SIZE``.

    Examples
    --------
    >>> safe_sizes(np.array([0.8, -0.2]))
    array([0.8, 0.1])
    """
    return np.maximum(sizes, MIN_SIZE)


def regress_on_rows(
    rest: np.ndarray,
    F: np.ndarray,
    weight: np.ndarray,
    spread: float,
    rng: np.random.Generator | None,
    parts: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the loadings [rank, column] given row factors, from their posterior; without a generator, their means.

    ``rest`` holds the cells minus everything but the row factors, NaN where missing; ``weight`` their precisions, 0
    where missing; ``spread`` is the prior variance of a loading; ``parts`` [rank, column] says which columns have a
    part in each factor: the loadings of the others are 0.

    Examples
    --------
    >>> regress_on_rows(
    ...     np.array([[2.0], [-2.0]]), np.array([[1.0], [-1.0]]), np.ones((2, 1)), 1e9, None
    ... ).round(3)
    array([[2.]])
    """
    R, D = F.shape[1], rest.shape[1]
    products = (F[:, :, None] * F[:, None, :]).reshape(len(F), R * R)
    P = (weight.T @ products).reshape(D, R, R) + np.eye(R) / spread
    weighted = (weight * np.where(weight > 0, rest, 0.0)).T @ F
    if parts is None:
        return _normal_draws(P, weighted, rng).T.copy()
    own = parts.T
    P = np.where(own[:, :, None] & own[:, None, :], P, np.eye(R))
    return np.where(parts, _normal_draws(P, np.where(own, weighted, 0.0), rng).T, 0.0)


def _normal_draws(P: np.ndarray, weighted: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
    """Normal vectors with precisions P [item, R, R] and means ``P^-1 weighted``; without a generator, these means."""
    L = np.linalg.cholesky(P)
    half = np.linalg.solve(L, weighted[:, :, None])
    if rng is not None:
        half = half + rng.standard_normal(half.shape)
    return np.ascontiguousarray(np.linalg.solve(L.transpose(0, 2, 1), half)[:, :, 0])


def log_row_volume(seen: np.ndarray, loadings: np.ndarray, precision: np.ndarray) -> float:
    """Sum over rows of ``log sqrt(det(2 pi V))``, where V is the posterior covariance of the factors of a row.

    Examples
    --------
    >>> round(log_row_volume(np.ones((1, 2), bool), np.ones((1, 2)), np.full(2, 2.0)), 4)
    0.1142
    """
    P = row_precisions(seen, loadings, precision)
    return float(0.5 * (P.shape[0] * P.shape[1] * LOG_2PI - np.linalg.slogdet(P)[1].sum()))


def noise_edge(R: np.ndarray) -> float:
    """Largest variance of a direction of independent columns of variance 1 (Marchenko and Pastur)."""
    return (1.0 + math.sqrt(R.shape[1] / len(R))) ** 2


def column_means(X: np.ndarray) -> np.ndarray:
    """Means of the observed cells of each column; 0 for a column without any.

    Examples
    --------
    >>> column_means(np.array([[1.0, np.nan], [3.0, np.nan]]))
    array([2., 0.])
    """
    seen = ~np.isnan(X)
    return np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


def log_standard_normal(F: np.ndarray) -> float:
    """Log prior density of row factors.

    Examples
    --------
    >>> round(log_standard_normal(np.zeros((2, 1))), 4)
    -1.8379
    """
    return float(-0.5 * (F.size * LOG_2PI + (F**2).sum()))


def log_gain_prior(gain: np.ndarray) -> float:
    """Log prior density of the gains, which are normal around 0."""
    return float(
        -0.5 * ((gain / GAIN_SPREAD) ** 2).sum() - len(gain) * (0.5 * LOG_2PI + math.log(GAIN_SPREAD))
    )


class MeanRowFactors(NamedTuple):
    """Row factors, summarized over draws."""

    rows: np.ndarray  # [row, rank]
    loadings: np.ndarray  # [column, rank]
    gain: np.ndarray | None  # [rank]; None if all are 0

    @property
    def sizes(self) -> np.ndarray:
        """Size of each row."""
        return np.ones(len(self.rows)) if self.gain is None else row_sizes(self.rows, self.gain)


def mean_row_factors(draws: Sequence[Draw], n_columns: int) -> MeanRowFactors:
    """Row factors and loadings whose product is nearest to its mean over the draws, and gains for the mean sizes.

    Signs, scales and rotations of row factors are arbitrary and differ between draws; their product is not. Factors of
    the same columns are summarized together: they are uncorrelated, have mean square 1, and come in decreasing order of
    what they explain. Those of all columns come before those of groups of columns.

    Examples
    --------
    >>> one = Draw(
    ...     np.ones((1, 1), bool),
    ...     np.zeros((2, 1), int),
    ...     (),
    ...     0.0,
    ...     0,
    ...     np.ones(2),
    ...     np.array([[1.0], [-1.0]]),
    ...     np.array([[2.0]]),
    ... )
    >>> F, loadings, _ = mean_row_factors([one, one._replace(rows=-one.rows, loadings=-one.loadings)], 1)
    >>> (F @ loadings.T).round(6).tolist()
    [[2.0], [-2.0]]
    """
    n_rows = len(draws[0].labels)
    members: dict[bytes, list[np.ndarray]] = {}  # by the columns with a part: the factors of each draw
    for t, draw in enumerate(draws):
        for r, part in enumerate(draw.loadings != 0):
            found = members.setdefault(part.tobytes(), [np.zeros(0, np.intp) for _ in draws])
            found[t] = np.append(found[t], r)
    rows, loadings = [np.zeros((n_rows, 0))], [np.zeros((n_columns, 0))]
    for part in sorted(members, key=lambda part: -np.frombuffer(part, bool).sum()):
        F, own = _mean_product(draws, members[part])
        rows.append(F)
        loadings.append(np.where(np.frombuffer(part, bool)[:, None], own, 0.0))
    F = np.hstack(rows)
    sized = [draw.rows @ draw.gain for draw in draws if draw.gain is not None]
    gain = None
    if sized and F.shape[1]:
        gain = np.linalg.lstsq(F, np.sum(sized, axis=0) / len(draws), rcond=None)[0]
    return MeanRowFactors(F, np.hstack(loadings), gain)


def _mean_product(draws: Sequence[Draw], chosen: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Factors [row, rank] and loadings [column, rank] of the mean product of some of the factors of each draw."""
    n_rows, rank = len(draws[0].labels), int(np.median([len(which) for which in chosen]))
    Q, R = np.linalg.qr(
        np.hstack([draw.rows[:, which] for draw, which in zip(draws, chosen, strict=True)]) / len(draws)
    )
    product = R @ np.vstack([draw.loadings[which] for draw, which in zip(draws, chosen, strict=True)])
    U, S, V = np.linalg.svd(product, full_matrices=False)
    signs = np.where(V[:rank].sum(axis=1) < 0, -1.0, 1.0)
    scale = math.sqrt(n_rows)
    F = np.ascontiguousarray((Q @ U[:, :rank]) * scale * signs)
    return F, np.ascontiguousarray((V[:rank].T * S[:rank]) * signs / scale)


def remove_row_factors(
    blocks: Sequence[Block], where: Sequence[np.ndarray], found: MeanRowFactors
) -> Sequence[Block]:
    """The blocks with real data minus what is due to row factors, divided by the sizes of the rows."""
    if not found.rows.shape[1]:
        return blocks
    out = []
    for block, columns in zip(blocks, where, strict=True):
        if isinstance(block.family, GaussianDiagonal):
            shift, size = found.rows @ found.loadings[columns].T, safe_sizes(found.sizes)[:, None]
            block = block._replace(data=np.ascontiguousarray((block.data - shift) / size))
        out.append(block)
    return out
