"""Relative entropy of the distribution of one column in each group to its distribution in the whole table, in nats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp, ndtri, pdtrik, rel_entr

N_QUANTILES = 60  # per group, where densities are compared
MIN_POINTS, MAX_DENSITIES = 250, 100_000  # densities are evaluated at points x groups
MIN_WIDTH = 1e-9  # of a group of equal values, relative to the deviation of the table
LEVELS = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES


def information_of_normals(mean: np.ndarray, sd: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of normal distributions.

    Examples
    --------
    >>> information_of_normals(np.array([0.0, 0.0]), np.ones(2), np.array([0.5, 0.5])).round(3) + 0.0
    array([0., 0.])
    """
    whole = np.sqrt(weights @ (sd**2 + (mean - weights @ mean) ** 2))
    sd = np.maximum(sd, max(MIN_WIDTH * float(whole), 1e-300))  # groups of equal values
    points = mean + sd * ndtri(LEVELS)[:, None]
    return _information(points, lambda x: -0.5 * ((x - mean) / sd) ** 2 - np.log(sd), weights)


def information_of_counts(rate: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of Poisson distributions."""
    rate = np.maximum(rate, 1e-300)
    points = np.maximum(np.ceil(pdtrik(LEVELS[:, None], rate)), 0.0)
    return _information(points, lambda x: x * np.log(rate) - rate - gammaln(x + 1.0), weights)


def information_of_durations(rate: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of exponential distributions."""
    points = -np.log1p(-LEVELS)[:, None] / rate
    return _information(points, lambda x: np.log(rate) - rate * x, weights)


def information_of_shares(P: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of levels with the probabilities P [group, level]."""
    return rel_entr(P, weights @ P).sum(axis=1)


def information_of_words(share: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of the share of one column in count vectors, per count of the vector."""
    whole = weights @ share
    return rel_entr(share, whole) - share + whole


def _information(
    points: np.ndarray, log_density: Callable[[np.ndarray], np.ndarray], weights: np.ndarray
) -> np.ndarray:
    """Mean of ``log p_k(x) - log p(x)`` over evenly spaced quantiles [quantile, group] of each group's distribution.

    The density p of the whole table is a sum over all groups. For many groups it is evaluated at some of the
    points and interpolated at the others. Half of them are spaced evenly by rank, half by value: in the tails of the
    table points are few, and by rank alone they would be too far apart.
    """
    some = np.unique(points)
    most = max(MIN_POINTS, MAX_DENSITIES // len(weights))
    if len(some) > most:
        by_rank = np.linspace(0, len(some) - 1, most // 2).round().astype(np.int64)
        by_value = np.searchsorted(some, np.linspace(some[0], some[-1], most - most // 2))
        some = some[np.union1d(by_rank, np.minimum(by_value, len(some) - 1))]
    log_whole = logsumexp(log_density(some[:, None]) + np.log(weights), axis=1)
    return (log_density(points) - np.interp(points, some, log_whole)).mean(axis=0)
