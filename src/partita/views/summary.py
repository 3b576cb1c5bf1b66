"""Summaries of draws of views: views of the estimate matched with views of the draws, and one partition per view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from partita.labels import ordered_by_size
from partita.posterior import confidence, point_estimate, vote
from partita.posterior.draws import thin_draws
from partita.views.draws import Draw

MAX_LABELS = 3_000_000  # labels of draws that the search for one partition of the rows reads
MIN_DRAWS = 20  # draws that it reads at least


class ViewsSummary(NamedTuple):
    """The draws, summarized for the views of an estimate."""

    feature_views: np.ndarray  # [column, view] probability of membership
    drawn_labels: list[np.ndarray]  # [draw, row] of each view, from the draws that have a matching view
    n_clusters_posterior: list[dict[int, float]]  # of each view


def match_views(membership: np.ndarray, draw: Draw) -> np.ndarray:
    """The view of a draw that shares most columns with each view of the estimate.

    The matching is one-to-one as far as columns are shared. A view of the estimate that gets no partner takes the best
    view of the draw even if that is matched already, and -1 if no view of the draw has any of its columns.

    Examples
    --------
    >>> estimate = np.array([[1, 0], [1, 0], [0, 1]], bool)
    >>> drawn = np.array([[0, 1], [0, 1], [1, 0]], bool)
    >>> match_views(estimate, Draw(drawn, np.zeros((1, 2), int), (), 0.0, 0, np.ones(3)))
    array([1, 0])
    """
    shared = membership.astype(float).T @ draw.membership.astype(float)
    if not shared.size:
        return np.full(len(shared), -1)
    # Of two views that share equally many columns, the one with fewer other columns is preferred.
    others = draw.membership.sum(axis=0)[None, :] - shared
    rows, cols = linear_sum_assignment(-(shared - 1e-3 * others / max(len(membership), 1)))
    out = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), -1)
    good = shared[rows, cols] > 0
    out[rows[good]] = cols[good]
    return out


def _owners(membership: np.ndarray, draw: Draw, match: np.ndarray) -> dict[int, int]:
    """For each matched view of a draw, the view of the estimate that shares most columns with it."""
    shared = membership.astype(float).T @ draw.membership.astype(float)
    return {
        int(w): int(max(np.flatnonzero(match == w), key=lambda v: shared[v, w]))
        for w in np.unique(match[match >= 0])
    }


def summarize_views(draws: Sequence[Draw], membership: np.ndarray) -> ViewsSummary:
    """Membership probabilities, labels and numbers of clusters over the draws, for an estimate [column, view].

    Each view of a draw counts for one view of the estimate, so the membership probabilities of a column sum to at most
    its number of views.
    """
    matches = [match_views(membership, draw) for draw in draws]
    owners = [_owners(membership, draw, match) for draw, match in zip(draws, matches, strict=True)]
    feature_views, labels, counts = np.zeros(membership.shape), [], []
    for v in range(membership.shape[1]):
        for draw, match, owner in zip(draws, matches, owners, strict=True):
            if owner.get(int(match[v])) == v:
                feature_views[:, v] += draw.membership[:, match[v]] / len(draws)
        found = [
            draw.labels[:, match[v]] for draw, match in zip(draws, matches, strict=True) if match[v] >= 0
        ]
        drawn = np.stack(found) if found else np.zeros((0, len(draws[0].labels)), np.int64)
        labels.append(drawn)
        counts.append(shares(drawn.max(axis=1) + 1))
    return ViewsSummary(feature_views, labels, counts)


def shares(values: Any) -> dict[int, float]:
    """Share of each integer among the values.

    Examples
    --------
    >>> shares([2, 3, 2, 2])
    {2: 0.75, 3: 0.25}
    """
    numbers, times = np.unique(values, return_counts=True)
    return {int(n): float(t / times.sum()) for n, t in zip(numbers.tolist(), times.tolist(), strict=True)}


def one_partition(drawn: np.ndarray, partition: str, rng: np.random.Generator) -> np.ndarray:
    """One partition of the rows from the draws of a view, the largest cluster first.

    ``partition`` is "votes", or the loss of the point estimate ("vi", "binder").
    """
    drawn = thin_draws(drawn, MAX_LABELS, MIN_DRAWS)
    if len(drawn) == 1 or (drawn == drawn[0]).all():
        z = drawn[0].astype(np.int64)
    elif partition == "votes":
        z = vote(drawn).labels
    else:
        z = point_estimate(drawn, partition, n_starts=2, random_state=rng).labels
    return ordered_by_size(z)


def row_confidence(drawn: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean probability, over draws, that a row shares a cluster with the other rows of its cluster; NaN for one draw.

    Examples
    --------
    >>> row_confidence(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]), np.array([0, 0, 1, 1]))
    array([1. , 1. , 0.5, 0.5])
    """
    if len(drawn) < 2:
        return np.full(len(labels), np.nan)
    return confidence(thin_draws(drawn, MAX_LABELS, MIN_DRAWS), labels).objects
