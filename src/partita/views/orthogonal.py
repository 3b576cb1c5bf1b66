"""Orthogonal views: cluster, take out what the clustering explains, cluster what is left."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from partita.estimator import as_generator
from partita.views.baseline import NumericViews

__all__ = ["OrthogonalViews"]


class OrthogonalViews(NumericViews):
    """Several clusterings, each of what the ones before have left of the rows.

    After each k-means the rows are projected: "clustering" takes from every row its part along the mean of its own
    cluster; "features" takes from all rows the directions in which the cluster means vary most (enough of them for nine
    tenths of that variation).

    Good for: a quick look at alternatives to a first clustering. Not for: groupings that share directions, nor an
    unknown number of clusters or views (a view of nothing but noise is clustered all the same).

    Parameters
    ----------
    n_clusters : int or sequence of int, default 2
        Clusters of each view; one number for all, or one for each.
    n_views : int, default 2
        Number of clusterings.
    variant : {"features", "clustering"}, default "features"
        Orthogonality of feature subspaces, or of clusterings (the paper's methods 2 and 1).
    scale : bool, default True
        Whether columns are brought to unit variance.
    n_init : int, default 10
        Starts of each k-means.
    random_state : None, int, RandomState, Generator or SeedSequence

    Attributes
    ----------
    view_labels_ : ndarray (n_rows, n_views)
        Cluster of each row in each view.
    residual_share_ : ndarray (n_views,)
        Share of the rows' variation that was there when each view was found.
    n_features_in_, feature_names_in_

    References
    ----------
    Cui, Fern and Dy (2007), Non-redundant multi-view clustering via orthogonalization, ICDM.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import OrthogonalViews
    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.integers(2, size=(2, 200))
    >>> X = np.column_stack([9 * one, 6 * two]) + rng.normal(size=(200, 2))
    >>> labels = OrthogonalViews(2, scale=False, random_state=0).fit(X).view_labels_
    >>> agree = [max((labels[:, v] == z).mean(), (labels[:, v] != z).mean()) for v, z in ((0, one), (1, two))]
    >>> bool(min(agree) > 0.95)
    True
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "n_views": [Interval(Integral, 1, None, closed="left")],
        "variant": [StrOptions({"features", "clustering"})],
        "scale": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": "no_validation",
    }

    def __init__(
        self, n_clusters=2, n_views=2, *, variant="features", scale=True, n_init=10, random_state=None
    ):
        self.n_clusters = n_clusters
        self.n_views = n_views
        self.variant = variant
        self.scale = scale
        self.n_init = n_init
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
        OrthogonalViews
        """
        A, sizes = self._prepare(X)
        rng = as_generator(self.random_state)
        total, labels, self.residual_share_ = (A**2).sum(), [], np.empty(len(sizes))
        self._centres, self._axes = [], []
        for v, K in enumerate(sizes):
            self.residual_share_[v] = (A**2).sum() / total if total > 0 else 0.0
            found = KMeans(K, n_init=self.n_init, random_state=int(rng.integers(2**31))).fit(A)
            labels.append(found.labels_.astype(np.int64))
            self._centres.append(found.cluster_centers_)
            self._axes.append(_main_axes(found.cluster_centers_[labels[-1]]))
            A = self._left(A, labels[-1], v)
        self.view_labels_ = np.column_stack(labels)
        return self

    def _left(self, A: np.ndarray, z: np.ndarray, v: int) -> np.ndarray:
        """What view v leaves of the rows."""
        if self.variant == "features":
            return A - (A @ self._axes[v].T) @ self._axes[v]
        centres = self._centres[v]
        length = (centres**2).sum(axis=1)
        along = (A * centres[z]).sum(axis=1) / np.where(length > 0, length, 1.0)[z]
        return A - along[:, None] * centres[z]

    def predict(self, X):
        """Nearest centre of each row in each view: (n_rows, n_views)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        A, out = (X - self._center) / self._spread, []
        for v, centres in enumerate(self._centres):
            out.append(((centres**2).sum(axis=1) - 2.0 * A @ centres.T).argmin(axis=1))
            A = self._left(A, out[-1], v)
        return np.column_stack(out)


SHARE = 0.9  # of the variation of the means, whose directions are taken out


def _main_axes(means: np.ndarray) -> np.ndarray:
    """Directions [axis, column] in which the means of the rows vary most."""
    _, s, axes = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    if not s.any():
        return axes[:0]
    return axes[: int(np.searchsorted(np.cumsum(s**2) / (s**2).sum(), SHARE)) + 1]
