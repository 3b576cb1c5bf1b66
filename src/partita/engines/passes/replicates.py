"""Passes over the replicates of rows: the label of each replicate in, a mark per replicate and sums out.

A row of weight w has w replicates. The driver holds the labels of all replicates; a shard gets those of its rows and
returns its marks. So a pass may run where the rows are; random numbers that depend only on the position of a replicate
make the result the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.engines.passes.memory import ReplicatePass
from partita.engines.passes.residence import residence_of
from partita.families.registry import Block


def map_replicates(
    function: ReplicatePass,
    common: Any,
    blocks: Sequence[Block],
    first: np.ndarray,
    z: np.ndarray,
    executor: Any,
    marks: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Sums of ``function`` over all rows; what it marks is written to ``marks``.

    Parameters
    ----------
    function : callable
        At the top level of a module. It gets blocks, rows (as their data count them), the first replicates of the rows
        (as the table counts them, and one more), the labels of these replicates, and ``common``.
    common : anything small
        What a shard needs beside its rows.
    blocks : sequence of Block
        In memory or in shards.
    first : ndarray
        First replicate of each row, and the number of all replicates.
    z : ndarray
        Labels of all replicates.
    executor : Executor
        For rows in memory.
    marks : ndarray, optional
        One mark per replicate, filled in place.
    """
    total = residence_of(blocks).map_replicates(function, common, blocks, first, z, executor, marks)
    return [value + lack for value, lack in zip(*total, strict=True)]


def also_on_device(make: Any, at_once: Any = None) -> Callable[[Any], Any]:
    """Decorate a function of :func:`map_replicates` with its counterpart for rows on a device.

    ``make(blocks, common)`` returns a function of the statistics T of a chunk of rows, its ends and its labels, which
    returns marks (or None) and sums on the device. ``at_once(blocks, common, z, marks)`` passes over all rows in fused
    kernels and returns the sums, or None where there are no kernels for the blocks.
    """

    def with_counterpart(function: Any) -> Any:
        function.on_device = make, at_once
        return function

    return with_counterpart


def any_partly_seen(blocks: Sequence[Block]) -> list[str]:
    """Names of the families of blocks that have vectors of which only some coordinates are observed."""
    seen = residence_of(blocks).partly_seen(blocks)
    return [type(block.family).__name__ for block, partly in zip(blocks, seen, strict=True) if partly]
