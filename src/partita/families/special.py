"""Special functions for compiled code that the standard library lacks."""

from __future__ import annotations

import math

from partita.dispatch import kernel


@kernel
def trigamma(x):
    """Second derivative of the log gamma function, for x > 0 (recurrence, then the asymptotic series)."""
    out = 0.0
    while x < 8.0:
        out += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = 1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30 - y * (5.0 / 66))))
    return out + 1.0 / x + 0.5 * y + y / x * series


@kernel
def log_gamma_and_digamma(x):
    """Log gamma and its derivative, for x > 0, together (recurrence, then the asymptotic series)."""
    product, slope = 1.0, 0.0  # of x (x + 1) ..., and the derivative of that product
    while x < 10.0:
        slope = slope * x + product
        product *= x
        x += 1.0
    log_x, r = math.log(x), 1.0 / x
    y = r * r
    tail = r * (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188))))
    bend = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))))
    log_gamma = (x - 0.5) * log_x - x + 0.9189385332046727 + tail - math.log(product)
    return log_gamma, log_x - 0.5 * r - bend - slope / product


@kernel
def log_gamma_ratio(x, h):
    """``lgamma(x + h) - lgamma(x)`` for h up to a few dozen.

    For huge x the difference loses all digits by cancellation (the error is 1 at 1e14), so a series in 1/x is used.
    """
    if x < 1e6:
        return math.lgamma(x + h) - math.lgamma(x)
    return h * math.log(x) + h * (h - 1.0) / (2.0 * x) * (1.0 - (2.0 * h - 1.0) / (6.0 * x))


@kernel
def log_multigamma(x, p):
    """Log of the multivariate gamma function of dimension p."""
    out = 0.25 * p * (p - 1) * math.log(math.pi)
    for j in range(p):
        out += math.lgamma(x - 0.5 * j)
    return out
