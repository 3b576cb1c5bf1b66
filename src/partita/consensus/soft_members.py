"""Soft members, which give memberships instead of labels, as several hard members each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

DRAWS = 5  # hard members that replace a soft one
SUM_TOLERANCE = 1e-6


class Expanded(NamedTuple):
    """Hard members as columns of one mapping, and the user's member that each belongs to."""

    columns: dict[str, Any]
    owners: np.ndarray
    names: tuple[str, ...]


def holds_memberships(X: Any) -> bool:
    """Whether X is a list or mapping of members of which at least one is an (objects x labels) matrix.

    Examples
    --------
    >>> holds_memberships([[0, 1], [1, 1]])  # a list of rows
    False
    >>> holds_memberships([np.array([0, 1]), np.array([[0.2, 0.8], [1.0, 0.0]])])
    True
    """
    if isinstance(X, Mapping):
        return any(_is_matrix(member) for member in X.values())
    return isinstance(X, (list, tuple)) and any(_is_matrix(member) for member in X)


def _is_matrix(member: Any) -> bool:
    if isinstance(member, (list, tuple)):
        return len(member) > 0 and isinstance(member[0], (list, tuple, np.ndarray))
    return len(getattr(member, "shape", ())) == 2


def expand_members(X: Any, rng: np.random.Generator) -> Expanded:
    """Replace every membership matrix by ``DRAWS`` columns of labels; hard labelings are unchanged.

    Examples
    --------
    >>> found = expand_members({"hard": [0, 1], "soft": [[1.0, 0.0], [0.5, 0.5]]}, np.random.default_rng(0))
    >>> list(found.columns)
    ['hard', 'soft#1', 'soft#2', 'soft#3', 'soft#4', 'soft#5']
    >>> found.owners
    array([0, 1, 1, 1, 1, 1])
    """
    named = X.items() if isinstance(X, Mapping) else ((f"x{m}", member) for m, member in enumerate(X))
    columns: dict[str, Any] = {}
    owners: list[int] = []
    names: list[str] = []
    for m, (name, member) in enumerate(named):
        names.append(str(name))
        if not _is_matrix(member):
            columns[names[-1]] = member
            owners.append(m)
            continue
        drawn = draw_labels(member, rng, name=names[-1])
        for s in range(DRAWS):
            columns[f"{name}#{s + 1}"] = drawn[:, s]
            owners.append(m)
    if len(columns) < len(owners):
        raise ValueError("two members have the same name: rename one of them")
    return Expanded(columns, np.array(owners, dtype=np.int64), tuple(names))


def draw_labels(memberships: Any, rng: np.random.Generator, *, name: str = "member", n_draws: int = DRAWS):
    """Labels drawn from memberships by systematic sampling: the counts of each object are exact to within one.

    The order of the draws of an object is random, so that two objects with equal memberships share labels as often as
    with independent draws, and the order of the labels does not matter.

    Parameters
    ----------
    memberships : array-like (objects x labels)
        Rows are at least 0 and sum to 1; a row of NaN is an object that the member did not see.
    rng : Generator
    name : str
        Name of the member in error messages.
    n_draws : int

    Returns
    -------
    masked array (objects x n_draws)

    Examples
    --------
    >>> draw_labels([[0.4, 0.6], [0.0, 1.0]], np.random.default_rng(0)).sum(axis=1).data
    array([3, 5])
    """
    P = np.asarray(memberships, dtype=np.float64)
    unseen = _check_memberships(P, name)
    edges = np.cumsum(np.where(unseen[:, None], 1.0, P), axis=1)
    edges /= edges[:, -1:]  # the last edge is exactly 1, without rounding error
    u = rng.random(len(P))
    labels = np.empty((len(P), n_draws), dtype=np.int64)
    for s in range(n_draws):
        labels[:, s] = (((u + s) / n_draws)[:, None] >= edges[:, :-1]).sum(axis=1)
    labels = rng.permuted(labels, axis=1)
    return np.ma.array(labels, mask=np.repeat(unseen[:, None], n_draws, axis=1))


def _check_memberships(P: np.ndarray, name: str) -> np.ndarray:
    """Which rows are missing; raises for a row that is not a distribution."""
    if P.ndim != 2 or P.shape[1] == 0:
        raise ValueError(f"member {name!r} has the shape {P.shape}: give an (objects x labels) matrix")
    gaps = np.isnan(P)
    unseen = gaps.all(axis=1)
    rules = [
        (
            gaps.any(axis=1) & ~unseen,
            "is partly NaN: make the whole row NaN if the member did not see the object",
        ),
        ((P < 0).any(axis=1), "has a negative membership: memberships are probabilities"),
        (np.abs(P.sum(axis=1) - 1.0) > SUM_TOLERANCE, "does not sum to 1: divide each row by its sum"),
    ]
    for bad, words in rules:
        bad &= ~unseen
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"member {name!r}, row {row} (rows count from 0) {words}")
    return unseen
