"""One pass over the rows: log joints, responsibilities, statistics. What EM, VB, CVB and predictions share.

A pass never holds an objects x clusters matrix: a block of rows is scored, normalised and added to the
statistics before the next one is touched. Blocks whose data lie in parts (:class:`partita.execution.ShardData`) are
passed over part by part, wherever these are; the functions that do so are at the top level, as they may travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from partita.engines.passes.columns import (
    assign_grid,
    collect_grid,
    take_grid,
    weight_shares,
    whole_weights,
)
from partita.engines.passes.device import (
    DeviceScorer,
    assign_on_device,
    collect_on_device,
    fetch_rows,
    label_on_device,
    on_device,
    score_by_data,
    score_by_parameters,
)
from partita.engines.passes.exact_sums import ExactSums, add_exactly, merge_sums
from partita.engines.passes.packing import PackedBlock
from partita.execution import Serial, ShardData, Shards, row_chunks
from partita.execution.columns import GridShards
from partita.families.contract import cache_start, n_columns, spread_start, stats_start
from partita.families.data import join, take
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
    "ShardScore",
    "Statistics",
    "add_up",
    "assign_rows",
    "collect",
    "filled",
    "label_rows",
    "log_joint_rows",
    "n_cache",
    "n_spread",
    "n_stats",
    "normalized",
    "plug_in",
    "predictive",
    "rounding_error",
    "rows_in_memory",
    "shards_of",
    "shells",
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


def shards_of(blocks: Sequence[Any]) -> Shards | None:
    """The parts in which the data of the blocks lie; None where they are in memory."""
    return blocks[0].data.shards if len(blocks) and isinstance(blocks[0].data, ShardData) else None


def shells(blocks: Sequence[Any]) -> list[Any]:
    """The blocks without their data: which entries of a part these are."""
    return [block._replace(data=block.data.index) for block in blocks]


def filled(blocks: Sequence[Any], data: Sequence[Any]) -> list[Any]:
    """Shells with the data of a part."""
    return [block._replace(data=data[block.data]) for block in blocks]


def rows_in_memory(blocks: Sequence[Any], rows: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
    """Blocks that hold these rows (in ascending order, if they lie in parts), and where they are in them."""
    if on_device(blocks):
        return [block._replace(data=fetch_rows(block.data, rows)) for block in blocks], np.arange(len(rows))
    parts = shards_of(blocks)
    if parts is None:
        return blocks, rows
    cuts = np.searchsorted(rows, parts.starts)
    own = [rows[lo:hi] - start for lo, hi, start in zip(cuts, cuts[1:], parts.starts, strict=False)]
    plain = [Block(*block[:3]) for block in blocks]
    if isinstance(parts, GridShards):
        return [plain[0]._replace(data=take_grid(parts, own))], np.arange(len(rows))
    found = list(parts.map(_take_shard, [block.data.index for block in plain], own))
    data = (join([part[b] for part in found]) for b in range(len(plain)))
    held = [block._replace(data=values) for block, values in zip(plain, data, strict=True)]
    return held, np.arange(len(rows))


def _take_shard(data: Sequence[Any], indices: Sequence[int], rows: np.ndarray) -> list[Any]:
    return [take(data[index], rows) for index in indices]


def collect(
    blocks: Sequence[Any], weights: np.ndarray, parameters: Parameters, executor: Any = None
) -> Statistics:
    """The E step: expected statistics of all objects under the given parameters."""
    journal = getattr(executor, "journal", None)
    found = None if journal is None else journal.find(parameters)
    if found is not None:
        return Statistics(*found)  # of an earlier run
    if on_device(blocks):
        scorer = score_by_parameters(blocks, parameters.log_weights, parameters.thetas)
        n, S, log_likelihood, entropy = collect_on_device(scorer, weights)
        return Statistics(n, tuple(S), log_likelihood, entropy, 0.0)
    sides = [_walked(block, theta) for block, theta in zip(blocks, parameters.thetas, strict=True)]
    if isinstance(sides[0][1], ShardData):
        parts = sides[0][1].shards
        if isinstance(parts, GridShards):
            family, _, theta = sides[0]
            return _kept(
                journal, parameters, collect_grid(parts, family, theta, parameters.log_weights, weights)
            )
        travelling = [(family, data.index, theta) for family, data, theta in sides]
        own = list(zip(parts.starts.tolist(), weight_shares(parts.split(weights)), strict=False))
        found = parts.reduce(_collect_shard, (travelling, parameters.log_weights), own, merge_sums)
    else:
        found = _walk(sides, parameters.log_weights, weights, executor)
    return _kept(journal, parameters, found, blocks)


def _kept(journal: Any, parameters: Parameters, found: ExactSums, blocks: Sequence[Any] = ()) -> Statistics:
    """Rounded statistics, of levels rather than of packed states, in the journal too."""
    total = rounded(found)
    if blocks:
        S = _of_levels(blocks, total.S)
        total = total._replace(S=S)
    if journal is not None:
        journal.write(parameters, total)
    return total


def _of_levels(blocks: Sequence[Any], sums: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    return tuple(
        block.levels @ s if isinstance(block, PackedBlock) else s
        for block, s in zip(blocks, sums, strict=True)
    )


def _collect_shard(data: Sequence[Any], common: Any, own: tuple[int, np.ndarray]) -> ExactSums:
    travelling, log_weights = common
    sides = [(family, data[index], theta) for family, index, theta in travelling]
    start, weights = own
    return _walk(sides, log_weights, whole_weights(weights), None, start)


def _walk(
    sides: Sequence[tuple[Any, Any, np.ndarray]],
    log_weights: np.ndarray,
    weights: np.ndarray,
    executor: Any,
    start: int = 0,
) -> ExactSums:
    """Statistics of all rows, of which the first is row ``start`` of the table."""

    def one(rows: np.ndarray) -> list[np.ndarray]:
        R = np.tile(log_weights, (len(rows), 1))
        for family, data, theta in sides:
            project_rows(family, data, rows, theta, R)
        sums = np.zeros(3)
        normalize_rows(R, weights[rows], sums)
        S = [np.zeros(theta.shape) for _, _, theta in sides]
        for (family, data, theta), s in zip(sides, S, strict=True):
            sums[2] += scatter_rows(family, data, rows, theta, R, s)
        return [R.sum(axis=0), sums, *S]

    total: ExactSums | None = None
    for result in (executor or Serial()).map(one, row_chunks(len(weights), start=start)):
        total = (result, [np.zeros_like(s) for s in result]) if total is None else add_exactly(total, result)
    assert total is not None
    return total


def rounded(sums: ExactSums) -> Statistics:
    """The statistics, each rounded once."""
    # a log likelihood of -inf lacks nothing
    n, about, *S = (value + np.where(np.isnan(lack), 0.0, lack) for value, lack in zip(*sums, strict=True))
    return Statistics(n, tuple(S), *(float(value) for value in about))


def add_up(one: Statistics, other: Statistics) -> Statistics:
    """The statistics of both."""
    S = tuple(s + more for s, more in zip(one.S, other.S, strict=True))
    return Statistics(one.n + other.n, S, *(a + b for a, b in zip(one[2:], other[2:], strict=True)))


def rounding_error(parameters: Parameters, statistics: Statistics, blocks: Sequence[Any] = ()) -> float:
    """About what rounding may do to an objective: the magnitude of its terms, before they cancel, in digits.

    Precise clusters far from the origin (of standardised columns) have large terms and a small sum. Devices score
    categorical columns in single precision.
    """
    terms, digits = 0.0, np.finfo(np.float32 if on_device(blocks) else np.float64)
    for theta, S in zip(parameters.thetas, statistics.S, strict=True):
        with np.errstate(invalid="ignore"):  # a log probability of -inf that nobody met
            terms += float(np.nansum(np.abs(theta * S)))
    return 4.0 * float(digits.eps) * terms


def _walked(block: Any, theta: np.ndarray) -> tuple[Any, Any, np.ndarray]:
    """Family, data and natural parameters that a pass walks over: the packed ones where there are such."""
    if isinstance(block, PackedBlock):
        return block.states, block.codes, np.ascontiguousarray(block.levels.T @ theta)
    return block.family, block.data, theta


class ShardScore(NamedTuple):
    """A scorer of rows that lie in parts: it is made where a part is."""

    make: Callable[..., Scorer]
    blocks: Sequence[Any]
    about: tuple[Any, ...]
    shards: Shards


def plug_in(blocks: Sequence[Block], parameters: Parameters) -> Any:
    """Scores rows under given parameters."""
    parts = shards_of(blocks)
    if parts is not None:
        return ShardScore(plug_in, _plain(blocks), (parameters,), parts)
    if on_device(blocks):
        return score_by_parameters(blocks, parameters.log_weights, parameters.thetas)
    return lambda rows: log_joint_rows(blocks, parameters, rows)


def _plain(blocks: Sequence[Any]) -> list[Block]:
    return shells([Block(block.family, block.data, block.columns) for block in blocks])


def predictive(blocks: Sequence[Block], S: Sequence[np.ndarray], log_weights: np.ndarray) -> Any:
    """Scores rows under the data of every cluster, parameters integrated out."""
    parts = shards_of(blocks)
    if parts is not None:
        return ShardScore(predictive, _plain(blocks), (S, log_weights), parts)
    if on_device(blocks):
        return score_by_data(blocks, S, log_weights)
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
    score: Any, n_rows: int, n_clusters: int, executor: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities [N, K] and log likelihood [N] of every row."""
    if isinstance(score, DeviceScorer):
        return label_on_device(score)
    proba, log_likelihood = np.empty((n_rows, n_clusters)), np.empty(n_rows)
    if isinstance(score, ShardScore):
        about = (score.make, score.blocks, score.about, n_clusters)
        found = score.shards.map(_label_shard, about, np.diff(score.shards.starts).tolist())
        for lo, (part, values) in zip(score.shards.starts, found, strict=False):
            proba[lo : lo + len(part)], log_likelihood[lo : lo + len(part)] = part, values
        return proba, log_likelihood

    def one(rows: np.ndarray) -> None:
        proba[rows], log_likelihood[rows] = normalized(score(rows))

    for _ in (executor or Serial()).map(one, row_chunks(n_rows)):
        pass
    return proba, log_likelihood


def _label_shard(data: Sequence[Any], common: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    make, blocks, about, n_clusters = common
    return label_rows(make(filled(blocks, data), *about), n_rows, n_clusters)


def assign_rows(score: Any, n_rows: int, executor: Any = None) -> Assignment:
    """Label every row without ever holding all the probabilities."""
    if isinstance(score, DeviceScorer):
        return Assignment(*assign_on_device(score))
    out = Assignment(*(np.empty(n_rows, dtype) for dtype in (np.int64, float, float, float)))
    if isinstance(score, ShardScore):
        about = (score.make, score.blocks, score.about)
        if isinstance(score.shards, GridShards) and score.make is plug_in:
            at = score.about[0]
            found: Any = assign_grid(score.shards, score.blocks[0].family, at.thetas[0], at.log_weights)
        else:
            found = score.shards.map(_assign_shard, about, np.diff(score.shards.starts).tolist())
        for lo, part in zip(score.shards.starts, found, strict=False):
            for whole, piece in zip(out, part, strict=True):
                whole[lo : lo + len(piece)] = piece
        return out

    def one(rows: np.ndarray) -> None:
        P, log_likelihood = normalized(score(rows))
        out.labels[rows] = P.argmax(axis=1)
        out.confidence[rows] = P.max(axis=1)
        out.entropy[rows] = -xlogy(P, P).sum(axis=1)
        out.log_likelihood[rows] = log_likelihood

    for _ in (executor or Serial()).map(one, row_chunks(n_rows)):
        pass
    return out


def _assign_shard(data: Sequence[Any], common: Any, n_rows: int) -> Assignment:
    make, blocks, about = common
    found = assign_rows(make(filled(blocks, data), *about), n_rows)
    return found._replace(labels=found.labels.astype(np.int32))


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
