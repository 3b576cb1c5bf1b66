"""Sub-cluster split-merge sampling: every step is a map over blocks of rows and a sum of their statistics.

Given weights and parameters of the clusters, labels are independent, so all objects are assigned at once on any number
of cores. This step alone can neither open nor close a cluster; splits into sub-clusters and merges of pairs do that
(:mod:`partita.engines.subclusters.moves`).

The sampler is exact for the Dirichlet process, Pitman-Yor, finite Dirichlet and mixture of finite mixtures (every prior
of Gibbs type). It differs from Chang and Fisher (2013) in three points, so it samples the exact posterior, also for
few objects:

- their restricted sweep may empty a cluster but never opens one, so clusters are lost. Here each cluster has a
  *keeper*, a randomly drawn object that stays in it during the sweep;
- their sub-clusters are kept from sweep to sweep. The probability of a split then depends on the past of the chain, and
  no merge balances it. Here sub-clusters are sampled anew for each proposal, from two anchors and in a few passes, and
  the probability of the proposal is in the Hastings ratio;
- their random merges take any two clusters; here promising pairs are preferred, and the Hastings ratio accounts for
  this.

Good for: the posterior of mixtures of 1e4 objects and more, on many cores, from a single starting cluster. Not for:
a few hundred objects, or many singletons, where collapsed Gibbs mixes better. Partly observed vectors must be completed
by the caller. Chang and Fisher (2013), NIPS 26; Jain and Neal (2004), JCGS 13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln

from partita.dispatch import kernel, lacks
from partita.engines.passes.device_rows import DEVICE_DATA
from partita.engines.passes.replicates import also_on_device, any_partly_seen, map_replicates
from partita.engines.passes.rows import Parameters, log_joint_rows
from partita.engines.subclusters import device_passes
from partita.engines.subclusters.moves import (
    COIN,
    Division,
    Groups,
    Moves,
    Proposer,
    Seats,
    Stream,
    Weighed,
    carry_out,
    count_copies,
    draw_members,
    join,
    log_apart,
    log_evidence,
    merge_odds,
    move_groups,
    uniforms,
)
from partita.engines.subclusters.seat_labels import blank, draw_crowd, labels_at
from partita.engines.subclusters.warm_up import merge_pieces
from partita.execution.device import device_of, is_on_device, namespace, to_device
from partita.execution.device_labels import count_labels
from partita.execution.weights import are_ones
from partita.families.contract import draw
from partita.families.registry import Block
from partita.partitions import log_eppf, log_new_seat
from partita.partitions.gibbs_type import seat_discount

SEATING_STAGE, PAIR_STAGE = 1, 1000  # which random numbers of an iteration are whose
PAIR_SPLIT_SHARE = 0.1  # the moves of one pair are there for their merges
CROWD_SHARE, CROWD_SIZE = 0.15, 600.0  # how many of the objects are anchors in a crowd: a share, and at most
CROWD_LAUNCH = 3  # passes to follow it
UNPROMISING = 10.0  # log odds at which a merge is proposed as rarely as any


class SubclusterState(NamedTuple):
    """The seats, where in the stream of random numbers the chain stands, and what the last step did."""

    seats: Seats
    key: int
    iteration: int
    moves: Moves

    @property
    def labels(self) -> np.ndarray:
        """Cluster of each copy: of each row, where all weights are 1."""
        return self.seats.z

    @property
    def n(self) -> np.ndarray:
        """Sizes of the clusters."""
        return self.seats.n


def init(
    blocks: Sequence[Block],
    weights: np.ndarray,
    prior: Any,
    rng: np.random.Generator,
    *,
    labels: np.ndarray | None = None,
    executor: Any = None,
) -> SubclusterState:
    """Start from one cluster, or from given labels 0 .. K-1 of the copies.

    Parameters
    ----------
    blocks : sequence of Block
        Families and data.
    weights : ndarray of shape (rows,)
        How often each row occurs: whole numbers. A row of weight w is w objects, scored once and seated one by one.
    prior : partition prior
        Any of Gibbs type.
    rng : Generator
        Gives the key of all random numbers of the chain, and nothing else.
    labels : ndarray of shape (sum of weights,), optional
        Of the copies: first those of row 0, then those of row 1.
    executor : Executor, optional
        Where the passes run.

    Examples
    --------
    >>> from partita.families import Block, GaussianDiagonal
    >>> from partita.partitions import DirichletProcess
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) * 0.1 + np.repeat([[-1.0], [1.0]], 30, axis=0)
    >>> blocks, prior = [Block(GaussianDiagonal.default(1), X, ("a",))], DirichletProcess(1.0)
    >>> state = init(blocks, np.ones(60, int), prior, np.random.default_rng(0))
    >>> for _ in range(20):
    ...     state = step(state, blocks, prior)
    >>> int(state.n.sum()), len(set(state.labels[:30]) & set(state.labels[30:]))
    (60, 0)
    """
    check(blocks, weights, prior)
    first, z, K = _first_seats(blocks, weights, labels)
    n, *S = map_replicates(count_seated, K, blocks, first, z, executor)
    seats = Seats(first, z, n, tuple(np.ascontiguousarray(s.T) for s in S))
    return SubclusterState(seats, int(rng.integers(2**63)), 0, Moves())


def _first_seats(blocks: Sequence[Block], weights: np.ndarray, labels: Any) -> tuple[Any, Any, int]:
    """The first copy of each row, the labels of all copies, and their number."""
    data = blocks[0].data
    if isinstance(data, DEVICE_DATA):
        if not are_ones(weights):
            raise ValueError(
                "on a device every row is one object: leave sample_weight out, or move the table to the host"
            )
        xp = namespace(data.values)
        if labels is None:
            return None, xp.zeros(data.n_rows, dtype=xp.int32, device=device_of(data.values)), 1
        if is_on_device(labels):
            z = xp.astype(labels, xp.int32)
        else:
            z = to_device(labels.astype(np.int32), data.values, xp.int32)
        K = int(xp.max(z)) + 1
        _check_labels(int(z.shape[0]), data.n_rows, int(xp.min(z)), count_labels(z, K))
        return None, z, K
    first = np.concatenate([[0], np.cumsum(np.asarray(weights).astype(np.int64))])
    z = np.zeros(first[-1], np.int32) if labels is None else np.asarray(labels).astype(np.int32)
    least = int(z.min())
    _check_labels(len(z), int(first[-1]), least, np.bincount(z) if least >= 0 else np.zeros(0))
    return first, z, int(z.max()) + 1


def _check_labels(n_labels: int, n_copies: int, least: int, sizes: np.ndarray) -> None:
    if n_labels != n_copies:
        raise ValueError(
            f"there are {n_labels} labels for {n_copies} objects: give one for each copy of a row"
        )
    if least < 0 or not sizes.all():
        raise ValueError("labels must be 0 to K-1, each of them in use: make them canonical first")


@also_on_device(device_passes.count_seated, device_passes.count_at_once)
def count_seated(blocks: Sequence[Block], rows: np.ndarray, copies: np.ndarray, z: np.ndarray, K: int) -> Any:
    """Sizes and statistics of the clusters."""
    return None, count_copies(blocks, rows, copies - copies[0], z, K)


def check(blocks: Sequence[Block], weights: np.ndarray, prior: Any) -> None:
    """Refuse what this sampler cannot do."""
    if lacks(type(prior), seat_discount):
        raise TypeError(
            f"the sub-cluster sampler cannot use {type(prior).__name__}: take a Dirichlet process, Pitman-Yor, "
            "a finite Dirichlet or a mixture of finite mixtures"
        )
    weights = np.asarray(weights)
    if not are_ones(weights) and not (
        np.all(weights >= 0) and np.all(weights == np.floor(weights)) and weights.sum() > 0
    ):
        raise ValueError(
            "weights must be whole numbers, not all zero: a chain seats objects, not parts of them"
        )
    for name in any_partly_seen(blocks):
        raise ValueError(
            f"{name} has partly observed vectors, which have no conjugate update: complete them first, or use a family "
            "that reads each column by itself"
        )


def step(
    state: SubclusterState,
    blocks: Sequence[Block],
    prior: Any,
    executor: Any = None,
    *,
    n_launch: int = 4,
    n_coins: int = 10,
    n_crowds: int = 2,
    warm_up: bool = False,
) -> SubclusterState:
    """Seat all objects given weights and parameters, then splits and merges.

    A function of its arguments: random numbers depend on the key, the iteration and the place of an object. The prior
    may change from step to step (bind a mixture of finite mixtures to the number of objects for speed).

    Parameters
    ----------
    state : SubclusterState
        Of :func:`init` or of the step before.
    blocks, prior, executor
        As in :func:`init`.
    n_launch : int
        Passes that sub-clusters are given to find a good split.
    n_coins, n_crowds : int
        Merges of promising pairs (and, one time in ten, splits), proposed by coins (which costs next to nothing) and
        by crowds (which costs four passes over two clusters).
    warm_up : bool
        Merge whatever is better as one, instead: the posterior is found faster, above all by many objects, but such
        steps do not leave it invariant. For the steps before the first draw (:mod:`.warm_up`).
    """
    stream = Stream.of(state.key, state.iteration)
    seats = reseat(state.seats, blocks, prior, stream, executor)
    seats, moves = move_groups(seats, blocks, prior, stream, n_launch, executor)
    if warm_up:
        seats, more = merge_pieces(seats, blocks, prior, stream, executor)
        return SubclusterState(seats, state.key, state.iteration + 1, moves.and_also(more))
    # the number of moves is fixed: one that depended on the clusters would bend the posterior
    seats, more = move_pairs(seats, blocks, prior, stream, (n_coins, n_crowds), executor)
    return SubclusterState(seats, state.key, state.iteration + 1, moves.and_also(more))


# ---- seats given weights and parameters --------------------------------------------------------------------


def reseat(before: Seats, blocks: Sequence[Block], prior: Any, stream: Stream, executor: Any) -> Seats:
    """Draw weights and parameters given the labels, then all labels but the keepers' given those."""
    keepers = draw_members(before.z, before.n, 1, stream.rng)[:, 0]
    parameters = Parameters(
        draw_log_weights_beside_keepers(prior, before.n, stream.rng),
        tuple(draw(block.family, S, stream.rng) for block, S in zip(blocks, before.S, strict=True)),
    )
    z = blank(before.z, "int32")

    about = (parameters, np.sort(keepers), (stream.key, stream.iteration, SEATING_STAGE))
    n, *S = map_replicates(seat_rows, about, blocks, before.first, before.z, executor, z)
    return Seats(before.first, z, n, tuple(np.ascontiguousarray(s.T) for s in S))


@also_on_device(device_passes.seat_rows, device_passes.seat_at_once)
def seat_rows(
    blocks: Sequence[Block], rows: np.ndarray, copies: np.ndarray, before: np.ndarray, about: Any
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Seats of some rows' copies given parameters, those of the keepers as before; sizes and statistics."""
    parameters, keepers, (key, iteration, stage) = about
    lo, hi = copies[0], copies[-1]
    z = np.empty(hi - lo, np.int32)
    L = log_joint_rows(blocks, parameters, rows)
    seat_copies(L, copies - lo, uniforms(key, iteration, stage, lo, hi), z)
    inside = keepers[slice(*np.searchsorted(keepers, [lo, hi]))] - lo
    z[inside] = before[inside]
    return z, count_copies(blocks, rows, copies - lo, z, len(parameters.log_weights))


def draw_log_weights_beside_keepers(prior: Any, n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log weights, up to a constant, given sizes and that each cluster has a keeper.

    A keeper is one of n_k members, so labels and keepers together have ``Gamma(n_k - sigma) / n_k`` where labels alone
    have ``Gamma(n_k - sigma)``: the integral of ``(g b)^(n_k - 1)`` over a gamma variable g and a uniform b. Given the
    sizes, g is Gamma(n_k - sigma) and b is Beta(n_k, 1); given both, the other members choose by ``g_k b_k``.
    """
    shape = n - seat_discount(prior)
    log_gamma = np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(len(n)) / shape
    return log_gamma - rng.standard_exponential(len(n)) / n


@kernel
def seat_copies(L, first, u, z):
    """Draw the cluster of every copy from the log joints of its row; equal chances where all are -inf."""
    N, K = L.shape
    for j in range(N):
        p = L[j]
        top = -np.inf
        for k in range(K):
            top = max(top, p[k])
        total = 0.0
        for k in range(K):
            total += math.exp(p[k] - top) if top > -np.inf else 1.0
            p[k] = total
        for e in range(first[j], first[j + 1]):
            goal = u[e] * total
            k = 0
            while k < K - 1 and p[k] <= goal:
                k += 1
            z[e] = k


# ---- moves of one pair ---------------------------------------------------------------------------------------
# From two anchors, sub-clusters rarely hit upon the division of two clusters that ought to be one, so the moves of
# groups seldom merge them. Two more proposals give such merges a reverse that is not too improbable:
# - *coins*: sides by coins of one random bias, whose probability has a closed form: merges clusters that overlap;
# - *crowds*: sub-clusters that start from many anchors: merges the halves of a cluster that was cut.


def move_pairs(
    seats: Seats,
    blocks: Sequence[Block],
    prior: Any,
    stream: Stream,
    turns: tuple[int, int],
    executor: Any,
) -> tuple[Seats, Moves]:
    """Proposals by coins, then by crowds: each to merge a promising pair, or else to split a random cluster."""
    rng, moves = stream.rng, Moves()
    log_p = log_pairs(blocks, prior, seats)
    for turn in range(sum(turns)):
        K, merge, crowd = len(seats.n), bool(rng.random() >= PAIR_SPLIT_SHARE), turn >= turns[0]
        if merge and K == 1:
            continue
        stage = PAIR_STAGE + turn * (CROWD_LAUNCH + 2)
        if merge:
            k, other = divmod(int(rng.choice(K * K, p=np.exp(log_p).ravel())), K)
        else:
            k, other = int(rng.integers(K)), K
        divided, log_q = seats, None
        if crowd:
            divided, log_q = follow(seats, blocks, k, other, stream, stage, executor)
        elif not merge:
            divided = toss(seats, blocks, k, stream, stage, executor)
        log_ratio = -math.inf  # of an empty side
        if divided.n[[k, other]].min() > 0.0:
            log_p_apart = log_p if merge else log_pairs(blocks, prior, divided)
            log_ratio = weigh_pair(divided, blocks, prior, k, other, log_p_apart[k, other], log_q)
        accepted = math.log(rng.random()) < (-log_ratio if merge else log_ratio)
        if accepted:
            seats = join(seats, k, other) if merge else divided
            log_p = log_pairs(blocks, prior, seats)
        moves = moves.plus(np.array([merge]), np.array([accepted]))
    return seats, moves


def log_pairs(blocks: Sequence[Block], prior: Any, seats: Seats) -> np.ndarray:
    """Log probability that each pair is the one that a merge is proposed for (k before the other; -inf elsewhere).

    In proportion to the posterior odds of the merge, but no pair is out of the question, and one that is better than
    even is as good as any other such.
    """
    odds = merge_odds(blocks, prior, seats)
    log_p = np.where(odds > -np.inf, np.clip(odds, -UNPROMISING, 0.0), -np.inf)
    return log_p - np.logaddexp.reduce(log_p, axis=None) if len(seats.n) > 1 else log_p


def log_coins(n: float, m: float) -> float:
    """Log probability that n given objects fall left and m right, by coins of one random bias."""
    return float(betaln(n + COIN, m + COIN) - betaln(COIN, COIN))


def weigh_pair(
    divided: Seats, blocks: Sequence[Block], prior: Any, a: int, b: int, log_pair: float, log_q: float | None
) -> float:
    """Log Hastings ratio of clusters a and b apart against together.

    ``log_pair`` is the log probability to propose their merge, ``log_q`` that to propose their sides (by coins, if
    none is given).
    """
    N, K = float(divided.n.sum()), len(divided.n) - 1  # K clusters when together
    n, m = divided.n[[a, b]]
    left, right = ([np.ascontiguousarray(S[:, [k]]) for S in divided.S] for k in (a, b))
    both = [l + r for l, r in zip(left, right, strict=True)]
    posterior = (log_evidence(blocks, left) + log_evidence(blocks, right) - log_evidence(blocks, both))[0]
    posterior += log_apart(prior, n, m) + log_new_seat(prior, N, K)
    # halved, because a merge does not say which of the two is left, and a split does
    log_merge = math.log1p(-PAIR_SPLIT_SHARE) + log_pair - math.log(2.0)
    log_split = math.log(PAIR_SPLIT_SHARE) - math.log(K) + (log_coins(n, m) if log_q is None else log_q)
    return float(posterior + log_merge - log_split)


def toss(seats: Seats, blocks: Sequence[Block], k: int, stream: Stream, stage: int, executor: Any) -> Seats:
    """Seats with cluster k divided by coins of one random bias."""
    side = blank(seats.z, "int8")
    about = (k, stream.rng.beta(COIN, COIN), (stream.key, stream.iteration, stage))
    n, *S = map_replicates(toss_copies, about, blocks, seats.first, seats.z, executor, side)
    return divide_cluster(seats, k, Division(side, n.reshape(1, 2), tuple(S), np.zeros(1)))


@also_on_device(device_passes.toss_copies, device_passes.toss_at_once)
def toss_copies(
    blocks: Sequence[Block], rows: np.ndarray, copies: np.ndarray, z: np.ndarray, about: Any
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Sides of those of some rows' copies that are in the cluster; sizes and statistics of both sides."""
    k, bias, (key, iteration, stage) = about
    lo, hi = copies[0], copies[-1]
    member = z == k
    side = (member & (uniforms(key, iteration, stage, lo, hi) < bias)).astype(np.int8)
    label = np.where(member, side, -1).astype(np.int64)
    return side, count_copies(blocks, rows, copies - lo, label, 2)


def follow(
    seats: Seats, blocks: Sequence[Block], k: int, other: int, stream: Stream, stage: int, executor: Any
) -> tuple[Seats, float]:
    """Seats with k and other apart, and the log probability of their sides under sub-clusters that follow a crowd.

    If other is the number of clusters, k is split: its crowd takes sides by coins, the rest by the sub-clusters.
    """
    split = other == len(seats.n)
    crowd = draw_crowd(seats.z, k, other, CROWD_SIZE, CROWD_SHARE, stream, stage)
    bias = stream.rng.beta(COIN, COIN)
    right = stream.rng.random(len(crowd)) < bias if split else labels_at(seats.z, crowd) == other
    groups = Groups(np.array([[k, k if split else other]]), crowd, right.astype(np.int64))
    proposer = Proposer(blocks, seats, groups, stream, executor)
    guide = proposer.launch(CROWD_LAUNCH, stage + 1, drawn=False)
    division = proposer.divide(guide, stage + 1 + CROWD_LAUNCH, final=True)
    log_q = float(division.log_q[0]) + log_coins(float(np.sum(~right)), float(np.sum(right)))
    return (divide_cluster(seats, k, division) if split else seats), log_q


def divide_cluster(seats: Seats, k: int, division: Division) -> Seats:
    """Seats with the right side of cluster k as a new last cluster, maybe an empty one."""
    left, right = (tuple(S[[side]].T for S in division.S) for side in (0, 1))
    parts = Weighed(division.n, left, right, np.zeros(1))
    return carry_out(seats, np.array([[k, k]]), division.side, parts, np.array([True]))


# ---- what people ask of a state ----------------------------------------------------------------------------


def log_joint(state: SubclusterState, blocks: Sequence[Block], prior: Any) -> float:
    """Log probability of data and partition, weights and parameters integrated out."""
    return float(log_eppf(prior, state.n, len(state.n)) + log_evidence(blocks, state.seats.S).sum())


def counts(state: SubclusterState) -> np.ndarray:
    """How many copies of each row sit in each cluster, [row, cluster]."""
    first = state.seats.first
    rows = np.repeat(np.arange(len(first) - 1), np.diff(first))
    out = np.zeros((len(first) - 1, len(state.n)), np.int64)
    np.add.at(out, (rows, state.labels), 1)
    return out
