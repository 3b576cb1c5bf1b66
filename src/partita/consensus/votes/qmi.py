"""Consensus by quadratic mutual information: k-means on the labels themselves."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from partita.consensus.base import ConsensusEstimator, Found, required_n_clusters
from partita.consensus.label_layout import lay_out
from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import own_agreement
from partita.consensus.votes.onehot_means import best_means, utility
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin, warn_user
from partita.labels import signatures


class QMI(RunningMixin, ConsensusEstimator):
    """Consensus of the highest quadratic mutual information with the members.

    k-means on the labels as one-hot columns. Its squared error is a constant minus the sum over the members of their
    category utility, which is half the quadratic mutual information with the consensus. A missing label is left out of
    the distance and of the mean of its member.

    Good for: a quick consensus with a known number of clusters and any number of objects. Not for: clusters of very
    different sizes, which k-means splits and merges.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. Required: the method has no rule to find it.
    n_init : int, default=10
        Number of starts; the one with the least squared error is kept.
    max_iter : int, default=300
        Largest number of iterations per start.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress` (the objective is minus the squared
        error); returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the best result so far instead of raising.
    n_jobs : int, optional
        Threads that read a label matrix that is not in memory; the answer does not depend on their number.
    executor : None, "threads", "processes", Dask client or address, optional
        Where such a matrix is read; the answer does not depend on it.
    resume : path, optional
        A folder that keeps the state of each start: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

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
    utilities_ : ndarray (n_members,)
        Category utility of the consensus for each member; 0 for members that took no part.
    utility_ : float
        Their weighted sum. Without missing labels this is what the method maximizes.
    inertia_ : float
        The squared error, which the method minimizes.
    n_iter_, converged_
        Iterations of the best start, and whether it converged.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

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
    array([0.83, 0.83, 0.67, 1.  , 1.  ])
    """

    _array_laws: tuple[str, ...] = ("fitted.utilities_ float (D)",)
    _parameter_constraints: dict[str, Any] = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        **RUNNING_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        n_init=10,
        max_iter=300,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
    ):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        distinct = signatures(labelings.codes, labelings.weights)
        cells = lay_out(distinct.rows, labelings.n_levels, distinct.weights, labelings.member_weights)
        K = min(required_n_clusters(self), len(distinct.rows))
        if self.n_clusters > K:
            message = f"n_clusters is {self.n_clusters}, but there are only {K} distinct rows of labels"
            self.fit_report_.add("fewer_objects", message, level="warning")
        found = best_means(
            cells, K, rng, n_init=self.n_init, max_iter=self.max_iter, control=control, folder=self.resume
        )
        if found.reason == "max_iter":
            warn_user(
                f"QMI did not converge in {self.max_iter} iterations: raise max_iter", ConvergenceWarning
            )
        self._note_early_end(found.reason)
        labels = found.labels[distinct.inverse]
        utilities = utility(cells, found.labels, K)
        share_of_owner = labelings.member_weights / self._of_members(None, labelings)[labelings.owners]
        return Found(
            labels,
            own_agreement(labels, *labelings[:4]),
            n_iter=found.n_iter,
            converged=found.converged,
            attributes={
                "inertia_": found.error,
                "utilities_": self._of_members(utilities * share_of_owner, labelings),
                "utility_": float(utilities @ labelings.member_weights),
            },
        )
