"""Count vectors (documents, compositions) under a Dirichlet prior; sparse or dense, possibly partly observed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from partita.families.contract import (
    cache_start,
    constrained,
    curvature,
    datum,
    draw,
    expect,
    faster_in_single,
    flat,
    hidden_rows,
    impute,
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
from partita.families.special import trigamma


class CountVectors(NamedTuple):
    """Rows of counts in compressed form: the entries of row i are ``indptr[i]`` to ``indptr[i + 1]``.

    An explicit NaN is a hidden count: that coordinate of the row was not observed.
    """

    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_dense(cls, X: np.ndarray) -> CountVectors:
        """Convert a dense array; entries that are not zero are kept, including NaN."""
        rows, columns = np.nonzero(X)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
        return cls(indptr.astype(np.int64), columns.astype(np.int64), X[rows, columns].astype(float))


class Multinomial(NamedTuple):
    """Multinomial-Dirichlet family for whole count vectors.

    The family has one column, whose datum is a vector. Statistics: the total, the log multinomial coefficient, then the
    count of each of V coordinates; natural parameters: 0, 1 and the log probabilities.

    A row with hidden coordinates informs only about the proportions among its observed coordinates (its unknown total
    has a scale-free prior). EM and VB add the expected hidden counts, which are negative multinomial.

    Good for word counts and compositions. Not for counts whose total carries the information: use
    :class:`Poisson`.

    Examples
    --------
    >>> Multinomial.default(3).alpha
    array([0.5, 0.5, 0.5])
    """

    alpha: np.ndarray  # pseudo-counts of the coordinates
    total: float  # their sum, stored so that kernels need not compute it

    @classmethod
    def of(cls, alpha: np.ndarray) -> Multinomial:
        """Return the family with the given pseudo-counts."""
        return cls(alpha, float(alpha.sum()))

    @classmethod
    def default(cls, n_coordinates: int, *, alpha: float = 0.5) -> Multinomial:
        """Return pseudo-counts of one half per coordinate."""
        return cls.of(np.full(n_coordinates, float(alpha)))


@n_columns.register(Multinomial)
def _(lik):
    return 1


@stats_start.register(Multinomial)
def _(lik, d):
    return d * (2 + lik.alpha.shape[0])


@cache_start.register(Multinomial)
def _(lik, d):
    return d * (1 + 2 * lik.alpha.shape[0])


@datum.register(Multinomial)
def _(lik, data, i, d):
    lo, hi = data.indptr[i], data.indptr[i + 1]
    return data.indices[lo:hi], data.counts[lo:hi]


@observe.register(Multinomial)
def _(lik, d, s, x, w):
    indices, counts = x
    total, coefficient = 0.0, 0.0
    for j in range(indices.shape[0]):
        s[2 + indices[j]] += w * counts[j]
        total += counts[j]
        coefficient -= math.lgamma(counts[j] + 1.0)
    s[0] += w * total
    s[1] += w * (coefficient + math.lgamma(total + 1.0))


@log_marginal.register(Multinomial, inline=False)
def _(lik, d, s):
    out = s[1]
    for v in range(lik.alpha.shape[0]):
        a = lik.alpha[v]
        if s[2 + v] != 0.0:
            out += math.lgamma(a + s[2 + v]) - math.lgamma(a)
    return out + math.lgamma(lik.total) - math.lgamma(lik.total + s[0])


@refresh.register(Multinomial, inline=False)
def _(lik, d, s, c, k):
    V = lik.alpha.shape[0]
    c[0, k] = lik.total + s[0]
    for v in range(V):
        c[1 + v, k] = lik.alpha[v] + s[2 + v]
        c[1 + V + v, k] = math.log(c[1 + v, k])  # most counts are 1, and their predictive is this log


@touch.register(Multinomial)
def _(lik, d, s, c, k, x):
    indices, _ = x
    V = lik.alpha.shape[0]
    c[0, k] = lik.total + s[0]
    for j in range(indices.shape[0]):
        v = indices[j]
        c[1 + v, k] = lik.alpha[v] + s[2 + v]
        c[1 + V + v, k] = math.log(c[1 + v, k])


@ready.register(Multinomial)
def _(lik, d, s, c, x):
    touch(lik, d, s, c, 0, x)


@score.register(Multinomial, inline=False)
def _(lik, d, c, x, K, out):
    indices, counts = x
    V = lik.alpha.shape[0]
    seen, constant = 0.0, 0.0
    any_hidden = False
    for j in range(indices.shape[0]):
        v, count = indices[j], counts[j]
        if math.isnan(count):
            any_hidden = True
            continue
        seen += count
        constant -= math.lgamma(count + 1.0)
        if count == 1.0:
            for k in range(K):
                out[k] += c[1 + V + v, k]
        else:
            for k in range(K):
                out[k] += math.lgamma(c[1 + v, k] + count) - math.lgamma(c[1 + v, k])
    if seen > 0:
        constant += math.lgamma(seen + 1.0)
        for k in range(K):
            total = c[0, k]
            if any_hidden:  # the proportions among the observed coordinates are Dirichlet distributed too
                for j in range(indices.shape[0]):
                    if math.isnan(counts[j]):
                        total -= c[1 + indices[j], k]
            out[k] += constant + math.lgamma(total) - math.lgamma(total + seen)


@project.register(Multinomial, inline=False)
def _(lik, d, theta, x, L, j):
    indices, counts = x
    seen, constant = 0.0, 0.0
    any_hidden = False
    for e in range(indices.shape[0]):
        v, count = indices[e], counts[e]
        if math.isnan(count):
            any_hidden = True
            continue
        seen += count
        constant -= math.lgamma(count + 1.0)
        for k in range(L.shape[1]):
            L[j, k] += count * theta[2 + v, k]
    if seen > 0:
        constant += math.lgamma(seen + 1.0)
        for k in range(L.shape[1]):
            L[j, k] += constant * theta[1, k]
        if any_hidden:
            for k in range(L.shape[1]):
                visible = 1.0
                for e in range(indices.shape[0]):
                    if math.isnan(counts[e]):
                        visible -= math.exp(theta[2 + indices[e], k])
                L[j, k] -= seen * math.log(max(visible, 1e-300))


@scatter.register(Multinomial, inline=False)
def _(lik, d, S, theta, x, R, j):
    indices, counts = x
    seen, constant = 0.0, 0.0
    any_hidden = False
    for e in range(indices.shape[0]):
        v, count = indices[e], counts[e]
        if math.isnan(count):
            any_hidden = True
            continue
        seen += count
        constant -= math.lgamma(count + 1.0)
        for k in range(R.shape[1]):
            S[2 + v, k] += R[j, k] * count
    if seen == 0.0:
        return 0.0
    constant += math.lgamma(seen + 1.0)
    for k in range(R.shape[1]):
        S[0, k] += R[j, k] * seen
        S[1, k] += R[j, k] * constant
    if not any_hidden:
        return 0.0
    bound = 0.0
    for k in range(R.shape[1]):
        visible = 1.0
        for e in range(indices.shape[0]):
            if math.isnan(counts[e]):
                visible -= math.exp(theta[2 + indices[e], k])
        visible = max(visible, 1e-300)
        gain = -seen * math.log(visible)
        for e in range(indices.shape[0]):
            if math.isnan(counts[e]):
                log_p = theta[2 + indices[e], k]
                expected = seen * math.exp(log_p) / visible
                S[2 + indices[e], k] += R[j, k] * expected
                S[0, k] += R[j, k] * expected
                if expected > 0:
                    gain -= expected * log_p
        if R[j, k] > 0:
            bound += R[j, k] * gain
    return bound


@spread_start.register(Multinomial)
def _(lik, d):
    return d * (1 + lik.alpha.shape[0])


@spread.register(Multinomial)
def _(lik, d, v, x, w):
    indices, counts = x
    total = 0.0
    for j in range(indices.shape[0]):
        v[1 + indices[j]] += w * counts[j] ** 2
        total += counts[j]
    v[0] += w * total * total


@curvature.register(Multinomial, inline=False)
def _(lik, d, s, v, x):
    indices, counts = x
    total, out = 0.0, 0.0
    for j in range(indices.shape[0]):
        a = lik.alpha[indices[j]] + s[2 + indices[j]]
        out += (trigamma(a + counts[j]) - trigamma(a)) * v[1 + indices[j]]
        total += counts[j]
    a = lik.total + s[0]
    return 0.5 * (out - (trigamma(a + total) - trigamma(a)) * v[0])


def _posterior(lik: Multinomial, S: np.ndarray) -> np.ndarray:
    return S[2:] + lik.alpha[:, None]


def _natural(log_p: np.ndarray) -> np.ndarray:
    K = log_p.shape[1]
    return np.concatenate([np.zeros((1, K)), np.ones((1, K)), log_p])


@expect.register(Multinomial)
def _(lik, S):
    A = _posterior(lik, S)
    return _natural(digamma(A) - digamma(A.sum(axis=0)))


@mode.register(Multinomial)
def _(lik, S):
    P = np.maximum(_posterior(lik, S) - 1.0, 0.0)
    P[:, P.sum(axis=0) == 0] = 1.0
    with np.errstate(divide="ignore"):
        return _natural(np.log(P / P.sum(axis=0)))


@faster_in_single.register(Multinomial)
def _(lik):
    return True


@flat.register(Multinomial)
def _(lik):
    return Multinomial.of(np.ones_like(lik.alpha))


@interior.register(Multinomial)
def _(lik):
    return Multinomial.of(lik.alpha + 1.0)


@log_prior.register(Multinomial)
def _(lik, theta):
    a = lik.alpha[:, None]
    with np.errstate(invalid="ignore"):
        penalty = np.where(a == 1.0, 0.0, (a - 1.0) * theta[2:])
    return gammaln(lik.total) - gammaln(a).sum() + penalty.sum(axis=0)


@draw.register(Multinomial)
def _(lik, S, rng):
    G = np.maximum(rng.standard_gamma(_posterior(lik, S)), np.finfo(float).tiny)
    return _natural(np.log(G) - np.log(G.sum(axis=0)))


@simulate.register(Multinomial)
def _(lik, theta, z, rng, total: int = 20):
    P = np.exp(theta[2:])
    P /= P.sum(axis=0)
    X = np.zeros((len(z), len(lik.alpha)))
    for k in np.unique(z):
        X[z == k] = rng.multinomial(total, P[:, k], size=int(np.sum(z == k)))
    return CountVectors.from_dense(X)


@learn.register(Multinomial)
def _(lik, S, n):
    """Newton steps on the evidence in the log of the total of the pseudo-counts, with fixed proportions."""
    S = S[:, n >= 1.0]
    counts, totals = S[2:], S[0]

    def slope(log_scale):
        a = lik.alpha * np.exp(log_scale)
        col, A = a[:, None], a.sum()
        first = (a * (digamma(counts + col) - digamma(col)).sum(axis=1)).sum()
        first -= A * (digamma(totals + A) - digamma(A)).sum()
        second = (a * a * (polygamma(1, counts + col) - polygamma(1, col)).sum(axis=1)).sum()
        second -= A * A * (polygamma(1, totals + A) - polygamma(1, A)).sum()
        return np.array([first]), np.array([first + second])

    scale = np.exp(newton_root(slope, np.zeros(1), np.log(1e-3), np.log(1e3)))
    return Multinomial.of(np.clip(lik.alpha * scale, 1e-4, 1e3))


@summarize.register(Multinomial)
def _(lik, S):
    A = _posterior(lik, S)
    return {"probabilities": (A / A.sum(axis=0)).T}


@n_parameters.register(Multinomial)
def _(lik):
    return len(lik.alpha) - 1


@hidden_rows.register(Multinomial)
def _(lik, data):
    owner = np.repeat(np.arange(len(data.indptr) - 1), np.diff(data.indptr))
    return np.unique(owner[np.isnan(data.counts)])


@impute.register(Multinomial)
def _(lik, shown, theta, rows, z, rng, out):
    """Negative multinomial: Poisson counts given a Gamma-distributed length of the document."""
    for i, k in zip(rows, z, strict=True):
        span = slice(shown.indptr[i], shown.indptr[i + 1])
        hidden = np.isnan(shown.counts[span])
        p = np.exp(theta[2 + shown.indices[span][hidden], k])
        visible = max(1.0 - p.sum(), 1e-12)
        length = rng.standard_gamma(np.nansum(shown.counts[span])) / visible
        out.counts[span][hidden] = rng.poisson(np.minimum(length * p, 1e12))


@unconstrained.register(Multinomial)
def _(lik):
    return {"total": np.log([lik.total])}


@constrained.register(Multinomial)
def _(lik, name, value):
    """Set the total of the pseudo-counts; their proportions stay fixed."""
    return Multinomial.of(lik.alpha * (np.exp(value[0]) / lik.total))


def block(X, columns, weights, *, alpha: float = 0.5, **_) -> Block:
    """Make a block of count vectors from a dense array or a CSR matrix."""
    if isinstance(X, np.ndarray):
        data = CountVectors.from_dense(X)
    else:
        X = X.copy()
        X.eliminate_zeros()  # a stored zero would be multiplied by the log of a zero probability
        data = CountVectors(X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(float))
    return Block(Multinomial.default(X.shape[1], alpha=alpha), data, tuple(columns))


def examples(rng):
    """Four coordinates, documents of different lengths."""
    X = np.stack([rng.multinomial(total, [0.4, 0.3, 0.2, 0.1]) for total in (3, 5, 2, 7, 1, 4, 6, 3)])
    lik = Multinomial.of(np.array([0.5, 1.0, 2.0, 0.3]))
    return [(lik, CountVectors.from_dense(X.astype(float)))]


register_family("multinomial", Multinomial, kind="count", vector=True, block=block, examples=examples)
