"""Consensus by voting: members are relabeled against a reference, and each object takes the label with most votes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.label_layout import LabelLayout, count_table, lay_out
from partita.consensus.labelings import Labelings
from partita.consensus.votes.onehot_means import best_means
from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import Control, iterate_from_checkpoint
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin
from partita.labels import signatures

TIE = 1e-9  # share of votes by which the cluster of the reference wins a tie


class Voting(RunningMixin, ConsensusEstimator):
    """Relabel the members against a reference by optimal assignment, then vote.

    The clusters of a member are matched one to one with those of the reference, so that as many objects as possible
    have the same label; a cluster that is left over takes the label of the cluster it overlaps most. With ``max_iter``
    above 1 the outcome is the next reference, until nothing changes.

    Good for: members that are noisy copies of one clustering, all with about the right number of clusters. Not for:
    members with very different numbers of clusters.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters: the reference is chosen among the members that have so many clusters; if there are none, it
        is a k-means of the labels (as in :class:`QMI`). None: the reference determines the number.
    reference : int or "medoid", default="medoid"
        The first reference: the position of a member, or the member that agrees most with the others once they are
        relabeled.
    votes : {"plurality", "soft"}, default="plurality"
        "plurality": a label votes for the cluster it is matched with. "soft": it votes for every cluster of the
        reference, by the share of its objects in that cluster.
    max_iter : int, default=20
        Largest number of rounds; 1 is voting against the first reference alone. The round with the highest agreement
        is kept.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        For the k-means and for soft members; the rest is deterministic.
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no round begins after it.
    callback : callable, optional
        Called after each round with a :class:`~partita.engines.run.Progress` (the objective is the agreement);
        returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the best result so far instead of raising.
    n_jobs : int, optional
        Threads that read a label matrix that is not in memory; the answer does not depend on their number.
    executor : None, "threads", "processes", Dask client or address, optional
        Where such a matrix is read; the answer does not depend on it.
    resume : path, optional
        A folder that keeps the state after each round: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    votes_ : ndarray (n_objects, n_clusters)
        Share of the votes of each object for each cluster; also what ``predict_proba`` returns. An object without
        labels has the shares of all objects.
    labels_ : ndarray (n_objects,)
        The cluster with most votes; a tie goes to the larger cluster.
    n_clusters_ : int
        Number of clusters that have objects.
    confidence_ : ndarray (n_objects,)
        Weighted share of the members that vote for the cluster of the object.
    confidence_kind_ : str
        "share of members".
    agreements_ : ndarray (n_members,)
        Share of the objects of a member whose label is that of the consensus; 0 for members that took no part.
    reference_ : int
        The member that was the first reference; -1 if it was a k-means of the labels.
    member_weights_ : ndarray (n_members,)
        Weights as given; 0 for members that took no part.
    n_iter_, converged_
        Number of rounds, and whether the last one changed nothing.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

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

    _array_laws: tuple[str, ...] = (
        "fitted._ballot float (K,L) 0..1",
        "fitted._shares float (K) 0..1",
        "fitted.agreements_ float (D) 0..1 nan",
        "fitted.votes_ float (N,K) 0..1",
    )
    _parameter_constraints: dict[str, Any] = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "reference": [StrOptions({"medoid"}), Interval(Integral, 0, None, closed="left")],
        "votes": [StrOptions({"plurality", "soft"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        **RUNNING_CONSTRAINTS,
    }

    _of_objects = (*ConsensusEstimator._of_objects, "votes_")

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
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
    ):
        self.n_clusters = n_clusters
        self.reference = reference
        self.votes = votes
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
        self._n_levels, self._powers = labelings.n_levels, labelings.member_weights
        cells = self._laid_out(distinct.rows, distinct.weights)
        member = self._reference(labelings, cells)
        if member >= 0:
            K, z = int(labelings.n_levels[member]), distinct.rows[:, member].astype(np.int64)
        else:
            K = min(self.n_clusters, len(distinct.rows))
            if self.n_clusters > K:
                self.fit_report_.add(
                    "few_rows",
                    f"n_clusters={self.n_clusters}, but there are only {K} distinct rows: each is a cluster",
                    level="warning",
                )
            z = best_means(cells, K, rng, n_init=10, max_iter=300, control=control, folder=self.resume).labels
        found = elect(
            cells,
            z,
            K,
            soft=self.votes == "soft",
            max_iter=self.max_iter,
            control=control,
            folder=self.resume,
        )
        self._note_early_end(found.reason)
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

    def _reference(self, labelings: Labelings, cells: LabelLayout) -> int:
        """The column that is the first reference; -1 if no member has ``n_clusters`` clusters."""
        if self.reference != "medoid":
            found = np.flatnonzero(labelings.owners == self.reference)
            if not len(found):
                raise ValueError(
                    f"reference is {self.reference}, but that member does not exist or takes no part (there are "
                    f"{self.n_features_in_} members): give the position of another member, or 'medoid'"
                )
            member = int(found[0])
            if self.n_clusters not in (None, labelings.n_levels[member]):
                raise ValueError(
                    f"n_clusters is {self.n_clusters}, but the reference, member {self.reference}, has "
                    f"{labelings.n_levels[member]} clusters: give another reference, or omit n_clusters"
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

    def _laid_out(self, codes: np.ndarray, weights: np.ndarray) -> LabelLayout:
        return lay_out(codes, self._n_levels, weights, self._powers)


# ---- relabeling and votes --------------------------------------------------------------------------------------


class Ballot(NamedTuple):
    """Votes of the labels of all members [level, cluster]; each row sums to one."""

    votes: np.ndarray
    names: np.ndarray  # [level], the cluster that a label is matched with


class ElectionResult(NamedTuple):
    """The round with the highest agreement."""

    labels: np.ndarray  # [object]
    ballot: Ballot
    agreement: float  # weight of the labels that are matched with the cluster of their object
    n_iter: int = 0
    reason: str = ""  # why the rounds ended, as in LoopResult

    @property
    def converged(self) -> bool:
        """Whether the last round repeated a reference."""
        return self.reason == "converged"


class Round(NamedTuple):
    """The election after some rounds."""

    reference: np.ndarray
    best: ElectionResult | None
    references: list[str]  # fingerprints of all references so far
    objective: float
    change: float  # 0 if the reference has occurred before
    n_iter: int


def translate(table: np.ndarray) -> np.ndarray:
    """Match the rows of a contingency table with its columns one to one, with as many objects as possible in common.

    Rows that are left over (if there are more rows than columns) are matched with the column they overlap most.

    Examples
    --------
    >>> translate(np.array([[0, 5], [6, 1], [2, 0]]))
    array([1, 0, 0])
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    names = table.argmax(axis=1)
    names[rows] = columns
    return names


def ballots(cells: LabelLayout, z: np.ndarray, K: int, *, soft: bool) -> Ballot:
    """Votes of all labels for the clusters of the reference z (-1 where it is missing)."""
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


def count_votes(cells: LabelLayout, votes: np.ndarray) -> np.ndarray:
    """Share of the weighted votes of each object for each cluster; 0 for an object without labels."""
    out = np.zeros((len(cells.positions), votes.shape[1]))
    total = np.zeros(len(out))
    for m, power in enumerate(cells.powers):
        seen = np.flatnonzero(cells.positions[:, m] >= 0)
        out[seen] += power * votes[cells.positions[seen, m]]
        total[seen] += power
    return out / np.maximum(total, 1e-300)[:, None]


def medoid(cells: LabelLayout, candidates: np.ndarray) -> int:
    """The member that the others agree with most once they are relabeled."""
    scores = []
    for m in candidates:
        z = np.where(cells.positions[:, m] >= 0, cells.positions[:, m] - cells.starts[m], -1)
        scores.append(_agreement(cells, z, ballots(cells, z, int(np.diff(cells.starts)[m]), soft=False)))
    return int(candidates[int(np.argmax(scores))])


def _agreement(cells: LabelLayout, z: np.ndarray, ballot: Ballot) -> float:
    out = 0.0
    for m, power in enumerate(cells.powers):
        seen = np.flatnonzero((cells.positions[:, m] >= 0) & (z >= 0))
        same = ballot.names[cells.positions[seen, m]] == z[seen]
        out += power * float(cells.weights[seen] @ same)
    return out


def elect(
    cells: LabelLayout,
    z: np.ndarray,
    K: int,
    *,
    soft: bool,
    max_iter: int,
    control: Control | None = None,
    folder: Any = None,
) -> ElectionResult:
    """Relabel against z, vote, and make the result the next reference, for at most ``max_iter`` rounds.

    The round with the highest agreement is kept; a reference that occurs again ends the search. A tie goes to the
    reference's own cluster if it is among the tied ones, otherwise to the first of them.
    """
    found = iterate_from_checkpoint(
        _round(cells, K, soft), lambda: Round(z, None, [], -np.inf, np.inf, 0), max_iter=max_iter,
        n_clusters=lambda state: K, control=control,
        checkpoint=open_checkpoint(folder, 0, (*cells, z, K, soft), "rounds"),
    )  # fmt: skip
    assert found.state.best is not None
    return found.state.best._replace(n_iter=found.state.n_iter, reason=found.reason)


def _round(cells: LabelLayout, K: int, soft: bool) -> Callable[[Round], Round]:
    def step(state: Round) -> Round:
        ballot = ballots(cells, state.reference, K, soft=soft)
        shares = count_votes(cells, ballot.votes)
        own = np.flatnonzero(state.reference >= 0)
        shares[own, state.reference[own]] += TIE
        labels = shares.argmax(axis=1)
        agreement = _agreement(cells, labels, ballot)
        best = state.best
        if best is None or agreement > best.agreement:
            best = ElectionResult(labels, ballot, agreement)
        name = hashlib.blake2b(labels.tobytes(), digest_size=16).hexdigest()
        repeated = np.array_equal(labels, state.reference) or name in state.references
        return Round(
            labels, best, [*state.references, name], agreement, 0.0 if repeated else 1.0, state.n_iter + 1
        )

    return step
