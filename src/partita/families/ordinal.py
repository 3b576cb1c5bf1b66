"""Ordinal columns: each level is an interval of a latent normal variable, under normal-inverse-gamma priors."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtr

from partita.dispatch import kernel
from partita.families.columns import column_by_column, take_columns, take_data
from partita.families.contract import (
    cache_start,
    constrained,
    datum,
    draw,
    expect,
    flat,
    hidden_rows,
    impute,
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
    score_own,
    simulate,
    stats_start,
    summarize,
    touch,
    unconstrained,
    widened,
)
from partita.families.gaussian import LOG_2PI, GaussianDiagonal
from partita.families.intervals import (
    draw_interval,
    interval_moments,
    log_interval,
    log_student_interval,
)
from partita.families.registry import Block, register_family
from partita.families.rows import (
    add_expected_statistics,
    add_log_likelihood,
    add_log_predictive,
    project_rows,
    scatter_rows,
    score_rows,
)

PSEUDO_COUNT = 0.5  # added to the count of each level before the cuts are computed: no interval is empty


class Levels(NamedTuple):
    """Levels (codes from 0 on, -1 missing) and the latent variable of each cell, NaN where it is not known.

    In a table only the codes are known; chains work on a copy in which the latent variables are drawn.
    """

    codes: np.ndarray
    latent: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray) -> Levels:
        """Return the data of a table: codes, whose latent variables are unknown."""
        return cls(codes, np.full(codes.shape, np.nan))


@take_data.register(Levels)
def _(data, positions):
    return Levels(*(np.ascontiguousarray(part[:, positions]) for part in data))


@column_by_column.register(Levels)
def _(data):
    return Levels(*(np.asfortranarray(part) for part in data))


class Ordinal(NamedTuple):
    """Interval-censored normal family: level j means that a latent z lies between the cuts j and j + 1; -1 is missing.

    In each cluster ``z ~ N(mean, variance)`` with priors as in :class:`GaussianDiagonal`. The cuts are fixed: the
    normal quantiles of the shares of the levels in the whole column, so that z has about mean 0 and variance 1 there.
    Statistics of a column: ``n, sum z, sum z^2``. The datum of a cell is its interval and, if drawn, its z.

    Good for answers on a scale (agreement, grades, stages), where a group prefers neighboring levels. Not for groups
    that prefer two distant levels to those between them: use :class:`Categorical`.

    Examples
    --------
    >>> lik = Ordinal.default(np.array([[30.0, 40.0, 30.0]]), [3])
    >>> lik.cuts.round(2)
    array([ -inf, -0.52,  0.52,   inf])
    >>> summarize(lik, np.array([[10.0], [8.0], [9.0]]))["probabilities"].round(2)
    array([[0.04, 0.33, 0.64]])
    """

    m: np.ndarray
    k: np.ndarray
    a: np.ndarray
    b: np.ndarray
    cuts: np.ndarray  # of all columns, one after the other, from -inf to inf
    starts: np.ndarray  # of the columns in the cuts

    @classmethod
    def default(cls, counts, n_levels, *, m=0.0, k=0.5, a=3.0, b=1.8) -> Ordinal:
        """Return the cuts that suit these counts of levels, per column, and priors for the latent variables.

        The latent variable of the whole column has variance 1, which clusters share between their width and the
        distances of their means. So both priors are narrower than those of real columns: a width around 0.8, means
        about 1.1 apart from 0.
        """
        cuts = [level_cuts(np.asarray(own)[:n]) for own, n in zip(counts, n_levels, strict=True)]
        starts = np.concatenate([[0], np.cumsum([len(own) for own in cuts])]).astype(np.int64)
        prior = GaussianDiagonal.default(len(cuts), m=m, k=k, a=a, b=b)
        return cls(*prior, np.concatenate([*cuts, np.zeros(0)]), starts)

    @property
    def n_levels(self) -> np.ndarray:
        """Number of levels of each column."""
        return np.diff(self.starts) - 1


def level_cuts(counts: np.ndarray) -> np.ndarray:
    """Normal quantiles of the cumulative shares of the levels, from -inf to inf.

    Examples
    --------
    >>> level_cuts(np.array([25.0, 50.0, 25.0])).round(3)
    array([  -inf, -0.671,  0.671,    inf])
    """
    shares = np.asarray(counts, float) + PSEUDO_COUNT
    below = np.cumsum(shares)[:-1] / shares.sum()
    return np.concatenate([[-np.inf], ndtri(below), [np.inf]])


@kernel
def latent(lik):
    """The family of the latent variables."""
    return GaussianDiagonal(lik.m, lik.k, lik.a, lik.b)


def _latent(lik: Ordinal) -> GaussianDiagonal:
    return GaussianDiagonal(*lik[:4])


@n_columns.register(Ordinal)
def _(lik):
    return lik.m.shape[0]


@stats_start.register(Ordinal)
def _(lik, d):
    return 3 * d


@cache_start.register(Ordinal)
def _(lik, d):
    return 4 * d


@datum.register(Ordinal)
def _(lik, data, i, d):
    """The ends of the interval and the latent variable, NaN if it is not known; a missing cell has infinite ends."""
    code = data.codes[i, d]
    if code < 0:
        return -math.inf, math.inf, math.nan
    at = lik.starts[d] + code
    return lik.cuts[at], lik.cuts[at + 1], data.latent[i, d]


@kernel
def is_missing(x):
    """Whether nothing is known about a cell."""
    return math.isnan(x[2]) and x[0] == -math.inf and x[1] == math.inf


@observe.register(Ordinal)
def _(lik, d, s, x, w):
    if not is_missing(
        x
    ):  # an interval without its latent variable spoils the statistics: the engine draws it before
        z = x[2]
        s[0] += w
        s[1] += w * z
        s[2] += w * z * z


@log_marginal.register(Ordinal, inline=False)
def _(lik, d, s):
    return log_marginal(latent(lik), d, s)


@refresh.register(Ordinal, inline=False)
def _(lik, d, s, c, k):
    refresh(latent(lik), d, s, c, k)


@touch.register(Ordinal, inline=False)
def _(lik, d, s, c, k, x):
    touch(latent(lik), d, s, c, k, x[2])


@score.register(Ordinal, inline=False)
def _(lik, d, c, x, K, out):
    lo, hi, z = x
    if not math.isnan(z):
        score(latent(lik), d, c, z, K, out)
    elif not is_missing(x):  # the level: Student's t between the ends
        for k in range(K):
            freedom = 2.0 * c[2, k] - 1.0
            inverse = math.sqrt(freedom * c[1, k])
            out[k] += log_student_interval((lo - c[0, k]) * inverse, (hi - c[0, k]) * inverse, freedom)


@score_own.register(Ordinal, inline=False)
def _(lik, d, s, c, k, x, acc):
    score_own(latent(lik), d, s, c, k, x[2], acc)


@project.register(Ordinal, inline=False)
def _(lik, d, theta, x, L, j):
    lo, hi, z = x
    if not math.isnan(z):
        project(latent(lik), d, theta, z, L, j)
    elif not is_missing(x):
        for k in range(L.shape[1]):
            L[j, k] += log_integral(theta[0, k], theta[1, k], theta[2, k], lo, hi)


@kernel
def log_integral(constant, linear, square, lo, hi):
    """Log of the integral of ``exp(constant + linear z + square z^2)`` over an interval."""
    tau = -2.0 * square
    mean, root = linear / tau, math.sqrt(tau)
    return (
        constant
        + 0.5 * (linear * mean + LOG_2PI - math.log(tau))
        + log_interval((lo - mean) * root, (hi - mean) * root)
    )


@scatter.register(Ordinal, inline=False)
def _(lik, d, S, theta, x, R, j):
    lo, hi, z = x
    if not math.isnan(z):
        return scatter(latent(lik), d, S, theta, z, R, j)
    bound = 0.0
    if not is_missing(x):
        for k in range(R.shape[1]):
            if R[j, k] != 0.0:
                bound += add_expected(S, theta, k, lo, hi, R[j, k])
    return bound


@kernel
def add_expected(S, theta, k, lo, hi, r):
    """``S[:, k] += r E[t(z)]`` for z inside an interval; return its term in the variational bound."""
    constant, linear, square = theta[0, k], theta[1, k], theta[2, k]
    tau = -2.0 * square
    mean, sd = linear / tau, 1.0 / math.sqrt(tau)
    first, second = interval_moments((lo - mean) / sd, (hi - mean) / sd)
    z = mean + sd * first
    zz = mean * mean + 2.0 * mean * sd * first + sd * sd * second
    S[0, k] += r
    S[1, k] += r * z
    S[2, k] += r * zz
    # log Z - <theta, expected t> is the entropy of z
    return r * (log_integral(constant, linear, square, lo, hi) - constant - linear * z - square * zz)


# ---- tables of all levels: passes over many rows look a level up rather than compute it anew for each cell -------


@kernel
def tabulate_likelihood(cuts, starts, theta, T):
    """``T[level, cluster] = log p(level | theta)``; levels are numbered as in ``cuts``."""
    for d in range(starts.shape[0] - 1):
        block = theta[3 * d : 3 * d + 3]
        for at in range(starts[d], starts[d + 1] - 1):
            for k in range(T.shape[1]):
                T[at, k] = log_integral(block[0, k], block[1, k], block[2, k], cuts[at], cuts[at + 1])


@kernel
def tabulate_predictive(lik, C, T):
    """``T[level, cluster] = log predictive`` of a level, from the caches of the clusters."""
    for d in range(lik.starts.shape[0] - 1):
        for at in range(lik.starts[d], lik.starts[d + 1] - 1):
            score(lik, d, C[4 * d : 4 * d + 4], (lik.cuts[at], lik.cuts[at + 1], math.nan), T.shape[1], T[at])


@kernel
def look_up(codes, starts, rows, T, L):
    """``L[j] += sum over columns of T[level]``."""
    for d in range(codes.shape[1]):
        for j in range(rows.shape[0]):
            code = codes[rows[j], d]
            if code >= 0:
                for k in range(L.shape[1]):
                    L[j, k] += T[starts[d] + code, k]


@kernel
def count_cells(codes, starts, rows, R, T):
    """``T[level] += R[j]`` for the level of every cell."""
    for d in range(codes.shape[1]):
        for j in range(rows.shape[0]):
            code = codes[rows[j], d]
            if code >= 0:
                for k in range(R.shape[1]):
                    T[starts[d] + code, k] += R[j, k]


@kernel
def expand_levels(cuts, starts, theta, T, S):
    """Add the expected statistics of counted levels; return their term in the variational bound."""
    bound = 0.0
    for d in range(starts.shape[0] - 1):
        block, s = theta[3 * d : 3 * d + 3], S[3 * d : 3 * d + 3]
        for at in range(starts[d], starts[d + 1] - 1):
            for k in range(T.shape[1]):
                if T[at, k] != 0.0:
                    bound += add_expected(s, block, k, cuts[at], cuts[at + 1], T[at, k])
    return bound


def _is_table(data: Levels, rows: np.ndarray) -> bool:
    """Whether only the levels are known, in more cells than a table of them has."""
    return len(rows) > 10 and bool(np.isnan(data.latent[rows]).all())


@add_log_likelihood.register(Ordinal)
def _(lik, data, rows, theta, L):
    if not _is_table(data, rows):
        return project_rows(lik, data, rows, theta, L)
    T = np.zeros((len(lik.cuts), L.shape[1]))
    tabulate_likelihood(lik.cuts, lik.starts, theta, T)
    look_up(data.codes, lik.starts, rows, T, L)


@add_log_predictive.register(Ordinal)
def _(lik, data, rows, C, L):
    if not _is_table(data, rows):
        return score_rows(lik, data, rows, C, L)
    T = np.zeros((len(lik.cuts), L.shape[1]))
    tabulate_predictive(lik, C, T)
    look_up(data.codes, lik.starts, rows, T, L)


@add_expected_statistics.register(Ordinal)
def _(lik, data, rows, theta, R, S):
    if not _is_table(data, rows):
        return scatter_rows(lik, data, rows, theta, R, S)
    T = np.zeros((len(lik.cuts), R.shape[1]))
    count_cells(data.codes, lik.starts, rows, R, T)
    return expand_levels(lik.cuts, lik.starts, theta, T, S)


# ---- array functions: those of the latent variables, and the draws of these ----------------------------------------


@expect.register(Ordinal)
def _(lik, S):
    return expect(_latent(lik), S)


@widened.register(Ordinal)
def _(lik, S):
    return widened(_latent(lik), S)


@mode.register(Ordinal)
def _(lik, S):
    return mode(_latent(lik), S)


@flat.register(Ordinal)
def _(lik):
    return Ordinal(*flat(_latent(lik)), *lik[4:])


@log_prior.register(Ordinal)
def _(lik, theta):
    return log_prior(_latent(lik), theta)


@draw.register(Ordinal)
def _(lik, S, rng):
    return draw(_latent(lik), S, rng)


@learn.register(Ordinal)
def _(lik, S, n):
    return Ordinal(*learn(_latent(lik), S, n), *lik[4:])


@n_parameters.register(Ordinal)
def _(lik):
    return n_parameters(_latent(lik))


@unconstrained.register(Ordinal)
def _(lik):
    return unconstrained(_latent(lik))


@constrained.register(Ordinal)
def _(lik, name, value):
    return Ordinal(*constrained(_latent(lik), name, value), *lik[4:])


@simulate.register(Ordinal)
def _(lik, theta, z, rng):
    values = simulate(_latent(lik), theta, z, rng)
    return Levels(levels_of(lik, values), values)


def levels_of(lik: Ordinal, values: np.ndarray) -> np.ndarray:
    """Return the codes of latent values, [row, column]; an end belongs to the interval below it."""
    codes = np.full(values.shape, -1, np.int64)
    for d, x in enumerate(values.T):
        inner = lik.cuts[lik.starts[d] + 1 : lik.starts[d + 1] - 1]
        codes[:, d] = np.where(np.isnan(x), -1, np.searchsorted(inner, x))
    return codes


@summarize.register(Ordinal)
def _(lik, S):
    """Probabilities of the levels, parameters integrated out, and mean and variance of the latent variable."""
    found = summarize(_latent(lik), S)
    k, a = lik.k[:, None] + S[0::3], lik.a[:, None] + 0.5 * S[0::3]
    m, variance = found["means"].T, found["variances"].T
    b = variance * np.maximum(a - 1.0, 0.5)
    width = np.sqrt(b * (k + 1.0) / (a * k))
    parts = []
    for d in range(len(lik.m)):
        cuts = lik.cuts[lik.starts[d] : lik.starts[d + 1], None]
        t = (cuts - m[d]) / width[d]
        below, above = stdtr(2.0 * a[d], t), stdtr(2.0 * a[d], -t)
        parts.append(np.where(t[:-1] < 0.0, np.diff(below, axis=0), -np.diff(above, axis=0)))
    return {"probabilities": np.concatenate(parts).T, "latent_means": m.T, "latent_variances": variance.T}


@hidden_rows.register(Ordinal)
def _(lik, data):
    return np.flatnonzero(((data.codes >= 0) & np.isnan(data.latent)).any(axis=1))


@impute.register(Ordinal)
def _(lik, shown, theta, rows, z, rng, out):
    """Draw the latent variables: normal in their cluster, truncated to the interval of their level."""
    u = rng.random((len(rows), len(lik.m)))
    codes = shown.codes[rows]
    hidden = (codes >= 0) & np.isnan(shown.latent[rows])
    row, d = np.nonzero(hidden)
    cluster = z[row]
    sd = 1.0 / np.sqrt(-2.0 * theta[3 * d + 2, cluster])
    mean = theta[3 * d + 1, cluster] * sd**2
    at = lik.starts[d] + codes[row, d]
    lo, hi = lik.cuts[at], lik.cuts[at + 1]
    drawn = mean + sd * draw_interval((lo - mean) / sd, (hi - mean) / sd, u[row, d])
    out.latent[rows[row], d] = np.clip(drawn, lo, hi)


@take_columns.register(Ordinal)
def _(lik, positions):
    positions = np.atleast_1d(np.asarray(positions, dtype=int))
    cuts = [lik.cuts[lik.starts[d] : lik.starts[d + 1]] for d in positions]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in cuts])]).astype(np.int64)
    m, k, a, b = (value[positions] for value in lik[:4])
    return Ordinal(m, k, a, b, np.concatenate([*cuts, np.zeros(0)]), starts)


def count_levels(codes: np.ndarray, n_levels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the total weight of each level in each column, [column, level].

    Examples
    --------
    >>> count_levels(np.array([[0], [2], [-1], [2]]), np.array([3]), np.ones(4))
    array([[1., 0., 2.]])
    """
    counts = np.zeros((codes.shape[1], int(np.max(n_levels, initial=1))))
    for d in range(codes.shape[1]):
        seen = codes[:, d] >= 0
        counts[d] = np.bincount(codes[seen, d], weights=weights[seen], minlength=counts.shape[1])
    return counts


def block(X, columns, weights, *, n_levels, exposure=None, **options) -> Block:
    """Make a block of codes; the cuts come from the shares of the levels.

    A column of one level says nothing about its latent variable: its cells are missing.
    """
    n_levels = np.asarray(n_levels, np.int64)
    lik = Ordinal.default(count_levels(X, n_levels, weights), n_levels, **options)
    return Block(lik, Levels.of(np.where(n_levels > 1, X, X.dtype.type(-1))), tuple(columns))


def examples(rng):
    """Three and four levels, with known latent variables."""
    m, k, a, b = np.array([[0.3, -0.4], [0.5, 0.2], [2.0, 1.6], [1.5, 0.6]])
    cuts = np.array([-np.inf, -0.6, 0.5, np.inf, -np.inf, -1.1, 0.0, 0.9, np.inf])
    lik = Ordinal(m, k, a, b, cuts, np.array([0, 4, 9]))
    values = rng.normal(size=(8, 2)) * [1.0, 1.5]
    return [(lik, Levels(levels_of(lik, values), values))]


register_family("ordinal", Ordinal, kind="ordinal", block=block, examples=examples)
