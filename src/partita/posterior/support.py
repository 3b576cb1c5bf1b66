"""How well each level of a tree over groups is supported, and the confidence of its rows.

The support of a level is its margin: the mean probability of a row to be in one cluster with the others of its group,
less that for the next best group. It has a maximum over the levels: joining two separate groups lowers the first term,
and dividing a homogeneous group raises the second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels import contingency
from partita.posterior.confidence import confidence
from partita.posterior.draws import canonical_draws
from partita.posterior.similarity import expected_companions

MAX_ROWS = 20_000  # a sample of so many rows tells how well levels are supported


def support_of_draws(
    draws: ArrayLike, labels: NDArray[np.int64], joins: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Support of the levels with 1, 2, ... groups by the draws of chains.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
    labels : ndarray, shape (N,)
        Finest group of each object.
    joins : ndarray, shape (G - 1, 2)
        The tree, as in :class:`~partita.posterior.Grain`.

    Returns
    -------
    ndarray, shape (G,)

    Examples
    --------
    >>> support_of_draws([[0, 0, 1, 1], [0, 0, 1, 1]], np.array([0, 0, 1, 1]), np.array([[0, 1]])).round(3)
    array([0.333, 1.   ])
    """
    draws = np.asarray(draws)
    rows = sampled_rows(len(labels))
    z = labels[rows]
    groups, own = np.unique(z, return_inverse=True)
    together = np.zeros((len(z), len(joins) + 1))
    together[:, groups] = expected_companions(draws[:, rows], own)
    ones = np.ones(len(z))
    return level_margins(together, ones, z, ones, joins)


def support_of_responsibilities(
    R: NDArray[np.float64], labels: NDArray[np.int64], weights: NDArray[np.float64], joins: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Support of the levels with 1, 2, ... groups by responsibilities [row, cluster].

    Two rows are in one cluster with the probability ``R_i . R_j``. The other arguments are those of
    :func:`support_of_draws`; ``weights`` are the weights of the rows.

    Examples
    --------
    >>> z = np.array([0, 0, 1, 1])
    >>> support_of_responsibilities(np.eye(2)[z], z, np.ones(4), np.array([[0, 1]])).round(3)
    array([0.333, 1.   ])
    """
    G = len(joins) + 1
    sums = np.stack([np.bincount(labels, weights * column, minlength=G) for column in R.T])
    return level_margins(R @ sums, (R * R).sum(axis=1), labels, weights, joins)


def level_margins(
    together: NDArray[np.float64],
    itself: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    joins: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The margins of all levels, from the expected companions of each row.

    ``together[i, g]`` is the expected weight of the rows of the finest group g that are in one cluster with row i, of
    which ``itself[i]`` is the row itself. A row that is alone in its group has no companions: its first term is 0.
    """
    G, rows = len(joins) + 1, np.arange(len(labels))
    size = np.bincount(labels, weights, minlength=G)
    own, node = labels.copy(), np.arange(G)
    total = float(weights.sum())
    margins = np.zeros(G)
    for t in range(G):
        others = size[own] - 1.0
        first = np.where(
            others > 0.0, (together[rows, own] - itself) / np.where(others > 0.0, others, 1.0), 0.0
        )
        share = together / np.where(size > 0.0, size, 1.0)
        share[rows, own] = 0.0
        margins[G - 1 - t] = (weights @ (first - share.max(axis=1))) / total if total > 0.0 else 0.0
        if t < G - 1:
            k, l = sorted(np.flatnonzero(np.isin(node, joins[t])).tolist())
            together[:, k] += together[:, l]
            size[k] += size[l]
            together, size, node = np.delete(together, l, axis=1), np.delete(size, l), np.delete(node, l)
            node[k] = G + t
            own = np.where(own == l, k, own - (own > l))
    return margins.clip(0.0, 1.0)


def confidence_at(
    draws: ArrayLike, labels: NDArray[np.int64], groups: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Confidence of each object where the finest groups are joined to ``groups``.

    The clusters of each draw are joined as the groups are: each belongs to the finest group that most of its objects
    are in, and those that belong to one joined group become one cluster. The confidence is then the mean probability
    of an object to share a cluster with the others of its group (:func:`partita.posterior.confidence`).

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
    labels : ndarray, shape (N,)
        Finest group of each object.
    groups : ndarray, shape (G,)
        For each finest group, its group at this level.

    Examples
    --------
    >>> draws, z = [[0, 0, 1, 2], [0, 0, 1, 1]], np.array([0, 0, 1, 2])
    >>> confidence_at(draws, z, np.array([0, 1, 2])), confidence_at(draws, z, np.array([0, 1, 1]))
    (array([1. , 1. , 0.5, 0.5]), array([1., 1., 1., 1.]))
    """
    found = canonical_draws(draws).astype(np.int64)
    joined = np.bincount(groups)[groups] > 1  # finest groups that are not alone
    first = int(found.max()) + 1
    for row in found:
        owner = contingency(row, labels, sparse=False).argmax(axis=1)
        row[:] = np.where(joined[owner], first + groups[owner], np.arange(len(owner)))[row]
    return confidence(found, groups[labels]).objects


def sampled_rows(n_rows: int) -> NDArray[np.int64]:
    """At most ``MAX_ROWS`` rows, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, MAX_ROWS)).round().astype(np.int64))
