"""Gibbs sweeps over the blocks of a relation: every pair of a row cluster and a column cluster has its own parameters.

The statistics of the cells of a block are one entry ``S[a, b]`` of a grid: cluster a of the side that is being
assigned, cluster b of the other side. To assign an object, its cells are first summed by the clusters of the other
side; then each candidate cluster costs one log marginal per block, however many cells the object has. The column side
uses the same kernel on the transposed grid. A *square* relation, of objects with themselves, has one partition for
rows and columns: an object then has a row, a column and a cell with itself.

Cells are stored as rows of a long table, in the order of (row, column), whose columns are the relations. Every
conjugate family that reads single cells can be used; several relations over the same objects are several columns.

Kemp, Tenenbaum, Griffiths, Yamada and Ueda (2006).
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

# Two partitions; one partition with x[i, j] and x[j, i] separate; one partition with x[i, j] = x[j, i].
TABLE, DIRECTED, UNDIRECTED = range(3)
SPARE_SLOTS = 16  # beyond those in use


class Side(NamedTuple):
    """The partition of one side; its arrays are changed in place."""

    z: np.ndarray  # slot of each object, -1 if it is not assigned
    n: np.ndarray  # size of each slot
    K: np.ndarray  # [1]: number of occupied slots, which come first


class Grid(NamedTuple):
    """A relation in blocks; the first axis of ``S`` and ``L`` holds the slots of the first side."""

    mode: int
    family: Any
    cells: tuple[Any, ...]  # the data row by row; for a table also column by column
    sides: tuple[Side, ...]  # rows and columns, or the one partition of a square relation
    S: np.ndarray  # [slot, slot of the other side, statistic]
    L: np.ndarray  # [slot, slot of the other side] log marginal of each block


# ---- kernels that assign the objects of one side ------------------------------------------------------------------


@kernel
def block_log_marginal(lik, s):
    """Log marginal likelihood of the cells of one block, summed over relations."""
    out = 0.0
    for m in range(n_columns(lik)):
        out += log_marginal(lik, m, s[stats_start(lik, m) : stats_start(lik, m + 1)])
    return out


@kernel
def gather(lik, data, mode, i, y, r, c, own):
    """Sum the cells of object i by the clusters ``y`` of the other side: ``r`` its row, ``c`` its column.

    In a square relation the cell of i with itself is added to ``own``; ``c`` is used in directed relations only.
    Objects that are not assigned are left out.
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
    """Log predictive density of further cells with statistics ``s`` in block (a, b)."""
    seen = False
    for e in range(s.shape[0]):
        seen = seen or s[e] != 0.0
        scratch[e] = S[a, b, e] + s[e]
    return block_log_marginal(lik, scratch) - L[a, b] if seen else 0.0


@kernel
def copy_statistics(S, a, b, to_a, to_b):
    """Copy the statistics of block (a, b) onto another block.

    A loop: for an assignment of slices numba compiles a message about their shapes, which takes a second.
    """
    for e in range(S.shape[2]):
        S[to_a, to_b, e] = S[a, b, e]


@kernel
def put(lik, mode, S, L, a, J, r, c, own, w):
    """Add the sums of ``gather`` to the blocks of slot a (w = 1), or subtract them (w = -1)."""
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
            copy_statistics(S, a, b, b, a)
            L[b, a] = L[a, b]
    if mode > 0:
        for e in range(own.shape[0]):
            S[a, a, e] += w * (r[a, e] + c[a, e] + own[e])
        L[a, a] = block_log_marginal(lik, S[a, a])


@kernel
def close(mode, z, n, K, S, L, k):
    """Remove the empty slot k; the last slot takes its place."""
    last = K[0] - 1
    if k != last:
        for b in range(S.shape[1]):
            copy_statistics(S, last, b, k, b)
            L[k, b] = L[last, b]
        n[k] = n[last]
        if mode > 0:
            for a in range(S.shape[0]):
                copy_statistics(S, a, last, a, k)
                L[a, k] = L[a, last]
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
    """Log weight of slot a for the object whose cells ``gather`` summed."""
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
    """Assign ``objects[start:]`` to slots, one after the other; returns where it stopped, out of slots or at the end.

    With a ``pair`` of slots only these two are available, and ``log_q[0]`` collects the log probability of the choices.
    ``forced[t]`` is 0 or 1 if the slot of the pair is given, -1 if it is drawn, and 2 or 3 if it is given and does not
    count as a choice (the anchors of a split). In a square relation ``y`` is ``z`` and ``J`` is ``K``.
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


# ---- grids -------------------------------------------------------------------------------------------------------


def make_grid(mode: int, family: Any, data: Any, labels: tuple[np.ndarray, ...]) -> Grid:
    """A grid from the cells (row by row) and the labels 0 .. K-1 of each side.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> data = np.array([[1], [1], [0], [0]], np.int8)  # two rows, two columns
    >>> grid = make_grid(TABLE, Bernoulli.default(1), data, (np.array([0, 1]), np.array([0, 0])))
    >>> grid.S[:2, 0]  # numbers of zeros and ones in the two blocks
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
        n = np.bincount(z[z >= 0], minlength=K + SPARE_SLOTS).astype(float)
        sides.append(Side(z.astype(np.int64), n, np.array([K])))
    shape = (len(sides[0].n), len(sides[-1].n))
    grid = Grid(mode, family, cells, tuple(sides), np.zeros((*shape, n_stats(family))), np.zeros(shape))
    return rebuild(grid)


def cell_clusters(mode: int, rows: np.ndarray, columns: np.ndarray, n_columns: int) -> np.ndarray:
    """The block of each cell, row by row, as ``row cluster * n_columns + column cluster``.

    -1 for the cells below the diagonal of an undirected relation, which do not count.

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
    """Statistics of all blocks, [row cluster, column cluster, statistic]; symmetric for an undirected relation."""
    K, J = int(rows.max()) + 1, int(columns.max()) + 1
    where = cell_clusters(mode, rows, columns, J)
    S: np.ndarray = np.zeros(
        (n_stats(family), K * J + 1)
    )  # the last column takes the cells that do not count
    add_statistics(family, data, where, S)
    out = np.ascontiguousarray(S[:, :-1].T).reshape(K, J, -1)
    if mode == UNDIRECTED:
        out = np.where(np.tri(K, k=-1, dtype=bool)[:, :, None], out.swapaxes(0, 1), out)
    return out


def rebuild(grid: Grid) -> Grid:
    """Compute statistics and log marginals again from the labels, to remove accumulated rounding errors."""
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
    """The grid with changed arrays of ``turned``; the inverse of it."""
    if side == 0:
        return grid._replace(S=S, L=L)
    return grid._replace(S=np.ascontiguousarray(S.swapaxes(0, 1)), L=np.ascontiguousarray(L.T))


def grown(grid: Grid, side: int) -> Grid:
    """The grid with twice as many slots on one side."""
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
    """One sweep over ``objects`` of a side, one uniform per object, with at most ``limit`` clusters.

    Objects that are not assigned (-1) are assigned, so a sweep over a side without assignments is a sequential start.
    """
    empty, done = np.zeros(0, np.int64), 0
    while True:
        one, other = grid.sides[side], grid.sides[-1 - side]
        S, L = turned(grid, side)
        done = seat(
            grid.family, grid.cells[side], grid.mode, prior, *one, other.z, other.K, S, L,
            objects, empty, empty, u, done, limit, np.zeros(1),
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
    """Indices of all blocks, as two vectors; in an undirected relation each pair of clusters once."""
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
