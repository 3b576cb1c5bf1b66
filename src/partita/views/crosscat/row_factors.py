"""Row factors of a chain over views: what real columns share beside the clusters of the rows.

The chain holds factors ``f_ir ~ N(0, 1)`` and loadings ``l_rd ~ N(0, spread)``, and the views read the real columns
minus ``sum over r of f_ir l_rd``. The factor of a group of columns has loadings of 0 in all others. With gains ``g_r``,
the means of the clusters are multiplied by the size of the row, ``1 + sum over r of f_ir g_r``. Given drawn means and
variances of all clusters, factors and loadings have normal conditionals; the means and variances are then forgotten, so
all other steps keep them integrated out.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.families import GaussianDiagonal
from partita.families.contract import draw
from partita.families.sized_gaussian import SizedGaussian
from partita.families.sized_noise import Sized
from partita.partitions import log_eppf
from partita.partitions.learning import slice_sample
from partita.views.crosscat.layout import Layout, evidence, part_columns, view_blocks
from partita.views.crosscat.state import ViewsState, columns_in, reopened
from partita.views.depths import log_depths
from partita.views.nuisance import (
    GAIN_SPREAD,
    LOG_2PI,
    column_means,
    draw_row_factors,
    log_gain_prior,
    log_standard_normal,
    regress_on_rows,
    row_sizes,
)

REAL = (GaussianDiagonal, SizedGaussian)  # families of columns that have a part in row factors
SPREAD_SHAPE, SPREAD_SCALE = 2.0, 0.5  # of the inverse gamma prior of the variance of the loadings


class RowFactors(NamedTuple):
    """Row factors, their loadings, and the real columns that they are part of."""

    rows: np.ndarray  # [row, rank]
    loadings: np.ndarray  # [rank, real column]
    spread: float  # variance of the loadings
    columns: np.ndarray  # numbers of the real columns in the layout
    raw: np.ndarray  # [row, real column]: the cells, NaN where missing
    gain: np.ndarray | None = None  # [rank]; None for a model in which all gains are 0
    parts: np.ndarray | None = (
        None  # [rank, real column] bool: columns with a part in each factor; None for all
    )

    @property
    def own_loadings(self) -> np.ndarray:
        """The loadings that are not 0 by definition."""
        return self.loadings.ravel() if self.parts is None else self.loadings[self.parts]

    @property
    def sizes(self) -> np.ndarray:
        """Size of each row, by which the means of its clusters are multiplied."""
        return np.ones(len(self.rows)) if self.gain is None else row_sizes(self.rows, self.gain)


def real_columns(layout: Layout) -> np.ndarray:
    """Numbers of the columns that have a part in row factors."""
    parts = [
        np.arange(lo, hi)
        for block, lo, hi in zip(layout.blocks, layout.starts[:-1], layout.starts[1:], strict=True)
        if isinstance(block.family, REAL)
    ]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def real_cells(layout: Layout) -> np.ndarray:
    """The cells of these columns, [row, column]."""
    parts = [block.data for block in layout.blocks if isinstance(block.family, REAL)]
    return np.hstack(parts)


def first_factors(
    layout: Layout, rows: np.ndarray, gain: np.ndarray | None = None, parts: np.ndarray | None = None
) -> RowFactors:
    """Row factors and gains at given values, with the loadings of least squares."""
    raw = real_cells(layout)
    centered = raw - column_means(raw)
    seen = np.where(np.isnan(raw), 0.0, 1.0)
    spread = SPREAD_SCALE / (SPREAD_SHAPE - 1.0)
    loadings = regress_on_rows(centered, rows, seen, spread, None, parts)
    return RowFactors(rows, loadings, spread, real_columns(layout), raw, gain, parts)


def without_row_factors(layout: Layout, factors: RowFactors) -> Layout:
    """The layout with the real columns minus what is due to the row factors, and with the sizes of the rows."""
    rest, at, blocks = factors.raw - factors.rows @ factors.loadings, 0, []
    for block in layout.blocks:
        if isinstance(block.family, REAL):
            width = len(block.family.m)
            X = np.asfortranarray(rest[:, at : at + width])
            at += width
            if factors.gain is None:
                block = block._replace(data=X)
            else:
                block = block._replace(family=SizedGaussian(*block.family), data=Sized(X, factors.sizes))
        blocks.append(block)
    return layout._replace(blocks=tuple(blocks))


def drawn_cells(state: ViewsState, factors: RowFactors, rng: np.random.Generator) -> Any:
    """Means (for size 1) and precisions of all real cells given their clusters, drawn: [row, real column]."""
    place = {int(column): j for j, column in enumerate(factors.columns)}
    mean, precision = np.empty_like(factors.raw), np.empty_like(factors.raw)
    for view in state.views:
        seating = view.chain.seating
        z, K = sweep.labels(seating), int(seating.K[0])
        parts = part_columns(state.layout, columns_in(state.layout, view.units))
        for live, positions, first in zip(seating.blocks, parts, state.layout.starts[:-1], strict=True):
            if isinstance(live.family, REAL) and len(positions):
                theta = draw(live.family, np.ascontiguousarray(live.S[:, :K]), rng)
                if isinstance(live.family, SizedGaussian):
                    means, tau = theta[0::2], theta[1::2]
                else:
                    tau = -2.0 * theta[2::3]
                    means = theta[1::3] / tau
                at = [place[int(first + p)] for p in positions]
                mean[:, at], precision[:, at] = means.T[z], tau.T[z]
    return mean, precision


def row_factor_step(state: ViewsState, rng: np.random.Generator, dtype: type) -> ViewsState:
    """Draw gains, loadings, row factors and the variance of the loadings; leaves the posterior invariant."""
    if state.factors is None:
        return state
    factors = draw_gains(state, state.factors, rng)
    if factors is not state.factors:
        state = reopened(state, without_row_factors(state.layout, factors), rng, dtype)
    mean, precision = drawn_cells(state, factors, rng)
    rest = factors.raw - factors.sizes[:, None] * mean
    weight = np.where(np.isnan(rest), 0.0, precision)
    loadings = regress_on_rows(rest, factors.rows, weight, factors.spread, rng, factors.parts)
    slopes = loadings
    if factors.gain is not None:
        slopes = loadings[:, None, :] + factors.gain[:, None, None] * mean
    rows = draw_row_factors(factors.raw - mean, slopes, precision, rng)
    factors = factors._replace(rows=rows, loadings=loadings)
    own = factors.own_loadings
    shape, scale = SPREAD_SHAPE + 0.5 * own.size, SPREAD_SCALE + 0.5 * float((own**2).sum())
    factors = factors._replace(spread=float(scale / rng.standard_gamma(shape)))
    layout = without_row_factors(state.layout, factors)
    return reopened(state._replace(factors=factors), layout, rng, dtype)


def draw_gains(state: ViewsState, factors: RowFactors, rng: np.random.Generator) -> RowFactors:
    """Draw the gain of each row factor of all columns; means and variances of the clusters are integrated out."""
    if factors.gain is None:
        return factors
    groups = [
        (
            np.intersect1d(columns_in(state.layout, view.units), factors.columns),
            sweep.labels(view.chain.seating),
        )
        for view in state.views
    ]

    def log_density(value: float, r: int, gain: np.ndarray) -> float:
        changed = np.where(np.arange(len(gain)) == r, value, gain)
        layout = without_row_factors(state.layout, factors._replace(gain=changed))
        total = log_gain_prior(changed)
        for members, z in groups:
            blocks = view_blocks(layout, state.families, members)
            families = [block.family for block in blocks]
            total += float(evidence(blocks, families, z, int(z.max()) + 1).sum())
        return total

    gain = factors.gain
    has_gain = np.ones(len(gain), bool) if factors.parts is None else factors.parts.all(axis=1)
    for r in np.flatnonzero(has_gain).tolist():
        density = partial(log_density, r=r, gain=gain)
        value = slice_sample(density, float(gain[r]), rng, width=GAIN_SPREAD)
        gain = np.where(np.arange(len(gain)) == r, value, gain)
    return factors._replace(gain=gain)


def log_row_factors(factors: RowFactors | None) -> float:
    """Log prior density of row factors, loadings, the variance of the loadings, and gains."""
    if factors is None:
        return 0.0
    size, squares = factors.own_loadings.size, float((factors.loadings**2).sum())
    log_loadings = -0.5 * (size * (LOG_2PI + math.log(factors.spread)) + squares / factors.spread)
    log_spread = SPREAD_SHAPE * math.log(SPREAD_SCALE) - gammaln(SPREAD_SHAPE)
    log_spread -= (SPREAD_SHAPE + 1.0) * math.log(factors.spread) + SPREAD_SCALE / factors.spread
    log_gain = 0.0 if factors.gain is None else log_gain_prior(factors.gain)
    return float(log_standard_normal(factors.rows) + log_loadings + log_spread + log_gain)


def log_joint(state: ViewsState) -> float:
    """Log probability of data, views, labels, row factors and depths under the present hyper-parameters."""
    counts = np.array([float(state.layout.sizes[list(view.units)].sum()) for view in state.views])
    total = log_eppf(state.prior, counts, len(counts))
    total += log_row_factors(state.factors) + log_depths(state.depths)
    return float(total + sum(chains.log_joint(view.chain) for view in state.views))
