"""Label matrices (objects x members, -1 missing): one-hot form, histograms and unique rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels.checks import MISSING, integer_labels, level_counts, row_weights

# Packed words stay below this, so that one more multiplication is checked before it can overflow.
LARGEST_WORD = 2**62
CHUNK_ROWS = 2**13


class OneHot(NamedTuple):
    """One-hot form of a label matrix.

    `matrix` is a sparse (N x total levels) 0/1 matrix; the levels of member m are its columns
    `offsets[m]` to `offsets[m + 1] - 1`.
    """

    matrix: Any
    offsets: NDArray[np.int64]


class Histograms(NamedTuple):
    """Label counts of every cluster: `counts[k, offsets[m] + level]`."""

    counts: NDArray[Any]
    offsets: NDArray[np.int64]


class Signatures(NamedTuple):
    """The distinct rows of a label matrix.

    `rows` holds them in lexicographic order, `weights` the summed weight of their objects,
    `inverse` the signature of every object (`rows[inverse]` is the matrix again) and `first` the
    first object with each signature.
    """

    rows: NDArray[Any]
    weights: NDArray[np.float64]
    inverse: NDArray[np.int64]
    first: NDArray[np.int64]


def one_hot(Y: ArrayLike, n_levels: ArrayLike | None = None) -> OneHot:
    """Write a label matrix as a sparse matrix with one column per (member, level).

    Parameters
    ----------
    Y : array-like of int, shape (N, M)
        Label matrix; a missing label (-1) leaves its member's columns empty in that row.
    n_levels : int or array-like of int, shape (M,), default=None
        Levels of every member; None means the largest label plus one.

    Returns
    -------
    OneHot
        `matrix` (`scipy.sparse.csr_array` of float64) and `offsets` (length M + 1).

    Examples
    --------
    >>> A, offsets = one_hot([[0, 1], [1, -1]])
    >>> A.toarray()
    array([[1., 0., 0., 1.],
           [0., 1., 0., 0.]])
    >>> offsets
    array([0, 2, 4])
    """
    from scipy import sparse as sp

    Y = integer_labels(Y, "Y", ndim=2)
    offsets = _offsets(level_counts(Y, n_levels))
    seen = Y != MISSING
    columns = (Y + offsets[:-1])[seen]
    ends = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    shape = (Y.shape[0], int(offsets[-1]))
    return OneHot(sp.csr_array((np.ones(columns.size), columns, ends), shape=shape), offsets)


def label_histograms(
    z: ArrayLike,
    Y: ArrayLike,
    n_levels: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    n_clusters: int | None = None,
) -> Histograms:
    """Count the labels of every member inside every cluster.

    Parameters
    ----------
    z : array-like of int, shape (N,)
        Cluster of every object; objects with -1 are left out.
    Y : array-like of int, shape (N, M)
        Label matrix; missing labels (-1) are not counted.
    n_levels : int or array-like of int, shape (M,), default=None
        Levels of every member; None means the largest label plus one.
    weights : array-like of float, shape (N,), default=None
        Weight of every object, for example of every signature; without it the counts are integers.
    n_clusters : int, default=None
        Rows of the result; None means the largest cluster plus one.

    Returns
    -------
    Histograms
        `counts` (clusters x total levels) and `offsets` (length M + 1).

    Examples
    --------
    >>> counts, offsets = label_histograms([0, 0, 1], [[0, 1], [1, 1], [0, -1]])
    >>> counts
    array([[1, 1, 0, 2],
           [1, 0, 0, 0]])
    >>> counts[0, offsets[1] : offsets[2]]  # member 1 in cluster 0
    array([0, 2])
    """
    z, Y = integer_labels(z, "z", ndim=1), integer_labels(Y, "Y", ndim=2)
    if z.size != Y.shape[0]:
        raise ValueError(f"z has {z.size} labels and Y has {Y.shape[0]} rows: they must be the same objects")
    weights = row_weights(weights, z.size)
    occupied = int(z.max(initial=-1)) + 1
    n_clusters = occupied if n_clusters is None else n_clusters
    if n_clusters < occupied:
        raise ValueError(f"z has the cluster {occupied - 1}, but n_clusters is {n_clusters}")
    levels = level_counts(Y, n_levels)
    offsets = _offsets(levels)
    counts = np.zeros((n_clusters, int(offsets[-1])), dtype=np.int64 if weights is None else np.float64)
    z = z.astype(np.int64)
    for m, n_level in enumerate(levels):
        seen = (z != MISSING) & (Y[:, m] != MISSING)
        cells = z[seen] * n_level + Y[seen, m]
        block = np.bincount(
            cells, weights=None if weights is None else weights[seen], minlength=int(n_clusters * n_level)
        )
        counts[:, offsets[m] : offsets[m + 1]] = block.reshape(n_clusters, n_level)
    return Histograms(counts, offsets)


def signatures(Y: ArrayLike, weights: ArrayLike | None = None) -> Signatures:
    """Collapse a label matrix to its distinct rows.

    The labels of a row are packed into one integer (mixed radix) and that integer is sorted; where
    a row needs more than 62 bits, the integers so far are replaced by their ranks, which keeps the
    lexicographic order. The result does not depend on the order of the rows, except for `inverse` and
    `first`, which point into them.

    Parameters
    ----------
    Y : array-like of int, shape (N, M)
        Label matrix, -1 missing: a missing label equals only a missing label, and sorts before every other one.
    weights : array-like of float, shape (N,), default=None
        Weight of every row; None means 1 for all. A signature whose rows all have weight 0 is kept, with weight 0.

    Returns
    -------
    Signatures

    Examples
    --------
    >>> found = signatures([[1, 0], [0, 2], [1, 0]])
    >>> found.rows
    array([[0, 2],
           [1, 0]])
    >>> found.weights, found.inverse, found.first
    (array([1., 2.]), array([1, 0, 1]), array([1, 0]))
    """
    Y = integer_labels(Y, "Y", ndim=2)
    if Y.shape[1] == 0:
        raise ValueError(f"Y has {Y.shape[0]} rows but no columns: a signature needs at least one member")
    n_rows = Y.shape[0]
    weights = row_weights(weights, n_rows)
    inverse, n_signatures = _ranks(_packed_rows(Y))
    first = np.empty(n_signatures, dtype=np.int64)
    # With repeated indices the last assignment stays, so going backwards leaves the first row.
    first[inverse[::-1]] = np.arange(n_rows - 1, -1, -1)
    totals = np.bincount(inverse, weights=weights, minlength=n_signatures).astype(np.float64)
    return Signatures(Y[first], totals, inverse, first)


def _offsets(levels: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)


def _packed_rows(Y: NDArray[Any]) -> NDArray[np.int64]:
    """One integer per row; integers are ordered as the rows are, and equal where the rows are."""
    words, n_words = np.zeros(Y.shape[0], dtype=np.int64), 1
    radices = [int(label) + 2 for label in Y.max(axis=0, initial=MISSING)]
    start = 0
    while start < Y.shape[1]:
        stop, n_packed = start, n_words
        while stop < Y.shape[1] and n_packed * radices[stop] < LARGEST_WORD:
            n_packed *= radices[stop]
            stop += 1
        if stop > start:
            _append_columns(words, Y[:, start:stop], radices[start:stop])
            start, n_words = stop, n_packed
        elif n_words > Y.shape[0]:
            words, n_words = _ranks(words)
        else:
            # One column alone has labels too large to append to the ranks: its own ranks do fit.
            ranks, n_ranks = _ranks(Y[:, start])
            _append_columns(words, ranks[:, None] - 1, [n_ranks])
            start, n_words = start + 1, n_words * n_ranks
    return words


def _append_columns(words: NDArray[np.int64], columns: NDArray[Any], radices: list[int]) -> None:
    """Append the digits label + 1 to every word, in place, by chunks of rows that fit into the cache."""
    for start in range(0, words.size, CHUNK_ROWS):
        block = slice(start, start + CHUNK_ROWS)
        word = words[block]
        for m, radix in enumerate(radices):
            word *= radix
            word += columns[block, m]
            word += 1


def _ranks(values: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    uniques, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.int64, copy=False), max(uniques.size, 1) if values.size else 0
