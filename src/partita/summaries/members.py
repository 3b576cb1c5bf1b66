"""The members of an ensemble: names and weights, and, if their labels are known, how they compare."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage

from partita.ensembles import agreement_with, pairwise_agreement
from partita.summaries.pairs import label_codes, spread

MAX_OBJECTS = 20_000  # for the agreement of a member with the consensus
MAX_LABELS = 20_000_000  # objects x members
MAX_COMPARED_MEMBERS, MAX_COMPARED_OBJECTS = 100, 2000


class Members(NamedTuple):
    """One entry per member; the last five are None if the labels are not known."""

    names: list[str]
    weights: NDArray[np.float64]
    learned: bool  # whether the weights differ
    n_clusters: NDArray[np.int64] | None
    missing: NDArray[np.float64] | None  # share of objects without a label
    agreement: NDArray[np.float64] | None  # adjusted Rand index with the consensus
    compared: NDArray[np.int64] | None  # members that are compared with each other, similar ones adjacent
    similarity: NDArray[np.float64] | None  # [compared, compared] adjusted Rand index


def summarize_members(model: Any, X: Any = None) -> Members | None:
    """Members of a consensus; None for other models.

    Examples
    --------
    >>> from partita import Consensus
    >>> Y = [[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0]]
    >>> found = summarize_members(Consensus(random_state=0).fit(Y), Y)
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
    codes = label_codes(model, X) if len(model.labels_) * len(weights) <= MAX_LABELS else None
    learned = len(np.unique(weights[weights > 0].round(12))) > 1
    if codes is None or codes.shape[1] != len(weights):
        return Members(names, weights, learned, None, None, None, None, None)
    labels = np.asarray(model.labels_)
    some = spread(len(labels), MAX_OBJECTS)
    able = (codes[some] >= 0).any(axis=0)
    agreement = np.full(len(weights), np.nan)
    agreement[able] = agreement_with(labels[some], codes[some][:, able])
    return Members(
        names,
        weights,
        learned,
        np.array([len(np.unique(column[column >= 0])) for column in codes.T]),
        (codes < 0).mean(axis=0),
        agreement,
        *_similarity(codes),
    )


def _similarity(codes: np.ndarray) -> tuple[NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Agreement of all pairs of members, in the leaf order of a tree so that similar members are adjacent."""
    some = codes[spread(len(codes), MAX_COMPARED_OBJECTS)]
    able = np.flatnonzero((some >= 0).any(axis=0))
    able = able[spread(len(able), MAX_COMPARED_MEMBERS)]
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
