"""The base class of models of views: what follows from the draws, and storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from partita.engines.passes.rows import n_stats
from partita.estimator import RunningMixin, as_generator, note_early_end
from partita.families import Block, Ordinal, entry_of, family_entry
from partita.fitting.families import assemble, plan_families
from partita.fitting.real_columns import Steps, describe_steps, steps_of
from partita.fitting.settling import note_agreement
from partita.fitting.storage import check_family, pack_coding, unpack_coding
from partita.table import Table
from partita.views.depths import mean_depths
from partita.views.diagnostics import ViewTrace, dependence_error, diagnose_views
from partita.views.draw_queries import dependence
from partita.views.draws import LIKELY, Draw, as_plain, columns_of, from_plain, is_view
from partita.views.nuisance import MeanRowFactors
from partita.views.profiles import view_profiles
from partita.views.queries import ViewQueries
from partita.views.real_columns import take_steps


class HasLength(Protocol):
    """How long chains ran."""

    @property
    def reason(self) -> str: ...
    @property
    def provisional(self) -> bool: ...
    @property
    def burn_in(self) -> int: ...
    @property
    def agreed_at(self) -> int | None: ...


class ViewsEstimator(RunningMixin, ViewQueries):
    """Base of the estimators of views.

    ``fit`` of a subclass sets ``draws_``, ``_blocks``, ``_estimate`` and the attributes of ``_stored``, then calls
    ``_describe_draws``.
    """

    _counted = "views"
    _array_laws: tuple[str, ...] = (
        "fitted.view_labels_ int (A,V) 0..",
        "fitted.feature_views_ float (C,V) 0..1",
        "fitted.confidence_ float (A,V) 0..1 nan",
        "fitted.row_factors_ float (A,R)",
        "fitted.loadings_ float (C,R)",
        "fitted.row_sizes_ float (A)",
        "fitted.row_depths_ float (A) 0..",
        "fitted.objective_trace_ float (T)",
        "blocks.*.hyper.* number (...)",
        "blocks.*.coding.* float (...) nan",
        "draws.*.membership bool (C,v)",
        "draws.*.labels int (N,v) 0..N-1",
        "draws.*.concentrations float (c) 0.. nan",
        "draws.*.rows float (n,r)",
        "draws.*.loadings float (r,d)",
        "draws.*.gain float (g)",
        "draws.*.depths float (e) 0..",
        "draws.*.factors.*.columns int (f) 0..C-1",
        "draws.*.factors.*.log_weights float (k) -inf",
        "draws.*.factors.*.blocks.*.positions int (p) 0..C-1",
        "draws.*.factors.*.blocks.*.hyper.* number (...)",
        "draws.*.factors.*.blocks.*.S float (s,k)",
        "estimate.*.membership bool (C,v)",
        "estimate.*.labels int (N,v) 0..N-1",
        "estimate.*.concentrations float (c) 0.. nan",
        "estimate.*.rows float (n,r)",
        "estimate.*.loadings float (r,d)",
        "estimate.*.gain float (g)",
        "estimate.*.depths float (e) 0..",
        "estimate.*.factors.*.columns int (f) 0..C-1",
        "estimate.*.factors.*.log_weights float (k) -inf",
        "estimate.*.factors.*.blocks.*.positions int (p) 0..C-1",
        "estimate.*.factors.*.blocks.*.hyper.* number (...)",
        "estimate.*.factors.*.blocks.*.S float (s,k)",
    )
    _stored: ClassVar[tuple[str, ...]] = (
        "view_labels_",
        "feature_views_",
        "n_clusters_posterior_",
        "confidence_",
        "confidence_kind_",
        "row_factors_",
        "loadings_",
        "row_sizes_",
        "row_depths_",
        "objective_trace_",
        "n_iter_",
        "converged_",
    )
    family: Any
    kinds: Any
    n_chains: int
    n_draws: int | None
    burn_in: int | None

    def fit_predict(self, X, y=None):
        """Fit the views and return ``view_labels_``.

        Parameters
        ----------
        X : array or data frame
            The table, as in ``fit``.
        y : ignored

        Returns
        -------
        ndarray (n_rows, n_views)
        """
        return self.fit(X).view_labels_

    def _plan_families(self) -> Any:
        return plan_families(self.family, self.kinds)

    def _read_training(self, X: Any, kinds: Any, sample_weight: Any, **options: Any) -> Table:
        """As in the base class; answers on a scale are numbers, so that a style of response can be a row factor."""
        return super()._read_training(X, kinds, sample_weight, **{"infer_ordinal": "numbers"} | options)

    def _keep_families(self, blocks: Sequence[Block]) -> None:
        """Keep families and names of the columns, without the data."""
        self._blocks = tuple(
            Block(block.family, None, block.columns, coding=block.coding) for block in blocks
        )

    def _assemble(self, table: Table, plan: Any, exposure: str | None) -> tuple[Block, ...]:
        """The blocks of the table, with the steps for real columns where their family is chosen automatically."""
        name, options = plan.families.get("real", ("", {}))
        is_automatic = name == "auto"
        blocks = assemble(table, plan.with_real("gaussian") if is_automatic else plan, exposure)
        check_families(blocks)
        if is_automatic:
            (child,) = as_generator(self.random_state).spawn(1)
            rng = child.spawn(1)[0]  # not that of a chain
            blocks = take_steps(blocks, table, self._allowed_steps(steps_of(options)), rng)
        for code, sentence in describe_steps(blocks):
            self.fit_report_.add(code, sentence, level="info")
        return blocks

    def _allowed_steps(self, steps: Steps) -> Steps:
        """The steps for real columns that the model can take."""
        return steps

    def _note_chains(self, reason: str, provisional: bool) -> None:
        """Note an early end of the chains in the report."""
        n_draws = 0 if provisional else len(self.draws_)
        note_early_end(self.fit_report_, reason, n_draws, provisional=provisional)

    def _note_length(self, run: HasLength) -> None:
        """Note how long chains ran whose length follows from their agreement."""
        if self.n_chains > 1 and None in (self.n_draws, self.burn_in) and not run.provisional:
            is_done = run.reason == "done"
            note_agreement(self.fit_report_, run.agreed_at, run.burn_in, self.n_iter_, is_done=is_done)

    def _describe_draws(self) -> None:
        """Set the attributes that follow from the draws and the estimate, after a fit and after a load."""
        provisional = "provisional" in self.fit_report_
        self.dependence_ = dependence(self.draws_)
        not_modeled = np.setdiff1d(np.arange(self.schema_.n_features), self._modeled())
        self.dependence_[not_modeled] = self.dependence_[:, not_modeled] = 0.0
        self.counted_views_ = np.flatnonzero(is_view(self.feature_views_ >= LIKELY, self.view_labels_))
        self.dependence_error_ = dependence_error(self.draws_)
        self.dependence_error_[not_modeled] = self.dependence_error_[:, not_modeled] = 0.0
        trace = ViewTrace.of(self.draws_)
        if getattr(self, "inference", "gibbs") == "gibbs":  # draws of the other engines come from no chain
            self.trace_ = trace
        self.n_views_posterior_ = {} if provisional else trace.n_views_posterior
        self.n_views_ = self._count_views()
        self.diagnostics_ = diagnose_views(self.draws_, provisional=provisional)
        self.profiles_ = view_profiles(
            self._estimate, self.draws_[-1], self._blocks, self._parts(), self.schema_
        )

    def _count_views(self) -> int:
        """The most probable number of views that are counted; without a posterior, that of the estimate."""
        shown = len(self.counted_views_)
        if not self.n_views_posterior_:
            return shown
        best = max(self.n_views_posterior_.values())
        modes = [n for n, p in self.n_views_posterior_.items() if p == best]
        n_views = min(modes, key=lambda n: abs(n - shown))
        if n_views != shown:
            self.fit_report_.add(
                "number_of_views",
                f"view_labels_ shows {shown} views with at least two clusters and two columns, but {n_views} are the "
                f"most probable number (n_views_, probability {best:.2f}; the other numbers are in "
                "n_views_posterior_)",
                level="info",
            )
        return n_views

    def _set_row_factors(self, found: MeanRowFactors) -> None:
        """Set the row factors, their loadings and the sizes of the rows, and note them in the report."""
        self.row_factors_, self.loadings_, self.row_sizes_ = found.rows, found.loadings, found.sizes
        rank = found.rows.shape[1]
        if rank:
            self.fit_report_.add(
                "row_factors",
                f"beside the views, {_describe_factors(found.loadings)}: see row_factors_ and loadings_; nuisance=0 "
                "fits a model without",
                level="info",
            )
        if np.ptp(found.sizes) > 0:
            low, high = np.quantile(found.sizes, [0.05, 0.95])
            self.fit_report_.add(
                "row_sizes",
                "differences between clusters grow with the row factors: they are multiplied by a size of the row, "
                f"between {low:.2f} and {high:.2f} for nine rows in ten (row_sizes_); gain=False fits a model in which "
                "all sizes are 1",
                level="info",
            )

    def _set_depths(self, draws: Sequence[Draw], n_rows: int) -> None:
        """Set the depths of the rows, averaged over the draws, and note them in the report."""
        self.row_depths_ = mean_depths(draws, n_rows)
        if any(draw.depth_shape for draw in draws):
            low, high = np.quantile(self.row_depths_, [0.05, 0.95])
            self.fit_report_.add(
                "row_depths",
                "all counts of a row are multiplied by a depth of the row beside the views, between "
                f"{low:.2f} and {high:.2f} for nine rows in ten (row_depths_); nuisance=0 fits a model without",
                level="info",
            )

    def _note_disagreement(self) -> None:
        """Note in the report that several chains disagree."""
        comparable = len(self.diagnostics_.n_views_by_chain) > 1 and "provisional" not in self.fit_report_
        if comparable and not self.diagnostics_.ok:
            self.fit_report_.add("chains_disagree", self.diagnostics_.sentence, level="warning")

    def _state(self):
        return super()._state() | {
            "blocks": [
                {
                    "family": _name(b.family),
                    "hyper": list(b.family),
                    "columns": list(b.columns),
                    "coding": pack_coding(b.coding),
                }
                for b in self._blocks
            ],
            "draws": as_plain(self.draws_, _name),
            "estimate": as_plain([self._estimate], _name),
        }

    def _restore(self, state):
        super()._restore(state)
        self._blocks = tuple(
            Block(
                _class(b["family"])(*b["hyper"]),
                None,
                tuple(b["columns"]),
                coding=unpack_coding(b.get("coding")),
            )
            for b in state["blocks"]
        )
        self.draws_ = from_plain(state["draws"], _class)
        (self._estimate,) = from_plain(state["estimate"], _class)
        for block in self._blocks:
            check_family(block, self.schema_)
        for draw in (*self.draws_, self._estimate):
            self._check_draw(draw)
        self._describe_draws()

    def _check_draw(self, draw: Draw) -> None:
        """Refuse a draw of a file whose statistics do not belong to its columns."""
        where = columns_of(self.schema_, self._blocks)
        if not (draw.membership.size and draw.labels.size and draw.concentrations.size):
            raise ValueError("a draw has no view")
        shape = (len(draw.rows), draw.loadings.shape[1])
        if draw.gain is not None and len(draw.gain) != len(draw.loadings):
            raise ValueError("the gains of a draw do not belong to its row factors")
        if draw.depth_shape and not (draw.depth_shape > 0 and len(draw.depths) == len(draw.labels)):
            raise ValueError("the depths of a draw do not belong to its rows")
        if len(draw.loadings) and shape != (len(draw.labels), self.schema_.n_features):
            raise ValueError("the row factors of a draw do not belong to its rows and columns")
        for factor in draw.factors:
            columns = []
            for part in factor.blocks:
                if not 0 <= part.block < len(where) or part.positions.max(initial=0) >= len(
                    where[part.block]
                ):
                    raise ValueError("a draw has columns that its blocks do not have")
                block = self._blocks[part.block]
                names = tuple(block.columns[position] for position in part.positions)
                coding = None if block.coding is None else block.coding.take(part.positions)
                check_family(Block(part.family, None, names, coding=coding), self.schema_)
                if len(part.S) != n_stats(part.family):
                    raise ValueError("the statistics of a draw do not belong to its families")
                columns.append(where[part.block][part.positions])
            if not np.array_equal(factor.columns, np.concatenate(columns)):
                raise ValueError("the columns of a draw are not those of its blocks")


def estimate_draw(
    membership: np.ndarray,
    labels: np.ndarray,
    factors: tuple[Any, ...],
    found: MeanRowFactors,
    draws: Sequence[Draw],
) -> Draw:
    """The estimate in the form of a draw, with the mean depths of the draws."""
    shapes = [draw.depth_shape for draw in draws]
    return Draw(
        membership,
        labels,
        factors,
        np.nan,
        0,
        np.ones(1 + len(factors)),
        found.rows,
        np.ascontiguousarray(found.loadings.T),
        found.gain,
        mean_depths(draws, len(labels)) if any(shapes) else np.zeros(0),
        float(np.mean(shapes)),
    )


def check_families(blocks: Sequence[Block]) -> None:
    """Refuse tables without modeled columns, and families that they cannot read column by column."""
    if not blocks:
        raise ValueError("no column is left to model: every column is ignored")
    for block in blocks:
        entry = entry_of(block.family)
        if isinstance(block.family, Ordinal):
            raise ValueError(
                f"models of views cannot draw the latent variables of ordinal columns ({block.columns[0]!r}): declare "
                "them 'categorical' (or 'real' if their levels are numbers), or use Mixture"
            )
        if entry.vector:
            raise ValueError(
                f"family {entry.name!r} reads its columns as one vector, but here each column has its own view: use "
                "'gaussian' for real columns, 'poisson' for counts"
            )


def _describe_factors(loadings: np.ndarray) -> str:
    """Which columns share how many row factors; ``loadings`` [column, rank] are 0 in columns without a part."""
    has_part = loadings != 0
    of_all = int(has_part[has_part.any(axis=1)].all(axis=0).sum())
    of_groups = loadings.shape[1] - of_all
    parts = []
    if of_all:
        parts.append(f"all real columns share {of_all} continuous {_factors(of_all)} of the rows")
    if of_groups:
        text = "groups of columns" if of_groups > 1 else "a group of columns"
        end = (
            "which correlate them inside clusters"
            if of_groups > 1
            else "which correlates them inside clusters"
        )
        verb = "share" if of_groups > 1 else "shares"
        parts.append(f"{text} {verb} {of_groups} continuous {_factors(of_groups)} of the rows, {end}")
    return ", and ".join(parts)


def _factors(n: int) -> str:
    return "factor" if n == 1 else "factors"


def _name(family: Any) -> str:
    return entry_of(family).name


def _class(name: str) -> Any:
    return family_entry(name).cls
