"""Split-merge moves: a whole cluster is split in two, or two are joined, in one step.

A sweep that moves one object at a time cannot leave a partition in which two true clusters are one, or one is two:
every path leads through much less probable partitions. A move draws two objects, the anchors. Half of the time they
share a cluster, and a split is proposed that separates them. Otherwise the union of their clusters is proposed; the
second cluster is mostly drawn by the predictive of the first anchor in it. The split is built from the data, either
object by object (*sequential allocation*, Dahl 2003) or by a few restricted Gibbs scans (Jain and Neal 2004). The
acceptance probability includes the probabilities of drawing these anchors and of building this split, so the posterior
is invariant.

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

ACCEPTED = {0: "rejected", 1: "split", 2: "merge"}
UNIFORM_SHARE = 0.1  # probability that the partner of a merge is drawn uniformly

# The two sides of a split that is tried are two slots of their own: the same blocks with other statistics and caches.


def sides_of(blocks: tuple[Live, ...]) -> tuple[Live, ...]:
    """The blocks with the two sides in place of the clusters."""
    return tuple(live._replace(S=live.S2, C=live.C2) for live in blocks)


@kernel
def start_sides(sides, i, j, m):
    """Make both sides, each with its anchor only."""
    clear_slot(sides, 0)
    clear_slot(sides, 1)
    add_row(sides, i, 0, 1.0)
    add_row(sides, j, 1, 1.0)
    m[0], m[1] = 1.0, 1.0


@kernel
def allocate(sides, prior, members, side_of, forced, u, m):
    """Draw the sides of the members one by one given the others; returns the log probability of the result.

    Members that have a side already (``side_of[t] >= 0``) leave it first, which is a restricted Gibbs scan. Members
    without a side are drawn given only those before them, which is sequential allocation. If ``forced[t] >= 0``, it is
    used as the side instead of a draw.
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
    """Probability that anchor i, which is in slot ``first``, chooses each of K slots as its partner in a merge.

    It is mostly given by the predictive. The score of slot ``second`` (-1: none) is passed in, because a split needs it
    for a cluster that does not exist yet.
    """
    scores = np.empty(K, blocks[0].C.dtype)
    score_seats(blocks, i, K, scores)
    out = scores.astype(np.float64)
    if second >= 0:
        out[second] = second_score
    out[first] = -np.inf
    out = np.exp(np.maximum(out - out.max(), -700.0))
    out[first] = 0.0
    out = (1.0 - UNIFORM_SHARE) * out / out.sum() + UNIFORM_SHARE / (K - 1)
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

    The caller ensures two free slots; no split exceeds the limit.
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
    """Apply the move: the right side becomes a new cluster, or both sides become the first cluster."""
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
