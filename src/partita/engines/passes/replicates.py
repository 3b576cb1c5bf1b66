"""Passes over the copies of rows: labels of each copy in, a mark for each copy and sums out.

The labels of all copies are held by the driver; a part gets its own, and gives its marks back. So a pass may run where
the rows are, and random numbers that depend on the place of a copy alone make it the same pass everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.engines.passes.exact_sums import ExactSums, add_exactly, merge_sums
from partita.engines.passes.rows import filled, shards_of, shells
from partita.execution import Serial, row_chunks
from partita.families.contract import partly_seen
from partita.families.registry import Block

__all__ = ["any_partly_seen", "map_copies"]

# (blocks, rows, copies, labels of the copies, common) -> marks of the copies (or None), sums
CopyPass = Callable[..., tuple[np.ndarray | None, tuple[np.ndarray, ...]]]


def map_copies(
    function: CopyPass,
    common: Any,
    blocks: Sequence[Block],
    first: np.ndarray,
    z: np.ndarray,
    executor: Any,
    marks: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Sums of ``function`` over all rows; what it marks goes to ``marks``.

    Parameters
    ----------
    function : callable
        At the top level of a module. Gets blocks, rows (as their data count them), the first copies of the rows (as
        the table counts them, and one more), the labels of these copies, and ``common``.
    common : anything small
        What a part needs beside its rows.
    blocks : sequence of Block
        In memory or in parts.
    first : ndarray
        First copy of each row, and the number of all.
    z : ndarray
        Labels of all copies.
    executor : Executor
        For rows in memory.
    marks : ndarray, optional
        Of all copies, filled in place.
    """
    parts = shards_of(blocks)
    if parts is None:
        results = (executor or Serial()).map(
            lambda rows: _one(function, common, blocks, rows, first, z), row_chunks(len(first) - 1)
        )
        total: ExactSums | None = None
        for lo, marked, sums in results:
            _put(marks, lo, marked)
            total = _begin(sums) if total is None else add_exactly(total, sums)
    else:
        own = [
            (int(lo), first[lo : hi + 1], z[first[lo] : first[hi]])
            for lo, hi in zip(parts.starts, parts.starts[1:], strict=False)
        ]
        total = None
        for lo, marked, sums in parts.map(_pass_shard, (function, common, shells(blocks)), own):
            _put(marks, lo, marked)
            total = sums if total is None else merge_sums(total, sums)
    assert total is not None
    return [value + lack for value, lack in zip(*total, strict=True)]


def _pass_shard(data: Sequence[Any], common: Any, own: Any) -> tuple[int, np.ndarray | None, ExactSums]:
    function, about, blocks = common
    start, first, z = own
    here = filled(blocks, data)
    total: ExactSums | None = None
    pieces = []
    for rows in row_chunks(len(first) - 1, start=start):
        copies = first[rows[0] : rows[-1] + 2]
        marked, sums = function(here, rows, copies, z[copies[0] - first[0] : copies[-1] - first[0]], about)
        pieces.append(marked)
        total = _begin(sums) if total is None else add_exactly(total, sums)
    assert total is not None
    return int(first[0]), None if pieces[0] is None else np.concatenate(pieces), total


def _one(
    function: CopyPass, common: Any, blocks: Any, rows: np.ndarray, first: np.ndarray, z: np.ndarray
) -> Any:
    copies = first[rows[0] : rows[-1] + 2]
    return int(copies[0]), *function(blocks, rows, copies, z[copies[0] : copies[-1]], common)


def _put(marks: np.ndarray | None, lo: int, marked: np.ndarray | None) -> None:
    if marks is not None and marked is not None:
        marks[lo : lo + len(marked)] = marked


def _begin(sums: Sequence[np.ndarray]) -> ExactSums:
    return list(sums), [np.zeros_like(s) for s in sums]


def any_partly_seen(blocks: Sequence[Block]) -> list[str]:
    """Names of the families of blocks that have vectors of which only some coordinates were seen."""
    parts = shards_of(blocks)
    if parts is None:
        seen = [partly_seen(block.family, block.data) for block in blocks]
    else:
        seen = list(np.any(list(parts.map(_partly_seen_shard, shells(blocks))), axis=0))
    return [type(block.family).__name__ for block, partly in zip(blocks, seen, strict=True) if partly]


def _partly_seen_shard(data: Sequence[Any], blocks: Any, _: Any) -> list[bool]:
    return [partly_seen(block.family, block.data) for block in filled(blocks, data)]
