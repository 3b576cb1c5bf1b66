"""The co-association matrix of a label matrix, as an operator that does not form the matrix."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from partita.labels.checks import MISSING, integer_labels, pair_positions, row_weights
from partita.labels.matrices import one_hot

# `dense` refuses a larger matrix by default: about 11,500 objects.
DENSE_BYTES = 2**30
# Entries that `dense` and `pairs` hold at a time in addition to their result.
CHUNK_ENTRIES = 2**22


class Coassociation(LinearOperator):
    """Share of the members of an ensemble that put two objects together, as a symmetric operator.

    Entry (i, j) is the total weight of the members that saw both objects and gave them one label,
    divided by the total weight of *all* members. A missing label contributes nothing, so that the diagonal
    is below 1 where labels are missing (`diagonal`). `pairs` divides by the members that saw both objects instead.
    A product with a vector costs O(N M) through the one-hot form A of the labels: A (w * (A' v)).

    Parameters
    ----------
    Y : array-like of int, shape (N, M)
        Label matrix, -1 missing.
    member_weights : array-like of float, shape (M,), default=None
        Weight of every member; None means 1 for all.

    Examples
    --------
    >>> C = Coassociation([[0, 0], [0, 1], [1, -1]])
    >>> C @ np.ones(3)
    array([1.5, 1.5, 0.5])
    >>> C.pairs([0, 2], [1, 2])
    array([0.5, 1. ])
    """

    def __init__(self, Y: ArrayLike, member_weights: ArrayLike | None = None) -> None:
        self.labels = integer_labels(Y, "Y", ndim=2)
        n_objects, n_members = self.labels.shape
        if n_members == 0:
            raise ValueError(
                f"Y has {n_objects} rows but no columns: co-association needs at least one member"
            )
        weights = row_weights(member_weights, n_members, "member_weights")
        self.member_weights = np.ones(n_members) if weights is None else weights
        self._one_hot, offsets = one_hot(self.labels)
        shares = self.member_weights / self.member_weights.sum()
        self._level_shares = np.repeat(shares, np.diff(offsets))
        super().__init__(dtype=np.dtype(np.float64), shape=(n_objects, n_objects))

    def _matvec(self, v: NDArray[Any]) -> NDArray[np.float64]:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _matmat(self, V: NDArray[Any]) -> NDArray[np.float64]:
        product: NDArray[np.float64] = self._one_hot @ (self._level_shares[:, None] * (self._one_hot.T @ V))
        return product

    def _adjoint(self) -> "Coassociation":
        return self

    def _transpose(self) -> "Coassociation":
        return self

    def diagonal(self) -> NDArray[np.float64]:
        """Share of the members that saw each object: the diagonal of the matrix.

        Returns
        -------
        ndarray, shape (N,)

        Examples
        --------
        >>> Coassociation([[0, 0], [1, -1]]).diagonal()
        array([1. , 0.5])
        """
        share: NDArray[np.float64] = self._one_hot @ self._level_shares
        return share

    def pairs(self, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Members that agree on each pair of objects, over the members that saw both.

        Parameters
        ----------
        i, j : array-like of int
            Objects; the two arrays are broadcast against each other.

        Returns
        -------
        ndarray
            Shares between 0 and 1, in the common shape; NaN where no member saw both objects.

        Examples
        --------
        >>> Coassociation([[0, 0], [0, -1], [-1, 1]]).pairs(0, [0, 1, 2])
        array([1., 1., 0.])
        """
        i, j = pair_positions(i, j, self.shape[0], "rows of Y")
        left, right = i.ravel(), j.ravel()
        shares = np.empty(left.size)
        step = max(1, CHUNK_ENTRIES // self.labels.shape[1])
        for start in range(0, left.size, step):
            chunk = slice(start, start + step)
            Y_left, Y_right = self.labels[left[chunk]], self.labels[right[chunk]]
            both = (Y_left != MISSING) & (Y_right != MISSING)
            agreed = (both & (Y_left == Y_right)) @ self.member_weights
            seen = both @ self.member_weights
            shares[chunk] = np.divide(agreed, seen, out=np.full(seen.size, np.nan), where=seen > 0)
        return shares.reshape(i.shape)

    def dense(self, max_bytes: int = DENSE_BYTES) -> NDArray[np.float64]:
        """Form the N x N matrix of this operator.

        Parameters
        ----------
        max_bytes : int, default=2**30
            Largest matrix allowed; the size is checked before the matrix is allocated.

        Returns
        -------
        ndarray, shape (N, N)

        Raises
        ------
        MemoryError
            If the matrix would take more than `max_bytes`.

        Examples
        --------
        >>> Coassociation([[0, 0], [0, 1]]).dense()
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        n_objects = self.shape[0]
        needed = n_objects * n_objects * np.dtype(np.float64).itemsize
        if needed > max_bytes:
            raise MemoryError(
                f"the co-association matrix of {n_objects} objects takes {needed:,} bytes, above "
                f"max_bytes={max_bytes:,}: use the Coassociation operator itself (C @ v, C.pairs(i, j)), "
                f"collapse repeated rows with partita.labels.signatures, or pass max_bytes={needed}"
            )
        matrix = np.empty((n_objects, n_objects))
        step = max(1, CHUNK_ENTRIES // max(n_objects, 1))
        weighted = self._one_hot.multiply(self._level_shares[None, :]).tocsr()
        for start in range(0, n_objects, step):
            chunk = slice(start, start + step)
            matrix[chunk] = (weighted[chunk] @ self._one_hot.T).toarray()
        return matrix
