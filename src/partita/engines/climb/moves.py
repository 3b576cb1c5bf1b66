"""Merge, delete and birth moves for variational engines, which alone hardly change the number of clusters.

A merge is proposed where the evidence of the joined statistics and the prior of the joined sizes give a higher bound
(without the entropy of the labels, which can only decrease). A deletion is proposed for the smallest clusters: the next
pass gives their objects to the others. Births divide clusters (:mod:`partita.engines.climb.births`). A move is kept if
the bound is higher after a few passes. Hughes and Sudderth (2013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.engines.climb.vb import evidence
from partita.engines.passes.rows import Statistics
from partita.engines.run import Control
from partita.partitions import log_labeled

Births = Callable[[Any], Iterable[Statistics]]

MAX_TRIES = 5  # moves of each kind that are tried before the search ends
MAX_PASSES = 3  # passes in which a move must raise the bound
MIN_SIZE = 1e-2  # of a cluster in use
ROUNDING = 1e-9  # of a bound, relative to it


def merge_pairs(families: Sequence[Any], prior: Any, statistics: Statistics) -> list[tuple[int, int]]:
    """Pairs of clusters in use whose merge may raise the bound, the largest expected gain first."""
    used = np.flatnonzero(statistics.n > MIN_SIZE)
    if len(used) < 2:
        return []
    first, second = (used[index] for index in np.triu_indices(len(used), 1))
    gains = np.array(
        [log_labeled(prior, _pour(statistics.n, j, k)) for j, k in zip(first, second, strict=True)]
    )
    gains -= log_labeled(prior, statistics.n)
    for lik, S in zip(families, statistics.S, strict=True):
        alone = evidence(lik, S).sum(axis=0)
        gains -= alone[first] + alone[second]
        for j in used[:-1]:  # one cluster with all later ones: statistics of all pairs at once may not fit
            pairs = first == j
            gains[pairs] += evidence(lik, S[:, [j]] + S[:, second[pairs]]).sum(axis=0)
    order = [pair for pair in np.argsort(-gains, kind="stable") if gains[pair] > 0]
    return [(int(first[pair]), int(second[pair])) for pair in order]


def merged(statistics: Statistics, j: int, k: int) -> Statistics:
    """The statistics with cluster k merged into cluster j."""
    return statistics._replace(n=_pour(statistics.n, j, k), S=tuple(_pour(S, j, k) for S in statistics.S))


def smallest_clusters(statistics: Statistics) -> list[int]:
    """Clusters in use that may be deleted, the smallest first; none if there is one cluster only."""
    used = np.flatnonzero(statistics.n > MIN_SIZE)
    return used[np.argsort(statistics.n[used], kind="stable")].tolist() if len(used) > 1 else []


def deleted(statistics: Statistics, k: int) -> Statistics:
    """The statistics without those of cluster k, which is then as it is a priori."""
    return statistics._replace(n=_without(statistics.n, k), S=tuple(_without(S, k) for S in statistics.S))


def _pour(array: np.ndarray, j: int, k: int) -> np.ndarray:
    poured = _without(array, k)
    poured[..., j] += array[..., k]
    return poured


def _without(array: np.ndarray, k: int) -> np.ndarray:
    array = array.copy()
    array[..., k] = 0.0
    return array


def with_moves(
    run: Callable[[Any], Any],
    step: Callable[[Any], Any],
    state: Any,
    *,
    min_gain: float = 0.0,
    control: Control | None = None,
    births: Births | None = None,
) -> Iterator[Any]:
    """Run to convergence, then as long as a move raises the bound, make it and run again; yields every run.

    ``births`` gives statistics with more clusters for a state; they are tried where no merge and no deletion helps.

    A move must gain more than ``min_gain``: what a run may lack when it ends. Otherwise a cluster of almost no object
    could be deleted and grow again without end.

    After the fit has been stopped or is late there are no further moves. An interrupt between two runs raises, or ends
    the fit with the last of them where partial results are kept.
    """
    control = Control() if control is None else control
    result = run(state)
    yield result
    while result.converged and not (control.halted or control.late):
        try:
            moved = _first_better(step, result.state, min_gain, births)
        except KeyboardInterrupt:
            if not control.keep_partial:
                raise
            control.stop("interrupted")
            return
        if moved is None:
            return
        result = run(moved)
        yield result


def _first_better(
    step: Callable[[Any], Any], state: Any, min_gain: float, births: Births | None = None
) -> Any:
    """The state after the first move that raises the bound; None if none of the candidates does."""
    statistics = state.statistics
    enough = state.objective + max(min_gain, ROUNDING * (1.0 + abs(state.objective)))
    for j, k in merge_pairs(state.families, state.prior, statistics)[:MAX_TRIES]:
        moved = _tried(step, state.at(merged(statistics, j, k)), enough)
        if moved is not None:
            return moved
    for k in smallest_clusters(statistics)[:MAX_TRIES]:
        moved = _tried(step, state.at(deleted(statistics, k)), enough)
        if moved is not None:
            return moved
    for proposed in births(state) if births is not None else ():
        moved = _tried(step, state.at(proposed), enough)
        if moved is not None:
            return moved
    return None


def _tried(step: Callable[[Any], Any], moved: Any, enough: float) -> Any:
    """The state once its bound is above ``enough``; None if it does not get there in a few passes."""
    before = -np.inf
    for _ in range(MAX_PASSES):
        moved = step(moved)
        if moved.objective > enough:
            return moved
        if enough - moved.objective > moved.objective - before:  # gains get smaller from pass to pass
            return None
        before = moved.objective
    return None
