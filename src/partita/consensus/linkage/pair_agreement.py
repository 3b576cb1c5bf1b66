"""Agreement of the members of an ensemble about pairs of objects: counts of pairs from contingency tables.

All pairs are unordered. A row of weight w stands for w replicates, so that a cell of weight W holds W (W - 1) / 2
pairs; with fractional weights a cell below one object holds none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.dispatch import kernel
from partita.labels import contingency
from partita.labels.information import pair_information

# Contingency tables above this many cells are mostly zeros and are counted sparsely.
DENSE_CELLS = 4_000_000


class Rates(NamedTuple):
    """Probability that a member puts a pair together: within a cluster of the model (rho) and between two (r)."""

    within: NDArray[np.float64]
    between: NDArray[np.float64]


class MemberPairCounts(NamedTuple):
    """Pairs by model (together, apart) and member (together, apart), per member; missing labels are left out."""

    together_together: NDArray[np.float64]
    together_apart: NDArray[np.float64]
    apart_together: NDArray[np.float64]
    apart_apart: NDArray[np.float64]


class CrossedMembers(NamedTuple):
    """Numbers [e, f] of pairs of objects that members e and f both saw: together in both, together in e, and all."""

    both: NDArray[np.float64]
    in_first: NDArray[np.float64]
    every: NDArray[np.float64]


def pair_counts(
    z: NDArray[Any], columns: list[NDArray[Any]], weights: NDArray[np.float64]
) -> MemberPairCounts:
    """Cross-classify pairs of objects by the partition z and by each member (a column of labels, -1 missing).

    Examples
    --------
    >>> found = pair_counts(np.array([0, 0, 1]), [np.array([0, 1, 1])], np.ones(3))
    >>> [int(count[0]) for count in found]
    [0, 1, 1, 1]
    """
    rows = [_crossed(z, column, weights) for column in columns]
    both, in_z, in_member, every = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return MemberPairCounts(
        both,
        np.maximum(in_z - both, 0.0),
        np.maximum(in_member - both, 0.0),
        np.maximum(every - in_z - in_member + both, 0.0),
    )


def cross_members(columns: list[NDArray[Any]], weights: NDArray[np.float64]) -> CrossedMembers:
    """Count the pairs that every two members put together, from their contingency tables.

    Examples
    --------
    >>> found = cross_members([np.array([0, 0, 1]), np.array([0, 0, -1])], np.ones(3))
    >>> found.both.tolist(), found.in_first.tolist(), found.every.tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[3.0, 1.0], [1.0, 1.0]])
    """
    M = len(columns)
    both, in_first, every = np.empty((3, M, M))
    for e in range(M):
        for f in range(e, M):
            both[e, f], in_first[e, f], in_first[f, e], every[e, f] = _crossed(
                columns[e], columns[f], weights
            )
            both[f, e], every[f, e] = both[e, f], every[e, f]
    return CrossedMembers(both, in_first, every)


def initial_rates(crossed: CrossedMembers, member_weights: NDArray[np.float64], prior_pairs: float) -> Rates:
    """Rates with every member in turn as the model, weighted by the weights of the members (LACA, 10 and 11).

    Examples
    --------
    >>> crossed = cross_members([np.array([0, 0, 1]), np.array([0, 0, 1])], np.ones(3))
    >>> rates = initial_rates(crossed, np.ones(2), prior_pairs=1.0)
    >>> rates.within.round(3).tolist(), rates.between.round(3).tolist()
    ([0.833, 0.833], [0.1, 0.1])
    """
    both, in_first, every = crossed
    in_model = in_first.T @ member_weights
    return Rates(
        (both @ member_weights + 0.5 * prior_pairs) / (in_model + prior_pairs),
        ((in_first - both) @ member_weights + 0.5 * prior_pairs)
        / ((every - in_first.T) @ member_weights + prior_pairs),
    )


def adjusted_agreement(crossed: CrossedMembers) -> NDArray[np.float64]:
    """Adjusted Rand index of every two members, on the objects that both saw; NaN where it is undefined.

    Examples
    --------
    >>> crossed = cross_members(
    ...     [np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])], np.ones(4)
    ... )
    >>> adjusted_agreement(crossed).round(2).tolist()
    [[1.0, 1.0, -0.5], [1.0, 1.0, -0.5], [-0.5, -0.5, 1.0]]
    """
    both, in_first, every = crossed
    with np.errstate(divide="ignore", invalid="ignore"):
        by_chance = in_first * in_first.T / every
        found: NDArray[np.float64] = (both - by_chance) / (0.5 * (in_first + in_first.T) - by_chance)
    return np.where(np.isfinite(found), found, np.nan)


def fitted_rates(counts: MemberPairCounts, prior_pairs: float) -> Rates:
    """Rates given the model, with `prior_pairs` pairs at one half added to the counts (LACA, 21 and 22).

    Examples
    --------
    >>> fitted_rates(MemberPairCounts(*np.array([[8.0], [2.0], [1.0], [9.0]])), prior_pairs=2.0)
    Rates(within=array([0.75]), between=array([0.16666667]))
    """
    same, apart, other_same, other_apart = counts
    return Rates(
        (same + 0.5 * prior_pairs) / (same + apart + prior_pairs),
        (other_same + 0.5 * prior_pairs) / (other_same + other_apart + prior_pairs),
    )


def log_likelihood(counts: MemberPairCounts, rates: Rates, member_weights: NDArray[np.float64]) -> float:
    """Log-likelihood of the pairs of all members, weighted by the weights of the members (LACA, 6 and 7).

    Examples
    --------
    >>> counts = MemberPairCounts(*np.ones((4, 1)))
    >>> round(log_likelihood(counts, Rates(np.array([0.5]), np.array([0.5])), np.ones(1)), 4)
    -2.7726
    """
    within, between = rates
    per_member = (
        counts.together_together * np.log(within)
        + counts.together_apart * np.log1p(-within)
        + counts.apart_together * np.log(between)
        + counts.apart_apart * np.log1p(-between)
    )
    return float(per_member @ member_weights)


def member_information(counts: MemberPairCounts) -> NDArray[np.float64]:
    """Mutual information of "together in the model" and "together in the member" for each member, in nats per pair.

    Examples
    --------
    >>> counts = MemberPairCounts(*np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> member_information(counts).round(3).tolist()
    [0.693, 0.0]
    """
    both, in_model = counts.together_together, counts.together_together + counts.together_apart
    return pair_information(both, in_model, both + counts.apart_together, sum(counts))


def _crossed(
    a: NDArray[Any], b: NDArray[Any], weights: NDArray[np.float64]
) -> tuple[float, float, float, float]:
    """Numbers of pairs together in both labelings, in a, in b, and all, among the objects with both labels."""
    shape = int(a.max(initial=-1)) + 1, int(b.max(initial=-1)) + 1
    if shape[0] * shape[1] <= DENSE_CELLS:
        return _dense_pairs(a.astype(np.int32, copy=False), b.astype(np.int32, copy=False), weights, *shape)
    table = contingency(a, b, weights, sparse=True)
    cells = (table.data, table.sum(axis=1), table.sum(axis=0), np.array([table.sum()]))
    both, in_a, in_b, every = (float(np.maximum(0.5 * W * (W - 1.0), 0.0).sum()) for W in cells)
    return both, in_a, in_b, every


@kernel
def _dense_pairs(a, b, weights, n_a, n_b):
    table = np.zeros((n_a, n_b))
    for i in range(a.size):
        if a[i] >= 0 and b[i] >= 0:
            table[a[i], b[i]] += weights[i]
    both, in_a, every = 0.0, 0.0, 0.0
    sums = np.zeros(n_b)
    for j in range(n_a):
        row = 0.0
        for k in range(n_b):
            cell = table[j, k]
            both += max(0.5 * cell * (cell - 1.0), 0.0)
            row += cell
            sums[k] += cell
        in_a += max(0.5 * row * (row - 1.0), 0.0)
        every += row
    in_b = 0.0
    for k in range(n_b):
        in_b += max(0.5 * sums[k] * (sums[k] - 1.0), 0.0)
    return both, in_a, in_b, max(0.5 * every * (every - 1.0), 0.0)
