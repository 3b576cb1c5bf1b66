"""Label matrices that are read in blocks: in parts where the method passes over them, else as codes in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from partita.consensus.labelings import (
    Labelings,
    Members,
    choose_members,
    gather,
    open_report,
    other_negatives,
    reading_options,
)
from partita.execution import (
    BlockSource,
    PartData,
    PartedTable,
    choose,
    make_executor,
    read_blocks,
    read_whole,
)
from partita.execution.columns import GridParts
from partita.fitting.engines import ENGINES
from partita.table import Schema, Table, read_table

__all__ = ["label_silent", "read_parted"]

CLUSTERS = 30  # that the time of a pass is estimated for, where their number is not given


def read_parted(
    model: Any, source: BlockSource, asked: bool, sample_weight: Any, member_weight: Any
) -> tuple[Any, Any]:
    """What the matrix is read as: ``(X, None)`` if it goes the usual way, else the labelings and all codes.

    ``asked`` says that the user has opened the blocks, which are then kept whatever their size.
    """
    executor = make_executor(getattr(model, "n_jobs", None), getattr(model, "executor", None))
    bound = getattr(model, "n_clusters", None) or CLUSTERS
    choice = choose(source, bound, executor, in_blocks=asked, verbose=getattr(model, "verbose", False))
    if choice.where == "memory":
        return read_whole(source), None
    options = reading_options(model.noise)
    apart = model._passes_over_parts() and ENGINES[getattr(model, "inference", "em")].reads_columns_apart
    table = read_blocks(
        source, "categorical", sample_weight=sample_weight, executor=executor, apart=apart, **options
    )
    if model.noise != "missing" and other_negatives(table.schema):
        read_blocks(source, "categorical", missing_code=-1, executor=executor)  # refuses the cell
    members = Members(None, None, None)
    model._remember(table.schema)
    model.fit_report_ = open_report(table, model.noise)
    model.fit_report_.add("execution", choice.sentence)
    if model._passes_over_parts() and model.noise != "singletons":
        found = _in_parts(model, table, members, member_weight)
        if found is not None:
            return found, found.codes
    labelings, model._columns, codes = gather(
        table.collected(), members, model.noise, member_weight, model.fit_report_
    )
    return labelings, codes


def _in_parts(model: Any, table: PartedTable, members: Members, member_weight: Any) -> Labelings | None:
    """The labelings of all rows, with the codes in parts; None for a single one, which needs no mixture.

    Rows without any label have weight 0: they tell nothing, and get their label as new rows would.
    """
    schema = table.schema
    n_levels = np.array([column.n_levels for column in schema.of_kind("categorical")], dtype=np.int64)
    n_seen = np.array([table.n_seen[column.name] for column in schema.of_kind("categorical")])
    shares, owners, use = choose_members(schema, members, n_levels, n_seen, member_weight, model.fit_report_)
    if use.sum() == 1:
        return None
    if isinstance(table.parts, GridParts):
        parts, seen = _apart(table, table.parts, use)
    else:
        parts = table.encode(_codes_of_part, np.flatnonzero(use))
        seen = np.concatenate(list(parts.map(_any_label, None)))
    model._columns = np.flatnonzero(use)
    weights = table.weights if seen.all() else np.where(seen, table.weights, 0.0)
    everyone: Any = range(table.n_rows)
    codes: Any = PartData(parts, 0)
    return Labelings(codes, n_levels[use], weights, shares[use], owners[use], everyone)


def _apart(table: PartedTable, raw: GridParts, use: np.ndarray) -> tuple[GridParts, np.ndarray]:
    """Codes of the members that take part, each piece where it is, and whether a row has any label."""
    modelled = np.array([column.kind != "ignore" for column in table.schema.columns])
    taken = np.zeros(len(modelled), bool)
    taken[np.flatnonzero(modelled)[use]] = True
    common, widths = [], []
    for lo, hi in pairwise(raw.cuts):
        own = Schema(table.schema.columns[lo:hi])
        common.append((own, np.flatnonzero(taken[lo:hi][modelled[lo:hi]])))
        widths.append(int(taken[lo:hi].sum()))
    made = raw.submit_pieces(_codes_of_piece, common, [None] * len(raw.grid))
    parts = GridParts(raw.starts, made, np.concatenate([[0], np.cumsum(widths)]), raw._cluster)
    rows = parts.map_pieces(_any_label, [None] * len(widths), [None] * len(made))
    return parts, np.concatenate([np.any(pieces, axis=0) for pieces in rows])


def _codes_of_piece(container: Any, common: Any, _: Any) -> tuple[np.ndarray]:
    schema, columns = common
    if not len(columns):
        return (np.zeros((len(container), 0), np.int8),)
    return _codes_of_part(read_table(container, schema=schema), columns)


def _codes_of_part(table: Table, columns: np.ndarray) -> tuple[np.ndarray]:
    values = table.block("categorical").values
    return (values if len(columns) == values.shape[1] else np.ascontiguousarray(values[:, columns]),)


def _any_label(data: Sequence[np.ndarray], _common: Any, _own: Any) -> np.ndarray:
    return np.asarray((data[0] >= 0).any(axis=1))


def label_silent(
    model: Any, codes: PartData, weights: np.ndarray, labels: np.ndarray, confidence: np.ndarray
) -> None:
    """Rows that took no part are labelled as new rows are, in place."""
    silent = weights == 0
    if not silent.any():
        return
    parts = codes.parts
    if isinstance(parts, GridParts):
        pieces = parts.map_pieces(_rows_of_part, [None] * (len(parts.cuts) - 1), parts.split(silent))
        found: Any = [np.concatenate(row, axis=1) for row in pieces]
    else:
        found = parts.map(_rows_of_part, None, parts.split(silent))
    for lo, hi, part in zip(parts.starts, parts.starts[1:], found, strict=False):
        if len(part):
            proba = model._probabilities(part)
            own = lo + np.flatnonzero(silent[lo:hi])
            labels[own], confidence[own] = proba.argmax(axis=1), proba.max(axis=1)


def _rows_of_part(data: Sequence[np.ndarray], _: Any, own: np.ndarray) -> np.ndarray:
    return data[0][own]
