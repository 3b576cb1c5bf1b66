"""Tempered EM: memberships where the labels of an object are not independent given its cluster.

A mixture of label rows treats every member as independent evidence. Members of an ensemble are not independent: given
the clusters, their labels are still correlated. The likelihood of a row is therefore raised to the power that leaves
it the evidence of W independent labels, where W is the number of independent members
(:func:`partita.consensus.member_statistics.independent_members`). With W = M this is the mixture of Topchy, Jain and
Punch (2004).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from partita.consensus.member_statistics import log_label_probabilities
from partita.dispatch import kernel
from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import Control, iterate_from_checkpoint

SMOOTHING = 0.05  # pseudo-count of a label
MAX_PASSES = 30
CHUNK_ROWS = 1 << 16  # rows that are scored at a time
MAX_MOVED = 1e-3  # share of all labels that may change clusters in the last pass


class TemperedResult(NamedTuple):
    """Tempered mixture of label rows: its parameters, and the cluster of each row."""

    log_shares: np.ndarray  # [K]
    log_probabilities: np.ndarray  # [levels, K] of the labels
    offsets: np.ndarray
    powers: np.ndarray  # [M] weight of each member, 1 on average (of the user's members)
    n_independent: float  # labels that a whole row counts for
    labels: np.ndarray
    counts: np.ndarray  # [levels, K] expected numbers of labels
    sizes: np.ndarray
    n_iter: int
    reason: str  # why EM ended, as in LoopResult

    @property
    def converged(self) -> bool:
        """Whether hardly any label moved in the last pass."""
        return self.reason == "converged"


class TemperedState(NamedTuple):
    """EM after some passes."""

    counts: np.ndarray
    sizes: np.ndarray
    log_shares: np.ndarray
    log_probabilities: np.ndarray
    labels: np.ndarray
    objective: float  # tempered log-likelihood
    change: float  # share of all labels that moved
    n_iter: int


def temper(
    start: np.ndarray,
    start_rows: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    n_levels: np.ndarray,
    member_weights: np.ndarray,
    n_independent: float,
    max_passes: int = MAX_PASSES,
    *,
    control: Control | None = None,
    folder: Any = None,
) -> TemperedResult:
    """Tempered EM on all rows, from a partition of some of them.

    Parameters
    ----------
    start, start_rows : arrays of int
        Clusters of these rows.
    codes : array of int, shape (N, M), -1 missing
    weights : array, shape (N,)
    n_levels, member_weights : arrays, shape (M,)
    n_independent : float
        Number of independent labels that a whole row counts for.
    max_passes : int
    control : Control, optional
        What may end the passes early.
    folder : path, optional
        Keeps the state after each pass.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 0], [1, 1], [1, -1]])
    >>> z = np.array([0, 0, 1, 1])
    >>> temper(z, np.arange(4), codes, np.ones(4), np.array([2, 2]), np.ones(2), 1.0).labels
    array([0, 0, 1, 1])
    """
    offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    K = int(start.max()) + 1
    codes, weights = np.ascontiguousarray(codes), weights.astype(float)
    powers = member_weights.astype(float)

    def begin() -> TemperedState:
        counts = _counts(start, codes[start_rows], weights[start_rows], offsets, K)
        sizes = np.bincount(start, weights[start_rows], minlength=K)
        nothing = np.zeros(0)
        return TemperedState(counts, sizes, nothing, nothing, nothing, -np.inf, np.inf, 0)

    about = (codes, weights, powers, start, start_rows, n_independent)
    found = iterate_from_checkpoint(
        _em_pass(codes, weights, offsets, powers, n_independent), begin, max_iter=max_passes, tol=MAX_MOVED,
        n_clusters=lambda state: len(np.unique(state.labels)), control=control,
        checkpoint=open_checkpoint(folder, 0, about, "memberships"),
    )  # fmt: skip
    state = found.state
    return TemperedResult(
        state.log_shares, state.log_probabilities, offsets, powers, n_independent, state.labels,
        state.counts, state.sizes, state.n_iter, found.reason,
    )  # fmt: skip


def _em_pass(
    codes: np.ndarray, weights: np.ndarray, offsets: np.ndarray, powers: np.ndarray, n_independent: float
) -> Callable[[TemperedState], TemperedState]:
    def step(state: TemperedState) -> TemperedState:
        shares = log_shares(state.sizes)
        log_probabilities = log_label_probabilities(state.counts, offsets, SMOOTHING, axis=0)
        counts, sizes = np.zeros_like(state.counts), np.zeros_like(state.sizes)
        labels = np.zeros(len(codes), np.int64)
        objective = _pass(
            codes, weights, offsets, powers, n_independent, shares, log_probabilities, counts, sizes, labels
        )
        moved = np.abs(counts / counts.sum() - state.counts / state.counts.sum()).sum() / 2.0
        return TemperedState(
            counts, sizes, shares, log_probabilities, labels, float(objective), float(moved), state.n_iter + 1
        )

    return step


def log_joint(
    codes: np.ndarray, log_shares, log_probabilities, offsets, powers, n_independent: float
) -> np.ndarray:
    """Tempered log weight of each cluster for rows of labels [rows, K]."""
    likelihood = np.zeros((len(codes), len(log_shares)))
    labels = np.zeros(len(codes))
    for m in range(codes.shape[1]):
        seen = codes[:, m] >= 0
        likelihood[seen] += powers[m] * log_probabilities[offsets[m] + codes[seen, m].astype(np.int64)]
        labels[seen] += powers[m]
    temper = np.minimum(1.0, n_independent / np.maximum(labels, 1e-300))
    return log_shares + temper[:, None] * likelihood


def label_certainty(
    model: TemperedResult, codes: np.ndarray, labels: np.ndarray, chunk_rows: int = CHUNK_ROWS
) -> np.ndarray:
    """Probability of the label of each row, among the clusters that have rows.

    Examples
    --------
    >>> codes, z = np.array([[0, 0], [0, 0], [1, 1], [1, -1]]), np.array([0, 0, 1, 1])
    >>> model = temper(z, np.arange(4), codes, np.ones(4), np.array([2, 2]), np.ones(2), 2.0)
    >>> label_certainty(model, codes, z).round(2)
    array([1.  , 1.  , 1.  , 0.96])
    """
    used, own = np.unique(labels, return_inverse=True)
    parameters = model.log_shares[used], model.log_probabilities[:, used], model.offsets, model.powers
    certainty = np.empty(len(codes))
    for start in range(0, len(codes), chunk_rows):
        rows = slice(start, start + chunk_rows)
        scores = log_joint(codes[rows], *parameters, model.n_independent)
        certainty[rows] = softmax(scores, axis=1)[np.arange(len(scores)), own[rows]]
    return certainty


def _counts(z, codes, weights, offsets, K) -> np.ndarray:
    """Weight of each label in each cluster [levels, K]."""
    counts = np.zeros((int(offsets[-1]), K))
    for m in range(codes.shape[1]):
        seen = codes[:, m] >= 0
        J = int(offsets[m + 1] - offsets[m])
        cells = codes[seen, m].astype(np.int64) * K + z[seen]
        counts[offsets[m] : offsets[m + 1]] = np.bincount(cells, weights[seen], minlength=J * K).reshape(J, K)
    return counts


def log_shares(sizes: np.ndarray) -> np.ndarray:
    """Log shares of clusters, each with half an object more than it has."""
    return np.log(sizes + 0.5) - np.log(sizes.sum() + 0.5 * len(sizes))


@kernel
def _pass(
    codes,
    weights,
    offsets,
    powers,
    n_independent,
    log_shares,
    log_probabilities,
    counts,
    sizes,
    labels,
):
    """E step of every row and the sums of its expected counts; returns the tempered log-likelihood."""
    N, M = codes.shape
    K = log_shares.shape[0]
    L = np.zeros(K)
    objective = 0.0
    for i in range(N):
        for k in range(K):
            L[k] = 0.0
        present = 0.0
        for m in range(M):
            if codes[i, m] >= 0:
                present += powers[m]
                of_label = log_probabilities[offsets[m] + codes[i, m]]
                power = powers[m]
                for k in range(K):
                    L[k] += power * of_label[k]
        temper = min(1.0, n_independent / present) if present > 0.0 else 0.0
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
        objective += weights[i] * (top + np.log(total))
        scale = weights[i] / total
        for k in range(K):
            L[k] *= scale
            sizes[k] += L[k]
        for m in range(M):
            if codes[i, m] >= 0:
                row = counts[offsets[m] + codes[i, m]]
                for k in range(K):
                    row[k] += L[k]
    return objective
