"""The graph of objects and clusters: an object has an edge to each cluster that holds it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from partita.labels import one_hot

__all__ = ["Embedding", "bipartite_graph", "spectral_embedding"]

DENSE = 1500  # clusters of all members up to which all their eigenvectors are found at once


class Embedding(NamedTuple):
    """Unit vectors of the rows and of the clusters, and the singular values."""

    rows: NDArray[np.float64]
    clusters: NDArray[np.float64]
    singular_values: NDArray[np.float64]


def bipartite_graph(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    member_weights: NDArray[np.float64],
) -> Any:
    """The graph with the rows first and the clusters after them; an edge weighs what its member weighs, per object.

    Examples
    --------
    >>> graph = bipartite_graph(np.array([[0], [1]]), np.array([2]), np.array([1.0, 3.0]), np.ones(1))
    >>> graph.toarray()[:2]
    array([[0., 0., 1., 0.],
           [0., 0., 0., 3.]])
    """
    edges = one_hot(rows, n_levels).matrix * np.repeat(member_weights, n_levels) * sizes[:, None]
    return sp.csr_array(sp.block_array([[None, edges], [edges.T, None]]))


def spectral_embedding(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    member_weights: NDArray[np.float64],
    n_dimensions: int,
) -> Embedding:
    """Leading eigenvectors of the normalised graph, each row and each cluster scaled to length 1.

    With A the edges and D, E the diagonal degrees of objects and clusters, they are the singular vectors of
    D^-1/2 A E^-1/2. They are found from the small matrix of the clusters, so that repeated rows cost nothing.
    Clusters must not be empty.

    Examples
    --------
    >>> found = spectral_embedding(np.array([[0, 0], [1, 1]]), np.array([2, 2]), np.ones(2), np.ones(2), 2)
    >>> np.abs(found.rows @ found.clusters.T).round(6)
    array([[1., 0., 1., 0.],
           [0., 1., 0., 1.]])
    """
    edges = one_hot(rows, n_levels).matrix * np.repeat(member_weights, n_levels)
    degrees = edges.sum(axis=1)
    scale = 1 / np.sqrt(edges.T @ sizes)
    scaled = sp.csr_array(edges * scale)
    between = scaled.T @ sp.csr_array(scaled * (sizes / degrees)[:, None])
    values, vectors = _leading(between, n_dimensions)
    singular = np.sqrt(np.maximum(values, 1e-300))
    # the scale of a row, sqrt(size / degree), goes with its length
    return Embedding(_unit((scaled @ vectors) / singular), _unit(vectors), np.sqrt(np.maximum(values, 0.0)))


def _leading(matrix: Any, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n = matrix.shape[0]
    if n <= max(DENSE, 2 * k):
        values, vectors = eigh(matrix.toarray(), subset_by_index=(max(n - k, 0), n - 1))
    else:
        values, vectors = eigsh(matrix, k=k, which="LA", v0=np.ones(n))
    order = np.argsort(-values)
    keep = order[values[order] > 1e-10]  # directions in which nothing lies
    return values[keep], vectors[:, keep]


def _unit(points: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)
