"""Graph Laplacians: their smallest eigenvalues, the number of clusters by the eigengap, and the cut of a partition.

W is a symmetric matrix of weights that are not negative (CSR), d its row sums (Murphy, section 25.4). L = D - W,
L_sym = D^-1/2 L D^-1/2, and L_rw = D^-1 L, whose eigenvalues are those of L_sym and whose eigenvectors are D^-1/2 times
those.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

LAPLACIANS = ("unnormalized", "random_walk", "symmetric")
MAX_DENSE_NODES = 800  # components up to this size are decomposed as dense matrices
# up to this size by a sparse factorization, which is exact; beyond, by products alone
MAX_FACTOR_NODES = 30_000
CLEAR_GAP = 5.0  # a single chain of points has ratios of 4 and less: its eigenvalues grow as 1, 4, 9, ...


class Spectrum(NamedTuple):
    """The smallest eigenvalues in increasing order, their vectors (nodes x values), and the component of each node."""

    values: np.ndarray
    vectors: np.ndarray
    parts: np.ndarray


def laplacian_matrix(graph: Any, laplacian: str = "symmetric") -> Any:
    """The Laplacian of a graph; the row of a node without edges is zero.

    Parameters
    ----------
    graph : sparse matrix or array (nodes x nodes)
        Symmetric weights that are not negative.
    laplacian : {"symmetric", "random_walk", "unnormalized"}, default="symmetric"
        L_sym, L_rw or L.

    Returns
    -------
    scipy.sparse.csr_array (nodes x nodes)

    Examples
    --------
    >>> laplacian_matrix([[0.0, 2.0], [2.0, 0.0]], "unnormalized").toarray()
    array([[ 2., -2.],
           [-2.,  2.]])
    >>> laplacian_matrix([[0.0, 2.0], [2.0, 0.0]]).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    W = sp.csr_array(graph, dtype=np.float64)
    d = degrees(W)
    L = sp.csr_array(sp.diags_array(d) - W)
    if laplacian == "unnormalized":
        return L
    power = 0.5 if laplacian == "symmetric" else 1.0
    shrink = np.divide(1.0, d**power, out=np.zeros_like(d), where=d > 0)
    left = sp.diags_array(shrink) @ L
    return sp.csr_array(left @ sp.diags_array(shrink) if laplacian == "symmetric" else left)


def degrees(W: Any) -> np.ndarray:
    """The weighted degree of each node."""
    return np.asarray(W.sum(axis=1), dtype=np.float64).ravel()


def smallest_eigenpairs(W: Any, n_values: int, laplacian: str, rng: np.random.Generator) -> Spectrum:
    """The smallest eigenvalues of a Laplacian, with one zero per connected component of the graph.

    Each component is decomposed separately: its zero is known, so that no iterative solver can miss one of several.

    Examples
    --------
    >>> W = sp.csr_array(np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=float))
    >>> smallest_eigenpairs(W, 3, "symmetric", np.random.default_rng(0)).values.round(9)
    array([0., 0., 2.])
    """
    n_parts, parts = connected_components(W, directed=False)
    symmetric = "unnormalized" if laplacian == "unnormalized" else "symmetric"
    L = laplacian_matrix(W, symmetric)
    d = degrees(W)
    values, owners, columns = [], [], []
    by_part = np.split(np.argsort(parts, kind="stable"), np.cumsum(np.bincount(parts))[:-1])
    for nodes in by_part:
        flat = (
            np.ones(len(nodes))
            if symmetric == "unnormalized"
            else np.sqrt(np.where(d[nodes] > 0, d[nodes], 1.0))
        )
        zero = flat / np.linalg.norm(flat)
        wanted = min(n_values - n_parts + 1, len(nodes)) if n_values > n_parts else 1
        found, vectors = _of_part(L[nodes][:, nodes], zero, wanted, rng)
        values.append(found)
        columns.append(vectors)
        owners.append(nodes)
    return _joined(values, columns, owners, parts, n_values, laplacian, d)


def _joined(values, columns, owners, parts, n_values, laplacian, d) -> Spectrum:
    """The smallest eigenpairs of all components; the vectors of a component are zero elsewhere."""
    flat = np.concatenate(values)
    which = np.repeat(np.arange(len(values)), [len(v) for v in values])
    within = np.concatenate([np.arange(len(v)) for v in values])
    order = np.lexsort((which, flat))[: max(n_values, len(values))]
    U = np.zeros((len(parts), len(order)))
    for column, entry in enumerate(order):
        part = which[entry]
        U[owners[part], column] = columns[part][:, within[entry]]
    if laplacian == "random_walk":
        U /= np.sqrt(np.where(d > 0, d, 1.0))[:, None]
        U /= np.linalg.norm(U, axis=0)
    return Spectrum(flat[order], U, parts)


def _of_part(
    L: Any, zero: np.ndarray, n_values: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest eigenpairs of a connected component, whose vector of eigenvalue zero is known."""
    n = L.shape[0]
    if n_values == 1:
        return np.zeros(1), zero[:, None]
    if n <= MAX_DENSE_NODES or n_values >= n // 2:
        values, vectors = eigh(L.toarray(), subset_by_index=(0, n_values - 1))
    else:
        start = rng.standard_normal(n)
        start -= zero * (zero @ start)
        if n <= MAX_FACTOR_NODES:
            # a shift just below zero, so that the matrix can be factorized
            values, vectors = eigsh(L, k=n_values, sigma=-1e-6 * L.diagonal().max(), v0=start)
        else:
            values, vectors = eigsh(L, k=n_values, which="SA", v0=start, tol=1e-6, ncv=max(4 * n_values, 60))
    order = np.argsort(values)
    values, vectors = np.maximum(values[order], 0.0), vectors[:, order]
    values[0], vectors[:, 0] = 0.0, zero
    return values, vectors


def eigengap(values: np.ndarray, n_parts: int = 1) -> int:
    """The number of clusters: the largest K whose next eigenvalue is several times larger.

    A graph with several connected components has at least that many clusters. A connected graph without a clear gap is
    one cluster. Ratios are compared rather than differences, because the eigenvalues of long thin clusters are all
    small, and their differences grow with K.

    Parameters
    ----------
    values : ndarray
        The smallest eigenvalues of a Laplacian, in increasing order.
    n_parts : int, default=1
        Number of connected components, which is the number of zeros among the values.

    Returns
    -------
    int

    Examples
    --------
    >>> eigengap(np.array([0.0, 0.001, 0.02, 0.03]))
    2
    >>> eigengap(np.array([0.0, 0.1, 0.2, 0.3]))
    1
    """
    lower, upper = values[n_parts:-1], values[n_parts + 1 :]
    clear = np.flatnonzero(upper > CLEAR_GAP * lower)
    return n_parts if len(clear) == 0 else n_parts + 1 + int(clear[-1])


def eigenvalue_ratios(values: np.ndarray) -> dict[int, float]:
    """The ratio of eigenvalue K + 1 to eigenvalue K, for each K whose eigenvalue is not zero.

    Examples
    --------
    >>> eigenvalue_ratios(np.array([0.0, 0.25, 2.0]))
    {2: 8.0}
    """
    return {K: float(values[K] / values[K - 1]) for K in range(1, len(values)) if values[K - 1] > 0}


def cut(graph: Any, labels: np.ndarray) -> float:
    """The weight of the edges between clusters (25.41).

    Parameters
    ----------
    graph : sparse matrix or array (nodes x nodes)
        Symmetric weights.
    labels : array of int (nodes,)
        Cluster of each node.

    Examples
    --------
    >>> cut(sp.csr_array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.array([0, 0, 1]))
    1.0
    """
    between, _ = _between_and_volume(graph, labels)
    return float(between.sum() / 2.0)


def normalized_cut(graph: Any, labels: np.ndarray) -> float:
    """Sum over clusters of the weight that leaves the cluster divided by its volume.

    For two clusters this is (25.48), the sum of the probabilities that a random walk leaves its cluster; (25.42) as
    printed is half of it. A cluster of nodes without edges has no volume and adds 0.

    Parameters
    ----------
    graph : sparse matrix or array (nodes x nodes)
        Symmetric weights.
    labels : array of int (nodes,)
        Cluster of each node.

    Examples
    --------
    >>> normalized_cut(sp.csr_array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.array([0, 0, 1]))
    1.2
    """
    between, volume = _between_and_volume(graph, labels)
    return float(np.divide(between, volume, out=np.zeros_like(between), where=volume > 0).sum())


def _between_and_volume(W: Any, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    W = sp.coo_array(W)
    z = np.unique(labels, return_inverse=True)[1]
    here, there = z[W.row], z[W.col]
    K = int(z.max(initial=0)) + 1
    weights = W.data.astype(np.float64)
    volume = np.bincount(here, weights, minlength=K).astype(np.float64)
    leaving = np.bincount(here, np.where(here != there, weights, 0.0), minlength=K)
    return leaving.astype(np.float64), volume
