"""Birth move: propose a new view for one unit of columns, with a row partition built sequentially from its data.

A row partition drawn from the prior hardly ever fits a column that has clusters, so a sampler that only draws empty
views from the prior leaves columns in the wrong view for a long time. Here the rows are assigned one after the other,
each with its predictive probabilities given the rows before it. The probability of the resulting partition under this
construction is known, so the acceptance probability is exact: it compares an importance-sampling estimate of the
unit's marginal likelihood over *all* row partitions with its evidence under the existing views. The reverse, the death
move, lets a unit that is alone in its view join another one; it uses the probability with which its present row
partition would have been built.
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
from partita.engines.gibbs.sweep import NO_LIMIT, Seating, fill_mass, take
from partita.engines.passes.live import erase, new_scores, refresh_caches, score_row
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.partitions import log_eppf
from partita.views.crosscat.column_gibbs import (
    CandidateViews,
    add_view,
    draw_concentration,
    draw_index,
    log_choices,
    put_in,
    take_out,
)
from partita.views.crosscat.state import CrossCatPlan, ViewsState


@kernel
def seat_in_order(blocks, prior, z, n, slot_of, name_of, K, rows, u, forced, start, sums):
    """Assign ``rows[start:]`` one after the other; ``sums[0]`` gains the log probability of all choices.

    ``forced[j] >= 0`` is the slot that the j-th row takes instead of a drawn one. Returns the position at which the
    slots were used up, or the number of rows.
    """
    capacity = n.shape[0]
    room = whole_blocks(capacity)
    lp, mass, w = new_scores(blocks, room), np.empty(room), np.empty(room)
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
    """A seating in which no row is assigned."""
    seating = sweep.seat(blocks, np.zeros(N, np.int64), dtype=dtype)
    for live in seating.blocks:
        live.S[:] = 0.0
    refresh_caches(seating.blocks)
    seating.n[:], seating.K[0] = 0.0, 0
    seating.slot_of[:], seating.name_of[:] = -1, -1
    return seating


def build_partition(
    blocks: Sequence[Block],
    prior: Any,
    order: np.ndarray,
    u: np.ndarray,
    dtype: type = np.float64,
    forced: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Draw a row partition sequentially from the data of the blocks; returns it with its log importance weight.

    The weight is prior times marginal likelihood divided by the probability of drawing the partition. Its expectation
    is the marginal likelihood of the blocks, summed over all partitions. ``forced`` gives the labels instead of
    drawing them.
    """
    seating = _empty(blocks, len(order), dtype)
    slots = np.full(len(order), -1)
    if forced is not None:  # new slots are used in the order of the rows
        _, first, inverse = np.unique(forced[order], return_index=True, return_inverse=True)
        slots = np.argsort(np.argsort(first))[inverse]
    done, sums = 0, np.zeros(1)
    while (
        done := seat_in_order(erase(seating.blocks), prior, *seating[1:], order, u, slots, done, sums)
    ) < len(order):
        seating = sweep.grow(seating)
    K = int(seating.K[0])
    log_p = log_eppf(prior, sweep.sizes(seating), K)
    log_p += sum(log_marginals(live.family, live.S[:, :K]).sum() for live in seating.blocks)
    return sweep.labels(seating), float(log_p - sums[0])


def log_partition_weight(
    blocks: Sequence[Block], prior: Any, z: np.ndarray, order: np.ndarray, dtype: type = np.float64
) -> float:
    """The log importance weight of a given row partition."""
    return build_partition(blocks, prior, order, np.zeros(len(order)), dtype, forced=z)[1]


def propose_birth_or_death(
    state: ViewsState,
    views: CandidateViews,
    unit: int,
    blocks: Sequence[Block],
    plan: CrossCatPlan,
    rng: np.random.Generator,
) -> str:
    """Propose a new view for a unit, or, if it is alone in its view, to join another one.

    Returns "birth", "death" or "rejected".
    """
    old = take_out(state, views, unit)
    N = len(views.labels[0])
    order, u = rng.permutation(N), rng.random(N)
    log_others = log_choices(state, views, unit)
    log_new = math.log(state.prior.concentration) + gammaln(state.layout.sizes[unit])
    if views.units[old]:
        prior = draw_concentration(plan, rng)
        z, log_weight = build_partition(blocks, prior, order, u, plan.dtype)
        if math.log(rng.random()) < log_new + log_weight - logsumexp(log_others):
            put_in(state, views, unit, add_view(state, views, z, prior))
            return "birth"
    elif np.isfinite(log_others).any():
        log_weight = log_partition_weight(blocks, views.priors[old], views.labels[old], order, plan.dtype)
        if math.log(rng.random()) < logsumexp(log_others) - log_new - log_weight:
            put_in(state, views, unit, draw_index(log_others, rng))
            return "death"
    put_in(state, views, unit, old)
    return "rejected"
