"""The search for the partition of least expected loss: allocate, sweeten, destroy and rebuild.

What a move costs depends, draw by draw, only on the counts between the clusters of the candidate and the one
cluster of the draw that holds the object. They lie as ``[cluster of a draw, cluster of the candidate]``: the row of an
object and a draw holds all candidate clusters side by side. Beside the counts lies ``delta``, by how much
``table[count]`` grows with one more object, so that the cost of all moves of an object is a weighted sum of T rows.
Rows change only when an object does move, which after the first pass few do.

The tables are rounded to single precision *before* they are summed, in double precision: the search walks down a
potential that differs from the loss by about 1e-7 but is the same for every move, and so cannot go round in circles.
The losses that are reported are computed afresh. All random numbers are given: a kernel is a function of its
arguments.

An empty column of the candidate is what a new cluster looks like, so a new cluster needs no case of its own; and a
board has no more columns than clusters are allowed, so the upper bound needs none either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.dispatch import kernel
from partita.execution import check_memory
from partita.posterior.draws import Draws
from partita.posterior.losses import Loss, counting_table, distance

K_USED, N_SEATED, N_OCCUPIED, STARVED = range(4)  # the entries of Board.ints
TOLERANCE = 1e-9  # a gain below this is rounding
DOUBTFUL = 0.25  # between full passes, objects are looked at whose margin is below this share of the mean


class Target(NamedTuple):
    """What is searched against: the draws, their tables and the loss."""

    labels: NDArray[Any]  # [object, draw]
    first_row: NDArray[np.int64]  # [draw], the row of its cluster 0
    draw_weights: NDArray[np.float64]
    object_weights: NDArray[np.int64]
    table: NDArray[np.float64]  # [count], the rounded table
    kind: int
    a: float
    most: int  # upper bound on the number of clusters


class Board(NamedTuple):
    """A candidate with its counts."""

    z: NDArray[np.int64]  # [object], its cluster, -1 where it has none
    sizes: NDArray[np.int64]  # [cluster]
    counts: NDArray[np.int32]  # [cluster of a draw, cluster]
    delta: NDArray[np.float32]  # [cluster of a draw, cluster], table[count + 1] - table[count]
    seated: NDArray[np.int64]  # [cluster of a draw], its objects that have a place
    S: NDArray[np.float64]  # [0]: sum of table[sizes]
    S_draw: NDArray[np.float64]  # [draw], sum of table[seated]
    S_joint: NDArray[np.float64]  # [draw], sum of table[counts]
    margins: NDArray[np.float64]  # [object], cost of the second best place above the present one
    ints: NDArray[np.int64]


def make_target(draws: Draws, loss: Loss, max_clusters: int | None) -> Target:
    """Draws as the kernels want them: objects first, tables rounded."""
    steps = np.diff(counting_table(loss, draws.n_objects + 1)).astype(np.float32).astype(np.float64)
    table = np.concatenate([[0.0], np.cumsum(steps)])
    first_row = np.concatenate([[0], np.cumsum(draws.n_clusters)]).astype(np.int64)
    n_groups = draws.labels.shape[1]
    most = n_groups if max_clusters is None else min(max_clusters, n_groups)
    return Target(
        np.ascontiguousarray(draws.labels.T),
        first_row,
        draws.weights,
        draws.group_weights,
        table,
        loss.kind,
        loss.a,
        most,
    )


def new_board(target: Target, capacity: int) -> Board:
    """An empty candidate with room for so many clusters."""
    n_objects, n_draws = target.labels.shape
    n_rows = int(target.first_row[-1])
    check_memory(
        8 * n_rows * capacity,
        f"the counts between {capacity} clusters and the {n_rows:,} clusters of {n_draws} draws",
        "give max_clusters, or fewer draws (every second or tenth)",
    )
    return Board(
        np.full(n_objects, -1, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros((n_rows, capacity), dtype=np.int32),
        np.full((n_rows, capacity), target.table[1], dtype=np.float32),
        np.zeros(n_rows, dtype=np.int64),
        np.zeros(1),
        np.zeros(n_draws),
        np.zeros(n_draws),
        np.zeros(n_objects),
        np.zeros(4, dtype=np.int64),
    )


@kernel
def additive_costs(target, board, i, n_slots, out):
    """Costs of the places of object i under a loss that is a sum over cells."""
    w, k_now = target.object_weights[i], board.z[i]
    table, counts, delta, weights = target.table, board.counts, board.delta, target.draw_weights
    T = weights.shape[0]
    own = 0.0
    for k in range(n_slots):
        out[k] = 0.0
    for b in range(T):
        row = target.first_row[b] + target.labels[i, b]
        share = weights[b]
        if w == 1:
            cells = delta[row]
            for k in range(n_slots):
                out[k] += share * cells[k]
        else:
            heap = counts[row]
            for k in range(n_slots):
                if (
                    k != k_now
                ):  # its own place is counted below, and with itself twice it would be off the table
                    out[k] += share * (table[heap[k] + w] - table[heap[k]])
        if k_now >= 0:
            count = counts[row, k_now]
            own += share * (table[count] - table[count - w])
    if k_now >= 0:
        out[k_now] = own
    for k in range(n_slots):
        others = board.sizes[k] - (w if k == k_now else 0)
        out[k] = (2.0 - target.a) * (table[others + w] - table[others]) - 2.0 * out[k]


@kernel
def ratio_costs(target, board, i, n_slots, out, S_new):
    """Costs of the places of object i (of weight 1) under a loss that divides by entropies."""
    k_now = board.z[i]
    table, counts, delta = target.table, board.counts, board.delta
    S_others, n = board.S[0], float(board.ints[N_SEATED])
    if k_now >= 0:
        S_others -= table[board.sizes[k_now]] - table[board.sizes[k_now] - 1]
    else:
        n += 1.0
    for k in range(n_slots):
        out[k] = 0.0
        S_new[k] = S_others + table[board.sizes[k] + 1] - table[board.sizes[k]]
    own = 0.0
    for b in range(target.draw_weights.shape[0]):
        row = target.first_row[b] + target.labels[i, b]
        share = target.draw_weights[b] * n
        S_joint, S_draw = board.S_joint[b], board.S_draw[b]
        if k_now >= 0:
            own += share * distance(target.kind, target.a, board.S[0], S_draw, S_joint, n)
            S_joint -= table[counts[row, k_now]] - table[counts[row, k_now] - 1]
        else:
            S_draw += table[board.seated[row] + 1] - table[board.seated[row]]
        for k in range(n_slots):
            out[k] += share * distance(target.kind, target.a, S_new[k], S_draw, S_joint + delta[row, k], n)
    if k_now >= 0:
        out[k_now] = own


@kernel
def best_place(target, board, i, out, S_new):
    """The cluster where object i costs least; leaves in `margins` how much worse the runner-up is.

    An object stays where it is unless it gains more than rounding.
    """
    k_now = board.z[i]
    n_slots = min(board.ints[K_USED] + 1, board.sizes.shape[0])
    if target.kind <= 1:
        additive_costs(target, board, i, n_slots, out)
    else:
        ratio_costs(target, board, i, n_slots, out, S_new)
    alone = k_now >= 0 and board.sizes[k_now] == target.object_weights[i]
    best, second, k_best, empty = np.inf, np.inf, -1, False
    for k in range(n_slots):
        if board.sizes[k] == 0:
            if empty or alone:  # one empty column stands for all; alone is a new cluster already
                continue
            empty = True
        cost = out[k]
        if k == k_now:
            cost -= TOLERANCE
        if cost < best:
            best, second, k_best = cost, best, k
        elif cost < second:
            second = cost
    if not empty and not alone:
        board.ints[STARVED] = 1
    board.margins[i] = second - best
    return k_best


@kernel
def shift(target, board, i, k, sign):
    """Put object i into cluster k (sign 1) or take it out (sign -1)."""
    table, w = target.table, target.object_weights[i] * sign
    size = board.sizes[k]
    if size == 0:
        board.ints[N_OCCUPIED] += 1
    if size + w == 0:
        board.ints[N_OCCUPIED] -= 1
    board.sizes[k] = size + w
    board.S[0] += table[size + w] - table[size]
    board.ints[N_SEATED] += w
    board.ints[K_USED] = max(board.ints[K_USED], k + 1)
    for b in range(target.draw_weights.shape[0]):
        row = target.first_row[b] + target.labels[i, b]
        before = board.counts[row, k]
        count = before + w
        board.counts[row, k] = count
        board.delta[row, k] = table[count + 1] - table[count]
        board.S_joint[b] += table[count] - table[before]
        if target.kind > 1:
            there = board.seated[row]
            board.seated[row] = there + w
            board.S_draw[b] += table[there + w] - table[there]
    board.z[i] = k if sign > 0 else -1


@kernel
def visit(target, board, i, out, S_new):
    """Give object i its best place; 1 if that is a new one."""
    k_now = board.z[i]
    k = best_place(target, board, i, out, S_new)
    if k == k_now:
        return 0
    if k_now >= 0:
        shift(target, board, i, k_now, -1)
    shift(target, board, i, k, 1)
    if k_now >= 0:
        board.margins[i] = 0.0
    return 1


@kernel
def descend(target, board, order, out, S_new, max_passes, band):
    """Sweeten: visit objects until a full pass moves none; between full passes only the doubtful ones.

    Doubtful is whose margin is at most `band`; infinity starts with a full pass. Where the descent starts with the
    doubtful it also ends with them. Returns the band to go on with.
    """
    to_the_end, passed = band == np.inf, band
    for _ in range(max_passes):
        moved, visited, total = 0, 0, 0.0
        if band == np.inf:
            board.ints[STARVED] = 0  # what counts is whether the clusters ran out in the last full pass
        for i in order:
            if board.margins[i] <= band:
                moved += visit(target, board, i, out, S_new)
                visited += 1
                total += min(board.margins[i], 1e12)
        while board.ints[K_USED] > 0 and board.sizes[board.ints[K_USED] - 1] == 0:
            board.ints[K_USED] -= 1
        if band == np.inf:
            passed = DOUBTFUL * total / max(visited, 1)
            if moved == 0:
                break
            band = passed
        elif moved == 0:
            if not to_the_end:
                break
            band = np.inf
    return passed


@kernel
def objective(target, board):
    """The part of the expected loss (times a constant) that the candidate decides."""
    total = 0.0
    if target.kind <= 1:
        for b in range(target.draw_weights.shape[0]):
            total -= 2.0 * target.draw_weights[b] * board.S_joint[b]
        return total + (2.0 - target.a) * board.S[0]
    n = float(board.ints[N_SEATED])
    for b in range(target.draw_weights.shape[0]):
        loss = distance(target.kind, target.a, board.S[0], board.S_draw[b], board.S_joint[b], n)
        total += target.draw_weights[b] * n * loss
    return total


@kernel
def rebuild_cluster(target, board, order, u, saved, out, S_new, max_passes, band):
    """Destroy one cluster, let its objects choose anew, sweeten the doubtful; undo if nothing is gained. 1 if kept."""
    pick, k = int(u * board.ints[N_OCCUPIED]), 0
    while True:
        if board.sizes[k] > 0:
            if pick == 0:
                break
            pick -= 1
        k += 1
    saved[:] = board.z
    before = objective(target, board)
    for i in order:
        if board.z[i] == k:
            shift(target, board, i, k, -1)
    for i in order[::-1]:
        if board.z[i] < 0:
            visit(target, board, i, out, S_new)
    if abs(objective(target, board) - before) > TOLERANCE:  # otherwise the cluster came back as it was
        descend(target, board, order, out, S_new, max_passes, band)
    if objective(target, board) < before - TOLERANCE:
        return 1
    for i in order:
        if board.z[i] != saved[i]:
            shift(target, board, i, board.z[i], -1)
            shift(target, board, i, saved[i], 1)
    return 0


@kernel
def search(target, board, start, order, picks, max_passes):
    """One start: the given labels, allocation of the objects without one (-1), sweetening, a rebuilding a pick."""
    capacity = board.sizes.shape[0]
    out, S_new, saved = np.empty(capacity), np.empty(capacity), np.empty_like(board.z)
    for i in order:
        if start[i] >= 0:
            shift(target, board, i, start[i], 1)
    for i in order:
        if start[i] < 0:
            visit(target, board, i, out, S_new)
    band, kept = descend(target, board, order, out, S_new, max_passes, np.inf), 0
    for u in picks:
        kept += rebuild_cluster(target, board, order, u, saved, out, S_new, max_passes, band)
    if kept > 0:
        descend(target, board, order, out, S_new, max_passes, np.inf)
    return kept
