"""From a typed table to blocks: which family reads which columns."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from partita.families import FAMILIES, Block, Signal, entry_of, family_entry, find_signal, is_wide
from partita.table import Column, Schema, Table

AUTOMATIC = {
    "real": "auto",
    "count": "poisson",
    "binary": "bernoulli",
    "categorical": "categorical",
    "ordinal": "ordinal",
}


MIN_OBJECTS = 20  # with fewer, covariances cannot be told from chance
LENGTH_ERROR = 1e-3  # of vectors of length 1
MOST_OPEN = (
    0.1  # of the variance of the scores, may missing cells leave open, or columns are modeled one by one
)


class Plan(NamedTuple):
    """The family of each kind of column, and the kinds that this choice asks of the table."""

    families: dict[str, tuple[str, dict[str, Any]]]
    kinds: Any


def plan_families(family: Any, kinds: Any) -> Plan:
    """Read the ``family`` parameter.

    Parameters
    ----------
    family : "auto", the name of a family, a pair (name, options), or a mapping from kinds to such
        One family alone reads every column, as the kind it is made for.
    kinds : None, str, mapping or sequence
        Kinds of columns that the user has declared; they take precedence.

    Examples
    --------
    >>> plan_families("gaussian_full", None)
    Plan(families={'real': ('gaussian_full', {})}, kinds='real')
    """
    if isinstance(family, str) and family == "auto":
        return Plan({kind: (name, {}) for kind, name in AUTOMATIC.items()}, kinds)
    if isinstance(family, Mapping):
        chosen = {kind: _name_and_options(spec) for kind, spec in family.items()}
        for kind, (name, _) in chosen.items():
            if kind not in AUTOMATIC:
                raise ValueError(
                    f"family maps {kind!r}, which is no kind of column: use {', '.join(AUTOMATIC)}"
                )
            if family_entry(name).kind != kind:
                raise ValueError(f"family {name!r} reads {family_entry(name).kind} columns, not {kind} ones")
        return Plan({kind: (name, {}) for kind, name in AUTOMATIC.items()} | chosen, kinds)
    name, options = _name_and_options(family)
    kind = family_entry(name).kind
    return Plan({kind: (name, options)}, kind if kinds is None else kinds)


def _name_and_options(spec: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(spec, str):
        return family_entry(spec).name, {}
    if isinstance(spec, Sequence) and len(spec) == 2 and isinstance(spec[1], Mapping):
        return family_entry(spec[0]).name, dict(spec[1])
    raise ValueError(
        f"family is {spec!r}: give 'auto', one of {', '.join(sorted(FAMILIES))}, a pair (name, options), or a mapping "
        "from kinds of columns to these"
    )


def assemble(
    table: Table,
    plan: Plan,
    exposure: str | None = None,
    *,
    completes: bool = True,
    finds_signal: bool = False,
) -> tuple[Block, ...]:
    """One block per family that has columns in the table.

    ``completes`` says whether the engine completes partly observed vectors; if not, the automatic choice for
    real columns with missing cells is the family that reads single cells. ``finds_signal`` allows the automatic choice
    to model the signal of real columns instead of the columns.
    """
    rates = _exposure(table, exposure)
    blocks = []
    for kind in AUTOMATIC:
        columns = [c.name for c in table.schema.of_kind(kind) if c.name != exposure]
        if not columns:
            continue
        if kind not in plan.families:
            wanted = " or ".join(sorted(plan.families))
            raise ValueError(
                f"column {columns[0]!r} is {kind}, but the family reads {wanted} columns only: leave it out with "
                f"kinds={{{columns[0]!r}: 'ignore'}}, or choose family='auto'"
            )
        name, options = plan.families[kind]
        if name == "auto":
            holes = any(np.isnan(table.column(column).values).any() for column in columns)
            if finds_signal and _can_have_signal(columns, table.weights, holes):
                found = _signal_block(table, columns, holes)
                if found is not None:
                    blocks.append(found)
                    continue
            name = gaussian_for(table.weights, columns, holes, completes)
        _check_options(name, options)
        if table.sparse is not None and name != "multinomial":
            raise ValueError(
                f"family {name!r} reads dense tables only: pass X.toarray(), or use family='multinomial', which "
                "reads the counts of a row as one vector"
            )
        values, n_levels = _values(table, kind, columns, family_entry(name).raw)
        blocks.append(
            family_entry(name).block(
                values, columns, table.weights, n_levels=n_levels, exposure=rates, **options
            )
        )
    _check_exposed(blocks, exposure)
    return tuple(blocks)


def _can_have_signal(columns: Sequence[str], weights: np.ndarray, holes: bool) -> bool:
    """Vectors of few columns are completed by the engines instead, given the cluster of each row."""
    if len(columns) < 2 or count_objects(weights) < MIN_OBJECTS:
        return False
    return not holes or is_wide(int(np.count_nonzero(weights)), len(columns))


def _signal_block(table: Table, columns: list[str], holes: bool) -> Block | None:
    """Full covariances of few real columns, or of the signal of the columns; None if they should be read one by one."""
    values, n_levels = _values(table, "real", columns, raw=False)
    signal = find_signal(values, table.weights)
    gaussian = partial(
        family_entry("gaussian_full").block, columns=columns, weights=table.weights, n_levels=n_levels
    )
    if signal is None:
        return None if is_wide(int(np.count_nonzero(table.weights)), len(columns)) else gaussian(values)
    if holes and _open_share(signal, values, table.weights) > MOST_OPEN:
        return None
    made = gaussian(signal.scores(values))
    return made._replace(signal=signal, log_rest=_log_rest(signal, values, columns, table.schema))


def open_share(table: Table, block: Block) -> float:
    """Mean share of the variance of the scores of a block that missing cells leave open."""
    values = _values(table, "real", list(block.columns), raw=False)[0]
    return 0.0 if block.signal is None else _open_share(block.signal, values, table.weights)


def has_unit_rows(table: Table, block: Block) -> bool:
    """Whether the rows of real columns are complete and have the length 1, so that only their directions differ."""
    X = _values(table, "real", list(block.columns), raw=True)[0]
    return X.shape[1] > 2 and bool(np.all(np.abs(np.linalg.norm(X, axis=1) - 1.0) <= LENGTH_ERROR))


def _open_share(signal: Signal, values: np.ndarray, weights: np.ndarray) -> float:
    rows = ~np.isnan(values).all(axis=1) & (weights > 0)
    return float(signal.undetermined(values[rows]).mean()) if rows.any() else 1.0


def _log_rest(signal: Signal, values: np.ndarray, columns: Sequence[str], schema: Schema) -> np.ndarray:
    """Log density of what the scores leave out, in the user's units."""
    log_scales = np.log([schema.column(name).scale for name in columns])
    return signal.log_rest(values) - ~np.isnan(values) @ log_scales


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse unknown options, and values that are not valid for a prior."""
    entry = family_entry(name)
    known: dict[str, Any] = {}
    for function in (entry.block, getattr(entry.cls, "default", entry.block)):
        parameters = inspect.signature(function).parameters.values()
        known |= {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    for option, value in options.items():
        if option not in known or option in ("n_levels", "exposure"):
            takes = sorted(set(known) - {"n_levels", "exposure"})
            raise ValueError(f"family {name!r} has no option {option!r}: it takes {', '.join(takes)}")
        anywhere = known[option] == 0  # a location; the other options are scales and counts
        if value is not None and not (_is_finite(value) and (anywhere or value > 0)):
            wanted = "a number" if anywhere else "a number above zero"
            raise ValueError(f"option {option!r} of family {name!r} is {value!r}: give {wanted}")


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _check_exposed(blocks: Sequence[Block], exposure: str | None) -> None:
    """Refuse an exposure that no family reads."""
    if exposure is None:
        return
    if not any(entry_of(block.family).name == "poisson" for block in blocks):
        raise ValueError(
            f"exposure={exposure!r} is read by the family 'poisson' only, and no column has it: declare the counts "
            "with kinds={column: 'count'}, or leave exposure out"
        )


def count_objects(weights: np.ndarray) -> int:
    """Number of objects: the total weight, or the number of rows with a weight where that is larger."""
    return max(int(np.count_nonzero(weights)), int(weights.sum()))


def gaussian_for(weights: np.ndarray, columns: Sequence[str], holes: bool, completes: bool) -> str:
    """Full covariance where there are enough rows to learn it: most real tables have correlated columns.

    Examples
    --------
    >>> gaussian_for(np.ones(100), ["a", "b"], holes=False, completes=True)
    'gaussian_full'
    """
    if not (2 <= len(columns) <= 30 and count_objects(weights) >= 5 * len(columns)):
        return "gaussian"
    return "gaussian_full" if completes or not holes else "gaussian"


def table_of_schema(schema: Schema, exposure: str | None) -> Table:
    """A table of one row without observed cells: what can be known from the schema alone."""
    columns = [
        Column(c.name, c.kind, np.array([1.0 if c.name == exposure else np.nan]) if c.kind in ("real", "count")
               else np.array([-1], np.int8))
        for c in schema.columns
        if c.kind != "ignore"
    ]  # fmt: skip
    return Table(schema, columns, 1, np.ones(1))


def reassemble(table: Table, blocks: Sequence[Block], families: Sequence[Any], exposure: str | None = None):
    """New data in the blocks of a fitted model, with its families."""
    rates = _exposure(table, exposure)
    out = []
    for block, family in zip(blocks, families, strict=True):
        entry = entry_of(family)
        columns = list(block.columns)
        values, n_levels = _values(table, entry.kind, columns, entry.raw)
        if block.signal is not None:
            log_rest = _log_rest(block.signal, values, columns, table.schema)
            out.append(block._replace(family=family, data=block.signal.scores(values), log_rest=log_rest))
            continue
        made = entry.block(values, columns, table.weights, n_levels=n_levels, exposure=rates)
        out.append(Block(family, made.data, block.columns))
    return tuple(out)


def _values(table: Table, kind: str, columns: list[str], raw: bool) -> tuple[Any, np.ndarray]:
    block = table.block(kind)
    position = {name: j for j, name in enumerate(block.names)}
    keep = [position[name] for name in columns]
    n_levels = block.n_levels[keep] if len(block.n_levels) else block.n_levels
    if raw:
        return np.column_stack([table.column(name).values for name in columns]), n_levels
    if len(keep) == len(block.names):
        return block.values, n_levels
    return np.ascontiguousarray(block.values[:, keep]), n_levels


def _exposure(table: Table, exposure: str | None) -> np.ndarray | None:
    if exposure is None:
        return None
    values = np.asarray(table.column(exposure).values, float)
    bad = np.flatnonzero(~(values > 0))
    if len(bad):
        raise ValueError(
            f"exposure column {exposure!r} is {values[bad[0]]} in row {bad[0]}: every row needs an exposure above zero"
        )
    return values
