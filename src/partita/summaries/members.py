"""The members of an ensemble: names, weights, and, where their labels are known, what they look like."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage

from partita.ensembles import pairwise_agreement
from partita.metrics import adjusted_rand
from partita.summaries.labels import label_codes
from partita.summaries.pairs import spread

__all__ = ["Members", "members_of"]

MOST_OBJECTS = 20_000  # for the agreement of a member with the answer
MOST_CELLS = 20_000_000
COMPARED_MEMBERS, COMPARED_OBJECTS = 100, 2000


class Members(NamedTuple):
    """One entry a member; the last five are None where the labels are not known."""

    names: list[str]
    weights: NDArray[np.float64]
    learned: bool  # whether the weights are more than what was given
    n_clusters: NDArray[np.int64] | None
    missing: NDArray[np.float64] | None  # share of the objects that it did not see
    agreement: NDArray[np.float64] | None  # adjusted Rand index with the answer
    compared: NDArray[np.int64] | None  # members that are compared with each other, those alike side by side
    similarity: NDArray[np.float64] | None  # [compared, compared] adjusted Rand index


def members_of(model: Any, X: Any = None) -> Members | None:
    """Members of a consensus; None for other models.

    Examples
    --------
    >>> from partita import Consensus
    >>> Y = [[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0]]
    >>> found = members_of(Consensus(random_state=0).fit(Y), Y)
    >>> found.names, found.n_clusters.tolist(), found.agreement.round(2).tolist()
    (['x0', 'x1', 'x2'], [2, 2, 2], [1.0, 1.0, 0.0])
    """
    inner = getattr(model, "consensus_", model)
    if not hasattr(inner, "member_weights_"):
        return None
    weights = np.asarray(inner.member_weights_, float)
    names = _names(inner, len(weights))
    if hasattr(model, "members_"):
        names = [f"member {m}" for m in range(len(weights))]
    codes = label_codes(model, X) if len(model.labels_) * len(weights) <= MOST_CELLS else None
    learned = len(np.unique(weights[weights > 0].round(12))) > 1
    if codes is None or codes.shape[1] != len(weights):
        return Members(names, weights, learned, None, None, None, None, None)
    labels = np.asarray(model.labels_)
    some = spread(len(labels), MOST_OBJECTS)
    agreement = [_agreement(labels[some], column[some]) for column in codes.T]
    return Members(
        names,
        weights,
        learned,
        np.array([len(np.unique(column[column >= 0])) for column in codes.T]),
        (codes < 0).mean(axis=0),
        np.array(agreement),
        *_similarity(codes),
    )


def _similarity(codes: np.ndarray) -> tuple[NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Members against members, put in the order of a tree so that repeats lie side by side."""
    some = codes[spread(len(codes), COMPARED_OBJECTS)]
    able = np.flatnonzero((some >= 0).any(axis=0))
    able = able[spread(len(able), COMPARED_MEMBERS)]
    if len(able) < 3:
        return None, None
    found = np.nan_to_num(pairwise_agreement(some[:, able]))
    apart = np.clip(1.0 - found, 0.0, None)
    order = leaves_list(linkage(apart[np.triu_indices(len(able), 1)], "average"))
    return able[order], found[np.ix_(order, order)]


def _names(model: Any, M: int) -> list[str]:
    names = getattr(model, "_soft_names", None) or getattr(getattr(model, "schema_", None), "names", None)
    return (
        [str(name) for name in names]
        if names is not None and len(names) == M
        else [f"member {m}" for m in range(M)]
    )


def _agreement(labels: np.ndarray, member: np.ndarray) -> float:
    seen = (member >= 0) & (labels >= 0)
    return float(adjusted_rand(labels[seen], member[seen])) if seen.sum() > 1 else float("nan")
