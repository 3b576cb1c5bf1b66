"""From densities of standardized cells to densities in the user's units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partita.engines.passes.residence import residence_of
from partita.families import Block, entry_of
from partita.table import Schema


def log_jacobian(blocks: Sequence[Block], schema: Schema, n_rows: int) -> np.ndarray:
    """For each row, the log of the factor that turns its density into one in the user's units."""
    scales = [
        np.log([schema.column(name).scale for name in block.columns]) if _is_standardized(block) else None
        for block in blocks
    ]
    if all(scale is None for scale in scales):
        return np.zeros(n_rows)
    return -residence_of(blocks).sum_observed(blocks, scales)


def _is_standardized(block: Block) -> bool:
    entry = entry_of(block.family)
    return entry.kind == "real" and not entry.raw
