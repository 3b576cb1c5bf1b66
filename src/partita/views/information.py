"""Mutual information of pairs of columns under draws: exactly 0 for columns that share no view, and never negative.

Two columns of a factor are independent given the state of the row. Each column is represented by a few points: all
levels of a column of codes, points drawn from the predictive of a numeric column. The probability of a point in a
state is its density there divided by its marginal density, normalized to sum to one in every state. The pair is then a
table of proper probabilities, whose mutual information cannot be negative. As the number of points grows it converges
to the mutual information of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from partita.families import Counts
from partita.families.registry import entry_of
from partita.labels.information import mutual_information
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.predictive import column_block, draw_cells, level_probabilities, score_block


def point_probabilities(
    column: FactorBlock, weights: np.ndarray, n_points: int, rng: np.random.Generator
) -> np.ndarray:
    """Probability of each point that represents a column in every state: [state, point]; rows sum to one."""
    if entry_of(column.family).kind in ("binary", "categorical"):
        return level_probabilities(column)
    # Systematic sampling: points per state in proportion to its weight, random only in the remainder.
    reached = np.searchsorted(np.cumsum(weights), (np.arange(n_points) + rng.random()) / n_points)
    states = np.minimum(reached, len(weights) - 1)
    points = draw_cells(column, states, rng)
    is_count = entry_of(column.family).kind == "count"
    if is_count:
        points = np.unique(points, axis=0)
        data = Counts(points, np.ones(len(points)))
    else:
        data = points
    L = score_block(column._replace(positions=np.array([0])), data).T  # [state, point]
    if not is_count:  # drawn points are as frequent as they are probable, but distinct counts occur once each
        L = L - logsumexp(L, axis=0, b=weights[:, None], keepdims=True)
    P = np.exp(L - L.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def states_with_data(factor: Factor) -> np.ndarray:
    """Whether each state has data: [state] bool."""
    used = np.zeros(len(factor.log_weights), bool)
    for part in factor.blocks:
        used |= (part.S != 0.0).any(axis=0)
    return used


def occupied(factor: Factor) -> Factor:
    """The factor without the states that have no data, which contain no information about dependence."""
    used = states_with_data(factor)
    cut = tuple(part._replace(S=np.ascontiguousarray(part.S[:, used])) for part in factor.blocks)
    return Factor(factor.columns, factor.log_weights[used], cut)


def factor_information(
    factor: Factor, columns: Sequence[int], n_points: int, rng: np.random.Generator
) -> dict[tuple[int, int], float]:
    """Mutual information of all pairs of the given columns that are in a factor."""
    factor = occupied(factor)
    here = [c for c in columns if c in set(factor.columns.tolist())]
    if len(factor.log_weights) < 2:
        return {}
    weights = np.exp(factor.log_weights - logsumexp(factor.log_weights))
    points = {c: point_probabilities(column_block(factor, c), weights, n_points, rng) for c in here}
    out = {}
    for i, a in enumerate(here):
        joint = points[a].T * weights
        for b in here[i + 1 :]:
            out[a, b] = mutual_information(joint @ points[b])
    return out


def mutual_information_matrix(
    draws: Sequence[Draw], columns: Sequence[int], rng: np.random.Generator, n_points: int = 200
) -> np.ndarray:
    """Mean over draws of the mutual information of each pair, in nats: [column, column]; the diagonal is NaN."""
    place = {c: i for i, c in enumerate(columns)}
    out = np.zeros((len(columns), len(columns)))
    for draw in draws:
        for factor in draw.factors:
            for (a, b), value in factor_information(factor, columns, n_points, rng).items():
                out[place[a], place[b]] += value / len(draws)
                out[place[b], place[a]] = out[place[a], place[b]]
    np.fill_diagonal(out, np.nan)
    return out
