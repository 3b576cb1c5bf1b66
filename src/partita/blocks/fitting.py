"""Fitting of a relation: chains, and a point estimate of the partition of each side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.blocks.chain import grid_sampler, join_sides, sequential_start
from partita.blocks.sweep import TABLE, block_statistics
from partita.engines.checkpoints import Checkpoint
from partita.engines.gibbs.chain import Schedule, average_families, log_hyper_density
from partita.engines.run import Chains, Control, Sampler, run_chains
from partita.families import Block
from partita.labels import ordered_by_size
from partita.partitions import log_hyperprior
from partita.posterior import confidence, map_draw, point_estimate
from partita.posterior.draws import thin_draws
from partita.trace import Trace

MAX_KEPT_DRAWS = 100  # draws whose blocks are kept for predictions of cells
MAX_LABELS = 50_000_000  # labels of draws that the search for a point estimate reads
MIN_DRAWS = 40  # draws that it reads at least


class DrawnBlocks(NamedTuple):
    """Blocks of some draws, over which predictions are averaged."""

    labels: tuple[np.ndarray, ...]  # of each side, [draw, object]
    families: list[Any]
    statistics: list[np.ndarray]  # [row cluster, column cluster, statistic] of each draw


class BlocksResult(NamedTuple):
    """The result of a fit. Sequences over sides have two entries for a table, otherwise one."""

    traces: tuple[Trace, ...]  # of each side
    labels: tuple[np.ndarray, ...]  # the point estimate of each side
    confidence: tuple[np.ndarray, ...]
    family: Any  # with hyper-parameters averaged over the draws
    statistics: np.ndarray  # of the blocks of the point estimate
    drawn: DrawnBlocks
    concentrations: tuple[float, ...]
    accepted: dict[str, int]
    n_iter: int
    reason: str
    provisional: bool  # whether no chain reached its first draw: the draw is a state of the burn-in


class BlocksRequest(NamedTuple):
    """The options of a fit."""

    mode: int
    shape: tuple[int, ...]  # objects of each side
    priors: tuple[Any, ...]
    schedule: Schedule
    seeds: Sequence[int]
    partition: str
    control: Control
    executor: Any
    folder: Any  # for checkpoints
    rng: np.random.Generator


def sample_blocks(block: Block, request: BlocksRequest) -> BlocksResult:
    """Run the chains and summarize them."""

    def make(number: int) -> Sampler:
        start = partial(
            sequential_start,
            request.mode,
            block.family,
            block.data,
            request.shape,
            request.priors,
            request.seeds[number],
            first=number % len(request.shape),
        )
        return grid_sampler(start, request.schedule, given=block.data, number=number)

    def checkpoint(number: int) -> Checkpoint | None:
        if request.folder is None:
            return None
        model = (request.mode, request.shape, request.priors, request.schedule)
        return Checkpoint(
            request.folder, number, (request.seeds[number], model, block.family, block.data), "blocks"
        )

    chains = run_chains(
        make,
        len(request.seeds),
        request.schedule,
        control=request.control,
        executor=request.executor,
        checkpoint=checkpoint,
    )
    return _summarize(chains, block, request)


def _summarize(chains: Chains, block: Block, request: BlocksRequest) -> BlocksResult:
    traces = join_sides(chains.draws)
    families = [draw.family for draw in chains.draws]
    heights = _log_posterior(traces, families, block.family, request.schedule)
    labels = tuple(ordered_by_size(_estimate(trace._replace(log_joint=heights), request)) for trace in traces)
    family = average_families([(one,) for one in families])[0]
    confidences = tuple(confidence(trace.labels, z).objects for trace, z in zip(traces, labels, strict=True))
    kept = np.linspace(0, len(families) - 1, min(MAX_KEPT_DRAWS, len(families))).round().astype(int)
    drawn = DrawnBlocks(
        tuple(trace.labels[kept] for trace in traces),
        [families[t] for t in kept],
        [_blocks(block, request.mode, families[t], [trace.labels[t] for trace in traces]) for t in kept],
    )
    accepted: dict[str, int] = {}
    for run in chains.runs:
        for outcome, count in run.state.accepted.items():
            accepted[outcome] = accepted.get(outcome, 0) + count
    return BlocksResult(
        traces,
        labels,
        confidences,
        family,
        _blocks(block, request.mode, family, labels),
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


def _log_posterior(
    traces: Sequence[Trace], families: Sequence[Any], reference: Any, schedule: Schedule
) -> np.ndarray:
    """Log joint of each draw with the density of what was learned: hyper-parameters, concentrations, discounts."""
    out = np.array(traces[0].log_joint, dtype=float)
    for t, family in enumerate(families):
        if schedule.learn_likelihood:
            out[t] += log_hyper_density([family], [reference])
        if schedule.learn_concentration:
            out[t] += sum(
                log_hyperprior(float(trace.concentration[t]), float(trace.discount[t])) for trace in traces
            )
    return out


def _estimate(trace: Trace, request: BlocksRequest) -> np.ndarray:
    """Point estimate of the partition of one side, from as many draws as a search can read."""
    draws = trace.labels
    if request.partition == "map":
        return map_draw(draws, trace.log_joint).labels
    draws = thin_draws(draws, MAX_LABELS, MIN_DRAWS)
    return point_estimate(draws, request.partition, random_state=request.rng).labels


def objects_of(mode: int, shape: tuple[int, int]) -> tuple[int, ...]:
    """Number of objects of each side: two sides of a table, one of a relation of objects with themselves."""
    return shape if mode == TABLE else shape[:1]
