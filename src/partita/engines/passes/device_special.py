"""Special functions of arrays on a device: the array API standard has logarithms, but no gamma function."""

from __future__ import annotations

import math
from typing import Any

from partita.execution.device import namespace

SERIES_FROM = 8.0  # arguments from which Stirling's series is as precise as a double
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def log_gamma(x: Any) -> Any:
    """Log of the gamma function of positive numbers, by Stirling's series; smaller numbers are raised by 8 before.

    Examples
    --------
    >>> import numpy as np
    >>> log_gamma(np.array([0.5, 1.0, 4.0, 100.0])).round(6)
    array([  0.572365,   0.      ,   1.791759, 359.134205])
    """
    xp = namespace(x)
    small = x < SERIES_FROM
    one = xp.ones_like(x)
    low = xp.where(small, x, one)  # products of large numbers would overflow
    product = low
    for step in range(1, int(SERIES_FROM)):
        product = product * (low + step)
    y = xp.where(small, x + SERIES_FROM, x)
    inverse = 1.0 / y
    square = inverse * inverse
    series = SERIES[-1] * one
    for term in SERIES[-2::-1]:
        series = series * square + term
    raised = (y - 0.5) * xp.log(y) - y + HALF_LOG_2PI + series * inverse
    return raised - xp.log(xp.where(small, product, one))
