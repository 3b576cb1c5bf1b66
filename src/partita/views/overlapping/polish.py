"""The final polish of real columns: labels given each other, with a variance of its own for every cluster.

The sampler has one noise in a column, which keeps it one joint model with nothing left out. Real clusters are wide and
narrow, and who knows it labels better: here every (view, cluster, column) has a factor of the variance, all are fitted
by a few rounds of expectation and maximisation, the views taking turns, and each row takes its most probable label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from partita.engines.passes.rows import n_cache, n_stats
from partita.families.gaussian import GaussianDiagonal
from partita.families.rows import add_statistics, log_marginals, refresh_clusters, score_rows
from partita.labels import canonical
from partita.partitions import DirichletProcess, log_eppf
from partita.views.overlapping.state import State
from partita.views.overlapping.table import OverlapTable

__all__ = ["Polished", "join_clusters", "label_entropies", "polish", "scaled_residuals"]

ROUNDS = 15
FREEDOM = 10.0  # rows that a variance factor of 1 is worth before the data speak


class Side:
    """The real columns of all views while they are polished."""

    def __init__(self, table: OverlapTable, state: State):
        assert table.real is not None
        found = table.real.parameters(state, state.hyper.effects, None)
        self.seen = ~np.isnan(table.real.X)
        self.weight = self.seen.astype(float)
        self.residual = np.where(self.seen, found.residual, 0.0)
        self.noise = found.noise**2
        self.columns = [np.flatnonzero(y) for y in state.Y[: table.n_real].T]
        self.effects = [e[:, f] for e, f in zip(found.effects, self.columns, strict=True)]
        self.factors = [np.ones_like(e) for e in self.effects]
        self.spread = np.ones_like(self.residual)  # product of the factors of all views of a column
        self.precision = 1.0 / state.hyper.effects.effect

    def take_out(self, v: int, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the other views leave of the columns of view v, and its precision row by row."""
        f = self.columns[v]
        self.spread[:, f] /= R @ self.factors[v]
        return self.residual[:, f] + R @ self.effects[v], self.weight[:, f] / (
            self.spread[:, f] * self.noise[f]
        )

    def score(self, v: int, raw: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        """Log likelihood of each row under each cluster of view v."""
        a, factor = self.effects[v], self.factors[v]
        squares = (raw**2 * inverse) @ (1.0 / factor).T - 2.0 * (raw * inverse) @ (a / factor).T
        squares += inverse @ (a**2 / factor).T + self.weight[:, self.columns[v]] @ np.log(factor).T
        return -0.5 * squares

    def put_back(self, v: int, R: np.ndarray, raw: np.ndarray, inverse: np.ndarray) -> None:
        """Effects and variance factors of view v given its labels."""
        f = self.columns[v]
        n, first, second = R.T @ inverse, R.T @ (raw * inverse), R.T @ (raw**2 * inverse)
        a = first / (n + self.precision / self.noise[f])
        squares = second - 2.0 * a * first + a**2 * n
        self.effects[v] = a
        self.factors[v] = (FREEDOM + squares) / (FREEDOM + R.T @ self.weight[:, f])
        self.residual[:, f] = self.weight[:, f] * (raw - R @ a)
        self.spread[:, f] *= R @ self.factors[v]

    def renew_noise(self) -> None:
        """The noise of each column, the factors being given."""
        squares = (self.residual**2 / self.spread).sum(axis=0)
        self.noise = (squares + 1e-3) / (self.weight.sum(axis=0) + 1e-3)


def scaled_residuals(table: OverlapTable, state: State, n_rounds: int = 3) -> np.ndarray:
    """What the views leave of the real columns, over the width that their clusters have there; the labels are held."""
    side = Side(table, state)
    hard = [np.eye(int(z.max()) + 1)[z] for z in state.Z]
    for _ in range(n_rounds):
        for v, R in enumerate(hard):
            side.put_back(v, R, *side.take_out(v, R))
        side.renew_noise()
    return np.where(side.seen, side.residual / np.sqrt(side.spread * side.noise), np.nan)


def label_entropies(table: OverlapTable, state: State) -> np.ndarray:
    """Entropy of the labels of each view, all rows together, the other views' labels being held."""
    out = np.zeros(state.n_views)
    side = Side(table, state) if table.real is not None and state.Z else None
    for v, z in enumerate(state.Z):
        n = np.bincount(z).astype(float)
        L = np.tile(np.log(n), (table.n_rows, 1))
        if side is not None:
            hot = np.eye(len(n))[z]
            raw, inverse = side.take_out(v, hot)
            L += side.score(v, raw, inverse)
            side.put_back(v, hot, raw, inverse)
        if table.cells is not None:
            L += _cell_scores(table, state, v, len(n))
        L -= logsumexp(L, axis=1, keepdims=True)
        out[v] = -(np.exp(L) * L).sum()
    return out


def join_clusters(table: OverlapTable, state: State) -> State:
    """Join clusters of real columns that are better explained as one, the best pair first; others have a veto."""
    side = Side(table, state)
    Z = list(state.Z)
    prior = DirichletProcess(state.concentration)
    for v, z in enumerate(Z):
        if state.Y[table.n_real :, v].any():
            continue
        R = np.eye(int(z.max()) + 1)[z]
        side.put_back(v, R, *side.take_out(v, R))
        raw, inverse = side.take_out(v, R)
        X = np.where(side.seen[:, side.columns[v]], raw * np.sqrt(inverse), np.nan)
        Z[v] = _joined(np.ascontiguousarray(X), z, prior)
        R = np.eye(int(Z[v].max()) + 1)[Z[v]]
        side.put_back(v, R, raw, inverse)
    return state._replace(Z=tuple(Z))


def _joined(X: np.ndarray, z: np.ndarray, prior: Any) -> np.ndarray:
    family = GaussianDiagonal.default(X.shape[1], k=0.3, a=2.0, b=2.0)
    while z.max() > 0:
        K = int(z.max()) + 1
        S = np.zeros((3 * X.shape[1], K))
        add_statistics(family, X, z, S)
        n = np.bincount(z).astype(float)
        j, k = np.triu_indices(K, 1)
        each = log_marginals(family, S).sum(axis=0)
        gain = log_marginals(family, np.ascontiguousarray(S[:, j] + S[:, k])).sum(axis=0) - each[j] - each[k]
        now = log_eppf(prior, n, K)
        for p in range(len(j)):
            rest = np.append(np.delete(n, [j[p], k[p]]), n[j[p]] + n[k[p]])
            gain[p] += log_eppf(prior, rest, K - 1) - now
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        z = canonical(np.where(z == k[best], j[best], z))
    return z


class Polished:
    """Soft labels [row, cluster] of each view."""

    def __init__(self, soft: list[np.ndarray]):
        self.soft = soft

    @property
    def labels(self) -> list[np.ndarray]:
        """Most probable label of each row in each view, numbered by size."""
        out = []
        for R in self.soft:
            z = R.argmax(axis=1)
            order = np.argsort(-np.bincount(z, minlength=R.shape[1]), kind="stable")
            out.append(np.argsort(order)[z])
        return out

    @property
    def confidence(self) -> np.ndarray:
        """[row, view]: probability of that label, the other views' labels being known."""
        return np.column_stack([R.max(axis=1) for R in self.soft])


def polish(table: OverlapTable, state: State, n_rounds: int = ROUNDS) -> Polished:
    """Soft labels of all views near a state; the number of clusters does not grow."""
    if table.real is not None and state.Z:
        state = join_clusters(table, state)
    soft = [np.eye(int(z.max()) + 1)[z] for z in state.Z]
    side = Side(table, state) if table.real is not None and soft else None
    for round_ in range(n_rounds):
        for v in range(state.n_views):
            n = soft[v].sum(axis=0)
            L = np.tile(np.log((n + 0.5) / (n.sum() + 0.5 * len(n))), (table.n_rows, 1))
            if side is not None:
                raw, inverse = side.take_out(v, soft[v])
                L += side.score(v, raw, inverse)
            if table.cells is not None:
                hard = state._replace(Z=tuple(R.argmax(axis=1) for R in soft))
                L += _cell_scores(table, hard, v, len(n))
            if round_ > 0:
                soft[v] = np.exp(L - logsumexp(L, axis=1, keepdims=True))
            if side is not None:
                side.put_back(v, soft[v], raw, inverse)
        if side is not None:
            side.renew_noise()
    return Polished(soft)


def _cell_scores(table: OverlapTable, state: State, v: int, K: int) -> np.ndarray:
    """Log predictive of each row in each cluster of view v, by the columns that have cells."""
    assert table.cells is not None
    L = np.zeros((table.n_rows, K))
    Y = state.Y[table.n_real :]
    for block in table.cells.row_chunks(state.Z, Y, v, state.hyper.families):
        S, C = np.zeros((n_stats(block.family), K)), np.zeros((n_cache(block.family), K))
        add_statistics(block.family, block.data, state.Z[v].astype(np.int64), S)
        refresh_clusters(block.family, S, C, K)
        score_rows(block.family, block.data, np.arange(table.n_rows), C, L)
    return L
