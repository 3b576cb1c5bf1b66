"""Mixtures over mixed, incomplete tables."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import ClusterMixin, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.engines.passes import Parameters, Statistics, assign_rows, label_rows, plug_in, predictive
from partita.engines.run import print_progress
from partita.engines.vb import bound
from partita.estimator import TableEstimator, as_generator, warn_user
from partita.execution import check_memory, make_executor
from partita.families import Block, entry_of
from partita.families.contract import n_parameters, widened
from partita.labels import canonical
from partita.metrics import perplexity
from partita.mixture.blocks import assemble, count_objects, plan_families, reassemble
from partita.mixture.inference import INFERENCES, Fitted, Request, bytes_needed, resolve_prior
from partita.mixture.profiles import profile_columns, sample_table
from partita.mixture.state import restore_state, saved_state
from partita.table import Table, check_weights

__all__ = ["Mixture"]

DEFAULT_BOUND = 30  # clusters that variational engines start with, when no number is given


class Mixture(ClusterMixin, DensityMixin, TableEstimator):
    """Mixture model over a table of any columns, with missing values.

    Which groups are there, and how many? Columns may be real, count, binary or categorical, in any mixture, with
    missing cells anywhere; each kind has its conjugate family, and rows of one cluster are independent given it.

    Parameters
    ----------
    family : "auto", str, pair or mapping, default "auto"
        The likelihood: "auto" (by the kind of each column; real columns have full covariance where there are 2
        to 30 of them and at least five rows for each), one family for all columns ("gaussian",
        "gaussian_full", "categorical", "bernoulli", "poisson", "multinomial", "exponential"), a pair
        ``(name, options)``, or a mapping from kinds of columns to these.
    prior : str or prior, default "dirichlet_process"
        "dirichlet_process" and "stick_breaking" (the same here: sticks truncated at ``max_clusters``), or
        "finite" (symmetric Dirichlet). Used where the number of clusters is not given.
    inference : {"vb", "em", "cvb"}, default "vb"
        Variational Bayes, expectation maximisation (needs ``n_clusters``), or collapsed variational Bayes.
    n_clusters : int, optional
        The exact number of clusters. Left out, the engine finds it, up to ``max_clusters``.
    max_clusters : int, optional
        Upper bound where the number is not given (default: 30, or the number of rows).
    concentration : float, optional
        Concentration of the prior; left out, it is learned.
    learn_hyper : bool, default True
        Whether variational engines learn the hyper-parameters of the likelihood (empirical Bayes).
    estimate : {"map", "ml"}, default "map"
        What EM maximises: the posterior density or the likelihood.
    order : {1, 2}, default 1
        Order of collapsed variational Bayes (1 is known as CVB0).
    kinds : None, str, mapping or sequence, optional
        Kinds of columns ("real", "count", "binary", "categorical", "ignore"); what is left out is inferred.
    exposure : str, optional
        Name of a column that holds the exposure of each row (for counts); it is not modelled itself.
    handle_unknown : {"missing", "error"}, default "missing"
        What ``predict`` does with categories that were not seen in ``fit``.
    init : {"seeds", "random"} or array of labels, default "seeds"
        Where the engine starts.
    n_init : int, default 3
        Number of starts; the best objective wins.
    max_iter : int, default 500
        Iterations of one start.
    tol : float, default 1e-5
        Stop when an iteration raises the objective by less than this an object.
    time_limit : float, optional
        Seconds after which no further iteration begins.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress`; returning True stops.
    keep_partial : bool, default False
        Whether an interrupt (Ctrl-C) keeps the best fit so far instead of raising.
    random_state : None, int, RandomState, Generator or SeedSequence
        Source of randomness; the global generator is never touched.
    n_jobs : int, optional
        Threads; the answer does not depend on their number.
    verbose : bool, default False
        Print a line an iteration to standard error.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first. ``fit_predict`` returns it, and ``predict`` on the
        training rows gives it again.
    n_clusters_ : int
        Number of clusters that have rows.
    confidence_ : ndarray (n_rows,)
        Probability of each row's own label under the fitted model.
    label_entropy_ : float
        Entropy of the labels given the fitted model, summed over the rows.
    weights_ : ndarray (n_components,)
        Share of each cluster.
    profiles_ : dict
        For each column, what each cluster looks like, in the user's units and labels.
    fit_report_ : FitReport
        What was unusual about the data and the fit.
    lower_bound_ : float
        VB and CVB: lower bound of the log evidence (of standardised real columns).
    log_likelihood_ : float
        Log density of the training rows in the user's units, weights counted.
    n_iter_, converged_, objective_trace_
        How the best start went.
    prior_ : prior
        The prior of the labels, with the concentration that was learned.
    n_parameters_ : int
        Number of free parameters, shares of the clusters counted.
    weight_total_ : float
        Sum of the weights: how many objects the rows stand for.
    n_features_in_, feature_names_in_, schema_
        The table that was fitted.

    See Also
    --------
    LatentClass : the preset for latent class analysis.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (50, 2)), rng.normal(4, 1, (50, 2))])
    >>> X[0, 0] = np.nan
    >>> model = Mixture(random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> bool((model.labels_ == model.predict(X)).all())
    True
    """

    _parameter_constraints = {
        "family": "no_validation",
        "prior": "no_validation",
        "inference": [StrOptions({"vb", "em", "cvb"})],
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "estimate": [StrOptions({"map", "ml"})],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "kinds": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "init": [StrOptions({"seeds", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "time_limit": [None, Interval(Real, 0, None, closed="neither")],
        "callback": [None, callable],
        "keep_partial": ["boolean"],
        "random_state": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        family="auto",
        prior="dirichlet_process",
        inference="vb",
        *,
        n_clusters=None,
        max_clusters=None,
        concentration=None,
        learn_hyper=True,
        estimate="map",
        order=1,
        kinds=None,
        exposure=None,
        handle_unknown="missing",
        init="seeds",
        n_init=3,
        max_iter=500,
        tol=1e-5,
        time_limit=None,
        callback=None,
        keep_partial=False,
        random_state=None,
        n_jobs=None,
        verbose=False,
    ):
        self.family = family
        self.prior = prior
        self.inference = inference
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.concentration = concentration
        self.learn_hyper = learn_hyper
        self.estimate = estimate
        self.order = order
        self.kinds = kinds
        self.exposure = exposure
        self.handle_unknown = handle_unknown
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
            The table; see :func:`partita.table.read_table` for what is understood.
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            How many objects each row stands for. A row of weight 0 takes no part; fractions are allowed.

        Returns
        -------
        Mixture
        """
        self._validate_params()
        with self._whole_or_not_at_all():
            plan = plan_families(self.family, self.kinds)
            table = self._read_training(X, self._kinds(plan), sample_weight)
            blocks = assemble(table, plan, self.exposure, completes=self.inference != "cvb")
            n_components = self._n_components(count_objects(table.weights))
            ask = self._request(n_components, table)
            check_memory(
                bytes_needed(blocks, table.n_rows, ask, self.inference),
                f"{n_components:,} clusters of {len(self.schema_.columns):,} columns",
                "ask for fewer clusters (n_clusters, max_clusters), or leave columns out",
            )
            try:
                fitted = INFERENCES[self.inference](blocks, table.weights, ask)
            except FloatingPointError as error:
                raise ValueError(str(error)) from error
            self._finish(fitted, blocks, table)
        if fitted.run.reason == "max_iter":
            warn_user(
                f"{type(self).__name__} did not converge in {self.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
            )
        self.fit_report_.warn()
        return self

    def _kinds(self, plan):
        if self.exposure is None:
            return plan.kinds
        if not (plan.kinds is None or isinstance(plan.kinds, (str, dict))):
            raise ValueError("with exposure=, give kinds as a mapping from column names, or leave it out")
        if isinstance(plan.kinds, str):
            raise ValueError(
                f"exposure={self.exposure!r} needs columns of two kinds: pass kinds={{column: kind, ...}} or "
                "family={'count': 'poisson'}"
            )
        return {**(plan.kinds or {}), self.exposure: "real"}

    def _n_components(self, n_objects):
        if self.n_clusters is None and self.inference == "em":
            raise ValueError(
                "inference='em' needs the number of clusters: pass n_clusters=, or use inference='vb', which finds it"
            )
        wanted = self.n_clusters or self.max_clusters or min(DEFAULT_BOUND, n_objects)
        if wanted > n_objects:
            self.fit_report_.add(
                "few_rows",
                f"{wanted} clusters were asked for, and there are only {n_objects} rows: at most that many are found",
                level="warning" if self.n_clusters else "info",  # a bound may well be larger than the table
            )
        return min(int(wanted), n_objects)

    def _request(self, n_components, table):
        exact = self.n_clusters is not None
        init = self.init
        if not isinstance(init, str):
            init = canonical(init, missing=-1)
            if len(init) != table.n_rows or init.max() >= n_components:
                raise ValueError(
                    f"init has {len(init)} labels of {init.max() + 1} clusters: give one label for each of the "
                    f"{table.n_rows} rows, of at most {n_components} clusters (-1: none)"
                )
            if init.max() < 0:
                raise ValueError(
                    "init gives no row a cluster: label at least one row of each, or use init='seeds'"
                )
        rng = as_generator(self.random_state)
        return Request(
            n_components=n_components,
            exact=exact,
            prior=resolve_prior(self.prior, self.inference, n_components, exact, self.concentration),
            learn_concentration=not exact and self.concentration is None,
            learn_likelihood=self.learn_hyper,
            maximum_likelihood=self.estimate == "ml",
            order=self.order,
            init=init,
            rngs=rng.spawn(self.n_init if isinstance(self.init, str) else 1),
            tol=self.tol,
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            callback=self._callback(),
            keep_partial=self.keep_partial,
            debug=False,
            executor=make_executor(self.n_jobs),
        )

    def _callback(self):
        if not self.verbose or self.callback is None:
            return print_progress if self.verbose else self.callback

        def both(progress):
            print_progress(progress)
            return self.callback(progress)

        return both

    def _finish(self, fitted: Fitted, blocks, table: Table):
        """Labels, then everything in the order of the clusters' sizes; clusters without rows are dropped
        unless their number was given.
        """
        self._blocks = tuple(
            Block(family, None, block.columns) for family, block in zip(fitted.families, blocks, strict=True)
        )
        blocks = [
            block._replace(family=family) for block, family in zip(blocks, fitted.families, strict=True)
        ]
        self._take(fitted, np.arange(len(fitted.statistics.n)))
        labels = self._assign(table, blocks).labels
        sizes = np.bincount(labels, weights=table.weights, minlength=len(self._log_weights))
        order = np.argsort(-sizes, kind="stable")
        self._take(fitted, order if self.n_clusters is not None else order[: max(np.count_nonzero(sizes), 1)])
        assigned = self._assign(table, blocks)
        self.labels_, self.confidence_ = assigned.labels, assigned.confidence
        self.n_clusters_ = len(np.unique(self.labels_[table.weights > 0]))
        self.label_entropy_ = float(table.weights @ assigned.entropy)
        self.log_likelihood_ = float(table.weights @ self._densities(table, blocks))
        self.profiles_ = profile_columns(self._blocks, self._statistics, self.schema_)
        self.weights_ = np.exp(self._log_weights)
        self._note_run(fitted, table)

    def _take(self, fitted: Fitted, order: np.ndarray):
        """Keep these clusters, in this order."""
        statistics = fitted.statistics
        self._statistics = Statistics(
            statistics.n[order],
            tuple(
                np.ascontiguousarray(widened(family, S[:, order])[0])
                for family, S in zip(fitted.families, statistics.S, strict=True)
            ),
            *statistics[2:],
        )
        self._log_weights = _renormalized(fitted.log_weights[order])
        self._parameters = None
        if fitted.parameters is not None:
            thetas = tuple(np.ascontiguousarray(theta[:, order]) for theta in fitted.parameters.thetas)
            self._parameters = Parameters(fitted.parameters.log_weights[order], thetas)

    def _note_run(self, fitted: Fitted, table: Table):
        run = fitted.run
        self.converged_, self.n_iter_ = run.converged, fitted.n_iter
        self.objective_trace_ = np.array(run.objectives)
        self.prior_ = fitted.prior
        self.n_parameters_ = (
            len(self.weights_)
            - 1
            + len(self.weights_) * sum(n_parameters(block.family) for block in self._blocks)
        )
        self.weight_total_ = float(table.weights.sum())
        if self.inference == "em":
            self.__dict__.pop("lower_bound_", None)
        else:
            self.lower_bound_ = bound(fitted.families, fitted.prior, fitted.statistics)
        if run.worst_fall > 0:
            self.fit_report_.add(
                "objective_fell", f"the objective fell by {run.worst_fall:.3g} on the way up", level="warning"
            )
        if not run.converged:
            self.fit_report_.add("not_converged", f"the best start ended by {run.reason}, not by convergence")
        if self.n_clusters is None and self.n_clusters_ >= len(fitted.statistics.n) > 1:
            self.fit_report_.add(
                "bound_reached",
                f"all {self.n_clusters_} clusters that were allowed are in use: raise max_clusters",
                level="warning" if len(fitted.statistics.n) < table.n_rows else "info",
            )

    # ---- using ---------------------------------------------------------------------------------------------

    def _with_data(self, table: Table):
        return reassemble(table, self._blocks, [block.family for block in self._blocks], self.exposure)

    def _scorer(self, blocks):
        """What responsibilities are made from."""
        if self._parameters is None:
            return predictive(blocks, self._statistics.S, self._log_weights)
        return plug_in(blocks, self._parameters)

    def _assign(self, table: Table, blocks):
        return assign_rows(self._scorer(blocks), table.n_rows, make_executor(self.n_jobs))

    def _densities(self, table: Table, blocks):
        """Log density of each row in the user's units."""
        if self.inference == "em":
            score = self._scorer(blocks)
        else:
            score = predictive(blocks, self._statistics.S, self._log_weights)
        values = assign_rows(score, table.n_rows, make_executor(self.n_jobs)).log_likelihood
        return values + self._log_jacobian(table)

    def _log_jacobian(self, table: Table):
        modelled = {name for block in self._blocks for name in block.columns if not _is_raw(block)}
        out = np.zeros(table.n_rows)
        for column in table.columns:
            if column.kind == "real" and column.name in modelled:
                out -= np.where(np.isnan(column.values), 0.0, np.log(self.schema_.column(column.name).scale))
        return out

    def predict_proba(self, X):
        """Probability of each cluster for each row.

        A row without any observed cell gets the shares of the clusters.

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray (n_rows, n_components)
        """
        table = self._read_new(X, self.handle_unknown)
        score, K = self._scorer(self._with_data(table)), len(self._log_weights)
        return label_rows(score, table.n_rows, K, make_executor(self.n_jobs))[0]

    def predict(self, X):
        """Most probable cluster of each row.

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray (n_rows,)
        """
        table = self._read_new(X, self.handle_unknown)
        return self._assign(table, self._with_data(table)).labels

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def score_samples(self, X):
        """Log density of each row, in the user's units: posterior predictive for VB and CVB.

        Missing cells do not count, so rows with fewer observed cells have less to explain.
        """
        table = self._read_new(X, self.handle_unknown)
        return self._densities(table, self._with_data(table))

    def score(self, X, y=None, sample_weight=None):
        """Mean log density of the rows (weighted if weights are given)."""
        densities = self.score_samples(X)
        return float(np.average(densities, weights=check_weights(sample_weight, len(densities))))

    def perplexity(self, X, sample_weight=None):
        """``exp(-log density / observed cells)``: for labels, the effective number of choices a cell."""
        table = self._read_new(X, self.handle_unknown)
        weights = check_weights(sample_weight, table.n_rows)
        cells = weights @ _observed_cells(table, self._blocks)
        return perplexity(float(weights @ self._densities(table, self._with_data(table))), cells)

    def sample(self, n_samples=1):
        """Draw new rows from the fitted mixture.

        Returns
        -------
        X : ndarray (n_samples, n_features)
            In the user's units and labels; floats if every column is a number, else objects.
        labels : ndarray (n_samples,)
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 0:
            raise ValueError(f"n_samples is {n_samples!r}: give a number of rows, 0 or more")
        rng = as_generator(self.random_state)
        z = rng.choice(len(self.weights_), size=n_samples, p=self.weights_ / self.weights_.sum())
        # expected natural parameters are no parameters: variational fits draw theirs from the posterior
        fixed = self._parameters if self.inference == "em" else None
        thetas = None if fixed is None else fixed.thetas
        return sample_table(self._blocks, self._statistics, thetas, z, self.schema_, rng), z

    # ---- scikit-learn and storage ----------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = self.family == "multinomial"
        return tags

    def _state(self):
        return saved_state(self)

    def _restore(self, state):
        restore_state(self, state)


def _is_raw(block: Block) -> bool:
    return entry_of(block.family).raw


def _observed_cells(table: Table, blocks) -> np.ndarray:
    """How many cells of each row were modelled; a count vector has as many as it counts."""
    if table.sparse is not None:
        return np.asarray(table.sparse.sum(axis=1)).ravel()
    cells = np.zeros(table.n_rows)
    for block in blocks:
        for name in block.columns:
            values = table.column(name).values
            if entry_of(block.family).name == "multinomial":
                cells += np.nan_to_num(values)
            else:
                cells += ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
    return cells


def _renormalized(log_weights: np.ndarray) -> np.ndarray:
    return log_weights - np.logaddexp.reduce(log_weights)
