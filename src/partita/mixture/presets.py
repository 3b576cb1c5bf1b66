"""Dirichlet-process mixtures of Gaussians and of multinomials."""

from __future__ import annotations

from sklearn.utils._param_validation import StrOptions

from partita.estimator import RUNNING_CONSTRAINTS
from partita.mixture.estimator import Mixture

SHARED = (
    "n_clusters", "max_clusters", "concentration", "learn_hyper", "n_chains", "n_draws", "burn_in", "thin",
    "partition", "init", "random_state",
)  # fmt: skip
SHARED_CONSTRAINTS = {
    "inference": [StrOptions({"gibbs", "subclusters", "vb", "memoized", "cvb"})],
    **{name: Mixture._parameter_constraints[name] for name in SHARED},
    **RUNNING_CONSTRAINTS,
}
COVARIANCES = {"full": "gaussian_full", "diagonal": "gaussian"}


class DPGaussian(Mixture):
    """Dirichlet-process mixture of Gaussians: real columns, any number of clusters.

    Parameters
    ----------
    covariance : {"auto", "full", "diagonal"}, default="auto"
        Shape of the clusters. "auto": as ``family="auto"`` of :class:`Mixture`.
    inference : {"gibbs", "subclusters", "vb", "memoized", "cvb"}, default="gibbs"
        As in :class:`Mixture`.
    n_clusters, max_clusters, concentration, learn_hyper, n_chains, n_draws, burn_in, thin, partition, init, \
random_state
        As in :class:`Mixture`. This class also has the attributes of :class:`Mixture`.
    time_limit, callback, keep_partial, n_jobs, executor, resume, verbose
        How the fit runs, as in :class:`Mixture`.

    References
    ----------
    Rasmussen (2000), The infinite Gaussian mixture model, NIPS 12; Neal (2000), JCGS 9.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import DPGaussian
    >>> X = np.random.default_rng(0).normal(size=(90, 2)) + np.repeat([[-9, 0], [0, 9], [9, 0]], 30, axis=0)
    >>> DPGaussian(n_chains=2, n_draws=20, burn_in=20, random_state=0).fit(X).n_clusters_
    3
    """

    _parameter_constraints = {
        "covariance": [StrOptions({"auto", "full", "diagonal"})],
        **SHARED_CONSTRAINTS,
    }
    prior = "dirichlet_process"
    kinds = "real"

    def __init__(
        self,
        covariance="auto",
        inference="gibbs",
        *,
        n_clusters=None,
        max_clusters=None,
        concentration=None,
        learn_hyper=True,
        n_chains=4,
        n_draws=None,
        burn_in=None,
        thin=1,
        partition="votes",
        init="seeds",
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
    ):
        self.covariance = covariance
        self.inference = inference
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.concentration = concentration
        self.learn_hyper = learn_hyper
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.partition = partition
        self.init = init
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    @property
    def family(self):
        """The family that ``covariance`` stands for."""
        return {"real": COVARIANCES[self.covariance]} if self.covariance != "auto" else "auto"


class DPMultinomial(Mixture):
    """Dirichlet-process mixture of multinomials: rows of counts (words, species), any number of clusters.

    The table may be dense or sparse. A cluster is a vector of proportions; the total of a row carries no information.

    Parameters
    ----------
    inference : {"gibbs", "subclusters", "vb", "memoized", "cvb"}, default="gibbs"
        As in :class:`Mixture`.
    n_clusters, max_clusters, concentration, learn_hyper, n_chains, n_draws, burn_in, thin, partition, init, \
random_state
        As in :class:`Mixture`. This class also has the attributes of :class:`Mixture`.
    time_limit, callback, keep_partial, n_jobs, executor, resume, verbose
        How the fit runs, as in :class:`Mixture`.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import DPMultinomial
    >>> rng = np.random.default_rng(0)
    >>> P = np.repeat([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]], 30, axis=0)
    >>> X = np.array([rng.multinomial(40, p) for p in P])
    >>> DPMultinomial(n_chains=2, n_draws=20, burn_in=20, random_state=0).fit(X).n_clusters_
    2
    """

    _parameter_constraints = SHARED_CONSTRAINTS
    _input_tags = {"positive_only": True}
    family = "multinomial"
    prior = "dirichlet_process"

    def __init__(
        self,
        inference="gibbs",
        *,
        n_clusters=None,
        max_clusters=None,
        concentration=None,
        learn_hyper=True,
        n_chains=4,
        n_draws=None,
        burn_in=None,
        thin=1,
        partition="votes",
        init="seeds",
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
    ):
        self.inference = inference
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.concentration = concentration
        self.learn_hyper = learn_hyper
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.partition = partition
        self.init = init
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose
