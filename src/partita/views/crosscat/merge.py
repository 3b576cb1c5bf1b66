"""Views merge and split as wholes.

A few columns that have made a view of their own hold each other there: the rows are divided to their liking, and none
of them alone gains by leaving. Here all columns of a view join another one at once, mostly the one that suits them
best. The reverse takes some columns out of a view and divides the rows for them, row by row, as a birth does; its
probability is known, so merges and splits are weighed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, logsumexp

from partita.partitions import log_eppf
from partita.views.crosscat.birth import build_division, log_weight_of_division
from partita.views.crosscat.column_gibbs import (
    NEVER,
    Hall,
    add_view,
    draw_concentration,
    draw_index,
    put_in,
    take_out,
)
from partita.views.crosscat.layout import view_blocks
from partita.views.crosscat.state import Plan, Table, columns_in

__all__ = ["merge_or_split"]


def merge_or_split(table: Table, hall: Hall, plan: Plan, rng: np.random.Generator) -> str:
    """Try to merge a view into another, or to split one; what came of it."""
    used = [v for v, members in enumerate(hall.members) if members]
    if rng.random() < 0.5:
        if len(used) < 2:
            return "refused"
        return try_merge(table, hall, used[int(rng.integers(len(used)))], len(used), plan, rng)
    view = used[int(rng.integers(len(used)))]
    if len(hall.members[view]) < 2:
        return "refused"
    return try_split(table, hall, view, len(used), plan, rng)


def try_merge(table: Table, hall: Hall, leaving: int, V: int, plan: Plan, rng: np.random.Generator) -> str:
    """All units of one of V views join another."""
    units = sorted(hall.members[leaving])
    log_w = log_hosts(table, hall, units, leaving)
    if not np.isfinite(log_w).any():
        return "refused"
    host = draw_index(log_w, rng)
    blocks = view_blocks(table.layout, table.families, columns_in(table.layout, units))
    order = rng.permutation(len(hall.z[0]))
    log_apart = log_weight_of_division(blocks, hall.priors[leaving], hall.z[leaving], order, plan.dtype)
    size = float(table.layout.sizes[units].sum())
    others = hall.width.copy()
    others[leaving] = 0.0
    ratio = log_split_ratio(table, hall, units, others, size, host, log_apart)
    ratio += log_w[host] - logsumexp(log_w) - math.log(V)
    ratio -= log_subset(len(units) + len(hall.members[host]), len(units)) - math.log(V - 1)
    if math.log(rng.random()) >= -ratio:
        return "refused"
    for unit in units:
        take_out(table, hall, unit)
        put_in(table, hall, unit, host)
    return "merge"


def try_split(table: Table, hall: Hall, view: int, V: int, plan: Plan, rng: np.random.Generator) -> str:
    """Some units of one of V views get a view of their own."""
    everyone = sorted(hall.members[view])
    n_out = 1 + int(rng.integers(len(everyone) - 1))
    units = sorted(int(u) for u in rng.choice(everyone, n_out, replace=False))
    blocks = view_blocks(table.layout, table.families, columns_in(table.layout, units))
    N, prior = len(hall.z[0]), draw_concentration(plan, rng)
    z, log_apart = build_division(blocks, prior, rng.permutation(N), rng.random(N), plan.dtype)
    for unit in units:
        take_out(table, hall, unit)
    log_w = log_hosts(table, hall, units)
    size = float(table.layout.sizes[units].sum())
    ratio = log_split_ratio(table, hall, units, hall.width, size, view, log_apart)
    ratio += log_w[view] - logsumexp(log_w) - math.log(V + 1)
    ratio -= log_subset(len(everyone), n_out) - math.log(V)
    accepted = math.log(rng.random()) < ratio
    home = add_view(table, hall, z, prior) if accepted else view
    for unit in units:
        put_in(table, hall, unit, home)
    return "split" if accepted else "refused"


def log_split_ratio(
    table: Table,
    hall: Hall,
    units: Sequence[int],
    others: np.ndarray,
    size: float,
    host: int,
    log_apart: float,
) -> float:
    """Log posterior of the units in a view of their own, minus that with the host; the former by importance weight.

    ``others`` counts the columns of all views without the ``size`` ones that move.
    """
    scores = float(sum(hall.scores[host][unit] for unit in units))
    apart, merged = np.append(others, size), others.copy()
    merged[host] += size
    apart, merged = apart[apart > 0], merged[merged > 0]
    prior = table.prior
    return float(
        log_apart - scores + log_eppf(prior, apart, len(apart)) - log_eppf(prior, merged, len(merged))
    )


def log_hosts(table: Table, hall: Hall, units: Sequence[int], leaving: int | None = None) -> np.ndarray:
    """Log weight of each view as the host of units that sit nowhere, or alone in the view ``leaving``."""
    size = float(table.layout.sizes[list(units)].sum())
    n = hall.width[: len(hall.z)]
    out = np.array([scores[list(units)].sum() for scores in hall.scores])
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(n > 0, out + gammaln(n + size) - gammaln(n), NEVER)
    if leaving is not None:
        out[leaving] = NEVER
    for v, members in enumerate(hall.members):
        if members and table.layout.apart[np.ix_(list(units), sorted(members))].any():
            out[v] = NEVER
    return out


def log_subset(n: int, size: int) -> float:
    """Log probability of drawing just these units for a split: their number, then which."""
    return float(gammaln(size + 1) + gammaln(n - size + 1) - gammaln(n + 1) - math.log(n - 1))
