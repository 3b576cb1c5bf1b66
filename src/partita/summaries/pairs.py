"""How often two objects belong together, for all objects or an even sample of them, in the order of the clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.labels import Coassociation
from partita.summaries.labels import label_codes

__all__ = ["PairMap", "order_objects", "pair_map", "spread"]

MOST_CELLS = 20_000_000  # rows x clusters of memberships that are asked of a model
MOST_COMPARISONS = 30_000_000  # pairs x members

Pairs = Callable[[NDArray[np.int64]], NDArray[np.float64]]


class PairMap(NamedTuple):
    """Co-clustering of some objects, cluster by cluster, the surest of each cluster first."""

    objects: NDArray[np.int64]  # which objects
    labels: NDArray[np.int64]  # their clusters
    values: NDArray[np.float64]  # [object, object]; NaN where nothing is known of a pair
    n_objects: int  # of the fit
    source: str  # "draws", "votes", "consensus" or "model"

    def take(self, size: int) -> PairMap:
        """At most so many of the objects, evenly spaced."""
        at = spread(len(self.objects), size)
        return self._replace(
            objects=self.objects[at], labels=self.labels[at], values=self.values[np.ix_(at, at)]
        )


def spread(n: int, size: int) -> NDArray[np.int64]:
    """At most `size` of n places, evenly spaced, the first and the last among them.

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
    """Objects by cluster (outliers, -1, last), within it the surest first.

    Examples
    --------
    >>> order_objects(np.array([1, 0, -1, 0]), np.array([1.0, 0.5, 1.0, 0.9]))
    array([3, 1, 0, 2])
    """
    labels = np.asarray(labels, dtype=np.int64)
    doubt = np.zeros(len(labels)) if confidence is None else -np.nan_to_num(np.asarray(confidence, float))
    place = np.where(labels < 0, np.iinfo(np.int64).max, labels)
    return np.lexsort((doubt, place))


def pair_map(model: Any, X: Any = None, *, size: int = 1000) -> PairMap | None:
    """Co-clustering of the objects of a fit, from whatever the model has of it.

    Parameters
    ----------
    model : fitted estimator
        With draws (``trace_``), a method ``coclustering``, a ``label_matrix_``, memberships, or a consensus whose label
        matrix is given.
    X : label matrix of a consensus, or table of a mixture, optional
    size : int, default 1000
        Most objects; ensembles of many members have fewer. They are evenly spaced in the order of the clusters.

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
    found = _source(model, X)
    if found is None:
        return None
    source, width, pairs = found
    size = int(np.clip(np.sqrt(MOST_COMPARISONS / max(width, 1)), min(size, 200), size))
    order = order_objects(labels, getattr(model, "confidence_", None))
    objects = order[spread(len(order), size)]
    values = pairs(objects)
    return PairMap(objects, labels[objects], values, len(labels), source)


def _source(model: Any, X: Any) -> tuple[str, int, Pairs] | None:
    """Where the numbers come from, how much work a pair is, and the function that gives those of some objects."""
    if hasattr(model, "trace_") and np.ndim(getattr(model.trace_, "labels", ())) == 2:
        return _of_draws(model)
    if hasattr(model, "consensus_"):
        inner = _source(model.consensus_, None)
        return inner or _of_labels(np.asarray(model.label_matrix_))
    if hasattr(model, "coclustering"):
        width = int(getattr(model, "n_features_in_", 1))
        return "consensus", width, lambda objects: model.coclustering(objects[:, None], objects[None, :])
    if hasattr(model, "member_weights_"):
        codes = label_codes(model, X)
        if codes is not None:
            return _of_labels(codes, np.asarray(model.member_weights_, float))
    return _of_memberships(model, X)


def _of_draws(model: Any) -> tuple[str, int, Pairs] | None:
    draws = np.asarray(model.trace_.labels)
    seats = getattr(model, "object_rows_", None)
    if seats is None and draws.shape[1] != len(model.labels_):
        return None

    def pairs(objects: NDArray[np.int64]) -> NDArray[np.float64]:
        columns = objects
        if seats is not None:  # the first of the objects that a row stands for
            first = np.full(len(model.labels_), -1)
            first[seats[::-1]] = np.arange(len(seats))[::-1]
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


def _of_memberships(model: Any, X: Any) -> tuple[str, int, Pairs] | None:
    for name in ("memberships_", "votes_"):
        R = getattr(model, name, None)
        if R is not None and np.shape(R)[:1] == np.shape(model.labels_):
            return _of_matrix(np.asarray(R, float))
    n_cells = len(model.labels_) * max(int(getattr(model, "n_clusters_", 1)), 1)
    if X is None or not hasattr(model, "predict_proba") or n_cells > MOST_CELLS:
        return None
    return _of_matrix(np.asarray(model.predict_proba(X), float))


def _of_matrix(R: np.ndarray) -> tuple[str, int, Pairs]:
    def pairs(objects: NDArray[np.int64]) -> NDArray[np.float64]:
        values = np.clip(R[objects] @ R[objects].T, 0.0, 1.0)
        np.fill_diagonal(values, 1.0)
        return values

    return "model", R.shape[1], pairs
