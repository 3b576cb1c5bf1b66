"""Tables with several planted views, and the labels that an oracle gives who knows all parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.partitions import IndianBuffet, simulate
from partita.randomness import RandomState, as_generator

KINDS = {1: "disjoint", 2: "some columns shared", 3: "memberships from the buffet"}
BUFFET = IndianBuffet(2.0, 1.0)  # of the third kind
REDRAWS = 100_000


class PlantedViews(NamedTuple):
    """A table with several clusterings, and all that is known about it.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
        The data.
    view_labels : ndarray of int, shape (n_samples, n_views)
        The component of each row in each view.
    feature_views : ndarray of bool, shape (n_features, n_views)
        Which columns belong to which views.
    oracle : ndarray of int, shape (n_samples, n_views)
        The most probable component in each view under the true parameters, the true labels of the other views being
        known too: no method can be expected to agree better with `view_labels`.
    parameters : dict of str to ndarray
        "means" and "deviations", both (n_views, n_clusters, n_features).
    """

    X: NDArray[np.float64]
    view_labels: NDArray[np.int64]
    feature_views: NDArray[np.bool_]
    oracle: NDArray[np.int64]
    parameters: dict[str, NDArray[np.float64]]


def make_planted_views(
    kind: int = 1,
    n_samples: int = 1000,
    n_features: int = 100,
    n_views: int = 10,
    n_clusters: int = 3,
    separation: float = 2.0,
    *,
    n_shared: int = 10,
    random_state: RandomState = None,
) -> PlantedViews:
    """Draw a table with several independent clusterings, each of them seen in its own columns.

    Cluster means are normal with standard deviation `separation`, standard deviations uniform from 0.7 to 1.3, both
    for each view, cluster and column. A column of several views is a normalised product of their normal densities; a
    column of no view is standard normal.

    Parameters
    ----------
    kind : {1, 2, 3}, default=1
        1: every column in one view, as many in each. 2: `n_shared` columns belong to two neighbouring views, the
        others to one. 3: memberships from the Indian buffet with alpha 2 and beta 1, redrawn until there are
        `n_views`.
    n_samples, n_features, n_views, n_clusters : int
        Sizes.
    separation : float, default=2.0
        Standard deviation of the means.
    n_shared : int, default=10
        Columns in two views (kind 2).
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

    Returns
    -------
    PlantedViews

    References
    ----------
    Niu, Dy and Ghahramani (2012), section 5.1 (its separation is not printed).

    Examples
    --------
    >>> from partita.datasets import make_planted_views
    >>> planted = make_planted_views(2, 200, 40, 4, random_state=0)
    >>> planted.X.shape, planted.view_labels.shape, int(planted.feature_views.sum())
    ((200, 40), (200, 4), 50)
    >>> bool((planted.oracle == planted.view_labels).mean() > 0.9)
    True
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: give 1, 2 or 3 ({', '.join(KINDS.values())})")
    if n_views > n_features:
        raise ValueError(f"{n_views} views need at least as many columns, not {n_features}")
    rng = as_generator(random_state)
    Y = _memberships(kind, n_features, n_views, n_shared, rng)
    Z = rng.integers(n_clusters, size=(n_samples, n_views))
    shape = (n_views, n_clusters, n_features)
    means, deviations = rng.normal(0.0, separation, shape), rng.uniform(0.7, 1.3, shape)
    X = np.empty((n_samples, n_features))
    for d in range(n_features):
        precision, weighted = _product(means, deviations, Z, np.flatnonzero(Y[d]), d)
        if not Y[d].any():
            precision[:] = 1.0
        X[:, d] = weighted / precision + rng.normal(size=n_samples) / np.sqrt(precision)
    return PlantedViews(
        X, Z, Y, _oracle(X, Z, Y, means, deviations), {"means": means, "deviations": deviations}
    )


def _memberships(kind: int, D: int, V: int, n_shared: int, rng: np.random.Generator) -> np.ndarray:
    if kind == 3:
        for _ in range(REDRAWS):
            Y = simulate(BUFFET, D, rng).astype(bool)
            if Y.shape[1] == V:
                return Y
        raise ValueError(
            f"no {V} views among {D} columns in {REDRAWS} draws of the buffet: ask for another number"
        )
    Y = np.zeros((D, V), dtype=bool)
    alone = D - (n_shared if kind == 2 else 0)
    Y[np.arange(alone), np.arange(alone) % V] = True
    for j, d in enumerate(range(alone, D)):
        Y[d, [j % V, (j + 1) % V]] = True
    return Y


def _product(means, deviations, Z, views, d) -> tuple[np.ndarray, np.ndarray]:
    """Precision of the product of the views' normal densities in column d, and precision times mean, row by row."""
    precision, weighted = np.zeros(len(Z)), np.zeros(len(Z))
    for v in views:
        each = deviations[v, Z[:, v], d] ** -2
        precision += each
        weighted += each * means[v, Z[:, v], d]
    return precision, weighted


def _oracle(X, Z, Y, means, deviations) -> np.ndarray:
    out = np.empty_like(Z)
    for v in range(Z.shape[1]):
        L = np.zeros((len(X), means.shape[1]))
        for d in np.flatnonzero(Y[:, v]):
            others = np.flatnonzero(Y[d] & (np.arange(Z.shape[1]) != v))
            precision, weighted = _product(means, deviations, Z, others, d)
            own = deviations[v, :, d] ** -2
            total = precision[:, None] + own
            gap = X[:, [d]] - (weighted[:, None] + own * means[v, :, d]) / total
            L += 0.5 * np.log(total) - 0.5 * total * gap**2
        out[:, v] = L.argmax(axis=1)
    return out
