"""Gibbs sweeps over duplicate rows: the weights of the clusters are computed once for all duplicates of a row.

Label matrices and surveys have few distinct rows in comparison with their number of objects. A sweep may visit objects
in any order; here it visits duplicates of a row one after the other. A move changes the weights of two clusters, so
only these are computed again between two duplicates. The cost per object is that of the weight of its own cluster
without the object. The draws are those of :func:`partita.engines.gibbs.sweep.sweep` for the same order and the same
uniforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.dispatch import kernel
from partita.engines.gibbs.drawing import BLOCK, draw_slot, exponentials, sum_block, whole_blocks
from partita.engines.gibbs.sweep import NO_LIMIT, Seating, fill_mass, grow, leave, take, weigh
from partita.engines.passes.live import (
    SINGLE_PORTS,
    Live,
    erase,
    new_scores,
    score_own_row,
    score_row,
    score_slot,
)
from partita.families.contract import datum, n_columns
from partita.labels import signatures
from partita.partitions import log_seat

MIN_ROWS = 3000  # smaller tables are swept row by row: the search for duplicates does not pay
MOST_DISTINCT = 0.5  # a larger share of distinct rows is not worth the order
PROBE, MOST_DISTINCT_PROBED = 20_000, 0.97  # of so many rows, before the copies in a large table are counted
# A sum of weights outside is in the wrong unit, and what counts may have been cut off: a cluster may owe its weight to
# the very object that is taken out, or have gathered so many copies since that it fits them far better.
LEAST, MOST = 1e-6, 1e6


class Visits(NamedTuple):
    """The order of a sweep: rows, and the first copy of each (its data stand for all of them)."""

    rows: np.ndarray
    first: np.ndarray


def visits(blocks: Sequence[Live]) -> Visits | None:
    """An order that brings copies together; None where rows are few, or real, or hardly repeat.

    Examples
    --------
    >>> from partita.families import Categorical
    >>> codes = np.arange(4000)[:, None] % 3
    >>> order = visits([Live(Categorical.default([3]), codes, *[np.empty((0, 0))] * 4)])
    >>> order.rows[:3], order.first[:3]
    (array([0, 3, 6]), array([0, 0, 0]))
    """
    tables = [live.data for live in blocks if n_columns(live.family)]
    if not tables or not all(_is_codes(live) for live in blocks if n_columns(live.family)):
        return None
    if len(tables[0]) < MIN_ROWS:
        return None
    if (
        len(tables[0]) > 4 * PROBE
        and _kinds([X[:: len(X) // PROBE] for X in tables]).share > MOST_DISTINCT_PROBED
    ):
        return None
    found = _kinds(tables)
    if found.share > MOST_DISTINCT:
        return None
    rows = np.argsort(found.inverse, kind="stable")
    return Visits(rows, found.first[found.inverse[rows]])


class _Kinds(NamedTuple):
    inverse: np.ndarray  # the distinct row that each row is
    first: np.ndarray  # the first copy of each distinct row
    share: float  # distinct rows over rows


def _kinds(tables: Sequence[np.ndarray]) -> _Kinds:
    """The distinct rows of tables side by side."""
    found = signatures(tables[0])
    if len(tables) > 1:
        found = signatures(np.column_stack([signatures(X).inverse for X in tables]))
    return _Kinds(found.inverse, found.first, len(found.first) / len(found.inverse))


def _is_codes(live: Live) -> bool:
    """Whether a block is a table of codes whose rows hold all that the family reads of an object."""
    X = live.data
    table = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "iu"
    return table and type(live.family) not in datum.table and X.min(initial=0) >= -1


@kernel
def bounded_exp(x):
    """The exponential, of no more than what a double holds."""
    return math.exp(min(x, 700.0))


@kernel
def weight_of_slot(singles, mass, i, k, top, cell):
    """``exp(log weight of slot k - top)``, with object i in its present cluster."""
    cell[0] = mass[k]
    score_slot(singles, i, k, cell)
    return bounded_exp(cell[0] - top)


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
    return last  # rounding may pass the last slot of positive weight


@kernel
def sweep_copies(blocks, singles, prior, z, n, slot_of, name_of, K, rows, first, u, start, limit):
    """As ``gibbs.sweep``; ``first[j]`` is a row with the data of ``rows[j]``, the same for all copies."""
    capacity = n.shape[0]
    room = whole_blocks(capacity)
    lp, mass, acc, w = new_scores(blocks, room), np.empty(room), np.empty(3), np.empty(room)
    cell = new_scores(blocks, 1)
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
        if known != copy:
            known, top = copy, weigh_slots(blocks, mass, copy, K[0], lp, w)
        kept, own = 0.0, 0.0
        if old >= 0:
            acc[0], acc[1], acc[2] = 1.0, 1.0, log_seat(prior, n[old] - 1.0)
            score_own_row(blocks, copy, old, acc)
            kept, own = w[old], bounded_exp(acc[2] + math.log(acc[0] / acc[1]) - top)
            w[old] = own
        total = sum_slots(w, K[0] + 1)
        if LEAST < total < MOST:
            left = u[j] * total - own
            new = old if old >= 0 and left < 0.0 else draw_other(w, K[0] + 1, left, old)
            if old >= 0:
                w[old] = kept
        else:
            weigh(blocks, prior, n, K, mass, copy, old, lp, acc)
            new, known = draw_slot(lp, K[0] + 1, u[j], w, old), -1
        if new == old:
            continue
        opened = new == K[0]
        take(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
        if opened or old < 0:
            known = -1
        elif known == copy:
            w[old] = weight_of_slot(singles, mass, copy, old, top, cell)
            w[new] = weight_of_slot(singles, mass, copy, new, top, cell)
    return rows.shape[0]


def reseat_copies(seating: Seating, prior, order: Visits, u: np.ndarray, limit: int = NO_LIMIT) -> Seating:
    """One sweep in the given order, with more slots where they are needed and no more clusters than the limit."""
    done = 0
    while done < len(order.rows):
        blocks, singles = erase(seating.blocks), SINGLE_PORTS.erase(seating.blocks)
        done = sweep_copies(blocks, singles, prior, *seating[1:], *order, u, done, limit)
        if done < len(order.rows):
            seating = grow(seating)
    return seating
