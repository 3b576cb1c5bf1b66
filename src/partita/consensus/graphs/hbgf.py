"""HBGF: a cut of the bipartite graph of objects and clusters."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.graphs.graph_cuts import GraphCut, Partition
from partita.consensus.graphs.partitioner import cut_graph
from partita.consensus.labelings import Labelings
from partita.labels import Signatures, canonical, one_hot


class HBGF(GraphCut):
    """Hybrid bipartite graph: objects and the members' clusters are vertices of one graph, which is cut.

    An object has an edge to every cluster that holds it, and there are no other edges, so that the graph holds all
    information in the labels. ``cut="spectral"`` runs k-means on the leading eigenvectors of the normalized graph (a
    relaxed normalized cut without a bound on sizes). ``cut="metis"`` uses METIS and needs the extra
    ``pip install "partita[graph]"``. Objects with the same labels stay together.

    Good for: many objects (linear time), a known number of clusters. Not for: clusters of very few objects, which
    the leading eigenvectors do not show.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. Required: the method has no rule to find it.
    cut : {"spectral", "metis"}, default="spectral"
        How the graph is cut.
    n_init : int, default=10
        Number of starts of k-means, with "spectral".
    balance : "auto" or float, default="auto"
        With "metis": how much heavier than its share a cluster may be; 0.05 is 5%. "auto" tries several imbalances,
        with equal and unequal shares, and keeps the cut with the highest mean NMI with the members.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Cluster of each object; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters that have objects.
    confidence_ : ndarray (n_objects,)
        Weighted share of the members that put the object with the other objects of its cluster.
    confidence_kind_ : str
        "share of members".
    member_weights_ : ndarray (n_members,)
        Weights as given; 0 for members that took no part.
    mean_nmi_ : float
        Mean normalized mutual information of the clusters with the members.
    imbalance_ : float
        Weight of the largest part over that of the mean part, less 1.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

    References
    ----------
    Fern and Brodley (2004), Solving cluster ensemble problems by bipartite graph partitioning, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import HBGF
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 2], [1, 1, 0], [1, 2, 0]], 10, axis=0)
    >>> np.bincount(HBGF(2, random_state=0).fit(Y).labels_)
    array([20, 20])
    """

    _parameter_constraints: dict[str, Any] = {
        **GraphCut._parameter_constraints,
        "cut": [StrOptions({"spectral", "metis"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        cut="spectral",
        n_init=10,
        balance="auto",
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.cut = cut
        self.n_init = n_init
        self.balance = balance
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _partition(
        self, distinct: Signatures, labelings: Labelings, K: int, rng: np.random.Generator
    ) -> Partition:
        rows, n_levels = _without_empty(distinct.rows)
        graph = (rows, n_levels, distinct.weights, labelings.member_weights)
        seed = int(rng.integers(2**31))
        if self.cut == "spectral":
            parts = self._spectral_parts(graph, K, seed)
            return lambda imbalance, shares: [parts]
        edges = bipartite_graph(*graph)
        weights = np.concatenate([distinct.weights, np.ones(int(n_levels.sum()))])

        def partition(imbalance: float, shares: np.ndarray | None) -> list[np.ndarray]:
            found = cut_graph(edges, weights, K, imbalance=imbalance, shares=shares, seed=seed)
            return [parts[: len(rows)] for parts in found]

        return partition

    def _spectral_parts(
        self, graph: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], K: int, seed: int
    ) -> np.ndarray:
        found = spectral_embedding(*graph, K)
        points = np.concatenate([found.rows, found.clusters])
        weights = np.concatenate([graph[2], np.ones(len(found.clusters))])
        K = min(K, len(np.unique(points.round(12), axis=0)))
        means = KMeans(K, n_init=self.n_init, random_state=seed).fit(points, sample_weight=weights)
        return means.labels_[: len(found.rows)].astype(np.int64)


def _without_empty(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes in which every level has rows, and the numbers of levels."""
    codes = np.column_stack([canonical(column, missing=-1) for column in codes.T])
    return codes, codes.max(axis=0) + 1


# ---- the graph of objects and clusters ---------------------------------------------------------------------


MAX_DENSE = 1500  # clusters of all members up to which a dense eigensolver is used


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
    """The graph, rows first and clusters after them; an edge weighs the member's weight times the row's size.

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
    """Leading eigenvectors of the normalized graph, each row and each cluster scaled to length 1.

    With A the edges and D, E the diagonal degrees of objects and clusters, they are the singular vectors of
    D^-1/2 A E^-1/2. They are computed from the small matrix of the clusters, so that duplicate rows cost nothing.
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
    # normalization removes the scale of a row, sqrt(size / degree)
    return Embedding(_unit((scaled @ vectors) / singular), _unit(vectors), np.sqrt(np.maximum(values, 0.0)))


def _leading(matrix: Any, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n = matrix.shape[0]
    if n <= max(MAX_DENSE, 2 * k):
        values, vectors = eigh(matrix.toarray(), subset_by_index=(max(n - k, 0), n - 1))
    else:
        values, vectors = eigsh(matrix, k=k, which="LA", v0=np.ones(n))
    order = np.argsort(-values)
    keep = order[values[order] > 1e-10]  # directions of zero variance
    return values[keep], vectors[:, keep]


def _unit(points: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)
