"""Rows as a draw reads them: their row factors and depths are estimated, and the cells are read given these.

Given its row factors and its depth, a row has the product form that all queries use. Those of a new row are not known,
so they are set to their most probable values, by turns with the states of the row. Densities are corrected by Laplace's
approximation; for row factors it is exact if the states of the row are certain, its real cells normal and the gains 0.
With gains, cells are divided by the size of the row, their noise included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from partita.families import Counts, GaussianDiagonal, Poisson, n_rows
from partita.families.contract import summarize
from partita.views.depths import draw_depths, log_depth_volumes
from partita.views.draws import Draw, Factor
from partita.views.nuisance import draw_row_factors, row_precisions, row_sizes, safe_sizes
from partita.views.predictive import log_states, part_alone, predictive_moments

N_STEPS = 10


class PlacedRows(NamedTuple):
    """Rows under one draw."""

    data: Sequence[Any]  # of the blocks: real columns without row factors, exposures of counts with depths
    rows: np.ndarray  # row factors, [row, rank]
    precision: np.ndarray  # of their posterior, [row, rank, rank]
    log_correction: np.ndarray  # [row]: what the log density given row factors and depths lacks
    gain: np.ndarray  # [rank]
    depths: np.ndarray  # [row]
    depth_events: (
        np.ndarray
    )  # [row]: shape of the posterior of the depth, a gamma distribution; infinity: known

    @property
    def sizes(self) -> np.ndarray:
        """Size of each row."""
        return safe_sizes(row_sizes(self.rows, self.gain))

    def draw(self, rng: np.random.Generator) -> PlacedRows:
        """Row factors and depths drawn from their approximate posterior."""
        L = np.linalg.cholesky(self.precision).transpose(0, 2, 1)
        rows = self.rows + np.linalg.solve(L, rng.standard_normal((*self.rows.shape, 1)))[:, :, 0]
        if np.isinf(self.depth_events).all():
            return self._replace(rows=rows)
        depths = self.depths * rng.standard_gamma(self.depth_events) / self.depth_events
        return self._replace(rows=rows, depths=depths)


def place_rows(draw: Draw, data: Sequence[Any]) -> PlacedRows:
    """Estimate the row factors and depths of rows under a draw; without them, the data are unchanged."""
    N, R = n_rows(data[0]), len(draw.loadings)
    F, precision = np.zeros((N, R)), np.tile(np.eye(R), (N, 1, 1))
    gain = np.zeros(R) if draw.gain is None else draw.gain
    found = PlacedRows(data, F, precision, np.zeros(N), gain, np.ones(N), np.full(N, np.inf))
    if R == 0 and not draw.depth_shape:
        return found
    parts = [part for factor in draw.factors for part in _real_parts(factor)]
    columns = np.concatenate([np.zeros(0, np.intp), *(part.columns for part in parts)])
    raw = np.hstack([np.zeros((N, 0)), *(data[part.block][:, part.positions] for part in parts)])
    loadings = np.ascontiguousarray(draw.loadings[:, columns]) if R else np.zeros((0, len(columns)))
    is_of_group = ~(draw.loadings[:, columns] != 0).all(axis=1)
    for step in range(N_STEPS):
        if R:
            mean, weight = _expected_cells(draw, found.data, N)
            F = draw_row_factors(raw - mean, _slopes(loadings, gain, mean), weight, None)
        if step == 0 and is_of_group.any():
            F[:, is_of_group] = 0.0
            rest = _reduced(data, parts, F, draw.loadings, gain)
            F[:, is_of_group] = _group_factors(draw, rest, np.flatnonzero(is_of_group))
        if draw.depth_shape:
            found = found._replace(depths=_expected_depths(draw, data, found))
        rest = _deepened(_reduced(data, parts, F, draw.loadings, gain) if R else data, found.depths)
        found = found._replace(data=rest, rows=F)
    if draw.depth_shape:
        found = _with_open_depths(draw, data, found)
    return _with_open_factors(draw, raw, loadings, found) if R else found


def _group_factors(draw: Draw, data: Sequence[Any], chosen: np.ndarray) -> np.ndarray:
    """First values of row factors of groups of columns: their means given the most probable state of the row.

    States are compared with the factors integrated out. A state that is chosen as if the factors were 0 may be far from
    the row, and alternating steps would stay there.
    """
    N = n_rows(data[0])
    F, weight = np.zeros((N, len(chosen))), np.zeros(len(chosen))
    for factor in draw.factors:
        parts = _real_parts(factor)
        columns = np.concatenate([np.zeros(0, np.intp), *(part.columns for part in parts)])
        own = np.flatnonzero((draw.loadings[np.ix_(chosen, columns)] != 0).any(axis=1))
        if not len(own):
            continue
        L = np.ascontiguousarray(draw.loadings[np.ix_(chosen[own], columns)])
        raw = np.hstack([data[part.block][:, part.positions] for part in parts])
        means = np.vstack([part.mean for part in parts]).T  # [state, column]
        precisions = np.vstack([part.precision for part in parts]).T
        best, mode = np.full(N, -np.inf), np.zeros((N, len(own)))
        for log_weight, mean, precision in zip(factor.log_weights, means, precisions, strict=True):
            gap = raw - mean
            found = draw_row_factors(gap, L, precision, None)
            left = np.nan_to_num(gap - found @ L)
            seen = ~np.isnan(gap)
            score = log_weight - 0.5 * (left**2 @ precision - seen @ np.log(precision))
            score -= 0.5 * (found**2).sum(axis=1)
            score -= 0.5 * np.linalg.slogdet(row_precisions(seen, L, precision))[1]
            better = score > best
            best, mode = np.where(better, score, best), np.where(better[:, None], found, mode)
        share = (L != 0).sum(axis=1)  # a factor of columns of several states: by the number of columns
        F[:, own] += mode * share
        weight[own] += share
    return F / np.maximum(weight, 1.0)


def _with_open_factors(draw: Draw, raw: np.ndarray, loadings: np.ndarray, found: PlacedRows) -> PlacedRows:
    """With the uncertainty of the row factors."""
    F, seen = found.rows, ~np.isnan(raw)
    mean, weight = _expected_cells(draw, found.data, len(raw))
    precision = row_precisions(seen, _slopes(loadings, found.gain, mean), weight)
    correction = -0.5 * (F**2).sum(axis=1) - 0.5 * np.linalg.slogdet(precision)[1]
    correction -= seen.sum(axis=1) * np.log(found.sizes)  # cells were divided by the sizes
    return found._replace(precision=precision, log_correction=found.log_correction + correction)


def _expected_depths(draw: Draw, data: Sequence[Any], found: PlacedRows) -> np.ndarray:
    """Posterior means of the depths given the states of the rows under their present depths."""
    events, expected = _events(data), np.zeros(len(found.depths))
    for factor in draw.factors:
        parts = [part for part in factor.blocks if isinstance(part.family, Poisson) and len(part.positions)]
        if parts:
            L = log_states(factor, found.data)
            P = np.exp(L - logsumexp(L, axis=1, keepdims=True))
        for part in parts:
            rates = P @ summarize(part.family, part.S)["rates"]
            counts = data[part.block]
            expected += counts.exposure * np.where(np.isnan(counts.X[:, part.positions]), 0.0, rates).sum(
                axis=1
            )
    return draw_depths(events, expected, draw.depth_shape, None)


def _with_open_depths(draw: Draw, data: Sequence[Any], found: PlacedRows) -> PlacedRows:
    """With the uncertainty of the depths."""
    shape, depths = draw.depth_shape, found.depths
    known = shape * (math.log(shape) - depths) + (shape - 1.0) * np.log(depths) - float(gammaln(shape))
    open_part = log_depth_volumes(_events(data), shape, depths)
    return found._replace(
        depth_events=shape + _events(data), log_correction=found.log_correction + known + open_part
    )


def _events(data: Sequence[Any]) -> np.ndarray:
    return np.sum([np.nansum(part.X, axis=1) for part in data if isinstance(part, Counts)], axis=0)


def _deepened(data: Sequence[Any], depths: np.ndarray) -> list[Any]:
    """The data with the exposures of counts multiplied by the depths."""
    return [Counts(part.X, part.exposure * depths) if isinstance(part, Counts) else part for part in data]


def _slopes(loadings: np.ndarray, gain: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Change of each cell per unit of a row factor, as :func:`partita.views.nuisance.draw_row_factors` reads it."""
    return loadings[:, None, :] + gain[:, None, None] * mean if gain.any() else loadings


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
            blocks = [part_alone(part, at) for at in range(len(columns))]
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
