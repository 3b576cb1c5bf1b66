"""Chains over overlapping views: features, rows and hyper-parameters in turn, every step exact.

The prior of memberships is the two-parameter Indian buffet with its hyperprior, given that no column has more views
than ``largest`` and that there are no more than ``max_views``; so learning alpha and beta needs no further constant.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.engines.run import Sampler
from partita.partitions import DirichletProcess, IndianBuffet, log_eppf, sample_hyper
from partita.partitions.learning import UNIT_GAMMA, sample_positive
from partita.views.overlapping.full_covariance import FullTable
from partita.views.overlapping.search import OverlapSearch
from partita.views.overlapping.state import State, empty_state
from partita.views.overlapping.table import OverlapTable

STARTS = ("screen", "parts")  # what searches start from, in turn


class OverlapPlan(NamedTuple):
    """How chains run."""

    n_draws: int = 20
    burn_in: int = 10
    thin: int = 1
    largest: int = 4  # views of one column
    max_views: int = 64
    n_moves: int = 3  # split-merge moves in each view per iteration
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


class OverlapChain(NamedTuple):
    """Where a chain stands."""

    state: State
    rng: np.random.Generator


def chain_step(
    table: OverlapTable | FullTable, state: State, rng: np.random.Generator, plan: OverlapPlan
) -> State:
    """One iteration."""
    for one in overlap_steps(table, plan):
        state = one(OverlapChain(state, rng)).state
    return state


def overlap_steps(table: OverlapTable | FullTable, plan: OverlapPlan) -> list[Callable]:
    """The steps of an iteration: memberships of the columns, labels of the rows, hyper-parameters."""

    def features(chain: OverlapChain) -> OverlapChain:
        state = table.feature_step(chain.state, chain.rng, largest=plan.largest, max_views=plan.max_views)
        return chain._replace(state=state)

    def rows(chain: OverlapChain) -> OverlapChain:
        if not chain.state.Z:
            return chain
        return chain._replace(state=table.row_step(chain.state, chain.rng, n_moves=plan.n_moves))

    def hyper(chain: OverlapChain) -> OverlapChain:
        return chain._replace(state=learn_hyper(table, chain.state, chain.rng, plan))

    return [features, rows, hyper]


def overlap_sampler(
    table: OverlapTable | FullTable, start: State, plan: OverlapPlan, rng: np.random.Generator, number: int
) -> Sampler:
    """What the driver runs."""
    return Sampler(
        start=lambda: OverlapChain(start, rng),
        steps=overlap_steps(table, plan),
        log_joint=lambda chain: table.log_joint(chain.state),
        draw=lambda chain, value: OverlapDraw(chain.state, value, number),
        n_clusters=lambda chain: chain.state.n_views,
    )


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
