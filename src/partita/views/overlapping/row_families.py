"""Families of the row step: normal columns of known noise, and columns with a component for each combination of labels.

Both make one view's labels an ordinary mixture, given the other views, so that the Gibbs sweeps and split-merge moves
of :mod:`partita.engines.gibbs.sweep` serve the overlapping model as they are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita.families.contract import (
    cache_start,
    datum,
    log_marginal,
    n_columns,
    observe,
    refresh,
    score,
    score_own,
    stats_start,
    touch,
)

__all__ = ["Crossed", "CrossedData", "KnownNoise", "crossed"]

LOG_2PI = math.log(2.0 * math.pi)


class KnownNoise(NamedTuple):
    """Normal columns of unit noise; each cluster's mean is ``N(0, 1 / precision)``; NaN is missing.

    Statistics of a column: number, sum and sum of squares.
    """

    precision: np.ndarray


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
    """Mean, half the precision, and the constant of the predictive density."""
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


class CrossedData(NamedTuple):
    """Data of a family, and for every row and column the combination of the other views' labels."""

    data: Any
    group: np.ndarray


class Crossed(NamedTuple):
    """Some columns of a family, with one component for each combination of the view's clusters and the others' labels.

    Column j is column ``columns[j]`` of the family; its statistics are those of its combinations, one after the other.
    """

    family: Any
    columns: np.ndarray
    stats_at: np.ndarray  # first row of the statistics of each column, and their total
    cache_at: np.ndarray


def crossed(family: Any, columns: np.ndarray, n_groups: np.ndarray) -> Crossed:
    """The columns of a family with so many combinations of the other views' labels in each."""
    width = np.array([stats_start(family, d + 1) - stats_start(family, d) for d in columns], dtype=np.int64)
    cached = np.array([cache_start(family, d + 1) - cache_start(family, d) for d in columns], dtype=np.int64)
    at, cache_at = (np.concatenate([[0], np.cumsum(n_groups * w)]).astype(np.int64) for w in (width, cached))
    return Crossed(family, np.asarray(columns, dtype=np.int64), at, cache_at)


@n_columns.register(Crossed)
def _(lik):
    return lik.columns.shape[0]


@stats_start.register(Crossed)
def _(lik, d):
    return lik.stats_at[d]


@cache_start.register(Crossed)
def _(lik, d):
    return lik.cache_at[d]


@datum.register(Crossed)
def _(lik, data, i, d):
    return datum(lik.family, data.data, i, lik.columns[d]), data.group[i, d]


@observe.register(Crossed, inline=False)
def _(lik, d, s, x, w):
    e = lik.columns[d]
    width = stats_start(lik.family, e + 1) - stats_start(lik.family, e)
    observe(lik.family, e, s[x[1] * width : (x[1] + 1) * width], x[0], w)


@log_marginal.register(Crossed, inline=False)
def _(lik, d, s):
    e = lik.columns[d]
    width = stats_start(lik.family, e + 1) - stats_start(lik.family, e)
    out = 0.0
    for g in range(s.shape[0] // width):
        out += log_marginal(lik.family, e, s[g * width : (g + 1) * width])
    return out


@refresh.register(Crossed, inline=False)
def _(lik, d, s, c, k):
    e = lik.columns[d]
    width = stats_start(lik.family, e + 1) - stats_start(lik.family, e)
    cached = cache_start(lik.family, e + 1) - cache_start(lik.family, e)
    for g in range(s.shape[0] // width):
        refresh(lik.family, e, s[g * width : (g + 1) * width], c[g * cached : (g + 1) * cached], k)


@touch.register(Crossed, inline=False)
def _(lik, d, s, c, k, x):
    e, g = lik.columns[d], x[1]
    width = stats_start(lik.family, e + 1) - stats_start(lik.family, e)
    cached = cache_start(lik.family, e + 1) - cache_start(lik.family, e)
    touch(lik.family, e, s[g * width : (g + 1) * width], c[g * cached : (g + 1) * cached], k, x[0])


@score.register(Crossed, inline=False)
def _(lik, d, c, x, K, out):
    e = lik.columns[d]
    cached = cache_start(lik.family, e + 1) - cache_start(lik.family, e)
    score(lik.family, e, c[x[1] * cached : (x[1] + 1) * cached], x[0], K, out)


@score_own.register(Crossed, inline=False)
def _(lik, d, s, c, k, x, acc):
    e, g = lik.columns[d], x[1]
    width = stats_start(lik.family, e + 1) - stats_start(lik.family, e)
    cached = cache_start(lik.family, e + 1) - cache_start(lik.family, e)
    score_own(lik.family, e, s[g * width : (g + 1) * width], c[g * cached : (g + 1) * cached], k, x[0], acc)
