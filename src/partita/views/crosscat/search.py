"""Search for the most probable views: a short chain, then coordinate ascent from the best state it has visited.

The ascent moves rows and columns to their most probable clusters and views until the log joint no longer increases.
The result is one state without uncertainty, in less time than the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from partita.engines.passes.rows import assign_rows, predictive
from partita.labels import canonical
from partita.partitions import log_eppf
from partita.views.crosscat.chain import chain_plan, step
from partita.views.crosscat.column_gibbs import (
    CandidateViews,
    apply_moves,
    gather_views,
    log_choices,
    put_in,
    take_out,
)
from partita.views.crosscat.row_factors import log_joint
from partita.views.crosscat.state import CrossCatPlan, ViewsState

PATIENCE = 5  # iterations without a better state that end the chain
MAX_ASCENT_STEPS = 20


def copied(state: ViewsState) -> ViewsState:
    """A copy that later steps, which change seatings in place, leave as it is."""

    def one(view):
        seating = view.chain.seating
        blocks = tuple(
            live._replace(S=live.S.copy(), C=live.C.copy(), S2=live.S2.copy(), C2=live.C2.copy())
            for live in seating.blocks
        )
        arrays = {name: getattr(seating, name).copy() for name in ("z", "n", "slot_of", "name_of", "K")}
        return view._replace(chain=view.chain._replace(seating=seating._replace(blocks=blocks, **arrays)))

    return state._replace(views=tuple(one(view) for view in state.views))


def search_views(
    state: ViewsState,
    plan: CrossCatPlan,
    rng: np.random.Generator,
    max_iter: int,
    after: Callable[[int, int, float], bool] = lambda iteration, n_views, value: False,
) -> tuple[ViewsState, list[float]]:
    """The best state found, and the best log joint after each iteration.

    ``after(iteration, n_views, log_joint)`` is called after each iteration; if it returns True the chain ends.
    """
    best, values = copied(state), [log_joint(state)]
    since = 0
    for iteration in range(max_iter):
        state = step(state, chain_plan(plan), rng)
        value = log_joint(state)
        if value > values[-1] + 1e-9 * abs(value):
            best, since = copied(state), 0
        else:
            since += 1
        values.append(max(value, values[-1]))
        if after(iteration + 1, len(state.views), value) or since >= PATIENCE:
            break
    best, value = ascend(best, plan, rng)
    return best, [*values, value]


def ascend(state: ViewsState, plan: CrossCatPlan, rng: np.random.Generator) -> tuple[ViewsState, float]:
    """Move rows and columns to their most probable places as long as the log joint increases."""
    value = log_joint(state)
    for _ in range(MAX_ASCENT_STEPS):
        views = gather_views(state)
        for v, view in enumerate(state.views):
            views.labels[v] = most_probable_labels(view)
        moved = apply_moves(state, _as_new(views), plan, rng)
        views = gather_views(moved)
        for unit in range(len(state.layout.units)):
            take_best(moved, views, unit)
        moved = apply_moves(moved, views, plan, rng)
        new = log_joint(moved)
        if not new > value + 1e-9 * abs(value):
            break
        state, value = moved, new
    return state, value


def most_probable_labels(view: Any) -> np.ndarray:
    """The cluster with the highest predictive probability for each row, all rows at once."""
    seating = view.chain.seating
    K = int(seating.K[0])
    S = [np.ascontiguousarray(live.S[:, :K]) for live in seating.blocks]
    score = predictive(seating.blocks, S, np.log(seating.n[:K]))
    return canonical(assign_rows(score, len(seating.z)).labels)


def _as_new(views: CandidateViews) -> CandidateViews:
    """The views marked as new, so that each gets a new row chain."""
    return views._replace(source=[-1] * len(views.labels))


def take_best(state: ViewsState, views: CandidateViews, unit: int) -> None:
    """Move a unit to the best of the existing views; its own view is among them if the unit is alone there."""
    old = take_out(state, views, unit)
    log_w = log_choices(state, views, unit)
    if not views.units[old]:
        log_new = np.log(state.prior.concentration) + gammaln(state.layout.sizes[unit])
        K = int(views.labels[old].max()) + 1
        n = np.bincount(views.labels[old]).astype(float)
        # if the unit leaves, the prior probability of the row partition of its view leaves the joint as well
        log_w[old] = log_new + views.scores[old][unit] + log_eppf(views.priors[old], n, K)
    put_in(state, views, unit, int(np.argmax(log_w)))
