"""Label matrices that are not in memory: read in chunks if the method can pass over chunks, else as codes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita.consensus.labelings import (
    Labelings,
    OpenedMembers,
    choose_members,
    gather,
    open_report,
    other_negatives,
    reading_options,
)
from partita.consensus.reduction import max_rows
from partita.estimator import FitReport
from partita.execution import (
    ChunkSource,
    ShardData,
    ShardedTable,
    choose,
    read_chunks,
    read_whole,
)
from partita.execution.columns import GridShards
from partita.table import Schema, Table, read_table

LABEL_ROWS = 1 << 20  # that are renumbered at a time
DEFAULT_CLUSTERS = 30  # for the estimate of the time of a pass without n_clusters


class ReadMembers(NamedTuple):
    """A label matrix that was read in chunks."""

    schema: Schema
    report: FitReport
    labelings: Labelings
    columns: np.ndarray  # positions of the members that take part
    codes: Any  # of all rows, in the same columns


class ShardReading(NamedTuple):
    """How an estimator reads label matrices that are not in memory."""

    executor: Any
    n_clusters: int | None
    noise: str
    passes_over_shards: bool
    fits_reduced: bool
    reads_columns_apart: bool
    verbose: bool


def read_sharded(
    source: ChunkSource, asked: bool, sample_weight: Any, member_weight: Any, how: ShardReading
) -> tuple[Any, ReadMembers | None]:
    """Read the matrix: ``(X, None)`` if it fits into memory, otherwise ``(None, members)``.

    ``asked`` means that the user has opened the source of chunks, which is then kept whatever its size.
    """
    bound = how.n_clusters or DEFAULT_CLUSTERS
    choice = choose(source, bound, how.executor, in_chunks=asked, verbose=how.verbose)
    if choice.where == "memory":
        return read_whole(source), None
    table = read_chunks(
        source, "categorical", sample_weight=sample_weight, executor=how.executor,
        apart=how.passes_over_shards and how.reads_columns_apart, **reading_options(how.noise),
    )  # fmt: skip
    if how.noise != "missing" and other_negatives(table.schema):
        read_chunks(source, "categorical", missing_codes=-1, executor=how.executor)  # refuses the cell
    members = OpenedMembers(None, None, None)
    report = open_report(table, how.noise)
    report.add("execution", choice.sentence)
    if how.noise != "singletons" and (how.passes_over_shards or (how.fits_reduced and _is_large(table))):
        found = _in_shards(table, members, member_weight, report)
        if found is not None:
            return None, found
    labelings, columns, codes = gather(table.collected(), members, how.noise, member_weight, report)
    return None, ReadMembers(table.schema, report, labelings, columns, codes)


def _is_large(table: ShardedTable) -> bool:
    """Whether methods that need codes in memory get distinct rows or a sample; weights that are not whole numbers
    are relative to the number of rows, which distinct rows would change.
    """
    whole = bool((table.weights == np.floor(table.weights)).all())
    return whole and table.n_rows > max_rows(len(table.schema.of_kind("categorical")))


def _in_shards(
    table: ShardedTable, members: OpenedMembers, member_weight: Any, report: FitReport
) -> ReadMembers | None:
    """The labelings of all rows, with the codes in chunks; None for a single labeling, which needs no mixture.

    Rows without any label have weight 0, and are labeled as new rows are.
    """
    schema = table.schema
    n_levels = np.array([column.n_levels for column in schema.of_kind("categorical")], dtype=np.int64)
    n_seen = np.array([table.n_seen[column.name] for column in schema.of_kind("categorical")])
    shares, owners, use = choose_members(schema, members, n_levels, n_seen, member_weight, report)
    if use.sum() == 1:
        return None
    if isinstance(table.shards, GridShards):
        parts, seen = _apart(table, table.shards, use)
    else:
        parts = table.encode(_codes_of_shard, np.flatnonzero(use))
        seen = np.concatenate(list(parts.map(_any_label, None)))
    weights = table.weights if seen.all() else np.where(seen, table.weights, 0.0)
    everyone: Any = range(table.n_rows)
    codes: Any = ShardData(parts, 0)
    labelings = Labelings(codes, n_levels[use], weights, shares[use], owners[use], everyone)
    return ReadMembers(schema, report, labelings, np.flatnonzero(use), codes)


def _apart(table: ShardedTable, raw: GridShards, use: np.ndarray) -> tuple[GridShards, np.ndarray]:
    """Codes of the members that take part, computed where the chunks are, and whether each row has a label."""
    modeled = np.array([column.kind != "ignore" for column in table.schema.columns])
    taken = np.zeros(len(modeled), bool)
    taken[np.flatnonzero(modeled)[use]] = True
    common, widths = [], []
    for lo, hi in pairwise(raw.cuts):
        own = Schema(table.schema.columns[lo:hi])
        common.append((own, np.flatnonzero(taken[lo:hi][modeled[lo:hi]])))
        widths.append(int(taken[lo:hi].sum()))
    made = raw.submit_pieces(_codes_of_piece, common, [None] * len(raw.grid))
    parts = GridShards(raw.starts, made, np.concatenate([[0], np.cumsum(widths)]), raw._cluster)
    rows = parts.map_pieces(_any_label, [None] * len(widths), [None] * len(made))
    return parts, np.concatenate([np.any(pieces, axis=0) for pieces in rows])


def _codes_of_piece(container: Any, common: Any, _: Any) -> tuple[np.ndarray]:
    schema, columns = common
    if not len(columns):
        return (np.zeros((len(container), 0), np.int8),)
    return _codes_of_shard(read_table(container, schema=schema), columns)


def _codes_of_shard(table: Table, columns: np.ndarray) -> tuple[np.ndarray]:
    values = table.block("categorical").values
    return (values if len(columns) == values.shape[1] else np.ascontiguousarray(values[:, columns]),)


def _any_label(data: Sequence[np.ndarray], _common: Any, _own: Any) -> np.ndarray:
    return np.asarray((data[0] >= 0).any(axis=1))


def cluster_sizes(labels: np.ndarray, weights: np.ndarray, n_clusters: int) -> np.ndarray:
    """The sum of the weights of each cluster; equal weights that take no memory are not written out.

    Examples
    --------
    >>> cluster_sizes(np.array([0, 2]), np.broadcast_to(1.0, 2), 4)
    array([1., 0., 1., 0.])
    """
    if weights.strides == (0,) and len(weights):
        return np.bincount(labels, minlength=n_clusters) * float(weights[0])
    return np.bincount(labels, weights, minlength=n_clusters)


def renumbered(labels: np.ndarray, place: np.ndarray, *, in_place: bool) -> np.ndarray:
    """The labels in other numbers; in place if a copy for all rows is to be avoided.

    Examples
    --------
    >>> renumbered(np.array([0, 1, 1]), np.array([1, 0]), in_place=True)
    array([1, 0, 0])
    """
    if not in_place:
        return place[labels]
    labels = np.require(labels, np.int64, "W")
    for lo in range(0, len(labels), LABEL_ROWS):
        labels[lo : lo + LABEL_ROWS] = place[labels[lo : lo + LABEL_ROWS]]
    return labels


def label_silent(
    model: Any, codes: ShardData, weights: np.ndarray, labels: np.ndarray, confidence: np.ndarray
) -> None:
    """Label the rows that took no part as new rows are labeled, in place."""
    silent = weights == 0
    if not silent.any():
        return
    parts = codes.shards
    if isinstance(parts, GridShards):
        pieces = parts.map_pieces(_rows_of_shard, [None] * (len(parts.cuts) - 1), parts.split(silent))
        found: Any = [np.concatenate(row, axis=1) for row in pieces]
    else:
        found = parts.map(_rows_of_shard, None, parts.split(silent))
    for lo, hi, part in zip(parts.starts, parts.starts[1:], found, strict=False):
        if len(part):
            proba = model._probabilities(part)
            own = lo + np.flatnonzero(silent[lo:hi])
            labels[own], confidence[own] = proba.argmax(axis=1), proba.max(axis=1)


def _rows_of_shard(data: Sequence[np.ndarray], _: Any, own: np.ndarray) -> np.ndarray:
    return data[0][own]
