"""Merge moves for variational engines, which cannot leave a solution that has two clusters in place of one.

A pair is proposed where the evidence of the joined statistics and the prior of the joined sizes give a higher bound
(without the entropy of the labels, which can only decrease); the merge is kept if the bound after the next pass is
higher. Hughes and Sudderth (2013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.engines.climb.vb import evidence
from partita.engines.passes.rows import Statistics
from partita.engines.run import Control
from partita.partitions import log_labeled

MAX_TRIES = 5  # pairs that are tried, with one pass each, before the search ends


def merge_pairs(families: Sequence[Any], prior: Any, statistics: Statistics) -> list[tuple[int, int]]:
    """Pairs of clusters in use whose merge may raise the bound, the largest expected gain first."""
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
    """The statistics with cluster k merged into cluster j."""
    return statistics._replace(n=_pour(statistics.n, j, k), S=tuple(_pour(S, j, k) for S in statistics.S))


def _pour(array: np.ndarray, j: int, k: int) -> np.ndarray:
    array = array.copy()
    array[..., j] += array[..., k]
    array[..., k] = 0.0
    return array


def with_merges(
    run: Callable[[Any], Any], step: Callable[[Any], Any], state: Any, *, control: Control | None = None
) -> Iterator[Any]:
    """Run to convergence, then as long as a merge raises the bound, merge and run again; yields every run.

    After the fit has been stopped or is late there are no further merges. An interrupt between two runs raises, or ends
    the fit with the last of them where partial results are kept.
    """
    control = Control() if control is None else control
    result = run(state)
    yield result
    while result.converged and not (control.halted or control.late):
        try:
            tried = _first_better(step, result.state)
        except KeyboardInterrupt:
            if not control.keep_partial:
                raise
            control.stop("interrupted")
            return
        if tried is None:
            return
        result = run(tried)
        yield result


def _first_better(step: Callable[[Any], Any], state: Any) -> Any:
    """The state one step after the first merge that raises the bound; None if none of the candidates does."""
    for j, k in merge_pairs(state.families, state.prior, state.statistics)[:MAX_TRIES]:
        tried = step(state._replace(statistics=merged(state.statistics, j, k)))
        if tried.objective > state.objective:
            return tried
    return None
