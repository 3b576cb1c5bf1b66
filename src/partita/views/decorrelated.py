"""De-correlated k-means: two or more clusterings of the same rows whose means do not follow each other."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from partita.estimator import as_generator
from partita.views.baseline import NumericViews

__all__ = ["DecorrelatedKMeans"]


class DecorrelatedKMeans(NumericViews):
    """Several clusterings of all columns, each with small squared error and means that are orthogonal to the others'.

    The sum of squared errors of all clusterings, plus ``penalty`` times the squared products of the mean vectors of
    each one with the representatives of the others, is lowered by turns: rows go to their nearest representative,
    representatives solve a small linear system. The rows are centred first.

    Good for: two groupings that both use all columns. Not for: groupings in few of many columns (it selects none), nor
    an unknown number of clusters or views. For columns that differ in unit, standardise first (``scale=True``).

    Parameters
    ----------
    n_clusters : int or sequence of int, default 2
        Clusters of each view; one number for all, or one for each.
    n_views : int, default 2
        Number of clusterings.
    penalty : float, default 100.0
        Weight of the correlation between clusterings; relative to the mean squared length of the rows.
    scale : bool, default True
        Whether columns are brought to unit variance.
    n_init : int, default 10
        Starts, the best of them being kept.
    max_iter : int, default 100
        Turns of each start.
    tol : float, default 1e-6
        A start ends when a turn lowers the objective by less than this share of it.
    random_state : None, int, RandomState, Generator or SeedSequence

    Attributes
    ----------
    view_labels_ : ndarray (n_rows, n_views)
        Cluster of each row in each view.
    representatives_ : list of ndarray (n_clusters, n_columns)
        What rows are nearest to, in the units of ``X``.
    objective_ : float
        Value of the objective at the best start.
    objective_trace_ : ndarray
        How it fell there.
    n_iter_ : int
    n_features_in_, feature_names_in_

    References
    ----------
    Jain, Meka and Dhillon (2008), Simultaneous unsupervised learning of disparate clusterings, SDM.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import DecorrelatedKMeans
    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.integers(2, size=(2, 200))
    >>> X = np.column_stack([6 * one, 6 * two]) + rng.normal(size=(200, 2))
    >>> labels = DecorrelatedKMeans(2, random_state=0).fit(X).view_labels_
    >>> agree = [
    ...     max((labels[:, v] == z).mean(), (labels[:, v] != z).mean()) for v in (0, 1) for z in (one, two)
    ... ]
    >>> sorted(np.round(agree, 1).tolist())
    [0.5, 0.5, 1.0, 1.0]
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "n_views": [Interval(Integral, 1, None, closed="left")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "scale": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        n_clusters=2,
        n_views=2,
        *,
        penalty=100.0,
        scale=True,
        n_init=10,
        max_iter=100,
        tol=1e-6,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_views = n_views
        self.penalty = penalty
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit the clusterings.

        Parameters
        ----------
        X : array (n_rows, n_columns)
            Numbers; none missing.
        y : ignored

        Returns
        -------
        DecorrelatedKMeans
        """
        A, sizes = self._prepare(X)
        rng = as_generator(self.random_state)
        runs = [self._one_start(A, sizes, rng) for _ in range(self.n_init)]
        labels, representatives, trace = min(runs, key=lambda run: run[2][-1])
        self.view_labels_ = np.column_stack(labels)
        self._representatives = representatives
        self.representatives_ = [self._center + self._spread * R for R in representatives]
        self.objective_trace_, self.objective_, self.n_iter_ = np.array(trace), trace[-1], len(trace)
        return self

    def _one_start(self, A, sizes, rng):
        weight = self.penalty  # rows have unit mean square, so it needs no further scale
        R = [kmeans_plusplus(A, K, random_state=int(rng.integers(2**31)))[0] for K in sizes]
        trace: list[float] = []
        labels = [_nearest(A, r) for r in R]
        for _ in range(self.max_iter):
            for v in range(len(sizes)):
                labels[v] = _filled(A, _nearest(A, R[v]), sizes[v])
                means = [_means(A, z, K) for z, K in zip(labels, sizes, strict=True)]
                others = np.vstack([np.zeros((0, A.shape[1])), *(m for u, m in enumerate(means) if u != v)])
                # d/dr of the error and of the squared products with the other views' means
                n = np.bincount(labels[v], minlength=sizes[v])
                R[v] = _solve(means[v], n, others, weight)
            trace.append(_objective(A, labels, R, weight))
            if len(trace) > 1 and trace[-2] - trace[-1] <= self.tol * abs(trace[-2]):
                break
        return labels, R, trace

    def predict(self, X):
        """Nearest representative of each row in each view: (n_rows, n_views)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        A = (X - self._center) / self._spread
        return np.column_stack([_nearest(A, R) for R in self._representatives])


def _nearest(A: np.ndarray, R: np.ndarray) -> np.ndarray:
    return ((R**2).sum(axis=1) - 2.0 * A @ R.T).argmin(axis=1)


def _filled(A: np.ndarray, z: np.ndarray, K: int) -> np.ndarray:
    """No cluster without rows where there are enough: an empty one takes the row farthest from its mean."""
    z = z.copy()
    for k in np.flatnonzero(np.bincount(z, minlength=K) == 0):
        n = np.bincount(z, minlength=K)
        gap = ((A - _means(A, z, K)[z]) ** 2).sum(axis=1)
        gap[n[z] < 2] = -1.0
        if gap.max() < 0:
            break
        z[int(gap.argmax())] = k
    return z


def _means(A: np.ndarray, z: np.ndarray, K: int) -> np.ndarray:
    W = np.zeros((len(z), K))
    W[np.arange(len(z)), z] = 1.0
    return (W.T @ A) / np.maximum(W.sum(axis=0), 1.0)[:, None]


def _solve(means: np.ndarray, n: np.ndarray, others: np.ndarray, weight: float) -> np.ndarray:
    """Representatives that minimise ``n |m - r|^2 + weight * sum of (others r)^2``, by the small dual system."""
    if len(others) == 0 or weight == 0:
        return means
    out = np.empty_like(means)
    gram = others @ others.T
    for k, (m, size) in enumerate(zip(means, n, strict=True)):
        size = max(float(size), 1e-12)
        inner = np.linalg.solve(np.eye(len(gram)) * size / weight + gram, others @ m)
        out[k] = m - others.T @ inner
    return out


def _objective(A, labels, R, weight) -> float:
    means = [_means(A, z, len(r)) for z, r in zip(labels, R, strict=True)]
    error = sum(float(((A - r[z]) ** 2).sum()) for z, r in zip(labels, R, strict=True))
    products = sum(
        float(((R[v] @ means[u].T) ** 2).sum()) for v in range(len(R)) for u in range(len(R)) if u != v
    )
    return error + weight * products
