"""`Consensus`: many clusterings of the same objects in, one out, with nothing to choose."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.default.pair_probabilities import PairProbabilities
from partita.consensus.default.pipeline import CHANCE, Answer, find_consensus
from partita.consensus.default.tempered import log_joint
from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import relative_weights
from partita.labels import signatures

SURE = 30.0  # log odds of a row whose labels are all those of one cluster, where members never disagree
POOR = 0.02  # share of a member's pairs below which the report lists it


class Consensus(ConsensusEstimator):
    """What do many clusterings of the same objects agree on?

    Takes the labels alone, with holes, and finds one clustering, its number of clusters, and how far to trust both.
    No parameter is needed. The steps: a tree over the distinct label rows, merged where the members lose least
    information; the cut that tells most about which pairs of objects the members put together; the number of
    *independent* clusterings that the members are worth, since runs of one algorithm repeat each other; memberships
    by EM in which the labels of an object count as that many.

    Good for ensembles of any kind and size: k-means runs, bootstraps with left-out objects, several algorithms,
    annotators. Not for a chain of draws from a posterior (:func:`partita.posterior.point_estimate`), nor where clusters
    of fewer than about one in a thousand objects matter in large data: the tree is grown on 2,000 distinct rows.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters, where it is known. Left out, it is found.
    max_clusters : int, optional
        The largest number that is looked at; by default twice the square root of the number of objects in the tree.
    noise : {"missing", "cluster", "singletons"}, default "missing"
        What the label -1 means: not seen, one further cluster, or an object alone.
    handle_unknown : {"missing", "error"}, default "missing"
        What ``predict`` does with labels that were not there in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default None
        For the sample of rows where there are more than 2,000 distinct ones, the comparison with shuffled members
        where they agree little, and the resampled members of ``n_clusters_posterior_``.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the blocks of a matrix that is not in memory are read and coded.

    Attributes
    ----------
    labels_ : ndarray of int (n_objects,)
        0 is the largest cluster. All 0 where the members do not agree more than shuffled ones would.
    n_clusters_ : int
    n_clusters_posterior_ : dict
        Number of clusters -> how often it is the best cut when the members are drawn anew, as widely as
        ``independent_members_`` independent members would vary (Bayesian bootstrap; the tree stays). A number found by
        chance has a wide distribution.
    n_clusters_scores_ : dict
        Number of clusters -> score of the cut; its maximum is ``n_clusters_`` up to clusters that lose all objects
        to others in the last step.
    independent_members_ : float
        How many independent clusterings hold as much evidence as the members, between 1 and their number.
    explained_ : float
        Share of what the members say about pairs of objects (mutual information over entropy) that the clusters
        explain, on average over members.
    confidence_ : ndarray (n_objects,)
        Agreement: half the probability of the label, half the share of members that put the object with others of its
        cluster. It ranks objects; it is *not* the chance that the label is right. NaN for a single labeling.
    member_weights_ : ndarray (n_members,)
        Given weight of each member times the share of its pairs that the clusters explain: near 0 for noise, 0
        for a member that says nothing.
    summary_ : str
        The answer in a few sentences.
    fit_report_ : FitReport
        What was unusual: `"no_consensus"`, `"one_labeling"`, `"identical"`, `"poor_members"`, `"bound_reached"`, ...
    n_iter_, converged_
        Of the last step; 0 and True where there is none (one labeling, identical members, one cluster).
    schema_, n_features_in_, feature_names_in_
        What was learned about the columns; the number of members; their names, where they have some.

    See Also
    --------
    NBCE, MixtureConsensus, BCE : models of the labels, with their posteriors.
    LACA : pairs with a quality for each member.

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

    _parameter_constraints = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [None, Interval(Integral, 2, None, closed="left")],
        "executor": "no_validation",
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        max_clusters=None,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
        executor=None,
    ):
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.executor = executor

    # ---- fitting -------------------------------------------------------------------------------------------

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator) -> Found:
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
            n_clusters=self.n_clusters, max_clusters=self.max_clusters,
        )  # fmt: skip
        self._note(found, len(np.unique(labelings.owners)))
        return _as_found(found, distinct.inverse, labelings, asked=self.n_clusters is not None)

    def _one_partition(self, distinct: Any, M: int) -> Found:
        """One member, or members that are all the same: there is nothing to find."""
        K = len(distinct.rows)
        clusters = "1 cluster" if K == 1 else f"{K} clusters"
        if M == 1:
            text = f"one labeling, of {clusters}, returned as it is: with nothing to agree with, confidence is NaN"
            self.fit_report_.add("one_labeling", text)
        else:
            text = (
                f"all {M} members are the same partition into {clusters}: full agreement, which is the evidence of one "
                "clustering and does not say that it is right"
            )
            self.fit_report_.add("identical", text)
        confidence = np.full(len(distinct.inverse), np.nan if M == 1 else 1.0)
        shares = np.log(distinct.weights / distinct.weights.sum())
        return Found(
            labels=distinct.inverse,
            confidence=confidence,
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

    def _note(self, found: Answer, M: int) -> None:
        add = self.fit_report_.add
        if found.n_clusters == 1 and self.n_clusters is None:
            add(
                "no_consensus",
                f"no consensus: beside one member, the best clusters explain {found.common:.1%} of what members say "
                f"about pairs, shuffled members reach {found.chance:.1%}, and {CHANCE:g} times that is asked for; all "
                "objects are in one cluster (n_clusters= gives the best cut)",
                level="warning",
            )
        else:
            add("evidence", _evidence_words(found.evidence, M))
        if found.at_bound and self.n_clusters is None:
            add(
                "bound_reached",
                f"the best number of clusters, {found.n_clusters}, is the largest that was looked at: "
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
        poor = [m for m in np.unique(labelings.owners) if quality[m] < POOR]
        if poor and self.n_clusters_ > 1:
            names = tuple(self._member_name(m) for m in poor)
            text = "members that have next to nothing in common with the consensus, and nearly no weight: "
            self.fit_report_.add("poor_members", text + ", ".join(names), names)

    def _member_name(self, m: int) -> str:
        return (self._soft_names or self.schema_.names)[m]

    # ---- using ---------------------------------------------------------------------------------------------

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        if hasattr(self, "_levels"):
            seen = codes >= 0
            same = np.stack([((codes == levels) & seen).sum(axis=1) for levels in self._levels], axis=1)
            return self._log_shares + SURE * same / np.maximum(seen.sum(axis=1), 1)[:, None]
        if self._log_theta.shape[0] == 1:
            return np.zeros((len(codes), 1))
        return log_joint(
            codes, self._log_shares, self._log_theta.T, self._offsets, self._powers, self.independent_members_
        )

    def coclustering(self, i=None, j=None):
        """Probability that two objects of the fit belong together.

        The share of members that put them together, of those that saw both, mixed with the probability of the fitted
        clusters. The clusters have the weight ``independent_members_`` / members: where members are independent given the
        clusters the model of the clusters holds, and where they repeat each other their plain votes are the better
        guide to real classes.

        Parameters
        ----------
        i, j : array-like of int, optional
            Objects; the two arrays are broadcast against each other.

        Returns
        -------
        ndarray or PairProbabilities
            Probabilities in the common shape of i and j. Without them a symmetric linear operator: ``P @ v``,
            ``P.pairs(i, j)``, and ``P.dense()`` for the N x N matrix, which asks for the memory first.

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
        """The same for some objects, with no more rows scored than are asked for."""
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
    """Whole weights are numbers of objects; others are scaled to sum to the number of rows."""
    if (weights == np.floor(weights)).all():
        return weights
    return weights * (len(weights) / weights.sum())


def _relative(labelings: Labelings) -> np.ndarray:
    return relative_weights(labelings.member_weights, labelings.owners)


def _given(labelings: Labelings, n_members: int) -> np.ndarray:
    return np.bincount(labelings.owners, labelings.member_weights, minlength=n_members)


def _evidence_words(evidence: float, M: int) -> str:
    independent = f"{evidence:.0f} independent clustering{'s' if round(evidence) != 1 else ''}"
    return f"the {M} members hold the evidence of about {independent}"


def _as_found(found: Answer, inverse: np.ndarray, labelings: Labelings, asked: bool) -> Found:
    K, M = found.n_clusters, len(np.unique(labelings.owners))
    scores = dict(zip(found.curve.n_clusters.tolist(), found.curve.scores.tolist(), strict=True))
    posterior = {1: 1.0}
    if K > 1:
        posterior = {
            int(k): float(p) for k, p in zip(found.curve.n_clusters, found.posterior, strict=True) if p > 0
        }
    attributes: dict[str, Any] = {
        "independent_members_": found.evidence,
        "explained_": found.share,
        "n_clusters_scores_": scores,
        "summary_": _summary(found, M, posterior, asked),
    }
    model = found.model
    if model is None:
        clusters = {"_log_shares": np.zeros(1), "_log_theta": np.zeros((1, 1))}
    else:
        clusters = {"_log_shares": model.log_shares, "_log_theta": model.log_theta.T}
        attributes |= {"_offsets": model.offsets, "_powers": model.powers}
    return Found(
        labels=found.labels[inverse],
        confidence=found.confidence[inverse],
        member_weights=labelings.member_weights * found.quality,
        n_clusters_posterior=posterior,
        n_iter=0 if model is None else model.n_iter,
        converged=True if model is None else model.converged,
        clusters=clusters,
        attributes=attributes,
    )


def _summary(found: Answer, M: int, posterior: dict[int, float], asked: bool) -> str:
    if found.n_clusters == 1 and asked:
        return f"1 cluster, as asked; {_evidence_words(found.evidence, M)}"
    if found.n_clusters == 1:
        return f"no consensus: the {M} members agree no more than chance; all objects are in one cluster"
    K = len(np.unique(found.labels))
    often = sorted(posterior.items(), key=lambda item: -item[1])[:3]
    numbers = ", ".join(f"{k} ({p:.0%})" for k, p in often)
    return (
        f"{K} clusters; {_evidence_words(found.evidence, M)}; the clusters explain {found.share:.0%} of what the "
        f"members say about pairs of objects; numbers of clusters with the members drawn anew: {numbers}"
    )
