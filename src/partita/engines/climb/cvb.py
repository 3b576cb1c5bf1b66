"""Collapsed variational Bayes: parameters integrated out, labels independent under q.

Each object is scored against every cluster, with its own contribution removed. To first order (CVB0) the expected
statistics are plugged in; to second order their variance enters through the curvature of the log predictive. Objects
are updated in small groups, each against statistics with the newest labels of all others, so the fixed points are those
of the one-by-one sweep; neither has a bound that must increase. A sweep that reverses the one before it oscillates: the
next sweep takes a smaller step, which has the same fixed points.

The expansion fails for clusters that are almost empty: if the prior of a mean weighs 0.03 objects, the expected
statistics of 0.04 objects predict almost as well as those of a whole cluster, and sweeps would fill the cluster by
fractions of objects, against the bound. A run that does not know the number of clusters therefore starts from VB, and
the clusters that VB does not use stay closed.

Good for label matrices and counts, where it is often closer to the sampler than VB. Not for partly observed vectors.
Teh, Newman and Welling (2007); Asuncion et al. (2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import lacks
from partita.engines.climb.vb import bound, fit_concentration, learn_hyper, log_hyperprior
from partita.engines.passes.rows import Statistics, n_spread, n_stats, normalized
from partita.families import contract
from partita.families.registry import Block
from partita.families.rows import curve_without_self, scatter_rows, score_without_self, spread_rows
from partita.partitions import count_spread, cvb_log_mass

MIN_STEP = 1 / 64  # smallest share of the proposed change that a sweep makes
MIN_OBJECTS = 0.5  # in a cluster that is in use


class CVBState(NamedTuple):
    """Responsibilities of every object, and what VB would say of them."""

    families: tuple[Any, ...]
    prior: Any
    R: np.ndarray
    statistics: Statistics
    objective: float  # the VB bound at these responsibilities: below the collapsed bound, below the evidence
    change: float  # mean absolute change of a responsibility that the last sweep asked for
    moves: np.ndarray | None = None  # the changes themselves
    share: float = 1.0  # of the changes that the next sweep makes
    closed: np.ndarray | None = None  # (K,) clusters that stay empty


def check(blocks: Sequence[Block], order: int) -> None:
    """Raise an error that names what a family lacks for this engine."""
    for block in blocks:
        if contract.partly_seen(block.family, block.data):
            raise ValueError(
                f"collapsed variational Bayes cannot complete partly observed vectors ({type(block.family).__name__}"
                f", columns {', '.join(map(str, block.columns[:5]))}): use inference='vb' or 'em', a family that "
                "reads single cells (gaussian, poisson), or rows without missing values"
            )
        if order == 2 and (missing := lacks(type(block.family), contract.spread, contract.curvature)):
            raise TypeError(
                f"{type(block.family).__name__} has no {' and no '.join(f'{m}()' for m in missing)}, which "
                "second-order collapsed variational inference needs: add them, or use order=1"
            )


def init(
    blocks: Sequence[Block],
    prior: Any,
    R: np.ndarray,
    weights: np.ndarray,
    closed: np.ndarray | None = None,
) -> CVBState:
    """Start from responsibilities; the clusters that are ``closed`` stay empty."""
    families = tuple(block.family for block in blocks)
    statistics = _statistics(blocks, families, R, weights)
    return CVBState(families, prior, R, statistics, -np.inf, np.inf, closed=closed)


def unused_clusters(n: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The clusters of less than half an object; an object is a row, or the unit of weight where rows weigh more.

    Examples
    --------
    >>> unused_clusters(np.array([3.6, 0.4, 0.0]), np.ones(4))
    array([False,  True,  True])
    >>> unused_clusters(np.array([0.2, 0.1, 0.0]), np.full(3, 0.1))
    array([False, False,  True])
    """
    return n < min(MIN_OBJECTS * min(1.0, float(weights.max())), float(n.max()))


def step(
    state: CVBState,
    blocks: Sequence[Block],
    weights: np.ndarray,
    executor: Any = None,
    *,
    order: int = 1,
    learn_likelihood: bool = True,
    learn_concentration: bool = True,
) -> CVBState:
    """One sweep over the objects, then hyper-parameters."""
    families, prior = state.families, state.prior
    R = state.R.copy()
    n = state.statistics.n.copy()
    S = tuple(contract.widened(lik, s)[0].copy() for lik, s in zip(families, state.statistics.S, strict=True))
    second = order == 2
    V = tuple(np.zeros((n_spread(lik) if second else 0, R.shape[1])) for lik in families)
    spread = None
    if second:
        for lik, block, v in zip(families, blocks, V, strict=True):
            spread_rows(lik, block.data, np.arange(len(R)), weights[:, None] * R * (1 - R), v)
        spread = count_spread(R, weights)
    # small groups: nearly the one-by-one sweep on small data, few calls on large
    size = int(np.clip(len(R) // 64, 1, 512))
    for lo in range(0, len(R), size):
        rows = np.arange(lo, min(lo + size, len(R)))
        old = R[rows]
        own = (
            old * np.minimum(weights[rows], 1.0)[:, None]
        )  # one object of the row's weight, if it has as much
        L = cvb_log_mass(prior, n, own, spread)
        for lik, block, s, v in zip(families, blocks, S, V, strict=True):
            score_without_self(lik, block.data, rows, s, own, L)
            if second:
                curve_without_self(lik, block.data, rows, s, v, own, L)
        if state.closed is not None:
            L[:, state.closed] = -np.inf
        R[rows] = (1.0 - state.share) * old + state.share * normalized(L)[0]
        n, spread = _exchange(families, blocks, rows, old, R[rows], weights[rows], n, S, V, spread)
    statistics = _statistics(blocks, families, R, weights)
    if learn_likelihood:
        families = tuple(
            learn_hyper(lik, s, statistics.n) for lik, s in zip(families, statistics.S, strict=True)
        )
    if learn_concentration:
        prior = fit_concentration(prior, statistics.n)
    moves = (R - state.R) / state.share
    change = float(weights @ np.abs(moves).sum(axis=1) / weights.sum())
    objective = bound(families, prior, statistics) + log_hyperprior(prior, learn_concentration)
    share = next_share(state, moves, weights)
    return CVBState(families, prior, R, statistics, objective, change, moves, share, state.closed)


def next_share(state: CVBState, moves: np.ndarray, weights: np.ndarray) -> float:
    """Half of the last step size when the changes reversed without getting much smaller; otherwise a little more."""
    if state.moves is None:
        return state.share
    now, before, along = (
        float(weights @ np.einsum("ik,ik->i", a, b))
        for a, b in ((moves, moves), (state.moves, state.moves), (moves, state.moves))
    )
    if along < 0.0 and now > 0.25 * before:
        return max(0.5 * state.share, MIN_STEP)
    return min(1.1 * state.share, 1.0)


def _exchange(families, blocks, rows, old, new, w, n, S, V, spread):
    """Replace the old responsibilities of a group by the new ones in the statistics."""
    delta = w[:, None] * (new - old)
    for lik, block, s, v in zip(families, blocks, S, V, strict=True):
        scatter_rows(lik, block.data, rows, s, delta, s)
        if spread is not None:
            spread_rows(lik, block.data, rows, w[:, None] * (new * (1 - new) - old * (1 - old)), v)
    if spread is not None:
        before, after = count_spread(old, w), count_spread(new, w)
        spread = tuple(total - b + a for total, b, a in zip(spread, before, after, strict=True))
    return n + delta.sum(axis=0), spread


def _statistics(blocks, families, R: np.ndarray, weights: np.ndarray) -> Statistics:
    """Expected statistics of all objects, added up afresh so that rounding does not pile up over sweeps."""
    WR = weights[:, None] * R
    S = tuple(np.zeros((n_stats(lik), R.shape[1])) for lik in families)
    for lik, block, s in zip(families, blocks, S, strict=True):
        scatter_rows(lik, block.data, np.arange(len(R)), s, WR, s)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.sum(WR * np.where(R > 0, np.log(R), 0.0))
    return Statistics(WR.sum(axis=0), S, np.nan, float(entropy), 0.0)
