"""Tables on a device: their schema, learned there, and the blocks over them.

Little is copied to the host: levels of columns, one real column at a time for its mean and spread, a thousand rows that
seeds are chosen among, statistics of clusters and, at the end, the label of each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.device import DeviceCodes, DeviceReals
from partita.estimator import FitReport
from partita.execution.device import device_of, in_chunks, is_on_device, namespace, to_device, to_host
from partita.families import Block, GaussianFull, entry_of
from partita.fitting.contract import Settings
from partita.fitting.engines import ENGINES, names_of
from partita.fitting.families import Plan, assemble, table_of_schema
from partita.fitting.real_columns import gaussian_for
from partita.table import ColumnSchema, Schema, Table, check_weights, read_table
from partita.table.kinds import resolve_kinds
from partita.table.scaling import center_and_scale

FAMILIES = ("categorical", "gaussian", "gaussian_full")
MAX_BYTE_LEVELS = 254


def read_device_training(
    X: Any, settings: Settings, plan: Plan, kinds: Any, sample_weight: Any
) -> tuple[Table, tuple[Block, ...], FitReport]:
    """An array on a device as a table that has a schema and weights only, the blocks over it, and a report."""
    _check_asked(X, settings, sample_weight)
    weights = _weights(sample_weight, int(X.shape[0]))
    schema, holes = _learn(X, kinds, weights)
    if plan.families.get("real", ("", {}))[0] == "auto":
        reals = [column.name for column in schema.of_kind("real")]
        chosen = gaussian_for(weights, reals, holes, completes=False) if reals else "gaussian"
        plan = plan.with_real(chosen)
    blocks = assemble(table_of_schema(schema, None), plan, None)
    for block in blocks:
        if entry_of(block.family).name not in FAMILIES:
            raise ValueError(
                f"{type(block.family).__name__} does not run on a device: {', '.join(FAMILIES)} do; move the table to "
                "the host for others"
            )
        if isinstance(block.family, GaussianFull) and holes:
            raise ValueError(
                "vectors with missing cells are completed on the host only: use family='gaussian' on the device, or "
                "move the table to the host"
            )
    report = FitReport()
    report.add("execution", f"fitted on {device_of(X)}, {weights.size:,} rows")
    return Table(schema, [], int(X.shape[0]), weights), _filled(X, blocks, schema), report


def read_device_rows(
    X: Any, blocks: Sequence[Block], schema: Schema, handle_unknown: str, name: str
) -> tuple[Block, ...]:
    """New rows on a device in the blocks of a fitted mixture; ``name`` is that of the estimator in messages."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: a table has rows and columns")
    schema.check_features([f"x{j}" for j in range(X.shape[1])], False, name)
    return _filled(X, blocks, schema, handle_unknown)


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """The given weights, or ones that need no memory."""
    if sample_weight is None:
        return np.broadcast_to(np.ones(1), n_rows)
    return check_weights(to_host(sample_weight), n_rows)


def _check_asked(X: Any, settings: Settings, sample_weight: Any) -> None:
    if not ENGINES[settings.inference].on_device:
        raise ValueError(
            f"inference={settings.inference!r} does not run on a device: use {names_of('on_device')}, or move the "
            "table to the host"
        )
    if settings.outliers or settings.exposure is not None:
        raise ValueError("outliers= and exposure= are for tables on the host: move the table there")
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(
            f"X has the shape {tuple(X.shape)}: a table has rows and columns, at least one of each"
        )
    if is_on_device(sample_weight) and device_of(sample_weight) != device_of(X):
        raise ValueError(
            f"X is on {device_of(X)} and sample_weight on {device_of(sample_weight)}: move one of them to where the "
            "other is"
        )


# ---- schema ----------------------------------------------------------------------------------------------------------


def _learn(X: Any, kinds: Any, weights: np.ndarray) -> tuple[Schema, bool]:
    """The schema, and whether any real cell is missing."""
    names = [f"x{j}" for j in range(X.shape[1])]
    floats = "float" in str(X.dtype)
    declared = resolve_kinds(kinds, names)
    columns, holes = [], False
    for j, (name, kind) in enumerate(zip(names, declared, strict=True)):
        if kind is None and not floats:
            raise ValueError(
                f"column {name!r} on the device holds whole numbers, which may be codes or amounts: say which with "
                "family='categorical' or kinds='real'"
            )
        kind = kind or "real"
        if kind == "ignore":
            columns.append(ColumnSchema(name, "ignore"))
        elif kind == "real":
            learned, hole = _learn_real(X, j, name, weights)
            columns.append(learned)
            holes = holes or hole
        elif kind in ("categorical", "binary"):
            columns.append(_learn_levels(X[:, j], name))
        else:
            raise ValueError(
                f"column {name!r} is declared {kind!r}, which does not run on a device: 'real' and 'categorical' do"
            )
    return Schema(tuple(columns)), holes


def _learn_levels(values: Any, name: str) -> ColumnSchema:
    """The levels that a table in memory with these distinct values has."""
    found = to_host(namespace(values).unique_values(values))
    found = found[~np.isnan(found)] if found.dtype.kind == "f" else found
    return read_table({name: np.sort(found)}, {name: "categorical"}).schema.columns[0]


def _learn_real(X: Any, j: int, name: str, weights: np.ndarray) -> tuple[ColumnSchema, bool]:
    """Mean and standard deviation, computed on the host one column at a time, as for tables in memory."""
    values = to_host(X[:, j]).astype(np.float64)
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        raise ValueError(
            f"column {name!r}, row {bad[0]} is infinite: correct the value, or make it NaN (missing)"
        )
    center, scale = center_and_scale(values, None if np.all(weights == 1.0) else weights)
    return ColumnSchema(name, "real", center=center, scale=scale), bool(np.isnan(values).any())


# ---- blocks ----------------------------------------------------------------------------------------------------------


def _filled(
    X: Any, blocks: Sequence[Block], schema: Schema, handle_unknown: str = "missing"
) -> tuple[Block, ...]:
    """The blocks with data on the device."""
    place = {name: j for j, name in enumerate(schema.names)}
    out = []
    for block in blocks:
        own = [place[name] for name in block.columns]
        if entry_of(block.family).kind == "real":
            columns = [schema.columns[j] for j in own]
            data: Any = DeviceReals(
                X, tuple(own), np.array([c.center for c in columns]), np.array([c.scale for c in columns])
            )
        else:
            data = _encode(X, own, schema, handle_unknown)
        out.append(Block(block.family, data, block.columns))
    return tuple(out)


def _encode(X: Any, own: Sequence[int], schema: Schema, handle_unknown: str) -> DeviceCodes:
    """Levels as bytes where there are few of them; an array of such bytes is used as it is."""
    xp, device = namespace(X), device_of(X)
    n_levels = [len(schema.columns[j].levels) for j in own]
    small = max(n_levels) <= MAX_BYTE_LEVELS
    if small and handle_unknown == "missing" and _is_coded(X, own, schema):
        return DeviceCodes(X.T, {})
    kind, missing = (xp.uint8, 255) if small else (xp.int32, -1)
    codes = xp.empty((len(own), X.shape[0]), dtype=kind, device=device)
    for place, j in enumerate(own):
        levels = to_device(np.array(schema.columns[j].levels), X, X.dtype)
        for lo, hi, _ in in_chunks(lambda lo, hi: None, int(X.shape[0]), 64):
            values = xp.asarray(
                X[lo:hi, j], copy=True
            )  # adjacent: torch searches strided values with a warning
            code = xp.minimum(
                xp.searchsorted(levels, values),
                xp.asarray(n_levels[place] - 1, dtype=xp.int64, device=device),
            )
            known = xp.take(levels, code) == values
            if handle_unknown == "error" and not bool(xp.all(known)):
                _refuse_unknown(values, known, schema.columns[j].name, lo)
            codes[place, lo:hi] = xp.astype(
                xp.where(known, code, xp.asarray(missing, dtype=xp.int64, device=device)), kind
            )
    return DeviceCodes(codes, {})


def _is_coded(X: Any, own: Sequence[int], schema: Schema) -> bool:
    """Whether a torch array holds codes already: bytes 0, 1, ... stored column by column."""
    if "uint8" not in str(X.dtype) or not callable(getattr(X, "stride", None)) or X.stride(0) != 1:
        return False
    in_order = all(schema.columns[j].levels == tuple(range(len(schema.columns[j].levels))) for j in own)
    return in_order and list(own) == list(range(X.shape[1]))


def _refuse_unknown(values: Any, known: Any, name: str, lo: int) -> None:
    values, new = to_host(values), ~to_host(known)
    new &= ~np.isnan(values) if values.dtype.kind == "f" else True
    if new.any():
        row = int(np.argmax(new))
        raise ValueError(
            f"column {name!r}, row {lo + row}: {values[row]!r} was not seen at fit; correct the value, or pass "
            "handle_unknown='missing'"
        )
