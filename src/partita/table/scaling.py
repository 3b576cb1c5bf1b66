"""Center and scale of real columns, for all magnitudes of float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


def center_and_scale(values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Return the weighted mean and standard deviation of the values that are not NaN.

    Values are first scaled by an exact power of two to about 1, so that squares neither overflow at 1e200 nor underflow
    at 1e-200. Values of weight zero are removed before any sum, so that the result is bitwise the same as without them.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite numbers and NaN.
    weights : ndarray of shape (n,), default=None
        Non-negative weights.

    Returns
    -------
    center, scale : float
        The scale of a constant column is 1; without observed values the result is (0, 1).

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
    if low == high:  # compared exactly: a rounded mean would give a deviation of 1e-17
        return low, 1.0
    exponent = math.frexp(max(abs(low), abs(high)))[1]
    scaled = np.ldexp(values, -exponent)
    share = np.ones(len(values)) if weights is None else weights / weights.max()
    total = share.sum()
    mean = float((share * scaled).sum() / total)
    scaled -= mean
    drift = float(
        (share * scaled).sum() / total
    )  # the rounding error of the mean, which matters at an offset of 1e9
    variance = float((share * scaled * scaled).sum() / total) - drift * drift
    scale = math.ldexp(math.sqrt(max(variance, 0.0)), exponent)
    # a deviation that underflows to 0 cannot be divided by
    return math.ldexp(mean + drift, exponent), scale if scale > 0.0 else 1.0


def standardize(values: np.ndarray, center: float, scale: float) -> np.ndarray:
    """Return `(values - center) / scale` without intermediate overflow; NaN stays NaN.

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


class Moments(NamedTuple):
    """Total weight, mean and sum of squared deviations of some values in units of ``2**exponent``, and their range.

    The mean is stored in two parts (``mean + drift``), because its rounding error matters at an offset of 1e9.
    """

    total: float
    mean: float
    drift: float
    squares: float
    exponent: int
    low: float
    high: float


def moments(values: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    """Return the moments of the values that are not NaN; `center_of` computes center and scale from them.

    Examples
    --------
    >>> center_of(merge_moments([moments(np.array([1.0, np.nan])), moments(np.array([3.0]))]))
    (2.0, 1.0)
    """
    keep = ~np.isnan(values)
    if weights is not None:
        keep &= weights > 0
    values = values[keep]
    if len(values) == 0:
        return Moments(0.0, 0.0, 0.0, 0.0, 0, math.inf, -math.inf)
    low, high = float(values.min()), float(values.max())
    exponent = math.frexp(max(abs(low), abs(high)))[1]
    scaled = np.ldexp(values, -exponent)
    share = np.ones(len(values)) if weights is None else weights[keep]
    total = float(share.sum())
    mean = float((share * scaled).sum()) / total
    scaled -= mean
    drift = float((share * scaled).sum()) / total
    squares = float((share * scaled * scaled).sum()) - total * drift * drift
    return Moments(total, mean, drift, max(squares, 0.0), exponent, low, high)


def merge_moments(parts: Sequence[Moments]) -> Moments:
    """Combine the moments of several chunks, in their order."""
    parts = [part for part in parts if part.total > 0.0] or parts[:1]
    exponent = max(part.exponent for part in parts)
    total = drift = squares = 0.0
    mean = math.ldexp(parts[0].mean, parts[0].exponent - exponent)
    for part in parts:
        if part.total == 0.0:
            break
        shift = part.exponent - exponent
        gap = math.ldexp(part.mean, shift) - mean + (math.ldexp(part.drift, shift) - drift)
        both = total + part.total
        drift += gap * (part.total / both)
        squares += math.ldexp(part.squares, 2 * shift) + gap * gap * (total * part.total / both)
        total = both
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    return Moments(total, mean, drift, squares, exponent, low, high)


def center_of(about: Moments) -> tuple[float, float]:
    """Return center and scale as `center_and_scale` does, from moments."""
    if about.total == 0.0:
        return 0.0, 1.0
    if about.low == about.high:
        return about.low, 1.0
    scale = math.ldexp(math.sqrt(about.squares / about.total), about.exponent)
    return math.ldexp(about.mean + about.drift, about.exponent), scale if scale > 0.0 else 1.0
