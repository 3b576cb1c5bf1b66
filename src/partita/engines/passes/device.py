"""Passes over rows on a device, for categorical and Gaussian columns.

The families are exponential families: with T the statistics of a chunk of rows, log joints are ``T theta`` and expected
statistics ``T' R``. A pass therefore needs two matrix products, in any library that follows the array API. Only the
statistics of one chunk are held at a time. Products of one-hot rows are in single precision, those of real numbers in
double precision where the device has it; sums over chunks are in double precision. The steps between two passes (modes,
expectations, hyper-parameters, factors of covariances) are computed on the host in double precision: their cost does
not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.exact_sums import ExactSums
from partita.engines.passes.values import (
    Assignment,
    Parameters,
    Statistics,
    empty_assignment,
    joined_uncertain,
    n_cache,
    uncertain_rows,
)
from partita.execution import Part
from partita.execution.device import device_of, in_chunks, namespace, to_device, to_host
from partita.families import Categorical, GaussianDiagonal, GaussianFull
from partita.families.contract import n_columns, stats_start
from partita.families.registry import Block
from partita.families.rows import refresh_clusters

MIN_LOG_PROBABILITY = -1e30  # stands for -inf: its product with zero is zero


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
    """Real columns in the user's units: ``columns`` of ``values[row, column]``; NaN is missing."""

    values: Any
    columns: tuple[int, ...]
    center: np.ndarray
    scale: np.ndarray

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])


class DeviceScorer(NamedTuple):
    """How rows on a device are scored: log weights, and for each block a function of its statistics T."""

    blocks: Sequence[Block]
    log_weights: np.ndarray
    tables: tuple[Any, ...]
    by_data: bool  # under the data of each cluster, with the parameters integrated out

    @property
    def n_rows(self) -> int:
        return int(self.blocks[0].data.n_rows)

    def assign(self, n_rows: int, executor: Any = None, uncertain: bool = False) -> Assignment:
        """Most probable cluster of every row, on the host."""
        out = empty_assignment(self.n_rows)
        doubtful = []

        def found(R: Any, log_likelihood: Any, entropy: Any) -> tuple[Any, ...]:
            xp = namespace(R)
            values = xp.argmax(R, axis=1), xp.max(R, axis=1), entropy, log_likelihood
            return (*values, R) if uncertain else values

        for lo, hi, values in _scored(self, found):
            for array, own in zip(out[:4], values[:4], strict=True):
                array[lo:hi] = own
            doubtful += [uncertain_rows(R.astype(float), lo) for R in values[4:]]
        return out._replace(uncertain=joined_uncertain(doubtful)) if doubtful else out

    def label(self, n_rows: int, n_clusters: int, executor: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities [row, cluster] and log likelihood of every row, on the host."""
        proba, log_likelihood = np.empty((self.n_rows, len(self.log_weights))), np.empty(self.n_rows)
        for lo, hi, values in _scored(self, lambda R, log_likelihood, _: (R, log_likelihood)):
            proba[lo:hi], log_likelihood[lo:hi] = values
        return proba, log_likelihood


def _scored(scorer: DeviceScorer, found: Callable[..., Any]) -> Iterator[tuple[int, int, Any]]:
    """``found(responsibilities, log likelihood, entropy)`` of each chunk, on the host."""
    there = uploaded(scorer)

    def one(lo: int, hi: int) -> tuple[Any, ...]:
        Ts = [features(block.family, block.data, lo, hi) for block in scorer.blocks]
        values = found(*normalized_on_device(log_joints(scorer, Ts, there)))
        return tuple(to_host(array) for array in values)

    return in_chunks(one, scorer.n_rows, row_bytes(scorer.blocks, len(scorer.log_weights)))


class OnDevice:
    """The residence of blocks whose data are on a device."""

    eps = float(np.finfo(np.float32).eps)  # categorical columns are scored in single precision

    def collect(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        parameters: Parameters,
        executor: Any,
        part: Part | None = None,
    ) -> Statistics:
        """Expected statistics of all objects."""
        if part is not None:
            raise NotImplementedError("arrays on a device are passed over as a whole only")
        return collect_on_device(
            score_by_parameters(blocks, parameters.log_weights, parameters.thetas), weights
        )

    def count(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        z: np.ndarray,
        K: int,
        thetas: Sequence[np.ndarray] | None,
    ) -> Statistics:
        """Statistics of given labels."""
        return count_labels(blocks, weights, z, K)._replace(log_likelihood=np.nan, entropy=np.nan)

    def plug_in(self, blocks: Sequence[Any], parameters: Parameters) -> DeviceScorer:
        """Scores under given parameters."""
        return score_by_parameters(blocks, parameters.log_weights, parameters.thetas)

    def predictive(
        self, blocks: Sequence[Any], S: Sequence[np.ndarray], log_weights: np.ndarray
    ) -> DeviceScorer:
        """Scores under the data of every cluster, with the parameters integrated out."""
        return score_by_data(blocks, S, log_weights)

    def take(self, blocks: Sequence[Any], rows: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
        """Blocks in memory with these rows."""
        return [block._replace(data=fetch_rows(block.data, rows)) for block in blocks], np.arange(len(rows))

    def pack(self, blocks: Sequence[Any], n_rows: int) -> tuple[Any, ...]:
        """The blocks as they are: packed columns are read by compiled code on the host only."""
        return tuple(blocks)

    def partly_seen(self, blocks: Sequence[Any]) -> list[bool]:
        """False: vectors with missing cells are refused when a table on a device is read."""
        return [False] * len(blocks)

    def map_replicates(self, *_: Any) -> ExactSums:
        """Refused: samplers read rows on the host."""
        raise TypeError("samplers do not run on a device: move the table to the host")

    def sum_observed(self, blocks: Sequence[Any], values: Sequence[np.ndarray | None]) -> np.ndarray:
        """For each row, the sum of ``values[block][column]`` over its observed cells of real columns."""
        out = np.zeros(blocks[0].data.n_rows)
        for block, own in zip(blocks, values, strict=True):
            if own is None:
                continue
            array, columns = block.data.values, np.array(block.data.columns)

            def hidden(lo: int, hi: int, array=array, columns=columns) -> np.ndarray:
                xp = namespace(array)
                rows = xp.take(array[lo:hi, ...], to_device(columns, array, xp.int64), axis=1)
                return to_host(xp.isnan(rows))

            for lo, hi, lost in in_chunks(hidden, len(out), 16 * len(columns)):
                out[lo:hi] += ~lost @ own
        return out


# ---- statistics of a chunk of rows ---------------------------------------------------------------------------


@singledispatch
def features(lik: Any, data: Any, lo: int, hi: int) -> Any:
    """Statistics [row, statistic] of rows lo to hi."""
    raise TypeError(
        f"{type(lik).__name__} does not run on a device: categorical and Gaussian columns do; move the data to the "
        "host for other families"
    )


@features.register(Categorical)
def _(lik, data, lo, hi):
    xp = namespace(data.values)
    rows = data.values[:, lo:hi]
    if "layout" not in data.kept:  # computed once for all chunks
        column = np.repeat(np.arange(len(lik.alpha)), np.diff(lik.offsets))
        level = np.concatenate([np.arange(-1, v) for v in lik.n_levels])[:, None]
        # a byte cannot hold -1, but -1 occurs only at the heads of columns, which are replaced below
        levels = to_device(np.maximum(level, 0), rows, rows.dtype)
        data.kept["layout"] = to_device(column, rows, xp.int64), levels, to_device(level < 0, rows)
    column, levels, heads = data.kept["layout"]
    wide = xp.take(rows, column, axis=0)
    seen = wide != xp.asarray(_missing(data), dtype=rows.dtype, device=device_of(rows))
    return xp.permute_dims(xp.astype(xp.where(heads, seen, wide == levels), xp.float32), (1, 0))


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
    a, b = (to_device(index, X, xp.int64) for index in np.tril_indices(len(lik.m)))
    products = xp.take(X, a, axis=1) * xp.take(X, b, axis=1)
    return xp.concat([xp.ones((hi - lo, 1), dtype=X.dtype, device=device_of(X)), X, products], axis=1)


def _missing(data: DeviceCodes) -> int:
    return 255 if "uint8" in str(data.values.dtype) else -1


def standardized(data: DeviceReals, lo: int, hi: int) -> Any:
    """Rows lo to hi in units of the deviation of their columns, in the best precision of the device."""
    xp = namespace(data.values)
    kind = _widest(data.values)
    rows = data.values[lo:hi, ...]
    if data.columns != tuple(range(rows.shape[1])):
        rows = xp.take(rows, to_device(np.array(data.columns), rows, xp.int64), axis=1)
    center, scale = (to_device(values[None, :], rows, kind) for values in (data.center, data.scale))
    return (xp.astype(rows, kind) - center) / scale


def _widest(like: Any) -> Any:
    """Double precision where the device has it."""
    xp = namespace(like)
    try:
        xp.zeros(1, dtype=xp.float64, device=device_of(like))
    except (TypeError, RuntimeError, ValueError):
        return xp.float32
    return xp.float64


def fetch_rows(data: Any, rows: np.ndarray) -> np.ndarray:
    """Some rows on the host, in the layout of data in memory."""
    xp = namespace(data.values)
    index = to_device(np.asarray(rows, np.int64), data.values, xp.int64)
    if isinstance(data, DeviceCodes):
        codes = to_host(xp.take(data.values, index, axis=1)).astype(np.int32).T
        return np.ascontiguousarray(np.where(codes == _missing(data), -1, codes))
    part = DeviceReals(xp.take(data.values, index, axis=0), *data[1:])
    return np.ascontiguousarray(to_host(standardized(part, 0, len(rows))), dtype=np.float64)


# ---- scores of a chunk of rows -----------------------------------------------------------------------------------


def score_by_parameters(
    blocks: Sequence[Block], log_weights: np.ndarray, thetas: Sequence[np.ndarray]
) -> DeviceScorer:
    """Scores under given parameters."""
    tables = tuple(_powered(block.family, theta) for block, theta in zip(blocks, thetas, strict=True))
    return DeviceScorer(blocks, log_weights, tables, by_data=False)


def score_by_data(blocks: Sequence[Block], S: Sequence[np.ndarray], log_weights: np.ndarray) -> DeviceScorer:
    """Scores under the data of every cluster, with the parameters integrated out."""
    tables = []
    for block, s in zip(blocks, S, strict=True):
        cache = predictive_cache(block.family, s)
        tables.append(predictive_table(block.family, cache))
    return DeviceScorer(blocks, log_weights, tuple(tables), by_data=True)


def predictive_cache(lik: Any, S: np.ndarray) -> np.ndarray:
    """The predictive cache of all clusters, computed on the host."""
    C = np.zeros((n_cache(lik), S.shape[1]))
    refresh_clusters(lik, S, C, S.shape[1])
    return C


@singledispatch
def predictive_table(lik: Any, C: np.ndarray) -> Any:
    """What a device needs of a predictive cache: the matrix that T is multiplied by and, for Student's t, its terms."""
    raise TypeError(f"{type(lik).__name__} does not run on a device")


@predictive_table.register(Categorical)
def _(lik, C):
    heads = lik.offsets[:-1]
    table = C - np.repeat(C[heads], np.diff(lik.offsets), axis=0)
    table[heads] = 0.0
    return table


@predictive_table.register(GaussianDiagonal)
def _(lik, C):
    """One Student t per column: ``log1p`` of the squared distance is linear in (1, x, x^2) under the logarithm."""
    m, inverse, a, constant = C[0::4], C[1::4], C[2::4], C[3::4]
    return np.stack([m * m * inverse, -2.0 * m * inverse, inverse]), a, constant  # [3, column, cluster]


@predictive_table.register(GaussianFull)
def _(lik, C):
    p, K = len(lik.m), C.shape[1]
    low = np.tril_indices(p)
    table = np.empty((1 + p + len(low[0]), K))
    for k in range(K):
        factor, m = np.zeros((p, p)), C[4 : 4 + p, k]
        factor[low] = C[4 + p :, k]
        inverse = np.linalg.inv(factor)
        P = inverse.T @ inverse * C[0, k] / (C[0, k] + 1.0)
        table[0, k], table[1 : 1 + p, k] = m @ P @ m, -2.0 * P @ m
        table[1 + p :, k] = (P * (2.0 - np.eye(p)))[low]
    return table, 0.5 * C[2], C[1]


def _powered(lik: Any, theta: np.ndarray) -> np.ndarray:
    power = getattr(lik, "power", None)
    if power is not None:
        theta = theta * np.repeat(power, np.diff(lik.offsets))[:, None]
    return np.maximum(theta, MIN_LOG_PROBABILITY)


def uploaded(scorer: DeviceScorer) -> list[Any]:
    """Log weights and tables on the device, each in the precision of the data that it is combined with."""
    first = scorer.blocks[0].data.values
    xp = namespace(first)
    kinds = [
        xp.float32 if isinstance(block.data, DeviceCodes) else _widest(block.data.values)
        for block in scorer.blocks
    ]
    widest = next((kind for kind in kinds if kind != xp.float32), xp.float32)
    made: list[Any] = [to_device(np.maximum(scorer.log_weights, MIN_LOG_PROBABILITY)[None, :], first, widest)]
    for kind, table in zip(kinds, scorer.tables, strict=True):
        arrays = table if isinstance(table, tuple) else (table,)
        made.append(tuple(to_device(np.atleast_2d(values), first, kind) for values in arrays))
    return made


def log_joints(scorer: DeviceScorer, Ts: Sequence[Any], there: Sequence[Any]) -> Any:
    """Log joint [row, cluster] of a chunk, from the statistics of its rows and what was uploaded."""
    L, *tables = there
    xp = namespace(L)
    for block, T, table in zip(scorer.blocks, Ts, tables, strict=True):
        part = xp.matmul(T, table[0]) if len(table) == 1 else _student(block.family, T, *table)
        L = L + xp.astype(part, L.dtype)
    return L


@singledispatch
def _student(lik: Any, T: Any, table: Any, a: Any, constant: Any) -> Any:
    raise TypeError(f"{type(lik).__name__} does not run on a device")


@_student.register(GaussianFull)
def _(lik, T, table, a, constant):
    xp = namespace(T)
    return constant - a * xp.log1p(xp.matmul(T, table))


@_student.register(GaussianDiagonal)
def _(lik, T, table, a, constant):
    xp, total = namespace(T), None
    for d in range(table.shape[1]):
        own = T[:, 3 * d : 3 * d + 3]
        squared = xp.matmul(own, table[:, d, :])
        # an unobserved cell adds nothing
        part = (constant[d : d + 1, :] - a[d : d + 1, :] * xp.log1p(squared)) * own[:, :1]
        total = part if total is None else total + part
    return total


def normalized_on_device(L: Any) -> tuple[Any, Any, Any]:
    """Responsibilities, log-sum-exp and entropy of each row; equal shares where no cluster is possible."""
    xp = namespace(L)
    top = xp.max(L, axis=1, keepdims=True)
    shifted = xp.maximum(L - top, xp.full_like(L, -800.0))
    E = xp.exp(shifted)
    total = xp.sum(E, axis=1, keepdims=True)
    log_total = xp.log(total)
    R = E / total
    entropy = log_total[:, 0] - xp.sum(R * shifted, axis=1)
    return R, top[:, 0] + log_total[:, 0], entropy


# ---- passes ---------------------------------------------------------------------------------------------------------


def row_bytes(blocks: Sequence[Block], n_clusters: int) -> int:
    """Approximate number of bytes that a pass needs per row."""
    n_stats = sum(int(stats_start(block.family, n_columns(block.family))) for block in blocks)
    return 12 * n_stats + 32 * n_clusters


def collect_on_device(scorer: DeviceScorer, weights: np.ndarray) -> Statistics:
    """Expected statistics of all objects: the E step."""
    blocks, K = scorer.blocks, len(scorer.log_weights)
    weighted = None if _all_one(weights) else weights
    if weighted is None:
        fused = _fused(blocks, K)
        if fused is not None:
            return fused(scorer)

    there, kind = uploaded(scorer), _widest(blocks[0].data.values)

    def one(lo: int, hi: int) -> tuple[Any, ...]:
        Ts = [features(block.family, block.data, lo, hi) for block in blocks]
        R, log_likelihood, entropy = normalized_on_device(log_joints(scorer, Ts, there))
        xp = namespace(R)
        if weighted is not None:
            w = to_device(weighted[lo:hi], R, R.dtype)
            R, log_likelihood, entropy = R * w[:, None], log_likelihood * w, entropy * w
        sums = [xp.sum(R, axis=0), xp.sum(log_likelihood), xp.sum(entropy)]
        S = [xp.matmul(xp.permute_dims(T, (1, 0)), xp.astype(R, T.dtype)) for T in Ts]
        return tuple(xp.astype(part, kind) for part in (*sums, *S))

    return _added(one, scorer.n_rows, row_bytes(blocks, K))


def _all_one(weights: np.ndarray) -> bool:
    """Whether all weights are 1; an array that repeats one number is not read as a whole."""
    return bool(np.all((weights[:1] if weights.strides == (0,) else weights) == 1.0))


def count_labels(blocks: Sequence[Block], weights: np.ndarray, z: np.ndarray, K: int) -> Statistics:
    """Statistics of given labels; -1 counts for no cluster."""

    def one(lo: int, hi: int) -> tuple[np.ndarray, ...]:
        R = np.zeros((hi - lo, K))
        seen = np.flatnonzero(z[lo:hi] >= 0)
        R[seen, z[lo:hi][seen]] = weights[lo:hi][seen]
        S = []
        for block in blocks:
            T = features(block.family, block.data, lo, hi)
            xp = namespace(T)
            S.append(
                to_host(xp.matmul(xp.permute_dims(T, (1, 0)), to_device(R, T, T.dtype))).astype(np.float64)
            )
        return (R.sum(axis=0), np.zeros(()), np.zeros(()), *S)

    return _added(one, blocks[0].data.n_rows, row_bytes(blocks, K))


def _added(one: Any, n_rows: int, n_bytes: int) -> Statistics:
    """Sums over all chunks, kept on the device: fetching each of them would mean to wait for it."""
    total: list[Any] | None = None
    for _, _, found in in_chunks(one, n_rows, n_bytes):
        total = list(found) if total is None else [now + more for now, more in zip(total, found, strict=True)]
    assert total is not None
    n, log_likelihood, entropy, *S = (to_host(part).astype(np.float64) for part in total)
    return Statistics(n, tuple(S), float(log_likelihood), float(entropy), 0.0)


def _fused(blocks: Sequence[Block], K: int) -> Any:
    """The fused kernels where they apply, else None."""
    block = blocks[0]
    if (
        len(blocks) > 1
        or not isinstance(block.data, DeviceCodes)
        or not isinstance(block.family, Categorical)
    ):
        return None
    codes = block.data.values
    if not (type(codes).__module__ == "torch" and codes.is_cuda and "uint8" in str(codes.dtype)):
        return None
    try:
        from partita.engines.passes.device_fused import MAX_CLUSTERS, FusedCategorical
    except ImportError:
        return None
    if K > MAX_CLUSTERS:
        return None
    engine = block.data.kept.get("fused")
    if engine is None or engine.n_clusters != K:
        engine = block.data.kept["fused"] = FusedCategorical(codes, block.family.n_levels, K)

    def collect(scorer: DeviceScorer) -> Statistics:
        offsets = block.family.offsets
        table = scorer.tables[0]
        thetas = [table[lo + 1 : hi] for lo, hi in pairwise(offsets)]
        n, counts, log_likelihood, entropy = engine(scorer.log_weights, thetas)
        S = np.concatenate([np.vstack([own.sum(axis=0), own]) for own in counts])
        return Statistics(n, (S,), log_likelihood, entropy, 0.0)

    return collect
