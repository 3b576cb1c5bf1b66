"""The messages of affinity propagation over the edges of a graph (Frey and Dueck 2007; Murphy, section 25.3).

Everything is an array with one entry an edge, ordered by row: time and memory are linear in the number of edges. A
dense matrix is the graph with all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Edges", "Passed", "edges_of", "net_similarity", "pass_messages", "read_exemplars"]

BYTES_PER_EDGE = 80  # similarities, two messages, row and column numbers, and what one round needs besides
PATIENCE = 50  # rounds without rest before the automatic damping rises
LOOK_EVERY = 20  # rounds after which the exemplars of the moment are judged, in case there is no rest
CHECK_EVERY = 10  # rounds after which it is asked whether the damping should rise
FIRST_DAMPING, MOST_DAMPING = 0.5, 0.95


class Edges(NamedTuple):
    """Similarities s(i, k) of objects to their candidate exemplars; each object is a candidate of its own."""

    rows: np.ndarray
    columns: np.ndarray
    starts: np.ndarray  # where each row begins
    own: np.ndarray  # where the edge (i, i) is
    similarities: np.ndarray

    @property
    def n_objects(self) -> int:
        """The number of objects."""
        return len(self.starts)


class Passed(NamedTuple):
    """Where the messages came to rest; where they did not, the best exemplars that were seen."""

    exemplars: np.ndarray  # mask
    n_iter: int
    n_restless: int  # objects that still went in and out of the exemplars at the end
    damping: float  # the strongest of all


def edges_of(graph: Any, preference: np.ndarray) -> Edges:
    """Lay out a CSR matrix of similarities; its diagonal gives way to the preferences.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> edges = edges_of(csr_array([[0.0, -1.0], [-2.0, 0.0]]), np.array([-5.0, -6.0]))
    >>> edges.similarities
    array([-5., -1., -2., -6.])
    """
    n = graph.shape[0]
    graph.sort_indices()
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.indptr))
    columns, values = graph.indices.astype(np.int32), graph.data.astype(np.float64)
    own = np.flatnonzero(rows == columns)
    if len(own) < n:
        lacking = np.setdiff1d(np.arange(n, dtype=np.int32), rows[own])
        rows, columns = np.concatenate([rows, lacking]), np.concatenate([columns, lacking])
        order = np.lexsort((columns, rows))
        rows, columns = rows[order], columns[order]
        values = np.concatenate([values, np.zeros(len(lacking))])[order]
        own = np.flatnonzero(rows == columns)
    values[own] = preference
    return Edges(rows, columns, np.searchsorted(rows, np.arange(n)), own, values)


def pass_messages(
    edges: Edges, damping: float | None, max_iter: int, convergence_iter: int, rng: np.random.Generator
) -> Passed:
    """Pass messages until the exemplars have not changed for ``convergence_iter`` rounds.

    With ``damping=None`` it starts at 0.5 and rises around the objects that go in and out of the exemplars for too
    long: oscillations die out under a stronger one, and the rest of a sparse graph need not wait for it.
    """
    s = _without_ties(edges.similarities, rng)
    R, A = np.zeros_like(s), np.zeros_like(s)
    n = edges.n_objects
    strength, slowness = np.full(n, FIRST_DAMPING if damping is None else damping), np.ones(n)
    keep: Any = strength[0]
    exemplars, changed, risen = np.zeros(n, bool), np.zeros(n, np.int64), np.zeros(n, np.int64)
    best, most = exemplars, -np.inf
    for iteration in range(1, max_iter + 1):
        _mix(R, _responsibilities(edges, s, A), keep)
        _mix(A, _availabilities(edges, R), keep)
        now = A[edges.own] + R[edges.own] > 0
        changed[now != exemplars] = iteration
        exemplars = now
        restless = iteration - changed + 1 < slowness * convergence_iter
        if iteration >= convergence_iter and not restless.any() and exemplars.any():
            return Passed(exemplars, iteration, 0, float(strength.max()))
        if exemplars.any() and (iteration == max_iter or iteration % LOOK_EVERY == 0):
            value = net_similarity(edges, _most_similar(edges, exemplars))
            best, most = (exemplars, value) if value > most else (best, most)
        if damping is None and iteration % CHECK_EVERY == 0:
            due = _around(edges, restless & (iteration - risen >= np.sqrt(slowness) * PATIENCE)) & (
                strength < MOST_DAMPING
            )
            strength = np.where(due, np.minimum((1.0 + strength) / 2.0, MOST_DAMPING), strength)
            risen[due] = iteration
            slowness = (1.0 - FIRST_DAMPING) / (
                1.0 - strength
            )  # damped messages creep: all takes longer to show
            keep = np.maximum(strength[edges.rows], strength[edges.columns])
    if not best.any():
        best = np.arange(n) == np.argmax(A[edges.own] + R[edges.own])
    return Passed(best, max_iter, int(np.count_nonzero(restless)), float(strength.max()))


def _around(edges: Edges, objects: np.ndarray) -> np.ndarray:
    """Some objects, and those that exchange messages with them."""
    around = objects.copy()
    around[edges.columns[objects[edges.rows]]] = True
    around[edges.rows[objects[edges.columns]]] = True
    return around


def _without_ties(s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Similarities with a change in the last digits: exact ties would let the messages oscillate for ever."""
    tiny = np.finfo(np.float64).eps * s + 100.0 * np.finfo(np.float64).tiny
    return s + tiny * rng.standard_normal(len(s))


def _mix(old: np.ndarray, new: np.ndarray, damping: Any) -> None:
    old *= damping
    new *= 1.0 - damping
    old += new


def _responsibilities(edges: Edges, s: np.ndarray, A: np.ndarray) -> np.ndarray:
    """r(i, k) = s(i, k) - max over k' other than k of a(i, k') + s(i, k')."""
    v = A + s
    best = np.maximum.reduceat(v, edges.starts)
    is_best = v == best[edges.rows]
    n_best = np.add.reduceat(is_best, edges.starts, dtype=np.int64)
    v[is_best] = -np.inf
    second = np.where(n_best > 1, best, np.maximum.reduceat(v, edges.starts))
    return s - np.where(is_best, second[edges.rows], best[edges.rows])


def _availabilities(edges: Edges, R: np.ndarray) -> np.ndarray:
    """a(i, k) = min(0, r(k, k) + sum over i' other than i, k of max(0, r(i', k))); a(k, k) = that sum."""
    positive = np.maximum(R, 0.0)
    positive[edges.own] = 0.0
    votes = np.bincount(edges.columns, positive, minlength=edges.n_objects)
    out = (votes + R[edges.own])[edges.columns] - positive
    np.minimum(out, 0.0, out=out)
    out[edges.own] = votes
    return out


# ---- from exemplars to clusters ----------------------------------------------------------------------------


def read_exemplars(edges: Edges, exemplars: np.ndarray) -> np.ndarray:
    """The exemplar of each object: the most similar one, after each cluster has chosen its best member as exemplar.

    An object without an edge to any exemplar becomes one itself.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> s = csr_array([[0.0, -1.0, -9.0], [-1.0, 0.0, -9.0], [-9.0, -9.0, 0.0]])
    >>> read_exemplars(edges_of(s, np.full(3, -3.0)), np.array([True, False, True])).tolist()
    [0, 0, 2]
    """
    chosen = _most_similar(edges, exemplars)
    return _most_similar(edges, _best_members(edges, chosen))


def _most_similar(edges: Edges, exemplars: np.ndarray) -> np.ndarray:
    v = np.where(exemplars[edges.columns], edges.similarities, -np.inf)
    v[edges.own] = np.where(exemplars, np.inf, -np.inf)
    best = np.maximum.reduceat(v, edges.starts)
    hits = np.flatnonzero((v == best[edges.rows]) & (v > -np.inf))
    chosen = np.arange(edges.n_objects)
    # the first of equals: the last one written is the first in order
    chosen[edges.rows[hits[::-1]]] = edges.columns[hits[::-1]]
    return chosen


def _best_members(edges: Edges, chosen: np.ndarray) -> np.ndarray:
    """The member to whom the others of its cluster are most similar; it must have an edge from every one."""
    within = chosen[edges.rows] == chosen[edges.columns]
    columns = edges.columns[within]
    n = edges.n_objects
    reached = np.bincount(columns, minlength=n) == np.bincount(chosen, minlength=n)[chosen]
    total = np.where(reached, np.bincount(columns, edges.similarities[within], minlength=n), -np.inf)
    order = np.lexsort((-np.arange(n), total, chosen))  # within a cluster: the best last, the first of equals
    last = np.append(chosen[order][1:] != chosen[order][:-1], True)
    best = np.zeros(n, bool)
    best[order[last]] = True
    return best


def net_similarity(edges: Edges, chosen: np.ndarray) -> float:
    """What affinity propagation maximises (25.39): similarities to the exemplars, and their preferences.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> edges = edges_of(csr_array([[0.0, -1.0], [-1.0, 0.0]]), np.full(2, -3.0))
    >>> net_similarity(edges, np.array([0, 0]))
    -4.0
    """
    return float(edges.similarities[chosen[edges.rows] == edges.columns].sum())
