"""From densities of standardized cells to densities in the user's units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from partita.engines.passes.residence import residence_of
from partita.execution.weights import weighted_sum
from partita.families import Block, entry_of
from partita.table import Schema


def log_jacobian(blocks: Sequence[Block], schema: Schema) -> Any:
    """For each row, the log of the factor that turns its density into one in the user's units."""
    total: Any = 0.0
    for part in _parts(blocks, schema):
        total = total + part
    return total


def total_log_jacobian(blocks: Sequence[Block], schema: Schema, weights: np.ndarray) -> float:
    """The sum over the rows, with their weights."""
    return sum((weighted_sum(weights, part) for part in _parts(blocks, schema)), 0.0)


def _parts(blocks: Sequence[Block], schema: Schema) -> Iterator[Any]:
    """Terms of the log factors of the rows, each with an entry per row."""
    for block in blocks:
        if _has_rest(block):
            yield block.log_rest
    scales = [
        np.log([schema.column(name).scale for name in block.columns]) if _is_standardized(block) else None
        for block in blocks
    ]
    if any(scale is not None for scale in scales):
        negative = [None if scale is None else -scale for scale in scales]
        yield residence_of(blocks).sum_observed(blocks, negative)


def _has_rest(block: Any) -> bool:
    """Whether the block has its own log density in the user's units (packed blocks have none)."""
    return getattr(block, "signal", None) is not None or getattr(block, "coding", None) is not None


def _is_standardized(block: Block) -> bool:
    entry = entry_of(block.family)
    return entry.kind == "real" and not entry.raw and not _has_rest(block)
