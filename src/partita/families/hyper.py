"""Solvers with which families learn their hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import digamma, zeta

MIN_STEP = 1e-7  # iterations end at a smaller step


def newton_root(
    slope: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    x: np.ndarray,
    lo: float,
    hi: float,
    n_iter: int = 5,
) -> np.ndarray:
    """Find a maximum inside a box by Newton's method, in all coordinates at once.

    ``slope(x)`` returns the first and second derivatives. Where the second derivative is not negative, the step has
    length 1 in the direction of the first, so that every step goes uphill. No step is longer than 1.

    Examples
    --------
    >>> newton_root(lambda x: (3.0 - x, -np.ones_like(x)), np.array([1.0]), 0.0, 10.0)
    array([3.])
    """
    for _ in range(n_iter):
        first, second = slope(x)
        falls = second < 0
        step = np.where(falls, -first / np.where(falls, second, 1.0), np.sign(first))
        step = np.where(np.isnan(step), 0.0, np.minimum(np.maximum(step, -1.0), 1.0))
        x, before = np.minimum(np.maximum(x + step, lo), hi), x  # much faster than np.clip
        if np.abs(x - before).max(initial=0.0) < MIN_STEP:
            break
    return x


def gamma_shape(log_mean_minus_mean_log: np.ndarray, lo: float, hi: float) -> np.ndarray:
    """Return the shape ``a`` of the gamma distribution with ``log E[x] - E[log x] = log a - digamma(a)`` given.

    Examples
    --------
    >>> float(gamma_shape(np.array(np.log(2.0) - digamma(2.0)), 1e-3, 1e3).round(6))
    2.0
    """
    g = np.maximum(log_mean_minus_mean_log, 1e-12)
    # a close approximation, which Newton's method improves
    log_a = np.log((3 - g + np.sqrt((g - 3) ** 2 + 24 * g)) / (12 * g))

    def slope(log_a):
        a = np.exp(log_a)
        return log_a - digamma(a) - g, 1.0 - a * zeta(2.0, a)  # the second is the trigamma function

    low, high = math.log(lo), math.log(hi)
    return np.exp(newton_root(slope, np.minimum(np.maximum(log_a, low), high), low, high, 8))
