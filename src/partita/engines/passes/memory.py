"""Passes over rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from partita.engines.passes.exact_sums import ExactSums, add_exactly
from partita.engines.passes.live import make_live, refresh_caches, score_rows
from partita.engines.passes.packing import PackedBlock, is_packable, pack_block
from partita.engines.passes.values import (
    Assignment,
    Parameters,
    Partition,
    Statistics,
    UncertainRows,
    empty_assignment,
    joined_uncertain,
    n_stats,
    normalized,
    partition_of,
    rounded,
    uncertain_rows,
)
from partita.execution import Part, Serial, row_chunks
from partita.execution.weights import weighted_sum
from partita.families.contract import expect, partly_seen
from partita.families.registry import Block
from partita.families.rows import (
    add_expected_statistics,
    add_log_likelihood,
    add_statistics,
    normalize_rows,
)

Side = tuple[Any, Any, np.ndarray]  # family, data and natural parameters of a block
# (blocks, rows, replicates, labels of the replicates, common) -> marks of the replicates (or None), sums
ReplicatePass = Callable[..., tuple[np.ndarray | None, Sequence[np.ndarray]]]


class MemoryScorer(NamedTuple):
    """Scores rows in memory: called with rows, it returns their log joint [row, cluster]."""

    score: Callable[[np.ndarray], np.ndarray]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return self.score(rows)

    def assign(self, n_rows: int, executor: Any = None, uncertain: bool = False) -> Assignment:
        """Most probable cluster of every row; the matrix of probabilities is never held as a whole."""
        out = empty_assignment(n_rows)

        def one(rows: np.ndarray) -> UncertainRows | None:
            P, log_likelihood = normalized(self.score(rows))
            out.labels[rows] = P.argmax(axis=1)
            out.confidence[rows] = P.max(axis=1)
            out.entropy[rows] = -xlogy(P, P).sum(axis=1)
            out.log_likelihood[rows] = log_likelihood
            return uncertain_rows(P, int(rows[0])) if uncertain and len(rows) else None

        found = [own for own in (executor or Serial()).map(one, row_chunks(n_rows)) if own is not None]
        return out._replace(uncertain=joined_uncertain(found)) if found else out

    def labels(self, n_rows: int, executor: Any = None) -> np.ndarray:
        """Most probable cluster of every row."""
        return self.assign(n_rows, executor).labels

    def partition(self, weights: np.ndarray, n_clusters: int, executor: Any = None) -> Partition:
        """Labels, confidence and uncertain rows, and sums over the rows."""
        return partition_of(self.assign(len(weights), executor, uncertain=True), weights, n_clusters)

    def label(self, n_rows: int, n_clusters: int, executor: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities [row, cluster] and log likelihood of every row."""
        proba, log_likelihood = np.empty((n_rows, n_clusters)), np.empty(n_rows)

        def one(rows: np.ndarray) -> None:
            proba[rows], log_likelihood[rows] = normalized(self.score(rows))

        for _ in (executor or Serial()).map(one, row_chunks(n_rows)):
            pass
        return proba, log_likelihood


class Memory:
    """The residence of blocks whose data are in memory."""

    eps = float(np.finfo(np.float64).eps)

    def collect(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        parameters: Parameters,
        executor: Any,
        part: Part | None = None,
    ) -> Statistics:
        """Expected statistics of all objects, or of those of a part."""
        sides = packed_sides(blocks, parameters.thetas)
        return unpacked(blocks, walk(sides, parameters.log_weights, weights, executor, part=part))

    def count(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        z: np.ndarray,
        K: int,
        thetas: Sequence[np.ndarray] | None,
    ) -> Statistics:
        """Statistics of given labels."""
        seen = np.flatnonzero(z >= 0)
        S = [np.zeros((n_stats(block.family), K)) for block in blocks]
        if len(seen) == len(z) and np.all(weights == 1.0) and not any(self.partly_seen(blocks)):
            for block, s in zip(blocks, S, strict=True):
                add_statistics(block.family, block.data, np.asarray(z, np.int64), s)
            return Statistics(np.bincount(z, minlength=K).astype(float), tuple(S), np.nan, np.nan, 0.0)
        if thetas is None:
            thetas = [expect(block.family, s) for block, s in zip(blocks, S, strict=True)]
        hidden = 0.0
        for chunk in row_chunks(len(seen)):
            rows = seen[chunk]
            R = np.zeros((len(rows), K))
            R[np.arange(len(rows)), z[rows]] = weights[rows]
            for block, theta, s in zip(blocks, thetas, S, strict=True):
                hidden += add_expected_statistics(block.family, block.data, rows, theta, R, s)
        n = np.bincount(z[seen], weights=weights[seen], minlength=K)
        return Statistics(n, tuple(S), np.nan, np.nan, hidden)

    def plug_in(self, blocks: Sequence[Any], parameters: Parameters) -> MemoryScorer:
        """Scores under given parameters."""
        return MemoryScorer(lambda rows: log_joint_rows(blocks, parameters, rows))

    def predictive(
        self, blocks: Sequence[Any], S: Sequence[np.ndarray], log_weights: np.ndarray
    ) -> MemoryScorer:
        """Scores under the data of every cluster, with the parameters integrated out."""
        live = [make_live(block.family, block.data, S=s) for block, s in zip(blocks, S, strict=True)]
        refresh_caches(live)

        def score(rows: np.ndarray) -> np.ndarray:
            L = np.tile(log_weights, (len(rows), 1))
            score_rows(live, rows, L)
            return L

        return MemoryScorer(score)

    def take(self, blocks: Sequence[Any], rows: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
        """The blocks themselves hold the rows."""
        return blocks, rows

    def pack(self, blocks: Sequence[Any], n_rows: int) -> tuple[Any, ...]:
        """The blocks, with a packed form of those that have few levels."""
        return tuple(pack_block(block) if is_packable(block, n_rows) else block for block in blocks)

    def partly_seen(self, blocks: Sequence[Any]) -> list[bool]:
        """Whether a block has vectors of which only some coordinates are observed."""
        return [partly_seen(block.family, block.data) for block in blocks]

    def map_replicates(
        self,
        function: ReplicatePass,
        common: Any,
        blocks: Sequence[Any],
        first: np.ndarray,
        z: np.ndarray,
        executor: Any,
        marks: np.ndarray | None,
    ) -> ExactSums:
        """Exact sums of ``function`` over all rows; marks are written to ``marks``."""

        def one(rows: np.ndarray) -> Any:
            own = first[rows[0] : rows[-1] + 2]
            return int(own[0]), *function(blocks, rows, own, z[own[0] : own[-1]], common)

        total: ExactSums | None = None
        for lo, marked, sums in (executor or Serial()).map(one, row_chunks(len(first) - 1)):
            if marks is not None and marked is not None:
                marks[lo : lo + len(marked)] = marked
            total = first_sums(sums) if total is None else add_exactly(total, sums)
        assert total is not None
        return total

    def sum_observed(self, blocks: Sequence[Any], values: Sequence[np.ndarray | None]) -> np.ndarray:
        """For each row, the sum of ``values[block][column]`` over its observed cells of real columns."""
        return sum_cells([block.data for block in blocks], values)

    def total_observed(
        self, blocks: Sequence[Any], values: Sequence[np.ndarray | None], weights: np.ndarray
    ) -> float:
        """The weighted sum of :meth:`sum_observed` over the rows."""
        return weighted_sum(weights, self.sum_observed(blocks, values))


def log_joint_rows(blocks: Sequence[Block], parameters: Parameters, rows: np.ndarray) -> np.ndarray:
    """``log weight_k + log p(x_i | theta_k)`` of some rows in memory."""
    L = np.tile(parameters.log_weights, (len(rows), 1))
    for block, theta in zip(blocks, parameters.thetas, strict=True):
        add_log_likelihood(block.family, block.data, rows, theta, L)
    return L


def packed_sides(blocks: Sequence[Any], thetas: Sequence[np.ndarray]) -> list[Side]:
    """Family, data and natural parameters that a pass reads: the packed ones where a block has them."""
    return [
        (block.states, block.codes, np.ascontiguousarray(block.levels.T @ theta))
        if isinstance(block, PackedBlock)
        else (block.family, block.data, theta)
        for block, theta in zip(blocks, thetas, strict=True)
    ]


def unpacked(blocks: Sequence[Any], sums: ExactSums) -> Statistics:
    """Rounded statistics, of levels rather than of packed states."""
    total = rounded(sums)
    S = tuple(
        block.levels @ s if isinstance(block, PackedBlock) else s
        for block, s in zip(blocks, total.S, strict=True)
    )
    return total._replace(S=S)


def walk(
    sides: Sequence[Side],
    log_weights: np.ndarray,
    weights: np.ndarray,
    executor: Any,
    start: int = 0,
    part: Part | None = None,
) -> ExactSums:
    """Exact sums over all rows, of which the first is row ``start`` of the table, or over those of a part."""

    def one(rows: np.ndarray) -> list[np.ndarray]:
        R = np.tile(log_weights, (len(rows), 1))
        for family, data, theta in sides:
            add_log_likelihood(family, data, rows, theta, R)
        sums = np.zeros(3)
        normalize_rows(R, weights[rows], sums)
        S = [np.zeros(theta.shape) for _, _, theta in sides]
        for (family, data, theta), s in zip(sides, S, strict=True):
            sums[2] += add_expected_statistics(family, data, rows, theta, R, s)
        return [R.sum(axis=0), sums, *S]

    total: ExactSums | None = None
    for result in (executor or Serial()).map(one, row_chunks(len(weights), start=start, part=part)):
        total = first_sums(result) if total is None else add_exactly(total, result)
    if total is None:  # these rows are all of other parts
        nothing = [np.zeros(len(log_weights)), np.zeros(3), *(np.zeros(theta.shape) for *_, theta in sides)]
        return first_sums(nothing)
    return total


def first_sums(sums: Sequence[np.ndarray]) -> ExactSums:
    """Exact sums of one chunk of rows."""
    return list(sums), [np.zeros_like(s) for s in sums]


def sum_cells(data: Sequence[Any], values: Sequence[np.ndarray | None]) -> np.ndarray:
    """For each row, the sum of ``values[block][column]`` over observed cells; None leaves a block out."""
    total: Any = 0.0
    for X, own in zip(data, values, strict=True):
        if own is not None:
            for d, value in enumerate(own):
                total = total + np.where(np.isnan(X[:, d]), 0.0, value)
    return total
