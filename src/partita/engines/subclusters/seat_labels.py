"""The labels of all copies, in memory or on a device: what the sampler asks of them outside of passes over the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita.dispatch import kernel
from partita.execution.device import device_of, in_chunks, is_on_device, namespace, to_device, to_host
from partita.execution.device_random import device_uniforms

MIN_STRETCH = 64  # rows in which members are counted together on a device
SEARCHED = 64  # bytes per label, of the arrays in which members are counted on a device


def blank(z: Any, dtype: str) -> Any:
    """Zeros, one for each label, of a type ("int8") and where the labels are."""
    if not is_on_device(z):
        return np.zeros(len(z), dtype)
    xp = namespace(z)
    return xp.zeros(z.shape, dtype=getattr(xp, dtype), device=device_of(z))


def labels_at(z: Any, copies: np.ndarray) -> np.ndarray:
    """The labels of some copies, in memory."""
    if not is_on_device(z):
        return z[copies]
    xp = namespace(z)
    return to_host(xp.take(z, to_device(np.asarray(copies, np.int64), z, xp.int64), axis=0))


def relabel(z: Any, side: Any, name: np.ndarray) -> Any:
    """``name[label, side]`` of every copy; without sides all are on the left."""
    if not is_on_device(z):
        return name.astype(z.dtype)[z, 0 if side is None else side]
    xp = namespace(z)
    flat = to_device(np.ascontiguousarray(name.reshape(-1)).astype(np.int64), z, z.dtype)
    out = xp.empty(z.shape, dtype=z.dtype, device=device_of(z))

    def new(lo: int, hi: int) -> Any:
        at = 2 * xp.astype(z[lo:hi], xp.int64)
        return xp.take(flat, at if side is None else at + xp.astype(side[lo:hi], xp.int64), axis=0)

    for lo, hi, found in in_chunks(new, int(z.shape[0]), SEARCHED):
        out[lo:hi] = found
    return out


@kernel
def find_members(z, ranks, out):
    """``out[k, h]``: the member of cluster k that comes after ``ranks[k, h]`` others."""
    passed = np.zeros(ranks.shape[0], np.int64)
    for e in range(z.shape[0]):
        k = z[e]
        for h in range(ranks.shape[1]):
            if ranks[k, h] == passed[k]:
                out[k, h] = e
        passed[k] += 1


def members_of_ranks(z: Any, ranks: np.ndarray) -> np.ndarray:
    """For each cluster k and each h the member of k that comes after ``ranks[k, h]`` others.

    On a device, members are counted in stretches of rows, and the labels of the stretches with such members come to the
    host: two transfers, however many members are asked for.
    """
    out = np.empty(ranks.shape, np.int64)
    if not is_on_device(z):
        find_members(z, ranks, out)
        return out
    xp, n_rows, (K, H) = namespace(z), int(z.shape[0]), ranks.shape
    size = max(MIN_STRETCH, math.isqrt(n_rows))
    clusters = xp.arange(K, dtype=z.dtype, device=device_of(z))

    def count(lo: int, hi: int) -> Any:
        """Members of each cluster in the stretches of rows from lo, the last of which may be shorter."""
        is_member = xp.astype(z[lo:hi][:, None] == clusters[None, :], xp.int64)
        whole = (hi - lo) // size * size
        counts = xp.sum(xp.reshape(is_member[:whole, :], (-1, size, K)), axis=1)
        if whole == hi - lo:
            return counts
        return xp.concat([counts, xp.sum(is_member[whole:, :], axis=0, keepdims=True)], axis=0)

    starts, parts = [], []
    for lo, hi, found in in_chunks(count, n_rows, SEARCHED + 16 * K):
        starts.append(np.arange(lo, hi, size))
        parts.append(found)
    start = np.concatenate(starts)
    passed = np.cumsum(to_host(xp.concat(parts, axis=0)), axis=0)
    stretch = np.stack(
        [np.searchsorted(own, of_k, side="right") for own, of_k in zip(passed.T, ranks, strict=True)]
    )
    before = np.where(stretch > 0, passed[stretch - 1, np.arange(K)[:, None]], 0)
    rows = np.minimum(start[stretch][:, :, None] + np.arange(size), n_rows - 1)
    near = labels_at(z, rows.reshape(-1)).reshape(rows.shape)
    for k, h in np.ndindex(K, H):
        out[k, h] = start[stretch[k, h]] + np.flatnonzero(near[k, h] == k)[ranks[k, h] - before[k, h]]
    return out


def draw_crowd(z: Any, k: int, other: int, size: float, share: float, stream: Any, stage: int) -> np.ndarray:
    """Random members of two clusters, each with the same probability: at most ``share``, and about ``size`` of them.

    A member's random number is that of its rank among the members.
    """
    if not is_on_device(z):
        members = np.flatnonzero((z == k) | (z == other))
        chosen = stream.uniforms(stage, 0, len(members)) < min(share, size / len(members))
        return members[chosen]
    xp, n_rows = namespace(z), int(z.shape[0])

    def is_member(lo: int, hi: int) -> Any:
        own = z[lo:hi]
        return (own == k) | (own == other)

    def count(lo: int, hi: int) -> Any:
        return xp.sum(xp.astype(is_member(lo, hi), xp.int64))

    counts = to_host(xp.stack([found for _, _, found in in_chunks(count, n_rows, SEARCHED)]))
    bound, passed, crowd = min(share, size / int(counts.sum())), 0, []
    for lo, _, found in in_chunks(is_member, n_rows, SEARCHED):
        (members,) = xp.nonzero(found)
        n = int(members.shape[0])
        u = device_uniforms(stream.key, stream.iteration, stage, passed, passed + n, z)
        (chosen,) = xp.nonzero(u < bound)
        crowd.append(lo + to_host(xp.take(members, chosen, axis=0)))
        passed += n
    return np.concatenate(crowd)
