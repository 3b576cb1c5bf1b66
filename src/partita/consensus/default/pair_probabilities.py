"""Probabilities that two objects belong together, from their clusters and from the votes of the members.

The probability of a pair is

    g e + (1 - g) (0.07 + 0.31 u + 0.26 e),

where e is 1 if the clustering puts the two objects together, u is the cosine of their rows of the co-association
matrix, and g is the number of independent members over the number of members. If the members are independent given the
clusters (g = 1), the clusters are right. If they repeat each other, the clusters are one opinion, and the constants say
how often objects of real classes belong together: they were fitted on labeled sets, and the benchmark `consensus`
measures them on others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from partita.consensus.default.association_cosines import AssociationCosines
from partita.execution import check_memory
from partita.labels import Coassociation
from partita.labels.checks import pair_positions

# Probability of a pair if the members repeat each other: of any pair, and what the cosine and one cluster add to it.
OF_ANY_PAIR, OF_COSINE, OF_ONE_CLUSTER = 0.07, 0.31, 0.26
BLOCK_ENTRIES = 1 << 22


def share_of_independent(
    n_independent: float, codes: NDArray[Any], weights: NDArray[Any], member_weights: NDArray[Any]
) -> float:
    """Number of independent members over the mean number of labels of an object: g.

    Examples
    --------
    >>> share_of_independent(1.5, np.array([[0, 0], [0, 1]]), np.ones(2), np.ones(2))
    0.75
    """
    present = float(np.average((codes >= 0) @ member_weights, weights=weights))
    return min(1.0, n_independent / max(present, 1.0))


def mixed_probability(same: Any, cosine: Any, trust: float, any_pair: Any = 1.0) -> Any:
    """The probability of a pair from e (``same``), u (``cosine``) and g (``trust``).

    It is linear in its three arguments other than g: for a sum over pairs, give the sums, and the number of pairs.

    Examples
    --------
    >>> round(mixed_probability(1.0, 0.5, 0.4), 3)
    0.691
    """
    doubt = 1.0 - trust
    return doubt * (OF_ANY_PAIR * any_pair + OF_COSINE * cosine) + (trust + doubt * OF_ONE_CLUSTER) * same


def mean_within(
    labels: NDArray[np.int64],
    codes: NDArray[Any],
    weights: NDArray[np.float64],
    member_weights: NDArray[np.float64],
    trust: float,
) -> NDArray[np.float64]:
    """Mean probability that an object of each row belongs together with the other objects of its cluster.

    For an object that is alone in its cluster it is that of two objects with the same labels.

    Examples
    --------
    >>> codes, ones = np.array([[0, 0], [0, 1], [1, 2]]), np.ones(3)
    >>> mean_within(np.array([0, 0, 1]), codes, ones, np.ones(2), 0.4).round(3)
    array([0.747, 0.747, 0.784])
    """
    cosines = AssociationCosines(codes, weights, member_weights)
    means: NDArray[np.float64] = mixed_probability(1.0, cosines.means_within(labels), trust)
    return means


def row_confidence(
    certainty: NDArray[np.float64],
    agreement: NDArray[np.float64],
    within: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Confidence of rows: the mean of the probability of their label, the share of the members, and a pair probability.

    The last is a mean over all objects. Members that repeat each other overstate the first two for all objects alike,
    which it takes back. Of single objects it would say less than they do.

    Parameters
    ----------
    certainty : array
        Probability of the label of each row.
    agreement : array
        Share of the members that put an object of the row with the others of its cluster.
    within : array
        Mean probability that it belongs together with them.
    weights : array
        Number of objects of each row.

    Examples
    --------
    >>> row_confidence(
    ...     np.array([1.0, 0.6]), np.array([0.9, 0.5]), np.array([0.8, 0.4]), np.array([3.0, 1.0])
    ... ).round(3)
    array([0.867, 0.6  ])
    """
    confidence: NDArray[np.float64] = (certainty + agreement + np.average(within, weights=weights)) / 3.0
    return confidence


class PairProbabilities(LinearOperator):
    """Co-clustering probabilities of N objects as a symmetric linear operator.

    Entry (i, j) is ``trust * e + (1 - trust) * (0.07 + 0.31 u + 0.26 e)``, where e is 1 if i and j are in one cluster,
    and u is the cosine of their rows of the co-association matrix. The diagonal is that of two objects with the same
    labels. Objects with the same labels share one row of ``codes``; no N x N matrix is formed, and memory is
    O(rows x members + objects).

    Parameters
    ----------
    codes : array of int, shape (s, M)
        Distinct rows of labels, -1 missing.
    labels : array of int, shape (N,)
        Cluster of each object.
    rows : array of int, shape (N,)
        The distinct row of each object.
    member_weights : array, shape (M,), optional
    trust : float, default=0.5
        Number of independent members over the number of members.
    weights : array, shape (s,), optional
        Number of objects of each distinct row in the co-association matrix; by default how often it is in ``rows``.

    Examples
    --------
    >>> codes, rows = np.array([[0, 0], [0, 1], [1, 2]]), np.array([0, 1, 1, 2])
    >>> P = PairProbabilities(codes, np.array([0, 0, 0, 1]), rows)
    >>> P.pairs(0, [1, 2, 3]).round(3)
    array([0.792, 0.792, 0.035])
    >>> (P @ np.ones(4)).round(3)
    array([2.438, 2.467, 2.467, 0.925])
    """

    def __init__(self, codes, labels, rows, member_weights=None, trust=0.5, weights=None):
        self.trust = float(trust)
        self.labels, self.of_rows = np.asarray(labels, dtype=np.int64), np.asarray(rows)
        counts = np.bincount(self.of_rows, minlength=len(codes)) if weights is None else weights
        self.cosines = AssociationCosines(codes, counts, member_weights)
        super().__init__(dtype=np.dtype(np.float64), shape=(len(self.of_rows), len(self.of_rows)))

    def _matmat(self, V: NDArray[Any]) -> NDArray[np.float64]:
        per_row = np.zeros((self.cosines.shape[0], V.shape[1]))
        np.add.at(per_row, self.of_rows, V)
        per_cluster = np.zeros((int(self.labels.max(initial=-1)) + 1, V.shape[1]))
        np.add.at(per_cluster, self.labels, V)
        same, cosine = per_cluster[self.labels], (self.cosines @ per_row)[self.of_rows]
        product: NDArray[np.float64] = mixed_probability(same, cosine, self.trust, V.sum(axis=0))
        return product

    def _matvec(self, v: NDArray[Any]) -> NDArray[np.float64]:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _adjoint(self) -> PairProbabilities:
        return self

    def _transpose(self) -> PairProbabilities:
        return self

    def pairs(self, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Probability for each pair of objects.

        Parameters
        ----------
        i, j : array-like of int
            Objects; the two arrays are broadcast against each other.

        Returns
        -------
        ndarray
            In the common shape of i and j.
        """
        left, right = pair_positions(i, j, self.shape[0], "objects of the fit")
        a, b = left.ravel(), right.ravel()
        cosine = self.cosines.pairs(self.of_rows[a], self.of_rows[b])
        probabilities: NDArray[np.float64] = mixed_probability(
            self.labels[a] == self.labels[b], cosine, self.trust
        )
        return probabilities.reshape(left.shape)

    def votes(self, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Share of the members that put each pair of objects together, of those that saw both; NaN where none did.

        Unlike the probability, it does not depend on the clusters.
        """
        left, right = np.broadcast_arrays(np.asarray(i), np.asarray(j))
        votes = Coassociation(self.cosines.codes, self.cosines.powers)
        return votes.pairs(self.of_rows[left], self.of_rows[right])

    def dense(self) -> NDArray[np.float64]:
        """The N x N matrix; no other method forms it.

        Raises
        ------
        MemoryError
            If the matrix would take more than half of the machine's memory; raised before anything is allocated.

        Examples
        --------
        >>> P = PairProbabilities(np.array([[0], [1]]), np.array([0, 1]), np.array([0, 1]), trust=0.0)
        >>> P.dense()
        array([[0.64, 0.07],
               [0.07, 0.64]])
        """
        n = self.shape[0]
        try:
            check_memory(
                8 * n * n,
                f"the co-clustering probabilities of all pairs of {n:,} objects",
                "use the operator itself (P @ v, P.pairs(i, j))",
            )
        except ValueError as error:
            raise MemoryError(str(error)) from None
        matrix = np.empty((n, n))
        step = max(1, BLOCK_ENTRIES // n)
        for start in range(0, n, step):
            some = slice(start, start + step)
            same = self.labels[some, None] == self.labels
            cosine = self.cosines.rows(self.of_rows[some])[:, self.of_rows]
            matrix[some] = mixed_probability(same, cosine, self.trust)
        return matrix
