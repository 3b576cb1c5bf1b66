"""The draws of chains: labels, log joint, number of clusters, hyper-parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Trace(NamedTuple):
    """Draws of one or several chains, concatenated.

    Labels are canonical within a draw (in order of appearance) for exchangeable priors, and in the smallest integer
    type that holds them; labels of different draws are not related.

    During a fit, labels may be on a device: an array of one draw, or a
    :class:`partita.execution.device_labels.DeviceDraws` of several.
    """

    labels: Any  # [draw, object]
    log_joint: np.ndarray  # [draw]
    n_clusters: np.ndarray  # [draw]
    concentration: np.ndarray  # [draw]
    discount: np.ndarray  # [draw], NaN where the prior has none
    chain: np.ndarray  # [draw], number of its chain

    @property
    def n_clusters_posterior(self) -> dict[int, float]:
        """Share of draws with each number of clusters.

        Examples
        --------
        >>> zeros = np.zeros(4)
        >>> trace = Trace(np.zeros((4, 1), int), zeros, np.array([2, 3, 2, 2]), zeros, zeros, zeros)
        >>> trace.n_clusters_posterior
        {2: 0.75, 3: 0.25}
        """
        values, counts = np.unique(self.n_clusters, return_counts=True)
        return {int(K): float(count / counts.sum()) for K, count in zip(values, counts, strict=True)}


def label_dtype(n_clusters: int) -> np.dtype:
    """The smallest signed integer type that holds the labels of `n_clusters` clusters.

    Examples
    --------
    >>> label_dtype(100), label_dtype(1000)
    (dtype('int8'), dtype('int16'))
    """
    return np.min_scalar_type(-max(int(n_clusters), 1))


def trace_bytes(n_draws: int, n_objects: int, n_clusters: int) -> int:
    """Memory that the labels of a trace take.

    Examples
    --------
    >>> trace_bytes(1000, 100_000, 50)
    100000000
    """
    return n_draws * n_objects * label_dtype(n_clusters).itemsize


def join(traces: Sequence[Trace]) -> Trace:
    """Concatenate traces in the given order; labels have the widest of their types.

    Examples
    --------
    >>> zeros = np.zeros(1)
    >>> one = Trace(np.zeros((1, 2), np.int8), zeros, zeros, zeros, zeros, zeros)
    >>> join([one, one]).labels.shape
    (2, 2)
    """
    return Trace(*(np.concatenate(fields) for fields in zip(*traces, strict=True)))


def select_draws(trace: Trace, chosen: np.ndarray) -> Trace:
    """Some of the draws.

    Examples
    --------
    >>> zeros = np.zeros(3)
    >>> trace = Trace(np.arange(6).reshape(3, 2), zeros, zeros, zeros, zeros, np.arange(3))
    >>> select_draws(trace, np.array([True, False, True])).chain
    array([0, 2])
    """
    return Trace(trace.labels[chosen], *(np.asarray(field)[chosen] for field in trace[1:]))
