"""Chains over overlapping views: memberships, labels and hyper-parameters are updated in turn, each step exactly.

The joint prior of memberships, alpha and beta (the two-parameter Indian buffet process with its hyperprior) is
conditioned on at most ``max_per_column`` views per column and ``max_views`` views in all, so learning alpha and beta
needs no further normalizing constant.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita.engines.run import Sampler
from partita.partitions import DirichletProcess, IndianBuffet, log_eppf, sample_hyper
from partita.partitions.learning import UNIT_GAMMA, sample_positive
from partita.views.depths import Depths
from partita.views.draws import Draw
from partita.views.overlapping.additive import AdditiveColumns, set_rows
from partita.views.overlapping.full_covariance import FullTable
from partita.views.overlapping.row_factors import NO_ROW_FACTORS, FirstRowFactors
from partita.views.overlapping.search import OverlapSearch
from partita.views.overlapping.state import OverlapState, empty_state
from partita.views.overlapping.table import OverlapTable
from partita.views.settling import outline, views_agree

STARTS = ("screen", "components")  # of the searches, in turn
N_FIRST_SEARCHES = 2  # if these agree, there are no further ones


class OverlapPlan(NamedTuple):
    """Schedule and priors of the chains."""

    n_draws: int | None = 20  # what is None follows from the agreement of the chains
    burn_in: int | None = 10
    thin: int = 1
    max_per_column: int = 4  # maximum number of views of a column
    max_views: int = 64
    n_moves: int = 3  # split-merge moves in each view per iteration
    learn_buffet: bool = True
    learn_concentration: bool = True
    learn_likelihood: bool = True
    buffet: tuple[float, float] = (1.0, 1.0)  # alpha and beta at the start
    concentration: float = 1.0
    nuisance: str | int = 0  # number of row factors; "auto" to choose it
    gain: bool = True  # whether row factors have gains


class OverlapDraw(NamedTuple):
    """One kept state of a chain."""

    state: OverlapState
    log_joint: float
    chain: int
    cells: np.ndarray | None = None  # values of the additive columns, [row, column], if some of them are tied


def draw_outline(drawn: OverlapDraw) -> Draw:
    """Memberships and labels of a draw, with columns numbered as in the sampler."""
    state = drawn.state
    n_rows = len(state.Z[0]) if state.Z else 1
    return outline(state.Y, np.array(state.Z, dtype=np.int64).reshape(state.n_views, n_rows).T)


class OverlapChain(NamedTuple):
    """State and generator of a chain."""

    state: OverlapState
    rng: np.random.Generator
    cells: AdditiveColumns | None = (
        None  # the additive columns, if some of them have tied values that were drawn
    )


def chain_step(
    table: OverlapTable | FullTable, state: OverlapState, rng: np.random.Generator, plan: OverlapPlan
) -> OverlapState:
    """One iteration, which begins with the values of the table in tied cells."""
    chain = OverlapChain(state, rng)
    for one in overlap_steps(table, plan):
        chain = one(chain)
    return chain.state


def overlap_steps(table: OverlapTable | FullTable, plan: OverlapPlan) -> list[Callable]:
    """The steps of an iteration: memberships, labels, row factors and depths, tied values, hyper-parameters."""

    def features(chain: OverlapChain) -> OverlapChain:
        state = own_table(table, chain).feature_step(
            chain.state, chain.rng, max_per_column=plan.max_per_column, max_views=plan.max_views
        )
        return chain._replace(state=state)

    def rows(chain: OverlapChain) -> OverlapChain:
        if not chain.state.Z:
            return chain
        state = own_table(table, chain).row_step(chain.state, chain.rng, n_moves=plan.n_moves)
        return chain._replace(state=state)

    def row_factors(chain: OverlapChain) -> OverlapChain:
        hyper = chain.state.hyper
        if isinstance(table, FullTable) or not (hyper.effects.rank or hyper.depths):
            return chain
        return chain._replace(state=own_table(table, chain).nuisance_step(chain.state, chain.rng))

    def tied(chain: OverlapChain) -> OverlapChain:
        if isinstance(table, FullTable) or table.ties is None:
            return chain
        drawn = own_table(table, chain).tie_step(chain.state, chain.rng)
        return chain._replace(cells=drawn.additive)

    def hyper(chain: OverlapChain) -> OverlapChain:
        return chain._replace(state=learn_hyper(own_table(table, chain), chain.state, chain.rng, plan))

    return [features, rows, row_factors, tied, hyper]


def own_table(table: Any, chain: OverlapChain) -> Any:
    """The table with the values that the chain has drawn for its tied cells."""
    return table if chain.cells is None else table._replace(additive=chain.cells)


def overlap_sampler(
    table: OverlapTable | FullTable,
    start: OverlapState,
    plan: OverlapPlan,
    rng: np.random.Generator,
    number: int,
) -> Sampler:
    """The sampler that the driver runs."""
    return Sampler(
        start=lambda: OverlapChain(start, rng),
        steps=overlap_steps(table, plan),
        log_joint=lambda chain: own_table(table, chain).log_joint(chain.state),
        draw=lambda chain, value: OverlapDraw(
            chain.state, value, number, None if chain.cells is None else chain.cells.X
        ),
        n_clusters=lambda chain: chain.state.n_views,
    )


def learn_hyper(
    table: OverlapTable | FullTable, state: OverlapState, rng: np.random.Generator, plan: OverlapPlan
) -> OverlapState:
    """Draw the hyper-parameters that are learned."""
    if plan.learn_buffet:
        state = state._replace(buffet=sample_hyper(state.buffet, state.Y, rng))
    if plan.learn_concentration:
        sizes = [np.bincount(z).astype(float) for z in state.Z]

        def log_likelihood(concentration: float) -> float:
            prior = DirichletProcess(concentration)
            return sum(log_eppf(prior, n, len(n)) for n in sizes)

        concentration = sample_positive(log_likelihood, state.concentration, rng, UNIT_GAMMA)
        state = state._replace(concentration=concentration)
    if plan.learn_likelihood:
        state = table.learn(state, rng)
    return state


def find_states(
    table: OverlapTable,
    rngs: list[np.random.Generator],
    plan: OverlapPlan,
    init: str,
    executor: Any,
    first: FirstRowFactors = NO_ROW_FACTORS,
    deadline: Callable[[], float] = lambda: math.inf,
    depths: Depths | None = None,
) -> tuple[list[tuple[float, OverlapState]], bool]:
    """Run up to one search per generator: (score, state) of each, the best first, and whether time cut any short.

    If the first two searches agree, there are no others.

    ``deadline()`` is the time at which a search that begins now must end. The first search always runs; a later one is
    left out if no time remains for it. ``first`` are the row factors at the start, ``depths`` the depths of the rows.
    """
    late: list[int] = []

    def one(index: int) -> tuple[float, OverlapState] | None:
        end = deadline()

        def is_late() -> bool:
            """Whether the search has used up its time, which is recorded in ``late``."""
            if time.perf_counter() <= end:
                return False
            late.append(index)
            return True

        if index and is_late():
            return None
        hyper = table.default_hyper(plan.gain)._replace(depths=depths)
        buffet = IndianBuffet(*plan.buffet)
        empty = empty_state(table.n_columns, hyper, buffet, plan.concentration)
        search = OverlapSearch(
            table,
            rngs[index],
            set_rows(empty, first.rows, first.gain, first.parts),
            max_per_column=plan.max_per_column,
            max_views=plan.max_views,
            is_late=is_late,
            keep_rank=plan.nuisance != "auto",
            found=first.views,
        )
        starts = STARTS if first.rows is None else ("found", *STARTS[1:])
        how = starts[index % len(starts)] if init == "screen" else init
        state = search.run(how, learn=plan.learn_likelihood)
        return search.score(state), state

    def several(numbers: range) -> list[tuple[float, OverlapState]]:
        return [result for result in executor.map(one, numbers) if result is not None]

    found = several(range(min(N_FIRST_SEARCHES, len(rngs))))
    if len(found) < N_FIRST_SEARCHES or not searches_agree(*[state for _, state in found]):
        found += several(range(len(found), len(rngs)))
    return sorted(found, key=lambda pair: -pair[0]), bool(late)


def searches_agree(one: OverlapState, other: OverlapState) -> bool:
    """Whether two searches came to the same views, up to views of few columns that only one of them has."""
    draws = [draw_outline(OverlapDraw(state, 0.0, 0)) for state in (one, other)]
    return views_agree([draws[:1], draws[1:]], max_distance=1.0)
