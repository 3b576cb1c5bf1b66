"""Statistics of the members given a partition: label probabilities, agreement, number of independent members.

Functions take a label matrix as :class:`~partita.consensus.labelings.Labelings` holds it: ``codes`` (objects x members,
-1 missing), ``n_levels``, ``weights`` of the rows and ``member_weights``.
"""

from __future__ import annotations

import numpy as np

from partita.labels import label_histograms

CHUNK_ROWS = 1 << 18
SMOOTHING = 0.05  # pseudo-count of each label in the probabilities from which surprises are computed


def log_label_probabilities(
    counts: np.ndarray, offsets: np.ndarray, smoothing: float, *, axis: int = 1
) -> np.ndarray:
    """Log probability of each label in each cluster, ``log((n + smoothing) / (total + smoothing * levels))``.

    Parameters
    ----------
    counts : array (n_clusters, levels of all members), or its transpose
    offsets : array of int (n_members + 1,)
        Where the levels of each member begin.
    smoothing : float
        Pseudo-count of each label.
    axis : int, default=1
        The axis of the levels.

    Examples
    --------
    >>> np.exp(log_label_probabilities(np.array([[2.0, 0.0]]), np.array([0, 2]), 0.5)).round(3)
    array([[0.833, 0.167]])
    """
    n_levels = np.diff(offsets)
    totals = np.add.reduceat(counts, offsets[:-1], axis=axis)
    totals = totals + smoothing * (n_levels if axis == 1 else n_levels[:, None])
    return np.log(counts + smoothing) - np.repeat(np.log(totals), n_levels, axis=axis)


def own_agreement(
    labels: np.ndarray,
    codes: np.ndarray,
    n_levels: np.ndarray,
    weights: np.ndarray,
    member_weights: np.ndarray,
) -> np.ndarray:
    """Share of the members that put an object with another object of its cluster, averaged over the latter.

    Members count by their weight, and only where they saw both objects. An object that is alone in its cluster has the
    share of the members in which it is alone too.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 0], [0, 1], [1, 1]])
    >>> own_agreement(np.array([0, 0, 0, 1]), codes, np.array([2, 2]), np.ones(4), np.ones(2)).tolist()
    [0.75, 0.75, 0.5, 0.5]
    """
    counts, _ = label_histograms(labels, codes, n_levels, weights=weights)
    return agreement_in(counts, labels, codes, n_levels, weights, member_weights)


def agreement_in(
    counts: np.ndarray,
    labels: np.ndarray,
    codes: np.ndarray,
    n_levels: np.ndarray,
    weights: np.ndarray,
    member_weights: np.ndarray,
) -> np.ndarray:
    """:func:`own_agreement` of some of the rows, given the label histograms ``counts`` of all rows."""
    offsets = np.concatenate([[0], np.cumsum(n_levels)])
    totals = counts.sum(axis=0)
    seen = np.add.reduceat(counts, offsets[:-1], axis=1)
    agreement = np.empty(len(codes))
    for start in range(0, len(codes), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        z, itself = labels[rows], np.minimum(weights[rows], 1.0)  # one of the replicates is the object
        agreed, saw, alone, has = np.zeros((4, len(z)))
        for m, power in enumerate(member_weights):
            there = codes[rows, m] >= 0
            column = np.where(there, codes[rows, m], 0) + offsets[m]
            agreed += np.where(there, power * (counts[z, column] - itself), 0.0)
            saw += np.where(there, power * (seen[z, m] - itself), 0.0)
            alone += np.where(there & (totals[column] <= itself), power, 0.0)
            has += np.where(there, power, 0.0)
        others = saw > 1e-9  # fractional weights leave rounding errors
        agreement[rows] = np.where(others, agreed, alone) / np.where(others, saw, np.maximum(has, 1e-300))
    return np.clip(agreement, 0.0, 1.0)


def relative_weights(member_weights: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Weights of the columns such that the user's members have weight 1 on average.

    Examples
    --------
    >>> relative_weights(np.array([4.0, 1.0, 1.0]), np.array([0, 1, 1]))
    array([1.33333333, 0.33333333, 0.33333333])
    """
    return member_weights * (len(np.unique(owners)) / member_weights.sum())


def independent_members(
    z: np.ndarray, codes: np.ndarray, n_levels: np.ndarray, weights: np.ndarray, member_weights: np.ndarray
) -> float:
    """The number W of independent members that hold as much evidence about a partition as these (the design effect).

    Given the cluster of an object, its labels should be independent. The surprise of a label is its log probability
    in the cluster, less the mean of that over the cluster. If surprises of different members are independent, the
    variance of their sum is the sum of their variances. Where members err on the same objects it is larger, by the
    factor by which the number of members overstates the evidence.

    Parameters
    ----------
    z : ndarray (N,)
        A partition of the rows.
    codes, n_levels, weights, member_weights
        As in :class:`~partita.consensus.labelings.Labelings`.

    Returns
    -------
    float
        Between 1 and the mean number of labels of an object (weights of members counted).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.repeat([0, 1], 500)
    >>> Y = np.where(rng.random((1000, 8)) < 0.2, 1 - z[:, None], z[:, None])
    >>> ones = np.ones(1000)
    >>> round(independent_members(z, Y, np.full(8, 2), ones, np.ones(8)))
    8
    >>> twice = np.repeat(Y[:, :4], 2, axis=1)
    >>> round(independent_members(z, twice, np.full(8, 2), ones, np.ones(8)))
    4
    """
    counts, offsets = label_histograms(z, codes, n_levels, weights=weights)
    totals = np.add.reduceat(counts, offsets[:-1], axis=1)
    log_probabilities = log_label_probabilities(counts, offsets, SMOOTHING)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(counts * log_probabilities, offsets[:-1], axis=1) / totals
    centered = log_probabilities - np.repeat(np.nan_to_num(mean), n_levels, axis=1)
    apart, summed, labels = 0.0, np.zeros(len(z)), np.zeros(len(z))
    for m, (start, w) in enumerate(zip(offsets[:-1], member_weights, strict=True)):
        seen = codes[:, m] >= 0
        surprise = np.where(seen, centered[z, start + np.maximum(codes[:, m], 0).astype(np.int64)], 0.0)
        apart += w * float(weights @ surprise**2)
        summed += w * surprise
        labels += w * seen
    mean_labels = float(weights @ labels) / float(weights.sum())
    together = float(weights @ summed**2)
    number = mean_labels * apart / together if together > 0 else mean_labels
    return float(np.clip(number, min(1.0, mean_labels), mean_labels))
