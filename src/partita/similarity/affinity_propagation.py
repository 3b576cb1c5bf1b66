"""Affinity propagation: exemplars by messages, on all pairs or on a sparse graph."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from partita.estimator import as_generator, warn_user
from partita.execution.memory import check_memory
from partita.similarity.base import SimilarityEstimator, largest_first, read_matrix
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

__all__ = ["AffinityPropagation"]

MOST_DENSE = 2000  # rows up to which all pairs are messages by default
N_NEIGHBORS = 20
PAIRS_FROM = 1000  # rows whose pairs stand for all where the median similarity is taken


class AffinityPropagation(SimilarityEstimator):
    """Clusters around exemplars, found by passing messages between objects (Frey and Dueck 2007).

    Good for: exemplars that are rows of the data; any similarity, also ready ones, sparse or not symmetric; no number
    of clusters to give. Not for: large clusters of a sparse graph, as every member needs an edge to the exemplar (with
    20 neighbours clusters have a few dozen members: cluster the exemplars again); clusters of any other shape than
    round. There are no probabilities; ``margins_`` says how clear each choice is.

    Parameters
    ----------
    metric : str or mapping, default "auto"
        How rows of a table are compared, as in :func:`partita.similarity.dissimilarity`; the similarity is minus the
        dissimilarity. "precomputed": X holds similarities s(i, k), how well k would serve as the exemplar of i, as a
        dense array or as a scipy sparse matrix (what it does not store is impossible; its diagonal is not read).
    n_neighbors : int, "auto" or None, default "auto"
        For tables: keep the similarities to this many nearest rows (and to those that have the row among theirs).
        None keeps all pairs. "auto" is None up to 2,000 different rows, 20 beyond.
    preference : float, array or "auto", default "auto"
        s(k, k), what it costs to make k an exemplar: the lower, the fewer clusters. "auto" is the median similarity of
        two different rows; of a sparse precomputed matrix its smallest similarity.
    damping : float in [0.5, 1) or "auto", default "auto"
        Share of the old message that is kept. "auto" starts at 0.5 and rises where the messages find no rest.
    max_iter : int, default 1000
        Rounds of messages.
    convergence_iter : int, default 15
        Rounds without a change of the exemplars that count as convergence.
    column_weights : "balanced", array or mapping, optional
        Weights of the columns in the dissimilarity.
    orders : mapping, optional
        Levels of ordinal columns, from low to high.
    kinds : str, mapping or sequence, optional
        Kinds of the columns; inferred by default.
    standardize : bool, default True
        Whether numbers are compared in units of their standard deviation.
    handle_unknown : {"missing", "error"}, default "missing"
        What to do with categories in ``predict`` that ``fit`` has not seen.
    random_state : int, RandomState, Generator, SeedSequence or None
        Breaks ties: similarities change in their last digit.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
    exemplars_ : ndarray (n_clusters,)
        The row that is the exemplar of each cluster.
    margins_ : ndarray (n_rows,)
        By how much each row is more similar to its exemplar than to the next one; inf where there is no other (and,
        with ready similarities, for exemplars).
    preference_ : float or ndarray
        The preference that was used.
    net_similarity_ : float
        What was maximised (25.39), over the edges that took part.
    n_edges_ : int
        How many similarities took part.
    n_iter_ : int
        Rounds of messages.
    converged_ : bool
        Whether the exemplars came to rest.
    n_restless_ : int
        How many different rows still went in and out of the exemplars at the end: 0 if converged.
    damping_ : float
        The strongest damping at the end.
    fit_report_ : FitReport
        What was unusual about the data.
    schema_ : Schema
        The columns, kinds, levels and units that ``predict`` reads new rows by; None with ready similarities.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the columns have names.

    Notes
    -----
    Equal rows of a table are one object of their joint weight, which changes nothing but the median. Rows of a table
    go to the nearest exemplar, whether there is an edge or not, so ``predict`` on them gives ``labels_``.

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

    _parameter_constraints: dict[str, Any] = {
        **SimilarityEstimator._parameter_constraints,
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

    def fit(self, X, y=None, sample_weight=None):
        """Find exemplars.

        Parameters
        ----------
        X : array or data frame (rows x columns), or similarities (objects x objects) with ``metric="precomputed"``
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            How many rows each one stands for; a row of weight 0 takes no part, but gets a label.

        Returns
        -------
        self
        """
        self._validate_params()
        with self._whole_or_not_at_all():
            self._forget()
            before = set(self.__dict__)
            rng = as_generator(self.random_state)
            if self._is_given:
                self._fit_given(X, sample_weight, rng)
            else:
                self._fit_table(X, sample_weight, rng)
            self._fitted_names = sorted(set(self.__dict__) - before)
        self.fit_report_.warn()
        if not self.converged_:
            warn_user(
                f"affinity propagation found no rest in {self.n_iter_} rounds (damping {self.damping_:.3g}), "
                f"{self.n_restless_} candidates still changed: the labels are those of the best exemplars met; raise "
                "max_iter or damping, or change preference",
                ConvergenceWarning,
            )
        return self

    # ---- tables --------------------------------------------------------------------------------------------

    def _fit_table(self, X, sample_weight, rng) -> None:
        rows, weights, sorts = self._open_table(X, sample_weight)
        preference = self._preference_of_rows(rows.n_rows, sorts)
        graph = self._graph()
        self._note_strangers()
        # m equal rows under one exemplar have m times the similarity; the exemplar is one of them
        graph.data *= np.repeat(weights, np.diff(graph.indptr))
        chosen = self._exchange(edges_of(graph, np.broadcast_to(preference, len(weights))), rng)
        order = largest_first(chosen, weights)
        self.exemplars_ = self._first_rows[order]
        self._exemplar_sorts = order
        self.labels_, self.margins_ = self._nearest_exemplars(rows)
        self.n_clusters_ = len(order)

    def _preference_of_rows(self, n_rows: int, sorts: np.ndarray) -> Any:
        """A number, or one for each sort of rows."""
        if isinstance(self.preference, str):
            self.preference_ = _median_similarity(self._rows)
            return self.preference_
        given = self.preference_ = _checked_preference(self.preference, n_rows)
        if isinstance(given, float):
            return given
        # equal rows: the one that is the cheapest exemplar
        out = np.full(self._rows.n_rows, -np.inf)
        np.maximum.at(out, sorts[sorts >= 0], given[sorts >= 0])
        return out

    def _graph(self) -> Any:
        n = self._rows.n_rows
        k = self.n_neighbors
        if isinstance(k, str):
            k = None if n <= MOST_DENSE else N_NEIGHBORS
            if k is not None:
                self.fit_report_.add(
                    "sparse", f"{n:,} different rows: similarities to the {k} nearest of each are kept"
                )
        if k is None or k >= n - 1:
            what = f"messages between all pairs of {n:,} rows"
            check_memory(BYTES_PER_EDGE * n * n, what, "keep the nearest ones, n_neighbors=20")
            return _complete(-self._rows.against(self._rows))
        check_memory(BYTES_PER_EDGE * 2 * n * k, f"{k} neighbours of {n:,} rows", "keep fewer neighbours")
        graph = join_graph(nearest(self._rows, k))
        graph.data *= -1.0
        return graph

    def _nearest_exemplars(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        exemplars = self._rows.take(self._exemplar_sorts)
        found = nearest(exemplars, min(2, exemplars.n_rows), rows)
        if exemplars.n_rows == 1:
            return np.zeros(rows.n_rows, np.int64), np.full(rows.n_rows, np.inf)
        margins = found.dissimilarities[:, 1] - found.dissimilarities[:, 0]
        return found.rows[:, 0].astype(np.int64), margins

    # ---- ready similarities ----------------------------------------------------------------------------------

    def _fit_given(self, X, sample_weight, rng) -> None:
        from partita.estimator import FitReport

        if sample_weight is not None:
            raise ValueError(
                "sample_weight has no meaning with metric='precomputed': multiply the rows of the similarities"
            )
        matrix = read_matrix(X, square=True)
        n = self.n_features_in_ = matrix.shape[0]
        self.schema_, self.fit_report_ = None, FitReport()
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
        chosen = self._exchange(edges, rng)
        order = self.exemplars_ = largest_first(chosen)
        place = np.full(n, -1)
        place[order] = np.arange(len(order))
        self.labels_, self.n_clusters_ = place[chosen].astype(np.int64), len(order)
        self.margins_ = _margins(edges, chosen, order)

    # ---- both ------------------------------------------------------------------------------------------------

    def _exchange(self, edges: Edges, rng: np.random.Generator) -> np.ndarray:
        damping = None if isinstance(self.damping, str) else float(self.damping)
        passed = pass_messages(edges, damping, self.max_iter, self.convergence_iter, rng)
        chosen = read_exemplars(edges, passed.exemplars)
        self.n_iter_, self.n_restless_, self.damping_ = passed.n_iter, passed.n_restless, passed.damping
        self.converged_ = passed.n_restless == 0
        self.n_edges_ = len(edges.similarities) - edges.n_objects
        self.net_similarity_ = net_similarity(edges, chosen)
        return chosen

    def predict(self, X):
        """The cluster of the most similar exemplar.

        Parameters
        ----------
        X : rows like those of ``fit``, or similarities (new objects x objects of ``fit``)

        Returns
        -------
        ndarray (n_rows,)
            -1 where a row of a sparse matrix holds no similarity to any exemplar.
        """
        if not self._is_given:
            return self._nearest_exemplars(self._new_rows(X))[0]
        matrix = self._new_matrix(X)
        if not sp.issparse(matrix):
            return matrix[:, self.exemplars_].argmax(axis=1)
        part = matrix[:, self.exemplars_].tocoo()
        labels = np.full(matrix.shape[0], -1)
        order = np.lexsort(
            (-part.col, part.data, part.row)
        )  # the most similar of a row last, the first of equals
        labels[part.row[order]] = part.col[order]
        return labels


def _complete(S: np.ndarray) -> Any:
    """A dense matrix as the graph with all edges."""
    n = len(S)
    columns = np.tile(np.arange(n, dtype=np.int32), n)
    return sp.csr_array((S.ravel().copy(), columns, np.arange(0, n * n + 1, n)), shape=(n, n))


def _median_similarity(rows: Rows) -> float:
    """Of two different rows; among many, of some that are spread evenly over their order."""
    if rows.n_rows == 1:
        return 0.0
    if rows.n_rows > PAIRS_FROM:
        rows = rows.take(np.linspace(0, rows.n_rows - 1, PAIRS_FROM).astype(np.intp))
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
            f"preference has the shape {values.shape} for {n} rows: give one finite number, one a row, or 'auto'"
        )
    return float(values) if values.ndim == 0 else values


def _margins(edges: Edges, chosen: np.ndarray, exemplars: np.ndarray) -> np.ndarray:
    """How much more similar each object is to its exemplar than to any other it has an edge to."""
    is_exemplar = np.zeros(edges.n_objects, bool)
    is_exemplar[exemplars] = True
    others = is_exemplar[edges.columns] & (edges.columns != chosen[edges.rows])
    second = np.maximum.reduceat(np.where(others, edges.similarities, -np.inf), edges.starts)
    mine = np.where(edges.columns == chosen[edges.rows], edges.similarities, -np.inf)
    mine[edges.own] = np.where(is_exemplar, np.inf, -np.inf)  # nothing is as similar to an exemplar as itself
    return np.maximum.reduceat(mine, edges.starts) - second
