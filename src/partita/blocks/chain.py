"""Chains over the blocks of a relation: sweeps and split-merge moves on each side, then the hyper-parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.blocks.moves import split_merge
from partita.blocks.sweep import (
    TABLE,
    Grid,
    log_joint,
    make_grid,
    occupied,
    rebuild,
    seat_objects,
    sizes,
)
from partita.engines.gibbs.chain import Schedule, generator, learn_cells
from partita.engines.gibbs.sweep import MANY
from partita.labels import canonical
from partita.partitions import bind, sample_hyper
from partita.trace import Trace, label_dtype

__all__ = ["GridChain", "GridRun", "run_grid", "sequential_start", "start_grid", "step_grid"]

BEGIN, SWEEP, MOVES, HYPER = range(10, 14)  # which random numbers of an iteration are whose


class GridChain(NamedTuple):
    """Where a chain stands."""

    grid: Grid
    priors: tuple[Any, ...]  # one a side
    reference: Any  # the family that the hyperprior is centred on
    seed: int
    iteration: int
    accepted: dict[str, int]


class GridRun(NamedTuple):
    """What a chain leaves: a trace of each side, the family of each draw, and where it stands."""

    traces: tuple[Trace, ...]
    families: list[Any]
    chain: GridChain
    reason: str  # "done" or "stopped" (by the callback)


def start_grid(
    mode: int, family: Any, data: Any, labels: Sequence[np.ndarray], priors: Sequence[Any], seed: int
) -> GridChain:
    """A chain that starts from the labels of each side."""
    grid = make_grid(mode, family, data, tuple(canonical(z) for z in labels))
    bound = tuple(bind(prior, float(len(z))) for prior, z in zip(priors, labels, strict=True))
    return GridChain(grid, bound, family, seed, 0, {})


def sequential_start(
    mode: int,
    family: Any,
    data: Any,
    shape: tuple[int, ...],
    priors: Sequence[Any],
    seed: int,
    *,
    first: int = 0,
    limit: int = MANY,
) -> GridChain:
    """A chain that starts from objects seated one after the other, in random order.

    In a table the side ``first`` comes before the other, whose objects are then all apart, as in a mixture; after that
    the other is seated given these clusters. The objects of a square relation are seated together.
    """
    rng = generator(seed, 0, BEGIN)
    if mode == TABLE:
        held = np.arange(shape[1 - first])
        labels = [np.zeros(shape[first], np.int64), held]
        chain = start_grid(mode, family, data, labels[::-1] if first else labels, priors, seed)
    else:
        labels = [np.zeros(shape[0], np.int64)]
        chain = start_grid(mode, family, data, labels, priors, seed)
    for side in (first, 1 - first) if mode == TABLE else (0,):
        grid = emptied(chain.grid, side)
        order = rng.permutation(shape[side])
        grid = seat_objects(grid, side, chain.priors[side], order, rng.random(shape[side]), limit)
        chain = chain._replace(grid=grid)
    return chain


def emptied(grid: Grid, side: int) -> Grid:
    """The grid with nobody seated on one side."""
    one = grid.sides[side]
    one.z[:] = -1
    one.n[:] = 0.0
    one.K[0] = 0
    grid.S[:] = 0.0
    grid.L[:] = 0.0
    return grid


def step_grid(chain: GridChain, schedule: Schedule) -> GridChain:
    """One iteration."""
    grid, priors, iteration = chain.grid, chain.priors, chain.iteration
    uniforms, moves = generator(chain.seed, iteration, SWEEP), generator(chain.seed, iteration, MOVES)
    accepted = dict(chain.accepted)
    for side, one in enumerate(grid.sides):
        N = len(one.z)
        grid = seat_objects(grid, side, priors[side], np.arange(N), uniforms.random(N), schedule.limit)
        for _ in range(schedule.n_moves):
            grid, outcome = split_merge(grid, side, priors, moves, schedule.limit)
            accepted[outcome] = accepted.get(outcome, 0) + 1
    rng = generator(chain.seed, iteration, HYPER)
    if schedule.learn_concentration:
        priors = tuple(sample_hyper(prior, sizes(grid, side), rng) for side, prior in enumerate(priors))
    if schedule.learn_likelihood:
        S = np.ascontiguousarray(rebuild(grid).S[occupied(grid)].T)
        grid = grid._replace(family=learn_cells(grid.family, chain.reference, S, rng))
    grid = rebuild(grid)
    return chain._replace(grid=grid, priors=priors, iteration=iteration + 1, accepted=accepted)


def run_grid(
    chain: GridChain,
    schedule: Schedule,
    *,
    index: int = 0,
    callback: Callable[[int, int, float], Any] | None = None,
) -> GridRun:
    """Burn in, then draw; ``callback(iteration, n_row_clusters, log_joint)`` after each iteration, True stops.

    A chain that is stopped before its first draw leaves the state it is in.
    """
    draws: list[tuple[Trace, ...]] = []
    families: list[Any] = []
    total, reason = schedule.burn_in + schedule.n_draws * schedule.thin, "done"
    for iteration in range(total):
        chain = step_grid(chain, schedule)
        value = log_joint(chain.grid, chain.priors)
        if iteration >= schedule.burn_in and (iteration + 1 - schedule.burn_in) % schedule.thin == 0:
            draws.append(_draw(chain, value, index))
            families.append(chain.grid.family)
        if callback is not None and callback(iteration + 1, int(chain.grid.sides[0].K[0]), value):
            reason = "stopped"
            break
    if not draws:
        draws.append(_draw(chain, log_joint(chain.grid, chain.priors), index))
        families.append(chain.grid.family)
    traces = tuple(
        Trace(*(np.concatenate(fields) for fields in zip(*side, strict=True)))
        for side in zip(*draws, strict=True)
    )
    return GridRun(traces, families, chain, reason)


def _draw(chain: GridChain, value: float, index: int) -> tuple[Trace, ...]:
    out = []
    for one, prior in zip(chain.grid.sides, chain.priors, strict=True):
        K = int(one.K[0])
        concentration = getattr(prior, "concentration", getattr(prior, "gamma", np.nan))
        out.append(
            Trace(
                canonical(one.z).astype(label_dtype(K))[None],
                np.array([value]),
                np.array([K]),
                np.array([float(concentration)]),
                np.array([float(getattr(prior, "discount", np.nan))]),
                np.array([index]),
            )
        )
    return tuple(out)
