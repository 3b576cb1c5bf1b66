"""Compensated sums with twice the digits of a double: the value and its compensation.

Rounded at the end they do not depend on the order in which chunks of rows were added, in one process or on many
workers (Knuth's two-sum; Dekker 1971).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ExactSums = tuple[list[np.ndarray], list[np.ndarray]]


def add_exactly(total: ExactSums, more: Sequence[np.ndarray]) -> ExactSums:
    """Add the sums of one chunk in place; rounding errors are added to the compensation."""
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
    """The sums of both as new arrays; the arguments are not changed."""
    copy = ([value.copy() for value in one[0]], [a + b for a, b in zip(one[1], other[1], strict=True)])
    return add_exactly(copy, other[0])
