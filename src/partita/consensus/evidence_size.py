"""How much independent evidence an ensemble holds: members that err together count for fewer than they are."""

from __future__ import annotations

import numpy as np

from partita.labels import label_histograms

__all__ = ["independent_votes", "relative_weights"]

SMOOTHING = 0.05  # of the label probabilities that surprise is measured with


def relative_weights(member_weights: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Weights of the columns such that the user's members have weight 1 on average.

    Examples
    --------
    >>> relative_weights(np.array([4.0, 1.0, 1.0]), np.array([0, 1, 1]))
    array([1.33333333, 0.33333333, 0.33333333])
    """
    return member_weights * (len(np.unique(owners)) / member_weights.sum())


def independent_votes(
    z: np.ndarray, codes: np.ndarray, n_levels: np.ndarray, weights: np.ndarray, member_weights: np.ndarray
) -> float:
    """The number W of independent members that would be as sure of a partition as these are (the design effect).

    Given the cluster of an object, its labels should be independent. The surprise of a label is its log probability
    in the cluster, less the mean of that over the cluster. If surprises of different members are independent, the
    variance of their sum is the sum of their variances; where members err on the same objects it is larger, by just
    the factor that the ensemble counts too much.

    Parameters
    ----------
    z : ndarray (N,)
        A partition of the rows.
    codes, n_levels, weights, member_weights
        As in :class:`~partita.consensus.labelings.Labelings`.

    Returns
    -------
    float
        Between 1 and the mean number of labels an object has (weights of members counted).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.repeat([0, 1], 500)
    >>> Y = np.where(rng.random((1000, 8)) < 0.2, 1 - z[:, None], z[:, None])
    >>> ones = np.ones(1000)
    >>> round(independent_votes(z, Y, np.full(8, 2), ones, np.ones(8)))
    8
    >>> twice = np.repeat(Y[:, :4], 2, axis=1)
    >>> round(independent_votes(z, twice, np.full(8, 2), ones, np.ones(8)))
    4
    """
    counts, offsets = label_histograms(z, codes, n_levels, weights=weights)
    totals = np.add.reduceat(counts, offsets[:-1], axis=1)
    smooth = np.log(counts + SMOOTHING) - np.repeat(np.log(totals + SMOOTHING * n_levels), n_levels, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(counts * smooth, offsets[:-1], axis=1) / totals
    centred = smooth - np.repeat(np.nan_to_num(mean), n_levels, axis=1)
    apart, summed, labels = 0.0, np.zeros(len(z)), np.zeros(len(z))
    for m, (start, w) in enumerate(zip(offsets[:-1], member_weights, strict=True)):
        seen = codes[:, m] >= 0
        surprise = np.where(seen, centred[z, start + np.maximum(codes[:, m], 0).astype(np.int64)], 0.0)
        apart += w * float(weights @ surprise**2)
        summed += w * surprise
        labels += w * seen
    mean_labels = float(weights @ labels) / float(weights.sum())
    together = float(weights @ summed**2)
    votes = mean_labels * apart / together if together > 0 else mean_labels
    return float(np.clip(votes, min(1.0, mean_labels), mean_labels))
