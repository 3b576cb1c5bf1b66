"""Mixtures over mixed, incomplete tables."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.engines.passes.rows import assign_rows, label_rows, plug_in, predictive
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin, TableEstimator, as_generator, warn_user
from partita.execution import find_blocks, make_executor
from partita.execution.device import as_given, is_on_device
from partita.families import entry_of
from partita.families.contract import is_conjugate
from partita.fitting.chains import fit_chains, fit_subclusters
from partita.fitting.climb import INFERENCES as DETERMINISTIC
from partita.fitting.climb import Fitted
from partita.fitting.device import read_device_rows
from partita.fitting.families import plan_families, reassemble
from partita.fitting.out_of_core import predict_blocks, read_training
from partita.fitting.outliers import log_density, mixed, share_out
from partita.fitting.profiles import sample_table
from partita.fitting.request import kinds_asked, make_request
from partita.fitting.storage import restore_state, saved_state
from partita.fitting.streaming import go_on
from partita.fitting.units import log_jacobian
from partita.metrics import perplexity
from partita.mixture.fitted_attributes import settle
from partita.mixture.predictive_checks import check_columns
from partita.table import Table, check_weights

__all__ = ["Mixture"]

INFERENCES = {**DETERMINISTIC, "gibbs": fit_chains, "subclusters": fit_subclusters}


class Mixture(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    DensityMixin,
    RunningMixin,
    TableEstimator,
):
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
    prior : str or prior, default "auto"
        Who sits with whom before the data are seen: "mfm" (mixture of finite mixtures), "dirichlet_process",
        "pitman_yor", "finite" (symmetric Dirichlet), "stick_breaking", or a prior of :mod:`partita.partitions`. "auto"
        is "mfm" for chains, the prior that is about the number of clusters itself, and "stick_breaking" for
        variational engines, which read a Dirichlet process as sticks truncated at ``max_clusters``. Not used where
        ``n_clusters`` is given.
    inference : {"gibbs", "vb", "em", "cvb", "subclusters"}, default "gibbs"
        "gibbs": chains of collapsed Gibbs sweeps and split-merge moves; the posterior. "subclusters": chains whose
        steps run on many cores, for large tables. "vb": variational Bayes, a first answer at any size. "cvb": its
        collapsed form. "em": expectation maximisation (needs ``n_clusters``).
    n_clusters : int, optional
        The number of clusters, where it is known (chains may leave some of them empty). Left out, the engine finds it.
    max_clusters : int, optional
        Upper bound where the number is not given (default: none for chains; 30, or the number of rows, for the rest).
    concentration : float, optional
        Concentration of the prior; left out, it is learned.
    learn_hyper : bool, default True
        Whether the hyper-parameters of the likelihood are learned: sampled in chains, by empirical Bayes elsewhere.
    n_chains : int, default 4
        Chains. Half of them start from one cluster, half from many.
    n_draws, burn_in, thin : int, default 200, 100, 1
        Draws that each chain keeps, iterations before the first, and iterations for each.
    precision : {"single", "double"}, default "single"
        Of the predictive cache that Gibbs sweeps read; statistics are always double.
    partition : {"votes", "vi", "binder", "nvi", "nid", "map"}, default "votes"
        How the draws of chains become one partition. "votes": the draws take each other's labels and each row goes
        where most of them put it; as many clusters as are most probable. "vi", "binder", "nvi", "nid": the partition
        of least expected loss (:func:`partita.posterior.point_estimate`); "vi" joins clusters that overlap. "map": the
        draw of the highest log joint.
    noise : bool, default False
        Whether a row may be an outlier, which belongs to no cluster and has the label -1 (``inference="gibbs"`` alone).
        A row is one with probability rho, ``rho ~ Beta(1, 19)``, and then comes from a fixed, broad background, the
        same for all rows. Real columns: a Student law with four degrees of freedom about the middle of the column's
        range, a quarter of the range wide, so nearly flat inside it (full covariance: a multivariate one); codes: the
        shares of the levels in the column; counts: a geometric law with the column's rate; durations: a Lomax law
        whose median is the column's mean; count vectors: a Dirichlet-multinomial around the shares of the coordinates.
        Missing cells do not count, and units do not matter.
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
        Where the engine starts. Chains look for their start on a sample of the rows, unless labels are given.
    n_init : int, default 3
        Number of starts of the engines that climb; the best objective wins.
    max_iter : int, default 500
        Iterations of one such start.
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
    executor : None, "threads", "processes", Dask client or address, optional
        Where passes over blocks of rows run; the answer does not depend on it.
    resume : path, optional
        A folder that keeps what every pass has found ("em", "vb"), or every iteration of the chains ("subclusters"):
        the same call after an interruption goes on from there.
    verbose : bool, default False
        Print a line an iteration to standard error.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first; ``fit_predict`` returns it. For chains it sums up all draws of
        all chains (``partition``); ``predict`` asks which of these clusters predicts a row best, which is a question to
        one partition rather than to all draws, and may differ on rows between clusters. For the other engines
        ``predict`` on the training rows gives the same labels again. With ``noise`` a row is -1 if more than half of
        the draws call it an outlier.
    n_clusters_ : int
        Number of clusters that have rows.
    n_clusters_posterior_ : dict
        Chains: probability of each number of clusters (outliers are none).
    noise_probability_ : ndarray (n_rows,)
        With ``noise``: share of the draws in which a row is an outlier; ``confidence_`` of those labelled -1.
    noise_share_ : float
        With ``noise``: probability that a further row is an outlier; ``weights_`` are the shares of the others.
    confidence_ : ndarray (n_rows,)
        Chains: mean probability that a row shares a cluster with the other rows of its own. Other engines: probability
        of each row's own label under the fitted model.
    trace_ : Trace
        Chains: the draws (labels, log joint, number of clusters, concentration, chain). Labels are of objects: a row
        of weight w is w objects.
    object_rows_ : ndarray
        Chains: the row of each object.
    diagnostics_ : Diagnostics
        Chains: R-hat and effective sample sizes, and in a sentence whether to trust the number of clusters.
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
    DPGaussian, DPMultinomial : Dirichlet processes by name.
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
        "inference": [StrOptions(set(INFERENCES))],
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "precision": [StrOptions({"single", "double"})],
        "partition": [StrOptions({"votes", "vi", "binder", "nvi", "nid", "map"})],
        "noise": ["boolean"],
        "estimate": [StrOptions({"map", "ml"})],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "kinds": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "init": [StrOptions({"seeds", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": "no_validation",
        **RUNNING_CONSTRAINTS,
    }

    _noise: Any = None  # the background of outliers

    def __init__(
        self,
        family="auto",
        prior="auto",
        inference="gibbs",
        *,
        n_clusters=None,
        max_clusters=None,
        concentration=None,
        learn_hyper=True,
        n_chains=4,
        n_draws=200,
        burn_in=100,
        thin=1,
        precision="single",
        partition="votes",
        noise=False,
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
        executor=None,
        resume=None,
        verbose=False,
    ):
        self.family = family
        self.prior = prior
        self.inference = inference
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.concentration = concentration
        self.learn_hyper = learn_hyper
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.precision = precision
        self.partition = partition
        self.noise = noise
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
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture.

        Parameters
        ----------
        X : array, data frame, sparse count matrix, or source of blocks
            The table; see :func:`partita.table.read_table` for what is understood. A path (Parquet, Arrow, .npy), a
            memory map or a Dask collection is read in blocks where it is large, and so is whatever
            :func:`partita.execution.open_blocks` has opened; "em", "vb" and "subclusters" can do so.
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            How many objects each row stands for. A row of weight 0 takes no part; fractions are allowed, except in
            chains, where a row of weight w is w objects.

        Returns
        -------
        Mixture
        """
        self._validate_params()
        control = self._control()
        with self._whole_or_not_at_all():
            plan = plan_families(self.family, self.kinds)
            table, blocks = read_training(self, X, plan, kinds_asked(self, plan), sample_weight)
            ask = make_request(self, table, blocks, control)
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

    def partial_fit(self, X, y=None, sample_weight=None):
        """Go on with new rows: the first batch is fitted, later ones are shown to a particle filter, row by row.

        The schema (columns, kinds, levels) and the hyper-parameters are those of the first batch, so let it be large
        enough to speak for the stream. Clusters that are there keep their numbers, new ones come after them.
        ``labels_``, ``confidence_`` and ``log_likelihood_`` are of the last batch; ``weights_``, ``profiles_``,
        ``n_clusters_`` and ``n_clusters_posterior_`` of all rows so far. Earlier rows are not looked at again, and
        their memory is that of the clusters. A model that was saved and loaded goes on from its best partition alone.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            Whole numbers: how often each row occurs.

        Returns
        -------
        Mixture

        Examples
        --------
        >>> import numpy as np
        >>> from partita import Mixture
        >>> rng = np.random.default_rng(0)
        >>> model = Mixture("gaussian", n_chains=2, n_draws=20, burn_in=20, random_state=0)
        >>> model.partial_fit(rng.normal(size=(60, 2))).n_clusters_
        1
        >>> model.partial_fit(rng.normal(size=(60, 2)) + 30).n_clusters_
        2
        """
        if not hasattr(self, "_statistics"):
            return self.fit(X, sample_weight=sample_weight)
        with self._whole_or_not_at_all():
            go_on(self, X, sample_weight)
        return self

    def _finish(self, fitted: Fitted, blocks, table: Table):
        settle(self, fitted, blocks, table)

    # ---- using ---------------------------------------------------------------------------------------------

    def _read_rows(self, X):
        """New rows as a table and as blocks: from the host, or on a device."""
        if is_on_device(X):
            check_is_fitted(self)
            return read_device_rows(self, X, self.handle_unknown)
        table = self._read_new(X, self.handle_unknown)
        return table, self._with_data(table)

    def _with_data(self, table: Table):
        return reassemble(table, self._blocks, [block.family for block in self._blocks], self.exposure)

    def _scorer(self, blocks):
        """What responsibilities are made from."""
        if self._parameters is None:
            return predictive(blocks, self._statistics.S, self._log_weights)
        return plug_in(blocks, self._parameters)

    def _plugs_in(self):
        """Whether densities are those at one set of parameters: of EM, and of families without a predictive."""
        return self.inference == "em" or not all(is_conjugate(block.family) for block in self._blocks)

    def _assign(self, table: Table, blocks):
        clusters = assign_rows(self._scorer(blocks), table.n_rows, make_executor(self.n_jobs))
        return clusters if self._noise is None else mixed(self._noise, clusters, self._outside(blocks))

    def _outside(self, blocks):
        """Log density of each row as an outlier."""
        return log_density(self._noise.laws, blocks)

    def _noise_probabilities(self, table: Table, blocks):
        inside = assign_rows(self._scorer(blocks), table.n_rows, make_executor(self.n_jobs)).log_likelihood
        return share_out(self._noise, inside, self._outside(blocks))[1]

    def _densities(self, table: Table, blocks):
        """Log density of each row in the user's units."""
        if self._plugs_in():
            score = self._scorer(blocks)
        else:
            score = predictive(blocks, self._statistics.S, self._log_weights)
        values = assign_rows(score, table.n_rows, make_executor(self.n_jobs)).log_likelihood
        if self._noise is not None:
            values = share_out(self._noise, values, self._outside(blocks))[0]
        return values + log_jacobian(blocks, self.schema_, table.n_rows)

    def predict_proba(self, X):
        """Probability of each cluster for each row.

        A row without any observed cell gets the shares of the clusters. With ``noise``, what a row lacks to 1 is its
        probability of being an outlier.

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray (n_rows, n_components)
        """
        source = find_blocks(X)
        if source is not None:
            return predict_blocks(self, source, "predict_proba")
        table, blocks = self._read_rows(X)
        K = len(self._log_weights)
        proba, inside = label_rows(self._scorer(blocks), table.n_rows, K, make_executor(self.n_jobs))
        if self._noise is None:
            return as_given(proba, X)
        return proba * (1.0 - share_out(self._noise, inside, self._outside(blocks))[1])[:, None]

    def transform(self, X):
        """``predict_proba`` by another name: memberships as features for the next step of a pipeline.

        ``set_output(transform="pandas")`` (or "polars") makes it a data frame with columns mixture0, mixture1, ...

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray or data frame (n_rows, n_components)
        """
        return self.predict_proba(X)

    @property
    def _n_features_out(self):
        return len(self._log_weights)

    def predict(self, X):
        """Most probable cluster of each row; with ``noise``, -1 if it is an outlier with more than half.

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray (n_rows,)
        """
        source = find_blocks(X)
        if source is not None:
            return predict_blocks(self, source, "predict")
        return as_given(self._assign(*self._read_rows(X)).labels, X)

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def score_samples(self, X):
        """Log density of each row, in the user's units: posterior predictive for chains, VB and CVB.

        Missing cells do not count, so rows with fewer observed cells have less to explain.
        """
        source = find_blocks(X)
        if source is not None:
            return predict_blocks(self, source, "score_samples")
        return as_given(self._densities(*self._read_rows(X)), X)

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
        """Draw new rows from the clusters of the fitted mixture (no outliers).

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
        return sample_table(self._blocks, self._statistics, self._plugged_in(), z, self.schema_, rng), z

    def _plugged_in(self):
        """Parameters that new rows come from; None where they are drawn from their posterior.

        Expected natural parameters are no parameters, so variational fits draw theirs.
        """
        return self._parameters.thetas if self._plugs_in() else None

    def predictive_checks(self, X, n_tables=100):
        """Compare each column of X with tables drawn from the fitted mixture.

        A p-value near 0 says that the model does not produce columns like this one: look at its kind and family.
        The rows that were fitted give a lenient check, new rows a strict one.

        Parameters
        ----------
        X : array or data frame
        n_tables : int, default 100
            Tables to draw; 20 at least.

        Returns
        -------
        dict of str to list of ColumnCheck
            By column: mean, sd, skewness and extremes of numbers, levels and entropy of categories, each with its
            value in X, its mean and standard deviation over the tables drawn, and the p-value.

        Examples
        --------
        >>> import numpy as np
        >>> from partita import Mixture
        >>> X = np.random.default_rng(0).exponential(size=(300, 1))
        >>> model = Mixture(n_clusters=1, inference="vb", random_state=0).fit(X)
        >>> checks = {check.statistic: check.p_value for check in model.predictive_checks(X)["x0"]}
        >>> checks["sd"] > 0.05, checks["skewness"] < 0.05
        (True, True)
        """
        return check_columns(self, self._read_new(X, self.handle_unknown), n_tables)

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
