"""Real columns whose cluster means are multiplied by the size of the row, under normal-inverse-gamma priors.

The counterpart of :class:`~partita.families.gaussian.GaussianDiagonal` for tables in which differences between clusters
grow with a quantity of the row, such as the brightness of an image, and the noise does not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita.dispatch import kernel
from partita.families.columns import column_by_column, take_data
from partita.families.contract import (
    cache_start,
    constrained,
    datum,
    draw,
    log_marginal,
    n_columns,
    observe,
    refresh,
    score,
    stats_start,
    unconstrained,
)
from partita.families.data import take
from partita.families.gaussian import LOG_2PI, GaussianDiagonal
from partita.families.sized_noise import Sized
from partita.families.special import log_gamma_ratio


@take_data.register(Sized)
def _(data, positions):
    return Sized(np.ascontiguousarray(data.X[:, positions]), data.size)


@column_by_column.register(Sized)
def _(data):
    return Sized(np.asfortranarray(data.X), data.size)


@take.register(Sized)
def _(data, rows):
    return Sized(take(data.X, rows), take(data.size, rows))


class SizedGaussian(NamedTuple):
    """Normal-inverse-gamma family with sizes: ``x ~ N(size * mean, variance)``; NaN is missing.

    The priors are those of :class:`GaussianDiagonal`: ``1/variance ~ Gamma(a, b)``, ``mean ~ N(m, variance / k)``.
    Statistics of a column: number, sum of squared sizes, sum of sizes times values, sum of squared values.

    Good for tables whose rows have sizes. Not for tables without: :class:`GaussianDiagonal` needs one logarithm less
    per cell. The family is for models that know the sizes, and is not registered by name.

    Examples
    --------
    >>> SizedGaussian.like(GaussianDiagonal.default(1))
    SizedGaussian(m=array([0.]), k=array([0.1]), a=array([1.5]), b=array([0.3]))
    """

    m: np.ndarray
    k: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @classmethod
    def like(cls, family: GaussianDiagonal) -> SizedGaussian:
        """The family with the same priors."""
        return cls(*family)


@n_columns.register(SizedGaussian)
def _(lik):
    return lik.m.shape[0]


@stats_start.register(SizedGaussian)
def _(lik, d):
    return 4 * d


@cache_start.register(SizedGaussian)
def _(lik, d):
    return 5 * d


@datum.register(SizedGaussian)
def _(lik, data, i, d):
    return data.X[i, d], data.size[i]


@observe.register(SizedGaussian)
def _(lik, d, s, x, w):
    value, size = x
    if not math.isnan(value):
        s[0] += w
        s[1] += w * size * size
        s[2] += w * size * value
        s[3] += w * value * value


@kernel
def sized_posterior(lik, d, s):
    """Return the posterior (m, k, a, b) of one column in one cluster."""
    k = lik.k[d] + s[1]
    m = (lik.k[d] * lik.m[d] + s[2]) / k
    a = lik.a[d] + 0.5 * s[0]
    b = lik.b[d] + 0.5 * max(s[3] + lik.k[d] * lik.m[d] ** 2 - k * m * m, 0.0)
    return m, k, a, b


@log_marginal.register(SizedGaussian, inline=False)
def _(lik, d, s):
    m, k, a, b = sized_posterior(lik, d, s)
    out = math.lgamma(a) - math.lgamma(lik.a[d]) + lik.a[d] * math.log(lik.b[d]) - a * math.log(b)
    return out + 0.5 * math.log(lik.k[d] / k) - 0.5 * s[0] * LOG_2PI


@refresh.register(SizedGaussian, inline=False)
def _(lik, d, s, c, j):
    m, k, a, b = sized_posterior(lik, d, s)
    c[0, j] = m
    c[1, j] = 1.0 / k
    c[2, j] = a + 0.5
    c[3, j] = log_gamma_ratio(a, 0.5) - 0.5 * math.log(2.0 * math.pi * b)
    c[4, j] = 0.5 / b


@score.register(SizedGaussian)
def _(lik, d, c, x, K, out):
    value, size = x
    if not math.isnan(value):
        square = size * size
        for k in range(K):
            spread = 1.0 + square * c[1, k]
            gap = value - size * c[0, k]
            out[k] += c[3, k] - 0.5 * math.log(spread) - c[2, k] * math.log1p(gap * gap * c[4, k] / spread)


@draw.register(SizedGaussian)
def _(lik, S, rng):
    """Means and precisions, columns interleaved."""
    m0, k0, a0, b0 = (value[:, None] for value in lik)
    k = k0 + S[1::4]
    m = (k0 * m0 + S[2::4]) / k
    b = b0 + 0.5 * np.maximum(S[3::4] + k0 * m0**2 - k * m**2, 0.0)
    tau = np.maximum(rng.standard_gamma(a0 + 0.5 * S[0::4]), np.finfo(float).tiny) / b
    mean = m + rng.standard_normal(m.shape) / np.sqrt(k * tau)
    return np.stack([mean, tau], axis=1).reshape(-1, S.shape[1])


@unconstrained.register(SizedGaussian)
def _(lik):
    return unconstrained(GaussianDiagonal(*lik))


@constrained.register(SizedGaussian)
def _(lik, name, value):
    return SizedGaussian(*constrained(GaussianDiagonal(*lik), name, value))
