"""Profiles of the clusters of each view, in the user's units and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.families import Block, Values
from partita.fitting.profiles import profile_columns
from partita.views.draws import Draw, Factor


def view_profiles(
    estimate: Draw, blocks: Sequence[Block], schema: Any
) -> list[dict[str, dict[str, np.ndarray]]]:
    """For each factor of an estimate, and each of its columns: the profile of each state."""
    return [profile_columns(*factor_statistics(factor, blocks), schema) for factor in estimate.factors]


def factor_statistics(factor: Factor, blocks: Sequence[Block]) -> tuple[list[Block], Statistics]:
    """The blocks of the columns of a factor, and the statistics of its states."""
    parts = []
    for part in factor.blocks:
        block = blocks[part.block]
        coding = block.coding.take(part.positions) if isinstance(block.coding, Values) else None
        columns = tuple(block.columns[p] for p in part.positions)
        parts.append(Block(part.family, None, columns, coding=coding))
    S = tuple(part.S for part in factor.blocks)
    return parts, Statistics(np.exp(factor.log_weights), S, np.nan, np.nan, 0.0)
