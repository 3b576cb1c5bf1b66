"""Reading a table in blocks: one pass for its schema, then a pass that encodes every part, wherever it lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from partita.execution.cluster import Cluster, ClusterParts, DaskBlocks, running_client
from partita.execution.columns import GridParts
from partita.execution.executors import Serial
from partita.execution.parts import LocalParts, Parts, local_parts, part_rows
from partita.execution.sources import BlockSource
from partita.table import Note, Schema, Table, check_weights, read_table
from partita.table.columns import Policy
from partita.table.notes import Findings
from partita.table.reading import empty_rows_note
from partita.table.summaries import TableSummary, learn_from_summaries, shift_rows, summarize

__all__ = ["PartedTable", "open_parts", "read_blocks", "read_whole"]


@dataclass(eq=False)
class PartedTable:
    """The schema of a table in blocks, and its raw parts; what `Table` is for one in memory.

    Examples
    --------
    >>> from partita.execution import open_blocks
    >>> table = read_blocks(open_blocks(np.array([[1.5], [2.5], [np.nan]]), rows=2), None)
    >>> table.schema.kinds, table.n_rows, table.n_missing
    (('real',), 3, {'x0': 1})
    """

    schema: Schema
    n_rows: int
    weights: np.ndarray
    parts: Parts
    notes: list[Note] = field(default_factory=list)
    n_missing: dict[str, int] = field(default_factory=dict)  # of each column that is modelled
    n_seen: dict[str, int] = field(default_factory=dict)
    sparse: Any = None

    def encode(self, function: Callable[..., Any], common: Any) -> Parts:
        """Parts of ``function(table, common)``, a tuple of arrays, of the table of every part."""
        return self.parts.derive(_encoded, (function, common, self.schema))

    def collected(self) -> Table:
        """The whole table in memory, in codes and floats."""
        columns: dict[str, list[np.ndarray]] = {}
        notes = list(self.notes)
        made: Any = None
        for made in self.parts.map(_coded, self.schema):
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


def read_blocks(
    source: BlockSource,
    kinds: Any,
    *,
    sample_weight: Any = None,
    executor: Any = None,
    missing_code: int | None = None,
    negative: str = "error",
    apart: bool = False,
) -> PartedTable:
    """The schema pass: kinds, levels, scales and notes as if the table had been read as a whole.

    Parameters
    ----------
    source : BlockSource
    kinds, missing_code, negative
        As in :func:`partita.table.read_table`.
    sample_weight : array of shape (n_rows,), optional
    executor : Executor, optional
        Where passes run.
    apart : bool
        Whether columns that lie apart (chunks of a Dask array) stay so.

    Examples
    --------
    >>> from partita.execution import open_blocks
    >>> table = read_blocks(open_blocks(np.arange(30).reshape(10, 3) % 2, rows=3), None)
    >>> table.schema.kinds
    ('binary', 'binary', 'binary')
    """
    parts, n_rows = open_parts(source, executor, apart=apart)
    if n_rows == 0 or source.n_columns == 0:
        raise ValueError(
            f"Found array with shape=({n_rows}, {source.n_columns}) while rows and columns are required."
        )
    if sample_weight is None:
        weights = np.broadcast_to(np.float64(1.0), n_rows)  # takes no memory
    else:
        weights = check_weights(sample_weight, n_rows)
    shares = parts.split(None if sample_weight is None else weights)
    own = [(int(lo), share) for lo, share in zip(parts.starts[:-1], shares, strict=True)]
    summaries = _summaries(parts, (kinds, missing_code), own)
    _check_alike(summaries, parts.starts)
    findings = Findings()
    schema = learn_from_summaries(summaries, kinds, Policy(missing_code, negative), findings)
    _note_empty_rows(summaries, parts.starts, findings)
    counts = [
        {
            name: sum(getattr(part.columns[p], what) for part in summaries if part.columns[p] is not None)
            for p, name in enumerate(schema.names)
            if schema.columns[p].kind != "ignore"
        }
        for what in ("n_absent", "n_seen")
    ]
    return PartedTable(schema, n_rows, weights, parts, findings.notes(), *counts)


def _summaries(parts: Parts, common: Any, own: Sequence[Any]) -> list[TableSummary]:
    if not isinstance(parts, GridParts):
        return list(parts.map(_summed, common, own))
    rows = []
    for pieces in parts.map_pieces(_summed, [common] * (len(parts.cuts) - 1), own):
        columns = [
            column and replace(column, name=f"x{position}")
            for position, column in enumerate(column for piece in pieces for column in piece.columns)
        ]
        names = [f"x{position}" for position in range(len(columns))]
        first = pieces[0]
        rows.append(TableSummary(first.n_rows, names, names, False, first.dtype, columns))
    return rows


def open_parts(source: BlockSource, executor: Any = None, *, apart: bool = False) -> tuple[Parts, int]:
    """The raw parts of a source: chunks of Dask stay what they are, everything else is cut anew."""
    if isinstance(source, DaskBlocks):
        client = executor.client if isinstance(executor, Cluster) else running_client()
        if client is not None:
            cluster = executor if isinstance(executor, Cluster) else Cluster(client)
            return _chunks_on_workers(source, cluster, apart)
        source = source.counted()
    size = part_rows(source.n_columns)
    local = local_parts(source.n_rows, source.part, size, None if isinstance(executor, Cluster) else executor)
    if isinstance(executor, Cluster):
        return ClusterParts(local.starts, local._loaders, executor), source.n_rows
    return local, source.n_rows


def _chunks_on_workers(source: DaskBlocks, cluster: Cluster, apart: bool) -> tuple[Parts, int]:
    everything = ClusterParts(np.arange(len(source.chunks) + 1), source.chunks, cluster)
    sizes = source.sizes or tuple(everything.map(_count, None))
    filled = [(chunk, size) for chunk, size in zip(source.chunks, sizes, strict=True) if size]
    starts = np.concatenate([[0], np.cumsum([size for _, size in filled])]).astype(np.int64)
    if apart and source.grid is not None:
        grid = [row for row, size in zip(source.grid, sizes, strict=True) if size]
        return GridParts(starts, grid, np.concatenate([[0], np.cumsum(source.widths)]), cluster), int(
            starts[-1]
        )
    return ClusterParts(starts, [chunk for chunk, _ in filled], cluster), int(starts[-1])


def _count(container: Any, _common: Any, _own: Any) -> int:
    return len(container)


def _summed(container: Any, common: Any, own: tuple[int, np.ndarray | None]) -> TableSummary:
    kinds, missing_code = common
    start, weights = own
    try:
        return summarize(container, kinds, weights, missing_code)
    except (ValueError, TypeError) as error:
        raise type(error)(shift_rows(str(error), start)) from error


def _note_empty_rows(summaries: Sequence[TableSummary], starts: np.ndarray, findings: Findings) -> None:
    count = sum(part.n_empty for part in summaries)
    if count:
        first = next(
            start + part.first_empty for part, start in zip(summaries, starts, strict=False) if part.n_empty
        )
        findings.add_note(empty_rows_note(count, int(first)))


def _check_alike(summaries: Sequence[TableSummary], starts: np.ndarray) -> None:
    """Files are compared before anything is read; chunks of a data frame may still differ."""
    for part, start in zip(summaries[1:], starts[1:], strict=False):
        if list(part.names) != list(summaries[0].names):
            raise ValueError(
                f"the block that begins with row {start} has the columns {part.names}, and the first one has "
                f"{summaries[0].names}: give all blocks the same"
            )


def read_whole(source: BlockSource) -> Any:
    """All rows at once, as the array or data frame that the blocks are."""
    if isinstance(source, DaskBlocks):
        source = source.counted()
    return source.rows(0, source.n_rows)


def serial_parts(data: Sequence[Any], sizes: Sequence[int], executor: Any = None) -> LocalParts:
    """Parts of data that are in memory: for tests, and for engines that cut what they have.

    Examples
    --------
    >>> serial_parts([(np.zeros(2),), (np.zeros(3),)], [2, 3]).n_rows
    5
    """
    from partita.execution.parts import Held

    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return LocalParts(starts, [Held(item) for item in data], executor or Serial())
