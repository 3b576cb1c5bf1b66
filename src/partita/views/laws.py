"""The law of a row under a draw: densities, moments and new cells, factor by factor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from partita.engines.passes.rows import n_cache
from partita.families import Counts, Exponential, GaussianDiagonal, Poisson, n_rows
from partita.families.contract import draw as draw_parameters
from partita.families.contract import n_columns, simulate, stats_start, summarize
from partita.families.rows import refresh_clusters, score_rows
from partita.views.base import Cells, Draw, Factor
from partita.views.crosscat.layout import take_columns, take_data

__all__ = [
    "Column",
    "column_law",
    "draw_cells",
    "level_probabilities",
    "log_density_rows",
    "log_states",
    "score_cells",
]


def score_cells(cells: Cells, data: Any) -> np.ndarray:
    """Log predictive of the cells of each row in each state, summed over the columns: [row, state]."""
    J = cells.S.shape[1]
    C = np.zeros((n_cache(cells.family), J))
    refresh_clusters(cells.family, cells.S, C, J)
    shown = take_data(data, cells.positions)
    L = np.zeros((n_rows(shown), J))
    score_rows(cells.family, shown, np.arange(len(L)), C, L)
    return L


def log_states(factor: Factor, data: Sequence[Any]) -> np.ndarray:
    """Log joint of each row's cells and of its state: [row, state]; missing cells do not count."""
    L = np.tile(factor.log_weights, (n_rows(data[0]), 1))
    for cells in factor.cells:
        if len(cells.positions):
            L += score_cells(cells, data[cells.block])
    return L


def log_density_rows(draw: Draw, data: Sequence[Any]) -> np.ndarray:
    """Log density of each row under one draw, as the families see it (real columns standardised)."""
    return sum(
        (logsumexp(log_states(factor, data), axis=1) for factor in draw.factors), np.zeros(n_rows(data[0]))
    )


class Column(NamedTuple):
    """One column of a factor: its family alone, the statistics of its states, and where it is."""

    family: Any
    S: np.ndarray
    block: int
    position: int


def column_law(factor: Factor, column: int) -> Column:
    """The law of one column in every state of its factor."""
    at = int(np.flatnonzero(factor.columns == column)[0])
    for cells in factor.cells:
        if at < len(cells.positions):
            lo, hi = (int(stats_start(cells.family, at + step)) for step in (0, 1))
            family = take_columns(cells.family, np.array([at]))
            return Column(family, cells.S[lo:hi], int(cells.block), int(cells.positions[at]))
        at -= len(cells.positions)
    raise ValueError(f"column {column} is not in this factor")


def as_cells(law: Column) -> Cells:
    """One column as cells of its own."""
    return Cells(law.block, np.array([law.position]), law.family, np.ascontiguousarray(law.S))


# ---- moments of a new cell -------------------------------------------------------------------------------------


@singledispatch
def predictive_moments(family: Any, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a new cell in every state, parameters integrated out (of one column of numbers)."""
    raise NotImplementedError(f"{type(family).__name__} has no moments of a new cell")


@predictive_moments.register(GaussianDiagonal)
def _(family, S):
    found = summarize(family, S)
    spread = found["variances"][:, 0] * (1.0 + 1.0 / (family.k + S[0]))  # of the cell, and of its mean
    return found["means"][:, 0], spread


@predictive_moments.register(Poisson)
def _(family, S):
    rate = summarize(family, S)["rates"][:, 0]
    return rate, rate + rate / (family.b + S[0])


@predictive_moments.register(Exponential)
def _(family, S):
    a, b = family.a + S[0], family.b + S[1]
    mean = b / np.maximum(a - 1.0, 0.5)  # a mean exists above one observation, a variance above two
    return mean, mean**2 * a / np.maximum(a - 2.0, 0.5)


def level_probabilities(law: Column) -> np.ndarray:
    """Probability of every level of a column of codes: [state, level]."""
    P = summarize(law.family, law.S)["probabilities"]
    return P if type(law.family).__name__ == "Categorical" else np.column_stack([1.0 - P[:, 0], P[:, 0]])


# ---- new cells -------------------------------------------------------------------------------------------------


def draw_cells(cells: Cells, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """New cells for rows in the given states, each with parameters of its own draw: [row, column]."""
    if not int(n_columns(cells.family)):
        return np.empty((len(states), 0))
    theta = draw_parameters(cells.family, np.ascontiguousarray(cells.S[:, states]), rng)
    data = simulate(cells.family, theta, np.arange(len(states)), rng)
    return np.asarray(data.X if isinstance(data, Counts) else data)
