"""Gibbs-type priors: what all exchangeable priors have in common.

The probability of a partition is ``V(N, K) prod_k (1 - sigma)(2 - sigma)...(n_k - 1 - sigma)`` (Gnedin and
Pitman 2006; De Blasi et al. 2015). A prior defines its sigma and its V; the weights of clusters, the probability of a
partition and the distribution of the number of clusters follow from them. For the Dirichlet process, Pitman-Yor and
the finite Dirichlet, a new cluster has the weight ``alpha + sigma K`` and cluster k the weight ``n_k - sigma`` (with
sigma = -alpha / n_components for the finite Dirichlet); the mixture of finite mixtures is an average of such priors.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, gammaln

from partita.dispatch import generic
from partita.partitions.contract import log_eppf, log_mass, log_new_seat, log_seat

MIN_PROBABILITY = 1e-22  # smaller ones are dropped at each step of a recursion; N of them stay below 1e-16


@generic
def seat_discount(prior):
    """Sigma: cluster k has the weight ``n_k - sigma``."""


@generic
def log_gibbs_weight(prior, N, K):
    """``log V(N, K)``: the factor of the numbers of objects and clusters in the probability of a partition."""


def size_log_seat(prior, n):
    """``log_seat`` of a Gibbs-type prior."""
    weight = n - seat_discount(prior)
    return math.log(weight) if weight > 0.0 else -math.inf


def seat_log_mass(prior, n, K, out):
    """``log_mass`` of a Gibbs-type prior."""
    N = 1.0
    for k in range(K):
        N += n[k]
        out[k] = log_seat(prior, n[k])
    if out.shape[0] > K:
        out[K] = log_new_seat(prior, N, K)


def sizes_log_eppf(prior, n, K):
    """``log_eppf`` of a Gibbs-type prior."""
    sigma = seat_discount(prior)
    N = 0.0
    total = -K * math.lgamma(1.0 - sigma)
    for k in range(K):
        N += n[k]
        total += math.lgamma(n[k] - sigma)
    return total + log_gibbs_weight(prior, N, K)


def register_gibbs_type(cls: type) -> None:
    """Derive ``log_seat``, ``log_mass`` and ``log_eppf`` of a prior from its generics above and ``log_new_seat``."""
    log_seat.register(cls)(size_log_seat)
    log_mass.register(cls)(seat_log_mass)
    log_eppf.register(cls)(sizes_log_eppf)


def n_occupied(alpha: float, sigma: float, N: int) -> np.ndarray:
    """Return the distribution of the number of clusters of N objects if a new cluster has weight ``alpha + sigma K``.

    The recursion adds one object at a time. Negligible probabilities at both ends are dropped, so the cost is N times
    the width of the distribution.

    Examples
    --------
    >>> n_occupied(1.0, 0.0, 2)
    array([0. , 0.5, 0.5])
    """
    if N == 0:
        return np.ones(1)
    p, lowest = np.ones(1), 1
    for n in range(1, N):
        K = np.arange(lowest, lowest + len(p))
        # with all labels of a finite prior in use, alpha + sigma K is 0 up to rounding
        p_new = p * np.maximum(alpha + sigma * K, 0.0) / (alpha + n)
        p = np.append(p - p_new, 0.0)
        p[1:] += p_new
        if p[-1] < MIN_PROBABILITY:
            p = p[:-1]
        if p[0] < MIN_PROBABILITY:
            p, lowest = p[1:], lowest + 1
    return np.concatenate([np.zeros(lowest), p / p.sum()])


def mean_occupied(alpha, sigma: float, N: int):
    """Return the mean of ``n_occupied`` in closed form; alpha may be an array.

    The mean m satisfies ``m_{n+1} = m_n + (alpha + sigma m_n) / (alpha + n)``, which is solved by a shift by
    alpha / sigma.

    Examples
    --------
    >>> round(float(mean_occupied(1.0, 0.0, 3)), 4)
    1.8333
    """
    if N == 0:
        return np.zeros_like(alpha, dtype=float)
    if abs(sigma) < 1e-9:
        return 1.0 + alpha * (digamma(alpha + N) - digamma(alpha + 1.0))
    log_growth = gammaln(alpha + sigma + N) + gammaln(alpha + 1.0)
    log_growth -= gammaln(alpha + sigma + 1.0) + gammaln(alpha + N)
    return ((alpha + sigma) * np.exp(log_growth) - alpha) / sigma


def log_stirling(sigma: float | np.ndarray, N: int, K_max: int) -> np.ndarray:
    """Log of the sum of ``prod_k (1 - sigma)_{n_k - 1}`` over partitions of N objects in K <= K_max clusters.

    These are generalized Stirling numbers; times V(N, K) they are the distribution of the number of clusters. K is the
    last axis of the result, after those of sigma.

    Examples
    --------
    >>> np.exp(log_stirling(0.0, 4, 4)).round()  # unsigned Stirling numbers of the first kind
    array([ 0.,  6., 11.,  6.,  1.])
    """
    shift = np.multiply.outer(sigma, np.arange(K_max + 1))
    log_S = np.full(shift.shape, -np.inf)
    log_S[..., 0] = 0.0
    with np.errstate(divide="ignore"):
        for n in range(N):
            seated = log_S + np.log(np.maximum(n - shift, 0.0))
            seated[..., 1:] = np.logaddexp(seated[..., 1:], log_S[..., :-1])
            log_S = seated
    return log_S


def seat_in_turn(alpha: float, sigma: float, N: int, rng: np.random.Generator) -> np.ndarray:
    """Simulate the Chinese restaurant process in linear time.

    Each object joins the cluster of an earlier object, or opens a new cluster. The cluster of a uniformly drawn earlier
    object is proposed with probability proportional to n_k; it is accepted with probability ``1 - sigma / n_k``, which
    gives the weight ``n_k - sigma``. Requires sigma >= 0.

    Examples
    --------
    >>> seat_in_turn(1.0, 0.5, 5, np.random.default_rng(1)).tolist()
    [0, 1, 0, 2, 3]
    """
    labels = [0] * N
    sizes: list[int] = [1]
    for i in range(1, N):
        if rng.random() * (alpha + i) < alpha + sigma * len(sizes):
            labels[i] = len(sizes)
            sizes.append(1)
            continue
        k = labels[int(rng.random() * i)]
        while sigma > 0.0 and rng.random() * sizes[k] < sigma:
            k = labels[int(rng.random() * i)]
        labels[i] = k
        sizes[k] += 1
    return np.array(labels, dtype=np.int64)
