"""Orthogonal views: cluster, remove what the clustering explains, cluster the remainder."""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import iterate_from_checkpoint
from partita.estimator import RUNNING_CONSTRAINTS, as_generator
from partita.estimator.judging import note_stop
from partita.fitting.out_of_core import reads_chunks
from partita.views.baseline import NumericViews, best_size, silhouette_scores

MIN_EXPLAINED = 0.9  # share of the variation of the means whose directions are removed


class OrthogonalViews(NumericViews):
    """Several clusterings, each of the remainder that the previous ones leave of the rows.

    After each k-means the rows are projected: "clustering" removes from every row its component along the mean of its
    cluster; "features" removes from all rows the directions in which the cluster means vary most (as many as explain
    90% of that variation).

    Good for: a quick look at alternatives to a first clustering. Not for: groupings that share directions, or an
    unknown number of views (a view of nothing but noise is clustered as well).

    Parameters
    ----------
    n_clusters : int or sequence of int, optional
        Number of clusters, one number for all views or one per view. By default the number, from 2 to 10, whose
        k-means has the largest mean silhouette, for each view.
    n_views : int, default=2
        Number of clusterings.
    variant : {"features", "clustering"}, default="features"
        Orthogonality of feature subspaces, or of clusterings (the paper's methods 2 and 1).
    standardize : bool, default=True
        Whether columns are scaled to unit variance.
    n_init : int, default=10
        Number of starts of each k-means.
    random_state : None, int, RandomState, Generator or SeedSequence
        For k-means.
    time_limit : float, optional
        Wall seconds; no view begins after it, except for the first.
    callback : callable, optional
        Called after each view with a :class:`~partita.engines.run.Progress`, whose objective is the share of
        the variation of the rows that the view started from;
        returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the views so far instead of raising.
    n_jobs : int, optional
        Not used: views are found one after the other.
    executor : None, "threads", "processes", Dask client or address, optional
        Not used, as ``n_jobs``.
    resume : path, optional
        A folder that keeps the views so far: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    view_labels_ : ndarray (n_rows, n_views)
        Cluster of each row in each view; fewer views if the fit was stopped.
    n_clusters_ : ndarray (n_views,)
        Number of clusters of each view.
    view_n_clusters_scores_ : list of dict
        For each view, the mean silhouette of k-means per number of clusters, high is good; empty dictionaries if
        ``n_clusters`` is given.
    residual_share_ : ndarray (n_views,)
        Share of the variation of the rows that each view started from.
    fit_report_ : FitReport
        What was unusual about the fit.
    n_features_in_, feature_names_in_, schema_
        The table that was fitted.

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
    >>> labels = OrthogonalViews(2, standardize=False, random_state=0).fit(X).view_labels_
    >>> agree = [max((labels[:, v] == z).mean(), (labels[:, v] != z).mean()) for v, z in ((0, one), (1, two))]
    >>> bool(min(agree) > 0.95)
    True
    """

    _array_laws: tuple[str, ...] = (
        "fitted.n_clusters_ int (V) 1..",
        "fitted.residual_share_ float (V) 0..1",
        "fitted._centers.* float (k,D)",
        "fitted._axes.* float (a,D)",
    )
    _parameter_constraints = {
        **RUNNING_CONSTRAINTS,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left"), "array-like"],
        "n_views": [Interval(Integral, 1, None, closed="left")],
        "variant": [StrOptions({"features", "clustering"})],
        "standardize": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": "no_validation",
    }
    _stored = (
        "view_labels_",
        "n_clusters_",
        "view_n_clusters_scores_",
        "residual_share_",
        "_center",
        "_scale",
        "_centers",
        "_axes",
    )

    def __init__(
        self,
        n_clusters=None,
        n_views=2,
        *,
        variant="features",
        standardize=True,
        n_init=10,
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
    ):
        self.n_clusters = n_clusters
        self.n_views = n_views
        self.variant = variant
        self.standardize = standardize
        self.n_init = n_init
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def fit(self, X, y=None):
        """Fit the clusterings.

        Parameters
        ----------
        X : array or data frame (n_rows, n_columns)
            Numbers without missing values.
        y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        with self._control() as control, self._new_fit():
            A = self._prepare(X)
            sizes = self._given_sizes(len(A))
            rng = as_generator(self.random_state)
            about = (A, sizes or (), self.variant, self.n_init)
            run = iterate_from_checkpoint(
                lambda state: self._next_view(state, sizes),
                lambda: _Views(A, float((A**2).sum()), (), rng),
                checkpoint=open_checkpoint(self.resume, 0, about),
                max_iter=self.n_views,
                tol=0.0,
                control=control,
                n_clusters=lambda state: len(state.views[-1].centers),
            )
            self._set_attributes(run.state.views)
            note_stop(self.fit_report_, run.reason, f"{run.state.n_iter} of {self.n_views} views are kept")
        self.fit_report_.warn()
        return self

    def _next_view(self, state: _Views, sizes: list[int] | None) -> _Views:
        A, rng = state.remainder, state.rng
        share = float((A**2).sum()) / state.total if state.total > 0 else 0.0
        scores = {} if sizes is not None else silhouette_scores(A, rng)
        K = best_size(scores) if sizes is None else sizes[state.n_iter]
        found = KMeans(K, n_init=self.n_init, random_state=int(rng.integers(2**31))).fit(A)
        labels, centers = found.labels_.astype(np.int64), found.cluster_centers_
        view = _View(labels, centers, _main_axes(centers[labels]), share, scores)
        remainder = self._remainder(A, labels, centers, view.axes)
        return _Views(remainder, state.total, (*state.views, view), rng)

    def _remainder(self, A: np.ndarray, z: np.ndarray, centers: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """The rows without what a view explains."""
        if self.variant == "features":
            return A - (A @ axes.T) @ axes
        length = (centers**2).sum(axis=1)
        along = (A * centers[z]).sum(axis=1) / np.where(length > 0, length, 1.0)[z]
        return A - along[:, None] * centers[z]

    def _set_attributes(self, views: tuple[_View, ...]) -> None:
        self.view_labels_ = np.column_stack([view.labels for view in views])
        self.residual_share_ = np.array([view.share for view in views])
        self.view_n_clusters_scores_ = [view.scores for view in views]
        self.n_clusters_ = np.array([len(view.centers) for view in views])
        self._centers = [view.centers for view in views]
        self._axes = [view.axes for view in views]

    @reads_chunks
    def predict(self, X):
        """Nearest center of each row in each view.

        Parameters
        ----------
        X : array or data frame (n_rows, n_columns)
            Numbers without missing values.

        Returns
        -------
        ndarray (n_rows, n_views)
        """
        check_is_fitted(self)
        A, out = self._new_rows(X), []
        for centers, axes in zip(self._centers, self._axes, strict=True):
            out.append(((centers**2).sum(axis=1) - 2.0 * A @ centers.T).argmin(axis=1))
            A = self._remainder(A, out[-1], centers, axes)
        return np.column_stack(out)


class _View(NamedTuple):
    """One clustering: labels, centers, main axes of the centers, share of the variation, silhouettes."""

    labels: np.ndarray
    centers: np.ndarray
    axes: np.ndarray
    share: float
    scores: dict[int, float]


class _Views(NamedTuple):
    """State after some views: the remainder of the rows, and the views."""

    remainder: np.ndarray
    total: float  # sum of squares of the rows
    views: tuple[_View, ...]
    rng: np.random.Generator

    @property
    def n_iter(self) -> int:
        return len(self.views)

    @property
    def objective(self) -> float:
        return self.views[-1].share

    @property
    def change(self) -> float:
        return np.inf  # the number of views is given, there is no convergence


def _main_axes(means: np.ndarray) -> np.ndarray:
    """Directions [axis, column] in which the means of the rows vary most."""
    _, s, axes = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    if not s.any():
        return axes[:0]
    return axes[: int(np.searchsorted(np.cumsum(s**2) / (s**2).sum(), MIN_EXPLAINED)) + 1]
