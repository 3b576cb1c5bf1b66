"""Latent class analysis: finite mixtures of categorical columns, with the criteria that its users report."""

from __future__ import annotations

import math
from numbers import Integral

from sklearn.utils._param_validation import Interval

from partita.estimator import RUNNING_CONSTRAINTS
from partita.execution.weights import weighted_sum
from partita.labels.information import entropy
from partita.mixture.estimator import Mixture

SHARED = ("estimate", "n_init", "max_iter", "tol", "init", "handle_unknown", "random_state")


class LatentClass(Mixture):
    """Latent class analysis by maximum likelihood (or MAP).

    Every column is categorical, the number of classes is given, and the start with the highest likelihood is kept.
    Missing answers are left out of the likelihood. For users who come from poLCA, StepMix or Latent GOLD.

    Parameters
    ----------
    n_clusters : int
        Number of latent classes; :class:`Mixture` finds it.
    estimate : {"ml", "map"}, default="ml"
        Maximum likelihood, or the posterior mode with a pseudo-count of one half per level.
    n_init, max_iter, tol, init, handle_unknown, random_state
        As in :class:`Mixture`.
    time_limit, callback, keep_partial, n_jobs, executor, resume, verbose
        How the fit runs, as in :class:`Mixture`.

    Attributes
    ----------
    aic_, bic_, sabic_ : float
        Akaike and Bayesian information criteria, and the latter adjusted for the sample size
        (``log((n + 2) / 24)``); n is ``weight_answered_``.
    entropy_r2_ : float
        One minus the entropy of the class probabilities divided by its maximum, over the rows with an answer; 1 means
        perfect separation.
    weight_answered_ : float
        Sum of the weights of the rows with at least one answer. The other rows tell nothing about the classes, and are
        left out of the criteria; ``fit_report_`` says how many there are.
    log_likelihood_, n_parameters_
        What the criteria are computed from.

    The other attributes are those of :class:`Mixture`; ``profiles_`` holds the answer probabilities by class.

    References
    ----------
    Lazarsfeld and Henry (1968), Latent Structure Analysis; Linzer and Lewis (2011), JSS 42(10).

    Examples
    --------
    >>> import numpy as np
    >>> from partita import LatentClass
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(2, size=300)
    >>> X = np.where(rng.random((300, 6)) < 0.85, z[:, None], 1 - z[:, None])
    >>> model = LatentClass(n_clusters=2, random_state=0).fit(X)
    >>> model.bic_ < LatentClass(n_clusters=3, random_state=0).fit(X).bic_
    True
    """

    _parameter_constraints = {
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        **{name: Mixture._parameter_constraints[name] for name in SHARED},
        **RUNNING_CONSTRAINTS,
    }
    family = "categorical"
    inference = "em"

    def __init__(
        self,
        n_clusters=None,
        *,
        estimate="ml",
        n_init=10,
        max_iter=1000,
        tol=1e-7,
        init="seeds",
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
        self.estimate = estimate
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def _validate_params(self):
        super()._validate_params()
        if self.n_clusters is None:
            raise ValueError(
                "LatentClass needs n_clusters: give the number of classes, as in LatentClass(n_clusters=3), or use "
                "Mixture, which finds it"
            )

    def _count_rows(self, training):
        answered = self._fitted.has_observed_cells(training.blocks, training.table.n_rows)
        self.weight_answered_ = weighted_sum(training.table.weights, answered)
        silent = self.weight_total_ - self.weight_answered_
        if silent > 0:
            self.fit_report_.add(
                "no_answers",
                f"{silent:g} of {self.weight_total_:g} rows have no answer: they are left out of N, bic_, sabic_ and "
                "entropy_r2_; their class probabilities are the shares of the classes",
            )

    def _set_criteria(self):
        deviance, p, n = -2 * self.log_likelihood_, self.n_parameters_, self.weight_answered_
        self.aic_ = deviance + 2 * p
        self.bic_ = deviance + p * math.log(n)
        self.sabic_ = deviance + p * math.log((n + 2) / 24)
        K = len(self.weights_)
        silent = (self.weight_total_ - n) * entropy(self.weights_)  # the part of rows without any answer
        self.entropy_r2_ = 1.0 if K == 1 else 1.0 - (self.label_entropy_ - silent) / (n * math.log(K))
