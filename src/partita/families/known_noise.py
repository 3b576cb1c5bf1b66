"""Real columns of unit noise, whose cluster means have a normal prior.

The additive model of overlapping views scales each column by its noise; given the other views, the labels of one view
are a mixture of such columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita.families.contract import (
    cache_start,
    draw,
    expect,
    flat,
    log_marginal,
    log_prior,
    mode,
    n_columns,
    n_parameters,
    observe,
    refresh,
    score,
    score_own,
    simulate,
    stats_start,
    summarize,
)
from partita.families.gaussian import LOG_2PI


class KnownNoise(NamedTuple):
    """Normal family of unit variance: ``x ~ N(mean, 1)``, ``mean ~ N(0, 1 / precision)``; NaN is missing.

    Statistics of a column: number, sum and sum of squares.

    Good for columns whose noise is known, after division by it. Not for clusters of different width: use
    :class:`GaussianDiagonal`. The family is for models that know the noise, and is not registered by name.

    Examples
    --------
    >>> KnownNoise(np.array([0.5]))
    KnownNoise(precision=array([0.5]))
    """

    precision: np.ndarray  # of the prior of the cluster means, per column


@n_columns.register(KnownNoise)
def _(lik):
    return lik.precision.shape[0]


@stats_start.register(KnownNoise)
def _(lik, d):
    return 3 * d


@cache_start.register(KnownNoise)
def _(lik, d):
    return 3 * d


@observe.register(KnownNoise)
def _(lik, d, s, x, w):
    if not math.isnan(x):
        s[0] += w
        s[1] += w * x
        s[2] += w * x * x


@log_marginal.register(KnownNoise, inline=False)
def _(lik, d, s):
    k = lik.precision[d] + s[0]
    return 0.5 * (math.log(lik.precision[d] / k) - s[0] * LOG_2PI - s[2] + s[1] * s[1] / k)


@refresh.register(KnownNoise, inline=False)
def _(lik, d, s, c, k):
    """The mean, half the precision and the log constant of the predictive density."""
    weight = lik.precision[d] + s[0]
    half = 0.5 * weight / (weight + 1.0)
    c[0, k] = s[1] / weight
    c[1, k] = half
    c[2, k] = 0.5 * (math.log(2.0 * half) - LOG_2PI)


@score.register(KnownNoise)
def _(lik, d, c, x, K, out):
    if not math.isnan(x):
        for k in range(K):
            gap = x - c[0, k]
            out[k] += c[2, k] - c[1, k] * gap * gap


@score_own.register(KnownNoise)
def _(lik, d, s, c, k, x, acc):
    if not math.isnan(x):
        weight = lik.precision[d] + s[0] - 1.0
        gap = x - (s[1] - x) / weight
        acc[2] -= 0.5 * gap * gap * weight / (weight + 1.0) + 0.5 * LOG_2PI
        acc[0] *= math.sqrt(weight / (weight + 1.0))


def _posteriors(lik: KnownNoise, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and precisions of the cluster means, [column, cluster]."""
    precision = lik.precision[:, None] + S[0::3]
    return S[1::3] / np.where(precision > 0, precision, 1.0), precision


def _natural(mean: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Natural parameters from the (expected) means and squared means."""
    rows = [-0.5 * (square + LOG_2PI), mean, np.full_like(mean, -0.5)]
    return np.stack(rows, axis=1).reshape(-1, mean.shape[1])


@expect.register(KnownNoise)
def _(lik, S):
    mean, precision = _posteriors(lik, S)
    return _natural(mean, mean**2 + 1.0 / precision)


@mode.register(KnownNoise)
def _(lik, S):
    mean, _ = _posteriors(lik, S)
    return _natural(mean, mean**2)


@flat.register(KnownNoise)
def _(lik):
    return KnownNoise(np.zeros_like(lik.precision))


@log_prior.register(KnownNoise)
def _(lik, theta):
    if not lik.precision.any():  # flat
        return np.zeros(theta.shape[1])
    precision = lik.precision[:, None]
    return 0.5 * (np.log(precision) - LOG_2PI - precision * theta[1::3] ** 2).sum(axis=0)


@draw.register(KnownNoise)
def _(lik, S, rng):
    mean, precision = _posteriors(lik, S)
    mean = mean + rng.standard_normal(mean.shape) / np.sqrt(precision)
    return _natural(mean, mean**2)


@simulate.register(KnownNoise)
def _(lik, theta, z, rng):
    return theta[1::3, z].T + rng.standard_normal((len(z), len(lik.precision)))


@summarize.register(KnownNoise)
def _(lik, S):
    return {"means": _posteriors(lik, S)[0].T}


@n_parameters.register(KnownNoise)
def _(lik):
    return len(lik.precision)
