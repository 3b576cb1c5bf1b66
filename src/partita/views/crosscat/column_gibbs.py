"""The Gibbs step over columns: each unit of columns draws its view given the views of all other units.

A unit may join a view that exists, or an empty view whose row partition is drawn from the prior (Neal 2000, algorithm
8). Forbidden pairs of units exclude each other's views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.dispatch import kernel
from partita.engines.gibbs import sweep
from partita.partitions import DirichletProcess
from partita.views.crosscat.layout import Layout, evidence
from partita.views.crosscat.state import CrossCatPlan, ViewsState, open_view

LOG_ZERO = -np.inf
MIN_CONCENTRATION = 1e-300


@kernel
def draw_restaurant(concentration, u, z):
    """Draw labels from the Chinese restaurant process, one uniform per object; returns the number of clusters."""
    K = 0
    for i in range(z.shape[0]):
        t = u[i] * (concentration + i) - concentration
        if t < 0.0 or i == 0:
            z[i] = K
            K += 1
        else:  # take the label of an earlier object, drawn uniformly
            z[i] = z[min(int(t), i - 1)]
    return K


def draw_concentration(plan: CrossCatPlan, rng: np.random.Generator) -> DirichletProcess:
    """The prior of the row partition of a new view; its concentration is drawn unless the plan fixes it."""
    value = rng.exponential() if plan.concentration is None else plan.concentration
    return DirichletProcess(max(float(value), MIN_CONCENTRATION))


class CandidateViews(NamedTuple):
    """The views during the column step, as parallel lists that are changed in place; a view may be empty."""

    labels: list[np.ndarray]  # of the rows in each view
    priors: list[Any]  # of the row partition of each view
    scores: list[np.ndarray]  # log evidence of every unit under each view
    units: list[set[int]]  # in each view
    source: list[int]  # number of the view in the state before the step, -1 for a new view
    view_of_unit: np.ndarray
    n_columns: np.ndarray  # of each view, with entries for all views that may be added


def unit_sums(layout: Layout, by_column: np.ndarray) -> np.ndarray:
    """Sums over the columns of each unit."""
    return np.array([by_column[unit].sum() for unit in layout.units])


def gather_views(state: ViewsState) -> CandidateViews:
    """The views of a state, with the evidence of every unit under each of them."""
    labels = [sweep.labels(view.chain.seating) for view in state.views]
    scores = [
        unit_sums(state.layout, evidence(state.layout.blocks, state.families, z, int(z.max()) + 1))
        for z in labels
    ]
    view_of_unit = np.empty(len(state.layout.units), np.int64)
    n_columns = np.zeros(3 * len(labels) + 2 * len(view_of_unit) + 8)
    for v, view in enumerate(state.views):
        view_of_unit[list(view.units)] = v
        n_columns[v] = state.layout.sizes[list(view.units)].sum()
    priors = [view.chain.prior for view in state.views]
    units = [set(view.units) for view in state.views]
    return CandidateViews(labels, priors, scores, units, list(range(len(labels))), view_of_unit, n_columns)


def take_out(state: ViewsState, views: CandidateViews, unit: int) -> int:
    """Take a unit out of its view, which may become empty; returns that view."""
    view = int(views.view_of_unit[unit])
    views.units[view].discard(unit)
    views.n_columns[view] -= state.layout.sizes[unit]
    return view


def put_in(state: ViewsState, views: CandidateViews, unit: int, view: int) -> None:
    """Put a unit into a view."""
    views.units[view].add(unit)
    views.n_columns[view] += state.layout.sizes[unit]
    views.view_of_unit[unit] = view


def log_choices(state: ViewsState, views: CandidateViews, unit: int) -> np.ndarray:
    """Log weight of each view for a unit that is in no view; -inf for empty and for forbidden views."""
    size = int(state.layout.sizes[unit])
    n = views.n_columns[: len(views.labels)]
    out = np.array([scores[unit] for scores in views.scores])
    with np.errstate(divide="ignore", invalid="ignore"):
        out += np.where(n > 0, np.log(n) if size == 1 else gammaln(n + size) - gammaln(n), LOG_ZERO)
    if state.layout.apart[unit].any():
        for v, units in enumerate(views.units):
            if any(state.layout.apart[unit, other] for other in units):
                out[v] = LOG_ZERO
    return out


def choose_view(
    state: ViewsState,
    views: CandidateViews,
    unit: int,
    blocks: Sequence[Any],
    plan: CrossCatPlan,
    rng: np.random.Generator,
) -> bool:
    """Gibbs step of one unit; returns whether it moved."""
    old = take_out(state, views, unit)
    alone, log_w = not views.units[old], log_choices(state, views, unit)
    log_new = np.log(state.prior.concentration / plan.n_auxiliary) + gammaln(state.layout.sizes[unit])
    families = [block.family for block in blocks]
    new = []
    if alone:  # the view that the unit has left is the first of the empty views
        log_w[old] = log_new + views.scores[old][unit]
    for _ in range(plan.n_auxiliary - alone):
        prior, z = draw_concentration(plan, rng), np.empty(len(views.labels[0]), np.int64)
        K = draw_restaurant(prior.concentration, rng.random(len(z)), z)
        new.append((z, prior, log_new + evidence(blocks, families, z, K).sum()))
    log_w = np.append(log_w, [weight for _, _, weight in new])
    chosen = draw_index(log_w, rng)
    if chosen >= len(views.labels):
        z, prior, _ = new[chosen - len(views.labels)]
        chosen = add_view(state, views, z, prior)
    put_in(state, views, unit, chosen)
    return chosen != old


def draw_index(log_w: np.ndarray, rng: np.random.Generator) -> int:
    """Draw an index with probabilities proportional to ``exp(log_w)``."""
    reached = np.cumsum(np.exp(log_w - log_w.max()))
    return min(int(np.searchsorted(reached, rng.random() * reached[-1], side="right")), len(log_w) - 1)


def add_view(state: ViewsState, views: CandidateViews, z: np.ndarray, prior: Any) -> int:
    """Add an empty view with the row partition z; returns its number."""
    scores = evidence(state.layout.blocks, state.families, z, int(z.max()) + 1)
    views.labels.append(z)
    views.priors.append(prior)
    views.scores.append(unit_sums(state.layout, scores))
    views.units.append(set())
    views.source.append(-1)
    return len(views.labels) - 1


def apply_moves(
    state: ViewsState, views: CandidateViews, plan: CrossCatPlan, rng: np.random.Generator
) -> ViewsState:
    """The state after the column step; views whose columns changed get a new row chain, empty views are dropped."""
    kept = []
    for v, units in enumerate(views.units):
        if not units:
            continue
        old = state.views[views.source[v]] if views.source[v] >= 0 else None
        if old is not None and set(old.units) == units:
            kept.append(old)
            continue
        seed = int(rng.integers(2**62))
        kept.append(
            open_view(
                state.layout, state.reference, state.families, sorted(units), views.labels[v], views.priors[v],
                seed, plan.dtype,
            )
        )  # fmt: skip
    return state._replace(views=tuple(kept))
