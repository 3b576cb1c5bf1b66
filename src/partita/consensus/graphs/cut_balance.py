"""How uneven the parts of a cut may be: chosen by what the cut tells about the members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.labels import label_histograms
from partita.labels.information import normalized_mutual_information

__all__ = ["BalancedCut", "Cut", "choose_balance", "mean_nmi"]

FIRST = (0.05, 0.25, 0.5, 1.0, 2.0)  # imbalances that are tried with equal shares
FALLING = (0.8, 0.65, 0.5)  # ratios of one share to the one before, for shares that differ from the start
AGAIN = (0.05, 0.25, 0.5)  # imbalances with such shares, or with those of the best cut so far
MAX_ROUNDS = 8


class Cut(NamedTuple):
    """A partition of the rows, from a partition of the vertices of a graph (which may be the rows)."""

    labels: NDArray[np.int64]  # of the rows
    parts: NDArray[np.int64]  # of the vertices
    shares: NDArray[np.float64]  # of the parts in the weight of all vertices


class BalancedCut(NamedTuple):
    """The chosen cut, its score, and the largest part over the mean part, less 1."""

    cut: Cut
    score: float
    imbalance: float


def choose_balance(
    cut: Callable[[float, NDArray[np.float64] | None], list[Cut]],
    score: Callable[[NDArray[np.int64]], float],
    n_parts: int,
    balance: float | str,
) -> BalancedCut:
    """The first cut with the allowed imbalance `balance`, or with "auto" the one of the best score.

    An unconstrained cut isolates points, and an even one breaks uneven clusters. So "auto" first tries some
    imbalances with equal shares and with shares that fall geometrically; then the shares of the best cut so far
    become the goal, while the score rises.

    Examples
    --------
    >>> def cut(imbalance, shares):
    ...     labels = (np.arange(10) >= (5 if imbalance < 0.25 else 7)).astype(int)
    ...     return [Cut(labels, labels, np.array([1 - labels.mean(), labels.mean()]))]
    >>> found = choose_balance(cut, lambda labels: -abs(labels.sum() - 3), 2, "auto")
    >>> found.cut.labels.tolist(), round(found.imbalance, 2)
    ([0, 0, 0, 0, 0, 0, 0, 1, 1, 1], 0.4)
    """
    if balance != "auto" or n_parts == 1:
        balance = 0.0 if balance == "auto" else balance
        return _scored(cut(float(balance), None)[0], score, n_parts)

    def try_all(imbalances: Sequence[float], goals: Sequence[NDArray[np.float64] | None]) -> BalancedCut:
        cuts = [found for shares in goals for b in imbalances for found in cut(b, shares)]
        return _best([_scored(found, score, n_parts) for found in cuts])

    falling = [ratio ** np.arange(n_parts) for ratio in FALLING]
    even = try_all([b for b in FIRST if b <= max(n_parts - 1, 0.5)], [None])
    best = _best([even, try_all(AGAIN, [goal / goal.sum() for goal in falling])])
    for _ in range(MAX_ROUNDS):
        after = try_all(AGAIN, [best.cut.shares])
        if after.score <= best.score + 1e-9:
            break
        best = after
    return best


def _scored(cut: Cut, score: Callable[[NDArray[np.int64]], float], n_parts: int) -> BalancedCut:
    return BalancedCut(cut, score(cut.labels), float(cut.shares.max() * n_parts - 1))


def _best(cuts: list[BalancedCut]) -> BalancedCut:
    return max(cuts, key=lambda found: found.score)  # the first of equal ones: the most even


def mean_nmi(
    labels: NDArray[np.int64],
    codes: NDArray[Any],
    n_levels: NDArray[Any],
    weights: NDArray[np.float64],
    member_weights: NDArray[np.float64],
) -> float:
    """Mean normalised mutual information (by the geometric mean of the entropies) of labels with the members.

    Each member is compared on the rows that it saw.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> mean_nmi(codes[:, 0], codes, np.array([2, 2]), np.ones(4), np.ones(2))
    0.5
    """
    counts, offsets = label_histograms(labels, codes, n_levels, weights=weights)
    total = 0.0
    for m, power in enumerate(member_weights):
        table = counts[:, offsets[m] : offsets[m + 1]]
        total += power * normalized_mutual_information(table, "geometric")
    return float(total / member_weights.sum())
