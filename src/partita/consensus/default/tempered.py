"""Memberships from members that repeat each other: EM in which all labels together count as a few.

A mixture of label rows takes every member for fresh evidence. Members of an ensemble are not: given the clusters their
labels still move together. So the likelihood of a row is taken to the power that leaves it the evidence of W
independent labels, W being what the members are worth (:func:`partita.consensus.evidence_size.independent_votes`).
With W = M this is Topchy, Jain and Punch's mixture (2004).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.dispatch import kernel

__all__ = ["Softened", "agreement", "log_joint", "soften"]

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
        log_shares, log_theta = _log_shares(sizes), _log_theta(counts, offsets)
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


def agreement(z: np.ndarray, codes: np.ndarray, weights, n_levels, member_weights) -> np.ndarray:
    """Share of the members that put an object with another object of its cluster, on average over those.

    An object alone in its cluster, or without a member that saw another one, has 0.

    Examples
    --------
    >>> agreement(
    ...     np.array([0, 0, 1]), np.array([[0, 0], [0, 1], [1, 2]]), np.ones(3), np.array([2, 3]), np.ones(2)
    ... )
    array([0.5, 0.5, 0. ])
    """
    offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    counts = _counts(z, codes, weights, offsets, int(z.max()) + 1)
    totals = np.add.reduceat(counts, offsets[:-1], axis=0)
    same, seen_by = np.zeros(len(z)), np.zeros(len(z))
    for m in range(codes.shape[1]):
        seen = codes[:, m] >= 0
        same[seen] += member_weights[m] * (
            counts[offsets[m] + codes[seen, m].astype(np.int64), z[seen]] - 1.0
        )
        seen_by[seen] += member_weights[m] * (totals[m, z[seen]] - 1.0)
    return np.clip(np.divide(same, seen_by, out=np.zeros(len(z)), where=seen_by > 1e-9), 0.0, 1.0)


def _counts(z, codes, weights, offsets, K) -> np.ndarray:
    """Weight of every (label, cluster), [levels, K]."""
    counts = np.zeros((int(offsets[-1]), K))
    for m in range(codes.shape[1]):
        seen = codes[:, m] >= 0
        J = int(offsets[m + 1] - offsets[m])
        cells = codes[seen, m].astype(np.int64) * K + z[seen]
        counts[offsets[m] : offsets[m + 1]] = np.bincount(cells, weights[seen], minlength=J * K).reshape(J, K)
    return counts


def _log_theta(counts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    J = np.diff(offsets)
    totals = np.add.reduceat(counts, offsets[:-1], axis=0) + SMOOTHING * J[:, None]
    return np.log(counts + SMOOTHING) - np.repeat(np.log(totals), J, axis=0)


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
