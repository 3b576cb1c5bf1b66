"""Containers of data as the laws handle them: count rows, take rows, punch holes."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from partita.families import Counts, CountVectors

__all__ = ["n_rows", "take", "with_holes"]


@singledispatch
def n_rows(data: Any) -> int:
    """Number of objects in a container of data.

    Examples
    --------
    >>> n_rows(np.zeros((4, 2)))
    4
    """
    return len(data)


@n_rows.register(Counts)
def _(data):
    return len(data.X)


@n_rows.register(CountVectors)
def _(data):
    return len(data.indptr) - 1


@singledispatch
def take(data: Any, rows: Any) -> Any:
    """The objects ``rows``, in that order; an object may come more than once.

    Examples
    --------
    >>> take(np.array([[1.0], [2.0]]), [1, 1]).ravel()
    array([2., 2.])
    """
    return np.ascontiguousarray(data[np.asarray(rows, dtype=int)])


@take.register(Counts)
def _(data, rows):
    return Counts(take(data.X, rows), take(data.exposure, rows))


@take.register(CountVectors)
def _(data, rows):
    spans = [np.arange(data.indptr[i], data.indptr[i + 1]) for i in rows]
    picked = np.concatenate([*spans, np.zeros(0, np.int64)]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64)
    return CountVectors(indptr, data.indices[picked], data.counts[picked])


@singledispatch
def with_holes(data: Any, rate: float, rng: np.random.Generator) -> Any:
    """The data with cells hidden at random: NaN among floats, -1 among codes.

    Examples
    --------
    >>> with_holes(np.array([[1, 0]], np.int8), 1.0, np.random.default_rng(0))
    array([[-1, -1]], dtype=int8)
    """
    hidden = rng.random(data.shape) < rate
    return np.where(hidden, data.dtype.type(-1 if data.dtype.kind in "iu" else np.nan), data)


@with_holes.register(Counts)
def _(data, rate, rng):
    return Counts(with_holes(data.X, rate, rng), data.exposure)


@with_holes.register(CountVectors)
def _(data, rate, rng):
    dense = np.zeros((n_rows(data), int(data.indices.max()) + 1))
    for i in range(len(dense)):
        span = slice(data.indptr[i], data.indptr[i + 1])
        dense[i, data.indices[span]] = data.counts[span]
    return CountVectors.from_dense(with_holes(dense, rate, rng))
