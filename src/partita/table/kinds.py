"""The kinds of columns, how a user declares them, and how they are inferred.

Rules of inference for a column of a data frame (from the observed cells of rows with positive weight):

- bool: `binary`;
- text, and columns that the container declares as categorical: `categorical` (also with two levels);
- integers, also when stored as floats: `binary` if only 0 and 1 occur, `categorical` with up to 10 distinct
  values, `count` with more if none is negative and a zero occurs, otherwise `real`;
- other numbers: `real`.

A two-dimensional array or a list of lists that holds only numbers has one kind for all columns, because its columns
share one dtype: floats are `real` unless every value is 0 or 1 (`binary`); integers follow the rule above, applied to
the whole array ("up to 10 distinct values" must then hold in every column).

No column is inferred to be `ordinal`: it is declared, by that name or by its levels from low to high ("low < high").
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from partita.table.cells import RawColumn
from partita.table.levels import has_more_distinct_than
from partita.table.notes import list_names

KINDS = ("real", "count", "binary", "categorical", "ordinal", "ignore")
CODED_KINDS = ("binary", "categorical", "ordinal")  # columns of levels, stored as codes

#: What a user may pass as `kinds`.
KindsLike: TypeAlias = str | Mapping[Any, str] | Sequence[str] | None

MAX_INFERRED_LEVELS = 10  # integers with at most this many distinct values are codes rather than quantities


def resolve_kinds(
    kinds: KindsLike, names: Sequence[str], labels: Sequence[Hashable] | None = None
) -> list[str | None]:
    """Return the declared kind of every column, None if it is to be inferred.

    Parameters
    ----------
    kinds : None, str, mapping or sequence
        One kind for all columns, a mapping from column name or position to kind, one kind per column, or None. The
        levels of an ordinal column from low to high, as in "low < high", stand for "ordinal".
    names : sequence of str
        The column names.
    labels : sequence, default=None
        The column labels of the data frame, if they are not text.

    Examples
    --------
    >>> resolve_kinds({"b": "count", 0: "low < high"}, ["a", "b", "c"])
    ['ordinal', 'count', None]
    >>> resolve_kinds("counts", ["a"])
    Traceback (most recent call last):
    ValueError: unknown kind 'counts' for column 'a'; choose from real, count, binary, categorical, ordinal, ignore
    """
    resolved = _declared_kinds(kinds, names, labels)
    for name, declared in zip(names, resolved, strict=True):
        if declared is not None and declared not in KINDS and not level_order(declared):
            raise ValueError(f"unknown kind {declared!r} for column {name!r}; choose from {', '.join(KINDS)}")
    return ["ordinal" if level_order(kind) else kind for kind in resolved]


def resolve_orders(
    kinds: KindsLike, names: Sequence[str], labels: Sequence[Hashable] | None = None
) -> list[tuple[str, ...]]:
    """Return the declared order of the levels of every column, as text; empty if none is declared.

    Examples
    --------
    >>> resolve_orders({"a": "low < high"}, ["a", "b"])
    [('low', 'high'), ()]
    """
    return [level_order(kind) for kind in _declared_kinds(kinds, names, labels)]


def level_order(kind: Any) -> tuple[str, ...]:
    """Return the levels that a declaration such as "low < mid < high" lists; empty for the name of a kind.

    Examples
    --------
    >>> level_order("low < mid < high"), level_order("real")
    (('low', 'mid', 'high'), ())
    """
    if not isinstance(kind, str) or "<" not in kind:
        return ()
    levels = tuple(level.strip() for level in kind.split("<"))
    if "" in levels or len(set(levels)) < len(levels):
        raise ValueError(f"the order {kind!r} has empty or equal levels; write it as 'low < mid < high'")
    return levels


def _declared_kinds(
    kinds: KindsLike, names: Sequence[str], labels: Sequence[Hashable] | None
) -> list[str | None]:
    """Return the declaration of every column, None where there is none."""
    resolved: list[str | None] = [None] * len(names)
    if kinds is None:
        return resolved
    if isinstance(kinds, str):
        resolved = [kinds] * len(names)
    elif isinstance(kinds, Mapping):
        positions = {label: position for position, label in enumerate(labels or names)}
        for key, kind in kinds.items():
            position = _position_of(key, positions, names)
            if resolved[position] not in (None, kind):
                raise ValueError(f"kinds declares column {names[position]!r} twice; keep one of the entries")
            resolved[position] = kind
    else:
        resolved = list(kinds)
        if len(resolved) != len(names):
            raise ValueError(
                f"kinds has {len(resolved)} entries but the data have {len(names)} columns; pass one kind "
                "per column, or a mapping from column to kind"
            )
    return resolved


def _position_of(key: Any, positions: Mapping[Hashable, int], names: Sequence[str]) -> int:
    if key in positions:
        return positions[key]
    try:
        position = -1 if isinstance(key, bool) else operator.index(key)
    except TypeError:
        position = -1
    if 0 <= position < len(names):
        return position
    raise ValueError(
        f"kinds names the column {key!r}, which the data do not have; use a name ({list_names(names)}) or a "
        f"position from 0 to {len(names) - 1}"
    )


def infer_kind(raw: RawColumn, active: np.ndarray | None = None) -> str:
    """Infer the kind of one column of a data frame; see the rules at the top of this module.

    Parameters
    ----------
    raw : RawColumn
        A column with at least one observed cell.
    active : ndarray of bool, default=None
        The rows that are used; by default all.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> infer_kind(parse_values(np.array(["no", "yes"]), "smokes"))
    'categorical'
    >>> infer_kind(parse_values(np.arange(30), "visits"))
    'count'
    """
    if raw.labeled or raw.family == "str":
        return "categorical"
    if raw.family == "bool":
        return "binary"
    return _kind_of_integers([raw.observed(active)]) if raw.is_integral(active) else "real"


def infer_common_kind(columns: Iterable[np.ndarray], family: str) -> str:
    """Infer one kind for all columns of a numeric array; see the rules at the top of this module.

    Parameters
    ----------
    columns : iterable of ndarray
        The observed values of each column; read only as far as needed.
    family : {"bool", "int", "float"}
        The type of the values of the array.

    Examples
    --------
    >>> infer_common_kind([np.array([0.0, 1.0]), np.array([0.5, 1.0])], "float")
    'real'
    """
    if family == "bool":
        return "binary"
    if family == "int":
        return _kind_of_integers(columns)
    return "binary" if all(_only_zero_and_one(values) for values in columns) else "real"


def _kind_of_integers(columns: Iterable[np.ndarray]) -> str:
    binary = few = True
    nonnegative, zero = True, False
    for values in columns:
        if len(values) == 0:
            continue
        binary = binary and _only_zero_and_one(values)
        few = few and (binary or not has_more_distinct_than(values, MAX_INFERRED_LEVELS))
        nonnegative = nonnegative and bool(values.min() >= 0)
        zero = zero or bool((values == 0).any())
        if not (few or nonnegative):
            return "real"
    if binary:
        return "binary"
    if few:
        return "categorical"
    return "count" if nonnegative and zero else "real"


def _only_zero_and_one(values: np.ndarray) -> bool:
    # the first rows almost always decide
    return all(bool(np.all((part == 0) | (part == 1))) for part in (values[:1000], values))
