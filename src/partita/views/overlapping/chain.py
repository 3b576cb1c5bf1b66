"""Chains over overlapping views: features, rows and hyper-parameters in turn, every step exact.

The prior of memberships is the two-parameter Indian buffet with its hyperprior, given that no column has more views
than ``largest`` and that there are no more than ``max_views``; so learning alpha and beta needs no further constant.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.partitions import DirichletProcess, IndianBuffet, log_eppf, sample_hyper
from partita.partitions.learning import UNIT_GAMMA, sample_positive
from partita.views.overlapping.full_covariance import FullTable
from partita.views.overlapping.search import OverlapSearch
from partita.views.overlapping.state import State, empty_state
from partita.views.overlapping.table import OverlapTable

__all__ = ["OverlapDraw", "OverlapPlan", "chain_step", "find_states", "run_overlap"]

STARTS = ("screen", "parts")  # what searches start from, in turn


class OverlapPlan(NamedTuple):
    """How chains run."""

    n_draws: int = 20
    burn_in: int = 10
    thin: int = 1
    largest: int = 4  # views of one column
    max_views: int = 64
    n_moves: int = 3  # split-merge moves in each view, an iteration
    learn_buffet: bool = True
    learn_concentration: bool = True
    learn_likelihood: bool = True
    buffet: tuple[float, float] = (1.0, 1.0)  # alpha and beta, to begin with
    concentration: float = 1.0


class OverlapDraw(NamedTuple):
    """One kept state of a chain."""

    state: State
    log_joint: float
    chain: int


def chain_step(
    table: OverlapTable | FullTable, state: State, rng: np.random.Generator, plan: OverlapPlan
) -> State:
    """One iteration."""
    state = table.feature_step(state, rng, largest=plan.largest, max_views=plan.max_views)
    if state.Z:
        state = table.row_step(state, rng, n_moves=plan.n_moves)
    return learn_hyper(table, state, rng, plan)


def learn_hyper(
    table: OverlapTable | FullTable, state: State, rng: np.random.Generator, plan: OverlapPlan
) -> State:
    """New hyper-parameters, as many as are learned."""
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
    is_late: Callable[[int], bool] = lambda index: False,
) -> list[tuple[float, State]]:
    """One search for each generator: (log joint, state), the best first; ``is_late`` tells one to come to an end."""

    def one(index: int) -> tuple[float, State]:
        empty = empty_state(
            table.n_columns, table.default_hyper(), IndianBuffet(*plan.buffet), plan.concentration
        )
        search = OverlapSearch(
            table,
            rngs[index],
            empty,
            largest=plan.largest,
            max_views=plan.max_views,
            is_late=partial(is_late, index),
        )
        how = STARTS[index % len(STARTS)] if init == "screen" else init
        state = search.run(how, learn=plan.learn_likelihood)
        return search.score(state), state

    found = list(executor.map(one, range(len(rngs))))
    return sorted(found, key=lambda pair: -pair[0])


def run_overlap(
    table: OverlapTable | FullTable,
    state: State,
    plan: OverlapPlan,
    rng: np.random.Generator,
    *,
    index: int = 0,
    callback: Callable[[int, int, float], Any] | None = None,
) -> tuple[list[OverlapDraw], np.ndarray]:
    """Burn in, then draw: the draws, and the log joint of every iteration."""
    draws: list[OverlapDraw] = []
    values: list[float] = []
    for iteration in range(plan.burn_in + plan.n_draws * plan.thin):
        state = chain_step(table, state, rng, plan)
        values.append(table.log_joint(state))
        if iteration >= plan.burn_in and (iteration + 1 - plan.burn_in) % plan.thin == 0:
            draws.append(OverlapDraw(state, values[-1], index))
        if callback is not None and callback(iteration + 1, state.n_views, values[-1]):
            break
    if not draws:
        draws.append(OverlapDraw(state, values[-1] if values else np.nan, index))
    return draws, np.array(values)
