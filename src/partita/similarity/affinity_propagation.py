"""Affinity propagation: exemplars by messages, on all pairs or on a sparse graph."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import Control
from partita.estimator import (
    RUNNING_CONSTRAINTS,
    FitReport,
    RunningMixin,
    as_generator,
    claim_folder,
    warn_user,
)
from partita.estimator.judging import note_stop
from partita.execution.memory import check_memory
from partita.fitting.out_of_core import reads_chunks
from partita.labels import ordered_by_size
from partita.similarity.base import SimilarityEstimator, read_matrix
from partita.similarity.dissimilarities import Rows
from partita.similarity.messages import (
    BYTES_PER_EDGE,
    Edges,
    edges_of,
    net_similarity,
    pass_messages,
    read_exemplars,
)
from partita.similarity.neighbors import join_graph, nearest

MAX_DENSE_ROWS = 2000  # with at most this many distinct rows, messages pass between all pairs by default
N_NEIGHBORS = 20
MEDIAN_ROWS = 1000  # rows whose pairs the median similarity is computed from


class AffinityPropagation(RunningMixin, SimilarityEstimator):
    """Clusters around exemplars, found by passing messages between objects (Frey and Dueck 2007).

    Good for: exemplars that are rows of the data; any similarity, also precomputed, sparse or asymmetric; an unknown
    number of clusters. Not for: clusters that are not round, or large clusters in a sparse graph. There every member
    needs an edge to its exemplar, so that with 20 neighbors a cluster has a few dozen members at most; to get larger
    clusters, cluster the exemplars again. There are no probabilities; ``margins_`` measures how clear the label of each
    row is.

    Parameters
    ----------
    metric : str or mapping, default="auto"
        How rows of a table are compared, as in :func:`partita.similarity.dissimilarity`; the similarity is minus the
        dissimilarity. "precomputed": X holds similarities s(i, k), how well k would serve as the exemplar of i, as a
        dense array or as a scipy sparse matrix. If the entry (i, k) of a sparse matrix is not stored, k cannot be the
        exemplar of i. The diagonal is not read.
    n_neighbors : int, "auto" or None, default="auto"
        For tables: keep the similarities to this many nearest rows (and to those that have the row among theirs).
        None keeps all pairs. "auto" is None for at most 2,000 distinct rows, and 20 for more.
    preference : float, array or "auto", default="auto"
        s(k, k), the cost of making k an exemplar: the lower, the fewer clusters. "auto" is the median similarity of
        two distinct rows; for a sparse precomputed matrix it is the smallest similarity.
    damping : float in [0.5, 1) or "auto", default="auto"
        Share of the old message that is kept. "auto" starts at 0.5 and increases where the messages oscillate.
    max_iter : int, default=1000
        Maximum number of rounds of messages.
    convergence_iter : int, default=15
        Rounds without a change of the exemplars that count as convergence.
    column_weights : "balanced", array or mapping, optional
        Weights of the columns in the dissimilarity.
    orders : mapping, optional
        Levels of ordinal columns, from low to high.
    kinds : str, mapping or sequence, optional
        Kinds of the columns; inferred by default.
    standardize : bool, default=True
        Whether numbers are compared in units of their standard deviation.
    handle_unknown : {"missing", "error"}, default="missing"
        How ``predict`` treats categories that did not occur in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None
        Breaks ties by a change of the similarities in their last digit.
    time_limit : float, optional
        Wall seconds; no round begins after it, and the best exemplars so far are used.
    callback : callable, optional
        Called after each round with a :class:`~partita.engines.run.Progress`, whose objective is the largest net
        similarity so far (evaluated every 20 rounds); returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the best exemplars so far instead of raising.
    n_jobs : int, optional
        Not used: rounds follow each other, and each is a few passes over the edges.
    executor : None, "threads", "processes", Dask client or address, optional
        Not used, as ``n_jobs``.
    resume : path, optional
        A folder that keeps the messages: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    exemplars_ : ndarray (n_clusters,)
        The row that is the exemplar of each cluster.
    margins_ : ndarray (n_rows,)
        How much more similar each row is to its exemplar than to the second nearest one; inf if there is no other
        exemplar (and, with precomputed similarities, for exemplars).
    preference_ : float or ndarray
        The preference that was used.
    net_similarity_ : float
        The objective (25.39) of the result, over the edges of the graph.
    n_edges_ : int
        Number of similarities in the graph.
    n_iter_ : int
        Rounds of messages.
    converged_ : bool
        Whether the exemplars did not change for ``convergence_iter`` rounds.
    n_unsettled_ : int
        Number of distinct rows that still changed between exemplar and member at the end; 0 after convergence.
    damping_ : float
        The strongest damping at the end.
    fit_report_ : FitReport
        What was unusual about the data.
    schema_ : Schema
        The columns, kinds, levels and units by which ``predict`` reads new rows; None with precomputed similarities.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Only if the columns have names.

    Notes
    -----
    Equal rows of a table are one object with their total weight; this changes nothing but the median. Rows of a table
    are assigned to the nearest exemplar, with or without an edge, so ``predict`` on them gives ``labels_``.

    References
    ----------
    B. J. Frey and D. Dueck, Clustering by passing messages between data points, Science 315, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import AffinityPropagation
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 9])
    >>> model = AffinityPropagation(preference=-20.0, random_state=0).fit(X)
    >>> model.n_clusters_, model.converged_
    (2, True)
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    _array_laws: tuple[str, ...] = (
        "fitted.exemplars_ int (K) 0..N-1",
        "fitted._exemplar_objects int (K) 0..R-1",
        "fitted.margins_ float (N) 0.. inf",
        "fitted.preference_ float (N) -inf",
    )
    _parameter_constraints: dict[str, Any] = {
        **SimilarityEstimator._parameter_constraints,
        **RUNNING_CONSTRAINTS,
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "preference": ["array-like", Interval(Real, None, None, closed="neither"), StrOptions({"auto"})],
        "damping": [Interval(Real, 0.5, 1.0, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "convergence_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        metric="auto",
        *,
        n_neighbors="auto",
        preference="auto",
        damping="auto",
        max_iter=1000,
        convergence_iter=15,
        column_weights=None,
        orders=None,
        kinds=None,
        standardize=True,
        handle_unknown="missing",
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
    ):
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.preference = preference
        self.damping = damping
        self.max_iter = max_iter
        self.convergence_iter = convergence_iter
        self.column_weights = column_weights
        self.orders = orders
        self.kinds = kinds
        self.standardize = standardize
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Find exemplars.

        Parameters
        ----------
        X : array or data frame (rows x columns), or similarities (objects x objects) with ``metric="precomputed"``
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            Number of objects that each row represents; a row of weight 0 has no influence, but gets a label.

        Returns
        -------
        self
        """
        self._validate_params()
        with self._control() as control, self._new_fit():
            rng = as_generator(self.random_state)
            if self._is_precomputed:
                self._fit_precomputed(X, sample_weight, rng, control)
            else:
                self._fit_table(X, sample_weight, rng, control)
        self.fit_report_.warn()
        if not self.converged_ and "cut_short" not in self.fit_report_:
            warn_user(
                f"affinity propagation did not converge in {self.n_iter_} rounds (damping {self.damping_:.3g}), "
                f"{self.n_unsettled_} candidates still changed: the labels are those of the best exemplars so far; "
                "increase max_iter or damping, or change preference",
                ConvergenceWarning,
            )
        return self

    # ---- tables --------------------------------------------------------------------------------------------

    def _fit_table(self, X, sample_weight, rng, control) -> None:
        rows, weights, row_objects = self._open_table(X, sample_weight)
        preference = self._preference_of_rows(rows.n_rows, row_objects)
        graph = self._graph()
        self._note_incomparable_rows()
        # an object of m equal rows counts its similarity to the exemplar m times
        graph.data *= np.repeat(weights, np.diff(graph.indptr))
        chosen = self._exchange(edges_of(graph, np.broadcast_to(preference, len(weights))), rng, control)
        exemplars, members = np.unique(chosen, return_inverse=True)
        order = exemplars[np.argsort(-np.bincount(members, weights), kind="stable")]  # largest weight first
        self.exemplars_ = self._first_rows[order]
        self._exemplar_objects = order
        self.labels_, self.margins_ = self._nearest_exemplars(rows)
        self.n_clusters_ = len(order)

    def _preference_of_rows(self, n_rows: int, row_objects: np.ndarray) -> Any:
        """A number, or one per object."""
        if isinstance(self.preference, str):
            self.preference_ = _median_similarity(self._rows)
            return self.preference_
        given = self.preference_ = _checked_preference(self.preference, n_rows)
        if isinstance(given, float):
            return given
        # of equal rows the one with the highest preference counts
        out = np.full(self._rows.n_rows, -np.inf)
        np.maximum.at(out, row_objects[row_objects >= 0], given[row_objects >= 0])
        return out

    def _graph(self) -> Any:
        n = self._rows.n_rows
        k = self.n_neighbors
        if isinstance(k, str):
            k = None if n <= MAX_DENSE_ROWS else N_NEIGHBORS
            if k is not None:
                self.fit_report_.add(
                    "sparse",
                    f"there are {n:,} distinct rows: the similarities to the {k} nearest of each are kept",
                )
        if k is None or k >= n - 1:
            what = f"messages between all pairs of {n:,} rows"
            check_memory(BYTES_PER_EDGE * n * n, what, "set n_neighbors=20")
            return _complete(-self._rows.against(self._rows))
        check_memory(BYTES_PER_EDGE * 2 * n * k, f"{k} neighbors of {n:,} rows", "keep fewer neighbors")
        graph = join_graph(nearest(self._rows, k))
        graph.data *= -1.0
        return graph

    def _nearest_exemplars(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        exemplars = self._rows.take(self._exemplar_objects)
        found = nearest(exemplars, min(2, exemplars.n_rows), rows)
        if exemplars.n_rows == 1:
            return np.zeros(rows.n_rows, np.int64), np.full(rows.n_rows, np.inf)
        margins = found.dissimilarities[:, 1] - found.dissimilarities[:, 0]
        return found.rows[:, 0].astype(np.int64), margins

    # ---- precomputed similarities -----------------------------------------------------------------------------

    def _fit_precomputed(self, X, sample_weight, rng, control) -> None:
        if sample_weight is not None:
            raise ValueError(
                "sample_weight has no meaning with metric='precomputed': multiply the rows of the similarities"
            )
        matrix = read_matrix(X, must_be_square=True)
        n = self.n_features_in_ = matrix.shape[0]
        self.schema_, self.fit_report_ = None, FitReport()
        claim_folder(self, matrix)
        n_edges = matrix.nnz if sp.issparse(matrix) else n * n
        check_memory(
            BYTES_PER_EDGE * (n_edges + n), f"{n_edges:,} similarities", "keep the nearest ones only"
        )
        graph = matrix if sp.issparse(matrix) else _complete(matrix)
        if isinstance(self.preference, str):
            self.preference_ = _preference_of_graph(graph, sp.issparse(matrix))
        else:
            self.preference_ = _checked_preference(self.preference, n)
        edges = edges_of(graph, np.broadcast_to(self.preference_, n))
        chosen = self._exchange(edges, rng, control)
        self.labels_ = ordered_by_size(chosen)
        self.exemplars_ = chosen[np.unique(self.labels_, return_index=True)[1]]
        self.n_clusters_ = len(self.exemplars_)
        self.margins_ = _margins(edges, chosen, self.exemplars_)

    # ---- both ------------------------------------------------------------------------------------------------

    def _exchange(self, edges: Edges, rng: np.random.Generator, control: Control) -> np.ndarray:
        """Pass messages; the exemplar of each object."""
        damping = None if isinstance(self.damping, str) else float(self.damping)
        about = (edges.rows, edges.columns, edges.similarities, damping or 0.0, self.convergence_iter)
        found = pass_messages(
            edges,
            damping,
            self.max_iter,
            self.convergence_iter,
            rng,
            control=control,
            checkpoint=open_checkpoint(self.resume, 0, about),
        )
        note_stop(self.fit_report_, found.reason, f"the best exemplars of {found.n_iter} rounds are kept")
        chosen = read_exemplars(edges, found.exemplars)
        self.n_iter_, self.n_unsettled_, self.damping_ = found.n_iter, found.n_unsettled, found.damping
        self.converged_ = found.reason == "converged"
        self.n_edges_ = len(edges.similarities) - edges.n_objects
        self.net_similarity_ = net_similarity(edges, chosen)
        return chosen

    @reads_chunks
    def predict(self, X):
        """Cluster of the most similar exemplar.

        Parameters
        ----------
        X : rows like those of ``fit``, or similarities (new objects x objects of ``fit``)

        Returns
        -------
        ndarray (n_rows,)
            -1 if a row of a sparse matrix has no similarity to any exemplar.
        """
        if not self._is_precomputed:
            return self._nearest_exemplars(self._new_rows(X))[0]
        matrix = self._new_matrix(X)
        if not sp.issparse(matrix):
            return matrix[:, self.exemplars_].argmax(axis=1)
        part = matrix[:, self.exemplars_].tocoo()
        labels = np.full(matrix.shape[0], -1)
        # the most similar exemplar of a row comes last, of equals the first one
        order = np.lexsort((-part.col, part.data, part.row))
        labels[part.row[order]] = part.col[order]
        return labels


def _complete(S: np.ndarray) -> Any:
    """A dense matrix as the graph with all edges."""
    n = len(S)
    columns = np.tile(np.arange(n, dtype=np.int32), n)
    return sp.csr_array((S.ravel().copy(), columns, np.arange(0, n * n + 1, n)), shape=(n, n))


def _median_similarity(rows: Rows) -> float:
    """The median over pairs of distinct rows; of many rows, over a sample that is spread evenly over their order."""
    if rows.n_rows == 1:
        return 0.0
    if rows.n_rows > MEDIAN_ROWS:
        rows = rows.take(np.linspace(0, rows.n_rows - 1, MEDIAN_ROWS).astype(np.intp))
    D = rows.against(rows)
    return -float(np.median(D[np.triu_indices(rows.n_rows, 1)]))


def _preference_of_graph(graph: Any, is_sparse: bool) -> float:
    off = graph.data[graph.indices != np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))]
    if len(off) == 0:
        return 0.0
    return float(off.min() if is_sparse else np.median(off))


def _checked_preference(preference: Any, n: int) -> Any:
    values = np.asarray(preference, dtype=np.float64)
    if values.shape not in ((), (n,)) or not np.isfinite(values).all():
        raise ValueError(
            f"preference has the shape {values.shape} for {n} rows: give one finite number, one per row, or 'auto'"
        )
    return float(values) if values.ndim == 0 else values


def _margins(edges: Edges, chosen: np.ndarray, exemplars: np.ndarray) -> np.ndarray:
    """How much more similar each object is to its exemplar than to any other exemplar that it has an edge to."""
    is_exemplar = np.zeros(edges.n_objects, bool)
    is_exemplar[exemplars] = True
    others = is_exemplar[edges.columns] & (edges.columns != chosen[edges.rows])
    second = np.maximum.reduceat(np.where(others, edges.similarities, -np.inf), edges.starts)
    mine = np.where(edges.columns == chosen[edges.rows], edges.similarities, -np.inf)
    mine[edges.own] = np.where(is_exemplar, np.inf, -np.inf)  # an exemplar is most similar to itself
    return np.maximum.reduceat(mine, edges.starts) - second
