"""Containers of data: number of rows, selection, concatenation and replacement of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.families.multinomial import CountVectors
from partita.families.ordinal import Levels
from partita.families.poisson import Counts

if TYPE_CHECKING:
    from partita.families.registry import Block


@singledispatch
def n_rows(data: Any) -> int:
    """Return the number of rows in a container of data.

    Examples
    --------
    >>> n_rows(np.zeros((4, 2)))
    4
    """
    return len(data)


@n_rows.register(Counts)
def _(data):
    return len(data.X)


@n_rows.register(Levels)
def _(data):
    return len(data.codes)


@n_rows.register(CountVectors)
def _(data):
    return len(data.indptr) - 1


@singledispatch
def take(data: Any, rows: Any) -> Any:
    """Return the given rows, in that order; a row may occur more than once.

    Examples
    --------
    >>> take(np.array([[1.0], [2.0]]), [1, 1]).ravel()
    array([2., 2.])
    """
    return np.ascontiguousarray(data[np.asarray(rows, dtype=int)])


@take.register(Counts)
def _(data, rows):
    return Counts(take(data.X, rows), take(data.exposure, rows))


@take.register(Levels)
def _(data, rows):
    return Levels(take(data.codes, rows), take(data.latent, rows))


@take.register(CountVectors)
def _(data, rows):
    spans = [np.arange(data.indptr[i], data.indptr[i + 1]) for i in rows]
    picked = np.concatenate([*spans, np.zeros(0, np.int64)]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64)
    return CountVectors(indptr, data.indices[picked], data.counts[picked])


def take_block(block: Block, rows: Any) -> Block:
    """Return a block with the given rows only, and all that belongs to them."""
    rows = np.asarray(rows, dtype=int)
    return block._replace(
        data=take(block.data, rows),
        log_rest=None if block.log_rest is None else block.log_rest[rows],
        ties=None if block.ties is None else block.ties.take(rows),
    )


def join(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of several containers.

    Examples
    --------
    >>> join([np.array([[1.0]]), np.array([[2.0]])]).ravel()
    array([1., 2.])
    """
    first = parts[0]
    if isinstance(first, (Counts, Levels)):
        return type(first)(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    if isinstance(first, CountVectors):
        lengths = np.concatenate([np.diff(part.indptr) for part in parts])
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        indices, counts = (np.concatenate([part[field] for part in parts]) for field in (1, 2))
        return CountVectors(indptr, indices, counts)
    return np.concatenate(parts)


@singledispatch
def put_rows(data: Any, source: Any, rows: np.ndarray, seen: np.ndarray) -> None:
    """Copy the given rows of ``source`` into ``data``, in place; rows that are not ``seen`` become missing.

    Both containers are copies of the same table and differ only in missing values.

    Examples
    --------
    >>> source = np.array([[1.0], [2.0], [3.0]])
    >>> data = source.copy()
    >>> put_rows(data, source, np.array([0, 2]), np.array([True, False]))
    >>> data.ravel()
    array([ 1.,  2., nan])
    """
    data[rows] = np.where(seen[:, None], source[rows], np.nan if data.dtype.kind == "f" else -1)


@put_rows.register(Counts)
def _(data, source, rows, seen):
    put_rows(data.X, source.X, rows, seen)


@put_rows.register(Levels)
def _(data, source, rows, seen):
    put_rows(data.codes, source.codes, rows, seen)
    put_rows(data.latent, source.latent, rows, seen)


@put_rows.register(CountVectors)
def _(data, source, rows, seen):
    for i, known in zip(rows, seen, strict=True):  # a vector without counts has likelihood 1
        span = slice(data.indptr[i], data.indptr[i + 1])
        data.counts[span] = source.counts[span] if known else 0.0
