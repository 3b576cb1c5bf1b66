"""Co-clustering probabilities: as an operator, for chosen pairs, and with the clusters of a partition.

Only `coclustering_matrix` forms a matrix of pairs, after a check of the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.dispatch import kernel
from partita.execution import check_memory
from partita.labels import Coassociation
from partita.labels.checks import row_weights
from partita.posterior.draws import Draws, check_partition, gather

CHUNK_ENTRIES = 2**22


def coclustering(draws: ArrayLike, *, weights: ArrayLike | None = None) -> Coassociation:
    """Posterior probabilities that two objects share a cluster, as a symmetric linear operator.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one per row.
    weights : array-like of float, shape (T,), default=None
        Weight of each draw.

    Returns
    -------
    Coassociation
        Supports `C @ v`, `C.pairs(i, j)` and `C.diagonal()`; memory grows as draws x objects.

    Examples
    --------
    >>> C = coclustering([[0, 0, 1], [0, 1, 1]])
    >>> C @ np.ones(3)
    array([1.5, 2. , 1.5])
    """
    found = gather(draws, weights)
    return Coassociation(found.labels.T.astype(np.int32), found.weights)


def coclustering_matrix(draws: ArrayLike, *, weights: ArrayLike | None = None) -> NDArray[np.float64]:
    """Posterior probabilities that two objects share a cluster, as the full N x N matrix.

    Parameters
    ----------
    draws, weights
        As for `coclustering`.

    Returns
    -------
    ndarray, shape (N, N)

    Raises
    ------
    MemoryError
        If the matrix would take more than half of the machine's memory; it is raised before the matrix is allocated.

    Examples
    --------
    >>> coclustering_matrix([[0, 0, 1], [0, 1, 1]])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    shape = np.shape(draws)
    n_objects = shape[1] if len(shape) == 2 else 0
    needed = 8 * n_objects * n_objects
    try:
        check_memory(
            needed,
            f"the co-clustering probabilities of all pairs of {n_objects:,} objects",
            "use the operator partita.posterior.coclustering(draws) (C @ v, C.pairs(i, j)), or "
            "coclustering_with_clusters(draws, partition)",
        )
    except ValueError as error:
        raise MemoryError(str(error)) from None
    return coclustering(draws, weights=weights).dense(max_bytes=needed)


def coclustering_pairs(
    draws: ArrayLike, i: ArrayLike, j: ArrayLike, *, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Posterior probability that objects i and j share a cluster, for chosen pairs.

    Parameters
    ----------
    draws, weights
        As for `coclustering`.
    i, j : array-like of int
        Objects; the two arrays are broadcast against each other.

    Returns
    -------
    ndarray
        In the common shape of i and j.

    Examples
    --------
    >>> coclustering_pairs([[0, 0, 1], [0, 1, 1]], 0, [0, 1, 2])
    array([1. , 0.5, 0. ])
    """
    labels = np.asarray(draws)
    if labels.ndim != 2 or 0 in labels.shape:
        raise ValueError(f"draws has shape {labels.shape}: give one label vector per row (draws x objects)")
    n_draws, n_objects = labels.shape
    share = row_weights(weights, n_draws)
    share = np.full(n_draws, 1.0 / n_draws) if share is None else share / share.sum()
    left, right = np.broadcast_arrays(np.asarray(i), np.asarray(j))
    for name, index in (("i", left), ("j", right)):
        if index.dtype.kind not in "iu" or ((index < 0) | (index >= n_objects)).any():
            raise ValueError(f"{name} must hold integers from 0 to {n_objects - 1}, the objects of the draws")
    out = np.empty(left.size)
    step = max(1, CHUNK_ENTRIES // n_draws)
    for start in range(0, left.size, step):
        chunk = slice(start, start + step)
        out[chunk] = share @ (labels[:, left.ravel()[chunk]] == labels[:, right.ravel()[chunk]])
    return out.reshape(left.shape)


def coclustering_with_clusters(
    draws: ArrayLike, partition: ArrayLike, *, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Mean probability of each object to share a cluster with the objects of each cluster of a partition.

    In its own cluster the object itself is left out. For an object that is alone in its cluster the entry there is the
    probability that it is alone: the share of the draws in which it is.

    Parameters
    ----------
    draws, weights
        As for `coclustering`.
    partition : array-like of int, shape (N,)
        Clusters; they are renumbered in order of appearance.

    Returns
    -------
    ndarray, shape (N, K)

    Examples
    --------
    >>> coclustering_with_clusters([[0, 0, 1], [0, 1, 1]], [0, 0, 1])
    array([[0.5 , 0.  ],
           [0.5 , 0.5 ],
           [0.25, 0.5 ]])
    """
    found = gather(draws, weights)
    z = check_partition(partition, found.n_objects).astype(np.int64)
    sizes = np.bincount(z)
    out = _companions(found, z)
    own = (np.arange(len(z)), z)
    with_own = mean_with_others(out[own], z, found)
    out /= sizes
    out[own] = with_own
    return np.clip(out, 0.0, 1.0, out=out)


def expected_companions(
    draws: ArrayLike, labels: NDArray[np.int64], *, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Expected number of objects of each cluster of a partition that are in one cluster with each object.

    The object itself is counted. Unlike in `coclustering_with_clusters` the clusters keep their numbers.

    Examples
    --------
    >>> expected_companions([[0, 0, 1], [0, 1, 1]], np.array([1, 1, 0]))
    array([[0. , 1.5],
           [0.5, 1.5],
           [1. , 0.5]])
    """
    return _companions(gather(draws, weights), labels)


def _companions(found: Draws, z: NDArray[np.int64]) -> NDArray[np.float64]:
    K = int(z.max()) + 1
    out = np.zeros((len(z), K))
    _add_counts(found.labels, found.weights, z, out, np.zeros((int(found.n_clusters.max()), K)))
    return out


def mean_with_others(
    together: NDArray[np.float64], z: NDArray[np.int64], found: Draws
) -> NDArray[np.float64]:
    """Mean co-clustering of each object with the others of its cluster, or the probability of being alone.

    `together` is the expected number of objects of its cluster, itself included, that have its label.
    """
    others = np.bincount(z)[z] - 1
    mean = (together - 1.0) / np.maximum(others, 1)
    if not others.all():
        mean = np.where(others > 0, mean, _probability_alone(found.labels, found.weights))
    return mean.clip(0.0, 1.0)


def _probability_alone(labels: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the draws in which each object is alone in its cluster."""
    alone = np.zeros(labels.shape[1])
    for row, weight in zip(labels, weights, strict=True):
        alone += weight * (np.bincount(row) == 1)[row]
    return alone


@kernel
def _add_counts(labels, weights, z, out, counts):
    """out[i, k] += weight x number of objects of cluster k with the label of object i, draw by draw."""
    K = out.shape[1]
    for b in range(labels.shape[0]):
        for i in range(z.shape[0]):
            counts[labels[b, i], z[i]] += 1.0
        for i in range(z.shape[0]):
            there = counts[labels[b, i]]
            for k in range(K):
                out[i, k] += weights[b] * there[k]
        counts[:] = 0.0
