"""Blocks of a relation: rows and columns are clustered at once, and every pair of clusters has its own parameters.

The statistics of all cells of a block are one entry ``S[a, b]`` of a grid: cluster a of the side that is being seated,
cluster b of the other side. To seat one object its cells are first summed by the other side's clusters; after that
every seat costs one log marginal a block, however long the rows are. The column side is the same kernel on the
transposed grid. A *square* relation has one partition for both sides: an object then brings a row, a column and the
cell it has with itself.

Cells are read as rows of a long table, (row, column) by (row, column), whose columns are the relations: so every
conjugate family that reads single cells will do, and several relations over the same objects are several columns.

Good for: relations and tables whose cells are all of one kind. Not for: columns of different kinds (a mixture, or
views, give each column its own parameters). Kemp, Tenenbaum, Griffiths, Yamada and Ueda (2006).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import kernel
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.engines.passes.rows import n_stats
from partita.families.contract import datum, log_marginal, n_columns, observe, stats_start
from partita.families.data import take
from partita.families.rows import add_statistics, log_marginals
from partita.partitions import log_eppf, log_new_seat, log_seat

__all__ = [
    "DIRECTED",
    "TABLE",
    "UNDIRECTED",
    "Grid",
    "Side",
    "block_statistics",
    "cell_clusters",
    "log_joint",
    "make_grid",
    "rebuild",
    "seat_objects",
    "sizes",
]

TABLE, DIRECTED, UNDIRECTED = range(
    3
)  # two sides; one partition, x[i, j] and x[j, i] apart; one and the same cell
ROOM = 16  # slots beyond those in use


class Side(NamedTuple):
    """The partition of one side; arrays are changed in place."""

    z: np.ndarray  # slot of each object, -1: not seated
    n: np.ndarray  # size of each slot
    K: np.ndarray  # [1] occupied slots, which are the first ones


class Grid(NamedTuple):
    """A relation in blocks. ``S`` and ``L`` lie with the slots of the first side first."""

    mode: int
    family: Any
    cells: tuple[Any, ...]  # the data, row by row; for a table column by column too
    sides: tuple[Side, ...]  # rows and columns, or the one partition of a square relation
    S: np.ndarray  # [slot, slot of the other side, statistic]
    L: np.ndarray  # [slot, slot of the other side] log marginal of each block


# ---- the kernel: seat objects of one side ------------------------------------------------------------------------


@kernel
def block_log_marginal(lik, s):
    """Log marginal of the cells of one block, relations summed."""
    out = 0.0
    for m in range(n_columns(lik)):
        out += log_marginal(lik, m, s[stats_start(lik, m) : stats_start(lik, m + 1)])
    return out


@kernel
def gather(lik, data, mode, i, y, r, c, own):
    """Sum the cells of object i by the clusters ``y`` of the other side: ``r`` its row, ``c`` its column.

    In a square relation the cell that i has with itself goes to ``own``; ``c`` stays empty where direction counts for
    nothing. Objects that have no seat are left out.
    """
    r[:, :] = 0.0
    c[:, :] = 0.0
    own[:] = 0.0
    D = y.shape[0]
    for m in range(n_columns(lik)):
        lo, hi = stats_start(lik, m), stats_start(lik, m + 1)
        for j in range(D):
            if mode > 0 and j == i:
                observe(lik, m, own[lo:hi], datum(lik, data, i * D + i, m), 1.0)
            elif y[j] >= 0:
                observe(lik, m, r[y[j], lo:hi], datum(lik, data, i * D + j, m), 1.0)
                if mode == 1:
                    observe(lik, m, c[y[j], lo:hi], datum(lik, data, j * D + i, m), 1.0)


@kernel
def gain(lik, S, L, a, b, s, scratch):
    """Log predictive of more cells with statistics ``s`` in block (a, b)."""
    seen = False
    for e in range(s.shape[0]):
        seen = seen or s[e] != 0.0
        scratch[e] = S[a, b, e] + s[e]
    return block_log_marginal(lik, scratch) - L[a, b] if seen else 0.0


@kernel
def put(lik, mode, S, L, a, J, r, c, own, w):
    """Add what ``gather`` found to the blocks of slot a (w = 1), or take it away (w = -1)."""
    for b in range(J):
        if mode > 0 and b == a:
            continue
        for e in range(own.shape[0]):
            S[a, b, e] += w * r[b, e]
        L[a, b] = block_log_marginal(lik, S[a, b])
        if mode == 1:
            for e in range(own.shape[0]):
                S[b, a, e] += w * c[b, e]
            L[b, a] = block_log_marginal(lik, S[b, a])
        elif mode == 2:
            S[b, a, :] = S[a, b]
            L[b, a] = L[a, b]
    if mode > 0:
        for e in range(own.shape[0]):
            S[a, a, e] += w * (r[a, e] + c[a, e] + own[e])
        L[a, a] = block_log_marginal(lik, S[a, a])


@kernel
def close(mode, z, n, K, S, L, k):
    """Slot k has lost its last object: the last slot moves into its place."""
    last = K[0] - 1
    if k != last:
        S[k, :, :] = S[last]
        L[k, :] = L[last]
        n[k] = n[last]
        if mode > 0:
            S[:, k, :] = S[:, last]
            L[:, k] = L[:, last]
        for i in range(z.shape[0]):
            if z[i] == last:
                z[i] = k
    S[last, :, :] = 0.0
    L[last, :] = 0.0
    n[last] = 0.0
    if mode > 0:
        S[:, last, :] = 0.0
        L[:, last] = 0.0
    K[0] = last


@kernel
def weigh(lik, mode, prior, n, N, S, L, a, K, J, r, c, own, scratch):
    """Log weight of slot a for the object whose cells ``gather`` has summed."""
    out = log_seat(prior, n[a]) if a < K else log_new_seat(prior, N, K)
    for b in range(J):
        if mode > 0 and b == a:
            continue
        out += gain(lik, S, L, a, b, r[b], scratch)
        if mode == 1:
            out += gain(lik, S, L, b, a, c[b], scratch)
    if mode > 0:
        out += gain(lik, S, L, a, a, r[a] + c[a] + own, scratch)
    return out


@kernel
def seat(lik, data, mode, prior, z, n, K, y, J, S, L, objects, pair, forced, u, start, limit, log_q):
    """Give objects ``objects[start:]`` new seats, one after the other; returns where it had to stop for more slots.

    With a ``pair`` of slots only those two are open, and ``log_q[0]`` collects the log probability of the seats taken.
    ``forced[t]`` is 0 or 1 where the seat of the pair is given, -1 where it is drawn, and 2 or 3 where it is given and
    no choice at all (the anchors of a split). In a square relation ``y`` is ``z`` and ``J`` is ``K``.
    """
    P = S.shape[2]
    r, c, own, scratch = np.zeros((S.shape[1], P)), np.zeros((S.shape[1], P)), np.zeros(P), np.empty(P)
    lp, N, paired = np.empty(max(S.shape[0], 2)), float(z.shape[0]), pair.shape[0] == 2
    for t in range(start, objects.shape[0]):
        if K[0] + 1 >= S.shape[0]:
            return t
        i = objects[t]
        gather(lik, data, mode, i, y, r, c, own)
        if z[i] >= 0:
            old = z[i]
            put(lik, mode, S, L, old, J[0], r, c, own, -1.0)
            n[old] -= 1.0
            z[i] = -1
            if n[old] == 0.0:
                close(mode, z, n, K, S, L, old)
                if mode > 0:
                    gather(lik, data, mode, i, y, r, c, own)
        if paired and forced[t] >= 2:
            new = pair[forced[t] - 2]
        else:
            n_seats = 2 if paired else K[0] + (1 if K[0] < limit else 0)
            top = -math.inf
            for k in range(n_seats):
                a = pair[k] if paired else k
                lp[k] = weigh(lik, mode, prior, n, N, S, L, a, K[0], J[0], r, c, own, scratch)
                top = max(top, lp[k])
            total = 0.0
            for k in range(n_seats):
                total += math.exp(lp[k] - top)
            chosen, left = n_seats - 1, u[t] * total
            for k in range(n_seats):
                left -= math.exp(lp[k] - top)
                if left < 0.0:
                    chosen = k
                    break
            if paired and forced[t] >= 0:
                chosen = forced[t]
            log_q[0] += lp[chosen] - top - math.log(total)
            new = pair[chosen] if paired else chosen
        if new == K[0]:
            K[0] += 1
        z[i] = new
        n[new] += 1.0
        put(lik, mode, S, L, new, J[0], r, c, own, 1.0)
    return objects.shape[0]


# ---- around it ---------------------------------------------------------------------------------------------------


def make_grid(mode: int, family: Any, data: Any, labels: tuple[np.ndarray, ...]) -> Grid:
    """A grid from the cells (row by row) and the labels 0 .. K-1 of rows and columns, or of the objects of a square.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> data = np.array([[1], [1], [0], [0]], np.int8)  # two rows, two columns
    >>> grid = make_grid(TABLE, Bernoulli.default(1), data, (np.array([0, 1]), np.array([0, 0])))
    >>> grid.S[:2, 0]  # zeros and ones of the two blocks
    array([[0., 2.],
           [2., 0.]])
    """
    cells: tuple[Any, ...] = (data,)
    if mode == TABLE:
        R, D = (len(z) for z in labels)
        cells = (data, take(data, np.arange(R * D).reshape(R, D).T.ravel()))
    sides = []
    for z in labels:
        K = int(z.max()) + 1
        n = np.bincount(z[z >= 0], minlength=K + ROOM).astype(float)
        sides.append(Side(z.astype(np.int64), n, np.array([K])))
    shape = (len(sides[0].n), len(sides[-1].n))
    grid = Grid(mode, family, cells, tuple(sides), np.zeros((*shape, n_stats(family))), np.zeros(shape))
    return rebuild(grid)


def cell_clusters(mode: int, rows: np.ndarray, columns: np.ndarray, n_columns: int) -> np.ndarray:
    """The block of each cell, row by row, as ``row cluster * n_columns + column cluster``; -1 of cells that stand for
    nothing: the lower half of a relation without direction.

    Examples
    --------
    >>> z = np.array([0, 1, 0])
    >>> cell_clusters(UNDIRECTED, z, z, 2).reshape(3, 3)
    array([[ 0,  1,  0],
           [-1,  3,  1],
           [-1, -1,  0]])
    """
    if mode != UNDIRECTED:
        return (rows[:, None] * n_columns + columns).ravel()
    low, high = np.minimum(rows[:, None], columns), np.maximum(rows[:, None], columns)
    block = low * n_columns + high
    return np.where(np.tri(len(rows), k=-1, dtype=bool), -1, block).ravel()


def block_statistics(mode: int, family: Any, data: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Statistics of all blocks, [row cluster, column cluster, statistic]; without direction both halves are filled."""
    K, J = int(rows.max()) + 1, int(columns.max()) + 1
    where = cell_clusters(mode, rows, columns, J)
    S: np.ndarray = np.zeros((n_stats(family), K * J + 1))  # what stands for nothing goes to the last
    add_statistics(family, data, where, S)
    out = np.ascontiguousarray(S[:, :-1].T).reshape(K, J, -1)
    if mode == UNDIRECTED:
        out = np.where(np.tri(K, k=-1, dtype=bool)[:, :, None], out.swapaxes(0, 1), out)
    return out


def rebuild(grid: Grid) -> Grid:
    """Statistics and log marginals from the labels: long chains of additions lose digits."""
    S = block_statistics(grid.mode, grid.family, grid.cells[0], grid.sides[0].z, grid.sides[-1].z)
    grid.S[:], grid.L[:] = 0.0, 0.0
    grid.S[: S.shape[0], : S.shape[1]] = S
    flat = np.ascontiguousarray(S.reshape(-1, S.shape[2]).T)
    grid.L[: S.shape[0], : S.shape[1]] = log_marginals(grid.family, flat).sum(axis=0).reshape(S.shape[:2])
    return grid


def turned(grid: Grid, side: int) -> tuple[np.ndarray, np.ndarray]:
    """``S`` and ``L`` with the slots of this side first."""
    if side == 0:
        return grid.S, grid.L
    return np.ascontiguousarray(grid.S.swapaxes(0, 1)), np.ascontiguousarray(grid.L.T)


def turned_back(grid: Grid, side: int, S: np.ndarray, L: np.ndarray) -> Grid:
    """The grid with what ``turned`` gave, as it has become."""
    if side == 0:
        return grid._replace(S=S, L=L)
    return grid._replace(S=np.ascontiguousarray(S.swapaxes(0, 1)), L=np.ascontiguousarray(L.T))


def grown(grid: Grid, side: int) -> Grid:
    """The same grid with twice the slots on one side."""
    one = grid.sides[side]
    more = len(one.n)
    sides = list(grid.sides)
    sides[side] = one._replace(n=np.pad(one.n, (0, more)))
    first = more if side == 0 else 0
    second = more if side == len(sides) - 1 else 0
    return grid._replace(
        sides=tuple(sides),
        S=np.pad(grid.S, ((0, first), (0, second), (0, 0))),
        L=np.pad(grid.L, ((0, first), (0, second))),
    )


def seat_objects(
    grid: Grid, side: int, prior: Any, objects: np.ndarray, u: np.ndarray, limit: int = NO_LIMIT
) -> Grid:
    """One sweep over ``objects`` of a side, each with its own uniform, with no more clusters than the limit.

    Objects without a seat (-1) get one, so that a sweep over all of them is a sequential start.
    """
    nothing, done = np.zeros(0, np.int64), 0
    while True:
        one, other = grid.sides[side], grid.sides[-1 - side]
        S, L = turned(grid, side)
        done = seat(
            grid.family, grid.cells[side], grid.mode, prior, *one, other.z, other.K, S, L,
            objects, nothing, nothing, u, done, limit, np.zeros(1),
        )  # fmt: skip
        grid = turned_back(grid, side, S, L)
        if done == len(objects):
            return grid
        grid = grown(grid, side)


def sizes(grid: Grid, side: int) -> np.ndarray:
    """Sizes of the clusters of one side."""
    one = grid.sides[side]
    return one.n[: one.K[0]].copy()


def occupied(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Which blocks there are, as two index vectors; without direction each pair of clusters once."""
    K, J = int(grid.sides[0].K[0]), int(grid.sides[-1].K[0])
    if grid.mode == UNDIRECTED:
        return np.triu_indices(K)
    first, second = np.indices((K, J)).reshape(2, -1)
    return first, second


def log_joint(grid: Grid, priors: tuple[Any, ...]) -> float:
    """Log probability of data and partitions under the present hyper-parameters."""
    total = float(grid.L[occupied(grid)].sum())
    for side, prior in enumerate(priors):
        n = sizes(grid, side)
        total += float(log_eppf(prior, n, len(n)))
    return total
