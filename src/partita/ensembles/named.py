"""Ensembles by name: the combinations that the literature uses. Each function is a call of `generate`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.ensembles.generating import generate

SHARES_OF_CLASSES = (0.5, 0.75, 1.0, 1.5, 2.0)


def kmeans_ensemble(X: Any, n_classes: int, n_members: int = 10, **options: Any) -> NDArray[np.int64]:
    """k-means from random starts, where k is 50, 75, 100, 150 and 200% of a number of classes in turn.

    The ensembles of the NBCE paper (Wang, Domeniconi and Laskey). k is never below 2.

    Parameters
    ----------
    X : array or data frame
    n_classes : int
        The number of classes, or the expected number of clusters.
    n_members : int, default=10
    **options
        As for :func:`generate`.

    Returns
    -------
    ndarray of int, shape (n_objects, n_members)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> kmeans_ensemble(X, n_classes=4, n_members=5, random_state=0).max(axis=0) + 1
    array([2, 3, 4, 6, 8])
    """
    if n_classes < 1:
        raise ValueError(f"n_classes is {n_classes}: at least one class is needed")
    k = [max(2, int(share * n_classes + 0.5)) for share in SHARES_OF_CLASSES]
    return generate(X, "kmeans", n_clusters=k, n_members=n_members, **options)


def subspace_ensemble(X: Any, n_members: int = 200, **options: Any) -> NDArray[np.int64]:
    """k-means on random subsets of the columns, k from 2 to one fifteenth of the number of rows.

    The ensembles of the LACA paper (Xie et al.): a subset has from 3 to all columns.

    Parameters
    ----------
    X : array or data frame
    n_members : int, default=200
    **options
        As for :func:`generate`.

    Returns
    -------
    ndarray of int, shape (n_objects, n_members)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> subspace_ensemble(X, 4, random_state=0).shape
    (60, 4)
    """
    options.setdefault("n_clusters", (2, max(2, len(X) // 15)))
    return generate(X, "kmeans", space="subspace", n_members=n_members, **options)


def bootstrap_ensemble(X: Any, n_members: int = 30, **options: Any) -> NDArray[np.int64]:
    """k-means on bootstrap samples, k from 2 to the square root of the number of rows.

    Objects that were not drawn have no label in a member.

    Parameters
    ----------
    X : array or data frame
    n_members : int, default=30
    **options
        As for :func:`generate`.

    Returns
    -------
    ndarray of int, shape (n_objects, n_members)
        About 37% of the labels are missing.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> Y = bootstrap_ensemble(X, random_state=0)
    >>> round(float((Y == -1).mean()), 1)
    0.4
    """
    return generate(X, "kmeans", rows="bootstrap", n_members=n_members, **options)


def projection_ensemble(X: Any, n_members: int = 20, **options: Any) -> NDArray[np.int64]:
    """k-means on Gaussian random projections of the features (Fern and Brodley 2003).

    Parameters
    ----------
    X : array or data frame
    n_members : int, default=20
    **options
        As for :func:`generate`.

    Returns
    -------
    ndarray of int, shape (n_objects, n_members)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 9))
    >>> projection_ensemble(X, 4, n_clusters=3, random_state=0).max(axis=0)
    array([2, 2, 2, 2])
    """
    return generate(X, "kmeans", space="projection", n_members=n_members, **options)


def mixed_ensemble(X: Any, n_members: int = 20, **options: Any) -> NDArray[np.int64]:
    """k-means, Ward's trees, diagonal Gaussian mixtures and spectral clustering in turn, on random columns.

    Parameters
    ----------
    X : array or data frame
    n_members : int, default=20
    **options
        As for :func:`generate`.

    Returns
    -------
    ndarray of int, shape (n_objects, n_members)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> mixed_ensemble(X, 4, n_clusters=3, random_state=0).shape
    (60, 4)
    """
    return generate(
        X, ["kmeans", "ward", "gmm", "spectral"], space="subspace", n_members=n_members, **options
    )
