"""How a relation is sampled: several chains, and the one partition of each side that sums them up."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.blocks.chain import GridRun, run_grid, sequential_start
from partita.blocks.sweep import TABLE, block_statistics
from partita.engines.gibbs.chain import Schedule, average_families
from partita.engines.run import Progress
from partita.families import Block
from partita.labels import ordered_by_size
from partita.posterior import confidence, map_draw, point_estimate
from partita.trace import Trace, join

__all__ = ["DrawnBlocks", "Request", "Sampled", "objects_of", "sample_blocks"]

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


class Request(NamedTuple):
    """What the chains are asked for."""

    mode: int
    shape: tuple[int, ...]  # objects of each side
    priors: tuple[Any, ...]
    schedule: Schedule
    seeds: Sequence[int]
    partition: str
    callback: Callable[[Progress], Any] | None
    time_limit: float | None
    executor: Any
    rng: np.random.Generator


def sample_blocks(block: Block, ask: Request) -> Sampled:
    """Run the chains and sum them up."""
    began, halt, reasons = time.perf_counter(), threading.Event(), []
    share = math.inf if ask.time_limit is None else ask.time_limit / _rounds(ask)

    def one(index: int) -> GridRun | None:
        if halt.is_set():
            return None
        started = time.perf_counter()
        chain = sequential_start(
            ask.mode, block.family, block.data, ask.shape, ask.priors, ask.seeds[index],
            first=index % len(ask.shape),
        )  # fmt: skip

        def after(iteration: int, n_clusters: int, log_joint: float) -> bool:
            seconds = time.perf_counter() - began
            if ask.callback is not None and ask.callback(
                Progress(index, iteration, log_joint, n_clusters, seconds)
            ):
                reasons.append("stopped")
                halt.set()
            late = time.perf_counter() - started > share
            if late:
                reasons.append("time_limit")
            return halt.is_set() or late

        try:
            return run_grid(chain, ask.schedule, index=index, callback=after)
        except BaseException:
            halt.set()
            raise

    runs = [run for run in ask.executor.map(one, range(len(ask.seeds))) if run is not None]
    first = ask.schedule.burn_in + ask.schedule.thin
    drawn = [run for run in runs if run.chain.iteration >= first]
    return _summed_up(drawn or runs, block, ask, next(iter(reasons), "done"))


def _rounds(ask: Request) -> int:
    """How many chains run one after the other: each has its share of the time limit."""
    n_jobs = getattr(ask.executor, "n_jobs", 1)
    if n_jobs < 0:
        n_jobs = (os.cpu_count() or 1) + 1 + n_jobs
    return -(-len(ask.seeds) // max(min(n_jobs, len(ask.seeds)), 1))


def _summed_up(runs: Sequence[GridRun], block: Block, ask: Request, reason: str) -> Sampled:
    traces = tuple(join(side) for side in zip(*(run.traces for run in runs), strict=True))
    families = [family for run in runs for family in run.families]
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
    for run in runs:
        for outcome, count in run.chain.accepted.items():
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
        max(int(run.chain.iteration) for run in runs),
        reason,
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
