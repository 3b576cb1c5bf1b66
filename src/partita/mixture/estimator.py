"""Mixtures over mixed, incomplete tables."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.estimator import (
    RUNNING_CONSTRAINTS,
    FitReport,
    GrainMixin,
    HasClusterPrior,
    RunningMixin,
    as_generator,
    claim_folder,
    diagnose_chains,
    sum_probabilities,
    warn_user,
)
from partita.estimator.array_laws import draw_laws, trace_laws, uncertain_laws
from partita.execution import find_chunks, make_executor
from partita.execution.device import as_given, is_on_device, to_host
from partita.fitting.chains import learns_concentration, resolve_sampling_prior
from partita.fitting.choice import AUTO
from partita.fitting.contract import Settings
from partita.fitting.device import read_device_rows, refuse_on_host
from partita.fitting.engines import ENGINES
from partita.fitting.families import plan_families
from partita.fitting.fitted_attributes import attributes_of, settle
from partita.fitting.grain import (
    GrainEvidence,
    confidence_in,
    grow_grain,
    joined_profiles,
    pack_uncertain,
    unpack_uncertain,
)
from partita.fitting.out_of_core import (
    Training,
    data_of_training,
    predict_blocks,
    read_training,
    takes_chunks,
)
from partita.fitting.request import kinds_asked, make_request
from partita.fitting.second_opinion import pack_opinion, unpack_opinion
from partita.fitting.storage import check_array, checked_trace, pack_mixture, unpack_mixture
from partita.metrics import perplexity
from partita.mixture.predictive_checks import check_columns
from partita.mixture.streams import LearnsFromBatches
from partita.table import check_weights

# attributes that a file holds as they are; the others are computed from the mixture and the trace
SAVED = (
    "labels_", "confidence_", "confidence_kind_", "objective_trace_", "n_clusters_", "n_clusters_posterior_",
    "label_entropy_", "log_likelihood_", "lower_bound_", "converged_", "n_iter_", "weight_total_",
    "outlier_probability_", "outlier_share_", "burn_in_", "inference_", "weight_answered_",
)  # fmt: skip


class Mixture(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    DensityMixin,
    GrainMixin,
    RunningMixin,
    HasClusterPrior,
    LearnsFromBatches,
):
    """Mixture model of a table with columns of any kind and missing values.

    Finds groups of rows and their number. Columns may be real, count, binary, categorical or ordinal, in any
    combination, with missing cells anywhere. Each kind of column has its own family of distributions. Given the
    cluster, columns of different families are independent.

    Parameters
    ----------
    family : "auto", str, pair or mapping, default="auto"
        The likelihood: "auto", one family for all columns ("gaussian", "gaussian_full", "categorical", "ordinal",
        "bernoulli", "poisson", "multinomial", "exponential", "vonmises_fisher", "student"), a pair ``(name, options)``,
        or a mapping from kinds of columns to these. "auto" chooses by the kind of each column. Complete real columns
        then have full covariances in those principal directions whose variance is not negligible, and so have many real
        columns (a factor model, see :func:`partita.families.find_signal`). Other real columns have full covariance if
        there are 2 to 30 of them and at least five rows per column, and are independent otherwise.
    prior : str or prior, default="auto"
        The prior of the partition: "mfm" (mixture of finite mixtures), "dirichlet_process", "pitman_yor", "finite"
        (symmetric Dirichlet), "stick_breaking", or a prior of :mod:`partita.partitions`. "auto" is "mfm" for chains and
        beam search, because it has an explicit prior of the number of components; the Dirichlet parameter of the
        weights is then held at 3, so groups of comparable size are expected. For variational engines it is
        "stick_breaking": a Dirichlet process that is truncated at ``max_clusters``. Not used if ``n_clusters`` is
        given.
    inference : {"auto", "gibbs", "subclusters", "vb", "memoized", "em", "cvb", "beam"}, default="auto"
        The inference algorithm (engine).

        - "auto": "gibbs" if its chains are expected to take about a minute or less. Otherwise "subclusters", if these
          chains are expected to take about a minute or less and support the model. Otherwise "memoized", or "vb" for
          tables of fewer than about 12,000 rows, which have a single part. If ``outliers`` is True, or one of
          ``n_chains``, ``n_draws``, ``burn_in``, ``thin``, ``precision`` and ``partition`` is not at its default, it
          is "gibbs". Tables that are read in chunks are fitted by "memoized" or "vb", tables on a device by "vb", or
          by "subclusters" if parameters of chains are given. ``inference_`` is the engine that was chosen.
        - "gibbs": chains of collapsed Gibbs sweeps and split-merge moves, which sample the posterior.
        - "subclusters": chains whose steps run on many cores, for large tables.
        - "vb": variational Bayes, for a first result at any size.
        - "memoized": memoized variational Bayes, which has new parameters after each of up to 16 parts of the table,
          and also divides clusters; for large tables, also in chunks or on a device.
        - "cvb": collapsed variational Bayes.
        - "em": expectation maximization; needs ``n_clusters``.
        - "beam": beam search for the most probable partition of a small table. It is deterministic and gives one
          partition without uncertainty; hyper-parameters are at their defaults.
    n_clusters : int, optional
        The number of clusters, if it is known (chains and beam search may leave some of them empty). Otherwise the
        engine finds it.
    max_clusters : int, optional
        Upper bound if ``n_clusters`` is not given. Default: no bound for chains; 30, or the number of rows, for "vb",
        "memoized" and "cvb". Not available with "subclusters" and "beam".
    concentration : float, optional
        Concentration of the prior. By default it is learned, except by chains with ``prior="auto"`` and by beam search,
        which use the default of the prior.
    learn_hyper : bool, default=True
        Whether the hyper-parameters of the likelihood are learned: chains sample them, "vb" and "cvb" estimate them by
        empirical Bayes.
    n_chains : int, default=4
        Number of chains. Half of them start from one cluster, the other half from many.
    n_draws, burn_in : int, optional
        Number of draws that each chain keeps, and number of iterations before the first draw. By default the chains
        stop when they agree. At certain iterations, from 12 to 160, the draws of the chains that started from one
        cluster are compared with the draws of those that started from many. Once both give nearly the same partition
        and similar numbers of clusters, the chains run until they have at least 100 draws in all. Burn-in is half of
        the iterations before the agreement. If there is no agreement after 160 iterations, the draws of their second
        half are used. A single chain has 100 iterations of burn-in and 200 draws.
    thin : int, default=1
        Number of iterations per draw.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the predictive cache of Gibbs sweeps; statistics are always in double precision. "auto": single
        for more than 5,000 rows of counts, binary or categorical columns, for which it is faster, otherwise double.
    partition : {"votes", "vi", "binder", "nvi", "nid", "map"}, default="votes"
        How one partition is computed from the draws of chains. "votes": the labels of the draws are aligned, and each
        row has its most frequent label; the number of clusters is the most probable one. "vi", "binder", "nvi", "nid":
        the partition with the least expected loss (:func:`partita.posterior.point_estimate`); "vi" joins clusters that
        overlap. "map": the draw with the highest posterior density, hyper-parameters and concentration included.
    outliers : bool, default=False
        Whether a row may be an outlier, which belongs to no cluster and has the label -1 (``inference="gibbs"`` only).
        A row is an outlier with probability rho, ``rho ~ Beta(1, 19)``. Outliers are drawn from a fixed, broad
        background distribution that is the same for all rows. Real columns: a Student t distribution with four degrees
        of freedom, centered at the middle of the column's range, with a quarter of the range as its scale, so that it
        is nearly flat inside the range (full covariance: a multivariate one). Categories: the shares of the levels in
        the column. Counts: a geometric distribution with the column's rate. Durations: a Lomax distribution whose
        median is the column's mean. Count vectors: a Dirichlet-multinomial with the shares of the coordinates.
        Directions: all are equally probable. Missing cells are left out, and the result does not depend on units.
    estimate : {"map", "ml"}, default="map"
        What EM maximizes: the posterior density or the likelihood.
    order : {1, 2}, default=1
        Order of collapsed variational Bayes (1 is known as CVB0).
    beam_width : int, default=100
        Number of partial partitions that beam search keeps after each object. Time and memory are proportional to it.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns ("real", "count", "binary", "categorical", "ordinal", "date", "ignore"), for all columns, one
        per column, or a mapping from column names, patterns like "word*" or positions; those that are not given are
        inferred. The order of ordinal levels is known for ordered categoricals, for numbers and for the words of common
        answer scales. For other words, give the order in place of the kind, as in
        ``kinds={"answer": "no < maybe < yes"}``.
    missing_codes : number, str, sequence or mapping, optional
        Values that mean missing, such as 999: for all columns, or a mapping from column names, patterns or positions,
        such as ``{"age": 999}``. Common words and signs for missing cells ("NA", "-", "?") need not be given.
    exposure : str, optional
        Name of a column that holds the exposure of each row (for counts); the column itself is not modeled.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with categories that were not observed in ``fit``.
    init : {"seeds", "random"} or array of labels, default="seeds"
        Where the engine starts. With "seeds", chains start from clusters that are found on a sample of the rows, EM
        from rows that are far apart, and variational engines from both. Not used by beam search.
    n_init : int, default=3
        Number of starts of "em", "vb" and "cvb"; the one with the best objective is kept. "memoized" continues from
        the one whose bound is highest after the first iteration.
    max_iter : int, default=500
        Largest number of iterations per start.
    tol : float, default=1e-5
        Stop when the objective per object increases by less than ``tol`` in one iteration.
    time_limit : float, optional
        Wall seconds after which no further iteration begins.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress` (beam search: after every 64 objects);
        returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the result so far instead of raising.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Source of randomness; the global generator is never used.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, optional
        Where passes over chunks of rows run; the result does not depend on it.
    resume : path, optional
        A folder in which the state of the fit is stored after each pass ("em", "vb", "memoized"), or during the
        iterations of chains. If the fit is interrupted, the same call continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row; cluster 0 is the largest. For chains it summarizes the draws of all chains (see
        ``partition``). With ``outliers`` a row has the label -1 if it is an outlier in more than half of the draws.
        ``predict`` returns the cluster of this partition with the highest probability given the row. On the training
        rows this equals ``labels_``, except for chains and beam search, where it may differ for rows between clusters.
    inference_ : str
        The engine that was used: ``inference``, or the one that was chosen for "auto".
    n_clusters_ : int
        Number of clusters that have rows.
    n_clusters_posterior_ : dict
        Chains: probability of each number of clusters (outliers are not counted as a cluster).
    n_clusters_prior_ : dict
        Chains: the same before the data are seen. If the concentration is learned, this is the average over its prior.
    outlier_probability_ : ndarray (n_rows,)
        With ``outliers``: share of the draws in which a row is an outlier; ``confidence_`` of the rows with label -1.
    outlier_share_ : float
        With ``outliers``: probability that a new row is an outlier; ``weights_`` are the shares of the other rows.
    confidence_ : ndarray (n_rows,)
        Chains: mean probability that a row shares a cluster with the other rows of its cluster. Other engines:
        probability of the row's label under the fitted mixture.
    confidence_kind_ : str
        Meaning of ``confidence_``: "co-clustering probability" for chains, "posterior probability" for other engines.
    trace_ : Trace
        Chains: the draws (labels, log joint, number of clusters, concentration, chain). Labels are those of objects: a
        row of weight w is w objects.
    object_rows_ : ndarray
        Chains: the row of each object.
    burn_in_ : int
        Chains: number of iterations before the first draw that is kept.
    diagnostics_ : Diagnostics
        Chains: a grade of the groups ("firm", "fair" or "weak") with its reasons, R-hats and effective sample sizes.
        See :func:`partita.posterior.diagnose`.
    label_entropy_ : float
        Entropy of the labels given the fitted mixture, summed over the rows.
    weights_ : ndarray (n_components,)
        Share of each cluster.
    profiles_ : dict
        For each column, a description of each cluster in the user's units and labels.
    grain_ : Grain
        The tree over the clusters, from coarse groups to the clusters of ``labels_``: labels and support at every
        number of groups (:class:`partita.posterior.Grain`).
    alternatives_ : list of Alternative
        The best supported coarse (2 or 3), medium (4 to 8) and fine answers; see :meth:`at`.
    fit_report_ : FitReport
        What was unusual about the data and the fit.
    lower_bound_ : float
        VB and CVB: lower bound of the log evidence (of standardized real columns).
    log_likelihood_ : float
        Log density of the training rows in the user's units, with their weights.
    n_iter_, converged_, objective_trace_
        Number of iterations of the best start or of the longest chain; whether the fit converged (chains: whether they
        agree on the groups and on their number); the objective of each iteration (chains: the log joint of each draw).
        Beam search: number of objects that were assigned, whether all were, and the log joint of the partition.
    prior_ : prior
        The prior of the labels, with the learned concentration and discount. For chains these are the geometric mean
        of the concentration and the mean of the discount over the draws of all chains.
    n_parameters_ : int
        Number of free parameters, including the shares of the clusters.
    weight_total_ : float
        Sum of the weights: the number of objects.
    n_features_in_, feature_names_in_, schema_
        The table that was fitted.

    See Also
    --------
    DPGaussian, DPMultinomial : Dirichlet-process mixtures.
    LatentClass : latent class analysis.

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

    _array_laws: tuple[str, ...] = (
        "K = attributes.n_clusters_",
        "mixture.log_weights float (K) -inf",
        "mixture.sizes float (K) 0..",
        "mixture.blocks.*.hyper.* number (...) inf -inf",
        "mixture.blocks.*.signal.* float (...)",
        "mixture.blocks.*.coding.* float (...) nan",
        *draw_laws("mixture.draws"),
        *uncertain_laws("uncertain"),
        "row_weights float (N) 0..",
        "second_opinion.0 int (w) 0..N-1",
        "second_opinion.1 int (w)",
        "second_opinion.2 int (m,w)",
        "mixture.prior.*.* number (...) inf -inf",
        "mixture.statistics.* float (s,K)",
        "mixture.parameters.log_weights float (K) -inf",
        "mixture.parameters.thetas.* float (s,K) -inf",
        "mixture.outliers.hyper.*.* number (...) inf -inf",
        "mixture.outliers.statistics.* float (s,1)",
        "attributes.labels_ int (N) -1..K-1",
        "attributes.confidence_ float (N) 0..1 nan",
        "attributes.objective_trace_ float (T)",
        "attributes.outlier_probability_ float (N) 0..1 nan",
        "object_rows int (O) 0..N-1",
        *trace_laws("trace", numbered=True),
    )
    _parameter_constraints = {
        "family": "no_validation",
        "prior": "no_validation",
        "inference": [StrOptions({AUTO, *ENGINES})],
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [None, Interval(Integral, 1, None, closed="left")],
        "burn_in": [None, Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "precision": [StrOptions({"auto", "single", "double"})],
        "partition": [StrOptions({"votes", "vi", "binder", "nvi", "nid", "map"})],
        "outliers": ["boolean"],
        "estimate": [StrOptions({"map", "ml"})],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
        "kinds": "no_validation",
        "missing_codes": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "init": [StrOptions({"seeds", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": "no_validation",
        **RUNNING_CONSTRAINTS,
    }

    _component_groups: np.ndarray  # for each component, the finest group of the grain

    def __init__(
        self,
        family="auto",
        prior="auto",
        inference="auto",
        *,
        n_clusters=None,
        max_clusters=None,
        concentration=None,
        learn_hyper=True,
        n_chains=4,
        n_draws=None,
        burn_in=None,
        thin=1,
        precision="auto",
        partition="votes",
        outliers=False,
        estimate="map",
        order=1,
        beam_width=100,
        kinds=None,
        missing_codes=None,
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
        verbose=None,
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
        self.outliers = outliers
        self.estimate = estimate
        self.order = order
        self.beam_width = beam_width
        self.kinds = kinds
        self.missing_codes = missing_codes
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
        X : array, data frame, sparse count matrix, or source of chunks
            The table; see :func:`partita.table.read_table` for what can be read. A path (Parquet, Arrow, .npy), a
            memory map or a Dask collection is read in chunks if it is large, and so is anything that
            :func:`partita.execution.open_chunks` has opened, if the engine is "em", "vb",
            "memoized" or "subclusters".
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            How many objects each row stands for. A row of weight 0 has no effect on the fit. Fractions are allowed,
            except in chains and beam search, where a row of weight w stands for w objects.

        Returns
        -------
        Mixture
        """
        self._validate_params()
        settings = Settings.of(self)
        with self._control() as control, self._new_fit():
            training = self._read(X, settings, sample_weight)
            settings = settings._replace(inference=training.inference)
            ask = make_request(
                settings,
                training.table,
                training.blocks,
                control=control,
                executor=self._make_executor(),
                report=self.fit_report_,
            )
            try:
                result = ENGINES[settings.inference].fit(training.blocks, training.table.weights, ask)
            except FloatingPointError as error:
                raise ValueError(str(error)) from error
            self.inference_ = settings.inference
            self._fitted, attributes = settle(result, training, settings, make_executor(self.n_jobs))
            self._keep(attributes)
            self._count_rows(training)
            self._set_criteria()
        if result.run.reason == "max_iter":
            warn_user(
                f"{type(self).__name__} did not converge in {settings.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
            )
        self.fit_report_.warn()
        return self

    def _read(self, X, settings: Settings, sample_weight) -> Training:
        plan = plan_families(settings.family, settings.kinds)
        training = read_training(
            X,
            settings,
            plan,
            kinds_asked(plan, settings.exposure),
            sample_weight,
            executor=make_executor(self.n_jobs, self.executor),
            verbose=bool(self.verbose),
            name=type(self).__name__,
        )
        self._remember(training.table.schema)
        self.fit_report_ = training.report
        claim_folder(self, data_of_training(training), training.table.weights)
        return training

    @property
    def _learned_concentration(self) -> bool:
        return learns_concentration(self.prior, self.n_clusters, self.concentration, samples=True)

    def _meant_parameters(self) -> dict[str, Any]:
        """The prior that "auto" stands for: checkpoints under another one are those of another fit."""
        prior = getattr(self, "prior", None)  # not every preset has one
        if not isinstance(prior, str) or prior != AUTO:
            return {}
        if self.n_clusters is not None or self.concentration is not None:  # which say all that is held
            return {}
        return {"prior": resolve_sampling_prior(prior, None, None, None)}

    def _count_rows(self, training: Training) -> None:
        """Set what a subclass says of the rows of the training table."""

    def _set_criteria(self) -> None:
        """Set the attributes that a subclass computes from those of the mixture, after a fit or a load."""

    # ---- using ---------------------------------------------------------------------------------------------

    @property
    def _handle_unknown(self) -> str:
        return Settings.of(self).handle_unknown

    def _read_rows(self, X):
        """Number of new rows, and the blocks with them: on the host, or on a device."""
        if is_on_device(X):
            check_is_fitted(self)
            name = type(self).__name__
            refuse_on_host(self._fitted.outliers is not None, self._fitted.exposure is not None)
            blocks = read_device_rows(X, self._fitted.blocks, self.schema_, self._handle_unknown, name)
            return blocks, int(X.shape[0])
        table = self._read_new(X, self._handle_unknown)
        return self._fitted.with_data(table), table.n_rows

    def predict_proba(self, X, at=None):
        """Probability of each cluster of ``labels_`` for each row, given this partition.

        The uncertainty of the partition and the possibility of a new cluster, which enter ``score_samples``, do not
        enter here. For a row without any observed cell these are the shares of the clusters. With ``outliers``, one
        minus the sum of a row is its probability of being an outlier.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
        at : int or str, optional
            The scale, as in :meth:`at`: the probability of a group is the sum of those of its clusters.

        Returns
        -------
        ndarray (n_rows, n_components), or (n_rows, n_groups) with ``at``
        """
        if at is not None:
            proba = self.predict_proba(X)
            return as_given(sum_probabilities(to_host(proba), self._component_groups_at(at)), X)
        source = find_chunks(X)
        if source is not None:
            return predict_blocks(self, source, "predict_proba")
        blocks, n_rows = self._read_rows(X)
        return as_given(self._fitted.probabilities(blocks, n_rows, make_executor(self.n_jobs)), X)

    def transform(self, X):
        """The probabilities of ``predict_proba`` as features for the next step of a pipeline.

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
        return self._fitted.n_components

    def predict(self, X, at=None):
        """Most probable cluster of each row; with ``outliers``, -1 if the row is more probably an outlier.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
        at : int or str, optional
            The scale, as in :meth:`at`.

        Returns
        -------
        ndarray (n_rows,)
        """
        if at is not None:
            return self._predict_groups(X, self._component_groups_at(at))
        source = find_chunks(X)
        if source is not None:
            return predict_blocks(self, source, "predict")
        blocks, n_rows = self._read_rows(X)
        return as_given(self._fitted.assign(blocks, n_rows, make_executor(self.n_jobs)).labels, X)

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_

    @takes_chunks
    def _predict_groups(self, X, groups):
        """Most probable group of each row; ``groups`` has the group of each component."""
        proba = sum_probabilities(to_host(self.predict_proba(X)), groups)
        labels = proba.argmax(axis=1)
        if self._fitted.outliers is not None:
            labels = np.where(proba.sum(axis=1) < 0.5, -1, labels)
        return as_given(labels, X)

    # ---- the grain ---------------------------------------------------------------------------------------------

    def _grow_grain(self):
        fitted = self._fitted
        families = [block.family for block in fitted.blocks]
        grain, self._component_groups = grow_grain(
            families, fitted.statistics, self.n_clusters_, self._grain_evidence()
        )
        opinion = getattr(self, "_second_opinion", None)
        return grain if opinion is None else grain._replace(agreement=opinion.agreement_by_level(grain))

    def _grain_evidence(self) -> GrainEvidence:
        weights = self._row_weights
        return GrainEvidence(
            self.labels_,
            np.ones(len(self.labels_)) if weights is None else weights,
            self._uncertain,
            self.trace_.labels if hasattr(self, "trace_") else None,
            getattr(self, "object_rows_", None),
        )

    def _component_groups_at(self, at):
        groups = self._groups_at(at)
        return groups[self._component_groups]

    def _grain_confidence(self, groups):
        labels, onto = self.grain_.labels, self._component_groups
        return confidence_in(groups, onto, labels, self.confidence_, self._grain_evidence())

    def _grain_profiles(self, groups):
        fitted = self._fitted
        return joined_profiles(
            fitted.blocks, fitted.statistics, groups[self._component_groups], fitted.schema
        )

    @takes_chunks
    def score_samples(self, X):
        """Log posterior predictive density of each row in the user's units (EM: at the estimated parameters).

        For chains it is averaged over 20 draws, evenly spread over the kept draws of all chains; in each of them the
        row may belong to any cluster or to a new one. There are fewer draws if their statistics would take more than
        256 MB. Beam search has one partition and a new cluster, VB and CVB have the fitted clusters. Missing cells add
        nothing, so the densities of rows with different observed cells are not comparable.

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray (n_rows,)
        """
        blocks, n_rows = self._read_rows(X)
        return as_given(self._fitted.log_densities(blocks, n_rows, make_executor(self.n_jobs)), X)

    def score(self, X, y=None, sample_weight=None):
        """Mean log density of the rows (weighted if weights are given)."""
        densities = self.score_samples(X)
        return float(np.average(densities, weights=check_weights(sample_weight, len(densities))))

    def perplexity(self, X, sample_weight=None):
        """``exp(-log density / observed cells)``: for labels, the effective number of choices per cell."""
        table = self._read_new(X, self._handle_unknown)
        weights = check_weights(sample_weight, table.n_rows)
        blocks = self._fitted.with_data(table)
        log_densities = self._fitted.log_densities(blocks, table.n_rows, make_executor(self.n_jobs))
        return perplexity(float(weights @ log_densities), weights @ self._fitted.observed_cells(table))

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
        return self._fitted.sample(z, rng), z

    def predictive_checks(self, X, n_tables=100):
        """Compare each column of X with tables drawn from the fitted mixture.

        A p-value near 0 means that the model does not produce columns like this one: check its kind and family. The
        training rows give a lenient check, new rows a strict one.

        Parameters
        ----------
        X : array or data frame
        n_tables : int, default=100
            Number of tables to draw, at least 20.

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
        >>> model = Mixture("gaussian", n_clusters=1, inference="vb", random_state=0).fit(X)
        >>> checks = {check.statistic: check.p_value for check in model.predictive_checks(X)["x0"]}
        >>> checks["sd"] > 0.05, checks["skewness"] < 0.05
        (True, True)
        """
        table = self._read_new(X, self._handle_unknown)
        return check_columns(self._fitted, table, n_tables, as_generator(self.random_state))

    # ---- scikit-learn and storage ----------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.family == "multinomial"
        return tags

    def _state(self):
        return {
            "mixture": pack_mixture(self._fitted),
            "report": self.fit_report_.to_list(),
            "attributes": {name: getattr(self, name) for name in SAVED if hasattr(self, name)},
            "trace": list(self.trace_) if hasattr(self, "trace_") else None,
            "object_rows": getattr(self, "object_rows_", None),
            "uncertain": pack_uncertain(self._uncertain),
            "row_weights": self._row_weights,
            "second_opinion": pack_opinion(getattr(self, "_second_opinion", None)),
        }

    def _restore(self, state):
        self._fitted = unpack_mixture(state["mixture"])
        self._remember(self._fitted.schema)
        self.fit_report_ = FitReport.from_list(state["report"])
        self._keep(attributes_of(self._fitted))
        for name, value in state["attributes"].items():
            if name not in SAVED:
                raise ValueError(f"{name} is not an attribute that {type(self).__name__} saves")
            setattr(self, name, value)
        n_rows = len(self.labels_)
        self._uncertain = unpack_uncertain(state["uncertain"], n_rows, self._fitted.n_components)
        self._row_weights = state["row_weights"]
        if self._row_weights is not None:
            check_array("weights of the rows", self._row_weights, (n_rows,))
        if state["trace"] is not None:
            self.object_rows_ = state["object_rows"]
            self.trace_ = checked_trace(state["trace"], len(self.object_rows_))
            opinion = self._second_opinion = unpack_opinion(state["second_opinion"])
            self.diagnostics_ = diagnose_chains(
                self.trace_,
                provisional="provisional" in self.fit_report_,
                second_opinion=None if opinion is None else opinion.agreement(self.labels_),
            )
        self._set_criteria()
