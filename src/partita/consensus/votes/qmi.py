"""Consensus by quadratic mutual information: k-means on the labels themselves."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.label_layout import lay_out
from partita.consensus.labelings import Labelings
from partita.consensus.votes.onehot_means import best_means, centres, mean_share, utility
from partita.estimator import warn_user
from partita.labels import signatures


class QMI(ConsensusEstimator):
    """Consensus of the highest quadratic mutual information with the members.

    k-means with the labels written as standardised one-hot columns (less their means, which leave distances as they
    are): its squared error is a constant minus the sum over the members of their category utility, half the quadratic
    mutual information with the consensus. A missing label leaves the distance and the mean of its member.

    Good for a quick consensus with a known number of clusters and any number of objects. Not for clusters of very
    different sizes, which k-means cuts and merges.

    Parameters
    ----------
    n_clusters : int, default 2
        Number of consensus clusters.
    n_init : int, default 10
        Starts; the least squared error wins.
    max_iter : int, default 300
        Iterations of one start.
    noise : {"missing", "cluster", "singletons"}, default "missing"
        What a label of -1 means.
    handle_unknown : {"missing", "error"}, default "missing"
        What new rows do with labels that were not seen in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Consensus, the largest cluster first.
    n_clusters_ : int
        Clusters that have objects.
    confidence_ : ndarray (n_objects,)
        Agreement: mean share, over the members that saw the object, of its label in its cluster.
    member_weights_ : ndarray (n_members,)
        As given; 0 for members that say nothing.
    utilities_ : ndarray (n_members,)
        Category utility of the consensus for each member; 0 for those that took no part.
    utility_ : float
        Their sum, weighted: what is maximised (where no label is missing).
    inertia_ : float
        The squared error: what is minimised.
    n_iter_, converged_, fit_report_
        How the best start went.
    n_features_in_, feature_names_in_, schema_
        The members.

    References
    ----------
    Topchy, Jain and Punch (2003), Combining multiple weak clusterings, ICDM.

    Examples
    --------
    >>> from partita.consensus import QMI
    >>> model = QMI(n_clusters=2, random_state=0).fit([[0, 0, 1], [0, 0, 1], [0, 1, 1], [1, 2, 0], [1, 2, 0]])
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    >>> model.confidence_.round(2)
    array([0.89, 0.89, 0.78, 1.  , 1.  ])
    """

    _parameter_constraints = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=2,
        *,
        n_init=10,
        max_iter=300,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator) -> Found:
        distinct = signatures(labelings.codes, labelings.weights)
        cells = lay_out(distinct.rows, labelings.n_levels, distinct.weights, labelings.member_weights)
        K = min(self.n_clusters, len(distinct.rows))
        if self.n_clusters > K:
            message = (
                f"n_clusters is {self.n_clusters}, and the objects have only {K} different rows of labels"
            )
            self.fit_report_.add("fewer_objects", message, level="warning")
        found = best_means(cells, K, rng, n_init=self.n_init, max_iter=self.max_iter)
        if not found.converged:
            warn_user(
                f"QMI did not converge in {self.max_iter} iterations: raise max_iter", ConvergenceWarning
            )
        shares = centres(cells, found.labels, K)
        agreement = mean_share(cells, shares, found.labels)
        utilities = utility(cells, found.labels, K)
        share_of_owner = labelings.member_weights / self._of_members(None, labelings)[labelings.owners]
        return Found(
            found.labels[distinct.inverse],
            agreement[distinct.inverse],
            n_iter=found.n_iter,
            converged=found.converged,
            attributes={
                "inertia_": found.error,
                "utilities_": self._of_members(utilities * share_of_owner, labelings),
                "utility_": float(utilities @ labelings.member_weights),
            },
        )
