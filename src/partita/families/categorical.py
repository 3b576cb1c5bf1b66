"""Categorical columns under symmetric Dirichlet priors; columns may differ in their number of levels.

A column may count more or less than once: its marginal likelihood (parameters integrated out) is raised to a power. Ten
copies of a column with power 1/10 then have exactly the same effect as one column. This would not hold if the
likelihood itself were raised to the power, because each copy would still have parameters of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from partita.dispatch import kernel
from partita.families.columns import put_columns, take_columns
from partita.families.contract import (
    cache_start,
    constrained,
    curvature,
    draw,
    expect,
    faster_in_single,
    fill_log_marginals,
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
    ready,
    refresh,
    scatter,
    score,
    score_own,
    simulate,
    spread,
    spread_start,
    stats_start,
    summarize,
    touch,
    unconstrained,
)
from partita.families.hyper import newton_root
from partita.families.registry import Block, register_family


class Categorical(NamedTuple):
    """Categorical-Dirichlet family: level codes 0, 1, ... and -1 for missing.

    Statistics of a column with V levels: the number of observed codes, then the count of each level. The natural
    parameter of the first is zero; the others are log probabilities. With a power other than 1, marginals and
    predictives are not densities of the codes, and ``project`` multiplies ``<theta, t(x)>`` by the power. Collapsed
    engines, EM and VB then give the column less (or more) weight.

    Good for survey items, label matrices, any nominal column. Not for ordered codes whose distance matters.

    Examples
    --------
    >>> lik = Categorical.default([3, 2])
    >>> lik.alpha
    array([0.5, 0.5])
    """

    alpha: np.ndarray  # pseudo-count of every level, per column
    offsets: np.ndarray  # first row of the statistics of each column; the last entry is their total
    power: np.ndarray  # power of the marginal likelihood, per column
    tied: bool  # whether all columns share one pseudo-count, learned from all of them

    @classmethod
    def default(cls, n_levels, *, alpha: float = 0.5, power=1.0, tied: bool = False) -> Categorical:
        """Return pseudo-counts of one half per level (the Jeffreys prior)."""
        sizes = np.asarray(n_levels, np.int64) + 1
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        ones = np.ones(len(sizes))
        return cls(alpha * ones, offsets, power * ones, bool(tied))

    @property
    def n_levels(self) -> np.ndarray:
        """The number of levels of each column."""
        return np.diff(self.offsets) - 1


@n_columns.register(Categorical)
def _(lik):
    return lik.alpha.shape[0]


@stats_start.register(Categorical)
def _(lik, d):
    return lik.offsets[d]


@cache_start.register(Categorical)
def _(lik, d):
    return lik.offsets[d]


@observe.register(Categorical)
def _(lik, d, s, x, w):
    if x >= 0:
        s[0] += w
        s[1 + x] += w


@log_marginal.register(Categorical, inline=False)
def _(lik, d, s):
    a, V = lik.alpha[d], s.shape[0] - 1
    out = math.lgamma(a * V) - math.lgamma(a * V + s[0]) - V * math.lgamma(a)
    for v in range(V):
        out += math.lgamma(a + s[1 + v])
    return lik.power[d] * out


@kernel
def largest_count(lik, S):
    """The largest of statistics that are all whole numbers, under one pseudo-count for all columns; otherwise -1."""
    for d in range(lik.alpha.shape[0]):
        if lik.alpha[d] != lik.alpha[0]:
            return -1
    largest = 0.0
    for e in range(S.shape[0]):
        for k in range(S.shape[1]):
            if S[e, k] != math.floor(S[e, k]) or S[e, k] < 0.0:
                return -1
            largest = max(largest, S[e, k])
    return int(largest) if largest < S.size else -1


@fill_log_marginals.register(Categorical, inline=False)
def _(lik, S, out):
    # the terms of log_marginal in the same order, but each of the few values that occur in many columns only once
    top = largest_count(lik, S)
    widest = 0
    for d in range(out.shape[0]):
        widest = max(widest, lik.offsets[d + 1] - lik.offsets[d] - 1)
    if (top + 1) * (widest + 1) > S.size or top < 0:
        for d in range(out.shape[0]):
            for k in range(S.shape[1]):
                out[d, k] = log_marginal(lik, d, S[lik.offsets[d] : lik.offsets[d + 1], k])
        return
    of_count, of_total = np.full(top + 1, np.nan), np.full((widest + 1, top + 1), np.nan)
    a = lik.alpha[0]
    log_alpha = math.lgamma(a)
    for d in range(out.shape[0]):
        lo, V = lik.offsets[d], lik.offsets[d + 1] - lik.offsets[d] - 1
        totals, log_all = of_total[V], math.lgamma(a * V)
        for k in range(S.shape[1]):
            n = int(S[lo, k])
            if math.isnan(totals[n]):
                totals[n] = math.lgamma(a * V + n)
            term = log_all - totals[n] - V * log_alpha
            for v in range(V):
                n = int(S[lo + 1 + v, k])
                if math.isnan(of_count[n]):
                    of_count[n] = math.lgamma(a + n)
                term += of_count[n]
            out[d, k] = lik.power[d] * term


@refresh.register(Categorical, inline=False)
def _(lik, d, s, c, k):
    a, V, h = lik.alpha[d], s.shape[0] - 1, lik.power[d]
    c[0, k] = h * math.log(a * V + s[0])
    for v in range(V):
        c[1 + v, k] = h * math.log(a + s[1 + v])


@touch.register(Categorical)
def _(lik, d, s, c, k, x):
    if x >= 0:
        a, V, h = lik.alpha[d], s.shape[0] - 1, lik.power[d]
        c[0, k] = h * math.log(a * V + s[0])
        c[1 + x, k] = h * math.log(a + s[1 + x])


@ready.register(Categorical)
def _(lik, d, s, c, x):
    touch(lik, d, s, c, 0, x)


@score.register(Categorical)
def _(lik, d, c, x, K, out):
    if x >= 0:
        # fill whole SIMD vectors: entries beyond K are not read
        stop = min((K + 7) // 8 * 8, out.shape[0], c.shape[1])
        for k in range(stop):
            out[k] += c[1 + x, k] - c[0, k]


@score_own.register(Categorical)
def _(lik, d, s, c, k, x, acc):
    if x >= 0:
        a, V, h = lik.alpha[d], s.shape[0] - 1, lik.power[d]
        if h == 1.0:
            acc[0] *= a + s[1 + x] - 1.0
            acc[1] *= a * V + s[0] - 1.0
        else:
            acc[2] += h * math.log((a + s[1 + x] - 1.0) / (a * V + s[0] - 1.0))


@project.register(Categorical)
def _(lik, d, theta, x, L, j):
    if x >= 0:
        for k in range(L.shape[1]):
            L[j, k] += lik.power[d] * theta[1 + x, k]


@scatter.register(Categorical)
def _(lik, d, S, theta, x, R, j):
    if x >= 0:
        for k in range(R.shape[1]):
            S[0, k] += R[j, k]
            S[1 + x, k] += R[j, k]
    return 0.0


@spread_start.register(Categorical)
def _(lik, d):
    return lik.offsets[d]


@spread.register(Categorical)
def _(lik, d, v, x, w):
    if x >= 0:
        v[0] += w
        v[1 + x] += w


@curvature.register(Categorical)
def _(lik, d, s, v, x):
    if x < 0:
        return 0.0
    a, V = lik.alpha[d], s.shape[0] - 1
    return lik.power[d] * 0.5 * (v[0] / (a * V + s[0]) ** 2 - v[1 + x] / (a + s[1 + x]) ** 2)


def _spread_out(lik: Categorical, per_column: np.ndarray) -> np.ndarray:
    """Repeat one value (or row) per column over the rows of the statistics of that column."""
    return np.repeat(per_column, np.diff(lik.offsets), axis=0)


def _totals(lik: Categorical, S: np.ndarray) -> np.ndarray:
    return S[lik.offsets[:-1]]


@expect.register(Categorical)
def _(lik, S):
    prior_total = (lik.alpha * lik.n_levels)[:, None]
    theta = digamma(S + _spread_out(lik, lik.alpha)[:, None]) - _spread_out(
        lik, digamma(_totals(lik, S) + prior_total)
    )
    theta[lik.offsets[:-1]] = 0.0
    return theta


@mode.register(Categorical)
def _(lik, S):
    # with pseudo-counts below 1 the density increases towards the boundary of the simplex: the mode is clipped to it
    P = np.maximum(S + _spread_out(lik, lik.alpha - 1.0)[:, None], 0.0)
    P[lik.offsets[:-1]] = 0.0
    total = np.add.reduceat(P, lik.offsets[:-1], axis=0)
    levels = _spread_out(lik, lik.n_levels.astype(float))[:, None]
    total_rows = _spread_out(lik, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = np.where(total_rows > 0, np.log(P / total_rows), -np.log(levels))
    theta[lik.offsets[:-1]] = 0.0
    return theta


@faster_in_single.register(Categorical)
def _(lik):
    return True


@flat.register(Categorical)
def _(lik):
    return lik._replace(alpha=np.ones_like(lik.alpha))


@interior.register(Categorical)
def _(lik):
    return lik._replace(alpha=lik.alpha + 1.0)


@log_prior.register(Categorical)
def _(lik, theta):
    a, V = lik.alpha, lik.n_levels
    constant = np.sum(gammaln(a * V) - V * gammaln(a))
    weight = _spread_out(lik, a - 1.0)[:, None]
    with np.errstate(invalid="ignore"):
        return constant + np.sum(np.where(weight == 0.0, 0.0, weight * theta), axis=0)


@draw.register(Categorical)
def _(lik, S, rng):
    G = rng.standard_gamma(S + _spread_out(lik, lik.alpha)[:, None])
    G[lik.offsets[:-1]] = 0.0
    G = np.maximum(G, np.finfo(float).tiny)
    total = np.add.reduceat(G, lik.offsets[:-1], axis=0)
    theta = np.log(G) - np.log(_spread_out(lik, total))
    theta[lik.offsets[:-1]] = 0.0
    return theta


@simulate.register(Categorical)
def _(lik, theta, z, rng):
    X = np.empty((len(z), len(lik.alpha)), np.int32)
    for d, (lo, hi) in enumerate(zip(lik.offsets[:-1], lik.offsets[1:], strict=True)):
        edges = np.cumsum(np.exp(theta[lo + 1 : hi]), axis=0)
        u = rng.random(len(z)) * edges[-1, z]
        X[:, d] = np.minimum((u[None, :] > edges[:, z]).sum(axis=0), hi - lo - 2)
    return X


@learn.register(Categorical)
def _(lik, S, n):
    """Newton steps on the Dirichlet-multinomial evidence of each column (or of all) in the log of the pseudo-count."""
    S = S[:, n >= 1.0]
    V = lik.n_levels
    head = lik.offsets[:-1]

    def slope(log_a):
        a = np.exp(log_a)
        rows, t = _spread_out(lik, a)[:, None], _totals(lik, S)

        def level_sum(f):
            values = f(S + rows) - f(rows)
            values[head] = 0.0
            return np.add.reduceat(values, head, axis=0).sum(axis=1)

        aV = (a * V)[:, None]
        first = level_sum(digamma) - V * (digamma(t + aV) - digamma(aV)).sum(axis=1)
        second = level_sum(_trigamma) - V**2 * (_trigamma(t + aV) - _trigamma(aV)).sum(axis=1)
        if lik.tied:
            first, second = (np.full_like(a, lik.power @ slopes) for slopes in (first, second))
        return a * first, a * first + a * a * second

    return lik._replace(alpha=np.exp(newton_root(slope, np.log(lik.alpha), np.log(1e-3), np.log(1e2))))


@unconstrained.register(Categorical)
def _(lik):
    return {"alpha": np.log(lik.alpha[:1] if lik.tied else lik.alpha)}


@constrained.register(Categorical)
def _(lik, name, value):
    return lik._replace(**{name: np.exp(value) * np.ones_like(lik.alpha)})


def _trigamma(x: np.ndarray) -> np.ndarray:
    return polygamma(1, x)


@summarize.register(Categorical)
def _(lik, S):
    P = S + _spread_out(lik, lik.alpha)[:, None]
    P[lik.offsets[:-1]] = 0.0
    P /= _spread_out(lik, np.add.reduceat(P, lik.offsets[:-1], axis=0))
    return {"probabilities": np.delete(P, lik.offsets[:-1], axis=0).T}


@n_parameters.register(Categorical)
def _(lik):
    return int(np.sum(lik.n_levels - 1))


@take_columns.register(Categorical)
def _(lik, positions):
    sizes = np.diff(lik.offsets)[positions]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Categorical(lik.alpha[positions], offsets, lik.power[positions], lik.tied)


@put_columns.register(Categorical)
def _(lik, positions, part):
    alpha = lik.alpha.copy()
    alpha[positions] = part.alpha
    return lik._replace(alpha=alpha)


def block(X, columns, weights, *, n_levels, alpha: float = 0.5, **_) -> Block:
    """Make a block of codes, given the number of levels of each column."""
    return Block(Categorical.default(n_levels, alpha=alpha), X, tuple(columns))


def examples(rng):
    """Columns of two, three and five levels; the last example has powers, which are not densities."""
    levels = [2, 3, 5]
    lik = Categorical.default(levels)._replace(alpha=np.array([0.5, 1.2, 0.3]))
    uniform = Categorical.default(levels, alpha=1.0)
    X = np.column_stack([rng.integers(v, size=8) for v in levels]).astype(np.int8)
    powered = Categorical.default(levels, alpha=0.7, power=[0.3, 1.0, 2.2], tied=True)
    return [(lik, X), (uniform, X), (powered, X)]


register_family("categorical", Categorical, kind="categorical", block=block, examples=examples)
