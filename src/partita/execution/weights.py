"""Sums over the weights of rows; an array that repeats one number is not read as a whole.

Weights that are all 1 are ``np.broadcast_to(1.0, n_rows)`` where the rows are not in main memory: they need no memory,
and their sum is a product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.execution.device import is_on_device, namespace, to_device, to_host, widest


def unit_weights(n_rows: int) -> np.ndarray:
    """Ones that need no memory.

    Examples
    --------
    >>> weights = unit_weights(10**12)
    >>> total_weight(weights), count_positive(weights), are_ones(weights), are_equal(weights)
    (1000000000000.0, 1000000000000, True, True)
    """
    return np.broadcast_to(np.ones(1), n_rows)


def _one_for_all(weights: np.ndarray) -> bool:
    """Whether the array holds one number, which it repeats."""
    return weights.strides == (0,) and len(weights) > 0


def total_weight(weights: np.ndarray) -> float:
    """The sum of the weights."""
    return float(weights[0]) * len(weights) if _one_for_all(weights) else float(weights.sum())


def count_positive(weights: np.ndarray) -> int:
    """Number of rows with a weight."""
    if _one_for_all(weights):
        return len(weights) if weights[0] else 0
    return int(np.count_nonzero(weights))


def are_equal(weights: np.ndarray) -> bool:
    """Whether all weights are the same."""
    return _one_for_all(weights) or bool(weights.min() == weights.max())


def are_ones(weights: np.ndarray) -> bool:
    """Whether all weights are 1."""
    return bool(np.all((weights[:1] if _one_for_all(weights) else weights) == 1.0))


def weighted_sum(weights: np.ndarray, values: Any) -> float:
    """Sum over the rows of weight times value; the values may be on a device, and are added there.

    Examples
    --------
    >>> (
    ...     weighted_sum(np.array([1.0, 2.0]), np.array([10.0, 1.0])),
    ...     weighted_sum(unit_weights(2), np.array([3, 4])),
    ... )
    (12.0, 7.0)
    """
    if not is_on_device(values):
        return float(weights @ values)
    xp = namespace(values)
    values = xp.astype(values, widest(values))
    if not are_ones(weights):
        values = values * to_device(weights, values, values.dtype)
    return float(to_host(xp.sum(values)))
