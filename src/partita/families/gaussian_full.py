"""Real vectors with full covariance under a normal-inverse-Wishart prior; possibly partly observed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita.dispatch import kernel
from partita.families.cholesky import factor, log_determinant, rank_one, solve_lower
from partita.families.contract import (
    cache_start,
    curvature,
    datum,
    hidden_rows,
    impute,
    log_marginal,
    n_columns,
    observe,
    project,
    refresh,
    scatter,
    score,
    score_own,
    spread,
    spread_start,
    stats_start,
    touch,
)
from partita.families.gaussian_hidden import (
    complete,
    count_hidden,
    draw_hidden,
    scatter_completed,
    score_seen,
)
from partita.families.registry import Block, register_family
from partita.families.special import log_gamma_ratio, log_multigamma, trigamma


class GaussianFull(NamedTuple):
    """Normal-inverse-Wishart family: ``cov ~ IW(nu, Psi)``, ``mean ~ N(m, cov / kappa)``; NaN is hidden.

    The family has one column, whose datum is a vector of p numbers. Statistics: ``n``, ``sum x`` and the packed lower
    triangle of ``sum x x'``. Each coordinate is standardized.

    Good for groups with correlated columns and more objects than coordinates. Not for hundreds of coordinates: the time
    grows with their square.

    Examples
    --------
    >>> lik = GaussianFull.default(2)
    >>> lik.nu, float(lik.Psi[0, 0])
    (4.0, 0.2)
    """

    m: np.ndarray
    kappa: float
    nu: float
    Psi: np.ndarray
    log_det: float  # log determinant of Psi, stored so that kernels need not compute it
    learns_shape: float = 0.0  # 1: chains learn all of Psi, not only its size

    @classmethod
    def of(
        cls, m: np.ndarray, kappa: float, nu: float, Psi: np.ndarray, learns_shape: float = 0.0
    ) -> GaussianFull:
        """Return the family with the given hyper-parameters."""
        Psi = np.ascontiguousarray(Psi, dtype=float)
        log_det = float(np.linalg.slogdet(Psi)[1])
        return cls(np.asarray(m, float), float(kappa), float(nu), Psi, log_det, float(learns_shape))

    @classmethod
    def default(
        cls,
        p: int,
        *,
        m: float = 0.0,
        kappa: float = 0.1,
        nu: float | None = None,
        scale: float = 0.2,
        shape: bool = False,
    ) -> GaussianFull:
        """Return priors for clusters with about a fifth of the variance of each coordinate, and any correlation.

        With ``shape``, chains learn the scale matrix as a whole: correlations that most clusters share, and how wide
        they are in each direction. Without, they learn its size.
        """
        nu = p + 2.0 if nu is None else nu
        if not nu > p + 1:
            raise ValueError(f"nu is {nu}: for {p} coordinates it must be greater than {p + 1}")
        return cls.of(np.full(p, float(m)), kappa, nu, np.eye(p) * scale * (nu - p - 1), shape)


@n_columns.register(GaussianFull)
def _(lik):
    return 1


@stats_start.register(GaussianFull)
def _(lik, d):
    p = lik.m.shape[0]
    return d * (1 + p + p * (p + 1) // 2)


@cache_start.register(GaussianFull)
def _(lik, d):
    p = lik.m.shape[0]
    return d * (4 + p + p * (p + 1) // 2)


@datum.register(GaussianFull)
def _(lik, data, i, d):
    return data[i]


@observe.register(GaussianFull, inline=False)
def _(lik, d, s, x, w):
    p = x.shape[0]
    if count_hidden(x) == p:  # a missing datum; the engine completes partly observed vectors before
        return
    s[0] += w
    j = 1 + p
    for a in range(p):
        s[1 + a] += w * x[a]
        for b in range(a + 1):
            s[j] += w * x[a] * x[b]
            j += 1


@kernel
def scale_entry(Psi, product, n, shift, mean_a, mean_b, m_a, m_b):
    """Entry (a, b) of the posterior scale matrix, for numbers or for arrays of them.

    The squares are taken about the mean of the cluster, and the shift ``kappa n / (kappa + n)`` weighs the distance of
    this mean from that of the prior. The shorter ``Psi + sum x x' + kappa m m' - kappa_n m_n m_n'`` is a difference
    of large numbers if the prior mean is far from zero: without data it would not return ``Psi``.
    """
    return Psi + (product - n * (mean_a * mean_b)) + shift * ((mean_a - m_a) * (mean_b - m_b))


@kernel
def posterior_scale(lik, s, m, P):
    """Fill m with the posterior mean and P with the posterior scale matrix; return kappa_n."""
    p = lik.m.shape[0]
    n, kappa = s[0], lik.kappa + s[0]
    for a in range(p):  # the mean of the rows, before it is that of the posterior
        m[a] = s[1 + a] / n if n > 0.0 else lik.m[a]
    j = 1 + p
    for a in range(p):
        for b in range(a + 1):
            P[a, b] = scale_entry(
                lik.Psi[a, b], s[j], n, lik.kappa * n / kappa, m[a], m[b], lik.m[a], lik.m[b]
            )
            P[b, a] = P[a, b]
            j += 1
    for a in range(p):
        m[a] = (lik.kappa * lik.m[a] + s[1 + a]) / kappa
    return kappa


@kernel
def posterior_factor(lik, s, m, L):
    """As posterior_scale, with the Cholesky factor; a jitter is added if rounding has made the matrix singular."""
    p = lik.m.shape[0]
    kappa = posterior_scale(lik, s, m, L)
    if not factor(L, p):
        jitter = 1e-10
        while jitter < 1e6:
            posterior_scale(lik, s, m, L)
            for a in range(p):
                L[a, a] += jitter * (1.0 + abs(L[a, a]))
            if factor(L, p):
                break
            jitter *= 10.0
    return kappa


@log_marginal.register(GaussianFull, inline=False)
def _(lik, d, s):
    p = lik.m.shape[0]
    n = s[0]
    L, m = np.empty((p, p)), np.empty(p)
    kappa = posterior_factor(lik, s, m, L)
    out = log_multigamma(0.5 * (lik.nu + n), p) - log_multigamma(0.5 * lik.nu, p)
    out += 0.5 * lik.nu * lik.log_det - 0.5 * (lik.nu + n) * log_determinant(L, p)
    return out + 0.5 * p * math.log(lik.kappa / kappa) - 0.5 * n * p * math.log(math.pi)


# The cache of a cluster holds kappa_n, the log constant, nu_n + 1, n, the mean, and the packed Cholesky factor.


@kernel
def constants(lik, c, k, n, log_det):
    """Store the scalars of the Student-t predictive."""
    p = lik.m.shape[0]
    nu, kappa = lik.nu + n, lik.kappa + n
    c[0, k] = kappa
    c[1, k] = (
        log_gamma_ratio(0.5 * (nu + 1 - p), 0.5 * p)
        - 0.5 * p * math.log(math.pi * (kappa + 1) / kappa)
        - 0.5 * log_det
    )
    c[2, k] = nu + 1
    c[3, k] = n


@refresh.register(GaussianFull, inline=False)
def _(lik, d, s, c, k):
    p = lik.m.shape[0]
    L, m = np.empty((p, p)), np.empty(p)
    posterior_factor(lik, s, m, L)
    j = 4 + p
    for a in range(p):
        c[4 + a, k] = m[a]
        for b in range(a + 1):
            c[j, k] = L[a, b]
            j += 1
    constants(lik, c, k, s[0], log_determinant(L, p))


@touch.register(GaussianFull, inline=False)
def _(lik, d, s, c, k, x):
    """Rank-one update if x was added, downdate if it was removed, as the cached n shows."""
    p = lik.m.shape[0]
    w = s[0] - c[3, k]
    if abs(w) != 1.0:
        refresh(lik, d, s, c, k)
        return
    kappa = c[0, k]
    y = np.empty(p)
    shrink = math.sqrt(kappa / (kappa + w))
    for a in range(p):
        y[a] = (x[a] - c[4 + a, k]) * shrink
    if not rank_one(c[4 + p :, k], y, w, p):
        refresh(lik, d, s, c, k)
        return
    log_det = 0.0
    for a in range(p):
        c[4 + a, k] = (lik.kappa * lik.m[a] + s[1 + a]) / (kappa + w)
        log_det += 2.0 * math.log(c[4 + p + a * (a + 1) // 2 + a, k])
    constants(lik, c, k, s[0], log_det)


@score.register(GaussianFull, inline=False)
def _(lik, d, c, x, K, out):
    p = x.shape[0]
    n_hidden = count_hidden(x)
    if n_hidden == p:
        return
    if n_hidden > 0:
        score_seen(c, x, K, out, p - n_hidden)
        return
    Y, q = np.empty((p, K)), np.zeros(K)
    for a in range(p):
        row = Y[a]
        for k in range(K):
            row[k] = x[a] - c[4 + a, k]
        start = 4 + p + a * (a + 1) // 2
        for b in range(a):
            factor_row, before = c[start + b], Y[b]
            for k in range(K):
                row[k] -= factor_row[k] * before[k]
        diagonal = c[start + a]
        for k in range(K):
            row[k] /= diagonal[k]
            q[k] += row[k] * row[k]
    for k in range(K):
        out[k] += c[1, k] - 0.5 * c[2, k] * math.log1p(q[k] * c[0, k] / (c[0, k] + 1.0))


@score_own.register(GaussianFull, inline=False)
def _(lik, d, s, c, k, x, acc):
    """Use the factor of the scale matrix with x in it: its determinant without x depends only on the distance of x."""
    p = x.shape[0]
    n_hidden = count_hidden(x)
    if n_hidden == p:
        return
    kappa, nu = c[0, k], c[2, k] - 1.0
    y, q = np.empty(p), 0.0
    for a in range(p):
        start = 4 + p + a * (a + 1) // 2
        t = x[a] - c[4 + a, k]
        for b in range(a):
            t -= c[start + b, k] * y[b]
        y[a] = t / c[start + a, k]
        q += y[a] * y[a]
    left = 1.0 - q * kappa / (kappa - 1.0)
    if left < 1e-3:  # nearly all variation is due to x: the difference would have too few digits
        observe(lik, d, s, x, -1.0)
        scratch, out = np.empty((c.shape[0], 1), c.dtype), np.zeros(1, c.dtype)
        refresh(lik, d, s, scratch, 0)
        score(lik, d, scratch, x, 1, out)
        observe(lik, d, s, x, 1.0)
        acc[2] += out[0]
        return
    log_det = 0.0
    for a in range(p):
        log_det += 2.0 * math.log(c[4 + p + a * (a + 1) // 2 + a, k])
    acc[2] += math.lgamma(0.5 * nu) - math.lgamma(0.5 * (nu - p)) - 0.5 * log_det
    acc[2] += 0.5 * (nu - 1.0) * math.log(left) - 0.5 * p * math.log(math.pi * kappa / (kappa - 1.0))


@project.register(GaussianFull, inline=False)
def _(lik, d, theta, x, L, j):
    p = x.shape[0]
    n_hidden = count_hidden(x)
    if n_hidden == p:
        return
    if n_hidden > 0:
        H, mean = np.empty((p, p)), np.empty(p)
        for k in range(L.shape[1]):
            L[j, k] += complete(theta[:, k], x, mean, H)
        return
    if L.shape[1] < 4:  # too few clusters to fill a SIMD vector: the inner loops run over coordinates
        for k in range(L.shape[1]):
            total, e = theta[0, k], 1 + p
            for a in range(p):
                inner = theta[1 + a, k]
                for b in range(a + 1):
                    inner += x[b] * theta[e + b, k]
                total += x[a] * inner
                e += a + 1
            L[j, k] += total
        return
    for k in range(L.shape[1]):
        L[j, k] += theta[0, k]
    e = 1 + p
    for a in range(p):
        for k in range(L.shape[1]):
            L[j, k] += x[a] * theta[1 + a, k]
        for b in range(a + 1):
            product = x[a] * x[b]
            for k in range(L.shape[1]):
                L[j, k] += product * theta[e, k]
            e += 1


@scatter.register(GaussianFull, inline=False)
def _(lik, d, S, theta, x, R, j):
    p = x.shape[0]
    n_hidden = count_hidden(x)
    if n_hidden == p:
        return 0.0
    if n_hidden > 0:
        return scatter_completed(S, theta, x, R[j], n_hidden)
    for k in range(R.shape[1]):
        S[0, k] += R[j, k]
    e = 1 + p
    for a in range(p):
        for k in range(R.shape[1]):
            S[1 + a, k] += R[j, k] * x[a]
        for b in range(a + 1):
            product = x[a] * x[b]
            for k in range(R.shape[1]):
                S[e, k] += R[j, k] * product
            e += 1
    return 0.0


# The second-order correction. In the direction of the statistics of a vector at distance q (in the metric of the scale
# matrix) the log marginal has the second derivative nu q^2 / 2 + (nu / kappa - 1) q + a constant. The sum over the
# objects with uncertain labels needs the mean and variance of q, which are taken as if these objects were Gaussian.


@spread_start.register(GaussianFull)
def _(lik, d):
    return stats_start(lik, d)


@spread.register(GaussianFull)
def _(lik, d, v, x, w):
    observe(lik, d, v, x, w)


@kernel
def half_trace(lik, s, v):
    """Half the second derivative of the log marginal, summed over the objects whose moments are in v."""
    p = lik.m.shape[0]
    L, m = np.empty((p, p)), np.empty(p)
    kappa = posterior_factor(lik, s, m, L)
    nu = lik.nu + s[0]
    M, e = np.empty((p, p)), np.empty(p)
    for a in range(p):
        e[a] = v[1 + a] / v[0] - m[a]
        for b in range(a + 1):
            M[a, b] = v[1 + p + a * (a + 1) // 2 + b] / v[0] - v[1 + a] * v[1 + b] / v[0] ** 2
            M[b, a] = M[a, b]
    solve_lower(L, e, p)
    for a in range(p):
        solve_lower(L, M[:, a], p)
    for a in range(p):
        solve_lower(L, M[a], p)
    mean, variance = 0.0, 0.0
    for a in range(p):
        mean += M[a, a] + e[a] * e[a]
        for b in range(p):
            variance += 2.0 * M[a, b] * M[b, a] + 4.0 * e[a] * M[a, b] * e[b]
    out = 0.5 * nu * (mean * mean + variance) + (nu / kappa - 1.0) * mean + 0.5 * p / (kappa * kappa)
    for a in range(p):
        out += 0.25 * trigamma(0.5 * (nu - a))
    return 0.5 * v[0] * out


@curvature.register(GaussianFull, inline=False)
def _(lik, d, s, v, x):
    if v[0] < 1e-9:  # all labels are certain
        return 0.0
    before = half_trace(lik, s, v)
    observe(lik, d, s, x, 1.0)
    after = half_trace(lik, s, v)
    observe(lik, d, s, x, -1.0)
    return after - before


@hidden_rows.register(GaussianFull)
def _(lik, data):
    hidden = np.isnan(data).sum(axis=1)
    return np.flatnonzero((hidden > 0) & (hidden < data.shape[1]))


@impute.register(GaussianFull)
def _(lik, shown, theta, rows, z, rng, out):
    draw_hidden(shown, theta, rows, z, rng.standard_normal((len(rows), shown.shape[1])), out)


def block(X, columns, weights, **options) -> Block:
    """Make a block of standardized vectors."""
    options.pop("n_levels", None), options.pop("exposure", None)
    return Block(GaussianFull.default(X.shape[1], **options), X, tuple(columns))


def examples(rng):
    """Two and three coordinates."""
    A = rng.normal(size=(3, 3))
    tilted = GaussianFull.of(np.array([0.2, -0.4, 1.0]), 0.6, 5.5, A @ A.T + np.eye(3))
    return [(GaussianFull.default(2), rng.normal(size=(8, 2))), (tilted, rng.normal(size=(8, 3)) @ A)]


register_family("gaussian_full", GaussianFull, kind="real", vector=True, block=block, examples=examples)
