"""Special functions that the standard library lacks, for compiled code."""

from __future__ import annotations

import math

from partita.dispatch import kernel

__all__ = ["log_gamma_ratio", "log_multigamma", "trigamma"]


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
def log_gamma_ratio(x, h):
    """``lgamma(x + h) - lgamma(x)`` for h of at most a few dozen.

    The two lose all their digits to each other when x is huge (at 1e14 a whole unit): there the series in 1/x.
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
