"""Binary columns under Beta priors."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma

from partita.families.contract import (
    cache_start,
    curvature,
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
    score_own,
    simulate,
    spread,
    spread_start,
    stats_start,
    summarize,
)
from partita.families.hyper import newton_root
from partita.families.registry import Block, register_family


class Bernoulli(NamedTuple):
    """Bernoulli-Beta family: codes 0 and 1, and -1 for missing.

    Statistics of a column: the number of zeros and the number of ones; natural parameters: their log probabilities.
    A log probability of -inf is looked up but never multiplied by zero.

    Good for presence and absence. Not for two-level columns whose levels should share one prior: use
    :class:`Categorical` there.

    Examples
    --------
    >>> Bernoulli.default(2)
    Bernoulli(a=array([0.5, 0.5]), b=array([0.5, 0.5]))
    """

    a: np.ndarray  # pseudo-count of ones, per column
    b: np.ndarray  # pseudo-count of zeros, per column

    @classmethod
    def default(cls, n_columns: int, *, a: float = 0.5, b: float = 0.5) -> Bernoulli:
        """Return pseudo-counts of one half (the Jeffreys prior)."""
        return cls(np.full(n_columns, float(a)), np.full(n_columns, float(b)))


@n_columns.register(Bernoulli)
def _(lik):
    return lik.a.shape[0]


@stats_start.register(Bernoulli)
def _(lik, d):
    return 2 * d


@cache_start.register(Bernoulli)
def _(lik, d):
    return 2 * d


@observe.register(Bernoulli)
def _(lik, d, s, x, w):
    if x >= 0:
        s[x] += w


@log_marginal.register(Bernoulli, inline=False)
def _(lik, d, s):
    a, b = lik.a[d], lik.b[d]
    out = math.lgamma(b + s[0]) + math.lgamma(a + s[1]) - math.lgamma(a + b + s[0] + s[1])
    return out - math.lgamma(a) - math.lgamma(b) + math.lgamma(a + b)


@refresh.register(Bernoulli)
def _(lik, d, s, c, k):
    total = math.log(lik.a[d] + lik.b[d] + s[0] + s[1])
    c[0, k] = math.log(lik.b[d] + s[0]) - total
    c[1, k] = math.log(lik.a[d] + s[1]) - total


@score.register(Bernoulli)
def _(lik, d, c, x, K, out):
    if x >= 0:
        for k in range(K):
            out[k] += c[x, k]


@score_own.register(Bernoulli)
def _(lik, d, s, c, k, x, acc):
    if x >= 0:
        level = s[1] + lik.a[d] if x == 1 else s[0] + lik.b[d]
        acc[0] *= level - 1.0
        acc[1] *= lik.a[d] + lik.b[d] + s[0] + s[1] - 1.0


@project.register(Bernoulli)
def _(lik, d, theta, x, L, j):
    if x >= 0:
        for k in range(L.shape[1]):
            L[j, k] += theta[x, k]


@scatter.register(Bernoulli)
def _(lik, d, S, theta, x, R, j):
    if x >= 0:
        for k in range(R.shape[1]):
            S[x, k] += R[j, k]
    return 0.0


@spread_start.register(Bernoulli)
def _(lik, d):
    return 2 * d


@spread.register(Bernoulli)
def _(lik, d, v, x, w):
    if x >= 0:
        v[x] += w


@curvature.register(Bernoulli)
def _(lik, d, s, v, x):
    if x < 0:
        return 0.0
    level = s[1] + lik.a[d] if x == 1 else s[0] + lik.b[d]
    return 0.5 * ((v[0] + v[1]) / (lik.a[d] + lik.b[d] + s[0] + s[1]) ** 2 - v[x] / level**2)


def _counts(lik: Bernoulli, S: np.ndarray, extra: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Posterior pseudo-counts of zeros and ones, [column, cluster]."""
    return S[0::2] + lik.b[:, None] + extra, S[1::2] + lik.a[:, None] + extra


def _interleave(zeros: np.ndarray, ones: np.ndarray) -> np.ndarray:
    return np.stack([zeros, ones], axis=1).reshape(-1, zeros.shape[1])


@expect.register(Bernoulli)
def _(lik, S):
    zeros, ones = _counts(lik, S)
    total = digamma(zeros + ones)
    return _interleave(digamma(zeros) - total, digamma(ones) - total)


@mode.register(Bernoulli)
def _(lik, S):
    zeros, ones = (np.maximum(count, 0.0) for count in _counts(lik, S, -1.0))
    nothing = zeros + ones == 0
    zeros, ones = np.where(nothing, 0.5, zeros), np.where(nothing, 0.5, ones)
    with np.errstate(divide="ignore"):
        return _interleave(np.log(zeros / (zeros + ones)), np.log(ones / (zeros + ones)))


@faster_in_single.register(Bernoulli)
def _(lik):
    return True


@flat.register(Bernoulli)
def _(lik):
    return Bernoulli.default(len(lik.a), a=1.0, b=1.0)


@interior.register(Bernoulli)
def _(lik):
    return Bernoulli(lik.a + 1.0, lik.b + 1.0)


@log_prior.register(Bernoulli)
def _(lik, theta):
    weight = _interleave(lik.b[:, None] - 1.0, lik.a[:, None] - 1.0)
    with np.errstate(invalid="ignore"):
        penalty = np.where(weight == 0.0, 0.0, weight * theta)
    return penalty.sum(axis=0) - betaln(lik.a, lik.b).sum()


@draw.register(Bernoulli)
def _(lik, S, rng):
    zeros, ones = (np.maximum(rng.standard_gamma(count), np.finfo(float).tiny) for count in _counts(lik, S))
    total = np.log(zeros + ones)
    return _interleave(np.log(zeros) - total, np.log(ones) - total)


@simulate.register(Bernoulli)
def _(lik, theta, z, rng):
    return (rng.random((len(z), len(lik.a))) < np.exp(theta[1::2, z]).T).astype(np.int8)


@learn.register(Bernoulli)
def _(lik, S, n):
    """Newton steps on the evidence in the log of each pseudo-count, with the other one fixed."""
    S = S[:, n >= 1.0]
    zeros, ones = S[0::2], S[1::2]

    def climb(own, other, count):
        def slope(log_own):
            value = np.exp(log_own)[:, None]
            both, total = value + other[:, None], zeros + ones
            first = digamma(count + value) - digamma(value) - digamma(total + both) + digamma(both)
            g = np.exp(log_own) * first.sum(axis=1)
            return g, -np.abs(g) - 0.5  # a short step that always goes uphill: the engine takes many of them

        return np.exp(newton_root(slope, np.log(own), np.log(1e-3), np.log(1e2), 2))

    a = climb(lik.a, lik.b, ones)
    return Bernoulli(a, climb(lik.b, a, zeros))


@summarize.register(Bernoulli)
def _(lik, S):
    zeros, ones = _counts(lik, S)
    return {"probabilities": (ones / (zeros + ones)).T}


@n_parameters.register(Bernoulli)
def _(lik):
    return len(lik.a)


def block(X, columns, weights, *, a: float = 0.5, b: float = 0.5, **_) -> Block:
    """Make a block of codes 0 and 1."""
    return Block(Bernoulli.default(X.shape[1], a=a, b=b), X, tuple(columns))


def examples(rng):
    """Two columns with asymmetric priors."""
    return [
        (Bernoulli(np.array([0.5, 2.0]), np.array([1.5, 0.4])), rng.integers(2, size=(8, 2)).astype(np.int8))
    ]


register_family("bernoulli", Bernoulli, kind="binary", block=block, examples=examples)
