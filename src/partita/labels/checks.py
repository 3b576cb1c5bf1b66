"""Checks of label and weight arrays, with messages that name the row and the remedy."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MISSING = -1


def integer_labels(labels: ArrayLike, name: str, ndim: int) -> NDArray[Any]:
    """Labels as an integer array of `ndim` dimensions whose only negative value is -1.

    Examples
    --------
    >>> integer_labels([0, 2, -1], "z", ndim=1)
    array([ 0,  2, -1])
    """
    array = np.asarray(labels)
    if array.ndim != ndim:
        wanted = "one-dimensional" if ndim == 1 else "an (objects x members) matrix"
        raise ValueError(f"{name} must be {wanted}, but its shape is {array.shape}")
    if array.dtype.kind == "b" or array.dtype == np.uint64 or array.size == 0:
        array = array.astype(np.int64)
    elif array.dtype.kind == "u":
        # An unsigned array cannot hold -1; the next wider signed type can.
        array = array.astype(np.promote_types(array.dtype, np.int8))
    if array.dtype.kind != "i":
        raise ValueError(
            f"{name} must hold integer labels, but its dtype is {array.dtype}: "
            "pass each labeling through partita.labels.canonical first"
        )
    if array.size and array.min() < MISSING:
        where = tuple(int(i) for i in np.argwhere(array < MISSING)[0])
        raise ValueError(
            f"{name}{list(where)} is {array[where]}: labels start at 0, and -1 is missing; "
            "pass each labeling through partita.labels.canonical first"
        )
    return array


def pair_positions(
    i: ArrayLike, j: ArrayLike, n_objects: int, objects: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Positions of pairs of objects, broadcast against each other; an error names ``objects``.

    Examples
    --------
    >>> pair_positions(0, [1, 2], 3, "rows of Y")
    (array([0, 0]), array([1, 2]))
    >>> pair_positions(0, 3, 3, "rows of Y")
    Traceback (most recent call last):
    ...
    ValueError: j must hold integers from 0 to 2, the rows of Y
    """
    left, right = np.broadcast_arrays(np.asarray(i), np.asarray(j))
    for name, index in (("i", left), ("j", right)):
        if index.dtype.kind not in "iu" or ((index < 0) | (index >= n_objects)).any():
            raise ValueError(f"{name} must hold integers from 0 to {n_objects - 1}, the {objects}")
    return left, right


def row_weights(weights: ArrayLike | None, n_rows: int, name: str = "weights") -> NDArray[np.float64] | None:
    """Weights as floats: one per row, finite, not negative and not all zero. None stays None.

    Examples
    --------
    >>> row_weights([1, 0.5], 2)
    array([1. , 0.5])
    """
    if weights is None:
        return None
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), one per row, but its shape is {array.shape}")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}[{row}] is {array[row]}: weights must be finite and not negative")
    if n_rows and not array.any():
        raise ValueError(f"all {n_rows} {name} are zero: at least one must be positive")
    return array


def level_counts(Y: NDArray[Any], n_levels: ArrayLike | None) -> NDArray[np.int64]:
    """Number of levels of every column of a label matrix, checked against the labels that occur.

    Examples
    --------
    >>> level_counts(np.array([[0, 2], [1, -1]]), None)
    array([2, 3])
    """
    seen = Y.max(axis=0, initial=-1).astype(np.int64) + 1 if Y.shape[0] else np.zeros(Y.shape[1], np.int64)
    if n_levels is None:
        return seen
    levels = np.broadcast_to(np.asarray(n_levels, dtype=np.int64), (Y.shape[1],)).copy()
    if (short := levels < seen).any():
        column = int(np.argmax(short))
        raise ValueError(
            f"column {column} has the label {seen[column] - 1}, but n_levels[{column}] is {levels[column]}: "
            "n_levels must exceed the largest label of its column"
        )
    return levels
