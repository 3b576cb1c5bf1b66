"""Set matching: each found cluster against the class that suits it best."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from partita.metrics.inputs import Missing, align, cross_table


class SetMatching(NamedTuple):
    """Set-matching precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def set_matching(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> SetMatching:
    """Match every found cluster with its best class, once for precision and once for recall.

    P is the mean over the found clusters of the best precision `max_j |A_i & B_j| / |A_i|`, R the mean
    over the found clusters of the best recall `max_j |A_i & B_j| / |B_j|`, and F1 their harmonic mean.
    This is the F1 of the paper on nonparametric Bayesian clustering ensembles with the bounds of its sums
    put right: as printed they mix the number of clusters and the number of classes. Every cluster counts
    alike, whatever its size; the score is not symmetric, and a class that no cluster resembles is not
    noticed.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Classes B and found clusters A, of any type.
    sample_weight : array-like of float, shape (N,), default=None
        Weight of every object; weight 2 is the same as the object twice.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects that miss a label (-1, None, NaN): ValueError, or leave them out.

    Returns
    -------
    SetMatching
        `precision`, `recall`, `f1`; all above 0 and at most 1.

    Examples
    --------
    >>> scores = set_matching([0, 0, 0, 1], [0, 0, 1, 1])
    >>> scores.precision, round(scores.recall, 6), round(scores.f1, 6)
    (0.75, 0.833333, 0.789474)
    """
    table = cross_table(align(labels_true, labels_pred, missing, sample_weight))
    best_precision, best_recall = np.zeros((2, table.cluster_sizes.size))
    np.maximum.at(best_precision, table.clusters, table.counts / table.cluster_sizes[table.clusters])
    np.maximum.at(best_recall, table.clusters, table.counts / table.class_sizes[table.classes])
    precision, recall = float(best_precision.mean()), float(best_recall.mean())
    return SetMatching(precision, recall, 2 * precision * recall / (precision + recall))


def set_matching_f1(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """F1 of `set_matching`: the mean is over found clusters, in precision and in recall.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight, missing
        As for `set_matching`, which also says how the printed formula was corrected.

    Returns
    -------
    float

    Examples
    --------
    >>> set_matching_f1(["a", "a", "b"], [1, 1, 0])
    1.0
    """
    return set_matching(labels_true, labels_pred, sample_weight=sample_weight, missing=missing).f1
