"""The mixture of finite mixtures (MFM): a finite Dirichlet with a prior on its number of components."""

from __future__ import annotations

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
    maximise_positive,
    sample_positive,
)
from partita.partitions.registry import register_examples

UNBOUND = -1.0


class MixtureOfFinite(NamedTuple):
    """Mixture of finite mixtures: a random number of components M with Dirichlet(gamma, ...) weights.

    A seat weighs ``n_k + gamma``, a new one gamma times the expected number of components still empty. Make
    it with ``specify("mfm", ...)``, and ``bind`` it to the number of objects before a long run: seats then
    read a table.

    Good for: estimating how many groups there are; the posterior of the number of clusters concentrates on
    the truth where the components are well specified, and spurious tiny clusters are rarer than under the
    Dirichlet process. Not for: populations without end (words, species), and components that do not fit
    their clusters, which no prior on their number can mend.

    Attributes
    ----------
    gamma : float
        Dirichlet parameter of each weight; 1 is uniform over all weights.
    log_prior_components : ndarray
        Entry m - 1 is log P(M = m). Its length bounds the number of components.
    total : float
        The number of objects that ``log_V`` is for; -1 when the prior is not bound.
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
        """Short: the tables have hundreds of entries."""
        bound = "" if self.total == UNBOUND else f", bound to {self.total:.0f} objects"
        return (
            f"MixtureOfFinite(gamma={self.gamma}, up to {len(self.log_prior_components)} components{bound})"
        )


def specify(
    gamma: float = 1.0, components="geometric", rate: float = 0.5, max_components: int = 500
) -> MixtureOfFinite:
    """A checked mixture of finite mixtures.

    Parameters
    ----------
    gamma : float
        Dirichlet parameter of each weight.
    components : {"geometric", "poisson"} or array of float
        Prior on the number of components M. "geometric": ``P(M = m) = rate (1 - rate)^(m - 1)``, the
        default, because each further component costs the same factor. At the rate 0.5 that is one bit, which any
        cluster of a few rows repays, and which keeps clusters that the data neither ask for nor forbid out
        of P(K); at 0.1 pure noise was seen to spread P(K) over dozens. "poisson": M - 1 is Poisson(rate), for a
        number known beforehand; its tail falls so fast that data cannot argue for many more. An array gives
        P(M = 1), P(M = 2), ... up to a constant.
    rate : float
        Parameter of either law.
    max_components : int
        Where the prior is cut off and renormalised; the geometric default loses nothing there.

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
                raise ValueError(f"rate is {rate}: a geometric prior needs a rate below 1")
            log_p = (m - 1.0) * math.log1p(-rate)
        elif components == "poisson":
            log_p = (m - 1.0) * math.log(rate) - gammaln(m)
        else:
            raise ValueError(
                f'components is "{components}": take "geometric", "poisson" or an array of probabilities'
            )
    else:
        p = np.asarray(components, dtype=float)
        if p.ndim != 1 or not (np.isfinite(p).all() and (p >= 0).all() and p.sum() > 0):
            raise ValueError("components must be a one-dimensional array of probabilities, not all of them 0")
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
            'specify("mfm", components=...) makes them'
        )
    log_V = np.ascontiguousarray(prior.log_V, dtype=np.float64)
    return MixtureOfFinite(float(prior.gamma), log_p, float(prior.total), log_V)


def tabulate_log_V(prior: MixtureOfFinite, N: float, t: np.ndarray) -> np.ndarray:
    """``log V_N(t)`` of Miller and Harrison for many t at once.

    ``V_N(t) = sum_m P(M = m) m! / (m - t)! Gamma(gamma m) / Gamma(gamma m + N)``.

    Examples
    --------
    >>> prior = specify(gamma=1.0, components=[0.0, 1.0])
    >>> np.exp(tabulate_log_V(prior, 2, np.arange(4))).round(6)
    array([0.166667, 0.333333, 0.333333, 0.      ])
    """
    m = np.arange(1.0, len(prior.log_prior_components) + 1)
    rising = prior.log_prior_components + gammaln(prior.gamma * m) - gammaln(prior.gamma * m + N)
    empty = m[None, :] - np.asarray(t, dtype=float)[:, None]
    log_ways = np.where(empty >= 0, gammaln(m + 1.0) - gammaln(np.maximum(empty, 0.0) + 1.0), -np.inf)
    terms = rising + log_ways
    top = np.maximum(terms.max(axis=1, keepdims=True), -1e300)  # finite where all are -inf
    with np.errstate(divide="ignore"):
        return top[:, 0] + np.log(np.exp(terms - top).sum(axis=1))


@contract.bind.register(MixtureOfFinite)
def _(prior, N):
    return _tabulated(prior, float(N), len(prior.log_prior_components) + 2)


def _tabulated(prior: MixtureOfFinite, N: float, n_terms: int) -> MixtureOfFinite:
    """The prior with a table of its first terms; what lies beyond is summed when it is asked for."""
    n_terms = min(n_terms, len(prior.log_prior_components) + 2)
    return prior._replace(total=N, log_V=tabulate_log_V(prior, N, np.arange(n_terms)))


@contract.with_concentration.register(MixtureOfFinite)
def _(prior, concentration):
    return MixtureOfFinite(float(concentration), prior.log_prior_components)


@generic
def log_component_sum(prior, N, t):
    """``log V_N(t)``: from the table when the prior is bound to N, otherwise summed here."""


@log_component_sum.register(MixtureOfFinite)
def _(prior, N, t):
    if prior.total == N and t < prior.log_V.shape[0]:
        return prior.log_V[t]
    highest = -math.inf
    total = 0.0
    for m in range(max(t, 1), prior.log_prior_components.shape[0] + 1):
        term = prior.log_prior_components[m - 1] + math.lgamma(m + 1.0) - math.lgamma(m - t + 1.0)
        term += math.lgamma(prior.gamma * m) - math.lgamma(prior.gamma * m + N)
        # log-sum-exp in one pass: rescale the sum whenever a larger term comes along
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
        return -math.inf  # as many clusters as there can be components
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


@contract.n_clusters_prior.register(MixtureOfFinite)
def _(prior, N):
    # there are at most as many clusters as components: cut where more components are improbable
    more = np.cumsum(np.exp(prior.log_prior_components)[::-1])[::-1]
    K_max = min(N, int(np.count_nonzero(more > 1e-16)))
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
    """``log_eppf`` as a function of gamma, in numpy: a chain asks for it a dozen times an iteration."""
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
    gamma = maximise_positive(_log_likelihood(prior, n), float(prior.gamma))
    return _with_gamma(prior, gamma, int(np.count_nonzero(n)))


register_examples(
    specify(gamma=1.0, rate=0.3, max_components=25),
    specify(gamma=0.4, components="poisson", rate=2.0, max_components=12),
)
