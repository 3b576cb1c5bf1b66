"""Splits and merges of whole clusters, all clusters at once: the moves of the sub-cluster sampler.

Clusters are drawn at random into *groups*: alone, to be split, or in a random pair, to be merged. A group has two
*anchors*, objects that a split puts on different sides. Two sub-clusters that start from the anchors are sampled for a
few passes (weights and parameters given the sides, sides given those), and a last pass draws the sides, whose
probability enters the Hastings ratio. The sub-clusters depend on the objects of the group and on its anchors, but not
on its present division. The probability with which they would have produced that division is therefore available for a
merge (Jain and Neal 2004, 2007).

A move never changes the union of a group, so all groups share their passes over the rows. The decisions need only
statistics, and are made one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.dispatch import kernel
from partita.engines.passes.replicates import also_on_device, map_replicates
from partita.engines.passes.rows import n_stats, rows_in_memory
from partita.engines.subclusters import device_passes
from partita.engines.subclusters.seat_labels import blank, labels_at, members_of_ranks, relabel
from partita.families.contract import datum, draw, expect, n_columns, observe, project, stats_start
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.partitions import log_new_seat
from partita.partitions.gibbs_type import seat_discount

# Probabilities that a split or a merge of a cluster is proposed in a step. They are small, so that the two parts of a
# new split exchange objects before they are split again. Merges are the reverse of splits.
SPLIT_SHARE, MERGE_SHARE = 0.3, 0.1
COIN = 0.5  # Beta(COIN, COIN): prior of two sub-clusters' weights, and of the bias of coins
LAUNCH_STAGE = 2  # stage of the first launching pass in the counter of the random numbers


class Moves(NamedTuple):
    """How many splits and merges were proposed and accepted in the last step."""

    splits: int = 0
    splits_accepted: int = 0
    merges: int = 0
    merges_accepted: int = 0

    def plus(self, merge: np.ndarray, accepted: np.ndarray) -> Moves:
        """With more proposals, each a merge or a split, accepted or not."""
        more = (~merge, ~merge & accepted, merge, merge & accepted)
        return self.and_also(Moves(*(int(new.sum()) for new in more)))

    def and_also(self, others: Moves) -> Moves:
        """These and the others."""
        return Moves(*(one + other for one, other in zip(self, others, strict=True)))


class Seats(NamedTuple):
    """The cluster of every object. A row of weight w is w objects, its *copies*, scored once, assigned one by one."""

    first: Any  # [row] first copy of each row; then the number of all copies. None on a device: one copy each
    z: Any  # cluster of each copy; an array on the device where the rows are there
    n: np.ndarray  # copies in each cluster, none of them 0
    S: tuple[np.ndarray, ...]  # statistics of each block [statistic, cluster]


class Groups(NamedTuple):
    """Clusters in groups, and who is held on which side while a group is divided."""

    clusters: np.ndarray  # [group, 2], twice the same one for a split
    anchors: np.ndarray  # copies, in ascending order
    sides: np.ndarray  # of the anchors

    @property
    def merges(self) -> np.ndarray:
        """Which groups are pairs."""
        return self.clusters[:, 0] != self.clusters[:, 1]

    def by_cluster(self, n_clusters: int) -> np.ndarray:
        """Group of each cluster, -1 for none."""
        group = np.full(n_clusters, -1)
        group[self.clusters] = np.arange(len(self.clusters))[:, None]
        return group


class Guide(NamedTuple):
    """Log odds of the left side [group], and natural parameters of the left less those of the right sub-cluster
    [group, statistic, 1].
    """

    log_odds: np.ndarray
    thetas: tuple[np.ndarray, ...]


class Division(NamedTuple):
    """Sides of all copies, and for every group sizes [group, 2], statistics [side, statistic], log proposal."""

    side: Any
    n: np.ndarray
    S: tuple[np.ndarray, ...]
    log_q: np.ndarray


# ---- random numbers and passes -----------------------------------------------------------------------------


class Stream(NamedTuple):
    """Random numbers of one iteration: a generator for the few that are drawn in turn, and one for each copy and
    pass. Those depend on the place of the copy only, never on how rows are cut into blocks.
    """

    key: int
    iteration: int
    rng: np.random.Generator

    @classmethod
    def of(cls, key: int, iteration: int) -> Stream:
        """The stream of an iteration."""
        return cls(key, iteration, generator(key, iteration, 0, 0))

    def uniforms(self, stage: int, lo: int, hi: int) -> np.ndarray:
        """Uniforms of copies lo to hi in a pass, which is called a stage and counted from 1."""
        return uniforms(self.key, self.iteration, stage, lo, hi)


def uniforms(key: int, iteration: int, stage: int, lo: int, hi: int) -> np.ndarray:
    """Uniforms of copies lo to hi in a pass: a function of these numbers alone."""
    late = lo % 4  # a count of the generator gives four numbers
    return generator(key, iteration, stage, lo // 4).random(hi - lo + late)[late:]


def generator(key: int, iteration: int, stage: int, start: int) -> np.random.Generator:
    """Counter-based generator: any place in its stream is reached at once."""
    bits = np.random.Philox(0)  # a key given here would still ask the system for entropy, which is slow
    state: Any = bits.state
    state["state"] = {
        "counter": np.array([start, stage, iteration, 0], np.uint64),
        "key": np.array([key, 0], np.uint64),
    }
    bits.state = state
    return np.random.Generator(bits)


@kernel
def add_copies(lik, data, rows, first, label, S):
    """``S[label] += t(x)`` for every copy (-1: none); ``first[j]`` is the first copy of row j."""
    count, seen = np.zeros(S.shape[0], np.int64), np.empty(S.shape[0], np.int64)
    for j in range(rows.shape[0]):
        n_seen = 0
        for e in range(first[j], first[j + 1]):
            k = label[e]
            if k >= 0:
                if count[k] == 0:
                    seen[n_seen] = k
                    n_seen += 1
                count[k] += 1
        for h in range(n_seen):
            k = seen[h]
            for d in range(n_columns(lik)):
                s = S[k, stats_start(lik, d) : stats_start(lik, d + 1)]
                observe(lik, d, s, datum(lik, data, rows[j], d), float(count[k]))
            count[k] = 0


def count_copies(
    blocks: Sequence[Block], rows: np.ndarray, first: np.ndarray, label: np.ndarray, n_labels: int
) -> tuple[np.ndarray, ...]:
    """Sizes and statistics [label, statistic] of some rows' copies."""
    sums = [np.bincount(label[label >= 0], minlength=n_labels).astype(float)]
    for block in blocks:
        S = np.zeros((n_labels, n_stats(block.family)))
        add_copies(block.family, block.data, rows, first, label, S)
        sums.append(S)
    return tuple(sums)


def draw_members(z: Any, n: np.ndarray, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """One or two different members of each cluster, uniformly (a singleton is drawn twice)."""
    ranks = np.stack([rng.integers(0, n) for _ in range(n_draws)], axis=1)
    if n_draws == 2:  # the second among the others
        others = rng.integers(0, np.maximum(n - 1, 1))
        ranks[:, 1] = np.where(n > 1, others + (others >= ranks[:, 0]), 0)
    return members_of_ranks(z, ranks)


# ---- groups ------------------------------------------------------------------------------------------------


def draw_groups(z: Any, n: np.ndarray, rng: np.random.Generator) -> tuple[Groups, int, int]:
    """The groups to split or merge and their anchors; then the numbers of clusters to split and of those left over."""
    anchors = draw_members(z, n, 2, rng)
    lot = rng.random(len(n))
    singles = np.flatnonzero(lot < SPLIT_SHARE)
    seekers = rng.permutation(np.flatnonzero((lot >= SPLIT_SHARE) & (lot < SPLIT_SHARE + MERGE_SHARE)))
    pairs = seekers[: len(seekers) // 2 * 2].reshape(-1, 2)
    divisible = singles[n[singles] > 1]
    clusters = np.concatenate([np.stack([divisible, divisible], axis=1), pairs])
    both = np.concatenate([anchors[divisible], anchors[pairs, 0]]).ravel()
    order = np.argsort(both)
    return Groups(clusters, both[order], order % 2), len(singles), len(seekers) % 2


def log_selection(n_single: int, n_pairs: int, n_idle: int) -> float:
    """Log probability of these groups: of the draws of their clusters, and of one matching among all."""
    half = n_pairs + n_idle  # (2 half - 1)!! matchings, also if one seeker is left over
    log_matchings = half * math.log(2.0) + math.lgamma(half + 0.5) - math.lgamma(0.5)
    seekers = 2 * n_pairs + n_idle
    return n_single * math.log(SPLIT_SHARE) + seekers * math.log(MERGE_SHARE) - log_matchings


# ---- proposals ---------------------------------------------------------------------------------------------


@kernel
def add_odds(lik, data, rows, first, group, theta, odds):
    """Add to the log odds of every copy what its row says for the left side of its group (-1: none)."""
    G = theta.shape[0]
    L, at = np.zeros((G, 1)), np.full(G, -1)
    for j in range(rows.shape[0]):
        for e in range(first[j], first[j + 1]):
            g = group[e]
            if g < 0:
                continue
            if at[g] != j:
                at[g] = j
                L[g, 0] = 0.0
                for d in range(n_columns(lik)):
                    own = theta[g, stats_start(lik, d) : stats_start(lik, d + 1)]
                    project(lik, d, own, datum(lik, data, rows[j], d), L, g)
            odds[e] += L[g, 0]


@kernel
def take_sides(group, held, odds, u, side, label, log_q):
    """Draw the side of every copy, or ask for the probability of the side it is held on.

    ``held`` is -1 for a side to be drawn, 0 or 1 for one to be asked for, 2 or 3 for an anchor, who has no choice.
    """
    for e in range(group.shape[0]):
        g, s = group[e], held[e]
        side[e], label[e] = 0, -1
        if g < 0:
            continue
        if s < 0:
            s = 0 if u[e] < 1.0 / (1.0 + math.exp(-max(-700.0, odds[e]))) else 1
            label[e] = 2 * g + s
        elif s >= 2:
            s -= 2
            side[e], label[e] = s, 2 * g + s
            continue
        side[e] = s
        against = -odds[e] if s == 0 else odds[e]
        log_q[g] -= (
            against + math.log1p(math.exp(-against)) if against > 0.0 else math.log1p(math.exp(against))
        )


class Proposer(NamedTuple):
    """All that a pass over the rows needs."""

    blocks: Sequence[Block]
    seats: Seats
    groups: Groups
    stream: Stream
    executor: Any

    def divide(self, guide: Guide, stage: int, *, final: bool) -> Division:
        """One pass: sides of all copies in groups; in the final pass merges are held as they are."""
        groups, z, first = self.groups, self.seats.z, self.seats.first
        group_of = groups.by_cluster(len(self.seats.n))
        held_of = np.full(len(self.seats.n), -1)
        if final:
            held_of[groups.clusters[groups.merges]] = np.arange(2)
        side = blank(z, "int8")
        about = (groups, group_of, held_of, guide, (self.stream.key, self.stream.iteration, stage))
        log_q, n, *S = map_replicates(divide_copies, about, self.blocks, first, z, self.executor, side)
        return Division(side, n.reshape(-1, 2), tuple(S), log_q)

    def launch(self, n_launch: int, stage: int, *, drawn: bool = True) -> Guide:
        """Sub-clusters of the groups, from their anchors and a few passes; parameters are drawn or posterior means."""
        groups, seats = self.groups, self.seats
        n_groups, group_of = len(groups.clusters), groups.by_cluster(len(seats.n))
        rows = groups.anchors
        if seats.first is not None:
            rows = np.searchsorted(seats.first, groups.anchors, side="right") - 1
        label = 2 * group_of[labels_at(seats.z, groups.anchors)] + groups.sides
        anchored, rows = rows_in_memory(self.blocks, rows)
        _, *S = count_copies(anchored, rows, np.arange(len(rows) + 1), label, 2 * n_groups)
        thetas = [expect(block.family, s.T) for block, s in zip(self.blocks, S, strict=True)]
        guide = make_guide(np.zeros(n_groups), thetas)
        for turn in range(n_launch):
            division = self.divide(guide, stage + turn, final=False)
            thetas = [
                draw(block.family, s.T, self.stream.rng) if drawn else expect(block.family, s.T)
                for block, s in zip(self.blocks, division.S, strict=True)
            ]
            guide = make_guide(log_odds_given(division.n, self.stream.rng), thetas)
        return guide


@also_on_device(device_passes.divide_copies, device_passes.divide_at_once)
def divide_copies(
    blocks: Sequence[Block], rows: np.ndarray, copies: np.ndarray, z: np.ndarray, about: Any
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Sides of some rows' copies; log proposals of the groups, sizes and statistics of their sides."""
    groups, group_of, held_of, guide, (key, iteration, stage) = about
    lo, hi = copies[0], copies[-1]
    n_groups = len(groups.clusters)
    group, held = group_of[z], held_of[z]
    inside = slice(*np.searchsorted(groups.anchors, [lo, hi]))
    held[groups.anchors[inside] - lo] = groups.sides[inside] + 2
    odds = guide.log_odds[group]
    for block, theta in zip(blocks, guide.thetas, strict=True):
        add_odds(block.family, block.data, rows, copies - lo, group, theta, odds)
    u = uniforms(key, iteration, stage, lo, hi)
    side, label, log_q = np.zeros(hi - lo, np.int8), np.empty(hi - lo, np.int64), np.zeros(n_groups)
    take_sides(group, held, odds, u, side, label, log_q)
    return side, (log_q, *count_copies(blocks, rows, copies - lo, label, 2 * n_groups))


def log_odds_given(n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log odds of two sub-clusters' weights, drawn given their sizes [group, 2]."""
    shape = n + COIN  # on the log scale, so that no weight is zero
    log_g = np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape
    return log_g[:, 0] - log_g[:, 1]


def make_guide(log_odds: np.ndarray, thetas: Sequence[np.ndarray]) -> Guide:
    """From parameters [statistic, side of a group]. Vectors are seen in full, so odds are linear in parameters."""
    by_group = ((theta[:, 0::2] - theta[:, 1::2]).T for theta in thetas)
    return Guide(log_odds, tuple(np.ascontiguousarray(theta)[:, :, None] for theta in by_group))


# ---- decisions ---------------------------------------------------------------------------------------------


def log_evidence(blocks: Sequence[Block], S: Sequence[np.ndarray]) -> np.ndarray:
    """Log marginal likelihood of each cluster, all blocks together."""
    return np.sum([log_marginals(b.family, s).sum(axis=0) for b, s in zip(blocks, S, strict=True)], axis=0)


def log_apart(prior: Any, n: Any, m: Any) -> Any:
    """Log prior odds of two clusters of these sizes against one, but for the factor of their number."""
    sigma = seat_discount(prior)
    return gammaln(n - sigma) + gammaln(m - sigma) - gammaln(n + m - sigma) - gammaln(1.0 - sigma)


def merge_odds(blocks: Sequence[Block], prior: Any, seats: Seats) -> np.ndarray:
    """Log posterior odds of each pair as one against this very division (k before the other; -inf elsewhere)."""
    K = len(seats.n)
    evidence, odds = log_evidence(blocks, seats.S), np.full((K, K), -np.inf)
    for k in range(K - 1):
        together = log_evidence(blocks, [np.ascontiguousarray(S[:, k + 1 :] + S[:, [k]]) for S in seats.S])
        apart = evidence[k] + evidence[k + 1 :] + log_apart(prior, seats.n[k], seats.n[k + 1 :])
        odds[k, k + 1 :] = together - apart
    return odds


class Weighed(NamedTuple):
    """Every group divided: sizes [group, 2], statistics [statistic, group] of left and right, and the part of the log
    ratio, divided over whole, that does not depend on the other groups.
    """

    n: np.ndarray
    left: tuple[np.ndarray, ...]
    right: tuple[np.ndarray, ...]
    log_ratio: np.ndarray


def weigh(blocks: Sequence[Block], prior: Any, seats: Seats, groups: Groups, division: Division) -> Weighed:
    """Posterior and proposal of every group, divided against whole."""
    merges, (a, b) = groups.merges, groups.clusters.T
    n = np.where(merges[:, None], seats.n[groups.clusters], division.n)
    left = tuple(np.where(merges, s[:, a], d[0::2].T) for s, d in zip(seats.S, division.S, strict=True))
    right = tuple(np.where(merges, s[:, b], d[1::2].T) for s, d in zip(seats.S, division.S, strict=True))
    whole = tuple(l + r for l, r in zip(left, right, strict=True))
    log_ratio = log_evidence(blocks, left) + log_evidence(blocks, right) - log_evidence(blocks, whole)
    log_ratio += log_apart(prior, n[:, 0], n[:, 1])
    total = n.sum(axis=1)
    # anchors: 1 of n (n - 1) ordered pairs in a split, 1 of 2 n_left n_right in a merge
    log_ratio += np.log(total * (total - 1.0)) - np.log(2.0 * n[:, 0] * n[:, 1])
    return Weighed(n, left, right, log_ratio - division.log_q)


def decide(
    prior: Any,
    n: np.ndarray,
    merges: np.ndarray,
    log_ratio: np.ndarray,
    n_single: int,
    n_idle: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Metropolis-Hastings, group after group: how many clusters there are now enters each decision."""
    N, K = float(n.sum()), len(n)
    n_pairs = int(merges.sum())
    accepted = np.zeros(len(merges), bool)
    for g, log_u in enumerate(np.log(rng.random(len(merges)))):
        step = -1 if merges[g] else 1
        fewer = min(K, K + step)
        log_h = log_ratio[g] + log_new_seat(prior, N, fewer)
        change = log_selection(n_single - step, n_pairs + step, n_idle)
        change -= log_selection(n_single, n_pairs, n_idle)
        if log_u < step * log_h + change:
            accepted[g] = True
            K, n_single, n_pairs = K + step, n_single - step, n_pairs + step
    return accepted


def carry_out(seats: Seats, clusters: np.ndarray, side: Any, weighed: Weighed, accepted: np.ndarray) -> Seats:
    """Seats after the accepted moves; the last clusters fill the gaps that merges leave."""
    a, b = clusters.T
    merged, split = np.flatnonzero(accepted & (a != b)), np.flatnonzero(accepted & (a == b))
    K = len(seats.n)
    name = np.stack([np.arange(K), np.arange(K)], axis=1)  # [cluster, side] -> cluster
    name[b[merged]] = a[merged][:, None]
    name[a[split], 1] = K + np.arange(len(split))
    n = np.append(seats.n, weighed.n[split, 1])
    n[a[merged]] = weighed.n[merged].sum(axis=1)
    n[a[split]] = weighed.n[split, 0]
    kept = np.setdiff1d(np.arange(len(n)), b[merged])
    dense = np.full(len(n), -1)
    dense[kept] = np.arange(len(kept))
    S = []
    for s, left, right in zip(seats.S, weighed.left, weighed.right, strict=True):
        s = np.concatenate([s, right[:, split]], axis=1)
        s[:, a[merged]] = left[:, merged] + right[:, merged]
        s[:, a[split]] = left[:, split]
        S.append(np.ascontiguousarray(s[:, kept]))
    z = relabel(seats.z, side, dense[name])
    return Seats(seats.first, z, n[kept], tuple(S))


def join(seats: Seats, a: int, b: int) -> Seats:
    """Seats with clusters a and b as one."""
    left, right = (tuple(S[:, [k]] for S in seats.S) for k in (a, b))
    pair = Weighed(seats.n[[a, b]][None], left, right, np.zeros(1))
    return carry_out(seats, np.array([[a, b]]), None, pair, np.array([True]))


def move_groups(
    seats: Seats, blocks: Sequence[Block], prior: Any, stream: Stream, n_launch: int, executor: Any
) -> tuple[Seats, Moves]:
    """One round of guided moves over all clusters."""
    groups, n_single, n_idle = draw_groups(seats.z, seats.n, stream.rng)
    if len(groups.clusters) == 0:
        return seats, Moves()
    proposer = Proposer(blocks, seats, groups, stream, executor)
    guide = proposer.launch(n_launch, LAUNCH_STAGE)
    division = proposer.divide(guide, LAUNCH_STAGE + n_launch, final=True)
    weighed = weigh(blocks, prior, seats, groups, division)
    accepted = decide(prior, seats.n, groups.merges, weighed.log_ratio, n_single, n_idle, stream.rng)
    moved = carry_out(seats, groups.clusters, division.side, weighed, accepted)
    return moved, Moves().plus(groups.merges, accepted)
