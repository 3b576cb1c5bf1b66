"""Queries that need nothing but the draws of a model of views (:mod:`partita.views.draws`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from partita.families import Counts, GaussianDiagonal, Poisson, n_rows
from partita.families.registry import entry_of
from partita.families.rows import log_marginals
from partita.views.draws import Draw, Factor, FactorBlock, shared_views
from partita.views.information import occupied, states_with_data
from partita.views.new_rows import PlacedRows, place_rows
from partita.views.predictive import (
    column_parts,
    draw_cells,
    level_probabilities,
    log_density_rows,
    log_states,
    parts_in,
    predictive_moments,
    score_block,
)


def dependence(draws: Sequence[Draw]) -> np.ndarray:
    """Probability that two columns share a view with at least two clusters: [column, column].

    Examples
    --------
    >>> draw = Draw(np.eye(2, dtype=bool), np.array([[0, 0], [1, 1]]), (), 0.0, 0, np.ones(3))
    >>> dependence([draw, draw._replace(membership=np.array([[True, False], [True, False]]))])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    total = np.zeros((len(draws[0].membership),) * 2)
    for draw in draws:
        total += shared_views(draw)
    return total / len(draws)


def row_similarity(
    draws: Sequence[Draw], rows: np.ndarray, columns: np.ndarray | None = None, weighted: bool = False
) -> np.ndarray:
    """Probability that two rows share a cluster, averaged over views and draws: [row, row].

    ``columns`` restricts the views to those with one of these columns. With ``weighted`` a view counts in proportion to
    its number of (these) columns, otherwise every view counts once.

    Examples
    --------
    >>> draw = Draw(np.eye(2, dtype=bool), np.array([[0, 0], [0, 1]]), (), 0.0, 0, np.ones(3))
    >>> row_similarity([draw], np.arange(2))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    out = np.zeros((len(rows), len(rows)))
    for draw in draws:
        held = draw.membership if columns is None else draw.membership[columns]
        weights = held.sum(axis=0).astype(float)
        weights = weights if weighted else (weights > 0).astype(float)
        if not weights.any():
            continue
        for v in np.flatnonzero(weights):
            z = draw.labels[rows, v]
            out += (weights[v] / weights.sum() / len(draws)) * (z[:, None] == z[None, :])
    return out


def log_density(draws: Sequence[Draw], data: Sequence[Any], given: Sequence[Any] | None = None) -> np.ndarray:
    """Log density of each row, averaged over draws; with ``given`` conditional on these cells.

    ``data`` holds the given cells, too: the result is log p(data) - log p(given), each averaged over draws.
    """
    both = _mean_log([_log_density(draw, data) for draw in draws])
    return both if given is None else both - _mean_log([_log_density(draw, given) for draw in draws])


def _log_density(draw: Draw, data: Sequence[Any]) -> np.ndarray:
    placed = place_rows(draw, data)
    return log_density_rows(draw, placed.data) + placed.log_correction


def _mean_log(values: Sequence[np.ndarray]) -> np.ndarray:
    return logsumexp(np.stack(values), axis=0) - np.log(len(values))


def cell_surprisal(draws: Sequence[Draw], data: Sequence[Any], n_columns: int) -> np.ndarray:
    """``-log p(cell | the other cells of its row)`` of every cell: [row, column]; 0 in columns of no factor.

    A cell of a column with two parts is both of them.
    """
    N = n_rows(data[0])
    found = np.zeros((len(draws), N, n_columns))
    for t, draw in enumerate(draws):
        shown = place_rows(draw, data).data
        for factor in draw.factors:
            L = log_states(factor, shown)
            for c in np.unique(factor.columns):
                rest = L - sum(score_block(part, shown[part.block]) for part in column_parts(factor, int(c)))
                found[t, :, c] += logsumexp(L, axis=1) - logsumexp(rest, axis=1)
    return -(logsumexp(found, axis=0) - np.log(len(draws)))


def novelty(draws: Sequence[Draw], data: Sequence[Any]) -> np.ndarray:
    """Probability that a row belongs to a new cluster, averaged over its columns and over draws."""
    out = np.zeros(n_rows(data[0]))
    for draw in draws:
        columns = np.concatenate([factor.columns for factor in draw.factors])
        n_parts = np.bincount(columns)
        shown = place_rows(draw, data).data
        for factor in draw.factors:
            L = log_states(factor, shown)
            known = states_with_data(factor)
            share = np.exp(logsumexp(L[:, known], axis=1) - logsumexp(L, axis=1))
            weight = (1.0 / n_parts[factor.columns]).sum() / len(np.unique(columns))
            out += (1.0 - share) * weight / len(draws)
    return np.clip(out, 0.0, 1.0)


class Prediction(NamedTuple):
    """Prediction of one column per row: mean and standard deviation, or probabilities of the levels."""

    mean: np.ndarray | None
    sd: np.ndarray | None
    probabilities: np.ndarray | None


def predict_cells(
    draws: Sequence[Draw],
    data: Sequence[Any],
    column: int,
    moments: Any = None,
    lump: float = math.nan,
) -> Prediction:
    """Predict one column in each row, given all observed cells of the row (its own cell included, if observed).

    ``moments(means, variances)`` gives means and standard deviations in the user's units of normal cells; ``lump`` is
    the value of the lump in these units, for a column with two parts.
    """
    N, mean, square, levels = n_rows(data[0]), 0.0, 0.0, 0.0
    for draw in draws:
        placed = place_rows(draw, data)
        of_lump, (factor, block) = parts_in(draw, column)
        P = _probabilities(factor, placed)
        if entry_of(block.family).kind in ("binary", "categorical"):
            levels = levels + P @ level_probabilities(block) / len(draws)
            continue
        means, variances = _cell_moments(draw, placed, block, column, P)
        if moments is not None:
            means, sd = moments(means, variances)
            variances = sd**2
        if of_lump is not None:
            others = level_probabilities(of_lump.part)[:, 1]
            # given the draw, cells of different factors are independent
            P = P * (
                others
                if of_lump.factor is factor
                else (_probabilities(of_lump.factor, placed) @ others)[:, None]
            )
            share = 1.0 - P.sum(axis=1)
            mean = mean + share * lump / len(draws)
            square = square + share * lump**2 / len(draws)
        mean = mean + (P * means).sum(axis=1) / len(draws)
        square = square + (P * (variances + means**2)).sum(axis=1) / len(draws)
    if not np.isscalar(levels):
        return Prediction(None, None, np.asarray(levels))
    mean = np.broadcast_to(mean, N)
    return Prediction(mean, np.sqrt(np.maximum(square - mean**2, 0.0)), None)


def _probabilities(factor: Factor, placed: PlacedRows) -> np.ndarray:
    """Probabilities of the states of a factor: [row, state]."""
    L = log_states(factor, placed.data)
    return np.exp(L - logsumexp(L, axis=1, keepdims=True))


def _cell_moments(
    draw: Draw, placed: PlacedRows, block: FactorBlock, column: int, P: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the cells of one column in each state: [row, state], or [1, state] if all rows agree."""
    means, variances = (found[None] for found in predictive_moments(block.family, block.S))
    if len(draw.loadings) and isinstance(block.family, GaussianDiagonal):
        loadings, size = draw.loadings[:, column], placed.sizes[:, None]
        slopes = loadings + placed.gain * (P @ means[0])[:, None]
        doubt = (np.linalg.solve(placed.precision, slopes[:, :, None])[:, :, 0] * slopes).sum(axis=1)
        return size * means + (placed.rows @ loadings)[:, None], size**2 * variances + doubt[:, None]
    if draw.depth_shape and isinstance(block.family, Poisson):
        # events are independent given depth and rate, and the depth has a gamma posterior
        depths, open_share = placed.depths[:, None], 1.0 / placed.depth_events[:, None]
        of_rates = np.maximum(variances - means, 0.0)
        variances = depths * means + depths**2 * ((1.0 + open_share) * of_rates + open_share * means**2)
        return depths * means, variances
    return means, variances


def simulate_rows(
    draws: Sequence[Draw], data: Sequence[Any], n_samples: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Simulate the cells of each row given its observed cells, ``n_samples`` times: [sample, row, position] by block.

    Row factors and depths are drawn from their posterior given the observed cells, states given the means of these.

    Numbers are in the units of the families (real columns standardized), levels are codes; NaN in parts of no factor.
    """
    N = n_rows(data[0])
    which = rng.integers(len(draws), size=n_samples)
    out = [np.full((n_samples, N, plain_cells(part).shape[1]), np.nan) for part in data]
    for t in np.unique(which):
        samples, loadings = np.flatnonzero(which == t), draws[t].loadings
        placed = place_rows(draws[t], data)
        drawn = [placed.draw(rng) for _ in samples]
        depths = np.concatenate([one.depths for one in drawn])
        for factor in draws[t].factors:
            P = _probabilities(factor, placed)
            edges = np.cumsum(P, axis=1)
            u = rng.random((len(samples), N)) * edges[:, -1]
            states = np.minimum((u[:, :, None] > edges[None]).sum(axis=2), P.shape[1] - 1)
            at = 0
            for part in factor.blocks:
                columns = factor.columns[at : at + len(part.positions)]
                at += len(columns)
                new = draw_cells(part, states.ravel(), rng, depths).reshape(len(samples), N, len(columns))
                if len(loadings) and isinstance(part.family, GaussianDiagonal):
                    shift = np.stack([one.rows for one in drawn]) @ loadings[:, columns]
                    new = np.stack([one.sizes for one in drawn])[:, :, None] * new + shift
                out[part.block][np.ix_(samples, np.arange(N), part.positions)] = new
    return out


def plain_cells(data: Any) -> np.ndarray:
    """The cells of a block as one array, [row, position]."""
    return data.X if isinstance(data, Counts) else data


def column_evidence(factor: Factor, cluster: int | None = None) -> np.ndarray:
    """Log Bayes factor, in nats, of the states of a factor against one state for all rows: one for each part.

    With ``cluster``: of this state against all others pooled. Parameters are integrated out, so the value is negative
    for a column that does not depend on the states.
    """
    factor, out = occupied(factor), []
    for part in factor.blocks:
        S = part.S
        if cluster is not None:
            rest = np.delete(S, cluster, axis=1).sum(axis=1)
            S = np.column_stack([S[:, cluster], rest])
        apart = log_marginals(part.family, np.ascontiguousarray(S)).sum(axis=1)
        together = log_marginals(part.family, np.ascontiguousarray(S.sum(axis=1, keepdims=True)))[:, 0]
        out.append(apart - together)
    return np.concatenate(out)


def hide(data: Sequence[Any], block: int, position: int, rows: Any = slice(None)) -> list[Any]:
    """Copy of the data with one part missing in some rows, or in all."""
    out = list(data)
    values = plain_cells(out[block]).copy()
    values[rows, position] = np.nan if values.dtype.kind == "f" else -1
    out[block] = Counts(values, out[block].exposure) if isinstance(out[block], Counts) else values
    return out
