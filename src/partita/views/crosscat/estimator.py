"""CrossCat: many clusterings of one table, each by its own columns."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from partita.engines.gibbs.chain import average_families
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, FitReport, as_generator, note_early_end, warn_user
from partita.execution import check_memory
from partita.families import Block, entry_of, family_entry
from partita.fitting.families import assemble, plan_families
from partita.fitting.request import kinds_asked
from partita.posterior import point_estimate
from partita.table import Schema, Table
from partita.views.base import Draw, as_plain, columns_of, from_plain
from partita.views.crosscat import sampling
from partita.views.crosscat.layout import Layout, lay_out, put_columns
from partita.views.profiles import view_profiles
from partita.views.queries import ViewsEstimator
from partita.views.questions import dependence
from partita.views.summary import diagnose_views, summarise, telling_views

__all__ = ["CrossCat"]

INFERENCES = {"gibbs": sampling.fit_chains, "vb": sampling.fit_vb, "search": sampling.fit_search}
VIEW_DEFAULT = {"real": "gaussian"}
SMALL = 100_000  # cells


class CrossCat(ViewsEstimator):
    """Which groupings does a table have, and which columns does each of them come from?

    A Dirichlet process puts every column into one *view*; in each view another one puts the rows into clusters, and
    given those the cells of a column in a cluster are independent. Columns may be real, count, binary or categorical,
    in any mixture, with missing cells anywhere.

    Good for tables whose columns fall into groups that tell different stories, for which columns depend on which, and
    for questions about single cells. Not for columns that serve several groupings at once: a column has one view.

    Parameters
    ----------
    family : "auto", str, pair or mapping, default "auto"
        The likelihood of each column, as in :class:`~partita.Mixture`, but column by column: "gaussian", "exponential",
        "poisson", "bernoulli", "categorical". Full covariances and count vectors have no column of their own.
    inference : {"gibbs", "vb", "search"}, default "gibbs"
        "gibbs": chains over columns and rows; the posterior. "vb": variational Bayes, with independent draws from its
        approximation. "search": short chains and climbs, the one state of the highest probability found.
    together, apart : sequence of sequences of columns, optional
        Groups of columns (names or numbers) that share a view, and groups of which no two do.
    concentration, view_concentration : float, optional
        Of the clusters in each view, and of the views; left out, they are learned.
    learn_hyper : bool, default True
        Whether the hyper-parameters of the columns are learned.
    n_chains : int, default 4
        Chains (starts of "search"), each from its own screening of the dependence between columns.
    n_draws, thin : int, default 20, 1
        Draws that each chain keeps, and iterations for each.
    burn_in : int, optional
        Iterations before the first draw; by default 10, and 50 for tables of fewer than 100,000 cells.
    partition : {"vi", "binder", "votes"}, default "vi"
        How the labels of the draws become one partition of the rows in each view.
    max_views, max_clusters : int, default 20, 10
        Bounds of "vb".
    max_iter : int, default 100
        Iterations of "vb", and of each start of "search".
    tol : float, default 1e-5
        "vb" stops when an iteration raises the bound by less than this a cell.
    precision : {"single", "double"}, default "single"
        Of the predictive cache that sweeps read.
    kinds, exposure, handle_unknown
        As in :class:`~partita.Mixture`.
    random_state : None, int, RandomState, Generator or SeedSequence
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress` (``n_clusters`` counts views); returning True stops the fit.
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
        Clusters of the rows in each view of the estimate, the largest first; views with at least two clusters come
        first, those with more columns before those with fewer. A last view may have one cluster: the columns there
        depend on nothing.
    n_views_ : int
        Views with at least two clusters.
    n_views_posterior_ : dict
        Probability of each number of such views.
    feature_views_ : ndarray (n_columns, n_views)
        Probability that a column belongs to each view.
    column_labels_ : ndarray (n_columns,)
        View of each column in the estimate; -1 for columns that are not modelled.
    dependence_ : ndarray (n_columns, n_columns)
        Probability that two columns share a view with at least two clusters.
    n_clusters_posterior_ : list of dict
        For each view, probability of each number of clusters.
    profiles_ : list of dict
        For each view, what each cluster looks like in each of its columns, in the user's units and labels.
    diagnostics_ : ViewDiagnostics
        Whether the chains agree: the spread of ``dependence_`` between them, and a sentence.
    draws_ : tuple of Draw
        What all of this sums up.
    fit_report_ : FitReport
        What was unusual about the data and the fit.
    objective_trace_ : ndarray
        Log joint of the first chain (the best start of "search"), or the bound of "vb", by iteration.
    n_iter_, converged_
        How that went.
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

    _parameter_constraints = {
        "family": "no_validation",
        "inference": [StrOptions({"gibbs", "vb", "search"})],
        "together": "no_validation",
        "apart": "no_validation",
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "view_concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [None, Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "partition": [StrOptions({"vi", "binder", "votes"})],
        "max_views": [Interval(Integral, 1, None, closed="left")],
        "max_clusters": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "precision": [StrOptions({"single", "double"})],
        "kinds": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
        **RUNNING_CONSTRAINTS,
    }

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
        n_chains=4,
        n_draws=20,
        burn_in=None,
        thin=1,
        partition="vi",
        max_views=20,
        max_clusters=10,
        max_iter=100,
        tol=1e-5,
        precision="single",
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
        self.family = family
        self.inference = inference
        self.together = together
        self.apart = apart
        self.concentration = concentration
        self.view_concentration = view_concentration
        self.learn_hyper = learn_hyper
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
        CrossCat
        """
        self._validate_params()
        control = self._control()
        with self._whole_or_not_at_all():
            plan = plan_families(VIEW_DEFAULT if self.family == "auto" else self.family, self.kinds)
            table = self._read_training(X, kinds_asked(plan, self.exposure), None)
            blocks = assemble(table, plan, self.exposure)
            _check_blocks(blocks)
            layout = self._lay_out(blocks)
            ask = self._ask(table, control)
            rng = as_generator(ask.rngs[0].integers(2**32))
            found = INFERENCES[self.inference](layout, ask)
            self._settle(found, layout, blocks, rng)
        if found.reason == "max_iter":
            warn_user(
                f"{type(self).__name__} did not converge in {self.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
            )
        self.fit_report_.warn()
        return self

    def _lay_out(self, blocks: Sequence[Block]) -> Layout:
        """The layout with the user's constraints, columns numbered block after block."""
        flat = np.concatenate(columns_of(self.schema_, blocks))
        place = {int(number): i for i, number in enumerate(flat)}
        self._blocks = tuple(Block(block.family, None, block.columns) for block in blocks)

        def numbers(groups: Any, what: str) -> list[list[int]]:
            if groups is None:
                return []
            if isinstance(groups, str) or not all(_is_group(group) for group in groups):
                raise ValueError(f"{what} is {groups!r}: give a list of groups of columns, by name or number")
            return [[place[self._column_of(c)] for c in group] for group in groups]

        together = numbers(self.together, "together")
        pairs = [
            (a, b)
            for group in numbers(self.apart, "apart")
            for i, a in enumerate(group)
            for b in group[i + 1 :]
        ]
        layout = lay_out(blocks, together, pairs)
        if layout.apart.diagonal().any():
            raise ValueError("apart= parts columns that together= joins: take them out of one of the two")
        return layout

    def _column_of(self, column: Any) -> int:
        names = self.schema_.names
        number = names.index(self.schema_.column(column).name)
        if number not in self._modelled():
            raise ValueError(
                f"column {names[number]!r} is not modelled: leave it out of together= and apart="
            )
        return number

    def _ask(self, table: Table, control: Control) -> sampling.Request:
        labels = self.n_chains * self.n_draws * table.n_rows * len(table.schema.columns)
        check_memory(
            labels // 2,  # about one view for every other column, at the most
            f"{self.n_chains} chains of {self.n_draws} draws over {table.n_rows:,} rows",
            "ask for fewer draws (n_draws, n_chains), or fit a sample of the rows",
        )
        return sampling.Request(
            rngs=as_generator(self.random_state).spawn(self.n_chains),
            n_draws=self.n_draws,
            burn_in=_burn_in(table) if self.burn_in is None else self.burn_in,
            thin=self.thin,
            concentration=None if self.concentration is None else float(self.concentration),
            view_concentration=None if self.view_concentration is None else float(self.view_concentration),
            learn_likelihood=self.learn_hyper,
            dtype=np.float32 if self.precision == "single" else np.float64,
            max_views=self.max_views,
            max_clusters=self.max_clusters,
            max_iter=self.max_iter,
            tol=self.tol,
            control=control,
            executor=self._make_executor(),
            folder=self.resume,
        )

    def _settle(self, found: sampling.Found, layout: Layout, blocks: Sequence[Block], rng: Any) -> None:
        """From snapshots to the fitted attributes."""
        D, where = self.schema_.n_features, columns_of(self.schema_, blocks)
        self.draws_ = tuple(sampling.as_draw(one, where, D) for one in found.snapshots)
        families = _mean_families(layout, found.snapshots)
        self._blocks = tuple(
            Block(family, None, block.columns) for family, block in zip(families, blocks, strict=True)
        )
        modelled = np.concatenate(where)
        membership = estimate_membership(self.draws_, modelled, D, rng)
        summary = summarise(self.draws_, membership, self.partition, rng)
        clusters = summary.view_labels.max(axis=0) + 1
        order = np.lexsort((-membership.sum(axis=0), clusters < 2))
        membership = membership[:, order]
        self.view_labels_ = summary.view_labels[:, order]
        self.feature_views_ = summary.feature_views[:, order]
        self.n_clusters_posterior_ = [summary.n_clusters_posterior[v] for v in order]
        self.column_labels_ = np.where(membership.any(axis=1), membership.argmax(axis=1), -1)
        place = {int(number): i for i, number in enumerate(modelled)}
        factors = tuple(
            sampling.labels_factor(
                layout,
                families,
                np.sort([place[int(c)] for c in np.flatnonzero(membership[:, v])]),
                self.view_labels_[:, v],
                where,
            )
            for v in range(membership.shape[1])
        )
        self._estimate = Draw(membership, self.view_labels_, factors, np.nan, 0, np.ones(1 + len(factors)))
        self.objective_trace_, self.n_iter_ = found.objective, len(found.objective)
        self.converged_ = found.reason in ("done", "converged")
        if self.inference == "gibbs":
            n_draws = 0 if found.provisional else len(self.draws_)
            note_early_end(self.fit_report_, found.reason, n_draws, provisional=found.provisional)
        elif not self.converged_:
            self.fit_report_.add("not_converged", f"the fit ended by {found.reason}, not by convergence")
        self._tell()
        if (
            self.inference == "gibbs"
            and self.n_chains > 1
            and not found.provisional
            and not self.diagnostics_.ok
        ):
            self.fit_report_.add("chains_disagree", self.diagnostics_.sentence, level="warning")

    def _tell(self) -> None:
        """What follows from the draws and the estimate, after a fit and after a load."""
        self.dependence_ = dependence(self.draws_)
        unread = np.setdiff1d(np.arange(self.schema_.n_features), self._modelled())
        self.dependence_[unread] = self.dependence_[:, unread] = 0.0
        self.n_views_ = int(np.count_nonzero(self.view_labels_.max(axis=0, initial=0) > 0))
        numbers, times = np.unique([telling_views(draw) for draw in self.draws_], return_counts=True)
        self.n_views_posterior_ = {
            int(n): float(t / times.sum()) for n, t in zip(numbers.tolist(), times.tolist(), strict=True)
        }
        provisional = "provisional" in self.fit_report_
        if provisional:
            self.n_views_posterior_ = {}
        self.diagnostics_ = diagnose_views(self.draws_, provisional=provisional)
        self.profiles_ = view_profiles(self._estimate, self._blocks, self.schema_)

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
        for name in KEPT:
            setattr(self, name, state[name])
        self._tell()


KEPT = ("view_labels_", "feature_views_", "column_labels_", "objective_trace_", "n_iter_", "converged_")


def _burn_in(table: Table) -> int:
    """Small tables are cheap, and have less to say: their chains wander longer."""
    return 50 if table.n_rows * len(table.schema.columns) < SMALL else 10


def _is_group(group: Any) -> bool:
    return not isinstance(group, (str, Integral)) and hasattr(group, "__iter__")


def _check_blocks(blocks: Sequence[Block]) -> None:
    if not blocks:
        raise ValueError("no column is left to model: every column is ignored")
    for block in blocks:
        entry = entry_of(block.family)
        if entry.vector:
            raise ValueError(
                f"family {entry.name!r} reads its columns as one vector, and here every column chooses its view: use "
                "'gaussian' for real columns, 'poisson' for counts"
            )


def _mean_families(layout: Layout, snapshots: Sequence[Any]) -> tuple[Any, ...]:
    """The families of all columns, their hyper-parameters averaged over the draws on their free scales."""
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
    draws: Sequence[Draw], modelled: np.ndarray, n_columns: int, rng: np.random.Generator
) -> np.ndarray:
    """One division of the columns into views, from those of the draws: [column, view] bool."""
    drawn = np.stack([draw.membership[modelled].argmax(axis=1) for draw in draws])
    # no more views than draws have: columns that are uncertain would else be views of their own
    most = int(np.median([len(np.unique(z)) for z in drawn]))
    z = point_estimate(drawn, "vi", max_clusters=most, random_state=rng).labels
    _, z = np.unique(z, return_inverse=True)
    membership = np.zeros((n_columns, int(z.max()) + 1), bool)
    membership[modelled, z] = True
    return membership
