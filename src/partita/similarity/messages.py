"""The messages of affinity propagation over the edges of a graph (Frey and Dueck 2007; Murphy, section 25.3).

All arrays have one entry per edge, ordered by row: time and memory are linear in the number of edges. A dense matrix is
the graph with all edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.run import Control, iterate_from_checkpoint

# similarities, two messages, row and column numbers, and the temporary arrays of one round
BYTES_PER_EDGE = 80
PATIENCE = 50  # rounds without convergence before the automatic damping increases
SCORE_EVERY = 20  # rounds between two evaluations of the current exemplars, for fits that do not converge
DAMPING_EVERY = 10  # rounds between two decisions whether the damping increases
MIN_DAMPING, MAX_DAMPING = 0.5, 0.95


class Edges(NamedTuple):
    """Similarities s(i, k) of objects to their candidate exemplars; each object is a candidate for itself."""

    rows: np.ndarray
    columns: np.ndarray
    starts: np.ndarray  # position of the first edge of each row
    own: np.ndarray  # position of the edge (i, i)
    similarities: np.ndarray

    @property
    def n_objects(self) -> int:
        """The number of objects."""
        return len(self.starts)


class MessagesResult(NamedTuple):
    """The exemplars after convergence; without convergence, the best ones that were evaluated."""

    exemplars: np.ndarray  # mask
    n_iter: int
    n_unsettled: int  # objects that still changed between exemplar and member at the end
    damping: float  # the strongest of all
    reason: str  # "converged", "max_iter", "time_limit", "callback", "interrupted"


def edges_of(graph: Any, preference: np.ndarray) -> Edges:
    """The edges of a CSR matrix of similarities, with the preferences on the diagonal.

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


class _Messages(NamedTuple):
    """State after a round; the arrays of messages are updated in place."""

    responsibilities: np.ndarray
    availabilities: np.ndarray
    exemplars: np.ndarray  # mask
    changed: np.ndarray  # round in which each object last became an exemplar or a member
    damping: np.ndarray  # of each object
    edge_damping: Any  # of each edge, the stronger of both ends; a number if it is the same everywhere
    slowness: np.ndarray  # of each object: the factor by which its damping slows down changes
    increased: np.ndarray  # round in which the damping of each object last increased
    best: np.ndarray  # mask of the best exemplars that were evaluated
    objective: float  # their net similarity
    change: float  # number of unsettled objects; inf before convergence is possible
    n_iter: int
    n_unsettled: int


def pass_messages(
    edges: Edges,
    damping: float | None,
    max_iter: int,
    convergence_iter: int,
    rng: np.random.Generator,
    *,
    control: Control | None = None,
    checkpoint: Checkpoint | None = None,
) -> MessagesResult:
    """Pass messages until the exemplars have not changed for ``convergence_iter`` rounds.

    With ``damping=None`` the damping starts at 0.5 and increases around the objects that have been unsettled for too
    long: stronger damping ends oscillations, and other parts of a sparse graph are not slowed down.
    """
    s = _without_ties(edges.similarities, rng)
    n = edges.n_objects

    def start() -> _Messages:
        first = MIN_DAMPING if damping is None else damping
        mask = np.zeros(n, bool)
        return _Messages(
            responsibilities=np.zeros_like(s),
            availabilities=np.zeros_like(s),
            exemplars=mask,
            changed=np.zeros(n, np.int64),
            damping=np.full(n, first),
            edge_damping=first,
            slowness=np.ones(n),
            increased=np.zeros(n, np.int64),
            best=mask,
            objective=-np.inf,
            change=np.inf,
            n_iter=0,
            n_unsettled=n,
        )

    def step(state: _Messages) -> _Messages:
        state = _exchange(edges, s, state, convergence_iter)
        if state.exemplars.any() and (state.n_iter == max_iter or state.n_iter % SCORE_EVERY == 0):
            state = _evaluated(edges, state)
        if damping is None and state.n_iter % DAMPING_EVERY == 0:
            state = _more_damped(edges, state, convergence_iter)
        return state

    run = iterate_from_checkpoint(
        step,
        start,
        checkpoint=checkpoint,
        max_iter=max_iter,
        tol=0.0,
        control=control,
        n_clusters=lambda state: int(np.count_nonzero(state.exemplars)),
    )
    return _result(edges, run)


def _exchange(edges: Edges, s: np.ndarray, state: _Messages, convergence_iter: int) -> _Messages:
    """One round of messages."""
    R, A, iteration = state.responsibilities, state.availabilities, state.n_iter + 1
    _mix(R, _responsibilities(edges, s, A), state.edge_damping)
    _mix(A, _availabilities(edges, R), state.edge_damping)
    exemplars = A[edges.own] + R[edges.own] > 0
    changed = np.where(exemplars != state.exemplars, iteration, state.changed)
    unsettled = iteration - changed + 1 < state.slowness * convergence_iter
    n_unsettled = int(np.count_nonzero(unsettled))
    may_converge = iteration >= convergence_iter and exemplars.any()
    return state._replace(
        exemplars=exemplars,
        changed=changed,
        change=float(n_unsettled) if may_converge else np.inf,
        n_iter=iteration,
        n_unsettled=n_unsettled,
    )


def _evaluated(edges: Edges, state: _Messages) -> _Messages:
    value = net_similarity(edges, _most_similar(edges, state.exemplars))
    return state._replace(best=state.exemplars, objective=value) if value > state.objective else state


def _more_damped(edges: Edges, state: _Messages, convergence_iter: int) -> _Messages:
    """Increase the damping around the objects that have been unsettled for too long."""
    unsettled = state.n_iter - state.changed + 1 < state.slowness * convergence_iter
    waited = state.n_iter - state.increased >= np.sqrt(state.slowness) * PATIENCE
    due = _around(edges, unsettled & waited) & (state.damping < MAX_DAMPING)
    damping = np.where(due, np.minimum((1.0 + state.damping) / 2.0, MAX_DAMPING), state.damping)
    if not due.any():
        return state
    return state._replace(
        damping=damping,
        edge_damping=np.maximum(damping[edges.rows], damping[edges.columns]),
        slowness=(1.0 - MIN_DAMPING) / (1.0 - damping),
        increased=np.where(due, state.n_iter, state.increased),
    )


def _result(edges: Edges, run: Any) -> MessagesResult:
    state = run.state
    if run.converged:
        return MessagesResult(state.exemplars, state.n_iter, 0, float(state.damping.max()), run.reason)
    if state.exemplars.any() and run.reason != "max_iter":  # the last round has not been evaluated
        state = _evaluated(edges, state)
    best = state.best
    if not best.any():
        own = state.availabilities[edges.own] + state.responsibilities[edges.own]
        best = np.arange(edges.n_objects) == np.argmax(own)
    return MessagesResult(best, state.n_iter, state.n_unsettled, float(state.damping.max()), run.reason)


def _around(edges: Edges, objects: np.ndarray) -> np.ndarray:
    """These objects, and those that exchange messages with them."""
    around = objects.copy()
    around[edges.columns[objects[edges.rows]]] = True
    around[edges.rows[objects[edges.columns]]] = True
    return around


def _without_ties(s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Similarities with a change in the last digits: with exact ties the messages could oscillate forever."""
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
    """The exemplar of each object: the most similar one, after each cluster has made its best member the exemplar.

    An object without an edge to any exemplar becomes an exemplar.

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
    # of equal similarities the first edge counts: it is written last
    chosen[edges.rows[hits[::-1]]] = edges.columns[hits[::-1]]
    return chosen


def _best_members(edges: Edges, chosen: np.ndarray) -> np.ndarray:
    """The member of each cluster with the largest sum of similarities from the others; all must have an edge to it."""
    within = chosen[edges.rows] == chosen[edges.columns]
    columns = edges.columns[within]
    n = edges.n_objects
    reached = np.bincount(columns, minlength=n) == np.bincount(chosen, minlength=n)[chosen]
    total = np.where(reached, np.bincount(columns, edges.similarities[within], minlength=n), -np.inf)
    order = np.lexsort(
        (-np.arange(n), total, chosen)
    )  # within a cluster: the best last, of equals the first one
    last = np.append(chosen[order][1:] != chosen[order][:-1], True)
    best = np.zeros(n, bool)
    best[order[last]] = True
    return best


def net_similarity(edges: Edges, chosen: np.ndarray) -> float:
    """What affinity propagation maximizes (25.39): similarities to the exemplars, plus their preferences.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> edges = edges_of(csr_array([[0.0, -1.0], [-1.0, 0.0]]), np.full(2, -3.0))
    >>> net_similarity(edges, np.array([0, 0]))
    -4.0
    """
    return float(edges.similarities[chosen[edges.rows] == edges.columns].sum())
