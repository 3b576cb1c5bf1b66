"""MCLA: the members' clusters are clustered, and each object joins the meta-cluster with most of its clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp

from partita.consensus.base import Found
from partita.consensus.graphs.graph_cuts import Cut, GraphCut, cut_attributes
from partita.consensus.graphs.partitioner import cut_graph
from partita.consensus.labelings import Labelings
from partita.engines.run import Control
from partita.labels import one_hot, signatures

TIE = 1e-9  # decrease of the log weight per rank of a meta-cluster, which breaks ties


class MCLA(GraphCut):
    """Meta-clustering: clusters of all members are grouped by overlap, and each group becomes a consensus cluster.

    The graph of the members' clusters, with Jaccard similarities as edges, is cut by METIS into ``n_clusters``
    meta-clusters. The association of an object with a meta-cluster is the share of the meta-cluster's clusters that
    hold the object; each object is assigned to the meta-cluster with the largest association. Needs the extra
    ``pip install "partita[graph]"``.

    Good for: members with about the right number of clusters; soft memberships; many objects (linear time). Not for:
    members much finer than the answer, whose clusters overlap too little to be grouped.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. Required: the method has no rule to find it.
    balance : "auto" or float, default="auto"
        How much larger than its share a meta-cluster may be, counted in clusters of the members: 0.05 is 5%.
        "auto" tries several imbalances, with equal and unequal shares, and keeps the cut with the highest mean NMI
        with the members.
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
        Association with the object's own meta-cluster over the sum of all associations.
    confidence_kind_ : str
        "membership".
    member_weights_ : ndarray (n_members,)
        Weights as given; 0 for members that took no part.
    mean_nmi_ : float
        Mean normalized mutual information of the cut with the members.
    imbalance_ : float
        Size of the largest meta-cluster over that of the mean one, in clusters of the members, less 1.
    meta_clusters_ : ndarray of bool (n_clusters, clusters of all members that took part)
        Which clusters of the members, member by member, each consensus cluster consists of.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

    References
    ----------
    Strehl and Ghosh (2002), Cluster ensembles: a knowledge reuse framework for combining multiple partitions, JMLR 3.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import MCLA
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 0, 0]], 10, axis=0)
    >>> model = MCLA(2, random_state=0).fit(Y)
    >>> np.bincount(model.labels_)
    array([20, 20])
    >>> model.predict_proba([[1, 0, 0]]).max().round(2)
    np.float64(0.67)
    """

    _array_laws: tuple[str, ...] = (
        "fitted.meta_clusters_ bool (K,L)",
        "fitted._association float (K,L) 0..",
        "fitted._tie_ranks int (K) 0..K-1",
        "fitted._shares float (K) 0..1",
    )
    _confidence_kind = "membership"

    def __init__(
        self,
        n_clusters=None,
        *,
        balance="auto",
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.balance = balance
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        distinct = signatures(labelings.codes, labelings.weights)
        rows, n_levels = distinct.rows, labelings.n_levels
        counts = one_hot(rows, n_levels).matrix.T @ distinct.weights
        powers = np.repeat(labelings.member_weights, n_levels) * (counts > 0)
        K = self._possible(min(len(rows), int((counts > 0).sum())), "distinct rows or clusters")
        graph = jaccard_graph(rows, n_levels, distinct.weights, powers)
        seed = int(rng.integers(2**31))

        def cuts(imbalance: float, shares: np.ndarray | None) -> list[Cut]:
            found = []
            for meta in cut_graph(graph, powers, K, imbalance=imbalance, shares=shares, seed=seed):
                association = associations(rows, n_levels, association_weights(meta, K, powers))
                labels = _log_weights(association, np.arange(K)).argmax(axis=1)
                found.append(Cut(labels, meta, np.bincount(meta, powers, minlength=K) / powers.sum()))
            return found

        found = self._balanced(cuts, distinct, labelings, K)
        labels = found.cut.labels
        won = np.unique(labels)  # meta-clusters without objects are dropped
        weights = association_weights(found.cut.parts, K, powers)[won]
        association = associations(rows, n_levels, weights)
        confidence = association.max(axis=1) / association.sum(axis=1)
        place = np.searchsorted(won, labels)
        return Found(
            place[distinct.inverse],
            confidence[distinct.inverse],
            clusters={
                "meta_clusters_": weights > 0,
                "_association": weights,
                "_tie_ranks": np.arange(len(won)),
                "_shares": np.bincount(place, distinct.weights) / distinct.weights.sum(),
            },
            attributes={**cut_attributes(found), "_n_levels": n_levels},
        )

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        association = associations(codes, self._n_levels, self._association)
        scores = _log_weights(association, self._tie_ranks)
        scores[association.sum(axis=1) == 0] = np.log(self._shares)  # rows without any association
        return scores


def _log_weights(association: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Log associations; ties (up to rounding) are broken by rank, in ``fit`` and for new rows."""
    with np.errstate(divide="ignore"):
        return np.log(association) - TIE * ranks


# ---- the graph of clusters, and meta-clusters --------------------------------------------------------------


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
    """Weight of each cluster (column) in the association with each meta-cluster (row); rows sum to 1.

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
    """Association of each row of labels with each meta-cluster: the weighted share of its clusters that hold the row.

    Examples
    --------
    >>> weights = association_weights(np.array([0, 1, 0]), 2, np.ones(3))
    >>> associations(np.array([[0, 0], [1, -1]]), np.array([2, 1]), weights).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return one_hot(codes, n_levels).matrix @ weights.T
