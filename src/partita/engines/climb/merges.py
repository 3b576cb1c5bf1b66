"""Merge moves for variational engines, which cannot leave a solution with two clusters where one would do.

A pair is proposed when the evidence of its joined statistics, and the prior of the joined sizes, promise a higher
bound (labels aside, whose entropy can only fall); it is kept when the bound after the next pass is higher indeed.
Hughes and Sudderth (2013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.engines.climb.vb import evidence
from partita.engines.passes.rows import Statistics
from partita.partitions import log_labeled

__all__ = ["merge_pairs", "merged", "with_merges"]

TRIES = 5  # pairs that are tried with a pass each before the search gives up


def merge_pairs(families: Sequence[Any], prior: Any, statistics: Statistics) -> list[tuple[int, int]]:
    """Pairs of clusters in use that promise a higher bound together, the most promising first."""
    used = np.flatnonzero(statistics.n > 1e-2)
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
    """The statistics with cluster k poured into cluster j."""
    return statistics._replace(n=_pour(statistics.n, j, k), S=tuple(_pour(S, j, k) for S in statistics.S))


def _pour(array: np.ndarray, j: int, k: int) -> np.ndarray:
    array = array.copy()
    array[..., j] += array[..., k]
    array[..., k] = 0.0
    return array


def with_merges(
    run: Callable[[Any], Any], step: Callable[[Any], Any], state: Any, *, keep_partial: bool = False
) -> Iterator[Any]:
    """Run to convergence, then as long as a merge raises the bound, merge and run again; yields every run.

    With ``keep_partial`` an interrupt between two runs ends the search with the last of them.
    """
    result = run(state)
    yield result
    while result.converged:
        try:
            tried = _first_better(step, result.state)
        except KeyboardInterrupt:
            if not keep_partial:
                raise
            return
        if tried is None:
            return
        result = run(tried)
        yield result


def _first_better(step: Callable[[Any], Any], state: Any) -> Any:
    """The state one step after the first merge that raises the bound; None if none of the promising ones does."""
    for j, k in merge_pairs(state.families, state.prior, state.statistics)[:TRIES]:
        tried = step(state._replace(statistics=merged(state.statistics, j, k)))
        if tried.objective > state.objective:
            return tried
    return None
