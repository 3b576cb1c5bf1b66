"""Clusters of all members as vertices of a graph, and objects as mixtures of groups of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp

from partita.labels import one_hot

__all__ = ["association_weights", "associations", "jaccard_graph"]


def jaccard_graph(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    cluster_weights: NDArray[np.float64],
) -> Any:
    """Edges between the clusters of all members: objects in both over objects in one of them.

    Clusters of one member have no edge. An edge counts the product of its ends' `cluster_weights`.

    Examples
    --------
    >>> graph = jaccard_graph(np.array([[0, 0], [0, 1], [1, 1]]), np.array([2, 2]), np.ones(3), np.ones(4))
    >>> graph.toarray()[:2, 2:]
    array([[0.5       , 0.33333333],
           [0.        , 0.5       ]])
    """
    ones = one_hot(rows, n_levels).matrix
    both = sp.coo_array(ones.T @ (ones * sizes[:, None]))
    totals = ones.T @ sizes
    pairs = both.row != both.col
    i, j, shared = both.row[pairs], both.col[pairs], both.data[pairs]
    jaccard = shared / (totals[i] + totals[j] - shared)
    return sp.csr_array((jaccard * cluster_weights[i] * cluster_weights[j], (i, j)), shape=both.shape)


def association_weights(
    meta: NDArray[np.int64], n_metas: int, cluster_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What each cluster (column) adds to the association with each meta-cluster (row): rows sum to 1.

    Examples
    --------
    >>> association_weights(np.array([0, 1, 0]), 2, np.ones(3)).tolist()
    [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """
    weights = np.zeros((n_metas, len(meta)))
    weights[meta, np.arange(len(meta))] = cluster_weights
    totals = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, totals, out=weights, where=totals > 0)


def associations(
    codes: NDArray[Any], n_levels: NDArray[Any], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Association of each row of labels with each meta-cluster: the mean of its clusters' indicators.

    Examples
    --------
    >>> weights = association_weights(np.array([0, 1, 0]), 2, np.ones(3))
    >>> associations(np.array([[0, 0], [1, -1]]), np.array([2, 1]), weights).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return one_hot(codes, n_levels).matrix @ weights.T
