"""Tempered EM: memberships where the labels of an object are not independent given its cluster.

A mixture of label rows treats every member as independent evidence. Members of an ensemble are not independent: given
the clusters, their labels are still correlated. The likelihood of a row is therefore raised to the power that leaves
it the evidence of W independent labels, where W is the number of independent members
(:func:`partita.consensus.member_statistics.independent_members`). With W = M this is the mixture of Topchy, Jain and
Punch (2004).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.consensus.member_statistics import log_label_probabilities
from partita.dispatch import kernel

SMOOTHING = 0.05  # pseudo-count of a label
MAX_PASSES = 30
MOVED = 1e-3  # share of all labels that may change clusters in the last pass


class Softened(NamedTuple):
    """Tempered mixture of label rows: log shares [K], log label probabilities [levels, K], W, and each row's answer."""

    log_shares: np.ndarray
    log_theta: np.ndarray
    offsets: np.ndarray
    powers: np.ndarray  # [M] how much each member counts, 1 on average (of the user's members)
    evidence: float
    labels: np.ndarray
    certainty: np.ndarray  # probability of the label
    counts: np.ndarray  # [levels, K] of the labels
    sizes: np.ndarray
    n_iter: int
    converged: bool


def soften(
    start: np.ndarray,
    start_rows: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    n_levels: np.ndarray,
    member_weights: np.ndarray,
    evidence: float,
    max_passes: int = MAX_PASSES,
) -> Softened:
    """Tempered EM on all rows, from a partition of some of them.

    Parameters
    ----------
    start, start_rows : arrays of int
        Clusters of these rows.
    codes : array of int, shape (N, M), -1 missing
    weights : array, shape (N,)
    n_levels, member_weights : arrays, shape (M,)
    evidence : float
        Independent labels that a whole row is worth.
    max_passes : int

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 0], [1, 1], [1, -1]])
    >>> z = np.array([0, 0, 1, 1])
    >>> soften(z, np.arange(4), codes, np.ones(4), np.array([2, 2]), np.ones(2), 1.0).labels
    array([0, 0, 1, 1])
    """
    offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    K = int(start.max()) + 1
    codes, weights = np.ascontiguousarray(codes), weights.astype(float)
    powers = member_weights.astype(float)
    counts = _counts(start, codes[start_rows], weights[start_rows], offsets, K)
    sizes = np.bincount(start, weights[start_rows], minlength=K)
    labels, certainty = np.zeros(len(codes), np.int64), np.zeros(len(codes))
    n_iter, moved = 0, np.inf
    while n_iter < max_passes and moved > MOVED:
        n_iter += 1
        log_shares, log_theta = (
            _log_shares(sizes),
            log_label_probabilities(counts, offsets, SMOOTHING, axis=0),
        )
        new, new_sizes = np.zeros_like(counts), np.zeros(K)
        _pass(
            codes,
            weights,
            offsets,
            powers,
            evidence,
            log_shares,
            log_theta,
            new,
            new_sizes,
            labels,
            certainty,
        )
        moved = np.abs(new / new.sum() - counts / counts.sum()).sum() / 2.0
        counts, sizes = new, new_sizes
    return Softened(
        log_shares, log_theta, offsets, powers, evidence, labels, certainty, counts, sizes, n_iter,
        bool(moved <= MOVED),
    )  # fmt: skip


def log_joint(codes: np.ndarray, log_shares, log_theta, offsets, powers, evidence: float) -> np.ndarray:
    """Tempered log weight of every cluster for rows of labels, [rows, K]."""
    likelihood = np.zeros((len(codes), len(log_shares)))
    labels = np.zeros(len(codes))
    for m in range(codes.shape[1]):
        seen = codes[:, m] >= 0
        likelihood[seen] += powers[m] * log_theta[offsets[m] + codes[seen, m].astype(np.int64)]
        labels[seen] += powers[m]
    temper = np.minimum(1.0, evidence / np.maximum(labels, 1e-300))
    return log_shares + temper[:, None] * likelihood


def _counts(z, codes, weights, offsets, K) -> np.ndarray:
    """Weight of every (label, cluster), [levels, K]."""
    counts = np.zeros((int(offsets[-1]), K))
    for m in range(codes.shape[1]):
        seen = codes[:, m] >= 0
        J = int(offsets[m + 1] - offsets[m])
        cells = codes[seen, m].astype(np.int64) * K + z[seen]
        counts[offsets[m] : offsets[m + 1]] = np.bincount(cells, weights[seen], minlength=J * K).reshape(J, K)
    return counts


def _log_shares(sizes: np.ndarray) -> np.ndarray:
    return np.log(sizes + 0.5) - np.log(sizes.sum() + 0.5 * len(sizes))


@kernel
def _pass(codes, weights, offsets, powers, evidence, log_shares, log_theta, counts, sizes, labels, certainty):
    """E step of every row, its expected counts added up; the most probable cluster and its probability."""
    N, M = codes.shape
    K = log_shares.shape[0]
    L = np.zeros(K)
    for i in range(N):
        for k in range(K):
            L[k] = 0.0
        present = 0.0
        for m in range(M):
            if codes[i, m] >= 0:
                present += powers[m]
                theta = log_theta[offsets[m] + codes[i, m]]
                power = powers[m]
                for k in range(K):
                    L[k] += power * theta[k]
        temper = min(1.0, evidence / present) if present > 0.0 else 0.0
        top, best = -np.inf, 0
        for k in range(K):
            L[k] = log_shares[k] + temper * L[k]
            if L[k] > top:
                top, best = L[k], k
        total = 0.0
        for k in range(K):
            L[k] = np.exp(L[k] - top)
            total += L[k]
        labels[i] = best
        certainty[i] = 1.0 / total
        scale = weights[i] / total
        for k in range(K):
            L[k] *= scale
            sizes[k] += L[k]
        for m in range(M):
            if codes[i, m] >= 0:
                row = counts[offsets[m] + codes[i, m]]
                for k in range(K):
                    row[k] += L[k]
