"""Split-merge moves: a whole cluster is split in two, or two are joined, in one step.

A sweep that moves one object at a time cannot leave a partition with two true clusters in one, or one in two: every
way out leads through worse partitions. Two objects are drawn. If they share a cluster, a split of it is proposed that
parts them; if not, the union of their clusters. The split is built from the data, either object by object
(*sequential allocation*, Dahl 2003) or by a few restricted Gibbs scans (Jain and Neal 2004), and the probability of
building just that one enters the acceptance, so that the posterior is left invariant.

Good for: exchangeable priors and every conjugate family. Not for: stick-breaking, whose labels have their own moves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita.dispatch import each, kernel
from partita.engines.gibbs import Seating, close_slot, grow, open_slot
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
def choose_side(blocks, prior, i, m, forced, u):
    """Side of object i by predictive and sizes ``m``, or the forced one; returns it and its log probability."""
    out = np.zeros(2)
    score_sides(blocks, i, out)
    out[0] += log_seat(prior, m[0])
    out[1] += log_seat(prior, m[1])
    log_odds = out[1] - out[0]
    # log of 1 / (1 + exp(-t)), without overflow
    log_p1 = -math.log1p(math.exp(-log_odds)) if log_odds > 0 else log_odds - math.log1p(math.exp(log_odds))
    log_p0 = log_p1 - log_odds
    side = forced
    if forced < 0:
        side = 1 if math.log(u) < log_p1 else 0
    return side, log_p1 if side == 1 else log_p0


@kernel
def start_sides(blocks, i, j, m):
    """Both sides empty but for the two anchors."""
    clear_sides(blocks)
    add_to_side(blocks, i, 0, 1.0)
    add_to_side(blocks, j, 1, 1.0)
    m[0], m[1] = 1.0, 1.0


@kernel
def allocate(blocks, prior, members, sides, forced, u, m):
    """Add the members one by one, each where the ones before it draw it; returns the log probability of the result."""
    log_q = 0.0
    for t in range(members.shape[0]):
        side, log_p = choose_side(blocks, prior, members[t], m, forced[t], u[t])
        add_to_side(blocks, members[t], side, 1.0)
        sides[t] = side
        m[side] += 1.0
        log_q += log_p
    return log_q


@kernel
def scan(blocks, prior, members, sides, forced, u, m):
    """One restricted Gibbs scan over members that all have a side; returns the log probability of its outcome."""
    log_q = 0.0
    for t in range(members.shape[0]):
        add_to_side(blocks, members[t], sides[t], -1.0)
        m[sides[t]] -= 1.0
        side, log_p = choose_side(blocks, prior, members[t], m, forced[t], u[t])
        add_to_side(blocks, members[t], side, 1.0)
        sides[t] = side
        m[side] += 1.0
        log_q += log_p
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
def propose(blocks, prior, z, n, slot_of, name_of, K, i, j, u, n_scans):
    """One move for the anchors i and j; ``u`` holds uniforms, as many as :func:`n_uniforms` says.

    Returns 0 (rejected), 1 (split) or 2 (merge). The caller sees to two free slots.
    """
    first, second = slot_of[z[i]], slot_of[z[j]]
    members = np.empty(int(n[first] + n[second]), np.int64)
    count = 0
    for t in range(z.shape[0]):
        k = slot_of[z[t]]
        if k in (first, second) and t not in (i, j):
            members[count] = t
            count += 1
    members = members[:count]
    for t in range(count - 1, 0, -1):  # in random order
        other = int(u[t] * (t + 1))
        members[t], members[other] = members[other], members[t]
    sides, m = np.zeros(count, np.int64), np.empty(2)
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
            scan(blocks, prior, members, sides, free, u[at : at + count], m)
        at += count
        log_q = scan(blocks, prior, members, sides, now, u[at : at + count], m)
    log_ratio = log_split_ratio(blocks, prior, n, K[0], first, second, m) - log_q
    log_u = math.log(u[u.shape[0] - 1])
    if first == second:
        if log_u >= log_ratio:
            return 0
        commit_split(blocks, z, n, slot_of, name_of, K, first, j, members, sides, m)
        return 1
    if log_u >= -log_ratio:
        return 0
    commit_merge(blocks, z, n, slot_of, name_of, K, first, second, j, members, m)
    return 2


@kernel
def commit_split(blocks, z, n, slot_of, name_of, K, k, j, members, sides, m):
    """The second side becomes a cluster of its own."""
    new = K[0]
    open_slot(blocks, slot_of, name_of, K)
    keep_side(blocks, 0, k)
    keep_side(blocks, 1, new)
    n[k], n[new] = m[0], m[1]
    z[j] = name_of[new]
    for t in range(members.shape[0]):
        if sides[t] == 1:
            z[members[t]] = name_of[new]


@kernel
def commit_merge(blocks, z, n, slot_of, name_of, K, first, second, j, members, m):
    """Both sides become the first cluster; the second is closed."""
    keep_side(blocks, 2, first)
    n[first] = m[0] + m[1]
    z[j] = name_of[first]
    for t in range(members.shape[0]):
        z[members[t]] = name_of[first]
    close_slot(blocks, n, slot_of, name_of, K, second)


def n_uniforms(size: int, n_scans: int) -> int:
    """Uniforms that a move over ``size`` objects needs: one order, one allocation, the scans, the verdict."""
    return size * (2 + n_scans) + 1


def split_merge(
    seating: Seating, prior: Any, rng: np.random.Generator, n_scans: int = 0
) -> tuple[Seating, str]:
    """One split-merge move; ``n_scans = 0`` allocates sequentially, otherwise so many restricted Gibbs scans are run.

    Returns the seating and what happened: "rejected", "split" or "merge".
    """
    if len(seating.z) < 2:
        return seating, "rejected"
    if seating.K[0] + 2 >= len(seating.n):
        seating = grow(seating)
    i, j = rng.choice(len(seating.z), size=2, replace=False)
    size = int(sum(seating.n[k] for k in {seating.slot_of[seating.z[i]], seating.slot_of[seating.z[j]]}))
    u = rng.random(n_uniforms(size, n_scans))
    outcome = propose(*seating[:1], prior, *seating[1:], i, j, u, n_scans)
    return seating, ACCEPTED[outcome]
