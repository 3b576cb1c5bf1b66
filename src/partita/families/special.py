"""Special functions that the standard library lacks, for compiled code."""

from __future__ import annotations

import math

from partita.dispatch import kernel

__all__ = ["log_gamma_ratio", "log_multigamma", "log_rise", "trigamma"]


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
def log_rise(x, h):
    """``lgamma(x + h) - lgamma(x)`` for x, h > 0, quickly: log x for h = 1, one log and a series for large x.

    The series is that of the Bernoulli polynomials, up to 1/x^6; what is left is below 1e-11.
    """
    if h == 1.0:
        return math.log(x)
    if x < 20.0 * max(1.0, h):
        return math.lgamma(x + h) - math.lgamma(x)
    y = 1.0 / x
    h2 = h * h
    h3 = h2 * h
    series = y * (
        (h2 - h) / 2.0
        - y
        * (
            (h3 - 1.5 * h2 + 0.5 * h) / 6.0
            - y
            * (
                (h2 * h2 - 2.0 * h3 + h2) / 12.0
                - y
                * (
                    (h2 * h3 - 2.5 * h2 * h2 + 5.0 / 3.0 * h3 - h / 6.0) / 20.0
                    - y
                    * (
                        (h3 * h3 - 3.0 * h2 * h3 + 2.5 * h2 * h2 - 0.5 * h2) / 30.0
                        - y * (h3 * h3 * h - 3.5 * h3 * h3 + 3.5 * h2 * h3 - 7.0 / 6.0 * h3 + h / 6.0) / 42.0
                    )
                )
            )
        )
    )
    return h * math.log(x) + series


@kernel
def log_multigamma(x, p):
    """Log of the multivariate gamma function of dimension p."""
    out = 0.25 * p * (p - 1) * math.log(math.pi)
    for j in range(p):
        out += math.lgamma(x - 0.5 * j)
    return out
