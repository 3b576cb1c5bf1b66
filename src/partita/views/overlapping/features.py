"""The feature step: which views each column belongs to, a column's whole row of memberships drawn at once.

A view that other columns take has the prior odds ``m / (beta + D - 1 - m)`` with m of them; the number of views that a
column has for itself is Poisson, and new ones come with labels from the prior (Ghahramani, Griffiths and Sollich 2007).
"""

from __future__ import annotations

import itertools
from math import comb
from typing import Any

import numpy as np

from partita.partitions import DirichletProcess
from partita.partitions import simulate as simulate_labels
from partita.partitions.buffet import log_odds, new_dish_rate
from partita.views.overlapping.state import State, add_view, without_views

__all__ = ["choose_views", "feature_step"]


def subsets_up_to(V: int, largest: int) -> list[tuple[int, ...]]:
    """All sets of at most ``largest`` views, the empty one first.

    Examples
    --------
    >>> subsets_up_to(3, 2)
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    return [s for r in range(min(largest, V) + 1) for s in itertools.combinations(range(V), r)]


def count_subsets(V: int, largest: int) -> int:
    """How many there are."""
    return sum(comb(V, r) for r in range(min(largest, V) + 1))


def feature_step(
    data: Any,
    state: State,
    rng: np.random.Generator,
    *,
    largest: int,
    max_views: int,
    many: int | None = None,
) -> State:
    """Draw the memberships of all columns given the labels of rows; leaves the posterior invariant."""
    if not state.Z and max_views == 0:
        return state
    many = data.many if many is None else many
    scores, listed = _list_scores(data, state, largest, many)
    for d in rng.permutation(len(state.Y)):
        Y = state.Y.copy()
        m = Y.sum(axis=0) - Y[d]
        odds = np.where(m > 0, log_odds(state.buffet, np.maximum(m, 1), len(Y)), 0.0)
        if listed is None:
            Y[d] = _draw_one_by_one(scores, d, Y[d], m > 0, odds, largest, rng)
        else:
            Y[d] = _draw_row(listed, d, Y[d], m, odds, rng)
        state = state._replace(Y=Y)
        moved = _own_views(data, state, scores, d, m, largest, max_views, rng)
        if moved is not state:
            state = moved
            scores, listed = _list_scores(data, state, largest, many)
    return without_views(state, ~state.Y.any(axis=0))


def _list_scores(data: Any, state: State, largest: int, many: int) -> tuple[Any, Any]:
    """Scores given the labels, and those of all subsets if they are not too many: [subset, view], [subset, column]."""
    scores = data.scores(state.Z, state.hyper)
    V = state.n_views
    if count_subsets(V, largest) > many:
        return scores, None
    subsets = subsets_up_to(V, largest)
    M = np.zeros((len(subsets), V), dtype=bool)
    for i, s in enumerate(subsets):
        M[i, list(s)] = True
    return scores, (M, scores.of(subsets))


def _draw_row(listed: Any, d: int, y: np.ndarray, m: np.ndarray, odds: np.ndarray, rng: Any) -> np.ndarray:
    """A new row of memberships; views that no other column takes stay as they are. Without ``rng`` the best one."""
    M, L = listed
    alone = m == 0
    possible = (M[:, alone] == y[alone]).all(axis=1)
    lp = np.where(possible, L[:, d] + M @ odds, -np.inf)
    if rng is None:
        return M[int(lp.argmax())]
    p = np.exp(lp - lp.max())
    return M[int(rng.choice(len(p), p=p / p.sum()))]


def _draw_one_by_one(scores, d, y, shared, odds, largest, rng) -> np.ndarray:
    y = y.copy()
    order = np.flatnonzero(shared)
    for v in order if rng is None else rng.permutation(order):
        if y.sum() - y[v] >= largest:
            continue
        y[v] = True
        gain = odds[v] + scores(tuple(np.flatnonzero(y)))[d]
        y[v] = False
        gain -= scores(tuple(np.flatnonzero(y)))[d]
        y[v] = gain > 0 if rng is None else rng.random() < 1.0 / (1.0 + np.exp(-np.clip(gain, -700, 700)))
    return y


def _own_views(data, state, scores, d, m, largest, max_views, rng) -> State:
    """Propose other views for column d alone: their number and labels from the prior, accepted by the likelihood."""
    own = np.flatnonzero(state.Y[d] & (m == 0))
    n_new = rng.poisson(new_dish_rate(state.buffet, len(state.Y)))
    if n_new == 0 and len(own) == 0:
        return state
    shared = state.Y[d] & (m > 0)
    if shared.sum() + n_new > largest or (m > 0).sum() + n_new > max_views:
        return state
    trial = state
    prior = DirichletProcess(state.concentration)
    for _ in range(n_new):
        trial = add_view(trial, simulate_labels(prior, data.n_rows, rng), [d])
    Y = trial.Y.copy()
    Y[d, own] = False
    # views without columns are dropped at once: no column may take them, and none is counted
    trial = without_views(trial._replace(Y=Y), ~Y.any(axis=0))
    now = scores(tuple(np.flatnonzero(state.Y[d])))[d]
    then = data.scores(trial.Z, state.hyper)(tuple(np.flatnonzero(trial.Y[d])))[d]
    return trial if np.log(rng.random()) < then - now else state


def choose_views(data: Any, state: State, *, largest: int, views: Any = None, rounds: int = 2) -> State:
    """The best memberships of all columns given the labels, for a search; views that no column takes are dropped.

    With ``views`` only who belongs to these is looked at, one by one.
    """
    if not state.Z:
        return state
    scores, listed = _list_scores(data, state, largest, data.many if views is None else 0)
    chosen = np.ones(state.n_views, dtype=bool) if views is None else np.isin(np.arange(state.n_views), views)
    for _ in range(rounds):
        Y = state.Y.copy()
        for d in range(len(Y)):
            m = np.maximum(Y.sum(axis=0) - Y[d], 0.3)  # a view on its own is not held against it
            odds = log_odds(state.buffet, m, len(Y))
            if listed is None:
                Y[d] = _draw_one_by_one(scores, d, Y[d], chosen, odds, largest, None)
            else:
                Y[d] = _draw_row(listed, d, Y[d], m, odds, None)
        if np.array_equal(Y, state.Y):
            break
        state = state._replace(Y=Y)
    return without_views(state, ~state.Y.any(axis=0))
