"""How many clusters: P(K) with what it is a probability of, the prior beside it, and the scores that were compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.partitions import n_clusters_prior

__all__ = ["Counts", "cluster_counts"]

LEAST_PRIOR = 0.005  # prior mass that is worth a place
MAX_OBJECTS = 20_000  # the prior P(K) of more takes long


class Counts(NamedTuple):
    """Entry j of `posterior` and `prior` is for `n_clusters[j]`; `prior` is NaN where there is none."""

    n_clusters: NDArray[np.int64]
    posterior: NDArray[np.float64]
    prior: NDArray[np.float64]
    meaning: str  # "draws", "members" (drawn anew) or "model"
    scores: dict[int, float]  # of each number that was looked at
    score_name: str


def cluster_counts(model: Any) -> Counts | None:
    """P(K) and the score curve of a model; None where it has neither.

    Examples
    --------
    >>> from partita import Consensus
    >>> Y = [[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0]]
    >>> found = cluster_counts(Consensus(random_state=0).fit(Y))
    >>> found.meaning, float(found.posterior.sum().round(6)), found.score_name
    ('members', 1.0, 'mean margin')
    """
    model = getattr(model, "consensus_", model)
    after = getattr(model, "n_clusters_posterior_", None)
    after = after if isinstance(after, dict) else {}
    curve = {int(K): float(score) for K, score in (getattr(model, "n_clusters_scores_", None) or {}).items()}
    if not after and len(curve) < 2:
        return None
    drawn = hasattr(model, "trace_")
    values = np.array(sorted(int(K) for K in after), dtype=np.int64)
    before = _prior(model) if drawn else None
    if before is not None:
        values = np.union1d(values, np.flatnonzero(before >= LEAST_PRIOR))
        values = values[values <= max(values.min(initial=1), 2 * max(after) + 10)]
    posterior = np.array([after.get(int(K), 0.0) for K in values])
    prior = np.full(len(values), np.nan)
    if before is not None:
        prior = np.array([before[K] if len(before) > K else 0.0 for K in values])
    meaning = "draws" if drawn else "members" if hasattr(model, "member_weights_") else "model"
    return Counts(
        values,
        posterior,
        prior,
        meaning,
        curve,
        getattr(model, "_n_clusters_score", "score") if curve else "",
    )


def _prior(model: Any) -> NDArray[np.float64] | None:
    n_objects = np.shape(model.trace_.labels)[1]
    if not hasattr(model, "prior_") or n_objects > MAX_OBJECTS:
        return None
    return np.asarray(n_clusters_prior(model.prior_, n_objects), dtype=float)
