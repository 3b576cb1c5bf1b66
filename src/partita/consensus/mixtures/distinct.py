"""The distinct rows of a label matrix with their weights, for matrices in memory and in chunks.

If most rows are distinct, or the distinct rows do not fit into memory, the engines pass over the rows themselves. The
same rule applies to matrices in memory and in chunks, so that both give the same rows in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.consensus.labelings import Labelings
from partita.engines.climb.seeding import Objects
from partita.engines.passes.device_rows import DeviceCodes
from partita.execution import CHUNK_ROWS, ShardData, Shards
from partita.execution.columns import GridShards
from partita.execution.weights import count_positive
from partita.labels import signatures

MAX_SHARE = 0.75  # distinct rows, as a share of all, up to which they replace the rows
MAX_BYTES = 1 << 28  # of distinct rows in memory, at one byte per label
MAX_MERGED_BYTES = 1 << 25  # the same for a matrix in chunks; merging takes several times as much


class DistinctRows(NamedTuple):
    """Rows that an engine passes over: label vectors, their weights, and the row of each object (None: the objects are
    the rows).
    """

    codes: Any
    weights: np.ndarray
    inverse: np.ndarray | None = None
    objects: Objects | None = None

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values of the objects, from those of the rows."""
        return values if self.inverse is None else values[self.inverse]


def distinct_rows(labelings: Labelings) -> DistinctRows:
    """The distinct label vectors with their weights, or the rows as they are.

    Examples
    --------
    >>> distinct_rows(Labelings.of([[0, 1], [1, 0], [0, 1]])).weights
    array([2., 1.])
    """
    codes, weights = labelings.codes, labelings.weights
    n_rows, n_members = count_positive(weights), len(labelings.n_levels)
    most = _max_distinct(n_rows, n_members)
    if isinstance(codes, DeviceCodes):
        return DistinctRows(codes, weights)
    if isinstance(codes, ShardData) and isinstance(codes.shards, GridShards):
        return DistinctRows(codes, weights)  # no worker holds whole rows
    if isinstance(codes, ShardData):
        found = streamed_rows(
            codes.shards, weights, min(most, max(MAX_MERGED_BYTES // n_members, CHUNK_ROWS))
        )
        return found or DistinctRows(codes, weights)
    distinct = signatures(codes, weights)
    if len(distinct.rows) > most:
        return DistinctRows(codes, weights)
    return DistinctRows(distinct.rows, distinct.weights, distinct.inverse, Objects(weights, distinct.inverse))


def _max_distinct(n_rows: int, n_members: int) -> int:
    """Largest number of distinct rows that replace the rows; a few thousand are always allowed."""
    return max(min(int(MAX_SHARE * n_rows), MAX_BYTES // n_members), CHUNK_ROWS)


class Merger:
    """Merges the distinct rows of chunks whenever as many are waiting as have been merged."""

    def __init__(self) -> None:
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._n_waiting = 0
        self.rows: np.ndarray | None = None
        self.weights = np.zeros(0)
        self.places: list[np.ndarray] = []  # positions of the distinct rows of each chunk

    def add(self, rows: np.ndarray, weights: np.ndarray) -> None:
        """Add the distinct rows of one more chunk."""
        self._waiting.append((rows, weights))
        self._n_waiting += len(rows)
        if self.rows is None or self._n_waiting >= len(self.rows):
            self.merge()

    def merge(self) -> None:
        """Merge all rows that are waiting."""
        if not self._waiting:
            return
        known = [] if self.rows is None else [(self.rows, self.weights)]
        everything = [*known, *self._waiting]
        weights = np.concatenate([own for _, own in everything])
        found = signatures(
            np.concatenate([rows for rows, _ in everything]), weights if weights.any() else None
        )
        cuts = np.cumsum([len(rows) for rows, _ in everything])[:-1]
        pieces = np.split(found.inverse, cuts)
        if known:
            first, *pieces = pieces
            self.places = [first[place] for place in self.places]
        self.places += [piece.astype(np.int32) for piece in pieces]
        self.rows, self.weights = found.rows, found.weights
        self._waiting, self._n_waiting = [], 0


def streamed_rows(parts: Shards, weights: np.ndarray, most: int) -> DistinctRows | None:
    """Distinct rows of all chunks, those with a positive weight first; None if there are too many."""
    taking, others = Merger(), Merger()
    inverse = np.empty(parts.n_rows, np.int32)
    for lo, (present, absent, place) in zip(
        parts.starts, parts.map(_distinct_of_shard, None, parts.split(weights)), strict=False
    ):
        taking.add(*present)
        others.add(*absent)
        inverse[lo : lo + len(place)] = place
        if taking.rows is not None and len(taking.rows) > most:
            return None
    taking.merge()
    others.merge()
    assert taking.rows is not None and others.rows is not None
    if len(taking.rows) > most:
        return None
    n = len(taking.rows)
    for number, lo in enumerate(parts.starts[:-1]):
        own = inverse[lo : parts.starts[number + 1]]
        table = np.concatenate([taking.places[number], others.places[number] + n])
        own[...] = table[own]
    codes = np.concatenate([taking.rows, others.rows])
    return DistinctRows(
        codes, np.append(taking.weights, np.zeros(len(others.rows))), inverse, Objects(weights, inverse)
    )


def _distinct_of_shard(data: Any, _: Any, weights: np.ndarray) -> tuple[Any, Any, np.ndarray]:
    """Distinct rows and weights, of rows with a positive weight and of the others, and the position of each row."""
    active = weights > 0
    present = signatures(data[0][active], weights[active] if active.any() else None)
    absent = signatures(data[0][~active])
    place = np.empty(len(weights), np.int32)
    place[active] = present.inverse
    place[~active] = absent.inverse + len(present.rows)
    return (present.rows, present.weights), (absent.rows, absent.weights), place
