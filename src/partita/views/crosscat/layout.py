"""The data of a table arranged for a sampler that moves columns between views.

Every view holds one block per family of the table, some of them without columns, so that all views have the same type:
the sampler is compiled once per table, not once per combination of families in a view. The table itself is stored
column by column, because the column step reads whole columns; the columns of a view are stored row by row, because a
Gibbs sweep reads whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import n_stats
from partita.families.columns import column_by_column, take_columns, take_data
from partita.families.contract import n_columns
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals


class Layout(NamedTuple):
    """The blocks of a table, and the units of columns that move together."""

    blocks: tuple[Block, ...]  # data column by column
    starts: np.ndarray  # number of the first column of each block; the last entry is the number of columns
    units: tuple[np.ndarray, ...]  # columns of each unit
    sizes: np.ndarray  # number of columns of each unit
    apart: np.ndarray  # [unit, unit] bool: whether sharing a view is forbidden

    @property
    def n_columns(self) -> int:
        """Number of columns of all blocks."""
        return int(self.starts[-1])


def lay_out(
    blocks: Sequence[Block],
    together: Sequence[Sequence[int]] = (),
    apart: Sequence[tuple[int, int]] = (),
) -> Layout:
    """Arrange blocks whose columns are numbered block after block.

    Parameters
    ----------
    blocks : sequence of Block
        Families that read single cells.
    together : sequence of sequences of int
        Groups of columns that must share a view.
    apart : sequence of pairs of int
        Columns that must not share a view.

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
    """Positions of the given columns in each block."""
    return [
        columns[(columns >= lo) & (columns < hi)] - lo
        for lo, hi in zip(layout.starts[:-1], layout.starts[1:], strict=True)
    ]


def view_blocks(layout: Layout, families: Sequence[Any], columns: np.ndarray) -> tuple[Block, ...]:
    """The given columns as blocks, one per block of the table."""
    return tuple(
        Block(take_columns(family, positions), take_data(block.data, positions), ())
        for block, family, positions in zip(
            layout.blocks, families, part_columns(layout, columns), strict=True
        )
    )


def evidence(blocks: Sequence[Block], families: Sequence[Any], z: np.ndarray, K: int) -> np.ndarray:
    """Log marginal likelihood of every column of the blocks given the row partition z."""
    out = []
    for block, family in zip(blocks, families, strict=True):
        S = np.zeros((n_stats(family), K))
        add_statistics(family, block.data, z, S)
        out.append(log_marginals(family, S).sum(axis=1))
    return np.concatenate(out)
