"""How sure the posterior is of each object's place and of each cluster of a partition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels import contingency
from partita.posterior.draws import check_partition, gather
from partita.posterior.similarity import mean_with_others


class Confidence(NamedTuple):
    """What `confidence` found; entry k of the last four is cluster k of the partition, in order of appearance."""

    objects: NDArray[np.float64]  # mean co-clustering with the other members of the object's cluster
    within: NDArray[np.float64]  # mean co-clustering inside the cluster
    nearest: NDArray[np.int64]  # the other cluster it shares draws with most, -1 where there is none
    between: NDArray[np.float64]  # mean co-clustering with that cluster, 0 where there is none
    separation: NDArray[np.float64]  # within minus between: near 1 well defined, near 0 arbitrary


def confidence(draws: ArrayLike, partition: ArrayLike, *, weights: ArrayLike | None = None) -> Confidence:
    """Confidence of every object and every cluster of a partition.

    An object's confidence is its mean probability to share a cluster with the other members of its own; that of an
    object alone in its cluster is the probability that it is alone. A cluster's is the mean over its members, and its
    `separation` subtracts the mean co-clustering with the nearest other cluster.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one a row.
    partition : array-like of int, shape (N,)
        The partition, for example of `point_estimate`.
    weights : array-like of float, shape (T,), default=None
        Weight of each draw.

    Returns
    -------
    Confidence

    Examples
    --------
    >>> found = confidence([[0, 0, 1, 1], [0, 0, 0, 1]], [0, 0, 1, 1])
    >>> found.objects, found.separation
    (array([1. , 1. , 0.5, 0.5]), array([0.75, 0.25]))
    """
    found = gather(draws, weights)
    z = check_partition(partition, found.n_objects).astype(np.int64)
    sizes = np.bincount(z).astype(float)
    n_clusters = len(sizes)
    # pairs are counted cluster by cluster, so that no (objects x clusters) matrix is held
    together, across = np.zeros(len(z)), np.zeros((n_clusters, n_clusters))
    for row, weight in zip(found.labels, found.weights, strict=True):
        counts = contingency(row.astype(np.int64), z, sparse=False).astype(float)
        together += weight * counts[row, z]
        across += weight * (counts.T @ counts)
    objects = mean_with_others(together, z, found)
    within = np.bincount(z, weights=objects) / sizes
    across /= np.outer(sizes, sizes)
    np.fill_diagonal(across, -1.0)
    nearest = across.argmax(axis=1) if n_clusters > 1 else np.array([-1])
    between = across.max(axis=1).clip(0.0)
    return Confidence(objects, within, nearest.astype(np.int64), between, within - between)
