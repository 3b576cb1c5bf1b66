"""Count columns with an exposure, under Gamma priors."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from partita.dispatch import kernel
from partita.families.columns import column_by_column, take_data
from partita.families.contract import (
    cache_start,
    curvature,
    datum,
    draw,
    expect,
    faster_in_single,
    flat,
    interior,
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
    score,
    simulate,
    spread,
    spread_start,
    stats_start,
    summarize,
)
from partita.families.hyper import gamma_shape
from partita.families.registry import Block, register_family
from partita.families.special import trigamma


class Counts(NamedTuple):
    """Counts and the exposure of each row (time at risk, area, document length)."""

    X: np.ndarray
    exposure: np.ndarray


@take_data.register(Counts)
def _(data, positions):
    return Counts(np.ascontiguousarray(data.X[:, positions]), data.exposure)


@column_by_column.register(Counts)
def _(data):
    return Counts(np.asfortranarray(data.X), data.exposure)


class Poisson(NamedTuple):
    """Poisson-Gamma family: ``x ~ Poisson(exposure * rate)``, ``rate ~ Gamma(a, b)``; NaN is missing.

    Statistics of a column: the total exposure of the observed counts, the sum of the counts, and the part of the log
    likelihood that does not depend on the rate.

    Good for counts of events. Not for overdispersed counts, whose variance within a group is far larger than the mean:
    such a group is split into several clusters.

    Examples
    --------
    >>> Poisson.default(Counts(np.array([[2.0], [4.0]]), np.ones(2)))
    Poisson(a=array([1.]), b=array([0.33333333]))
    """

    a: np.ndarray
    b: np.ndarray

    @classmethod
    def default(cls, data: Counts, weights: np.ndarray | None = None, *, a: float = 1.0) -> Poisson:
        """Return a Gamma prior whose mean is the rate of the whole column (exponential with ``a=1``)."""
        weights = np.ones(len(data.X)) if weights is None else weights
        seen = ~np.isnan(data.X)
        events = np.where(seen, data.X, 0.0).T @ weights
        return cls.of_totals(events, seen.T @ (weights * data.exposure), a=a)

    @classmethod
    def of_totals(cls, events: np.ndarray, at_risk: np.ndarray, *, a: float = 1.0) -> Poisson:
        """Return the same prior from the sums of the columns: events, and the exposure in which they were counted."""
        # a column without events gets a rate of half an event in all its exposure
        rate = np.maximum(events, 0.5) / np.where(at_risk > 0, at_risk, 1.0)
        return cls(np.full(len(rate), float(a)), a / rate)


@n_columns.register(Poisson)
def _(lik):
    return lik.a.shape[0]


@stats_start.register(Poisson)
def _(lik, d):
    return 3 * d


@cache_start.register(Poisson)
def _(lik, d):
    return 2 * d


@datum.register(Poisson)
def _(lik, data, i, d):
    return data.X[i, d], data.exposure[i]


@observe.register(Poisson)
def _(lik, d, s, x, w):
    count, exposure = x
    if not math.isnan(count):
        s[0] += w * exposure
        s[1] += w * count
        s[2] += w * (count * math.log(exposure) - math.lgamma(count + 1.0))


@log_marginal.register(Poisson, inline=False)
def _(lik, d, s):
    a, b = lik.a[d], lik.b[d]
    return math.lgamma(a + s[1]) - math.lgamma(a) + a * math.log(b) - (a + s[1]) * math.log(b + s[0]) + s[2]


@refresh.register(Poisson)
def _(lik, d, s, c, k):
    c[0, k] = lik.a[d] + s[1]
    c[1, k] = lik.b[d] + s[0]


@score.register(Poisson, inline=False)
def _(lik, d, c, x, K, out):
    count, exposure = x
    if not math.isnan(count):
        constant = count * math.log(exposure) - math.lgamma(count + 1.0)
        for k in range(K):
            a, b = c[0, k], c[1, k]
            gain = math.lgamma(a + count) - math.lgamma(a) if count > 0 else 0.0
            out[k] += constant + gain - a * math.log1p(exposure / b) - count * math.log(b + exposure)


@project.register(Poisson)
def _(lik, d, theta, x, L, j):
    count, exposure = x
    if not math.isnan(count):
        constant = count * math.log(exposure) - math.lgamma(count + 1.0)
        for k in range(L.shape[1]):
            L[j, k] += exposure * theta[0, k] + constant * theta[2, k]
        if count > 0:  # the log of a rate of zero is -inf and must not be multiplied by a count of zero
            for k in range(L.shape[1]):
                L[j, k] += count * theta[1, k]


@scatter.register(Poisson)
def _(lik, d, S, theta, x, R, j):
    count, exposure = x
    if not math.isnan(count):
        constant = count * math.log(exposure) - math.lgamma(count + 1.0)
        for k in range(R.shape[1]):
            S[0, k] += R[j, k] * exposure
            S[1, k] += R[j, k] * count
            S[2, k] += R[j, k] * constant
    return 0.0


@spread_start.register(Poisson)
def _(lik, d):
    return 3 * d


@spread.register(Poisson)
def _(lik, d, v, x, w):
    count, exposure = x
    if not math.isnan(count):
        v[0] += w * exposure * exposure
        v[1] += w * exposure * count
        v[2] += w * count * count


@kernel
def half_trace(lik, d, s, v):
    """Half the trace of (Hessian of the log marginal) times (covariance of exposure and counts)."""
    a, b = lik.a[d] + s[1], lik.b[d] + s[0]
    return 0.5 * (trigamma(a) * v[2] - 2 * v[1] / b + a * v[0] / (b * b))


@curvature.register(Poisson, inline=False)
def _(lik, d, s, v, x):
    if math.isnan(x[0]):
        return 0.0
    before = half_trace(lik, d, s, v)
    observe(lik, d, s, x, 1.0)
    after = half_trace(lik, d, s, v)
    observe(lik, d, s, x, -1.0)
    return after - before


def _posteriors(lik: Poisson, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return lik.a[:, None] + S[1::3], lik.b[:, None] + S[0::3]


def _natural(rate: np.ndarray, log_rate: np.ndarray) -> np.ndarray:
    return np.stack([-rate, log_rate, np.ones_like(rate)], axis=1).reshape(-1, rate.shape[1])


@expect.register(Poisson)
def _(lik, S):
    a, b = _posteriors(lik, S)
    return _natural(a / b, digamma(a) - np.log(b))


@mode.register(Poisson)
def _(lik, S):
    a, b = _posteriors(lik, S)
    rate = np.maximum(a - 1.0, 0.0) / np.where(b > 0, b, 1.0)
    with np.errstate(divide="ignore"):
        return _natural(rate, np.log(rate))


@faster_in_single.register(Poisson)
def _(lik):
    return True


@flat.register(Poisson)
def _(lik):
    return Poisson(np.ones_like(lik.a), np.zeros_like(lik.b))


@interior.register(Poisson)
def _(lik):
    return Poisson(lik.a + 1.0, lik.b)


@log_prior.register(Poisson)
def _(lik, theta):
    if (lik.b == 0).all():  # flat
        return np.zeros(theta.shape[1])
    a, b = lik.a[:, None], lik.b[:, None]
    with np.errstate(invalid="ignore"):
        power = np.where(a == 1.0, 0.0, (a - 1.0) * theta[1::3])
    return (a * np.log(b) - gammaln(a) + power + b * theta[0::3]).sum(axis=0)


@draw.register(Poisson)
def _(lik, S, rng):
    a, b = _posteriors(lik, S)
    rate = np.maximum(rng.standard_gamma(a), np.finfo(float).tiny) / b
    return _natural(rate, np.log(rate))


@simulate.register(Poisson)
def _(lik, theta, z, rng):
    """Counts with exposure 1."""
    return Counts(rng.poisson(-theta[0::3, z].T).astype(float), np.ones(len(z)))


@learn.register(Poisson)
def _(lik, S, n):
    """One EM step: the Gamma distribution that best explains the rates of the clusters in use."""
    if np.count_nonzero(n >= 1.0) < 2:
        return lik
    a, b = _posteriors(lik, S[:, n >= 1.0])
    mean_rate = (a / b).mean(axis=1)
    shape = gamma_shape(np.log(mean_rate) - (digamma(a) - np.log(b)).mean(axis=1), 0.1, 100.0)
    return Poisson(shape, shape / mean_rate)


@summarize.register(Poisson)
def _(lik, S):
    a, b = _posteriors(lik, S)
    return {"rates": (a / b).T}


@n_parameters.register(Poisson)
def _(lik):
    return len(lik.a)


def block(X, columns, weights, *, exposure=None, a: float = 1.0, **_) -> Block:
    """Make a block of counts with the exposure of each row (default 1)."""
    data = Counts(X, np.ones(len(X)) if exposure is None else np.asarray(exposure, float))
    return Block(Poisson.default(data, weights, a=a), data, tuple(columns))


def examples(rng):
    """Two columns with unequal exposures."""
    exposure = rng.uniform(0.5, 2.0, size=8)
    X = rng.poisson(3.0 * exposure[:, None], size=(8, 2)).astype(float)
    return [(Poisson(np.array([1.3, 0.8]), np.array([0.7, 0.2])), Counts(X, exposure))]


register_family("poisson", Poisson, kind="count", block=block, examples=examples)
