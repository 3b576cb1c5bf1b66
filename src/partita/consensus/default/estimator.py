"""`Consensus`: one clustering from many clusterings of the same objects, without required parameters."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.default.pair_probabilities import PairProbabilities
from partita.consensus.default.pipeline import CHANCE_FACTOR, ConsensusResult, find_consensus
from partita.consensus.default.tempered import log_joint
from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import relative_weights
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin
from partita.labels import signatures

MAX_LOG_ODDS = 30.0  # of a row whose labels are all those of one cluster, if the members never disagree
MIN_QUALITY = 0.02  # share of the pairs of a member below which the report lists it


class Consensus(RunningMixin, ConsensusEstimator):
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
        Mean of the probability of the label and the share of the members that put the object with the other objects of
        its cluster. It ranks objects; it is *not* the probability that the label is right. NaN for a single labeling.
    confidence_kind_ : str
        "probability and share of members"; "share of members" if all objects are in one cluster.
    member_weights_ : ndarray (n_members,)
        Given weight of each member times the share of its information about pairs that the clusters explain: near 0 for
        random labels, 0 for members that were not used.
    summary_ : str
        The result in a few sentences.
    fit_report_ : FitReport
        Notes on the labels and on the fit: `"no_consensus"`, `"one_labeling"`, `"identical"`, `"poor_members"`,
        `"bound_reached"`, ...
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
        "fitted._rows int (R,M) -1..N+N",
        "fitted._row_of int (N) -1..R-1",
        "fitted._pair_weights float (M) 0..",
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
                "summary_": text,
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
        distinct = signatures(codes)
        self._rows, self._row_of = distinct.rows, distinct.inverse.astype(np.int32)
        self._pair_weights = _relative(labelings)
        present = float(((labelings.codes >= 0) @ self._pair_weights).mean())
        self._trust = min(1.0, found.attributes["independent_members_"] / max(present, 1.0))
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

    def coclustering(self, i=None, j=None):
        """Probability that two objects of the fit belong together.

        A weighted mean of two numbers: the share of members that put the objects together, of those that saw both, and
        the probability under the fitted clusters that they are in the same one. The weight of the latter is
        ``independent_members_`` / members. If members are independent given the clusters, the model of the clusters
        holds; if they repeat each other, their plain votes predict real classes better.

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
        array([1., 0.])
        """
        check_is_fitted(self)
        if (i is None) != (j is None):
            raise ValueError("give both i and j, or neither for the operator of all pairs")
        if i is not None:
            return self._some_pairs(*np.broadcast_arrays(np.asarray(i), np.asarray(j)))
        return self._pair_probabilities(self._rows, self._row_of)

    def _pair_probabilities(self, rows: np.ndarray, row_of: np.ndarray) -> PairProbabilities:
        return PairProbabilities(rows, self._probabilities(rows), row_of, self._pair_weights, self._trust)

    def _some_pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Probabilities of some pairs; only the rows of these objects are scored."""
        for name, index in (("i", i), ("j", j)):
            if index.dtype.kind not in "iu" or ((index < 0) | (index >= len(self._row_of))).any():
                last = len(self._row_of) - 1
                raise ValueError(f"{name} must hold integers from 0 to {last}, the objects of the fit")
        used, local = np.unique(self._row_of[np.stack([i.ravel(), j.ravel()])], return_inverse=True)
        rows = self._rows[used]
        some = self._pair_probabilities(rows, np.arange(len(used)))
        left, right = local.reshape(2, -1)
        return some.pairs(left, right).reshape(i.shape)


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
        "summary_": _summary(found, M, posterior, asked),
    }
    model = found.model
    if model is None:
        clusters = {"_log_shares": np.zeros(1), "_log_probabilities": np.zeros((1, 1))}
    else:
        clusters = {"_log_shares": model.log_shares, "_log_probabilities": model.log_probabilities.T}
        attributes |= {"_offsets": model.offsets, "_powers": model.powers}
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


def _summary(found: ConsensusResult, M: int, posterior: dict[int, float], asked: bool) -> str:
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
