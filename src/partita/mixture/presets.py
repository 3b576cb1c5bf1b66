"""Dirichlet-process mixtures by name."""

from __future__ import annotations

from sklearn.utils._param_validation import StrOptions

from partita.mixture.estimator import Mixture

__all__ = ["DPGaussian", "DPMultinomial"]

SHARED = (
    "n_clusters", "max_clusters", "concentration", "learn_hyper", "n_chains", "n_draws", "burn_in", "thin",
    "partition", "init", "time_limit", "callback", "keep_partial", "random_state", "n_jobs", "verbose",
)  # fmt: skip
RULES = {name: Mixture._parameter_constraints[name] for name in SHARED}
INFERENCE = {"inference": [StrOptions({"gibbs", "subclusters", "vb", "cvb"})]}
COVARIANCES = {"full": "gaussian_full", "diagonal": "gaussian"}


class DPGaussian(Mixture):
    """Dirichlet-process mixture of Gaussians: real columns, any number of clusters.

    Parameters
    ----------
    covariance : {"auto", "full", "diagonal"}, default "auto"
        Shape of the clusters; "auto" is full where there are 2 to 30 columns and at least five rows for each.
    inference : {"gibbs", "subclusters", "vb", "cvb"}, default "gibbs"
        As in :class:`Mixture`.
    n_clusters, max_clusters, concentration, learn_hyper, n_chains, n_draws, burn_in, thin, partition, init, \
time_limit, callback, keep_partial, random_state, n_jobs, verbose
        As in :class:`Mixture`, whose attributes this class has, too.

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
        **RULES,
        **INFERENCE,
        "covariance": [StrOptions({"auto", "full", "diagonal"})],
    }

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
        n_draws=200,
        burn_in=100,
        thin=1,
        partition="votes",
        init="seeds",
        time_limit=None,
        callback=None,
        keep_partial=False,
        random_state=None,
        n_jobs=None,
        verbose=False,
    ):
        self.covariance = covariance
        super().__init__(
            prior="dirichlet_process",
            inference=inference,
            n_clusters=n_clusters,
            max_clusters=max_clusters,
            concentration=concentration,
            learn_hyper=learn_hyper,
            n_chains=n_chains,
            n_draws=n_draws,
            burn_in=burn_in,
            thin=thin,
            partition=partition,
            kinds="real",
            init=init,
            time_limit=time_limit,
            callback=callback,
            keep_partial=keep_partial,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    @property
    def family(self):
        """The family of the covariance, which ``set_params`` may change."""
        return {"real": COVARIANCES[self.covariance]} if self.covariance != "auto" else "auto"

    @family.setter
    def family(self, value):
        pass  # the base class stores a parameter that this class does not have


class DPMultinomial(Mixture):
    """Dirichlet-process mixture of multinomials: rows of counts (words, species), any number of clusters.

    Reads dense tables of counts and sparse matrices. A cluster is a vector of proportions; the total of a row says
    nothing.

    Parameters
    ----------
    inference : {"gibbs", "subclusters", "vb", "cvb"}, default "gibbs"
        As in :class:`Mixture`.
    n_clusters, max_clusters, concentration, learn_hyper, n_chains, n_draws, burn_in, thin, partition, init, \
time_limit, callback, keep_partial, random_state, n_jobs, verbose
        As in :class:`Mixture`, whose attributes this class has, too.

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

    _parameter_constraints = {**RULES, **INFERENCE}

    def __init__(
        self,
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
        partition="votes",
        init="seeds",
        time_limit=None,
        callback=None,
        keep_partial=False,
        random_state=None,
        n_jobs=None,
        verbose=False,
    ):
        super().__init__(
            family="multinomial",
            prior="dirichlet_process",
            inference=inference,
            n_clusters=n_clusters,
            max_clusters=max_clusters,
            concentration=concentration,
            learn_hyper=learn_hyper,
            n_chains=n_chains,
            n_draws=n_draws,
            burn_in=burn_in,
            thin=thin,
            partition=partition,
            init=init,
            time_limit=time_limit,
            callback=callback,
            keep_partial=keep_partial,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
