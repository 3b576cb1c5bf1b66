"""Special functions that the standard library lacks, for compiled code."""

from __future__ import annotations

import math

from partita.dispatch import kernel

__all__ = ["log_multigamma", "trigamma"]


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
def log_multigamma(x, p):
    """Log of the multivariate gamma function of dimension p."""
    out = 0.25 * p * (p - 1) * math.log(math.pi)
    for j in range(p):
        out += math.lgamma(x - 0.5 * j)
    return out
