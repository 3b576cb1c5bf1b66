"""Purity, Rand indices, error rate, and the significance of any score."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from sklearn.metrics import adjusted_rand_score, rand_score

from partita.metrics.inputs import CrossTable, Missing, align, cross_table
from partita.randomness import as_generator

# Above this the matching of clusters and classes works on the sparse table.
DENSE_MATCHING_CELLS = 1_000_000
# Scores of two permutations that differ by less are ties, not evidence.
TIE = 1e-12


class PermutationTest(NamedTuple):
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

    Between 0 (excluded) and 1. Singletons have purity 1, so it does not compare clusterings with
    different numbers of clusters.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Classes and clusters, of any type.
    sample_weight : array-like of float, shape (N,), default=None
        Weight of every object; weight 2 is the same as the object twice.
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
        What to do with objects that miss a label (-1, None, NaN): ValueError, or leave them out.

    Returns
    -------
    float

    Examples
    --------
    >>> round(rand(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5) * 136, 9)
    92.0
    """
    truth, found, _ = align(labels_true, labels_pred, missing)
    return float(rand_score(truth, found))


def adjusted_rand(labels_true: Any, labels_pred: Any, *, missing: Missing = "raise") -> float:
    """Rand index adjusted for chance (Hubert and Arabie 1985): 1 if equal, 0 on average if random.

    Two clusterings that are both one cluster, or both singletons, score 1, as does a single object.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects that miss a label (-1, None, NaN): ValueError, or leave them out.

    Returns
    -------
    float

    See Also
    --------
    permutation_significance : is this score more than chance?

    Examples
    --------
    >>> adjusted_rand([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    truth, found, _ = align(labels_true, labels_pred, missing)
    return float(adjusted_rand_score(truth, found))


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
) -> PermutationTest:
    """Test a score against chance by permuting the found labels, which keeps the sizes of all clusters.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    score : callable, default=adjusted_rand
        `score(labels_true, labels_pred)`; the adjusted Rand index by default.
    greater_is_better : bool, default=True
        False for distances and error rates.
    n_permutations : int, default=999
        Number of random permutations; the smallest possible p-value is `1 / (n_permutations + 1)`.
    probabilities : sequence of float, default=(0.025, 0.5, 0.975)
        Which quantiles of the scores of the permutations to give.
    random_state : int, Generator or None, default=None
        Seed or generator; numpy's global generator is never touched.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects that miss a label (-1, None, NaN): ValueError, or leave them out.

    Returns
    -------
    PermutationTest
        The score, the p-value (share of the permutations, the given one included, that score at least as
        well), and the quantiles of the permutations.

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
    as_good = null >= observed - TIE if greater_is_better else null <= observed + TIE
    levels = np.asarray(probabilities, dtype=np.float64)
    p_value = (1 + int(as_good.sum())) / (1 + n_permutations)
    return PermutationTest(observed, p_value, levels, np.quantile(null, levels))


def error_rate(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """Share of the objects outside the best one-to-one matching of clusters and classes.

    The matching is optimal (Hungarian method). With more clusters than classes the clusters left over
    are errors, and with more classes than clusters so are the classes left over.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Classes and clusters, of any type.
    sample_weight : array-like of float, shape (N,), default=None
        Weight of every object; weight 2 is the same as the object twice.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects that miss a label (-1, None, NaN): ValueError, or leave them out.

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
    cells = sp.coo_array((table.counts, (table.classes, table.clusters)), shape=shape)
    if shape[0] * shape[1] <= DENSE_MATCHING_CELLS:
        dense = cells.toarray()
        return dense[linear_sum_assignment(dense, maximize=True)].sum()
    # The sparse solver matches every row, so each row gets a private column that stands for "left out".
    # It also drops zeros: adding 1 to every edge changes all matchings alike, as each has one edge a row.
    left_out = sp.eye_array(shape[0])
    edges = cells.astype(np.float64)
    edges.data += 1.0
    rows, columns = min_weight_full_bipartite_matching(
        sp.hstack([edges, left_out], format="csr"), maximize=True
    )
    kept = columns < shape[1]
    return cells.tocsr()[rows[kept], columns[kept]].sum()
