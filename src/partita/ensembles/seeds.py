"""Randomness of ensembles: every member has a stream of its own, whoever runs it and when."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.randomness import as_generator


def member_seeds(random_state: Any, n_members: int) -> list[np.random.SeedSequence]:
    """One seed a member; a longer ensemble starts with the members of a shorter one.

    Examples
    --------
    >>> [seed.spawn_key for seed in member_seeds(0, 2)]
    [(0,), (1,)]
    """
    entropy = as_generator(random_state).integers(2**32, size=4)
    return np.random.SeedSequence(entropy.tolist()).spawn(n_members)
