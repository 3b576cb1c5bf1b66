"""Runs of variational Bayes, and their starts: from a short chain or from seeds, then over growing samples.

A run over all rows from seeds needs hundreds of passes. A run over a sample finds the same clusters, and leaves a few
passes over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from partita.engines.climb import vb
from partita.engines.climb.moves import Births, with_moves
from partita.engines.climb.seeding import (
    label_statistics,
    sample_objects,
    sample_rows,
    seed_parameters,
    seed_statistics,
)
from partita.engines.gibbs.chain import Schedule
from partita.engines.gibbs.starts import SAMPLE_ROWS, find_start
from partita.engines.passes.rows import Parameters, collect, pack, rows_in_memory
from partita.engines.run import Control, Run, iterate
from partita.execution.weights import count_positive, total_weight
from partita.families import take
from partita.families.registry import Block
from partita.fitting.contract import Request

SAMPLES = (SAMPLE_ROWS, 8 * SAMPLE_ROWS)  # rows of the runs before that over all rows
# The starts, in turn: a chain that begins with many clusters, one that begins with one, and seeds without a chain. On
# tables of some hundred rows each of them leads to the highest bound now and then.
STARTS = ("many", "one", "seeds")


def start_vb(blocks: Sequence[Block], weights: np.ndarray, ask: Request, restart: int) -> vb.VBState:
    """The state from which a run over all rows starts, for ``init="seeds"``."""
    rng = ask.rngs[restart]
    kind = "seeds" if ask.exact else STARTS[restart % len(STARTS)]
    if kind == "seeds":
        seeds = seed_statistics(blocks, weights, ask.n_components, rng, ask.objects)
        state, at = vb.init(blocks, ask.prior, seeds), seed_parameters(blocks, seeds)
    else:
        state = _from_chain(blocks, weights, ask, rng, apart=kind == "many")
        at = vb.parameters(state)
    n_objects = count_positive(weights if ask.objects is None else ask.objects.weights)
    for size in SAMPLES:
        if 2 * size > n_objects or ask.control.halted or ask.control.late:
            break
        state = _climbed(blocks, weights, ask, rng, size, state, at)
        at = vb.parameters(state)
    return state._replace(statistics=collect(blocks, weights, at, ask.executor), objective=-np.inf)


def _from_chain(
    blocks: Sequence[Block], weights: np.ndarray, ask: Request, rng: np.random.Generator, *, apart: bool
) -> vb.VBState:
    """The clusters that a short chain finds in a sample of the objects."""
    sample = sample_objects(blocks, weights, rng, SAMPLE_ROWS, ask.objects)
    counts = _whole_counts(sample.weights, SAMPLE_ROWS)
    rows = np.repeat(sample.rows, counts)
    held = [Block(block.family, take(block.data, rows), block.columns) for block in sample.blocks]
    schedule = Schedule(
        learn_concentration=ask.learn_concentration,
        learn_likelihood=ask.learn_likelihood,
        limit=ask.n_components,
    )
    start = find_start(held, ask.prior, schedule, seed=int(rng.integers(2**63)), apart=apart)
    statistics = label_statistics(held, np.ones(len(rows)), start.z, ask.n_components)
    # hyper-parameters are learned from their defaults: those that a chain has drawn are random
    return vb.init(held, ask.prior, statistics)


def _whole_counts(weights: np.ndarray, limit: int) -> np.ndarray:
    """How often each object occurs among as many objects as the weights sum up to, at most ``limit``.

    Examples
    --------
    >>> _whole_counts(np.array([2.0, 1.0]), 10), _whole_counts(np.array([2.0, 0.5, 0.5, 1.0]), 2)
    (array([2, 1]), array([1, 0, 1, 0]))
    """
    total = float(weights.sum())
    n_objects = int(np.clip(round(total), 1, limit))
    ends = np.floor(np.cumsum(weights) * (n_objects / total) + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)


def _climbed(
    blocks: Sequence[Block],
    weights: np.ndarray,
    ask: Request,
    rng: np.random.Generator,
    size: int,
    state: vb.VBState,
    at: Parameters,
) -> vb.VBState:
    """The state after a run over a sample of so many rows."""
    rows, own = sample_rows(weights, rng, size, ask.objects)
    held, rows = rows_in_memory(blocks, rows)
    held = pack([Block(b.family, take(b.data, rows), b.columns) for b in held], len(rows))
    quiet = Control()  # the user's callback gets the iterations over all rows
    quiet.deadline = ask.control.deadline
    state = state._replace(statistics=collect(held, own, at), objective=-np.inf)
    return run_vb(held, own, state, ask._replace(control=quiet, executor=None)).state


def run_vb(
    blocks: Sequence[Block],
    weights: np.ndarray,
    state: Any,
    ask: Request,
    number: int = 0,
    *,
    stepping: Callable[..., Any] | None = None,
    births: Births | None = None,
) -> Run:
    """VB from a state until it converges, with moves unless the number of clusters is given.

    ``stepping`` is the iteration of memoized VB, for its states.
    """
    total = total_weight(weights)
    step = partial(
        stepping or vb.step,
        blocks=blocks,
        weights=weights,
        executor=ask.executor,
        learn_likelihood=ask.learn_likelihood,
        learn_concentration=ask.learn_concentration,
    )
    run = partial(
        iterate, step, max_iter=ask.max_iter, tol=ask.tol, weight=total, number=number, control=ask.control,
        debug=ask.debug,
    )  # fmt: skip
    if ask.exact:
        return run(state)
    return _joined(with_moves(run, step, state, min_gain=ask.tol * total, control=ask.control, births=births))


def _joined(runs: Iterator[Run]) -> Run:
    """Several runs in sequence as one."""
    objectives: list[float] = []
    worst = 0.0
    for run in runs:
        objectives += run.objectives
        worst = max(worst, run.worst_fall)
    return run._replace(objectives=objectives, worst_fall=worst)
