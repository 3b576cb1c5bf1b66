"""The estimator of blocks: rows and columns clustered at once."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.blocks.fitting import Request, Sampled, objects_of, sample_blocks
from partita.blocks.links import LinkPrediction
from partita.blocks.predicting import block_values, score_new_rows
from partita.blocks.reading import (
    Relations,
    cells_of,
    kind_of_family,
    make_family,
    read_again,
    read_relations,
)
from partita.blocks.state import restore_state, saved_state
from partita.blocks.sweep import DIRECTED, TABLE, UNDIRECTED
from partita.engines.gibbs.chain import Schedule
from partita.engines.run import Control
from partita.estimator import (
    RUNNING_CONSTRAINTS,
    FitReport,
    RunningMixin,
    TableEstimator,
    as_generator,
    diagnose_chains,
    judge_chains,
    note_early_end,
)
from partita.execution import check_memory
from partita.families import family_entry
from partita.partitions import StickBreaking, bind, checked, log_mass, specify, with_concentration
from partita.trace import trace_bytes


class RelationalBlocks(LinkPrediction, ClusterMixin, RunningMixin, TableEstimator):
    """Infinite relational model: rows and columns fall into clusters, and every pair of clusters is a block of its own.

    Which rows go together, which columns go together, and what do they have to do with each other? Cells of one block
    are draws from one distribution, whose parameters are integrated out; both partitions come from Dirichlet
    processes, so that neither number of clusters has to be known. A *square* relation (who likes whom) has one
    partition for rows and columns. Several relations over the same objects share their partitions, each with
    parameters of its own. Missing cells are left out of the likelihood and can be predicted.

    Good for: tables and relations whose cells are all of one sort (yes or no, counts, ratings, measurements in one
    unit); link prediction. Not for: columns of different sorts or units (``Mixture``), or columns that group the rows
    in several ways (``CrossCat``).

    Parameters
    ----------
    family : "auto", str or pair, default "auto"
        The likelihood of a cell: "auto" (by the kind of the cells), "bernoulli", "categorical", "gaussian",
        "poisson", "exponential", or a pair ``(name, options)``.
    square : bool or {"directed", "undirected"}, default False
        Whether rows and columns are the same objects, with one partition. "directed" (or True): the cell (i, j) is
        another datum than (j, i). "undirected": they are one and the same, and X must be symmetric.
    prior : str or prior, default "dirichlet_process"
        The prior of each partition: "dirichlet_process", "pitman_yor", "mfm", or one from ``partita.partitions``.
    concentration : float, optional
        Held fixed if given, otherwise learned, for rows and columns apart.
    learn_hyper : bool, default True
        Whether the hyper-parameters of the family are learned.
    n_chains, n_draws, burn_in, thin : int
        Chains, draws of each, iterations before the first draw, and iterations from one draw to the next.
    n_moves : int, default 20
        Split-merge moves of each side in an iteration.
    partition : {"vi", "binder", "map"}, default "vi"
        The partition that sums the draws up: of least expected variation of information, of least Binder loss, or the
        most probable draw.
    handle_unknown : {"missing", "error"}, default "missing"
        What ``predict`` does with values that were not seen in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress`; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps what there is instead of raising.
    n_jobs : int, optional
        Threads; the answer does not depend on their number.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the work runs; the answer does not depend on it.
    resume : path, optional
        A folder that keeps how far the fit has come: the same call after a kill goes on from there.
    verbose : bool, default=False
        Print a line per iteration to standard error.

    Attributes
    ----------
    row_labels_, column_labels_ : ndarray
        Clusters of rows and columns, the largest first; equal for a square relation.
    row_confidence_, column_confidence_ : ndarray
        Mean posterior probability of sharing a cluster with the others of one's own.
    n_row_clusters_, n_column_clusters_ : int
    n_row_clusters_posterior_, n_column_clusters_posterior_ : dict
        Posterior probability of each number of clusters.
    row_trace_, column_trace_ : Trace
        All draws.
    row_diagnostics_, column_diagnostics_ : Diagnostics
        Split R-hat and effective sample sizes and a sentence on whether to trust the numbers of clusters.
    labels_, confidence_, n_clusters_, n_clusters_posterior_, trace_
        Those of the rows, under the names that all clusterings have.
    block_values_ : ndarray (relations, row clusters, column clusters, values)
        What each block predicts of a cell: the probabilities of the levels, or one mean in the user's units. A list of
        arrays, if the relations differ in their number of levels.
    levels_ : list of tuple
        Levels of each relation; empty where cells are numbers.
    family_, family_name_
        The likelihood with its hyper-parameters averaged over the draws, and its name.
    concentration_ : tuple of float
        Of rows and columns, averaged over the draws.
    prior_, weight_total_
        The prior of the rows at that concentration, and how many rows there are.
    accepted_ : dict
        How often split-merge moves were accepted or rejected.
    fit_report_ : FitReport
        What was unusual about the data and the run.
    converged_ : bool
        Whether the diagnostics give no reason to doubt the numbers of clusters.
    n_iter_ : int
        Iterations of the longest chain.
    schema_, n_features_in_, feature_names_in_
        The columns, as they were read.

    References
    ----------
    Kemp, Tenenbaum, Griffiths, Yamada and Ueda (2006), Learning systems of concepts with an infinite relational model.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import RelationalBlocks
    >>> rng = np.random.default_rng(0)
    >>> rows, columns = np.repeat([0, 1], 10), np.repeat([0, 1, 2], 5)
    >>> p = np.array([[0.9, 0.1, 0.9], [0.1, 0.9, 0.9]])[rows][:, columns]
    >>> X = (rng.random(p.shape) < p).astype(float)
    >>> X[0, 0] = np.nan
    >>> model = RelationalBlocks(n_chains=2, n_draws=100, burn_in=50, random_state=0).fit(X)
    >>> model.n_row_clusters_, model.n_column_clusters_
    (2, 3)
    >>> model.predict_cells()  # of the missing cell
    array([1.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "family": "no_validation",
        "square": ["boolean", StrOptions({"directed", "undirected"})],
        "prior": "no_validation",
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "n_moves": [Interval(Integral, 0, None, closed="left")],
        "partition": [StrOptions({"vi", "binder", "map"})],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
        **RUNNING_CONSTRAINTS,
    }

    def __init__(
        self,
        family="auto",
        *,
        square=False,
        prior="dirichlet_process",
        concentration=None,
        learn_hyper=True,
        n_chains=4,
        n_draws=200,
        burn_in=200,
        thin=1,
        n_moves=20,
        partition="vi",
        handle_unknown="missing",
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=False,
    ):
        self.family = family
        self.square = square
        self.prior = prior
        self.concentration = concentration
        self.learn_hyper = learn_hyper
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.n_moves = n_moves
        self.partition = partition
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X, y=None):
        """Fit the blocks.

        Parameters
        ----------
        X : array or data frame (rows, columns); or several relations over the same rows and columns
            Several relations are a list of matrices, or an array (relations, rows, columns).
        y : ignored

        Returns
        -------
        RelationalBlocks
        """
        self._validate_params()
        control = self._control()
        with self._whole_or_not_at_all():
            relations = read_relations(X, kind_of_family(self.family), type(self).__name__)
            mode = self._mode()
            _check_square(relations, mode)
            self._remember(relations.schemas[0])
            self.fit_report_ = FitReport(relations.notes)
            name, block = make_family(relations, self.family, mode == UNDIRECTED)
            found = sample_blocks(block, self._request(mode, relations, control))
            self._settle(found, relations, name)
        self.fit_report_.warn()
        return self

    def _mode(self) -> int:
        if isinstance(self.square, str):
            return UNDIRECTED if self.square == "undirected" else DIRECTED
        return DIRECTED if self.square else TABLE

    def _prior(self):
        prior = specify(self.prior) if isinstance(self.prior, str) else checked(self.prior)
        if isinstance(prior, StickBreaking):
            raise ValueError(
                "prior='stick_breaking' has labels of its own, and blocks want an exchangeable prior: use "
                "'dirichlet_process', 'pitman_yor' or 'mfm'"
            )
        return prior if self.concentration is None else with_concentration(prior, self.concentration)

    def _request(self, mode: int, relations: Relations, control: Control) -> Request:
        shape = objects_of(mode, relations.shape)
        rng = as_generator(self.random_state)
        cells, draws = len(relations.values) * relations.shape[0] * relations.shape[1], self.n_draws
        check_memory(
            cells * 24 + self.n_chains * (cells * 16 + trace_bytes(2 * draws, sum(shape), 200)),
            f"{self.n_chains} chains over {cells:,} cells",
            "ask for fewer chains or draws, or fit a sample of the rows",
        )
        return Request(
            mode=mode,
            shape=shape,
            priors=(self._prior(),) * len(shape),
            schedule=Schedule(
                n_draws=self.n_draws,
                burn_in=self.burn_in,
                thin=self.thin,
                n_moves=self.n_moves,
                learn_concentration=self.concentration is None,
                learn_likelihood=self.learn_hyper,
            ),
            seeds=[int(stream.integers(2**63)) for stream in rng.spawn(self.n_chains)],
            partition=self.partition,
            control=control,
            executor=self._make_executor(),
            folder=self.resume,
            rng=rng,
        )

    def _settle(self, found: Sampled, relations: Relations, name: str) -> None:
        """Attributes of a fitted model."""
        self._schemas, self.family_name_, self.family_ = relations.schemas, name, found.family
        self._statistics, self._drawn = found.statistics, found.drawn
        self._missing = tuple(
            np.argwhere(np.isnan(values) if values.dtype.kind == "f" else values < 0)
            for values in relations.values
        )
        self.concentration_, self.accepted_, self.n_iter_ = found.concentrations, found.accepted, found.n_iter
        self.row_labels_, self.column_labels_ = found.labels[0], found.labels[-1]
        self.row_confidence_, self.column_confidence_ = found.confidence[0], found.confidence[-1]
        n_draws = 0 if found.provisional else len(found.traces[0].labels)
        note_early_end(self.fit_report_, found.reason, n_draws, provisional=found.provisional)
        self._settle_draws(found.traces)
        self._describe()
        self._judge(found)

    def _settle_draws(self, traces) -> None:
        self.row_trace_, self.column_trace_ = traces[0], traces[-1]
        self.trace_ = self.row_trace_
        self.labels_, self.confidence_ = self.row_labels_, self.row_confidence_
        self.n_row_clusters_ = int(self.row_labels_.max()) + 1
        self.n_column_clusters_ = int(self.column_labels_.max()) + 1
        self.n_clusters_ = self.n_row_clusters_
        provisional = "provisional" in self.fit_report_
        self.n_row_clusters_posterior_ = {} if provisional else self.row_trace_.n_clusters_posterior
        self.n_column_clusters_posterior_ = {} if provisional else self.column_trace_.n_clusters_posterior
        self.n_clusters_posterior_ = self.n_row_clusters_posterior_
        prior = with_concentration(self._prior(), self.concentration_[0])
        if hasattr(prior, "discount"):
            prior = prior._replace(discount=float(self.row_trace_.discount.mean()))
        self.weight_total_ = float(len(self.row_labels_))
        self.prior_ = bind(prior, self.weight_total_)
        self.row_diagnostics_ = diagnose_chains(self.row_trace_, provisional=provisional)
        self.column_diagnostics_ = self.row_diagnostics_
        if len(traces) > 1:
            self.column_diagnostics_ = diagnose_chains(self.column_trace_, provisional=provisional)

    def _describe(self) -> None:
        """What blocks predict, in the user's units."""
        self.levels_ = [schema.columns[0].levels for schema in self._schemas]
        K, J, P = self._statistics.shape
        flat, kind = self._statistics.reshape(-1, P), self._kind
        values = [
            self._in_units(block_values(self.family_, flat, m, kind), m).reshape(K, J, -1)
            for m in range(len(self._schemas))
        ]
        same = len({v.shape for v in values}) == 1
        self.block_values_ = np.stack(values) if same else values

    def _judge(self, found: Sampled) -> None:
        """Notes on what speaks against trusting the numbers of clusters."""
        sides = {"rows": self.row_trace_}
        if self._mode() == TABLE:
            sides["columns"] = self.column_trace_
        diagnosed = [
            judge_chains(self.fit_report_, trace, found.reason, provisional=found.provisional, of=side)
            for side, trace in sides.items()
        ]
        self.converged_ = found.reason == "done" and all(one.trust_n_clusters for one in diagnosed)

    # ---- new rows ------------------------------------------------------------------------------------------

    def _log_joint_of_rows(self, X) -> np.ndarray:
        check_is_fitted(self)
        relations = read_again(X, self._schemas, type(self).__name__, self.handle_unknown)
        FitReport(note for note in relations.notes if note.code == "unknown_levels").warn()
        n = np.bincount(self.row_labels_).astype(float)
        log_weights = np.empty(len(n))
        log_mass(self.prior_, n, len(n), log_weights)
        log_weights -= np.logaddexp.reduce(log_weights)
        data = self._data(cells_of(relations, family_entry(self.family_name_)))
        return score_new_rows(
            self.family_, self._statistics, log_weights, self.column_labels_, data, relations.shape[0]
        )

    def predict_proba(self, X):
        """Probability of each row cluster for each new row, given the clusters of the columns.

        The blocks are those of ``row_labels_`` and ``column_labels_``; no new cluster is opened. For a square relation
        a row holds what a new object says of the old ones.

        Parameters
        ----------
        X : array or data frame (new rows, columns); several relations as in ``fit``

        Returns
        -------
        ndarray (new rows, row clusters)
        """
        L = self._log_joint_of_rows(X)
        return np.exp(L - np.logaddexp.reduce(L, axis=1)[:, None])

    def predict(self, X):
        """Most probable row cluster of each new row."""
        return self._log_joint_of_rows(X).argmax(axis=1)

    def fit_predict(self, X, y=None):
        """Fit, and return ``row_labels_``."""
        return self.fit(X).row_labels_

    # ---- scikit-learn and storage ----------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.pairwise = False
        return tags

    def _state(self):
        return saved_state(self)

    def _restore(self, state):
        restore_state(self, state)


def _check_square(relations: Relations, mode: int) -> None:
    R, D = relations.shape
    if mode == TABLE:
        return
    if R != D:
        raise ValueError(
            f"square relations have as many rows as columns, and X has {R} rows and {D} columns: use square=False for "
            "two kinds of objects"
        )
    if mode == DIRECTED:
        return
    for m, values in enumerate(relations.values):
        unequal = (values != values.T) & ~((values != values) & (values.T != values.T))
        for i, j in np.argwhere(unequal)[:1]:
            raise ValueError(
                f"relation {m} is not symmetric: the cells ({i}, {j}) and ({j}, {i}) differ; give both the same value "
                "(or both missing), or use square='directed'"
            )
