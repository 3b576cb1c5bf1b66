"""Which objects are uncertain, by a rule that fits what the model's confidence means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.summaries.pairs import PairMap

__all__ = ["Doubt", "doubts", "rivalry"]

RIVAL = 0.5  # together with another cluster at least this often, for each time with its own


class Doubt(NamedTuple):
    """Objects that were looked at, and which of them are uncertain."""

    objects: NDArray[np.int64]
    uncertain: NDArray[np.bool_]
    rule: str  # "draws", "probability", "rival", or "confidence" where its meaning is not known
    n_objects: int

    @property
    def complete(self) -> bool:
        """Whether every object was looked at."""
        return len(self.objects) == self.n_objects


def rivalry(pairs: PairMap) -> NDArray[np.float64]:
    """Mean co-clustering with the best other cluster over that with the other objects of one's own.

    0 where there is no other cluster; NaN for an object that is alone in its cluster.

    Examples
    --------
    >>> together = np.array([[1.0, 0.9, 0.3], [0.9, 1.0, 0.6], [0.3, 0.6, 1.0]])
    >>> rivalry(PairMap(np.arange(3), np.array([0, 0, 1]), together, 3, "votes")).round(2)
    array([0.33, 0.67,  nan])
    """
    z = pairs.labels
    clusters, code = np.unique(z, return_inverse=True)
    S = np.nan_to_num(pairs.values)
    np.fill_diagonal(S, 0.0)
    member = np.eye(len(clusters))[code]
    others = member.sum(axis=0) - member  # of each cluster, without the object itself
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = S @ member / others
        own = mean[np.arange(len(z)), code]
        mean[np.arange(len(z)), code] = -np.inf
        return np.maximum(mean.max(axis=1), 0.0) / own if len(clusters) > 1 else np.zeros(len(z))


def doubts(model: Any, pairs: PairMap | None, threshold: float) -> Doubt | None:
    """Uncertain objects: a low probability where confidence is one, a strong rival cluster where it is agreement.

    Agreement of the members of an ensemble says nothing by its size: members with many clusters part objects that
    belong together. So an object of a consensus is uncertain if it is together with another cluster at least half as
    often as with its own; None where the pairs are not known.
    """
    labels = np.asarray(model.labels_)
    if hasattr(model, "trace_") or not _is_agreement(model):
        confidence = getattr(model, "confidence_", None)
        if confidence is None or np.isnan(np.asarray(confidence, float)).all():
            return None
        rule = (
            "probability" if hasattr(model, "weights_") or hasattr(model, "predict_proba") else "confidence"
        )
        rule = "draws" if hasattr(model, "trace_") else rule
        low = (np.asarray(confidence, float) < threshold) & (labels >= 0)
        return Doubt(np.arange(len(labels)), low, rule, len(labels))
    if pairs is None:
        return None
    with np.errstate(invalid="ignore"):
        return Doubt(pairs.objects, rivalry(pairs) >= RIVAL, "rival", len(labels))


def _is_agreement(model: Any) -> bool:
    """Whether ``confidence_`` is the agreement of members rather than a probability of the label."""
    inner = getattr(model, "consensus_", model)
    if not hasattr(inner, "member_weights_") or hasattr(inner, "trace_"):
        return False
    return not hasattr(inner, "weights_")  # mixtures of labels have shares, and probabilities of labels
