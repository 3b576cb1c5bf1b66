"""Real columns of tables in shards: the signal, and rows that are directions, found by passes over the shards.

What the factor model needs of the rows are sums over them, and a sample for parallel analysis, so the signal is that of
the same table in memory up to rounding. Lumps and powers are not looked for: they need the values of a column, and
short chains over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.execution import ShardedTable
from partita.execution.shards import Shards
from partita.families import Block, Signal, entry_of, family_entry
from partita.families.factors import SignalMoments, filled_in, sampled_positions
from partita.fitting.families import log_rest_of
from partita.fitting.real_columns import Steps, allowed_steps, are_directions, filled_note, model_of_vectors
from partita.table import Schema

MAX_COLUMNS = 2000  # whose covariance matrix every shard adds up


class RowsInShards:
    """Standardized rows in shards, see :class:`partita.families.factors.SignalRows`."""

    def __init__(self, shards: Shards, index: int, weights: NDArray[np.float64], n_columns: int, holes: bool):
        self._shards, self._index, self._weights = shards, index, weights
        self.n_rows, self.n_columns = int(np.count_nonzero(weights)), n_columns
        self.has_holes = holes

    def sample(self) -> NDArray[np.float64]:
        """See :class:`partita.families.factors.SignalRows`."""
        rows = np.flatnonzero(self._weights)[sampled_positions(self.n_rows, self.n_columns)]
        own = [rows[(rows >= lo) & (rows < hi)] - lo for lo, hi in pairwise(self._shards.starts)]
        return np.nan_to_num(np.concatenate(list(self._shards.map(_rows_of_shard, self._index, own))))

    def moments(self, signal: Signal | None = None) -> SignalMoments:
        """See :class:`partita.families.factors.SignalRows`."""
        shares = self._shards.split(self._weights)
        products, missing = self._shards.reduce(_sums_of_shard, (self._index, signal), shares, _added)
        total = self._weights.sum()
        covariance = products / total
        return SignalMoments(self.n_rows, covariance.__matmul__, np.diag(covariance).copy(), missing / total)

    def share_open(self, signal: Signal) -> float:
        """As :func:`partita.fitting.real_columns.share_open`."""
        shares = self._shards.split(self._weights)
        share, n_rows = self._shards.reduce(_open_in_shard, (self._index, signal), shares, _added)
        return float(share / n_rows) if n_rows else 1.0


class Prepared(NamedTuple):
    """The block of real columns, the shards with its data, and notes."""

    block: Block
    shards: Shards
    notes: list[tuple[str, str]]


def find_shard_signal(
    block: Block, shards: Shards, index: int, table: ShardedTable, steps: Steps, holes: bool
) -> Prepared:
    """Replace the standardized columns that are the entry ``index`` of every shard by the scores of their signal."""
    n_columns = len(block.columns)
    if n_columns > MAX_COLUMNS:
        text = f"the principal directions of more than {MAX_COLUMNS} real columns are found in memory only"
        return Prepared(block, shards, [("steps", f"{text}; the columns are modeled one by one")])
    steps = allowed_steps(steps, table.weights, n_columns)
    if not steps.signal or n_columns < 2:
        return Prepared(block, shards, [])
    rows = RowsInShards(shards, index, table.weights, n_columns, holes)
    name, signal = model_of_vectors(rows, entry_of(block.family).name, rows.share_open)
    n_coordinates = n_columns if signal is None else signal.n_scores
    made = family_entry(name).block(np.empty((0, n_coordinates)), block.columns, np.empty(0))
    notes = []
    if signal is not None:
        rest = shards.map(_log_rest_of_shard, (index, signal, block.columns, table.schema))
        made = made._replace(signal=signal, log_rest=np.concatenate(list(rest)))
        if holes:
            notes = [("filled", filled_note(rows.share_open(signal)))]
        shards = shards.derive(_put_scores, (index, signal))
    return Prepared(made._replace(data=None), shards, notes)


def are_unit_shards(block: Block, shards: Shards, index: int, schema: Schema) -> bool:
    """Whether all rows of the standardized columns have the length 1 in the user's units."""
    scaling = np.array([[schema.column(name).center, schema.column(name).scale] for name in block.columns]).T
    return all(shards.map(_are_directions, (index, scaling)))


# ---- in every shard --------------------------------------------------------------------------------------------


def _rows_of_shard(data: Sequence[Any], index: int, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    return data[index][rows]


def _sums_of_shard(data: Sequence[Any], common: Any, weights: NDArray[np.float64]) -> tuple[Any, Any]:
    """Weighted sums of the products of columns, missing cells filled in, and of the missing cells."""
    index, signal = common
    filled = filled_in(data[index], signal)
    return (filled.T * weights) @ filled, weights @ np.isnan(data[index])


def _open_in_shard(data: Sequence[Any], common: Any, weights: NDArray[np.float64]) -> tuple[float, int]:
    """Sum of the shares that missing cells leave open, and number of rows, of those with a weight and a cell."""
    index, signal = common
    Z = data[index]
    Z = Z[~np.isnan(Z).all(axis=1) & (weights > 0)]
    return (float(signal.undetermined(Z).sum()), len(Z)) if len(Z) else (0.0, 0)


def _added(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    return one[0] + other[0], one[1] + other[1]


def _log_rest_of_shard(data: Sequence[Any], common: Any, _: Any) -> NDArray[np.float64]:
    index, signal, columns, schema = common
    return log_rest_of(signal, data[index], columns, schema)


def _put_scores(data: Sequence[Any], common: Any, _: Any) -> tuple[Any, ...]:
    index, signal = common
    return (*data[:index], signal.scores(data[index]), *data[index + 1 :])


def _are_directions(data: Sequence[Any], common: Any, _: Any) -> bool:
    index, (centers, scales) = common
    return are_directions(data[index] * scales + centers)
