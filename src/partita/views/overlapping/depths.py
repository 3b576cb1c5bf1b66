"""Depths of rows in overlapping views: their step, given drawn rates of all combinations of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partita.families import Poisson
from partita.families.columns import take_columns, take_data
from partita.families.contract import draw, summarize
from partita.families.rows import add_statistics
from partita.views.depths import Depths, draw_depths, draw_shape, row_events
from partita.views.overlapping.combinations import CombinationColumns, combination_labels
from partita.views.overlapping.state import OverlapState, by_views

if TYPE_CHECKING:
    from collections.abc import Sequence


def expected_counts(
    columns: CombinationColumns,
    exposure: np.ndarray,
    state: OverlapState,
    families: Sequence,
    rng: np.random.Generator | None,
) -> np.ndarray:
    """Expected sum of the observed counts of each row at these exposures, given rates drawn from their posterior.

    Without a generator, given the means of the rates. ``columns`` have the exposures with the present depths.
    """
    Y = state.Y[-columns.n_columns :]
    total = np.zeros(columns.n_rows)
    for (first, last), block, family in zip(columns.spans, columns.blocks, families, strict=True):
        if not isinstance(family, Poisson):
            continue
        for views, members in by_views(Y[first:last]).items():
            part, data = take_columns(family, np.array(members)), take_data(block.data, np.array(members))
            z = combination_labels(state.Z, views, columns.n_rows)
            S = np.zeros((3 * len(members), int(z.max()) + 1))
            add_statistics(part, data, z, S)
            rates = summarize(part, S)["rates"] if rng is None else -draw(part, S, rng)[0::3].T
            total += np.where(np.isnan(data.X), 0.0, rates[z]).sum(axis=1)
    return total * exposure


def depth_step(
    columns: CombinationColumns,
    state: OverlapState,
    families: Sequence,
    depths: Depths,
    rng: np.random.Generator | None,
) -> Depths:
    """Draw the depths and their shape; without a generator, the means of the depths. Leaves the posterior invariant."""
    expected = expected_counts(columns, depths.exposure, state, families, rng)
    rows = draw_depths(row_events(columns.blocks), expected, depths.shape, rng)
    shape = depths.shape if rng is None else draw_shape(rows, depths.shape, rng)
    return depths._replace(rows=rows, shape=shape)
