"""Tied values in a chain over views: drawn inside their cells, given the clusters of the rows.

A tied value stands for its cell (:mod:`partita.families.ties`). Given drawn means and variances of all clusters, the
row factors and their loadings, it is a normal variable that is truncated to its cell; the means and variances are then
forgotten, so all other steps keep them integrated out.
"""

from __future__ import annotations

import numpy as np

from partita.views.crosscat.layout import Layout
from partita.views.crosscat.row_factors import (
    REAL,
    RowFactors,
    drawn_cells,
    real_cells,
    real_columns,
    without_row_factors,
)
from partita.views.crosscat.state import ViewsState, reopened
from partita.views.real_columns import cells_of, draw_tied, has_ties


def tie_step(state: ViewsState, rng: np.random.Generator, dtype: type) -> ViewsState:
    """Draw the tied values; leaves the posterior invariant."""
    if not has_ties(state.layout.blocks):
        return state
    factors = no_row_factors(state.layout) if state.factors is None else state.factors
    means, precisions = drawn_cells(state, factors, rng)
    cells = [cells_of(block) for block in state.layout.blocks if isinstance(block.family, REAL)]
    low, high = (np.hstack([one[end] for one in cells]) for end in (1, 2))
    center = factors.rows @ factors.loadings + factors.sizes[:, None] * means
    factors = factors._replace(raw=draw_tied(factors.raw, low, high, center, precisions**-0.5, rng))
    layout = without_row_factors(state.layout, factors)
    kept = None if state.factors is None else factors
    return reopened(state._replace(factors=kept), layout, rng, dtype)


def no_row_factors(layout: Layout) -> RowFactors:
    """The real columns of a layout without row factors, in the form of those of a layout that has some."""
    raw = real_cells(layout)
    rows, loadings = np.zeros((len(raw), 0)), np.zeros((0, raw.shape[1]))
    return RowFactors(rows, loadings, 1.0, real_columns(layout), raw)
