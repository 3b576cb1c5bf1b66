"""Laws of one cell: statistics, marginals, the predictive cache, and the curvature of collapsed inference."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from partita.families import contract, n_rows
from partita.families.contract import (
    datum,
    log_marginal,
    n_columns,
    observe,
    ready,
    refresh,
    score,
    score_own,
    spread,
    spread_start,
    stats_start,
    touch,
)
from partita.families.rows import log_marginals
from partita.testing.grids import grid
from partita.testing.laws import (
    agree,
    columns,
    complete,
    law,
    measurable,
    nested_statistics,
    predictives,
    rows_statistics,
    slices,
)

# ---- statistics and the predictive cache -------------------------------------------------------------------


@law("add and remove", "observe(x, +1) then observe(x, -1) = nothing, observe(x, 2) = observe(x, 1) twice")
def _(lik, data, rng):
    for d in columns(lik):
        rows, _ = slices(lik, d)
        s = np.zeros(rows.stop - rows.start)
        for i in range(n_rows(data)):
            x = datum(lik, data, i, d)
            once, twice = s.copy(), s.copy()
            observe(lik, d, twice, x, 2.0)
            observe(lik, d, once, x, 1.0)
            observe(lik, d, once, x, 1.0)
            agree("add and remove", lik, twice, once, where=f"column {d}, object {i}")
            observe(lik, d, s, x, 1.0)
        for i in rng.permutation(n_rows(data)):
            observe(lik, d, s, datum(lik, data, i, d), -1.0)
        agree("add and remove", lik, s, 0.0, where=f"column {d}")


@law("chain rule", "sum_i log p(x_i | x_1 .. x_{i-1}) = log_marginal(S)")
def _(lik, data, rng):
    """In a random order, with the cache updated by ``touch`` only."""
    for d in columns(lik):
        rows, height = slices(lik, d)
        s, c, out = np.zeros(rows.stop - rows.start), np.zeros((height, 1)), np.zeros(1)
        refresh(lik, d, s, c, 0)
        for i in rng.permutation(n_rows(data)):
            x = datum(lik, data, i, d)
            score(lik, d, c, x, 1, out)
            observe(lik, d, s, x, 1.0)
            touch(lik, d, s, c, 0, x)
        agree("chain rule", lik, out[0], log_marginal(lik, d, s), where=f"column {d}")


@law("merge", "log_marginal(S_a + S_b) = log_marginal(S_a) + log p(b | a)")
def _(lik, data, rng):
    T = rows_statistics(lik, data)
    order = rng.permutation(T.shape[1])
    a, b = order[: len(order) // 2], order[len(order) // 2 :]
    joined = log_marginals(lik, T.sum(axis=1, keepdims=True)).sum()
    left = T[:, a].sum(axis=1, keepdims=True)
    right = log_marginals(lik, left).sum()
    for i in b:
        right += predictives(lik, left, data)[i, 0]
        left = left + T[:, [i]]
    agree("merge", lik, joined, right)


@law("touch", "touch after any walk of additions and removals = refresh")
def _(lik, data, rng):
    for d in columns(lik):
        rows, height = slices(lik, d)
        s, c, fresh = np.zeros(rows.stop - rows.start), np.zeros((height, 2)), np.zeros((height, 2))
        inside = np.zeros(n_rows(data), bool)
        refresh(lik, d, s, c, 1)
        for step in range(10 * len(inside)):
            i = int(rng.integers(len(inside)))
            x = datum(lik, data, i, d)
            observe(lik, d, s, x, -1.0 if inside[i] else 1.0)
            inside[i] = not inside[i]
            touch(lik, d, s, c, 1, x)
            refresh(lik, d, s, fresh, 1)
            agree("touch", lik, c, fresh, 1e-8, where=f"column {d}, step {step}")


@law("ready", "score after ready(x) = score after refresh")
def _(lik, data, rng):
    S = nested_statistics(lik, data)
    for d in columns(lik):
        rows, height = slices(lik, d)
        c, ready_score, fresh_score = np.zeros((height, 1)), np.zeros(1), np.zeros(1)
        for k in range(S.shape[1]):
            for i in range(n_rows(data)):
                x = datum(lik, data, i, d)
                ready_score[:], fresh_score[:] = 0.0, 0.0
                ready(lik, d, S[rows, k].copy(), c, x)
                score(lik, d, c, x, 1, ready_score)
                fresh = np.zeros((height, 1))
                refresh(lik, d, S[rows, k].copy(), fresh, 0)
                score(lik, d, fresh, x, 1, fresh_score)
                agree("ready", lik, ready_score, fresh_score, where=f"column {d}, object {i}, cluster {k}")


@law("predictive", "score(x) = log_marginal(S + t(x)) - log_marginal(S)")
def _(lik, data, rng):
    S, T = nested_statistics(lik, data), rows_statistics(lik, data)
    with_x = np.stack([log_marginals(lik, S + T[:, [i]]).sum(axis=0) for i in range(T.shape[1])])
    without = log_marginals(lik, S).sum(axis=0)
    agree("predictive", lik, predictives(lik, S, data), with_x - without)


@law("predictive is a density", "sum over all x of p(x | data) = 1", measurable)
def _(lik, data, rng):
    S = (
        nested_statistics(lik, data)
        if complete(lik, data)
        else np.zeros((stats_start(lik, n_columns(lik)), 1))
    )
    for d in columns(lik):
        nodes, log_weights = grid(lik, d)
        total = logsumexp(predictives(lik, S, nodes) + log_weights[:, None], axis=0)
        agree("predictive is a density", lik, np.exp(total), 1.0, 1e-5, where=f"column {d}")


@law("own", "log(acc[0] / acc[1]) + acc[2] of score_own(x) = log_marginal(S) - log_marginal(S - t(x))")
def _(lik, data, rng):
    S, T = nested_statistics(lik, data)[:, -1], rows_statistics(lik, data)
    for d in columns(lik):
        rows, height = slices(lik, d)
        c = np.zeros((height, 1))
        refresh(lik, d, S[rows].copy(), c, 0)
        for i in range(n_rows(data)):
            acc = np.array([1.0, 1.0, 0.0])
            score_own(lik, d, S[rows].copy(), c, 0, datum(lik, data, i, d), acc)
            right = log_marginal(lik, d, S[rows]) - log_marginal(lik, d, S[rows] - T[rows, i])
            left = np.log(acc[0] / acc[1]) + acc[2]
            agree("own", lik, left, right, where=f"column {d}, object {i}")


# ---- the second order of collapsed inference ---------------------------------------------------------------


def _curved(lik: Any, data: Any) -> bool:
    has = all(any(cls in g.table for cls in type(lik).__mro__) for g in (spread, contract.curvature))
    return has and complete(lik, data)


@law("curvature", "curvature(x) = 1/2 sum_i q_i d^2/de^2 log p(x | S + e t(x_i))", _curved)
def _(lik, data, rng):
    T = rows_statistics(lik, data)
    q = rng.uniform(0.05, 0.25, T.shape[1])
    for d in columns(lik):
        rows, _ = slices(lik, d)
        s, e = T[rows].sum(axis=1), 1e-3
        v = np.zeros(int(spread_start(lik, d + 1) - spread_start(lik, d)))
        for i in range(len(q)):
            spread(lik, d, v, datum(lik, data, i, d), q[i])

        def log_p(s, t, d=d):
            return log_marginal(lik, d, s + t) - log_marginal(lik, d, s)

        for i in range(min(len(q), 4)):
            t = T[rows, i]
            right = 0.0
            for j in range(len(q)):
                u = e * T[rows, j]
                right += 0.5 * q[j] * (log_p(s + u, t) - 2 * log_p(s, t) + log_p(s - u, t)) / e**2
            left = contract.curvature(lik, d, s.copy(), v.copy(), datum(lik, data, i, d))
            agree("curvature", lik, left, right, 1e-5, where=f"column {d}, object {i}")
