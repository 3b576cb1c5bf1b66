"""Consensus by voting: members take the names of a reference, and every object goes where most of them put it."""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.label_layout import Cells, count_table, lay_out
from partita.consensus.labelings import Labelings
from partita.consensus.votes.onehot_means import best_means
from partita.labels import signatures


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


# ---- relabeling and votes ----------------------------------------------------------------------------------


class Ballot(NamedTuple):
    """How the labels of the members vote [level, cluster]; each row sums to one."""

    votes: np.ndarray
    names: np.ndarray  # [level], the cluster that a label is called


class Election(NamedTuple):
    """What the votes came to."""

    labels: np.ndarray  # [object]
    ballot: Ballot
    agreement: float  # weight of the labels that are called as their object is
    n_iter: int
    converged: bool


def translate(table: np.ndarray) -> np.ndarray:
    """Names of the rows among the columns of a contingency table: one to one, as many objects as possible in common.

    Rows that are left over (there are more of them than columns) are called like the column they overlap most.

    Examples
    --------
    >>> translate(np.array([[0, 5], [6, 1], [2, 0]]))
    array([1, 0, 0])
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    names = table.argmax(axis=1)
    names[rows] = columns
    return names


def ballots(cells: Cells, z: np.ndarray, K: int, *, soft: bool) -> Ballot:
    """Votes of all labels for the clusters of the reference z (-1: not seen)."""
    seen = z >= 0
    part = cells._replace(
        positions=cells.positions[seen], weights=cells.weights[seen], powers=np.ones_like(cells.powers)
    )
    counts = count_table(part, z[seen], K)
    names = np.concatenate(
        [translate(counts[lo:hi]) for lo, hi in zip(cells.starts[:-1], cells.starts[1:], strict=True)]
    )
    votes = np.zeros_like(counts)
    votes[np.arange(len(names)), names] = 1.0
    if soft:
        sums = counts.sum(axis=1, keepdims=True)
        votes = np.where(sums > 0, counts / np.maximum(sums, 1e-300), votes)
    return Ballot(votes, names)


def count_votes(cells: Cells, votes: np.ndarray) -> np.ndarray:
    """Share of the weighted votes of each object for each cluster; 0 for an object without labels."""
    out = np.zeros((len(cells.positions), votes.shape[1]))
    total = np.zeros(len(out))
    for m, power in enumerate(cells.powers):
        seen = np.flatnonzero(cells.positions[:, m] >= 0)
        out[seen] += power * votes[cells.positions[seen, m]]
        total[seen] += power
    return out / np.maximum(total, 1e-300)[:, None]


def medoid(cells: Cells, candidates: np.ndarray) -> int:
    """The member that the others agree with most once they are relabelled."""
    scores = []
    for m in candidates:
        z = np.where(cells.positions[:, m] >= 0, cells.positions[:, m] - cells.starts[m], -1)
        scores.append(_agreement(cells, z, ballots(cells, z, int(np.diff(cells.starts)[m]), soft=False)))
    return int(candidates[int(np.argmax(scores))])


def _agreement(cells: Cells, z: np.ndarray, ballot: Ballot) -> float:
    out = 0.0
    for m, power in enumerate(cells.powers):
        seen = np.flatnonzero((cells.positions[:, m] >= 0) & (z >= 0))
        same = ballot.names[cells.positions[seen, m]] == z[seen]
        out += power * float(cells.weights[seen] @ same)
    return out


def elect(cells: Cells, z: np.ndarray, K: int, *, soft: bool, max_iter: int) -> Election:
    """Relabel against z, vote, and make the result the next reference, up to ``max_iter`` times.

    The election of the highest agreement is kept; a reference that comes again ends the search. Equal votes go to the
    reference's own cluster if it is among them, else to the first.
    """
    best: Election | None = None
    reference, seen = z, set()
    for iteration in range(1, max_iter + 1):
        ballot = ballots(cells, reference, K, soft=soft)
        shares = count_votes(cells, ballot.votes)
        own = np.flatnonzero(reference >= 0)
        shares[own, reference[own]] += 1e-9
        labels = shares.argmax(axis=1)
        agreement = _agreement(cells, labels, ballot)
        if best is None or agreement > best.agreement:
            best = Election(labels, ballot, agreement, iteration, False)
        settled = np.array_equal(labels, reference)
        if settled or labels.tobytes() in seen:
            return best._replace(n_iter=iteration, converged=True)
        seen.add(labels.tobytes())
        reference = labels
    assert best is not None
    return best._replace(n_iter=max_iter)
