"""Columns choose their views: one Gibbs step for each unit, given where all the others are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.dispatch import kernel
from partita.engines import gibbs
from partita.engines.columns import Plan, Table, open_view
from partita.engines.columns_layout import Layout, evidence
from partita.partitions import DirichletProcess

__all__ = [
    "Hall",
    "add_view",
    "choose_view",
    "draw_concentration",
    "draw_index",
    "draw_restaurant",
    "enter",
    "home_of",
    "leave",
    "log_choices",
]

NEVER = -np.inf


@kernel
def draw_restaurant(concentration, u, z):
    """Labels of the Chinese restaurant from one uniform an object; returns the number of clusters."""
    K = 0
    for i in range(z.shape[0]):
        t = u[i] * (concentration + i) - concentration
        if t < 0.0 or i == 0:
            z[i] = K
            K += 1
        else:  # with any of the earlier ones, each as likely as the others
            z[i] = z[min(int(t), i - 1)]
    return K


def draw_concentration(plan: Plan, rng: np.random.Generator) -> DirichletProcess:
    """The prior of the rows of a view that is drawn from the prior."""
    value = rng.exponential() if plan.concentration is None else plan.concentration
    return DirichletProcess(max(float(value), 1e-300))


class Hall(NamedTuple):
    """Views while columns choose: labels of the rows, their prior, and who sits where."""

    z: list[np.ndarray]
    priors: list[Any]
    scores: list[np.ndarray]  # log evidence of every unit under each view
    members: list[set[int]]
    source: list[int]  # which view of the table it was, -1 for a new one


def unit_sums(layout: Layout, by_column: np.ndarray) -> np.ndarray:
    """Sums over the columns of each unit."""
    return np.array([by_column[unit].sum() for unit in layout.units])


def enter(table: Table) -> Hall:
    """All views with the evidence of every unit in each."""
    z = [gibbs.labels(view.chain.seating) for view in table.views]
    scores = [
        unit_sums(table.layout, evidence(table.layout.blocks, table.families, labels, int(labels.max()) + 1))
        for labels in z
    ]
    return Hall(
        z,
        [view.chain.prior for view in table.views],
        scores,
        [set(view.units) for view in table.views],
        list(range(len(z))),
    )


def home_of(hall: Hall, unit: int) -> int:
    """The view that a unit is in."""
    return next(v for v, members in enumerate(hall.members) if unit in members)


def log_choices(table: Table, hall: Hall, unit: int) -> np.ndarray:
    """Log weight of each view of the hall for a unit that sits nowhere; none where it is forbidden."""
    size, out = table.layout.sizes[unit], np.full(len(hall.z), NEVER)
    for v, members in enumerate(hall.members):
        if members and not any(table.layout.apart[unit, other] for other in members):
            n = sum(int(table.layout.sizes[other]) for other in members)
            out[v] = gammaln(n + size) - gammaln(n) + hall.scores[v][unit]
    return out


def choose_view(
    table: Table, hall: Hall, unit: int, blocks: Sequence[Any], plan: Plan, rng: np.random.Generator
) -> bool:
    """Gibbs step of one unit; whether it moved."""
    home = home_of(hall, unit)
    hall.members[home].discard(unit)
    alone, log_w = not hall.members[home], log_choices(table, hall, unit)
    log_new = np.log(table.prior.concentration / plan.n_auxiliary) + gammaln(table.layout.sizes[unit])
    families = [block.family for block in blocks]
    fresh = []
    if alone:  # its own view is the first of the empty ones
        log_w[home] = log_new + hall.scores[home][unit]
    for _ in range(plan.n_auxiliary - alone):
        prior, z = draw_concentration(plan, rng), np.empty(len(hall.z[0]), np.int64)
        K = draw_restaurant(prior.concentration, rng.random(len(z)), z)
        fresh.append((z, prior, log_new + evidence(blocks, families, z, K).sum()))
    log_w = np.append(log_w, [weight for _, _, weight in fresh])
    chosen = draw_index(log_w, rng)
    if chosen >= len(hall.z):
        z, prior, _ = fresh[chosen - len(hall.z)]
        chosen = add_view(table, hall, z, prior)
    hall.members[chosen].add(unit)
    return chosen != home


def draw_index(log_w: np.ndarray, rng: np.random.Generator) -> int:
    """One index in proportion to weights."""
    reached = np.cumsum(np.exp(log_w - log_w.max()))
    return min(int(np.searchsorted(reached, rng.random() * reached[-1], side="right")), len(log_w) - 1)


def add_view(table: Table, hall: Hall, z: np.ndarray, prior: Any) -> int:
    """A new view, empty so far; its number in the hall."""
    scores = evidence(table.layout.blocks, table.families, z, int(z.max()) + 1)
    for where, what in zip(hall, (z, prior, unit_sums(table.layout, scores), set[int](), -1), strict=True):
        where.append(what)
    return len(hall.z) - 1


def leave(table: Table, hall: Hall, plan: Plan, rng: np.random.Generator) -> Table:
    """The table with the views of the hall; those whose columns changed are seated anew."""
    views = []
    for v, members in enumerate(hall.members):
        if not members:
            continue
        old = table.views[hall.source[v]] if hall.source[v] >= 0 else None
        if old is not None and set(old.units) == members:
            views.append(old)
            continue
        seed = int(rng.integers(2**62))
        views.append(
            open_view(
                table.layout, table.reference, table.families, sorted(members), hall.z[v], hall.priors[v],
                seed, plan.dtype,
            )
        )  # fmt: skip
    return table._replace(views=tuple(views))
