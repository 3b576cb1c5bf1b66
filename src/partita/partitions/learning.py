"""Learning the parameters of priors: hyperpriors, a slice sampler and a one-dimensional search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betaln

MIN_VALUE, MAX_VALUE = 1e-3, 1e3  # bounds of empirical Bayes: beyond them the partition hardly changes
MIN_FRACTION = 1e-9  # a fraction starts its logit update at least this far from 0 and 1


class Gamma(NamedTuple):
    """Gamma hyperprior of a positive parameter; the default (1, 1) is the unit exponential.

    Examples
    --------
    >>> Gamma(2.0, 1.0).log_density(1.0)
    -1.0
    """

    shape: float = 1.0
    rate: float = 1.0

    def log_density(self, x: float) -> float:
        """Log density at x."""
        return (
            self.shape * math.log(self.rate)
            - math.lgamma(self.shape)
            + (self.shape - 1.0) * math.log(x)
            - self.rate * x
        )


class Beta(NamedTuple):
    """Beta hyperprior of a parameter between 0 and 1; the default (1, 1) is uniform.

    Examples
    --------
    >>> Beta(2.0, 1.0).log_density(0.5)  # density 2x
    0.0
    """

    a: float = 1.0
    b: float = 1.0

    def log_density(self, x: float) -> float:
        """Log density at x."""
        return float((self.a - 1.0) * math.log(x) + (self.b - 1.0) * math.log1p(-x) - betaln(self.a, self.b))


UNIT_GAMMA = Gamma()
UNIFORM = Beta()


def check_positive(**numbers: float) -> None:
    """Raise an error for parameters that are not positive finite numbers.

    Examples
    --------
    >>> check_positive(rate=0.0)
    Traceback (most recent call last):
    ...
    ValueError: rate is 0.0: it must be a positive finite number
    """
    for name, value in numbers.items():
        if not (np.ndim(value) == 0 and np.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}: it must be a positive finite number")


def slice_sample(
    log_density: Callable[[float], float],
    x: float,
    rng: np.random.Generator,
    width: float = 1.0,
    max_steps: int = 100,
) -> float:
    """One update that leaves a univariate density invariant (Neal 2003: stepping out, then shrinkage).

    The number of steps out is limited and split at random between the two sides, as in figure 3 of Neal (2003), so that
    the update stays exact.

    Examples
    --------
    >>> rng, x, total = np.random.default_rng(1), 0.0, 0.0
    >>> for _ in range(2000):
    ...     x = slice_sample(lambda y: -0.5 * (y - 3.0) ** 2, x, rng)
    ...     total += x / 2000
    >>> abs(total - 3.0) < 0.2
    True
    """
    log_height = log_density(x) - rng.standard_exponential()
    left = x - width * rng.random()
    right = left + width
    steps_left = int(rng.random() * max_steps)
    steps_right = max_steps - 1 - steps_left
    while steps_left > 0 and log_density(left) > log_height:
        left, steps_left = left - width, steps_left - 1
    while steps_right > 0 and log_density(right) > log_height:
        right, steps_right = right + width, steps_right - 1
    while True:
        candidate = left + rng.random() * (right - left)
        if log_density(candidate) > log_height:
            return candidate
        if candidate == x or right - left < 1e-12 * (1.0 + abs(x)):
            return x  # the slice has shrunk to the current point in floating-point numbers
        if candidate < x:
            left = candidate
        else:
            right = candidate


def sample_positive(
    log_likelihood: Callable[[float], float], value: float, rng: np.random.Generator, hyperprior: Gamma
) -> float:
    """Slice update of a positive parameter, on the log scale.

    Examples
    --------
    >>> sample_positive(lambda x: 0.0, 1.0, np.random.default_rng(0), Gamma()) > 0
    True
    """

    def log_density(log_x: float) -> float:
        if abs(log_x) > 500.0:  # beyond, exp would overflow; no proper hyperprior has mass there
            return -math.inf
        x = math.exp(log_x)
        return log_likelihood(x) + hyperprior.log_density(x) + log_x

    return math.exp(slice_sample(log_density, math.log(value), rng))


def sample_fraction(
    log_likelihood: Callable[[float], float], value: float, rng: np.random.Generator, hyperprior: Beta
) -> float:
    """Slice update of a parameter between 0 and 1, on the logit scale.

    Examples
    --------
    >>> 0 < sample_fraction(lambda x: 0.0, 0.5, np.random.default_rng(0), Beta()) < 1
    True
    """

    def log_density(logit: float) -> float:
        x = 1.0 / (1.0 + math.exp(-logit)) if abs(logit) < 36.0 else 0.0
        if not 0.0 < x < 1.0:
            return -math.inf
        return log_likelihood(x) + hyperprior.log_density(x) + math.log(x) + math.log1p(-x)

    start = min(max(value, MIN_FRACTION), 1.0 - MIN_FRACTION)
    logit = slice_sample(log_density, math.log(start) - math.log1p(-start), rng)
    return 1.0 / (1.0 + math.exp(-logit))


def maximize_positive(
    objective: Callable[[float], float],
    start: float,
    smallest: float = MIN_VALUE,
    largest: float = MAX_VALUE,
) -> float:
    """Maximize a function of one positive number within bounds; the result is never worse than ``start``.

    A coarse grid on the log scale locates the maximum, and Brent's method refines it.

    Examples
    --------
    >>> round(maximize_positive(lambda x: -((x - 2.0) ** 2), 1.0), 4)
    2.0
    """
    grid = np.linspace(math.log(smallest), math.log(largest), 25)
    heights = [objective(math.exp(x)) for x in grid]
    best = int(np.argmax(heights))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    climbed = minimize_scalar(
        lambda x: -objective(math.exp(x)), bounds=around, method="bounded", options={"xatol": 1e-6}
    )
    candidates = [smallest, largest, start, math.exp(grid[best]), math.exp(float(climbed.x))]
    values = [objective(x) for x in candidates]
    return float(candidates[int(np.argmax(values))])
