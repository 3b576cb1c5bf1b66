"""Mutual information, its normalized forms, and the variation of information."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels.information import Average, entropy
from partita.metrics.inputs import CrossTable, Missing, align, cross_table

ROUNDING = 1e-10  # of the expected mutual information
MAX_TERMS = 1_000_000  # of the expected mutual information, in memory at once


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
    return _information(cross_table(align(labels_true, labels_pred, missing)))


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
    table = cross_table(align(labels_true, labels_pred, missing))
    if table.class_sizes.size == table.cluster_sizes.size == 1:
        return 1.0
    information = _information(table)
    return information / _average_entropy(table, average) if information > 0.0 else 0.0


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
    table = cross_table(align(labels_true, labels_pred, missing))
    if table.counts.size == table.class_sizes.size == table.cluster_sizes.size:  # equal partitions
        return 1.0
    if min(table.class_sizes.size, table.cluster_sizes.size) == 1:
        return 0.0
    expected = _expected_information(table)
    above, most = _information(table) - expected, _average_entropy(table, average) - expected
    if max(abs(above), abs(most)) <= ROUNDING:  # no labeling of these sizes can score less
        return 1.0
    smallest = float(np.finfo(np.float64).eps)  # the expectation may exceed the average entropy by rounding
    return above / math.copysign(max(abs(most), smallest), most)


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


def _information(table: CrossTable) -> float:
    """Mutual information of the two labelings of a table, in nats."""
    if min(table.class_sizes.size, table.cluster_sizes.size) == 1:
        return 0.0
    expected = table.class_sizes[table.classes] / table.total * table.cluster_sizes[table.clusters]
    terms = table.counts / table.total * np.log(table.counts / expected)
    return max(float(terms[np.abs(terms) >= np.finfo(np.float64).eps].sum()), 0.0)


def _average_entropy(table: CrossTable, average: Average) -> float:
    first, second = entropy(table.class_sizes), entropy(table.cluster_sizes)
    averages = {
        "arithmetic": (first + second) / 2.0,
        "geometric": math.sqrt(first * second),
        "min": min(first, second),
        "max": max(first, second),
    }
    return averages[average]


def _expected_information(table: CrossTable) -> float:
    """Expected mutual information of two random labelings with clusters of these sizes (Vinh et al. 2009).

    A cell of clusters with a and b of N objects has a hypergeometric number of objects. Clusters of equal size have
    equal terms, so that each pair of sizes is summed once.
    """
    N = int(table.total)
    sizes_a, times_a = np.unique(table.class_sizes, return_counts=True)
    sizes_b, times_b = np.unique(table.cluster_sizes, return_counts=True)
    log_factorial = np.fromiter(map(math.lgamma, range(1, N + 2)), np.float64, N + 1)

    def terms(a: NDArray[np.int64], b: NDArray[np.int64], times: NDArray[np.int64]) -> float:
        low = np.maximum(1, a + b - N)
        length = np.minimum(a, b) - low + 1
        a, b, times = np.repeat(a, length), np.repeat(b, length), np.repeat(times, length)
        n = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length - low, length)
        log_probability = (
            log_factorial[a] + log_factorial[b] + log_factorial[N - a] + log_factorial[N - b]
            - log_factorial[N] - log_factorial[n] - log_factorial[a - n] - log_factorial[b - n]
            - log_factorial[N - a - b + n]
        )  # fmt: skip
        return float((times * (n / N) * np.log(n / a * (N / b)) * np.exp(log_probability)).sum())

    expected = 0.0
    for a, times in zip(sizes_a, times_a, strict=True):
        step = max(MAX_TERMS // int(a), 1)  # a cell has at most a terms
        for start in range(0, len(sizes_b), step):
            some = slice(start, start + step)
            others = sizes_b[some]
            expected += terms(np.full(len(others), a), others, times * times_b[some])
    return expected


def _check_average(average: str) -> None:
    if average not in ("arithmetic", "geometric", "min", "max"):
        raise ValueError(f"average is {average!r}: it must be 'arithmetic', 'geometric', 'min' or 'max'")
