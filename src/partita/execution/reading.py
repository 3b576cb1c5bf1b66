"""Read a table in chunks: one pass learns the schema, a second pass encodes every shard where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from partita.execution.cluster import Cluster, ClusterShards, DaskChunks, running_client
from partita.execution.columns import GridShards
from partita.execution.shards import Shards, local_shards, shard_rows
from partita.execution.sources import ChunkSource
from partita.table import Note, Schema, Table, check_weights, read_table
from partita.table.columns import Policy
from partita.table.notes import Findings
from partita.table.reading import empty_rows_note
from partita.table.summaries import TableSummary, learn_from_summaries, shift_rows, summarize


@dataclass(eq=False)
class ShardedTable:
    """A table in shards: its schema and its raw shards. The counterpart of `Table`, which is in memory.

    Examples
    --------
    >>> from partita.execution import open_chunks
    >>> table = read_chunks(open_chunks(np.array([[1.5], [2.5], [np.nan]]), rows=2), None)
    >>> table.schema.kinds, table.n_rows, table.n_missing
    (('real',), 3, {'x0': 1})
    """

    schema: Schema
    n_rows: int
    weights: np.ndarray
    shards: Shards
    notes: list[Note] = field(default_factory=list)
    n_missing: dict[str, int] = field(default_factory=dict)  # per modeled column
    n_seen: dict[str, int] = field(default_factory=dict)
    sparse: Any = None

    def encode(self, function: Callable[..., Any], common: Any) -> Shards:
        """Return new shards that hold ``function(table, common)``, a tuple of arrays, of the table of every shard."""
        return self.shards.derive(_encoded, (function, common, self.schema))

    def collected(self) -> Table:
        """Return the whole table in memory, as codes and floats."""
        columns: dict[str, list[np.ndarray]] = {}
        notes = list(self.notes)
        made: Any = None
        for made in self.shards.map(_coded, self.schema):
            for column in made.columns:
                columns.setdefault(column.name, []).append(column.values)
        joined = []
        for column in made.columns:
            values = np.concatenate(columns.pop(column.name))
            values.flags.writeable = False
            joined.append(column._replace(values=values))
        return Table(self.schema, joined, self.n_rows, self.weights, notes)


def _coded(container: Any, schema: Schema, _: Any) -> Table:
    return read_table(container, schema=schema)


def _encoded(container: Any, common: Any, _: Any) -> Any:
    function, more, schema = common
    return function(read_table(container, schema=schema), more)


def read_chunks(
    source: ChunkSource,
    kinds: Any,
    *,
    sample_weight: Any = None,
    executor: Any = None,
    missing_codes: Any = None,
    negative: str = "error",
    infer_ordinal: bool = True,
    apart: bool = False,
) -> ShardedTable:
    """Learn the schema of a table in chunks: kinds, levels, scales and notes as if it were read as a whole.

    Parameters
    ----------
    source : ChunkSource
        The table.
    kinds, missing_codes, negative, infer_ordinal
        As in :func:`partita.table.read_table`.
    sample_weight : array of shape (n_rows,), default=None
        Weights of the rows.
    executor : Executor, default=None
        Where passes run.
    apart : bool, default=False
        Whether the pieces of a Dask array that is cut along its columns stay on their workers.

    Returns
    -------
    ShardedTable

    Examples
    --------
    >>> from partita.execution import open_chunks
    >>> table = read_chunks(open_chunks(np.arange(30).reshape(10, 3) % 2, rows=3), None)
    >>> table.schema.kinds
    ('binary', 'binary', 'binary')
    """
    shards, n_rows = open_shards(source, executor, apart=apart)
    if n_rows == 0 or source.n_columns == 0:
        raise ValueError(
            f"Found array with shape=({n_rows}, {source.n_columns}) while rows and columns are required."
        )
    if sample_weight is None:
        weights = np.broadcast_to(np.float64(1.0), n_rows)  # takes no memory
    else:
        weights = check_weights(sample_weight, n_rows)
    shares = shards.split(None if sample_weight is None else weights)
    own = [(int(lo), share) for lo, share in zip(shards.starts[:-1], shares, strict=True)]
    summaries = _summaries(shards, (kinds, missing_codes), own)
    _check_alike(summaries, shards.starts)
    findings = Findings()
    policy = Policy(missing_codes, negative, infer_ordinal=infer_ordinal)
    schema = learn_from_summaries(summaries, kinds, policy, findings)
    _note_empty_rows(summaries, shards.starts, findings)
    counts = [
        {
            name: sum(getattr(shard.columns[p], what) for shard in summaries if shard.columns[p] is not None)
            for p, name in enumerate(schema.names)
            if schema.columns[p].kind != "ignore"
        }
        for what in ("n_absent", "n_seen")
    ]
    return ShardedTable(schema, n_rows, weights, shards, findings.notes(), *counts)


def _summaries(shards: Shards, common: Any, own: Sequence[Any]) -> list[TableSummary]:
    if not isinstance(shards, GridShards):
        return list(shards.map(_summed, common, own))
    rows = []
    for pieces in shards.map_pieces(_summed, [common] * (len(shards.cuts) - 1), own):
        columns = [
            column and replace(column, name=f"x{position}")
            for position, column in enumerate(column for piece in pieces for column in piece.columns)
        ]
        names = [f"x{position}" for position in range(len(columns))]
        first = pieces[0]
        rows.append(TableSummary(first.n_rows, names, names, False, first.dtype, columns))
    return rows


def open_shards(source: ChunkSource, executor: Any = None, *, apart: bool = False) -> tuple[Shards, int]:
    """Return the raw shards of a source, and its number of rows.

    The chunks of a Dask collection become shards as they are; any other source is cut into shards of equal size.
    """
    if isinstance(source, DaskChunks):
        client = executor.client if isinstance(executor, Cluster) else running_client()
        if client is not None:
            cluster = executor if isinstance(executor, Cluster) else Cluster(client)
            return _chunks_on_workers(source, cluster, apart)
        source = source.counted()
    size = shard_rows(source.n_columns)
    local = local_shards(
        source.n_rows, source.defer, size, None if isinstance(executor, Cluster) else executor
    )
    if isinstance(executor, Cluster):
        return ClusterShards(local.starts, local._loaders, executor), source.n_rows
    return local, source.n_rows


def _chunks_on_workers(source: DaskChunks, cluster: Cluster, apart: bool) -> tuple[Shards, int]:
    everything = ClusterShards(np.arange(len(source.chunks) + 1), source.chunks, cluster)
    sizes = source.sizes or tuple(everything.map(_count, None))
    filled = [(chunk, size) for chunk, size in zip(source.chunks, sizes, strict=True) if size]
    starts = np.concatenate([[0], np.cumsum([size for _, size in filled])]).astype(np.int64)
    if apart and source.grid is not None:
        grid = [row for row, size in zip(source.grid, sizes, strict=True) if size]
        return GridShards(starts, grid, np.concatenate([[0], np.cumsum(source.widths)]), cluster), int(
            starts[-1]
        )
    return ClusterShards(starts, [chunk for chunk, _ in filled], cluster), int(starts[-1])


def _count(container: Any, _common: Any, _own: Any) -> int:
    return len(container)


def _summed(container: Any, common: Any, own: tuple[int, np.ndarray | None]) -> TableSummary:
    kinds, missing_codes = common
    start, weights = own
    try:
        return summarize(container, kinds, weights, missing_codes)
    except (ValueError, TypeError) as error:
        raise type(error)(shift_rows(str(error), start)) from error


def _note_empty_rows(summaries: Sequence[TableSummary], starts: np.ndarray, findings: Findings) -> None:
    count = sum(shard.n_empty for shard in summaries)
    if count:
        first = next(
            start + shard.first_empty
            for shard, start in zip(summaries, starts, strict=False)
            if shard.n_empty
        )
        findings.add_note(empty_rows_note(count, int(first)))


def _check_alike(summaries: Sequence[TableSummary], starts: np.ndarray) -> None:
    """Check that all shards have the same columns: files were compared before, chunks of a data frame were not."""
    for shard, start in zip(summaries[1:], starts[1:], strict=False):
        if list(shard.names) != list(summaries[0].names):
            raise ValueError(
                f"the chunk that begins with row {start} has the columns {shard.names}, but the first chunk has "
                f"{summaries[0].names}: give all chunks the same columns in the same order"
            )


def read_whole(source: ChunkSource) -> Any:
    """Read all rows at once, as an array or data frame like the chunks."""
    if isinstance(source, DaskChunks):
        source = source.counted()
    return source.rows(0, source.n_rows)
