"""Draw a slot from log weights, once per object in a sweep; a naive version takes half of the time of a sweep.

Maxima, exponentials and sums are computed for eight numbers at a time, in an order that the compiler can vectorize. The
exponential is a polynomial, accurate to 3e-13, because that of a library would need one call per number.
"""

from __future__ import annotations

import math

import numpy as np

from partita.dispatch import kernel

BLOCK = 8
MIN_LOG_WEIGHT = -40.0  # relative to the largest; smaller weights are below the resolution of a uniform
LOG2_E, LN_2 = 1.0 / math.log(2.0), math.log(2.0)
ROUNDING = 1.5 * 2.0**52  # added to a number it leaves the nearest integer in the last bits
BIAS, MANTISSA = 1023, 52  # of a double
_, _, C2, C3, C4, C5, C6, C7, C8, C9, C10 = (1.0 / math.factorial(power) for power in range(11))


@kernel
def whole_blocks(n):
    """The next multiple of eight."""
    return (n + BLOCK - 1) // BLOCK * BLOCK


@kernel
def larger(a, b):
    """The larger of two numbers that are not NaN (``max`` would have to check)."""
    return a if a > b else b


@kernel
def sum_block(w, b):
    """Sum of eight numbers."""
    return ((w[b] + w[b + 1]) + (w[b + 2] + w[b + 3])) + ((w[b + 4] + w[b + 5]) + (w[b + 6] + w[b + 7]))


@kernel
def exponentials(lp, top, stop, w):
    """``w[:stop] = exp(lp - top)``, 0 where that is next to nothing; no gap is above 0."""
    for k in range(stop):
        gap = float(lp[k] - top)
        x = larger(gap, MIN_LOG_WEIGHT)
        shifted = x * LOG2_E + ROUNDING
        f = x - (shifted - ROUNDING) * LN_2  # x = n ln 2 + f, |f| at most half of ln 2
        p = C5 + f * (C6 + f * (C7 + f * (C8 + f * (C9 + f * C10))))
        p = 1.0 + f * (1.0 + f * (C2 + f * (C3 + f * (C4 + f * p))))
        power = (np.float64(shifted).view(np.int64) + BIAS) << MANTISSA  # the bits of 2^n
        w[k] = p * np.int64(power).view(np.float64) if gap > MIN_LOG_WEIGHT else 0.0


@kernel
def draw_slot(lp, n_slots, u, w, likely):
    """Draw from log weights ``lp[:n_slots]`` by inverting their sum, which begins with the slot ``likely`` (-1: none).

    ``lp`` and ``w``, which is overwritten, have lengths that are multiples of eight. Most objects stay in their slot;
    starting with that slot finds this out at once.
    """
    stop = whole_blocks(n_slots)
    for k in range(n_slots, stop):
        lp[k] = -math.inf
    top = lp[0]
    for b in range(0, stop, BLOCK):
        first = larger(larger(lp[b], lp[b + 1]), larger(lp[b + 2], lp[b + 3]))
        second = larger(larger(lp[b + 4], lp[b + 5]), larger(lp[b + 6], lp[b + 7]))
        top = larger(top, larger(first, second))
    exponentials(lp, top, stop, w)
    total = 0.0
    for b in range(0, stop, BLOCK):
        total += sum_block(w, b)
    left = u * total
    if likely >= 0:
        left -= w[likely]
        if left < 0.0:
            return likely
        w[likely] = 0.0
    last = max(likely, 0)
    for k in range(n_slots):
        if w[k] > 0.0:
            left -= w[k]
            last = k
            if left < 0.0:
                break
    return last  # rounding may pass the last slot of positive weight
