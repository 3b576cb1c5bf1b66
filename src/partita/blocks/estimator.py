"""RelationalBlocks: clusterings of rows and columns at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.blocks.fitting import BlocksRequest, BlocksResult, objects_of, sample_blocks
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
from partita.blocks.storage import check_blocks, check_schemas, check_trace, draws_from_plain, draws_to_plain
from partita.blocks.sweep import DIRECTED, TABLE, UNDIRECTED
from partita.engines.gibbs.chain import Schedule
from partita.engines.run import Control
from partita.estimator import (
    RUNNING_CONSTRAINTS,
    FitReport,
    HasClusterPrior,
    RunningMixin,
    TableEstimator,
    as_generator,
    claim_folder,
    diagnose_chains,
    have_converged,
    judge_chains,
    note_early_end,
)
from partita.estimator.array_laws import trace_laws
from partita.execution import check_memory
from partita.families import family_entry
from partita.partitions import bind, checked, log_mass, specify, with_concentration
from partita.posterior import Diagnostics
from partita.table import ColumnSchema, Schema
from partita.table.notes import PREDICT_CODES
from partita.trace import Trace, trace_bytes

MODES = {"table": TABLE, "directed": DIRECTED, "undirected": UNDIRECTED}


class RelationalBlocks(LinkPrediction, HasClusterPrior, ClusterMixin, RunningMixin, TableEstimator):
    """Infinite relational model: clusters of rows and of columns, with a distribution per pair of clusters.

    Every pair of a row cluster and a column cluster is a *block*, whose cells are draws from one distribution; its
    parameters are integrated out. Both partitions have Dirichlet process priors, so the numbers of clusters need not be
    known. A relation of objects with themselves (who likes whom) has one partition for rows and columns. Several
    relations over the same objects share their partitions, and each has its own parameters. Missing cells are left out
    of the likelihood, and can be predicted.

    Good for: tables and relations whose cells are all of one kind (yes or no, counts, ratings, measurements in one
    unit); link prediction. Not for: columns of different kinds or units (:class:`~partita.Mixture`), or columns with
    several different clusterings of the rows (:class:`~partita.CrossCat`).

    Parameters
    ----------
    family : "auto", str or pair, default="auto"
        The likelihood of a cell: "auto" (chosen by the kind of the cells), "bernoulli", "categorical", "gaussian",
        "poisson", "exponential", or a pair ``(name, options)``.
    relation : {"table", "directed", "undirected"}, default="table"
        "table": rows and columns are different objects, each with its own partition. "directed": rows and columns are
        the same objects, with one partition, and the cells (i, j) and (j, i) are two observations. "undirected": the
        same, but the cells (i, j) and (j, i) are one observation, and X must be symmetric.
    prior : str or prior, default="dirichlet_process"
        The prior of each partition: "dirichlet_process", "pitman_yor", "mfm", or a prior from ``partita.partitions``.
    concentration : float, default=None
        Concentration of the prior; None to learn it, separately for rows and columns.
    learn_hyper : bool, default=True
        Whether the hyper-parameters of the family are learned.
    n_chains : int, default=4
        Number of chains.
    n_draws : int, default=200
        Number of draws that each chain keeps.
    burn_in : int, default=200
        Number of iterations before the first draw.
    thin : int, default=1
        Number of iterations from one draw to the next.
    n_moves : int, default=20
        Number of split-merge moves per side and iteration.
    partition : {"vi", "binder", "map"}, default="vi"
        How the draws are combined into one partition of each side: the partition with the least expected variation of
        information or Binder loss, or the most probable draw.
    handle_unknown : {"missing", "error"}, default="missing"
        How ``predict`` treats values that were not seen in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Source of randomness; an int makes the result reproducible.
    time_limit : float, default=None
        Wall-clock seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, default=None
        Called after each iteration with a :class:`~partita.engines.run.Progress`; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) ends the fit with the draws so far instead of raising.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, default=None
        Where the work runs; the result does not depend on it.
    resume : path, default=None
        Folder for checkpoints: the same call after an interruption continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    row_labels_, column_labels_ : ndarray
        Clusters of rows and columns; cluster 0 is the largest. Both are equal unless ``relation="table"``, as are the
        other attributes of rows and columns.
    row_confidence_, column_confidence_ : ndarray
        Mean probability, over draws, of sharing a cluster with the other objects of the cluster.
    confidence_kind_ : str
        "co-clustering probability".
    n_row_clusters_, n_column_clusters_ : int
        Numbers of clusters.
    n_row_clusters_posterior_, n_column_clusters_posterior_ : dict
        Posterior probability of each number of clusters.
    n_clusters_prior_ : dict
        Prior probability of each number of row clusters. If the concentration is learned, this is the average over its
        prior.
    row_trace_, column_trace_ : Trace
        All draws.
    row_diagnostics_, column_diagnostics_ : Diagnostics
        Split R-hat, effective sample sizes, and a sentence on whether the number of clusters can be trusted.
    labels_, confidence_, n_clusters_, n_clusters_posterior_, trace_, diagnostics_
        The attributes of the rows under the names that all estimators use.
    block_values_ : ndarray (relations, row clusters, column clusters, values)
        Prediction of a cell in each block: the probabilities of the levels, or the mean in the user's units. A list of
        arrays if the relations differ in their number of levels.
    levels_ : list of tuple
        Levels of each relation; empty if cells are numbers.
    family_, family_name_
        The likelihood with its hyper-parameters averaged over the draws, and its name.
    concentration_ : tuple of float
        Concentration of each partition, averaged over the draws.
    prior_, weight_total_
        The prior of the rows with that concentration, and the number of rows.
    accepted_ : dict
        Number of split-merge moves with each outcome.
    fit_report_ : FitReport
        What was unusual about the data and the fit.
    converged_ : bool
        Whether all draws were made and the diagnostics trust the numbers of clusters.
    n_iter_ : int
        Number of iterations of the longest chain.
    schema_, n_features_in_, feature_names_in_
        Kinds, number and names of the columns.

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

    _array_laws: tuple[str, ...] = (
        "fitted.row_labels_ int (N) 0..R-1",
        "fitted.column_labels_ int (D) 0..C-1",
        "fitted.row_confidence_ float (N) 0..1 nan",
        "fitted.column_confidence_ float (D) 0..1 nan",
        "fitted._statistics float (R,C,S)",
        "fitted._missing.* int (m,2) 0..",
        "family.* number (...)",
        "drawn.labels.* int (B,o) 0..o-1",
        "drawn.families.*.* number (...)",
        "drawn.statistics float (E,S)",
        "drawn.shapes int (B,2) 1..",
        *(law.replace("traces.", "traces.*.") for law in trace_laws("traces", rows="o")),
    )
    _stored: ClassVar[tuple[str, ...]] = (
        "row_labels_",
        "column_labels_",
        "row_confidence_",
        "column_confidence_",
        "confidence_kind_",
        "family_name_",
        "concentration_",
        "accepted_",
        "n_iter_",
        "converged_",
        "_statistics",
        "_missing",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "family": "no_validation",
        "relation": [StrOptions(set(MODES))],
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
        relation="table",
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
        verbose=None,
    ):
        self.family = family
        self.relation = relation
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
        with self._control() as control, self._new_fit():
            relations = read_relations(X, kind_of_family(self.family), type(self).__name__)
            mode = MODES[self.relation]
            _check_square(relations, mode)
            self._remember(relations.schemas[0])
            self.fit_report_ = FitReport(relations.notes)
            meanings = [(c.name, c.kind, c.levels) for schema in relations.schemas for c in schema.columns]
            claim_folder(self, (meanings, relations.values))
            name, block = make_family(relations, self.family, mode == UNDIRECTED)
            result = sample_blocks(block, self._request(mode, relations, control))
            self._set_result(result, relations, name)
        self.fit_report_.warn()
        return self

    def _prior(self):
        prior = specify(self.prior) if isinstance(self.prior, str) else checked(self.prior)
        if prior.fixed_labels:
            raise ValueError(
                f"prior={self.prior!r} has fixed labels, but blocks need an exchangeable prior: use "
                "'dirichlet_process', 'pitman_yor' or 'mfm'"
            )
        return prior if self.concentration is None else with_concentration(prior, self.concentration)

    def _request(self, mode: int, relations: Relations, control: Control) -> BlocksRequest:
        shape = objects_of(mode, relations.shape)
        rng = as_generator(self.random_state)
        cells = len(relations.values) * relations.shape[0] * relations.shape[1]
        draws = control.most_draws(self.n_draws, self.thin)
        check_memory(
            cells * 24 + self.n_chains * (cells * 16 + trace_bytes(2 * draws, sum(shape), 200)),
            f"{self.n_chains} chains over {cells:,} cells",
            "lower n_chains or n_draws, or fit a sample of the rows",
        )
        return BlocksRequest(
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

    def _set_result(self, result: BlocksResult, relations: Relations, name: str) -> None:
        """Set the fitted attributes."""
        self._schemas, self.family_name_, self.family_ = relations.schemas, name, result.family
        self._statistics, self._drawn = result.statistics, result.drawn
        self._missing = tuple(
            np.argwhere(np.isnan(values) if values.dtype.kind == "f" else values < 0)
            for values in relations.values
        )
        self.concentration_, self.accepted_ = result.concentrations, result.accepted
        self.n_iter_ = result.n_iter
        self.row_labels_, self.column_labels_ = result.labels[0], result.labels[-1]
        self.row_confidence_, self.column_confidence_ = result.confidence[0], result.confidence[-1]
        self.confidence_kind_ = "co-clustering probability"
        n_draws = 0 if result.provisional else len(result.traces[0].labels)
        note_early_end(self.fit_report_, result.reason, n_draws, provisional=result.provisional)
        diagnostics = [
            judge_chains(self.fit_report_, trace, result.reason, provisional=result.provisional, of=side)
            for trace, side in zip(result.traces, ("rows", "columns"), strict=False)
        ]
        self.converged_ = all(have_converged(one, result.reason) for one in diagnostics)
        self._describe(result.traces, diagnostics)

    def _describe(self, traces: Sequence[Trace], diagnostics: Sequence[Diagnostics]) -> None:
        """Set the attributes that follow from others, after a fit and after a load."""
        self.row_trace_, self.column_trace_ = traces[0], traces[-1]
        self.row_diagnostics_, self.column_diagnostics_ = diagnostics[0], diagnostics[-1]
        self.trace_, self.diagnostics_ = self.row_trace_, self.row_diagnostics_
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
        self.levels_ = [schema.columns[0].levels for schema in self._schemas]
        self.block_values_ = self._block_values()

    def _block_values(self) -> Any:
        """Predictions of the blocks in the user's units."""
        K, J, P = self._statistics.shape
        flat, kind = self._statistics.reshape(-1, P), self._kind
        values = [
            self._in_units(block_values(self.family_, flat, m, kind), m).reshape(K, J, -1)
            for m in range(len(self._schemas))
        ]
        return np.stack(values) if len({v.shape for v in values}) == 1 else values

    # ---- groups in words -----------------------------------------------------------------------------------

    def _own_profiles(self) -> list[dict[str, Any]]:
        """The groups of rows by their values for each group of columns, in the first relation."""
        values = np.asarray(self.block_values_[0])  # [row cluster, column cluster, value]
        sizes = np.bincount(self.row_labels_).astype(float)
        if self._kind in ("binary", "categorical"):
            return [
                {
                    self._group_of_columns(j): {"probabilities": P}
                    for j, P in enumerate(values.transpose(1, 0, 2))
                }
            ]
        if self._kind == "count":
            return [{self._group_of_columns(j): {"rate": v} for j, v in enumerate(values[:, :, 0].T)}]
        spread = np.sqrt(np.average((values[:, :, 0] - np.average(values[:, :, 0], 0, sizes)) ** 2, 0, sizes))
        return [
            {
                self._group_of_columns(j): {"mean": v, "sd": np.full(len(v), spread[j])}
                for j, v in enumerate(values[:, :, 0].T)
            }
        ]

    @staticmethod
    def _group_of_columns(j: int) -> str:
        return f"columns of group {j + 1}"

    def _column_of(self, name: str) -> ColumnSchema:
        return replace(self._schemas[0].columns[0], name=name)

    # ---- new rows ------------------------------------------------------------------------------------------

    def _log_joint_of_rows(self, X) -> np.ndarray:
        check_is_fitted(self)
        relations = read_again(X, self._schemas, type(self).__name__, self.handle_unknown)
        FitReport(note for note in relations.notes if note.code in PREDICT_CODES).warn()
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

        The blocks are those of ``row_labels_`` and ``column_labels_``; new rows do not form new clusters. Unless
        ``relation="table"``, a row holds the cells of a new object with the training objects.

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
        """Fit the blocks and return ``row_labels_``."""
        return self.fit(X).row_labels_

    # ---- storage -------------------------------------------------------------------------------------------

    def _state(self):
        n_sides = len(self._drawn.labels)
        return super()._state() | {
            "schemas": [schema.to_dict() for schema in self._schemas],
            "family": list(self.family_),
            "traces": [self.row_trace_, self.column_trace_][:n_sides],
            "drawn": draws_to_plain(self._drawn),
        }

    def _restore(self, state):
        super()._restore(state)
        self._schemas = tuple(Schema.from_dict(schema) for schema in state["schemas"])
        family_class = family_entry(self.family_name_).cls
        self.family_ = family_class(*state["family"])
        self._drawn = draws_from_plain(state["drawn"], family_class)
        labels = (self.row_labels_, self.column_labels_)
        check_blocks(self.family_, self._statistics, self._drawn, labels, len(self._schemas))
        if len(self.column_labels_) != self.n_features_in_:
            raise ValueError("the column labels do not match the schema")
        shape = tuple(len(z) for z in labels)
        if any((missing >= shape).any() for missing in self._missing):
            raise ValueError("missing cells lie outside of the relation")
        check_schemas(self._schemas, self.family_name_, self.family_, len(self.column_labels_))
        for trace, z in zip(state["traces"], labels, strict=False):
            check_trace(trace, len(z))
        provisional = "provisional" in self.fit_report_
        diagnostics = [diagnose_chains(trace, provisional=provisional) for trace in state["traces"]]
        self._describe(state["traces"], diagnostics)


def _check_square(relations: Relations, mode: int) -> None:
    """Refuse relations of objects with themselves that are not square, or not symmetric if undirected."""
    R, D = relations.shape
    if mode == TABLE:
        return
    if R != D:
        raise ValueError(
            f"a directed or undirected relation has as many rows as columns, but X has {R} rows and {D} columns: use "
            "relation='table' for two kinds of objects"
        )
    if mode == DIRECTED:
        return
    for m, values in enumerate(relations.values):
        unequal = (values != values.T) & ~((values != values) & (values.T != values.T))
        for i, j in np.argwhere(unequal)[:1]:
            raise ValueError(
                f"relation {m} is not symmetric: the cells ({i}, {j}) and ({j}, {i}) differ; give both the same value "
                "(or mark both as missing), or use relation='directed'"
            )
