"""Learn the schema of a raw column, and encode a raw column by a schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.table.aside import MAX_DISTINCT_ROWS
from partita.table.cells import RawColumn, first_row, is_number, place
from partita.table.formats import find_format
from partita.table.levels import distinct_values, encode
from partita.table.notes import Findings
from partita.table.scales import ordered_levels
from partita.table.scaling import standardize
from partita.table.schema import ColumnSchema


class Policy(NamedTuple):
    """How doubtful cells are treated; see `read_table` for the meaning of each field.

    Examples
    --------
    >>> Policy().negative
    'error'
    """

    missing_codes: Any = None
    negative: str = "error"
    identifiers: str = "warn"
    handle_unknown: str = "missing"
    infer_ordinal: bool | str = True  # "numbers": answers in whole numbers on one scale are real

    @property
    def kind_of_answers(self) -> str:
        """The kind of whole numbers that are answers on one scale."""
        return "real" if self.infer_ordinal == "numbers" else "ordinal"


DEFAULT_POLICY = Policy()


def learn_column(
    raw: RawColumn,
    kind: str,
    *,
    inferred: bool = False,
    policy: Policy = DEFAULT_POLICY,
    weights: np.ndarray | None = None,
    missing_codes: tuple[Any, ...] = (),
    order: Sequence[str] = (),
    findings: Findings | None = None,
) -> ColumnSchema:
    """Learn the schema of a column: its levels, or its center and scale.

    Rows of weight zero are ignored.

    Parameters
    ----------
    raw : RawColumn
        A column with at least one observed cell of positive weight.
    kind : str
        The kind of the column.
    inferred : bool, default=False
        Whether the kind was inferred. Negative integers are then levels, as the user did not declare them as codes.
    policy : Policy, default=Policy()
        How negative codes and identifiers are treated.
    weights : ndarray, default=None
        Row weights, if some of them are not 1.
    missing_codes : tuple, default=()
        The values that were read as missing in this column.
    order : sequence of str, default=()
        The levels of an ordinal column from low to high, as the user declared them.
    findings : Findings, default=None
        Collects what is unusual.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> learn_column(parse_values(np.array([3, 1, 3]), "x"), "categorical").levels
    (1, 3)
    """
    findings = Findings() if findings is None else findings
    active = None if weights is None else weights > 0
    if kind in ("real", "count", "date"):
        values = _numbers_of(raw, kind)
        seen = raw.observed(active)
        if seen.min() == seen.max():
            findings.add("constant", raw.name)
        if kind == "count":
            return ColumnSchema(raw.name, kind, missing_codes=missing_codes, format=raw.format)
        center, scale = raw.center_and_scale(values, weights)
        return ColumnSchema(
            raw.name, "real", center=center, scale=scale, missing_codes=missing_codes, format=raw.format
        )
    levels = distinct_values(raw.observed(active))
    if len(levels) == 1:
        findings.add("ticks" if raw.family == "str" and raw.n_missing else "constant", raw.name)
    if kind == "binary":
        levels = _binary_levels(raw, levels)
    elif kind == "ordinal":
        levels = _levels_in_order(raw, levels, order, active)
    else:
        _check_codes(raw, levels, inferred, policy, findings)
        _check_identifier(raw, levels, active, policy, findings)
    return ColumnSchema(
        raw.name,
        kind,
        family=raw.family,
        levels=tuple(levels),
        levels_declared=raw.declared,
        missing_codes=missing_codes,
    )


def encode_column(raw: RawColumn, schema: ColumnSchema) -> tuple[np.ndarray, np.ndarray | None]:
    """Encode a raw column as values of its kind.

    Returns
    -------
    values : ndarray
        Floats with NaN, or codes with -1.
    unknown : ndarray of bool or None
        True for values that the schema does not know; None for real and count columns.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> schema = ColumnSchema("x", "binary", "str", ("no", "yes"))
    >>> encode_column(parse_values(np.array(["yes", "no", "?"]), "x"), schema)
    (array([ 1,  0, -1], dtype=int8), array([False, False,  True]))
    """
    if schema.kind in ("real", "count"):
        if raw.holds_dates != schema.holds_dates and raw.n_missing < len(raw.values):
            held = {True: "dates", False: "numbers" if raw.family != "str" else "text"}
            raise ValueError(
                f"column {raw.name!r} held {'dates' if schema.holds_dates else 'numbers'} at fit but holds "
                f"{held[raw.holds_dates]} now; convert it to the type that it had at fit"
            )
        values = _numbers_of(raw, schema.kind)
        if schema.kind == "real":
            _check_reach(values, schema)
        return values, None
    if (raw.family == "str") != (schema.family == "str") and raw.n_missing < len(raw.values):
        held = {True: "text", False: "numbers"}
        raise ValueError(
            f"column {raw.name!r} held {held[schema.family == 'str']} at fit but holds "
            f"{held[raw.family == 'str']} now; convert it to the type that it had at fit"
        )
    if schema.kind != "ordinal" or schema.family == "str":
        return encode(raw, schema.levels)
    rank = np.argsort(np.array(schema.levels), kind="stable")  # the order of numbers may be declared too
    codes, unknown = encode(raw, [schema.levels[code] for code in rank])
    return np.where(codes < 0, codes, rank[codes]).astype(codes.dtype), unknown


def _numbers_of(raw: RawColumn, kind: str) -> np.ndarray:
    """Return the column as floats, after checking that its kind allows every value."""
    if raw.family == "str":
        words = [value is not None and find_format([value.strip()]) is None for value in raw.values]
        row = first_row(np.array(words if any(words) else [value is not None for value in raw.values]))
        raise ValueError(
            f"{place(raw.name, row)}: {raw.values[row]!r} is text but the column is {kind!r}; convert the "
            "column to numbers, give the text as a missing code, or declare the column 'categorical'"
        )
    values = raw.as_floats()
    if kind == "count":
        wrong = (values < 0) | (values != np.floor(values))
        wrong &= ~np.isnan(values)
        if wrong.any():
            row = first_row(wrong)
            fault = "negative" if values[row] < 0 else "not an integer"
            raise ValueError(
                f"{place(raw.name, row)}: {values[row]} is {fault} but the column is 'count'; counts are "
                "integers from 0 on; declare the column 'real' if it is a measurement"
            )
    return values


def _check_reach(values: np.ndarray, schema: ColumnSchema) -> None:
    """Raise an error for values so far from the training data that standardizing them overflows."""
    standardized = standardize(values, schema.center, schema.scale)
    beyond = np.isinf(standardized)
    if beyond.any():
        row = first_row(beyond)
        raise ValueError(
            f"{place(schema.name, row)}: {values[row]} overflows in units of the column's standard deviation "
            f"({schema.scale}); correct the value or replace it by NaN"
        )


def _binary_levels(raw: RawColumn, levels: list[Any]) -> list[Any]:
    if len(levels) > 2:
        raise ValueError(
            f"column {raw.name!r} is declared 'binary' but has {len(levels)} distinct values ({levels[0]!r}, "
            f"{levels[1]!r}, {levels[2]!r}, ...); declare it 'categorical'"
        )
    if raw.family != "str" and set(levels) <= {0, 1}:
        # both levels are known even if one of them does not occur
        pair: dict[str, list[Any]] = {"bool": [False, True], "int": [0, 1], "float": [0.0, 1.0]}
        return pair[raw.family]
    return levels


def _levels_in_order(
    raw: RawColumn, levels: list[Any], order: Sequence[str], active: np.ndarray | None
) -> list[Any]:
    """Return the levels from low to high: as declared by the user or by the container, as numbers, or as answers."""
    kind: Any = {"bool": bool, "int": int, "float": float, "str": str}[raw.family]
    if order:
        try:
            known = [str(level) if kind is str else kind(float(level)) for level in order]
        except ValueError as problem:
            raise ValueError(
                f"column {raw.name!r} holds numbers, but its declared order lists words ({' < '.join(order)}); list "
                "its numbers from low to high"
            ) from problem
    else:
        known = [kind(level) for level in raw.declared] if raw.ordered else []
    if known:
        unlisted = [level for level in levels if level not in set(known)]
        if unlisted:
            raise ValueError(
                f"column {raw.name!r} holds {unlisted[0]!r}, which is not among its ordered levels "
                f"({' < '.join(map(str, order or known))}); list all levels from low to high"
            )
        return known
    if kind is not str:
        return levels
    if all(map(is_number, levels)):
        return sorted(levels, key=float)
    usual = ordered_levels(raw, active)
    if usual is not None:
        return list(usual)
    raise ValueError(
        f"column {raw.name!r} is declared 'ordinal', but the order of its levels is not known: declare "
        f"{' < '.join(levels[:3])!r}{' ...' if len(levels) > 3 else ''} (from low to high) in place of 'ordinal', or "
        "pass an ordered Categorical (pandas) or an Enum (polars)"
    )


def _check_codes(
    raw: RawColumn, levels: list[Any], inferred: bool, policy: Policy, findings: Findings
) -> None:
    """Raise an error for numbers that cannot be codes, unless the container declares them as categories."""
    if raw.family not in ("int", "float") or raw.labeled:
        return
    fraction = next((level for level in levels if level != int(level)), None)
    if fraction is not None:
        row = first_row(raw.values == fraction)
        raise ValueError(
            f"{place(raw.name, row)}: {fraction} is not an integer code but the column is 'categorical'; "
            "declare it 'real', or convert it to text if these are names"
        )
    negatives = [level for level in levels if level < 0]
    if not negatives or policy.negative == "level":
        return
    if inferred:
        findings.add("lone_minus_one" if negatives == [-1] else "negative_levels", raw.name)
        return
    hits = (
        (raw.values == negatives[0]) if raw.missing is None else (raw.values == negatives[0]) & ~raw.missing
    )
    raise ValueError(
        f"{place(raw.name, first_row(hits))}: negative code {negatives[0]} in a categorical column; replace "
        "it by NaN or None if it means missing, or convert the column to text if it is a level (read_table also "
        f"has the options missing_codes={negatives[0]} and negative='level')"
    )


def _check_identifier(
    raw: RawColumn, levels: list[Any], active: np.ndarray | None, policy: Policy, findings: Findings
) -> None:
    if len(levels) <= MAX_DISTINCT_ROWS or len(levels) < raw.n_observed(active):
        return
    if policy.identifiers == "error":
        raise identifier_error(raw.name, len(levels))
    findings.add("identifier_modeled", raw.name, len(levels))


def identifier_error(name: str, n_distinct: int) -> ValueError:
    """Return the error for identifiers, if they are not allowed."""
    return ValueError(
        f"column {name!r} looks like an identifier: all its {n_distinct} values are distinct; declare it 'ignore', or "
        "pass identifiers='warn'"
    )
