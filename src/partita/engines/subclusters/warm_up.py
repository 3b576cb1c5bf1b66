"""Merges for the warm-up of a sampler: they are fast, but do not leave the posterior invariant.

On the way from one cluster to many, a split often cuts a true cluster in two, and its parts remain when the other
clusters have been found. An exact merge of the parts needs the probability that a split proposes this cut, from
sub-clusters that do not depend on it. Their mismatch lowers the acceptance a little per object, so with more than some
ten thousand objects such a merge is almost never accepted. Here sub-clusters start from the present division. The
acceptance is then an estimate of the Bayes factor of one cluster against two, for any number of objects, but detailed
balance does not hold: such steps must not be counted as draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.gibbs import sweep
from partita.engines.gibbs.sweep import Seating
from partita.engines.subclusters.moves import (
    COIN,
    Groups,
    Moves,
    Proposer,
    Seats,
    Stream,
    join,
    log_apart,
    log_evidence,
    make_guide,
    merge_odds,
)
from partita.families.contract import expect
from partita.families.registry import Block
from partita.partitions import log_new_seat

MOST_JUDGED = 2
STAGE = 500  # of the random numbers, which nothing here depends on


def merge_pieces(
    seats: Seats, blocks: Sequence[Block], prior: Any, stream: Stream, executor: Any = None
) -> tuple[Seats, Moves]:
    """Merge pairs of clusters whose merge raises the posterior, the largest gain first.

    A cluster is merged once at most, and judged with a few others: a pass over both of them each time.
    """
    odds, moves = merge_odds(blocks, prior, seats), Moves()
    K, n_judged, merged = len(seats.n), np.zeros(len(seats.n)), []
    for pair in np.argsort(-odds, axis=None):
        a, b = divmod(int(pair), K)
        if not odds[a, b] > 0.0:
            break
        if max(n_judged[a], n_judged[b]) >= MOST_JUDGED:
            continue
        accepted = log_ratio_apart(seats, blocks, prior, a, b, stream, executor) < 0.0
        moves = moves.plus(np.array([True]), np.array([accepted]))
        n_judged[[a, b]] += MOST_JUDGED if accepted else 1
        if accepted:
            merged.append((a, b))
    # from the back, so that those to come keep their numbers
    for a, b in sorted(merged, key=lambda pair: -pair[1]):
        seats = join(seats, a, b)
    return seats, moves


def log_ratio_apart(
    seats: Seats, blocks: Sequence[Block], prior: Any, a: int, b: int, stream: Stream, executor: Any
) -> float:
    """Log Bayes factor of clusters a and b apart against together, all divisions of their objects taken together.

    That is posterior of this division over its probability given the parameters of its two sides.
    """
    groups = Groups(np.array([[a, b]]), np.zeros(0, np.int64), np.zeros(0, np.int64))
    left, right = ([S[:, [k]] for S in seats.S] for k in (a, b))
    n, m = seats.n[[a, b]]
    sides = (np.concatenate(pair, axis=1) for pair in zip(left, right, strict=True))
    thetas = [expect(block.family, S) for block, S in zip(blocks, sides, strict=True)]
    guide = make_guide(np.log([(n + COIN) / (m + COIN)]), thetas)
    log_q = Proposer(blocks, seats, groups, stream, executor).divide(guide, STAGE, final=True).log_q[0]
    both = [l + r for l, r in zip(left, right, strict=True)]
    evidence = (log_evidence(blocks, left) + log_evidence(blocks, right) - log_evidence(blocks, both))[0]
    log_prior = log_apart(prior, n, m) + log_new_seat(prior, float(seats.n.sum()), len(seats.n) - 1)
    return float(evidence + log_prior - log_q)


def merge_seated_pieces(seating: Seating, prior: Any, executor: Any = None) -> tuple[Seating, Moves]:
    """The same for the seats of a collapsed chain; under a prior with fixed labels there is nothing to do."""
    if prior.fixed_labels:
        return seating, Moves()
    blocks = [Block(live.family, live.data, ()) for live in seating.blocks]
    K, z = int(seating.K[0]), sweep.labels(seating).astype(np.int32)
    S = tuple(np.ascontiguousarray(live.S[:, :K]) for live in seating.blocks)
    seats = Seats(np.arange(len(z) + 1), z, sweep.sizes(seating), S)
    seats, moves = merge_pieces(seats, blocks, prior, Stream.of(0, 0), executor)
    if moves.merges_accepted:
        seating = sweep.seat(blocks, seats.z, dtype=seating.blocks[0].C.dtype.type)
    return seating, moves
