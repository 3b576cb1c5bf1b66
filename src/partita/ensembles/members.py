"""One member of an ensemble: an algorithm on some rows and some features, and how it labels new rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.labels import canonical

Labels = NDArray[np.int64]
Rows = NDArray[np.float64]
N_NEIGHBORS = 10  # of the graph that spectral clustering cuts


class NearestCenter(NamedTuple):
    """A row takes the label of the nearest center."""

    centers: Rows

    def predict(self, X: Rows) -> Labels:
        """Labels of rows."""
        from sklearn.metrics import pairwise_distances_argmin

        return pairwise_distances_argmin(X, self.centers).astype(np.int64)


class NearestRow(NamedTuple):
    """A row takes the label of the nearest row that the algorithm was run on."""

    rows: Rows
    labels: Labels

    def predict(self, X: Rows) -> Labels:
        """Labels of rows."""
        from sklearn.metrics import pairwise_distances_argmin

        return self.labels[pairwise_distances_argmin(X, self.rows)]


class DiagonalGaussians(NamedTuple):
    """A row takes the label of its most probable component."""

    weights: NDArray[np.float64]
    means: Rows
    variances: Rows

    def predict(self, X: Rows) -> Labels:
        """Labels of rows."""
        from sklearn.mixture import GaussianMixture

        model = GaussianMixture(len(self.weights), covariance_type="diag")
        model.weights_, model.means_, model.covariances_ = self
        model.precisions_cholesky_ = 1.0 / np.sqrt(self.variances)
        return model.predict(X).astype(np.int64)


class UsersModel(NamedTuple):
    """A fitted scikit-learn clusterer given by the user, and the labels that it found in `fit`."""

    model: Any
    levels: NDArray[Any]

    def predict(self, X: Rows) -> Labels:
        """Labels of rows; a label that did not occur in `fit` is missing."""
        found = np.asarray(self.model.predict(X))
        same = found[:, None] == self.levels[None, :]
        return np.where(same.any(axis=1), same.argmax(axis=1), -1).astype(np.int64)


class Fit(NamedTuple):
    """Labels of the rows that were clustered (0, 1, ... by first appearance, -1 noise), and a rule for other rows."""

    labels: Labels
    predictor: Any


def fit_algorithm(algorithm: Any, X: Rows, n_clusters: int | None, rng: np.random.Generator) -> Fit:
    """Run one algorithm on all rows of X.

    Parameters
    ----------
    algorithm : str or scikit-learn clusterer
        A name of `ALGORITHMS`, or a clusterer, of which a copy is fitted.
    X : ndarray (n_rows, n_features)
    n_clusters : int, optional
        Number of clusters; at most the number of rows is used. None leaves it to the user's clusterer.
    rng : Generator

    Returns
    -------
    Fit

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [9.0]])
    >>> fit_algorithm("kmeans", X, 2, np.random.default_rng(0)).labels
    array([0, 0, 1])
    """
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        # few distinct rows, incomplete convergence or a disconnected graph do not matter for a member
        warnings.simplefilter("ignore")
        if not isinstance(algorithm, str):
            return _fit_users(algorithm, X, n_clusters, seed)
        if n_clusters is None:
            raise ValueError(f"{algorithm!r} needs a number of clusters: give n_clusters")
        n_clusters = min(n_clusters, len(X))
        if n_clusters == 1:
            return Fit(np.zeros(len(X), np.int64), NearestCenter(X.mean(axis=0, keepdims=True)))
        return ALGORITHMS[algorithm](X, n_clusters, seed)


def _fit_kmeans(X: Rows, n_clusters: int, seed: int) -> Fit:
    from sklearn.cluster import KMeans

    return _by_centers(KMeans(n_clusters, n_init=1, random_state=seed).fit(X))


def _fit_minibatch_kmeans(X: Rows, n_clusters: int, seed: int) -> Fit:
    from sklearn.cluster import MiniBatchKMeans

    return _by_centers(MiniBatchKMeans(n_clusters, n_init=1, random_state=seed).fit(X))


def _by_centers(model: Any) -> Fit:
    labels, kept = _numbered(model.labels_)
    return Fit(labels, NearestCenter(model.cluster_centers_[kept]))


def _fit_ward(X: Rows, n_clusters: int, seed: int) -> Fit:
    from sklearn.cluster import AgglomerativeClustering

    labels, _ = _numbered(AgglomerativeClustering(n_clusters).fit(X).labels_)
    return Fit(labels, NearestRow(X, labels))


def _fit_gaussians(X: Rows, n_clusters: int, seed: int) -> Fit:
    from sklearn.mixture import GaussianMixture

    # regularization: a feature may be constant, and a component may hold duplicates of one row only
    model = GaussianMixture(n_clusters, covariance_type="diag", reg_covar=1e-3, random_state=seed).fit(X)
    labels, kept = _numbered(model.predict(X))
    weights = model.weights_[kept] / model.weights_[kept].sum()
    return Fit(labels, DiagonalGaussians(weights, model.means_[kept], model.covariances_[kept]))


def _fit_spectral(X: Rows, n_clusters: int, seed: int) -> Fit:
    from sklearn.cluster import SpectralClustering

    if len(X) <= n_clusters + 1:  # too few rows for a graph and its eigenvectors
        return _fit_ward(X, n_clusters, seed)
    model = SpectralClustering(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=min(N_NEIGHBORS, len(X)),
        random_state=seed,
    )
    labels, _ = _numbered(model.fit(X).labels_)
    return Fit(labels, NearestRow(X, labels))


def _fit_users(clusterer: Any, X: Rows, n_clusters: int | None, seed: int) -> Fit:
    from sklearn.base import clone

    model = clone(clusterer)
    known = model.get_params(deep=False)
    asked = {"random_state": seed, "n_clusters": n_clusters, "n_components": n_clusters}
    if n_clusters is None:
        asked = {"random_state": seed}
    model.set_params(**{name: value for name, value in asked.items() if name in known})
    found = np.asarray(model.fit_predict(X))
    labels, levels = _numbered(found)
    predictor = UsersModel(model, levels) if hasattr(model, "predict") else NearestRow(X, labels)
    return Fit(labels, predictor)


def _numbered(found: NDArray[Any]) -> tuple[Labels, NDArray[Any]]:
    """Labels in order of first appearance, and the original label of each."""
    labels = canonical(found, missing=-1)
    first = np.unique(labels[labels >= 0], return_index=True)[1]
    return labels, found[labels >= 0][first]


ALGORITHMS: dict[str, Callable[[Rows, int, int], Fit]] = {
    "kmeans": _fit_kmeans,
    "minibatch_kmeans": _fit_minibatch_kmeans,
    "ward": _fit_ward,
    "gmm": _fit_gaussians,
    "spectral": _fit_spectral,
}

#: Algorithms whose cost grows with the square of the number of rows; of large tables they use a sample.
QUADRATIC = {"ward", "spectral"}
