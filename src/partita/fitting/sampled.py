"""Fits to a sample of the rows of a large table, by models that need their rows in memory.

All rows are then labeled as new rows are, chunk by chunk. Which rows are sampled depends on their number and the random
state only, so that a table has the same labels in memory, in files and on workers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.estimator import FitReport, TableEstimator, as_generator
from partita.execution import (
    ChunkSource,
    RowRange,
    ShardedTable,
    choose,
    find_chunks,
    make_executor,
    read_chunks,
    read_whole,
)
from partita.fitting.out_of_core import ASSUMED_CLUSTERS
from partita.table import Schema, Table, read_table

LABEL_ROWS = 1 << 16  # rows of a table in memory that are labeled at a time


class SampledTable(NamedTuple):
    """The table that a model is fitted to: all rows, or a sample of them and a source of all rows."""

    table: Table
    everything: ChunkSource | None  # None: the table has all rows


class TableChunks(ChunkSource):
    """A table in memory as chunks, which are tables."""

    def __init__(self, table: Table):
        self.table = table
        self.n_columns = len(table.schema.columns)
        whole, rest = divmod(table.n_rows, LABEL_ROWS)
        self.sizes = (LABEL_ROWS,) * whole + ((rest,) if rest else ())

    def load(self, i: int) -> Table:
        """Return a part of the table."""
        return self.rows(i * LABEL_ROWS, i * LABEL_ROWS + self.sizes[i])

    def rows(self, lo: int, hi: int) -> Table:
        """Return rows of the table."""
        return self.table.take(slice(lo, hi))

    def defer(self, lo: int, hi: int) -> RowRange:
        """Return a range that holds only its own rows, which is all that another process needs."""
        return RowRange(TableChunks(self.rows(lo, hi)), 0, hi - lo)


class ReadsSample(TableEstimator):
    """Mixin of estimators that are fitted to a sample of the rows of a large table.

    The schema, and what is learned with it, is that of all rows. The estimator remembers it, opens its report, and
    checks its folder of ``resume=``, as with a table in memory.
    """

    missing_codes: Any
    n_jobs: int | None
    executor: Any
    random_state: Any
    verbose: bool | int | None
    _sampled_rows: np.ndarray  # of a model that was fitted to a sample

    def _read_sample(self, X: Any, kinds: Any, max_rows: int) -> SampledTable:
        """Read the training table, or a sample of so many rows if it has more."""
        source = find_chunks(X)
        if source is not None:
            executor = make_executor(self.n_jobs, self.executor)
            choice = choose(
                source,
                ASSUMED_CLUSTERS,
                executor,
                in_chunks=isinstance(X, ChunkSource),
                verbose=self.verbose,
            )
            if choice.where == "memory":
                X = read_whole(source)
            else:
                return self._sample_chunks(source, kinds, max_rows, executor, choice.sentence)
        table = self._read_training(X, kinds, None)
        rows = self._choose_rows(table.n_rows, max_rows)
        if rows is None:
            return SampledTable(table, None)
        return self._sampled(table.take(rows), rows, TableChunks(table), table.n_rows)

    def _sample_chunks(
        self, source: ChunkSource, kinds: Any, max_rows: int, executor: Any, where: str
    ) -> SampledTable:
        found = read_chunks(
            source, kinds, executor=executor, missing_codes=self.missing_codes, infer_ordinal=False
        )
        rows = self._choose_rows(found.n_rows, max_rows)
        table = found.collected() if rows is None else _taken(found, rows)
        self._remember(table.schema)
        self.fit_report_ = FitReport(table.notes)
        self.fit_report_.add("execution", where)
        self._claim_folder(table)
        if rows is None:
            self._training_table = table
            return SampledTable(table, None)
        return self._sampled(table, rows, source, found.n_rows)

    def _choose_rows(self, n_rows: int, max_rows: int) -> np.ndarray | None:
        if n_rows <= max_rows:
            return None
        own = as_generator(self.random_state).spawn(1)[0]
        return np.sort(own.choice(n_rows, size=max_rows, replace=False))

    def _sampled(self, table: Table, rows: np.ndarray, everything: ChunkSource, n_rows: int) -> SampledTable:
        self.fit_report_.add(
            "sample",
            f"the clusters were found from a sample of {len(rows):,} of the {n_rows:,} rows, and all rows were "
            "labeled as new rows are",
        )
        self._training_table, self._sampled_rows = table, rows  # the groups are described by these rows
        return SampledTable(table, everything)


def _taken(found: ShardedTable, rows: np.ndarray) -> Table:
    """Rows in ascending order, as a table in memory."""
    starts = found.shards.starts
    cuts = np.searchsorted(rows, starts)
    own = [rows[lo:hi] - start for lo, hi, start in zip(cuts, cuts[1:], starts, strict=False)]
    parts = list(found.shards.map(_rows_of_shard, found.schema, own))
    columns = [
        column._replace(values=np.concatenate([part.columns[c].values for part in parts]))
        for c, column in enumerate(parts[0].columns)
    ]
    for column in columns:
        column.values.flags.writeable = False
    return Table(found.schema, columns, len(rows), found.weights[rows], list(found.notes))


def _rows_of_shard(container: Any, schema: Schema, rows: np.ndarray) -> Table:
    return read_table(container, schema=schema).take(rows)
