"""Uncertain objects, found by a rule that depends on what the confidence of the model means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.labels import contingency
from partita.posterior import vote
from partita.posterior.agreement import draws_to_sum, sampled_labels
from partita.summaries.pairs import PairMap
from partita.trace import select_draws

# co-clustering with another cluster, relative to its own, from which an object is uncertain
RIVAL_RATIO = 0.5


# probability of another number of clusters from which the rows that it would divide are uncertain
UNDECIDED = 0.25


class Uncertainty(NamedTuple):
    """The objects that were examined, and which of them are uncertain."""

    objects: NDArray[np.int64]
    uncertain: NDArray[np.bool_]
    rule: str  # "draws", "probability", "rival", or "confidence" if its meaning is not known
    n_objects: int

    @property
    def complete(self) -> bool:
        """Whether every object was examined."""
        return len(self.objects) == self.n_objects


def rival_ratios(pairs: PairMap) -> NDArray[np.float64]:
    """Mean co-clustering with the nearest other cluster, divided by that with the other objects of the own cluster.

    The ratio is 0 if there is no other cluster, and NaN for an object that is alone in its cluster.

    Examples
    --------
    >>> together = np.array([[1.0, 0.9, 0.3], [0.9, 1.0, 0.6], [0.3, 0.6, 1.0]])
    >>> rival_ratios(PairMap(np.arange(3), np.array([0, 0, 1]), together, 3, "votes")).round(2)
    array([0.33, 0.67,  nan])
    """
    z = pairs.labels
    clusters, code = np.unique(z, return_inverse=True)
    S = np.nan_to_num(pairs.evidence)
    np.fill_diagonal(S, 0.0)
    member = np.eye(len(clusters))[code]
    others = member.sum(axis=0) - member  # objects of each cluster, without the object itself
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = S @ member / others
        own = mean[np.arange(len(z)), code]
        mean[np.arange(len(z)), code] = -np.inf
        return np.maximum(mean.max(axis=1), 0.0) / own if len(clusters) > 1 else np.zeros(len(z))


def find_uncertain(model: Any, pairs: PairMap | None, threshold: float) -> Uncertainty | None:
    """Find the uncertain objects of a fit.

    Where confidence is a probability, objects below the threshold are uncertain, and so are those that another probable
    number of clusters would divide from their cluster (:func:`find_split`). Where it is the agreement of the
    members of an ensemble, its size alone says little: members with many clusters separate objects that belong
    together. An object of a consensus is therefore uncertain if its co-clustering with another cluster is at least
    half of that with its own.

    Returns
    -------
    Uncertainty or None
        None if the model has no confidence, or if co-clustering is needed and not known. A fit that ended before its
        first draw has one state, which agrees with itself: it has no confidence either.
    """
    if "provisional" in getattr(model, "fit_report_", ()):
        return None
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
        low |= find_split(model)
        return Uncertainty(np.arange(len(labels)), low, rule, len(labels))
    if pairs is None:
        return None
    with np.errstate(invalid="ignore"):
        return Uncertainty(pairs.objects, rival_ratios(pairs) >= RIVAL_RATIO, "rival", len(labels))


def find_split(model: Any) -> NDArray[np.bool_]:
    """Rows that another probable number of clusters would divide from their cluster.

    For each number of clusters with a probability of at least `UNDECIDED` beside that of ``labels_``, the partition of
    the draws with this number is compared with ``labels_``: the rows outside of the largest part of their cluster are
    those that this number would divide. The mean co-clustering of such rows can still be high.
    """
    labels = np.asarray(model.labels_)
    out = np.zeros(len(labels), bool)
    trace, object_rows = getattr(model, "trace_", None), getattr(model, "object_rows_", None)
    if trace is None or object_rows is None:
        return out
    K = len(np.unique(labels[labels >= 0]))
    own = labels[object_rows]
    for other, probability in trace.n_clusters_posterior.items():
        if other <= K or probability < UNDECIDED:
            continue
        draws = select_draws(trace, np.flatnonzero(trace.n_clusters == other))
        divided = vote(sampled_labels(select_draws(draws, draws_to_sum(draws)).labels)).labels
        parts = contingency(np.maximum(own, 0), divided, sparse=False)
        out[object_rows[divided != parts.argmax(axis=1)[np.maximum(own, 0)]]] = True
    return out & (labels >= 0)


def _is_agreement(model: Any) -> bool:
    """Whether ``confidence_`` is the agreement of members rather than a probability of the label."""
    inner = getattr(model, "consensus_", model)
    if not hasattr(inner, "member_weights_") or hasattr(inner, "trace_"):
        return False
    return not hasattr(inner, "weights_")  # mixtures of labels have shares, and probabilities of labels
