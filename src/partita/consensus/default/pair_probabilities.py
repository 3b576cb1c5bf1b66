"""Probabilities that two objects belong together, as an operator: a mean of the members' votes and the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from partita.execution import check_memory
from partita.labels import Coassociation
from partita.labels.checks import pair_positions

BLOCK_ENTRIES = 1 << 22


class PairProbabilities(LinearOperator):
    """Co-clustering probabilities of N objects as a symmetric linear operator.

    Entry (i, j) is a weighted mean of two numbers: the share of the members that put i and j together, of those that
    saw both, and the probability under the fitted clusters that they are in the same one, with the weight ``trust``.
    Objects with the same labels share one row of ``codes``; memory is O(rows x members + rows x clusters + objects).

    In products (``P @ v``) the share is that of *all* members, as in :class:`partita.labels.Coassociation`, which
    differs if labels are missing; `pairs` and `dense` divide by the members that saw both.

    Parameters
    ----------
    codes : array of int, shape (s, M)
        Distinct rows of labels, -1 missing.
    proba : array, shape (s, K)
        Cluster probabilities of these rows.
    rows : array of int, shape (N,)
        The distinct row of each object.
    member_weights : array, shape (M,), optional
    trust : float, default=0.5
        Between 0 (votes alone) and 1 (the clusters alone).

    Examples
    --------
    >>> P = PairProbabilities(
    ...     np.array([[0, 0], [0, 1]]), np.array([[1.0, 0.0], [0.8, 0.2]]), np.array([0, 1, 1])
    ... )
    >>> P.pairs(0, [1, 2])
    array([0.65, 0.65])
    >>> P @ np.ones(3)
    array([2.3 , 2.33, 2.33])
    """

    def __init__(self, codes, proba, rows, member_weights=None, trust=0.5):
        self.trust = float(trust)
        self.votes = Coassociation(codes, member_weights)
        self.proba, self.rows = np.asarray(proba, dtype=np.float64), np.asarray(rows)
        super().__init__(dtype=np.dtype(np.float64), shape=(len(self.rows), len(self.rows)))

    def _matmat(self, V: NDArray[Any]) -> NDArray[np.float64]:
        total = np.zeros((len(self.proba), V.shape[1]))
        np.add.at(total, self.rows, V)
        model, votes = self.proba @ (self.proba.T @ total), self.votes @ total
        product = self.trust * model + (1.0 - self.trust) * votes
        out: NDArray[np.float64] = product[self.rows]
        return out

    def _matvec(self, v: NDArray[Any]) -> NDArray[np.float64]:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _adjoint(self) -> PairProbabilities:
        return self

    def _transpose(self) -> PairProbabilities:
        return self

    def pairs(self, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Probability for each pair of objects; that of the model alone if no member saw both.

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
        a, b = self.rows[left.ravel()], self.rows[right.ravel()]
        model = np.empty(len(a))
        step = max(1, BLOCK_ENTRIES // self.proba.shape[1])
        for start in range(0, len(a), step):
            block = slice(start, start + step)
            model[block] = (self.proba[a[block]] * self.proba[b[block]]).sum(axis=1)
        votes = self.votes.pairs(a, b)
        mixed = np.where(np.isnan(votes), model, self.trust * model + (1.0 - self.trust) * votes)
        out: NDArray[np.float64] = mixed.reshape(left.shape)
        return out

    def dense(self) -> NDArray[np.float64]:
        """The N x N matrix; no other method forms it.

        Raises
        ------
        MemoryError
            If the matrix would take more than half of the machine's memory; raised before anything is allocated.

        Examples
        --------
        >>> PairProbabilities(np.array([[0], [1]]), np.eye(2), np.array([0, 1])).dense()
        array([[1., 0.],
               [0., 1.]])
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
        for i in range(n):
            matrix[i] = self.pairs(i, np.arange(n))
        return matrix
