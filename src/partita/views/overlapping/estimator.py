"""OverlappingViews: many clusterings of one table, whose columns may serve several of them, or none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.engines.checkpoints import Checkpoint, pack, unpack
from partita.engines.run import Control, Sampler, run_chains
from partita.estimator import RUNNING_CONSTRAINTS, FitReport, as_generator, note_early_end
from partita.execution import check_memory
from partita.execution.journal import read_arrays, write_arrays
from partita.families import Block, Counts, GaussianDiagonal, entry_of, family_entry
from partita.fitting.families import assemble, plan_families
from partita.fitting.request import kinds_asked
from partita.metrics import perplexity
from partita.table import Schema, Table
from partita.views.base import as_plain, columns_of, from_plain
from partita.views.crosscat.estimator import VIEW_DEFAULT, _check_blocks
from partita.views.overlapping.additive import read_reals
from partita.views.overlapping.chain import OverlapPlan, find_states, overlap_sampler
from partita.views.overlapping.combinations import Cells
from partita.views.overlapping.fitted_attributes import LENGTH, settle
from partita.views.overlapping.full_covariance import FullTable
from partita.views.overlapping.state import State
from partita.views.overlapping.table import OverlapTable
from partita.views.overlapping.text import WordDraw, WordGroup, log_words
from partita.views.profiles import view_profiles
from partita.views.queries import ViewsEstimator
from partita.views.questions import dependence
from partita.views.summary import diagnose_views, telling_views

__all__ = ["OverlappingViews"]

ADDITIVE_VIEWS, CELL_VIEWS = 4, 2  # views that a column may have, if nobody says


class OverlappingViews(ViewsEstimator):
    """Which groupings does a table have, which columns does each come from, and which columns serve several of them?

    The model of Niu, Dy and Ghahramani (NBMC-OFV), normalised: a two-parameter Indian buffet says which columns belong
    to which views; in every view a Dirichlet process puts the rows into clusters. A column of several views either adds
    up their effects (real columns) or has a component for every combination of their clusters. A column may belong to
    no view: then it has one law for all rows. All parameters are integrated out, so units do not matter.

    Good for tables with several groupings that share columns, and with columns that are noise. Compared with
    :class:`CrossCat`: there every column has exactly one view, each cluster and column its own variance; here columns
    have any number of views, and the sampler has one noise a column (clusters of unequal width are seen to by the
    polish of the labels). Not for clusters that differ in their variance alone, nor for tilted clusters.

    Parameters
    ----------
    overlap : {"additive", "cells"}, default "additive"
        How a real column serves several views: their effects add up, or every combination of their clusters has a
        normal law of its own. Columns of other kinds always have cells.
    max_views_per_feature : int, optional
        Views that a column may belong to: 4 by default where all columns are additive, else 2. With 1 views are
        disjoint ("CRP-CRP", but for the prior and for columns in no view).
    covariance : {"diagonal", "full"}, default "diagonal"
        "full": the columns of a view lean on each other within its clusters (the paper's Gaussian-Wishart law). For
        complete real columns, each in at most one view; labels are averaged over draws, and questions about densities
        of cells and rows are not answered.
    family, kinds, handle_unknown
        As in :class:`CrossCat`.
    exposure : str, optional
        Column of exposures of the counts; "length" for text: the sum of each row's counts, so that each word is Poisson
        with the document's length, and given the length the words are multinomial (see :meth:`perplexity`).
    init : {"screen", "forward", "none"}, default "screen"
        Where searches start: groups of dependent columns and independent components in turn; the paper's multiple
        forward search; no view at all.
    n_init : int, default 3
        Searches, the best of them (by joint probability) being polished and sampled from.
    n_chains : int, default 2
        Chains; they start from the best searches.
    n_draws, burn_in, thin : int, default 20, 10, 1
        Draws that each chain keeps, iterations before the first, and iterations for each.
    partition : {"polished", "averaged"}, default="polished"
        ``view_labels_``: those of the best search, polished with a variance for every cluster, or the partition of
        least expected variation of information over the draws.
    max_views : int, default 64
        No more views than these.
    buffet : pair of float, optional
        alpha and beta of the buffet; left out, they are learned.
    concentration : float, optional
        Of the clusters in every view; left out, it is learned.
    learn_hyper : bool, default True
        Whether the hyper-parameters of the likelihood are learned.
    random_state : None, int, RandomState, Generator or SeedSequence
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no iteration begins after it. Searches
        have half of it. Tables of many smooth columns, such as pictures, can keep a search busy for long.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress`
        (``n_clusters`` counts views); returning True stops the fit.
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
    view_labels_ : ndarray (n_rows, n_views)
        Clusters of the rows in each view, the largest first; views with more columns come before those with fewer.
    n_views_ : int
        Number of views (0 where no column depends on another).
    n_views_posterior_ : dict
        Probability of each number of views.
    feature_views_ : ndarray (n_columns, n_views)
        Probability that a column belongs to each view; a row may sum to more than 1, or to 0.
    membership_ : ndarray of bool (n_columns, n_views)
        The memberships that go with ``view_labels_``.
    dependence_ : ndarray (n_columns, n_columns)
        Probability that two columns share a view.
    n_clusters_posterior_ : list of dict
        For each view, probability of each number of clusters, under the sampler's one noise a column.
    confidence_ : ndarray (n_rows, n_views)
        Probability of each label, the other views being known ("polished" labels).
    profiles_, diagnostics_, draws_, fit_report_, objective_trace_, n_iter_, converged_
        As in :class:`CrossCat`. In ``draws_`` views that share columns are one factor; where they have more than 256
        combinations of clusters, those that most rows have stand for all.
    n_features_in_, feature_names_in_, schema_
        The table that was fitted.

    References
    ----------
    Niu, Dy and Ghahramani (2012), A nonparametric Bayesian model for multiple clustering with overlapping feature
    views, AISTATS. Its score lacks a normaliser that depends on the memberships; see the page on views.

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
    >>> model.membership_[2], model.membership_[5]  # the sum serves both, the noise none
    (array([ True,  True]), array([False, False]))
    """

    _parameter_constraints = {
        "overlap": [StrOptions({"additive", "cells"})],
        "max_views_per_feature": [None, Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"diagonal", "full"})],
        "family": "no_validation",
        "init": [StrOptions({"screen", "forward", "none"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "partition": [StrOptions({"polished", "averaged"})],
        "max_views": [Interval(Integral, 1, None, closed="left")],
        "buffet": "no_validation",
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "kinds": "no_validation",
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
        family="auto",
        init="screen",
        n_init=3,
        n_chains=2,
        n_draws=20,
        burn_in=10,
        thin=1,
        partition="polished",
        max_views=64,
        buffet=None,
        concentration=None,
        learn_hyper=True,
        kinds=None,
        exposure=None,
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
        self.overlap = overlap
        self.max_views_per_feature = max_views_per_feature
        self.covariance = covariance
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

    # ---- fitting -----------------------------------------------------------------------------------------------

    def fit(self, X, y=None):
        """Fit the views.

        Parameters
        ----------
        X : array or data frame
            The table; see :func:`partita.table.read_table` for what is understood.
        y : ignored

        Returns
        -------
        OverlappingViews
        """
        self._validate_params()
        control = self._control()
        with self._whole_or_not_at_all():
            plan = plan_families(VIEW_DEFAULT if self.family == "auto" else self.family, self.kinds)
            table = self._read_training(X, self._kinds_asked(plan), None)
            blocks = self._with_lengths(assemble(table, plan, self._exposure_column()))
            _check_blocks(blocks)
            self._check_memory(table)
            self._blocks = tuple(Block(block.family, None, block.columns) for block in blocks)
            data, order = self._arrange(blocks)
            self._run(data, order, blocks, control)
        self.fit_report_.warn()
        return self

    def _kinds_asked(self, plan: Any) -> Any:
        return plan.kinds if self.exposure == LENGTH else kinds_asked(plan, self.exposure)

    def _exposure_column(self) -> str | None:
        return None if self.exposure == LENGTH else self.exposure

    def _with_lengths(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Counts with the sum of the row as exposure, for text."""
        if self.exposure != LENGTH:
            return tuple(blocks)
        if not any(isinstance(block.data, Counts) for block in blocks):
            raise ValueError("exposure='length' is for counts, and no column is one: pass kinds='count'")
        out = []
        for block in blocks:
            if isinstance(block.data, Counts):
                data = Counts(block.data.X, np.maximum(np.nansum(block.data.X, axis=1), 1.0))
                block = block._replace(data=data, family=type(block.family).default(data))
            out.append(block)
        return tuple(out)

    def _check_memory(self, table: Table) -> None:
        check_memory(
            self.n_chains * self.n_draws * table.n_rows * 8 * 10,
            f"{self.n_chains} chains of {self.n_draws} draws over {table.n_rows:,} rows",
            "ask for fewer draws (n_draws, n_chains), or fit a sample of the rows",
        )

    def _arrange(self, blocks: Sequence[Block]) -> tuple[OverlapTable, np.ndarray]:
        """The table as the engine reads it, and the number in the table of each of its columns."""
        where = columns_of(self.schema_, blocks)
        additive = [
            b
            for b, block in enumerate(blocks)
            if self.overlap == "additive" and isinstance(block.family, GaussianDiagonal)
        ]
        others = [b for b in range(len(blocks)) if b not in additive]
        real = read_reals(blocks[additive[0]].data) if additive else None
        cells = Cells(tuple(blocks[b] for b in others)) if others else None
        order = np.concatenate([where[b] for b in [*additive, *others]])
        return OverlapTable(real, cells), order

    def _with_covariance(self, table: OverlapTable) -> FullTable:
        """The columns as chains with full covariances read them; refuses what these cannot."""
        if table.real is None or table.cells is not None:
            raise ValueError(
                "covariance='full' is for real columns alone: declare the kinds, or use 'diagonal'"
            )
        if (self.max_views_per_feature or 1) > 1:
            raise ValueError("covariance='full' gives a column one view: leave max_views_per_feature out")
        holes = np.flatnonzero(np.isnan(table.real.X).any(axis=0))
        if len(holes):
            raise ValueError(
                f"covariance='full' needs complete columns, and {len(holes)} have missing cells: use 'diagonal'"
            )
        return FullTable(table.real.X)

    def _plan(self, table: OverlapTable) -> OverlapPlan:
        default = ADDITIVE_VIEWS if table.cells is None else CELL_VIEWS
        return OverlapPlan(
            n_draws=self.n_draws,
            burn_in=self.burn_in,
            thin=self.thin,
            largest=1 if self.covariance == "full" else self.max_views_per_feature or default,
            max_views=self.max_views,
            learn_buffet=self.buffet is None,
            learn_concentration=self.concentration is None,
            learn_likelihood=self.learn_hyper,
            buffet=_read_buffet(self.buffet),
            concentration=1.0 if self.concentration is None else float(self.concentration),
        )

    def _run(self, table: OverlapTable, order: np.ndarray, blocks: Sequence[Block], control: Control) -> None:
        plan, executor = self._plan(table), self._make_executor()
        rng = as_generator(self.random_state)
        searchers, walkers = rng.spawn(max(self.n_init, 1)), rng.spawn(self.n_chains)
        found = self._search(table, searchers, plan, executor, control)
        sampled = table if self.covariance == "diagonal" else self._with_covariance(table)

        def make(number: int) -> Sampler:
            return overlap_sampler(sampled, found[number % len(found)][1], plan, walkers[number], number)

        def checkpoint(number: int) -> Checkpoint | None:
            return None if self.resume is None else Checkpoint(self.resume, number, self._about(rng, plan))

        chains = run_chains(
            make, self.n_chains, plan, control=control, executor=executor, checkpoint=checkpoint
        )
        self.objective_trace_ = chains.runs[0].log_joint
        self.n_iter_, self.converged_ = chains.n_iter, chains.reason == "done"
        n_draws = 0 if chains.provisional else len(chains.draws)
        note_early_end(self.fit_report_, chains.reason, n_draws, provisional=chains.provisional)
        settle(self, table, found[0][1], chains.draws, order, blocks, rng)

    def _search(
        self,
        table: OverlapTable,
        rngs: list[np.random.Generator],
        plan: OverlapPlan,
        executor: Any,
        control: Control,
    ) -> list[tuple[float, State]]:
        """Where chains start, the best first; kept in the folder of checkpoints, where there is one."""
        kept = None if self.resume is None else Path(self.resume) / "searches.npz"
        if kept is not None and kept.exists():
            return unpack(read_arrays(kept))
        began = time.perf_counter()

        def is_late(number: int) -> bool:
            """Searches, one after the other, have half of the time that there is."""
            share = 0.5 * (number + 1) / len(rngs)
            late = time.perf_counter() > began + share * (control.deadline - began)
            if late:
                control.stop("time_limit", everything=False)
            return late

        found = find_states(table, rngs, plan, self.init, executor, is_late)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(kept, pack(found))
        return found

    def _about(self, rng: np.random.Generator, plan: OverlapPlan) -> tuple[Any, ...]:
        """What a checkpoint belongs to."""
        key = rng.bit_generator.state["state"]["state"] % 2**62
        families = tuple(tuple(block.family) for block in self._blocks)
        return (key, plan.n_draws, plan.burn_in, plan.thin, plan.largest, families)

    def _tell(self) -> None:
        """What follows from the draws and the estimate, after a fit and after a load."""
        self.dependence_ = dependence(self.draws_)
        unread = np.setdiff1d(np.arange(self.schema_.n_features), self._modelled())
        self.dependence_[unread] = self.dependence_[:, unread] = 0.0
        self.n_views_ = self.view_labels_.shape[1]
        numbers, times = np.unique([telling_views(draw) for draw in self.draws_], return_counts=True)
        self.n_views_posterior_ = {
            int(n): float(t / times.sum()) for n, t in zip(numbers, times, strict=True)
        }
        provisional = "provisional" in self.fit_report_
        if provisional:
            self.n_views_posterior_ = {}
        self.diagnostics_ = diagnose_views(self.draws_, provisional=provisional)
        self.profiles_ = view_profiles(self._estimate, self._blocks, self.schema_)

    # ---- using -------------------------------------------------------------------------------------------------

    def _encode(self, X: Any):
        if self.covariance == "full":
            raise ValueError(
                "with covariance='full' rows have no density here: use covariance='diagonal' to ask"
            )
        data, table = super()._encode(X)
        if self.exposure == LENGTH:
            data = [_own_length(part) for part in data]
        return data, table

    def predict(self, X: Any) -> np.ndarray:
        """Most probable cluster of each row in each view, by the view's own columns alone: (n_rows, n_views).

        On training rows it may differ from ``view_labels_``, which knows the other views' labels.
        """
        check_is_fitted(self)
        if self.view_labels_.shape[1] == 0:
            return np.zeros((self._encode(X)[1].n_rows, 0), dtype=np.int64)
        return super().predict(X)

    def fit_predict(self, X, y=None):
        """Fit, and return ``view_labels_``."""
        return self.fit(X).view_labels_

    def perplexity(self, X: Any) -> float:
        """Perplexity of the words of new documents given their lengths (``exposure="length"``).

        Each word is Poisson with the document's length; given the length the words of a document are multinomial. The
        rates are at their posterior means, the labels of a new document are summed over, draws are averaged.
        """
        check_is_fitted(self)
        if self.exposure != LENGTH:
            raise ValueError("perplexity() is for text: fit with exposure='length' and kinds='count'")
        if not self._words:
            raise ValueError("perplexity() is for tables of counts alone: leave the other columns out")
        counts = self._encode(X)[0][0].X
        if np.isnan(counts).any():
            raise ValueError("perplexity() needs complete documents: some counts are missing")
        length = counts.sum(axis=1)
        orders = gammaln(length + 1.0) - gammaln(counts + 1.0).sum(axis=1)
        log_p = log_words(self._words, counts, length) - orders
        return perplexity(float(log_p.sum()), float(length.sum()))

    # ---- scikit-learn and storage --------------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _state(self):
        def named(family):
            return entry_of(family).name

        return {
            "schema": self.schema_.to_dict(),
            "report": self.fit_report_.to_list(),
            "blocks": [
                {"family": named(b.family), "hyper": list(b.family), "columns": list(b.columns)}
                for b in self._blocks
            ],
            "draws": as_plain(self.draws_, named),
            "estimate": as_plain([self._estimate], named),
            "n_clusters_posterior": self.n_clusters_posterior_,
            "words": [
                [list(draw.log_shares), [list(group) for group in draw.groups]] for draw in self._words
            ],
            **{name: getattr(self, name) for name in KEPT},
        }

    def _restore(self, state):
        self._remember(Schema.from_dict(state["schema"]))
        self.fit_report_ = FitReport.from_list(state["report"])
        self._blocks = tuple(
            Block(family_entry(b["family"]).cls(*b["hyper"]), None, tuple(b["columns"]))
            for b in state["blocks"]
        )
        self.draws_ = from_plain(state["draws"], lambda name: family_entry(name).cls)
        (self._estimate,) = from_plain(state["estimate"], lambda name: family_entry(name).cls)
        self.n_clusters_posterior_ = state["n_clusters_posterior"]
        self._words = tuple(
            WordDraw(tuple(shares), tuple(WordGroup(*group) for group in groups))
            for shares, groups in state["words"]
        )
        for name in KEPT:
            setattr(self, name, state[name])
        self._tell()


KEPT = (
    "view_labels_",
    "feature_views_",
    "membership_",
    "confidence_",
    "objective_trace_",
    "n_iter_",
    "converged_",
)


def _read_buffet(buffet: Any) -> tuple[float, float]:
    if buffet is None:
        return 1.0, 1.0
    try:
        alpha, beta = (float(value) for value in buffet)
    except (TypeError, ValueError):
        raise ValueError(f"buffet is {buffet!r}: give a pair of positive numbers, (alpha, beta)") from None
    if not (alpha > 0 and beta > 0):
        raise ValueError(f"buffet is {buffet!r}: alpha and beta must be above zero")
    return alpha, beta


def _own_length(part: Any) -> Any:
    if not isinstance(part, Counts):
        return part
    return Counts(part.X, np.maximum(np.nansum(part.X, axis=1), 1.0))
