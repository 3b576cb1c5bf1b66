"""Graphs of weights from dissimilarities, each object with a scale of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse as sp

from partita.similarity.neighbors import Nearest, join_graph

__all__ = ["local_scales", "self_tuning_graph", "weights_to"]

SCALE_NEIGHBOUR = 7  # whose dissimilarity is the scale of an object (Zelnik-Manor and Perona 2004)
LEAST_WEIGHT = 1e-9  # an edge stays an edge, however far: it says who is connected
# the power of the share in common: 1 joins noisy moons, 2 cuts single chains where they happen to be thin
POWER = 1.5
PAIRS_AT_A_TIME = 1 << 16


def local_scales(found: Nearest) -> np.ndarray:
    """The scale of each object: the dissimilarity to its seventh neighbour, or to the last one if there are fewer."""
    last = min(SCALE_NEIGHBOUR, found.dissimilarities.shape[1]) - 1
    return np.maximum(found.dissimilarities[:, last], np.finfo(np.float64).tiny)


def self_tuning_graph(found: Nearest, one_sided: float = 1.0) -> Any:
    """Weights ``J_ij^1.5 exp(-d_ij / sqrt(s_i s_j))`` of the edges between neighbours, s being the local scales.

    With squared distances d the second factor is the self-tuning similarity: dense and thin regions are as well
    connected. J is the share of the neighbours of either that are neighbours of both (each its own neighbour too):
    edges across a gap have few in common. An edge that only one end asks for counts ``one_sided`` times its weight.

    Examples
    --------
    >>> found = Nearest(np.array([[1], [0], [1]]), np.array([[1.0], [1.0], [4.0]]))
    >>> self_tuning_graph(found).toarray().round(3)
    array([[0.   , 0.368, 0.   ],
           [0.368, 0.   , 0.026],
           [0.   , 0.026, 0.   ]])
    """
    graph = sp.coo_array(join_graph(found))
    i, j = graph.coords
    roots = np.sqrt(local_scales(found))
    weights = (
        _weight(graph.data, roots[i], roots[j]) * _in_common(found.rows, i, found.rows, j, True) ** POWER
    )
    if one_sided != 1.0:
        mutual = (found.rows[i] == j[:, None]).any(axis=1) & (found.rows[j] == i[:, None]).any(axis=1)
        weights *= np.where(mutual, 1.0, one_sided)
    return sp.csr_array((np.maximum(weights, LEAST_WEIGHT), (i, j)), shape=graph.shape)


def weights_to(found: Nearest, neighbours: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Weights of new objects to their nearest known ones, whose neighbours and scales are given."""
    n, k = found.rows.shape
    here = np.sqrt(local_scales(found))[:, None]
    weights = _weight(found.dissimilarities, here, np.sqrt(scales)[found.rows])
    i, j = np.repeat(np.arange(n), k), found.rows.ravel()
    common = _in_common(found.rows, i, neighbours, j, False).reshape(n, k)
    return np.maximum(weights * common**POWER, LEAST_WEIGHT)


def _weight(d: np.ndarray, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    # one root at a time: their product may underflow
    return np.exp(-(d / here) / there)


def _in_common(A: np.ndarray, i: np.ndarray, B: np.ndarray, j: np.ndarray, itself: bool) -> np.ndarray:
    """The Jaccard index of the neighbours A of objects i and B of objects j; a new object is nobody's neighbour."""
    size = A.shape[1] + B.shape[1] + 2
    out = np.empty(len(i))
    for start in range(0, len(i), PAIRS_AT_A_TIME):
        part = slice(start, start + PAIRS_AT_A_TIME)
        a, b = A[i[part]], np.column_stack([B[j[part]], j[part]])
        shared = (a[:, :, None] == b[:, None, :]).sum(axis=(1, 2))
        if itself:
            shared = shared + (B[j[part]] == i[part, None]).any(axis=1)
        out[part] = shared / (size - shared)
    return out
