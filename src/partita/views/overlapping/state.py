"""State of a sampler of overlapping views: which columns are in which views, and the labels of the rows in each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.labels import canonical
from partita.partitions import DirichletProcess, IndianBuffet, log_eppf
from partita.partitions.buffet import _log_dishes


class OverlapState(NamedTuple):
    """Views and hyper-parameters; arrays are never changed in place."""

    Z: tuple[np.ndarray, ...]  # canonical labels of the rows in each view
    Y: np.ndarray  # [column, view] bool
    buffet: IndianBuffet
    concentration: float  # of the clusters in every view
    hyper: Any  # of the likelihood

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.Z)


def empty_state(
    D: int, hyper: Any, buffet: IndianBuffet | None = None, concentration: float = 1.0
) -> OverlapState:
    """A state without views.

    Examples
    --------
    >>> empty_state(3, None).n_views
    0
    """
    return OverlapState(
        (), np.zeros((D, 0), dtype=bool), buffet or IndianBuffet(1.0, 1.0), concentration, hyper
    )


def add_view(state: OverlapState, z: np.ndarray, columns: Any) -> OverlapState:
    """The state with one more view.

    Examples
    --------
    >>> add_view(empty_state(3, None), np.array([5, 5, 2]), [0, 2]).Y[:, 0]
    array([ True, False,  True])
    """
    y = np.zeros((len(state.Y), 1), dtype=bool)
    y[columns] = True
    return state._replace(Z=(*state.Z, canonical(z)), Y=np.hstack([state.Y, y]))


def without_views(state: OverlapState, drop: Any) -> OverlapState:
    """The state without the views marked by a mask."""
    if not np.any(drop):
        return state
    keep = np.flatnonzero(~np.asarray(drop))
    return state._replace(Z=tuple(state.Z[v] for v in keep), Y=state.Y[:, keep])


def log_prior(state: OverlapState) -> float:
    """Log probability of memberships and labels, for ordered views.

    The factor for views with equal columns and equal labels, which hardly ever matters, is left out.
    """
    prior = DirichletProcess(state.concentration)
    sizes = [np.bincount(z).astype(float) for z in state.Z]
    rows = sum(log_eppf(prior, n, len(n)) for n in sizes)
    return float(_log_dishes(state.buffet, state.Y.sum(axis=0).astype(float), len(state.Y)) + rows)


def log_joint(state: OverlapState, scores: Any) -> float:
    """Log probability of data, memberships and labels; ``scores`` are the log marginal likelihoods of columns."""
    return log_prior(state) + scores.total(state.Y)


def by_views(Y: np.ndarray) -> dict[tuple[int, ...], list[int]]:
    """The columns of each set of views.

    Examples
    --------
    >>> by_views(np.array([[True, False], [False, False], [True, False]]))
    {(0,): [0, 2], (): [1]}
    """
    out: dict[tuple[int, ...], list[int]] = {}
    packed = np.packbits(Y, axis=1)
    views: dict[bytes, tuple[int, ...]] = {}
    for d, y in enumerate(packed):
        key = y.tobytes()
        if key not in views:
            views[key] = tuple(np.flatnonzero(Y[d]).tolist())
        out.setdefault(views[key], []).append(d)
    return out


def log_view(state: OverlapState, v: int) -> float:
    """Contribution of view v to the log prior."""
    n = np.bincount(state.Z[v]).astype(float)
    rows = log_eppf(DirichletProcess(state.concentration), n, len(n))
    m = state.Y[:, [v]].sum(axis=0).astype(float)
    none = _log_dishes(state.buffet, np.zeros(0), len(state.Y))
    return float(rows + _log_dishes(state.buffet, m, len(state.Y)) - none)
