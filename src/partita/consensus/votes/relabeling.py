"""Correspondence of labels: members in the names of a reference, by optimal assignment, and their votes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from partita.consensus.label_layout import Cells, count_table

__all__ = ["Ballot", "Election", "ballots", "count_votes", "elect", "medoid", "translate"]


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
