"""The feature step: draw all memberships of a column at once, column after column.

A view with m other columns has the prior odds ``m / (beta + D - 1 - m)``. The number of views that belong to one column
alone is Poisson; new ones have labels from the prior (Ghahramani, Griffiths and Sollich 2007).
"""

from __future__ import annotations

import functools
import itertools
from math import comb
from typing import Any

import numpy as np

from partita.dispatch import kernel
from partita.partitions import DirichletProcess
from partita.partitions import simulate as simulate_labels
from partita.partitions.buffet import log_odds, new_dish_rate
from partita.views.overlapping.state import OverlapState, add_view, by_views, without_views


def subsets_up_to(V: int, max_size: int) -> list[tuple[int, ...]]:
    """All sets of at most ``max_size`` views, the empty set first.

    Examples
    --------
    >>> subsets_up_to(3, 2)
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    return [s for r in range(min(max_size, V) + 1) for s in itertools.combinations(range(V), r)]


def count_subsets(V: int, max_size: int) -> int:
    """The number of these sets."""
    return sum(comb(V, r) for r in range(min(max_size, V) + 1))


def feature_step(
    data: Any,
    state: OverlapState,
    rng: np.random.Generator,
    *,
    max_per_column: int,
    max_views: int,
    max_listed: int | None = None,
) -> OverlapState:
    """Draw the memberships of all columns given the labels of the rows; leaves the posterior invariant."""
    if not state.Z and max_views == 0:
        return state
    max_listed = data.max_listed if max_listed is None else max_listed
    scores, listed = _list_scores(data, state, max_per_column, max_listed)
    for d in rng.permutation(len(state.Y)):
        Y = state.Y.copy()
        m = Y.sum(axis=0) - Y[d]
        odds = np.where(m > 0, log_odds(state.buffet, m, len(Y)), 0.0)
        if listed is None:
            Y[d] = _draw_one_by_one(scores, d, Y[d], m > 0, odds, max_per_column, rng)
        else:
            members, values = listed
            Y[d] = members[draw_subset(members, values[d], Y[d], m > 0, odds, rng.random())]
        state = state._replace(Y=Y)
        moved = _own_views(data, state, scores, d, m, max_per_column, max_views, rng)
        if moved is not state:
            state = moved
            scores, listed = _list_scores(data, state, max_per_column, max_listed)
    return without_views(state, ~state.Y.any(axis=0))


@kernel
def draw_subset(members, values, y, shared, odds, u):
    """Draw a set of views (a row of ``members``) of a column from a uniform number.

    ``values`` are the scores of the column; in views that are not shared its memberships ``y`` stay.
    """
    n, V = members.shape
    lp, top = np.empty(n), -np.inf
    for s in range(n):
        lp[s] = values[s]
        for v in range(V):
            if not shared[v]:
                if members[s, v] != y[v]:
                    lp[s] = -np.inf
            elif members[s, v]:
                lp[s] += odds[v]
        top = max(top, lp[s])
    total = 0.0
    for s in range(n):
        total += np.exp(lp[s] - top)
        lp[s] = total
    for s in range(n):
        if lp[s] > u * total:
            return s
    return n - 1


def _list_scores(data: Any, state: OverlapState, max_per_column: int, max_listed: int) -> tuple[Any, Any]:
    """Scores given the labels; if there are at most ``max_listed`` subsets, also [subset, view], [column, subset]."""
    scores = data.scores(state.Z, state.hyper)
    V = state.n_views
    if count_subsets(V, max_per_column) > max_listed:
        return scores, None
    M = _listed_members(V, max_per_column)
    return scores, (M, np.ascontiguousarray(scores.of(subsets_up_to(V, max_per_column)).T))


@functools.lru_cache(maxsize=64)
def _listed_members(V: int, max_size: int) -> np.ndarray:
    """The sets of :func:`subsets_up_to` as a matrix [subset, view]."""
    subsets = subsets_up_to(V, max_size)
    M = np.zeros((len(subsets), V), dtype=bool)
    for i, s in enumerate(subsets):
        M[i, list(s)] = True
    M.flags.writeable = False
    return M


def _draw_one_by_one(scores, d, y, shared, odds, max_per_column, rng) -> np.ndarray:
    y = y.copy()
    order = np.flatnonzero(shared)
    for v in order if rng is None else rng.permutation(order):
        if y.sum() - y[v] >= max_per_column:
            continue
        y[v] = True
        gain = odds[v] + scores(tuple(np.flatnonzero(y)))[d]
        y[v] = False
        gain -= scores(tuple(np.flatnonzero(y)))[d]
        y[v] = gain > 0 if rng is None else rng.random() < 1.0 / (1.0 + np.exp(-np.clip(gain, -700, 700)))
    return y


def _own_views(data, state, scores, d, m, max_per_column, max_views, rng) -> OverlapState:
    """Replace the views of column d alone: number and labels proposed from the prior, accepted by the likelihood."""
    own = np.flatnonzero(state.Y[d] & (m == 0))
    n_new = rng.poisson(new_dish_rate(state.buffet, len(state.Y)))
    if n_new == 0 and len(own) == 0:
        return state
    shared = state.Y[d] & (m > 0)
    if shared.sum() + n_new > max_per_column or (m > 0).sum() + n_new > max_views:
        return state
    trial = state
    prior = DirichletProcess(state.concentration)
    for _ in range(n_new):
        trial = add_view(trial, simulate_labels(prior, data.n_rows, rng), [d])
    Y = trial.Y.copy()
    Y[d, own] = False
    # Views without columns are dropped at once: no other column may join them, and the prior does not count them.
    trial = without_views(trial._replace(Y=Y), ~Y.any(axis=0))
    now = scores.of_columns(tuple(np.flatnonzero(state.Y[d])), [d])[0]
    then = data.scores(trial.Z, state.hyper).of_columns(tuple(np.flatnonzero(trial.Y[d])), [d])[0]
    return trial if np.log(rng.random()) < then - now else state


def choose_views(
    data: Any, state: OverlapState, *, max_per_column: int, views: Any = None, rounds: int = 2
) -> OverlapState:
    """The most probable memberships given the labels, for a search; views without columns are dropped.

    With ``views`` only memberships in these views change, one at a time.
    """
    if not state.Z:
        return state
    scores, listed = _list_scores(data, state, max_per_column, data.max_listed if views is None else 0)
    if views is not None and len(views) == 1:
        return _choose_one_view(scores, state, int(views[0]), max_per_column, rounds)
    chosen = np.ones(state.n_views, dtype=bool) if views is None else np.isin(np.arange(state.n_views), views)
    columns = None if listed is None else listed[1]
    for _ in range(rounds):
        Y, total = state.Y.copy(), state.Y.sum(axis=0)
        known: dict[
            bytes, np.ndarray
        ] = {}  # log prior by the present memberships of a column, until any changes
        for d in range(len(Y)):
            key = Y[d].tobytes()
            if key not in known:
                m = np.maximum(total - Y[d], 0.3)  # so that a view of a single column is not excluded
                odds = log_odds(state.buffet, m, len(Y))
                known[key] = odds if listed is None else listed[0] @ odds
            if columns is None:
                new = _draw_one_by_one(scores, d, Y[d], chosen, known[key], max_per_column, None)
            else:
                new = listed[0][int((columns[d] + known[key]).argmax())]
            if not np.array_equal(new, Y[d]):
                total = total + new.astype(int) - Y[d]
                Y[d] = new
                known.clear()
        if np.array_equal(Y, state.Y):
            break
        state = state._replace(Y=Y)
    return without_views(state, ~state.Y.any(axis=0))


def _choose_one_view(
    scores: Any, state: OverlapState, v: int, max_per_column: int, rounds: int
) -> OverlapState:
    """The most probable columns of one view; columns with the same other views are scored together."""
    Y = state.Y.copy()
    Y[:, v] = False
    gain = np.full(len(Y), -np.inf)
    for others, columns in by_views(Y).items():
        if len(others) < max_per_column:
            beside = tuple(sorted((*others, v)))
            gain[columns] = scores.of_columns(beside, columns) - scores.of_columns(others, columns)
    Y[:, v] = state.Y[:, v]
    for _ in range(rounds):
        before = Y[:, v].copy()
        for d in range(len(Y)):
            m = max(Y[:, v].sum() - Y[d, v], 0.3)  # so that a view of a single column is not excluded
            Y[d, v] = gain[d] + log_odds(state.buffet, m, len(Y)) > 0
        if np.array_equal(before, Y[:, v]):
            break
    state = state._replace(Y=Y)
    return without_views(state, ~Y.any(axis=0))
