"""LACA: latent cluster analysis, a consensus that weighs its members and finds its number of clusters."""

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
from partita.consensus.linkage.laca_search import LacaFit, laca
from partita.consensus.linkage.pair_agreement import adjusted_agreement, member_information
from partita.consensus.linkage.tree_consensus import TREE_CLUSTERS, TreeConsensus, leaf_attributes
from partita.consensus.member_statistics import own_agreement
from partita.estimator import warn_user
from partita.labels import Signatures, signatures

# Members whose mean adjusted Rand index is below this, or not three standard errors above 0, agree by chance.
CHANCE = 0.01


class LACA(TreeConsensus):
    """Latent cluster analysis: a partition that makes the members' pairs of objects most likely.

    Every member e puts two objects together with probability rho_e if they share a cluster of the consensus, and r_e
    if they do not. Average-link agglomeration of the log-likelihood ratios of pairs, cut where joining stops to pay,
    and re-estimation of the rates take turns. The result equals that of the paper's N x N algorithm; it is found from
    label histograms and contingency tables.

    Good for: ensembles of any kind, members of different quality, holes, no number of clusters known. Not for:
    many clusters that the members cannot tell apart, and proving that there is no structure (see ``min_clusters``).

    Parameters
    ----------
    n_clusters : int, optional
        Cut the last tree here once the search with its own number has converged (k-LACA). None: the own number.
    min_clusters : int, default=2
        The search never leaves fewer clusters: 2 in the paper; 1 allows the answer "one cluster". Identical rows are
        never divided to reach it.
    prior_pairs : float, default=30.0
        Equivalent sample size of the rates: so many pairs at one half are added to those that were counted.
    max_iter : int, default=100
        Largest number of trees.
    tol : float, default=1e-6
        The search has converged when the rates move by less than this in sum.
    max_exact : int, default=4000
        With more distinct rows, the tree is built on a sample of the objects with at most so many distinct rows, and
        all other rows join the cluster with the best average link; rates always come from all rows.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        What the label -1 means.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not there in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None
        For the sample of ``max_exact`` (and for soft members) only.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the blocks of a matrix that is not in memory are read and coded.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        The largest cluster is 0.
    n_clusters_ : int
    confidence_ : ndarray (n_objects,)
        How far the members agree that the object belongs with the others of its cluster: a share, not the chance of
        being right.
    agreement_within_, agreement_between_ : ndarray (n_members,)
        The rates rho and r of each member; NaN for members that took no part.
    member_weights_ : ndarray (n_members,)
        What each member tells about the consensus: the mutual information of "together in the member" and "together
        in the consensus" a pair, times its given weight, scaled so that the sum is that of the given weights.
    log_likelihood_ : float
        Of all pairs of all members, at ``agreement_within_`` and ``agreement_between_``.
    linkage_ : ndarray (n_leaves - 1, 4)
        The last tree in scipy's format. The distance is ``link_ceiling_`` minus the average log-likelihood ratio of a
        pair, so that the automatic cut lies at the distance ``link_ceiling_``.
    link_ceiling_ : float
    row_leaves_ : ndarray (n_objects,)
        The leaf of each object: its distinct row. -1 for objects that were not in the tree.
    n_iter_ : int
    converged_ : bool
        False if the search went in circles (the partition with the best likelihood is kept) or reached ``max_iter``.
    fit_report_ : FitReport
        What was unusual about the labels and the search: cycles, sampling, members that say nothing, no agreement.
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

    _parameter_constraints: dict[str, Any] = {
        **TreeConsensus._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "min_clusters": [Interval(Integral, 1, None, closed="left")],
        "prior_pairs": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
        "executor": "no_validation",
    }

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
        executor=None,
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
        self.executor = executor

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator) -> Found:
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

    def _links(self, codes: np.ndarray) -> np.ndarray:
        """Average log-likelihood ratio of a pair with an object of each cluster."""
        return average_links(codes, *self._clusters_of_leaves(), *self._log_ratios)

    def _rates_of_members(self, rates: np.ndarray, labelings: Labelings) -> np.ndarray:
        """Of the user's members: a soft one has the mean of its columns."""
        n_columns = np.bincount(labelings.owners, minlength=self.n_features_in_)
        sums = np.bincount(labelings.owners, rates, minlength=self.n_features_in_)
        return np.where(n_columns > 0, sums / np.maximum(n_columns, 1), np.nan)

    def _note(self, fit: LacaFit, n_distinct: int) -> None:
        report, n_leaves, K = self.fit_report_, len(fit.leaf_rows), int(fit.leaf_labels.max()) + 1
        if n_distinct > self.max_exact:
            report.add(
                "reduced",
                f"{n_distinct} distinct rows: the tree is built on {n_leaves} of them, the others joined the cluster "
                f"with the best average link; max_exact={n_distinct} would be exact",
            )
        elif fit.kept_together:
            report.add(
                "kept_together",
                "some member puts pairs together more often between clusters than within, and identical rows are kept "
                "together all the same (too many objects, or fractional weights): the tree may differ from the paper's",
            )
        if fit.cycle:
            report.add(
                "cycle",
                f"the search came back to a partition it had left {fit.cycle} steps before: of the partitions on "
                "the way the one with the best likelihood is kept",
            )
        elif not fit.converged:
            warn_user(
                f"LACA did not converge within max_iter={self.max_iter} trees: the best partition so far is kept; "
                "raise max_iter",
                ConvergenceWarning,
            )
            report.add("not_converged", f"not converged after {self.max_iter} trees")
        if self.n_clusters is not None and self.n_clusters > K:
            report.add(
                "fewer_clusters",
                f"n_clusters={self.n_clusters}, but there are only {K} distinct rows: they are the clusters",
                level="warning",
            )
        _note_chance(fit, report)


def _note_chance(fit: LacaFit, report: Any) -> None:
    agreement = adjusted_agreement(fit.crossed)
    pairs = agreement[np.triu_indices(len(agreement), 1)]
    pairs = pairs[np.isfinite(pairs)]
    if pairs.size == 0:
        return
    mean, error = pairs.mean(), pairs.std() / np.sqrt(pairs.size)
    if mean <= max(CHANCE, 3.0 * error if pairs.size > 2 else 0.0):
        report.add(
            "no_consensus",
            f"the members agree hardly more than chance would have it (mean adjusted Rand index of two members "
            f"{mean:.3f}): do not trust the clusters",
            level="warning",
        )


def _informed_weights(fit: LacaFit, given: np.ndarray) -> np.ndarray:
    informed = given * member_information(fit.counts)
    return informed * (given.sum() / informed.sum()) if informed.sum() > 0 else given


def _of_objects(fit: LacaFit, distinct: Signatures, labelings: Labelings) -> tuple[np.ndarray, np.ndarray]:
    """Labels and leaves of the objects; where the leaves are copies, objects take theirs in turn."""
    if not fit.from_copies:
        leaf_of_row = np.full(len(distinct.rows), -1)
        leaf_of_row[fit.leaf_rows] = np.arange(len(fit.leaf_rows))
        return fit.labels[distinct.inverse], leaf_of_row[distinct.inverse]
    order = np.argsort(distinct.inverse, kind="stable")
    sizes = labelings.weights[order].astype(np.int64)
    leaves = np.empty(len(order), dtype=np.int64)
    leaves[order] = np.cumsum(sizes) - sizes
    return fit.leaf_labels[leaves], leaves
