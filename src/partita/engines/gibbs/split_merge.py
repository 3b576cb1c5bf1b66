"""Split-merge moves: a whole cluster is split in two, or two are joined, in one step.

A sweep that moves one object at a time cannot leave a partition with two true clusters in one, or one in two: every
way out leads through worse partitions. Two objects are drawn, the anchors. Half of the time they share a cluster, and
a split of it is proposed that parts them; else the union of their clusters, the second one being mostly a cluster that
would welcome the first anchor. The split is built from the data, either object by object (*sequential allocation*,
Dahl 2003) or by a few restricted Gibbs scans (Jain and Neal 2004). The probabilities of drawing just these anchors and
of building just that split enter the acceptance, so that the posterior is left invariant.

Good for: exchangeable priors and every conjugate family. Not for: stick-breaking, whose labels have their own moves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita.dispatch import kernel
from partita.engines.gibbs.sweep import (
    NO_LIMIT,
    Live,
    Seating,
    add_row,
    clear_slot,
    close_slot,
    grow,
    open_slot,
    score_row,
)
from partita.families.rows import log_marginals, refresh_clusters
from partita.partitions import log_eppf, log_seat

__all__ = ["ACCEPTED", "split_merge"]

ACCEPTED = {0: "rejected", 1: "split", 2: "merge"}
ANYONE = 0.1  # how often the partner of a merge is any cluster at all

# The two sides of a split that is tried are two slots of their own: the same blocks with other statistics and caches.


def sides_of(blocks: tuple[Live, ...]) -> tuple[Live, ...]:
    """The blocks with the two sides in place of the clusters."""
    return tuple(live._replace(S=live.S2, C=live.C2) for live in blocks)


@kernel
def start_sides(sides, i, j, m):
    """Both sides empty but for the two anchors."""
    clear_slot(sides, 0)
    clear_slot(sides, 1)
    add_row(sides, i, 0, 1.0)
    add_row(sides, j, 1, 1.0)
    m[0], m[1] = 1.0, 1.0


@kernel
def allocate(sides, prior, members, side_of, forced, u, m):
    """Give the members their sides one by one, each where the others draw it; returns the log probability of that.

    Those who have a side already (``side_of[t] >= 0``) leave it first: a restricted Gibbs scan. Those who have none see
    only the ones before them: sequential allocation. ``forced[t] >= 0`` says which side is taken, come what may.
    """
    log_q = 0.0
    out = np.empty(2, sides[0].C.dtype)
    for t in range(members.shape[0]):
        if side_of[t] >= 0:
            add_row(sides, members[t], side_of[t], -1.0)
            m[side_of[t]] -= 1.0
        out[:] = 0.0
        score_row(sides, members[t], 2, out)
        log_odds = float(out[1]) - float(out[0]) + log_seat(prior, m[1]) - log_seat(prior, m[0])
        # log of 1 / (1 + exp(-t)), without overflow
        log_p1 = min(log_odds, 0.0) - math.log1p(math.exp(-abs(log_odds)))
        side = forced[t]
        if side < 0:
            side = 1 if math.log(u[t]) < log_p1 else 0
        log_q += log_p1 if side == 1 else log_p1 - log_odds
        add_row(sides, members[t], side, 1.0)
        side_of[t] = side
        m[side] += 1.0
    return log_q


@kernel
def score_seats(blocks, i, K, out):
    """``out[:K] = log predictive of object i in each slot``."""
    for k in range(K):
        out[k] = 0.0
    score_row(blocks, i, K, out)


def log_split_ratio(
    blocks: tuple[Live, ...], prior: Any, n: np.ndarray, K: int, first: int, second: int, m: np.ndarray
) -> float:
    """Log posterior of the partition with the two sides apart, minus that with them together.

    ``first`` and ``second`` are the slots of the anchors: equal when the present partition has them together.
    """
    gain = 0.0
    for live in blocks:
        S = np.column_stack([live.S2, live.S2.sum(axis=1)])
        left, right, union = log_marginals(live.family, S).sum(axis=0)
        gain += left + right - union
    others = np.delete(n[:K], [first, second] if first != second else [first])
    together, apart = np.append(others, m.sum()), np.append(others, m)
    return float(gain + log_eppf(prior, apart, len(apart)) - log_eppf(prior, together, len(together)))


def partner_weights(
    blocks: tuple[Live, ...], i: int, first: int, K: int, second: int = -1, second_score: float = 0.0
) -> np.ndarray:
    """Probability that anchor i, who sits in slot ``first``, picks each of K slots as its partner in a merge.

    Mostly by its predictive. The score of slot ``second`` (-1: none) is given: a split asks for a cluster that it has
    not made yet, in the place of the empty slot.
    """
    scores = np.empty(K, blocks[0].C.dtype)
    score_seats(blocks, i, K, scores)
    out = scores.astype(np.float64)
    if second >= 0:
        out[second] = second_score
    out[first] = -np.inf
    out = np.exp(np.maximum(out - out.max(), -700.0))
    out[first] = 0.0
    out = (1.0 - ANYONE) * out / out.sum() + ANYONE / (K - 1)
    out[first] = 0.0
    return out


def log_anchor_ratio(
    blocks: tuple[Live, ...], i: int, first: int, second: int, K: int, m: np.ndarray
) -> float:
    """Log probability of drawing the anchors for the merge of the two sides, minus that for their split.

    K counts the present clusters; ``first`` and ``second`` are as in :func:`log_split_ratio`.
    """
    score = np.zeros(2, blocks[0].C.dtype)
    score_seats(sides_of(blocks), i, 2, score)
    n_apart, partner = (K + 1, K) if first == second else (K, second)
    weights = partner_weights(blocks, i, first, n_apart, partner, float(score[1]))
    return math.log(weights[partner]) - math.log(m[1]) + math.log(m[0] + m[1] - 1.0)


def choose_anchors(seating: Seating, slots: np.ndarray, u: np.ndarray) -> tuple[int, int]:
    """Two anchors from four uniforms, half of the time in one cluster; equal if no such pair exists.

    The second is drawn uniformly from its cluster. ``slots`` holds the slot of each object.
    """
    i, K = int(u[1] * len(slots)), int(seating.K[0])
    first = int(slots[i])
    if u[0] < 0.5:
        candidates = np.flatnonzero(slots == first)
        candidates = candidates[candidates != i]
    elif K > 1:
        reached = np.cumsum(partner_weights(seating.blocks, i, first, K))
        second = min(int(np.searchsorted(reached, u[2] * reached[-1], side="right")), K - 1)
        candidates = np.flatnonzero(slots == second)
    else:
        return i, i
    return (i, int(candidates[int(u[3] * len(candidates))])) if len(candidates) else (i, i)


def propose(
    seating: Seating,
    prior: Any,
    slots: np.ndarray,
    i: int,
    j: int,
    rng: np.random.Generator,
    n_scans: int = 0,
    limit: int = NO_LIMIT,
) -> int:
    """One move for the anchors i and j: 0 (rejected), 1 (split) or 2 (merge).

    The caller sees to two free slots; no split goes beyond the limit.
    """
    blocks, n, K = seating.blocks, seating.n, int(seating.K[0])
    first, second = int(slots[i]), int(slots[j])
    split = first == second
    if split and limit <= K:
        return 0
    members = np.flatnonzero((slots == first) | (slots == second))
    members = rng.permutation(members[(members != i) & (members != j)])
    sides, m = sides_of(blocks), np.empty(2)
    side_of, free = np.full(len(members), -1), np.full(len(members), -1)
    now = free if split else np.where(slots[members] == first, 0, 1)
    start_sides(sides, i, j, m)
    for _ in range(n_scans):
        allocate(sides, prior, members, side_of, free, rng.random(len(members)), m)
    log_q = allocate(sides, prior, members, side_of, now, rng.random(len(members)), m)
    log_ratio = log_split_ratio(blocks, prior, n, K, first, second, m) - log_q
    log_ratio += log_anchor_ratio(blocks, i, first, second, K, m)
    if math.log(rng.random()) >= (log_ratio if split else -log_ratio):
        return 0
    commit(seating, first, second, np.append(members[side_of == 1], j), np.append(members, [i, j]), m)
    return 1 if split else 2


def commit(
    seating: Seating, first: int, second: int, right: np.ndarray, everyone: np.ndarray, m: np.ndarray
) -> None:
    """Carry the move out: the right side becomes a cluster of its own, or both sides the first cluster."""
    blocks, z, n, slot_of, name_of, K = seating
    split = first == second
    if split:
        second = int(K[0])
        open_slot(blocks, slot_of, name_of, K)
        for side, k in ((0, first), (1, second)):
            for live in blocks:
                live.S[:, k] = live.S2[:, side]
            n[k] = m[side]
        z[right] = name_of[second]
    else:
        for live in blocks:
            live.S[:, first] = live.S2.sum(axis=1)
        n[first] = m.sum()
        z[everyone] = name_of[first]
    for live in blocks:  # all slots: moves are accepted too rarely for a kernel that refreshes two
        refresh_clusters(live.family, live.S, live.C, int(K[0]))
    if not split:
        close_slot(blocks, n, slot_of, name_of, K, second)


def split_merge(
    seating: Seating, prior: Any, rng: np.random.Generator, n_scans: int = 0, limit: int = NO_LIMIT
) -> tuple[Seating, str]:
    """One split-merge move; ``n_scans = 0`` allocates sequentially, otherwise so many restricted Gibbs scans are run.

    Returns the seating and what happened: "rejected", "split" or "merge".
    """
    if seating.K[0] + 2 >= len(seating.n):
        seating = grow(seating)
    slots = seating.slot_of[seating.z]
    i, j = choose_anchors(seating, slots, rng.random(4))
    if i == j:
        return seating, "rejected"
    return seating, ACCEPTED[propose(seating, prior, slots, i, j, rng, n_scans, limit)]
