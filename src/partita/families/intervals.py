"""Cells that stand for an interval: a normal variable of which only the two ends of an interval are known.

An ordinal level is such a cell, and so is a rounded or tied real value. The functions take standardized ends
``a < b``, of which each may be infinite, and hold for all families with a latent normal variable: the log probability
of the interval (for densities, and the E step of EM and VB), the first two moments inside it (for expected statistics),
draws (for chains), and the log probability under Student's t (parameters integrated out).

Differences of distribution functions lose all digits in the tails and in narrow intervals. Therefore an interval on the
right is reflected to the left; one in the left tail is computed from Mills ratios, and a narrow one by Gauss-Legendre
quadrature around its middle.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from partita.dispatch import kernel
from partita.families.special import log_gamma_ratio

LOG_2PI = math.log(2 * math.pi)
SQRT_2 = math.sqrt(2.0)
TAIL = -3.0  # below it, probabilities are computed from the Mills ratio
NARROW = 2.0  # an interval over which the log of the normal density changes by less than about this
NARROW_STUDENT = 1.0
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)
MANY_DEGREES = 1e5  # of freedom; beyond, Student's t is a normal variable after a change of variable
TINY = 1e-6  # a width, in standardized units, over which the density is an exponential


@kernel
def mills(t):
    """Mills ratio ``(1 - Phi(t)) / phi(t)`` for t of at least 3, by its continued fraction."""
    n = 42 if t < 5.0 else 18
    out = t
    for j in range(n, 0, -1):
        out = t + j / out
    return 1.0 / out


@kernel
def log_normal_cdf(x):
    """``log Phi(x)`` for finite x."""
    if x < TAIL:
        return -0.5 * (x * x + LOG_2PI) + math.log(mills(-x))
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x / SQRT_2))
    return math.log(0.5 * math.erfc(-x / SQRT_2))


@kernel
def quadrature(a, b):
    """Moments 0, 1, 2 of ``exp(-m u - u^2 / 2)`` over ``|u| < (b - a) / 2``, where m is the middle of the interval."""
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    s0, s1, s2 = 0.0, 0.0, 0.0
    for j in range(NODES.shape[0]):
        u = half * NODES[j]
        f = half * NODE_WEIGHTS[j] * math.exp(-u * (middle + 0.5 * u))
        s0 += f
        s1 += f * u
        s2 += f * u * u
    return s0, s1, s2


@kernel
def is_narrow(a, b):
    """Whether the normal density changes little over the interval."""
    return (b - a) * (1.0 + 0.5 * abs(a + b)) < NARROW


@kernel
def log_interval(a, b):
    """``log(Phi(b) - Phi(a))`` for a < b.

    Examples
    --------
    >>> round(math.exp(log_interval.py_func(-1.0, 1.0)), 6)
    0.682689
    """
    if a > 0.0:
        a, b = -b, -a
    if a == -math.inf:
        return 0.0 if b == math.inf else log_normal_cdf(b)
    if b == math.inf:
        return log_normal_cdf(-a)
    if is_narrow(a, b):
        middle = 0.5 * (a + b)
        return math.log(quadrature(a, b)[0]) - 0.5 * (middle * middle + LOG_2PI)
    if b < TAIL:
        ratio = math.exp(0.5 * (b - a) * (b + a))  # phi(a) / phi(b)
        return math.log(mills(-b) - ratio * mills(-a)) - 0.5 * (b * b + LOG_2PI)
    outside = 0.5 * math.erfc(-a / SQRT_2)
    if b <= 0.0:
        return math.log(0.5 * math.erfc(-b / SQRT_2) - outside)
    return math.log1p(-outside - 0.5 * math.erfc(b / SQRT_2))


@kernel
def interval_moments(a, b):
    """Mean, and mean square, of a standard normal variable between a and b.

    Examples
    --------
    >>> mean, square = interval_moments.py_func(0.0, math.inf)
    >>> round(mean**2 * math.pi / 2, 6), round(square, 6)
    (1.0, 1.0)
    """
    sign = 1.0
    if a > 0.0:
        a, b, sign = -b, -a, -1.0
    if a == -math.inf and b == math.inf:
        return 0.0, 1.0
    if a != -math.inf and b != math.inf and is_narrow(a, b):
        s0, s1, s2 = quadrature(a, b)
        middle, shift = 0.5 * (a + b), s1 / s0
        return sign * (middle + shift), middle * middle + 2.0 * middle * shift + s2 / s0
    at_a, at_b = 0.0, 0.0  # densities at the ends, divided by the probability of the interval
    if b < TAIL:
        ratio = 0.0 if a == -math.inf else math.exp(0.5 * (b - a) * (b + a))
        at_b = 1.0 / (mills(-b) - (0.0 if ratio == 0.0 else ratio * mills(-a)))
        at_a = ratio * at_b
    else:
        log_mass = log_interval(a, b) + 0.5 * LOG_2PI
        if a != -math.inf:
            at_a = math.exp(-0.5 * a * a - log_mass)
        if b != math.inf:
            at_b = math.exp(-0.5 * b * b - log_mass)
    square = 1.0
    if at_a != 0.0:
        square += a * at_a
    if at_b != 0.0:
        square -= b * at_b
    return sign * (at_a - at_b), square


# ---- Student's t ---------------------------------------------------------------------------------------------


@kernel
def beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function (modified Lentz), for x < (a + 1) / (a + b + 2)."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    out = d
    for m in range(1, 2000):
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d = 1.0 / (1.0 + even * d)
        c = 1.0 + even / c
        out *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d = 1.0 / (1.0 + odd * d)
        c = 1.0 + odd / c
        out *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return out


@kernel
def log_student_tail(x, freedom):
    """Log of the probability that Student's t is below x, for finite x of at most 0."""
    q = x * x / freedom
    if freedom > MANY_DEGREES:  # Wallace (1959)
        scale = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
        return log_normal_cdf(-scale * math.sqrt(freedom * math.log1p(q)))
    a = 0.5 * freedom
    log_constant = log_gamma_ratio(a, 0.5) - 0.5 * math.log(math.pi) - a * math.log1p(q)
    y = 1.0 / (1.0 + q)
    if y < (a + 1.0) / (a + 2.5):
        front = log_constant + 0.5 * math.log(q * y) - math.log(freedom)
        return front + math.log(beta_fraction(a, 0.5, y))
    if q == 0.0:
        return -math.log(2.0)
    center = math.exp(log_constant + 0.5 * math.log(q * y)) * beta_fraction(0.5, a, q * y)
    return math.log(0.5 - center)


@kernel
def log_student_interval(a, b, freedom):
    """Log of the probability that Student's t with so many degrees of freedom is between a and b.

    Examples
    --------
    >>> round(math.exp(log_student_interval.py_func(-1.0, 1.0, 1.0)), 6)
    0.5
    """
    if a > 0.0:
        a, b = -b, -a
    if a == -math.inf:
        if b == math.inf:
            return 0.0
        if b <= 0.0:
            return log_student_tail(b, freedom)
        return math.log1p(-math.exp(log_student_tail(-b, freedom)))
    if b == math.inf:
        return math.log1p(-math.exp(log_student_tail(a, freedom)))
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    slope = abs(middle) * (freedom + 1.0) / (freedom + middle * middle)
    if 2.0 * half * (1.0 + slope) < NARROW_STUDENT:
        power, total = 0.5 * (freedom + 1.0), 0.0
        top = math.log1p(middle * middle / freedom)
        for j in range(NODES.shape[0]):
            u = middle + half * NODES[j]
            total += NODE_WEIGHTS[j] * math.exp(-power * (math.log1p(u * u / freedom) - top))
        density = log_gamma_ratio(0.5 * freedom, 0.5) - 0.5 * math.log(math.pi * freedom) - power * top
        return density + math.log(half * total)
    if b <= 0.0:
        upper = log_student_tail(b, freedom)
        return upper + math.log1p(-math.exp(log_student_tail(a, freedom) - upper))
    outside = math.exp(log_student_tail(a, freedom)) + math.exp(log_student_tail(-b, freedom))
    return math.log1p(-outside)


# ---- draws -------------------------------------------------------------------------------------------------------


def draw_interval(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Standard normal variables between ``a`` and ``b`` by inversion of the uniform ``u``, exact in the tails.

    Examples
    --------
    >>> draw_interval(np.array([-np.inf, 40.0]), np.array([0.0, np.inf]), np.array([0.5, 0.5])).round(3)
    array([-0.674, 40.017])
    """
    right = a > 0.0
    a, b = np.where(right, -b, a), np.where(right, -a, b)
    low, high = ndtr(a), ndtr(b)
    out = ndtri(low + u * (high - low))
    far = np.flatnonzero(b < -30.0)  # probabilities below 1e-197: the same in logarithms
    if len(far):
        top = log_ndtr(b[far])
        left = np.exp(log_ndtr(a[far]) - top)
        out[far] = ndtri_exp(top + np.log(left + u[far] * (1.0 - left)))
    thin = np.flatnonzero(b - a < TINY * np.minimum(1.0, 1.0 / np.maximum(np.abs(b), 1e-300)))
    if len(thin):
        out[thin] = a[thin] + u[thin] * (b[thin] - a[thin])
    out = np.clip(out, a, b)
    return np.where(right, -out, out)
