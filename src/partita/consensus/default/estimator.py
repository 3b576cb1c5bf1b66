"""`Consensus`: one clustering from many clusterings of the same objects, without required parameters."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from partita.consensus.base import CHUNK_ROWS, ConsensusEstimator, Found
from partita.consensus.default.pair_information import member_pairs
from partita.consensus.default.pair_probabilities import (
    PairProbabilities,
    mean_within,
    row_confidence,
    share_of_independent,
)
from partita.consensus.default.pipeline import CHANCE_FACTOR, ConsensusResult, find_consensus
from partita.consensus.default.tempered import SMOOTHING, log_joint, log_shares
from partita.consensus.grain import (
    GroupTree,
    LeafTree,
    MemberRows,
    RowTreeGrain,
    group_rows,
    join_smallest,
    make_grain,
    row_agreement,
    support_of_members,
)
from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import log_label_probabilities, relative_weights
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin, sum_probabilities
from partita.labels import label_histograms, signatures
from partita.posterior import Grain

MAX_LOG_ODDS = 30.0  # of a row whose labels are all those of one cluster, if the members never disagree
MIN_QUALITY = 0.02  # share of the pairs of a member below which the report lists it


class Consensus(RunningMixin, RowTreeGrain):
    """One clustering from many clusterings (members) of the same objects.

    The input consists of labels only, some of which may be missing. The result is one clustering, its number of
    clusters, and measures of how far both can be trusted. No parameter is required. There are four steps:

    1. The distinct rows of the label matrix are merged into a tree, such that the loss of information about the labels
       is smallest in each step.
    2. The tree is cut into the number of clusters with the highest mean margin (see ``n_clusters_scores_``).
    3. The number of *independent* members is estimated, because runs of one algorithm resemble each other.
    4. Memberships are estimated by EM, in which the labels of an object count as this number of independent labels.

    Good for: ensembles of any kind and size (k-means runs, bootstraps with left-out objects, several algorithms,
    annotators). Not for: draws from a posterior (use :func:`partita.posterior.point_estimate`), or, in large data, for
    clusters of fewer than about one in a thousand objects, because the tree is built from at most 2,000 distinct rows.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters; by default it is estimated.
    max_clusters : int, optional
        Largest number of clusters that is considered; by default twice the square root of the number of objects in the
        tree.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: no label, one further cluster of the member, or one cluster per object with this label.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        For the sample of rows if there are more than 2,000 distinct ones, the comparison with shuffled members if the
        members agree little, and the resampled members of ``n_clusters_posterior_``.
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no pass of EM begins after it. The tree is always
        finished.
    callback : callable, optional
        Called after each pass of EM with a :class:`~partita.engines.run.Progress` (the objective is the tempered
        log-likelihood); returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) during EM keeps the memberships so far instead of raising.
    n_jobs : int, optional
        Number of threads that read a label matrix that is not in memory; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, optional
        Where such a matrix is read; the result does not depend on it.
    resume : path, optional
        A folder in which the memberships are stored after each pass. If the process is killed, the same call continues
        from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray of int (n_objects,)
        Cluster of each object; 0 is the largest cluster. All 0 if the members do not agree more than shuffled ones.
    n_clusters_ : int
        Number of clusters that have objects.
    n_clusters_posterior_ : dict
        For each number of clusters, how often it is the best when the members are resampled (Bayesian bootstrap with a
        total weight of ``independent_members_``; the tree stays the same). If the distribution is wide, the number of
        clusters is uncertain.
    n_clusters_scores_ : dict
        For each number of clusters, the mean margin over the objects; higher is better. The margin is the share of the
        members that put an object with its own cluster, minus the share for the next best cluster. The maximum is at
        ``n_clusters_``, unless clusters lose all their objects in the last step.
    independent_members_ : float
        Number of independent clusterings that would contain as much evidence as the members, between 1 and the number
        of members.
    explained_ : float
        Share of the information about pairs of objects (mutual information over entropy) that the clusters explain,
        averaged over the members.
    confidence_ : ndarray (n_objects,)
        Mean of three numbers: the probability of the label (see ``predict_proba``), the share of the members that put
        the object with the other objects of its cluster, and the probability that two objects of one cluster belong
        together (see ``coclustering``), averaged over all objects: the last is the same for all objects. It ranks
        objects; it is *not* the probability that the label is right. NaN for a single labeling.
    confidence_kind_ : str
        "probability and share of members"; "share of members" if all objects are in one cluster.
    member_weights_ : ndarray (n_members,)
        Given weight of each member times the share of its information about pairs that the clusters explain: near 0 for
        random labels, 0 for members that were not used.
    sentence_ : str
        The result in a few sentences.
    summary_ : GroupsSummary
        The same, and the clusters in words.
    fit_report_ : FitReport
        Notes on the labels and on the fit: `"no_consensus"`, `"one_labeling"`, `"identical"`, `"poor_members"`,
        `"bound_reached"`, ...
    grain_ : Grain
        The tree, cut into at most ``max_clusters`` groups: labels and support at every number of groups
        (:class:`partita.posterior.Grain`). It passes through ``labels_``: coarser levels join its clusters, finer ones
        divide them. All objects are one group if there is no consensus, or if ``n_clusters`` is 1.
    alternatives_ : list of Alternative
        The best supported coarse (2 or 3), medium (4 to 8) and fine answers; see :meth:`at`.
    n_iter_, converged_
        Number of passes of EM, and whether they converged; 0 and True if there is none (one labeling, identical
        members, one cluster).
    schema_, n_features_in_, feature_names_in_
        Labels, number and names of the members.

    See Also
    --------
    NBCE, MixtureConsensus, BCE : models of the labels, with their posteriors.
    LACA : a model of pairs of objects with a quality for each member.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import Consensus
    >>> labels = np.array(
    ...     [
    ...         ["a", "x", 0],
    ...         ["a", "x", 0],
    ...         ["a", None, 1],
    ...         ["b", "y", 1],
    ...         ["b", "y", 1],
    ...     ],
    ...     dtype=object,
    ... )
    >>> model = Consensus(random_state=0).fit(labels)
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    >>> model.predict(np.array([["b", "y", None]], dtype=object))
    array([1])
    """

    _array_laws: tuple[str, ...] = (
        "fitted._tree_clusters int (K) 0..W",
        "fitted._leaf_codes int (l,M) -1..N+N",
        "fitted._leaf_sizes float (l) 0..",
        "fitted._leaf_clusters int (l) 0..W",
        "fitted._tree_children int (t,2) 0..l+t-1",
        "fitted._tree_losses float (t) inf",
        "fitted._log_shares float (K) -inf",
        "fitted._levels int (K,M) -1..",
        "fitted._log_probabilities float (K,L) -inf",
        "fitted._offsets int (M+1) 0..L rising total",
    )
    _parameter_constraints: dict[str, Any] = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [None, Interval(Integral, 2, None, closed="left")],
        **RUNNING_CONSTRAINTS,
    }
    _confidence_kind = "probability and share of members"
    _n_clusters_score = "mean margin"

    def __init__(
        self,
        n_clusters=None,
        *,
        max_clusters=None,
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
        self.max_clusters = max_clusters
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

    # ---- fitting -------------------------------------------------------------------------------------------

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        weights = _as_counts(labelings.weights)
        distinct = signatures(labelings.codes, weights)
        n_distinct, M = distinct.rows.shape
        if self.n_clusters is not None and self.n_clusters > n_distinct:
            raise ValueError(
                f"n_clusters is {self.n_clusters}, but only {n_distinct} objects differ in their labels: "
                f"ask for at most {n_distinct} clusters"
            )
        if bool((labelings.n_levels == n_distinct).all()) and self.n_clusters in (None, n_distinct):
            return self._one_partition(distinct, M)
        found = find_consensus(
            distinct.rows, distinct.weights, labelings.n_levels, _relative(labelings), rng,
            n_clusters=self.n_clusters, max_clusters=self.max_clusters, control=control, folder=self.resume,
        )  # fmt: skip
        self._note(found, len(np.unique(labelings.owners)))
        return _as_found(found, distinct.inverse, labelings, asked=self.n_clusters is not None)

    def _one_partition(self, distinct: Any, M: int) -> Found:
        """One member, or members that are all the same partition: it is the consensus."""
        K = len(distinct.rows)
        clusters = "1 cluster" if K == 1 else f"{K} clusters"
        if M == 1:
            text = (
                f"there is one member, with {clusters}, which is returned unchanged: without other members, "
                "confidence is NaN"
            )
            self.fit_report_.add("one_labeling", text)
        else:
            text = (
                f"all {M} members are the same partition into {clusters}: they count as one clustering, and their "
                "agreement does not show that it is right"
            )
            self.fit_report_.add("identical", text)
        confidence = np.full(len(distinct.inverse), np.nan if M == 1 else 1.0)
        shares = np.log(distinct.weights / distinct.weights.sum())
        return Found(
            labels=distinct.inverse,
            confidence=confidence,
            confidence_kind="share of members",
            n_clusters_posterior={K: 1.0},
            n_iter=0,
            converged=True,
            clusters={"_log_shares": shares, "_levels": distinct.rows.astype(np.int64)},
            attributes={
                "independent_members_": 1.0,
                "explained_": 1.0,
                "n_clusters_scores_": {K: 1.0},
                "sentence_": text,
            },
        )

    def _note(self, found: ConsensusResult, M: int) -> None:
        add = self.fit_report_.add
        if found.n_clusters == 1 and self.n_clusters is None:
            add(
                "no_consensus",
                f"no consensus: the best clusters explain {found.common:.1%} of the members' information about pairs "
                f"(without the member that is explained best), and at least {CHANCE_FACTOR:g} times the "
                f"{found.chance:.1%} of shuffled members is required; all objects are in one cluster (set n_clusters "
                "to get clusters nevertheless)",
                level="warning",
            )
        else:
            add("evidence", _evidence_words(found.n_independent, M))
        self._note_early_end("" if found.model is None else found.model.reason)
        if found.at_bound and self.n_clusters is None:
            add(
                "bound_reached",
                f"the best number of clusters, {found.n_clusters}, is the largest that was considered: "
                "give max_clusters= or n_clusters=",
                level="warning",
            )

    def _settle(self, found: Found, labelings: Labelings, codes: np.ndarray) -> None:
        weights = np.zeros(len(codes))
        weights[labelings.rows] = _as_counts(labelings.weights)
        self._keep_rows(codes, weights, _relative(labelings))
        self._n_levels = labelings.n_levels
        self._trust = share_of_independent(
            found.attributes["independent_members_"], labelings.codes, labelings.weights, self._column_weights
        )
        super()._settle(found, labelings, codes)
        quality = self.member_weights_ / np.maximum(_given(labelings, self.n_features_in_), 1e-300)
        poor = [m for m in np.unique(labelings.owners) if quality[m] < MIN_QUALITY]
        if poor and self.n_clusters_ > 1:
            names = tuple(self._member_name(m) for m in poor)
            text = "members that have almost nothing in common with the consensus, and therefore almost no weight: "
            self.fit_report_.add("poor_members", text + ", ".join(names), names)

    def _member_name(self, m: int) -> str:
        return (self._soft_names or self.schema_.names)[m]

    def _levels_used(self, n_levels: np.ndarray) -> np.ndarray:
        return np.maximum(n_levels, self._rows.max(axis=0, initial=-1) + 1)

    # ---- using ---------------------------------------------------------------------------------------------

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        if hasattr(self, "_levels"):
            seen = codes >= 0
            same = np.stack([((codes == levels) & seen).sum(axis=1) for levels in self._levels], axis=1)
            return self._log_shares + MAX_LOG_ODDS * same / np.maximum(seen.sum(axis=1), 1)[:, None]
        if self._log_probabilities.shape[0] == 1:
            return np.zeros((len(codes), 1))
        return log_joint(
            codes,
            self._log_shares,
            self._log_probabilities.T,
            self._offsets,
            self._powers,
            self.independent_members_,
        )

    # ---- the grain -----------------------------------------------------------------------------------------

    def _grow_grain(self) -> Grain:
        rows = self._distinct_rows()
        tree, labels = self._leaf_tree(), self._row_clusters(rows)
        if tree is None:  # one cluster, or members that are all the same partition
            sizes = np.bincount(labels, rows.weights, minlength=self.n_clusters_)
            joins, clusters = join_smallest(sizes), np.arange(self.n_clusters_)
            self._group_tree = GroupTree(joins, np.zeros(0, np.int64), labels, clusters, clusters + 1)
            support = support_of_members(self._group_tree, rows)
        else:
            n_groups = max(self.n_clusters_scores_)
            self._group_tree = group_rows(tree, n_groups, rows, labels, self._fit_to_groups)
            support = self._support_of_levels(rows)
        return make_grain(self._group_tree, rows, support, "information loss")

    def _support_of_levels(self, rows: MemberRows) -> np.ndarray:
        """The scores of the cuts; a level with fewer groups, as some have no objects, has the best of its cuts."""
        together, pairs = member_pairs(rows.codes, rows.weights, rows.n_levels)
        of_one = float(np.average(together / np.maximum(pairs, 1.0), weights=rows.member_weights))
        scores = np.array([of_one, *(self.n_clusters_scores_[K] for K in sorted(self.n_clusters_scores_))])
        support = np.zeros(len(self._group_tree.clusters))
        np.maximum.at(support, self._group_tree.become - 1, scores)
        return support.clip(0.0, 1.0)

    def _leaf_tree(self) -> LeafTree | None:
        if not hasattr(self, "_tree_children"):
            return None
        total = float(self._leaf_sizes.sum())
        most = total * np.log(
            2.0
        )  # the loss of two halves without a common label, or without a common member
        place = np.full(int(self._leaf_clusters.max()) + 1, -1)
        place[self._tree_clusters] = np.arange(len(self._tree_clusters))
        return LeafTree(
            self._tree_children,
            np.minimum(self._tree_losses, most) / total,
            self._leaf_codes,
            place[self._leaf_clusters],
        )

    def _fit_to_groups(self, codes: np.ndarray, leaf_groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Tempered log weight of groups of leaves for rows of labels."""
        used = leaf_groups >= 0
        z, of_leaf = leaf_groups[used], self._leaf_sizes[used]
        counts, offsets = label_histograms(
            z, self._leaf_codes[used], self._n_levels, weights=of_leaf, n_clusters=n_groups
        )
        sizes = np.bincount(z, of_leaf, minlength=n_groups)
        log_probabilities = log_label_probabilities(counts, offsets, SMOOTHING).T
        return log_joint(
            codes, log_shares(sizes), log_probabilities, offsets, self._powers, self.independent_members_
        )

    def _group_probabilities(self, codes: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Probability of each group: that of its cluster, divided among the parts of the cluster."""
        tree = self._group_tree
        proba = self._probabilities(codes)[:, tree.clusters]
        if len(tree.clusters) > self.n_clusters_:
            scores = self._fit_to_groups(codes, tree.leaf_groups, len(tree.clusters))
            for cluster in range(self.n_clusters_):
                own = tree.clusters == cluster
                proba[:, own] *= softmax(scores[:, own], axis=1)
        return sum_probabilities(proba, groups)

    def _grain_confidence(self, groups: np.ndarray) -> np.ndarray:
        """As ``confidence_``."""
        tree, rows = self._group_tree, self._distinct_rows()
        labels = groups[tree.row_groups]
        agreement = row_agreement(labels, rows)
        if not hasattr(self, "_tree_children"):
            shares = agreement[rows.of_object]
            return np.full(len(shares), np.nan) if np.isnan(self.confidence_).all() else shares
        certainty = np.empty(len(labels))
        for start in range(0, len(labels), CHUNK_ROWS):
            some = slice(start, start + CHUNK_ROWS)
            proba = self._group_probabilities(rows.codes[some], groups)
            certainty[some] = proba[np.arange(len(proba)), labels[some]]
        within = mean_within(labels, rows.codes, rows.weights, rows.member_weights, self._trust)
        return row_confidence(certainty, agreement, within, rows.weights)[rows.of_object]

    def coclustering(self, i=None, j=None):
        """Probability that two objects of the fit belong together.

        It is ``g e + (1 - g) (0.07 + 0.31 u + 0.26 e)``: e is 1 if the objects are in one cluster, u is the cosine of
        their rows of the co-association matrix, and g is ``independent_members_`` over the mean number of labels of an
        object. If members are independent given the clusters, the clusters decide; if members repeat each other, the
        constants say how often such pairs belong together in labeled sets.

        Parameters
        ----------
        i, j : array-like of int, optional
            Objects; the two arrays are broadcast against each other.

        Returns
        -------
        ndarray or PairProbabilities
            Probabilities in the common shape of i and j. Without them a symmetric linear operator: ``P @ v``,
            ``P.pairs(i, j)``, and ``P.dense()`` for the N x N matrix, which checks the memory first.

        Examples
        --------
        >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
        >>> model.coclustering(0, [1, 2]).round(3)
        array([0.82 , 0.035])
        """
        check_is_fitted(self)
        if (i is None) != (j is None):
            raise ValueError("give both i and j, or neither for the operator of all pairs")
        rows = self._distinct_rows()
        probabilities = PairProbabilities(
            rows.codes, self.labels_, rows.of_object, rows.member_weights, self._trust, rows.weights
        )
        return probabilities if i is None else probabilities.pairs(i, j)


def _as_counts(weights: np.ndarray) -> np.ndarray:
    """Whole weights are numbers of objects; other weights are scaled to sum to the number of rows."""
    if (weights == np.floor(weights)).all():
        return weights
    return weights * (len(weights) / weights.sum())


def _relative(labelings: Labelings) -> np.ndarray:
    return relative_weights(labelings.member_weights, labelings.owners)


def _given(labelings: Labelings, n_members: int) -> np.ndarray:
    return np.bincount(labelings.owners, labelings.member_weights, minlength=n_members)


def _evidence_words(n_independent: float, M: int) -> str:
    independent = f"{n_independent:.0f} independent clustering{'s' if round(n_independent) != 1 else ''}"
    return f"the {M} members contain as much evidence as about {independent}"


def _as_found(found: ConsensusResult, inverse: np.ndarray, labelings: Labelings, asked: bool) -> Found:
    K, M = found.n_clusters, len(np.unique(labelings.owners))
    scores = dict(zip(found.curve.n_clusters.tolist(), found.curve.scores.tolist(), strict=True))
    posterior = {1: 1.0}
    if K > 1:
        posterior = {
            int(k): float(p) for k, p in zip(found.curve.n_clusters, found.posterior, strict=True) if p > 0
        }
    attributes: dict[str, Any] = {
        "independent_members_": found.n_independent,
        "explained_": found.share,
        "n_clusters_scores_": scores,
        "sentence_": _sentence(found, M, posterior, asked),
    }
    model = found.model
    if model is None:
        clusters = {"_log_shares": np.zeros(1), "_log_probabilities": np.zeros((1, 1))}
    else:
        clusters = {
            "_log_shares": model.log_shares,
            "_log_probabilities": model.log_probabilities.T,
            "_tree_clusters": np.arange(K),
        }
        attributes |= {
            "_offsets": model.offsets,
            "_powers": model.powers,
            "_leaf_codes": found.leaves.codes.astype(labelings.codes.dtype),
            "_leaf_sizes": found.leaves.weights,
            "_leaf_clusters": found.cut,
            "_tree_children": np.stack([found.tree.left, found.tree.right], axis=1),
            "_tree_losses": found.tree.loss,
        }
    return Found(
        labels=found.labels[inverse],
        confidence=found.confidence[inverse],
        confidence_kind="share of members" if model is None else None,
        member_weights=labelings.member_weights * found.quality,
        n_clusters_posterior=posterior,
        n_iter=0 if model is None else model.n_iter,
        converged=True if model is None else model.converged,
        clusters=clusters,
        attributes=attributes,
    )


def _sentence(found: ConsensusResult, M: int, posterior: dict[int, float], asked: bool) -> str:
    if found.n_clusters == 1 and asked:
        return f"1 cluster, as asked; {_evidence_words(found.n_independent, M)}"
    if found.n_clusters == 1:
        return f"no consensus: the {M} members agree no more than by chance; all objects are in one cluster"
    K = len(np.unique(found.labels))
    often = sorted(posterior.items(), key=lambda item: -item[1])[:3]
    numbers = ", ".join(f"{k} ({p:.0%})" for k, p in often)
    return (
        f"{K} clusters; {_evidence_words(found.n_independent, M)}; the clusters explain {found.share:.0%} of the "
        f"members' information about pairs of objects; numbers of clusters with resampled members: {numbers}"
    )
