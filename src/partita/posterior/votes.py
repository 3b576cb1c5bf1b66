"""One partition by votes: draws are relabeled after a common pivot, and each object gets its most frequent label.

The partition of least expected variation of information merges clusters that overlap. Votes keep the clusters that the
draws have, with the most probable number of clusters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels import contingency
from partita.posterior.alignment import best_names
from partita.posterior.draws import canonical_draws
from partita.posterior.estimates import PointEstimate
from partita.posterior.losses import expected_loss, loss_matrix

N_CANDIDATES, N_REFEREE_DRAWS = 40, 80  # draws tried as the first pivot, and draws they are compared with
N_ROUNDS = 3
PIVOT_ROWS = 200_000  # a sample of so many objects tells which draw is nearest to the others
CHUNK_OBJECTS = 1 << 14


def vote(draws: ArrayLike) -> PointEstimate:
    """The partition that assigns each object to the cluster that most draws assign it to.

    The first pivot is, among the draws with the most probable number of clusters, the one nearest to all others in
    variation of information. All draws are relabeled after the pivot by optimal assignment, the votes are counted, and
    the result is the next pivot, for a few rounds. A cluster that wins no object has those that most draws assign to
    it, so that the number of clusters is the most probable one.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one per row.

    Returns
    -------
    PointEstimate
        Its `expected_loss` is the expected variation of information, for comparison with `point_estimate`.

    Examples
    --------
    >>> vote([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1]]).labels
    array([0, 0, 1, 1])
    """
    labels = canonical_draws(draws)
    number = choose_pivot(labels.max(axis=1).astype(np.int64), labels[:, pivot_rows(labels.shape[1])])
    pivot = labels[number].astype(np.int64)
    for _ in range(N_ROUNDS):
        won = canonical_draws(_winners(labels, pivot)[None])[0].astype(np.int64)
        if np.array_equal(won, pivot):
            break
        pivot = won
    loss = float(expected_loss(pivot, labels))
    return PointEstimate(pivot, loss, int(pivot.max()) + 1, "vi", 1.0, 1, 1, None)


def _winners(labels: NDArray[np.integer], pivot: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cluster of the pivot that most draws give to each object, counted for a chunk of objects at a time."""
    K, N = int(pivot.max()) + 1, len(pivot)
    names = [best_names(contingency(pivot, row.astype(np.int64), sparse=False))[0] for row in labels]
    winners = np.empty(N, np.int64)
    for start in range(0, N, CHUNK_OBJECTS):
        chunk = slice(start, start + CHUNK_OBJECTS)
        votes = np.zeros((len(winners[chunk]), K), np.int32)
        for row, name in zip(labels, names, strict=True):
            voted = name[row[chunk]]
            known = np.flatnonzero(voted < K)
            votes[known, voted[known]] += 1
        winners[chunk] = votes.argmax(axis=1)
    for k in np.flatnonzero(np.bincount(winners, minlength=K) == 0):
        votes_of_k = np.sum([name[row] == k for row, name in zip(labels, names, strict=True)], axis=0)
        winners[votes_of_k == votes_of_k.max()] = k
    return winners if len(np.unique(winners)) == K else pivot


def pivot_rows(n_objects: int) -> NDArray[np.int64]:
    """The objects by which the first pivot is chosen: all of them, or so many at equal distances.

    Examples
    --------
    >>> pivot_rows(3), len(pivot_rows(10**9))
    (array([0, 1, 2]), 200000)
    """
    return np.linspace(0, n_objects - 1, min(n_objects, PIVOT_ROWS)).round().astype(np.int64)


def choose_pivot(last: NDArray[np.int64], labels: NDArray[np.integer]) -> int:
    """Number of the first pivot: of the draws with the most probable number of clusters, the nearest to all others.

    ``last`` is the largest label of each draw; ``labels`` are those of some objects, [draw, object].
    """
    likely = np.flatnonzero(np.bincount(last).argmax() == last)
    likely = likely[np.linspace(0, len(likely) - 1, min(N_CANDIDATES, len(likely))).round().astype(int)]
    judges = labels[np.linspace(0, len(labels) - 1, min(N_REFEREE_DRAWS, len(labels))).round().astype(int)]
    return int(likely[loss_matrix(labels[likely], judges).mean(axis=1).argmin()])
