"""One partition for a whole posterior: the one of least expected loss, the best draw, the most probable draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.execution import make_executor
from partita.labels import ordered_by_size
from partita.posterior.draws import Draws, canonical_draws, gather
from partita.posterior.losses import Loss, losses_between, make_loss
from partita.posterior.search import OUT_OF_SLOTS, Target, make_target, new_candidate, search
from partita.randomness import as_generator

MAX_PASSES = 100
N_REBUILDS = 24  # clusters destroyed and rebuilt in each of the best candidates
N_POLISHED = 2
N_STARTS = 6
MAX_SMALL_GROUPS = 64  # up to here the search is fast: four times as many starts, and no early end
BATCH_STARTS, SUFFICIENT_HITS = 4, 3  # starts are run in batches until this many have ended at the least loss
MAX_EXACT_PAIRS = (
    2**28
)  # up to this many label pairs, every draw is compared with every draw to find the best
N_SCREENING_DRAWS = 64  # above it, with a sample of this size
N_SHORTLIST = 8
CLUSTERS_PER_GROWTH = 8  # the tables of a candidate grow by this many clusters at a time


class PointEstimate(NamedTuple):
    """A partition, its posterior expected loss, and how it was found.

    `n_hits` of the `n_starts` searches ended at this loss: if it is 1 of many, the posterior has many partitions
    of about the same loss, and more starts may find a better one. `draw` is the row of the draws if the estimate is
    one of them, otherwise None.
    """

    labels: NDArray[np.int64]
    expected_loss: float
    n_clusters: int
    loss: str
    a: float
    n_starts: int
    n_hits: int
    draw: int | None


def point_estimate(
    draws: ArrayLike,
    loss: str = "vi",
    *,
    a: float = 1.0,
    max_clusters: int | None = None,
    weights: ArrayLike | None = None,
    n_starts: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PointEstimate:
    """The partition of least posterior expected loss that a search finds.

    Each start allocates the objects one by one in random order, or takes a draw, and then reallocates the objects one
    at a time until no move reduces the loss; the best few also destroy whole clusters and rebuild them. This is the
    scheme of SALSO (Dahl, Johnson and Mueller 2022) with other tables. One start is the best draw, so that the estimate
    is never worse than it. If the comparison of all pairs of draws would take longer than the search (more than 2^28
    pairs of labels), it is the best of a short list that was chosen by comparison with 64 draws.

    Under "vi" and "binder", objects that no draw separates are moved together. This loses nothing: the loss is a
    concave function of the number of them in one of two clusters, so some optimal partition has them all in one
    cluster. The normalized losses do not have this property, and every object is moved on its own.

    Good for: any posterior or ensemble of partitions; cost grows as objects x draws x clusters, without a matrix of
    pairs. Not for: a posterior with several very different modes, which no single partition describes (see
    `credible_ball`).

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one per row.
    loss : {"vi", "binder", "nvi", "nid"}, default="vi"
        Variation of information (in bits), Binder's loss, and the normalized variation of information and
        information distance; formulas in `partita.posterior.losses`.
    a : float, default=1.0
        Cost of separating two objects that belong together, between 0 and 2, for "vi" and "binder"; the other error
        costs ``2 - a``. The larger, the fewer clusters.
    max_clusters : int, default=None
        Upper bound on the number of clusters; None means no bound.
    weights : array-like of float, shape (T,), default=None
        Weight of each draw.
    n_starts : int, default=None
        Largest number of starts; None means 6, or 24 with at most 64 distinct objects. With more of them the search
        ends early when three starts have ended at the least loss.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of the random orders.
    n_jobs : int, default=None
        Threads; the result does not depend on it.

    Returns
    -------
    PointEstimate

    References
    ----------
    Dahl, Johnson and Mueller (2022), J. Computational and Graphical Statistics 31; Wade and Ghahramani (2018), Bayesian
    Analysis 13.

    Examples
    --------
    >>> draws = [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 1, 1, 2], [0, 0, 1, 1, 1]]
    >>> found = point_estimate(draws, random_state=0)
    >>> found.labels
    array([0, 0, 1, 1, 1])
    >>> point_estimate(draws, max_clusters=1).n_clusters
    1
    """
    spec = make_loss(loss, a)
    _check_counts(max_clusters, n_starts)
    found = gather(draws, weights, collapse=spec.additive)
    n_groups = found.labels.shape[1]
    n_starts = n_starts or (4 * N_STARTS if n_groups <= MAX_SMALL_GROUPS else N_STARTS)
    target = make_target(found, spec, max_clusters)
    rng = as_generator(random_state)
    best = _good_draw(found, spec, max_clusters, rng)
    executor = make_executor(n_jobs)

    def run(starts: Iterable[NDArray[Any]], n_picks: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        jobs = [(start, rng.permutation(n_groups), rng.random(n_picks)) for start in starts]
        ends = np.stack(list(executor.map(lambda job: _run(target, *job), jobs)))
        return ends, losses_between(spec, ends, found) @ found.weights

    starts = _starts(found, target.max_clusters, best, n_starts, rng)
    ends, values = run(starts[:BATCH_STARTS], 0)
    while len(values) < n_starts and (n_groups <= MAX_SMALL_GROUPS or _hits(values) < SUFFICIENT_HITS):
        more, their_values = run(starts[len(values) : len(values) + BATCH_STARTS], 0)
        ends, values = np.vstack([ends, more]), np.concatenate([values, their_values])
    polished, their_values = run(ends[_leaders(values)], N_REBUILDS)
    n_run, n_hits = len(values), _hits(values, min(values.min(), their_values.min()))
    ends, values = np.vstack([ends, polished]), np.concatenate([values, their_values])
    if (
        best is not None
    ):  # unchanged: rounding inside the search must not make the estimate worse than the best draw
        ends = np.vstack([ends, found.labels[[best]]])
        values = np.append(values, losses_between(spec, ends[-1:], found) @ found.weights)
    top = int(values.argmin())
    labels = canonical_draws(ends[top][found.groups][None])[0].astype(np.int64)
    return PointEstimate(labels, float(values[top]), int(labels.max()) + 1, loss, spec.a, n_run, n_hits, None)


def best_draw(
    draws: ArrayLike,
    loss: str = "vi",
    *,
    a: float = 1.0,
    max_clusters: int | None = None,
    weights: ArrayLike | None = None,
) -> PointEstimate:
    """The draw of least posterior expected loss; compares every draw with every draw.

    Parameters
    ----------
    draws, loss, a, max_clusters, weights
        As for `point_estimate`.

    Returns
    -------
    PointEstimate

    Examples
    --------
    >>> best_draw([[0, 0, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]]).draw
    0
    """
    spec = make_loss(loss, a)
    _check_counts(max_clusters, 1)
    found = gather(draws, weights, collapse=True)
    allowed = _allowed(found, max_clusters)
    if not len(allowed):
        raise ValueError(
            f"no draw has {max_clusters} clusters or fewer (the least is {found.n_clusters.min()}): "
            "raise max_clusters, or take point_estimate, which may merge clusters of the draws"
        )
    values = [float((losses_between(spec, found.labels[[b]], found) @ found.weights)[0]) for b in allowed]
    top = int(np.argmin(values))
    row = int(found.sources[allowed[top]])
    labels = canonical_draws(np.asarray(draws)[[row]])[0].astype(np.int64)
    return PointEstimate(labels, values[top], int(labels.max()) + 1, loss, spec.a, 1, 1, row)


def map_draw(draws: ArrayLike, log_joint: ArrayLike) -> PointEstimate:
    """The draw with the largest log joint probability; the first of equals.

    It is a draw, not the mode: with many objects even the best of many draws is far from the mode, and its number of
    clusters does not estimate K. `point_estimate` is the better summary.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors.
    log_joint : array-like of float, shape (T,)
        Log joint probability of each draw; NaN is not allowed.

    Returns
    -------
    PointEstimate
        With `loss` "map" and the negative log joint as `expected_loss`.

    Examples
    --------
    >>> map_draw([[0, 0, 1], [0, 1, 2]], [-3.0, -2.0]).labels
    array([0, 1, 2])
    """
    labels = canonical_draws(draws)
    heights = np.asarray(log_joint, dtype=float)
    if heights.shape != (len(labels),):
        raise ValueError(f"log_joint has shape {heights.shape}, but there are {len(labels)} draws")
    if np.isnan(heights).any():
        raise ValueError(f"log_joint[{int(np.isnan(heights).argmax())}] is NaN: leave that draw out")
    row = int(heights.argmax())
    best = labels[row].astype(np.int64)
    return PointEstimate(best, -float(heights[row]), int(best.max()) + 1, "map", 1.0, 1, 1, row)


def _check_counts(max_clusters: int | None, n_starts: int | None) -> None:
    if max_clusters is not None and max_clusters < 1:
        raise ValueError(f"max_clusters is {max_clusters}: at least one cluster is needed")
    if n_starts is not None and n_starts < 1:
        raise ValueError(f"n_starts is {n_starts}: at least one start is needed")


def _allowed(draws: Draws, max_clusters: int | None) -> NDArray[np.intp]:
    return np.flatnonzero(draws.n_clusters <= (max_clusters or draws.n_objects))


def _good_draw(draws: Draws, loss: Loss, max_clusters: int | None, rng: np.random.Generator) -> int | None:
    """The best draw if it is cheap to find, otherwise the best of a short list; None if no draw is allowed."""
    allowed = _allowed(draws, max_clusters)
    T, U = draws.labels.shape
    if len(allowed) > 1 and len(allowed) * T * U > MAX_EXACT_PAIRS:
        n_candidates = max(N_SHORTLIST, MAX_EXACT_PAIRS // (N_SCREENING_DRAWS * U))
        if len(allowed) > n_candidates:
            allowed = rng.choice(allowed, n_candidates, replace=False)
        sample = rng.choice(
            T, min(T, N_SCREENING_DRAWS), replace=False, p=None if T <= N_SCREENING_DRAWS else draws.weights
        )
        few = draws._replace(labels=draws.labels[sample])
        rough = losses_between(loss, draws.labels[allowed], few).mean(axis=1)
        allowed = allowed[np.argsort(rough, kind="stable")[:N_SHORTLIST]]
    if not len(allowed):
        return None
    values = losses_between(loss, draws.labels[allowed], draws) @ draws.weights
    return int(allowed[values.argmin()])


def _starts(
    draws: Draws, max_clusters: int, best: int | None, n_starts: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """The best draw, then in turn sequential allocation, other draws, and random labels if there are few groups."""
    T, U = draws.labels.shape
    starts = [] if best is None else [draws.labels[best].astype(np.int64)]
    largest = min(max_clusters, int(draws.n_clusters.max()) + 1)
    while len(starts) < n_starts:
        turn = len(starts) % 4
        if turn == 3 and U <= MAX_SMALL_GROUPS:
            starts.append(rng.integers(rng.integers(1, largest + 1), size=U))
        elif turn % 2:
            starts.append(np.full(U, -1))
        else:
            starts.append(
                _within(draws.labels[rng.choice(T, p=draws.weights)].astype(np.int64), max_clusters)
            )
    return starts


def _within(labels: NDArray[np.int64], max_clusters: int) -> NDArray[np.int64]:
    """Labels with the largest `max_clusters` clusters kept and the objects of the others unassigned (-1)."""
    ranks = ordered_by_size(labels)
    return np.where(ranks < max_clusters, ranks, -1)


def _hits(values: NDArray[np.float64], least: float | None = None) -> int:
    """How many values are the least one."""
    return int(np.isclose(values, values.min() if least is None else least, rtol=1e-7, atol=1e-10).sum())


def _leaders(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """The best few results with different losses (equal losses are nearly always equal partitions)."""
    _, first = np.unique(np.round(values, 10), return_index=True)
    return first[:N_POLISHED]


def _run(
    target: Target, start: NDArray[Any], order: NDArray[np.int64], picks: NDArray[np.float64]
) -> NDArray[Any]:
    """One search; it is continued with larger tables if the candidate needs more clusters than they hold."""
    start = start.astype(np.int64)
    most_seen = max(int(np.diff(target.first_row).max()), int(start.max()) + 1)
    capacity = min(target.max_clusters, -(-(most_seen + 1) // CLUSTERS_PER_GROWTH) * CLUSTERS_PER_GROWTH)
    while True:
        candidate = new_candidate(target, capacity)
        search(target, candidate, start, order, picks, MAX_PASSES)
        start = canonical_draws(candidate.z[None])[0].astype(np.int64)
        if not candidate.ints[OUT_OF_SLOTS] or capacity == target.max_clusters:
            return start
        capacity = min(target.max_clusters, 2 * capacity)
