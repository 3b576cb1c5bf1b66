"""Split-merge moves on one side of a grid, with the other side fixed.

Two objects, the anchors, are drawn: with probability one half from the same cluster, for which a split is proposed,
otherwise from two clusters, for which a merge is proposed. A split assigns the other objects of the cluster one after
the other, in random order, given those assigned before (sequential allocation, Dahl 2003); objects not yet assigned,
and their cells, are left out. For a merge the probability of the reverse split is computed. Both probabilities enter
the acceptance probability, so the moves leave the posterior invariant.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita.blocks.sweep import UNDIRECTED, Grid, Side, close, grown, log_joint, seat, turned, turned_back
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.families.rows import log_marginals


class Anchors(NamedTuple):
    """Two objects of one side, and whether they are in the same cluster."""

    i: int
    j: int
    together: bool


class Proposal(NamedTuple):
    """A proposed grid, its log acceptance ratio, and the log probability of its split (or of the reverse split)."""

    grid: Grid
    log_accept: float
    log_q: float


def choose_anchors(z: np.ndarray, u: np.ndarray) -> Anchors | None:
    """Draw two anchors from three uniforms; None if there is no such pair."""
    i = int(u[0] * len(z))
    together = bool(u[1] < 0.5)
    candidates = np.flatnonzero((z == z[i]) == together)
    candidates = candidates[candidates != i]
    if not len(candidates):
        return None
    return Anchors(i, int(candidates[int(u[2] * len(candidates))]), together)


def log_anchor_ratio(n_first: float, n_both: float, N: int) -> float:
    """Log probability of drawing the anchors for the merge of two clusters minus that for the split of their union.

    ``n_first`` is the size of the cluster of the first anchor when the anchors are in two clusters.
    """
    return math.log(n_both - 1.0) - math.log(N - n_first)


def replay(
    grid: Grid, side: int, prior: Any, anchors: Anchors, order: np.ndarray, u: np.ndarray
) -> tuple[Grid, float]:
    """Assign the objects of the anchors' clusters again, given the anchors; also returns the log probability.

    ``order`` holds the other objects of the clusters. If the anchors are in one cluster the second anchor takes the
    next empty slot and the others are drawn; otherwise every object returns to its slot. The grid must have a spare
    slot.
    """
    one, other = grid.sides[side], grid.sides[-1 - side]
    first = int(one.z[anchors.i])
    second = int(one.K[0]) if anchors.together else int(one.z[anchors.j])
    pair = np.array([first, second])
    forced = np.full(2 + len(order), -1)
    forced[:2] = 2, 3
    if not anchors.together:
        forced[2:] = one.z[order] == second
    S, L = turned(grid, side)
    objects = np.concatenate([[anchors.i, anchors.j], order]).astype(np.int64)
    one.z[objects] = -1
    for k in pair:
        S[k], L[k], one.n[k] = 0.0, 0.0, 0.0
        if grid.mode > 0:
            S[:, k], L[:, k] = 0.0, 0.0
    one.K[0] = max(int(one.K[0]), second + 1)
    log_q = np.zeros(1)
    seat(
        grid.family, grid.cells[side], grid.mode, prior, *one, other.z, other.K, S, L,
        objects, pair, forced, u, 0, NO_LIMIT, log_q,
    )  # fmt: skip
    return turned_back(grid, side, S, L), float(log_q[0])


def merged(grid: Grid, side: int, first: int, second: int) -> Grid:
    """A copy of the grid in which the second slot of a side is merged into the first."""
    one = grid.sides[side]
    z, n, K = one.z.copy(), one.n.copy(), one.K.copy()
    S, L = (array.copy() for array in turned(grid, side))
    between = S[first, second].copy() if grid.mode == UNDIRECTED else 0.0
    S[first] += S[second]
    z[z == second] = first
    n[first] += n[second]
    if grid.mode > 0:
        S[:, first] += S[:, second]
        if grid.mode == UNDIRECTED:  # the cells between the two slots have been added twice
            S[first, first] -= between
    L[first] = log_marginals(grid.family, np.ascontiguousarray(S[first].T)).sum(axis=0)
    if grid.mode > 0:
        L[:, first] = log_marginals(grid.family, np.ascontiguousarray(S[:, first].T)).sum(axis=0)
    close(grid.mode, z, n, K, S, L, second)
    sides = list(grid.sides)
    sides[side] = one._replace(z=z, n=n, K=K)
    return turned_back(grid._replace(sides=tuple(sides)), side, S, L)


def copied(grid: Grid, side: int) -> Grid:
    """A copy whose blocks, and partition of one side, may be changed in place."""
    sides = list(grid.sides)
    sides[side] = Side(*(array.copy() for array in sides[side]))
    return grid._replace(sides=tuple(sides), S=grid.S.copy(), L=grid.L.copy())


def propose(
    grid: Grid,
    side: int,
    priors: tuple[Any, ...],
    anchors: Anchors,
    order: np.ndarray,
    u: np.ndarray,
    log_u: float = -math.inf,
) -> Proposal:
    """Propose a split or merge for two anchors.

    ``order`` holds the other objects of their clusters, ``u`` a uniform for each of them and for the anchors. The
    reverse split of a merge is not computed if ``log_u`` rejects the merge whatever its probability.
    """
    one = grid.sides[side]
    first, second = int(one.z[anchors.i]), int(one.z[anchors.j])
    N, n_both = len(one.z), 2.0 + len(order)
    now = log_joint(grid, priors)
    if anchors.together:
        apart, log_q = replay(copied(grid, side), side, priors[side], anchors, order, u)
        ratio = log_anchor_ratio(apart.sides[side].n[first], n_both, N)
        return Proposal(apart, log_joint(apart, priors) - now + ratio - log_q, log_q)
    joined = merged(grid, side, first, second)
    bound = log_joint(joined, priors) - now - log_anchor_ratio(one.n[first], n_both, N)
    if log_u >= bound:
        return Proposal(joined, bound, 0.0)
    _, log_q = replay(copied(grid, side), side, priors[side], anchors, order, u)
    return Proposal(joined, bound + log_q, log_q)


def split_merge(
    grid: Grid, side: int, priors: tuple[Any, ...], rng: np.random.Generator, limit: int = NO_LIMIT
) -> tuple[Grid, str]:
    """One move on one side; returns the grid and the outcome: "rejected", "split" or "merge"."""
    one = grid.sides[side]
    anchors = choose_anchors(one.z, rng.random(3))
    if anchors is None or (anchors.together and one.K[0] >= limit):
        return grid, "rejected"
    if one.K[0] + 2 >= len(one.n):
        grid = grown(grid, side)
    pair = one.z[[anchors.i, anchors.j]]
    members = np.flatnonzero((one.z == pair[0]) | (one.z == pair[1]))
    order = rng.permutation(members[(members != anchors.i) & (members != anchors.j)])
    log_u = math.log(1.0 - rng.random())
    proposal = propose(grid, side, priors, anchors, order, rng.random(2 + len(order)), log_u)
    if log_u >= proposal.log_accept:
        return grid, "rejected"
    return proposal.grid, "split" if anchors.together else "merge"
