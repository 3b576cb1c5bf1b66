"""How a relation is sampled: several chains, and the one partition of each side that sums them up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.blocks.chain import grid_sampler, join_sides, sequential_start
from partita.blocks.sweep import TABLE, block_statistics
from partita.engines.checkpoints import Checkpoint
from partita.engines.gibbs.chain import Schedule, average_families
from partita.engines.run import Chains, Control, Sampler, run_chains
from partita.families import Block
from partita.labels import ordered_by_size
from partita.posterior import confidence, map_draw, point_estimate
from partita.trace import Trace

KEPT = 100  # draws whose blocks are kept for predictions of cells
MOST_LABELS = 50_000_000  # labels of draws that the search for one partition looks at


class DrawnBlocks(NamedTuple):
    """Blocks of some draws, for predictions that average over them."""

    labels: tuple[np.ndarray, ...]  # of each side, [draw, object]
    families: list[Any]
    statistics: list[np.ndarray]  # [row cluster, column cluster, statistic] of each draw


class Sampled(NamedTuple):
    """What the chains found."""

    traces: tuple[Trace, ...]  # of each side
    labels: tuple[np.ndarray, ...]  # the point estimate of each side
    confidence: tuple[np.ndarray, ...]
    family: Any  # hyper-parameters averaged over the draws
    statistics: np.ndarray  # of the blocks of the point estimate
    drawn: DrawnBlocks
    concentrations: tuple[float, ...]
    accepted: dict[str, int]
    n_iter: int
    reason: str
    provisional: bool  # no chain came to its first draw: the answer is one state of the burn-in


class Request(NamedTuple):
    """What the chains are asked for."""

    mode: int
    shape: tuple[int, ...]  # objects of each side
    priors: tuple[Any, ...]
    schedule: Schedule
    seeds: Sequence[int]
    partition: str
    control: Control
    executor: Any
    folder: Any  # where chains keep their checkpoints
    rng: np.random.Generator


def sample_blocks(block: Block, ask: Request) -> Sampled:
    """Run the chains and sum them up."""

    def make(number: int) -> Sampler:
        start = partial(
            sequential_start, ask.mode, block.family, block.data, ask.shape, ask.priors, ask.seeds[number],
            first=number % len(ask.shape),
        )  # fmt: skip
        return grid_sampler(start, ask.schedule, given=block.data, number=number)

    def checkpoint(number: int) -> Checkpoint | None:
        about = (ask.seeds[number], ask.mode, *ask.shape, *map(int, ask.schedule[:4]), tuple(block.family))
        return None if ask.folder is None else Checkpoint(ask.folder, number, about)

    chains = run_chains(
        make, len(ask.seeds), ask.schedule, control=ask.control, executor=ask.executor, checkpoint=checkpoint
    )
    return _summed_up(chains, block, ask)


def _summed_up(chains: Chains, block: Block, ask: Request) -> Sampled:
    traces = join_sides(chains.draws)
    families = [draw.family for draw in chains.draws]
    labels = tuple(ordered_by_size(_estimate(trace, ask)) for trace in traces)
    family = average_families([(one,) for one in families])[0]
    sure = tuple(confidence(trace.labels, z).objects for trace, z in zip(traces, labels, strict=True))
    kept = np.linspace(0, len(families) - 1, min(KEPT, len(families))).round().astype(int)
    drawn = DrawnBlocks(
        tuple(trace.labels[kept] for trace in traces),
        [families[t] for t in kept],
        [_blocks(block, ask.mode, families[t], [trace.labels[t] for trace in traces]) for t in kept],
    )
    accepted: dict[str, int] = {}
    for run in chains.runs:
        for outcome, count in run.state.accepted.items():
            accepted[outcome] = accepted.get(outcome, 0) + count
    return Sampled(
        traces,
        labels,
        sure,
        family,
        _blocks(block, ask.mode, family, labels),
        drawn,
        tuple(float(np.exp(np.log(trace.concentration).mean())) for trace in traces),
        accepted,
        chains.n_iter,
        chains.reason,
        chains.provisional,
    )


def _blocks(block: Block, mode: int, family: Any, labels: Sequence[np.ndarray]) -> np.ndarray:
    rows, columns = labels[0].astype(np.int64), labels[-1].astype(np.int64)
    return block_statistics(mode, family, block.data, rows, columns)


def _estimate(trace: Trace, ask: Request) -> np.ndarray:
    """The partition of one side that sums the draws up, from as many of them as are quick to search."""
    draws = trace.labels
    if ask.partition == "map":
        return map_draw(draws, trace.log_joint).labels
    n_draws = max(MOST_LABELS // draws.shape[1], 40)
    if len(draws) > n_draws:
        draws = draws[np.linspace(0, len(draws) - 1, n_draws).round().astype(int)]
    return point_estimate(draws, ask.partition, random_state=ask.rng).labels


def objects_of(mode: int, shape: tuple[int, int]) -> tuple[int, ...]:
    """How many objects each side has: two sides, or the one of a square relation."""
    return shape if mode == TABLE else shape[:1]
