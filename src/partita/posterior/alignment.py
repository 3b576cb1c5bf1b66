"""Give the clusters of different draws common names, and say how well that went.

Labels of different draws have nothing to do with each other. Aligned to a reference partition, draw by draw, they let
quantities of a cluster (its size, its mean) be followed through the draws. That makes sense only where the draws have
the clusters of the reference at all, so the quality of the match is reported and summaries are refused where it is
poor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from partita.labels import contingency
from partita.posterior.draws import canonical_draws, check_partition

MIN_QUALITY = 0.8


class Alignment(NamedTuple):
    """Draws in the labels of a reference partition with K clusters.

    Clusters of a draw without a partner have the labels K, K + 1, ... in order of appearance. `assignment[b][l]` is the
    new label of cluster l of draw b, numbered as in the input.
    """

    labels: NDArray[np.int64]  # [draw, object]
    reference: NDArray[np.int64]  # [object]
    assignment: tuple[NDArray[np.int64], ...]
    quality: NDArray[np.float64]  # [draw], share of the objects that have the label of the reference
    cluster_quality: NDArray[
        np.float64
    ]  # [cluster], mean Dice overlap with its partners, 0 where it has none
    membership: NDArray[
        np.float64
    ]  # [object, cluster], share of the draws in which the object has this label


class AlignedSummary(NamedTuple):
    """Mean and standard error of a quantity of each cluster over the draws that have it."""

    mean: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    n_draws: NDArray[np.int64]


def align_draws(draws: ArrayLike, reference: ArrayLike) -> Alignment:
    """Rename the clusters of every draw after those of a reference partition.

    The names are those of the optimal assignment on the contingency table: as many objects as possible get the label
    they have in the reference. How the draws were labelled before does not matter.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors, one a row.
    reference : array-like of int, shape (N,)
        For example the labels of `point_estimate`; numbered in order of appearance if they are not.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> found = align_draws([[1, 1, 0, 0], [0, 0, 0, 1], [2, 2, 0, 1]], [0, 0, 1, 1])
    >>> found.labels.tolist()
    [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 2]]
    >>> found.quality.tolist()
    [1.0, 0.75, 0.75]
    """
    given = np.asarray(draws)
    canonical = canonical_draws(given)
    T, N = canonical.shape
    z = check_partition(reference, N, "reference").astype(np.int64)
    K = int(z.max()) + 1
    labels = np.empty((T, N), dtype=np.int64)
    overlap, membership, assignment = np.zeros(K), np.zeros((N, K)), []
    for b, row in enumerate(canonical):
        table = contingency(z, row.astype(np.int64), sparse=False)
        names, mine, theirs = best_names(table)
        labels[b] = names[row]
        overlap[mine] += 2.0 * table[mine, theirs] / (table.sum(axis=1)[mine] + table.sum(axis=0)[theirs])
        known = labels[b] < K
        membership[np.flatnonzero(known), labels[b][known]] += 1.0
        by_input = np.full(int(given[b].max()) + 1, -1, dtype=np.int64)
        by_input[given[b]] = labels[b]
        assignment.append(by_input)
    quality = (labels == z).mean(axis=1)
    return Alignment(labels, z, tuple(assignment), quality, overlap / T, membership / T)


def best_names(
    table: NDArray[np.integer],
) -> tuple[NDArray[np.int64], NDArray[np.integer], NDArray[np.integer]]:
    """Names of a draw's clusters in a reference, by optimal assignment on their contingency table.

    Returns the name of each column, those without a partner numbered after the rows, and the pairs that met.

    Examples
    --------
    >>> best_names(np.array([[0, 5, 1], [4, 0, 0]]))[0]
    array([1, 0, 2])
    """
    mine, theirs = linear_sum_assignment(table, maximize=True)
    met = table[mine, theirs] > 0
    mine, theirs = mine[met], theirs[met]
    names = np.full(table.shape[1], -1, dtype=np.int64)
    names[theirs] = mine
    left = np.flatnonzero(names < 0)
    names[left] = len(table) + np.arange(len(left))
    return names, mine, theirs


def summarise_aligned(
    values: Sequence[ArrayLike], alignment: Alignment, *, min_quality: float = MIN_QUALITY
) -> AlignedSummary:
    """Mean and standard error over the draws of a quantity of each cluster.

    The standard error is the standard deviation over the draws: how uncertain the quantity is.

    Parameters
    ----------
    values : sequence of array-like
        For each draw an array whose row l belongs to its cluster l, numbered as in the draws that were aligned.
    alignment : Alignment
        Of `align_draws`.
    min_quality : float, default=0.8
        Least quality of the match of every cluster, between 0 and 1.

    Returns
    -------
    AlignedSummary
        Row k is for cluster k of the reference.

    Raises
    ------
    ValueError
        Where a cluster is matched worse than `min_quality`: its figures would mix different clusters.

    Examples
    --------
    >>> found = align_draws([[1, 1, 0, 0], [0, 0, 1, 1]], [0, 0, 1, 1])
    >>> summarise_aligned([[5.0, 1.0], [2.0, 5.0]], found).mean
    array([1.5, 5. ])
    >>> summarise_aligned([[0.0], [0.0]], align_draws([[0, 0, 0, 0], [0, 0, 0, 0]], [0, 1, 2, 3]))
    Traceback (most recent call last):
    ...
    ValueError: no standard errors: the draws do not have cluster 0 of the reference (match quality 0.40), ...
    """
    if len(values) != len(alignment.assignment):
        raise ValueError(
            f"values has {len(values)} entries, but {len(alignment.assignment)} draws were aligned"
        )
    poor = np.flatnonzero(alignment.cluster_quality < min_quality)
    if len(poor):
        told = ", ".join(
            f"{k} of the reference (match quality {alignment.cluster_quality[k]:.2f})" for k in poor
        )
        raise ValueError(
            f"no standard errors: the draws do not have cluster {told}, so the figures of different clusters would be "
            f"mixed; at least {min_quality} is asked for. Take a reference with clusters that the draws share "
            "(point_estimate with a smaller max_clusters), or lower min_quality"
        )
    K = len(alignment.cluster_quality)
    found: list[list[NDArray[np.float64]]] = [[] for _ in range(K)]
    for b, (rows, names) in enumerate(zip(values, alignment.assignment, strict=True)):
        array = np.asarray(rows, dtype=float)
        if len(array) < len(names):
            raise ValueError(
                f"values[{b}] has {len(array)} rows, but draw {b} has labels up to {len(names) - 1}"
            )
        for label, k in enumerate(names):
            if 0 <= k < K:
                found[k].append(array[label])
    mean = np.array([np.mean(one, axis=0) for one in found])
    error = np.array([np.std(one, axis=0, ddof=1) if len(one) > 1 else np.nan * mean[0] for one in found])
    return AlignedSummary(mean, error, np.array([len(one) for one in found]))
