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

from partita.dispatch import each, kernel
from partita.engines.gibbs import MANY, Seating, close_slot, grow, open_slot, score_row
from partita.families.contract import (
    cache_start,
    datum,
    log_marginal,
    n_columns,
    observe,
    refresh,
    score,
    stats_start,
    touch,
)
from partita.partitions import log_eppf, log_seat

__all__ = ["ACCEPTED", "split_merge"]

ACCEPTED = {0: "rejected", 1: "split", 2: "merge"}
ANYONE = 0.1  # how often the partner of a merge is any cluster at all


@each
def add_to_side(block, i, side, w):
    """Put an object on one side of the split that is tried, or take it away."""
    for d in range(n_columns(block.family)):
        x = datum(block.family, block.data, i, d)
        s = block.S2[stats_start(block.family, d) : stats_start(block.family, d + 1), side]
        c = block.C2[cache_start(block.family, d) : cache_start(block.family, d + 1)]
        observe(block.family, d, s, x, w)
        touch(block.family, d, s, c, side, x)


@each
def score_sides(block, i, out):
    """``out += log predictive of object i on either side``."""
    for d in range(n_columns(block.family)):
        c = block.C2[cache_start(block.family, d) : cache_start(block.family, d + 1)]
        score(block.family, d, c, datum(block.family, block.data, i, d), 2, out)


@each
def clear_sides(block):
    """Empty both sides."""
    for e in range(block.S2.shape[0]):
        block.S2[e, 0] = 0.0
        block.S2[e, 1] = 0.0
    for d in range(n_columns(block.family)):
        s = block.S2[stats_start(block.family, d) : stats_start(block.family, d + 1)]
        c = block.C2[cache_start(block.family, d) : cache_start(block.family, d + 1)]
        refresh(block.family, d, s[:, 0], c, 0)
        refresh(block.family, d, s[:, 1], c, 1)


@each
def split_gain(block, out):
    """``out[0] += log marginals of both sides apart, minus that of both together``."""
    for d in range(n_columns(block.family)):
        s = block.S2[stats_start(block.family, d) : stats_start(block.family, d + 1)]
        out[0] += log_marginal(block.family, d, s[:, 0].copy()) + log_marginal(
            block.family, d, s[:, 1].copy()
        )
        out[0] -= log_marginal(block.family, d, s[:, 0] + s[:, 1])


@each
def keep_side(block, side, k):
    """Make one side (or, with side = 2, both together) the cluster in slot k."""
    for e in range(block.S.shape[0]):
        block.S[e, k] = block.S2[e, side] if side < 2 else block.S2[e, 0] + block.S2[e, 1]
    for d in range(n_columns(block.family)):
        s = block.S[stats_start(block.family, d) : stats_start(block.family, d + 1), k]
        refresh(
            block.family, d, s, block.C[cache_start(block.family, d) : cache_start(block.family, d + 1)], k
        )


@kernel
def start_sides(blocks, i, j, m):
    """Both sides empty but for the two anchors."""
    clear_sides(blocks)
    add_to_side(blocks, i, 0, 1.0)
    add_to_side(blocks, j, 1, 1.0)
    m[0], m[1] = 1.0, 1.0


@kernel
def allocate(blocks, prior, members, sides, forced, u, m):
    """Give the members their sides one by one, each where the others draw it; returns the log probability of that.

    Those who have a side already (``sides[t] >= 0``) leave it first: a restricted Gibbs scan. Those who have none see
    only the ones before them: sequential allocation.
    """
    log_q = 0.0
    out = np.empty(2, blocks[0].C.dtype)
    for t in range(members.shape[0]):
        if sides[t] >= 0:
            add_to_side(blocks, members[t], sides[t], -1.0)
            m[sides[t]] -= 1.0
        out[:] = 0.0
        score_sides(blocks, members[t], out)
        log_odds = float(out[1]) - float(out[0]) + log_seat(prior, m[1]) - log_seat(prior, m[0])
        # log of 1 / (1 + exp(-t)), without overflow
        log_p1 = min(log_odds, 0.0) - math.log1p(math.exp(-abs(log_odds)))
        side = forced[t]
        if side < 0:
            side = 1 if math.log(u[t]) < log_p1 else 0
        log_q += log_p1 if side == 1 else log_p1 - log_odds
        add_to_side(blocks, members[t], side, 1.0)
        sides[t] = side
        m[side] += 1.0
    return log_q


@kernel
def log_split_ratio(blocks, prior, n, K, first, second, m):
    """Log posterior of the partition with the two sides apart, minus that with them together.

    ``first`` and ``second`` are the slots of the anchors: equal when the present partition has them together.
    """
    gain = np.zeros(1)
    split_gain(blocks, gain)
    together = np.empty(K + 1)
    apart = np.empty(K + 1)
    size = 0
    for k in range(K):
        if k != first and k != second:
            together[size] = n[k]
            apart[size] = n[k]
            size += 1
    together[size] = m[0] + m[1]
    apart[size], apart[size + 1] = m[0], m[1]
    return gain[0] + log_eppf(prior, apart, size + 2) - log_eppf(prior, together, size + 1)


@kernel
def partner_weights(blocks, i, first, K, second, second_score, out):
    """Probability that anchor i, who sits in slot ``first``, picks each of K slots as its partner in a merge.

    Mostly by its predictive. The score of slot ``second`` (-1: none) is given: a split asks for a cluster that it has
    not made yet, in the place of the empty slot.
    """
    for k in range(K):
        out[k] = 0.0
    score_row(blocks, i, K, out)
    if second >= 0:
        out[second] = second_score
    top = -math.inf
    for k in range(K):
        if k != first:
            top = max(top, out[k])
    total = 0.0
    for k in range(K):
        out[k] = math.exp(max(out[k] - top, -80.0)) if k != first else 0.0
        total += out[k]
    for k in range(K):
        if k != first:
            out[k] = (1.0 - ANYONE) * out[k] / total + ANYONE / (K - 1)


@kernel
def log_anchor_ratio(blocks, i, first, second, K, m):
    """Log probability of drawing the anchors for the merge of the two sides, minus that for their split.

    K counts the present clusters; ``first`` and ``second`` are as in :func:`log_split_ratio`.
    """
    dtype = blocks[0].C.dtype
    sides = np.zeros(2, dtype)
    score_sides(blocks, i, sides)
    n_apart = K + 1 if first == second else K
    partner = K if first == second else second
    out = np.empty(n_apart, dtype)
    partner_weights(blocks, i, first, n_apart, partner, sides[1], out)
    return math.log(out[partner]) - math.log(m[1]) + math.log(m[0] + m[1] - 1.0)


@kernel
def choose_anchors(blocks, z, n, slot_of, K, u):
    """Two anchors from four uniforms, half of the time in one cluster; equal if no such pair exists.

    The second is drawn uniformly from its cluster.
    """
    i = min(int(u[1] * z.shape[0]), z.shape[0] - 1)
    first = slot_of[z[i]]
    if u[0] < 0.5:
        second, left = first, n[first] - 1.0
    elif K[0] > 1:
        weights = np.empty(K[0], blocks[0].C.dtype)
        partner_weights(blocks, i, first, K[0], -1, 0.0, weights)
        second = 0 if first > 0 else 1
        rest = u[2]
        for k in range(K[0]):
            if k != first and rest >= 0.0:
                second = k
                rest -= weights[k]
        left = n[second]
    else:
        return i, i
    wanted = int(u[3] * left)
    for t in range(z.shape[0]):
        if t != i and slot_of[z[t]] == second:
            if wanted == 0:
                return i, t
            wanted -= 1
    return i, i


@kernel
def collect_members(z, slot_of, first, second, i, j, members, u):
    """The objects of both clusters but the anchors, in random order; returns how many."""
    count = 0
    for t in range(z.shape[0]):
        k = slot_of[z[t]]
        if k in (first, second) and t not in (i, j):
            members[count] = t
            count += 1
    for t in range(count - 1, 0, -1):
        other = int(u[t] * (t + 1))
        members[t], members[other] = members[other], members[t]
    return count


@kernel
def propose(blocks, prior, z, n, slot_of, name_of, K, i, j, u, n_scans, limit):
    """One move for the anchors i and j; ``u`` holds uniforms, as many as :func:`n_uniforms` says.

    Returns 0 (rejected), 1 (split) or 2 (merge). The caller sees to two free slots; no split goes beyond ``limit``.
    """
    first, second = slot_of[z[i]], slot_of[z[j]]
    if first == second and K[0] >= limit:
        return 0
    size = int(n[first]) if first == second else int(n[first] + n[second])
    members = np.empty(size, np.int64)
    count = collect_members(z, slot_of, first, second, i, j, members, u)
    members = members[:count]
    sides, m = np.full(count, -1), np.empty(2)
    free, now = np.full(count, -1), np.empty(count, np.int64)
    for t in range(count):
        now[t] = -1 if first == second else (0 if slot_of[z[members[t]]] == first else 1)
    start_sides(blocks, i, j, m)
    at = count
    if n_scans == 0:
        log_q = allocate(blocks, prior, members, sides, now, u[at : at + count], m)
    else:
        allocate(blocks, prior, members, sides, free, u[at : at + count], m)
        for _ in range(n_scans - 1):
            at += count
            allocate(blocks, prior, members, sides, free, u[at : at + count], m)
        at += count
        log_q = allocate(blocks, prior, members, sides, now, u[at : at + count], m)
    log_ratio = log_split_ratio(blocks, prior, n, K[0], first, second, m) - log_q
    log_ratio += log_anchor_ratio(blocks, i, first, second, K[0], m)
    log_u = math.log(u[u.shape[0] - 1])
    split = first == second
    if log_u >= (log_ratio if split else -log_ratio):
        return 0
    commit(blocks, z, n, slot_of, name_of, K, first, second, j, members, sides, m)
    return 1 if split else 2


@kernel
def commit(blocks, z, n, slot_of, name_of, K, first, second, j, members, sides, m):
    """Carry the move out: the second side becomes a cluster of its own, or both sides the first cluster."""
    split = first == second
    if split:
        second = K[0]
        open_slot(blocks, slot_of, name_of, K)
        keep_side(blocks, 1, second)
        n[second] = m[1]
    keep_side(blocks, 0 if split else 2, first)
    n[first] = m[0] if split else m[0] + m[1]
    z[j] = name_of[second] if split else name_of[first]
    for t in range(members.shape[0]):
        z[members[t]] = name_of[second] if split and sides[t] == 1 else name_of[first]
    if not split:
        close_slot(blocks, n, slot_of, name_of, K, second)


def n_uniforms(size: int, n_scans: int) -> int:
    """Uniforms that a move over ``size`` objects needs: one order, one allocation, the scans, the verdict."""
    return size * (2 + n_scans) + 1


def split_merge(
    seating: Seating, prior: Any, rng: np.random.Generator, n_scans: int = 0, limit: int = MANY
) -> tuple[Seating, str]:
    """One split-merge move; ``n_scans = 0`` allocates sequentially, otherwise so many restricted Gibbs scans are run.

    Returns the seating and what happened: "rejected", "split" or "merge".
    """
    if seating.K[0] + 2 >= len(seating.n):
        seating = grow(seating)
    i, j = choose_anchors(seating.blocks, seating.z, seating.n, seating.slot_of, seating.K, rng.random(4))
    if i == j:
        return seating, "rejected"
    size = int(sum(seating.n[k] for k in {seating.slot_of[seating.z[i]], seating.slot_of[seating.z[j]]}))
    u = rng.random(n_uniforms(size, n_scans))
    outcome = propose(*seating[:1], prior, *seating[1:], i, j, u, n_scans, limit)
    return seating, ACCEPTED[outcome]
