"""Consensus by voting: members take the names of a reference, and every object goes where most of them put it."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.label_layout import Cells, lay_out
from partita.consensus.labelings import Labelings
from partita.consensus.votes.onehot_means import best_means
from partita.consensus.votes.relabeling import count_votes, elect, medoid
from partita.labels import signatures

__all__ = ["Voting"]


class Voting(ConsensusEstimator):
    """Relabel the members against a reference by optimal assignment, then vote.

    The clusters of a member are matched one to one with those of the reference, so that as many objects as possible
    are called alike; clusters left over are called like the one they overlap most. With ``max_iter`` above 1 the
    outcome is the next reference, until nothing changes.

    Good for members that are noisy copies of one clustering, all with about the right number of clusters. Not for
    members with very different numbers of clusters.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters: the reference is chosen among the members that have so many; where there are none, it is
        a k-means of the labels (as in :class:`QMI`). Left out, the reference decides.
    reference : int or "medoid", default "medoid"
        The member to begin with: its position, or the one that agrees most with the others once they are relabelled.
    votes : {"plurality", "soft"}, default "plurality"
        "plurality": a label votes for the cluster it is called. "soft": it votes for every cluster of the reference,
        by the share of its objects that are there.
    max_iter : int, default 20
        Rounds; 1 is voting against the reference alone. The round with the highest agreement is kept.
    noise : {"missing", "cluster", "singletons"}, default "missing"
        What a label of -1 means.
    handle_unknown : {"missing", "error"}, default "missing"
        What new rows do with labels that were not seen in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the k-means, and for members that are soft; the rest is deterministic.

    Attributes
    ----------
    votes_ : ndarray (n_objects, n_clusters)
        Share of the votes of each object for each cluster; also what ``predict_proba`` returns. An object that nobody
        saw has the shares of all objects.
    labels_ : ndarray (n_objects,)
        The cluster with most votes; equal votes go to the larger cluster.
    confidence_ : ndarray (n_objects,)
        Agreement: the share of the votes for that cluster.
    agreements_ : ndarray (n_members,)
        Share of its objects that a member calls as the consensus does; 0 for members that took no part.
    reference_ : int
        The member that the search began with; -1 where it was a k-means of the labels.
    member_weights_ : ndarray (n_members,)
        As given; 0 for members that say nothing.
    n_clusters_, n_iter_, converged_, fit_report_
        How it went.
    n_features_in_, feature_names_in_, schema_
        The members.

    References
    ----------
    Dudoit and Fridlyand (2003), Bagging to improve the accuracy of a clustering procedure, Bioinformatics 19(9).

    Examples
    --------
    >>> from partita.consensus import Voting
    >>> model = Voting().fit([[0, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 1]])
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    >>> model.confidence_.round(2)
    array([1.  , 1.  , 0.67, 1.  , 1.  ])
    """

    _parameter_constraints = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "reference": [StrOptions({"medoid"}), Interval(Integral, 0, None, closed="left")],
        "votes": [StrOptions({"plurality", "soft"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        reference="medoid",
        votes="plurality",
        max_iter=20,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.reference = reference
        self.votes = votes
        self.max_iter = max_iter
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator) -> Found:
        distinct = signatures(labelings.codes, labelings.weights)
        self._n_levels, self._powers = labelings.n_levels, labelings.member_weights
        cells = self._laid_out(distinct.rows, distinct.weights)
        member = self._reference(labelings, cells)
        if member >= 0:
            K, z = int(labelings.n_levels[member]), distinct.rows[:, member].astype(np.int64)
        else:
            K = min(self.n_clusters, len(distinct.rows))
            z = best_means(cells, K, rng, n_init=10, max_iter=300).labels
        found = elect(cells, z, K, soft=self.votes == "soft", max_iter=self.max_iter)
        shares = count_votes(cells, found.ballot.votes)
        named = np.where(cells.positions >= 0, found.ballot.names[cells.positions], -1)
        seen = np.maximum((distinct.weights[:, None] * (named >= 0)).sum(axis=0), 1e-300)
        agreements = (distinct.weights[:, None] * (named == found.labels[:, None])).sum(axis=0) / seen
        n_columns = self._of_members(np.ones(len(agreements)), labelings)[labelings.owners]
        sizes = np.bincount(found.labels, distinct.weights, minlength=K)
        return Found(
            found.labels[distinct.inverse],
            shares.max(axis=1)[distinct.inverse],
            n_iter=found.n_iter,
            converged=found.converged,
            n_components=K,
            clusters={"_ballot": found.ballot.votes.T, "_shares": sizes / sizes.sum()},
            attributes={
                "agreements_": self._of_members(agreements / n_columns, labelings),
                "reference_": int(labelings.owners[member]) if member >= 0 else -1,
            },
        )

    def _reference(self, labelings: Labelings, cells: Cells) -> int:
        """The column to begin with, -1 where none has as many clusters as were asked for."""
        if self.reference != "medoid":
            found = np.flatnonzero(labelings.owners == self.reference)
            if not len(found):
                raise ValueError(
                    f"reference is {self.reference}, a member that does not exist or takes no part (there are "
                    f"{self.n_features_in_}): give the position of another, or 'medoid'"
                )
            member = int(found[0])
            if self.n_clusters not in (None, labelings.n_levels[member]):
                raise ValueError(
                    f"n_clusters is {self.n_clusters}, but the reference, member {self.reference}, has "
                    f"{labelings.n_levels[member]} clusters: give another reference, or leave n_clusters out"
                )
            return member
        candidates = np.arange(len(labelings.n_levels))
        if self.n_clusters is not None:
            candidates = np.flatnonzero(labelings.n_levels == self.n_clusters)
        return medoid(cells, candidates) if len(candidates) else -1

    def _settle(self, found: Found, labelings: Labelings, codes: np.ndarray) -> None:
        super()._settle(found, labelings, codes)
        self.votes_ = self._probabilities(codes)
        self.labels_, self.confidence_ = self.votes_.argmax(axis=1), self.votes_.max(axis=1)
        self.n_clusters_ = len(np.unique(self.labels_[labelings.rows]))

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        shares = count_votes(self._laid_out(codes, np.ones(len(codes))), self._ballot.T)
        shares = np.where(shares.any(axis=1, keepdims=True), shares, self._shares)
        with np.errstate(divide="ignore"):
            return np.log(shares)

    def _laid_out(self, codes: np.ndarray, weights: np.ndarray) -> Cells:
        return lay_out(codes, self._n_levels, weights, self._powers)
