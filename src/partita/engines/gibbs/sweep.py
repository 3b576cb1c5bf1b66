"""Collapsed Gibbs sampling: the cluster of one object at a time is drawn, given those of all others.

Parameters and weights are integrated out; only the partition is sampled. Each cluster has its column in an incremental
cache of log predictives (cluster axis last), of which a move touches only two columns, and in those only the entries
that the moved object has changed.

Clusters occupy *slots* 0 .. K-1 without gaps. An object's label is the *name* of its cluster; when a cluster becomes
empty the last slot moves into the gap and keeps its name, so no object is relabeled.

Good for: the full posterior of mixtures up to some 1e6 objects. Not for: many cores at once (it is sequential), or
splitting two clusters that it has merged: see the split-merge moves. Neal (2000), algorithm 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import generic, kernel
from partita.engines.gibbs.drawing import draw_slot, whole_blocks
from partita.engines.passes.live import (
    add_row,
    clear_slot,
    erase,
    make_live,
    move_slot,
    new_scores,
    rebuild,
    score_own_row,
    score_row,
)
from partita.families.registry import Block
from partita.partitions import log_mass, log_new_seat, log_seat

NO_LIMIT = 1 << 40  # of the number of clusters


class Seating(NamedTuple):
    """The cluster of every object; arrays are changed in place."""

    blocks: tuple[Any, ...]  # Live; with explicit parameters Placed (partita.engines.nonconjugate.neal8)
    z: np.ndarray  # name of each object's cluster
    n: np.ndarray  # size of each slot
    slot_of: np.ndarray  # name -> slot, -1: free
    name_of: np.ndarray  # slot -> name
    K: np.ndarray  # [1] occupied slots


@kernel
def log_opening(prior, N, K, limit):
    """Log weight of a new cluster beside K others; -inf beyond the limit."""
    return log_new_seat(prior, float(N), K) if limit > K else -math.inf


# Rare cases are kernels of their own: inlined, they would cost reference counting for every object.


@kernel
def leave(blocks, prior, z, n, slot_of, name_of, K, mass, i, k, limit):
    """Remove object i, which is alone in slot k, and close its cluster; returns -1, its new slot."""
    add_row(blocks, i, k, -1.0)
    close_slot(blocks, n, slot_of, name_of, K, k)
    mass[k] = mass[K[0]]
    mass[K[0]] = log_opening(prior, z.shape[0], K[0], limit)
    return -1


@generic(derived=True)
def weigh(blocks, prior, n, K, mass, i, k, lp, acc):
    """Log weights of all clusters for object i, now in slot k (-1: none), given the others, into ``lp[:K + 1]``."""
    for h in range(K[0] + 1):
        lp[h] = mass[h]
    score_row(blocks, i, K[0] + 1, lp)
    if k >= 0:
        acc[0], acc[1], acc[2] = 1.0, 1.0, log_seat(prior, n[k] - 1.0)
        score_own_row(blocks, i, k, acc)
        lp[k] = acc[2] + math.log(acc[0] / acc[1])


@kernel
def count_move(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit):
    """Count object i in its new slot and no longer in its old one (-1: none); the statistics are left as they are."""
    if old >= 0:
        n[old] -= 1.0
        mass[old] = log_seat(prior, n[old])
    if new == K[0]:
        open_slot(blocks, slot_of, name_of, K)
        mass[K[0]] = log_opening(prior, z.shape[0], K[0], limit)
    z[i] = name_of[new]
    n[new] += 1.0
    mass[new] = log_seat(prior, n[new])


@kernel
def take(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit):
    """Move object i from its old slot (-1: none) to another one, which may be the empty slot K."""
    if old >= 0:
        add_row(blocks, i, old, -1.0)
    count_move(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
    add_row(blocks, i, new, 1.0)


@kernel
def fill_mass(prior, n, K, N, mass, limit):
    """Log weights of the seats in each slot, and of the empty one."""
    for k in range(K[0]):
        mass[k] = log_seat(prior, n[k])
    mass[K[0]] = log_opening(prior, N, K[0], limit)


@kernel
def sweep(blocks, prior, z, n, slot_of, name_of, K, rows, u, start, limit):
    """Reseat objects ``rows[start:]``, each with its own uniform; returns where it had to stop for more slots."""
    capacity = n.shape[0]
    room = whole_blocks(capacity)
    lp, mass, acc, w = new_scores(blocks, room), np.empty(room), np.empty(3), np.empty(room)
    fill_mass(prior, n, K, z.shape[0], mass, limit)
    for j in range(start, rows.shape[0]):
        if K[0] + 1 >= capacity:
            return j
        i = rows[j]
        old = slot_of[z[i]]
        if n[old] == 1.0:
            old = leave(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, limit)
        weigh(blocks, prior, n, K, mass, i, old, lp, acc)
        new = draw_slot(lp, K[0] + 1, u[j], w, old)
        if new != old:
            take(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
    return rows.shape[0]


@kernel
def seat_weights(blocks, prior, z, n, slot_of, name_of, K, i, lp):
    """What ``sweep`` draws the seat of object i from (changes the seating if i sat alone: give it a copy).

    Returns the slot that i still occupies; -1 if it sat alone, in which case its cluster is closed already.
    """
    mass = np.empty(n.shape[0])
    fill_mass(prior, n, K, z.shape[0], mass, NO_LIMIT)
    k = slot_of[z[i]]
    if n[k] == 1.0:
        k = leave(blocks, prior, z, n, slot_of, name_of, K, mass, i, k, NO_LIMIT)
    weigh(blocks, prior, n, K, mass, i, k, lp, np.empty(3))
    return k


@generic(derived=True)
def weigh_fixed(blocks, prior, z, n, i, lp, acc):
    """As ``weigh``, for labels that are fixed; object i is taken out of the sizes ``n``."""
    k = z[i]
    n[k] -= 1.0
    log_mass(prior, n, n.shape[0], lp)
    acc[0], acc[1], acc[2] = 1.0, 1.0, lp[k]
    score_row(blocks, i, n.shape[0], lp)
    score_own_row(blocks, i, k, acc)
    lp[k] = acc[2] + math.log(acc[0] / acc[1])


@kernel
def sweep_fixed(blocks, prior, z, n, rows, u):
    """A sweep under a prior whose labels are fixed (stick-breaking): no cluster is opened, closed or renamed."""
    room = whole_blocks(n.shape[0])
    lp, acc, w = new_scores(blocks, room), np.empty(3), np.empty(room)
    for j in range(rows.shape[0]):
        i = rows[j]
        weigh_fixed(blocks, prior, z, n, i, lp, acc)
        old = z[i]
        new = draw_slot(lp, n.shape[0], u[j], w, old)
        n[new] += 1.0
        if new != old:
            add_row(blocks, i, old, -1.0)
            add_row(blocks, i, new, 1.0)
            z[i] = new


@kernel
def fixed_weights(blocks, prior, z, n, i, lp):
    """What ``sweep_fixed`` draws the label of object i from (changes the sizes: give it a copy)."""
    weigh_fixed(blocks, prior, z, n, i, lp, np.empty(3))


@kernel
def close_slot(blocks, n, slot_of, name_of, K, k):
    """Close the cluster in slot k, which is empty: the last slot moves into its place."""
    last = K[0] - 1
    slot_of[name_of[k]] = -1
    if k != last:
        move_slot(blocks, last, k)
        n[k] = n[last]
        name_of[k] = name_of[last]
        slot_of[name_of[k]] = k
    n[last] = 0.0
    clear_slot(blocks, last)
    K[0] = last


@kernel
def open_slot(blocks, slot_of, name_of, K):
    """The empty slot becomes a cluster under a free name, and the next slot the empty one."""
    name = 0
    while slot_of[name] >= 0:
        name += 1
    slot_of[name] = K[0]
    name_of[K[0]] = name
    K[0] += 1
    clear_slot(blocks, K[0])


def seat(
    blocks: Sequence[Block],
    z: np.ndarray,
    *,
    n_components: int | None = None,
    dtype: type = np.float64,
) -> Seating:
    """Seat objects by labels 0 .. K-1; with ``n_components`` the labels are fixed and need not all be used."""
    K = int(z.max()) + 1 if n_components is None else n_components
    capacity = (K + 16) // 8 * 8 if n_components is None else n_components
    names = np.full(capacity, -1)
    names[:K] = np.arange(K)
    live = (make_live(block.family, block.data, capacity, dtype) for block in blocks)
    seating = Seating(
        tuple(live),
        z.astype(np.int64),
        np.bincount(z, minlength=capacity).astype(float),
        names.copy(),
        names.copy(),
        np.array([K]),
    )
    rebuild(seating.blocks, seating.z)
    return seating


def grow(seating: Seating) -> Seating:
    """The same seating with twice the slots."""
    more = len(seating.n)

    def widen(array: np.ndarray, value: float = 0.0) -> np.ndarray:
        pad = [(0, 0)] * (array.ndim - 1) + [(0, more)]
        return np.pad(array, pad, constant_values=value)

    blocks = tuple(live._replace(S=widen(live.S), C=widen(live.C)) for live in seating.blocks)
    return seating._replace(
        blocks=blocks,
        n=widen(seating.n),
        slot_of=widen(seating.slot_of, -1),
        name_of=widen(seating.name_of, -1),
    )


def reseat(seating: Seating, prior: Any, rows: np.ndarray, u: np.ndarray, limit: int = NO_LIMIT) -> Seating:
    """One sweep over ``rows``, with more slots where they are needed and no more clusters than the limit."""
    if prior.fixed_labels:
        sweep_fixed(erase(seating.blocks), prior, seating.z, seating.n, rows, u)
        return seating
    done = 0
    while (done := sweep(erase(seating.blocks), prior, *seating[1:], rows, u, done, limit)) < len(rows):
        seating = grow(seating)
    return seating


def sizes(seating: Seating) -> np.ndarray:
    """Sizes of the clusters in use."""
    return seating.n[: seating.K[0]].copy()


def labels(seating: Seating) -> np.ndarray:
    """Slot of each object's cluster."""
    return seating.slot_of[seating.z]
