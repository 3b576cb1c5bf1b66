"""LWEA: evidence accumulation in which clusters that the other members divide count less."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from partita.consensus.labelings import Labelings
from partita.consensus.linkage.evidence_accumulation import EvidenceAccumulation
from partita.labels import one_hot, signatures
from partita.labels.information import entropy

CONSTRAINTS = {
    name: rule for name, rule in EvidenceAccumulation._parameter_constraints.items() if name != "linkage"
}


class LWEA(EvidenceAccumulation):
    """Locally weighted evidence accumulation: a tree on co-associations in which reliable clusters count more.

    A cluster that the other members divide is less reliable. The weight of a cluster is exp(-H / ``entropy_scale``),
    where H is the mean entropy (in bits) of the members' labels among its objects. The similarity of two objects is the
    sum of the weights of the clusters that hold both, over the number of members that saw both. Average linkage (with
    missing labels the pooled ratio) makes the tree on label histograms of the distinct rows: no N x N matrix is formed.

    Good for: a tree with a known number of clusters (the best of our trees in benchmarks). Not for: an unknown number
    of clusters (use ``Consensus``), or data with outliers, from which average linkage forms clusters of single objects.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters into which the tree is cut. None: the number, 2 or more, with the longest lifetime, that is
        the widest range of distances at which the cut has so many clusters (the smallest of equal ones).
    entropy_scale : float, default=0.4
        Entropy, in bits, at which the weight of a cluster has fallen to exp(-1); the default is that of the paper.
    max_exact : int, default=4000
        With more distinct rows, the tree is built on a sample of the objects with at most so many distinct rows, and
        all other rows join the most similar cluster. The weights always come from all objects.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        For the sample of ``max_exact`` (and for soft members) only.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Cluster of each object; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters that have objects.
    confidence_ : ndarray (n_objects,)
        Weighted share of the members that put the object with the other objects of its cluster, by the given weights.
    confidence_kind_ : str
        "share of members".
    member_weights_ : ndarray (n_members,)
        Weights as given; 0 for members that took no part.
    cluster_weights_ : ndarray (clusters of all members that took part,)
        exp(-H / ``entropy_scale``), member by member.
    linkage_ : ndarray (n_leaves - 1, 4)
        The tree in scipy's format; the distance is 1 minus the weighted co-association.
    row_leaves_ : ndarray (n_objects,)
        Leaf of each row of X: its distinct row of labels. -1 for rows that are not in the tree.
    n_clusters_scores_ : dict
        Number of clusters -> its lifetime, the width of the range of distances with so many clusters; high is good.
        The range of one cluster ends at the distance 1.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

    References
    ----------
    Huang, Wang and Lai (2018), Locally weighted ensemble clustering, IEEE Transactions on Cybernetics 48(5).

    Examples
    --------
    >>> import numpy as np
    >>> from partita import LWEA
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 2, 0]], 10, axis=0)
    >>> model = LWEA(2).fit(Y)
    >>> np.bincount(model.labels_)
    array([20, 20])
    >>> model.cluster_weights_.round(2)
    array([1.  , 0.43, 1.  , 1.  , 1.  , 0.43, 1.  ])
    """

    _parameter_constraints: dict[str, Any] = {
        **CONSTRAINTS,
        "entropy_scale": [Interval(Real, 0, None, closed="neither")],
    }
    linkage = "average"

    def __init__(
        self,
        n_clusters=None,
        *,
        entropy_scale=0.4,
        max_exact=4000,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.entropy_scale = entropy_scale
        self.max_exact = max_exact
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _gains(self, labelings: Labelings) -> np.ndarray:
        distinct = signatures(labelings.codes, labelings.weights)
        entropies = cluster_uncertainty(
            distinct.rows, labelings.n_levels, distinct.weights, labelings.member_weights
        )
        self.cluster_weights_ = np.exp(-entropies / self.entropy_scale)
        return super()._gains(labelings) * self.cluster_weights_


# ---- uncertainty of clusters -------------------------------------------------------------------------------


def cluster_uncertainty(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    member_weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Mean entropy, in bits, of the members' labels within each cluster of each member.

    A member counts by its weight, over the objects of the cluster that it saw. The result has one value for each level
    of each member; it is 0 where no member divides the cluster.

    Examples
    --------
    >>> rows = np.array([[0, 0], [0, 1], [1, 1]])
    >>> cluster_uncertainty(rows, np.array([2, 2]), np.ones(3), np.ones(2)).tolist()
    [0.5, 0.0, 0.0, 0.5]
    """
    ones, offsets = one_hot(rows, n_levels)
    weighted = (ones * sizes[:, None]).tocsc()
    entropies, weight = np.zeros((2, ones.shape[1]))
    for m, power in enumerate(member_weights):
        shared = (ones.T @ weighted[:, offsets[m] : offsets[m + 1]]).toarray()
        seen = shared.sum(axis=1)
        entropies += power * entropy(shared, axis=1) / np.log(2.0)
        weight += power * (seen > 0)
    return np.divide(entropies, weight, out=np.zeros_like(entropies), where=weight > 0)
