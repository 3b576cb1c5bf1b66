"""The labels of all copies, in memory or on a device: what the sampler asks of them outside of passes over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.dispatch import kernel
from partita.execution.device import device_of, in_chunks, is_on_device, namespace, to_device, to_host
from partita.execution.device_random import device_uniforms

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
    """For each cluster k and each h the member of k that comes after ``ranks[k, h]`` others."""
    out = np.empty(ranks.shape, np.int64)
    if not is_on_device(z):
        find_members(z, ranks, out)
        return out
    xp = namespace(z)
    clusters = xp.arange(len(ranks), dtype=z.dtype, device=device_of(z))

    def count(lo: int, hi: int) -> Any:
        is_member = z[lo:hi][:, None] == clusters[None, :]
        return xp.sum(xp.astype(is_member, xp.int64), axis=0)

    passed = np.zeros(len(ranks), np.int64)
    for lo, hi, found in in_chunks(count, int(z.shape[0]), SEARCHED + 16 * len(ranks)):
        own = to_host(found)
        inside = (ranks >= passed[:, None]) & (ranks < (passed + own)[:, None])
        for k, h in zip(*np.nonzero(inside), strict=True):
            (members,) = xp.nonzero(z[lo:hi] == int(k))
            out[k, h] = lo + int(members[int(ranks[k, h] - passed[k])])
        passed += own
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

    counts = [int(found) for _, _, found in in_chunks(count, n_rows, SEARCHED)]
    bound, passed, crowd = min(share, size / sum(counts)), 0, []
    for lo, _, found in in_chunks(is_member, n_rows, SEARCHED):
        (members,) = xp.nonzero(found)
        n = int(members.shape[0])
        u = device_uniforms(stream.key, stream.iteration, stage, passed, passed + n, z)
        (chosen,) = xp.nonzero(u < bound)
        crowd.append(lo + to_host(xp.take(members, chosen, axis=0)))
        passed += n
    return np.concatenate(crowd)
