"""Cosines of the rows of a co-association matrix, as an operator that does not form the matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from partita.dispatch import kernel
from partita.labels import one_hot

CHUNK_ENTRIES = 1 << 22  # entries of an array that are in memory at a time, beside the results
MIN_WEIGHT = 1e-9  # weights below it are zero up to rounding


class AssociationCosines(LinearOperator):
    """Cosines between the rows of a co-association matrix, for its distinct rows, as a symmetric linear operator.

    Row i of the matrix holds the share of all members that put object i with each object, itself included. Two objects
    that are rarely together are still alike by this measure if they are with the same others. An object without labels
    has the cosine 0 with every object.

    Let A be the one-hot form of the labels, w the diagonal matrix of the members' shares of the weight, one entry per
    label, and n that of the numbers of objects of the rows. The inner products of rows of the co-association matrix are
    those of rows of A in the metric H = w (A' n A) w, with one row per label. H is formed for many pairs; norms, the
    products and a few pairs are computed without it.

    Parameters
    ----------
    codes : array of int, shape (s, M)
        Distinct rows of labels, -1 missing.
    weights : array, shape (s,)
        Number of objects of each row.
    member_weights : array, shape (M,), optional

    Examples
    --------
    >>> cosines = AssociationCosines(np.array([[0, 0], [0, 1], [1, 2]]), np.ones(3))
    >>> cosines.pairs(np.array([0, 0, 0]), np.array([0, 1, 2])).round(3)
    array([1. , 0.8, 0. ])
    >>> (cosines @ np.ones(3)).round(3)
    array([1.8, 1.8, 1. ])
    """

    def __init__(self, codes, weights, member_weights=None):
        codes = np.ascontiguousarray(codes)
        self.labels, self.offsets = one_hot(codes)
        powers = (
            np.ones(codes.shape[1]) if member_weights is None else np.asarray(member_weights, dtype=float)
        )
        self.powers = powers / powers.sum()
        self.codes, self.weights = codes, np.asarray(weights, dtype=np.float64)
        super().__init__(dtype=np.dtype(np.float64), shape=(len(codes), len(codes)))

    @cached_property
    def metric(self) -> Any:
        """The matrix H."""
        weighted = self.labels.multiply(self._of_levels[None, :]).tocsr()
        return (weighted.multiply(self.weights[:, None]).tocsr().T @ weighted).tocsr()

    @cached_property
    def inverse_norms(self) -> NDArray[np.float64]:
        """1 / norm of each row of the co-association matrix; 0 for a row without labels."""
        squares = np.zeros(len(self.codes))
        n, M = self.codes.shape
        if n > M:
            histogram = np.zeros(int(self.offsets[-1]))
            _add_squared_norms(self.codes, self.weights, self.powers, self.offsets, histogram, squares)
            return _inverse_roots(squares)
        weighted = self.labels.multiply(
            self._of_levels[None, :]
        ).tocsr()  # there are fewer pairs of rows than of members
        for start, end in _chunks(n, n):
            shares = (weighted[start:end] @ self.labels.T).toarray()
            squares[start:end] = shares**2 @ self.weights
        return _inverse_roots(squares)

    def means_within(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Mean cosine of an object of each row with the other objects of its cluster.

        An object that is alone in its cluster has the cosine with itself.

        Parameters
        ----------
        labels : array of int, shape (s,)
            Cluster of each row.

        Examples
        --------
        >>> cosines = AssociationCosines(np.array([[0, 0], [0, 1], [1, 2]]), np.array([2.0, 1.0, 1.0]))
        >>> cosines.means_within(np.array([0, 0, 1])).round(3)
        array([0.908, 0.816, 1.   ])
        """
        rows = np.arange(len(labels))
        scaled = sparse.csr_array((self.weights * self.inverse_norms, (rows, labels)))
        images = self._image_of((self.labels.T @ scaled).toarray())
        sums = self.inverse_norms * self._entries(images.T, rows, labels)
        itself = np.minimum(self.weights, 1.0) * (self.inverse_norms > 0.0)
        others = np.bincount(labels, self.weights)[labels] - np.minimum(self.weights, 1.0)
        alone = others <= MIN_WEIGHT
        means = np.where(alone, self.inverse_norms > 0.0, (sums - itself) / np.where(alone, 1.0, others))
        out: NDArray[np.float64] = np.clip(means, 0.0, 1.0)
        return out

    def pairs(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of some pairs of rows; i and j are vectors of the same length."""
        used, at = np.unique(np.concatenate([i, j]), return_inverse=True)
        left, right = at.reshape(2, -1)
        order = np.argsort(left, kind="stable")
        sorted_left = left[order]
        products, squares = np.empty(len(left)), np.empty(len(used))
        for start, end in _chunks(len(used), max(self.labels.shape)):
            images, rows = self._images(used[start:end]), used[start:end]
            squares[start:end] = self._entries(images, rows, np.arange(len(rows)))
            some = order[slice(*np.searchsorted(sorted_left, [start, end]))]
            products[some] = self._entries(images, used[right[some]], left[some] - start)
        inverse = _inverse_roots(squares)
        return np.clip(products * inverse[left] * inverse[right], 0.0, 1.0)

    def rows(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of some rows with all rows."""
        products = self._images(rows) @ self.labels.T
        cosines: NDArray[np.float64] = products * self.inverse_norms[rows][:, None] * self.inverse_norms
        return np.clip(cosines, 0.0, 1.0)

    def _matmat(self, V: NDArray[Any]) -> NDArray[np.float64]:
        images = self._image_of(self.labels.T @ (self.inverse_norms[:, None] * V))
        product: NDArray[np.float64] = self.inverse_norms[:, None] * (self.labels @ images)
        return product

    def _matvec(self, v: NDArray[Any]) -> NDArray[np.float64]:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _adjoint(self) -> AssociationCosines:
        return self

    def _transpose(self) -> AssociationCosines:
        return self

    @property
    def _of_levels(self) -> NDArray[np.float64]:
        """The diagonal of w."""
        return np.repeat(self.powers, np.diff(self.offsets))

    def _image_of(self, Q: NDArray[np.float64]) -> NDArray[np.float64]:
        """H Q, without H."""
        image = np.zeros_like(Q)
        _add_image(self.codes, self.weights, self.offsets, self._of_levels[:, None] * Q, image)
        return self._of_levels[:, None] * image

    def _images(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The rows of A H; for fewer rows than labels, without H."""
        if "metric" in vars(self) or len(rows) > self.labels.shape[1]:
            images: NDArray[np.float64] = (self.labels[rows] @ self.metric).toarray()
            return images
        return self._image_of(self.labels[rows].T.toarray()).T

    def _entries(
        self, images: NDArray[Any], rows: NDArray[np.int64], of: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """For each row the sum of the entries at its labels in the image number ``of``."""
        sums = np.zeros(len(rows))
        for m, first in enumerate(self.offsets[:-1]):
            labels = self.codes[rows, m].astype(np.int64)
            sums += np.where(labels >= 0, images[of, first + np.maximum(labels, 0)], 0.0)
        return sums


@kernel
def _add_image(codes, weights, offsets, Q, image):
    """Add A' n A Q."""
    n, M = codes.shape
    row = np.zeros(Q.shape[1])
    for i in range(n):
        row[:] = 0.0
        for m in range(M):
            if codes[i, m] >= 0:
                of_label = Q[offsets[m] + codes[i, m]]
                for k in range(len(row)):
                    row[k] += of_label[k]
        for k in range(len(row)):
            row[k] *= weights[i]
        for m in range(M):
            if codes[i, m] >= 0:
                to = image[offsets[m] + codes[i, m]]
                for k in range(len(row)):
                    to[k] += row[k]


def _inverse_roots(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    inverse = np.zeros(len(squares))
    inverse[squares > 0.0] = 1.0 / np.sqrt(squares[squares > 0.0])
    return inverse


def _chunks(n_rows: int, width: int) -> list[tuple[int, int]]:
    size = max(1, CHUNK_ENTRIES // width)
    return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


@kernel
def _add_squared_norms(codes, weights, powers, offsets, histogram, squares):
    """Add the squared norm of each row of the co-association matrix.

    It is the sum, over pairs of members, of the weight of the objects that share the labels of the row in both. For
    each label of the first member of a pair, the histogram of the labels of the second is made, used and emptied.
    """
    n, M = codes.shape
    order = np.empty(n, np.int64)
    for m in range(M):
        starts = np.zeros(offsets[m + 1] - offsets[m] + 1, np.int64)
        for i in range(n):
            if codes[i, m] >= 0:
                starts[codes[i, m] + 1] += 1
        for level in range(1, starts.shape[0]):
            starts[level] += starts[level - 1]
        ends = starts.copy()
        for i in range(n):
            if codes[i, m] >= 0:
                order[ends[codes[i, m]]] = i
                ends[codes[i, m]] += 1
        for level in range(starts.shape[0] - 1):
            for e in range(starts[level], starts[level + 1]):
                i = order[e]
                for other in range(m, M):
                    if codes[i, other] >= 0:
                        histogram[offsets[other] + codes[i, other]] += weights[i]
            for e in range(starts[level], starts[level + 1]):
                i = order[e]
                total = 0.0
                for other in range(m + 1, M):
                    if codes[i, other] >= 0:
                        total += powers[other] * histogram[offsets[other] + codes[i, other]]
                squares[i] += powers[m] * (2.0 * total + powers[m] * histogram[offsets[m] + level])
            for e in range(starts[level], starts[level + 1]):
                i = order[e]
                for other in range(m, M):
                    if codes[i, other] >= 0:
                        histogram[offsets[other] + codes[i, other]] = 0.0
