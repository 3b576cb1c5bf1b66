"""Rows as a draw reads them: their row factors are estimated, and real cells are reduced by what is due to these.

Given its row factors, a row has the product form that all queries use. The row factors of a new row are not known, so
they are set to their most probable values, by turns with the states of the row. Densities are corrected by Laplace's
approximation, which is exact if the states of the row are certain, its real cells normal and the gains 0. With gains,
cells are divided by the size of the row, their noise included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from partita.families import GaussianDiagonal, n_rows
from partita.views.draws import Draw, Factor
from partita.views.nuisance import draw_row_factors, row_precisions, row_sizes, safe_sizes
from partita.views.predictive import column_block, log_states, predictive_moments

N_STEPS = 10


class PlacedRows(NamedTuple):
    """Rows under one draw."""

    data: Sequence[Any]  # of the blocks, real columns without what is due to the row factors
    rows: np.ndarray  # row factors, [row, rank]
    precision: np.ndarray  # of their posterior, [row, rank, rank]
    log_correction: np.ndarray  # [row]: what the log density given the row factors lacks
    gain: np.ndarray  # [rank]

    @property
    def sizes(self) -> np.ndarray:
        """Size of each row."""
        return safe_sizes(row_sizes(self.rows, self.gain))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Row factors drawn from their approximate posterior."""
        L = np.linalg.cholesky(self.precision).transpose(0, 2, 1)
        return self.rows + np.linalg.solve(L, rng.standard_normal((*self.rows.shape, 1)))[:, :, 0]


def place_rows(draw: Draw, data: Sequence[Any]) -> PlacedRows:
    """Estimate the row factors of rows under a draw; without row factors, the data are unchanged."""
    N, R = n_rows(data[0]), len(draw.loadings)
    F, precision = np.zeros((N, R)), np.tile(np.eye(R), (N, 1, 1))
    gain = np.zeros(R) if draw.gain is None else draw.gain
    if R == 0:
        return PlacedRows(data, F, precision, np.zeros(N), gain)
    parts = [part for factor in draw.factors for part in _real_parts(factor)]
    columns = np.concatenate([part.columns for part in parts])
    raw = np.hstack([data[part.block][:, part.positions] for part in parts])
    loadings = np.ascontiguousarray(draw.loadings[:, columns])
    rest = data
    for _ in range(N_STEPS):
        mean, weight = _expected_cells(draw, rest, N)
        F = draw_row_factors(raw - mean, _slopes(loadings, gain, mean), weight, None)
        rest = _reduced(data, parts, F, draw.loadings, gain)
    seen = ~np.isnan(raw)
    mean, weight = _expected_cells(draw, rest, N)
    precision = row_precisions(seen, _slopes(loadings, gain, mean), weight)
    correction = -0.5 * (F**2).sum(axis=1) - 0.5 * np.linalg.slogdet(precision)[1]
    placed = PlacedRows(rest, F, precision, correction, gain)
    # cells were divided by the sizes
    return placed._replace(log_correction=correction - seen.sum(axis=1) * np.log(placed.sizes))


def _slopes(loadings: np.ndarray, gain: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Change of each cell per unit of a row factor, as :func:`partita.views.nuisance.draw_row_factors` reads it."""
    return loadings[:, None, :] + gain[:, None, None] * mean if gain.any() else loadings


def real_columns(draw: Draw) -> np.ndarray:
    """Numbers in the table of the columns that have a part in row factors."""
    found = [part.columns for factor in draw.factors for part in _real_parts(factor)]
    return np.concatenate([np.zeros(0, np.intp), *found])


class _RealPart(NamedTuple):
    """Real columns of one factor of a draw, with their predictive in every state."""

    block: int
    positions: np.ndarray
    columns: np.ndarray
    mean: np.ndarray  # [column, state]
    precision: np.ndarray  # [column, state]


def _real_parts(factor: Factor) -> list[_RealPart]:
    out, at = [], 0
    for part in factor.blocks:
        columns = factor.columns[at : at + len(part.positions)]
        at += len(columns)
        if isinstance(part.family, GaussianDiagonal) and len(columns):
            blocks = [column_block(factor, int(column)) for column in columns]
            mean, variance = np.array(
                [predictive_moments(block.family, block.S) for block in blocks]
            ).swapaxes(0, 1)
            out.append(_RealPart(part.block, part.positions, columns, mean, 1.0 / variance))
    return out


def _expected_cells(draw: Draw, data: Sequence[Any], N: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and precisions of real cells, averaged over the states of each row: [row, real column]."""
    means, weights = [np.zeros((N, 0))], [np.zeros((N, 0))]
    for factor in draw.factors:
        parts = _real_parts(factor)
        if parts:
            L = log_states(factor, data)
            P = np.exp(L - logsumexp(L, axis=1, keepdims=True))
            for part in parts:
                weight = P @ part.precision.T
                weights.append(weight)
                means.append(P @ (part.mean * part.precision).T / weight)
    return np.hstack(means), np.hstack(weights)


def _reduced(
    data: Sequence[Any], parts: Sequence[_RealPart], F: np.ndarray, loadings: np.ndarray, gain: np.ndarray
) -> list[Any]:
    out, sizes = list(data), safe_sizes(row_sizes(F, gain))[:, None]
    for part in parts:
        if out[part.block] is data[part.block]:
            out[part.block] = data[part.block].copy()
        rest = out[part.block][:, part.positions] - F @ loadings[:, part.columns]
        out[part.block][:, part.positions] = rest / sizes
    return out
