"""One pass over rows that live on a device: what :mod:`.passes` does in memory, for categorical and Gaussian columns.

The families are of exponential type: with T the statistics of a chunk of rows, log joints are ``T theta`` and expected
statistics ``T' R``, so two products of matrices are all that a pass needs, in any library that follows the array API.
Nothing of the size of the data is made: a chunk of T at a time. Products of one-hot rows are in single precision, those
of real numbers in double where the device has it; sums over chunks are in double. All steps between two passes (modes,
expectations, hyper-parameters, factors of covariances) stay on the host, in double: they do not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita.execution.device import device_of, in_chunks, namespace, to_device, to_host
from partita.families import Categorical, GaussianDiagonal, GaussianFull
from partita.families.contract import n_columns, stats_start
from partita.families.registry import Block
from partita.families.rows import refresh_clusters

__all__ = [
    "DeviceCodes",
    "DeviceReals",
    "DeviceScorer",
    "assign_on_device",
    "collect_on_device",
    "count_labels",
    "fetch_rows",
    "label_on_device",
    "on_device",
    "score_by_data",
    "score_by_parameters",
]

LOWEST = -1e30  # of a log probability: times zero it is zero, as -inf is not


class DeviceCodes(NamedTuple):
    """Levels of categorical columns: ``values[column, row]``, one byte each where 255 is missing, else -1 is.

    ``kept`` holds what is made once for all passes over these labels.
    """

    values: Any
    kept: dict[Any, Any]

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[1])


class DeviceReals(NamedTuple):
    """Real columns in the user's units: ``values[row, column]``, of which some columns are ours; NaN is missing."""

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
    by_data: bool  # under the data of each cluster, parameters integrated out

    @property
    def n_rows(self) -> int:
        return int(self.blocks[0].data.n_rows)


def on_device(blocks: Sequence[Any]) -> bool:
    """Whether the data of these blocks are on a device."""
    return len(blocks) > 0 and isinstance(blocks[0].data, (DeviceCodes, DeviceReals))


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
    if "layout" not in data.kept:  # made once: chunks are many
        column = np.repeat(np.arange(len(lik.alpha)), np.diff(lik.offsets))
        level = np.concatenate([np.arange(-1, v) for v in lik.n_levels])[:, None]
        # a byte has no -1, but where that would be asked for is the head of a column
        levels = to_device(np.maximum(level, 0), rows, rows.dtype)
        data.kept["layout"] = to_device(column, rows, xp.int64), levels, to_device(level < 0, rows)
    column, levels, heads = data.kept["layout"]
    wide = xp.take(rows, column, axis=0)
    seen = wide != xp.asarray(_missing(data), dtype=rows.dtype, device=device_of(rows))
    return xp.permute_dims(xp.astype(xp.where(heads, seen, wide == levels), xp.float32), (1, 0))


@features.register(GaussianDiagonal)
def _(lik, data, lo, hi):
    xp, X = namespace(data.values), _standardized(data, lo, hi)
    seen = ~xp.isnan(X)
    X = xp.where(seen, X, xp.zeros_like(X))
    T = xp.stack([xp.astype(seen, X.dtype), X, X * X], axis=2)
    return xp.reshape(T, (hi - lo, 3 * X.shape[1]))


@features.register(GaussianFull)
def _(lik, data, lo, hi):
    xp, X = namespace(data.values), _standardized(data, lo, hi)
    a, b = (to_device(index, X, xp.int64) for index in np.tril_indices(len(lik.m)))
    products = xp.take(X, a, axis=1) * xp.take(X, b, axis=1)
    return xp.concat([xp.ones((hi - lo, 1), dtype=X.dtype, device=device_of(X)), X, products], axis=1)


def _missing(data: DeviceCodes) -> int:
    return 255 if "uint8" in str(data.values.dtype) else -1


def _standardized(data: DeviceReals, lo: int, hi: int) -> Any:
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
    return np.ascontiguousarray(to_host(_standardized(part, 0, len(rows))), dtype=np.float64)


# ---- scores of a chunk of rows -----------------------------------------------------------------------------------


def score_by_parameters(
    blocks: Sequence[Block], log_weights: np.ndarray, thetas: Sequence[np.ndarray]
) -> Any:
    """Scores under given parameters."""
    tables = tuple(_powered(block.family, theta) for block, theta in zip(blocks, thetas, strict=True))
    return DeviceScorer(blocks, log_weights, tables, by_data=False)


def score_by_data(blocks: Sequence[Block], S: Sequence[np.ndarray], log_weights: np.ndarray) -> DeviceScorer:
    """Scores under the data of every cluster, parameters integrated out."""
    tables = []
    for block, s in zip(blocks, S, strict=True):
        cache = predictive_cache(block.family, s)
        tables.append(predictive_table(block.family, cache))
    return DeviceScorer(blocks, log_weights, tuple(tables), by_data=True)


def predictive_cache(lik: Any, S: np.ndarray) -> np.ndarray:
    """The predictive cache of all clusters, made on the host."""
    from partita.engines.passes.rows import n_cache

    C = np.zeros((n_cache(lik), S.shape[1]))
    refresh_clusters(lik, S, C, S.shape[1])
    return C


@singledispatch
def predictive_table(lik: Any, C: np.ndarray) -> Any:
    """What a device needs of a predictive cache: a table that T is multiplied by and, of Student's t, the rest."""
    raise TypeError(f"{type(lik).__name__} does not run on a device")


@predictive_table.register(Categorical)
def _(lik, C):
    heads = lik.offsets[:-1]
    table = C - np.repeat(C[heads], np.diff(lik.offsets), axis=0)
    table[heads] = 0.0
    return table


@predictive_table.register(GaussianDiagonal)
def _(lik, C):
    """One Student-t a column: ``log1p`` of the squared distance is linear in (1, x, x^2) under the logarithm."""
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
    return np.maximum(theta, LOWEST)


def uploaded(scorer: DeviceScorer) -> list[Any]:
    """Log weights and tables on the device, each as wide as what it meets there."""
    first = scorer.blocks[0].data.values
    xp = namespace(first)
    kinds = [
        xp.float32 if isinstance(block.data, DeviceCodes) else _widest(block.data.values)
        for block in scorer.blocks
    ]
    widest = next((kind for kind in kinds if kind != xp.float32), xp.float32)
    made: list[Any] = [to_device(np.maximum(scorer.log_weights, LOWEST)[None, :], first, widest)]
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
        # a cell that was not seen says nothing
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
    """About how much is made of a row."""
    n_stats = sum(int(stats_start(block.family, n_columns(block.family))) for block in blocks)
    return 12 * n_stats + 32 * n_clusters


def collect_on_device(scorer: DeviceScorer, weights: np.ndarray) -> tuple[np.ndarray, list, float, float]:
    """Sizes, statistics of each block, log likelihood and entropy of the labels: the E step."""
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
    """Told without looking at every row where one number stands for all."""
    return bool(np.all((weights[:1] if weights.strides == (0,) else weights) == 1.0))


def count_labels(
    blocks: Sequence[Block], weights: np.ndarray, z: np.ndarray, K: int
) -> tuple[np.ndarray, list, float, float]:
    """Sizes and statistics of given labels; -1 counts for no cluster."""

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


def _added(one: Any, n_rows: int, n_bytes: int) -> tuple[np.ndarray, list, float, float]:
    total: list[Any] | None = None  # where the chunks are: to fetch each would be to wait for it
    for _, _, found in in_chunks(one, n_rows, n_bytes):
        total = list(found) if total is None else [now + more for now, more in zip(total, found, strict=True)]
    assert total is not None
    n, log_likelihood, entropy, *S = (to_host(part).astype(np.float64) for part in total)
    return n, S, float(log_likelihood), float(entropy)


def assign_on_device(scorer: DeviceScorer) -> tuple[np.ndarray, ...]:
    """Most probable cluster, its probability, entropy and log likelihood of every row, on the host."""
    n_rows = scorer.n_rows
    out = tuple(np.empty(n_rows, dtype) for dtype in (np.int64, float, float, float))
    there = uploaded(scorer)

    def one(lo: int, hi: int) -> tuple[Any, ...]:
        Ts = [features(block.family, block.data, lo, hi) for block in scorer.blocks]
        R, log_likelihood, entropy = normalized_on_device(log_joints(scorer, Ts, there))
        xp = namespace(R)
        found = xp.argmax(R, axis=1), xp.max(R, axis=1), entropy, log_likelihood
        return tuple(to_host(part) for part in found)

    for lo, hi, found in in_chunks(one, n_rows, row_bytes(scorer.blocks, len(scorer.log_weights))):
        for array, values in zip(out, found, strict=True):
            array[lo:hi] = values
    return out


def label_on_device(scorer: DeviceScorer) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities [row, cluster] and log likelihood of every row, on the host."""
    proba = np.empty((scorer.n_rows, len(scorer.log_weights)))
    log_likelihood, there = np.empty(scorer.n_rows), uploaded(scorer)

    def one(lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        Ts = [features(block.family, block.data, lo, hi) for block in scorer.blocks]
        R, values, _ = normalized_on_device(log_joints(scorer, Ts, there))
        return to_host(R), to_host(values)

    for lo, hi, found in in_chunks(one, scorer.n_rows, row_bytes(scorer.blocks, len(scorer.log_weights))):
        proba[lo:hi], log_likelihood[lo:hi] = found
    return proba, log_likelihood


def _fused(blocks: Sequence[Block], K: int) -> Any:
    """The kernels of Triton, where they can do it; None for the portable way."""
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
        from partita.engines.passes.device_fused import MOST_CLUSTERS, FusedCategorical
    except ImportError:
        return None
    if K > MOST_CLUSTERS:
        return None
    engine = block.data.kept.get("fused")
    if engine is None or engine.n_clusters != K:
        engine = block.data.kept["fused"] = FusedCategorical(codes, block.family.n_levels, K)

    def collect(scorer: DeviceScorer) -> tuple[np.ndarray, list, float, float]:
        offsets = block.family.offsets
        table = scorer.tables[0]
        thetas = [table[lo + 1 : hi] for lo, hi in pairwise(offsets)]
        n, counts, log_likelihood, entropy = engine(scorer.log_weights, thetas)
        S = np.concatenate([np.vstack([own.sum(axis=0), own]) for own in counts])
        return n, [S], log_likelihood, entropy

    return collect
