"""Cholesky factors of small matrices in compiled code, and their rank-one updates."""

from __future__ import annotations

import math

from partita.dispatch import kernel


@kernel
def factor(A, p):
    """Overwrite the lower triangle of the leading p x p submatrix by its Cholesky factor; False if not positive."""
    for a in range(p):
        for b in range(a + 1):
            t = A[a, b]
            for j in range(b):
                t -= A[a, j] * A[b, j]
            if a == b:
                if not t > 0.0:
                    return False
                A[a, a] = math.sqrt(t)
            else:
                A[a, b] = t / A[b, b]
    return True


@kernel
def log_determinant(L, p):
    """Log determinant of ``L L'``."""
    out = 0.0
    for a in range(p):
        out += math.log(L[a, a])
    return 2.0 * out


@kernel
def solve_lower(L, y, p):
    """Overwrite y by ``L^-1 y``."""
    for a in range(p):
        t = y[a]
        for b in range(a):
            t -= L[a, b] * y[b]
        y[a] = t / L[a, a]


@kernel
def solve_upper(L, y, p):
    """Overwrite y by ``L'^-1 y``."""
    for a in range(p - 1, -1, -1):
        t = y[a]
        for b in range(a + 1, p):
            t -= L[b, a] * y[b]
        y[a] = t / L[a, a]


@kernel
def rank_one(L, y, sign, p):
    """Update ``L L'`` to ``L L' + sign y y'`` in place (y is overwritten); False if the result is not positive.

    ``L`` is packed row by row: entry (a, b) is at ``a (a + 1) / 2 + b``.
    """
    for a in range(p):
        diagonal = a * (a + 1) // 2 + a
        old = L[diagonal]
        square = old * old + sign * y[a] * y[a]
        if not square > 1e-3 * old * old:  # so close to singular, the result would have too few digits
            return False
        new = math.sqrt(square)
        cosine, sine = new / old, y[a] / old
        L[diagonal] = new
        for b in range(a + 1, p):
            j = b * (b + 1) // 2 + a
            L[j] = (L[j] + sign * sine * y[b]) / cosine
            y[b] = cosine * y[b] - sine * L[j]
    return True
