"""Loops over rows, shared by all families: the kernels that engines call for each block."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from partita.dispatch import kernel
from partita.families.contract import (
    cache_start,
    curvature,
    datum,
    fill_log_marginals,
    n_columns,
    observe,
    project,
    ready,
    refresh,
    scatter_column,
    score,
    spread,
    spread_start,
    stats_start,
)


@kernel
def project_rows(lik, data, rows, theta, L):
    """``L[j] += log p(x_rows[j] | theta_k)``, with hidden coordinates integrated out."""
    for d in range(n_columns(lik)):
        block = theta[stats_start(lik, d) : stats_start(lik, d + 1)]
        for j in range(rows.shape[0]):
            project(lik, d, block, datum(lik, data, rows[j], d), L, j)


@kernel
def add_statistics(lik, data, z, S):
    """``S[:, z_i] += t(x_i)``."""
    for d in range(n_columns(lik)):
        s = S[stats_start(lik, d) : stats_start(lik, d + 1)]
        for i in range(z.shape[0]):
            observe(lik, d, s[:, z[i]], datum(lik, data, i, d), 1.0)


@kernel
def scatter_rows(lik, data, rows, theta, R, S):
    """``S += sum over rows of r t(x)``; return the term of hidden coordinates in the variational bound."""
    hidden = 0.0
    for d in range(n_columns(lik)):
        lo, hi = stats_start(lik, d), stats_start(lik, d + 1)
        hidden += scatter_column(lik, d, S[lo:hi], theta[lo:hi], data, rows, R)
    return hidden


LOG_ZERO = -800.0  # its exponential is 0 in double precision, and 0 times it is 0, unlike 0 times -inf


def normalize_rows(L: np.ndarray, w: np.ndarray, sums: np.ndarray) -> None:
    """Turn log joints into weighted responsibilities in place.

    Adds two numbers to ``sums``: the weighted log-sum-exp (log likelihood) and the weighted entropy of the labels. A
    row whose probability is zero in every cluster gets equal responsibilities and a log likelihood of -inf.

    The exponentials are taken by numpy, which is vectorized; a compiled loop would take them one by one.
    """
    top = np.empty(len(L))
    shift_rows(L, top)
    share_rows(L, np.exp(L), top, w, sums)


@kernel
def shift_rows(L, top):
    """Subtract its largest entry from each row, and store it in ``top``."""
    N, K = L.shape
    for i in range(N):
        largest = L[i, 0]
        for k in range(1, K):
            largest = max(largest, L[i, k])
        top[i] = largest
        if largest == -np.inf:
            for k in range(K):
                L[i, k] = 0.0
        else:
            for k in range(K):
                L[i, k] = max(L[i, k] - largest, LOG_ZERO)


@kernel
def share_rows(L, E, top, w, sums):
    """Overwrite L by weighted responsibilities, computed from shifted log joints and their exponentials."""
    N, K = L.shape
    for i in range(N):
        total, moment = 0.0, 0.0
        for k in range(K):
            total += E[i, k]
            moment += E[i, k] * L[i, k]
        scale = w[i] / total
        for k in range(K):
            L[i, k] = E[i, k] * scale
        if w[i] > 0:
            log_total = math.log(total)
            sums[0] += w[i] * (top[i] + log_total)
            sums[1] += w[i] * (log_total - moment / total)


@kernel
def cell_log_marginals(lik, S, out):
    """``out[d, k] = log marginal`` of column d in cluster k."""
    fill_log_marginals(lik, S, out)


def log_marginals(lik, S: np.ndarray) -> np.ndarray:
    """Return the log marginal likelihood of every column in every cluster, [column, cluster]."""
    out = np.empty((int(n_columns(lik)), S.shape[1]))
    cell_log_marginals(lik, np.ascontiguousarray(S), out)  # one type, so that it is compiled once
    return out


@kernel
def refresh_clusters(lik, S, C, n_clusters):
    """Fill the predictive cache of the first ``n_clusters`` clusters from their statistics."""
    for d in range(n_columns(lik)):
        s = S[stats_start(lik, d) : stats_start(lik, d + 1)]
        c = C[cache_start(lik, d) : cache_start(lik, d + 1)]
        for k in range(n_clusters):
            refresh(lik, d, s[:, k], c, k)


@kernel
def score_rows(lik, data, rows, C, L):
    """``L[j] += log predictive`` of row j given the data of every cluster."""
    K = L.shape[1]
    for d in range(n_columns(lik)):
        c = C[cache_start(lik, d) : cache_start(lik, d + 1)]
        for j in range(rows.shape[0]):
            score(lik, d, c, datum(lik, data, rows[j], d), K, L[j])


@kernel
def score_without_self(lik, data, rows, S, R, L):
    """``L[j] += log predictive`` of row j, after its own (expected) share was removed from every cluster."""
    K = L.shape[1]
    one = np.zeros(1)
    for d in range(n_columns(lik)):
        s = S[stats_start(lik, d) : stats_start(lik, d + 1)]
        c = np.zeros((cache_start(lik, d + 1) - cache_start(lik, d), 1))
        for j in range(rows.shape[0]):
            x = datum(lik, data, rows[j], d)
            for k in range(K):
                r = R[j, k]
                observe(lik, d, s[:, k], x, -r)
                ready(lik, d, s[:, k], c, x)
                one[0] = 0.0
                score(lik, d, c, x, 1, one)
                L[j, k] += one[0]
                observe(lik, d, s[:, k], x, r)


@kernel
def curve_without_self(lik, data, rows, S, V, R, L):
    """``L[j] +=`` the second-order term: curvature of the log predictive times the variance ``V`` of the statistics.

    The row's own share of both is removed first. This is a separate kernel because families may lack a curvature.
    """
    for d in range(n_columns(lik)):
        s = S[stats_start(lik, d) : stats_start(lik, d + 1)]
        v = V[spread_start(lik, d) : spread_start(lik, d + 1)]
        for j in range(rows.shape[0]):
            x = datum(lik, data, rows[j], d)
            for k in range(L.shape[1]):
                r = R[j, k]
                observe(lik, d, s[:, k], x, -r)
                spread(lik, d, v[:, k], x, -r * (1.0 - r))
                L[j, k] += curvature(lik, d, s[:, k], v[:, k], x)
                spread(lik, d, v[:, k], x, r * (1.0 - r))
                observe(lik, d, s[:, k], x, r)


@kernel
def spread_rows(lik, data, rows, Q, V):
    """``V += sum over rows of q t(x) t(x)'``, where q is the variance of each label indicator."""
    K = Q.shape[1]
    for j in range(rows.shape[0]):
        for d in range(n_columns(lik)):
            x = datum(lik, data, rows[j], d)
            lo, hi = spread_start(lik, d), spread_start(lik, d + 1)
            for k in range(K):
                spread(lik, d, V[lo:hi, k], x, Q[j, k])


# ---- loops that a family may replace, where its data have few distinct values -----------------------------------


@singledispatch
def add_log_likelihood(lik: Any, data: Any, rows: np.ndarray, theta: np.ndarray, L: np.ndarray) -> None:
    """``L[j] += log p(x_rows[j] | theta_k)``: the result of ``project_rows``."""
    project_rows(lik, data, rows, theta, L)


@singledispatch
def add_expected_statistics(
    lik: Any, data: Any, rows: np.ndarray, theta: np.ndarray, R: np.ndarray, S: np.ndarray
) -> float:
    """``S += sum over rows of r E[t(x)]``; the result of ``scatter_rows``."""
    return scatter_rows(lik, data, rows, theta, R, S)


@singledispatch
def add_log_predictive(lik: Any, data: Any, rows: np.ndarray, C: np.ndarray, L: np.ndarray) -> None:
    """``L[j] += log predictive`` of row j given the data of every cluster: the result of ``score_rows``."""
    score_rows(lik, data, rows, C, L)


def has_own_loop(function: Any, lik: Any) -> bool:
    """Whether the family replaces one of these loops."""
    return function.dispatch(type(lik)) is not function.dispatch(object)
