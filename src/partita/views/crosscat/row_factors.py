"""Row factors of a chain over views: what real columns share beside the clusters of the rows.

The chain holds factors ``f_ir ~ N(0, 1)`` and loadings ``l_rd ~ N(0, spread)``, and the views read the real columns
minus ``sum over r of f_ir l_rd``. Given drawn means and variances of all clusters, both have normal conditionals; the
means and variances are then forgotten, so all other steps keep them integrated out.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.families import GaussianDiagonal
from partita.families.contract import draw
from partita.partitions import log_eppf
from partita.views.crosscat.layout import Layout, part_columns
from partita.views.crosscat.state import ViewsState, columns_in, open_view
from partita.views.nuisance import (
    LOG_2PI,
    column_means,
    draw_row_factors,
    log_standard_normal,
    regress_on_rows,
)

SPREAD_SHAPE, SPREAD_SCALE = 2.0, 0.5  # of the inverse gamma prior of the variance of the loadings


class RowFactors(NamedTuple):
    """Row factors, their loadings, and the real columns that they are part of."""

    rows: np.ndarray  # [row, rank]
    loadings: np.ndarray  # [rank, real column]
    spread: float  # variance of the loadings
    columns: np.ndarray  # numbers of the real columns in the layout
    raw: np.ndarray  # [row, real column]: the cells, NaN where missing


def real_columns(layout: Layout) -> np.ndarray:
    """Numbers of the columns that have a part in row factors."""
    parts = [
        np.arange(lo, hi)
        for block, lo, hi in zip(layout.blocks, layout.starts[:-1], layout.starts[1:], strict=True)
        if isinstance(block.family, GaussianDiagonal)
    ]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def real_cells(layout: Layout) -> np.ndarray:
    """The cells of these columns, [row, column]."""
    parts = [block.data for block in layout.blocks if isinstance(block.family, GaussianDiagonal)]
    return np.hstack(parts)


def first_factors(layout: Layout, rows: np.ndarray) -> RowFactors:
    """Row factors at given values, with the loadings of least squares."""
    raw = real_cells(layout)
    centered = raw - column_means(raw)
    seen = np.where(np.isnan(raw), 0.0, 1.0)
    spread = SPREAD_SCALE / (SPREAD_SHAPE - 1.0)
    return RowFactors(
        rows, regress_on_rows(centered, rows, seen, spread, None), spread, real_columns(layout), raw
    )


def without_row_factors(layout: Layout, factors: RowFactors) -> Layout:
    """The layout with the real columns minus what is due to the row factors."""
    rest, at, blocks = factors.raw - factors.rows @ factors.loadings, 0, []
    for block in layout.blocks:
        if isinstance(block.family, GaussianDiagonal):
            width = block.data.shape[1]
            block = block._replace(data=np.asfortranarray(rest[:, at : at + width]))
            at += width
        blocks.append(block)
    return layout._replace(blocks=tuple(blocks))


def drawn_cells(state: ViewsState, factors: RowFactors, rng: np.random.Generator) -> Any:
    """Means and precisions of all real cells given their clusters, drawn from their posterior: [row, real column]."""
    place = {int(column): j for j, column in enumerate(factors.columns)}
    mean, precision = np.empty_like(factors.raw), np.empty_like(factors.raw)
    for view in state.views:
        seating = view.chain.seating
        z, K = sweep.labels(seating), int(seating.K[0])
        parts = part_columns(state.layout, columns_in(state.layout, view.units))
        for live, positions, first in zip(seating.blocks, parts, state.layout.starts[:-1], strict=True):
            if isinstance(live.family, GaussianDiagonal) and len(positions):
                theta = draw(live.family, np.ascontiguousarray(live.S[:, :K]), rng)
                tau = -2.0 * theta[2::3]
                at = [place[int(first + p)] for p in positions]
                mean[:, at], precision[:, at] = (theta[1::3] / tau).T[z], tau.T[z]
    return mean, precision


def row_factor_step(state: ViewsState, rng: np.random.Generator, dtype: type) -> ViewsState:
    """Draw loadings, row factors and the variance of the loadings; leaves the posterior invariant."""
    factors = state.factors
    if factors is None:
        return state
    mean, precision = drawn_cells(state, factors, rng)
    rest = factors.raw - mean
    weight = np.where(np.isnan(rest), 0.0, precision)
    loadings = regress_on_rows(rest, factors.rows, weight, factors.spread, rng)
    rows = draw_row_factors(rest, loadings, precision, rng)
    shape, scale = SPREAD_SHAPE + 0.5 * loadings.size, SPREAD_SCALE + 0.5 * float((loadings**2).sum())
    spread = scale / rng.standard_gamma(shape)
    factors = factors._replace(rows=rows, loadings=loadings, spread=float(spread))
    layout = without_row_factors(state.layout, factors)
    views = tuple(
        open_view(
            layout,
            state.reference,
            state.families,
            view.units,
            sweep.labels(view.chain.seating),
            view.chain.prior,
            int(rng.integers(2**62)),
            dtype,
        )
        for view in state.views
    )
    return state._replace(layout=layout, views=views, factors=factors)


def log_row_factors(factors: RowFactors | None) -> float:
    """Log prior density of row factors, loadings and the variance of the loadings."""
    if factors is None:
        return 0.0
    size, squares = factors.loadings.size, float((factors.loadings**2).sum())
    log_loadings = -0.5 * (size * (LOG_2PI + math.log(factors.spread)) + squares / factors.spread)
    log_spread = SPREAD_SHAPE * math.log(SPREAD_SCALE) - gammaln(SPREAD_SHAPE)
    log_spread -= (SPREAD_SHAPE + 1.0) * math.log(factors.spread) + SPREAD_SCALE / factors.spread
    return float(log_standard_normal(factors.rows) + log_loadings + log_spread)


def log_joint(state: ViewsState) -> float:
    """Log probability of data, views, labels and row factors under the present hyper-parameters."""
    counts = np.array([float(state.layout.sizes[list(view.units)].sum()) for view in state.views])
    total = log_eppf(state.prior, counts, len(counts)) + log_row_factors(state.factors)
    return float(total + sum(chains.log_joint(view.chain) for view in state.views))
