"""The values that passes over rows read and return."""

from __future__ import annotations

from collections.abc import Sequence
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


MIN_PROBABILITY = 1e-3  # of a cluster that is kept for a row; smaller ones are given to the others
MAX_UNCERTAIN = 1 << 23  # entries of uncertain rows that are kept


class UncertainRows(NamedTuple):
    """Probabilities of clusters, entry by entry, of the rows that more than one cluster may contain.

    Rows are in ascending order, and so are the clusters of each; the probabilities of a row sum to 1.
    """

    rows: np.ndarray  # int64
    clusters: np.ndarray  # int32
    probabilities: np.ndarray  # float32


class Assignment(NamedTuple):
    """For each object: its most probable cluster, that probability, the entropy of all, the log likelihood."""

    labels: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    log_likelihood: np.ndarray
    uncertain: UncertainRows | None = None  # where they were asked for


class Partition(NamedTuple):
    """The most probable cluster of every object, and sums over the objects with their weights.

    Labels, confidence and uncertain rows are arrays, or what fetches them from a device
    (:class:`partita.execution.later.Later`).
    """

    labels: Any
    confidence: Any
    uncertain: Any
    sizes: np.ndarray  # [cluster] of the labels
    entropy: float
    log_likelihood: float


def partition_of(assigned: Assignment, weights: np.ndarray, n_clusters: int) -> Partition:
    """An assignment in memory with its sums; objects with the label -1 are in no cluster.

    Examples
    --------
    >>> found = Assignment(np.array([0, 1, 1]), np.ones(3), np.zeros(3), np.full(3, -2.0))
    >>> partition_of(found, np.array([1.0, 1.0, 3.0]), 3)[3:]
    (array([1., 4., 0.]), 0.0, -10.0)
    """
    inlying = assigned.labels >= 0
    sizes = np.bincount(assigned.labels[inlying], weights[inlying], minlength=n_clusters).astype(float)
    sums = float(weights @ assigned.entropy), float(weights @ assigned.log_likelihood)
    return Partition(assigned.labels, assigned.confidence, assigned.uncertain, sizes, *sums)


def n_stats(lik: Any) -> int:
    """Number of rows of the statistics of a block."""
    return int(stats_start(lik, n_columns(lik)))


def n_cache(lik: Any) -> int:
    """Number of rows of the predictive cache of a block."""
    return int(cache_start(lik, n_columns(lik)))


def n_spread(lik: Any) -> int:
    """Number of rows of the packed variance of the statistics of a block."""
    return int(spread_start(lik, n_columns(lik)))


def empty_assignment(n_rows: int) -> Assignment:
    """Arrays to be filled."""
    return Assignment(np.empty(n_rows, np.int64), *np.empty((3, n_rows)))


def uncertain_rows(P: np.ndarray, start: int = 0) -> UncertainRows:
    """The uncertain ones among rows with these probabilities [row, cluster]; the first is row ``start`` of the table.

    Examples
    --------
    >>> found = uncertain_rows(np.array([[1.0, 0.0], [0.25, 0.75]]), start=10)
    >>> found.rows, found.clusters, found.probabilities
    (array([11, 11]), array([0, 1], dtype=int32), array([0.25, 0.75], dtype=float32))
    """
    likely = P >= MIN_PROBABILITY
    likely[np.count_nonzero(likely, axis=1) < 2] = False
    rows, clusters = np.nonzero(likely)
    kept = P[rows, clusters]
    kept /= np.bincount(rows, kept, minlength=len(P))[rows]
    return UncertainRows(rows + start, clusters.astype(np.int32), kept.astype(np.float32))


class JoinedUncertain:
    """Uncertain rows of several chunks, which are added in order; none if they have too many entries to be kept."""

    def __init__(self) -> None:
        self._parts: list[UncertainRows] = []
        self._n_entries = 0

    def add(self, found: UncertainRows | None, start: int = 0) -> None:
        """Add those of a chunk, whose rows count from 0, if they were asked for."""
        if found is not None:
            self._n_entries += len(found.rows)
            self._parts.append(found._replace(rows=found.rows + start))
            if self._n_entries > MAX_UNCERTAIN:
                self._parts = [no_uncertain_rows()]

    def rows(self) -> UncertainRows | None:
        """Those of all chunks; None if they were asked for nowhere."""
        if not self._parts:
            return None
        return UncertainRows(*(np.concatenate(parts) for parts in zip(*self._parts, strict=True)))


def joined_uncertain(found: Sequence[UncertainRows]) -> UncertainRows:
    """Those of several chunks of rows, which are given in order."""
    joined = JoinedUncertain()
    for own in found:
        joined.add(own)
    return joined.rows() or no_uncertain_rows()


def no_uncertain_rows() -> UncertainRows:
    """Every row is certain of its cluster, or the uncertain ones are not known."""
    return UncertainRows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


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
