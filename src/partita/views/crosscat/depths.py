"""Depths of rows in a chain over views.

Given drawn rates of all clusters, the depths have gamma conditionals; the rates are then forgotten, so all other steps
keep them integrated out.
"""

from __future__ import annotations

import numpy as np

from partita.engines.gibbs import sweep
from partita.families import Poisson
from partita.families.contract import draw
from partita.views.crosscat.layout import Layout, part_columns
from partita.views.crosscat.state import ViewsState, columns_in, reopened
from partita.views.depths import Depths, draw_depths, draw_shape, row_events, with_depths


def expected_counts(state: ViewsState, exposure: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Expected sum of the observed counts of each row at these exposures, given rates drawn from their posterior."""
    total = np.zeros(len(exposure))
    for view in state.views:
        seating = view.chain.seating
        z, K = sweep.labels(seating), int(seating.K[0])
        parts = part_columns(state.layout, columns_in(state.layout, view.units))
        for block, live, positions in zip(state.layout.blocks, seating.blocks, parts, strict=True):
            if isinstance(live.family, Poisson) and len(positions):
                rates = -draw(live.family, np.ascontiguousarray(live.S[:, :K]), rng)[0::3]
                total += np.where(np.isnan(block.data.X[:, positions]), 0.0, rates.T[z]).sum(axis=1)
    return total * exposure


def depth_step(state: ViewsState, rng: np.random.Generator, dtype: type) -> ViewsState:
    """Draw the depths and their shape; leaves the posterior invariant."""
    depths = state.depths
    if depths is None:
        return state
    expected = expected_counts(state, depths.exposure, rng)
    rows = draw_depths(row_events(state.layout.blocks), expected, depths.shape, rng)
    depths = depths._replace(rows=rows, shape=draw_shape(rows, depths.shape, rng))
    layout = layout_with(state.layout, depths)
    return reopened(state._replace(depths=depths), layout, rng, dtype)


def layout_with(layout: Layout, depths: Depths | None) -> Layout:
    """The layout with the exposures of counts multiplied by the depths."""
    return layout._replace(blocks=with_depths(layout.blocks, depths))
