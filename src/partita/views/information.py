"""Mutual information of pairs of columns under draws: exactly 0 for columns that share no view, and never negative.

Two columns of a factor are independent given the state of the row. Each column is represented by a few points: all
levels of a column of codes, points drawn from the predictive of a numeric column. The probability of a point in a
state is its density there divided by its marginal density, normalized to sum to one in every state. The pair is then a
table of proper probabilities, whose mutual information cannot be negative. As the number of points grows it converges
to the mutual information of the columns. The lump of a column with two parts is a point of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from partita.families import Counts
from partita.families.registry import entry_of
from partita.labels.information import mutual_information
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.predictive import draw_cells, level_probabilities, parts_in, score_block


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


Points = dict[int, np.ndarray]  # by the number of a factor: probabilities of points, [state, point]


def column_points(draw: Draw, column: int, n_points: int, rng: np.random.Generator) -> list[Points]:
    """The points that represent a column: those of one part, and the lump of a column that has one.

    The probability of a point is the product of what the factors give. ``draw`` has states with data only.
    """
    lump, (factor, part) = parts_in(draw, column)
    at, weights = _number(draw, factor), _weights(factor)
    if lump is None:
        return [{at: point_probabilities(part, weights, n_points, rng)}]
    P, of_lump = level_probabilities(lump.part), _number(draw, lump.factor)
    if of_lump != at:
        return [
            {of_lump: P[:, :1]},
            {of_lump: P[:, 1:], at: point_probabilities(part, weights, n_points, rng)},
        ]
    seen = weights * P[:, 1]
    return [{at: P[:, :1]}, {at: P[:, 1:] * point_probabilities(part, seen / seen.sum(), n_points, rng)}]


def _number(draw: Draw, factor: Factor) -> int:
    return next(i for i, other in enumerate(draw.factors) if other is factor)


def _weights(factor: Factor) -> np.ndarray:
    return np.exp(factor.log_weights - logsumexp(factor.log_weights))


def points_information(draw: Draw, one: Sequence[Points], other: Sequence[Points]) -> float:
    """Mutual information of two columns given by their points; the states of different factors are independent."""
    blocks = [[_joint(draw, a, b) for b in other] for a in one]
    return mutual_information(np.block(blocks))


def _joint(draw: Draw, one: Points, other: Points) -> np.ndarray:
    """Probabilities of pairs of points: [point, point]."""
    out = np.ones((1, 1))
    for at in sorted({*one, *other}):
        none = np.ones((len(draw.factors[at].log_weights), 1))
        out = out * ((one.get(at, none).T * _weights(draw.factors[at])) @ other.get(at, none))
    shape = (max(P.shape[1] for P in one.values()), max(P.shape[1] for P in other.values()))
    return np.broadcast_to(out, shape)


def draw_information(
    draw: Draw, columns: Sequence[int], n_points: int, rng: np.random.Generator
) -> dict[tuple[int, int], float]:
    """Mutual information of the pairs of the given columns that share a factor with at least two states."""
    draw = draw._replace(factors=tuple(occupied(factor) for factor in draw.factors))
    held = [set(f.columns.tolist()) if len(f.log_weights) > 1 else set() for f in draw.factors]
    pairs = [
        (a, b)
        for i, a in enumerate(columns)
        for b in columns[i + 1 :]
        if any(a in f and b in f for f in held)
    ]
    points = {c: column_points(draw, c, n_points, rng) for c in sorted({c for pair in pairs for c in pair})}
    return {(a, b): points_information(draw, points[a], points[b]) for a, b in pairs}


def mutual_information_matrix(
    draws: Sequence[Draw], columns: Sequence[int], rng: np.random.Generator, n_points: int = 200
) -> np.ndarray:
    """Mean over draws of the mutual information of each pair, in nats: [column, column]; the diagonal is NaN."""
    place = {c: i for i, c in enumerate(columns)}
    out = np.zeros((len(columns), len(columns)))
    for draw in draws:
        for (a, b), value in draw_information(draw, columns, n_points, rng).items():
            out[place[a], place[b]] += value / len(draws)
            out[place[b], place[a]] = out[place[a], place[b]]
    np.fill_diagonal(out, np.nan)
    return out
