"""Reading a training table into memory, in chunks or on a device; predictions chunk by chunk."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np

from partita.estimator import FitReport
from partita.execution import (
    ChunkSource,
    ShardData,
    ShardedTable,
    choose,
    find_chunks,
    make_executor,
    open_shards,
    read_chunks,
    read_whole,
)
from partita.execution.device import is_on_device
from partita.families import Block, Exponential, Ordinal, Poisson, VonMisesFisher, entry_of
from partita.families.ordinal import count_levels
from partita.families.registry import NON_CONJUGATE
from partita.fitting.choice import AUTO, EngineChoice, choose_engine, choose_for_chunks, choose_for_device
from partita.fitting.contract import Settings
from partita.fitting.device import read_device_training
from partita.fitting.engines import ENGINES, names_of
from partita.fitting.families import (
    Plan,
    assemble,
    has_unit_rows,
    informed,
    open_share,
    table_of_schema,
)
from partita.fitting.real_columns import describe_steps, filled_note, gaussian_for, steps_of, switch
from partita.fitting.shard_columns import are_unit_shards, find_shard_signal
from partita.table import Table, read_table

ASSUMED_CLUSTERS = 30  # in the estimate of the time of a pass, if no number is given
# families whose prior depends on sums over the rows
INFORMED = (Poisson, Exponential, Ordinal, VonMisesFisher)
IN_CHUNKS = (
    "the table is read in chunks, so real columns are not searched for values that are far more frequent than others, "
    "nor for skewed columns, and values that several rows share are taken as exact; for these steps, pass an array or "
    "a data frame in memory"
)
# attributes that predictions do not need
BULKY = (
    "labels_",
    "confidence_",
    "trace_",
    "object_rows_",
    "outlier_probability_",
    "_stream",
    "_grain",
    "_uncertain",
    "_row_weights",
    "_row_of",
    "row_leaves_",
    "votes_",
    "memberships_",
    "label_matrix_",
    "_training_table",
)


class Training(NamedTuple):
    """The training table, in memory or in shards, the blocks over it, the notes on reading it, and the engine."""

    table: Any
    blocks: tuple[Block, ...]
    report: FitReport
    inference: str  # the engine that was asked for, or that was chosen for the table


def read_training(
    X: Any,
    settings: Settings,
    plan: Plan,
    kinds: Any,
    sample_weight: Any,
    *,
    executor: Any,
    verbose: bool = False,
    name: str = "Mixture",
) -> Training:
    """Read the table where the engine can use it; ``name`` is that of the estimator in messages.

    For ``inference="auto"`` the engine is chosen here, where the size and the place of the table are known.
    """
    if is_on_device(X):
        if settings.missing_codes is not None:
            raise ValueError(
                "missing_codes are for tables in main memory: replace the codes by NaN on the device"
            )
        chosen = _chosen(settings, partial(choose_for_device, settings))
        settings = settings._replace(inference=chosen.inference)
        found = read_device_training(X, settings, plan, kinds, sample_weight)
        return _noted(Training(*found, settings.inference), chosen)
    source = find_chunks(X)
    if source is None:
        return _read_in_memory(X, settings, plan, kinds, sample_weight, name)
    is_source = isinstance(X, ChunkSource)
    bound = settings.n_clusters or settings.max_clusters or ASSUMED_CLUSTERS
    choice = choose(source, bound, executor, in_chunks=is_source, verbose=verbose)
    if choice.where != "memory":
        n_rows = None if choice.table_bytes is None else source.n_rows
        chosen = _chosen(settings, partial(choose_for_chunks, settings, n_rows))
        settings = settings._replace(inference=chosen.inference)
        engine = ENGINES[settings.inference]
    if choice.where != "memory" and engine.reads_chunks:
        table = read_chunks(
            source,
            kinds,
            sample_weight=sample_weight,
            executor=executor,
            missing_codes=settings.missing_codes,
            infer_ordinal=engine.completes_vectors,
        )
        report = FitReport(table.notes)
        report.add("execution", choice.sentence)
        blocks = _sharded_blocks(table, plan, settings.exposure, engine.completes_vectors, report)
        return _noted(Training(table, blocks, report, settings.inference), chosen)
    if choice.where != "memory" and not is_source:
        raise ValueError(
            f"inference={settings.inference!r} needs the whole table in memory: use inference="
            f"{names_of('reads_chunks')}, which reads it in chunks, or pass an array"
        )
    training = _read_in_memory(read_whole(source), settings, plan, kinds, sample_weight, name)
    training.report.add("execution", choice.sentence)
    return training


def _read_in_memory(
    X: Any, settings: Settings, plan: Plan, kinds: Any, sample_weight: Any, name: str
) -> Training:
    # the engines among which one is chosen complete vectors, or take no table that has partly observed ones
    completes = settings.inference == AUTO or ENGINES[settings.inference].completes_vectors
    conjugate = all(family not in NON_CONJUGATE for family, _ in plan.families.values())
    table = read_table(
        X,
        kinds,
        sample_weight=sample_weight,
        missing_codes=settings.missing_codes,
        infer_ordinal=completes and conjugate,  # latent variables of ordinal columns need both
        estimator_name=name,
    )
    blocks = assemble(table, plan, settings.exposure, completes=completes, finds_steps=not settings.outliers)
    report = FitReport(table.notes)
    for code, sentence in describe_steps(blocks):
        report.add(code, sentence)
    _note_filled(report, table, blocks)
    _note_directions(report, table, blocks, plan)
    chosen = _chosen(settings, partial(choose_engine, settings, table.weights, blocks))
    return _noted(Training(table, blocks, report, chosen.inference), chosen)


def _note_filled(report: FitReport, table: Table, blocks: Sequence[Block]) -> None:
    for block in blocks:
        if (left := open_share(table, block)) > 0.0:
            report.add("filled", filled_note(left))


def _note_directions(report: FitReport, table: Table, blocks: Sequence[Block], plan: Plan) -> None:
    """Of vectors that are directions: what was made of them, or which family compares them by angles."""
    for block in blocks:
        if isinstance(block.family, VonMisesFisher):
            lost = int(np.isnan(block.data[:, 0]).sum())
            if plan.families["real"][0] == "auto":
                report.add("directions", directions_note())
            elif lost:
                report.add(
                    "directions",
                    f"{lost} rows have a missing cell or only zeros, so they have no direction; the other rows decide "
                    "the clusters",
                )
        elif entry_of(block.family).kind == "real" and has_unit_rows(table, block):
            report.add(
                "directions",
                "all rows have the length 1, as embeddings of texts have; family='vonmises_fisher' compares them by "
                "the angles between them",
            )


def directions_note() -> str:
    """What is made of rows of length 1."""
    return (
        "all rows have the length 1, as embeddings of texts have, so they are compared by the angles between them "
        f"(family 'vonmises_fisher'). {switch('directions')} takes them as other real columns"
    )


def _chosen(settings: Settings, choice: Callable[[], EngineChoice]) -> EngineChoice:
    """The engine that was asked for; for "auto" the choice."""
    return choice() if settings.inference == AUTO else EngineChoice(settings.inference)


def _noted(training: Training, chosen: EngineChoice) -> Training:
    if chosen.sentence:
        training.report.add("engine", chosen.sentence)
    return training


def data_of_training(training: Training) -> Any:
    """What identifies the data of a fit: the table, or the columns and data of its blocks if it is elsewhere."""
    table = training.table
    if isinstance(table, Table) and (table.columns or table.sparse is not None):
        return table
    meanings = [(column.name, column.kind, column.levels) for column in table.schema.columns]
    return meanings, [block.data for block in training.blocks]


def _sharded_blocks(
    table: ShardedTable, plan: Plan, exposure: str | None, completes: bool, report: FitReport
) -> tuple[Block, ...]:
    """Families from the schema and from sums over the columns; data in shards."""
    columns = [c.name for c in table.schema.of_kind("real") if c.name != exposure]
    name, options = plan.families.get("real", ("", {}))
    holes = any(table.n_missing[column] for column in columns)
    plain = plan
    if name == "auto":
        plain = plan.with_real(gaussian_for(table.weights, columns, holes, completes))
    blocks = list(assemble(table_of_schema(table.schema, exposure), plain, exposure, completes=completes))
    shards = table.encode(_data_of_shard, (plain, exposure, completes))
    families = [block.family for block in blocks]
    if any(isinstance(family, INFORMED) for family in families):
        totals = list(shards.map(_totals_of_shard, families, shards.split(table.weights)))
        families = [_informed(family, [part[b] for part in totals]) for b, family in enumerate(families)]
        blocks = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    if name == "auto" and columns:
        at = next(b for b, family in enumerate(families) if entry_of(family).kind == "real")
        steps = steps_of(options)
        if steps.directions and not holes and are_unit_shards(blocks[at], shards, at, table.schema):
            report.add("directions", directions_note())
            return _sharded_blocks(table, plan.with_real("vonmises_fisher"), exposure, completes, report)
        blocks[at], shards, notes = find_shard_signal(blocks[at], shards, at, table, steps, holes)
        for code, sentence in (*describe_steps(blocks), *notes):
            report.add(code, sentence)
        report.add("steps", IN_CHUNKS)
    return tuple(block._replace(data=ShardData(shards, b)) for b, block in enumerate(blocks))


def _data_of_shard(table: Table, common: Any) -> tuple[Any, ...]:
    plan, exposure, completes = common
    return tuple(block.data for block in assemble(table, plan, exposure, completes=completes))


def _totals_of_shard(data: Sequence[Any], families: Sequence[Any], weights: np.ndarray) -> list[Any]:
    """Sums over the rows for families whose prior depends on them: counts, and the exposure
    or number of cells; counts of ordinal levels; unit vectors.
    """
    totals: list[Any] = []
    for family, own in zip(families, data, strict=True):
        if isinstance(family, Poisson):
            seen = ~np.isnan(own.X)
            totals.append((np.where(seen, own.X, 0.0).T @ weights, seen.T @ (weights * own.exposure)))
        elif isinstance(family, Exponential):
            totals.append((np.nansum(own * weights[:, None], axis=0), (~np.isnan(own)).T @ weights))
        elif isinstance(family, VonMisesFisher):
            totals.append((weights @ np.nan_to_num(own), 0.0))
        elif isinstance(family, Ordinal):
            totals.append((count_levels(own.codes, family.n_levels, weights), 0.0))
        else:
            totals.append(None)
    return totals


def _informed(family: Any, totals: Sequence[Any]) -> Any:
    if totals[0] is None:
        return family
    return informed(family, *(np.sum([part[side] for part in totals], axis=0) for side in (0, 1)))


def takes_chunks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method of a fitted estimator that gives one result per row, so that it takes tables in chunks too.

    The method then runs on each shard where the shard is; the results are in the order of the rows.
    """

    @wraps(method)
    def either(self: Any, X: Any, *options: Any) -> Any:
        source = find_chunks(X)
        if source is None:
            return method(self, X, *options)
        return predict_blocks(self, source, method.__name__, *options)

    return either


def reads_chunks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method of a fitted estimator that gives one result per row: it then takes tables in chunks too.

    The chunks are read one after the other in this process; for estimators that have no executor.
    """

    @wraps(method)
    def either(self: Any, X: Any, *options: Any, **named: Any) -> Any:
        source = find_chunks(X)
        if source is None:
            return method(self, X, *options, **named)
        parts, _ = open_shards(source, None)
        return np.concatenate([method(self, rows, *options, **named) for rows in parts.map(_itself, None)])

    return either


def _itself(container: Any, _common: Any, _own: Any) -> Any:
    return container


def predict_blocks(model: Any, source: ChunkSource, method: str, *options: Any) -> np.ndarray:
    """``method`` of a fitted estimator on each shard of a source, where the shard is; results in the order of rows.

    ``options`` are its further arguments.
    """
    executor = make_executor(getattr(model, "n_jobs", None), getattr(model, "executor", None))
    parts, _ = open_shards(source, executor)
    return np.concatenate(list(parts.map(_predict_shard, (without_rows(model), method, options))))


def without_rows(model: Any) -> Any:
    """A copy of a fitted estimator that labels new rows, to be sent to other processes."""
    light = copy.copy(model)
    for name in BULKY:
        light.__dict__.pop(name, None)
    for name in ("executor", "callback", "n_jobs", "resume"):
        if hasattr(light, name):
            setattr(light, name, None)
    return light


def _predict_shard(container: Any, common: Any, _: Any) -> np.ndarray:
    light, method, options = common
    return getattr(light, method)(container, *options)
