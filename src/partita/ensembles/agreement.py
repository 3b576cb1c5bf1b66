"""Agreement of the members of an ensemble, the medoid, and the selection of members."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels import one_hot
from partita.labels.checks import integer_labels
from partita.labels.information import normalized_information

Matrix = NDArray[np.float64]


class Description(NamedTuple):
    """Agreement and diversity of an ensemble.

    Attributes
    ----------
    n_clusters : ndarray (n_members,)
        Number of clusters of each member.
    missing : ndarray (n_members,)
        Share of the objects that a member did not see.
    agreement : ndarray (n_members, n_members)
        Agreement of each pair of members.
    quality : ndarray (n_members,)
        Mean agreement of a member with the others.
    diversity : float
        One minus the mean agreement of two members.
    medoid : int
        The member that agrees best with the others.
    """

    n_clusters: NDArray[np.int64]
    missing: Matrix
    agreement: Matrix
    quality: Matrix
    diversity: float
    medoid: int


def pairwise_agreement(Y: ArrayLike, score: str = "ari") -> Matrix:
    """Agreement of each pair of members, from contingency tables.

    Two members are compared on the objects that both have seen; a pair without a common object has NaN.

    Parameters
    ----------
    Y : array-like of int, shape (n_objects, n_members)
        Label matrix, -1 missing.
    score : {"ari", "nmi"}
        Adjusted Rand index, or mutual information over the arithmetic mean of the entropies.

    Returns
    -------
    ndarray, shape (n_members, n_members)
        Symmetric, with ones on the diagonal.

    Examples
    --------
    >>> pairwise_agreement([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    array([[ 1. ,  1. , -0.5],
           [ 1. ,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    if score not in SCORES:
        raise ValueError(f"score is {score!r}: choose 'ari' or 'nmi'")
    Y = integer_labels(Y, "Y", ndim=2)
    A, offsets = one_hot(Y)
    n_members = Y.shape[1]
    out = np.ones((n_members, n_members))
    for m in range(n_members):
        out[m, m:] = out[m:, m] = _agreement_with_later(A, offsets, m, score)
        out[m, m] = 1.0
    return out


def agreement_with(labels: ArrayLike, Y: ArrayLike, score: str = "ari") -> Matrix:
    """Agreement of one clustering, for example the consensus, with each member.

    Parameters
    ----------
    labels : array-like of int, shape (n_objects,)
        The clustering, -1 missing.
    Y, score
        As in :func:`pairwise_agreement`.

    Returns
    -------
    ndarray, shape (n_members,)
        NaN for a member that has no object in common with the clustering.

    Examples
    --------
    >>> agreement_with([0, 0, 1, 1], [[0, 0], [0, 1], [1, 0], [1, 1]])
    array([ 1. , -0.5])
    """
    if score not in SCORES:
        raise ValueError(f"score is {score!r}: choose 'ari' or 'nmi'")
    both = np.column_stack([integer_labels(labels, "labels", ndim=1), integer_labels(Y, "Y", ndim=2)])
    A, offsets = one_hot(both)
    return _agreement_with_later(A, offsets, 0, score)[1:]


def _agreement_with_later(A: Any, offsets: NDArray[np.int64], m: int, score: str) -> Matrix:
    """Agreement of member m with itself and the members after it; ``A`` are the members as one-hot columns."""
    tables = np.asarray((A[:, offsets[m] : offsets[m + 1]].T @ A[:, offsets[m] :]).toarray())
    if tables.shape[0] == 0 or (np.diff(offsets[m:]) == 0).any():
        raise ValueError("a member has no labels: remove it before the members are compared")
    return SCORES[score](tables, offsets[m:-1] - offsets[m])


def _adjusted_rand(tables: Matrix, starts: NDArray[np.int64]) -> Matrix:
    """Adjusted Rand index of one member with others, whose contingency tables stand side by side."""
    rows = np.add.reduceat(
        tables, starts, axis=1
    )  # sizes of the first member's clusters among common objects
    total = rows.sum(axis=0)
    both = np.add.reduceat(_pairs(tables).sum(axis=0), starts)
    first, second = _pairs(rows).sum(axis=0), np.add.reduceat(_pairs(tables.sum(axis=0)), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = first * second / _pairs(total)
        most = (first + second) / 2
        index = (both - chance) / (most - chance)
    # both are one cluster, both are singletons, or there is one common object: the partitions are equal
    index[(most - chance == 0) | (total == 1)] = 1.0
    index[total == 0] = np.nan
    return index


def _pairs(n: Matrix) -> Matrix:
    return n * (n - 1) / 2


SCORES = {"ari": _adjusted_rand, "nmi": normalized_information}


def describe(Y: ArrayLike, score: str = "ari") -> Description:
    """Diversity and quality of an ensemble.

    Parameters
    ----------
    Y : array-like of int, shape (n_objects, n_members)
        Label matrix, -1 missing.
    score : {"ari", "nmi"}
        How agreement is measured; see :func:`pairwise_agreement`.

    Returns
    -------
    Description

    Examples
    --------
    >>> found = describe([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    >>> found.quality, found.diversity, found.medoid
    (array([ 0.25,  0.25, -0.5 ]), 1.0, 0)
    """
    Y = integer_labels(Y, "Y", ndim=2)
    agreement = pairwise_agreement(Y, score)
    quality = _mean_with_others(agreement)
    return Description(
        n_clusters=np.array([np.unique(member[member >= 0]).size for member in Y.T]),
        missing=(Y < 0).mean(axis=0),
        agreement=agreement,
        quality=quality,
        diversity=float(1.0 - np.nanmean(quality)),
        medoid=int(np.nanargmax(quality)),
    )


def _mean_with_others(agreement: Matrix) -> Matrix:
    if len(agreement) == 1:
        return np.ones(1)
    others = agreement.copy()
    np.fill_diagonal(others, np.nan)
    counts = (~np.isnan(others)).sum(axis=1)
    # a member without common objects has quality 0
    return np.divide(np.nansum(others, axis=1), counts, out=np.zeros(len(others)), where=counts > 0)


def medoid_member(Y: ArrayLike, score: str = "ari") -> int:
    """The member that agrees best with the others on average (the first of equals).

    Parameters
    ----------
    Y : array-like of int, shape (n_objects, n_members)
        Label matrix, -1 missing.
    score : {"ari", "nmi"}
        How agreement is measured.

    Returns
    -------
    int

    Examples
    --------
    >>> medoid_member([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]])
    1
    """
    return describe(Y, score).medoid


def select_members(
    Y: ArrayLike, n_members: int, *, diversity: float = 0.5, score: str = "ari"
) -> NDArray[np.int64]:
    """Choose members of high quality that differ from each other (greedy, after Fern and Lin 2008).

    The first is the medoid; each next one has the largest ``(1 - diversity) * quality - diversity * agreement with
    those chosen``, where quality is the mean agreement with the whole ensemble.

    Parameters
    ----------
    Y : array-like of int, shape (n_objects, n_members)
        Label matrix, -1 missing.
    n_members : int
        Number of members to keep.
    diversity : float, default=0.5
        0 selects the members of highest quality, 1 the members that differ most.
    score : {"ari", "nmi"}
        How agreement is measured.

    Returns
    -------
    ndarray of int
        Columns of `Y`, in the order of the matrix.

    Examples
    --------
    >>> Y = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 0]])
    >>> select_members(Y, 2, diversity=0.0), select_members(Y, 2, diversity=1.0)
    (array([0, 1]), array([0, 3]))
    """
    found = describe(Y, score)
    if not 1 <= n_members <= len(found.quality):
        raise ValueError(
            f"n_members is {n_members}: give a number from 1 to {len(found.quality)}, the members of Y"
        )
    if not 0 <= diversity <= 1:
        raise ValueError(f"diversity is {diversity}: it must lie between 0 and 1")
    agreement = np.nan_to_num(found.agreement)
    chosen = [found.medoid]
    while len(chosen) < n_members:
        merit = (1 - diversity) * found.quality - diversity * agreement[:, chosen].mean(axis=1)
        merit[chosen] = -np.inf
        chosen.append(int(merit.argmax()))
    return np.sort(chosen)
