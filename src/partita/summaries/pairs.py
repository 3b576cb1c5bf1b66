"""Co-clustering: how often two objects are in the same cluster, for all objects or an even sample of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.labels import Coassociation
from partita.table import read_table

MAX_MEMBERSHIPS = 20_000_000  # rows x clusters that are asked of a model
MAX_COMPARISONS = 30_000_000  # pairs x members
MAX_LABELS = 50_000_000  # objects x members that are read again
MIN_OBJECTS = 200  # the number of objects is not reduced below this

Pairs = Callable[[NDArray[np.int64]], NDArray[np.float64]]


class PairMap(NamedTuple):
    """Co-clustering of some objects, ordered by cluster and then by decreasing confidence."""

    objects: NDArray[np.int64]  # row numbers
    labels: NDArray[np.int64]  # their clusters
    values: NDArray[np.float64]  # [object, object]; NaN for pairs of which nothing is known
    n_objects: int  # number of objects of the fit
    source: str  # "draws", "votes", "consensus" or "model"
    # of a consensus: shares of members, which do not depend on the clusters
    votes: NDArray[np.float64] | None = None

    @property
    def evidence(self) -> NDArray[np.float64]:
        """What is compared between an object's own and other clusters."""
        return self.values if self.votes is None else self.votes

    def take(self, size: int) -> PairMap:
        """At most `size` of the objects, evenly spaced."""
        return self._select(spread(len(self.objects), size))

    def _select(self, at: NDArray[np.int64]) -> PairMap:
        square = np.ix_(at, at)
        votes = None if self.votes is None else self.votes[square]
        return self._replace(
            objects=self.objects[at], labels=self.labels[at], values=self.values[square], votes=votes
        )

    def sorted_by(self, labels: NDArray[np.int64], confidence: NDArray[np.float64]) -> PairMap:
        """The same objects in the clusters of other labels, which are those of all objects of the fit."""
        own = labels[self.objects]
        return self._replace(labels=own)._select(order_objects(own, confidence[self.objects]))


def spread(n: int, size: int) -> NDArray[np.int64]:
    """At most `size` of the numbers 0 to n - 1, evenly spaced, including the first and the last.

    Examples
    --------
    >>> spread(9, 3)
    array([0, 4, 8])
    >>> spread(2, 3)
    array([0, 1])
    """
    if n <= size:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, size).astype(np.int64))


def order_objects(labels: np.ndarray, confidence: np.ndarray | None = None) -> NDArray[np.int64]:
    """Objects ordered by cluster (outliers, -1, last) and then by decreasing confidence.

    Examples
    --------
    >>> order_objects(np.array([1, 0, -1, 0]), np.array([1.0, 0.5, 1.0, 0.9]))
    array([3, 1, 0, 2])
    """
    labels = np.asarray(labels, dtype=np.int64)
    key = np.zeros(len(labels)) if confidence is None else -np.nan_to_num(np.asarray(confidence, float))
    cluster = np.where(labels < 0, np.iinfo(np.int64).max, labels)
    return np.lexsort((key, cluster))


def pair_map(
    model: Any, X: Any = None, *, size: int = 1000, memberships: NDArray[np.float64] | None = None
) -> PairMap | None:
    """Co-clustering of the objects of a fit.

    Parameters
    ----------
    model : fitted estimator
        With draws (``trace_``), a method ``coclustering``, a ``label_matrix_``, memberships, or a consensus whose label
        matrix is given.
    X : label matrix of a consensus, or table of a mixture, default=None
        What was fitted.
    size : int, default=1000
        Maximum number of objects; it is smaller for ensembles of many members. They are evenly spaced in the order
        of the clusters.
    memberships : ndarray of shape (n_objects, n_clusters), default=None
        Probabilities of the clusters, if they were computed before (:func:`memberships_of`).

    Returns
    -------
    PairMap or None

    Examples
    --------
    >>> from partita import Consensus
    >>> model = Consensus(random_state=0).fit([[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]])
    >>> found = pair_map(model)
    >>> found.objects, found.values.round(1).tolist()[0]
    (array([1, 3, 0, 2]), [1.0, 1.0, 0.0, 0.0])
    """
    labels = np.asarray(model.labels_)
    found = _source(model, X, memberships)
    if found is None:
        return None
    source, cost, pairs = found
    size = int(np.clip(np.sqrt(MAX_COMPARISONS / max(cost, 1)), min(size, MIN_OBJECTS), size))
    order = order_objects(labels, getattr(model, "confidence_", None))
    objects = order[spread(len(order), size)]
    values = pairs(objects)
    votes = _votes_of_consensus(model, objects) if source == "consensus" else None
    return PairMap(objects, labels[objects], values, len(labels), source, votes)


def _source(model: Any, X: Any, memberships: Any = None) -> tuple[str, int, Pairs] | None:
    """Where the numbers come from, the cost per pair, and the function that computes them for some objects."""
    if hasattr(model, "trace_") and np.ndim(getattr(model.trace_, "labels", ())) == 2:
        return _of_draws(model)
    if hasattr(model, "consensus_"):
        inner = _source(model.consensus_, None)
        return inner or _of_labels(np.asarray(model.label_matrix_))
    if hasattr(model, "coclustering"):
        cost = int(getattr(model, "n_features_in_", 1))
        return "consensus", cost, lambda objects: _of_consensus(model, objects)
    if hasattr(model, "member_weights_"):
        codes = label_codes(model, X)
        if codes is not None:
            return _of_labels(codes, np.asarray(model.member_weights_, float))
    R = memberships_of(model, X) if memberships is None else memberships
    return None if R is None else _of_memberships(R)


def _of_consensus(model: Any, objects: NDArray[np.int64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = model.coclustering(objects[:, None], objects[None, :])
    np.fill_diagonal(
        values, 1.0
    )  # the operator has there the probability of two objects with the same labels
    return values


def _votes_of_consensus(model: Any, objects: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Shares of members; None for a model of another package that only has pair probabilities."""
    from partita.consensus import Consensus

    inner = getattr(model, "consensus_", model)
    if not isinstance(inner, Consensus):
        return None
    return inner.coclustering().votes(objects[:, None], objects[None, :])


def _of_draws(model: Any) -> tuple[str, int, Pairs] | None:
    draws = np.asarray(model.trace_.labels)
    rows = getattr(model, "object_rows_", None)  # of the objects; None if each row is one object
    if rows is None and draws.shape[1] != len(model.labels_):
        return None

    def pairs(objects: NDArray[np.int64]) -> NDArray[np.float64]:
        columns = objects
        if rows is not None:  # a row is represented by its first object
            first = np.full(len(model.labels_), -1)
            first[rows[::-1]] = np.arange(len(rows))[::-1]
            columns = first[objects]
        labels = draws[:, np.maximum(columns, 0)].T.astype(np.int64)
        values = _share_of_agreement(labels, np.ones(labels.shape[1]))
        values[columns < 0] = np.nan
        values[:, columns < 0] = np.nan
        return values

    return "draws", len(draws), pairs


def _of_labels(codes: np.ndarray, weights: np.ndarray | None = None) -> tuple[str, int, Pairs]:
    w = np.ones(codes.shape[1]) if weights is None or weights.sum() <= 0 else weights
    return "votes", codes.shape[1], lambda objects: _share_of_agreement(codes[objects].astype(np.int64), w)


def _share_of_agreement(labels: np.ndarray, weights: np.ndarray) -> NDArray[np.float64]:
    at = np.arange(len(labels))
    return Coassociation(labels, weights).pairs(at[:, None], at[None, :])


def _of_memberships(R: np.ndarray) -> tuple[str, int, Pairs]:
    def pairs(objects: NDArray[np.int64]) -> NDArray[np.float64]:
        values = np.clip(R[objects] @ R[objects].T, 0.0, 1.0)
        np.fill_diagonal(values, 1.0)
        return values

    return "model", R.shape[1], pairs


def memberships_of(model: Any, X: Any = None) -> NDArray[np.float64] | None:
    """Probability of each cluster for each object; None if the model does not have it, or if it is too large.

    It is ``memberships_``, ``votes_``, or what ``predict_proba`` computes for X.
    """
    for name in ("memberships_", "votes_"):
        R = getattr(model, name, None)
        if R is not None and np.shape(R)[:1] == np.shape(model.labels_):
            return np.asarray(R, float)
    n_cells = len(model.labels_) * max(int(getattr(model, "n_clusters_", 1)), 1)
    if X is None or not hasattr(model, "predict_proba") or n_cells > MAX_MEMBERSHIPS:
        return None
    return np.asarray(model.predict_proba(X), float)


def label_codes(model: Any, X: Any = None) -> NDArray[np.int64] | None:
    """The label matrix of a consensus as codes (objects x members), -1 for missing; None if unknown or too large.

    Examples
    --------
    >>> from partita import EvidenceAccumulation
    >>> Y = [["a", 1], ["a", 1], ["b", None], ["b", 2]]
    >>> label_codes(EvidenceAccumulation().fit(Y), Y).tolist()
    [[0, 0], [0, 0], [1, -1], [1, 1]]
    """
    kept = getattr(model, "label_matrix_", None)
    if kept is not None:
        return np.asarray(kept)
    soft = getattr(model, "_soft_names", None) is not None  # soft members have no codes
    if X is None or soft or not hasattr(model, "schema_"):
        return None
    if len(model.labels_) * model.n_features_in_ > MAX_LABELS:
        return None
    table = read_table(X, schema=model.schema_)
    if table.n_rows != len(model.labels_) or len(table.columns) != model.n_features_in_:
        return None
    return np.column_stack([np.asarray(column.values, np.int64) for column in table.columns])
