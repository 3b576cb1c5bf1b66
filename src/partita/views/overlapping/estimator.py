"""OverlappingViews: several clusterings of the rows of a table, whose columns may belong to several of them or none."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.engines.checkpoints import Checkpoint, open_checkpoint
from partita.engines.gibbs.chain import Schedule
from partita.engines.run import Control, Sampler, run_chains
from partita.estimator import RUNNING_CONSTRAINTS, as_generator
from partita.execution import check_memory
from partita.families import Block, Counts, GaussianDiagonal
from partita.fitting.out_of_core import reads_chunks
from partita.fitting.real_columns import Steps
from partita.fitting.request import kinds_asked
from partita.metrics import perplexity
from partita.table import Table
from partita.views.crosscat.depth_choice import find_depths
from partita.views.crosscat.state import CrossCatPlan
from partita.views.depths import has_counts
from partita.views.draws import columns_of
from partita.views.estimator import ViewsEstimator
from partita.views.overlapping.additive import read_reals
from partita.views.overlapping.chain import OverlapPlan, draw_outline, find_states, overlap_sampler
from partita.views.overlapping.combinations import CombinationColumns
from partita.views.overlapping.full_covariance import FullTable
from partita.views.overlapping.result import Arrangement, OverlappingResult, make_result
from partita.views.overlapping.row_factors import NO_ROW_FACTORS, find_row_factors
from partita.views.overlapping.state import OverlapState
from partita.views.overlapping.table import OverlapTable
from partita.views.overlapping.text import WordDraw, WordGroup, log_words
from partita.views.settling import length_asked, views_settling

LENGTH = "length"  # exposure of text: the sum of the counts of a row
MAX_VIEWS_ADDITIVE, MAX_VIEWS_COMBINED = 4, 2  # default maximum number of views of a column
LENGTHS = 10, 20  # burn-in and draws of a single chain
SEARCH_TIME_SHARE = 0.5  # of the time limit


class OverlappingViews(ViewsEstimator):
    """Several clusterings of one table, in which a column may belong to several views or to none.

    This is the model of Niu, Dy and Ghahramani (NBMC-OFV) with a normalized likelihood. A two-parameter Indian buffet
    process determines which columns belong to which views; in every view a Dirichlet process assigns the rows to
    clusters. A column in several views either adds up their effects (real columns) or has a component for every
    combination of their clusters. A column in no view has one distribution for all rows. All parameters are integrated
    out, so the result does not depend on the units of the columns.

    Good for tables with several clusterings that share columns, and with columns that are noise. In
    :class:`~partita.CrossCat` every column has exactly one view, and each cluster has its own variance in each column;
    here a column has any number of views, and the sampler has one noise variance per column (clusters of different
    width are taken into account when labels are polished). Not for clusters that differ in their variance only, nor for
    correlated columns within clusters, except with ``covariance="full"``.

    Parameters
    ----------
    overlap : {"additive", "cells"}, default="additive"
        How a real column belongs to several views: their effects add up, or every combination of their clusters (a
        cell) has its own normal distribution. Columns of other kinds always have cells.
    max_views_per_feature : int, default=None
        Maximum number of views of a column; None for 4 if all columns are additive, otherwise 2. With 1 the views are
        disjoint, as in :class:`~partita.CrossCat` except for the prior and for columns in no view.
    covariance : {"diagonal", "full"}, default="diagonal"
        "full": columns of a view are correlated within its clusters (Gaussian-Wishart priors). For real columns
        without missing cells, each in at most one view; labels are averaged over draws, and queries about densities of
        cells and rows are not available.
    nuisance : "auto" or int, default="auto"
        Number of continuous factors of a row that all real columns share beside the views, such as the brightness of an
        image or the size of an animal; without them, clusters have to describe such a quantity. "auto" chooses the
        number, from 0 to 5, by the evidence, and also gives groups of 3 to 30 columns factors of their own, which
        correlate the columns inside clusters; 0 for a model without. Counts have one such factor, the depth of a row,
        by which all its counts are multiplied, as in :class:`~partita.CrossCat`; not with ``exposure="length"``, which
        is such a depth. A column of another kind has no part in them.
    gain : bool, default=True
        Whether the effects of clusters may grow with the row factors, as differences between pixels do in a brighter
        image: they are then multiplied by the size of the row, 1 plus the sum of its row factors times their gains,
        which are learned. False for gains of 0.
    family : "auto", str, pair or mapping, default="auto"
        As in :class:`~partita.CrossCat`. The two parts of a column with a lump have views of their own, and the column
        belongs to all of them; with ``covariance="full"`` no column has two parts. Chains draw the values of ties of
        additive columns anew in each iteration; searches, and columns with cells, keep one draw from before the fit.
    kinds, missing_codes, handle_unknown
        As in :class:`~partita.CrossCat`.
    exposure : str, default=None
        Name of the column with the exposures of the counts. "length", for text: the sum of the counts of each row, so
        that each word is Poisson with the length of the document, and multinomial given the length (see
        :meth:`perplexity`).
    init : {"screen", "forward", "none"}, default="screen"
        Where searches start: groups of dependent columns and independent components in turn; the multiple forward
        search of Niu, Dy and Ghahramani; no view.
    n_init : int, default=3
        Number of searches. The labels of the best one are polished, and chains start from the best ones.
    n_chains : int, default=2
        Number of chains.
    n_draws : int, default=None
        Number of draws that each chain keeps. None: chains run until every other of them comes to the views of the
        others (at most 30 iterations), and keep at least 24 draws in all; a single chain has 20.
    burn_in : int, default=None
        Number of iterations before the first draw. None: half of the iterations after which the chains agreed, 10 for a
        single chain.
    thin : int, default=1
        Number of iterations from one draw to the next.
    partition : {"polished", "averaged"}, default="polished"
        How ``view_labels_`` is obtained: the labels of the best search, polished with a variance per cluster; or the
        partition with the least expected variation of information over the draws.
    max_views : int, default=64
        Maximum number of views.
    buffet : pair of float, default=None
        Parameters alpha and beta of the Indian buffet process; None to learn them.
    concentration : float, default=None
        Concentration of the clusters in every view; None to learn it.
    learn_hyper : bool, default=True
        Whether the hyper-parameters of the likelihood are learned.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Source of randomness; an int makes the result reproducible.
    time_limit : float, default=None
        Wall-clock seconds for the whole fit, compilation included; no iteration begins after it. Searches have half of
        it; they can take long on tables of many smooth columns, such as images.
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
        Cluster of each row in each view; cluster 0 is the largest. Views are in decreasing order of their number of
        columns.
    n_views_ : int
        Most probable number of views with at least two clusters of rows and two columns, the mode of
        ``n_views_posterior_`` (0 if no column depends on another). ``view_labels_`` are those of the best search, and
        may have another number of views: the report says so.
    counted_views_ : ndarray of int
        The columns of ``view_labels_`` that are such views.
    n_views_posterior_ : dict
        Posterior probability of each number of views with at least two clusters and two columns.
    feature_views_ : ndarray (n_columns, n_views)
        Probability that a column belongs to each view; a row may sum to more than 1, or to 0.
    membership_ : ndarray of bool (n_columns, n_views)
        The memberships that belong to ``view_labels_``.
    dependence_ : ndarray (n_columns, n_columns)
        Probability that two columns share a view.
    dependence_error_ : ndarray (n_columns, n_columns)
        Its Monte Carlo standard error, from the differences between chains and between parts of them.
    n_clusters_posterior_ : list of dict
        For each view, the posterior probability of each number of clusters, in the model with one noise variance per
        column.
    confidence_ : ndarray (n_rows, n_views)
        Confidence in the label of each row in each view; ``confidence_kind_`` names its kind.
    row_factors_ : ndarray (n_rows, rank)
        Row factors, averaged over the draws: those of all columns, which are uncorrelated, then those of groups. Their
        mean square is 1. Without columns if there are none.
    loadings_ : ndarray (n_columns, rank)
        Change of each column, in its standard deviations, per unit of a row factor; 0 in columns without part in them.
    row_sizes_ : ndarray (n_rows,)
        Size of each row, by which the effects of its clusters are multiplied; all 1 without ``gain``.
    row_depths_ : ndarray (n_rows,)
        Depths of the rows, by which all their counts are multiplied, as in :class:`~partita.CrossCat`.
    confidence_kind_ : str
        "posterior probability": of the label, given the labels of the other views (polished labels).
        "co-clustering probability": the mean probability, over draws, of sharing a cluster with the other rows of the
        cluster (averaged labels).
    profiles_, trace_, diagnostics_, draws_, fit_report_, objective_trace_, n_iter_, converged_
        As in :class:`~partita.CrossCat`; ``concentration`` of ``trace_`` is alpha of the Indian buffet process. In
        ``draws_`` views that share columns form one factor; if they have more than 256 combinations of clusters, the
        most frequent ones represent all.
    n_features_in_, feature_names_in_, schema_
        Number, names and kinds of the columns.

    References
    ----------
    Niu, Dy and Ghahramani (2012), A nonparametric Bayesian model for multiple clustering with overlapping feature
    views, AISTATS. Their score lacks a normalizing constant that depends on the memberships; see the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import OverlappingViews
    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.integers(2, size=(2, 300))
    >>> X = np.column_stack([one, one, one + two, two, two, 0 * one]) * 4 + rng.normal(size=(300, 6))
    >>> model = OverlappingViews(n_init=1, n_chains=1, random_state=0).fit(X)
    >>> model.n_views_
    2
    >>> model.membership_[2], model.membership_[5]  # the sum is in both views, the noise in none
    (array([ True,  True]), array([False, False]))
    """

    _array_laws: tuple[str, ...] = (
        "fitted.membership_ bool (C,V)",
        "words.*.0.* float (k) -inf",
        "words.*.1.*.1 int (w) 0..C-1",
        "words.*.1.*.3 float (j,w) 0..",
    )
    _stored: ClassVar[tuple[str, ...]] = (*ViewsEstimator._stored, "membership_")
    _parameter_constraints = {
        "overlap": [StrOptions({"additive", "cells"})],
        "max_views_per_feature": [None, Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"diagonal", "full"})],
        "family": "no_validation",
        "nuisance": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "gain": ["boolean"],
        "init": [StrOptions({"screen", "forward", "none"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [None, Interval(Integral, 1, None, closed="left")],
        "burn_in": [None, Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "partition": [StrOptions({"polished", "averaged"})],
        "max_views": [Interval(Integral, 1, None, closed="left")],
        "buffet": "no_validation",
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "kinds": "no_validation",
        "missing_codes": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
        **RUNNING_CONSTRAINTS,
    }

    def __init__(
        self,
        overlap="additive",
        max_views_per_feature=None,
        *,
        covariance="diagonal",
        nuisance="auto",
        gain=True,
        family="auto",
        init="screen",
        n_init=3,
        n_chains=2,
        n_draws=None,
        burn_in=None,
        thin=1,
        partition="polished",
        max_views=64,
        buffet=None,
        concentration=None,
        learn_hyper=True,
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
        self.overlap = overlap
        self.max_views_per_feature = max_views_per_feature
        self.covariance = covariance
        self.nuisance = nuisance
        self.gain = gain
        self.family = family
        self.init = init
        self.n_init = n_init
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.partition = partition
        self.max_views = max_views
        self.buffet = buffet
        self.concentration = concentration
        self.learn_hyper = learn_hyper
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
            The table; see :func:`partita.table.read_table` for the accepted formats.
        y : ignored

        Returns
        -------
        OverlappingViews
        """
        self._validate_params()
        plan = self._plan_families()
        with self._control() as control, self._new_fit():
            table = self._read_training(X, self._kinds_asked(plan), None)
            blocks = self._with_lengths(self._assemble(table, plan, self._exposure_column()))
            self._check_memory(table, control)
            self._keep_families(blocks)
            self._run(*self._arrange(blocks), control)
        self.fit_report_.warn()
        return self

    def _kinds_asked(self, plan: Any) -> Any:
        return plan.kinds if self.exposure == LENGTH else kinds_asked(plan, self.exposure)

    def _exposure_column(self) -> str | None:
        return None if self.exposure == LENGTH else self.exposure

    def _with_lengths(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """For text, counts with the sum of the row as exposure."""
        if self.exposure != LENGTH:
            return tuple(blocks)
        if not any(isinstance(block.data, Counts) for block in blocks):
            raise ValueError("exposure='length' is for counts, but no column is a count: pass kinds='count'")
        out = []
        for block in blocks:
            if isinstance(block.data, Counts):
                data = _own_length(block.data)
                block = block._replace(data=data, family=type(block.family).default(data))
            out.append(block)
        return tuple(out)

    def _check_memory(self, table: Table, control: Control) -> None:
        most = control.most_draws(LENGTHS[1] if self.n_draws is None else self.n_draws, self.thin)
        check_memory(
            self.n_chains * most * table.n_rows * 8 * 10,
            f"{self.n_chains} chains of {most} draws over {table.n_rows:,} rows",
            "lower n_draws or n_chains, or fit a sample of the rows",
        )

    def _arrange(self, blocks: Sequence[Block]) -> tuple[OverlapTable, Arrangement]:
        """The table as the sampler reads it, and how its columns correspond to those of the table."""
        where = columns_of(self.schema_, blocks)
        additive = [
            b
            for b, block in enumerate(blocks)
            if self.overlap == "additive" and isinstance(block.family, GaussianDiagonal)
        ]
        others = [b for b in range(len(blocks)) if b not in additive]
        table = OverlapTable(
            read_reals(blocks[additive[0]].data) if additive else None,
            CombinationColumns(tuple(blocks[b] for b in others)) if others else None,
            blocks[additive[0]].ties if additive else None,
        )
        return table, Arrangement(blocks, where, [*additive, *others], self.schema_.n_features)

    def _allowed_steps(self, steps: Steps) -> Steps:
        """With full covariances, all columns are complete vectors of normal variables."""
        return steps._replace(lumps=False, ties=False) if self.covariance == "full" else steps

    def _with_covariance(self, table: OverlapTable) -> FullTable:
        """The columns as chains with full covariances read them; refuses tables that they cannot read."""
        if table.additive is None or table.combined is not None:
            raise ValueError(
                "covariance='full' is for real columns only: declare the kinds, or use covariance='diagonal'"
            )
        if (self.max_views_per_feature or 1) > 1:
            raise ValueError(
                "covariance='full' allows one view per column: leave max_views_per_feature at its default"
            )
        incomplete = np.flatnonzero(np.isnan(table.additive.X).any(axis=0))
        if len(incomplete):
            raise ValueError(
                f"covariance='full' needs complete columns, but {len(incomplete)} have missing cells: use "
                "covariance='diagonal'"
            )
        return FullTable(table.additive.X)

    def _plan(self, table: OverlapTable) -> OverlapPlan:
        default = MAX_VIEWS_ADDITIVE if table.combined is None else MAX_VIEWS_COMBINED
        burn_in, n_draws = length_asked(self.n_chains, self.n_draws, self.burn_in, LENGTHS)
        return OverlapPlan(
            n_draws=n_draws,
            burn_in=burn_in,
            thin=self.thin,
            max_per_column=1 if self.covariance == "full" else self.max_views_per_feature or default,
            max_views=self.max_views,
            learn_buffet=self.buffet is None,
            learn_concentration=self.concentration is None,
            learn_likelihood=self.learn_hyper,
            buffet=_read_buffet(self.buffet),
            concentration=1.0 if self.concentration is None else float(self.concentration),
            nuisance=self._nuisance_asked(table),
            gain=self.gain,
        )

    def _nuisance_asked(self, table: OverlapTable) -> str | int:
        """The number of row factors, "auto" to choose it; 0 where the model has none."""
        possible = table.additive is not None and self.covariance == "diagonal"
        with_depths = (
            table.combined is not None and has_counts(table.combined.blocks) and self.exposure != LENGTH
        )
        if not (possible or with_depths) and self.nuisance not in ("auto", 0):
            raise ValueError(
                f"nuisance={self.nuisance} needs counts without exposure='length', or additive real columns, and "
                "there are none: leave nuisance at its default, and use overlap='additive' and covariance='diagonal'"
            )
        return self.nuisance if possible else 0

    def _run(self, table: OverlapTable, arrangement: Arrangement, control: Control) -> None:
        plan, executor = self._plan(table), self._make_executor()
        rng = as_generator(self.random_state)
        search_rngs, chain_rngs = rng.spawn(max(self.n_init, 1)), rng.spawn(self.n_chains)
        nuisance_rng = rng.spawn(1)[0]
        blocks = [(block.family, block.data) for block in arrangement.blocks]
        about = (rng, plan, self.init, self.n_init, self.covariance, self.overlap, blocks)
        found = self._search(table, search_rngs, nuisance_rng, plan, executor, control, about)
        sampled = table if self.covariance == "diagonal" else self._with_covariance(table)

        def make(number: int) -> Sampler:
            return overlap_sampler(sampled, found[number % len(found)][1], plan, chain_rngs[number], number)

        def checkpoint(number: int) -> Checkpoint | None:
            return open_checkpoint(self.resume, number, about, "overlapping")

        chains = run_chains(
            make,
            self.n_chains,
            plan,
            control=control,
            executor=executor,
            checkpoint=checkpoint,
            settling=views_settling(self.n_chains, plan.n_draws, plan.burn_in, draw_outline, sum(LENGTHS)),
        )
        is_full = self.covariance == "full"
        result = make_result(
            table,
            found[0][1],
            chains.draws,
            arrangement,
            rng,
            is_full=is_full,
            is_averaged=is_full or self.partition == "averaged",
            is_text=self.exposure == LENGTH and _is_one_combined_block(table),
        )
        self.objective_trace_ = chains.runs[0].log_joint
        self.n_iter_, self.converged_ = chains.n_iter, chains.reason == "done"
        self._set_result(result)
        self._note_chains(chains.reason, chains.provisional)
        self._note_length(chains)
        if not self.view_labels_.shape[1]:
            self.fit_report_.add("no_view", "there is no view: no two columns depend on each other")
        self._describe_draws()
        self._note_disagreement()

    def _set_result(self, result: OverlappingResult) -> None:
        """Set the fitted attributes that do not follow from others."""
        self._keep_families(result.blocks)
        self.draws_, self._words, self._estimate = result.draws, result.words, result.estimate
        self.membership_, self.view_labels_ = result.membership, result.view_labels
        self.confidence_, self.confidence_kind_ = result.confidence, result.confidence_kind
        self.feature_views_ = result.feature_views
        self.n_clusters_posterior_ = result.n_clusters_posterior
        self._set_row_factors(result.row_factors)
        self._set_depths(result.draws, len(result.view_labels))

    def _search(
        self,
        table: OverlapTable,
        rngs: list[np.random.Generator],
        nuisance_rng: np.random.Generator,
        plan: OverlapPlan,
        executor: Any,
        control: Control,
        about: Any,
    ) -> list[tuple[float, OverlapState]]:
        """States from which chains start, the best first; stored in the folder of checkpoints if there is one."""
        kept = open_checkpoint(self.resume, 0, about, "searches")
        if kept is not None and kept.begun:
            return kept.load(())[0]
        seconds = SEARCH_TIME_SHARE * (control.deadline - time.perf_counter())
        ends = time.perf_counter() + seconds
        # up to four searches share the time evenly; with more, those that begin first have a quarter each
        most = seconds / min(len(rngs), 4)

        def deadline() -> float:
            """Time at which a search that begins now must end."""
            return min(ends, time.perf_counter() + most)

        first = NO_ROW_FACTORS
        if table.additive is not None:
            end = deadline()
            first = find_row_factors(
                table.additive,
                plan.nuisance,
                nuisance_rng,
                plan.max_per_column,
                lambda: time.perf_counter() > end,
                gain=plan.gain,
            )
        depths = None
        if table.combined is not None and self.exposure != LENGTH and self.covariance == "diagonal":
            depths = find_depths(table.combined.blocks, self.nuisance, CrossCatPlan(Schedule()), nuisance_rng)
        found, were_cut = find_states(table, rngs, plan, self.init, executor, first, deadline, depths)
        if were_cut:
            control.stop("time_limit", everything=False)
            self.fit_report_.add(
                "searches_cut_short",
                f"the searches for views were stopped by the time limit: {len(found)} of {len(rngs)} "
                "were begun, and views may be missing; raise time_limit",
                level="warning",
            )
        elif (
            kept is not None
        ):  # a search that was cut short is not stored: with more time it would end elsewhere
            kept.save(found, [], 0, (), at_once=True)
        return found

    # ---- queries -----------------------------------------------------------------------------------------------

    def _encode(self, X: Any):
        if self.covariance == "full":
            raise ValueError(
                "densities of rows are not available with covariance='full': use covariance='diagonal'"
            )
        data, table = super()._encode(X)
        if self.exposure == LENGTH:
            data = [_own_length(part) for part in data]
        return data, table

    @reads_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Most probable cluster of each row in each view, from the columns of the view only: (n_rows, n_views).

        For training rows the result may differ from ``view_labels_``, which takes the other views into account.
        """
        check_is_fitted(self)
        if self.view_labels_.shape[1] == 0:
            return np.zeros((self._encode(X)[1].n_rows, 0), dtype=np.int64)
        return super().predict(X)

    def perplexity(self, X: Any) -> float:
        """Perplexity of the words of new documents given their lengths (with ``exposure="length"``).

        Each word is Poisson with the length of the document; given the length the words are multinomial. Rates are
        posterior means, the labels of a new document are summed over, and draws are averaged.
        """
        check_is_fitted(self)
        if self.exposure != LENGTH:
            raise ValueError("perplexity() is for text: fit with exposure='length' and kinds='count'")
        if not self._words:
            raise ValueError("perplexity() is for tables of counts only: leave the other columns out")
        counts = self._encode(X)[0][0].X
        if np.isnan(counts).any():
            raise ValueError("perplexity() needs complete documents, but some counts are missing")
        length = counts.sum(axis=1)
        orders = gammaln(length + 1.0) - gammaln(counts + 1.0).sum(axis=1)
        log_p = log_words(self._words, counts, length) - orders
        return perplexity(float(log_p.sum()), float(length.sum()))

    # ---- storage -----------------------------------------------------------------------------------------------

    def _state(self):
        words = [[list(draw.log_shares), [list(group) for group in draw.groups]] for draw in self._words]
        return super()._state() | {"words": words}

    def _restore(self, state):
        super()._restore(state)
        self._words = tuple(
            WordDraw(tuple(shares), tuple(WordGroup(*group) for group in groups))
            for shares, groups in state["words"]
        )
        for draw in self._words:
            sizes = [len(shares) for shares in draw.log_shares]
            for group in draw.groups:
                shape = [sizes[view] for view in group.views]
                if list(group.shape) != shape or group.rates.shape != (math.prod(shape), len(group.columns)):
                    raise ValueError("the rates of the words do not belong to the views")


def _is_one_combined_block(table: OverlapTable) -> bool:
    return table.additive is None and table.combined is not None and len(table.combined.blocks) == 1


def _read_buffet(buffet: Any) -> tuple[float, float]:
    if buffet is None:
        return 1.0, 1.0
    try:
        alpha, beta = (float(value) for value in buffet)
    except (TypeError, ValueError):
        raise ValueError(f"buffet is {buffet!r}: pass a pair of positive numbers, (alpha, beta)") from None
    if not (alpha > 0 and beta > 0):
        raise ValueError(f"buffet is {buffet!r}: alpha and beta must be positive")
    return alpha, beta


def _own_length(part: Any) -> Any:
    """Counts with the sum of the row as exposure; other data unchanged."""
    if not isinstance(part, Counts):
        return part
    return Counts(part.X, np.maximum(np.nansum(part.X, axis=1), 1.0))
