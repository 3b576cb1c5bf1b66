"""The number of clusters: its posterior and prior probabilities, and the scores of the numbers that were compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.posterior import credible_set
from partita.wording import percent

MIN_PRIOR = 0.005  # smaller prior probabilities are not shown
MAX_OBJECTS = 20_000  # the prior P(K) of more objects takes long to compute
MAX_NAMED = 4  # numbers of clusters that a sentence lists


class GroupCounts(NamedTuple):
    """Entry j of `posterior` and `prior` belongs to `n_clusters[j]`; `prior` is NaN if there is none."""

    n_clusters: NDArray[np.int64]
    posterior: NDArray[np.float64]
    prior: NDArray[np.float64]
    meaning: str  # of the posterior: "draws", "members" (resampled), "tree" (its partitions only) or "model"
    scores: dict[int, float]  # of each number of clusters that was compared


def cluster_counts(model: Any) -> GroupCounts | None:
    """P(K) and the scores of the numbers of clusters of a model; None if it has neither.

    Examples
    --------
    >>> from partita import Consensus
    >>> Y = [[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0]]
    >>> found = cluster_counts(Consensus(random_state=0).fit(Y))
    >>> found.meaning, float(found.posterior.sum().round(6))
    ('members', 1.0)
    """
    model = getattr(model, "consensus_", model)
    after = getattr(model, "n_clusters_posterior_", None)
    after = after if isinstance(after, dict) else {}
    curve = {int(K): float(score) for K, score in (getattr(model, "n_clusters_scores_", None) or {}).items()}
    if not after and len(curve) < 2:
        return None
    drawn = hasattr(model, "trace_")
    values = np.array(sorted(int(K) for K in after), dtype=np.int64)
    before = prior_probabilities(model) if drawn else None
    if before is not None:
        values = np.union1d(values, np.flatnonzero(before >= MIN_PRIOR))
        values = values[values <= max(values.min(initial=1), 2 * max(after) + 10)]
    posterior = np.array([after.get(int(K), 0.0) for K in values])
    prior = np.full(len(values), np.nan)
    if before is not None:
        prior = np.array([before[K] if len(before) > K else 0.0 for K in values])
    meaning = "draws" if drawn else "members" if hasattr(model, "member_weights_") else "model"
    meaning = "tree" if is_tree(model) else meaning
    return GroupCounts(values, posterior, prior, meaning, curve)


def is_tree(model: Any) -> bool:
    """Whether the probabilities of a model are sums over the partitions of one tree."""
    return hasattr(model, "log_odds_")


def number_in_words(model: Any, certain: str | None = None) -> str:
    """The most probable numbers of groups of a model, and what they are conditional on if that is one tree.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> tree = SimpleNamespace(n_clusters_posterior_={2: 0.1, 3: 0.9}, log_odds_=np.zeros(4))
    >>> number_in_words(tree)
    'most likely 3 (90%) or 2 (10%) among the partitions of this tree'
    """
    if not is_tree(model):
        return counts_in_words(model.n_clusters_posterior_, certain)
    text = counts_in_words(model.n_clusters_posterior_, "the only likely number")
    return f"{text} among the partitions of this tree"


def prior_probabilities(model: Any) -> NDArray[np.float64] | None:
    """Entry K is the prior probability of K clusters; None if the model has none, or too many objects."""
    if np.shape(model.trace_.labels)[1] > MAX_OBJECTS:
        return None
    prior = getattr(model, "n_clusters_prior_", None)
    if prior is None:
        return None
    out = np.zeros(max(prior) + 1)
    out[list(prior)] = list(prior.values())
    return out


def counts_in_words(probabilities: dict[int, float], certain: str | None = None) -> str:
    """The most probable numbers of groups, enough of them for 95% together.

    Parameters
    ----------
    probabilities : dict
        Probability of each number of groups.
    certain : str, default=None
        What to say if there is only one number; None means "3 in every draw".

    Examples
    --------
    >>> counts_in_words({4: 0.01, 5: 0.82, 6: 0.15, 7: 0.02})
    'most likely 5 (82%) or 6 (15%)'
    >>> counts_in_words({3: 1.0})
    '3 in every draw'
    """
    if len(probabilities) == 1:
        return certain or f"{next(iter(probabilities))} in every draw"
    ranked = credible_set(probabilities, 0.95).n_clusters
    named = [f"{K} ({percent(probabilities[K])})" for K in ranked[:MAX_NAMED]]
    text = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"
    return f"most likely {text}" + (", or others" if len(ranked) > MAX_NAMED else "")
