"""Rows on a device: what is held of them, and the statistics of a chunk, in any library that follows the array API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.device_special import log_gamma
from partita.execution import Part
from partita.execution.device import device_of, in_chunks, namespace, to_device, to_host, widest
from partita.families import (
    Bernoulli,
    Categorical,
    Counts,
    CountVectors,
    Exponential,
    GaussianDiagonal,
    GaussianFull,
    Multinomial,
    Poisson,
)
from partita.families import n_rows as n_rows_of


class DeviceCodes(NamedTuple):
    """Levels of categorical columns, ``values[column, row]``: bytes with 255 for missing, or integers with -1.

    ``kept`` holds what is computed once for all passes over these labels.
    """

    values: Any
    kept: dict[Any, Any]

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[1])


class DeviceReals(NamedTuple):
    """Real columns in the user's units: ``columns`` of ``values[row, column]``; NaN is missing.

    ``complete`` says that no cell is known to be missing. ``kept`` holds what is uploaded once for all passes.
    """

    values: Any
    columns: tuple[int, ...]
    center: np.ndarray
    scale: np.ndarray
    complete: bool = False
    kept: dict[Any, Any] | None = None

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])


class DeviceCounts(NamedTuple):
    """Counts with an exposure of 1: ``columns`` of ``values[row, column]``; NaN is missing."""

    values: Any
    columns: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])


class DeviceVectors(NamedTuple):
    """Vectors of counts, all observed: ``columns`` of ``values[row, column]``, and the log multinomial coefficient of
    each row, which is computed once for all passes.
    """

    values: Any
    columns: tuple[int, ...]
    coefficients: Any

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])


DEVICE_DATA = (DeviceCodes, DeviceReals, DeviceCounts, DeviceVectors)


@n_rows_of.register(DeviceCodes)
@n_rows_of.register(DeviceReals)
@n_rows_of.register(DeviceCounts)
@n_rows_of.register(DeviceVectors)
def _(data):
    return data.n_rows


@singledispatch
def features(lik: Any, data: Any, lo: int, hi: int) -> Any:
    """Statistics [row, statistic] of rows lo to hi."""
    raise TypeError(
        f"{type(lik).__name__} does not run on a device: it has no features() there; move the data to the host"
    )


@features.register(Categorical)
def _(lik, data, lo, hi):
    xp = namespace(data.values)
    rows = data.values[:, lo:hi]
    column, levels, heads = _kept(data, "layout", lambda: _layout(lik, rows))
    wide = xp.take(rows, column, axis=0)
    seen = wide != xp.asarray(_missing(data), dtype=rows.dtype, device=device_of(rows))
    return xp.permute_dims(xp.astype(xp.where(heads, seen, wide == levels), xp.float32), (1, 0))


def _layout(lik: Categorical, rows: Any) -> tuple[Any, Any, Any]:
    """Column and level of each statistic, and whether it counts all observed cells."""
    column = np.repeat(np.arange(len(lik.alpha)), np.diff(lik.offsets))
    level = np.concatenate([np.arange(-1, v) for v in lik.n_levels])[:, None]
    # a byte cannot hold -1, but -1 occurs only at the heads of columns, which are replaced
    levels = to_device(np.maximum(level, 0), rows, rows.dtype)
    return to_device(column, rows, namespace(rows).int64), levels, to_device(level < 0, rows)


@features.register(GaussianDiagonal)
def _(lik, data, lo, hi):
    xp, X = namespace(data.values), standardized(data, lo, hi)
    seen = ~xp.isnan(X)
    X = xp.where(seen, X, xp.zeros_like(X))
    T = xp.stack([xp.astype(seen, X.dtype), X, X * X], axis=2)
    return xp.reshape(T, (hi - lo, 3 * X.shape[1]))


@features.register(GaussianFull)
def _(lik, data, lo, hi):
    xp, X = namespace(data.values), standardized(data, lo, hi)
    a, b = _kept(data, "pairs", lambda: [to_device(i, X, xp.int64) for i in np.tril_indices(len(lik.m))])
    products = xp.take(X, a, axis=1) * xp.take(X, b, axis=1)
    return xp.concat([xp.ones((hi - lo, 1), dtype=X.dtype, device=device_of(X)), X, products], axis=1)


@features.register(Bernoulli)
def _(lik, data, lo, hi):
    """Whether a cell is 0, whether it is 1."""
    xp = namespace(data.values)
    rows = xp.permute_dims(data.values[:, lo:hi], (1, 0))
    return xp.reshape(
        xp.astype(xp.stack([rows == 0, rows == 1], axis=2), xp.float32), (hi - lo, 2 * rows.shape[1])
    )


@features.register(Exponential)
def _(lik, data, lo, hi):
    xp, X = namespace(data.values), standardized(data, lo, hi)
    seen = ~xp.isnan(X)
    X = xp.where(seen, X, xp.zeros_like(X))
    return xp.reshape(xp.stack([xp.astype(seen, X.dtype), X], axis=2), (hi - lo, 2 * X.shape[1]))


@features.register(Poisson)
def _(lik, data, lo, hi):
    xp, X = namespace(data.values), amounts(data, lo, hi)
    seen = ~xp.isnan(X)
    X = xp.where(seen, X, xp.zeros_like(X))
    T = xp.stack([xp.astype(seen, X.dtype), X, -log_gamma(X + 1.0)], axis=2)
    return xp.reshape(T, (hi - lo, 3 * X.shape[1]))


@features.register(Multinomial)
def _(lik, data, lo, hi):
    xp, X = namespace(data.values), amounts(data, lo, hi)
    return xp.concat([xp.sum(X, axis=1, keepdims=True), data.coefficients[lo:hi][:, None], X], axis=1)


def vectors_of(data: DeviceCounts) -> DeviceVectors:
    """Counts as vectors, with the coefficients of the rows."""
    xp = namespace(data.values)

    def coefficients(lo: int, hi: int) -> Any:
        X = amounts(data, lo, hi)
        return log_gamma(xp.sum(X, axis=1) + 1.0) - xp.sum(log_gamma(X + 1.0), axis=1)

    parts = [part for _, _, part in in_chunks(coefficients, data.n_rows, 64 * len(data.columns))]
    return DeviceVectors(*data, parts[0] if len(parts) == 1 else xp.concat(parts, axis=0))


def amounts(data: Any, lo: int, hi: int) -> Any:
    """Rows lo to hi of the columns in the user's units, in the best precision of the device."""
    xp = namespace(data.values)
    return xp.astype(_own_columns(data, lo, hi), widest(data.values))


def _own_columns(data: Any, lo: int, hi: int) -> Any:
    rows = data.values[lo:hi, ...]
    if data.columns == tuple(range(rows.shape[1])):
        return rows
    xp = namespace(rows)
    return xp.take(rows, to_device(np.array(data.columns), rows, xp.int64), axis=1)


def is_complete(data: Any) -> bool:
    """Whether every cell of these rows is known to be observed."""
    return isinstance(data, DeviceVectors) or (isinstance(data, DeviceReals) and data.complete)


def _kept(data: Any, name: str, make: Callable[[], Any]) -> Any:
    """What is computed once for all passes over these data, and over their parts."""
    if data.kept is None:
        return make()
    if name not in data.kept:
        data.kept[name] = make()
    return data.kept[name]


def _missing(data: DeviceCodes) -> int:
    return 255 if "uint8" in str(data.values.dtype) else -1


def standardized(data: DeviceReals, lo: int, hi: int) -> Any:
    """Rows lo to hi in units of the deviation of their columns, in the best precision of the device."""
    rows = amounts(data, lo, hi)
    center, scale = _kept(
        data,
        "scaling",
        lambda: [to_device(own[None, :], rows, rows.dtype) for own in (data.center, data.scale)],
    )
    return (rows - center) / scale


def fetch_rows(data: Any, rows: np.ndarray) -> Any:
    """Some rows on the host, in the layout of data in memory."""
    xp = namespace(data.values)
    index = to_device(np.asarray(rows, np.int64), data.values, xp.int64)
    if isinstance(data, DeviceCodes):
        codes = to_host(xp.take(data.values, index, axis=1)).astype(np.int32).T
        return np.ascontiguousarray(np.where(codes == _missing(data), -1, codes))
    part = data._replace(values=xp.take(data.values, index, axis=0))
    if not isinstance(part, DeviceReals):
        X = np.ascontiguousarray(to_host(amounts(part, 0, len(rows))), dtype=np.float64)
        return CountVectors.from_dense(X) if isinstance(part, DeviceVectors) else Counts(X, np.ones(len(X)))
    return np.ascontiguousarray(to_host(standardized(part, 0, len(rows))), dtype=np.float64)


def rows_of_part(data: Any, part: Part) -> Any:
    """A copy of the rows of a part of the table, on the device."""
    xp, values = namespace(data.values), data.values
    places = xp.arange(part.count(data.n_rows), dtype=xp.int64, device=device_of(values))
    if isinstance(data, DeviceCodes):
        layout = {name: own for name, own in data.kept.items() if name == "layout"}
        return DeviceCodes(xp.take(values, part.rows(places), axis=1), layout)
    data = data._replace(values=xp.take(values, part.rows(places), axis=0))
    if isinstance(data, DeviceVectors):
        return data._replace(coefficients=xp.take(data.coefficients, part.rows(places), axis=0))
    return data


def take_columns(data: DeviceCodes, columns: np.ndarray) -> DeviceCodes:
    """These columns only."""
    xp = namespace(data.values)
    return DeviceCodes(xp.take(data.values, to_device(columns, data.values, xp.int64), axis=0), {})


def count_observed(data: DeviceCodes) -> np.ndarray:
    """Number of rows with a label in each column."""
    parts = [part for _, _, part in _seen(data, lambda xp, seen: xp.sum(xp.astype(seen, xp.int64), axis=1))]
    return np.sum([to_host(part) for part in parts], axis=0)


def any_observed(data: DeviceCodes) -> np.ndarray:
    """Whether each row has a label in some column."""
    return np.concatenate(
        [to_host(part) for _, _, part in _seen(data, lambda xp, seen: xp.any(seen, axis=0))]
    )


def _seen(data: DeviceCodes, function: Callable[[Any, Any], Any]) -> Iterator[tuple[int, int, Any]]:
    """``function(namespace, whether cells are observed)`` of each chunk of rows, [column, row]."""
    xp = namespace(data.values)
    missing = xp.asarray(_missing(data), dtype=data.values.dtype, device=device_of(data.values))
    width = 10 * int(data.values.shape[0])
    return in_chunks(lambda lo, hi: function(xp, data.values[:, lo:hi] != missing), data.n_rows, width)
