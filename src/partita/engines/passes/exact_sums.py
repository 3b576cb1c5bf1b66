"""Sums in twice the digits of a double: the value, and what it lacks.

Rounded at the end they are the same whatever the order in which blocks of rows were added up, be it in one process or
on many workers (Knuth's two-sum; Dekker 1971).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["ExactSums", "add_exactly", "merge_sums"]

ExactSums = tuple[list[np.ndarray], list[np.ndarray]]


def add_exactly(total: ExactSums, more: Sequence[np.ndarray]) -> ExactSums:
    """The sums with those of one block; what rounding loses is kept apart."""
    with np.errstate(invalid="ignore"):
        for value, lack, s in zip(*total, more, strict=True):
            both = value + s
            back = both - value
            s = s - back
            np.subtract(both, back, out=back)
            np.subtract(value, back, out=back)
            back += s
            lack += back
            value[...] = both
    return total


def merge_sums(one: ExactSums, other: ExactSums) -> ExactSums:
    """The sums of both, as new arrays: those of a worker stay what they are."""
    copy = ([value.copy() for value in one[0]], [a + b for a, b in zip(one[1], other[1], strict=True)])
    return add_exactly(copy, other[0])
