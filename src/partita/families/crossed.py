"""Columns with one component for each combination of a cluster and a given group of the row.

In overlapping views the distribution of a column depends on the labels of several views. Given the labels of the other
views, each row of the column belongs to a known group (the combination of those labels), and the labels of one view
are an ordinary mixture: a cluster has one set of statistics per group. This family makes that mixture out of any family
of single columns, so that the Gibbs sweeps and split-merge moves of :mod:`partita.engines.gibbs` run on it unchanged.

It implements the compiled half of the contract, which collapsed samplers need, and not the array functions: EM, VB
and simulation work with the wrapped family. It is therefore not registered by name.
"""

from __future__ import annotations

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
from partita.families.data import n_rows, take


class CrossedData(NamedTuple):
    """Data of a family, and the group of every row in every column.

    Attributes
    ----------
    data : container
        The data of all columns of the wrapped family.
    group : ndarray of int, shape (n_rows, n_columns)
        The group of each row in each of the chosen columns.
    """

    data: Any
    group: np.ndarray


@n_rows.register(CrossedData)
def _(data):
    return n_rows(data.data)


@take.register(CrossedData)
def _(data, rows):
    return CrossedData(take(data.data, rows), take(data.group, rows))


class Crossed(NamedTuple):
    """Some columns of a family, with one component per group in every cluster.

    Column j is column ``columns[j]`` of the wrapped family. Its statistics are those of its groups, one after the
    other, and so is its predictive cache.

    Good for the row step of overlapping views. Not for families whose datum is a whole vector.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> lik = crossed(Bernoulli.default(3), np.array([0, 2]), np.array([2, 4]))
    >>> int(n_columns(lik)), lik.stats_at.tolist()
    (2, [0, 4, 12])
    """

    family: Any
    columns: np.ndarray
    stats_at: np.ndarray  # first row of the statistics of each column; the last entry is their total
    cache_at: np.ndarray  # the same for the predictive cache


def crossed(family: Any, columns: np.ndarray, n_groups: np.ndarray) -> Crossed:
    """Return the chosen columns of a family, where column j has ``n_groups[j]`` groups.

    Parameters
    ----------
    family : NamedTuple
        A family of single columns.
    columns : ndarray of int
        The columns to take.
    n_groups : ndarray of int
        The number of groups in each of these columns.
    """
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
