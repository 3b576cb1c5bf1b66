"""One pass over the rows: log joints, responsibilities, statistics. What EM, VB, CVB and predictions share.

A pass never holds an objects x clusters matrix: a block of rows is scored, normalised and added to the
statistics before the next one is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from partita.engines.packing import PackedBlock
from partita.execution import Serial, row_blocks
from partita.families.contract import cache_start, n_columns, spread_start, stats_start
from partita.families.registry import Block
from partita.families.rows import (
    normalize_rows,
    project_rows,
    refresh_clusters,
    scatter_rows,
    score_rows,
)

__all__ = [
    "Assignment",
    "Parameters",
    "Statistics",
    "assign_rows",
    "collect",
    "label_rows",
    "log_joint_rows",
    "n_cache",
    "n_spread",
    "n_stats",
    "normalized",
    "plug_in",
    "predictive",
    "rounding_error",
]

Scorer = Callable[[np.ndarray], np.ndarray]  # rows -> log joint [rows, K]


class Parameters(NamedTuple):
    """Log weights [K] and the natural parameters of each block [statistic, K]."""

    log_weights: np.ndarray
    thetas: tuple[np.ndarray, ...]


class Statistics(NamedTuple):
    """What a pass leaves: sizes, statistics of each block, and three sums over the objects."""

    n: np.ndarray
    S: tuple[np.ndarray, ...]
    log_likelihood: float
    entropy: float  # of the labels
    hidden: float  # what partly seen vectors add to the variational bound


class Assignment(NamedTuple):
    """For each object: its most probable cluster, that probability, the entropy of all, the log likelihood."""

    labels: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    log_likelihood: np.ndarray


def n_stats(lik: Any) -> int:
    """Rows of the statistics of a block."""
    return int(stats_start(lik, n_columns(lik)))


def n_cache(lik: Any) -> int:
    """Rows of the predictive cache of a block."""
    return int(cache_start(lik, n_columns(lik)))


def n_spread(lik: Any) -> int:
    """Rows of the packed variance of the statistics of a block."""
    return int(spread_start(lik, n_columns(lik)))


def log_joint_rows(blocks: Sequence[Block], parameters: Parameters, rows: np.ndarray) -> np.ndarray:
    """``log weight_k + log p(x_i | theta_k)`` for a block of rows."""
    L = np.tile(parameters.log_weights, (len(rows), 1))
    for block, theta in zip(blocks, parameters.thetas, strict=True):
        project_rows(block.family, block.data, rows, theta, L)
    return L


def collect(
    blocks: Sequence[Any], weights: np.ndarray, parameters: Parameters, executor: Any = None
) -> Statistics:
    """The E step: expected statistics of all objects under the given parameters."""
    K = len(parameters.log_weights)
    sides = [_walked(block, theta) for block, theta in zip(blocks, parameters.thetas, strict=True)]

    def one(rows: np.ndarray) -> Statistics:
        R = np.tile(parameters.log_weights, (len(rows), 1))
        for family, data, theta in sides:
            project_rows(family, data, rows, theta, R)
        sums = np.zeros(2)
        normalize_rows(R, weights[rows], sums)
        S = tuple(np.zeros((len(theta), K)) for _, _, theta in sides)
        hidden = 0.0
        for (family, data, theta), s in zip(sides, S, strict=True):
            hidden += scatter_rows(family, data, rows, theta, R, s)
        return Statistics(R.sum(axis=0), S, sums[0], sums[1], hidden)

    results = iter((executor or Serial()).map(one, row_blocks(len(weights))))
    total = next(results)
    for part in results:
        for s, more in zip(total.S, part.S, strict=True):
            s += more
        total = Statistics(
            total.n + part.n, total.S, *(a + b for a, b in zip(total[2:], part[2:], strict=True))
        )
    S = (
        block.levels @ s if isinstance(block, PackedBlock) else s
        for block, s in zip(blocks, total.S, strict=True)
    )
    return total._replace(S=tuple(S))


def rounding_error(parameters: Parameters, statistics: Statistics) -> float:
    """About what rounding may do to an objective: the magnitude of its terms, before they cancel, in digits.

    Precise clusters far from the origin (of standardised columns) have large terms and a small sum.
    """
    terms = 0.0
    for theta, S in zip(parameters.thetas, statistics.S, strict=True):
        with np.errstate(invalid="ignore"):  # a log probability of -inf that nobody met
            terms += float(np.nansum(np.abs(theta * S)))
    return 4.0 * np.finfo(float).eps * terms


def _walked(block: Any, theta: np.ndarray) -> tuple[Any, Any, np.ndarray]:
    """Family, data and natural parameters that a pass walks over: the packed ones where there are such."""
    if isinstance(block, PackedBlock):
        return block.states, block.codes, np.ascontiguousarray(block.levels.T @ theta)
    return block.family, block.data, theta


def plug_in(blocks: Sequence[Block], parameters: Parameters) -> Scorer:
    """Scores rows under given parameters."""
    return lambda rows: log_joint_rows(blocks, parameters, rows)


def predictive(blocks: Sequence[Block], S: Sequence[np.ndarray], log_weights: np.ndarray) -> Scorer:
    """Scores rows under the data of every cluster, parameters integrated out."""
    K = len(log_weights)
    caches = []
    for block, s in zip(blocks, S, strict=True):
        C = np.zeros((n_cache(block.family), K))
        refresh_clusters(block.family, s, C, K)
        caches.append(C)

    def score(rows: np.ndarray) -> np.ndarray:
        L = np.tile(log_weights, (len(rows), 1))
        for block, C in zip(blocks, caches, strict=True):
            score_rows(block.family, block.data, rows, C, L)
        return L

    return score


def label_rows(
    score: Scorer, n_rows: int, n_clusters: int, executor: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities [N, K] and log likelihood [N] of every row."""
    proba, log_likelihood = np.empty((n_rows, n_clusters)), np.empty(n_rows)

    def one(rows: np.ndarray) -> None:
        proba[rows], log_likelihood[rows] = normalized(score(rows))

    for _ in (executor or Serial()).map(one, row_blocks(n_rows)):
        pass
    return proba, log_likelihood


def assign_rows(score: Scorer, n_rows: int, executor: Any = None) -> Assignment:
    """Label every row without ever holding all the probabilities."""
    out = Assignment(*(np.empty(n_rows, dtype) for dtype in (np.int64, float, float, float)))

    def one(rows: np.ndarray) -> None:
        P, log_likelihood = normalized(score(rows))
        out.labels[rows] = P.argmax(axis=1)
        out.confidence[rows] = P.max(axis=1)
        out.entropy[rows] = -xlogy(P, P).sum(axis=1)
        out.log_likelihood[rows] = log_likelihood

    for _ in (executor or Serial()).map(one, row_blocks(n_rows)):
        pass
    return out


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
