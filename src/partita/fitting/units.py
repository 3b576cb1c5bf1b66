"""From densities of standardized cells to densities in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    rest = sum((block.log_rest for block in blocks if _has_rest(block)), np.zeros(n_rows))
    if all(scale is None for scale in scales):
        return rest
    return rest - residence_of(blocks).sum_observed(blocks, scales)


def _has_rest(block: Any) -> bool:
    """Whether the block has its own log density in the user's units (packed blocks have none)."""
    return getattr(block, "signal", None) is not None or getattr(block, "coding", None) is not None


def _is_standardized(block: Block) -> bool:
    entry = entry_of(block.family)
    return entry.kind == "real" and not entry.raw and not _has_rest(block)
