"""From a typed table to blocks: which family reads which columns."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from partita.families import (
    FAMILIES,
    NON_CONJUGATE,
    Block,
    Exponential,
    Ordinal,
    Poisson,
    Signal,
    VonMisesFisher,
    entry_of,
    family_entry,
)
from partita.families.codings import code_as_they_are
from partita.families.von_mises_fisher import around
from partita.fitting.real_columns import are_directions, gaussian_for, real_blocks, share_open, steps_of
from partita.table import Column, Schema, Table

AUTOMATIC = {
    "real": "auto",
    "count": "poisson",
    "binary": "bernoulli",
    "categorical": "categorical",
    "ordinal": "ordinal",
}


class Plan(NamedTuple):
    """The family of each kind of column, and the kinds that this choice asks of the table."""

    families: dict[str, tuple[str, dict[str, Any]]]
    kinds: Any

    def with_real(self, name: str) -> Plan:
        """The plan with another family for real columns."""
        return self._replace(families={**self.families, "real": (name, {})})


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
        chosen = {kind: _name_and_options(spec, kind) for kind, spec in family.items()}
        for kind, (name, _) in chosen.items():
            if kind not in AUTOMATIC:
                raise ValueError(
                    f"family maps {kind!r}, which is no kind of column: use {', '.join(AUTOMATIC)}"
                )
            if name != "auto" and family_entry(name).kind != kind:
                raise ValueError(f"family {name!r} reads {family_entry(name).kind} columns, not {kind} ones")
        return Plan({kind: (name, {}) for kind, name in AUTOMATIC.items()} | chosen, kinds)
    name, options = _name_and_options(family)
    kind = family_entry(name).kind
    return Plan({kind: (name, options)}, kind if kinds is None else kinds)


def _name_and_options(spec: Any, kind: str = "") -> tuple[str, dict[str, Any]]:
    """The name and options of a family; real columns may have "auto"."""
    name, options = (spec, {}) if isinstance(spec, str) else (None, {})
    is_pair = isinstance(spec, Sequence) and len(spec) == 2 and isinstance(spec[1], Mapping)
    if is_pair and isinstance(spec[0], str):
        name, options = spec[0], dict(spec[1])
    if name == "auto" and kind == "real":
        steps_of(options)
        return name, options
    if name is not None:
        return family_entry(name).name, options
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
    finds_steps: bool = False,
) -> tuple[Block, ...]:
    """One block per family that has columns in the table.

    ``completes`` says whether the engine completes partly observed vectors; if not, the automatic choice for
    real columns with missing cells is the family that reads single cells. ``finds_steps`` allows the automatic choice
    for real columns to take the steps of :mod:`partita.fitting.real_columns`.
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
            steps = steps_of(options)
            if finds_steps:
                X = _raw_values(table, columns)
                blocks += real_blocks(X, columns, table.weights, steps, completes)
                continue
            holes = any(np.isnan(table.column(column).values).any() for column in columns)
            name, options = gaussian_for(table.weights, columns, holes, completes), {}
        options = dict(options)
        standardize = _pop_standardize(name, options, finds_steps)
        _check_options(name, options)
        if table.sparse is not None and name != "multinomial":
            raise ValueError(
                f"family {name!r} reads dense tables only: pass X.toarray(), or use family='multinomial', which "
                "reads the counts of a row as one vector"
            )
        values, n_levels = _values(table, kind, columns, family_entry(name).raw or not standardize)
        block = family_entry(name).block(
            values, columns, table.weights, n_levels=n_levels, exposure=rates, **options
        )
        if not standardize:
            block = block._replace(coding=code_as_they_are(values), log_rest=np.zeros(table.n_rows))
        blocks.append(block)
    _check_exposed(blocks, exposure)
    return tuple(blocks)


def _pop_standardize(name: str, options: dict[str, Any], is_mixture: bool) -> bool:
    """Take the option ``standardize`` from the options of a family of standardized columns."""
    if "standardize" not in options:
        return True
    entry, standardize = family_entry(name), options.pop("standardize")
    if entry.kind != "real" or entry.raw or name in NON_CONJUGATE:
        raise ValueError(
            f"family {name!r} has no option 'standardize': it does not divide columns by their deviation"
        )
    if not isinstance(standardize, bool):
        raise ValueError(f"option 'standardize' of family {name!r} is {standardize!r}: give True or False")
    if not (standardize or is_mixture):
        raise ValueError(
            f"option 'standardize' of family {name!r} is False, which only Mixture without outliers and without "
            "chunks supports: leave the option out"
        )
    return standardize


def _raw_values(table: Table, columns: Sequence[str]) -> np.ndarray:
    """Columns in the user's units."""
    return np.column_stack([table.column(name).values for name in columns]).astype(float)


def open_share(table: Table, block: Block) -> float:
    """Mean share of the variance of the scores of a block that missing cells leave open."""
    if block.signal is None:
        return 0.0
    columns = list(block.columns)
    if block.coding is None:
        return share_open(block.signal, _values(table, "real", columns, raw=False)[0], table.weights)
    Z: Any = block.coding.encode(_raw_values(table, columns))[0]
    return share_open(block.signal, Z, table.weights)


def has_unit_rows(table: Table, block: Block) -> bool:
    """Whether all rows of these columns have the length 1."""
    return are_directions(_raw_values(table, block.columns))


def log_rest_of(signal: Signal, values: np.ndarray, columns: Sequence[str], schema: Schema) -> np.ndarray:
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
        if block.coding is not None:
            out.append(_coded(block, _raw_values(table, columns))._replace(family=family))
            continue
        values, n_levels = _values(table, entry.kind, columns, entry.raw)
        if block.signal is not None:
            log_rest = log_rest_of(block.signal, values, columns, table.schema)
            out.append(
                block._replace(family=family, data=block.signal.scores(values), log_rest=log_rest, ties=None)
            )
            continue
        made = entry.block(values, columns, table.weights, n_levels=n_levels, exposure=rates)
        out.append(Block(family, made.data, block.columns))
    return tuple(out)


def _coded(block: Block, X: np.ndarray) -> Block:
    """A block whose data follow from its columns by its coding."""
    assert block.coding is not None
    data: Any
    data, log_rest = block.coding.encode(X)
    if block.signal is not None:
        data, log_rest = block.signal.scores(data), log_rest + block.signal.log_rest(data)
    return block._replace(data=data, log_rest=log_rest, ties=None)


def informed(family: Any, counted: np.ndarray, within: np.ndarray) -> Any:
    """The family with the prior that sums over the columns imply, for rows that are not in memory.

    ``counted`` are the sums of the cells, or of their levels; ``within`` their exposure or their number.
    """
    if isinstance(family, Ordinal):
        return family._replace(cuts=Ordinal.default(counted, family.n_levels).cuts)
    if isinstance(family, VonMisesFisher):
        return around(family, counted)
    a = float(family[0][0])
    if isinstance(family, Poisson):
        return Poisson.of_totals(counted, within, a=a)
    return Exponential(np.full(len(counted), a), a * counted / np.maximum(within, 1e-300))


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
