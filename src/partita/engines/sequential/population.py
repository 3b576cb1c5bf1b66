"""Many partial partitions at once, grown object by object: what beam search and the particle filter share.

A *hypothesis* is a partition of the objects seen so far. Hypotheses share their clusters: a cluster is a column of
statistics in one pool, so that a new object is scored once against every distinct cluster, however many hypotheses hold
it. Objects are added in one order, so a set of objects has one history: different hypotheses never become the same
partition, and each column corresponds to exactly one set of objects.

Each hypothesis has one child per cluster that the new object may join, and one in which it opens a cluster. The *rule*
determines which children are kept: the best (beam search, :mod:`partita.engines.sequential.beam`) or a draw that keeps
all expectations (the particle filter, :mod:`partita.engines.sequential.particles`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import generic, kernel, lacks
from partita.engines.passes.live import Live, add_row, clear_slot, erase, make_live, move_slot, score_row
from partita.families.contract import partly_seen
from partita.families.registry import Block
from partita.partitions import log_new_seat, log_seat

PRIME = 2**31 - 1  # keys are taken modulo this: their squares fit in 64 bits
STAYS, JOINED = 1, 2  # uses of a column: some child keeps it as it is, some child adds the object


class Population(NamedTuple):
    """Hypotheses over a pool of clusters; arrays are changed in place."""

    blocks: tuple[Live, ...]  # one column per cluster; column 0 is the empty one
    n: np.ndarray  # size of the cluster in each column
    columns: np.ndarray  # [hypothesis, slot] -> column, in the order in which the clusters were opened
    K: np.ndarray  # clusters of each hypothesis
    log_w: np.ndarray  # log weight (filter) or log joint (beam) of each hypothesis
    key: np.ndarray  # equal for hypotheses that differ by an exchange of equal rows (beam)
    column_key: np.ndarray
    counts: (
        np.ndarray
    )  # hypotheses, columns that may be in use, columns in use, most clusters of a hypothesis


class Children(NamedTuple):
    """All seats of the current object, in every hypothesis."""

    log_w: np.ndarray
    key: np.ndarray
    owner: np.ndarray  # hypothesis
    slot: np.ndarray


# ---- one object more -----------------------------------------------------------------------------------------


@generic
def keep(rule, lq, key, M, u, kept, log_w):
    """Which of the children with log weights ``lq[:M]`` live: fills ``kept`` and ``log_w``.

    Returns their number, and the log of the factor that was taken out of the weights.
    """


@kernel
def scramble(x):
    """A polynomial of degree eight modulo a prime: its sum over the clusters tells sets of clusters apart."""
    for _ in range(3):
        x = (x * x + 1_234_567_891) % PRIME
    return x


@kernel
def weigh_children(pool, prior, N, i, hashed, lp, mass, born):
    """Log weights of all seats of object i, the N-th to come, in all hypotheses; returns their number."""
    K, columns, top = pool.K, pool.columns, pool.counts[1]
    new_seat = np.full(columns.shape[1] + 1, np.nan)  # by the number of clusters: dear for some priors
    change = np.zeros(top, np.int64)  # of the key of a hypothesis when the object joins
    if hashed > 0:
        for c in range(top):
            change[c] = scramble((pool.column_key[c] + hashed) % PRIME) - scramble(pool.column_key[c])
    for c in range(1, top):
        lp[c] = log_seat(prior, pool.n[c])
        mass[c] = math.exp(lp[c])
    lp[0] = 0.0
    score_row(pool.blocks, i, top, lp)
    M = 0
    for p in range(pool.counts[0]):
        if math.isnan(new_seat[K[p]]):
            new_seat[K[p]] = log_new_seat(prior, N, K[p])
        new = new_seat[K[p]]
        total = math.exp(new)
        for h in range(K[p]):
            total += mass[columns[p, h]]
        base = pool.log_w[p] - math.log(total)
        for h in range(K[p] + (new > -np.inf)):
            c = columns[p, h] if h < K[p] else 0
            born.log_w[M] = base + lp[c] + (0.0 if h < K[p] else new)
            born.owner[M], born.slot[M] = p, h
            born.key[M] = (pool.key[p] + change[c]) % PRIME
            M += 1
    return M


@kernel
def fill_column(pool, source, target, i, hashed):
    """Column ``target`` becomes the cluster in ``source`` with object i added."""
    if source != target:
        move_slot(pool.blocks, source, target)
    add_row(pool.blocks, i, target, 1.0)
    pool.n[target] = pool.n[source] + 1.0
    pool.column_key[target] = (pool.column_key[source] + hashed) % PRIME


@kernel
def seat_children(pool, born, kept, m, i, hashed, fate, to):
    """Make the kept children the population: clusters that changed for some and not for others are copied."""
    K, columns, counts = pool.K, pool.columns, pool.counts
    fate[:] = 0
    fate[0] = STAYS
    for j in range(m):
        p, h = born.owner[kept[j]], born.slot[kept[j]]
        for g in range(K[p]):
            fate[columns[p, g]] |= JOINED if g == h else STAYS
        if h == K[p]:
            fate[0] |= JOINED
    free = 1
    for c in range(counts[1]):
        if fate[c] & JOINED:
            to[c] = c
            if fate[c] & STAYS:
                while fate[free] != 0:
                    free += 1
                to[c] = free
                fate[free] = STAYS
            fill_column(pool, c, to[c], i, hashed)
    parents, sizes = columns[: counts[0]].copy(), K[: counts[0]].copy()
    counts[0], counts[1], counts[2], counts[3] = m, 1, 0, 0
    for j in range(m):
        p, h = born.owner[kept[j]], born.slot[kept[j]]
        for g in range(sizes[p]):
            columns[j, g] = parents[p, g]
        columns[j, h] = to[parents[p, h] if h < sizes[p] else 0]
        K[j] = max(sizes[p], h + 1)
        pool.key[j] = born.key[kept[j]]
        counts[3] = max(counts[3], K[j])
    for c in range(fate.shape[0]):
        if fate[c] != 0:
            counts[1], counts[2] = c + 1, counts[2] + 1


@kernel
def advance(pool, rule, prior, rows, u, hashes, n_seen, start, parent, seat, gains):
    """Show ``rows[start:]`` to the population; returns where it had to stop for more columns or slots."""
    capacity, (W, slots) = pool.n.shape[0], pool.columns.shape
    lp, mass = np.zeros(capacity), np.zeros(capacity)
    fate, to, kept = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(W, np.int64)
    M = W * (slots + 1)
    born = Children(np.zeros(M), np.zeros(M, np.int64), np.zeros(M, np.int64), np.zeros(M, np.int64))
    clear_slot(pool.blocks, 0)
    for j in range(start, rows.shape[0]):
        if pool.counts[2] + W + 1 > capacity or pool.counts[3] + 1 > slots:
            return j
        i = rows[j]
        hashed = hashes[i] if hashes.shape[0] > 0 else 0
        M = weigh_children(pool, prior, float(n_seen + j + 1), i, hashed, lp, mass, born)
        m, gains[j] = keep(rule, born.log_w, born.key, M, u[j], kept, pool.log_w)
        for w in range(m):
            parent[j, w], seat[j, w] = born.owner[kept[w]], born.slot[kept[w]]
        seat_children(pool, born, kept, m, i, hashed, fate, to)
    return rows.shape[0]


# ---- the population ------------------------------------------------------------------------------------------


def populate(families: Sequence[Any], width: int) -> Population:
    """One hypothesis: nothing was seen."""
    capacity, slots = 2 * width + 16, 8
    blocks = tuple(make_live(family, None, capacity) for family in families)
    columns, K, key, column_key = (
        np.zeros(shape, np.int64) for shape in ((width, slots), width, width, capacity)
    )
    return Population(
        blocks, np.zeros(capacity), columns, K, np.zeros(width), key, column_key, np.array([1, 1, 1, 0])
    )


def widen(pool: Population) -> Population:
    """The same population with room for twice the clusters, in all and in each hypothesis."""

    def twice(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.zeros_like(array)], axis=-1)

    blocks = tuple(block._replace(S=twice(block.S), C=twice(block.C)) for block in pool.blocks)
    return pool._replace(
        blocks=blocks, n=twice(pool.n), columns=twice(pool.columns), column_key=twice(pool.column_key)
    )


def grow(
    pool: Population,
    rule: Any,
    prior: Any,
    blocks: Sequence[Block],
    rows: np.ndarray,
    u: np.ndarray,
    hashes: np.ndarray,
    n_seen: int,
) -> tuple[Population, np.ndarray, np.ndarray, np.ndarray]:
    """Show objects to a copy of the population: the new one, each survivor's parent and seat, and the gains."""
    check(blocks, prior)
    filled = [
        held._replace(data=block.data, S=held.S.copy(), C=held.C.copy())
        for held, block in zip(pool.blocks, blocks, strict=True)
    ]
    pool = Population(tuple(filled), *(array.copy() for array in pool[1:]))
    parent, seat = (np.zeros((len(rows), len(pool.K)), np.int32) for _ in range(2))
    gains, rows = np.zeros(len(rows)), np.ascontiguousarray(rows, dtype=np.int64)
    done, tail = 0, (parent, seat, gains)
    while done < len(rows):
        erased = pool._replace(blocks=erase(pool.blocks))
        done = advance(erased, rule, prior, rows, u, hashes, n_seen, done, *tail)
        if done < len(rows):
            pool = widen(pool)
    emptied = tuple(block._replace(data=None) for block in pool.blocks)
    return pool._replace(blocks=emptied), parent, seat, gains


def check(blocks: Sequence[Block], prior: Any) -> None:
    """Raise an error that names what a prior or the data lack for an engine that adds objects one by one."""
    if missing := lacks(type(prior), log_seat, log_new_seat):
        raise TypeError(
            f"{type(prior).__name__} has no {' and no '.join(f'{name}()' for name in missing)}: search and particles "
            "need an exchangeable prior (Dirichlet process, Pitman-Yor, mixture of finite mixtures, finite Dirichlet)"
        )
    for block in blocks:
        if partly_seen(block.family, block.data):
            raise ValueError(
                f"search and particles cannot complete partly observed vectors ({type(block.family).__name__}, columns "
                f"{', '.join(map(str, block.columns[:5]))}): use a family that reads single cells (gaussian, poisson), "
                "rows without missing values, or inference='vb'"
            )


def trace_labels(parent: np.ndarray, seat: np.ndarray, hypotheses: np.ndarray) -> np.ndarray:
    """Labels [hypothesis, object] of surviving hypotheses, by going back from child to parent."""
    Z, at = np.empty((len(hypotheses), len(seat)), np.int64), np.asarray(hypotheses)
    for j in range(len(seat) - 1, -1, -1):
        Z[:, j] = seat[j, at]
        at = parent[j, at]
    return Z
