"""The contract of a partition prior: the distribution of a clustering before the data are seen.

A prior is a NamedTuple of numbers and arrays, so that it can be pickled and passed to compiled code. There are two
kinds. *Exchangeable* priors (Dirichlet process, Pitman-Yor, mixture of finite mixtures, finite Dirichlet) give a
probability to partitions: clusters have no names, and an object may open a new cluster. *Labeled* priors (finite
Dirichlet, stick-breaking) give a probability to label vectors with ``n_components`` labels, as EM and the variational
engines need. The finite Dirichlet is both.

Every prior has the property ``fixed_labels``. It is False if labels are exchangeable: engines may then renumber
clusters, and remove empty ones. It is True for stick-breaking, where the probability depends on the order of the
labels: engines keep all ``n_components`` labels in their order, empty ones included, and there is no new cluster.

A *seat* is the place of an object in a cluster, a word from the Chinese restaurant process. Letters: ``n`` sizes,
``N`` number of objects, ``K`` number of occupied clusters, alpha concentration, sigma discount.

The first half of this module holds the *generics*, which are compiled into the engines; the second half holds the
*array functions*, which run in numpy once per iteration.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NoReturn

import numpy as np

from partita.dispatch import generic
from partita.partitions.learning import UNIFORM, UNIT_GAMMA, Beta, Gamma

# ---- generics: compiled, for one object or one partition ---------------------------------------------------


@generic
def log_mass(prior, n, K, out):
    """Log weights of the clusters for one object, given the sizes ``n[:K]`` of the clusters without this object.

    ``out[k]`` is the log weight of cluster k, ``out[K]`` that of a new cluster. The weights are ``p(z_i = k | other
    labels)`` up to a constant factor. If ``out`` has exactly K entries, the new cluster is left out. Under an
    exchangeable prior all K clusters should be occupied (an empty one gets weight 0, except under the finite Dirichlet,
    where it counts as one of the empty labels).

    With fixed labels (stick-breaking), K is always ``n_components`` and there is no new cluster. Under the finite
    Dirichlet, the new cluster has the weight of all empty labels together, and weight 0 if K is ``n_components``. Sizes
    may be fractional under the finite Dirichlet and stick-breaking.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.partitions import DirichletProcess, log_mass
    >>> out = np.empty(3)
    >>> log_mass(DirichletProcess(1.0), np.array([2.0, 1.0]), 2, out)
    >>> np.exp(out)
    array([2., 1., 1.])
    """


@generic
def log_seat(prior, n):
    """Log weight of a cluster of n other objects: the part of ``log_mass`` that samplers store per cluster.

    Only for exchangeable priors, whose weights depend only on the size of the cluster itself.
    """


@generic
def log_new_seat(prior, N, K):
    """Log weight of a new cluster in addition to K others, for the N-th object."""


@generic
def log_eppf(prior, n, K):
    """Log probability of one partition whose clusters have the sizes ``n[:K]`` (all at least 1).

    The exchangeable partition probability function of Pitman (1995): the sum over all set partitions is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.partitions import DirichletProcess, log_eppf
    >>> round(float(np.exp(log_eppf(DirichletProcess(1.0), np.array([2.0, 1.0]), 2))), 6)
    0.166667
    """


@generic
def log_labeled(prior, n):
    """Log probability of one label vector in which label k occurs ``n[k]`` times; fractional n allowed.

    The sum over all label vectors is 1. With expected sizes in place of ``n``, this is the term of the weights in
    the collapsed variational bound.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.partitions import FiniteDirichlet, log_labeled
    >>> round(float(np.exp(log_labeled(FiniteDirichlet(2.0, 2), np.array([1.0, 1.0])))), 6)
    0.166667
    """


# ---- array functions ---------------------------------------------------------------------------------------


def _refuse(prior: Any, name: str) -> NoReturn:
    cls = type(prior).__name__
    raise TypeError(f"{cls} has no {name}(); add one with @{name}.register({cls}), or choose another prior")


@singledispatch
def checked(prior: Any) -> Any:
    """Return the prior with its parameters checked and converted to the types that kernels are compiled for.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, checked
    >>> checked(DirichletProcess(2))
    DirichletProcess(concentration=2.0)
    >>> checked(DirichletProcess(-1))
    Traceback (most recent call last):
    ...
    ValueError: concentration is -1: it must be a positive finite number
    """
    _refuse(prior, "checked")


@singledispatch
def bind(prior: Any, N: float) -> Any:
    """Return the prior with its tables prepared for N objects (most priors have none and are returned unchanged).

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, bind, specify
    >>> bind(DirichletProcess(1.0), 100)
    DirichletProcess(concentration=1.0)
    >>> bind(specify("mfm"), 100).total
    100.0
    """
    return prior


@singledispatch
def with_concentration(prior: Any, concentration: float) -> Any:
    """Return the prior with another concentration (``gamma`` in a mixture of finite mixtures).

    The result is not bound to a number of objects.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, with_concentration
    >>> with_concentration(DirichletProcess(1.0), 3.0)
    DirichletProcess(concentration=3.0)
    """
    return prior._replace(concentration=float(concentration))


def with_parameters(prior: Any, concentration: float, discount: float = math.nan) -> Any:
    """Return the prior with the concentration and the discount of a draw; NaN leaves a parameter as it is.

    The result is not bound to a number of objects.

    Examples
    --------
    >>> from partita.partitions import PitmanYor, with_parameters
    >>> with_parameters(PitmanYor(), 2.0, 0.5)
    PitmanYor(concentration=2.0, discount=0.5)
    """
    if not math.isnan(concentration):
        prior = with_concentration(prior, concentration)
    return prior if math.isnan(discount) else prior._replace(discount=float(discount))


@singledispatch
def expect_log_weights(prior: Any, n: np.ndarray) -> np.ndarray:
    """Return ``E[log pi]`` under the posterior of the weights given (expected) sizes: the M step of VB.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, expect_log_weights
    >>> expect_log_weights(FiniteDirichlet(2.0, 2), np.array([1.0, 1.0])).round(4)
    array([-0.8333, -0.8333])
    """
    _refuse(prior, "expect_log_weights")


@singledispatch
def mode_log_weights(prior: Any, n: np.ndarray, flat: bool = False) -> np.ndarray:
    """Return the log weights at the posterior mode (the M step of EM), or with ``flat=True`` at maximum likelihood.

    The mode is that of the prior's own parameters: weights for the finite Dirichlet, sticks for stick-breaking. If the
    density increases towards the boundary, the mode is on the boundary and a log weight may be ``-inf``.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, mode_log_weights
    >>> np.exp(mode_log_weights(FiniteDirichlet(1.0, 2), np.array([4.5, 0.5])))
    array([1., 0.])
    >>> np.exp(mode_log_weights(FiniteDirichlet(1.0, 2), np.array([4.5, 0.5]), flat=True))
    array([0.9, 0.1])
    """
    _refuse(prior, "mode_log_weights")


@singledispatch
def log_prior_weights(prior: Any, log_weights: np.ndarray) -> float:
    """Return the log prior density of the weights: the penalty that ``mode_log_weights`` maximizes.

    Weights on the boundary are left out of the sum, so values can be compared only between equal supports.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, log_prior_weights
    >>> log_prior_weights(FiniteDirichlet(2.0, 2), np.log([0.3, 0.7]))
    0.0
    """
    _refuse(prior, "log_prior_weights")


@singledispatch
def mean_log_weights(prior: Any, n: np.ndarray) -> np.ndarray:
    """Return the log of the posterior mean weights, for predictive densities.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, mean_log_weights
    >>> np.exp(mean_log_weights(FiniteDirichlet(2.0, 2), np.array([2.0, 1.0])))
    array([0.6, 0.4])
    """
    _refuse(prior, "mean_log_weights")


@singledispatch
def draw_log_weights(prior: Any, n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw log weights from their posterior given the sizes (for conditional Gibbs samplers).

    Weights are drawn on the log scale, so that a weight of 1e-400 is not rounded to zero.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, draw_log_weights
    >>> log_pi = draw_log_weights(FiniteDirichlet(1e-3, 4), np.zeros(4), np.random.default_rng(0))
    >>> bool(np.isfinite(log_pi).all()), round(float(np.exp(log_pi).sum()), 6)
    (True, 1.0)
    """
    _refuse(prior, "draw_log_weights")


@singledispatch
def cvb_log_mass(
    prior: Any,
    n: np.ndarray,
    own: np.ndarray,
    spread: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Return ``E_q[log p(z_i = k | other labels)]`` for a chunk of objects: collapsed variational inference.

    Parameters
    ----------
    n : ndarray (K,)
        Expected sizes over all objects.
    own : ndarray (B, K)
        Responsibilities of the B objects of the chunk; each row is subtracted from ``n`` for its own object.
    spread : (var_n, var_tail), optional
        ``count_spread`` summed over all objects. Without it, the expansion is of first order (CVB0, Asuncion et al.
        2009: plug in the expected sizes); with it, of second order (Teh, Newman and Welling 2007), after each object's
        own variance was subtracted.

    Returns
    -------
    ndarray (B, K)

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, cvb_log_mass
    >>> np.exp(cvb_log_mass(FiniteDirichlet(2.0, 2), np.array([2.0, 1.0]), np.array([[1.0, 0.0]])))
    array([[0.5, 0.5]])
    """
    _refuse(prior, "cvb_log_mass")


def count_spread(R: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the variances of the sizes ``n_k`` and of their tails ``n_{>k}`` if labels are drawn from the rows of R.

    Variances of several chunks of rows add up. A row of weight w stands for w objects with independent labels.

    Examples
    --------
    >>> var_n, var_tail = count_spread(np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> var_n, var_tail
    (array([0.25, 0.25]), array([0.25, 0.  ]))
    """
    w = np.ones(len(R)) if weights is None else np.asarray(weights, dtype=float)
    tail = tail_above(R)
    return w @ (R * (1.0 - R)), w @ (tail * (1.0 - tail))


def tail_above(n: np.ndarray) -> np.ndarray:
    """Return ``n_{>k}`` along the last axis, summed from the end so that it is never negative.

    Examples
    --------
    >>> tail_above(np.array([3.0, 2.0, 1.0]))
    array([3., 1., 0.])
    """
    tail = np.zeros_like(n, dtype=float)
    tail[..., :-1] = np.cumsum(n[..., :0:-1], axis=-1)[..., ::-1]
    return tail


@singledispatch
def simulate(prior: Any, N: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a clustering of N objects from the prior.

    Exchangeable priors return labels in order of first appearance, stick-breaking its own labels, and the Indian
    buffet process a binary matrix of N rows.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, simulate
    >>> simulate(DirichletProcess(1.0), 6, np.random.default_rng(0)).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    _refuse(prior, "simulate")


@singledispatch
def n_clusters_prior(prior: Any, N: int) -> np.ndarray:
    """Return the prior distribution of the number of occupied clusters among N objects: entry K is P(K clusters).

    The result is exact; a tail of total probability below 1e-16 is cut off, so the array may be shorter than N + 1. For
    stick-breaking with more than 500 objects it is estimated from 20,000 draws with a fixed seed.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, n_clusters_prior
    >>> n_clusters_prior(DirichletProcess(1.0), 3).round(4)
    array([0.    , 0.3333, 0.5   , 0.1667])
    """
    _refuse(prior, "n_clusters_prior")


@singledispatch
def expected_n_clusters(prior: Any, N: int) -> float:
    """Return the prior mean of the number of occupied clusters among N objects.

    The result is exact, except for stick-breaking with more than 500 objects: an average over 20,000 draws of weights.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, expected_n_clusters
    >>> round(expected_n_clusters(DirichletProcess(1.0), 3), 4)
    1.8333
    """
    p = n_clusters_prior(prior, N)
    return float(p @ np.arange(len(p)))


# ---- learning the hyper-parameters -------------------------------------------------------------------------


@singledispatch
def sample_hyper(
    prior: Any,
    n: np.ndarray,
    rng: np.random.Generator,
    hyperprior: Gamma = UNIT_GAMMA,
    discount_hyperprior: Beta = UNIFORM,
) -> Any:
    """Update the concentration (and discount) given the sizes, by an MCMC step that leaves their posterior invariant.

    Stick-breaking needs the sizes of all its labels, in order; other priors skip empty clusters. For the Indian buffet
    process, ``n`` is the binary matrix, and the hyperprior is used for both parameters. Only Pitman-Yor uses the
    hyperprior of the discount. If the prior is bound to a number of objects, so is the result.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, sample_hyper
    >>> rng = np.random.default_rng(0)
    >>> sample_hyper(DirichletProcess(1.0), np.array([5.0, 3.0]), rng).concentration > 0
    True
    """
    _refuse(prior, "sample_hyper")


@singledispatch
def fit_hyper(prior: Any, n: np.ndarray) -> Any:
    """Empirical Bayes: return the concentration (and discount) that maximize the probability of the sizes.

    The objective is ``log_labeled`` for the finite Dirichlet and stick-breaking (n may be fractional; the variational
    bound cannot decrease), and ``log_eppf`` for the other priors. Concentrations range from 1e-3 to 1e3 and discounts
    from 0 to 0.99; bounds are needed because the maximum for a single cluster, or for singletons only, is at the end of
    the range. The sizes are never less probable under the result than under the given prior.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, fit_hyper
    >>> fit_hyper(DirichletProcess(1.0), np.array([8.0]))  # one cluster
    DirichletProcess(concentration=0.001)
    """
    _refuse(prior, "fit_hyper")
