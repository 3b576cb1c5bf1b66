"""Purity, Rand indices, error rate, and the significance of any score."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.metrics.inputs import CrossTable, Missing, align, cross_table
from partita.metrics.pairs import pair_counts
from partita.randomness import as_generator

# Up to this number of cells, clusters and classes are matched without scipy.
SMALL_TABLE_CELLS = 2500
# Scores of two permutations that differ by less are equal.
TIE_TOLERANCE = 1e-12


class PermutationTestResult(NamedTuple):
    """Result of `permutation_significance`.

    `quantiles` holds the quantiles of the score under permutation, at the probabilities `probabilities`.
    """

    score: float
    p_value: float
    probabilities: NDArray[np.float64]
    quantiles: NDArray[np.float64]


def purity(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """Share of the objects that belong to the largest class of their cluster.

    Between 0 (excluded) and 1. Singletons have purity 1, so clusterings with different numbers of
    clusters must not be compared by it.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Classes and clusters, of any type.
    sample_weight : array-like of float, shape (N,), default=None
        Weight of every object; weight 2 means that the object occurs twice.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects whose class or cluster is missing (-1, None, NaN): ValueError, or leave
        them out.

    Returns
    -------
    float

    Examples
    --------
    >>> purity(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5) * 17
    12.0
    """
    table = cross_table(align(labels_true, labels_pred, missing, sample_weight))
    largest = np.zeros(table.cluster_sizes.size, dtype=table.counts.dtype)
    np.maximum.at(largest, table.clusters, table.counts)
    return float(largest.sum() / table.total)


def rand(labels_true: Any, labels_pred: Any, *, missing: Missing = "raise") -> float:
    """Rand index: the share of the pairs of objects on which two clusterings agree.

    Between 0 and 1; one object has no pairs and scores 1. See `pair_counts` for the four counts.

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
    >>> round(rand(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5) * 136, 9)
    92.0
    """
    counts = pair_counts(labels_true, labels_pred, missing=missing)
    n_pairs = sum(counts)
    return (counts.tp + counts.tn) / n_pairs if n_pairs else 1.0


def adjusted_rand(labels_true: Any, labels_pred: Any, *, missing: Missing = "raise") -> float:
    """Rand index adjusted for chance (Hubert and Arabie 1985): 1 if equal, 0 on average if random.

    Two clusterings that are both one cluster, or both singletons, score 1, as does a single object.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects without a label (-1, None, NaN): raise a ValueError, or leave them out.

    Returns
    -------
    float

    See Also
    --------
    permutation_significance : A test of the score against chance.

    Examples
    --------
    >>> adjusted_rand([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    tp, fp, fn, tn = pair_counts(labels_true, labels_pred, missing=missing)
    if fp == fn == 0:
        return 1.0
    # Python's integers do not overflow, and the division rounds once
    return 2 * (tp * tn - fn * fp) / ((tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))


def permutation_significance(
    labels_true: Any,
    labels_pred: Any,
    *,
    score: Callable[[Any, Any], float] = adjusted_rand,
    greater_is_better: bool = True,
    n_permutations: int = 999,
    probabilities: Sequence[float] = (0.025, 0.5, 0.975),
    random_state: Any = None,
    missing: Missing = "raise",
) -> PermutationTestResult:
    """Test a score against chance by permuting the found labels, which keeps the sizes of all clusters.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    score : callable, default=adjusted_rand
        `score(labels_true, labels_pred)`.
    greater_is_better : bool, default=True
        False for distances and error rates.
    n_permutations : int, default=999
        Number of random permutations; the smallest possible p-value is `1 / (n_permutations + 1)`.
    probabilities : sequence of float, default=(0.025, 0.5, 0.975)
        Which quantiles of the scores under permutation to return.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness; numpy's global generator is not used.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects without a label (-1, None, NaN): raise a ValueError, or leave them out.

    Returns
    -------
    PermutationTestResult
        The score, the p-value (the share of the permutations, the identity included, that score at least as
        well), and the quantiles of the scores under permutation.

    Examples
    --------
    >>> result = permutation_significance([0] * 10 + [1] * 10, [0] * 9 + [1] * 11, random_state=0)
    >>> round(result.score, 3), result.p_value < 0.01
    (0.8, True)
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations is {n_permutations}: at least one permutation is needed")
    truth, found, _ = align(labels_true, labels_pred, missing)
    rng = as_generator(random_state)
    observed = float(score(truth, found))
    null = np.array([score(truth, rng.permutation(found)) for _ in range(n_permutations)], dtype=np.float64)
    as_good = null >= observed - TIE_TOLERANCE if greater_is_better else null <= observed + TIE_TOLERANCE
    levels = np.asarray(probabilities, dtype=np.float64)
    p_value = (1 + int(as_good.sum())) / (1 + n_permutations)
    return PermutationTestResult(observed, p_value, levels, np.quantile(null, levels))


def error_rate(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """Share of the objects outside the best one-to-one matching of clusters and classes.

    The matching is optimal (Hungarian method). Objects of clusters and classes without a
    partner are errors.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Classes and clusters, of any type.
    sample_weight : array-like of float, shape (N,), default=None
        Weight of every object; weight 2 means that the object occurs twice.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects without a label (-1, None, NaN): raise a ValueError, or leave them out.

    Returns
    -------
    float
        Between 0 and 1 (excluded).

    Examples
    --------
    >>> error_rate([0, 0, 0, 1, 1], ["b", "b", "a", "a", "c"])
    0.4
    """
    table = cross_table(align(labels_true, labels_pred, missing, sample_weight))
    return max(0.0, 1.0 - float(_largest_matching(table) / table.total))


def _largest_matching(table: CrossTable) -> Any:
    """Largest total of cells with no two in one row or column."""
    shape = (table.class_sizes.size, table.cluster_sizes.size)
    if shape[0] * shape[1] > SMALL_TABLE_CELLS:
        return _match_sparse(table, shape)
    dense = np.zeros(shape, dtype=table.counts.dtype)
    dense[table.classes, table.clusters] = table.counts
    return _match_small(dense if shape[0] <= shape[1] else dense.T)


def _match_small(gains: NDArray[Any]) -> Any:
    """Largest total of a small table with no more rows than columns (Hungarian method, one row at a time).

    scipy has the same and is faster, but its import takes longer than all the rest of `partita compare`.

    Examples
    --------
    >>> int(_match_small(np.array([[3, 2, 0], [4, 1, 0]])))
    6
    """
    R, C = gains.shape
    row_prices, prices = np.zeros(R), np.zeros(C + 1)
    partner = np.full(C + 1, -1)  # row of each column; column C stands for the row that is being added
    for row in range(R):
        partner[C], j = row, C
        slack, came_from = np.full(C, np.inf), np.full(C, C)
        visited = np.zeros(C + 1, dtype=bool)
        while partner[j] >= 0:  # shortest augmenting path to a free column
            visited[j] = True
            i = partner[j]
            reduced = -gains[i] - row_prices[i] - prices[:C]
            closer = ~visited[:C] & (reduced < slack)
            slack[closer], came_from[closer] = reduced[closer], j
            j = int(np.where(visited[:C], np.inf, slack).argmin())
            step = slack[j]
            row_prices[partner[visited]] += step
            prices[visited] -= step
            slack[~visited[:C]] -= step
        while j != C:
            partner[j], j = partner[came_from[j]], came_from[j]
    matched = np.flatnonzero(partner[:C] >= 0)
    return gains[partner[matched], matched].sum()


def _match_sparse(table: CrossTable, shape: tuple[int, int]) -> Any:
    from scipy import sparse as sp
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    cells = sp.coo_array((table.counts, (table.classes, table.clusters)), shape=shape)
    # The solver matches every row, so each row gets an additional column that means "not matched".
    # It also drops zeros. Adding 1 to every edge avoids them and favors no matching: each has one edge per row.
    left_out = sp.eye_array(shape[0])
    edges = cells.astype(np.float64)
    edges.data += 1.0
    rows, columns = min_weight_full_bipartite_matching(
        sp.hstack([edges, left_out], format="csr"), maximize=True
    )
    kept = columns < shape[1]
    return cells.tocsr()[rows[kept], columns[kept]].sum()
