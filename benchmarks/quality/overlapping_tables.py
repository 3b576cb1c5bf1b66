"""Planted tables whose groups overlap: Gaussian ones, and skewed ones with lumps at zero and rounded cells.

Groups have unequal sizes and covariances of their own. The distance between the means is chosen for each table so that
the oracle, which knows the law that drew the rows, agrees with the planted labels as the table says; how much groups
overlap is thus the same in few columns and in many. A skewed table has log-normal columns (correlated within a group),
gamma columns and some normal ones; some of them are zero with a probability that depends on the group, and some are
rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

N_BISECTIONS, MOST_SEPARATION = 25, 30.0
LEAST_SHARE = 0.04  # of the rows, in a group
SPREAD = np.log(1.35)  # of the widths of groups
SKEWS = (0.5, 1.1)  # standard deviation of the logarithm of a log-normal column, within a group
SHAPES = (0.8, 4.0)  # of gamma columns
ROUNDED_LEVELS = (8, 40)  # cells of a rounded column between its quartiles, about


class Planted(NamedTuple):
    """What a planted table has; the seed is its own."""

    kind: str
    n_rows: int
    n_columns: int
    n_clusters: int
    agreement: float  # of the oracle with the planted labels
    seed: int


class PlantedTable(NamedTuple):
    """Rows, planted labels, and those of the oracle."""

    X: np.ndarray
    labels: np.ndarray
    oracle: np.ndarray


_G, _S = "gaussian", "skewed"
PLANTED = {
    "gaussian_2a": Planted(_G, 200, 2, 3, 0.85, 1), "gaussian_2b": Planted(_G, 800, 2, 6, 0.75, 2),
    "gaussian_3": Planted(_G, 300, 3, 4, 0.90, 3), "gaussian_4": Planted(_G, 400, 4, 2, 0.92, 4),
    "gaussian_5": Planted(_G, 500, 5, 5, 0.80, 5), "gaussian_6": Planted(_G, 300, 6, 3, 0.95, 6),
    "gaussian_8": Planted(_G, 900, 8, 7, 0.85, 7), "gaussian_10a": Planted(_G, 400, 10, 3, 0.90, 8),
    "gaussian_10b": Planted(_G, 1200, 10, 8, 0.80, 9), "gaussian_12": Planted(_G, 600, 12, 4, 0.95, 10),
    "gaussian_15": Planted(_G, 900, 15, 5, 0.90, 11), "gaussian_20a": Planted(_G, 600, 20, 3, 0.85, 12),
    "gaussian_20b": Planted(_G, 1200, 20, 6, 0.95, 13),
    "skewed_2a": Planted(_S, 300, 2, 2, 0.85, 14), "skewed_2b": Planted(_S, 700, 2, 4, 0.75, 15),
    "skewed_3": Planted(_S, 400, 3, 3, 0.90, 16), "skewed_4": Planted(_S, 500, 4, 5, 0.80, 17),
    "skewed_5": Planted(_S, 300, 5, 2, 0.95, 18), "skewed_6": Planted(_S, 800, 6, 6, 0.85, 19),
    "skewed_8": Planted(_S, 500, 8, 3, 0.90, 20), "skewed_10": Planted(_S, 1200, 10, 8, 0.85, 21),
    "skewed_12": Planted(_S, 600, 12, 4, 0.90, 22), "skewed_14": Planted(_S, 900, 14, 5, 0.95, 23),
    "skewed_17": Planted(_S, 700, 17, 3, 0.85, 24), "skewed_20": Planted(_S, 1000, 20, 6, 0.95, 25),
}  # fmt: skip


def make_planted(planted: Planted) -> PlantedTable:
    """Draw a table, at the separation with which the oracle agrees with the labels as ``planted`` says."""
    return separated(draw_table, planted)


def separated(draw: Callable[[Any, float], PlantedTable], planted: Any) -> PlantedTable:
    """Draw a table at the smallest separation with which the oracle agrees as well as ``planted.agreement``."""
    from partita.metrics import adjusted_rand

    low, high = 0.0, MOST_SEPARATION
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        table = draw(planted, middle)
        enough = adjusted_rand(table.labels, table.oracle) >= planted.agreement
        low, high = (low, middle) if enough else (middle, high)
    return draw(planted, high)


def draw_table(planted: Planted, separation: float) -> PlantedTable:
    """Draw a table; all random numbers are the same whatever the separation."""
    rng = np.random.default_rng([planted.seed, planted.n_columns, planted.n_rows])
    N, D, K = planted.n_rows, planted.n_columns, planted.n_clusters
    shares = LEAST_SHARE + (1 - K * LEAST_SHARE) * rng.dirichlet(np.full(K, 2.0))
    z = rng.permutation(np.repeat(np.arange(K), group_sizes(shares, N)))
    directions = rng.normal(size=(K, D))
    means = separation * directions / np.linalg.norm(directions, axis=1).mean()
    factors = _factors(rng, K, D)
    Y = means[z] + np.einsum("nij,nj->ni", factors[z], rng.normal(size=(N, D)))
    if planted.kind == "gaussian":
        return PlantedTable(Y, z, _oracle(np.log(shares), Y, means, factors, np.zeros((N, K))))
    gamma = rng.permutation(D) < D // 4
    shapes = rng.uniform(*SHAPES, size=D)
    bare = rng.standard_gamma(shapes, size=(N, D))  # of unit scale
    log_scales = means / np.sqrt(shapes)  # so that means are as far apart as those of the other columns
    X = np.exp(rng.uniform(*SKEWS, size=D) * Y)
    X[:, gamma] = (bare * np.exp(log_scales[z]))[:, gamma]
    plain = ~gamma & (rng.permutation(D) < D // 4)
    X[:, plain] = Y[:, plain]
    lumped = ~plain & (rng.random(D) < 0.4)
    zero = lumped & (rng.random((N, D)) < (p_zero := rng.beta(1.0, 2.0, size=(K, D)))[z])
    log_rest = _log_gamma(X, log_scales, shapes, gamma & ~lumped, zero)
    log_rest += _log_gamma(X, log_scales, shapes, gamma & lumped, zero)
    log_rest += zero[:, lumped] @ np.log(p_zero[:, lumped].T) + ~zero[:, lumped] @ np.log1p(
        -p_zero[:, lumped].T
    )
    hidden = zero | gamma  # from the normal part of the law
    oracle = _oracle(np.log(shares), np.where(hidden, np.nan, Y), means, factors, log_rest)
    X[zero] = 0.0
    for d in np.flatnonzero(rng.random(D) < 0.4):
        X[:, d] = _rounded(X[:, d], rng.integers(*ROUNDED_LEVELS))
    return PlantedTable(X, z, oracle)


def group_sizes(shares: np.ndarray, n_rows: int) -> np.ndarray:
    """Whole numbers of rows, nearly in these shares."""
    ends = np.round(np.cumsum(shares) * n_rows).astype(int)
    return np.diff(np.concatenate([[0], ends]))


def _factors(rng: np.random.Generator, K: int, D: int) -> np.ndarray:
    """Cholesky factors of covariances 0.7 A A'/D + 0.3 I, times a width per group."""
    A = rng.normal(size=(K, D, D))
    covariances = 0.7 * A @ A.transpose(0, 2, 1) / D + 0.3 * np.eye(D)
    widths = np.exp(SPREAD * rng.normal(size=K))
    return np.linalg.cholesky(covariances) * widths[:, None, None]


def _log_gamma(X, log_scales, shapes, columns, zero) -> np.ndarray:
    """Log density of gamma columns per group, apart from terms that are the same in all groups; zeros add nothing."""
    seen = ~zero[:, columns]
    scales = np.exp(log_scales[:, columns])
    return (
        -np.where(seen, X[:, columns], 0.0) @ (1.0 / scales).T
        - seen @ (shapes[columns] * log_scales[:, columns]).T
    )


def _oracle(log_shares, Y, means, factors, log_rest) -> np.ndarray:
    """The most probable group of each row; NaN in ``Y`` is integrated out."""
    log_p = log_shares + log_rest
    patterns, which = np.unique(np.isnan(Y), axis=0, return_inverse=True)
    for p, hidden in enumerate(patterns):
        rows, seen = np.flatnonzero(which.ravel() == p), ~hidden
        if not seen.any():
            continue
        for k in range(len(means)):
            L = np.linalg.cholesky((factors[k] @ factors[k].T)[np.ix_(seen, seen)])
            u = np.linalg.solve(L, (Y[np.ix_(rows, seen)] - means[k, seen]).T)
            log_p[rows, k] -= 0.5 * (u**2).sum(axis=0) + np.log(np.diag(L)).sum()
    return log_p.argmax(axis=1)


def _rounded(x: np.ndarray, n_levels: int) -> np.ndarray:
    """Cells rounded to a power of ten, or its half or fifth, of about ``n_levels`` steps between the quartiles."""
    width = np.subtract(*np.quantile(x, [0.75, 0.25])) or x.std()
    wanted = width / n_levels
    decade = 10.0 ** np.floor(np.log10(wanted))
    step = decade * max(m for m in (1.0, 2.0, 5.0) if m * decade <= wanted)
    return np.round(x / step) * step
