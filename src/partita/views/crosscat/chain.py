"""Chains over views: an iteration is a step over the rows of every view, then one over the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import sweep
from partita.engines.run import Sampler
from partita.labels import canonical
from partita.partitions import sample_hyper
from partita.trace import label_dtype
from partita.views.crosscat.birth import offer_view
from partita.views.crosscat.column_gibbs import choose_view, enter, leave
from partita.views.crosscat.layout import part_columns, view_blocks
from partita.views.crosscat.merge import merge_or_split
from partita.views.crosscat.state import Plan, Table, columns_in, log_joint, row_step

FEW = 0.1  # share of the units that are offered a view of their own, and of the views that try to merge or split


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


def column_step(table: Table, plan: Plan, rng: np.random.Generator) -> Table:
    """Every unit chooses its view anew, given all the others; then come the births, and the concentration."""
    layout, accepted = table.layout, dict(table.accepted)
    hall = enter(table)
    units = [view_blocks(layout, table.families, unit) for unit in layout.units]
    moved = 0
    for unit in rng.permutation(len(units)):
        moved += choose_view(table, hall, int(unit), units[unit], plan, rng)
    n_births = int(np.ceil(plan.n_births * len(units)))
    for unit in rng.permutation(len(units))[:n_births]:
        outcome = offer_view(table, hall, int(unit), units[unit], plan, rng)
        accepted[outcome] = accepted.get(outcome, 0) + 1
    for _ in range(int(np.ceil(plan.n_merges * len(table.views)))):
        outcome = merge_or_split(table, hall, plan, rng)
        accepted[outcome] = accepted.get(outcome, 0) + 1
    accepted["moved"] = accepted.get("moved", 0) + moved
    prior = table.prior
    if plan.learn_views:
        prior = sample_hyper(prior, hall.width, rng)
    return leave(table._replace(prior=prior, accepted=accepted), hall, plan, rng)


def step(table: Table, plan: Plan, rng: np.random.Generator) -> Table:
    """One iteration."""
    return column_step(row_step(table, plan), plan, rng)


def take_snapshot(table: Table, index: int = 0, value: float | None = None) -> Snapshot:
    """What is kept of a state: labels are canonical, the statistics follow them."""
    views = []
    for view in table.views:
        seating = view.chain.seating
        slots = sweep.labels(seating)
        z = canonical(slots)
        K = int(z.max()) + 1
        order = np.empty(K, np.int64)
        order[z] = slots  # the slot of each canonical label
        columns = columns_in(table.layout, view.units)
        views.append(
            ViewSnapshot(
                columns,
                z.astype(label_dtype(K)),
                seating.n[order].copy(),
                tuple(part_columns(table.layout, columns)),
                tuple(live.family for live in seating.blocks),
                tuple(np.ascontiguousarray(live.S[:, order]) for live in seating.blocks),
                float(view.chain.prior.concentration),
            )
        )
    value = log_joint(table) if value is None else value
    return Snapshot(tuple(views), float(table.prior.concentration), value, index)


def calm(plan: Plan) -> Plan:
    """The plan of a chain on its way: a start has tried all births and merges already."""
    return plan._replace(n_births=min(plan.n_births, FEW), n_merges=min(plan.n_merges, FEW))


class ViewsChain(NamedTuple):
    """Where a chain over views stands."""

    table: Table
    rng: np.random.Generator


def views_sampler(
    start: Callable[[], ViewsChain], plan: Plan, *, given: Any = (), number: int = 0
) -> Sampler:
    """What the driver runs: rows of every view, then the columns; ``given`` is the layout of the table."""
    gentle = calm(plan)

    def rows(chain: ViewsChain) -> ViewsChain:
        return chain._replace(table=row_step(chain.table, gentle))

    def columns(chain: ViewsChain) -> ViewsChain:
        return chain._replace(table=column_step(chain.table, gentle, chain.rng))

    return Sampler(
        start=start,
        steps=[rows, columns],
        log_joint=lambda chain: log_joint(chain.table),
        draw=lambda chain, value: take_snapshot(chain.table, number, value),
        n_clusters=lambda chain: len(chain.table.views),
        given=given,
    )
