"""Columns choose their views: one Gibbs step for each unit, given where all the others are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.dispatch import kernel
from partita.engines.gibbs import sweep
from partita.partitions import DirichletProcess
from partita.views.crosscat.layout import Layout, evidence
from partita.views.crosscat.state import Plan, Table, open_view

__all__ = [
    "Hall",
    "add_view",
    "choose_view",
    "draw_concentration",
    "draw_index",
    "draw_restaurant",
    "enter",
    "leave",
    "log_choices",
    "put_in",
    "take_out",
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
    home: np.ndarray  # view of each unit
    width: np.ndarray  # columns of each view, with room for every view that may come


def unit_sums(layout: Layout, by_column: np.ndarray) -> np.ndarray:
    """Sums over the columns of each unit."""
    return np.array([by_column[unit].sum() for unit in layout.units])


def enter(table: Table) -> Hall:
    """All views with the evidence of every unit in each."""
    z = [sweep.labels(view.chain.seating) for view in table.views]
    scores = [
        unit_sums(table.layout, evidence(table.layout.blocks, table.families, labels, int(labels.max()) + 1))
        for labels in z
    ]
    home = np.empty(len(table.layout.units), np.int64)
    width = np.zeros(3 * len(z) + 2 * len(home) + 8)
    for v, view in enumerate(table.views):
        home[list(view.units)] = v
        width[v] = table.layout.sizes[list(view.units)].sum()
    priors = [view.chain.prior for view in table.views]
    members = [set(view.units) for view in table.views]
    return Hall(z, priors, scores, members, list(range(len(z))), home, width)


def take_out(table: Table, hall: Hall, unit: int) -> int:
    """Take a unit out of its view, which may be left empty; the view that was its home."""
    home = int(hall.home[unit])
    hall.members[home].discard(unit)
    hall.width[home] -= table.layout.sizes[unit]
    return home


def put_in(table: Table, hall: Hall, unit: int, view: int) -> None:
    """Put a unit into a view."""
    hall.members[view].add(unit)
    hall.width[view] += table.layout.sizes[unit]
    hall.home[unit] = view


def log_choices(table: Table, hall: Hall, unit: int) -> np.ndarray:
    """Log weight of each view of the hall for a unit that sits nowhere; none where it is forbidden."""
    size = int(table.layout.sizes[unit])
    n = hall.width[: len(hall.z)]
    out = np.array([scores[unit] for scores in hall.scores])
    with np.errstate(divide="ignore", invalid="ignore"):  # an empty view has no weight
        out += np.where(n > 0, np.log(n) if size == 1 else gammaln(n + size) - gammaln(n), NEVER)
    if table.layout.apart[unit].any():
        for v, members in enumerate(hall.members):
            if any(table.layout.apart[unit, other] for other in members):
                out[v] = NEVER
    return out


def choose_view(
    table: Table, hall: Hall, unit: int, blocks: Sequence[Any], plan: Plan, rng: np.random.Generator
) -> bool:
    """Gibbs step of one unit; whether it moved."""
    home = take_out(table, hall, unit)
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
    put_in(table, hall, unit, chosen)
    return chosen != home


def draw_index(log_w: np.ndarray, rng: np.random.Generator) -> int:
    """One index in proportion to weights."""
    reached = np.cumsum(np.exp(log_w - log_w.max()))
    return min(int(np.searchsorted(reached, rng.random() * reached[-1], side="right")), len(log_w) - 1)


def add_view(table: Table, hall: Hall, z: np.ndarray, prior: Any) -> int:
    """A new view, empty so far; its number in the hall."""
    scores = evidence(table.layout.blocks, table.families, z, int(z.max()) + 1)
    hall.z.append(z)
    hall.priors.append(prior)
    hall.scores.append(unit_sums(table.layout, scores))
    hall.members.append(set())
    hall.source.append(-1)
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
