"""Decorrelated k-means: two or more clusterings of the same rows whose means are orthogonal to each other."""

from __future__ import annotations

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import Control, Run, iterate_from_checkpoint, run_restarts
from partita.estimator import RUNNING_CONSTRAINTS, as_generator
from partita.estimator.judging import note_stop
from partita.fitting.out_of_core import reads_chunks
from partita.views.baseline import NumericViews, best_size, silhouette_scores


class DecorrelatedKMeans(NumericViews):
    """Several clusterings of all columns, each with small squared error and means orthogonal to those of the others.

    Minimizes the sum of squared errors of all clusterings, plus ``penalty`` times the squared products of the mean
    vectors of each clustering with the representatives of the others. Two steps alternate: rows are assigned to their
    nearest representative, and representatives solve a small linear system. The rows are centered first.

    Good for: two groupings that both use all columns. Not for: groupings in few of many columns (none are selected), or
    an unknown number of views.

    Parameters
    ----------
    n_clusters : int or sequence of int, optional
        Number of clusters, one number for all views or one per view. By default the number, from 2 to 10, whose
        k-means of the rows has the largest mean silhouette, for all views.
    n_views : int, default=2
        Number of clusterings.
    penalty : float, default=100.0
        Weight of the correlation between clusterings; relative to the mean squared length of the rows.
    standardize : bool, default=True
        Whether columns are scaled to unit variance.
    n_init : int, default=10
        Number of starts; the best is kept.
    max_iter : int, default=100
        Maximum number of iterations per start.
    tol : float, default=1e-6
        A start ends when one iteration lowers the objective by less than this share of it.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the starts.
    time_limit : float, optional
        Wall seconds; no iteration begins after it, except for the first.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress`, whose objective is the value to be
        minimized; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the best start so far instead of raising.
    n_jobs : int, optional
        Number of threads, one per start; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the starts run; the result does not depend on it.
    resume : path, optional
        A folder that keeps the state of each start: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    view_labels_ : ndarray (n_rows, n_views)
        Cluster of each row in each view.
    n_clusters_ : ndarray (n_views,)
        Number of clusters of each view.
    n_clusters_scores_ : dict
        Mean silhouette of k-means per number of clusters, high is good; empty if ``n_clusters`` is given.
    representatives_ : list of ndarray (n_clusters, n_columns)
        Rows are assigned to the nearest of these, in the units of ``X``.
    objective_ : float
        The objective of the best start.
    objective_trace_ : ndarray
        The objective after each of its iterations.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        Whether the best start ended before ``max_iter``.
    fit_report_ : FitReport
        What was unusual about the fit.
    n_features_in_, feature_names_in_, schema_
        The table that was fitted.

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

    _n_clusters_score = "silhouette"

    _array_laws: tuple[str, ...] = (
        "fitted.n_clusters_ int (V) 1..",
        "fitted.representatives_.* float (k,D)",
        "fitted.objective_trace_ float (T)",
    )
    _parameter_constraints = {
        **RUNNING_CONSTRAINTS,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left"), "array-like"],
        "n_views": [Interval(Integral, 1, None, closed="left")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": "no_validation",
    }
    _stored = (
        "view_labels_",
        "n_clusters_",
        "n_clusters_scores_",
        "representatives_",
        "objective_",
        "objective_trace_",
        "n_iter_",
        "converged_",
        "_center",
        "_scale",
    )

    def __init__(
        self,
        n_clusters=None,
        n_views=2,
        *,
        penalty=100.0,
        standardize=True,
        n_init=10,
        max_iter=100,
        tol=1e-6,
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
        self.penalty = penalty
        self.standardize = standardize
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
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
            rng = as_generator(self.random_state)
            sizes = self._given_sizes(len(A))
            self.n_clusters_scores_ = {} if sizes is not None else silhouette_scores(A, rng)
            sizes = sizes or [best_size(self.n_clusters_scores_)] * self.n_views
            self.n_clusters_ = np.array(sizes)
            runs = self._run_starts(A, sizes, rng, control)
            self._set_attributes(min(runs, key=lambda run: run.objectives[-1]))
            note_stop(self.fit_report_, control.reason, f"the best of {len(runs)} starts is kept")
        self.fit_report_.warn()
        return self

    def _run_starts(
        self, A: np.ndarray, sizes: list[int], rng: np.random.Generator, control: Control
    ) -> list[Run]:
        seeds = rng.integers(2**31, size=(self.n_init, len(sizes)))
        weight = self.penalty  # rows have unit mean square, so the penalty needs no further scale

        def run(number: int) -> Run:
            return iterate_from_checkpoint(
                lambda state: _step(A, state, sizes, weight),
                lambda: _start(A, sizes, seeds[number]),
                checkpoint=open_checkpoint(self.resume, number, (A, sizes, seeds, self.penalty, self.tol)),
                max_iter=self.max_iter,
                tol=self.tol,
                number=number,
                control=control,
                n_clusters=lambda state: sum(sizes),
            )

        return run_restarts(run, self.n_init, control=control, executor=self._make_executor())

    def _set_attributes(self, best: Run) -> None:
        state = best.state
        self.view_labels_ = np.column_stack(state.labels)
        self.representatives_ = [self._center + self._scale * R for R in state.representatives]
        self.objective_trace_, self.objective_ = np.array(best.objectives), best.objectives[-1]
        self.n_iter_, self.converged_ = state.n_iter, best.converged

    @reads_chunks
    def predict(self, X):
        """Nearest representative of each row in each view.

        Parameters
        ----------
        X : array or data frame (n_rows, n_columns)
            Numbers without missing values.

        Returns
        -------
        ndarray (n_rows, n_views)
        """
        check_is_fitted(self)
        A = self._new_rows(X)
        return np.column_stack([_nearest(A, self._scaled(R)) for R in self.representatives_])


class _State(NamedTuple):
    """Labels and representatives of each view."""

    labels: tuple[np.ndarray, ...]
    representatives: tuple[np.ndarray, ...]
    objective: float
    change: float  # share of the objective by which the last iteration lowered it
    n_iter: int


def _start(A: np.ndarray, sizes: list[int], seeds: np.ndarray) -> _State:
    R = tuple(kmeans_plusplus(A, K, random_state=int(seed))[0] for K, seed in zip(sizes, seeds, strict=True))
    return _State(tuple(_nearest(A, r) for r in R), R, np.inf, np.inf, 0)


def _step(A: np.ndarray, state: _State, sizes: list[int], weight: float) -> _State:
    """Update the labels and then the representatives of one view after the other."""
    labels, R = list(state.labels), list(state.representatives)
    for v, K in enumerate(sizes):
        labels[v] = _filled(A, _nearest(A, R[v]), K)
        means = [_means(A, z, size) for z, size in zip(labels, sizes, strict=True)]
        others = np.vstack([np.zeros((0, A.shape[1])), *(m for u, m in enumerate(means) if u != v)])
        R[v] = _solve(means[v], np.bincount(labels[v], minlength=K), others, weight)
    objective = _objective(A, labels, R, weight)
    before = state.objective
    # an objective of 0 cannot fall
    change = np.inf if np.isinf(before) else (before - objective) / abs(before) if before else 0.0
    return _State(tuple(labels), tuple(R), objective, change, state.n_iter + 1)


def _nearest(A: np.ndarray, R: np.ndarray) -> np.ndarray:
    return ((R**2).sum(axis=1) - 2.0 * A @ R.T).argmin(axis=1)


def _filled(A: np.ndarray, z: np.ndarray, K: int) -> np.ndarray:
    """Labels without empty clusters, if there are enough rows: an empty one gets the row farthest from its mean."""
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
    """Representatives that minimize ``n |m - r|^2 + weight * sum of (others r)^2``, by the small dual system."""
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
