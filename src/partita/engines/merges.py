"""Merge moves for variational engines, which cannot leave a solution with two clusters where one would do.

A pair is proposed when the evidence of its joined statistics, and the prior of the joined sizes, promise a higher
bound (labels aside, whose entropy can only fall); it is kept when the bound after the next pass is higher indeed.
Hughes and Sudderth (2013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.engines.passes import Statistics
from partita.families.rows import cluster_log_marginals, merged_log_marginals
from partita.partitions import log_labelled

__all__ = ["merge_pairs", "merged", "with_merges"]

TRIES = 5  # pairs that are tried with a pass each before the search gives up


def merge_pairs(families: Sequence[Any], prior: Any, statistics: Statistics) -> list[tuple[int, int]]:
    """Pairs of clusters in use that promise a higher bound together, the most promising first."""
    used = np.flatnonzero(statistics.n > 1e-2)
    if len(used) < 2:
        return []
    alone, together = np.zeros(len(statistics.n)), np.zeros((len(used), len(used)))
    for lik, S in zip(families, statistics.S, strict=True):
        cluster_log_marginals(lik, S, alone)
        merged_log_marginals(lik, S, used, together)
    gains = together - alone[used][:, None] - alone[used][None, :]
    before = log_labelled(prior, statistics.n)
    pairs = []
    for a in range(len(used)):
        for b in range(a):
            j, k = int(used[b]), int(used[a])
            gain = gains[a, b] + log_labelled(prior, _pour(statistics.n, j, k)) - before
            if gain > 0:
                pairs.append((gain, j, k))
    return [(j, k) for _, j, k in sorted(pairs, reverse=True)]


def merged(statistics: Statistics, j: int, k: int) -> Statistics:
    """The statistics with cluster k poured into cluster j."""
    return statistics._replace(n=_pour(statistics.n, j, k), S=tuple(_pour(S, j, k) for S in statistics.S))


def _pour(array: np.ndarray, j: int, k: int) -> np.ndarray:
    array = array.copy()
    array[..., j] += array[..., k]
    array[..., k] = 0.0
    return array


def with_merges(run: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Iterator[Any]:
    """Run to convergence, then as long as a merge raises the bound, merge and run again; yields every run."""
    result = run(state)
    yield result
    while result.converged:
        state = result.state
        for j, k in merge_pairs(state.families, state.prior, state.statistics)[:TRIES]:
            tried = step(state._replace(statistics=merged(state.statistics, j, k)))
            if tried.objective > state.objective:
                result = run(tried)
                yield result
                break
        else:
            return
