"""LACA: latent cluster analysis, a consensus that weights its members and finds the number of clusters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from partita.consensus.base import Found
from partita.consensus.labelings import Labelings
from partita.consensus.linkage.agglomeration import scipy_linkage
from partita.consensus.linkage.joining import average_links
from partita.consensus.linkage.laca_search import LacaResult, laca
from partita.consensus.linkage.pair_agreement import adjusted_agreement, member_information
from partita.consensus.linkage.tree_consensus import TREE_CLUSTERS, TreeConsensus, leaf_attributes
from partita.consensus.member_statistics import own_agreement
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin, warn_user
from partita.labels import Signatures, signatures

# Members agree by chance if their mean adjusted Rand index is below this, or not three standard errors above 0.
MIN_AGREEMENT = 0.01


class LACA(RunningMixin, TreeConsensus):
    """Latent cluster analysis: the partition that makes the members' decisions about pairs of objects most likely.

    Every member e puts two objects together with probability rho_e if they share a cluster of the consensus, and r_e
    if they do not. Two steps alternate: average-link agglomeration of the log-likelihood ratios of pairs, cut where
    joining no longer raises the likelihood, and re-estimation of the rates. The result equals that of the paper's
    N x N algorithm; it is computed from label histograms and contingency tables.

    Good for: ensembles of any kind, members of different quality, missing labels, an unknown number of clusters. Not
    for: many clusters that the members cannot tell apart, and showing that there is no structure (see
    ``min_clusters``).

    Parameters
    ----------
    n_clusters : int, optional
        Cut the last tree into this number of clusters after the search has converged (k-LACA). None: the number that
        the search finds.
    min_clusters : int, default=2
        Smallest number of clusters of the search: 2 in the paper; 1 allows the answer "one cluster". Identical rows
        are never divided to reach it.
    prior_pairs : float, default=30.0
        Equivalent sample size of the rates: this number of pairs at one half is added to the counted ones.
    max_iter : int, default=100
        Largest number of trees.
    tol : float, default=1e-6
        The search has converged when the changes of all rates sum to at most this.
    max_exact : int, default=4000
        With more distinct rows, the tree is built on a sample of the objects with at most so many distinct rows, and
        all other rows join the cluster with the best average link; rates always come from all rows.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        For the sample of ``max_exact`` (and for soft members) only.
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, optional
        Called after each tree with a :class:`~partita.engines.run.Progress` (the objective is the log-likelihood);
        returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the best partition so far instead of raising.
    n_jobs : int, optional
        Threads that read a label matrix that is not in memory; the answer does not depend on their number.
    executor : None, "threads", "processes", Dask client or address, optional
        Where such a matrix is read; the answer does not depend on it.
    resume : path, optional
        A folder that keeps the state after each tree: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Cluster of each object; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters.
    confidence_ : ndarray (n_objects,)
        Weighted share of the members that put the object with the other objects of its cluster.
    confidence_kind_ : str
        "share of members".
    agreement_within_, agreement_between_ : ndarray (n_members,)
        The rates rho and r of each member; NaN for members that took no part.
    member_weights_ : ndarray (n_members,)
        Information of each member about the consensus: the mutual information, per pair of objects, of "together in
        the member" and "together in the consensus", times the given weight, scaled to the sum of the given weights.
    log_likelihood_ : float
        Of all pairs of all members, at ``agreement_within_`` and ``agreement_between_``.
    linkage_ : ndarray (n_leaves - 1, 4)
        The last tree in scipy's format. The distance is ``link_ceiling_`` minus the average log-likelihood ratio of a
        pair, so that the automatic cut lies at the distance ``link_ceiling_``.
    link_ceiling_ : float
        The largest possible log-likelihood ratio of a pair.
    row_leaves_ : ndarray (n_objects,)
        Leaf of each row of X: its distinct row of labels. -1 for rows that are not in the tree.
    n_iter_ : int
        Number of trees.
    converged_ : bool
        False if the search returned to an earlier partition (the one with the best likelihood is kept), reached
        ``max_iter`` or was stopped.
    fit_report_ : FitReport
        Notes on the labels and on the search: cycles, sampling, members without information, no agreement.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

    References
    ----------
    Xie, Dong, Deng, He and Yang (2013), A probabilistic approach to latent cluster analysis, IJCAI.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import LACA
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 2, 0]], 10, axis=0)
    >>> model = LACA().fit(Y)
    >>> model.n_clusters_, model.labels_[[0, 15, 25, 35]].tolist()
    (2, [0, 0, 1, 1])
    >>> model.predict([[0, 0, 1], [1, 2, 0]]).tolist()
    [0, 1]
    """

    _array_laws: tuple[str, ...] = (
        "fitted.agreement_within_ float (D) 0..1 nan",
        "fitted.agreement_between_ float (D) 0..1 nan",
        "fitted._log_ratios float (2,M)",
    )
    _parameter_constraints: dict[str, Any] = {
        **TreeConsensus._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "min_clusters": [Interval(Integral, 1, None, closed="left")],
        "prior_pairs": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
        **RUNNING_CONSTRAINTS,
    }

    _height_kind = "log-likelihood ratio"

    def __init__(
        self,
        n_clusters=None,
        *,
        min_clusters=2,
        prior_pairs=30.0,
        max_iter=100,
        tol=1e-6,
        max_exact=4000,
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
        self.min_clusters = min_clusters
        self.prior_pairs = prior_pairs
        self.max_iter = max_iter
        self.tol = tol
        self.max_exact = max_exact
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
        fit = laca(
            distinct.rows,
            labelings.n_levels,
            distinct.weights,
            labelings.member_weights,
            n_clusters=self.n_clusters,
            min_clusters=self.min_clusters,
            prior_pairs=self.prior_pairs,
            max_iter=self.max_iter,
            tol=self.tol,
            max_leaves=self.max_exact,
            rng=rng,
            control=control,
            folder=self.resume,
        )
        labels, leaves = _of_objects(fit, distinct, labelings)
        self._note(fit, len(distinct.rows))
        n_clusters = int(fit.leaf_labels.max()) + 1
        ceiling = float(np.maximum(np.maximum(*fit.log_ratios), 0.0).sum())
        return Found(
            labels,
            own_agreement(labels, *labelings[:4]),
            member_weights=_informed_weights(fit, labelings.member_weights),
            n_iter=fit.n_iter,
            converged=fit.converged,
            n_components=n_clusters,
            clusters={TREE_CLUSTERS: np.arange(n_clusters)},
            attributes={
                "log_likelihood_": fit.log_likelihood,
                "linkage_": scipy_linkage(fit.tree, ceiling),
                "link_ceiling_": ceiling,
                "agreement_within_": self._rates_of_members(fit.rates.within, labelings),
                "agreement_between_": self._rates_of_members(fit.rates.between, labelings),
                "_log_ratios": np.stack(fit.log_ratios),
                **leaf_attributes(
                    distinct.rows[fit.leaf_rows], fit.leaf_sizes, fit.leaf_labels, leaves, labelings.n_levels
                ),
            },
        )

    def _links(self, codes: np.ndarray, leaf_labels: np.ndarray) -> np.ndarray:
        """Average log-likelihood ratio of a pair with an object of each cluster."""
        return average_links(codes, *self._clusters_of_leaves(leaf_labels), *self._log_ratios)

    def _rates_of_members(self, rates: np.ndarray, labelings: Labelings) -> np.ndarray:
        """Rates of the user's members; a soft member has the mean of its columns."""
        n_columns = np.bincount(labelings.owners, minlength=self.n_features_in_)
        sums = np.bincount(labelings.owners, rates, minlength=self.n_features_in_)
        return np.where(n_columns > 0, sums / np.maximum(n_columns, 1), np.nan)

    def _note(self, fit: LacaResult, n_distinct: int) -> None:
        report, n_leaves, K = self.fit_report_, len(fit.leaf_rows), int(fit.leaf_labels.max()) + 1
        if n_distinct > self.max_exact:
            report.add(
                "reduced",
                f"{n_distinct} distinct rows: the tree was built on {n_leaves} of them, and the others joined the "
                f"cluster with the best average link; max_exact={n_distinct} would be exact",
            )
        elif fit.kept_together:
            report.add(
                "kept_together",
                "some member puts pairs together more often between clusters than within clusters, but identical rows "
                "were kept together (too many objects, or fractional weights): the tree may differ from the paper's",
            )
        if fit.cycle:
            report.add(
                "cycle",
                f"the search returned to the partition of {fit.cycle} iterations before: of all partitions it visited, "
                "the one with the best likelihood is kept",
            )
        elif fit.reason == "max_iter":
            warn_user(
                f"LACA did not converge within max_iter={self.max_iter} trees: the best partition so far is kept; "
                "raise max_iter",
                ConvergenceWarning,
            )
            report.add("not_converged", f"not converged after {self.max_iter} trees")
        self._note_early_end(fit.reason)
        if self.n_clusters is not None and self.n_clusters > K:
            report.add(
                "fewer_clusters",
                f"n_clusters={self.n_clusters}, but there are only {K} distinct rows: each is a cluster",
                level="warning",
            )
        _note_chance(fit, report)


def _note_chance(fit: LacaResult, report: Any) -> None:
    agreement = adjusted_agreement(fit.crossed)
    pairs = agreement[np.triu_indices(len(agreement), 1)]
    pairs = pairs[np.isfinite(pairs)]
    if pairs.size == 0:
        return
    mean, error = pairs.mean(), pairs.std() / np.sqrt(pairs.size)
    if mean <= max(MIN_AGREEMENT, 3.0 * error if pairs.size > 2 else 0.0):
        report.add(
            "no_consensus",
            f"the members agree hardly more than by chance (mean adjusted Rand index of two members {mean:.3f}): do "
            "not trust the clusters",
            level="warning",
        )


def _informed_weights(fit: LacaResult, given: np.ndarray) -> np.ndarray:
    informed = given * member_information(fit.counts)
    return informed * (given.sum() / informed.sum()) if informed.sum() > 0 else given


def _of_objects(fit: LacaResult, distinct: Signatures, labelings: Labelings) -> tuple[np.ndarray, np.ndarray]:
    """Labels and leaves of the objects; if the leaves are copies, the objects take theirs in turn."""
    if not fit.from_copies:
        leaf_of_row = np.full(len(distinct.rows), -1)
        leaf_of_row[fit.leaf_rows] = np.arange(len(fit.leaf_rows))
        return fit.labels[distinct.inverse], leaf_of_row[distinct.inverse]
    order = np.argsort(distinct.inverse, kind="stable")
    sizes = labelings.weights[order].astype(np.int64)
    leaves = np.empty(len(order), dtype=np.int64)
    leaves[order] = np.cumsum(sizes) - sizes
    return fit.leaf_labels[leaves], leaves
