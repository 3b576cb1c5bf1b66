"""Chains over the blocks of a relation: Gibbs sweeps, split-merge moves and hyper-parameters of both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.engines.run import Sampler
from partita.labels import canonical
from partita.partitions import bind, sample_hyper
from partita.trace import Trace, join, label_dtype

BEGIN, SWEEP, MOVES, HYPER = range(10, 14)  # keys of the random generators of an iteration


class GridChain(NamedTuple):
    """State of a chain."""

    grid: Grid
    priors: tuple[Any, ...]  # one per side
    reference: Any  # family that the hyperprior is centered on
    seed: int
    iteration: int
    accepted: dict[str, int]
    rng: Any = None  # generator of the hyper-parameter steps within an iteration


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
    limit: int = NO_LIMIT,
) -> GridChain:
    """A chain that starts from objects assigned one after the other, in random order.

    In a table the side ``first`` is assigned first, while the objects of the other side are all in clusters of their
    own, as in a mixture; then the other side is assigned given these clusters. A square relation has only one side.
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
    """The grid with no object of one side assigned."""
    one = grid.sides[side]
    one.z[:] = -1
    one.n[:] = 0.0
    one.K[0] = 0
    grid.S[:] = 0.0
    grid.L[:] = 0.0
    return grid


def sweep_sides(chain: GridChain, schedule: Schedule) -> GridChain:
    """A Gibbs sweep and split-merge moves on each side."""
    grid, priors = chain.grid, chain.priors
    uniforms = generator(chain.seed, chain.iteration, SWEEP)
    moves = generator(chain.seed, chain.iteration, MOVES)
    accepted = dict(chain.accepted)
    for side, one in enumerate(grid.sides):
        N = len(one.z)
        grid = seat_objects(grid, side, priors[side], np.arange(N), uniforms.random(N), schedule.limit)
        for _ in range(schedule.n_moves):
            grid, outcome = split_merge(grid, side, priors, moves, schedule.limit)
            accepted[outcome] = accepted.get(outcome, 0) + 1
    rng = generator(chain.seed, chain.iteration, HYPER)
    return chain._replace(grid=grid, accepted=accepted, rng=rng)


def sample_priors(chain: GridChain, schedule: Schedule) -> GridChain:
    """Draw the hyper-parameters of the partition prior of each side."""
    if not schedule.learn_concentration:
        return chain
    priors = tuple(
        sample_hyper(prior, sizes(chain.grid, side), chain.rng) for side, prior in enumerate(chain.priors)
    )
    return chain._replace(priors=priors)


def sample_likelihood(chain: GridChain, schedule: Schedule) -> GridChain:
    """Draw the hyper-parameters of the likelihood; the last step of an iteration."""
    grid = chain.grid
    if schedule.learn_likelihood:
        S = np.ascontiguousarray(rebuild(grid).S[occupied(grid)].T)
        grid = grid._replace(family=learn_cells(grid.family, chain.reference, S, chain.rng))
    return chain._replace(grid=rebuild(grid), iteration=chain.iteration + 1, rng=None)


STEPS = (sweep_sides, sample_priors, sample_likelihood)


def step_grid(chain: GridChain, schedule: Schedule) -> GridChain:
    """One iteration."""
    for one in STEPS:
        chain = one(chain, schedule)
    return chain


class GridDraw(NamedTuple):
    """One draw: a trace of length one per side, and the family with its hyper-parameters."""

    traces: tuple[Trace, ...]
    family: Any


def grid_sampler(
    start: Callable[[], GridChain], schedule: Schedule, *, given: Any = (), number: int = 0
) -> Sampler:
    """The sampler that the driver runs; ``given`` holds the data that the chain refers to."""
    return Sampler(
        start=start,
        steps=[partial(one, schedule=schedule) for one in STEPS],
        log_joint=lambda chain: log_joint(chain.grid, chain.priors),
        draw=partial(_draw, number=number),
        n_clusters=lambda chain: int(chain.grid.sides[0].K[0]),
        given=given,
    )


def join_sides(draws: Sequence[GridDraw]) -> tuple[Trace, ...]:
    """The draws as one trace per side."""
    return tuple(join(side) for side in zip(*(draw.traces for draw in draws), strict=True))


def _draw(chain: GridChain, value: float, number: int) -> GridDraw:
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
                np.array([number]),
            )
        )
    return GridDraw(tuple(out), chain.grid.family)
