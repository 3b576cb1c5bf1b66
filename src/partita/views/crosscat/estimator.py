"""CrossCat: several clusterings of the rows of a table, each from its own columns."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from partita.engines.gibbs.chain import average_families, cache_dtype
from partita.engines.passes.rows import normalized
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, as_generator, note_stop, sum_probabilities, warn_user
from partita.execution import ChunkSource, check_memory
from partita.families import Block
from partita.families.columns import put_columns
from partita.fitting.grain import GrainEvidence, confidence_in, joined_profiles
from partita.fitting.out_of_core import predict_blocks, reads_chunks
from partita.fitting.request import kinds_asked
from partita.fitting.sampled import ReadsSample
from partita.posterior import Alternative, Grain, GrainLevel, point_estimate
from partita.table import Table
from partita.views.crosscat import sampling
from partita.views.crosscat.depth_choice import find_depths
from partita.views.crosscat.grain import view_evidence, view_grains
from partita.views.crosscat.layout import Layout, lay_out
from partita.views.crosscat.row_factors import real_cells, real_columns
from partita.views.depths import Depths, has_counts, with_mean_depths
from partita.views.draws import Draw, columns_of, n_counted_views, view_factors
from partita.views.estimator import ViewsEstimator, estimate_draw
from partita.views.new_rows import place_rows
from partita.views.nuisance import MeanRowFactors, mean_row_factors, remove_row_factors
from partita.views.overlapping.additive import read_reals
from partita.views.overlapping.row_factors import NO_ROW_FACTORS, FirstRowFactors, find_row_factors
from partita.views.predictive import log_states
from partita.views.profiles import factor_statistics
from partita.views.settling import length_asked
from partita.views.summary import one_partition, row_confidence, summarize_views

INFERENCES = {"gibbs": sampling.fit_chains, "vb": sampling.fit_vb, "search": sampling.fit_search}
MAX_VB_ROWS = 50_000  # that "vb" is fitted to; its draws have labels for each of them
MAX_SMALL_TABLE = 100_000  # cells
BURN_IN_SMALL, BURN_IN_LARGE = 50, 10  # of a single chain; iterations of small tables are cheap
SEARCH_TIME_SHARE = 0.5  # of the time limit, for the search for row factors


class CrossCat(ReadsSample, ViewsEstimator):
    """Several clusterings of one table: groups of columns (views), and a clustering of the rows in each view.

    A Dirichlet process assigns every column to one *view*. In each view another Dirichlet process assigns the rows to
    clusters, and given the clusters all cells are independent. Columns may be real, count, binary or categorical, in
    any combination, with missing cells anywhere.

    Good for tables whose columns fall into groups with different clusterings of the rows, for finding which columns
    depend on each other, and for queries about single cells. Not for columns that belong to several clusterings at
    once: a column has exactly one view (see :class:`~partita.OverlappingViews`).

    Parameters
    ----------
    family : "auto", str, pair or mapping, default="auto"
        The likelihood of each column, as in :class:`~partita.Mixture`: "gaussian", "exponential", "poisson",
        "bernoulli" or "categorical". Families of several columns (full covariances, count vectors) are not allowed.
        With "auto", real columns are prepared in tables of at least 50 rows and at most 30 of them: a column with a
        lump (one value far more frequent than the others) has two parts, whether a cell has it and the value
        elsewhere, which share their view; a skewed column is transformed if that has more evidence; and a tied value
        stands for the interval around it. ``family={"real": ("auto", {"lumps": False, "powers": False, "ties":
        False})}`` switches these steps off, ``family={"real": "gaussian"}`` all of them.
    inference : {"gibbs", "vb", "search"}, default="gibbs"
        "gibbs": chains that sample the views and the clusters from the posterior. "vb": variational Bayes, with
        independent draws from its approximation. "search": the most probable state that is found by short chains and
        coordinate ascent. Chains draw the values of ties anew in each iteration; the others keep one draw of them from
        before the fit.
    together, apart : sequence of sequences of columns, default=None
        Constraints on columns (names or numbers). The columns of a group of ``together`` share a view; no two columns
        of a group of ``apart`` do.
    concentration, view_concentration : float, default=None
        Concentration of the clusters in each view, and of the views; by default they are learned.
    learn_hyper : bool, default=True
        Whether the hyper-parameters of the columns are learned.
    nuisance : "auto" or int, default="auto"
        Number of continuous factors of a row that all real columns share beside the views, such as the brightness of an
        image, as in :class:`~partita.OverlappingViews`. Chains and "search" draw them; "vb" holds them at their first
        values. "auto" also gives groups of columns factors of their own, which correlate them inside clusters. Counts
        have one such factor, the depth of a row, by which all its counts are multiplied, as by the length of a
        document; it is taken into the model if that has more evidence, or if a number above 0 is given. 0 for a model
        without.
    gain : bool, default=True
        Whether the means of the clusters may grow with the row factors, as in :class:`~partita.OverlappingViews`. "vb"
        has no gains.
    n_chains : int, default=4
        Number of chains (with "search": of starts). Each chain starts from views that are found by screening the
        columns for dependence, with its own threshold.
    n_draws : int, default=None
        Number of draws that each chain keeps. None: chains run until every other of them comes to the views of the
        others (at most 70 iterations, or 30 for tables of 100,000 cells or more), and keep at least 24 draws in all. A
        single chain, and "vb", have 20 draws.
    burn_in : int, default=None
        Number of iterations before the first draw. None: half of the iterations after which the chains agreed; for a
        single chain 50, or 10 for tables of 100,000 cells or more.
    thin : int, default=1
        Number of iterations from one draw to the next.
    partition : {"vi", "binder", "votes"}, default="vi"
        How the draws of a view are combined into one partition of the rows: the partition with the least expected
        variation of information or Binder loss, or votes of aligned draws.
    max_views, max_clusters : int, default=20, 10
        Maximum number of views, and of clusters per view, with "vb".
    max_iter : int, default=100
        Maximum number of iterations of "vb", and of each start of "search".
    tol : float, default=1e-5
        Stop "vb" when the bound per cell increases by less than ``tol`` in one iteration.
    precision : {"auto", "single", "double"}, default="auto"
        Floating-point precision of the predictive densities in Gibbs sweeps, as in :class:`~partita.Mixture`.
    kinds, missing_codes, exposure, handle_unknown
        As in :class:`~partita.Mixture`.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Source of randomness; an int makes the result reproducible.
    time_limit : float, default=None
        Wall-clock seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, default=None
        Called after each iteration with a :class:`~partita.engines.run.Progress`, whose ``n_clusters`` counts views;
        returning True stops the fit.
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
    view_labels_ : ndarray (n_rows, n_views)
        Cluster of each row in each view of the estimate; cluster 0 is the largest. Views with at least two clusters
        come first, in decreasing order of their number of columns. The last view may have a single cluster: its columns
        depend on no other column.
    n_views_ : int
        Most probable number of views with at least two clusters of rows and two columns: the mode of
        ``n_views_posterior_``. The views shown are estimated from the draws with so many.
    counted_views_ : ndarray of int
        The columns of ``view_labels_`` that are such views.
    n_views_posterior_ : dict
        Posterior probability of each number of views with at least two clusters and two columns.
    feature_views_ : ndarray (n_columns, n_views)
        Probability that a column belongs to each view.
    column_labels_ : ndarray (n_columns,)
        View of each column in the estimate; -1 for columns that are not modeled.
    dependence_ : ndarray (n_columns, n_columns)
        Probability that two columns share a view with at least two clusters.
    dependence_error_ : ndarray (n_columns, n_columns)
        Its Monte Carlo standard error, from the differences between chains and between parts of them.
    n_clusters_posterior_ : list of dict
        For each view, the posterior probability of each number of clusters.
    confidence_ : ndarray (n_rows, n_views)
        Mean probability, over draws, that a row shares a cluster of the view with the other rows of its cluster. NaN
        with "search", which has a single state. If "vb" was fitted to a sample of the rows, the probability of the
        label in the estimate.
    row_factors_ : ndarray (n_rows, rank)
        Row factors, averaged over the draws: those of all columns, which are uncorrelated, then those of groups. Their
        mean square is 1. Without columns if there are none.
    loadings_ : ndarray (n_columns, rank)
        Change of each column, in its standard deviations, per unit of a row factor; 0 in columns without part in them.
    row_sizes_ : ndarray (n_rows,)
        Sizes of the rows, as in :class:`~partita.OverlappingViews`; all 1 without ``gain``.
    row_depths_ : ndarray (n_rows,)
        Depths of the rows, by which all their counts are multiplied beside the views, averaged over the draws; 1
        without.
    confidence_kind_ : str
        "co-clustering probability", or "posterior probability" if "vb" was fitted to a sample of the rows.
    grain_ : list of Grain
        For each view, the tree over its clusters: labels and support at every number of groups
        (:class:`partita.posterior.Grain`).
    alternatives_ : list of list
        For each view, the best supported coarse (2 or 3), medium (4 to 8) and fine answers; see :meth:`at`.
    profiles_ : list of dict
        For each view and column, the profile of each cluster in the user's units and labels. Columns with a lump also
        have this ``lump``, its ``lump_share``, and mean and deviation of the other values.
    trace_ : ViewTrace, with chains
        Per draw: ``log_joint``, ``n_views``, ``concentration`` (of the views) and ``chain``.
    diagnostics_ : ViewDiagnostics
        Agreement of the chains: the spread of ``dependence_`` between them, R-hats, and a sentence.
    draws_ : tuple of Draw
        All draws.
    fit_report_ : FitReport
        What was unusual about the data and the fit.
    objective_trace_ : ndarray
        Per iteration, the log joint of the first chain (of the best start of "search"), or the bound of "vb".
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the fit ran to its end: all draws were made, or the bound converged.
    n_features_in_, feature_names_in_, schema_
        Number, names and kinds of the columns.

    References
    ----------
    Mansinghka, Shafto, Jonas, Petschulat, Gasner and Tenenbaum (2016), JMLR 17. Guan, Dy, Niu and Ghahramani (2010),
    for "vb".

    Examples
    --------
    >>> import numpy as np
    >>> from partita import CrossCat
    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.integers(2, size=(2, 200))
    >>> X = np.column_stack([4 * one, 4 * one, 4 * two, 4 * two]) + rng.normal(size=(200, 4))
    >>> model = CrossCat(n_chains=1, random_state=0).fit(X)
    >>> model.n_views_, model.column_labels_
    (2, array([0, 0, 1, 1]))
    >>> model.dependence_probability(0, 2), float(model.mutual_information([0, 2])[0, 1])
    (0.0, 0.0)
    """

    _array_laws: tuple[str, ...] = ("fitted.column_labels_ int (C) -1..V-1",)
    _stored: ClassVar[tuple[str, ...]] = (*ViewsEstimator._stored, "column_labels_")
    _parameter_constraints = {
        "family": "no_validation",
        "inference": [StrOptions({"gibbs", "vb", "search"})],
        "together": "no_validation",
        "apart": "no_validation",
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "view_concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "nuisance": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "gain": ["boolean"],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [None, Interval(Integral, 1, None, closed="left")],
        "burn_in": [None, Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "partition": [StrOptions({"vi", "binder", "votes"})],
        "max_views": [Interval(Integral, 1, None, closed="left")],
        "max_clusters": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "precision": [StrOptions({"auto", "single", "double"})],
        "kinds": "no_validation",
        "missing_codes": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
        **RUNNING_CONSTRAINTS,
    }

    __metadata_request__predict = {"at": UNUSED}
    _grain: list[Grain]
    _evidence: list[GrainEvidence]

    def __init__(
        self,
        family="auto",
        inference="gibbs",
        *,
        together=None,
        apart=None,
        concentration=None,
        view_concentration=None,
        learn_hyper=True,
        nuisance="auto",
        gain=True,
        n_chains=4,
        n_draws=None,
        burn_in=None,
        thin=1,
        partition="vi",
        max_views=20,
        max_clusters=10,
        max_iter=100,
        tol=1e-5,
        precision="auto",
        kinds=None,
        missing_codes=None,
        exposure=None,
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
        self.inference = inference
        self.together = together
        self.apart = apart
        self.concentration = concentration
        self.view_concentration = view_concentration
        self.learn_hyper = learn_hyper
        self.nuisance = nuisance
        self.gain = gain
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.partition = partition
        self.max_views = max_views
        self.max_clusters = max_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.precision = precision
        self.kinds = kinds
        self.missing_codes = missing_codes
        self.exposure = exposure
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def fit(self, X, y=None):
        """Fit the views.

        Parameters
        ----------
        X : array or data frame
            The table; see :func:`partita.table.read_table` for the accepted formats. With ``inference="vb"``, a path
            (Parquet, Arrow, .npy), a memory map, a Dask collection or a source that
            :func:`partita.execution.open_chunks` returned is read in chunks. Of a table of more than 50,000 rows, in
            memory or in chunks, "vb" fits a sample of so many, and all rows are then labeled as new rows are.
        y : ignored

        Returns
        -------
        CrossCat
        """
        self._validate_params()
        plan = self._plan_families()
        with self._control() as control, self._new_fit():
            kinds = kinds_asked(plan, self.exposure)
            if self.inference == "vb":
                table, everything = self._read_sample(X, kinds, MAX_VB_ROWS)
            else:
                table, everything = self._read_training(X, kinds, None), None
            blocks = self._assemble(table, plan, self.exposure)
            self._keep_families(blocks)
            layout = self._lay_out(blocks)
            request = self._request(table, blocks, control)
            first = self._first_row_factors(layout, control)
            request = request._replace(
                rows=first.rows,
                gain=first.gain,
                parts=first.parts,
                groups=first.groups,
                depths=self._first_depths(layout, request),
            )
            rng = as_generator(request.rngs[0].integers(2**32))
            result = INFERENCES[self.inference](layout, request)
            self._set_result(result, layout, blocks, rng, everything)
        if result.reason == "max_iter":
            warn_user(
                f"{type(self).__name__} did not converge in {self.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
            )
        self.fit_report_.warn()
        return self

    # ---- the grain -----------------------------------------------------------------------------------------

    @property
    def grain_(self) -> list[Grain]:
        """For each view, the tree over its clusters."""
        check_is_fitted(self)
        if self._has_sample():
            raise AttributeError(
                "the model was fitted to a sample of the rows, so it has no answers at other scales: fit a table of at "
                f"most {MAX_VB_ROWS:,} rows"
            )
        if "_grain" not in vars(self):
            self._evidence = view_evidence(self.draws_, self._estimate)
            self._grain = view_grains(self._evidence, self._estimate)
        return self._grain

    @property
    def alternatives_(self) -> list[list[Alternative]]:
        """For each view, the best supported coarse, medium and fine answers."""
        return [grain.alternatives() for grain in self.grain_]

    def at(self, n_clusters: int | str, view: int = 0) -> GrainLevel:
        """The answer of one view at another scale, without a new fit.

        Parameters
        ----------
        n_clusters : int or str
            Number of groups, or the name of an alternative: "coarse", "medium" or "fine".
        view : int, default=0
            Number of the view.

        Returns
        -------
        GrainLevel
            Labels, confidence, support and profiles with so many groups.
        """
        grain = self._grain_of(view)
        K = grain.n_clusters_at(n_clusters)
        groups, factor = grain.groups(K), self._estimate.factors[view]
        confidence = self.confidence_[:, view]
        if np.isfinite(confidence).all():
            onto = np.arange(grain.n_groups)
            confidence = confidence_in(groups, onto, grain.labels, confidence, self._evidence[view])
        blocks, statistics = factor_statistics(factor, self._blocks)
        profiles = joined_profiles(blocks, statistics, groups, self.schema_)
        return GrainLevel(K, grain.at(K), confidence, float(grain.support[K - 1]), profiles)

    def _grain_of(self, view: int) -> Grain:
        grains = self.grain_
        if not isinstance(view, Integral) or not 0 <= view < len(grains):
            raise ValueError(f"view is {view!r}: the estimate has the views 0 to {len(grains) - 1}")
        return grains[view]

    @reads_chunks
    def predict(self, X: Any, at: Any = None) -> np.ndarray:
        """Most probable cluster of each row in each view of the estimate.

        The clusters are those of ``view_labels_``. For training rows the result may differ from ``view_labels_``, which
        summarizes all draws.

        Parameters
        ----------
        X : array or data frame
        at : int or str, or a sequence of these for each view, optional
            The scale, as in :meth:`at`; None in a sequence leaves a view as it is.

        Returns
        -------
        ndarray (n_rows, n_views)
        """
        if at is None:
            return super().predict(X)
        n_views = len(self.grain_)
        asked = [at] * n_views if isinstance(at, (str, Integral)) else list(at)
        if len(asked) != n_views:
            raise ValueError(f"at has {len(asked)} scales, and there are {n_views} views: give one for each")
        data = place_rows(self._estimate, self._encode(X)[0]).data
        columns = []
        for grain, scale, factor in zip(self.grain_, asked, self._estimate.factors, strict=True):
            K = grain.n_groups if scale is None else grain.n_clusters_at(scale)
            proba = normalized(log_states(factor, data))[0]
            columns.append(sum_probabilities(proba, grain.groups(K)).argmax(axis=1))
        return np.column_stack(columns)

    def _lay_out(self, blocks: Sequence[Block]) -> Layout:
        """The layout with the user's constraints; parts of columns are numbered block after block.

        The parts of a column move together, as the columns of a group of ``together`` do.
        """
        flat = np.concatenate(columns_of(self.schema_, blocks)).tolist()
        parts = {number: [i for i, other in enumerate(flat) if other == number] for number in flat}
        place = {number: found[0] for number, found in parts.items()}

        def numbers(groups: Any, name: str) -> list[list[int]]:
            if groups is None:
                return []
            if isinstance(groups, str) or not all(_is_group(group) for group in groups):
                raise ValueError(f"{name} is {groups!r}: pass a list of groups of columns, by name or number")
            return [[place[self._constrained_column(c)] for c in group] for group in groups]

        together = numbers(self.together, "together") + [found for found in parts.values() if len(found) > 1]
        pairs = [
            (a, b)
            for group in numbers(self.apart, "apart")
            for i, a in enumerate(group)
            for b in group[i + 1 :]
        ]
        layout = lay_out(blocks, together, pairs)
        if layout.apart.diagonal().any():
            raise ValueError("apart= separates columns that together= joins: remove them from one of the two")
        return layout

    def _constrained_column(self, column: Any) -> int:
        """Number in the table of a column of a constraint."""
        names = self.schema_.names
        number = names.index(self.schema_.column(column).name)
        if number not in self._modeled():
            raise ValueError(f"column {names[number]!r} is not modeled: remove it from together= and apart=")
        return number

    def _request(self, table: Table, blocks: Sequence[Block], control: Control) -> sampling.CrossCatRequest:
        most = sampling.DEFAULT_DRAWS if self.n_draws is None else self.n_draws
        most = control.most_draws(most, self.thin)
        labels = self.n_chains * most * table.n_rows * len(table.schema.columns)
        check_memory(
            labels // 2,  # at most about one view per two columns
            f"{self.n_chains} chains of {most} draws over {table.n_rows:,} rows",
            "lower n_draws or n_chains, or fit a sample of the rows",
        )
        is_small = table.n_rows * len(table.schema.columns) < MAX_SMALL_TABLE
        default = (BURN_IN_SMALL if is_small else BURN_IN_LARGE, sampling.DEFAULT_DRAWS)
        burn_in, n_draws = length_asked(self.n_chains, self.n_draws, self.burn_in, default)
        return sampling.CrossCatRequest(
            rngs=as_generator(self.random_state).spawn(self.n_chains),
            n_draws=n_draws,
            burn_in=burn_in,
            longest=sum(default),
            thin=self.thin,
            concentration=None if self.concentration is None else float(self.concentration),
            view_concentration=None if self.view_concentration is None else float(self.view_concentration),
            learn_likelihood=self.learn_hyper,
            dtype=cache_dtype(self.precision, [block.family for block in blocks], table.n_rows),
            max_views=self.max_views,
            max_clusters=self.max_clusters,
            max_iter=self.max_iter,
            tol=self.tol,
            control=control,
            executor=self._make_executor(),
            folder=self.resume,
        )

    def _first_row_factors(self, layout: Layout, control: Control) -> FirstRowFactors:
        """The row factors at the start of the chains, found under the additive model of disjoint views."""
        is_real = len(real_columns(layout)) > 0
        if not is_real and self.nuisance not in ("auto", 0) and not has_counts(layout.blocks):
            raise ValueError(
                f"nuisance={self.nuisance} needs real columns or counts, and there are none: leave nuisance at its "
                "default"
            )
        if not is_real or self.nuisance == 0:
            return NO_ROW_FACTORS
        end = time.perf_counter() + SEARCH_TIME_SHARE * (control.deadline - time.perf_counter())
        rng = as_generator(self.random_state).spawn(self.n_chains + 1)[-1]
        columns = read_reals(real_cells(layout))
        gain = self.gain and self.inference != "vb"
        return find_row_factors(columns, self.nuisance, rng, 1, lambda: time.perf_counter() > end, gain=gain)

    def _first_depths(self, layout: Layout, request: sampling.CrossCatRequest) -> Depths | None:
        """The depths at the start of the chains."""
        rng = as_generator(self.random_state).spawn(self.n_chains + 2)[-1]
        return find_depths(layout.blocks, self.nuisance, sampling.make_plan(request), rng)

    def _set_result(
        self, result: sampling.ViewsResult, layout: Layout, blocks: Sequence[Block], rng: Any, everything: Any
    ) -> None:
        """Set the fitted attributes."""
        D, where = self.schema_.n_features, columns_of(self.schema_, blocks)
        self.draws_ = tuple(sampling.as_draw(one, where, D) for one in result.snapshots)
        families = _mean_families(layout, result.snapshots)
        blocks = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
        self._keep_families(blocks)
        membership = estimate_membership(
            self.draws_, np.array(list(dict.fromkeys(np.concatenate(where)))), D, rng
        )
        found = mean_row_factors(self.draws_, D)
        self._set_row_factors(found)
        self._set_depths(self.draws_, len(found.rows))
        self._set_estimate(membership, blocks, where, found, rng)
        if everything is not None:
            self._label_everything(everything)
        self.objective_trace_, self.n_iter_ = result.objective, len(result.objective)
        self.converged_ = result.reason in ("done", "converged")
        if self.inference == "gibbs":
            self._note_chains(result.reason, result.provisional)
            self._note_length(result)
        elif not self.converged_:
            self.fit_report_.add(
                "not_converged", f"the fit ended before convergence; reason: {result.reason}"
            )
            note_stop(self.fit_report_, result.reason, "the best result so far is kept", level="info")
        self._describe_draws()
        self._note_disagreement()

    def _label_everything(self, source: ChunkSource) -> None:
        """Label all rows of a table of which a sample was fitted, chunk by chunk."""
        light = copy.copy(self)
        light.draws_, light.view_labels_ = (), self.view_labels_[:0]
        found = predict_blocks(light, source, "_placed")
        V = self.view_labels_.shape[1]
        self.view_labels_ = found[:, :V].astype(np.int64)
        self.confidence_, self.row_factors_ = found[:, V : 2 * V], found[:, 2 * V : -2]
        self.row_sizes_, self.row_depths_ = found[:, -2], found[:, -1]
        self.confidence_kind_ = "posterior probability"

    def _placed(self, X: Any) -> np.ndarray:
        """For each row its cluster in each view, the probabilities of these, its row factors, size and depth."""
        placed = place_rows(self._estimate, self._encode(X)[0])
        proba = [normalized(log_states(factor, placed.data))[0] for factor in self._estimate.factors]
        columns = [P.argmax(axis=1) for P in proba] + [P.max(axis=1) for P in proba]
        return np.column_stack([*columns, placed.rows, placed.sizes, placed.depths])

    def _set_estimate(
        self,
        membership: np.ndarray,
        blocks: Sequence[Block],
        where: Sequence[np.ndarray],
        found: MeanRowFactors,
        rng: Any,
    ) -> None:
        """Set the attributes of the estimate, its views in the order of ``view_labels_``."""
        summary = summarize_views(self.draws_, membership)
        labels = [one_partition(drawn, self.partition, rng) for drawn in summary.drawn_labels]
        has_one_cluster = np.array([z.max() < 1 for z in labels])
        order = np.lexsort((-membership.sum(axis=0), has_one_cluster))
        membership = membership[:, order]
        self.view_labels_ = np.column_stack([labels[v] for v in order])
        self.feature_views_ = summary.feature_views[:, order]
        self.n_clusters_posterior_ = [summary.n_clusters_posterior[v] for v in order]
        self.column_labels_ = np.where(membership.any(axis=1), membership.argmax(axis=1), -1)
        self.confidence_ = np.column_stack(
            [row_confidence(summary.drawn_labels[v], labels[v]) for v in order]
        )
        self.confidence_kind_ = "co-clustering probability"
        rest = with_mean_depths(remove_row_factors(blocks, where, found), self.draws_)
        members = [membership[numbers] for numbers in where]
        factors = view_factors(rest, members, self.view_labels_, where)
        self._estimate = estimate_draw(membership, self.view_labels_, factors, found, self.draws_)


def _is_group(group: Any) -> bool:
    return not isinstance(group, (str, Integral)) and hasattr(group, "__iter__")


def _mean_families(layout: Layout, snapshots: Sequence[Any]) -> tuple[Any, ...]:
    """The families of all columns, with hyper-parameters averaged over the draws on their unconstrained scales."""
    drawn = []
    for snapshot in snapshots:
        families = [block.family for block in layout.blocks]
        for view in snapshot.views:
            for b, (positions, family) in enumerate(zip(view.positions, view.families, strict=True)):
                if len(positions):
                    families[b] = put_columns(families[b], positions, family)
        drawn.append(tuple(families))
    return average_families(drawn)


def estimate_membership(
    draws: Sequence[Draw], modeled: np.ndarray, n_columns: int, rng: np.random.Generator
) -> np.ndarray:
    """One assignment of the columns to views, with the least expected variation of information: [column, view] bool.

    It is estimated from the draws with the most probable number of views that are counted (`is_view`).
    """
    counts = np.array([n_counted_views(draw) for draw in draws])
    mode = np.bincount(counts).argmax()
    drawn = np.stack([draw.membership[modeled].argmax(axis=1) for draw in draws])[counts == mode]
    # No more views than draws have: uncertain columns would otherwise each become a view of their own.
    most = int(np.median([len(np.unique(z)) for z in drawn]))
    z = point_estimate(drawn, "vi", max_clusters=most, random_state=rng).labels
    _, z = np.unique(z, return_inverse=True)
    membership = np.zeros((n_columns, int(z.max()) + 1), bool)
    membership[modeled, z] = True
    return membership
