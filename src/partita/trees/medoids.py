"""K-medoids by FasterPAM, from its authors' package."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import Control, Progress, run_restarts
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin
from partita.estimator.judging import note_stop
from partita.fitting.out_of_core import reads_chunks
from partita.labels import ordered_by_size
from partita.trees.base import PairwiseEstimator
from partita.trees.choosing import limit_clusters
from partita.trees.pairs import distances_to, keep_rows


class MedoidsResult(NamedTuple):
    """Where one start of FasterPAM ended."""

    medoids: np.ndarray
    loss: float
    n_iter: int


class KMedoids(RunningMixin, PairwiseEstimator):
    """Clusters around rows of the data: the sum of dissimilarities to the nearest medoid is minimized.

    Runs FasterPAM (Schubert and Rousseeuw 2021) from its authors' package ``kmedoids``, which is GPL and is installed
    by ``pip install 'partita[medoids]'``. With a given number of exemplars, affinity propagation maximizes the same
    objective.

    Parameters
    ----------
    n_clusters : int, optional
        Number of medoids. By default the number with the largest average medoid silhouette is used (Lenssen and
        Schubert 2024), between 2 and ``max_clusters`` or the root of the number of rows, whichever is smaller.
    metric : str or mapping, default="auto"
        How rows are compared, as in :class:`~partita.Agglomerative`; "precomputed" for given dissimilarities.
    max_clusters : int, default=20
        Largest number of clusters that is considered without ``n_clusters``.
    n_init : int, default=10
        Number of random starts; the one with the smallest sum is kept.
    max_iter : int, default=100
        Maximum number of passes over the rows per start.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the starts.
    time_limit : float, optional
        Wall seconds; no start begins after it, except for the first.
    callback : callable, optional
        Called after each start with a :class:`~partita.engines.run.Progress`, whose objective is the sum of
        dissimilarities; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the best start so far instead of raising.
    n_jobs : int, optional
        Number of threads, one per start; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the starts run; the result does not depend on it.
    resume : path, optional
        A folder that keeps the starts that are complete: the same call after a kill runs only the others.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    n_clusters_scores_ : dict
        Average medoid silhouette per number of clusters, high is good; empty if ``n_clusters`` is given.
    medoids_ : ndarray (n_clusters,)
        The row that is the medoid of each cluster.
    inertia_ : float
        Sum of the dissimilarities to the medoids.
    n_iter_ : int
        Passes of the best start.
    fit_report_ : FitReport
        What was unusual about the data.
    schema_, n_features_in_, feature_names_in_
        The table that was fitted.

    References
    ----------
    Schubert and Rousseeuw, Fast and eager k-medoids clustering, Information Systems 101, 2021. Lenssen and Schubert,
    Medoid silhouette clustering with automatic cluster number selection, Information Systems 120, 2024.

    Examples
    --------
    >>> from partita import KMedoids
    >>> KMedoids(2)
    KMedoids(n_clusters=2)
    """

    _n_clusters_score = "medoid silhouette"

    _array_laws: tuple[str, ...] = (
        "fitted.medoids_ int (K) 0..N-1",
        "fitted._medoid_rows.points float (K,Y)",
        "fitted._medoid_rows.means float (u)",
        "fitted._medoid_rows.scales float (...) 0..",
        "fitted._medoid_rows.comparison.*.weights float (g) 0..",
        "fitted._medoid_rows.comparison.*.means float (g) 0..",
        "fitted._medoid_rows.comparison.*.centers float (g)",
        "fitted._medoid_rows.comparison.*.scales float (g) 0..",
        "fitted._medoid_rows.comparison.*.ranks.* float (r)",
        "fitted._medoid_rows.values.* number (K,g) nan",
    )
    _parameter_constraints: dict[str, Any] = {
        **PairwiseEstimator._parameter_constraints,
        **RUNNING_CONSTRAINTS,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        metric="auto",
        max_clusters=20,
        n_init=10,
        max_iter=100,
        kinds=None,
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
        self.metric = metric
        self.max_clusters = max_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.kinds = kinds
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def _fit_pairs(self, pairs, points, rng, control) -> None:
        D = pairs.matrix()
        K = self._choose(D, rng)
        best = self._best_start(D, K, rng, control)
        nearest = D[:, best.medoids].argmin(axis=1)
        nearest[best.medoids] = np.arange(K)  # of equal rows only one is the medoid, and it belongs to itself
        self.labels_ = ordered_by_size(nearest)
        self.medoids_ = np.empty(K, np.int64)
        self.medoids_[self.labels_[best.medoids]] = best.medoids
        self.n_clusters_, self.inertia_, self.n_iter_ = K, best.loss, best.n_iter

    def _choose(self, D: np.ndarray, rng: np.random.Generator) -> int:
        self.n_clusters_scores_: dict[int, float] = {}
        if self.n_clusters is not None:
            return limit_clusters(self.n_clusters, len(D), self.fit_report_)
        most = min(self.max_clusters, int(np.sqrt(len(D))))
        if most < 2 or not D.any():
            return 1
        found = _library().dynmsc(D, most, max_iter=self.max_iter, random_state=int(rng.integers(2**31)))
        self.n_clusters_scores_ = dict(zip(found.rangek.tolist(), found.losses.tolist(), strict=True))
        return int(found.bestk)

    def _best_start(self, D: np.ndarray, K: int, rng: np.random.Generator, control: Control) -> MedoidsResult:
        library = _library()
        seeds = rng.integers(2**31, size=self.n_init)

        def run(number: int) -> MedoidsResult:
            checkpoint = open_checkpoint(self.resume, number, (D, K, self.max_iter, seeds))
            if checkpoint is not None and checkpoint.begun:
                return checkpoint.load(())[0]
            start = np.random.default_rng(seeds[number]).choice(len(D), size=K, replace=False)
            found = library.fasterpam(D, start.astype(np.uint64), max_iter=self.max_iter, n_cpu=1)
            n_iter = max(int(found.n_iter), 1)
            result = MedoidsResult(np.asarray(found.medoids, np.int64), float(found.loss), n_iter)
            if checkpoint is not None:
                checkpoint.save(result, [], 0, (), at_once=True)
            control.after(Progress(number, n_iter, result.loss, K, control.seconds))
            return result

        starts = run_restarts(run, self.n_init, control=control, executor=self._make_executor())
        note_stop(self.fit_report_, control.reason, f"the best of {len(starts)} starts is kept")
        return min(starts, key=lambda start: start.loss)

    def _keep_points(self, table, points) -> None:
        self._medoid_rows = keep_rows(table, self.metric, points, self.medoids_)

    @reads_chunks
    def predict(self, X):
        """Cluster of the nearest medoid.

        Parameters
        ----------
        X : array or data frame
            Rows like those of ``fit``; with ``metric="precomputed"`` dissimilarities, new objects x objects of ``fit``.

        Returns
        -------
        ndarray (n_rows,)
            0, the largest cluster, for a row without any observed cell.
        """
        if self._is_precomputed:
            return self._new_dissimilarities(X)[:, self.medoids_].argmin(axis=1)
        table = self._read_new(X)
        return distances_to(self._medoid_rows, table, self.metric).argmin(axis=1)


def _library() -> Any:
    try:
        import kmedoids
    except ImportError as error:
        raise ImportError(
            "KMedoids needs the package kmedoids, which is not installed: pip install 'partita[medoids]'"
        ) from error
    return kmedoids
