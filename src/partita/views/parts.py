"""The parts of a column: one for most columns, two for a real column with a lump.

A column with a lump has one part that says whether a cell has the lump, and one for its value elsewhere, which is
missing at the lump. Both are columns of blocks under the name of the column. Where the other values are few the first
part is the only one. Draws hold parts; what is asked about a column is answered from its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.families import Block, Lumps, Values, entry_of
from partita.table.schema import ColumnSchema
from partita.views.draws import columns_of


class Place(NamedTuple):
    """Where a part is: the number of its block, and its position there."""

    block: int
    position: int


class CellMoments(NamedTuple):
    """Mean and standard deviation of cells in the user's units."""

    mean: np.ndarray
    sd: np.ndarray


class ColumnParts:
    """The parts of one column of the table, and how its values follow from them.

    Parameters
    ----------
    blocks : sequence of Block
        All blocks of the model.
    column : ColumnSchema
        The column as it was read.
    places : sequence of Place
        Where its parts are.
    """

    def __init__(self, blocks: Sequence[Block], column: ColumnSchema, places: Sequence[Place]):
        self.column, self.places = column, tuple(places)
        self.lumps: Lumps | None = None
        self.lump_place: Place | None = None
        self.place: Place | None = None  # of the values
        self.coding: Values | None = None
        self.is_scaled = False  # whether the values are standardized by the schema
        for place in places:
            block = blocks[place.block]
            coding = None if block.coding is None else block.coding.take(np.array([place.position]))
            if (self.lump_place if isinstance(coding, Lumps) else self.place) is not None:
                raise ValueError(f"column {column.name!r} is in two blocks")
            if isinstance(coding, Lumps):
                self.lumps, self.lump_place = coding, place
            else:
                entry = entry_of(block.family)
                self.place, self.coding = place, coding
                self.is_scaled = coding is None and entry.kind == "real" and not entry.raw

    @property
    def lump(self) -> float:
        """Value of the lump."""
        assert self.lumps is not None
        return float(self.lumps.values[0])

    @property
    def is_lump_alone(self) -> bool:
        """Whether the values beside the lump have no part of their own."""
        return self.place is None

    def log_units(self, x: np.ndarray) -> np.ndarray:
        """What is added to the log densities of the parts for a density of cells in the user's units."""
        out = np.zeros(len(x))
        if self.lumps is not None:
            out += self.lumps.log_slope(0, x)
        if self.coding is not None:
            out += self.coding.log_slope(0, x)
        return out - np.log(self.column.scale) if self.is_scaled else out

    def moments(self, means: np.ndarray, variances: np.ndarray) -> CellMoments:
        """Moments of normal values in the units of their family, for any shape; of other values unchanged."""
        sd = np.sqrt(variances)
        if self.coding is not None:
            mean, spread, _ = self.coding.moments(means.reshape(-1, 1), variances.reshape(-1, 1))
            return CellMoments(mean.reshape(means.shape), spread.reshape(means.shape))
        if self.is_scaled:
            return CellMoments(self.column.center + self.column.scale * means, self.column.scale * sd)
        return CellMoments(means, sd)

    def moments_beside(self) -> CellMoments:
        """Moments of the values beside the lump in all rows, which are one normal variable for all."""
        if self.is_lump_alone:
            assert self.lumps is not None
            return CellMoments(self.lumps.centers, self.lumps.scales)
        return self.moments(np.zeros(1), np.ones(1))

    def values(self, drawn: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
        """Values in the user's units, or codes, from cells of all blocks, [row, column] in each block."""
        out = np.zeros(len(drawn[0]))
        if self.place is not None:
            out = drawn[self.place.block][:, self.place.position]
            if self.coding is not None:
                out = self.coding.decode_column(0, out)
            elif self.is_scaled:
                out = self.column.center + self.column.scale * out
        if self.lumps is None or self.lump_place is None:
            return out
        codes = drawn[self.lump_place.block][:, self.lump_place.position]
        if self.is_lump_alone:
            out = self.lumps.decode(codes[:, None], rng)[:, 0]
        return np.where(codes == 0, self.lump, out)


def parts_of_columns(schema: Any, blocks: Sequence[Block]) -> dict[int, ColumnParts]:
    """The parts of each modeled column, by its number in the table."""
    places: dict[int, list[Place]] = {}
    for b, numbers in enumerate(columns_of(schema, blocks)):
        for position, number in enumerate(numbers.tolist()):
            places.setdefault(number, []).append(Place(b, position))
    return {
        number: ColumnParts(blocks, schema.columns[number], found) for number, found in sorted(places.items())
    }
