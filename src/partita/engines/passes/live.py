"""Blocks of a chain: the data of a family with the statistics and predictive caches of all clusters.

The functions of this module are ports (see :mod:`partita.erasure`): kernels call them on a tuple of blocks, plain or
erased. Clusters occupy *slots*, the columns of the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import generic, kernel
from partita.engines.passes.values import n_cache, n_stats
from partita.erasure import ErasedBlocks, Ports
from partita.families.contract import (
    cache_start,
    datum,
    fill_log_marginals,
    n_columns,
    observe,
    refresh,
    score,
    score_own,
    stats_start,
    touch,
)
from partita.families.rows import add_log_predictive, add_statistics, has_own_loop


class Live(NamedTuple):
    """A block with the statistics and predictive cache of its clusters, one column per slot."""

    family: Any
    data: Any
    S: np.ndarray
    C: np.ndarray
    S2: np.ndarray  # two columns for the moves that try a split
    C2: np.ndarray


class Slots(NamedTuple):
    """The fields of a block that are the same for all families."""

    S: np.ndarray
    C: np.ndarray
    S2: np.ndarray
    C2: np.ndarray


class ErasedLive(ErasedBlocks):
    """Blocks of a chain, erased."""


PORTS = Ports(ErasedLive, scores="C", tail=Slots)
erase = PORTS.erase
SCORING = ("refresh_slots", "score_row")  # ports of predictions


def make_live(
    family: Any, data: Any, capacity: int = 0, dtype: type = np.float64, *, S: np.ndarray | None = None
) -> Live:
    """A block with empty slots or with the statistics S, whose caches are still to be computed."""
    if S is None:
        S = np.zeros((n_stats(family), capacity))
    C: np.ndarray = np.zeros((n_cache(family), S.shape[1]), dtype)
    return Live(family, data, np.ascontiguousarray(S), C, np.zeros((len(S), 2)), np.zeros((len(C), 2), dtype))


def rebuild(blocks: Sequence[Live], slots: np.ndarray) -> None:
    """Statistics and caches of all slots from the slot of each object."""
    for live in blocks:
        live.S[:] = 0.0
        add_statistics(live.family, live.data, slots, live.S)
    refresh_caches(blocks)


def refresh_caches(blocks: Sequence[Live]) -> None:
    """Caches of all slots from their statistics."""
    if len(blocks):
        refresh_all(erase(blocks, SCORING), blocks[0].S.shape[1])


def score_rows(blocks: Sequence[Live], rows: np.ndarray, L: np.ndarray) -> None:
    """``L[j] += log predictive of row j in each slot``."""
    shared = []  # blocks whose families have no loop of their own
    for live in blocks:
        if has_own_loop(add_log_predictive, live.family):
            add_log_predictive(live.family, live.data, rows, live.C, L)
        else:
            shared.append(live)
    if shared:
        score_each(erase(shared, SCORING), rows, L)


@kernel
def score_each(blocks, rows, L):
    """``L[j] += log predictive of row j in each slot``."""
    for j in range(rows.shape[0]):
        score_row(blocks, rows[j], L.shape[1], L[j])


@kernel
def refresh_all(blocks, n_slots):
    """Compute the caches of the first slots."""
    refresh_slots(blocks, 0, n_slots)


@generic(derived=True)
def new_scores(blocks, size):
    """An array for the scores of the blocks, of the type of their caches."""
    return np.empty(size, blocks[0].C.dtype)


@new_scores.register(ErasedLive)
def _(blocks, size):
    return np.empty(size, blocks.like.dtype)


# ---- objects -------------------------------------------------------------------------------------------------


@PORTS.each("int int float")
def add_row(block, i, k, w):
    """Put an object into slot k (w = 1) or take it out (w = -1)."""
    for d in range(n_columns(block.family)):
        x = datum(block.family, block.data, i, d)
        s = block.S[stats_start(block.family, d) : stats_start(block.family, d + 1), k]
        c = block.C[cache_start(block.family, d) : cache_start(block.family, d + 1)]
        observe(block.family, d, s, x, w)
        touch(block.family, d, s, c, k, x)


@PORTS.each("int int scores")
def score_row(block, i, K, out):
    """``out[:K] += log predictive of object i in each slot``."""
    for d in range(n_columns(block.family)):
        c = block.C[cache_start(block.family, d) : cache_start(block.family, d + 1)]
        score(block.family, d, c, datum(block.family, block.data, i, d), K, out)


@PORTS.each("int int floats")
def score_own_row(block, i, k, acc):
    """``acc`` collects the log predictive of object i in its own slot, itself taken out."""
    for d in range(n_columns(block.family)):
        s = block.S[stats_start(block.family, d) : stats_start(block.family, d + 1), k]
        c = block.C[cache_start(block.family, d) : cache_start(block.family, d + 1)]
        score_own(block.family, d, s, c, k, datum(block.family, block.data, i, d), acc)
        if acc[0] < 1e-200 or acc[1] > 1e200:
            acc[2] += math.log(acc[0]) - math.log(acc[1])
            acc[0], acc[1] = 1.0, 1.0


# ---- slots ---------------------------------------------------------------------------------------------------


@PORTS.each("int int", tail=True)
def move_slot(block, source, target):
    """Copy a slot onto another."""
    for e in range(block.S.shape[0]):
        block.S[e, target] = block.S[e, source]
    for e in range(block.C.shape[0]):
        block.C[e, target] = block.C[e, source]


@PORTS.each("int", tail=True)
def drop_statistics(block, k):
    """Set the statistics of a slot to zero."""
    for e in range(block.S.shape[0]):
        block.S[e, k] = 0.0


@PORTS.each("int int")
def refresh_slots(block, first, stop):
    """Compute the caches of some slots from their statistics."""
    for d in range(n_columns(block.family)):
        s = block.S[stats_start(block.family, d) : stats_start(block.family, d + 1)]
        c = block.C[cache_start(block.family, d) : cache_start(block.family, d + 1)]
        for k in range(first, stop):
            refresh(block.family, d, s[:, k], c, k)


@kernel
def clear_slot(blocks, k):
    """Make a slot empty: no data, the prior predictive."""
    drop_statistics(blocks, k)
    refresh_slots(blocks, k, k + 1)


# ---- the two sides of a split --------------------------------------------------------------------------------


def sides_of(blocks: Sequence[Live]) -> tuple[Live, ...]:
    """The blocks with the two sides of a split that is tried in place of the clusters."""
    return tuple(live._replace(S=live.S2, C=live.C2) for live in blocks)


@PORTS.each("floats")
def add_side_log_marginals(block, out):
    """``out += log marginals of the left side, of the right side, and of both as one cluster``."""
    n, D = block.S2.shape[0], n_columns(block.family)
    sides, cells = np.empty((n, 3)), np.empty((D, 3))
    for e in range(n):
        sides[e, 0], sides[e, 1] = block.S2[e, 0], block.S2[e, 1]
        sides[e, 2] = block.S2[e, 0] + block.S2[e, 1]
    fill_log_marginals(block.family, sides, cells)
    for d in range(D):
        for side in range(3):
            out[side] += cells[d, side]


@PORTS.each("int int", tail=True)
def copy_to_side(block, k, side):
    """The left (0) or right side (1) gets the statistics of slot k; its cache is left as it was."""
    for e in range(block.S.shape[0]):
        block.S2[e, side] = block.S[e, k]


@PORTS.each("int int", tail=True)
def take_statistics(block, side, k):
    """Slot k gets the statistics of the left side (0), of the right side (1) or of both together (2)."""
    for e in range(block.S.shape[0]):
        block.S[e, k] = block.S2[e, side] if side < 2 else block.S2[e, 0] + block.S2[e, 1]


@kernel
def adopt_side(blocks, side, k):
    """Slot k becomes the left side (0), the right side (1) or both together (2)."""
    take_statistics(blocks, side, k)
    refresh_slots(blocks, k, k + 1)


# ---- a single slot, for duplicate rows -----------------------------------------------------------------------


class ErasedSingle(ErasedBlocks):
    """Blocks of a chain, erased, whose functions look at one slot only."""


SINGLE_PORTS = Ports(ErasedSingle, scores="C")


@SINGLE_PORTS.each("int int scores")
def score_slot(block, i, k, out):
    """``out[0] += log predictive of object i in slot k``."""
    for d in range(n_columns(block.family)):
        c = block.C[cache_start(block.family, d) : cache_start(block.family, d + 1), k : k + 1]
        score(block.family, d, c, datum(block.family, block.data, i, d), 1, out)
