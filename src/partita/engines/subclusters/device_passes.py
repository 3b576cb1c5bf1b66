"""The passes of the sub-cluster sampler over rows on a device; each does what its namesake does in memory.

Every row is one object. Log joints of categorical columns are in single precision there, so that about one draw in a
million may differ from that of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.engines.passes.device_rows import DeviceCodes
from partita.engines.passes.device_scores import (
    log_joints,
    powered,
    precision,
    score_by_parameters,
    uploaded,
)
from partita.execution.device import device_of, namespace, to_device, widest
from partita.execution.device_random import device_uniforms
from partita.families import Categorical
from partita.families.registry import Block


def count_sums(Ts: Sequence[Any], label: Any, n_labels: int) -> list[Any]:
    """Sizes, and statistics [label, statistic] of each block; -1 counts for no label."""
    xp = namespace(label)
    labels = xp.arange(n_labels, dtype=label.dtype, device=device_of(label))
    one_hot = label[:, None] == labels[None, :]
    kind = widest(label)
    sums = [xp.sum(xp.astype(one_hot, kind), axis=0)]
    for T in Ts:
        R = xp.astype(one_hot, T.dtype)
        sums.append(xp.astype(xp.matmul(xp.permute_dims(R, (1, 0)), T), kind))
    return sums


def overwritten(values: Any, lo: int, places: np.ndarray, new: np.ndarray) -> tuple[Any, Any]:
    """Values of the rows from lo with those at some places (in ascending order) replaced, and which ones were (None:
    none).
    """
    n = int(values.shape[0])
    inside = slice(*np.searchsorted(places, [lo, lo + n]))
    if inside.start == inside.stop:
        return values, None
    xp = namespace(values)
    at = to_device(places[inside] - lo, values, xp.int64)
    rows = xp.arange(n, dtype=xp.int64, device=device_of(values))
    last = xp.asarray(int(at.shape[0]) - 1, dtype=xp.int64, device=device_of(values))
    which = xp.minimum(xp.searchsorted(at, rows), last)
    hit = xp.take(at, which, axis=0) == rows
    put = xp.take(to_device(new[inside].astype(np.int64), values, values.dtype), which, axis=0)
    return xp.where(hit, put, values), hit


def count_seated(blocks: Sequence[Block], common: Any) -> Callable[..., Any]:
    """Sizes and statistics of the clusters."""
    return lambda Ts, lo, hi, z: (None, count_sums(Ts, z, common))


def seat_rows(blocks: Sequence[Block], common: Any) -> Callable[..., Any]:
    """Labels given parameters, those of the keepers as before; sizes and statistics."""
    parameters, keepers, (key, iteration, stage) = common
    scores = score_by_parameters(blocks, parameters.log_weights, parameters.thetas)
    there, K = uploaded(scores), scores.n_clusters

    def one(Ts: Sequence[Any], lo: int, hi: int, before: Any) -> tuple[Any, list[Any]]:
        L = log_joints(scores, Ts, there)
        xp = namespace(L)
        L = xp.astype(L, widest(L))
        E = xp.exp(xp.maximum(L - xp.max(L, axis=1, keepdims=True), xp.full_like(L, -800.0)))
        reached = xp.cumulative_sum(E, axis=1)
        goal = device_uniforms(key, iteration, stage, lo, hi, L) * reached[:, K - 1]
        z = xp.sum(xp.astype(reached[:, : K - 1] <= goal[:, None], before.dtype), axis=1, dtype=before.dtype)
        z, kept = overwritten(z, lo, keepers, np.zeros(len(keepers)))
        if kept is not None:
            z = xp.where(kept, before, z)
        return z, count_sums(Ts, z, K)

    return one


def toss_copies(blocks: Sequence[Block], common: Any) -> Callable[..., Any]:
    """Sides of the members of a cluster; sizes and statistics of both sides."""
    k, bias, (key, iteration, stage) = common

    def one(Ts: Sequence[Any], lo: int, hi: int, z: Any) -> tuple[Any, list[Any]]:
        xp, member = namespace(z), z == k
        side = member & (device_uniforms(key, iteration, stage, lo, hi, z) < bias)
        label = xp.where(member, xp.astype(side, z.dtype), xp.full_like(z, -1))
        return xp.astype(side, xp.int8), count_sums(Ts, label, 2)

    return one


def divide_copies(blocks: Sequence[Block], common: Any) -> Callable[..., Any]:
    """Sides of the rows; log proposals of the groups, sizes and statistics of their sides."""
    groups, group_of, held_of, guide, (key, iteration, stage) = common
    G, like = len(groups.clusters), blocks[0].data.values
    xp, kind = namespace(like), widest(like)
    log_odds = to_device(guide.log_odds[None, :], like, kind)
    maps = [to_device(table.astype(np.int64), like, xp.int64) for table in (group_of, held_of)]
    tables = [
        to_device(powered(block.family, theta[:, :, 0].T), like, precision(block))
        for block, theta in zip(blocks, guide.thetas, strict=True)
    ]
    numbers = xp.arange(G, dtype=xp.int64, device=device_of(like))

    def one(Ts: Sequence[Any], lo: int, hi: int, z: Any) -> tuple[Any, list[Any]]:
        at = xp.astype(z, xp.int64)
        group, held = (xp.take(table, at, axis=0) for table in maps)
        own = group[:, None] == numbers[None, :]
        of_groups = log_odds
        for T, table in zip(Ts, tables, strict=True):
            of_groups = of_groups + xp.astype(xp.matmul(T, table), kind)
        odds = xp.sum(xp.where(own, of_groups, xp.zeros_like(of_groups)), axis=1)
        left = 1.0 / (1.0 + xp.exp(-xp.maximum(odds, xp.full_like(odds, -700.0))))
        to_right = device_uniforms(key, iteration, stage, lo, hi, odds) >= left
        drawn = held < 0
        side = xp.where(drawn, xp.astype(to_right, xp.int64), held)
        against = xp.where(side == 0, -odds, odds)
        log_p = -(xp.maximum(against, xp.zeros_like(against)) + xp.log1p(xp.exp(-xp.abs(against))))
        side, anchored = overwritten(side, lo, groups.anchors, groups.sides)
        if anchored is not None:
            drawn = drawn | anchored
            log_p = xp.where(anchored, xp.zeros_like(log_p), log_p)
        divided = group >= 0
        label = xp.where(drawn & divided, 2 * group + side, xp.full_like(group, -1))
        side = xp.where(divided, side, xp.zeros_like(side))
        log_q = xp.sum(xp.where(own, log_p[:, None], xp.zeros_like(of_groups)), axis=0)
        return xp.astype(side, xp.int8), [log_q, *count_sums(Ts, label, 2 * G)]

    return one


# ---- all rows at once, in fused kernels ----------------------------------------------------------------------------


def fused_passes(blocks: Sequence[Block], n_labels: int) -> Any:
    """The fused kernels for these blocks and so many labels, None where they do not apply."""
    (block, *others) = blocks
    if others or not isinstance(block.data, DeviceCodes) or not isinstance(block.family, Categorical):
        return None
    codes = block.data.values
    if not (type(codes).__module__ == "torch" and codes.is_cuda and "uint8" in str(codes.dtype)):
        return None
    try:
        from partita.engines.subclusters.fused_passes import MAX_LABELS, FusedPasses
    except ImportError:  # torch without Triton
        return None
    if "passes" not in block.data.kept:
        block.data.kept["passes"] = FusedPasses(codes, block.family.offsets)
    passes = block.data.kept["passes"]
    return passes if passes.applies and n_labels <= MAX_LABELS else None


def count_at_once(blocks: Sequence[Block], common: Any, z: Any, marks: Any) -> list[np.ndarray] | None:
    """See :func:`count_seated`."""
    passes = fused_passes(blocks, common)
    return None if passes is None else passes.count(z, common)


def seat_at_once(blocks: Sequence[Block], common: Any, z: Any, marks: Any) -> list[np.ndarray] | None:
    """See :func:`seat_rows`."""
    parameters, keepers, stream = common
    K = len(parameters.log_weights)
    passes = fused_passes(blocks, K)
    if passes is None:
        return None
    passes.seat(parameters.log_weights, powered(blocks[0].family, parameters.thetas[0]), stream, marks)
    kept = to_device(keepers, z, namespace(z).int64)
    marks[kept] = z[kept]
    return passes.count(marks, K)


def toss_at_once(blocks: Sequence[Block], common: Any, z: Any, marks: Any) -> list[np.ndarray] | None:
    """See :func:`toss_copies`."""
    k, bias, stream = common
    passes = fused_passes(blocks, 2)
    if passes is None:
        return None
    xp, member = namespace(z), z == k
    marks[...] = xp.astype(member & (passes.uniforms(stream) < bias), marks.dtype)
    return passes.count(xp.where(member, xp.astype(marks, z.dtype), xp.full_like(z, -1)), 2)


def divide_at_once(blocks: Sequence[Block], common: Any, z: Any, marks: Any) -> list[np.ndarray] | None:
    """See :func:`divide_copies`."""
    groups, group_of, held_of, guide, stream = common
    passes = fused_passes(blocks, 2 * len(groups.clusters))
    if passes is None:
        return None
    theta = powered(blocks[0].family, np.ascontiguousarray(guide.thetas[0][:, :, 0].T))
    labels, log_q = passes.divide(guide, theta, (groups, group_of, held_of), stream, z, marks)
    return [log_q, *passes.count(labels, 2 * len(groups.clusters))]
