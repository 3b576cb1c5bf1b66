"""Polishing of labels: an EM algorithm in which every cluster has its own variance in each additive column.

The sampler has one noise variance per column, so that it is a proper joint model with closed-form marginals. Clusters
in data differ in width, and labels improve if this is taken into account. Here the variance of a column is multiplied
by a factor per view and cluster. The factors and the effects are fitted by a few EM iterations, view after view, and
each row takes its most probable label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from partita.dispatch import kernel
from partita.engines.passes.rows import n_cache, n_stats
from partita.families.gaussian import GaussianDiagonal
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals, refresh_clusters, score_rows
from partita.labels import canonical, ordered_by_size
from partita.partitions import DirichletProcess, log_eppf
from partita.views.overlapping.additive import read_reals
from partita.views.overlapping.state import OverlapState, without_views
from partita.views.overlapping.table import OverlapTable

# With more iterations the labels of views of few columns drift: after 15 they fit planted views less well.
N_ITERATIONS = 5
PRIOR_ROWS = 10.0  # weight of the prior variance factor 1, in rows
NO_SCORES = np.zeros((0, 0))


@kernel
def refit_view(
    residual, spread, weight, noise, sizes, z, columns, effects, factors, precision, prior_rows, L
):
    """Take out a view whose labels are certain, fit its effects and variance factors again, and add it, in place.

    Before that, the log likelihood of each row under each cluster is added to ``L``, which may be empty.
    """
    N, K, D = z.shape[0], effects.shape[0], columns.shape[0]
    n, first, second, rows = np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, D))
    log_factors = np.log(factors)
    for i in range(N):
        k, size = z[i], sizes[i]
        for j in range(D):
            d = columns[j]
            spread[i, d] /= factors[k, j]
            raw = residual[i, d] + size * effects[k, j]
            inverse = weight[i, d] / (spread[i, d] * noise[d])
            residual[i, d] = raw
            n[k, j] += size * size * inverse
            first[k, j] += size * raw * inverse
            second[k, j] += raw * raw * inverse
            rows[k, j] += weight[i, d]
            if L.shape[0] > 0:
                for h in range(K):
                    gap = raw - size * effects[h, j]
                    L[i, h] -= 0.5 * (gap * gap * inverse / factors[h, j] + weight[i, d] * log_factors[h, j])
    for k in range(K):
        for j in range(D):
            a = first[k, j] / (n[k, j] + precision / noise[columns[j]])
            squares = second[k, j] - 2.0 * a * first[k, j] + a * a * n[k, j]
            effects[k, j] = a
            factors[k, j] = (prior_rows + squares) / (prior_rows + rows[k, j])
    for i in range(N):
        for j in range(D):
            d = columns[j]
            residual[i, d] = weight[i, d] * (residual[i, d] - sizes[i] * effects[z[i], j])
            spread[i, d] *= factors[z[i], j]


@kernel
def entropy_of_rows(L):
    """Entropy of distributions with these log weights, summed over the rows."""
    total = 0.0
    for i in range(L.shape[0]):
        top = -math.inf
        for k in range(L.shape[1]):
            top = max(top, L[i, k])
        mass, mean = 0.0, 0.0
        for k in range(L.shape[1]):
            p = math.exp(L[i, k] - top)
            mass += p
            if p > 0.0:
                mean += p * (L[i, k] - top)
        total += math.log(mass) - mean / mass
    return total


class PolishedColumns:
    """Effects, variance factors and residuals of the additive columns during polishing; updated in place."""

    def __init__(self, table: OverlapTable, state: OverlapState):
        assert table.additive is not None
        found = table.additive.parameters(state, state.hyper.effects, None)
        self.seen = ~np.isnan(table.additive.X)
        self.weight = self.seen.astype(float)
        self.residual = np.where(self.seen, found.residual, 0.0)
        self.noise = found.noise**2
        self.columns = [np.flatnonzero(y) for y in state.Y[: table.n_additive].T]
        self.effects = [
            np.ascontiguousarray(e[:, f]) for e, f in zip(found.effects, self.columns, strict=True)
        ]
        self.factors = [np.ones_like(e) for e in self.effects]
        self.spread = np.ones_like(self.residual)  # product of the factors of all views of a column
        self.precision = 1.0 / state.hyper.effects.effect
        sizes = state.hyper.effects.sizes
        self.size = np.ones((table.n_rows, 1)) if sizes is None else sizes[:, None]

    def refit(self, v: int, z: np.ndarray, L: np.ndarray = NO_SCORES) -> None:
        """Fit view v again, whose labels are certain; before that, the scores of its clusters are added to ``L``."""
        refit_view(
            self.residual, self.spread, self.weight, self.noise, self.size[:, 0], z, self.columns[v],
            self.effects[v], self.factors[v], self.precision, PRIOR_ROWS, L,
        )  # fmt: skip

    def take_out(self, v: int, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Remove view v: returns the residuals of its columns without its effects, and their precision per row."""
        f = self.columns[v]
        self.spread[:, f] /= R @ self.factors[v]
        return self.residual[:, f] + self.size * (R @ self.effects[v]), self.weight[:, f] / (
            self.spread[:, f] * self.noise[f]
        )

    def score(self, v: int, raw: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        """Log likelihood of each row under each cluster of view v."""
        a, factor = self.effects[v], self.factors[v]
        squares = (raw**2 * inverse) @ (1.0 / factor).T
        squares += (self.size**2 * inverse) @ (a**2 / factor).T
        squares -= 2.0 * (self.size * raw * inverse) @ (a / factor).T
        squares += self.weight[:, self.columns[v]] @ np.log(factor).T
        return -0.5 * squares

    def put_back(self, v: int, R: np.ndarray, raw: np.ndarray, inverse: np.ndarray) -> None:
        """Fit effects and variance factors of view v given its labels, and add it again."""
        f = self.columns[v]
        n, second = R.T @ (self.size**2 * inverse), R.T @ (raw**2 * inverse)
        first = R.T @ (self.size * raw * inverse)
        a = first / (n + self.precision / self.noise[f])
        squares = second - 2.0 * a * first + a**2 * n
        self.effects[v] = a
        self.factors[v] = (PRIOR_ROWS + squares) / (PRIOR_ROWS + R.T @ self.weight[:, f])
        self.residual[:, f] = self.weight[:, f] * (raw - self.size * (R @ a))
        self.spread[:, f] *= R @ self.factors[v]

    def update_noise(self) -> None:
        """Fit the noise variance of each column given the factors."""
        squares = (self.residual**2 / self.spread).sum(axis=0)
        self.noise = (squares + 1e-3) / (self.weight.sum(axis=0) + 1e-3)


def scaled_residuals(
    table: OverlapTable, state: OverlapState, columns: np.ndarray, n_iterations: int = 3
) -> np.ndarray:
    """Residuals of some additive columns, divided by the fitted widths of the clusters; labels are held fixed."""
    assert table.additive is not None
    table = OverlapTable(read_reals(table.additive.X[:, columns]), None)
    state = state._replace(Y=state.Y[columns])
    state = without_views(state, ~state.Y.any(axis=0))
    fit = PolishedColumns(table, state)
    for _ in range(n_iterations):
        for v, z in enumerate(state.Z):
            fit.refit(v, z)
        fit.update_noise()
    return np.where(fit.seen, fit.residual / np.sqrt(fit.spread * fit.noise), np.nan)


def label_entropies(table: OverlapTable, state: OverlapState) -> np.ndarray:
    """Entropy of the labels of each view, summed over rows, given the labels of the other views."""
    out = np.zeros(state.n_views)
    fit = PolishedColumns(table, state) if table.additive is not None and state.Z else None
    for v, z in enumerate(state.Z):
        n = np.bincount(z).astype(float)
        L = np.tile(np.log(n), (table.n_rows, 1))
        if fit is not None:
            fit.refit(v, z, L)
        if table.combined is not None:
            L += _combination_scores(table, state, v, len(n))
        out[v] = entropy_of_rows(L)
    return out


def join_clusters(table: OverlapTable, state: OverlapState) -> OverlapState:
    """Merge pairs of clusters while that increases the score, in views that have additive columns.

    The score is the evidence plus the entropy of the labels, as in searches. Without the entropy all clusters of a view
    of few columns, whose labels are uncertain, would be merged.
    """
    fit = PolishedColumns(table, state)
    Z = list(state.Z)
    prior = DirichletProcess(state.concentration)
    combined = table.deepened(state.hyper)
    for v, z in enumerate(Z):
        if not state.Y[: table.n_additive, v].any():
            continue
        R = np.eye(int(z.max()) + 1)[z]
        fit.put_back(v, R, *fit.take_out(v, R))
        raw, inverse = fit.take_out(v, R)
        X = np.where(fit.seen[:, fit.columns[v]], raw * np.sqrt(inverse), np.nan) / fit.size
        blocks = [
            Block(GaussianDiagonal.default(X.shape[1], k=0.3, a=2.0, b=2.0), np.ascontiguousarray(X), ())
        ]
        if combined is not None:
            blocks += combined.mixture_blocks(Z, state.Y[table.n_additive :], v, state.hyper.families)
        Z[v] = _joined(blocks, z, prior)
        R = np.eye(int(Z[v].max()) + 1)[Z[v]]
        fit.put_back(v, R, raw, inverse)
    return state._replace(Z=tuple(Z))


def _joined(blocks: Sequence[Block], z: np.ndarray, prior: Any) -> np.ndarray:
    while z.max() > 0:
        K = int(z.max()) + 1
        n = np.bincount(z).astype(float)
        j, k = np.triu_indices(K, 1)
        gain = np.zeros(len(j))
        for block in blocks:
            S = np.zeros((n_stats(block.family), K))
            add_statistics(block.family, block.data, z, S)
            each = log_marginals(block.family, S).sum(axis=0)
            both = log_marginals(block.family, np.ascontiguousarray(S[:, j] + S[:, k])).sum(axis=0)
            gain += both - each[j] - each[k]
        now = log_eppf(prior, n, K)
        for p in range(len(j)):
            rest = np.append(np.delete(n, [j[p], k[p]]), n[j[p]] + n[k[p]])
            gain[p] += log_eppf(prior, rest, K - 1) - now
        tried = np.flatnonzero(gain > 0)
        if not len(tried):
            break
        joined = [canonical(np.where(z == k[p], j[p], z)) for p in tried]
        gain = gain[tried] + [_entropy(blocks, one) for one in joined] - _entropy(blocks, z)
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        z = joined[best]
    return z


def _entropy(blocks: Sequence[Block], z: np.ndarray) -> float:
    """Entropy of the labels given their clusters, summed over the rows."""
    K = int(z.max()) + 1
    L = np.tile(np.log(np.bincount(z)), (len(z), 1))
    for block in blocks:
        S, C = np.zeros((n_stats(block.family), K)), np.zeros((n_cache(block.family), K))
        add_statistics(block.family, block.data, z, S)
        refresh_clusters(block.family, S, C, K)
        score_rows(block.family, block.data, np.arange(len(z)), C, L)
    return float(entropy_of_rows(L))


class Polished:
    """Probabilities of the clusters, [row, cluster], in each view."""

    def __init__(self, soft: list[np.ndarray]):
        self.soft = soft

    @property
    def labels(self) -> list[np.ndarray]:
        """Most probable label of each row in each view, the largest cluster first."""
        return [ordered_by_size(R.argmax(axis=1)) for R in self.soft]

    @property
    def confidence(self) -> np.ndarray:
        """Probability of these labels given the labels of the other views: [row, view]."""
        return np.column_stack([R.max(axis=1) for R in self.soft])


def polish(table: OverlapTable, state: OverlapState, n_iterations: int = N_ITERATIONS) -> Polished:
    """Probabilities of the labels of all views, fitted from a state; no cluster is added."""
    if table.additive is not None and state.Z:
        state = join_clusters(table, state)
    soft = [np.eye(int(z.max()) + 1)[z] for z in state.Z]
    fit = PolishedColumns(table, state) if table.additive is not None and soft else None
    for iteration in range(n_iterations):
        for v in range(state.n_views):
            n = soft[v].sum(axis=0)
            L = np.tile(np.log((n + 0.5) / (n.sum() + 0.5 * len(n))), (table.n_rows, 1))
            if fit is not None:
                raw, inverse = fit.take_out(v, soft[v])
                L += fit.score(v, raw, inverse)
            if table.combined is not None:
                hard = state._replace(Z=tuple(R.argmax(axis=1) for R in soft))
                L += _combination_scores(table, hard, v, len(n))
            if iteration > 0:
                soft[v] = np.exp(L - logsumexp(L, axis=1, keepdims=True))
            if fit is not None:
                fit.put_back(v, soft[v], raw, inverse)
        if fit is not None:
            fit.update_noise()
    return Polished(soft)


def _combination_scores(table: OverlapTable, state: OverlapState, v: int, K: int) -> np.ndarray:
    """Log predictive density of each row in each cluster of view v, from the columns with combinations."""
    combined = table.deepened(state.hyper)
    assert combined is not None
    L = np.zeros((table.n_rows, K))
    Y = state.Y[table.n_additive :]
    for block in combined.mixture_blocks(state.Z, Y, v, state.hyper.families):
        S, C = np.zeros((n_stats(block.family), K)), np.zeros((n_cache(block.family), K))
        add_statistics(block.family, block.data, state.Z[v].astype(np.int64), S)
        refresh_clusters(block.family, S, C, K)
        score_rows(block.family, block.data, np.arange(table.n_rows), C, L)
    return L
