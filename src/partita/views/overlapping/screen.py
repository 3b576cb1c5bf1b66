"""Where views may be: columns that depend on each other, and first labels of the rows in them.

All pairs of columns are screened at once: the one-hot matrix of their quantiles gives every contingency table in one
product. Columns whose dependence is beyond chance are grouped by average linkage.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from partita.families.gaussian import GaussianDiagonal
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals
from partita.labels import canonical
from partita.partitions import DirichletProcess, log_eppf
from partita.views.overlapping.table import seat_rows

__all__ = ["cluster_rows", "group_columns", "independent_parts", "n_directions", "screen_dependence"]

BINS = 5
BEYOND_CHANCE = 5.0  # standard deviations of the dependence of independent columns
SIZES = (2, 3, 4, 6, 8)  # numbers of clusters that first labels try


def screen_dependence(R: np.ndarray) -> np.ndarray:
    """Dependence of all pairs of columns beyond chance, in standard deviations; NaN is missing.

    The larger of two: the likelihood ratio statistic of the table of quantiles, and the squared correlation.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> x[:, 1] += x[:, 0]
    >>> screen_dependence(x).round() > 5
    array([[False,  True, False],
           [ True, False, False],
           [False, False, False]])
    """
    N, D = R.shape
    seen = ~np.isnan(R)
    rank = np.where(seen, R, np.inf).argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    rank = _tied(np.where(seen, R, np.inf), rank)
    bins = np.minimum(rank * BINS // np.maximum(seen.sum(axis=0), 1), BINS - 1)
    hot = np.zeros((N, D, BINS), dtype=np.float32)
    hot[np.arange(N)[:, None], np.arange(D), bins] = seen
    hot = hot.reshape(N, D * BINS)
    table = (hot.T @ hot).astype(float).reshape(D, BINS, D, BINS)
    rows, columns = table.sum(axis=3, keepdims=True), table.sum(axis=1, keepdims=True)
    expected = rows * columns / np.maximum(table.sum(axis=(1, 3), keepdims=True), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 2.0 * np.where(table > 0, table * np.log(table / expected), 0.0).sum(axis=(1, 3))
    freedom = (
        np.maximum((rows > 0).sum(axis=1) - 1, 1)[:, :, 0]
        * np.maximum((columns > 0).sum(axis=3) - 1, 1)[:, 0]
    )
    filled = np.where(seen, R - np.nanmean(R, axis=0, where=seen), 0.0)
    spread = np.sqrt((filled**2).sum(axis=0))
    correlation = (filled / np.where(spread > 0, spread, 1.0)).T @ (
        filled / np.where(spread > 0, spread, 1.0)
    )
    both = seen.astype(np.float32).T @ seen.astype(np.float32)
    out = np.maximum(
        (ratio - freedom) / np.sqrt(2.0 * freedom), (both * correlation**2 - 1.0) / math.sqrt(2.0)
    )
    np.fill_diagonal(out, 0.0)
    return np.maximum(out, 0.0)


def _tied(values: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Equal values have the rank of the first of them: else the order of rows would tell columns apart."""
    out = rank.copy()
    for d in range(values.shape[1]):
        order = np.argsort(rank[:, d])
        x = values[order, d]
        first = np.concatenate([[True], x[1:] != x[:-1]])
        out[order, d] = np.maximum.accumulate(np.where(first, np.arange(len(x)), 0))
    return out


def group_columns(dependence: np.ndarray, least: int = 2, limit: float = BEYOND_CHANCE) -> list[np.ndarray]:
    """Groups of columns that depend on each other, the largest first, those with fewer than ``least`` left out.

    Examples
    --------
    >>> group_columns(np.array([[0.0, 50.0, 0.0], [50.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    [array([0, 1])]
    """
    if len(dependence) < 2:
        return [np.arange(len(dependence))] if len(dependence) >= least else []
    near = np.log1p(dependence)  # a few strong pairs must not hide the rest
    top = max(near.max(), math.log1p(limit))
    far = top - near
    np.fill_diagonal(far, 0.0)
    label = fcluster(linkage(squareform(far, checks=False), "average"), top - math.log1p(limit), "distance")
    groups = [np.flatnonzero(label == g) for g in np.unique(label)]
    return sorted((g for g in groups if len(g) >= least), key=len, reverse=True)


def cluster_rows(A: np.ndarray, rng: np.random.Generator, sizes: tuple[int, ...] = SIZES) -> np.ndarray:
    """First labels of rows: k-means of the best size, then a few sweeps of a mixture of diagonal normals."""
    A = np.where(np.isnan(A), 0.0, A)
    spread = A.std(axis=0)
    A = np.ascontiguousarray((A - A.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    family = GaussianDiagonal.default(A.shape[1], k=0.3, a=2.0, b=1.0)
    tries = [np.zeros(len(A), dtype=np.int64)] + [k_means(A, K, rng) for K in sizes if len(A) >= K]
    best = max(tries, key=lambda z: _evidence(family, A, z))
    return seat_rows([Block(family, A, ())], canonical(best), 1.0, rng, n_sweeps=3, n_moves=15)


def _evidence(family: GaussianDiagonal, A: np.ndarray, z: np.ndarray) -> float:
    z = canonical(z)
    n = np.bincount(z).astype(float)
    S = np.zeros((3 * A.shape[1], len(n)))
    add_statistics(family, A, z, S)
    return float(log_marginals(family, S).sum() + log_eppf(DirichletProcess(1.0), n, len(n)))


def k_means(A: np.ndarray, K: int, rng: np.random.Generator, n_steps: int = 10) -> np.ndarray:
    """Labels of a short k-means from seeds that are spread out."""
    centres = A[[rng.integers(len(A))]]
    for _ in range(K - 1):
        gap = np.maximum((A**2).sum(axis=1)[:, None] - 2 * A @ centres.T + (centres**2).sum(axis=1), 0.0).min(
            axis=1
        )
        at = rng.choice(len(A), p=gap / gap.sum()) if gap.sum() > 0 else rng.integers(len(A))
        centres = np.vstack([centres, A[at]])
    for _ in range(n_steps):
        z = ((centres**2).sum(axis=1) - 2 * A @ centres.T).argmin(axis=1)
        W = np.zeros((len(A), K))
        W[np.arange(len(A)), z] = 1.0
        n = W.sum(axis=0)[:, None]
        centres = np.where(n > 0, (W.T @ A) / np.maximum(n, 1.0), centres)
    return z


def n_directions(R: np.ndarray) -> int:
    """How many directions of the columns vary more than noise would (by Marchenko and Pastur), from 2 to 60."""
    R = np.where(np.isnan(R), 0.0, R)
    spectrum = np.linalg.eigvalsh(R.T @ R / len(R))
    edge = (1.0 + math.sqrt(R.shape[1] / len(R))) ** 2 * float(np.median(spectrum))
    return int(np.clip((spectrum > edge).sum(), 2, 60))


def independent_parts(
    R: np.ndarray, n_parts: int, rng: np.random.Generator, sizes: tuple[int, ...] = SIZES
) -> list[np.ndarray]:
    """Labels from independent components (FastICA with the cube) of columns that several views share."""
    R = np.where(np.isnan(R), 0.0, R)
    U, S, _ = np.linalg.svd(R - R.mean(axis=0), full_matrices=False)
    n_parts = int(min(n_parts, (1e-9 * S[0] < S).sum())) if S[0] > 0 else 0
    if n_parts == 0:
        return []
    X = U[:, :n_parts] * math.sqrt(len(R))
    W = np.linalg.qr(rng.normal(size=(n_parts, n_parts)))[0]
    for _ in range(200):
        left, _, right = np.linalg.svd((X.T @ (X @ W) ** 3) / len(X) - 3.0 * W)
        change = np.abs(np.abs(((left @ right) * W).sum(axis=0)) - 1.0).max()
        W = left @ right
        if change < 1e-3:
            break
    parts = X @ W
    groups = group_columns(screen_dependence(parts), least=1)
    labels = [cluster_rows(parts[:, g], rng, sizes) for g in groups]
    return [z for z in labels if z.max() > 0]
