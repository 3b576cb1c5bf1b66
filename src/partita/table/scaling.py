"""Centre and scale of real columns, at any magnitude that float64 can hold."""

from __future__ import annotations

import math

import numpy as np


def center_and_scale(values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Give the weighted mean and standard deviation of the cells that are not NaN.

    Values are first brought near 1 by an exact power of two, so that squares neither overflow at 1e200 nor
    vanish at 1e-200. Cells of weight zero are left out before anything is summed: the result is bitwise the
    same as without them.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite numbers and NaN.
    weights : ndarray of shape (n,), optional
        Non-negative weights.

    Returns
    -------
    center, scale : float
        The scale of a constant column is 1; without any observation the result is (0, 1).

    Examples
    --------
    >>> center_and_scale(np.array([1e200, 3e200]))
    (2e+200, 1e+200)
    >>> center_and_scale(np.array([5.0, np.nan, 5.0]))
    (5.0, 1.0)
    """
    keep = ~np.isnan(values)
    if weights is not None:
        keep &= weights > 0
    if not keep.all():
        values = values[keep]
        weights = None if weights is None else weights[keep]
    if len(values) == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if low == high:  # decided by comparison: a rounded mean would leave a spread of 1e-17
        return low, 1.0
    exponent = math.frexp(max(abs(low), abs(high)))[1]
    scaled = np.ldexp(values, -exponent)
    share = np.ones(len(values)) if weights is None else weights / weights.max()
    total = share.sum()
    mean = float((share * scaled).sum() / total)
    scaled -= mean
    drift = float((share * scaled).sum() / total)  # what rounding left in the mean: matters at offset 1e9
    variance = float((share * scaled * scaled).sum() / total) - drift * drift
    scale = math.ldexp(math.sqrt(max(variance, 0.0)), exponent)
    # a spread below the smallest float is no spread that anyone can divide by
    return math.ldexp(mean + drift, exponent), scale if scale > 0.0 else 1.0


def standardize(values: np.ndarray, center: float, scale: float) -> np.ndarray:
    """Give `(values - center) / scale` without intermediate overflow; NaN stays NaN.

    Examples
    --------
    >>> standardize(np.array([-1.5e308, 1.5e308]), 0.0, 1.5e308)
    array([-1.,  1.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if abs(center) < 1e290:  # below half a rounding unit of the largest float: no overflow
            return (values - center) / scale
        exponent = math.frexp(scale)[1]
        shifted = np.ldexp(values, -exponent) - np.ldexp(center, -exponent)
        return shifted / math.ldexp(scale, -exponent)
