"""One partition by votes: the draws take each other's labels, and each object goes where most of them put it.

The partition of least expected variation of information joins clusters that overlap: it would rather err on many pairs
at once than on a few pairs each. Where the question is which of the posterior's own clusters an object belongs to,
votes answer it, with the number of clusters that is the most probable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels import contingency
from partita.posterior.alignment import best_names
from partita.posterior.draws import canonical_draws
from partita.posterior.estimates import PointEstimate
from partita.posterior.losses import expected_loss, loss_matrix

N_CANDIDATES, N_JUDGES = 40, 80  # pivots that are tried, and draws that judge them
N_ROUNDS = 3
BLOCK_ROWS = 1 << 14


def vote(draws: ArrayLike) -> PointEstimate:
    """The partition in which each object sits where most draws put it.

    Among the draws with the most probable number of clusters the one nearest to all others (in variation of
    information) is the first pivot; all draws take its labels by optimal assignment, votes are counted, and the result
    is the next pivot, for a few rounds. A cluster that wins no object is lost: the number of clusters is at most the
    most probable one.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one a row.

    Returns
    -------
    PointEstimate
        Its loss is the expected variation of information, for comparison with that of `point_estimate`.

    Examples
    --------
    >>> vote([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1]]).labels
    array([0, 0, 1, 1])
    """
    labels = canonical_draws(draws)
    pivot = _pivot(labels)
    for _ in range(N_ROUNDS):
        won = canonical_draws(_winners(labels, pivot)[None])[0].astype(np.int64)
        if np.array_equal(won, pivot):
            break
        pivot = won
    loss = float(expected_loss(pivot, labels))
    return PointEstimate(pivot, loss, int(pivot.max()) + 1, "vi", 1.0, 1, 1, None)


def _winners(labels: NDArray[np.integer], pivot: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cluster of the pivot that most draws give to each object; votes are held for a block of objects."""
    K, N = int(pivot.max()) + 1, len(pivot)
    names = [best_names(contingency(pivot, row.astype(np.int64), sparse=False))[0] for row in labels]
    winners = np.empty(N, np.int64)
    for start in range(0, N, BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        votes = np.zeros((len(winners[block]), K), np.int32)
        for row, name in zip(labels, names, strict=True):
            voted = name[row[block]]
            known = np.flatnonzero(voted < K)
            votes[known, voted[known]] += 1
        winners[block] = votes.argmax(axis=1)
    return winners


def _pivot(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    K = labels.max(axis=1).astype(np.int64)
    likely = np.flatnonzero(np.bincount(K).argmax() == K)
    likely = likely[np.linspace(0, len(likely) - 1, min(N_CANDIDATES, len(likely))).round().astype(int)]
    judges = labels[np.linspace(0, len(labels) - 1, min(N_JUDGES, len(labels))).round().astype(int)]
    return labels[likely[loss_matrix(labels[likely], judges).mean(axis=1).argmin()]].astype(np.int64)
