"""Labels of rows on a device: renumbered, counted and looked up where they are, and the labels of several draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.execution.device import device_of, in_chunks, is_on_device, namespace, to_device, to_host, widest

ROW_BYTES = 64  # of the intermediate results for a row, beside those for each label
FIRST_ROWS = 1 << 14  # rows in which the first appearance of the labels is looked for at first


class DeviceDraws:
    """Label vectors of draws on a device, [draw, object], each numbered in order of first appearance.

    Only what is asked for is copied to the host.

    Parameters
    ----------
    vectors : sequence of arrays
        The labels of each draw, in an integer type of its own.
    n_labels : sequence of int
        How many labels each draw has.
    """

    def __init__(self, vectors: Sequence[Any], n_labels: Sequence[int]):
        self.vectors, self.n_labels = list(vectors), np.asarray(n_labels, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of draws and of objects."""
        return len(self.vectors), int(self.vectors[0].shape[0])

    def __getitem__(self, chosen: np.ndarray) -> DeviceDraws:
        """Some of the draws: a mask, or their numbers."""
        numbers = np.arange(len(self))[chosen]
        return DeviceDraws([self.vectors[t] for t in numbers], self.n_labels[numbers])

    def at(self, objects: np.ndarray) -> np.ndarray:
        """Labels [draw, object] of some objects, on the host."""
        return np.concatenate([labels_at(z[None, :], objects) for z in self.vectors])

    def sizes(self) -> list[np.ndarray]:
        """Sizes of the clusters of each draw."""
        return [count_labels(z, K) for z, K in zip(self.vectors, self.n_labels, strict=True)]

    def on_host(self) -> np.ndarray:
        """All labels [draw, object], on the host, in the widest type of the draws."""
        widest_type = np.result_type(*(str(z.dtype).rpartition(".")[2] for z in self.vectors))
        out = np.empty(self.shape, widest_type)
        for row, z in zip(out, self.vectors, strict=True):
            row[:] = to_host(z)
        return out


def labels_at(labels: Any, objects: np.ndarray) -> np.ndarray:
    """Labels [draw, object] of some objects on the host; those of all draws may be on a device.

    Examples
    --------
    >>> labels_at(np.array([[0, 1, 2], [0, 0, 1]], np.int8), np.array([0, 2]))
    array([[0, 2],
           [0, 1]])
    """
    if isinstance(labels, DeviceDraws):
        return labels.at(objects)
    if not is_on_device(labels):
        return labels[:, objects].astype(np.int64)
    xp = namespace(labels)
    where = to_device(np.asarray(objects, np.int64), labels, xp.int64)
    return to_host(xp.take(labels, where, axis=1)).astype(np.int64)


def fill(like: Any, dtype: Any, row_bytes: int, function: Callable[[int, int], Any]) -> Any:
    """An array with an entry per row, of which ``function(lo, hi)`` gives a part."""
    xp = namespace(like)
    out = xp.empty(like.shape, dtype=dtype, device=device_of(like))
    for lo, hi, found in in_chunks(function, int(like.shape[0]), row_bytes):
        out[lo:hi] = found
    return out


def looked_up(table: Any, z: Any) -> Any:
    """``table[label]`` of each label."""
    xp = namespace(z)
    return xp.take(table, xp.astype(z, xp.int64), axis=0)


def renamed(z: Any, names: np.ndarray, dtype: str) -> Any:
    """``names[label]`` of every row, in an integer type ("int8")."""
    xp = namespace(z)
    kind = getattr(xp, dtype)
    table = to_device(names.astype(np.int64), z, kind)
    return fill(z, kind, ROW_BYTES, lambda lo, hi: looked_up(table, z[lo:hi]))


def first_names(z: Any, n_labels: int) -> np.ndarray:
    """The number of each label in the order of first appearance; labels that do not appear come last."""
    xp, n_rows = namespace(z), int(z.shape[0])
    first = np.full(n_labels, n_rows, np.int64)
    lo, size = 0, FIRST_ROWS
    while lo < n_rows and (first == n_rows).any():
        missing = np.flatnonzero(first == n_rows)
        part = z[lo : min(lo + size, n_rows)]
        clusters = to_device(missing, z, z.dtype)
        is_label = xp.astype(part[:, None] == clusters[None, :], xp.int32)
        seen, place = to_host(xp.max(is_label, axis=0)) > 0, to_host(xp.argmax(is_label, axis=0))
        first[missing[seen]] = lo + place[seen]
        lo += size
        # the labels that are left are rare: few of them are compared with more rows
        size = min(2 * size, 1 << 22)
    names = np.empty(n_labels, np.int64)
    names[np.argsort(first, kind="stable")] = np.arange(n_labels)
    return names


def canonical_labels(z: Any) -> Any:
    """Labels from 0, of which some may be missing, numbered in order of first appearance."""
    names = first_names(z, int(namespace(z).max(z)) + 1)
    return renamed(z, names, "int32")


def one_hot(z: Any, n_labels: int, kind: Any) -> Any:
    """Whether each row has each label, [row, label], in a type of numbers."""
    xp = namespace(z)
    return xp.astype(z[:, None] == xp.arange(n_labels, dtype=z.dtype, device=device_of(z))[None, :], kind)


def count_labels(z: Any, n_labels: int) -> np.ndarray:
    """How many rows have each label."""
    xp = namespace(z)
    parts = in_chunks(
        lambda lo, hi: xp.sum(one_hot(z[lo:hi], n_labels, xp.int64), axis=0),
        int(z.shape[0]),
        ROW_BYTES + 9 * n_labels,
    )
    return np.sum([to_host(part) for _, _, part in parts], axis=0)


def count_pairs(a: Any, b: Any, n_a: int, n_b: int) -> np.ndarray:
    """How many rows have each pair of labels, [label of a, label of b]."""
    xp, kind = namespace(a), widest(a)

    def count(lo: int, hi: int) -> Any:
        left, right = one_hot(a[lo:hi], n_a, kind), one_hot(b[lo:hi], n_b, kind)
        return xp.matmul(xp.permute_dims(left, (1, 0)), right)

    parts = in_chunks(count, int(a.shape[0]), ROW_BYTES + 9 * (n_a + n_b))
    return np.sum([to_host(part).astype(np.int64) for _, _, part in parts], axis=0)
