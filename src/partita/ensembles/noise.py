"""Label noise: members that are wrong about some objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels.checks import MISSING, integer_labels
from partita.randomness import as_generator

__all__ = ["add_label_noise", "noisy_copies"]


def add_label_noise(labels: ArrayLike, share: float, *, random_state: Any = None) -> NDArray[np.int64]:
    """Change the labels of a share of the objects of every member.

    In each member ``round(share * seen)`` objects, drawn at random, get another of the labels of that member; a
    member with one label has no other, and stays as it is. Missing labels stay missing.

    Parameters
    ----------
    labels : array-like of int, shape (n_objects,) or (n_objects, n_members)
        Labels from 0; -1 is missing.
    share : float
        Between 0 and 1.
    random_state : int, RandomState, Generator, SeedSequence or None
        Source of randomness.

    Returns
    -------
    ndarray of int, of the same shape

    Examples
    --------
    >>> noisy = add_label_noise([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], 0.2, random_state=0)
    >>> int((noisy != [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]).sum())
    2
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the share of labels to change is {share}: it must lie between 0 and 1")
    rng = as_generator(random_state)
    given = np.asarray(labels)
    Y = integer_labels(given, "labels", ndim=2 if given.ndim == 2 else 1).astype(np.int64)
    for member in Y.T if Y.ndim == 2 else [Y]:
        seen = np.flatnonzero(member != MISSING)
        levels = np.unique(member[seen])
        if levels.size < 2:
            continue
        changed = rng.choice(seen, size=round(share * seen.size), replace=False)
        steps = rng.integers(1, levels.size, size=changed.size)
        member[changed] = levels[(np.searchsorted(levels, member[changed]) + steps) % levels.size]
    return Y


def noisy_copies(
    labels: ArrayLike, n_members: int = 10, share: float = 0.1, *, random_state: Any = None
) -> NDArray[np.int64]:
    """An ensemble of copies of one labeling, each with label noise of its own (Wang et al., the NBCE paper).

    Parameters
    ----------
    labels : array-like of int, shape (n_objects,)
        The labeling; -1 is missing.
    n_members : int, default 10
        Number of copies.
    share : float, default 0.1
        Share of the labels of each copy that are changed.
    random_state : int, RandomState, Generator, SeedSequence or None
        Source of randomness.

    Returns
    -------
    ndarray of int, shape (n_objects, n_members)

    Examples
    --------
    >>> noisy_copies([0, 0, 1, 1], n_members=3, share=0.25, random_state=0).shape
    (4, 3)
    """
    if n_members < 1:
        raise ValueError(f"n_members is {n_members}: an ensemble needs at least one member")
    copies = np.repeat(integer_labels(labels, "labels", ndim=1)[:, None], n_members, axis=1)
    return add_label_noise(copies, share, random_state=random_state)
