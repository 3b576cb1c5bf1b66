"""Mixtures over tables that are read in blocks: which way a table takes into an engine, and predictions block by
block.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.estimator import FitReport
from partita.execution import (
    BlockSource,
    PartData,
    PartedTable,
    choose,
    find_blocks,
    make_executor,
    open_parts,
    read_blocks,
    read_whole,
)
from partita.execution.device import is_on_device
from partita.families import Block, Exponential, Poisson
from partita.fitting.families import Plan, assemble, gaussian_for
from partita.table import Column, Schema, Table

BY_BLOCKS = ("em", "vb", "subclusters")  # engines that pass over parts
BULKY = ("labels_", "confidence_", "trace_", "object_rows_", "noise_probability_", "_stream")


def read_training(
    model: Any, X: Any, plan: Plan, kinds: Any, sample_weight: Any
) -> tuple[Any, tuple[Block, ...]]:
    """The table, in memory or in parts, and the blocks over it."""
    if is_on_device(X):
        from partita.fitting.device import read_device_training

        return read_device_training(model, X, plan, kinds, sample_weight)
    completes = model.inference not in ("cvb", "subclusters")
    source = find_blocks(X)
    if source is not None:
        executor = make_executor(model.n_jobs, getattr(model, "executor", None))
        bound = model.n_clusters or model.max_clusters or 30
        choice = choose(
            source,
            bound,
            executor,
            in_blocks=isinstance(X, BlockSource),
            verbose=getattr(model, "verbose", False),
        )
        if choice.where != "memory" and model.inference in BY_BLOCKS:
            table = _read_parts(model, source, kinds, sample_weight, executor)
            model.fit_report_.add("execution", choice.sentence)
            return table, _parted_blocks(table, plan, model.exposure, completes)
        if choice.where != "memory" and not isinstance(X, BlockSource):
            raise ValueError(
                f"inference={model.inference!r} walks from row to row and needs the whole table in memory: use "
                "inference='vb', 'em' or 'subclusters', which read it in blocks, or pass an array"
            )
        X = read_whole(source)
    table = model._read_training(X, kinds, sample_weight)
    if source is not None:
        model.fit_report_.add("execution", choice.sentence)
    return table, assemble(table, plan, model.exposure, completes=completes)


def _read_parts(
    model: Any, source: BlockSource, kinds: Any, sample_weight: Any, executor: Any
) -> PartedTable:
    table = read_blocks(source, kinds, sample_weight=sample_weight, executor=executor)
    model._remember(table.schema)
    model.fit_report_ = FitReport(table.notes)
    return table


def _parted_blocks(
    table: PartedTable, plan: Plan, exposure: str | None, completes: bool
) -> tuple[Block, ...]:
    """Families from the schema alone, with what they learn from sums of columns; data in parts."""
    if plan.families.get("real", ("", {}))[0] == "auto":
        columns = [c.name for c in table.schema.of_kind("real") if c.name != exposure]
        holes = any(table.n_missing[name] for name in columns)
        plan = plan._replace(
            families={**plan.families, "real": (gaussian_for(table.weights, columns, holes, completes), {})}
        )
    blocks = assemble(one_row(table.schema, exposure), plan, exposure, completes=completes)
    parts = table.encode(_data_of_part, (plan, exposure, completes))
    families = [block.family for block in blocks]
    if any(isinstance(family, (Poisson, Exponential)) for family in families):
        totals = list(parts.map(_totals_of_part, families, parts.split(table.weights)))
        families = [_informed(family, [part[b] for part in totals]) for b, family in enumerate(families)]
    return tuple(
        Block(family, PartData(parts, b), block.columns)
        for b, (family, block) in enumerate(zip(families, blocks, strict=True))
    )


def one_row(schema: Schema, exposure: str | None) -> Table:
    """A table of one row that has nothing in it but its schema."""
    columns = [
        Column(c.name, c.kind, np.array([1.0 if c.name == exposure else np.nan]) if c.kind in ("real", "count")
               else np.array([-1], np.int8))
        for c in schema.columns
        if c.kind != "ignore"
    ]  # fmt: skip
    return Table(schema, columns, 1, np.ones(1))


def _data_of_part(table: Table, common: Any) -> tuple[Any, ...]:
    plan, exposure, completes = common
    return tuple(block.data for block in assemble(table, plan, exposure, completes=completes))


def _totals_of_part(data: Sequence[Any], families: Sequence[Any], weights: np.ndarray) -> list[Any]:
    """Sums over the rows, for families whose prior is as wide as the column: what was counted, and in how much."""
    totals: list[Any] = []
    for family, own in zip(families, data, strict=True):
        if isinstance(family, Poisson):
            seen = ~np.isnan(own.X)
            totals.append((np.where(seen, own.X, 0.0).T @ weights, seen.T @ (weights * own.exposure)))
        elif isinstance(family, Exponential):
            totals.append((np.nansum(own * weights[:, None], axis=0), (~np.isnan(own)).T @ weights))
        else:
            totals.append(None)
    return totals


def _informed(family: Any, totals: Sequence[Any]) -> Any:
    if totals[0] is None:
        return family
    counted, within = (np.sum([part[side] for part in totals], axis=0) for side in (0, 1))
    a = float(family[0][0])
    if isinstance(family, Poisson):
        return Poisson.of_totals(counted, within, a=a)
    return Exponential(np.full(len(counted), a), a * counted / np.maximum(within, 1e-300))


def predict_blocks(model: Any, source: BlockSource, method: str) -> np.ndarray:
    """``method`` of a fitted estimator on each part of a source, where the part is; results of all rows in order."""
    light = copy.copy(model)
    for name in BULKY:
        light.__dict__.pop(name, None)
    for name in ("executor", "callback", "n_jobs", "resume"):
        if hasattr(light, name):
            setattr(light, name, None)
    executor = make_executor(getattr(model, "n_jobs", None), getattr(model, "executor", None))
    parts, _ = open_parts(source, executor)
    return np.concatenate(list(parts.map(_predict_part, (light, method))))


def _predict_part(container: Any, common: Any, _: Any) -> np.ndarray:
    light, method = common
    return getattr(light, method)(container)
