"""Tied values in chains: drawn inside their cells, given the clusters of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.engines.climb.seeding import label_statistics
from partita.engines.passes.live import rebuild
from partita.families.contract import draw
from partita.families.gaussian_full_arrays import moments
from partita.families.registry import Block
from partita.families.ties import redraw

Values = tuple["NDArray[np.float64] | None", ...]  # of the columns of each block; None: no ties


def has_ties(blocks: Sequence[Block]) -> bool:
    """Whether some block has tied values."""
    return any(block.ties is not None for block in blocks)


def start(blocks: Sequence[Block], rng: np.random.Generator) -> tuple[Values, list[Block]]:
    """Tied values anywhere in their cells, and the blocks with them."""
    values: list[NDArray[np.float64] | None] = []
    drawn = []
    for block in blocks:
        if block.ties is None:
            values.append(None)
            drawn.append(block)
            continue
        own = block.ties.start(rng)
        values.append(own)
        data = own.copy() if block.signal is None else block.signal.scores(own)
        drawn.append(block._replace(data=data))
    return tuple(values), drawn


def as_drawn(shown: Sequence[Block], live_blocks: Sequence[Any]) -> list[Block]:
    """The blocks of the table, with tied values as they were drawn last."""
    return [
        block if block.ties is None else block._replace(data=live.data)
        for block, live in zip(shown, live_blocks, strict=True)
    ]


def step(
    live_blocks: Sequence[Any],
    shown: Sequence[Block],
    values: Values,
    z: NDArray[np.integer],
    K: int,
    rng: np.random.Generator,
) -> None:
    """Draw the tied values given the slots ``z`` of the rows and parameters drawn for the K slots, in place."""
    for live, block, own in zip(live_blocks, shown, values, strict=True):
        if block.ties is None or own is None:
            continue
        theta = draw(live.family, np.ascontiguousarray(live.S[:, :K]), rng)
        means, precisions = moments(theta, live.data.shape[1])
        live.data[:] = redraw(block.ties, block.signal, means, precisions, z, own, rng)
    rebuild(live_blocks, z)


def complete(
    blocks: Sequence[Block],
    weights: NDArray[np.float64],
    z: NDArray[np.integer],
    K: int,
    rng: np.random.Generator,
) -> list[Block]:
    """The blocks with tied values drawn given labels; rows without a label (-1) keep a value of their cell."""
    values, drawn = start(blocks, rng)
    statistics = label_statistics(drawn, weights, z, K)
    labeled = np.flatnonzero(z >= 0)
    out = []
    for block, own, S in zip(drawn, values, statistics.S, strict=True):
        if block.ties is not None and own is not None:
            means, precisions = moments(draw(block.family, S, rng), block.data.shape[1])
            data = block.data.copy()
            data[labeled] = redraw(
                block.ties.take(labeled), block.signal, means, precisions, z[labeled], own[labeled], rng
            )
            block = block._replace(data=data)
        out.append(block)
    return out
