"""Planted wide tables: groups in a subspace of few dimensions, correlated noise, and more columns than rows or not.

A row is ``loadings @ y + nuisance @ g + e``: y lies in its group, g is the same for all groups (correlated noise), and
every column has noise e of its own width. The distance of the groups is chosen for each table so that the oracle, which
knows the law that drew the rows, agrees with the planted labels as the table says. The other half of the tables are
unit vectors: von Mises-Fisher groups around directions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks.quality.overlapping_tables import LEAST_SHARE, PlantedTable, group_sizes, separated

N_CANDIDATES = 20
NOISE = (-0.5, 0.5)  # logarithm of the width of a column's noise


class Wide(NamedTuple):
    """What a planted wide table has; the seed is its own."""

    n_rows: int
    n_columns: int
    n_clusters: int
    n_dimensions: int  # of the subspace of the groups
    n_nuisance: int  # common factors that know nothing of the groups
    agreement: float  # of the oracle with the planted labels
    seed: int


class Directions(NamedTuple):
    """What a planted table of unit vectors has."""

    n_rows: int
    n_columns: int
    n_clusters: int
    agreement: float
    seed: int


PLANTED_WIDE = {
    "wide_50": Wide(400, 50, 4, 3, 2, 0.90, 1), "wide_60_few": Wide(100, 60, 3, 2, 2, 0.95, 2),
    "wide_100": Wide(300, 100, 5, 4, 4, 0.90, 3), "wide_300": Wide(1000, 300, 8, 6, 3, 0.90, 4),
    "wide_500_few": Wide(150, 500, 4, 3, 5, 0.95, 5), "wide_1000": Wide(500, 1000, 6, 5, 8, 0.90, 6),
    "wide_2000_few": Wide(200, 2000, 3, 2, 0, 0.95, 7), "wide_5000": Wide(600, 5000, 5, 4, 6, 0.95, 8),
}  # fmt: skip
PLANTED_WIDE_APART = {
    "wide_40": Wide(500, 40, 6, 4, 0, 0.90, 21), "wide_80_few": Wide(120, 80, 4, 3, 4, 0.95, 22),
    "wide_150": Wide(600, 150, 3, 2, 6, 0.90, 23), "wide_400": Wide(400, 400, 7, 8, 4, 0.90, 24),
    "wide_800_few": Wide(150, 800, 3, 4, 2, 0.95, 25), "wide_1500": Wide(2000, 1500, 10, 7, 5, 0.90, 26),
    "wide_3000_few": Wide(250, 3000, 5, 4, 3, 0.95, 27), "wide_5000_few": Wide(100, 5000, 3, 3, 4, 0.95, 28),
}  # fmt: skip
PLANTED_UNIT = {
    "unit_20": Directions(400, 20, 4, 0.90, 41), "unit_50": Directions(300, 50, 6, 0.90, 42),
    "unit_100_few": Directions(150, 100, 3, 0.95, 43), "unit_384": Directions(600, 384, 8, 0.95, 44),
}  # fmt: skip
PLANTED_UNIT_APART = {
    "unit_30": Directions(600, 30, 7, 0.90, 61), "unit_64": Directions(200, 64, 3, 0.90, 62),
    "unit_200": Directions(500, 200, 5, 0.95, 63), "unit_768_few": Directions(300, 768, 6, 0.95, 64),
}  # fmt: skip


def make_wide(planted: Wide | Directions) -> PlantedTable:
    """Draw a table, at the separation with which the oracle agrees with the labels as ``planted`` says."""
    draw = draw_directions if isinstance(planted, Directions) else draw_wide
    return separated(draw, planted)


def draw_wide(planted: Wide, separation: float) -> PlantedTable:
    """Draw a table of a subspace; all random numbers are the same whatever the separation."""
    N, D, K, r = planted.n_rows, planted.n_columns, planted.n_clusters, planted.n_dimensions
    rng = np.random.default_rng([planted.seed, D, N])
    shares, z = _groups(rng, N, K)
    candidates = rng.normal(
        size=(N_CANDIDATES, K, r)
    )  # the means that are farthest apart, so that no two coincide
    means = candidates[
        np.argmax([pdist(one).min() / np.linalg.norm(one, axis=1).mean() for one in candidates])
    ]
    means *= separation / np.linalg.norm(means, axis=1).mean()
    A = rng.normal(size=(K, r, r))
    covariances = 0.5 * A @ A.transpose(0, 2, 1) / r + 0.3 * np.eye(r)
    y = means[z] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[z], rng.normal(size=(N, r)))
    # columns depend on some of the dimensions; many columns tell a dimension better, so that each tells less
    loadings = rng.normal(size=(D, r)) * (rng.random((D, r)) < 0.5) * min(1.0, np.sqrt(50 / D))
    nuisance = rng.normal(size=(D, planted.n_nuisance)) * min(1.0, np.sqrt(50 / D)) * 1.5
    widths = np.exp(rng.uniform(*NOISE, size=D))
    X = y @ loadings.T + rng.normal(size=(N, planted.n_nuisance)) @ nuisance.T
    X += widths * rng.normal(size=(N, D))
    # (R^-1 loadings) for the covariance R of the noise, by the inverse of a matrix of few rows
    W = loadings / widths[:, None] ** 2
    V = nuisance / widths[:, None] ** 2
    W = W - V @ np.linalg.solve(np.eye(planted.n_nuisance) + nuisance.T @ V, nuisance.T @ W)
    error = np.linalg.inv(loadings.T @ W)
    oracle = _gaussian_oracle(np.log(shares), X @ W @ error, means, covariances + error)
    return PlantedTable(X * np.exp(rng.normal(size=D)), z, oracle)


def draw_directions(planted: Directions, separation: float) -> PlantedTable:
    """Draw unit vectors; the separation is the share of the concentration in its largest value."""
    N, D, K = planted.n_rows, planted.n_columns, planted.n_clusters
    rng = np.random.default_rng([planted.seed, D, N])
    shares, z = _groups(rng, N, K)
    common = rng.normal(size=D)
    means = common + rng.normal(
        size=(K, D)
    )  # directions that have something in common, as those of texts have
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    concentrations = separation * np.sqrt(D) * np.exp(0.2 * rng.normal(size=K))
    seeds = rng.integers(1 << 31, size=K)
    X = np.empty((N, D))
    for k in range(K):
        X[z == k] = draw_von_mises_fisher(
            means[k], concentrations[k], int((z == k).sum()), np.random.default_rng(seeds[k])
        )
    log_p = np.log(shares) + concentrations * (X @ means.T)
    return PlantedTable(X, z, (log_p - _log_bessel_ratio(concentrations, D)).argmax(axis=1))


def draw_von_mises_fisher(mean, concentration: float, n: int, rng) -> np.ndarray:
    """Unit vectors around a direction, by rejection of the cosine (Wood 1994)."""
    D = len(mean)
    b = (D - 1) / (2 * concentration + np.sqrt(4 * concentration**2 + (D - 1) ** 2))
    x0 = (1 - b) / (1 + b)
    bound = concentration * x0 + (D - 1) * np.log1p(-(x0**2))
    cosines = np.empty(0)
    while len(cosines) < n:
        beta = rng.beta((D - 1) / 2, (D - 1) / 2, size=4 * n)
        t = (1 - (1 + b) * beta) / (1 - (1 - b) * beta)
        kept = concentration * t + (D - 1) * np.log1p(-x0 * t) - bound >= np.log(rng.random(4 * n))
        cosines = np.concatenate([cosines, t[kept]])
    t = cosines[:n, None]
    across = rng.normal(size=(n, D))
    across -= (across @ mean)[:, None] * mean
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return t * mean + np.sqrt(1 - t**2) * across


def _log_bessel_ratio(concentrations, D: int):
    """Minus the log of the normalizing constant, apart from what all concentrations share."""
    from scipy.integrate import quad

    # the density of the cosine t is proportional to exp(c t) (1 - t^2)^((D - 3) / 2)
    def one(c):
        t0 = c / ((D - 3) / 2 + np.sqrt(((D - 3) / 2) ** 2 + c * c)) if D > 3 else 1.0
        top = c * t0 + (D - 3) / 2 * np.log1p(-t0 * t0) if t0 < 1 else c
        area = quad(
            lambda t: np.exp(c * t + (D - 3) / 2 * np.log1p(-t * t) - top), -1, 1, points=[t0], limit=200
        )[0]
        return top + np.log(area)

    return np.array([one(c) for c in concentrations])


def _groups(rng, N: int, K: int):
    shares = LEAST_SHARE + (1 - K * LEAST_SHARE) * rng.dirichlet(np.full(K, 2.0))
    return shares, rng.permutation(np.repeat(np.arange(K), group_sizes(shares, N)))


def _gaussian_oracle(log_shares, Y, means, covariances) -> np.ndarray:
    log_p = np.empty((len(Y), len(means)))
    for k, (mean, C) in enumerate(zip(means, covariances)):
        L = np.linalg.cholesky(C)
        u = np.linalg.solve(L, (Y - mean).T)
        log_p[:, k] = log_shares[k] - 0.5 * (u**2).sum(axis=0) - np.log(np.diag(L)).sum()
    return log_p.argmax(axis=1)
