"""Real columns of unit noise whose cluster means are multiplied by the size of the row.

The counterpart of :class:`~partita.families.known_noise.KnownNoise` for tables in which differences between clusters
grow with a quantity of the row, such as the brightness of an image.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita.families.contract import (
    cache_start,
    datum,
    log_marginal,
    n_columns,
    observe,
    refresh,
    score,
    stats_start,
)
from partita.families.data import n_rows


class Sized(NamedTuple):
    """Real columns, and the size of each row."""

    X: np.ndarray
    size: np.ndarray


@n_rows.register(Sized)
def _(data):
    return len(data.X)


class SizedNoise(NamedTuple):
    """Normal family of unit variance: ``x ~ N(size * mean, 1)``, ``mean ~ N(0, 1 / precision)``; NaN is missing.

    Statistics of a column: sum of squared sizes, and of sizes times values. Densities are relative to that of the noise
    alone, ``N(0, 1)``, which does not depend on clusters.

    Good for labels given the sizes of the rows and the noise. Not for tables without sizes: use :class:`KnownNoise`,
    which needs no logarithm per cell. The family is for models that know sizes and noise, and is not registered by
    name.

    Examples
    --------
    >>> SizedNoise(np.array([0.5]))
    SizedNoise(precision=array([0.5]))
    """

    precision: np.ndarray  # of the prior of the cluster means, per column


@n_columns.register(SizedNoise)
def _(lik):
    return lik.precision.shape[0]


@stats_start.register(SizedNoise)
def _(lik, d):
    return 2 * d


@cache_start.register(SizedNoise)
def _(lik, d):
    return 2 * d


@datum.register(SizedNoise)
def _(lik, data, i, d):
    return data.X[i, d], data.size[i]


@observe.register(SizedNoise)
def _(lik, d, s, x, w):
    value, size = x
    if not math.isnan(value):
        s[0] += w * size * size
        s[1] += w * size * value


@log_marginal.register(SizedNoise, inline=False)
def _(lik, d, s):
    k = lik.precision[d] + s[0]
    return 0.5 * (math.log(lik.precision[d] / k) + s[1] * s[1] / k)


@refresh.register(SizedNoise, inline=False)
def _(lik, d, s, c, k):
    """The mean, and its posterior variance."""
    weight = lik.precision[d] + s[0]
    c[0, k] = s[1] / weight
    c[1, k] = 1.0 / weight


@score.register(SizedNoise)
def _(lik, d, c, x, K, out):
    value, size = x
    if not math.isnan(value):
        square = size * size
        for k in range(K):
            variance = 1.0 + square * c[1, k]
            gap = value - size * c[0, k]
            out[k] += 0.5 * (value * value - gap * gap / variance - math.log(variance))
