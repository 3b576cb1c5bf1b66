"""Real columns, independent within a cluster, under normal-inverse-gamma priors."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from partita.dispatch import kernel
from partita.families.contract import (
    cache_start,
    constrained,
    curvature,
    datum,
    draw,
    expect,
    flat,
    learn,
    log_marginal,
    log_prior,
    mode,
    n_columns,
    n_parameters,
    observe,
    project,
    refresh,
    scatter,
    scatter_column,
    score,
    score_own,
    simulate,
    spread,
    spread_start,
    stats_start,
    summarize,
    touch,
    unconstrained,
    widened,
)
from partita.families.hyper import gamma_shape
from partita.families.registry import Block, register_family
from partita.families.special import log_gamma_ratio, trigamma

LOG_2PI = math.log(2 * math.pi)
RESOLUTION = 1e-10  # share of the variance of the column; below it, sums of squares have too few digits
VARIANCE_FLOOR = 1e-6  # share of the variance of the column; keeps maximum likelihood away from singularities


class GaussianDiagonal(NamedTuple):
    """Normal-inverse-gamma family: ``1/variance ~ Gamma(a, b)``, ``mean ~ N(m, variance / k)``; NaN is missing.

    Statistics of a column: ``n, sum x, sum x^2``. Columns are standardized when the table is read, so the defaults do
    not depend on units and origins.

    Good for compact groups whose columns vary independently. Not for groups with correlated columns: use
    :class:`GaussianFull`.

    Examples
    --------
    >>> GaussianDiagonal.default(1)
    GaussianDiagonal(m=array([0.]), k=array([0.1]), a=array([1.5]), b=array([0.3]))
    """

    m: np.ndarray
    k: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @classmethod
    def default(cls, n_columns: int, *, m=0.0, k=0.1, a=1.5, b=0.3) -> GaussianDiagonal:
        """Return priors for clusters with about a fifth of the variance of the column, anywhere in its range."""
        return cls(*(np.full(n_columns, float(value)) for value in (m, k, a, b)))


@n_columns.register(GaussianDiagonal)
def _(lik):
    return lik.m.shape[0]


@stats_start.register(GaussianDiagonal)
def _(lik, d):
    return 3 * d


@cache_start.register(GaussianDiagonal)
def _(lik, d):
    return 4 * d


@observe.register(GaussianDiagonal)
def _(lik, d, s, x, w):
    if not math.isnan(x):
        s[0] += w
        s[1] += w * x
        s[2] += w * x * x


@kernel
def posterior(lik, d, s):
    """Return the posterior (m, k, a, b) of one column in one cluster."""
    k = lik.k[d] + s[0]
    m = (lik.k[d] * lik.m[d] + s[1]) / k
    a = lik.a[d] + 0.5 * s[0]
    # the sum of squares is not negative, except by rounding (removals in a long chain, huge weights)
    b = lik.b[d] + 0.5 * max(s[2] + lik.k[d] * lik.m[d] ** 2 - k * m * m, 0.0)
    return m, k, a, b


@log_marginal.register(GaussianDiagonal, inline=False)
def _(lik, d, s):
    m, k, a, b = posterior(lik, d, s)
    out = math.lgamma(a) - math.lgamma(lik.a[d]) + lik.a[d] * math.log(lik.b[d]) - a * math.log(b)
    return out + 0.5 * math.log(lik.k[d] / k) - 0.5 * s[0] * LOG_2PI


@refresh.register(GaussianDiagonal, inline=False)
def _(lik, d, s, c, j):
    m, k, a, b = posterior(lik, d, s)
    v = 2 * b * (k + 1) / k
    c[0, j] = m
    c[1, j] = 1 / v
    c[2, j] = a + 0.5
    c[3, j] = log_gamma_ratio(a, 0.5) - 0.5 * math.log(math.pi * v)


@touch.register(GaussianDiagonal)
def _(lik, d, s, c, k, x):
    if not math.isnan(x):
        refresh(lik, d, s, c, k)


@score.register(GaussianDiagonal)
def _(lik, d, c, x, K, out):
    if not math.isnan(x):
        for k in range(K):
            delta = x - c[0, k]
            out[k] += c[3, k] - c[2, k] * math.log1p(delta * delta * c[1, k])


@score_own.register(GaussianDiagonal)
def _(lik, d, s, c, k, x, acc):
    if not math.isnan(x):
        m, kn, a, b = posterior(lik, d, s)
        shrunk = b - 0.5 * kn / (kn - 1.0) * (x - m) ** 2
        shrunk = max(shrunk, lik.b[d])  # as in posterior()
        acc[2] += math.lgamma(a) - math.lgamma(a - 0.5) - 0.5 * math.log(2 * math.pi * b * kn / (kn - 1.0))
        acc[2] += (a - 0.5) * math.log(shrunk / b)


@project.register(GaussianDiagonal)
def _(lik, d, theta, x, L, j):
    if not math.isnan(x):
        for k in range(L.shape[1]):
            L[j, k] += theta[0, k] + x * (theta[1, k] + x * theta[2, k])


@scatter.register(GaussianDiagonal)
def _(lik, d, S, theta, x, R, j):
    if not math.isnan(x):
        for k in range(R.shape[1]):
            S[0, k] += R[j, k]
            S[1, k] += R[j, k] * x
            S[2, k] += R[j, k] * x * x
    return 0.0


@scatter_column.register(GaussianDiagonal)
def _(lik, d, S, theta, data, rows, R):
    """Four rows at once: what takes the time is to read and write ``S``."""
    N, j = rows.shape[0], 0
    while j < N:
        x0 = datum(lik, data, rows[j], d)
        x1, x2, x3 = x0, x0, x0
        if j + 4 <= N:
            x1, x2 = datum(lik, data, rows[j + 1], d), datum(lik, data, rows[j + 2], d)
            x3 = datum(lik, data, rows[j + 3], d)
        if j + 4 > N or math.isnan(x0 + x1 + x2 + x3):
            for i in range(j, min(j + 4, N)):
                scatter(lik, d, S, theta, datum(lik, data, rows[i], d), R, i)
        else:
            for k in range(R.shape[1]):
                r0, r1, r2, r3 = R[j, k], R[j + 1, k], R[j + 2, k], R[j + 3, k]
                S[0, k] += (r0 + r1) + (r2 + r3)
                S[1, k] += (r0 * x0 + r1 * x1) + (r2 * x2 + r3 * x3)
                S[2, k] += (r0 * x0 * x0 + r1 * x1 * x1) + (r2 * x2 * x2 + r3 * x3 * x3)
        j += 4
    return 0.0


# The second-order correction: log predictive = A(s + t) - A(s), where A is the log marginal. The trace of its Hessian
# in (n, sum x, sum x^2) times their covariance needs five different moments of x.


@spread_start.register(GaussianDiagonal)
def _(lik, d):
    return 5 * d


@spread.register(GaussianDiagonal)
def _(lik, d, v, x, w):
    if not math.isnan(x):
        v[0] += w  # n n
        v[1] += w * x  # n, sum x
        v[2] += w * x * x  # n, sum x^2; and sum x, sum x
        v[3] += w * x**3  # sum x, sum x^2
        v[4] += w * x**4  # sum x^2, sum x^2


@kernel
def half_trace(lik, d, s, v):
    """Half the trace of (Hessian of the log marginal) times (covariance of the statistics)."""
    m, k, a, b = posterior(lik, d, s)
    g0, g1, g2 = 0.5 * m * m, -m, 0.5  # gradient of b
    gg = (
        g0 * g0 * v[0]
        + 2 * g0 * g1 * v[1]
        + (2 * g0 * g2 + g1 * g1) * v[2]
        + 2 * g1 * g2 * v[3]
        + g2 * g2 * v[4]
    )
    ga = 0.5 * (g0 * v[0] + g1 * v[1] + g2 * v[2])  # a has the gradient (1/2, 0, 0)
    hb = (-m * m * v[0] + 2 * m * v[1] - v[2]) / k  # Hessian of b
    return 0.5 * (
        0.25 * trigamma(a) * v[0] - 2 * ga / b + a * gg / (b * b) - a * hb / b + 0.5 * v[0] / (k * k)
    )


@curvature.register(GaussianDiagonal, inline=False)
def _(lik, d, s, v, x):
    if math.isnan(x):
        return 0.0
    before = half_trace(lik, d, s, v)
    observe(lik, d, s, x, 1.0)
    after = half_trace(lik, d, s, v)
    observe(lik, d, s, x, -1.0)
    return after - before


def _posteriors(lik: GaussianDiagonal, S: np.ndarray):
    """Posterior parameters, [column, cluster]."""
    m0, k0, a0, b0 = (value[:, None] for value in lik)
    n, sx, sxx = S[0::3], S[1::3], S[2::3]
    k = k0 + n
    m = np.where(k > 0, (k0 * m0 + sx) / np.where(k > 0, k, 1.0), 0.0)
    return m, k, a0 + 0.5 * n, b0 + 0.5 * np.maximum(sxx + k0 * m0**2 - k * m**2, 0.0)


def _natural(m: np.ndarray, tau: np.ndarray, log_tau: np.ndarray, tau_m2: np.ndarray) -> np.ndarray:
    """Natural parameters from moments of (mean, precision), columns interleaved."""
    rows = [0.5 * log_tau - 0.5 * LOG_2PI - 0.5 * tau_m2, tau * m, -0.5 * tau]
    return np.stack(rows, axis=1).reshape(-1, m.shape[1])


@widened.register(GaussianDiagonal)
def _(lik, S):
    """Gamma posteriors whose mean precision is at most 1 / RESOLUTION; the gain comes from their KL divergence."""
    if (lik.b >= RESOLUTION * (lik.a + 0.5 * S[0::3].max(axis=1, initial=0.0))).all():
        return S, 0.0  # the prior bounds the precision
    _, _, a, b = _posteriors(lik, S)
    wide = np.maximum(b, RESOLUTION * a)
    S = S.copy()
    S[2::3] += 2.0 * (wide - b)
    return S, a * (1.0 - np.divide(b, wide, out=np.ones_like(b), where=wide > b))


@expect.register(GaussianDiagonal)
def _(lik, S):
    m, k, a, b = _posteriors(lik, S)
    b = np.maximum(b, 1e-12)
    tau = a / b
    return _natural(m, tau, digamma(a) - np.log(b), 1 / k + tau * m**2)


@mode.register(GaussianDiagonal)
def _(lik, S):
    m, _, a, b = _posteriors(lik, S)
    weight = a + 1.5
    variance = np.where(weight > 0, b / np.where(weight > 0, weight, 1.0), 1.0)
    tau = 1 / np.maximum(variance, VARIANCE_FLOOR)
    return _natural(m, tau, np.log(tau), tau * m**2)


@flat.register(GaussianDiagonal)
def _(lik):
    return GaussianDiagonal.default(len(lik.m), k=0.0, a=-1.5, b=0.0)


@log_prior.register(GaussianDiagonal)
def _(lik, theta):
    if (lik.k == 0).all():  # flat
        return np.zeros(theta.shape[1])
    m, k, a, b = (value[:, None] for value in lik)
    tau = -2 * theta[2::3]
    mean = theta[1::3] / tau
    density = a * np.log(b) - gammaln(a) + (a + 1) * np.log(tau) - b * tau
    density += 0.5 * np.log(k * tau) - 0.5 * LOG_2PI - 0.5 * k * tau * (mean - m) ** 2
    return density.sum(axis=0)


@draw.register(GaussianDiagonal)
def _(lik, S, rng):
    m, k, a, b = _posteriors(lik, S)
    tau = np.maximum(rng.standard_gamma(a), np.finfo(float).tiny) / b
    mean = m + rng.standard_normal(m.shape) / np.sqrt(k * tau)
    return _natural(mean, tau, np.log(tau), tau * mean**2)


@simulate.register(GaussianDiagonal)
def _(lik, theta, z, rng):
    tau = -2 * theta[2::3, z]
    return np.ascontiguousarray((theta[1::3, z] / tau + rng.standard_normal(tau.shape) / np.sqrt(tau)).T)


@learn.register(GaussianDiagonal)
def _(lik, S, n):
    """One EM step: the hyper-parameters that best explain the posteriors of the clusters in use."""
    if np.count_nonzero(n >= 1.0) < 2:
        return lik
    used = n >= 1.0
    m, k, a, b = _posteriors(lik, S if used.all() else S[:, used])
    tau, log_tau = a / b, digamma(a) - np.log(b)
    mean_tau = tau.mean(axis=1)
    m0 = (tau * m).mean(axis=1) / mean_tau
    k0 = np.clip(1 / (1 / k + tau * (m - m0[:, None]) ** 2).mean(axis=1), 1e-4, 10.0)
    a0 = gamma_shape(np.log(mean_tau) - log_tau.mean(axis=1), 0.5, 50.0)
    # with repeated values the learned variance would go to zero
    return GaussianDiagonal(m0, k0, a0, a0 * np.maximum(1 / mean_tau, VARIANCE_FLOOR))


@summarize.register(GaussianDiagonal)
def _(lik, S):
    m, _, a, b = _posteriors(lik, S)
    return {"means": m.T, "variances": (b / np.maximum(a - 1, 0.5)).T}


@n_parameters.register(GaussianDiagonal)
def _(lik):
    return 2 * len(lik.m)


@unconstrained.register(GaussianDiagonal)
def _(lik):
    """Location, its weight, shape, and the variance b / a, which mixes better than b because a and b are correlated."""
    return {"m": lik.m, "k": np.log(lik.k), "a": np.log(lik.a), "b": np.log(lik.b / lik.a)}


@constrained.register(GaussianDiagonal)
def _(lik, name, value):
    if name == "a":
        a = np.exp(value)
        return lik._replace(a=a, b=lik.b * (a / lik.a))
    if name == "b":
        return lik._replace(b=lik.a * np.exp(value))
    return lik._replace(**{name: value if name == "m" else np.exp(value)})


def block(X, columns, weights, **options) -> Block:
    """Make a block of standardized columns."""
    options.pop("n_levels", None), options.pop("exposure", None)
    return Block(GaussianDiagonal.default(X.shape[1], **options), X, tuple(columns))


def examples(rng):
    """Two columns with different priors."""
    lik = GaussianDiagonal(
        np.array([0.3, -1.0]), np.array([0.5, 0.1]), np.array([2.0, 1.2]), np.array([1.5, 0.4])
    )
    return [(lik, rng.normal(size=(8, 2)) * [1.0, 2.0])]


register_family("gaussian", GaussianDiagonal, kind="real", block=block, examples=examples)
