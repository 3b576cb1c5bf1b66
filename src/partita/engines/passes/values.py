"""The values that passes over rows read and return."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.exact_sums import ExactSums
from partita.families.contract import cache_start, n_columns, spread_start, stats_start


class Parameters(NamedTuple):
    """Log weights [K] and the natural parameters of each block [statistic, K]."""

    log_weights: np.ndarray
    thetas: tuple[np.ndarray, ...]


class Statistics(NamedTuple):
    """The result of a pass: sizes, statistics of each block, and three sums over the objects."""

    n: np.ndarray
    S: tuple[np.ndarray, ...]
    log_likelihood: float
    entropy: float  # of the labels
    hidden: float  # what partly observed vectors add to the variational bound


class Assignment(NamedTuple):
    """For each object: its most probable cluster, that probability, the entropy of all, the log likelihood."""

    labels: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    log_likelihood: np.ndarray


def n_stats(lik: Any) -> int:
    """Number of rows of the statistics of a block."""
    return int(stats_start(lik, n_columns(lik)))


def n_cache(lik: Any) -> int:
    """Number of rows of the predictive cache of a block."""
    return int(cache_start(lik, n_columns(lik)))


def n_spread(lik: Any) -> int:
    """Number of rows of the packed variance of the statistics of a block."""
    return int(spread_start(lik, n_columns(lik)))


def rounded(sums: ExactSums) -> Statistics:
    """Statistics from exact sums; each number is rounded once."""
    # a log likelihood of -inf has a compensation of NaN
    n, about, *S = (value + np.where(np.isnan(lack), 0.0, lack) for value, lack in zip(*sums, strict=True))
    return Statistics(n, tuple(S), *(float(value) for value in about))


def add_up(one: Statistics, other: Statistics) -> Statistics:
    """The statistics of both."""
    S = tuple(s + more for s, more in zip(one.S, other.S, strict=True))
    return Statistics(one.n + other.n, S, *(a + b for a, b in zip(one[2:], other[2:], strict=True)))


def normalized(L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities and log-sum-exp of each row of log joints; equal shares where all are -inf."""
    top = L.max(axis=1, keepdims=True)
    lost = ~np.isfinite(top[:, 0])
    P = np.exp(L - np.where(np.isfinite(top), top, 0.0))
    P[lost] = 1.0
    total = P.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_likelihood = np.where(lost, -np.inf, top[:, 0] + np.log(total[:, 0]))
    return P / total, log_likelihood
