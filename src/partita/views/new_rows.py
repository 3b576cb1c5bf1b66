"""Rows as a draw reads them: their row factors are estimated, and real cells are reduced by what is due to these.

Given its row factors, a row has the product form that all queries use. The row factors of a new row are not known, so
they are set to their most probable values, by turns with the states of the row. Densities are corrected by Laplace's
approximation, which is exact if the states of the row are certain and its real cells normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from partita.families import GaussianDiagonal, n_rows
from partita.views.draws import Draw, Factor
from partita.views.nuisance import draw_row_factors, row_precisions
from partita.views.predictive import column_block, log_states, predictive_moments

N_STEPS = 10


class PlacedRows(NamedTuple):
    """Rows under one draw."""

    data: Sequence[Any]  # of the blocks, real columns without what is due to the row factors
    rows: np.ndarray  # row factors, [row, rank]
    precision: np.ndarray  # of their posterior, [row, rank, rank]
    log_correction: np.ndarray  # [row]: what the log density given the row factors lacks

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Row factors drawn from their approximate posterior."""
        L = np.linalg.cholesky(self.precision).transpose(0, 2, 1)
        return self.rows + np.linalg.solve(L, rng.standard_normal((*self.rows.shape, 1)))[:, :, 0]


def place_rows(draw: Draw, data: Sequence[Any]) -> PlacedRows:
    """Estimate the row factors of rows under a draw; without row factors, the data are unchanged."""
    N, R = n_rows(data[0]), len(draw.loadings)
    F, precision = np.zeros((N, R)), np.tile(np.eye(R), (N, 1, 1))
    if R == 0:
        return PlacedRows(data, F, precision, np.zeros(N))
    parts = [part for factor in draw.factors for part in _real_parts(factor)]
    columns = np.concatenate([part.columns for part in parts])
    raw = np.hstack([data[part.block][:, part.positions] for part in parts])
    loadings = np.ascontiguousarray(draw.loadings[:, columns])
    rest = data
    for _ in range(N_STEPS):
        mean, weight = _expected_cells(draw, rest, N)
        F = draw_row_factors(raw - mean, loadings, weight, None)
        rest = _reduced(data, parts, F, draw.loadings)
    precision = row_precisions(~np.isnan(raw), loadings, _expected_cells(draw, rest, N)[1])
    correction = -0.5 * (F**2).sum(axis=1) - 0.5 * np.linalg.slogdet(precision)[1]
    return PlacedRows(rest, F, precision, correction)


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
    data: Sequence[Any], parts: Sequence[_RealPart], F: np.ndarray, loadings: np.ndarray
) -> list[Any]:
    out = list(data)
    for part in parts:
        if out[part.block] is data[part.block]:
            out[part.block] = data[part.block].copy()
        out[part.block][:, part.positions] -= F @ loadings[:, part.columns]
    return out
