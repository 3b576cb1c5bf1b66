"""Which families there are, the kind of column each one reads, and small examples for the laws of the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita.families.contract import log_marginal


class Block(NamedTuple):
    """Columns that share a family: the family, its data, and the names of the columns."""

    family: Any
    data: Any
    columns: tuple


class Entry(NamedTuple):
    """A family as users name it."""

    name: str
    cls: type
    kind: str  # the kind of column it reads
    vector: bool  # whether a datum is a whole row of the block
    raw: bool  # whether it reads real columns in the user's units, not standardized
    block: Callable[..., Block]
    examples: Callable[[np.random.Generator], list[tuple[Any, Any]]]


FAMILIES: dict[str, Entry] = {}  # conjugate: every engine takes them
NON_CONJUGATE: dict[str, Entry] = {}  # for the sampler with auxiliary clusters alone


def register_family(
    name: str,
    cls: type,
    *,
    kind: str,
    vector: bool = False,
    raw: bool = False,
    block: Callable[..., Block],
    examples: Callable[[np.random.Generator], list[tuple[Any, Any]]],
) -> None:
    """Make a family known by name: among ``FAMILIES``, or ``NON_CONJUGATE`` if it has no ``log_marginal``.

    Parameters
    ----------
    name : str
        What users pass as ``family=``.
    cls : type
        The NamedTuple class.
    kind : {"real", "count", "binary", "categorical"}
        The kind of column the family reads.
    vector : bool
        Whether a datum is a whole row (one column, dependent coordinates) rather than one cell.
    raw : bool
        Whether it wants real columns in the user's units (a family for positive numbers does); other families
        get them standardized.
    block : callable
        ``block(array, columns, weights, **context) -> Block``; the context holds ``n_levels`` (categorical),
        ``exposure`` (counts) and the options of the user's spec.
    examples : callable
        ``examples(rng) -> [(family, data), ...]``, small and complete; every law of the tests runs on them.
    """
    known, other = (FAMILIES, NON_CONJUGATE) if cls in log_marginal.table else (NON_CONJUGATE, FAMILIES)
    other.pop(name, None)
    known[name] = Entry(name, cls, kind, vector, raw, block, examples)


def family_entry(name: str) -> Entry:
    """The entry of a family, or an error that lists the names there are."""
    entries = FAMILIES | NON_CONJUGATE
    if name not in entries:
        raise ValueError(f"unknown family {name!r}: choose one of {', '.join(sorted(entries))}")
    return entries[name]


def entry_of(family: Any) -> Entry:
    """The entry of a family's class."""
    return next(entry for entry in (FAMILIES | NON_CONJUGATE).values() if entry.cls is type(family))
