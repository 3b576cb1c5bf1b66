"""A matrix of label draws in canonical form: equal draws and objects that are never separated are counted once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.dispatch import kernel
from partita.labels import signatures
from partita.labels.checks import row_weights


class Draws(NamedTuple):
    """Distinct draws with their weights, over distinct objects with theirs.

    Objects that share their cluster in every draw have equal columns and are one *group*; `groups` leads back
    to the objects. Without collapsing every object is a group of weight 1.
    """

    labels: NDArray[Any]  # [draw, group], canonical over the objects
    weights: NDArray[np.float64]  # [draw], sum to 1
    group_weights: NDArray[np.int64]  # [group], objects in it
    groups: NDArray[np.int64]  # [object], its group
    sources: NDArray[np.int64]  # [draw], the first row of the input with this partition

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return len(self.groups)

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        """Number of clusters of each draw."""
        return self.labels.max(axis=1).astype(np.int64) + 1


def canonical_draws(draws: ArrayLike) -> NDArray[Any]:
    """Each row of a matrix of labels (draws x objects) renumbered in order of appearance, in a small integer type.

    Examples
    --------
    >>> canonical_draws([[5, 5, 2], [0, 1, 0]]).tolist()
    [[0, 0, 1], [0, 1, 0]]
    """
    matrix = np.asarray(draws)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"draws has shape {matrix.shape}: give a matrix with one label vector per row (draws x objects), "
            "such as the labels of a trace"
        )
    if matrix.dtype.kind not in "iu":
        raise ValueError(f"draws holds {matrix.dtype}: labels of draws are integers")
    low, high = int(matrix.min()), int(matrix.max())
    if low < 0:
        draw, thing = (int(i) for i in np.argwhere(matrix < 0)[0])
        raise ValueError(
            f"draws[{draw}, {thing}] is {matrix[draw, thing]}: a draw labels every object from 0 up; "
            "leave out the objects that some draws do not label"
        )
    if (
        high > 2 * matrix.shape[1] + 65_536
    ):  # renumber very large labels before a table indexed by them is allocated
        matrix = np.stack([np.unique(row, return_inverse=True)[1] for row in matrix])
        high = int(matrix.max())
    out = np.empty(matrix.shape, dtype=np.uint16 if matrix.shape[1] <= 2**16 else np.uint32)
    # one type of labels, so that it is compiled once
    _renumber(np.ascontiguousarray(matrix, dtype=np.int64), out, np.full(high + 1, -1, dtype=np.int64))
    return out


def check_partition(partition: ArrayLike, n_objects: int, name: str = "partition") -> NDArray[Any]:
    """Check a labeling of the objects of the draws, and number it in order of appearance.

    Examples
    --------
    >>> check_partition([3, 3, 1], 3).tolist()
    [0, 0, 1]
    """
    labels = np.asarray(partition)
    if labels.shape != (n_objects,):
        raise ValueError(
            f"{name} has shape {labels.shape}, but the draws label {n_objects} objects: give one label for each"
        )
    return canonical_draws(labels[None])[0]


def gather(draws: ArrayLike, weights: ArrayLike | None = None, *, collapse: bool = False) -> Draws:
    """Distinct draws (in an order that does not depend on theirs) and, with `collapse`, distinct objects.

    Examples
    --------
    >>> found = gather([[0, 0, 1], [4, 4, 2], [0, 1, 1], [0, 0, 0]])
    >>> found.labels.tolist(), found.weights.tolist()
    ([[0, 0, 0], [0, 0, 1], [0, 1, 1]], [0.25, 0.5, 0.25])
    """
    labels = canonical_draws(draws)
    n_draws, n_objects = labels.shape
    weights = row_weights(weights, n_draws)
    # equal rows have equal bytes; big-endian bytes sort as the labels do
    keys = np.ascontiguousarray(labels.astype(labels.dtype.newbyteorder(">"))).view(
        np.dtype((np.void, labels.itemsize * n_objects))
    )
    _, sources, inverse = np.unique(keys.ravel(), return_index=True, return_inverse=True)
    shares = np.bincount(inverse.ravel(), weights=weights, minlength=len(sources)).astype(float)
    used = shares > 0
    sources, shares = sources[used].astype(np.int64), shares[used] / shares.sum()
    labels = labels[sources]
    if not collapse:
        return Draws(labels, shares, np.ones(n_objects, np.int64), np.arange(n_objects), sources)
    found = signatures(np.ascontiguousarray(labels.T).astype(np.int32))
    rows = np.ascontiguousarray(found.rows.T).astype(labels.dtype)
    return Draws(rows, shares, found.weights.astype(np.int64), found.inverse, sources)


@kernel
def _renumber(labels, out, codes):
    """Number the labels of each row by first appearance; `codes` is -1 before and after each row."""
    for b in range(labels.shape[0]):
        K = 0
        for i in range(labels.shape[1]):
            label = labels[b, i]
            if codes[label] < 0:
                codes[label] = K
                K += 1
            out[b, i] = codes[label]
        for i in range(labels.shape[1]):
            codes[labels[b, i]] = -1


def thin_draws(draws: Any, max_labels: int, min_draws: int) -> Any:
    """As many evenly spaced draws as have ``max_labels`` labels in all, but at least ``min_draws`` of them.

    The draws are an array [draw, object], or they are on a device.

    Examples
    --------
    >>> thin_draws(np.array([[0, 1], [0, 0], [0, 1], [1, 1], [0, 0]]), max_labels=6, min_draws=2).tolist()
    [[0, 1], [0, 1], [0, 0]]
    """
    most = max(max_labels // draws.shape[1], min_draws)
    if len(draws) <= most:
        return draws
    return draws[np.linspace(0, len(draws) - 1, most).round().astype(int)]
