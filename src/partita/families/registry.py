"""The registry of families: their names, the kind of column they read, and small examples for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita.families.codings import Lumps, Values
from partita.families.contract import log_marginal
from partita.families.signal import Signal
from partita.families.ties import Ties


class Block(NamedTuple):
    """Columns that share a family: the family, its data, and the names of the columns.

    ``coding`` computes the data from columns whose values are not modeled as they are. Where the data are scores of the
    columns, ``signal`` computes them. With either, ``log_rest`` is the log density, in the user's units, of what the
    data leave out of each row. ``ties`` are the cells of which only an interval is known.
    """

    family: Any
    data: Any
    columns: tuple
    signal: Signal | None = None
    log_rest: Any = None
    coding: Values | Lumps | None = None
    ties: Ties | None = None


class Entry(NamedTuple):
    """A registered family."""

    name: str
    cls: type
    kind: str  # the kind of column that it reads
    vector: bool  # whether a datum is a whole row of the block
    raw: bool  # whether it reads real columns in the user's units rather than standardized
    block: Callable[..., Block]
    examples: Callable[[np.random.Generator], list[tuple[Any, Any]]]


FAMILIES: dict[str, Entry] = {}  # conjugate families: for all engines
NON_CONJUGATE: dict[str, Entry] = {}  # only for the sampler with auxiliary clusters


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
    """Register a family by name, in ``FAMILIES``, or in ``NON_CONJUGATE`` if it has no ``log_marginal``.

    Parameters
    ----------
    name : str
        The name that users pass as ``family=``.
    cls : type
        The NamedTuple class.
    kind : {"real", "count", "binary", "categorical", "ordinal"}
        The kind of column that the family reads.
    vector : bool, default=False
        Whether a datum is a whole row of the block (dependent coordinates) rather than one value.
    raw : bool, default=False
        Whether the family reads real columns in the user's units (as families of positive numbers do); other families
        receive them standardized.
    block : callable
        ``block(array, columns, weights, **context) -> Block``; the context holds ``n_levels`` (categorical, ordinal),
        ``exposure`` (counts) and the options that the user gave.
    examples : callable
        ``examples(rng) -> [(family, data), ...]``, small and complete; the tests check every law on them.
    """
    known, other = (FAMILIES, NON_CONJUGATE) if cls in log_marginal.table else (NON_CONJUGATE, FAMILIES)
    other.pop(name, None)
    known[name] = Entry(name, cls, kind, vector, raw, block, examples)


def family_entry(name: str) -> Entry:
    """Return the entry of a family by its name."""
    entries = FAMILIES | NON_CONJUGATE
    if name not in entries:
        raise ValueError(f"unknown family {name!r}: choose one of {', '.join(sorted(entries))}")
    return entries[name]


def entry_of(family: Any) -> Entry:
    """Return the entry of a family by its class."""
    return next(entry for entry in (FAMILIES | NON_CONJUGATE).values() if entry.cls is type(family))
