"""Bayesian cluster ensembles: objects with mixed memberships, and a latent cluster for every label."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.bce import gibbs, vb
from partita.consensus.bce.concentration import MAX_ALPHA, MIN_ALPHA
from partita.consensus.label_layout import LabelLayout, fold_in, lay_out, level_sums, log_predictive_rows
from partita.consensus.labelings import Labelings
from partita.engines.checkpoints import Checkpoint, open_checkpoint
from partita.engines.run import STOPPED_EARLY, Control, Run, Sampler, run_chains
from partita.estimator import (
    RUNNING_CONSTRAINTS,
    RunningMixin,
    have_converged,
    judge_chains,
    note_early_end,
    warn_user,
)
from partita.execution import check_memory
from partita.fitting.out_of_core import reads_chunks
from partita.labels import signatures
from partita.metrics import perplexity
from partita.trace import join, trace_bytes


class BCE(RunningMixin, ConsensusEstimator):
    """Bayesian cluster ensembles: a consensus in which objects may belong to several clusters.

    Object i has memberships ``theta_i ~ Dirichlet(alpha)``. Each of its labels has a latent cluster drawn from these
    memberships, and the label is drawn from the distribution of that cluster over the labels of the member, which has
    the prior ``Dirichlet(smoothing)``. Missing labels are left out of the likelihood.

    Good for soft consensus with a known number of clusters, if objects lie between groups. If every object belongs to
    one group, a mixture (``MixtureConsensus``, ``NBCE``) needs fewer parameters.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of consensus clusters. None: the number from 1 to ``max_clusters`` with the highest variational bound
        (plus the log of the number of ways to name the clusters), for both kinds of inference.
    inference : {"vb", "gibbs"}, default="vb"
        "vb": variational Bayes on the distinct rows; any weights, any size. "gibbs": chains of collapsed Gibbs sweeps
        on rows; weights of rows and of members must be whole numbers, and members may not be soft.
    max_clusters : int, default=10
        Largest number that is tried without ``n_clusters``.
    concentration : float or array of shape (n_clusters,), default=None
        The Dirichlet parameter alpha of the memberships, or its starting value if it is learned; by default 1 /
        n_clusters. Small values make objects belong to one cluster.
    learn_concentration : bool or "symmetric", default=True
        Whether alpha is learned: by Newton on the bound for VB, by random walks under Gamma(1, 1) priors in chains.
        With "symmetric" all clusters share one value.
    smoothing : float, default=0.5
        Dirichlet parameter of every label of a member in a cluster.
    n_init : int, default=5
        Number of starts of VB; the one with the highest bound is kept. With more than 40,000 distinct rows, the starts
        are run on a sample of 20,000, and the best one continues with all rows.
    max_iter, tol : int, default=500; float, default=1e-5
        Maximum number of iterations per start, and the increase of the bound per object below which a start stops.
    n_chains, n_draws, burn_in, thin : int, default=2, 200, 100, 1
        Number of chains, of draws that each chain keeps, of iterations before the first draw, and of iterations per
        draw.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence
        Source of randomness; the global generator is never used.
    time_limit : float, default=None
        Wall seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, default=None
        Called after each iteration with a :class:`~partita.engines.run.Progress`; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the result so far instead of raising.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, default=None
        Where the work runs; the result does not depend on it.
    resume : path, default=None
        A folder that keeps the state of the chains: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    memberships_ : ndarray (n_objects, n_clusters)
        Expected memberships. VB: equal to ``predict_proba`` of the training rows. Gibbs: mean over the draws, clusters
        aligned by optimal assignment; ``predict_proba`` folds rows into the mean of the draws and may differ. An object
        without labels has the memberships of the prior.
    labels_ : ndarray (n_objects,)
        Cluster with the largest membership; 0 is the largest cluster.
    confidence_ : ndarray (n_objects,)
        The largest membership: the share of an object's labels that belong to its cluster, not the probability of
        being right.
    confidence_kind_ : str
        "membership".
    n_clusters_ : int
        Number of clusters that have objects.
    member_weights_ : ndarray (n_members,)
        Weights as given; 0 for members that took no part.
    concentration_ : ndarray (n_clusters,)
        The Dirichlet parameter alpha of the memberships, given or learned.
    lower_bound_ : float
        VB: lower bound of the log evidence (at the learned alpha).
    n_clusters_scores_ : dict
        If the number of clusters was not given: the score of each number; higher is better.
    n_iter_, converged_, objective_trace_, fit_report_
        Number of iterations, whether the fit converged, its objective by iteration, and notes.
    n_features_in_, feature_names_in_, schema_
        The members.

    Notes
    -----
    Chains have ``trace_`` (in each draw every object is in the cluster of its largest expected membership) and
    ``diagnostics_`` instead of ``lower_bound_`` and ``objective_trace_``.

    The weight of a member is a power on its likelihood with the latent cluster summed out: weight 2 has the effect of
    two equal labels, each with its own latent cluster.

    References
    ----------
    Wang, Shan and Banerjee (2011), Bayesian cluster ensembles, Statistical Analysis and Data Mining 4(1).

    Examples
    --------
    Half of the members put the last two objects with the first group, half with the second.

    >>> import numpy as np
    >>> from partita.consensus import BCE
    >>> Y = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], [22, 18, 2], axis=0)
    >>> model = BCE(n_clusters=2, random_state=0).fit(Y)
    >>> model.memberships_[[0, 30, 41]].round(1)
    array([[1. , 0. ],
           [0. , 1. ],
           [0.5, 0.5]])
    """

    _confidence_kind = "membership"
    _n_clusters_score = "variational bound"
    _fits_reduced = False  # memberships and draws are of all objects
    _array_laws: tuple[str, ...] = (
        "fitted.concentration_ float (K) 0..",
        "fitted._beta float (K,L) 0..1",
        "fitted._folding float (K,L) 0..",
        "fitted.memberships_ float (N,K) 0..1",
    )
    _parameter_constraints = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, 32_000, closed="both")],
        "inference": [StrOptions({"vb", "gibbs"})],
        "max_clusters": [Interval(Integral, 1, 32_000, closed="both")],
        "concentration": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "learn_concentration": ["boolean", StrOptions({"symmetric"})],
        "smoothing": [Interval(Real, MIN_ALPHA, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        **RUNNING_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        inference="vb",
        max_clusters=10,
        concentration=None,
        learn_concentration=True,
        smoothing=0.5,
        n_init=5,
        max_iter=500,
        tol=1e-5,
        n_chains=2,
        n_draws=200,
        burn_in=100,
        thin=1,
        noise="missing",
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
        self.n_clusters = n_clusters
        self.inference = inference
        self.max_clusters = max_clusters
        self.concentration = concentration
        self.learn_concentration = learn_concentration
        self.smoothing = smoothing
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.noise = noise
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

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        self._n_levels, self._powers = labelings.n_levels, labelings.member_weights
        rows = lay_out(labelings.codes, labelings.n_levels, labelings.weights, labelings.member_weights)
        if self.inference == "gibbs":
            gibbs.check_counts(rows)  # before VB spends its time
        if self.inference == "vb" or self.n_clusters is None:
            run = self._climb(labelings, rng, control)
            if self.inference == "vb":
                return self._found_by_vb(run, rows)
        return self._draw(rows, labelings, rng, control)

    def _climb(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Run:
        """Run VB with the given number of clusters, or with each number, of which the best is kept."""
        distinct = signatures(labelings.codes, labelings.weights)
        cells = lay_out(distinct.rows, labelings.n_levels, distinct.weights, labelings.member_weights)
        climb = partial(
            vb.climb,
            cells,
            smoothing=float(self.smoothing),
            n_init=self.n_init,
            learn_alpha=self.learn_concentration,
            max_iter=self.max_iter,
            tol=self.tol,
            control=control,
        )
        if self.n_clusters is not None:
            K = self._at_most(len(labelings.weights))
            return climb(alpha=self._alpha(K), rng=rng)[0]
        best, self.n_clusters_scores_ = None, {}
        for K in range(1, min(self.max_clusters, len(labelings.weights)) + 1):
            run, _ = climb(alpha=self._alpha(K), rng=rng.spawn(1)[0])
            self.n_clusters_scores_[K] = run.objective + float(gammaln(K + 1))
            if best is None or self.n_clusters_scores_[K] > self.n_clusters_scores_[len(best.state.alpha)]:
                best = run
            if run.reason in STOPPED_EARLY:
                break
        assert best is not None
        if len(best.state.alpha) == self.max_clusters < len(labelings.weights) and self.max_clusters > 1:
            self.fit_report_.add(
                "bound_reached",
                f"all {self.max_clusters} clusters that were allowed are in use: raise max_clusters",
                level="warning",
            )
        return best

    def _at_most(self, n_rows: int) -> int:
        if self.n_clusters > n_rows:
            message = f"n_clusters is {self.n_clusters}, and only {n_rows} objects have labels: one cluster for each"
            self.fit_report_.add("fewer_objects", message, level="warning")
        return min(self.n_clusters, n_rows)

    def _alpha(self, K: int) -> np.ndarray:
        given = 1.0 / K if self.concentration is None else self.concentration
        alpha = np.array(given, dtype=float)
        if alpha.ndim and alpha.shape != (K,):
            raise ValueError(
                f"concentration has the shape {alpha.shape}, and there are {K} clusters: give one number, or one each"
            )
        alpha = np.full(K, alpha) if not alpha.ndim else alpha
        if not ((alpha >= MIN_ALPHA) & (alpha <= MAX_ALPHA)).all():
            raise ValueError(f"concentration is {given}: give numbers from {MIN_ALPHA} to {MAX_ALPHA:g}")
        return np.full(K, alpha.mean()) if self.learn_concentration == "symmetric" else alpha

    def _found_by_vb(self, run: Run, rows: LabelLayout) -> Found:
        state = run.state
        folding = vb.exp_expected_log(state.table, rows.starts)
        beta = state.table / np.repeat(level_sums(state.table, rows.starts), self._n_levels, axis=0)
        memberships = fold_in(rows, state.alpha, folding)
        if run.reason == "max_iter":
            warn_user(
                f"BCE did not converge in {self.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
            )
        elif not run.converged:
            self.fit_report_.add("not_converged", f"VB ended by {run.reason}, not by convergence")
            self._note_early_end(run.reason)
        if run.worst_fall > 0:
            self.fit_report_.add("objective_fell", f"the bound fell by {run.worst_fall:.3g}", level="warning")
        return Found(
            memberships.argmax(axis=1),
            memberships.max(axis=1),
            n_iter=len(run.objectives),
            converged=run.converged,
            n_components=len(state.alpha),
            clusters={"concentration_": state.alpha, "_beta": beta.T, "_folding": folding.T},
            attributes={"lower_bound_": run.objective, "objective_trace_": np.array(run.objectives)},
        )

    def _draw(
        self, rows: LabelLayout, labelings: Labelings, rng: np.random.Generator, control: Control
    ) -> Found:
        """Chains, pooled."""
        if self.n_clusters is None:
            K = max(self.n_clusters_scores_, key=self.n_clusters_scores_.__getitem__)
        else:
            K = self._at_most(len(rows.weights))
        objects, row_of, members = gibbs.copies(rows)
        most = control.most_draws(self.n_draws, self.thin)
        check_memory(
            2 * self.n_chains * trace_bytes(most, len(objects.weights), K),
            f"{self.n_chains} chains of {most} draws over {len(objects.weights):,} objects",
            "lower n_draws or n_chains, or set inference='vb'",
        )
        rngs, alpha = rng.spawn(self.n_chains), self._alpha(K)

        def make(number: int) -> Sampler:
            return gibbs.admixture_sampler(
                objects, members, alpha, float(self.smoothing), rngs[number],
                learn_alpha=self.learn_concentration, number=number,
            )  # fmt: skip

        def checkpoint(number: int) -> Checkpoint | None:
            schedule = (self.n_draws, self.burn_in, self.thin)
            model = (alpha, self.smoothing, self.learn_concentration, schedule)
            return open_checkpoint(self.resume, number, (rngs[number], model, objects, members), "bce")

        chains = run_chains(
            make, self.n_chains, self, control=control, executor=self._make_executor(), checkpoint=checkpoint
        )
        trace = join(chains.draws)
        n_draws = 0 if chains.provisional else len(chains.draws)
        note_early_end(self.fit_report_, chains.reason, n_draws, provisional=chains.provisional)
        found = judge_chains(self.fit_report_, trace, chains.reason, provisional=chains.provisional)
        pool = gibbs.join_pools([run.state.pool for run in chains.runs])
        memberships = gibbs.mean_over_copies(pool.memberships, row_of, rows.weights)
        beta, alpha, drawn = (
            np.ascontiguousarray((total / pool.n_draws).T) for total in (pool.beta, pool.alpha, memberships)
        )
        return Found(
            drawn.argmax(axis=0),
            drawn.max(axis=0),
            n_iter=chains.n_iter,
            converged=have_converged(found, chains.reason),
            n_components=K,
            clusters={"concentration_": alpha, "_beta": beta, "_folding": beta, "_drawn": drawn},
            attributes={
                "trace_": trace,
                "object_rows_": np.asarray(labelings.rows)[row_of],
                "diagnostics_": found,
            },
        )

    def _settle(self, found: Found, labelings: Labelings, codes: np.ndarray) -> None:
        super()._settle(found, labelings, codes)
        drawn = self.__dict__.pop("_drawn", None)
        if drawn is None:
            self.memberships_ = self._probabilities(codes)
        else:
            self.memberships_ = np.empty((len(codes), len(drawn)))
            others = np.setdiff1d(np.arange(len(codes)), labelings.rows)
            if len(others):
                self.memberships_[others] = self._probabilities(codes[others])
            self.memberships_[labelings.rows] = drawn.T
        # equal memberships go to the larger cluster, here and in predict
        self.labels_, self.confidence_ = self.memberships_.argmax(axis=1), self.memberships_.max(axis=1)
        self.n_clusters_ = len(np.unique(self.labels_[labelings.rows]))

    # ---- new rows ------------------------------------------------------------------------------------------

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        return np.log(
            fold_in(self._laid_out(codes), self.concentration_, np.ascontiguousarray(self._folding.T))
        )

    def _laid_out(self, codes: np.ndarray) -> LabelLayout:
        return lay_out(codes, self._n_levels, np.ones(len(codes)), self._powers)

    @reads_chunks
    def score_samples(self, X):
        """Log probability of each row of labels; memberships are estimated label by label.

        Each label is predicted from the memberships that follow from the labels before it in the row (members in the
        order of the columns), with the mean label distributions of the clusters. A label is not used to predict itself,
        and the probabilities of all possible rows sum to one; labels that ``fit`` did not see count as missing.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        ndarray (n_rows,)
        """
        return self._log_probabilities(self._laid_out(self._new_codes(X)))

    def perplexity(self, X):
        """Inverse of the geometric mean probability of an observed label, by ``score_samples``; at least 1.

        Members without information (one cluster for all, or every object alone) take no part.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        float
        """
        cells = self._laid_out(self._new_codes(X))
        return perplexity(self._log_probabilities(cells), int((cells.positions >= 0).sum()))

    def _log_probabilities(self, cells: LabelLayout) -> np.ndarray:
        return log_predictive_rows(cells, self.concentration_, np.ascontiguousarray(self._beta.T))

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        K, L = len(self.concentration_), int(np.sum(self._n_levels))
        shapes = {
            "_beta": (K, L), "_folding": (K, L), "_powers": (len(self._columns),), "_n_levels": (len(self._columns),),
            "memberships_": (len(self.labels_), K),
        }  # fmt: skip
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(
                    f"{name} has the shape {np.shape(getattr(self, name))} where {shape} belongs"
                )
