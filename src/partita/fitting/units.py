"""From densities of standardized cells to densities in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.residence import residence_of
from partita.execution.weights import weighted_sum
from partita.families import Block, entry_of
from partita.table import Schema


def log_jacobian(blocks: Sequence[Block], schema: Schema) -> Any:
    """For each row, the log of the factor that turns its density into one in the user's units."""
    total: Any = 0.0
    for block in blocks:
        if _has_rest(block):
            total = total + block.log_rest
    widths = _log_widths(blocks, schema)
    return total if widths is None else total + residence_of(blocks).sum_observed(blocks, widths)


def total_log_jacobian(blocks: Sequence[Block], schema: Schema, weights: np.ndarray) -> float:
    """The sum over the rows, with their weights."""
    total = sum((weighted_sum(weights, block.log_rest) for block in blocks if _has_rest(block)), 0.0)
    widths = _log_widths(blocks, schema)
    return total if widths is None else total + residence_of(blocks).total_observed(blocks, widths, weights)


def _log_widths(blocks: Sequence[Block], schema: Schema) -> list[np.ndarray | None] | None:
    """What each observed cell of the columns of a block adds; None for blocks whose cells add nothing, and for all."""
    widths = [
        -np.log([schema.column(name).scale for name in block.columns]) if _is_standardized(block) else None
        for block in blocks
    ]
    return None if all(own is None for own in widths) else widths


def _has_rest(block: Any) -> bool:
    """Whether the block has its own log density in the user's units (packed blocks have none)."""
    return getattr(block, "signal", None) is not None or getattr(block, "coding", None) is not None


def _is_standardized(block: Block) -> bool:
    entry = entry_of(block.family)
    return entry.kind == "real" and not entry.raw and not _has_rest(block)
