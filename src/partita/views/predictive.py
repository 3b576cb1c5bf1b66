"""The predictive distribution of a row under a draw: densities, moments and simulated cells, factor by factor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from partita.engines.passes.rows import n_cache
from partita.families import Bernoulli, Categorical, Counts, Exponential, GaussianDiagonal, Poisson, n_rows
from partita.families.columns import take_columns, take_data
from partita.families.contract import draw as draw_parameters
from partita.families.contract import n_columns, simulate, stats_start, summarize
from partita.families.rows import refresh_clusters, score_rows
from partita.views.draws import Draw, Factor, FactorBlock


def score_block(part: FactorBlock, data: Any) -> np.ndarray:
    """Log predictive density of each row in each state, summed over the columns of a block: [row, state]."""
    J = part.S.shape[1]
    C = np.zeros((n_cache(part.family), J))
    refresh_clusters(part.family, part.S, C, J)
    shown = take_data(data, part.positions)
    L = np.zeros((n_rows(shown), J))
    score_rows(part.family, shown, np.arange(len(L)), C, L)
    return L


def log_states(factor: Factor, data: Sequence[Any]) -> np.ndarray:
    """Log joint density of the cells of each row and its state: [row, state]; missing cells are left out."""
    L = np.tile(factor.log_weights, (n_rows(data[0]), 1))
    for part in factor.blocks:
        if len(part.positions):
            L += score_block(part, data[part.block])
    return L


def log_density_rows(draw: Draw, data: Sequence[Any]) -> np.ndarray:
    """Log density of each row under one draw, in the units of the families (real columns standardized)."""
    return sum(
        (logsumexp(log_states(factor, data), axis=1) for factor in draw.factors), np.zeros(n_rows(data[0]))
    )


def part_alone(block: FactorBlock, at: int) -> FactorBlock:
    """One part of a block by itself, with its statistics in every state."""
    lo, hi = (int(stats_start(block.family, at + step)) for step in (0, 1))
    family = take_columns(block.family, np.array([at]))
    return FactorBlock(int(block.block), block.positions[[at]], family, np.ascontiguousarray(block.S[lo:hi]))


def column_parts(factor: Factor, column: int) -> list[FactorBlock]:
    """The parts of a column that are in a factor, each by itself; the one of the lump comes first."""
    out, start = [], 0
    for block in factor.blocks:
        mine = np.flatnonzero(factor.columns[start : start + len(block.positions)] == column)
        out += [part_alone(block, int(at)) for at in mine]
        start += len(block.positions)
    return sorted(out, key=lambda part: not isinstance(part.family, Bernoulli))


class PlacedPart(NamedTuple):
    """A part of a column, and the factor that it is in."""

    factor: Factor
    part: FactorBlock


def parts_in(draw: Draw, column: int) -> tuple[PlacedPart | None, PlacedPart]:
    """The part of a column that is its lump, if it has two parts, and the other one."""
    found = [
        PlacedPart(factor, part)
        for factor in draw.factors
        if column in factor.columns
        for part in column_parts(factor, column)
    ]
    found.sort(key=lambda one: not isinstance(one.part.family, Bernoulli))
    return (None if len(found) == 1 else found[0]), found[-1]


@singledispatch
def predictive_moments(family: Any, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a new cell of one numeric column in every state, parameters integrated out."""
    raise NotImplementedError(f"{type(family).__name__} has no moments of a new cell")


@predictive_moments.register(GaussianDiagonal)
def _(family, S):
    found = summarize(family, S)
    spread = found["variances"][:, 0] * (
        1.0 + 1.0 / (family.k + S[0])
    )  # variance of the cell plus that of its mean
    return found["means"][:, 0], spread


@predictive_moments.register(Poisson)
def _(family, S):
    rate = summarize(family, S)["rates"][:, 0]
    return rate, rate + rate / (family.b + S[0])


@predictive_moments.register(Exponential)
def _(family, S):
    a, b = family.a + S[0], family.b + S[1]
    mean = b / np.maximum(a - 1.0, 0.5)  # the mean is finite for a > 1, the variance for a > 2
    return mean, mean**2 * a / np.maximum(a - 2.0, 0.5)


def level_probabilities(column: FactorBlock) -> np.ndarray:
    """Probability of every level of a column of codes: [state, level]."""
    P = summarize(column.family, column.S)["probabilities"]
    return P if isinstance(column.family, Categorical) else np.column_stack([1.0 - P[:, 0], P[:, 0]])


def draw_cells(
    part: FactorBlock, states: np.ndarray, rng: np.random.Generator, exposure: Any = 1.0
) -> np.ndarray:
    """Simulate cells of rows in the given states, with newly drawn parameters per row: [row, column].

    ``exposure`` is that of counts, for all rows or each of them.
    """
    if not int(n_columns(part.family)):
        return np.empty((len(states), 0))
    theta = draw_parameters(part.family, np.ascontiguousarray(part.S[:, states]), rng)
    if isinstance(part.family, Poisson):
        theta = theta * exposure  # of which only the rates are read
    data = simulate(part.family, theta, np.arange(len(states)), rng)
    return np.asarray(data.X if isinstance(data, Counts) else data)
