"""Birth moves: clusters that a sample of their rows divides in several are divided in the whole table.

Rows of every cluster are sampled, and clustered on their own from seeds. Where the bound of the sample is higher with
several clusters than with one, these take the place of the cluster, with the size that it has. All divisions are
proposed together, then one by one; whoever asks for them keeps those that raise the bound of the whole table. Hughes
and Sudderth (2013).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.climb import vb
from partita.engines.climb.moves import MAX_TRIES, with_moves
from partita.engines.climb.seeding import label_statistics, seed_parameters, seed_statistics
from partita.engines.passes.rows import (
    Statistics,
    collect,
    labels_in_place,
    plug_in,
    rows_in_memory,
)
from partita.engines.run import Control, iterate
from partita.execution.label_rows import label_sizes, labels_with_weight, rows_of_ranks
from partita.families import take
from partita.families.registry import Block
from partita.partitions import StickBreaking

SAMPLE = 2000  # rows of a cluster
MIN_ROWS = 10  # of a cluster that may be divided
MAX_CHILDREN = 6
MAX_ITER = 50  # of a run over the sample of a cluster
TOL = 1e-4  # of its bound per row


class Birth(NamedTuple):
    """Clusters that take the place of one, with the size that it has in the table."""

    parent: int
    n: np.ndarray
    S: tuple[np.ndarray, ...]
    gain: float  # of the bound, extrapolated from the sample


def propose_births(
    state: Any,
    blocks: Sequence[Block],
    weights: np.ndarray,
    rng: np.random.Generator,
    executor: Any = None,
    control: Control | None = None,
) -> Iterator[Statistics]:
    """Statistics in which clusters are divided: all that a sample divides at once, then those of the largest gain."""
    n_free = int(np.count_nonzero(state.statistics.n < 0.5))
    if not n_free:
        return
    found = []
    for k, held, own in _cluster_samples(state, blocks, weights, rng, executor):
        if control is not None and (control.halted or control.late):
            return
        division = divide(k, held, own, float(state.statistics.n[k]), n_free, rng)
        if division is not None:
            found.append(division)
    found.sort(key=lambda division: -division.gain)
    together, left = [], n_free
    for division in found:
        if len(division.n) - 1 <= left:
            together.append(division)
            left -= len(division.n) - 1
    if len(together) > 1:
        yield divided(state.statistics, together)
    for division in found[:MAX_TRIES]:
        yield divided(state.statistics, [division])


def _cluster_samples(
    state: Any, blocks: Sequence[Block], weights: np.ndarray, rng: np.random.Generator, executor: Any
) -> Iterator[tuple[int, list[Block], np.ndarray]]:
    """Blocks in memory with sampled rows of each cluster, and the weights of these rows."""
    labels = labels_in_place(plug_in(blocks, vb.parameters(state)), len(weights), executor)
    labels = labels_with_weight(labels, weights)
    sizes = label_sizes(labels, len(state.statistics.n))
    chosen = rows_of_ranks(labels, [_sampled_ranks(size, rng) for size in sizes.tolist()])
    every = np.sort(np.concatenate(chosen))
    held, places = rows_in_memory(blocks, every)
    for k, rows in enumerate(chosen):
        if len(rows):
            own = places[np.searchsorted(every, rows)]
            pairs = zip(held, state.families, strict=True)
            yield k, [Block(family, take(b.data, own), b.columns) for b, family in pairs], weights[rows]


def _sampled_ranks(size: int, rng: np.random.Generator) -> np.ndarray:
    """Which of the rows of a cluster are in its sample, in ascending order; none if it is too small to be divided."""
    if size > SAMPLE:
        return np.sort(rng.choice(size, size=SAMPLE, replace=False))
    return np.arange(size if size >= MIN_ROWS else 0)


def divide(
    parent: int, blocks: list[Block], weights: np.ndarray, size: float, n_free: int, rng: np.random.Generator
) -> Birth | None:
    """The clusters that variational Bayes finds in these rows; None if one cluster has a higher bound."""
    total = float(weights.sum())
    prior = StickBreaking(1.0, min(MAX_CHILDREN, n_free + 1, len(weights)))
    learning = {"learn_likelihood": False, "learn_concentration": False}

    def step(state: vb.VBState) -> vb.VBState:
        return vb.step(state, blocks, weights, **learning)

    def run(state: vb.VBState) -> Any:
        return iterate(step, state, max_iter=MAX_ITER, tol=TOL, weight=total)._replace(converged=True)

    seeds = seed_statistics(blocks, weights, prior.n_components, rng)
    start = collect(blocks, weights, seed_parameters(blocks, seeds))
    *_, last = with_moves(run, step, vb.init(blocks, prior, start), min_gain=TOL * total)
    families = [block.family for block in blocks]
    one = label_statistics(blocks, weights, np.zeros(len(weights), np.int64), prior.n_components)
    one = one._replace(entropy=0.0)
    gain = last.state.objective - vb.bound(families, prior, one)
    used = np.flatnonzero(last.state.statistics.n >= 0.5)
    if gain <= 0.0 or len(used) < 2:
        return None
    scale = size / total
    S = tuple(np.ascontiguousarray(s[:, used]) * scale for s in last.state.statistics.S)
    return Birth(parent, last.state.statistics.n[used] * scale, S, gain * scale)


def divided(statistics: Statistics, divisions: Sequence[Birth]) -> Statistics:
    """The statistics with clusters replaced by those of their divisions; there is an empty one for each that is new."""
    n, S = statistics.n.copy(), [s.copy() for s in statistics.S]
    free = iter(np.flatnonzero(statistics.n < 0.5).tolist())
    for division in divisions:
        places = [division.parent, *(next(free) for _ in division.n[1:])]
        n[places] = division.n
        for s, own in zip(S, division.S, strict=True):
            s[:, places] = own
    return statistics._replace(n=n, S=tuple(S))
