"""Row factors that a group of dependent columns shares: covariance inside the clusters of a view.

Columns of a view may be correlated inside its clusters, as height and weight are among adults. Clusters of independent
columns describe this by many clusters along the common direction. For each small group of dependent columns, mixtures
of normal clusters with one common covariance are compared: a diagonal one, and one with a few factors beside the
diagonal. Where the Bayesian information criterion (BIC) prefers factors, the columns get these as row factors of their
own; chains then draw them as they draw the factors of all columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from partita.labels import canonical
from partita.views.nuisance import draw_row_factors, noise_edge
from partita.views.overlapping.first_labels import group_columns, k_means, screen_columns

MIN_GROUP, MAX_GROUP = (
    3,
    30,
)  # columns; two have no factor beside their clusters, many have those of all columns
MIN_GROUP_ROWS = 5  # per column of a group
MAX_GROUP_ROWS, MAX_GROUP_RANK = 500, 2  # rows with which the factors of a group are chosen, and their number
MAX_SCREENED = 400  # columns of a table in which groups are looked for
NUMBERS_TRIED = (1, 2, 3, 4, 6, 8, 12)  # of clusters
MAX_PLAIN_CLUSTERS = 4  # with which no factors are tried if they leave noise
PATIENCE = 2  # larger numbers without a better criterion, after which no further ones are tried
N_STARTS = 2  # of EM with factors, from k-means on the columns and on whitened ones
N_EM_STEPS, N_FACTOR_STEPS = 40, 5
MIN_EM_GAIN = 0.1  # nats by which an iteration of EM increases the log likelihood
EDGE_MARGIN = 1.1  # by which a variance exceeds that of the largest direction of noise
MAX_CORRELATION = 5.0  # of factors of different groups, times the square root of the number of rows
MIN_NOISE = 1e-3  # variance of a column beside its factors, of columns with variance 1
NEAR_ROWS, N_NEAR_STEPS = 200, 10  # of the search for near pairs of rows
NEAR_PAIRS_PER_ROW = 10


class TiedMixture(NamedTuple):
    """Normal clusters with the common covariance ``L'L + diag(noise)``."""

    weights: np.ndarray  # [cluster]
    means: np.ndarray  # [cluster, column]
    loadings: np.ndarray  # L, [rank, column]
    noise: np.ndarray  # [column]
    log_likelihood: float
    labels: np.ndarray  # [row]: most probable cluster

    @property
    def rank(self) -> int:
        """Number of factors."""
        return len(self.loadings)

    @property
    def criterion(self) -> float:
        """Log likelihood minus half the number of free parameters times the log of the number of rows (BIC)."""
        (K, D), R = self.means.shape, self.rank
        n_free = K * D + K - 1 + D + R * D - R * (R - 1) / 2
        return self.log_likelihood - 0.5 * n_free * math.log(len(self.labels))


def near_covariance(A: np.ndarray) -> np.ndarray:
    """Covariance inside clusters, from the differences of near pairs of rows: no labels are needed.

    Near is measured with the covariance itself, which is found by turns (Art, Gnanadesikan and Kettenring 1982). Its
    scale is arbitrary.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, f = rng.integers(2, size=400), rng.normal(size=400)
    >>> A = np.column_stack([9 * z + f, f - 9 * z]) + 0.1 * rng.normal(size=(400, 2))
    >>> W = near_covariance(A)  # inside clusters both columns grow with f, over all rows they do not
    >>> bool(W[0, 1] > 0.5), bool(np.cov(A.T)[0, 1] < 0)
    (True, True)
    """
    B = A[np.linspace(0, len(A) - 1, min(len(A), NEAR_ROWS)).astype(int)]
    D, (first, second) = B.shape[1], np.triu_indices(len(B), 1)
    differences = B[first] - B[second]
    W = np.eye(D)
    for _ in range(N_NEAR_STEPS):
        L = np.linalg.cholesky(np.linalg.inv(W))
        gaps = ((differences @ L) ** 2).sum(axis=1)
        near = np.argpartition(gaps, min(NEAR_PAIRS_PER_ROW * len(B), len(gaps) - 1))
        chosen = differences[near[: NEAR_PAIRS_PER_ROW * len(B)]]
        W = chosen.T @ chosen
        W *= D / max(np.trace(W), 1e-300)
        W += MIN_NOISE * np.eye(D)
    return W


def factor_analysis(
    S: np.ndarray, loadings: np.ndarray | None, noise: np.ndarray | None, rank: int, n_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Loadings [rank, column] and noise of a covariance matrix, by EM iterations from given ones or from eigenvectors.

    Examples
    --------
    >>> L = np.array([[1.0, -2.0, 0.5]])
    >>> found, noise = factor_analysis(L.T @ L + np.eye(3), None, None, 1, 500)
    >>> np.abs(found).round(2), noise.round(2)
    (array([[1. , 2. , 0.5]]), array([1., 1., 1.]))
    """
    if rank == 0:
        return np.zeros((0, len(S))), np.maximum(np.diag(S), MIN_NOISE)
    if loadings is None or noise is None:
        values, vectors = np.linalg.eigh(S)
        noise = np.maximum(0.5 * np.diag(S), MIN_NOISE)
        loadings = (vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:] - noise.mean(), 0.01))).T
    for _ in range(n_steps):
        solved = np.linalg.solve(loadings.T @ loadings + np.diag(noise), loadings.T)  # [column, rank]
        moved = S @ solved
        second = np.eye(rank) - loadings @ solved + solved.T @ moved  # moment of the factors
        loadings = np.linalg.solve(second, moved.T)
        noise = np.maximum(np.diag(S - moved @ loadings), MIN_NOISE)
    return loadings, noise


def fit_tied(A: np.ndarray, z: np.ndarray, rank: int) -> TiedMixture:
    """EM for clusters with a common covariance of so many factors, from the labels z."""
    N, D = A.shape
    P, loadings, noise, last = np.eye(int(z.max()) + 1)[z], None, None, -math.inf
    square = A.T @ A
    for step in range(N_EM_STEPS):
        n = P.sum(axis=0) + 1e-9
        means, weights = (P.T @ A) / n[:, None], n / n.sum()
        S = (square - (means.T * n) @ means) / N
        loadings, noise = factor_analysis(S, loadings, noise, rank, N_FACTOR_STEPS * (1 if step else 8))
        L = np.linalg.cholesky(loadings.T @ loadings + np.diag(noise))
        white = np.linalg.solve(L, np.vstack([A, means]).T).T
        rows, centers = white[:N], white[N:]
        log_p = rows @ centers.T - 0.5 * (centers**2).sum(axis=1) + np.log(weights)
        log_p -= 0.5 * (rows**2).sum(axis=1)[:, None]
        log_rows = logsumexp(log_p, axis=1)
        P = np.exp(log_p - log_rows[:, None])
        value = float(log_rows.sum() - N * (np.log(np.diag(L)).sum() + 0.5 * D * math.log(2.0 * math.pi)))
        if value < last + MIN_EM_GAIN:
            break
        last = value
    assert loadings is not None and noise is not None
    return TiedMixture(weights, means, loadings, noise, value, P.argmax(axis=1))


def best_tied(A: np.ndarray, rank: int, starts: list[np.ndarray], rng: np.random.Generator) -> TiedMixture:
    """The number of clusters with the best criterion; labels start from k-means on each of the given coordinates."""
    best, since = fit_tied(A, np.zeros(len(A), np.int64), rank), 0
    for K in NUMBERS_TRIED[1:]:
        if len(A) <= K:
            break
        found = max((fit_tied(A, k_means(B, K, rng), rank) for B in starts), key=lambda one: one.criterion)
        if found.criterion > best.criterion:
            best, since = found, 0
        else:
            since += 1
        if since >= PATIENCE:
            break
    return best


def choose_tied(A: np.ndarray, rng: np.random.Generator) -> TiedMixture:
    """The number of clusters and factors of a group of columns with the best criterion.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, f = rng.integers(2, size=300), rng.normal(size=300)
    >>> X = 5 * np.outer(z, [1, -1, 1, -1]) + rng.normal(size=(300, 4))
    >>> choose_tied(X / X.std(axis=0), rng).rank
    0
    >>> X += 2 * np.outer(f, [1, 1, 1, 1])
    >>> found = choose_tied(X / X.std(axis=0), rng)
    >>> found.rank, len(found.weights)
    (1, 2)
    """
    best = best_tied(A, 0, [A], rng)
    if len(best.weights) <= MAX_PLAIN_CLUSTERS and leaves_noise(A, best):
        return best  # many clusters may be pieces along a factor
    white = A @ np.linalg.cholesky(np.linalg.inv(near_covariance(A)))
    starts = [A, white] * N_STARTS
    best = max(best, best_tied(A, 0, starts, rng), key=lambda one: one.criterion)
    for rank in range(1, min(MAX_GROUP_RANK, _most_factors(A.shape[1])) + 1):
        found = best_tied(A, rank, starts, rng)
        simpler = fit_tied(
            A, canonical(found.labels), rank - 1
        )  # which EM may have missed from its own starts
        if found.criterion <= max(best.criterion, simpler.criterion):
            break
        best = found
    return best


def leaves_noise(A: np.ndarray, found: TiedMixture) -> bool:
    """Whether no direction of the columns varies more inside clusters than a direction of independent noise does.

    Examples
    --------
    >>> A = np.random.default_rng(0).normal(size=(300, 5))
    >>> one = np.zeros(300, np.int64)
    >>> leaves_noise(A, fit_tied(A, one, 0)), leaves_noise(A + A[:, [0]], fit_tied(A + A[:, [0]], one, 0))
    (True, False)
    """
    rest = (A - found.means[found.labels]) / np.sqrt(found.noise)
    largest = np.linalg.eigvalsh(rest.T @ rest / len(A))[-1]
    return bool(largest < EDGE_MARGIN * noise_edge(rest))


def _most_factors(n_columns: int) -> int:
    """The number of factors that a covariance matrix determines."""
    return int((2 * n_columns + 1 - math.sqrt(8 * n_columns + 1)) / 2)


class GroupFactors(NamedTuple):
    """Row factors of groups of columns."""

    rows: np.ndarray  # [row, rank]: means
    parts: np.ndarray  # [rank, column] bool: the columns that have a part in each factor
    rest: np.ndarray  # [row, column]: the table minus what is due to drawn factors
    labels: tuple[np.ndarray, ...]  # of the rows, in each group with factors

    @property
    def labeled(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """The columns (bool) of each group with factors, and its labels."""
        columns = list(dict.fromkeys(tuple(part) for part in self.parts.tolist()))
        return tuple((np.array(own), z) for own, z in zip(columns, self.labels, strict=True))


def find_group_factors(
    X: np.ndarray,
    sampled: np.ndarray,
    rng: np.random.Generator,
    is_late: Callable[[], bool] = lambda: False,
) -> GroupFactors:
    """Row factors of the groups of dependent columns of a table.

    There are none if those of different groups are correlated: then they are parts of a factor of all columns.

    Parameters
    ----------
    X : ndarray (n_rows, n_columns)
        Standardized columns, NaN where missing.
    sampled : ndarray of int
        Rows with which the factors are looked for.
    rng : Generator
        Source of randomness.
    is_late : callable
        Once it returns True, the search ends with the factors found so far.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 6))
    >>> X[:, :4] += 2 * rng.normal(size=(300, 1))
    >>> find_group_factors(X, np.arange(300), rng).parts
    array([[ True,  True,  True,  True, False, False]])
    """
    N, D = X.shape
    R, rest = X[sampled], X.copy()
    some = np.linspace(0, len(R) - 1, min(len(R), MAX_GROUP_ROWS)).astype(int)
    rows, parts, labels = [], [], []
    groups = group_columns(screen_columns(R), MIN_GROUP) if MIN_GROUP <= D <= MAX_SCREENED else []
    for group in groups:
        if len(group) > MAX_GROUP or len(R) < MIN_GROUP_ROWS * len(group) or is_late():
            continue
        center, spread = np.nanmean(R[:, group], axis=0), np.nanstd(R[:, group], axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        A = (X[:, group] - center) / spread
        found = choose_tied(np.nan_to_num(A[sampled[some]]), rng)
        if found.rank:
            z = place_in_tied(A, found)
            labels.append(z)
            raw = A - found.means[z]
            rows.append(draw_row_factors(raw, found.loadings, 1.0 / found.noise, None))
            parts += [np.isin(np.arange(D), group)] * found.rank
            # what the means of the factors leave in the columns is still correlated
            drawn = draw_row_factors(raw, found.loadings, 1.0 / found.noise, rng)
            rest[:, group] -= drawn @ found.loadings * spread
    if not rows or are_correlated(rows):
        return no_group_factors(X)
    return GroupFactors(np.hstack(rows), np.array(parts, bool), rest, tuple(labels))


def no_group_factors(X: np.ndarray) -> GroupFactors:
    """The result for a table without such factors."""
    return GroupFactors(np.zeros((len(X), 0)), np.zeros((0, X.shape[1]), bool), X, ())


def are_correlated(rows: list[np.ndarray]) -> bool:
    """Whether factors of different groups depend on each other, as parts of one factor of all columns do.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> one, other = rng.normal(size=(2, 500, 1))
    >>> are_correlated([one, other]), are_correlated([one, other, one + other])
    (False, True)
    """
    group = np.repeat(np.arange(len(rows)), [F.shape[1] for F in rows])
    C = np.corrcoef(np.hstack(rows).T).reshape(len(group), len(group))
    return bool(
        np.abs(C[group[:, None] != group]).max(initial=0.0) > MAX_CORRELATION / math.sqrt(len(rows[0]))
    )


def place_in_tied(A: np.ndarray, found: TiedMixture) -> np.ndarray:
    """Most probable cluster of each row; cells may be missing."""
    precision, scores = 1.0 / found.noise, []
    for mean, weight in zip(found.means, found.weights, strict=True):
        F = draw_row_factors(A - mean, found.loadings, precision, None)
        gap = np.nan_to_num(A - mean - F @ found.loadings)
        scores.append(np.log(weight) - 0.5 * (gap**2 @ precision + (F**2).sum(axis=1)))
    return np.argmax(scores, axis=0)
