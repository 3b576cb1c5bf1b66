"""Mutual information of columns under draws: exactly 0 where columns share no view, and never negative.

Two columns of a factor are independent given the state of the row. Each is replaced by a few points that stand for its
values: all levels of codes, for numbers points drawn from its predictive. The chance of a point in a state is its
density there over its density at large, made to sum to one in every state. So the pair is a table of proper
probabilities, whose information no rounding makes negative; it is that of the columns themselves as points get many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from partita.families import Counts
from partita.families.registry import entry_of
from partita.labels.information import mutual_information
from partita.views.base import Draw, Factor
from partita.views.laws import Column, as_cells, column_law, draw_cells, level_probabilities, score_cells

__all__ = ["mutual_information_matrix", "occupied", "states_with_data"]


def point_chances(law: Column, weights: np.ndarray, n_points: int, rng: np.random.Generator) -> np.ndarray:
    """Chance of each of the points that stand for a column, in every state: [state, point], rows sum to one."""
    if entry_of(law.family).kind in ("binary", "categorical"):
        return level_probabilities(law)
    # as many points from each state as its weight asks, at random only in the remainder
    reached = np.searchsorted(np.cumsum(weights), (np.arange(n_points) + rng.random()) / n_points)
    states = np.minimum(reached, len(weights) - 1)
    cells = as_cells(law)
    points = draw_cells(cells, states, rng)
    if entry_of(law.family).kind == "count":
        points = np.unique(points, axis=0)
        data = Counts(points, np.ones(len(points)))
    else:
        data = points
    L = score_cells(cells._replace(positions=np.array([0])), data).T  # [state, point]
    if (
        entry_of(law.family).kind != "count"
    ):  # drawn points come as often as they are likely; counts once each
        L = L - logsumexp(L, axis=0, b=weights[:, None], keepdims=True)
    P = np.exp(L - L.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def states_with_data(factor: Factor) -> np.ndarray:
    """Which states have data: [state] bool."""
    used = np.zeros(len(factor.log_weights), bool)
    for cells in factor.cells:
        used |= (cells.S != 0.0).any(axis=0)
    return used


def occupied(factor: Factor) -> Factor:
    """The states that have data: a cluster that may come one day tells nothing of how columns go together."""
    used = states_with_data(factor)
    cut = tuple(cells._replace(S=np.ascontiguousarray(cells.S[:, used])) for cells in factor.cells)
    return Factor(factor.columns, factor.log_weights[used], cut)


def factor_information(
    factor: Factor, columns: Sequence[int], n_points: int, rng: np.random.Generator
) -> dict[tuple[int, int], float]:
    """Information of all pairs of the given columns that are in a factor."""
    factor = occupied(factor)
    here = [c for c in columns if c in set(factor.columns.tolist())]
    if len(factor.log_weights) < 2:
        return {}
    weights = np.exp(factor.log_weights - logsumexp(factor.log_weights))
    chances = {c: point_chances(column_law(factor, c), weights, n_points, rng) for c in here}
    out = {}
    for i, a in enumerate(here):
        joint = chances[a].T * weights
        for b in here[i + 1 :]:
            out[a, b] = mutual_information(joint @ chances[b])
    return out


def mutual_information_matrix(
    draws: Sequence[Draw], columns: Sequence[int], rng: np.random.Generator, n_points: int = 200
) -> np.ndarray:
    """Mean information of each pair of columns over the draws, in nats: [column, column]; the diagonal is NaN."""
    place = {c: i for i, c in enumerate(columns)}
    out = np.zeros((len(columns), len(columns)))
    for draw in draws:
        for factor in draw.factors:
            for (a, b), value in factor_information(factor, columns, n_points, rng).items():
                out[place[a], place[b]] += value / len(draws)
                out[place[b], place[a]] = out[place[a], place[b]]
    np.fill_diagonal(out, np.nan)
    return out
