"""Directions (unit vectors) under a von Mises-Fisher law around the direction of their cluster."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita.families.bessel import bessel_ratio, log_bessel_rise
from partita.families.contract import (
    cache_start,
    constrained,
    datum,
    draw,
    expect,
    flat,
    held,
    learn,
    log_marginal,
    log_prior,
    mode,
    n_columns,
    n_parameters,
    observe,
    refresh,
    score,
    simulate,
    stats_start,
    summarize,
    unconstrained,
)
from partita.families.gaussian_hidden import count_hidden
from partita.families.registry import Block, register_family

PRIOR_SHARE = 0.1  # concentration of the prior of directions, per coordinate
MIN_CONCENTRATION, MAX_CONCENTRATION = 1e-3, 1e8
NEWTON_STEPS = 30


class VonMisesFisher(NamedTuple):
    """Von Mises-Fisher family: density of a unit vector x proportional to ``exp(concentration <direction, x>)``.

    All clusters have one concentration; given it the prior is conjugate, ``direction ~ vMF(mean,
    prior_concentration)``. The family has one column, whose datum is a vector of p numbers of length 1; a vector with a
    missing coordinate has no direction and is missing as a whole. Densities are those on the sphere, of directions.
    Statistics: n and ``sum x``.

    Good for embeddings of texts, and for whatever is compared by cosines. Not for groups that are wide in one direction
    and narrow in another: use :class:`GaussianFull` with a signal.

    Examples
    --------
    >>> lik = VonMisesFisher.default(3, concentration=10.0)
    >>> lik.concentration, lik.mean.round(3)
    (10.0, array([0.577, 0.577, 0.577]))
    """

    mean: np.ndarray  # direction of the prior
    prior_concentration: float
    concentration: float
    log_height: float  # log density where vectors and direction are orthogonal, stored so that kernels need not sum it
    log_prior_height: float

    @classmethod
    def of(cls, mean: np.ndarray, prior_concentration: float, concentration: float) -> VonMisesFisher:
        """Return the family with the given hyper-parameters."""
        p = len(mean)
        heights = (log_height(p, c) for c in (concentration, prior_concentration))
        return cls(np.asarray(mean, float), float(prior_concentration), float(concentration), *heights)

    @classmethod
    def default(
        cls, p: int, *, concentration: float | None = None, prior_concentration: float | None = None
    ) -> VonMisesFisher:
        """Return clusters with nearly uniform directions, and vectors about 50 degrees away from them."""
        mean = np.full(p, p**-0.5)
        return cls.of(mean, prior_concentration or PRIOR_SHARE * p, concentration or float(p))


def log_height(p: int, concentration: float) -> float:
    """Log of the factor before the exponential: minus the log area of the sphere where the concentration is zero."""
    log_area = math.log(2.0) + 0.5 * p * math.log(math.pi) - math.lgamma(0.5 * p)
    return -log_area - float(log_bessel_rise(0.5 * p - 1.0, float(concentration)))


@n_columns.register(VonMisesFisher)
def _(lik):
    return 1


@stats_start.register(VonMisesFisher)
def _(lik, d):
    return d * (1 + lik.mean.shape[0])


@cache_start.register(VonMisesFisher)
def _(lik, d):
    return d * (2 + lik.mean.shape[0])


@datum.register(VonMisesFisher)
def _(lik, data, i, d):
    return data[i]


@observe.register(VonMisesFisher)
def _(lik, d, s, x, w):
    if count_hidden(x) == 0:
        s[0] += w
        for a in range(x.shape[0]):
            s[1 + a] += w * x[a]


@log_marginal.register(VonMisesFisher, inline=False)
def _(lik, d, s):
    p = lik.mean.shape[0]
    square = 0.0
    for a in range(p):
        pull = lik.prior_concentration * lik.mean[a] + lik.concentration * s[1 + a]
        square += pull * pull
    order = 0.5 * p - 1.0
    rise = log_bessel_rise(order, math.sqrt(square)) - log_bessel_rise(order, lik.prior_concentration)
    return s[0] * lik.log_height + rise


# The cache of a cluster holds the squared length of the posterior's parameter, its log_bessel_rise, and the parameter.


@refresh.register(VonMisesFisher, inline=False)
def _(lik, d, s, c, k):
    p = lik.mean.shape[0]
    square = 0.0
    for a in range(p):
        pull = lik.prior_concentration * lik.mean[a] + lik.concentration * s[1 + a]
        c[2 + a, k] = pull
        square += pull * pull
    c[0, k] = square
    c[1, k] = log_bessel_rise(0.5 * p - 1.0, math.sqrt(square))


@score.register(VonMisesFisher, inline=False)
def _(lik, d, c, x, K, out):
    if count_hidden(x) > 0:
        return
    p = x.shape[0]
    inner = np.zeros(K)
    for a in range(p):
        row = c[2 + a]
        for k in range(K):
            inner[k] += x[a] * row[k]
    order = 0.5 * p - 1.0
    for k in range(K):
        square = c[0, k] + lik.concentration * (2.0 * inner[k] + lik.concentration)
        out[k] += lik.log_height + log_bessel_rise(order, math.sqrt(max(square, 0.0))) - c[1, k]


# ---- array functions ---------------------------------------------------------------------------------------


def _posterior(lik: VonMisesFisher, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions [coordinate, cluster] and concentrations [cluster] of the posterior of each direction."""
    pull = lik.prior_concentration * lik.mean[:, None] + lik.concentration * S[1:]
    lengths = np.linalg.norm(pull, axis=0)
    directions = np.where(lengths > 0, pull / np.where(lengths > 0, lengths, 1.0), lik.mean[:, None])
    return directions, lengths


def _natural(lik: VonMisesFisher, directions: np.ndarray) -> np.ndarray:
    return np.concatenate([np.full((1, directions.shape[1]), lik.log_height), lik.concentration * directions])


def mean_cosines(p: int, concentrations: np.ndarray) -> np.ndarray:
    """Expected cosine of the angle between a vector and its direction.

    Examples
    --------
    >>> mean_cosines(3, np.array([0.0, 1.0, 100.0])).round(4)
    array([0.   , 0.313, 0.99 ])
    """
    return np.array([bessel_ratio(0.5 * p - 1.0, float(c)) for c in concentrations])


def concentration_of(p: int, cosine: float) -> float:
    """The concentration whose expected cosine is given.

    Examples
    --------
    >>> round(concentration_of(3, mean_cosines(3, np.array([7.0]))[0]), 6)
    7.0
    """
    cosine = min(max(cosine, 0.0), 1.0 - 1e-9)
    c = cosine * (p - cosine**2) / (1.0 - cosine**2)  # close; Newton's method does the rest
    for _ in range(NEWTON_STEPS):
        if not MIN_CONCENTRATION < c < MAX_CONCENTRATION:
            break
        A = bessel_ratio(0.5 * p - 1.0, c)
        step = (A - cosine) / max(1.0 - A * A - (p - 1.0) * A / c, 1e-300)
        c = max(c - step, 0.5 * c)
        if abs(step) <= 1e-10 * c:
            break
    return float(min(max(c, MIN_CONCENTRATION), MAX_CONCENTRATION))


@expect.register(VonMisesFisher)
def _(lik, S):
    directions, lengths = _posterior(lik, S)
    return _natural(lik, directions * mean_cosines(len(lik.mean), lengths))


@mode.register(VonMisesFisher)
def _(lik, S):
    return _natural(lik, _posterior(lik, S)[0])


@flat.register(VonMisesFisher)
def _(lik):
    return VonMisesFisher.of(lik.mean, 0.0, lik.concentration)


@log_prior.register(VonMisesFisher)
def _(lik, theta):
    return lik.log_prior_height + lik.prior_concentration * (lik.mean @ theta[1:]) / lik.concentration


@draw.register(VonMisesFisher)
def _(lik, S, rng):
    directions, lengths = _posterior(lik, S)
    return _natural(lik, draw_vectors(directions.T, lengths, rng).T)


@simulate.register(VonMisesFisher)
def _(lik, theta, z, rng):
    directions = theta[1:] / np.linalg.norm(theta[1:], axis=0)
    return draw_vectors(directions.T[z], np.full(len(z), lik.concentration), rng)


def draw_vectors(directions: np.ndarray, concentrations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One unit vector around each direction [row, coordinate] (Wood 1994): the cosine by rejection, then the rest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = draw_vectors(np.tile([0.0, 0.0, 1.0], (2000, 1)), np.full(2000, 5.0), rng)
    >>> bool(abs(X[:, 2].mean() - mean_cosines(3, [5.0])[0]) < 0.03)
    True
    """
    n, p = directions.shape
    b = (p - 1) / (2 * concentrations + np.sqrt(4 * concentrations**2 + (p - 1) ** 2))
    center = (1 - b) / (1 + b)
    bound = concentrations * center + (p - 1) * np.log1p(-(center**2))
    cosines, left = np.empty(n), np.arange(n)
    while len(left):
        beta = rng.beta(0.5 * (p - 1), 0.5 * (p - 1), size=len(left))
        t = (1 - (1 + b[left]) * beta) / (1 - (1 - b[left]) * beta)
        height = concentrations[left] * t + (p - 1) * np.log1p(-center[left] * t) - bound[left]
        kept = height >= -rng.standard_exponential(len(left))
        cosines[left[kept]] = t[kept]
        left = left[~kept]
    across = rng.standard_normal((n, p))
    across -= (across * directions).sum(axis=1, keepdims=True) * directions
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return cosines[:, None] * directions + np.sqrt(1.0 - cosines**2)[:, None] * across


@learn.register(VonMisesFisher)
def _(lik, S, n):
    """One EM step: the concentration that best explains the vectors, given the posteriors of the directions."""
    S = S[:, n >= 1.0]
    if not S[0].sum() > 0:
        return lik
    p = len(lik.mean)
    directions, lengths = _posterior(lik, S)
    cosine = float((directions * mean_cosines(p, lengths) * S[1:]).sum() / S[0].sum())
    return VonMisesFisher.of(lik.mean, lik.prior_concentration, concentration_of(p, cosine))


@summarize.register(VonMisesFisher)
def _(lik, S):
    p, c = len(lik.mean), lik.concentration
    directions, lengths = _posterior(lik, S)
    expected = directions * mean_cosines(p, lengths)
    A = float(mean_cosines(p, np.array([c]))[0])
    along = 1.0 - (p - 1) * A / c  # mean square of the coordinate along the direction; A / c of the others
    squares = A / c + (along - A / c) * expected**2
    return {"means": A * expected.T, "variances": np.maximum(squares - (A * expected) ** 2, 0.0).T}


@n_parameters.register(VonMisesFisher)
def _(lik):
    return len(lik.mean) - 1


@unconstrained.register(VonMisesFisher)
def _(lik):
    """The two concentrations; the direction of the prior is held."""
    return {name: np.log([getattr(lik, name)]) for name in ("prior_concentration", "concentration")}


@held.register(VonMisesFisher)
def _(lik):
    """The law of the directions: learned around the mean of all rows, it becomes so narrow that nothing is split."""
    return ("prior_concentration",)


@constrained.register(VonMisesFisher)
def _(lik, name, value):
    new = lik._replace(**{name: float(np.exp(value[0]))})
    return VonMisesFisher.of(new.mean, new.prior_concentration, new.concentration)


def block(
    X, columns, weights, *, concentration: float | None = None, prior_concentration: float | None = None, **_
) -> Block:
    """Make a block of directions; vectors are divided by their length.

    The prior is around the mean direction of all rows.
    """
    if len(columns) < 2:
        raise ValueError("family 'vonmises_fisher' reads vectors: it needs at least two real columns")
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    data = np.where(lengths > 0, X / np.where(lengths > 0, lengths, 1.0), np.nan)
    data = np.ascontiguousarray(np.where(np.isnan(lengths), np.nan, data))
    p = len(columns)
    lik = VonMisesFisher.default(p, concentration=concentration, prior_concentration=prior_concentration)
    seen = ~np.isnan(data[:, 0]) & (weights > 0)
    return Block(around(lik, weights[seen] @ data[seen]), data, tuple(columns))


def around(lik: VonMisesFisher, total: np.ndarray) -> VonMisesFisher:
    """The family with a prior around the direction of the sum of all rows."""
    length = float(np.linalg.norm(total))
    if length == 0.0:
        return lik
    return VonMisesFisher.of(total / length, lik.prior_concentration, lik.concentration)


def examples(rng):
    """Directions in space and in the plane."""
    space = VonMisesFisher.of(np.array([0.6, 0.0, 0.8]), 1.5, 4.0)
    plane = VonMisesFisher.of(np.array([0.6, -0.8]), 0.7, 2.5)
    return [
        (
            space,
            draw_vectors(
                draw_vectors(np.tile(space.mean, (8, 1)), np.full(8, 1.5), rng), np.full(8, 4.0), rng
            ),
        ),
        (plane, draw_vectors(np.tile(plane.mean, (8, 1)), np.full(8, 1.0), rng)),
    ]


register_family(
    "vonmises_fisher", VonMisesFisher, kind="real", vector=True, raw=True, block=block, examples=examples
)
