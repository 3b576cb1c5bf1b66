"""Rows of each label, wherever the labels are: on a device only the rows that are asked for are copied to the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.execution.device import device_of, in_chunks, is_on_device, namespace, to_device, to_host
from partita.execution.device_labels import ROW_BYTES, count_labels, fill, one_hot
from partita.execution.weights import count_positive


def labels_with_weight(z: Any, weights: np.ndarray) -> Any:
    """The labels, with -1 for rows of weight 0.

    Examples
    --------
    >>> labels_with_weight(np.array([1, 0, 1]), np.array([1.0, 2.0, 0.0]))
    array([ 1,  0, -1])
    """
    if count_positive(weights) == len(weights):
        return z
    if not is_on_device(z):
        return np.where(weights > 0, z, -1)
    xp = namespace(z)
    none = xp.asarray(-1, dtype=xp.int32, device=device_of(z))

    def marked(lo: int, hi: int) -> Any:
        return xp.where(to_device(weights[lo:hi] > 0, z), xp.astype(z[lo:hi], xp.int32), none)

    return fill(z, xp.int32, ROW_BYTES, marked)


def label_sizes(z: Any, n_labels: int) -> np.ndarray:
    """How many rows have each label; -1 is none.

    Examples
    --------
    >>> label_sizes(np.array([1, -1, 1, 0]), 3)
    array([1, 2, 0])
    """
    return count_labels(z, n_labels) if is_on_device(z) else np.bincount(z + 1, minlength=n_labels + 1)[1:]


def rows_of_ranks(z: Any, ranks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For each label, the rows with these ranks among the rows that have it, counted from 0; -1 is no label.

    Labels on a device are sorted there, a chunk of rows at a time.

    Examples
    --------
    >>> rows_of_ranks(np.array([1, 0, 1, -1, 1]), [np.array([0]), np.array([0, 2])])
    [array([1]), array([0, 4])]
    """
    if not is_on_device(z):
        order = np.argsort(z, kind="stable")
        starts = np.searchsorted(z[order], np.arange(len(ranks)))
        return [order[start + own] for start, own in zip(starts, ranks, strict=True)]
    xp, K = namespace(z), len(ranks)
    found: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in ranks]
    before = np.zeros(K, np.int64)  # rows of each label in the chunks so far

    def ordered(lo: int, hi: int) -> tuple[Any, Any]:
        part = z[lo:hi]
        return xp.argsort(part, stable=True), xp.sum(one_hot(part, K, xp.int64), axis=0)

    for lo, hi, (order, counts) in in_chunks(ordered, int(z.shape[0]), ROW_BYTES + 9 * K):
        n = to_host(counts)
        starts = (hi - lo) - n.sum() + np.cumsum(n) - n  # rows without a label are first
        inside = [(own >= b) & (own < b + more) for own, b, more in zip(ranks, before, n, strict=True)]
        places = [start + own[i] - b for start, own, i, b in zip(starts, ranks, inside, before, strict=True)]
        rows = lo + to_host(xp.take(order, to_device(np.concatenate(places), z, xp.int64), axis=0))
        for k, own in enumerate(np.split(rows, np.cumsum([len(p) for p in places])[:-1])):
            found[k].append(own.astype(np.int64))
        before += n
    return [np.concatenate(parts) for parts in found]
