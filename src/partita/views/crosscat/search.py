"""Stochastic search for the most probable views: short chains from several starts, then a climb.

A chain wanders to where probability is; the best state it sees is taken, and from there rows and columns go to where
they are most probable until nothing changes for the better. No uncertainty comes of it, but an answer in less time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from partita.engines.passes.rows import assign_rows, predictive
from partita.labels import canonical
from partita.partitions import log_eppf
from partita.views.crosscat.chain import calm, step
from partita.views.crosscat.column_gibbs import Hall, enter, leave, log_choices, put_in, take_out
from partita.views.crosscat.state import Plan, Table, log_joint

PATIENCE = 5  # iterations without a better state that end the chain
MOST_CLIMBS = 20


def copied(table: Table) -> Table:
    """A table that later steps do not change: seatings change in place."""

    def one(view):
        seating = view.chain.seating
        blocks = tuple(
            live._replace(S=live.S.copy(), C=live.C.copy(), S2=live.S2.copy(), C2=live.C2.copy())
            for live in seating.blocks
        )
        arrays = {name: getattr(seating, name).copy() for name in ("z", "n", "slot_of", "name_of", "K")}
        return view._replace(chain=view.chain._replace(seating=seating._replace(blocks=blocks, **arrays)))

    return table._replace(views=tuple(one(view) for view in table.views))


def search_table(
    table: Table,
    plan: Plan,
    rng: np.random.Generator,
    max_iter: int,
    after: Callable[[int, int, float], bool] = lambda iteration, n_views, value: False,
) -> tuple[Table, list[float]]:
    """The best state that a chain and a climb find, and its log joint after each iteration.

    ``after(iteration, n_views, log_joint)`` is called after each iteration; where it returns True the chain ends.
    """
    best, values = copied(table), [log_joint(table)]
    since = 0
    for iteration in range(max_iter):
        table = step(table, calm(plan), rng)
        value = log_joint(table)
        if value > values[-1] + 1e-9 * abs(value):
            best, since = copied(table), 0
        else:
            since += 1
        values.append(max(value, values[-1]))
        if after(iteration + 1, len(table.views), value) or since >= PATIENCE:
            break
    best, value = climb(best, plan, rng)
    return best, [*values, value]


def climb(table: Table, plan: Plan, rng: np.random.Generator) -> tuple[Table, float]:
    """Rows and columns where they are most probable, as long as the log joint rises."""
    value = log_joint(table)
    for _ in range(MOST_CLIMBS):
        hall = enter(table)
        for v, view in enumerate(table.views):
            hall.z[v] = better_rows(view)
        moved = leave(table, _all_new(hall), plan, rng)
        hall = enter(moved)
        for unit in range(len(table.layout.units)):
            take_best(moved, hall, unit)
        moved = leave(moved, hall, plan, rng)
        new = log_joint(moved)
        if not new > value + 1e-9 * abs(value):
            break
        table, value = moved, new
    return table, value


def better_rows(view: Any) -> np.ndarray:
    """Every row in the cluster that predicts it best, all at once."""
    seating = view.chain.seating
    K = int(seating.K[0])
    S = [np.ascontiguousarray(live.S[:, :K]) for live in seating.blocks]
    score = predictive(seating.blocks, S, np.log(seating.n[:K]))
    return canonical(assign_rows(score, len(seating.z)).labels)


def _all_new(hall: Hall) -> Hall:
    """A hall whose views are all to be seated anew."""
    return hall._replace(source=[-1] * len(hall.z))


def take_best(table: Table, hall: Hall, unit: int) -> None:
    """The best of the views that exist for one unit; its own, if it is alone."""
    home = take_out(table, hall, unit)
    log_w = log_choices(table, hall, unit)
    if not hall.members[home]:
        log_new = np.log(table.prior.concentration) + gammaln(table.layout.sizes[unit])
        K = int(hall.z[home].max()) + 1
        n = np.bincount(hall.z[home]).astype(float)
        # a view that ends saves its own partition as well
        log_w[home] = log_new + hall.scores[home][unit] + log_eppf(hall.priors[home], n, K)
    put_in(table, hall, unit, int(np.argmax(log_w)))
