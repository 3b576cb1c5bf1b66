"""Gibbs sweeps over rows that repeat: what every cluster says of a row is worked out once for all of its copies.

Label matrices and surveys hold few distinct rows beside their objects. A sweep may visit objects in any order; here it
visits copies of a row one after the other. A move changes the weights of two clusters, so between two copies only those
are worked out again, and an object costs as much as its own cluster's weight without it. The draws are those of
:func:`partita.engines.gibbs.sweep` for the same order and the same uniforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.dispatch import each, kernel
from partita.engines.drawing import BLOCK, draw_slot, exponentials, sum_block, whole_blocks
from partita.engines.gibbs import (
    MANY,
    Live,
    Seating,
    fill_mass,
    grow,
    leave,
    score_own_row,
    score_row,
    take,
    weigh,
)
from partita.families.contract import cache_start, datum, n_columns, score
from partita.labels import signatures
from partita.partitions import log_seat

__all__ = ["Visits", "reseat_copies", "visits"]

FEWEST_ROWS = 2000  # below it nobody waits
MOST_DISTINCT = 0.5  # a larger share of distinct rows is not worth the order
LEAST, MOST = 1e-6, 1e6  # sums of weights outside are in the wrong unit: what counts may have been cut off


class Visits(NamedTuple):
    """The order of a sweep: rows, and the first copy of each (its data stand for all of them)."""

    rows: np.ndarray
    first: np.ndarray


def visits(blocks: Sequence[Live]) -> Visits | None:
    """An order that brings copies together; None where rows are few, or real, or hardly repeat.

    Examples
    --------
    >>> codes = np.arange(4000)[:, None] % 3
    >>> order = visits([Live(None, codes, *[np.empty((0, 0))] * 4)])
    >>> order.rows[:3], order.first[:3]
    (array([0, 3, 6]), array([0, 0, 0]))
    """
    tables = [live.data for live in blocks]
    if not all(isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "iu" for X in tables):
        return None
    if len(tables[0]) < FEWEST_ROWS:
        return None
    kind = np.column_stack([_row_kinds(X) for X in tables])
    found = signatures(kind)
    if len(found.weights) > MOST_DISTINCT * len(kind):
        return None
    rows = np.argsort(found.inverse, kind="stable")
    return Visits(rows, found.first[found.inverse[rows]])


def _row_kinds(X: np.ndarray) -> np.ndarray:
    return signatures(X).inverse


@each
def score_slot(block, i, k, out):
    """``out[0] += log predictive of object i in slot k``."""
    for d in range(n_columns(block.family)):
        c = block.C[cache_start(block.family, d) : cache_start(block.family, d + 1), k : k + 1]
        score(block.family, d, c, datum(block.family, block.data, i, d), 1, out)


@kernel
def weight_of_slot(blocks, mass, i, k, top, cell):
    """``exp(log weight of slot k - top)``, the object i counted where it is."""
    cell[0] = mass[k]
    score_slot(blocks, i, k, cell)
    return math.exp(cell[0] - top)


@kernel
def weigh_slots(blocks, mass, i, K, lp, w):
    """Weights of all seats of a row, none of its copies taken out, into ``w``; returns the log of their unit."""
    stop = whole_blocks(K + 1)
    for h in range(K + 1):
        lp[h] = mass[h]
    score_row(blocks, i, K + 1, lp)
    for h in range(K + 1, stop):
        lp[h] = -math.inf
    top = float(lp[0])
    for h in range(1, K + 1):
        top = max(top, float(lp[h]))
    exponentials(lp, top, stop, w)
    return top


@kernel
def sum_slots(w, n_slots):
    """Sum of the first weights; there are zeros up to a whole block of eight."""
    total = 0.0
    for b in range(0, whole_blocks(n_slots), BLOCK):
        total += sum_block(w, b)
    return total


@kernel
def draw_other(w, n_slots, left, without):
    """The slot where the running sum of the weights, one of them left out, passes ``left``."""
    last = max(without, 0)
    for k in range(n_slots):
        if k != without and w[k] > 0.0:
            left -= w[k]
            last = k
            if left < 0.0:
                break
    return last  # rounding may walk past the last seat that is possible


@kernel
def sweep_copies(blocks, prior, z, n, slot_of, name_of, K, rows, first, u, start, limit):
    """As ``gibbs.sweep``; ``first[j]`` is a row with the data of ``rows[j]``, the same for all copies."""
    capacity = n.shape[0]
    room = whole_blocks(capacity)
    lp, mass, acc, w = np.empty(room, blocks[0].C.dtype), np.empty(room), np.empty(3), np.empty(room)
    cell = np.empty(1, blocks[0].C.dtype)
    fill_mass(prior, n, K, z.shape[0], mass, limit)
    known, top = -1, 0.0  # the row that w holds the weights of, in units of exp(top)
    for j in range(start, rows.shape[0]):
        if K[0] + 1 >= capacity:
            return j
        i, copy = rows[j], first[j]
        old = slot_of[z[i]]
        if n[old] == 1.0:
            old = leave(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, limit)
            known = -1
        total = sum_slots(w, K[0] + 1) if known == copy else 0.0
        if not LEAST < total < MOST:
            known, top = copy, weigh_slots(blocks, mass, copy, K[0], lp, w)
            total = sum_slots(w, K[0] + 1)
        own, rest = 0.0, total
        if old >= 0:
            acc[0], acc[1], acc[2] = 1.0, 1.0, log_seat(prior, n[old] - 1.0)
            score_own_row(blocks, copy, old, acc)
            own, rest = math.exp(acc[2] + math.log(acc[0] / acc[1]) - top), max(total - w[old], 0.0)
        if rest + own < LEAST:  # the cluster owes its weight to the object itself: beside it all others drown
            weigh(blocks, prior, n, K, mass, copy, old, lp, acc)
            new, known = draw_slot(lp, K[0] + 1, u[j], w, old), -1
        else:
            left = u[j] * (rest + own) - own
            new = draw_other(w, K[0] + 1, left, old) if old < 0 or left >= 0.0 else old
        if new == old:
            continue
        opened = new == K[0]
        take(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
        if opened or old < 0:
            known = -1
        elif known == copy:
            w[old] = weight_of_slot(blocks, mass, copy, old, top, cell)
            w[new] = weight_of_slot(blocks, mass, copy, new, top, cell)
    return rows.shape[0]


def reseat_copies(seating: Seating, prior, order: Visits, u: np.ndarray, limit: int = MANY) -> Seating:
    """One sweep in the given order, with more slots where they are needed and no more clusters than the limit."""
    done = 0
    while (done := sweep_copies(*seating[:1], prior, *seating[1:], *order, u, done, limit)) < len(order.rows):
        seating = grow(seating)
    return seating
