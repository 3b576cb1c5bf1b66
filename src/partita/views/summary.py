"""From draws of views to one answer: views of columns, labels of rows in each, and how sure all that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from partita.estimator.judging import PROVISIONAL
from partita.labels import ordered_by_size
from partita.posterior import point_estimate, rhat, vote
from partita.views.base import Draw
from partita.views.questions import dependence

__all__ = [
    "Summary",
    "ViewDiagnostics",
    "diagnose_views",
    "match_views",
    "one_partition",
    "owners",
    "summarise",
]

MOST_LABELS = 3_000_000  # labels of draws that the search for one partition of the rows looks at
FEWEST_DRAWS = 20
DISAGREE = 0.3  # a spread of dependence between chains beyond this is worth a warning
MIN_DRAWS = 8  # of each chain, for R-hat


class Summary(NamedTuple):
    """What the draws agree on."""

    membership: np.ndarray  # [column, view] bool: the point estimate
    feature_views: np.ndarray  # [column, view] probability
    view_labels: np.ndarray  # [row, view]
    n_clusters_posterior: list[dict[int, float]]  # of each view


class ViewDiagnostics(NamedTuple):
    """Whether the chains agree.

    ``dependence_spread`` is, for each pair of columns, the largest minus the smallest probability of dependence among
    the chains: 0 where all agree, 1 where two contradict each other.
    """

    dependence_spread: np.ndarray
    n_views_by_chain: dict[int, dict[int, float]]
    log_joint_by_chain: dict[int, float]
    rhat_log_joint: float
    rhat_n_views: float
    ok: bool
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def match_views(membership: np.ndarray, draw: Draw) -> np.ndarray:
    """For each view of the estimate the view of the draw that shares most columns with it.

    One to one as far as columns are shared; a view that comes away empty-handed takes the best one there is, though
    it is taken already, and -1 where no view of the draw has any of its columns.

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
    # of two that share as many, the one with fewer other columns
    foreign = draw.membership.sum(axis=0)[None, :] - shared
    rows, cols = linear_sum_assignment(-(shared - 1e-3 * foreign / max(len(membership), 1)))
    out = np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), -1)
    good = shared[rows, cols] > 0
    out[rows[good]] = cols[good]
    return out


def summarise(
    draws: Sequence[Draw],
    membership: np.ndarray,
    partition: str,
    rng: np.random.Generator,
) -> Summary:
    """Labels and probabilities for the views of an estimate of the membership [column, view].

    A view of a draw counts once for the probabilities, so those of a column sum to its number of views at most.
    """
    D, V = membership.shape
    matches = [match_views(membership, draw) for draw in draws]
    owner = [owners(membership, draw, match) for draw, match in zip(draws, matches, strict=True)]
    relevance, labels, counts = np.zeros((D, V)), [], []
    for v in range(V):
        found = [(draw, match[v]) for draw, match in zip(draws, matches, strict=True)]
        for t, (draw, w) in enumerate(found):
            if owner[t].get(int(w)) == v:
                relevance[:, v] += draw.membership[:, w] / len(draws)
        drawn = np.stack([draw.labels[:, w] for draw, w in found])
        labels.append(one_partition(drawn, partition, rng))
        numbers, times = np.unique(drawn.max(axis=1) + 1, return_counts=True)
        counts.append(
            {int(K): float(t / times.sum()) for K, t in zip(numbers.tolist(), times.tolist(), strict=True)}
        )
    return Summary(membership, relevance, np.column_stack(labels), counts)


def owners(membership: np.ndarray, draw: Draw, match: np.ndarray) -> dict[int, int]:
    """For each view of a draw that is matched, the view of the estimate that shares most columns with it."""
    shared = membership.astype(float).T @ draw.membership.astype(float)
    return {
        int(w): int(max(np.flatnonzero(match == w), key=lambda v: shared[v, w]))
        for w in np.unique(match[match >= 0])
    }


def one_partition(drawn: np.ndarray, partition: str, rng: np.random.Generator) -> np.ndarray:
    """One division of the rows from the draws of a view, its clusters in the order of their sizes."""
    most = max(FEWEST_DRAWS, MOST_LABELS // drawn.shape[1])
    if len(drawn) > most:
        drawn = drawn[np.linspace(0, len(drawn) - 1, most).round().astype(int)]
    if len(drawn) == 1 or (drawn == drawn[0]).all():
        z = drawn[0].astype(np.int64)
    elif partition == "votes":
        z = vote(drawn).labels
    else:
        z = point_estimate(drawn, partition, n_starts=2, random_state=rng).labels
    return ordered_by_size(z)


def diagnose_views(draws: Sequence[Draw], *, provisional: bool = False) -> ViewDiagnostics:
    """How far the chains agree on which columns depend on each other; ``provisional`` if no draw was kept."""
    chains = sorted({draw.chain for draw in draws})
    by_chain = {c: [draw for draw in draws if draw.chain == c] for c in chains}
    matrices = np.stack([dependence(some) for some in by_chain.values()])
    spread = matrices.max(axis=0) - matrices.min(axis=0)
    n_views = {c: [telling_views(draw) for draw in some] for c, some in by_chain.items()}
    joints = {c: [draw.log_joint for draw in some] for c, some in by_chain.items()}
    shortest = min(len(some) for some in by_chain.values())
    scale = [float("nan")] * 2
    if shortest >= MIN_DRAWS:
        scale = [rhat([values[c][:shortest] for c in chains]) for values in (joints, n_views)]
    pairs = np.argwhere(np.triu(spread, 1) > DISAGREE)
    ok = len(chains) > 1 and not len(pairs)
    if provisional:
        sentence = PROVISIONAL
    elif len(chains) < 2:
        sentence = (
            "One chain alone cannot be compared with others: raise n_chains to see whether chains agree."
        )
    elif ok:
        sentence = "The chains agree on which columns depend on each other."
    else:
        worst = float(spread.max())
        sentence = (
            f"The chains disagree on {len(pairs)} pairs of columns (by up to {worst:.2f} in the probability that they "
            "depend): read dependence_ with care, and raise burn_in or n_chains."
        )
    return ViewDiagnostics(
        spread,
        {c: _shares(values) for c, values in n_views.items()},
        {c: float(np.mean(values)) for c, values in joints.items()},
        scale[0],
        scale[1],
        ok,
        sentence,
    )


def telling_views(draw: Draw) -> int:
    """How many views of a draw have at least two clusters."""
    return int(np.count_nonzero(draw.labels.max(axis=0, initial=0) > 0))


def _shares(values: Sequence[int]) -> dict[int, float]:
    numbers, times = np.unique(values, return_counts=True)
    return {int(n): float(t / times.sum()) for n, t in zip(numbers.tolist(), times.tolist(), strict=True)}
