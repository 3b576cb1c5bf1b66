"""Profiles of the clusters of each view, in the user's units and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.families import Block
from partita.fitting.profiles import profile_columns
from partita.views.draws import Draw


def view_profiles(
    estimate: Draw, blocks: Sequence[Block], schema: Any
) -> list[dict[str, dict[str, np.ndarray]]]:
    """For each factor of an estimate, and each of its columns: the profile of each state."""
    out = []
    for factor in estimate.factors:
        parts = [
            Block(part.family, None, tuple(blocks[part.block].columns[p] for p in part.positions))
            for part in factor.blocks
        ]
        statistics = Statistics(
            np.exp(factor.log_weights), tuple(part.S for part in factor.blocks), np.nan, np.nan, 0.0
        )
        out.append(profile_columns(parts, statistics, schema))
    return out
