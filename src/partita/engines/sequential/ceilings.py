"""Ceilings: the most that an object can still add to the log joint, whoever joins it. A* proves its answer by them."""

from __future__ import annotations

import math

import numpy as np

from partita.dispatch import generic
from partita.families import (
    Bernoulli,
    Categorical,
    Exponential,
    GaussianDiagonal,
    GaussianFull,
    Multinomial,
    Poisson,
)
from partita.families.cholesky import log_determinant
from partita.families.contract import observe
from partita.families.gaussian import posterior
from partita.families.gaussian_full import posterior_factor
from partita.partitions import (
    DirichletProcess,
    FiniteDirichlet,
    MixtureOfFinite,
    PitmanYor,
    log_new_seat,
    log_seat,
)

__all__ = ["log_ceiling", "log_open_ceiling", "log_seat_ceiling"]


@generic
def log_ceiling(lik, d, s, x, more):
    """An upper bound of ``log p(x | the data in s and up to`` ``more`` ``further objects, whatever they are)``.

    Proofs. *Counts of a level*: ``(a + s_v + r) / (A + s + r)`` grows with r, and other levels only lower it.
    *Likelihoods with a largest value* (Poisson, multinomial, exponential): a predictive is an average of
    likelihoods, hence at most the likelihood at its best parameter. *Gaussians*: the predictive is
    ``G(nu) (k / (k + 1))^(p/2) |B|^(nu/2) |B'|^(-(nu+1)/2)`` with scale B before and B' after x. G and k / (k + 1)
    grow with the number of objects; every object adds a positive rank one to the scale, in any order, so that
    ``|B| <= |B'|``, and B' is at least the scale of s and x alone.
    """


@log_ceiling.register(Categorical)
def _(lik, d, s, x, more):
    if x < 0:
        return 0.0
    a, V, h = lik.alpha[d], s.shape[0] - 1, lik.power[d]
    return h * math.log((a + s[1 + x] + more) / (a * V + s[0] + more))


@log_ceiling.register(Bernoulli)
def _(lik, d, s, x, more):
    if x < 0:
        return 0.0
    level = (lik.a[d] if x == 1 else lik.b[d]) + s[x]
    return math.log((level + more) / (lik.a[d] + lik.b[d] + s[0] + s[1] + more))


@log_ceiling.register(Poisson)
def _(lik, d, s, x, more):
    count = x[0]
    return count * math.log(count) - count - math.lgamma(count + 1.0) if count > 0 else 0.0  # NaN: 0


@log_ceiling.register(Exponential)
def _(lik, d, s, x, more):
    return 0.0 if math.isnan(x) else -1.0 - math.log(x)


@log_ceiling.register(Multinomial)
def _(lik, d, s, x, more):
    counts = x[1]
    total, out = counts.sum(), 0.0
    for j in range(counts.shape[0]):
        out += counts[j] * math.log(counts[j] / total) - math.lgamma(counts[j] + 1.0)
    return out + math.lgamma(total + 1.0)


@log_ceiling.register(GaussianDiagonal)
def _(lik, d, s, x, more):
    if math.isnan(x):
        return 0.0
    with_x = s.copy()
    observe(lik, d, with_x, x, 1.0)
    m, k, a, b = posterior(lik, d, with_x)
    a += 0.5 * (more - 1.0)
    shrink = (k - 1.0 + more) / (k + more)
    return math.lgamma(a + 0.5) - math.lgamma(a) + 0.5 * math.log(shrink / (2.0 * math.pi * b))


@log_ceiling.register(GaussianFull)
def _(lik, d, s, x, more):
    p = x.shape[0]
    with_x = s.copy()
    observe(lik, d, with_x, x, 1.0)
    if with_x[0] == s[0]:  # nothing of x was seen
        return 0.0
    L, m = np.empty((p, p)), np.empty(p)
    k = posterior_factor(lik, with_x, m, L)
    nu = lik.nu + s[0] + more
    shrink = (k - 1.0 + more) / (k + more)
    out = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * (nu + 1.0 - p))
    return out + 0.5 * p * math.log(shrink / math.pi) - 0.5 * log_determinant(L, p)


@generic(derived=True)
def log_seat_ceiling(prior, n, N, K):
    """Upper bound of the log probability of a seat among at most n others, N objects in at least K clusters."""
    return 0.0


@generic(derived=True)
def log_open_ceiling(prior, N, K, more):
    """The same for a cluster of one's own beside K to K + more others."""
    return 0.0


def constant_seat_ceiling(prior, n, N, K):
    """All weights together are ``concentration + N`` whatever the partition."""
    return log_seat(prior, n) - math.log(prior.concentration + N)


def constant_open_ceiling(prior, N, K, more):
    """The weight of a new seat rises or falls with K all the way: one of the ends is its largest."""
    ends = max(log_new_seat(prior, N + 1.0, K), log_new_seat(prior, N + 1.0, K + more))
    return ends - math.log(prior.concentration + N)


for cls in (DirichletProcess, PitmanYor, FiniteDirichlet):
    log_seat_ceiling.register(cls)(constant_seat_ceiling)
    log_open_ceiling.register(cls)(constant_open_ceiling)


@log_seat_ceiling.register(MixtureOfFinite)
def _(prior, n, N, K):
    # the seats alone weigh N + gamma K, and K can only grow
    return log_seat(prior, n) - math.log(N + prior.gamma * K)
