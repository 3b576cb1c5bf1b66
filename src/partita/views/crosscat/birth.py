"""A view of one's own: a column is offered rows divided to its own liking.

Rows divided by the prior alone hardly ever suit a column that has clusters, so a sampler that draws empty views from
the prior has columns sit in the wrong view for ever. Here the division is built from the column itself: rows take their
seats one after the other, each where the ones before draw it. The probability of building just that division is known,
so the move can be weighed exactly: what it offers is judged by an estimate of the column's marginal likelihood over
*all* divisions, against what the views that exist say of the column. The reverse lets a column that is alone join
another view, and asks with what probability its present division would have been built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from partita.dispatch import kernel
from partita.engines.gibbs import sweep
from partita.engines.gibbs.drawing import draw_slot, whole_blocks
from partita.engines.gibbs.sweep import NO_LIMIT, Seating, fill_mass, score_row, take
from partita.families.registry import Block
from partita.families.rows import log_marginals, refresh_clusters
from partita.partitions import log_eppf
from partita.views.crosscat.column_gibbs import (
    Hall,
    add_view,
    draw_concentration,
    draw_index,
    log_choices,
    put_in,
    take_out,
)
from partita.views.crosscat.state import Plan, Table

__all__ = ["build_division", "log_weight_of_division", "offer_view"]


@kernel
def seat_in_order(blocks, prior, z, n, slot_of, name_of, K, rows, u, forced, start, sums):
    """Seat ``rows[start:]`` one after the other; ``sums[0]`` gains the log probability of all choices.

    ``forced[j] >= 0`` says which slot row j takes, come what may. Returns where it had to stop for more slots.
    """
    capacity = n.shape[0]
    room = whole_blocks(capacity)
    lp, mass, w = np.empty(room, blocks[0].C.dtype), np.empty(room), np.empty(room)
    fill_mass(prior, n, K, z.shape[0], mass, NO_LIMIT)
    for j in range(start, rows.shape[0]):
        if K[0] + 1 >= capacity:
            return j
        for k in range(K[0] + 1):
            lp[k] = mass[k]
        score_row(blocks, rows[j], K[0] + 1, lp)
        chosen = forced[j]
        if chosen < 0:
            chosen = draw_slot(lp, K[0] + 1, u[j], w, -1)
        top, total = float(lp[0]), 0.0
        for k in range(1, K[0] + 1):
            top = max(top, float(lp[k]))
        for k in range(K[0] + 1):
            total += math.exp(float(lp[k]) - top)
        sums[0] += float(lp[chosen]) - top - math.log(total)
        take(blocks, prior, z, n, slot_of, name_of, K, mass, rows[j], -1, chosen, NO_LIMIT)
    return rows.shape[0]


def _empty(blocks: Sequence[Block], N: int, dtype: type) -> Seating:
    """A seating in which nobody sits yet."""
    seating = sweep.seat(blocks, np.zeros(N, np.int64), dtype=dtype)
    for live in seating.blocks:
        live.S[:] = 0.0
        refresh_clusters(live.family, live.S, live.C, live.S.shape[1])
    seating.n[:], seating.K[0] = 0.0, 0
    seating.slot_of[:], seating.name_of[:] = -1, -1
    return seating


def build_division(
    blocks: Sequence[Block],
    prior: Any,
    order: np.ndarray,
    u: np.ndarray,
    dtype: type = np.float64,
    forced: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """A division of the rows built from the data of the blocks, and the log of its importance weight.

    The weight is prior times marginal likelihood over the probability of building it; its mean over divisions is the
    marginal likelihood of the blocks under all of them. ``forced`` gives the labels instead of drawing them.
    """
    seating = _empty(blocks, len(order), dtype)
    slots = np.full(len(order), -1)
    if forced is not None:  # slots are opened in the order of the rows
        _, first, inverse = np.unique(forced[order], return_index=True, return_inverse=True)
        slots = np.argsort(np.argsort(first))[inverse]
    done, sums = 0, np.zeros(1)
    while (done := seat_in_order(*seating[:1], prior, *seating[1:], order, u, slots, done, sums)) < len(
        order
    ):
        seating = sweep.grow(seating)
    K = int(seating.K[0])
    log_p = log_eppf(prior, sweep.sizes(seating), K)
    log_p += sum(log_marginals(live.family, live.S[:, :K]).sum() for live in seating.blocks)
    return sweep.labels(seating), float(log_p - sums[0])


def log_weight_of_division(
    blocks: Sequence[Block], prior: Any, z: np.ndarray, order: np.ndarray, dtype: type = np.float64
) -> float:
    """The log importance weight of a division that is there already."""
    return build_division(blocks, prior, order, np.zeros(len(order)), dtype, forced=z)[1]


def offer_view(
    table: Table, hall: Hall, unit: int, blocks: Sequence[Block], plan: Plan, rng: np.random.Generator
) -> str:
    """Offer a unit a view of its own, or one that is alone a place in another; what came of it."""
    home = take_out(table, hall, unit)
    N = len(hall.z[0])
    order, u = rng.permutation(N), rng.random(N)
    log_others = log_choices(table, hall, unit)
    log_new = math.log(table.prior.concentration) + gammaln(table.layout.sizes[unit])
    if hall.members[home]:
        prior = draw_concentration(plan, rng)
        z, log_weight = build_division(blocks, prior, order, u, plan.dtype)
        if math.log(rng.random()) < log_new + log_weight - logsumexp(log_others):
            home = add_view(table, hall, z, prior)
            put_in(table, hall, unit, home)
            return "birth"
    elif np.isfinite(log_others).any():
        log_weight = log_weight_of_division(blocks, hall.priors[home], hall.z[home], order, plan.dtype)
        if math.log(rng.random()) < logsumexp(log_others) - log_new - log_weight:
            home = draw_index(log_others, rng)
            put_in(table, hall, unit, home)
            return "death"
    put_in(table, hall, unit, home)
    return "refused"
