"""Merge and split moves of whole views.

Columns that share a small view rarely leave it one at a time: its row partition fits them, so no single column gains by
leaving. A merge moves all units of a view into another one at once, drawn in proportion to how well it fits them. The
reverse, a split, takes some units out of a view and builds a row partition for them sequentially, as the birth move
does. The probabilities of both are known, so the acceptance probability is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, logsumexp

from partita.partitions import log_eppf
from partita.views.crosscat.birth import build_partition, log_partition_weight
from partita.views.crosscat.column_gibbs import (
    LOG_ZERO,
    CandidateViews,
    add_view,
    draw_concentration,
    draw_index,
    put_in,
    take_out,
)
from partita.views.crosscat.layout import view_blocks
from partita.views.crosscat.state import CrossCatPlan, ViewsState, columns_in


def merge_or_split(
    state: ViewsState, views: CandidateViews, plan: CrossCatPlan, rng: np.random.Generator
) -> str:
    """Propose to merge a view into another, or to split one; returns "merge", "split" or "rejected"."""
    used = [v for v, units in enumerate(views.units) if units]
    if rng.random() < 0.5:
        if len(used) < 2:
            return "rejected"
        return try_merge(state, views, used[int(rng.integers(len(used)))], len(used), plan, rng)
    view = used[int(rng.integers(len(used)))]
    if len(views.units[view]) < 2:
        return "rejected"
    return try_split(state, views, view, len(used), plan, rng)


def try_merge(
    state: ViewsState,
    views: CandidateViews,
    leaving: int,
    V: int,
    plan: CrossCatPlan,
    rng: np.random.Generator,
) -> str:
    """Propose that all units of one of V views join another."""
    units = sorted(views.units[leaving])
    log_w = log_hosts(state, views, units, leaving)
    if not np.isfinite(log_w).any():
        return "rejected"
    host = draw_index(log_w, rng)
    blocks = view_blocks(state.layout, state.families, columns_in(state.layout, units))
    order = rng.permutation(len(views.labels[0]))
    log_apart = log_partition_weight(blocks, views.priors[leaving], views.labels[leaving], order, plan.dtype)
    size = float(state.layout.sizes[units].sum())
    others = views.n_columns.copy()
    others[leaving] = 0.0
    ratio = log_split_ratio(state, views, units, others, size, host, log_apart)
    ratio += log_w[host] - logsumexp(log_w) - math.log(V)
    ratio -= log_subset(len(units) + len(views.units[host]), len(units)) - math.log(V - 1)
    if math.log(rng.random()) >= -ratio:
        return "rejected"
    for unit in units:
        take_out(state, views, unit)
        put_in(state, views, unit, host)
    return "merge"


def try_split(
    state: ViewsState, views: CandidateViews, view: int, V: int, plan: CrossCatPlan, rng: np.random.Generator
) -> str:
    """Propose a new view for some units of one of V views."""
    all_units = sorted(views.units[view])
    n_out = 1 + int(rng.integers(len(all_units) - 1))
    units = sorted(int(u) for u in rng.choice(all_units, n_out, replace=False))
    blocks = view_blocks(state.layout, state.families, columns_in(state.layout, units))
    N, prior = len(views.labels[0]), draw_concentration(plan, rng)
    z, log_apart = build_partition(blocks, prior, rng.permutation(N), rng.random(N), plan.dtype)
    for unit in units:
        take_out(state, views, unit)
    log_w = log_hosts(state, views, units)
    size = float(state.layout.sizes[units].sum())
    ratio = log_split_ratio(state, views, units, views.n_columns, size, view, log_apart)
    ratio += log_w[view] - logsumexp(log_w) - math.log(V + 1)
    ratio -= log_subset(len(all_units), n_out) - math.log(V)
    accepted = math.log(rng.random()) < ratio
    target = add_view(state, views, z, prior) if accepted else view
    for unit in units:
        put_in(state, views, unit, target)
    return "split" if accepted else "rejected"


def log_split_ratio(
    state: ViewsState,
    views: CandidateViews,
    units: Sequence[int],
    others: np.ndarray,
    size: float,
    host: int,
    log_apart: float,
) -> float:
    """Log posterior with the units in their own view minus that with the units in the host view.

    ``log_apart`` is the log importance weight of their own view. ``others`` counts the columns of all views without
    the ``size`` columns that move.
    """
    scores = float(sum(views.scores[host][unit] for unit in units))
    apart, merged = np.append(others, size), others.copy()
    merged[host] += size
    apart, merged = apart[apart > 0], merged[merged > 0]
    prior = state.prior
    return float(
        log_apart - scores + log_eppf(prior, apart, len(apart)) - log_eppf(prior, merged, len(merged))
    )


def log_hosts(
    state: ViewsState, views: CandidateViews, units: Sequence[int], leaving: int | None = None
) -> np.ndarray:
    """Log weight of each view as the host of units that are in no view, or alone in the view ``leaving``."""
    size = float(state.layout.sizes[list(units)].sum())
    n = views.n_columns[: len(views.labels)]
    out = np.array([scores[list(units)].sum() for scores in views.scores])
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(n > 0, out + gammaln(n + size) - gammaln(n), LOG_ZERO)
    if leaving is not None:
        out[leaving] = LOG_ZERO
    for v, others in enumerate(views.units):
        if others and state.layout.apart[np.ix_(list(units), sorted(others))].any():
            out[v] = LOG_ZERO
    return out


def log_subset(n: int, size: int) -> float:
    """Log probability that a split of n units draws one given subset of this size: first the size, then the units."""
    return float(gammaln(size + 1) + gammaln(n - size + 1) - gammaln(n + 1) - math.log(n - 1))
