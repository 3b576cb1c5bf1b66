"""First labels of the rows for views, from groups of dependent columns or from independent components."""

from __future__ import annotations

import math

import numpy as np

from partita.engines.gibbs.split_merge import sample_labels
from partita.families.gaussian import GaussianDiagonal
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals
from partita.labels import canonical
from partita.partitions import DirichletProcess, log_eppf
from partita.views.screening import MIN_EXCESS, dependence_excess, linked_groups

N_BINS = 5  # quantiles that a column is cut into for screening
N_CLUSTERS_TRIED = (2, 3, 4, 6, 8)
MAX_COMPONENTS = 60
MAX_ICA_ITERATIONS = 200


def screen_columns(R: np.ndarray) -> np.ndarray:
    """Dependence of all pairs of columns of numbers, NaN where missing: see :func:`partita.views.screening`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> x[:, 1] += x[:, 0]
    >>> screen_columns(x) > MIN_EXCESS
    array([[False,  True, False],
           [ True, False, False],
           [False, False, False]])
    """
    seen = ~np.isnan(R)
    values = np.where(seen, R, np.inf)
    rank = _shared_ranks(values, values.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable"))
    bins = np.minimum(rank * N_BINS // np.maximum(seen.sum(axis=0), 1), N_BINS - 1)
    return dependence_excess(list(np.where(seen, bins, -1).T), R)


def _shared_ranks(values: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Give equal values the rank of the first of them, so that bins do not depend on the order of the rows."""
    out = rank.copy()
    for d in range(values.shape[1]):
        order = np.argsort(rank[:, d])
        x = values[order, d]
        first = np.concatenate([[True], x[1:] != x[:-1]])
        out[order, d] = np.maximum.accumulate(np.where(first, np.arange(len(x)), 0))
    return out


def group_columns(dependence: np.ndarray, min_size: int = 2) -> list[np.ndarray]:
    """Groups of columns that depend on each other, the largest first, without those smaller than ``min_size``.

    Examples
    --------
    >>> group_columns(np.array([[0.0, 50.0, 0.0], [50.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    [array([0, 1])]
    """
    # The logarithm keeps a few strong pairs from dominating the averages.
    groups = linked_groups(np.log1p(dependence), math.log1p(MIN_EXCESS))
    return sorted((g for g in groups if len(g) >= min_size), key=len, reverse=True)


def cluster_rows(
    A: np.ndarray, rng: np.random.Generator, sizes: tuple[int, ...] = N_CLUSTERS_TRIED
) -> np.ndarray:
    """Labels of the rows: k-means with the best number of clusters, then Gibbs sweeps of a Gaussian mixture."""
    A = np.where(np.isnan(A), 0.0, A)
    spread = A.std(axis=0)
    A = np.ascontiguousarray((A - A.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    family = GaussianDiagonal.default(A.shape[1], k=0.3, a=2.0, b=1.0)
    tries = [np.zeros(len(A), dtype=np.int64)] + [k_means(A, K, rng) for K in sizes if len(A) >= K]
    best = max(tries, key=lambda z: _evidence(family, A, z))
    prior = DirichletProcess(1.0)
    return sample_labels([Block(family, A, ())], canonical(best), prior, rng, n_sweeps=3, n_moves=15)


def _evidence(family: GaussianDiagonal, A: np.ndarray, z: np.ndarray) -> float:
    z = canonical(z)
    n = np.bincount(z).astype(float)
    S = np.zeros((3 * A.shape[1], len(n)))
    add_statistics(family, A, z, S)
    return float(log_marginals(family, S).sum() + log_eppf(DirichletProcess(1.0), n, len(n)))


def k_means(A: np.ndarray, K: int, rng: np.random.Generator, n_steps: int = 10) -> np.ndarray:
    """Labels from a few k-means iterations, started from k-means++ seeds."""
    squares = (A**2).sum(axis=1)
    centers = A[[rng.integers(len(A))]]
    nearest = np.full(len(A), np.inf)
    for _ in range(K - 1):
        last = centers[-1]
        nearest = np.minimum(nearest, np.maximum(squares - 2 * (A @ last) + last @ last, 0.0))
        total = nearest.sum()
        at = rng.choice(len(A), p=nearest / total) if total > 0 else rng.integers(len(A))
        centers = np.vstack([centers, A[at]])
    z = np.full(len(A), -1)
    for _ in range(n_steps):
        before, z = z, ((centers**2).sum(axis=1) - 2 * A @ centers.T).argmin(axis=1)
        if np.array_equal(before, z):
            break
        W = np.zeros((len(A), K))
        W[np.arange(len(A)), z] = 1.0
        n = W.sum(axis=0)[:, None]
        centers = np.where(n > 0, (W.T @ A) / np.maximum(n, 1.0), centers)
    return z


def n_directions(R: np.ndarray) -> int:
    """Number of principal directions above the Marchenko-Pastur edge of noise, from 2 to ``MAX_COMPONENTS``."""
    R = np.where(np.isnan(R), 0.0, R)
    spectrum = np.linalg.eigvalsh(R.T @ R / len(R))
    edge = (1.0 + math.sqrt(R.shape[1] / len(R))) ** 2 * float(np.median(spectrum))
    return int(np.clip((spectrum > edge).sum(), 2, MAX_COMPONENTS))


def independent_components(
    R: np.ndarray, n_components: int, rng: np.random.Generator, sizes: tuple[int, ...] = N_CLUSTERS_TRIED
) -> list[np.ndarray]:
    """Labels of the rows from independent components of the columns (FastICA with a cubic contrast)."""
    R = np.where(np.isnan(R), 0.0, R)
    U, S, _ = np.linalg.svd(R - R.mean(axis=0), full_matrices=False)
    n_components = int(min(n_components, (1e-9 * S[0] < S).sum())) if S[0] > 0 else 0
    if n_components == 0:
        return []
    X = U[:, :n_components] * math.sqrt(len(R))
    W = np.linalg.qr(rng.normal(size=(n_components, n_components)))[0]
    for _ in range(MAX_ICA_ITERATIONS):
        parts = X @ W
        left, _, right = np.linalg.svd((X.T @ (parts * parts * parts)) / len(X) - 3.0 * W)
        change = np.abs(np.abs(((left @ right) * W).sum(axis=0)) - 1.0).max()
        W = left @ right
        if change < 1e-3:
            break
    components = X @ W
    groups = group_columns(screen_columns(components), min_size=1)
    labels = [cluster_rows(components[:, g], rng, sizes) for g in groups]
    return [z for z in labels if z.max() > 0]
