"""HGPA: a balanced cut of the hypergraph of the members' clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from partita.consensus.graphs.graph_cuts import GraphCut, Partition
from partita.consensus.graphs.partitioner import cut_hypergraph
from partita.consensus.labelings import Labelings
from partita.labels import Signatures, one_hot


class HGPA(GraphCut):
    """Hypergraph partitioning: parts of bounded size that cut as few of the members' clusters as possible.

    Each cluster of a member is a hyperedge over its objects; a hyperedge in more than one part costs the weight of its
    member. Objects with the same labels stay together by default. Mt-KaHyPar cuts the hypergraph (the paper used
    HMETIS), with one thread and reproducibly. Needs the extra ``pip install "partita[graph]"``.

    Good for: comparison with the paper; time and memory are linear in the number of labels. Not for: noisy members, as
    a cluster with one misplaced object costs as much as one that is cut in half. CSPA and MCLA are nearly always
    better.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. Required: the method has no rule to find it.
    balance : "auto" or float, default="auto"
        How much heavier than its share a cluster may be: 0.05 is the 5% of the paper. "auto" tries several imbalances,
        with equal and unequal shares, and keeps the cut with the highest mean NMI with the members.
    identical : {"together", "apart"}, default="together"
        How objects with the same labels are treated. "together": the vertices are the distinct rows, which is fast.
        "apart": the vertices are the objects, as in the paper, and a small `balance` may separate objects that no
        member separates (``predict`` then gives such rows the label of the first of them).
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
        Mean normalized mutual information of the cut with the members.
    imbalance_ : float
        Weight of the largest part over that of the mean part, less 1.
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
    >>> from partita import HGPA
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 2], [1, 1, 0], [1, 2, 0]], 10, axis=0)
    >>> np.bincount(HGPA(2, random_state=0).fit(Y).labels_)
    array([20, 20])
    """

    _parameter_constraints: dict[str, Any] = {
        **GraphCut._parameter_constraints,
        "identical": [StrOptions({"together", "apart"})],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        balance="auto",
        identical="together",
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.balance = balance
        self.identical = identical
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _partition(
        self, distinct: Signatures, labelings: Labelings, K: int, rng: np.random.Generator
    ) -> Partition:
        clusters = one_hot(distinct.rows, labelings.n_levels).matrix.tocsc()
        hyperedges = np.split(clusters.indices, clusters.indptr[1:-1])
        costs = np.repeat(labelings.member_weights, labelings.n_levels)
        seed = int(rng.integers(2**31))

        def partition(imbalance: float, shares: np.ndarray | None) -> list[np.ndarray]:
            found = cut_hypergraph(
                hyperedges, costs, distinct.weights, K, imbalance=imbalance, shares=shares, seed=seed
            )
            return [found]

        return partition
