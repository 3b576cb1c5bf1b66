"""LWEA: evidence accumulation in which torn clusters count less."""

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
    name: rule for name, rule in EvidenceAccumulation._parameter_constraints.items() if name != "link"
}


class LWEA(EvidenceAccumulation):
    """Locally weighted evidence accumulation: a tree on co-associations in which sure clusters count more.

    A cluster that the other members tear apart says little. Its weight is exp(-H / theta), H being the mean entropy (in
    bits) of the members' labels among its objects. Two objects are alike by the weights of the clusters that hold both,
    over the number of members that saw both; average link (with holes the pooled ratio) makes the tree, on label
    histograms of the distinct rows: nothing of size N x N is formed.

    Good for: the best tree we have seen where the number of clusters is known. Not for: a number of clusters that
    nobody knows (take ``Consensus``), or clusters that are outliers only: like every average link it peels them off.

    Parameters
    ----------
    n_clusters : int, optional
        Cut the tree here. None: the number of clusters, 2 or more, that lasts longest as the threshold moves (the
        lifetime criterion; of equal ones the smallest).
    theta : float, default=0.4
        How fast the weight of a cluster falls with its entropy; the paper's value.
    max_exact : int, default=4000
        With more distinct rows, the tree is built on a sample of the objects with at most so many distinct rows, and
        all other rows join the cluster they are most alike. The weights are always those of all objects.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        What the label -1 means.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not there in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None
        For the sample of ``max_exact`` (and for soft members) only.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        The largest cluster is 0.
    n_clusters_ : int
    confidence_ : ndarray (n_objects,)
        How far the members agree that the object belongs with the others of its cluster: a share, not the chance of
        being right. Members count as given here, not by cluster.
    member_weights_ : ndarray (n_members,)
        As given; 0 for members that took no part.
    cluster_weights_ : ndarray (clusters of all members that took part,)
        exp(-H / theta), member by member.
    linkage_ : ndarray (n_leaves - 1, 4)
        The tree in scipy's format; the distance is 1 minus the weighted co-association.
    row_leaves_ : ndarray (n_objects,)
        The leaf of each object: its distinct row. -1 for objects that were not in the tree.
    lifetimes_ : ndarray (n_leaves,)
        How long K = 1, 2, ... clusters last as the distance grows. That of K = 1 ends at 1.
    fit_report_ : FitReport
        What was unusual about the labels.
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
        "theta": [Interval(Real, 0, None, closed="neither")],
    }
    link = "average"

    def __init__(
        self,
        n_clusters=None,
        *,
        theta=0.4,
        max_exact=4000,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.theta = theta
        self.max_exact = max_exact
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _gains(self, labelings: Labelings) -> np.ndarray:
        distinct = signatures(labelings.codes, labelings.weights)
        entropies = cluster_uncertainty(
            distinct.rows, labelings.n_levels, distinct.weights, labelings.member_weights
        )
        self.cluster_weights_ = np.exp(-entropies / self.theta)
        return super()._gains(labelings) * self.cluster_weights_


# ---- uncertainty of clusters -------------------------------------------------------------------------------


def cluster_uncertainty(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    member_weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Mean entropy, in bits, of the members' labels within each cluster of each member.

    A member counts for a cluster by its weight, over the objects of the cluster that it saw. The result has one value
    for each level of each member; 0 where the members do not tear the cluster.

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
