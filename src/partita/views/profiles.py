"""What the clusters of each view look like, in the user's units and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.families import Block
from partita.fitting.profiles import profile_columns
from partita.views.base import Draw

__all__ = ["view_profiles"]


def view_profiles(
    estimate: Draw, blocks: Sequence[Block], schema: Any
) -> list[dict[str, dict[str, np.ndarray]]]:
    """For each factor of an estimate: for each of its columns what each state looks like."""
    out = []
    for factor in estimate.factors:
        parts = [
            Block(cells.family, None, tuple(blocks[cells.block].columns[p] for p in cells.positions))
            for cells in factor.cells
        ]
        statistics = Statistics(
            np.exp(factor.log_weights), tuple(cells.S for cells in factor.cells), np.nan, np.nan, 0.0
        )
        out.append(profile_columns(parts, statistics, schema))
    return out
