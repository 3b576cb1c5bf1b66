"""Tables on a device: their schema, learned there, and the blocks over them.

Little is copied to the host: levels, means and deviations of columns, a thousand rows that seeds are chosen among,
statistics of clusters. Labels and confidence stay on the device until somebody reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.device_rows import (
    DeviceCodes,
    DeviceCounts,
    DeviceReals,
    fetch_rows,
    standardized,
    vectors_of,
)
from partita.estimator import FitReport
from partita.execution.device import (
    device_of,
    in_chunks,
    is_on_device,
    namespace,
    to_device,
    to_host,
    widest,
)
from partita.execution.weights import are_ones, count_positive, total_weight, unit_weights
from partita.families import Block, Exponential, Poisson, Signal, entry_of, family_entry
from partita.families.factors import SignalMoments, sampled_positions
from partita.fitting.contract import Settings
from partita.fitting.device_columns import (
    learn_levels,
    learn_ranges,
    learn_reals,
    learn_totals,
    refuse_holes,
    refuse_no_counts,
    refuse_no_durations,
)
from partita.fitting.engines import ENGINES, names_of
from partita.fitting.families import Plan, assemble, informed, table_of_schema
from partita.fitting.real_columns import (
    allowed_steps,
    describe_steps,
    gaussian_for,
    model_of_vectors,
    steps_of,
)
from partita.table import ColumnSchema, Schema, Table, check_weights, read_table
from partita.table.kinds import resolve_kinds

FAMILIES = (
    "categorical",
    "gaussian",
    "gaussian_full",
    "bernoulli",
    "poisson",
    "multinomial",
    "exponential",
)
KINDS = ("real", "count", "binary", "categorical")
MAX_BYTE_LEVELS = 254
ON_DEVICE = (
    "the table is on a device, so complete real columns are searched for the principal directions that matter, but "
    "not for values that are far more frequent than others, for skewed columns and for rows of "
    "length 1; for these steps, move the table to the host"
)


def read_device_training(
    X: Any, settings: Settings, plan: Plan, kinds: Any, sample_weight: Any
) -> tuple[Table, tuple[Block, ...], FitReport]:
    """An array on a device as a table that has a schema and weights only, the blocks over it, and a report."""
    _check_asked(X, settings)
    weights = read_weights(X, sample_weight)
    schema, holes = _learn(X, kinds, weights)
    report = FitReport()
    report.add("execution", f"fitted on {device_of(X)}, {weights.size:,} rows")
    found: tuple[Block, ...] = ()
    if plan.families.get("real", ("", {}))[0] == "auto":
        reals = [column.name for column in schema.of_kind("real")]
        chosen = gaussian_for(weights, reals, holes, completes=False) if reals else "gaussian"
        steps = allowed_steps(steps_of(plan.families["real"][1]), weights, len(reals))
        if steps.signal and len(reals) > 1 and not holes:
            chosen, found = _find_signal(X, schema, reals, weights, chosen)
        for code, sentence in describe_steps(found):
            report.add(code, sentence)
        if reals:
            report.add("steps", ON_DEVICE)
        plan = plan.with_real(chosen)
    blocks = assemble(table_of_schema(schema, None), plan, None)
    blocks = tuple(found[0] if found and entry_of(b.family).kind == "real" else b for b in blocks)
    _check_blocks(blocks)
    _check_cells(X, blocks, schema)
    blocks = tuple(_informed(block, X, schema, weights) for block in blocks)
    return Table(schema, [], int(X.shape[0]), weights), _filled(X, blocks, schema, complete=not holes), report


def read_device_rows(
    X: Any, blocks: Sequence[Block], schema: Schema, handle_unknown: str, name: str
) -> tuple[Block, ...]:
    """New rows on a device in the blocks of a fitted mixture; ``name`` is that of the estimator in messages."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: a table has rows and columns")
    schema.check_features([f"x{j}" for j in range(X.shape[1])], False, name)
    _check_blocks(blocks)
    _check_cells(X, blocks, schema, counts=True)
    return _filled(X, blocks, schema, handle_unknown)


def read_weights(X: Any, sample_weight: Any) -> np.ndarray:
    """The given weights of the rows of X, or ones that need no memory."""
    if is_on_device(sample_weight) and device_of(sample_weight) != device_of(X):
        raise ValueError(
            f"X is on {device_of(X)} and sample_weight on {device_of(sample_weight)}: move one of them to where the "
            "other is"
        )
    if sample_weight is None:
        return unit_weights(int(X.shape[0]))
    return check_weights(to_host(sample_weight), int(X.shape[0]))


def _check_asked(X: Any, settings: Settings) -> None:
    if not ENGINES[settings.inference].on_device:
        raise ValueError(
            f"inference={settings.inference!r} does not run on a device: use {names_of('on_device')}, or move the "
            "table to the host"
        )
    refuse_on_host(bool(settings.outliers), settings.exposure is not None)
    _check_shape(X)


def refuse_on_host(*on_host: bool) -> None:
    """Refuse models with outliers or an exposure."""
    if any(on_host):
        raise ValueError("outliers= and exposure= are for tables on the host: move the table there")


def _check_shape(X: Any) -> None:
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(
            f"X has the shape {tuple(X.shape)}: a table has rows and columns, at least one of each"
        )


def _check_blocks(blocks: Sequence[Block]) -> None:
    for block in blocks:
        if entry_of(block.family).name not in FAMILIES:
            raise ValueError(
                f"{type(block.family).__name__} does not run on a device: {', '.join(FAMILIES)} do; move the table to "
                "the host for others"
            )
        if block.coding is not None:
            raise ValueError(
                f"the values of column {block.columns[0]!r} are coded before they are modeled (lumps, powers, "
                "directions or standardize=False), which is done on the host only: move the table there"
            )


def _check_cells(X: Any, blocks: Sequence[Block], schema: Schema, counts: bool = False) -> None:
    """Refuse cells that a family cannot read, ``counts`` also those of columns of counts, of new rows."""
    for block in blocks:
        entry, own = entry_of(block.family), _places(block, schema)
        if counts and entry.kind == "count":
            refuse_no_counts(X, own)
        if isinstance(block.family, Exponential):
            refuse_no_durations(X, own)
        if entry.vector or block.signal is not None:
            refuse_holes(X, own)


def _places(block: Block, schema: Schema) -> list[int]:
    """The columns of the table that a block reads."""
    place = {name: j for j, name in enumerate(schema.names)}
    return [place[name] for name in block.columns]


def _informed(block: Block, X: Any, schema: Schema, weights: np.ndarray) -> Block:
    """The block with the prior that sums over its columns imply."""
    if not isinstance(block.family, (Poisson, Exponential)):
        return block
    counted, within, _ = learn_totals(X, _places(block, schema), weights)
    return block._replace(family=informed(block.family, counted, within))


# ---- schema ----------------------------------------------------------------------------------------------------------


def _learn(X: Any, kinds: Any, weights: np.ndarray) -> tuple[Schema, bool]:
    """The schema, and whether any real cell is missing."""
    names = [f"x{j}" for j in range(X.shape[1])]
    floats = "float" in str(X.dtype)
    declared = resolve_kinds(kinds, names)
    asked = ["real" if kind is None and floats else kind for kind in declared]
    for name, kind in zip(names, asked, strict=True):
        if kind is None:
            raise ValueError(
                f"column {name!r} on the device holds whole numbers, which may be codes or amounts: say which with "
                "family='categorical', kinds='real' or kinds='count'"
            )
        if kind != "ignore" and kind not in KINDS:
            known = ", ".join(map(repr, KINDS))
            raise ValueError(
                f"column {name!r} is declared {kind!r}, which does not run on a device: {known} do; declare it so, or "
                "move the table to the host"
            )
    real = [j for j, kind in enumerate(asked) if kind == "real"]
    learned = learn_reals(X, real, weights) if real else []
    about = dict(zip(real, learned, strict=True))
    refuse_no_counts(X, [j for j, kind in enumerate(asked) if kind == "count"])
    ranges = learn_ranges(X) if {"categorical", "binary"} & set(asked) else None
    columns = []
    for j, (name, kind) in enumerate(zip(names, asked, strict=True)):
        if kind == "ignore":
            columns.append(ColumnSchema(name, "ignore"))
        elif kind == "real":
            columns.append(ColumnSchema(name, "real", center=about[j].center, scale=about[j].scale))
        elif kind == "count":
            columns.append(ColumnSchema(name, "count"))
        else:
            columns.append(_learn_levels(X, j, name, ranges, kind=str(kind)))
    return Schema(tuple(columns)), any(own.has_holes for own in learned)


def learn_categories(X: Any, missing: int) -> tuple[ColumnSchema, ...]:
    """The columns of an array of levels on a device; ``missing`` is the value of a missing cell."""
    _check_shape(X)
    ranges = learn_ranges(X)
    return tuple(_learn_levels(X, j, f"x{j}", ranges, missing) for j in range(X.shape[1]))


def _learn_levels(
    X: Any,
    j: int,
    name: str,
    ranges: np.ndarray | None,
    missing: int | None = None,
    kind: str = "categorical",
) -> ColumnSchema:
    """The levels that a table in memory with these distinct values has, without the value that means missing."""
    found = learn_levels(X, j, None if ranges is None else ranges[:, j])
    found = found if missing is None else found[found != missing]
    if not len(found):
        raise ValueError(f"column {name!r} has no observed cell: leave it out")
    return read_table({name: found}, {name: kind}).schema.columns[0]


# ---- the signal of real columns --------------------------------------------------------------------------------------


class RowsOnDevice:
    """Complete standardized rows on a device, see :class:`partita.families.factors.SignalRows`."""

    has_holes = False

    def __init__(self, data: DeviceReals, weights: np.ndarray):
        self._data, self._weights = data, weights
        self.n_rows, self.n_columns = count_positive(weights), len(data.columns)

    def sample(self) -> np.ndarray:
        """See :class:`partita.families.factors.SignalRows`."""
        positions = sampled_positions(self.n_rows, self.n_columns)
        rows = positions if self.n_rows == self._data.n_rows else np.flatnonzero(self._weights)[positions]
        return fetch_rows(self._data, rows)

    def moments(self, signal: Signal | None = None) -> SignalMoments:
        """See :class:`partita.families.factors.SignalRows`; the products of the columns are computed on the device."""

        unit = are_ones(self._weights)

        def products(lo: int, hi: int) -> np.ndarray:
            Z = standardized(self._data, lo, hi)
            xp = namespace(Z)
            W = Z if unit else Z * to_device(self._weights[lo:hi, None], Z, Z.dtype)
            return to_host(xp.matmul(xp.permute_dims(W, (1, 0)), Z)).astype(np.float64)

        parts = in_chunks(products, self._data.n_rows, 16 * self.n_columns)
        covariance = np.sum([part for _, _, part in parts], axis=0) / total_weight(self._weights)
        return SignalMoments(
            self.n_rows, covariance.__matmul__, np.diag(covariance).copy(), np.zeros(self.n_columns)
        )


def _find_signal(
    X: Any, schema: Schema, reals: Sequence[str], weights: np.ndarray, otherwise: str
) -> tuple[str, tuple[Block, ...]]:
    """Name of the family of the real columns, and their block if they have a signal."""
    own = [schema.names.index(name) for name in reals]
    name, signal = model_of_vectors(
        RowsOnDevice(_reals(X, own, schema), weights), otherwise, lambda found: 0.0
    )
    if signal is None:
        return name, ()
    made = family_entry(name).block(np.empty((0, signal.n_scores)), tuple(reals), np.empty(0))
    return name, (made._replace(data=None, signal=signal),)


def _scored(data: DeviceReals, block: Block, schema: Schema) -> tuple[DeviceReals, Any]:
    """Scores of the signal, and the log density of what they leave out in the user's units, both on the device."""
    signal = block.signal
    assert signal is not None
    xp, like = namespace(data.values), data.values
    kind = widest(like)
    axes, coefficients, of_all, constant = signal.rest_of_complete()
    constant -= float(np.log([schema.column(name).scale for name in block.columns]).sum())
    projections, slopes = to_device(axes, like, kind), to_device(coefficients[:, None], like, kind)
    widths = to_device(signal.widths[None, :], like, kind)
    scores, rests = [], []
    for _, _, Z in in_chunks(
        lambda lo, hi: standardized(data, lo, hi) / widths, data.n_rows, 24 * len(data.columns)
    ):
        T = xp.matmul(Z, projections)
        scores.append(T[:, : signal.n_scores])
        rest = xp.matmul(T * T, slopes)[:, 0] + constant
        rests.append(rest + of_all * xp.sum(Z * Z, axis=1) if of_all else rest)
    d = signal.n_scores
    made = DeviceReals(xp.concat(scores, axis=0), tuple(range(d)), np.zeros(d), np.ones(d), True, {})
    return made, xp.concat(rests, axis=0)


# ---- blocks ----------------------------------------------------------------------------------------------------------


def _filled(
    X: Any,
    blocks: Sequence[Block],
    schema: Schema,
    handle_unknown: str = "missing",
    complete: bool = False,
) -> tuple[Block, ...]:
    """The blocks with data on the device; ``complete`` says that no real cell is missing."""
    out = []
    for block in blocks:
        entry, own = entry_of(block.family), _places(block, schema)
        rest = None
        data: Any
        if entry.kind == "real":
            data = _reals(X, own, schema, raw=entry.raw, complete=complete)
            if block.signal is not None:
                data, rest = _scored(data, block, schema)
        elif entry.kind == "count":
            data = DeviceCounts(X, tuple(own))
            data = vectors_of(data) if entry.vector else data
        else:
            data = encode_levels(X, own, schema, handle_unknown)
        out.append(Block(block.family, data, block.columns, block.signal, rest))
    return tuple(out)


def _reals(
    X: Any, own: Sequence[int], schema: Schema, *, raw: bool = False, complete: bool = False
) -> DeviceReals:
    """Real columns, standardized unless their family reads them in the user's units."""
    columns = [schema.columns[j] for j in own]
    scaling = [(0.0, 1.0) if raw else (c.center, c.scale) for c in columns]
    centers, scales = np.array(scaling).T
    return DeviceReals(X, tuple(own), centers, scales, complete, {})


def encode_levels(X: Any, own: Sequence[int], schema: Schema, handle_unknown: str = "missing") -> DeviceCodes:
    """Levels as bytes where there are few of them; an array of such bytes is used as it is."""
    xp, device = namespace(X), device_of(X)
    n_levels = [len(schema.columns[j].levels) for j in own]
    small = max(n_levels) <= MAX_BYTE_LEVELS
    if small and handle_unknown == "missing" and _is_coded(X, own, schema):
        return DeviceCodes(X.T, {}) if _is_by_column(X) else DeviceCodes(_turned(X), {})
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
    """Whether an array holds codes already: the bytes 0, 1, ..."""
    if "uint8" not in str(X.dtype):
        return False
    in_order = all(schema.columns[j].levels == tuple(range(len(schema.columns[j].levels))) for j in own)
    return in_order and list(own) == list(range(X.shape[1]))


def _is_by_column(X: Any) -> bool:
    """Whether a torch array is stored column by column."""
    return callable(getattr(X, "stride", None)) and X.stride(0) == 1


def _turned(X: Any) -> Any:
    """A copy of the array [row, column] as [column, row], each column adjacent in memory."""
    xp = namespace(X)
    codes = xp.empty((X.shape[1], X.shape[0]), dtype=X.dtype, device=device_of(X))
    codes[...] = xp.permute_dims(X, (1, 0))
    return codes


def _refuse_unknown(values: Any, known: Any, name: str, lo: int) -> None:
    values, new = to_host(values), ~to_host(known)
    new &= ~np.isnan(values) if values.dtype.kind == "f" else True
    if new.any():
        row = int(np.argmax(new))
        raise ValueError(
            f"column {name!r}, row {lo + row}: {values[row]!r} was not seen at fit; correct the value, or pass "
            "handle_unknown='missing'"
        )
