"""Log joints of a chunk of rows on a device, under given parameters or under the data of every cluster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.device_rows import DeviceCodes
from partita.engines.passes.device_special import log_gamma
from partita.engines.passes.values import n_cache
from partita.execution.device import namespace, to_device, widest
from partita.families import (
    Bernoulli,
    Categorical,
    Exponential,
    GaussianDiagonal,
    GaussianFull,
    Multinomial,
    Poisson,
)
from partita.families.registry import Block
from partita.families.rows import refresh_clusters

MIN_LOG_PROBABILITY = -1e30  # stands for -inf: its product with zero is zero


class Scores(NamedTuple):
    """How rows on a device are scored: log weights, and for each block a function of its statistics T."""

    blocks: Sequence[Block]
    log_weights: np.ndarray
    tables: tuple[Any, ...]

    @property
    def n_rows(self) -> int:
        return int(self.blocks[0].data.n_rows)

    @property
    def n_clusters(self) -> int:
        return len(self.log_weights)


def score_by_parameters(
    blocks: Sequence[Block], log_weights: np.ndarray, thetas: Sequence[np.ndarray]
) -> Scores:
    """Scores under given parameters."""
    tables = tuple(powered(block.family, theta) for block, theta in zip(blocks, thetas, strict=True))
    return Scores(blocks, log_weights, tables)


def score_by_data(blocks: Sequence[Block], S: Sequence[np.ndarray], log_weights: np.ndarray) -> Scores:
    """Scores under the data of every cluster, with the parameters integrated out."""
    tables = []
    for block, s in zip(blocks, S, strict=True):
        cache = predictive_cache(block.family, s)
        tables.append(predictive_table(block.family, cache))
    return Scores(blocks, log_weights, tuple(tables))


def predictive_cache(lik: Any, S: np.ndarray) -> np.ndarray:
    """The predictive cache of all clusters, computed on the host."""
    C = np.zeros((n_cache(lik), S.shape[1]))
    refresh_clusters(lik, S, C, S.shape[1])
    return C


@singledispatch
def predictive_table(lik: Any, C: np.ndarray) -> Any:
    """What a device needs of a predictive cache: the matrix that T is multiplied by, or what `_integrated` reads."""
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


@predictive_table.register(Bernoulli)
def _(lik, C):
    return C


@predictive_table.register(Exponential)
def _(lik, C):
    a, b = lik.a[:, None] + C[0::2], lik.b[:, None] + C[1::2]  # the cache is a copy of the statistics
    return np.log(a) + a * np.log(b), a + 1.0, b


@predictive_table.register(Poisson)
def _(lik, C):
    a, b = C[0::2], C[1::2]
    return a, a * np.log1p(1.0 / b), np.log(b + 1.0)


@predictive_table.register(Multinomial)
def _(lik, C):
    return C[1 : 1 + len(lik.alpha)], C[:1]


def powered(lik: Any, theta: np.ndarray) -> np.ndarray:
    """Natural parameters times the powers of their columns, -inf replaced."""
    power = getattr(lik, "power", None)
    if power is not None:
        theta = theta * np.repeat(power, np.diff(lik.offsets))[:, None]
    return np.maximum(theta, MIN_LOG_PROBABILITY)


def precision(block: Block) -> Any:
    """The type of the statistics of the rows of a block: codes are counted in single precision."""
    values = block.data.values
    return namespace(values).float32 if isinstance(block.data, DeviceCodes) else widest(values)


def uploaded(scores: Scores) -> list[Any]:
    """Log weights and tables on the device, each in the precision of the data that it is combined with."""
    first = scores.blocks[0].data.values
    xp = namespace(first)
    kinds = [precision(block) for block in scores.blocks]
    common = next((kind for kind in kinds if kind != xp.float32), xp.float32)
    made: list[Any] = [to_device(np.maximum(scores.log_weights, MIN_LOG_PROBABILITY)[None, :], first, common)]
    for kind, table in zip(kinds, scores.tables, strict=True):
        arrays = table if isinstance(table, tuple) else (table,)
        made.append(tuple(to_device(np.atleast_2d(values), first, kind) for values in arrays))
    return made


def log_joints(scores: Scores, Ts: Sequence[Any], there: Sequence[Any]) -> Any:
    """Log joint [row, cluster] of a chunk, from the statistics of its rows and what was uploaded."""
    L, *tables = there
    xp = namespace(L)
    for block, T, table in zip(scores.blocks, Ts, tables, strict=True):
        part = xp.matmul(T, table[0]) if len(table) == 1 else _integrated(block.family, T, *table)
        L = L + xp.astype(part, L.dtype)
    return L


@singledispatch
def _integrated(lik: Any, T: Any, *tables: Any) -> Any:
    """Log predictive [row, cluster] of families in whose predictive the statistics T do not enter linearly."""
    raise TypeError(f"{type(lik).__name__} does not run on a device")


@_integrated.register(GaussianFull)
def _(lik, T, table, a, constant):
    xp = namespace(T)
    return constant - a * xp.log1p(xp.matmul(T, table))


@_integrated.register(GaussianDiagonal)
def _(lik, T, table, a, constant):
    xp, total = namespace(T), None
    for d in range(table.shape[1]):
        own = T[:, 3 * d : 3 * d + 3]
        squared = xp.matmul(own, table[:, d, :])
        # an unobserved cell adds nothing
        part = (constant[d : d + 1, :] - a[d : d + 1, :] * xp.log1p(squared)) * own[:, :1]
        total = part if total is None else total + part
    return total


@_integrated.register(Exponential)
def _(lik, T, constant, power, b):
    """The law of Lomax."""
    xp, total = namespace(T), 0.0
    for d in range(b.shape[0]):
        seen, x = T[:, 2 * d : 2 * d + 1], T[:, 2 * d + 1 : 2 * d + 2]
        total = total + (constant[d : d + 1, :] - power[d : d + 1, :] * xp.log(b[d : d + 1, :] + x)) * seen
    return total


@_integrated.register(Poisson)
def _(lik, T, a, empty, odds):
    """Negative binomial; a cell that is not observed has a count of 0 in no exposure."""
    total = 0.0
    for d in range(a.shape[0]):
        seen, count, constant = (T[:, 3 * d + i : 3 * d + i + 1] for i in range(3))
        own = a[d : d + 1, :]
        rise = log_gamma(own + count) - log_gamma(own)
        total = total + (constant + rise - seen * empty[d : d + 1, :] - count * odds[d : d + 1, :])
    return total


@_integrated.register(Multinomial)
def _(lik, T, a, whole):
    """Dirichlet-multinomial."""
    total = T[:, 1:2] + log_gamma(whole) - log_gamma(whole + T[:, :1])
    for v in range(a.shape[0]):
        own = a[v : v + 1, :]
        total = total + (log_gamma(own + T[:, 2 + v : 3 + v]) - log_gamma(own))
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
