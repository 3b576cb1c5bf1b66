"""Mutual information, its normalized forms, and the variation of information."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import (
    adjusted_mutual_info_score,
    mutual_info_score,
    normalized_mutual_info_score,
)

from partita.labels.information import Average, entropy
from partita.metrics.inputs import Missing, align, cross_table


def mutual_info(labels_true: Any, labels_pred: Any, *, missing: Missing = "raise") -> float:
    """Mutual information of two clusterings, in nats.

    Between 0 and the smaller of the two entropies; 0 where either is a single cluster.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects without a label (-1, None, NaN): raise a ValueError, or leave them out.

    Returns
    -------
    float

    Examples
    --------
    >>> round(mutual_info([0, 0, 1, 1], ["x", "x", "y", "y"]), 6)  # log 2
    0.693147
    """
    truth, found, _ = align(labels_true, labels_pred, missing)
    return float(mutual_info_score(truth, found))


def normalized_mutual_info(
    labels_true: Any, labels_pred: Any, *, average: Average = "arithmetic", missing: Missing = "raise"
) -> float:
    """Mutual information over an average of the two entropies: between 0 and 1.

    Papers differ in the average: Murphy (25.12) takes the arithmetic mean, LACA and NBMC-OFV the
    geometric one. Two clusterings with a single cluster each score 1; one cluster against several scores 0.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    average : {"arithmetic", "geometric", "min", "max"}, default="arithmetic"
        How the two entropies are averaged.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects without a label (-1, None, NaN): raise a ValueError, or leave them out.

    Returns
    -------
    float

    Examples
    --------
    >>> round(normalized_mutual_info([0, 0, 1, 1], [0, 1, 2, 2], average="min"), 6)
    1.0
    >>> round(normalized_mutual_info([0, 0, 1, 1], [0, 1, 2, 2]), 6)
    0.8
    """
    _check_average(average)
    truth, found, _ = align(labels_true, labels_pred, missing)
    return float(normalized_mutual_info_score(truth, found, average_method=average))


def adjusted_mutual_info(
    labels_true: Any, labels_pred: Any, *, average: Average = "arithmetic", missing: Missing = "raise"
) -> float:
    """Mutual information adjusted for chance (Vinh et al. 2009): 1 for equal clusterings, about 0 for random.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    average : {"arithmetic", "geometric", "min", "max"}, default="arithmetic"
        How the two entropies are averaged.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects without a label (-1, None, NaN): raise a ValueError, or leave them out.

    Returns
    -------
    float

    Examples
    --------
    >>> adjusted_mutual_info([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    _check_average(average)
    truth, found, _ = align(labels_true, labels_pred, missing)
    return float(adjusted_mutual_info_score(truth, found, average_method=average))


def variation_of_information(
    labels_true: Any,
    labels_pred: Any,
    *,
    base: float = math.e,
    normalized: bool = False,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """Variation of information (Meila 2005), a distance between clusterings.

    The sum of the two conditional entropies, H(U|V) + H(V|U); it is 0 only for equal clusterings, and
    at most log N.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    base : float, default=e
        Base of the logarithm: e for nats, 2 for bits.
    normalized : bool, default=False
        Divide by the joint entropy H(U, V). The result is still a distance, lies between 0 and 1, does
        not depend on `base`, and is 0 where both are a single cluster.
    sample_weight : array-like of float, shape (N,), default=None
        Weight of every object; weight 2 means that the object occurs twice.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects without a label (-1, None, NaN): raise a ValueError, or leave them out.

    Returns
    -------
    float

    Examples
    --------
    >>> round(variation_of_information([0, 0, 1, 1], [0, 1, 2, 2], base=2), 6)
    0.5
    """
    if not (base > 0 and base != 1):
        raise ValueError(f"base is {base}: the base of a logarithm must be positive and not 1")
    table = cross_table(align(labels_true, labels_pred, missing, sample_weight))
    p = table.counts / table.total
    # Every term is at least 0, so equal clusterings give exactly 0, which H(U) + H(V) - 2 I would not.
    log_ratios = np.log(table.class_sizes[table.classes] / table.counts)
    log_ratios += np.log(table.cluster_sizes[table.clusters] / table.counts)
    distance = float(p @ log_ratios)
    if normalized:
        joint_entropy = entropy(table.counts)
        return distance / joint_entropy if joint_entropy > 0 else 0.0
    return distance / math.log(base)


def _check_average(average: str) -> None:
    if average not in ("arithmetic", "geometric", "min", "max"):
        raise ValueError(f"average is {average!r}: it must be 'arithmetic', 'geometric', 'min' or 'max'")
