"""Holes in containers of data, for the laws of the tests."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from partita.families import Counts, CountVectors, n_rows, take


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
