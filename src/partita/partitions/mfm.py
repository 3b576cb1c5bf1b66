"""The mixture of finite mixtures (MFM): a finite Dirichlet with a prior on its number of components."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from partita.dispatch import generic
from partita.labels import canonical
from partita.partitions import contract
from partita.partitions.finite import check_components, draw_log_gamma
from partita.partitions.gibbs_type import (
    log_gibbs_weight,
    log_new_seat,
    log_stirling,
    mean_occupied,
    register_gibbs_type,
    seat_discount,
)
from partita.partitions.learning import (
    UNIFORM,
    UNIT_GAMMA,
    check_positive,
    maximize_positive,
    sample_positive,
)
from partita.partitions.registry import register_examples

NEGLIGIBLE = 60.0  # nats: hundreds of terms so far below the largest do not change a double
UNBOUND = -1.0  # the total of a prior that is not bound to a number of objects


class MixtureOfFinite(NamedTuple):
    """Mixture of finite mixtures: a random number of components M with Dirichlet(gamma, ...) weights.

    Cluster k has weight ``n_k + gamma``, a new cluster gamma times the expected number of empty components. Make the
    prior with ``specify("mfm", ...)``, and ``bind`` it to the number of objects before a long run, so that weights are
    read from a table.

    Good for: estimating the number of groups. The posterior of the number of clusters concentrates on the true number
    if the components are well specified, and spurious tiny clusters are rarer than under the Dirichlet process. Not
    for: populations with an unbounded number of groups (words, species), nor for components that do not fit the
    clusters, which no prior on their number can correct.

    Attributes
    ----------
    gamma : float
        Dirichlet parameter of each weight; 1 is uniform over all weights.
    log_prior_components : ndarray
        Entry m - 1 is log P(M = m). Its length bounds the number of components.
    total : float
        The number of objects that the prior is bound to; -1 if it is not bound.
    log_V : ndarray
        Entry t is log V_total(t) of Miller and Harrison.

    References
    ----------
    Miller and Harrison (2018), Mixture models with a prior on the number of components, JASA 113.

    Examples
    --------
    >>> from partita.partitions import log_eppf, specify
    >>> prior = specify("mfm", gamma=1.0, components=[0.0, 1.0])  # exactly two components
    >>> round(float(np.exp(log_eppf(prior, np.array([1.0, 1.0]), 2))), 6)
    0.333333
    """

    gamma: float
    log_prior_components: np.ndarray
    total: float = UNBOUND
    log_V: np.ndarray = np.zeros(0)

    @property
    def fixed_labels(self) -> bool:
        """False: labels are exchangeable."""
        return False

    def __repr__(self) -> str:
        """Leave out the tables, which have hundreds of entries."""
        bound = "" if self.total == UNBOUND else f", bound to {self.total:.0f} objects"
        return (
            f"MixtureOfFinite(gamma={self.gamma}, up to {len(self.log_prior_components)} components{bound})"
        )


def specify(
    gamma: float = 1.0, components="geometric", rate: float = 0.5, max_components: int = 500
) -> MixtureOfFinite:
    """Make a mixture of finite mixtures and check its parameters.

    Parameters
    ----------
    gamma : float, default=1.0
        Dirichlet parameter of each weight.
    components : {"geometric", "poisson"} or array of float, default="geometric"
        Prior on the number of components M. "geometric": ``P(M = m) = rate (1 - rate)^(m - 1)``; each further component
        has the same cost. With the rate 0.5 this is one bit, which a cluster of a few rows easily outweighs, and which
        excludes clusters that the data neither support nor contradict; with the rate 0.1, P(K) was spread over dozens
        of clusters in pure noise. "poisson": M - 1 is Poisson(rate), for a number that is roughly known; its tail is so
        light that data can hardly support many more components. An array gives P(M = 1), P(M = 2), ... up to a constant
        factor.
    rate : float, default=0.5
        Parameter of the geometric or Poisson distribution.
    max_components : int, default=500
        The prior is cut off here and renormalized; the default geometric prior has no mass beyond.

    Examples
    --------
    >>> np.exp(specify(components=[2.0, 1.0, 1.0]).log_prior_components)
    array([0.5 , 0.25, 0.25])
    """
    check_positive(rate=rate)
    m = np.arange(1.0, check_components(max_components) + 1)
    if isinstance(components, str):
        if components == "geometric":
            if rate >= 1.0:
                raise ValueError(f"rate is {rate}: the geometric prior needs a rate below 1")
            log_p = (m - 1.0) * math.log1p(-rate)
        elif components == "poisson":
            log_p = (m - 1.0) * math.log(rate) - gammaln(m)
        else:
            raise ValueError(
                f'components is "{components}": use "geometric", "poisson" or an array of probabilities'
            )
    else:
        p = np.asarray(components, dtype=float)
        if p.ndim != 1 or not (np.isfinite(p).all() and (p >= 0).all() and p.sum() > 0):
            raise ValueError("components must be a one-dimensional array of probabilities that are not all 0")
        with np.errstate(divide="ignore"):
            log_p = np.log(p)
    return contract.checked(MixtureOfFinite(gamma, log_p - logsumexp(log_p)))


@contract.checked.register(MixtureOfFinite)
def _(prior):
    check_positive(gamma=prior.gamma)
    log_p = np.ascontiguousarray(prior.log_prior_components, dtype=np.float64)
    if log_p.ndim != 1 or len(log_p) == 0 or abs(np.exp(log_p).sum() - 1.0) > 1e-8:
        raise ValueError(
            "log_prior_components must hold the logs of probabilities that sum to 1; "
            'use specify("mfm", components=...)'
        )
    log_V = np.ascontiguousarray(prior.log_V, dtype=np.float64)
    return MixtureOfFinite(float(prior.gamma), log_p, float(prior.total), log_V)


def tabulate_log_V(prior: MixtureOfFinite, N: float, t: np.ndarray) -> np.ndarray:
    """Return ``log V_N(t)`` of Miller and Harrison for an array of t.

    ``V_N(t) = sum_m P(M = m) m! / (m - t)! Gamma(gamma m) / Gamma(gamma m + N)``.

    Examples
    --------
    >>> prior = specify(gamma=1.0, components=[0.0, 1.0])
    >>> np.exp(tabulate_log_V(prior, 2, np.arange(4))).round(6)
    array([0.166667, 0.333333, 0.333333, 0.      ])
    """
    log_p = prior.log_prior_components
    t = np.atleast_1d(np.asarray(t, dtype=int))
    log_ways = _log_ways(tuple(t.tolist()), len(log_p))
    M = _n_terms(log_p + log_ways[-1]) if len(t) and t[-1] == t.max() else len(log_p)
    m = np.arange(1.0, M + 1)
    terms = log_p[:M] + gammaln(prior.gamma * m) - gammaln(prior.gamma * m + N) + log_ways[:, :M]
    top = np.maximum(terms.max(axis=1, keepdims=True), -1e300)  # finite where all are -inf
    with np.errstate(divide="ignore"):
        return top[:, 0] + np.log(np.exp(terms - top).sum(axis=1))


@functools.lru_cache(maxsize=16)
def _log_ways(t: tuple[int, ...], M: int) -> np.ndarray:
    """``log m! / (m - t)!`` for each t and m = 1 .. M; chains ask for the same table in every iteration."""
    m = np.arange(1.0, M + 1)
    empty = m[None, :] - np.array(t, dtype=float)[:, None]
    return np.where(empty >= 0, gammaln(m + 1.0) - gammaln(np.maximum(empty, 0.0) + 1.0), -np.inf)


def _n_terms(log_heights: np.ndarray) -> int:
    """Number of terms that can change a sum in double precision, given their logs up to a factor that falls with m.

    ``Gamma(gamma m) / Gamma(gamma m + N)`` falls with m, so a term after the largest height is at least as far below
    that one as the heights say. The largest t has the slowest decay.
    """
    top = int(np.argmax(log_heights))
    high = np.flatnonzero(log_heights[top:] > log_heights[top] - NEGLIGIBLE)
    return top + int(high[-1]) + 1 if len(high) else len(log_heights)


@contract.bind.register(MixtureOfFinite)
def _(prior, N):
    return _tabulated(prior, float(N), len(prior.log_prior_components) + 2)


def _tabulated(prior: MixtureOfFinite, N: float, n_terms: int) -> MixtureOfFinite:
    """Return the prior with a table of its first terms; further terms are computed when needed."""
    n_terms = min(n_terms, len(prior.log_prior_components) + 2)
    return prior._replace(total=N, log_V=tabulate_log_V(prior, N, np.arange(n_terms)))


@contract.with_concentration.register(MixtureOfFinite)
def _(prior, concentration):
    return MixtureOfFinite(float(concentration), prior.log_prior_components)


@generic
def log_component_sum(prior, N, t):
    """``log V_N(t)``: from the table if the prior is bound to N, otherwise computed."""


@log_component_sum.register(MixtureOfFinite)
def _(prior, N, t):
    if prior.total == N and t < prior.log_V.shape[0]:
        return prior.log_V[t]
    highest = -math.inf
    total = 0.0
    for m in range(max(t, 1), prior.log_prior_components.shape[0] + 1):
        term = prior.log_prior_components[m - 1] + math.lgamma(m + 1.0) - math.lgamma(m - t + 1.0)
        term += math.lgamma(prior.gamma * m) - math.lgamma(prior.gamma * m + N)
        # log-sum-exp in one pass: rescale the sum at each larger term
        if term > highest:
            total = total * math.exp(highest - term) + 1.0
            highest = term
        elif term > -math.inf:
            total += math.exp(term - highest)
    return highest + math.log(total) if total > 0.0 else -math.inf


@seat_discount.register(MixtureOfFinite)
def _(prior):
    return -prior.gamma


@log_new_seat.register(MixtureOfFinite)
def _(prior, N, K):
    log_more = log_component_sum(prior, N, K + 1)
    if log_more == -math.inf:
        return -math.inf  # there are as many clusters as components allowed
    return math.log(prior.gamma) + log_more - log_component_sum(prior, N, K)


@log_gibbs_weight.register(MixtureOfFinite)
def _(prior, N, K):
    return log_component_sum(prior, N, K) + K * math.log(prior.gamma)


register_gibbs_type(MixtureOfFinite)


@contract.simulate.register(MixtureOfFinite)
def _(prior, N, rng):
    p = np.exp(prior.log_prior_components)
    M = 1 + int(rng.choice(len(p), p=p / p.sum()))
    log_g = draw_log_gamma(np.full(M, prior.gamma), rng)
    pi = np.exp(log_g - logsumexp(log_g))
    return canonical(rng.choice(M, size=N, p=pi / pi.sum()))


def most_components(prior: MixtureOfFinite, N: int) -> int:
    """Largest number of clusters of N objects with a probability that counts: there are no fewer components."""
    more = np.cumsum(np.exp(prior.log_prior_components)[::-1])[::-1]
    return min(N, int(np.count_nonzero(more > 1e-16)))


@contract.n_clusters_prior.register(MixtureOfFinite)
def _(prior, N):
    K_max = most_components(prior, N)
    log_p = log_stirling(-prior.gamma, N, K_max)
    log_p += tabulate_log_V(prior, float(N), np.arange(K_max + 1)) + np.arange(K_max + 1) * math.log(
        prior.gamma
    )
    p = np.exp(log_p)
    return p / p.sum()


@contract.expected_n_clusters.register(MixtureOfFinite)
def _(prior, N):
    m = np.arange(1.0, len(prior.log_prior_components) + 1)
    return float(np.exp(prior.log_prior_components) @ mean_occupied(prior.gamma * m, -prior.gamma, N))


def _log_likelihood(prior: MixtureOfFinite, n: np.ndarray):
    """Return ``log_eppf`` as a function of gamma, in numpy: a chain calls it about ten times per iteration."""
    sizes = n[n > 0]
    N, K = float(sizes.sum()), len(sizes)

    def log_likelihood(gamma: float) -> float:
        log_V = tabulate_log_V(contract.with_concentration(prior, gamma), N, np.array([K]))[0]
        return float(log_V + K * math.log(gamma) + (gammaln(sizes + gamma) - gammaln(1.0 + gamma)).sum())

    return log_likelihood


def _with_gamma(prior: MixtureOfFinite, gamma: float, K: int) -> MixtureOfFinite:
    changed = contract.with_concentration(prior, gamma)
    return changed if prior.total == UNBOUND else _tabulated(changed, prior.total, max(64, 2 * K))


@contract.sample_hyper.register(MixtureOfFinite)
def _(prior, n, rng, hyperprior=UNIT_GAMMA, discount_hyperprior=UNIFORM):
    gamma = sample_positive(_log_likelihood(prior, n), prior.gamma, rng, hyperprior)
    return _with_gamma(prior, gamma, int(np.count_nonzero(n)))


@contract.fit_hyper.register(MixtureOfFinite)
def _(prior, n):
    gamma = maximize_positive(_log_likelihood(prior, n), float(prior.gamma))
    return _with_gamma(prior, gamma, int(np.count_nonzero(n)))


register_examples(
    specify(gamma=1.0, rate=0.3, max_components=25),
    specify(gamma=0.4, components="poisson", rate=2.0, max_components=12),
)
