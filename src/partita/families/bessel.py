"""Modified Bessel functions of the first kind, on the log scale, for compiled code: every order and argument."""

from __future__ import annotations

import math

from partita.dispatch import kernel

LEAST_ORDER = 45.0  # of the uniform expansion
SERIES_TERMS = 2000


@kernel
def log_bessel_rise(order, x):
    """Log of ``I_order(x) (2 / x)^order gamma(order + 1)``, which is 0 at x = 0 (order >= -1/2).

    Three ways: the power series, whose terms are all positive, for small arguments; otherwise the uniform asymptotic
    expansion in large orders, and from it the recurrence down to small orders, which is stable in that direction.
    """
    quarter = 0.25 * x * x
    if quarter <= 4.0 * (order + 1.0):
        term, total = 1.0, 1.0
        for j in range(1, SERIES_TERMS):
            term *= quarter / (j * (order + j))
            total += term
            if term < 1e-17 * total:
                break
        return math.log(total)
    n_steps = max(math.ceil(LEAST_ORDER - order), 0)
    top = order + n_steps
    log_value = log_bessel_uniform(top, x)
    if n_steps > 0:
        ratio = math.exp(log_bessel_uniform(top + 1.0, x) - log_value)
        product = 1.0
        for j in range(n_steps):
            ratio = 1.0 / (2.0 * (top - j) / x + ratio)  # I_(top - j) / I_(top - j - 1)
            product *= ratio
        log_value -= math.log(product)
    return log_value - order * math.log(0.5 * x) + math.lgamma(order + 1.0)


@kernel
def log_bessel_uniform(order, x):
    """Log of I_order(x) by the uniform (Debye) expansion, for orders of at least `LEAST_ORDER`."""
    root = math.sqrt(order * order + x * x)
    p = order / root
    q = p * p
    y = 1.0 / root  # the polynomials are divided by p^k, since p / order = 1 / root
    u1 = (3.0 - 5.0 * q) / 24.0
    u2 = (81.0 + q * (-462.0 + 385.0 * q)) / 1152.0
    u3 = (30375.0 + q * (-369603.0 + q * (765765.0 - 425425.0 * q))) / 414720.0
    u4 = (
        4465125.0 + q * (-94121676.0 + q * (349922430.0 + q * (-446185740.0 + 185910725.0 * q)))
    ) / 39813120.0
    u5 = (
        1519035525.0
        + q
        * (
            -49286948607.0
            + q * (284499769554.0 + q * (-614135872350.0 + q * (566098157625.0 - 188699385875.0 * q)))
        )
    ) / 6688604160.0
    series = 1.0 + y * (u1 + y * (u2 + y * (u3 + y * (u4 + y * u5))))
    # log(x / (order + root)) loses nothing: order >= 0
    return (
        root + order * math.log(x / (order + root)) - 0.5 * math.log(2.0 * math.pi * root) + math.log(series)
    )


@kernel
def bessel_ratio(order, x):
    """``I_(order + 1)(x) / I_order(x)``."""
    if x <= 0.0:
        return 0.0
    rise = log_bessel_rise(order + 1.0, x) - log_bessel_rise(order, x)
    return math.exp(rise) * 0.5 * x / (order + 1.0)
