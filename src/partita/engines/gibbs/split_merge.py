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
from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.dispatch import kernel
from partita.engines.gibbs import sweep
from partita.engines.gibbs.sweep import NO_LIMIT, Seating, close_slot, grow, open_slot
from partita.engines.passes.live import (
    add_row,
    add_side_log_marginals,
    adopt_side,
    clear_slot,
    copy_to_side,
    erase,
    new_scores,
    score_row,
    sides_of,
)
from partita.families import Block
from partita.labels import canonical
from partita.partitions import log_eppf, log_seat

OUTCOMES = ("rejected", "split", "merge")
UNIFORM_SHARE = 0.1  # probability that the partner of a merge is drawn uniformly
ROUNDING = 1e-6  # statistics of a cluster and of a side that was filled row by row may differ by rounding

# The two sides of a split that is tried are two slots of their own: the same blocks with other statistics and caches.


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
    out = new_scores(sides, 2)
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


@kernel
def log_split_ratio(blocks, prior, n, K, first, second, m):
    """Log posterior of the partition with the two sides apart, minus that with them together.

    ``first`` and ``second`` are the slots of the anchors: equal when the present partition has them together.
    """
    sides = np.zeros(3)
    add_side_log_marginals(blocks, sides)
    sizes, others = np.empty(K + 1), 0
    for k in range(K):
        if k != first and k != second:
            sizes[others] = n[k]
            others += 1
    sizes[others] = m[0] + m[1]
    together = log_eppf(prior, sizes, others + 1)
    sizes[others], sizes[others + 1] = m[0], m[1]
    return sides[0] + sides[1] - sides[2] + log_eppf(prior, sizes, others + 2) - together


@kernel
def partner_weights(blocks, i, first, K, second, second_score):
    """Probability that anchor i, which is in slot ``first``, chooses each of K slots as its partner in a merge.

    It is mostly given by the predictive. The score of slot ``second`` (-1: none) is passed in, because a split needs it
    for a cluster that does not exist yet.
    """
    scores, out = new_scores(blocks, K), np.empty(K)
    score_seats(blocks, i, K, scores)
    top = -math.inf
    for k in range(K):
        out[k] = second_score if k == second else float(scores[k])
        if k != first:
            top = max(top, out[k])
    total = 0.0
    for k in range(K):
        out[k] = 0.0 if k == first else math.exp(max(out[k] - top, -700.0))
        total += out[k]
    for k in range(K):
        if k != first:
            out[k] = (1.0 - UNIFORM_SHARE) * out[k] / total + UNIFORM_SHARE / (K - 1)
    return out


@kernel
def log_anchor_ratio(blocks, sides, i, first, second, K, m):
    """Log probability of drawing the anchors for the merge of the two sides, minus that for their split.

    K counts the present clusters; ``first`` and ``second`` are as in :func:`log_split_ratio`.
    """
    scores = new_scores(sides, 2)
    score_seats(sides, i, 2, scores)
    n_apart, partner = (K + 1, K) if first == second else (K, second)
    weights = partner_weights(blocks, i, first, n_apart, partner, float(scores[1]))
    return math.log(weights[partner]) - math.log(m[1]) + math.log(m[0] + m[1] - 1.0)


@kernel
def is_hopeless(blocks, prior, n, K, first, second, log_u):
    """Whether the merge of two slots is rejected for this log of a uniform number, however the split would be built.

    The present clusters are the sides of the split that would undo the merge. The probability of building it is at most
    1, and its second anchor chooses the first one's cluster with at least the uniform share; so the acceptance
    probability has a bound that needs no pass over the members. Most merges of clusters that are apart end here.
    """
    copy_to_side(blocks, first, 0)
    copy_to_side(blocks, second, 1)
    m = np.empty(2)
    m[0], m[1] = n[first], n[second]
    log_ratio = log_split_ratio(blocks, prior, n, K, first, second, m)
    log_ratio += math.log(UNIFORM_SHARE / (K - 1)) - math.log(m[1]) + math.log(m[0] + m[1] - 1.0)
    return log_u >= ROUNDING * (1.0 + abs(log_ratio)) - log_ratio


@kernel
def find_member(z, name, rank, without):
    """The object with this many others of its cluster before it; ``without`` is left out."""
    for i in range(z.shape[0]):
        if z[i] == name and i != without:
            if rank == 0:
                return i
            rank -= 1
    return -1


@kernel
def choose_anchors(blocks, z, n, slot_of, name_of, K, u):
    """Two anchors from four uniforms, half of the time in one cluster; equal if no such pair exists.

    The second is drawn uniformly from its cluster.
    """
    i = int(u[1] * z.shape[0])
    first = slot_of[z[i]]
    second, others = first, n[first] - 1.0
    if u[0] >= 0.5:
        if K < 2:
            return i, i
        weights = partner_weights(blocks, i, first, K, -1, 0.0)
        left = 0.0
        for k in range(K):
            left += weights[k]
        left *= u[2]
        for k in range(K):
            if weights[k] > 0.0:
                second = k
                left -= weights[k]
                if left < 0.0:
                    break
        others = n[second]
    if others == 0.0:
        return i, i
    return i, find_member(z, name_of[second], int(u[3] * others), i)


@kernel
def shuffled_members(z, first, second, i, j, rng):
    """The objects of two clusters without the anchors, in random order."""
    count = 0
    for t in range(z.shape[0]):
        if z[t] == first or z[t] == second:
            count += 1
    members, at = np.empty(count - 2, np.int64), 0
    for t in range(z.shape[0]):
        if (z[t] == first or z[t] == second) and t != i and t != j:
            members[at] = t
            at += 1
    for t in range(at - 1, 0, -1):
        other = int(rng.random() * (t + 1))
        members[t], members[other] = members[other], members[t]
    return members


@kernel
def propose(blocks, sides, prior, z, n, slot_of, name_of, K, i, j, rng, n_scans, limit):
    """One move for the anchors i and j: 0 (rejected), 1 (split) or 2 (merge); the caller ensures two free slots."""
    first, second = slot_of[z[i]], slot_of[z[j]]
    split = first == second
    if split and limit <= K[0]:
        return 0
    members = shuffled_members(z, z[i], z[j], i, j, rng)
    M = members.shape[0]
    side_of, now, u, m = np.empty(M, np.int64), np.empty(M, np.int64), np.empty((n_scans + 1, M)), np.empty(2)
    for scan in range(n_scans + 1):
        for t in range(M):
            u[scan, t] = rng.random()
    log_u = math.log(rng.random())
    if not split and is_hopeless(blocks, prior, n, K[0], first, second, log_u):
        return 0
    for t in range(M):
        side_of[t], now[t] = -1, -1
    start_sides(sides, i, j, m)
    for scan in range(n_scans + 1):
        if scan == n_scans and not split:
            for t in range(M):
                now[t] = 0 if z[members[t]] == z[i] else 1
        log_q = allocate(sides, prior, members, side_of, now, u[scan], m)
    log_ratio = log_split_ratio(blocks, prior, n, K[0], first, second, m) - log_q
    log_ratio += log_anchor_ratio(blocks, sides, i, first, second, K[0], m)
    if log_u >= (log_ratio if split else -log_ratio):
        return 0
    if split:
        second = K[0]
        open_slot(blocks, slot_of, name_of, K)
        adopt_side(blocks, 0, first)
        adopt_side(blocks, 1, second)
        n[first], n[second] = m[0], m[1]
        z[j] = name_of[second]
        for t in range(M):
            if side_of[t] == 1:
                z[members[t]] = name_of[second]
        return 1
    adopt_side(blocks, 2, first)
    n[first] = m[0] + m[1]
    for t in range(M):
        z[members[t]] = name_of[first]
    z[j] = name_of[first]
    close_slot(blocks, n, slot_of, name_of, K, second)
    return 2


@kernel
def run_moves(blocks, sides, prior, z, n, slot_of, name_of, K, rng, n_moves, n_scans, limit, counts):
    """Some moves in turn; returns how many were run before more slots were needed. ``counts`` gains the outcomes."""
    u = np.empty(4)
    for done in range(n_moves):
        if K[0] + 2 >= n.shape[0]:
            return done
        for t in range(4):
            u[t] = rng.random()
        i, j = choose_anchors(blocks, z, n, slot_of, name_of, K[0], u)
        outcome = 0
        if i != j:
            outcome = propose(blocks, sides, prior, z, n, slot_of, name_of, K, i, j, rng, n_scans, limit)
        counts[outcome] += 1
    return n_moves


def split_merge(
    seating: Seating,
    prior: Any,
    rng: np.random.Generator,
    n_scans: int = 0,
    limit: int = NO_LIMIT,
    n_moves: int = 1,
) -> tuple[Seating, dict[str, int]]:
    """Split-merge moves; ``n_scans = 0`` allocates sequentially, otherwise so many restricted Gibbs scans are run.

    Returns the seating and how many moves were "rejected", a "split" or a "merge".
    """
    counts = np.zeros(3, np.int64)
    while n_moves > 0:
        blocks = seating.blocks
        n_moves -= run_moves(
            erase(blocks), erase(sides_of(blocks)), prior, *seating[1:], rng, n_moves, n_scans, limit, counts
        )
        if n_moves > 0:
            seating = grow(seating)
    return seating, dict(zip(OUTCOMES, counts.tolist(), strict=True))


def sample_labels(
    blocks: Sequence[Block],
    z: np.ndarray,
    prior: Any,
    rng: np.random.Generator,
    n_sweeps: int = 1,
    n_moves: int = 3,
) -> np.ndarray:
    """Labels of the rows after Gibbs sweeps and split-merge moves from labels ``z``, hyper-parameters given.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli
    >>> from partita.partitions import DirichletProcess
    >>> block = Block(
    ...     Bernoulli.default(8), np.repeat([[0], [1]], 10, axis=0) * np.ones((1, 8), np.int8), ("a",)
    ... )
    >>> with interpreted():
    ...     z = sample_labels(
    ...         [block], np.zeros(20, int), DirichletProcess(1.0), np.random.default_rng(0), 5, 20
    ...     )
    >>> len(np.unique(z))
    2
    """
    seating = sweep.seat(blocks, z)
    rows = np.arange(len(z))
    for _ in range(n_sweeps):
        seating = sweep.reseat(seating, prior, rows, rng.random(len(z)))
    seating, _ = split_merge(seating, prior, rng, n_moves=n_moves)
    return canonical(sweep.labels(seating))
