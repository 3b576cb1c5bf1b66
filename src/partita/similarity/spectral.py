"""Spectral clustering: clusters of any shape, from the eigenvectors of a graph."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions

from partita.estimator import FitReport, as_generator
from partita.execution.threads import one_thread_each
from partita.fitting.out_of_core import reads_chunks
from partita.labels import ordered_by_size
from partita.similarity.base import SimilarityEstimator, read_matrix
from partita.similarity.laplacians import (
    CLEAR_GAP,
    LAPLACIANS,
    Spectrum,
    cut,
    degrees,
    eigengap,
    eigenvalue_ratios,
    normalized_cut,
    smallest_eigenpairs,
)
from partita.similarity.neighbors import local_scales, match_rows, nearest, self_tuning_graph, weights_to

# number of neighbors, and factor for edges that are among the nearest of one end only
USUAL_GRAPH, SPARSE_GRAPH = (10, 1.0), (6, 0.1)
MIN_SHARE = 0.5  # of rows / clusters: smaller clusters of the sparse graph are fragments
MIN_IMPROVEMENT = 1.25  # by which the sparse graph must show the clusters more clearly
MIN_SCALE = 0.05  # of the degree: smallest divisor of an extended eigenvector
CHUNK_ROWS = 1 << 14  # new rows at a time


class SpectralClustering(SimilarityEstimator):
    """Clusters as parts of a neighbor graph that are weakly connected (Shi and Malik 2000; Ng et al. 2001).

    Good for: clusters of any shape that are separated by gaps, such as moons, rings and spirals; precomputed
    similarities. Not for: clusters that overlap (use a mixture), or a few outliers between clusters, which may join
    them. There are no probabilities; ``ncut_`` and ``eigenvalues_`` show how clear the clustering is as a whole.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters. By default the eigengap decides: the largest K such that the next eigenvalue is at least
        five times larger.
    laplacian : {"symmetric", "random_walk", "unnormalized"}, default="symmetric"
        L_sym, L_rw or L. The first two look for small normalized cuts; "symmetric" also scales each row of the
        eigenvectors to unit length.
    metric : str or mapping, default="auto"
        How rows of a table are compared, as in :func:`partita.similarity.dissimilarity`. "precomputed": X holds the
        weights of a graph, symmetric and not negative, dense or sparse.
    n_neighbors : int or "auto", default="auto"
        For tables: number of neighbors of a row in the graph. "auto" is 10 without ``n_clusters``. With ``n_clusters``
        it is also 10, except in two cases: more if the graph has more connected components than clusters, and 6 (with
        small weights for one-sided edges) if this graph shows the clusters more clearly, as for thin clusters of few
        rows.
    max_clusters : int, default=20
        Largest number of clusters that the eigengap may choose.
    n_init : int, default=10
        Number of starts of k-means on the eigenvectors.
    column_weights : "balanced", array or mapping, optional
        Weights of the columns in the dissimilarity.
    orders : mapping, optional
        Levels of ordinal columns, from low to high.
    kinds : str, mapping or sequence, optional
        Kinds of the columns; inferred by default.
    standardize : bool, default=True
        Whether numbers are compared in units of their standard deviation.
    handle_unknown : {"missing", "error"}, default="missing"
        How ``predict`` treats categories that did not occur in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None
        For the start of the eigensolver, and for k-means.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    n_clusters_scores_ : dict
        Score per number of clusters K, high is good: the ratio of the (K + 1)-th eigenvalue to the K-th, for K above
        the number of connected components; a ratio above 5 is a clear gap.
    eigenvalues_ : ndarray
        The smallest eigenvalues of the Laplacian; the number of zeros is the number of connected components.
    n_connected_components_ : int
        Number of connected components of the graph.
    embedding_ : ndarray (n_nodes, n_clusters)
        The coordinates that k-means was run on.
    graph_ : scipy.sparse.csr_array (n_nodes, n_nodes)
        The weights.
    row_nodes_ : ndarray (n_rows,)
        Node of each row: equal rows of a table are one node.
    cut_ : float
        Weight between the clusters, (25.41).
    ncut_ : float
        Sum over the clusters of the weight that leaves the cluster divided by its volume: (25.48) for two, twice
        (25.42).
    fit_report_ : FitReport
        What was unusual about the data.
    schema_ : Schema
        The columns, kinds, levels and units by which ``predict`` reads new rows; None with a precomputed graph.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Only if the columns have names.

    Notes
    -----
    The graph of a table joins each row with its nearest rows, with weights ``J_ij^1.5 exp(-d_ij / (s_i s_j))`` where d
    is the dissimilarity (a squared distance), s_i^2 that to the seventh neighbor (Zelnik-Manor and Perona 2004), and J
    the share of neighbors that two rows have in common. New rows get the average of their neighbors' eigenvectors (the
    Nystrom extension) and the label of the nearest center; a row that occurred in ``fit`` keeps its label.

    The eigengap finds clusters that are separated by a gap. A single thin chain of few rows may be divided in two.

    Most time is spent on the nearest neighbors and in the eigensolver, which cannot be stopped between iterations.
    There are therefore no running parameters such as ``time_limit``.

    References
    ----------
    U. von Luxburg, A tutorial on spectral clustering, Statistics and Computing 17, 2007. L. Zelnik-Manor and P. Perona,
    Self-tuning spectral clustering, NIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import SpectralClustering
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    >>> radius = np.repeat([1.0, 3.0], [150, 250])
    >>> X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    >>> model = SpectralClustering(random_state=0).fit(X)
    >>> model.n_clusters_, np.bincount(model.labels_).tolist()
    (2, [250, 150])
    """

    _n_clusters_score = "ratio of eigenvalues"

    _array_laws: tuple[str, ...] = (
        "fitted.row_nodes_ int (N) 0..R-1",
        "fitted._scales float (R) 0..",
        "fitted._neighbors int (R,J) 0..R-1",
        "fitted._node_labels int (R) 0..K-1",
        "fitted._centers float (K,W)",
        "fitted.eigenvalues_ float (E)",
        "fitted.embedding_ float (R,W)",
        "fitted._vectors float (R,U)",
        "fitted._values float (U)",
        "graph.data float (Z) 0..",
        "graph.indices int (Z) 0..R-1",
        "graph.indptr int (R+1) 0..Z rising total",
    )
    _parameter_constraints: dict[str, Any] = {
        **SimilarityEstimator._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "laplacian": [StrOptions(set(LAPLACIANS))],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        laplacian="symmetric",
        metric="auto",
        n_neighbors="auto",
        max_clusters=20,
        n_init=10,
        column_weights=None,
        orders=None,
        kinds=None,
        standardize=True,
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.laplacian = laplacian
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.max_clusters = max_clusters
        self.n_init = n_init
        self.column_weights = column_weights
        self.orders = orders
        self.kinds = kinds
        self.standardize = standardize
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def fit(self, X, y=None):
        """Build the graph and cluster its eigenvectors.

        Parameters
        ----------
        X : array or data frame (rows x columns), or weights (nodes x nodes) with ``metric="precomputed"``
        y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        with self._new_fit():
            rng = as_generator(self.random_state)
            if self._is_precomputed:
                self.graph_ = self._read_graph(X)
                self.row_nodes_ = np.arange(self.n_features_in_)
                spectrum = self._decompose(self.graph_, rng)
            else:
                _, _, self.row_nodes_ = self._open_table(X)
                spectrum = self._build_graph(rng)
                self._note_incomparable_rows()
            self._cluster(spectrum, rng)
        self.fit_report_.warn()
        return self

    # ---- the graph -----------------------------------------------------------------------------------------

    def _read_graph(self, X: Any) -> Any:
        matrix = read_matrix(X, must_be_square=True)
        graph = sp.csr_array(matrix)
        if graph.nnz and graph.data.min() < 0:
            raise ValueError("the graph has negative weights: give similarities that are 0 or more")
        gap = abs(graph - graph.T)
        if gap.nnz and gap.data.max() > 1e-8 * graph.data.max():
            raise ValueError("the graph is not symmetric: give (W + W.T) / 2")
        graph = sp.csr_array((graph + graph.T) / 2.0)
        graph.eliminate_zeros()
        self.schema_, self.fit_report_, self.n_features_in_ = None, FitReport(), graph.shape[0]
        return graph

    def _build_graph(self, rng: np.random.Generator) -> Spectrum:
        """The graph of a table; with ``n_clusters``, the one that shows this number of clusters most clearly."""
        if not isinstance(self.n_neighbors, str):
            return self._use_graph(self.n_neighbors, 1.0, rng)
        spectrum = self._use_graph(*USUAL_GRAPH, rng)
        if self.n_clusters is None:  # the sparse graph shows gaps in single chains too
            return spectrum
        clearness = self._clearness(spectrum)
        if 0 <= clearness < CLEAR_GAP:
            sparser = self._use_graph(*SPARSE_GRAPH, rng)
            if self._clearness(sparser) > MIN_IMPROVEMENT * clearness and self._is_balanced(sparser, rng):
                return sparser
            return self._use_graph(*USUAL_GRAPH, rng)
        n_neighbors = USUAL_GRAPH[0]
        while clearness < 0 and n_neighbors < self._rows.n_rows - 1:  # more components than clusters
            n_neighbors = 2 * n_neighbors
            spectrum = self._use_graph(n_neighbors, 1.0, rng)
            clearness = self._clearness(spectrum)
        return spectrum

    def _clearness(self, spectrum: Spectrum) -> float:
        """How clearly a graph shows ``n_clusters``: the ratio of eigenvalues; negative for too many components."""
        values, n_parts = spectrum.values, int(spectrum.parts.max()) + 1
        K = min(self.n_clusters, len(spectrum.parts))
        if n_parts > K:
            return -1.0
        return np.inf if n_parts == K or len(values) <= K else float(values[K] / values[K - 1])

    def _is_balanced(self, spectrum: Spectrum, rng: np.random.Generator) -> bool:
        K = self.n_clusters
        self.n_connected_components_ = int(spectrum.parts.max()) + 1
        labels, _ = self._k_means(_rows_to_cluster(spectrum.vectors[:, :K], self.laplacian), spectrum, K, rng)
        return bool(np.bincount(labels, minlength=K).min() * K >= MIN_SHARE * len(labels))

    def _use_graph(self, n_neighbors: int, one_sided: float, rng: np.random.Generator) -> Spectrum:
        n = self._rows.n_rows
        found = nearest(self._rows, min(n_neighbors, n - 1))
        if n == 1:
            self.graph_, self._scales = sp.csr_array((1, 1)), np.ones(1)
        else:
            self.graph_, self._scales = self_tuning_graph(found, one_sided), local_scales(found)
        self._neighbors = found.rows
        return self._decompose(self.graph_, rng)

    # ---- eigenvectors and clusters ---------------------------------------------------------------------------

    def _decompose(self, graph: Any, rng: np.random.Generator) -> Spectrum:
        n = graph.shape[0]
        most = min(self.n_clusters or self.max_clusters, n)
        return smallest_eigenpairs(graph, min(most + 1, n), self.laplacian, rng)

    def _cluster(self, spectrum: Spectrum, rng: np.random.Generator) -> None:
        n = self.graph_.shape[0]
        self.n_connected_components_ = int(spectrum.parts.max()) + 1
        K = self._choose(spectrum, n)
        # with fewer clusters than components, the vectors of all components are needed to distinguish them
        width = max(K, min(self.n_connected_components_, len(spectrum.values)))
        U = _rows_to_cluster(spectrum.vectors[:, :width], self.laplacian)
        nodes, centers = self._k_means(U, spectrum, K, rng)
        self.labels_ = ordered_by_size(nodes[self.row_nodes_])
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._node_labels = np.empty(n, np.int64)
        self._node_labels[self.row_nodes_] = self.labels_
        self._centers = np.empty((self.n_clusters_, centers.shape[1]))
        self._centers[self._node_labels] = centers[nodes]
        self.eigenvalues_, self.embedding_ = spectrum.values, U
        self.n_clusters_scores_ = eigenvalue_ratios(spectrum.values)
        self._vectors, self._values = spectrum.vectors[:, :width], spectrum.values[:width]
        self.cut_ = cut(self.graph_, self._node_labels)
        self.ncut_ = normalized_cut(self.graph_, self._node_labels)

    def _choose(self, spectrum: Spectrum, n: int) -> int:
        if self.n_clusters is None:
            K = min(eigengap(spectrum.values, self.n_connected_components_), max(self.max_clusters, 1), n)
            if self.n_connected_components_ > self.max_clusters:
                self.fit_report_.add(
                    "max_clusters",
                    f"the graph has {self.n_connected_components_} connected components, more than "
                    f"max_clusters={self.max_clusters}: some are joined arbitrarily; increase max_clusters or "
                    "n_neighbors",
                    level="warning",
                )
            return K
        if self.n_clusters > n:
            self.fit_report_.add(
                "few_rows",
                f"n_clusters is {self.n_clusters}, and there are only {n} distinct rows: each is a cluster",
                level="warning",
            )
        elif self.n_connected_components_ > self.n_clusters:
            self.fit_report_.add(
                "parts",
                f"the graph has {self.n_connected_components_} connected components, more than "
                f"n_clusters={self.n_clusters}: they are joined arbitrarily; increase n_neighbors",
                level="warning",
            )
        return min(self.n_clusters, n)

    def _k_means(self, U, spectrum: Spectrum, K: int, rng) -> tuple[np.ndarray, np.ndarray]:
        if self.n_connected_components_ == K:  # the clusters are the connected components
            centers = np.zeros((K, U.shape[1]))
            np.add.at(centers, spectrum.parts, U)
            return spectrum.parts.astype(np.int64), centers / np.bincount(spectrum.parts)[:, None]
        seed = int(rng.integers(2**31))
        with one_thread_each():
            means = KMeans(K, n_init=self.n_init, random_state=seed).fit(U)
        return means.labels_.astype(np.int64), means.cluster_centers_

    # ---- new rows ------------------------------------------------------------------------------------------

    @reads_chunks
    def predict(self, X):
        """Cluster of each row, by the eigenvectors of its neighbors.

        Parameters
        ----------
        X : rows like those of ``fit``, or weights (new nodes x nodes of ``fit``)

        Returns
        -------
        ndarray (n_rows,)
        """
        if self._is_precomputed:
            return self._by_weights(sp.csr_array(self._new_matrix(X)))
        new = self._new_rows(X)
        known = match_rows(self._rows, new)
        labels = np.where(known >= 0, self._node_labels[known], 0)
        unseen = np.flatnonzero(known < 0)
        n = self._rows.n_rows
        for start in range(0, len(unseen), CHUNK_ROWS):
            rows = unseen[start : start + CHUNK_ROWS]
            found = nearest(self._rows, min(self._neighbors.shape[1] + 1, n), new.take(rows))
            weights = weights_to(found, self._neighbors, self._scales)
            starts = np.arange(0, weights.size + 1, weights.shape[1])
            W = sp.csr_array((weights.ravel(), found.rows.ravel(), starts), shape=(len(rows), n))
            labels[rows] = self._by_weights(W)
        return labels.astype(np.int64)

    def _by_weights(self, W: Any) -> np.ndarray:
        """Nystrom extension: (d - lambda d) u = W u, and (d - lambda) u = W u for the unnormalized Laplacian."""
        d = degrees(W)[:, None]
        u = self._vectors
        if self.laplacian == "symmetric":
            u = u / np.sqrt(np.where(degrees(self.graph_) > 0, degrees(self.graph_), 1.0))[:, None]
        scale = d - self._values if self.laplacian == "unnormalized" else d * (1.0 - self._values)
        # eigenvectors with eigenvalues near or above 1 are noise: the divisor is bounded from below
        scale = np.where(scale > MIN_SCALE * d, scale, MIN_SCALE * d)
        extended = np.divide(W @ u, scale, out=np.zeros((W.shape[0], u.shape[1])), where=scale > 0)
        if self.laplacian == "symmetric":
            extended *= np.sqrt(d)
        U = _rows_to_cluster(extended, self.laplacian)
        far = ((U[:, None, :] - self._centers[None]) ** 2).sum(axis=2)
        return np.argmin(far, axis=1)

    # ---- storage -------------------------------------------------------------------------------------------

    def _state(self):
        state = super()._state()
        graph = state["fitted"].pop("graph_")
        parts = {"data": graph.data, "indices": graph.indices, "indptr": graph.indptr, "n": graph.shape[0]}
        return {**state, "graph": parts}

    def _restore(self, state):
        super()._restore(state)
        graph = state["graph"]
        n = int(graph["n"])
        self.graph_ = sp.csr_array((graph["data"], graph["indices"], graph["indptr"]), shape=(n, n))
        self.graph_.check_format(full_check=True)


def _rows_to_cluster(U: np.ndarray, laplacian: str) -> np.ndarray:
    """Rows of unit length for the symmetric Laplacian, otherwise the vectors themselves."""
    if laplacian != "symmetric":
        return U
    norms = np.linalg.norm(U, axis=1, keepdims=True)
    return np.divide(U, norms, out=np.zeros_like(U), where=norms > 0)
