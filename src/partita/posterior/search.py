"""The search for the partition of least expected loss: allocate, reallocate single objects, rebuild clusters.

For each draw, the cost of a move depends only on the counts between the clusters of the candidate and the cluster of
the draw that holds the object. They are stored as ``[cluster of a draw, cluster of the candidate]``, so that the row of
an object and a draw holds all candidate clusters in sequence. A second table, ``delta``, holds the increase of
``table[count]`` by one more object, so that the cost of all moves of an object is a weighted sum of T rows. Rows change
only when an object moves, and after the first pass few do.

The tables are rounded to single precision *before* they are summed, in double precision: the search
minimizes an objective that differs from the loss by about 1e-7 but is the same for every move, and therefore cannot
cycle. The reported losses are computed anew. All random numbers are given: a kernel is a function of its arguments.

An empty column of the candidate is a new cluster, so a new cluster is no special case. A candidate has as many columns
as clusters are allowed, so the upper bound is none either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.dispatch import kernel
from partita.execution import check_memory
from partita.posterior.draws import Draws
from partita.posterior.losses import Loss, counting_table, distance

K_USED, N_ASSIGNED, N_OCCUPIED, OUT_OF_SLOTS = range(4)  # the entries of Candidate.ints
MIN_GAIN = 1e-9  # smaller gains are rounding errors
MARGIN_SHARE = 0.25  # between full passes, objects with a margin below this share of the mean are visited


class Target(NamedTuple):
    """The draws, their tables and the loss."""

    labels: NDArray[Any]  # [object, draw]
    first_row: NDArray[np.int64]  # [draw], the row of its cluster 0
    draw_weights: NDArray[np.float64]
    object_weights: NDArray[np.int64]
    table: NDArray[np.float64]  # [count], the rounded table
    kind: int
    a: float
    max_clusters: int  # upper bound on the number of clusters


class Candidate(NamedTuple):
    """A candidate partition with its counts."""

    z: NDArray[np.int64]  # [object], its cluster, -1 if it has none
    sizes: NDArray[np.int64]  # [cluster]
    counts: NDArray[np.int32]  # [cluster of a draw, cluster]
    delta: NDArray[np.float32]  # [cluster of a draw, cluster], table[count + 1] - table[count]
    assigned: NDArray[np.int64]  # [cluster of a draw], its objects that have a cluster in the candidate
    S: NDArray[np.float64]  # [0]: sum of table[sizes]
    S_draw: NDArray[np.float64]  # [draw], sum of table[assigned]
    S_joint: NDArray[np.float64]  # [draw], sum of table[counts]
    margins: NDArray[np.float64]  # [object], cost of the second best cluster minus that of the best
    ints: NDArray[np.int64]


def make_target(draws: Draws, loss: Loss, max_clusters: int | None) -> Target:
    """Draws as the kernels read them: objects first, tables rounded."""
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


def new_candidate(target: Target, capacity: int) -> Candidate:
    """An empty candidate with room for `capacity` clusters."""
    n_objects, n_draws = target.labels.shape
    n_rows = int(target.first_row[-1])
    check_memory(
        8 * n_rows * capacity,
        f"the counts between {capacity} clusters and the {n_rows:,} clusters of {n_draws} draws",
        "give max_clusters, or fewer draws (every second or tenth)",
    )
    return Candidate(
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
def additive_costs(target, candidate, i, n_slots, out):
    """Costs of the clusters for object i under a loss that is a sum over cells."""
    w, k_now = target.object_weights[i], candidate.z[i]
    table, counts, delta, weights = target.table, candidate.counts, candidate.delta, target.draw_weights
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
                ):  # its own cluster is added below; counting the object twice would exceed the table
                    out[k] += share * (table[heap[k] + w] - table[heap[k]])
        if k_now >= 0:
            count = counts[row, k_now]
            own += share * (table[count] - table[count - w])
    if k_now >= 0:
        out[k_now] = own
    for k in range(n_slots):
        others = candidate.sizes[k] - (w if k == k_now else 0)
        out[k] = (2.0 - target.a) * (table[others + w] - table[others]) - 2.0 * out[k]


@kernel
def ratio_costs(target, candidate, i, n_slots, out, S_new):
    """Costs of the clusters for object i (of weight 1) under a loss that divides by entropies."""
    k_now = candidate.z[i]
    table, counts, delta = target.table, candidate.counts, candidate.delta
    S_others, n = candidate.S[0], float(candidate.ints[N_ASSIGNED])
    if k_now >= 0:
        S_others -= table[candidate.sizes[k_now]] - table[candidate.sizes[k_now] - 1]
    else:
        n += 1.0
    for k in range(n_slots):
        out[k] = 0.0
        S_new[k] = S_others + table[candidate.sizes[k] + 1] - table[candidate.sizes[k]]
    own = 0.0
    for b in range(target.draw_weights.shape[0]):
        row = target.first_row[b] + target.labels[i, b]
        share = target.draw_weights[b] * n
        S_joint, S_draw = candidate.S_joint[b], candidate.S_draw[b]
        if k_now >= 0:
            own += share * distance(target.kind, target.a, candidate.S[0], S_draw, S_joint, n)
            S_joint -= table[counts[row, k_now]] - table[counts[row, k_now] - 1]
        else:
            S_draw += table[candidate.assigned[row] + 1] - table[candidate.assigned[row]]
        for k in range(n_slots):
            out[k] += share * distance(target.kind, target.a, S_new[k], S_draw, S_joint + delta[row, k], n)
    if k_now >= 0:
        out[k_now] = own


@kernel
def best_cluster(target, candidate, i, out, S_new):
    """The cluster with the least cost for object i; `margins` gets the difference to the second best.

    An object stays in its cluster unless the gain exceeds rounding errors.
    """
    k_now = candidate.z[i]
    n_slots = min(candidate.ints[K_USED] + 1, candidate.sizes.shape[0])
    if target.kind <= 1:
        additive_costs(target, candidate, i, n_slots, out)
    else:
        ratio_costs(target, candidate, i, n_slots, out, S_new)
    alone = k_now >= 0 and candidate.sizes[k_now] == target.object_weights[i]
    best, second, k_best, empty = np.inf, np.inf, -1, False
    for k in range(n_slots):
        if candidate.sizes[k] == 0:
            if empty or alone:  # one empty column represents all; an object alone is a new cluster already
                continue
            empty = True
        cost = out[k]
        if k == k_now:
            cost -= MIN_GAIN
        if cost < best:
            best, second, k_best = cost, best, k
        elif cost < second:
            second = cost
    if not empty and not alone:
        candidate.ints[OUT_OF_SLOTS] = 1
    candidate.margins[i] = second - best
    return k_best


@kernel
def shift(target, candidate, i, k, sign):
    """Put object i into cluster k (sign 1) or take it out (sign -1)."""
    table, w = target.table, target.object_weights[i] * sign
    size = candidate.sizes[k]
    if size == 0:
        candidate.ints[N_OCCUPIED] += 1
    if size + w == 0:
        candidate.ints[N_OCCUPIED] -= 1
    candidate.sizes[k] = size + w
    candidate.S[0] += table[size + w] - table[size]
    candidate.ints[N_ASSIGNED] += w
    candidate.ints[K_USED] = max(candidate.ints[K_USED], k + 1)
    for b in range(target.draw_weights.shape[0]):
        row = target.first_row[b] + target.labels[i, b]
        before = candidate.counts[row, k]
        count = before + w
        candidate.counts[row, k] = count
        candidate.delta[row, k] = table[count + 1] - table[count]
        candidate.S_joint[b] += table[count] - table[before]
        if target.kind > 1:
            there = candidate.assigned[row]
            candidate.assigned[row] = there + w
            candidate.S_draw[b] += table[there + w] - table[there]
    candidate.z[i] = k if sign > 0 else -1


@kernel
def visit(target, candidate, i, out, S_new):
    """Move object i to its best cluster; 1 if that is another one."""
    k_now = candidate.z[i]
    k = best_cluster(target, candidate, i, out, S_new)
    if k == k_now:
        return 0
    if k_now >= 0:
        shift(target, candidate, i, k_now, -1)
    shift(target, candidate, i, k, 1)
    if k_now >= 0:
        candidate.margins[i] = 0.0
    return 1


@kernel
def descend(target, candidate, order, out, S_new, max_passes, band):
    """Reallocate single objects until a full pass moves none; passes between full ones visit only uncertain objects.

    An object is uncertain if its margin is at most `band`. With an infinite band the descent begins and ends with a
    full pass; otherwise it visits uncertain objects only. Returns the band for the next descent.
    """
    to_the_end, passed = band == np.inf, band
    for _ in range(max_passes):
        moved, visited, total = 0, 0, 0.0
        if band == np.inf:
            candidate.ints[OUT_OF_SLOTS] = 0  # only the last full pass decides whether slots were lacking
        for i in order:
            if candidate.margins[i] <= band:
                moved += visit(target, candidate, i, out, S_new)
                visited += 1
                total += min(candidate.margins[i], 1e12)
        while candidate.ints[K_USED] > 0 and candidate.sizes[candidate.ints[K_USED] - 1] == 0:
            candidate.ints[K_USED] -= 1
        if band == np.inf:
            passed = MARGIN_SHARE * total / max(visited, 1)
            if moved == 0:
                break
            band = passed
        elif moved == 0:
            if not to_the_end:
                break
            band = np.inf
    return passed


@kernel
def objective(target, candidate):
    """The part of the expected loss (times a constant) that depends on the candidate."""
    total = 0.0
    if target.kind <= 1:
        for b in range(target.draw_weights.shape[0]):
            total -= 2.0 * target.draw_weights[b] * candidate.S_joint[b]
        return total + (2.0 - target.a) * candidate.S[0]
    n = float(candidate.ints[N_ASSIGNED])
    for b in range(target.draw_weights.shape[0]):
        loss = distance(target.kind, target.a, candidate.S[0], candidate.S_draw[b], candidate.S_joint[b], n)
        total += target.draw_weights[b] * n * loss
    return total


@kernel
def rebuild_cluster(target, candidate, order, u, saved, out, S_new, max_passes, band):
    """Destroy one cluster and reallocate its objects, then the uncertain ones; undo it without a gain. 1 if kept."""
    pick, k = int(u * candidate.ints[N_OCCUPIED]), 0
    while True:
        if candidate.sizes[k] > 0:
            if pick == 0:
                break
            pick -= 1
        k += 1
    saved[:] = candidate.z
    before = objective(target, candidate)
    for i in order:
        if candidate.z[i] == k:
            shift(target, candidate, i, k, -1)
    for i in order[::-1]:
        if candidate.z[i] < 0:
            visit(target, candidate, i, out, S_new)
    if abs(objective(target, candidate) - before) > MIN_GAIN:  # otherwise the cluster was rebuilt unchanged
        descend(target, candidate, order, out, S_new, max_passes, band)
    if objective(target, candidate) < before - MIN_GAIN:
        return 1
    for i in order:
        if candidate.z[i] != saved[i]:
            shift(target, candidate, i, candidate.z[i], -1)
            shift(target, candidate, i, saved[i], 1)
    return 0


@kernel
def search(target, candidate, start, order, picks, max_passes):
    """One start: the given labels, allocation of objects without one (-1), descent, one rebuilt cluster per pick."""
    capacity = candidate.sizes.shape[0]
    out, S_new, saved = np.empty(capacity), np.empty(capacity), np.empty_like(candidate.z)
    for i in order:
        if start[i] >= 0:
            shift(target, candidate, i, start[i], 1)
    for i in order:
        if start[i] < 0:
            visit(target, candidate, i, out, S_new)
    band, kept = descend(target, candidate, order, out, S_new, max_passes, np.inf), 0
    for u in picks:
        kept += rebuild_cluster(target, candidate, order, u, saved, out, S_new, max_passes, band)
    if kept > 0:
        descend(target, candidate, order, out, S_new, max_passes, np.inf)
    return kept
