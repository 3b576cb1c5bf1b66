"""Chains over views.

A row step in every view, a column step, and steps of row factors, tied values and depths make an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import sweep
from partita.engines.run import Sampler
from partita.families import GaussianDiagonal
from partita.families.rows import add_statistics
from partita.families.sized_gaussian import SizedGaussian
from partita.labels import canonical
from partita.partitions import sample_hyper
from partita.trace import label_dtype
from partita.views.crosscat.birth import propose_birth_or_death
from partita.views.crosscat.column_gibbs import apply_moves, choose_view, gather_views
from partita.views.crosscat.depths import depth_step
from partita.views.crosscat.layout import part_columns, view_blocks
from partita.views.crosscat.merge import merge_or_split
from partita.views.crosscat.row_factors import log_joint, row_factor_step
from partita.views.crosscat.state import CrossCatPlan, ViewsState, columns_in, row_step
from partita.views.crosscat.tied_cells import tie_step
from partita.views.nuisance import safe_sizes

BIRTHS_PER_UNIT, MERGES_PER_VIEW = 0.05, 0.1  # proposals in an iteration of a chain, at most


class ViewSnapshot(NamedTuple):
    """One view of a draw."""

    columns: np.ndarray
    labels: np.ndarray
    n: np.ndarray  # sizes of the clusters
    positions: tuple[np.ndarray, ...]  # of its columns in each block
    families: tuple[Any, ...]  # of its columns
    S: tuple[np.ndarray, ...]  # statistics of the clusters, block by block
    concentration: float


class Snapshot(NamedTuple):
    """One draw of a chain over views."""

    views: tuple[ViewSnapshot, ...]
    concentration: float
    log_joint: float
    chain: int
    rows: np.ndarray  # row factors, [row, rank]
    loadings: np.ndarray  # [rank, column of the layout]
    depths: np.ndarray = np.zeros(0)  # of the rows; empty without depths
    depth_shape: float = 0.0
    gain: np.ndarray | None = None  # of the row factors; None if all are 0


def column_step(
    state: ViewsState, plan: CrossCatPlan, rng: np.random.Generator, alone: Sequence[int] | None = None
) -> ViewsState:
    """Gibbs step of every unit, then births, merges and splits, then the concentration of the views.

    Births are proposed for a random share of the units; for the units ``alone``, if they are given, as at the start.
    """
    layout, accepted = state.layout, dict(state.accepted)
    views = gather_views(state)
    units = [view_blocks(layout, state.families, unit) for unit in layout.units]
    moved = 0
    for unit in rng.permutation(len(units)):
        moved += choose_view(state, views, int(unit), units[unit], plan, rng)
    proposed = rng.permutation(len(units) if alone is None else np.array(alone, np.int64))
    for unit in proposed[: int(np.ceil(plan.births_per_unit * len(proposed)))]:
        outcome = propose_birth_or_death(state, views, int(unit), units[unit], plan, rng)
        accepted[outcome] = accepted.get(outcome, 0) + 1
    for _ in range(int(np.ceil(plan.merges_per_view * len(state.views)))):
        outcome = merge_or_split(state, views, plan, rng)
        accepted[outcome] = accepted.get(outcome, 0) + 1
    accepted["moved"] = accepted.get("moved", 0) + moved
    prior = state.prior
    if plan.learn_views:
        prior = sample_hyper(prior, views.n_columns, rng)
    return apply_moves(state._replace(prior=prior, accepted=accepted), views, plan, rng)


def step(state: ViewsState, plan: CrossCatPlan, rng: np.random.Generator) -> ViewsState:
    """One iteration without new values in tied cells, so that a search compares states of the same data."""
    state = row_factor_step(column_step(row_step(state, plan), plan, rng), rng, plan.dtype)
    return depth_step(state, rng, plan.dtype)


def take_snapshot(state: ViewsState, index: int = 0, value: float | None = None) -> Snapshot:
    """A draw from the present state, with canonical labels and statistics in the order of the labels.

    Real cells of rows with sizes are divided by these, noise included: queries read such columns as normal ones.
    """
    views = []
    for view in state.views:
        seating = view.chain.seating
        slots = sweep.labels(seating)
        z = canonical(slots)
        K = int(z.max()) + 1
        order = np.empty(K, np.int64)
        order[z] = slots  # slot of each canonical label
        columns = columns_in(state.layout, view.units)
        positions = tuple(part_columns(state.layout, columns))
        plain = [
            as_plain_columns(block, live, which, z, order)
            for block, live, which in zip(state.layout.blocks, seating.blocks, positions, strict=True)
        ]
        views.append(
            ViewSnapshot(
                columns,
                z.astype(label_dtype(K)),
                seating.n[order].copy(),
                positions,
                tuple(family for family, _ in plain),
                tuple(S for _, S in plain),
                float(view.chain.prior.concentration),
            )
        )
    value = log_joint(state) if value is None else value
    rows, gain = np.zeros((len(views[0].labels), 0)), None
    if state.factors is not None:
        rows, gain = state.factors.rows, state.factors.gain
    loadings = np.zeros((rows.shape[1], state.layout.n_columns))
    if state.factors is not None:
        loadings[:, state.factors.columns] = state.factors.loadings
    snapshot = Snapshot(
        tuple(views), float(state.prior.concentration), value, index, rows, loadings, gain=gain
    )
    if state.depths is None:
        return snapshot
    return snapshot._replace(depths=state.depths.rows, depth_shape=state.depths.shape)


def as_plain_columns(block: Any, live: Any, which: np.ndarray, z: np.ndarray, order: np.ndarray) -> tuple:
    """Family and statistics of the columns of one block in a view; without the sizes of the rows."""
    if not isinstance(live.family, SizedGaussian):
        return live.family, np.ascontiguousarray(live.S[:, order])
    family = GaussianDiagonal(*live.family)
    S = np.zeros((3 * len(which), len(order)))
    X = block.data.X[:, which] / safe_sizes(block.data.size)[:, None]
    add_statistics(family, np.ascontiguousarray(X), z, S)
    return family, S


def chain_plan(plan: CrossCatPlan) -> CrossCatPlan:
    """The plan of the iterations after the start, which has proposed births and merges for all units and views."""
    return plan._replace(
        births_per_unit=min(plan.births_per_unit, BIRTHS_PER_UNIT),
        merges_per_view=min(plan.merges_per_view, MERGES_PER_VIEW),
    )


class ViewsChain(NamedTuple):
    """State and generator of a chain over views."""

    state: ViewsState
    rng: np.random.Generator


def views_sampler(
    start: Callable[[], ViewsChain], plan: CrossCatPlan, *, given: Any = (), number: int = 0
) -> Sampler:
    """The sampler that the driver runs; ``given`` holds the data that the states refer to."""
    plan = chain_plan(plan)

    def rows(chain: ViewsChain) -> ViewsChain:
        return chain._replace(state=row_step(chain.state, plan))

    def columns(chain: ViewsChain) -> ViewsChain:
        return chain._replace(state=column_step(chain.state, plan, chain.rng))

    def row_factors(chain: ViewsChain) -> ViewsChain:
        return chain._replace(state=row_factor_step(chain.state, chain.rng, plan.dtype))

    def tied(chain: ViewsChain) -> ViewsChain:
        return chain._replace(state=tie_step(chain.state, chain.rng, plan.dtype))

    def depths(chain: ViewsChain) -> ViewsChain:
        return chain._replace(state=depth_step(chain.state, chain.rng, plan.dtype))

    return Sampler(
        start=start,
        steps=[rows, columns, row_factors, tied, depths],
        log_joint=lambda chain: log_joint(chain.state),
        draw=lambda chain, value: take_snapshot(chain.state, number, value),
        n_clusters=lambda chain: len(chain.state.views),
        given=given,
    )
