"""Validation of `sample_weight`."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Convert `sample_weight` to one finite, non-negative float64 number per row.

    A row of weight zero is not used for learning, but it is still labeled.

    Parameters
    ----------
    sample_weight : None, number or array-like of shape (n_rows,)
        None means ones; a number is the weight of every row.
    n_rows : int
        The number of rows of the data.

    Returns
    -------
    ndarray of shape (n_rows,)
        A new array; the argument is never changed.

    Examples
    --------
    >>> check_weights([1, 0, 2.5], 3)
    array([1. , 0. , 2.5])
    >>> check_weights([1, -1], 2)
    Traceback (most recent call last):
    ValueError: sample_weight of row 1 is negative (-1.0); weights must be finite and at least 0
    """
    if sample_weight is None:
        return np.ones(n_rows)
    weights = _as_float_array(sample_weight)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(
            f"sample_weight must be one-dimensional, got shape {weights.shape}; pass one weight per row"
        )
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weights)} entries but the data have {n_rows} rows; "
            "pass one weight per row"
        )
    bad = ~np.isfinite(weights)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight of row {row} is {weights[row]}; weights must be finite and at least 0"
        )
    bad = weights < 0
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight of row {row} is negative ({weights[row]}); weights must be finite and at least 0"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row; give at least one row a positive weight")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("the sum of sample_weight overflows; divide the weights by a constant")
    return weights


def _as_float_array(sample_weight: Any) -> np.ndarray:
    if isinstance(sample_weight, np.ma.MaskedArray):
        # a masked weight is unknown; the check for NaN reports its row
        sample_weight = np.ma.filled(sample_weight.astype(np.float64), np.nan)
    try:
        array = np.asarray(sample_weight)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"dtype {array.dtype}")
        return np.array(array, dtype=np.float64, order="C", copy=True)
    except (TypeError, ValueError) as problem:
        raise ValueError(
            f"sample_weight must be numbers, one per row, but could not be read: {problem}"
        ) from problem
