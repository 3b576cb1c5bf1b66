"""Partly observed Gaussian vectors: their hidden coordinates are integrated out or imputed for each cluster."""

from __future__ import annotations

import math

import numpy as np

from partita.dispatch import kernel
from partita.families.cholesky import factor, log_determinant, solve_lower, solve_upper
from partita.families.gaussian import LOG_2PI
from partita.families.special import log_gamma_ratio


@kernel
def count_hidden(x):
    """Return the number of hidden coordinates of a vector."""
    n_hidden = 0
    for a in range(x.shape[0]):
        if math.isnan(x[a]):
            n_hidden += 1
    return n_hidden


@kernel
def score_seen(c, x, K, out, n_seen):
    """Add the Student-t log predictive of the observed coordinates."""
    p = x.shape[0]
    seen = np.empty(n_seen, np.int64)
    j = 0
    for a in range(p):
        if not math.isnan(x[a]):
            seen[j] = a
            j += 1
    A, y = np.empty((n_seen, n_seen)), np.empty(n_seen)
    for k in range(K):
        for g in range(n_seen):
            a = seen[g]
            y[g] = x[a] - c[4 + a, k]
            for h in range(g + 1):
                b = seen[h]
                t = 0.0
                for j in range(b + 1):
                    t += c[4 + p + a * (a + 1) // 2 + j, k] * c[4 + p + b * (b + 1) // 2 + j, k]
                A[g, h] = t
        factor(A, n_seen)
        solve_lower(A, y, n_seen)
        q = 0.0
        for g in range(n_seen):
            q += y[g] * y[g]
        kappa, freedom = c[0, k], c[2, k] - p  # nu_n + 1 - p
        out[k] += log_gamma_ratio(0.5 * freedom, 0.5 * n_seen)
        out[k] -= 0.5 * n_seen * math.log(math.pi * (kappa + 1) / kappa) + 0.5 * log_determinant(A, n_seen)
        out[k] -= 0.5 * (freedom + n_seen) * math.log1p(q * kappa / (kappa + 1.0))


@kernel
def complete(theta, x, mean, H):
    """Integrate the hidden coordinates out of ``exp <theta, t(x)>``.

    Return the log of the integral. ``mean`` is filled with x, completed by the conditional mean, and the leading
    submatrix of ``H`` with the Cholesky factor of the precision of the hidden coordinates, in their order in x.
    """
    p = x.shape[0]
    hidden = np.empty(p, np.int64)
    n_hidden = 0
    for a in range(p):
        mean[a] = 0.0 if math.isnan(x[a]) else x[a]
        if math.isnan(x[a]):
            hidden[n_hidden] = a
            n_hidden += 1
    out = theta[0] + 0.5 * n_hidden * LOG_2PI
    j = 1 + p
    pull = np.zeros(p)  # linear term of each coordinate given the observed ones
    for a in range(p):
        pull[a] += theta[1 + a]
        for b in range(a + 1):
            if a == b:
                out += theta[j] * mean[a] * mean[a]
            else:
                out += theta[j] * mean[a] * mean[b]
                pull[a] += theta[j] * mean[b]
                pull[b] += theta[j] * mean[a]
            j += 1
    y = np.empty(n_hidden)
    for a in range(p):
        out += theta[1 + a] * mean[a]
    for g in range(n_hidden):
        a = hidden[g]
        y[g] = pull[a]
        for h in range(g + 1):
            entry = theta[1 + p + a * (a + 1) // 2 + hidden[h]]
            H[g, h] = -2.0 * entry if g == h else -entry
    factor(H, n_hidden)
    solve_lower(H, y, n_hidden)
    for g in range(n_hidden):
        out += 0.5 * y[g] * y[g]
    out -= 0.5 * log_determinant(H, n_hidden)
    solve_upper(H, y, n_hidden)
    for g in range(n_hidden):
        mean[hidden[g]] = y[g]
    return out


@kernel
def scatter_completed(S, theta, x, r, n_hidden):
    """Add the expected statistics of a partly observed vector; return the entropy of its hidden part."""
    p = x.shape[0]
    H, mean, e = np.empty((p, p)), np.empty(p), np.empty(n_hidden)
    cov = np.zeros((p, p))
    hidden = np.empty(n_hidden, np.int64)
    g = 0
    for a in range(p):
        if math.isnan(x[a]):
            hidden[g] = a
            g += 1
    bound = 0.0
    for k in range(r.shape[0]):
        if r[k] == 0.0:
            continue
        complete(theta[:, k], x, mean, H)
        for g in range(n_hidden):
            e[:] = 0.0
            e[g] = 1.0
            solve_lower(H, e, n_hidden)
            solve_upper(H, e, n_hidden)
            for h in range(n_hidden):
                cov[hidden[g], hidden[h]] = e[h]
        # log Z - <theta, expected t> of a Gaussian is its entropy
        bound += r[k] * (0.5 * n_hidden * (1.0 + LOG_2PI) - 0.5 * log_determinant(H, n_hidden))
        S[0, k] += r[k]
        j = 1 + p
        for a in range(p):
            S[1 + a, k] += r[k] * mean[a]
            for b in range(a + 1):
                S[j, k] += r[k] * (mean[a] * mean[b] + cov[a, b])
                j += 1
    return bound


@kernel
def draw_hidden(shown, theta, rows, z, normals, out):
    """Draw the hidden coordinates of ``rows`` given the parameters of their clusters."""
    p = shown.shape[1]
    H, mean, e = np.empty((p, p)), np.empty(p), np.empty(p)
    for r in range(rows.shape[0]):
        x = shown[rows[r]]
        complete(theta[:, z[r]], x, mean, H)
        n_hidden = 0
        for a in range(p):
            if math.isnan(x[a]):
                e[n_hidden] = normals[r, a]
                n_hidden += 1
        solve_upper(H, e, n_hidden)  # H H' is the precision: its inverse root gives the noise its covariance
        n_hidden = 0
        for a in range(p):
            if math.isnan(x[a]):
                out[rows[r], a] = mean[a] + e[n_hidden]
                n_hidden += 1
