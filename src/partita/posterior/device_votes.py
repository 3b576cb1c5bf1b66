"""Votes and confidence of draws whose labels are on a device; each result is that of its namesake in memory.

The draws stay on the device, and so do the partition and the confidence. Tables of pairs of labels are on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.execution.device import device_of, in_chunks, namespace, to_device, widest
from partita.execution.device_labels import (
    ROW_BYTES,
    DeviceDraws,
    count_labels,
    count_pairs,
    fill,
    first_names,
    looked_up,
    renamed,
)
from partita.posterior.alignment import best_names
from partita.posterior.votes import N_ROUNDS, choose_pivot, pivot_rows


def vote_on_device(draws: DeviceDraws) -> Any:
    """See :func:`partita.posterior.votes.vote`; labels of all objects on the device."""
    number = choose_pivot(draws.n_labels - 1, draws.at(pivot_rows(draws.shape[1])))
    K = int(draws.n_labels[number])
    pivot = renamed(draws.vectors[number], np.arange(K), "int32")
    for _ in range(N_ROUNDS):
        won = _winners(draws, pivot, K)
        won = renamed(won, first_names(won, K), "int32")
        if _same(won, pivot):
            break
        pivot = won
    return pivot


def _same(one: Any, other: Any) -> bool:
    xp = namespace(one)
    chunks = in_chunks(lambda lo, hi: xp.all(one[lo:hi] == other[lo:hi]), int(one.shape[0]), 2)
    return all(bool(equal) for _, _, equal in chunks)


def _winners(draws: DeviceDraws, pivot: Any, K: int) -> Any:
    """The cluster of the pivot that most draws give to each object."""
    xp, device = namespace(pivot), device_of(pivot)
    pairs = list(zip(draws.vectors, draws.n_labels, strict=True))
    names = [
        to_device(best_names(count_pairs(pivot, z, K, int(n_labels)))[0], pivot, xp.int32)
        for z, n_labels in pairs
    ]
    clusters = xp.arange(K, dtype=xp.int32, device=device)[None, :]

    def most_votes(lo: int, hi: int) -> Any:
        votes = xp.zeros((hi - lo, K), dtype=xp.int32, device=device)
        for (z, _), name in zip(pairs, names, strict=True):
            votes = votes + xp.astype(looked_up(name, z[lo:hi])[:, None] == clusters, xp.int32)
        return xp.astype(xp.argmax(votes, axis=1), xp.int32)

    winners = fill(pivot, xp.int32, ROW_BYTES + 16 * K, most_votes)
    for k in np.flatnonzero(count_labels(winners, K) == 0):
        winners = _with_its_most_probable(winners, [z for z, _ in pairs], names, int(k))
    return winners if count_labels(winners, K).all() else pivot


def _with_its_most_probable(winners: Any, vectors: Sequence[Any], names: Sequence[Any], k: int) -> Any:
    """The winners, with cluster k for the objects that most draws assign to it."""
    xp = namespace(winners)

    def votes_of_k(lo: int, hi: int) -> Any:
        votes = xp.zeros_like(winners[lo:hi])
        for z, name in zip(vectors, names, strict=True):
            votes = votes + xp.astype(looked_up(name, z[lo:hi]) == k, xp.int32)
        return votes

    votes = fill(winners, xp.int32, ROW_BYTES, votes_of_k)
    most = xp.max(votes)
    return xp.where(votes == most, xp.full_like(winners, k), winners)


def confidence_on_device(draws: DeviceDraws, z: Any) -> Any:
    """Confidence of every object in its cluster of a partition, see :func:`partita.posterior.confidence`.

    Parameters
    ----------
    draws : DeviceDraws
    z : array
        The partition, labels from 0 to K-1 on the device, each in use.

    Returns
    -------
    array, on the device
    """
    xp, kind = namespace(z), widest(z)
    K, T = int(xp.max(z)) + 1, len(draws)
    sizes = count_labels(z, K)
    counts = [
        count_pairs(own, z, int(n_labels), K)
        for own, n_labels in zip(draws.vectors, draws.n_labels, strict=True)
    ]
    tables = [to_device(table.reshape(-1) / T, z, kind) for table in counts]
    alone = [to_device((table.sum(axis=1) == 1) / T, z, kind) for table in counts]
    others = to_device(sizes - 1.0, z, kind)
    any_single = bool((sizes == 1).any())

    def of_rows(lo: int, hi: int) -> Any:
        own = xp.astype(z[lo:hi], xp.int64)
        n_others = xp.take(others, own, axis=0)
        total, single = xp.zeros_like(n_others), xp.zeros_like(n_others)
        for vector, table, is_single in zip(draws.vectors, tables, alone, strict=True):
            part = xp.astype(vector[lo:hi], xp.int64)
            total = total + xp.take(table, K * part + own, axis=0)
            if any_single:
                single = single + xp.take(is_single, part, axis=0)
        mean = xp.where(n_others > 0, (total - 1.0) / xp.maximum(n_others, xp.ones_like(n_others)), single)
        return xp.minimum(xp.maximum(mean, xp.zeros_like(mean)), xp.ones_like(mean))

    return fill(z, kind, 2 * ROW_BYTES, of_rows)


def best_on_device(draws: DeviceDraws, log_joint: np.ndarray) -> Any:
    """The labels of the draw with the largest log joint probability."""
    number = int(np.argmax(log_joint))
    return renamed(draws.vectors[number], np.arange(int(draws.n_labels[number])), "int32")
