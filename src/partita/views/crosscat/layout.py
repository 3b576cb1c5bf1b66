"""Columns of a table as things that can be taken, put back and moved between views.

Every view holds one block for each family of the table, some of them without columns, so that all views have the same
type: a sampler over views is compiled once for a table, not once for each mixture of families that a view may have.
The table itself is kept column by column (the step that moves columns reads one column from top to bottom), the
columns of a view row by row (a sweep reads one row from left to right).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import n_stats
from partita.families.columns import column_by_column, put_columns, take_columns, take_data
from partita.families.contract import n_columns
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals

__all__ = [
    "Layout",
    "evidence",
    "lay_out",
    "part_columns",
    "put_columns",
    "take_columns",
    "take_data",
    "view_blocks",
]


class Layout(NamedTuple):
    """A table for a sampler over views: blocks, and the units that move as one."""

    blocks: tuple[Block, ...]  # data column by column
    starts: np.ndarray  # number of the first column of each block; the last entry is the number of columns
    units: tuple[np.ndarray, ...]  # columns that are forced together
    sizes: np.ndarray  # columns of each unit
    apart: np.ndarray  # [unit, unit] bool: may not share a view

    @property
    def n_columns(self) -> int:
        """Columns of all blocks."""
        return int(self.starts[-1])


def lay_out(
    blocks: Sequence[Block],
    together: Sequence[Sequence[int]] = (),
    apart: Sequence[tuple[int, int]] = (),
) -> Layout:
    """The layout of blocks whose columns are numbered block after block.

    Parameters
    ----------
    blocks : sequence of Block
        Families that read single cells.
    together : sequence of sequences of int
        Columns that share a view, whatever the data say.
    apart : sequence of pairs of int
        Columns that never share one.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> block = Block(Bernoulli.default(4), np.zeros((3, 4), np.int8), tuple("abcd"))
    >>> layout = lay_out([block], together=[[0, 2], [2, 3]], apart=[(1, 3)])
    >>> [unit.tolist() for unit in layout.units]
    [[0, 2, 3], [1]]
    >>> layout.apart.tolist()
    [[False, True], [True, False]]
    """
    widths = [int(n_columns(block.family)) for block in blocks]
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    root = np.arange(starts[-1])
    for group in together:
        for a in group[1:]:
            root[root == root[a]] = root[group[0]]
    units = tuple(np.flatnonzero(root == r) for r in dict.fromkeys(root.tolist()))
    unit_of = np.empty(len(root), np.int64)
    for u, columns in enumerate(units):
        unit_of[columns] = u
    forbidden = np.zeros((len(units), len(units)), bool)
    for a, b in apart:
        forbidden[unit_of[a], unit_of[b]] = forbidden[unit_of[b], unit_of[a]] = True
    held = tuple(block._replace(data=column_by_column(block.data)) for block in blocks)
    return Layout(held, starts, units, np.array([len(u) for u in units]), forbidden)


def part_columns(layout: Layout, columns: np.ndarray) -> list[np.ndarray]:
    """For each block, the positions in it of the given columns."""
    return [
        columns[(columns >= lo) & (columns < hi)] - lo
        for lo, hi in zip(layout.starts[:-1], layout.starts[1:], strict=True)
    ]


def view_blocks(layout: Layout, families: Sequence[Any], columns: np.ndarray) -> tuple[Block, ...]:
    """The given columns as blocks, one for each family of the table."""
    return tuple(
        Block(take_columns(family, positions), take_data(block.data, positions), ())
        for block, family, positions in zip(
            layout.blocks, families, part_columns(layout, columns), strict=True
        )
    )


def evidence(blocks: Sequence[Block], families: Sequence[Any], z: np.ndarray, K: int) -> np.ndarray:
    """Log marginal likelihood of every column of the blocks if the rows are divided as z says."""
    out = []
    for block, family in zip(blocks, families, strict=True):
        S = np.zeros((n_stats(family), K))
        add_statistics(family, block.data, z, S)
        out.append(log_marginals(family, S).sum(axis=1))
    return np.concatenate(out)
