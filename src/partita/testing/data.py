"""Missing cells in containers of data, for tests."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from partita.families import Counts, CountVectors, Levels, n_rows


@singledispatch
def with_missing_cells(data: Any, rate: float, rng: np.random.Generator) -> Any:
    """The data with cells missing at random: NaN in floats, -1 in codes.

    Examples
    --------
    >>> with_missing_cells(np.array([[1, 0]], np.int8), 1.0, np.random.default_rng(0))
    array([[-1, -1]], dtype=int8)
    """
    hidden = rng.random(data.shape) < rate
    return np.where(hidden, data.dtype.type(-1 if data.dtype.kind in "iu" else np.nan), data)


@with_missing_cells.register(Counts)
def _(data, rate, rng):
    return Counts(with_missing_cells(data.X, rate, rng), data.exposure)


@with_missing_cells.register(Levels)
def _(data, rate, rng):
    """Half of the cells lose only their latent variable and keep their level, unless all cells are missing."""
    lost = rng.random(data.codes.shape)
    codes = np.where(lost < (0.5 * rate if rate < 1.0 else 1.0), data.codes.dtype.type(-1), data.codes)
    return Levels(codes, np.where(lost < rate, np.nan, data.latent))


@with_missing_cells.register(CountVectors)
def _(data, rate, rng):
    dense = np.zeros((n_rows(data), int(data.indices.max()) + 1))
    for i in range(len(dense)):
        span = slice(data.indptr[i], data.indptr[i + 1])
        dense[i, data.indices[span]] = data.counts[span]
    return CountVectors.from_dense(with_missing_cells(dense, rate, rng))
