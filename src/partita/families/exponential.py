"""Positive durations under Gamma priors: the smallest complete family; all other functions are derived."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from partita.families import contract as family
from partita.families.registry import Block, register_family


class Exponential(NamedTuple):
    """Exponential-Gamma family: ``x ~ Exponential(rate)``, ``rate ~ Gamma(a, b)``; NaN is missing."""

    a: np.ndarray  # shape of the prior of the rate, per column
    b: np.ndarray  # its rate


@family.n_columns.register(Exponential)
def _(lik):
    return lik.a.shape[0]


@family.stats_start.register(Exponential)
def _(lik, d):
    return 2 * d  # the number of observed durations, their sum


@family.observe.register(Exponential)
def _(lik, d, s, x, w):
    if not math.isnan(x):
        s[0] += w
        s[1] += w * x


@family.log_marginal.register(Exponential)
def _(lik, d, s):
    a, b = lik.a[d], lik.b[d]
    return math.lgamma(a + s[0]) - math.lgamma(a) + a * math.log(b) - (a + s[0]) * math.log(b + s[1])


def natural(rate, log_rate):
    """log p(x | rate) = 1 * log(rate) + x * (-rate)."""
    return np.stack([log_rate, -rate], axis=1).reshape(-1, rate.shape[1])


@family.expect.register(Exponential)
def _(lik, S):
    a, b = lik.a[:, None] + S[0::2], lik.b[:, None] + S[1::2]
    return natural(a / b, digamma(a) - np.log(b))


@family.mode.register(Exponential)
def _(lik, S):
    rate = np.maximum(lik.a[:, None] + S[0::2] - 1, 1e-12) / (lik.b[:, None] + S[1::2])
    return natural(rate, np.log(rate))


@family.flat.register(Exponential)
def _(lik):
    return Exponential(np.ones_like(lik.a), np.zeros_like(lik.b))


@family.interior.register(Exponential)
def _(lik):
    return Exponential(lik.a + 1, lik.b)


@family.log_prior.register(Exponential)
def _(lik, theta):
    if not lik.b.any():
        return np.zeros(theta.shape[1])
    a, b = lik.a[:, None], lik.b[:, None]
    return (a * np.log(b) - gammaln(a) + (a - 1) * theta[0::2] + b * theta[1::2]).sum(axis=0)


@family.draw.register(Exponential)
def _(lik, S, rng):
    rate = rng.standard_gamma(lik.a[:, None] + S[0::2]) / (lik.b[:, None] + S[1::2])
    return natural(rate, np.log(rate))


@family.simulate.register(Exponential)
def _(lik, theta, z, rng):
    return rng.standard_exponential((len(z), len(lik.a))) / -theta[1::2, z].T


@family.summarize.register(Exponential)
def _(lik, S):
    return {"rates": ((lik.a[:, None] + S[0::2]) / (lik.b[:, None] + S[1::2])).T}


@family.n_parameters.register(Exponential)
def _(lik):
    return len(lik.a)


def block(X, columns, weights, *, a=1.0, **_):
    """Make a block with one prior per column, scaled by the mean of the column."""
    for row, d in np.argwhere(X <= 0)[:1]:
        raise ValueError(
            f"column {columns[d]!r}, row {row}: {X[row, d]} is not positive; mark it as missing or remove the row"
        )
    mean = np.nansum(X * weights[:, None], axis=0) / np.maximum((~np.isnan(X)).T @ weights, 1e-300)
    return Block(Exponential(np.full(len(mean), a), a * mean), X, tuple(columns))


def examples(rng):
    """Two columns, small and complete."""
    return [(Exponential(np.array([1.3, 2.0]), np.array([0.7, 3.0])), rng.exponential(2.0, (8, 2)))]


register_family("exponential", Exponential, kind="real", raw=True, block=block, examples=examples)
