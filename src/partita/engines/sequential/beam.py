"""The most probable partition by search: beam search, and A* with a proof.

Both place the objects one after the other and score a partial partition by its exact log joint, prior and data:
each object adds the log probability of its seat and its log predictive in the cluster it joins. Where the beam keeps
the best few at each object, A* keeps all that may still win: a *ceiling* bounds what the remaining objects can add.

Good for: a good partition in one deterministic pass, a start for chains (beam), a certificate on a dozen objects
(A*). Not for: uncertainty (one partition is not a posterior); nor the last digits of the log joint on thousands of
objects that overlap: early choices stay, so let a few Gibbs sweeps follow.
Daume (2007), AISTATS: Fast search for Dirichlet process mixture models; Murphy (2012), section 25.2.4.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import each, kernel
from partita.engines.gibbs.sweep import add_row, clear_slot, move_slot, score_row
from partita.engines.passes.rows import n_cache, n_stats, predictive
from partita.engines.sequential.ceilings import log_ceiling, log_open_ceiling, log_seat_ceiling
from partita.engines.sequential.population import PRIME, Pooled, check, grow, keep, populate, trace_labels
from partita.families import n_rows
from partita.families.contract import datum, log_marginal, n_columns, observe, stats_start
from partita.families.registry import Block
from partita.labels import canonical
from partita.partitions import (
    log_new_seat,
    log_seat,
)

__all__ = ["Found", "Optimum", "a_star", "beam_search", "log_ceiling"]

EQUAL = 1e-9  # log joints closer than this (relative to their size) are the same number


class Found(NamedTuple):
    """A partition and its log joint probability with the data."""

    labels: np.ndarray
    log_joint: float


class Optimum(NamedTuple):
    """The best partition that A* has found, and what it can say of it."""

    labels: np.ndarray
    log_joint: float
    status: str  # "optimal": no partition is more probable; "not proved": none was found
    admissible: bool  # whether the ceilings are proved for these families
    upper_bound: float  # of the log joint of any partition; inf where the ceilings are not proved
    n_nodes: int  # partial partitions looked at


# ---- beam search ---------------------------------------------------------------------------------------------


class Best(NamedTuple):
    """The rule of beam search: the ``width`` most probable children live, those equal up to equal rows once."""

    width: int


@keep.register(Best)
def _(rule, lq, key, M, u, kept, log_w):
    m, merging = 0, key[:M].any()
    for j in np.argsort(-lq[:M], kind="mergesort"):
        twin = False
        before = m - 1
        while merging and before >= 0 and log_w[before] - lq[j] < EQUAL * (1.0 + abs(lq[j])):
            twin = twin or key[kept[before]] == key[j]
            before -= 1
        if not twin:
            kept[m], log_w[m] = j, lq[j]
            m += 1
            if m == log_w.shape[0]:
                break
    return m, 0.0


def beam_search(
    blocks: Sequence[Block], prior: Any, *, width: int = 100, order: np.ndarray | None = None
) -> Found:
    """A partition of high probability in one pass; the most probable one where the beam holds all partitions.

    Parameters
    ----------
    blocks : sequence of Block
        The data; missing cells are welcome, partly seen vectors are not.
    prior : exchangeable prior
    width : int
        Partial partitions that survive each object. Time grows in proportion.
    order : array of int, optional
        The order in which objects are placed. By default those come first that are the least probable under the
        prior alone: far from the middle and from each other, they open the clusters. Typical objects first lose
        ten times as much on Gaussian groups, because they sit between them; a random order does about as well
        on average, with a worse worst case.

    Returns
    -------
    Found
        Canonical labels, and the log joint of the partition.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli, Block
    >>> from partita.partitions import DirichletProcess
    >>> X = np.array([[1] * 6, [0] * 6, [1] * 6, [0] * 6])
    >>> block = Block(Bernoulli.default(6), X, tuple("abcdef"))
    >>> with interpreted():  # four objects are not worth the compiler
    ...     labels, log_joint = beam_search([block], DirichletProcess(1.0))
    >>> labels
    array([0, 1, 0, 1])
    """
    if width < 1:
        raise ValueError(f"width is {width}: take at least 1")
    rows = unusual_first(blocks) if order is None else checked_order(order, n_rows(blocks[0].data))
    pool = populate([block.family for block in blocks], width)
    hashes, _ = row_hashes(blocks)
    pool, parent, seat, _ = grow(pool, Best(int(width)), prior, blocks, rows, np.zeros(len(rows)), hashes, 0)
    best = int(np.argmax(pool.log_w[: pool.counts[0]]))
    z = np.empty(len(rows), np.int64)
    z[rows] = trace_labels(parent, seat, np.array([best]))[0]
    return Found(canonical(z), float(pool.log_w[best]))


def unusual_first(blocks: Sequence[Block]) -> np.ndarray:
    """Objects by their log probability in a cluster of their own, the smallest first."""
    rows = np.arange(n_rows(blocks[0].data))
    empty = [np.zeros((n_stats(block.family), 1)) for block in blocks]
    return np.argsort(predictive(blocks, empty, np.zeros(1))(rows)[:, 0], kind="stable")


def checked_order(order: Any, N: int) -> np.ndarray:
    """An order that names every object once."""
    rows = np.asarray(order)
    if rows.shape != (N,) or not np.array_equal(np.sort(rows), np.arange(N)):
        raise ValueError(f"order must name each of the {N} objects once: a permutation of 0 .. {N - 1}")
    return rows


@kernel
def observe_rows(lik, data, rows, T):
    """``T[:, j] = t(x_rows[j])``."""
    for j in range(rows.shape[0]):
        for d in range(n_columns(lik)):
            observe(
                lik, d, T[stats_start(lik, d) : stats_start(lik, d + 1), j], datum(lik, data, rows[j], d), 1.0
            )


def row_hashes(blocks: Sequence[Block]) -> tuple[np.ndarray, np.ndarray]:
    """A random number for each object, the same for rows with the same statistics (none if all differ), and ids."""
    N = n_rows(blocks[0].data)
    ids = np.empty(N, np.int64)
    known: dict[bytes, int] = {}
    for start in range(0, N, 4096):
        rows = np.arange(start, min(start + 4096, N))
        T = []
        for block in blocks:
            T.append(np.zeros((n_stats(block.family), len(rows))))
            observe_rows(block.family, block.data, rows, T[-1])
        for i, cells in zip(rows, np.ascontiguousarray(np.concatenate(T).T), strict=True):
            ids[i] = known.setdefault(cells.tobytes(), len(known))
    if len(known) == N:
        return np.zeros(0, np.int64), ids
    return np.random.default_rng(0).integers(1, PRIME, size=len(known))[ids], ids


# ---- A* ------------------------------------------------------------------------------------------------------


@each
def add_ceiling(block, i, k, more, out):
    """``out[0] += ceiling of the log predictive of object i in slot k``; exact where nobody can come before."""
    for d in range(n_columns(block.family)):
        s = block.S[stats_start(block.family, d) : stats_start(block.family, d + 1), k]
        x = datum(block.family, block.data, i, d)
        if more > 0:
            out[0] += log_ceiling(block.family, d, s, x, float(more))
        else:
            with_x = s.copy()
            observe(block.family, d, with_x, x, 1.0)
            out[0] += log_marginal(block.family, d, with_x) - log_marginal(block.family, d, s)


@kernel
def ceiling(blocks, prior, n, K, rows, placed, proved):
    """Upper bound of what the objects ``rows[placed:]`` add, each at its best whatever the others do.

    Without proved ceilings: what they would add if each came next, which bounds nothing.
    """
    total, out = 0.0, np.zeros(1)
    for N in range(placed, rows.shape[0]):
        more = N - placed if proved else 0
        best = -np.inf
        for k in range(K + 1):
            seat = log_seat_ceiling(prior, n[k] + more, float(N), K) if n[k] + more > 0 else -np.inf
            if seat > -np.inf:
                out[0] = min(seat, 0.0)
                add_ceiling(blocks, rows[N], k, more, out)
                best = max(best, out[0])
        out[0] = min(log_open_ceiling(prior, float(N), K, more), 0.0)
        add_ceiling(blocks, rows[N], K, 0, out)
        total += max(best, out[0])
    return total


@kernel
def expand(blocks, prior, rows, z, placed, g, proved, n, log_joint, promise):
    """Log joint and log joint plus ceiling of every child of one partial partition; returns their number."""
    K, spare = 0, n.shape[0] - 1
    for j in range(placed):
        K = max(K, z[j] + 1)
    for k in range(K + 2):
        clear_slot(blocks, k)
        n[k] = 0.0
    for j in range(placed):
        add_row(blocks, rows[j], z[j], 1.0)
        n[z[j]] += 1.0
    total = 0.0
    for k in range(K + 1):
        log_joint[k] = log_seat(prior, n[k]) if k < K else log_new_seat(prior, placed + 1.0, K)
        total += math.exp(log_joint[k])
    score_row(blocks, rows[placed], K + 1, log_joint)
    for k in range(K + 1):
        log_joint[k] += g - math.log(total)
        move_slot(blocks, k, spare)
        add_row(blocks, rows[placed], k, 1.0)
        n[k] += 1.0
        promise[k] = log_joint[k] + ceiling(blocks, prior, n, max(K, k + 1), rows, placed + 1, proved)
        move_slot(blocks, spare, k)
        n[k] -= 1.0
    return K + 1


def a_star(
    blocks: Sequence[Block],
    prior: Any,
    *,
    max_nodes: int = 100_000,
    order: np.ndarray | None = None,
    width: int = 100,
) -> Optimum:
    """The most probable partition, with a proof if ``max_nodes`` partial partitions suffice for one.

    A beam search goes first; A* then looks only at partial partitions whose ceiling is above what the beam found,
    the most promising first. Where the nodes run out, the best partition so far comes back "not proved", with an
    upper bound that says how much there may be to win.

    Parameters
    ----------
    blocks, prior, order, width
        As in :func:`beam_search`.
    max_nodes : int
        Partial partitions to make; bounds memory and time.

    Notes
    -----
    Ceilings are proved for the families that register :func:`log_ceiling`. With any other, each object is taken to
    add what it would add next (Daume's inadmissible heuristic): ``admissible`` is False, and nothing is proved.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli, Block
    >>> from partita.partitions import DirichletProcess
    >>> X = np.array([[1] * 6, [0] * 6, [1] * 6, [0] * 6])
    >>> block = Block(Bernoulli.default(6), X, tuple("abcdef"))
    >>> with interpreted():
    ...     found = a_star([block], DirichletProcess(1.0))
    >>> found.labels, found.status
    (array([0, 1, 0, 1]), 'optimal')
    """
    check(blocks, prior)
    N = n_rows(blocks[0].data)
    rows = unusual_first(blocks) if order is None else checked_order(order, N)
    proved = all(type(block.family) in log_ceiling.table for block in blocks)
    start = beam_search(blocks, prior, width=width, order=rows)
    best, z = start.log_joint, start.labels[rows]
    live = tuple(
        Pooled(b.family, b.data, np.zeros((n_stats(b.family), N + 2)), np.zeros((n_cache(b.family), N + 2)))
        for b in blocks
    )
    n, log_joint, promise = np.zeros(N + 2), np.empty(N + 2), np.empty(N + 2)
    hashes, ids = row_hashes(blocks)
    met: set | None = set() if len(hashes) else None
    ticket = itertools.count()  # among equal promises the deepest first, then the first made
    queue: list[tuple] = [(-np.inf, 0, 0, 0.0, ())] if N else []
    n_nodes = 1

    def hopeless(promised: float) -> bool:
        return promised <= best + EQUAL * (1.0 + abs(best))

    while queue and n_nodes < max_nodes and not (proved and hopeless(-queue[0][0])):
        _, _, _, g, path = heapq.heappop(queue)
        at = np.array(path, np.int64)
        for k in range(expand(live, prior, rows, at, len(path), g, proved, n, log_joint, promise)):
            child = (*path, k)
            if len(child) == N and log_joint[k] > best:
                best, z = float(log_joint[k]), np.array(child)
            if len(child) == N or hopeless(promise[k]) or (met is not None and _met(met, ids[rows], child)):
                continue
            heapq.heappush(queue, (-promise[k], -len(child), next(ticket), float(log_joint[k]), child))
            n_nodes += 1
    labels = np.empty(N, np.int64)
    labels[rows] = z
    done = proved and (not queue or hopeless(-queue[0][0]))
    upper = np.inf if not proved else best if done else -queue[0][0]
    status = "optimal" if done else "not proved"
    return Optimum(canonical(labels), best, status, proved, float(upper), n_nodes)


def _met(met: set, ids: np.ndarray, path: tuple[int, ...]) -> bool:
    """Whether a partial partition was met before, up to an exchange of equal rows."""
    groups: dict[int, list[int]] = {}
    for i, k in zip(ids.tolist(), path, strict=False):
        groups.setdefault(k, []).append(i)
    key = tuple(sorted(tuple(sorted(group)) for group in groups.values()))
    known = key in met
    met.add(key)
    return known
