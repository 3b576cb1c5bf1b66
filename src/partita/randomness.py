"""Random states: every kind that users pass becomes a numpy Generator; the global generator is never used."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

RandomState = int | np.random.RandomState | np.random.Generator | np.random.SeedSequence | None


def as_generator(random_state: Any) -> np.random.Generator:
    """Make a generator from None, a non-negative int, a RandomState, a Generator or a SeedSequence.

    A Generator is returned as it is; a RandomState is advanced by one draw.

    Examples
    --------
    >>> float(as_generator(0).random()) == float(as_generator(np.random.SeedSequence(0)).random())
    True
    >>> as_generator(-1)
    Traceback (most recent call last):
    ...
    ValueError: random_state is -1: give a number that is not negative, or None
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return np.random.default_rng(random_state)
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            raise ValueError(f"random_state is {random_state}: give a number that is not negative, or None")
        return np.random.default_rng(int(random_state))
    raise ValueError(
        f"random_state is {random_state!r}: give None, an int, or numpy's RandomState, Generator or SeedSequence"
    )
