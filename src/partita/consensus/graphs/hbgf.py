"""HBGF: one graph of objects and clusters, cut into parts that hold both."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.graphs.bipartite import bipartite_graph, spectral_embedding
from partita.consensus.graphs.graph_cuts import GraphCut, Partition
from partita.consensus.graphs.partitioner import cut_graph
from partita.consensus.labelings import Labelings
from partita.labels import Signatures, canonical

__all__ = ["HBGF"]


class HBGF(GraphCut):
    """Hybrid bipartite graph: objects and the members' clusters are vertices of one graph, which is cut.

    An object has an edge to every cluster that holds it, and nothing else has an edge, so that nothing is lost of the
    labels. ``cut="spectral"`` takes the leading eigenvectors of the normalised graph and k-means on them (a relaxed
    normalised cut, no bound on sizes). ``cut="metis"`` takes METIS, and the extra:
    ``pip install "partita[graph]"``. Objects with the same labels stay together.

    Good for: many objects (linear time), a known number of clusters. Not for: clusters of very few objects, which
    the leading eigenvectors do not show.

    Parameters
    ----------
    n_clusters : int, default=2
    cut : {"spectral", "metis"}, default="spectral"
    n_init : int, default=10
        Starts of k-means, with "spectral".
    balance : "auto" or float, default="auto"
        With "metis": how much heavier than its share a cluster may be: 0.05 is 5%. "auto" tries
        several imbalances, with equal and unequal shares, and keeps the cut of the highest mean NMI with the members.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        What the label -1 means.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not there in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        The largest cluster is 0.
    n_clusters_ : int
        Clusters that have objects.
    confidence_ : ndarray (n_objects,)
        How far the members agree that the object belongs with the others of its cluster: a share, not the chance of
        being right.
    member_weights_ : ndarray (n_members,)
        As given; 0 for members that took no part.
    mean_nmi_ : float
        Mean NMI of the clusters with the members.
    imbalance_ : float
        The largest part over the mean part, less 1.
    fit_report_ : FitReport
        What was unusual about the labels.
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
        n_clusters=2,
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
