"""What a partition prior is: who sits with whom, before the data are seen.

A prior is a NamedTuple of numbers and arrays (so that it pickles, and so that compiled code can take it). Two
kinds live here. *Exchangeable* priors (Dirichlet process, Pitman-Yor, mixture of finite mixtures, finite
Dirichlet) give a probability to partitions: clusters have no names, and there is a seat for a new one.
*Labeled* priors (finite Dirichlet, stick-breaking) give a probability to label vectors with ``n_components``
fixed labels, which is what EM and the variational engines work with. The finite Dirichlet is both.

First the *generics*, compiled into the engines; then the *array functions*, called once an iteration from
numpy. Letters: ``n`` sizes, ``N`` number of objects, ``K`` occupied clusters, alpha concentration, sigma
discount.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NoReturn

import numpy as np

from partita.dispatch import generic
from partita.partitions.learning import UNIFORM, UNIT_GAMMA, Beta, Gamma

# ---- generics: compiled, for one object or one partition ---------------------------------------------------


@generic
def log_mass(prior, n, K, out):
    """Log weights of the seats of one object, given the sizes ``n[:K]`` of the *other* objects' clusters.

    ``out[k]`` is the seat in cluster k, ``out[K]`` a cluster of its own. The weights are those of ``p(z_i =
    k | z of the others)`` up to a constant: normalize before use. A buffer ``out`` of exactly K entries
    leaves the new cluster out. An exchangeable prior wants occupied clusters (an empty one gets weight 0,
    except under the finite Dirichlet, where it is one of the empty labels by name).

    With fixed labels (stick-breaking) K is always ``n_components``, every label has its seat, and there is
    no new one; the finite Dirichlet's new seat carries all its empty labels and has weight 0 once K is
    ``n_components``. Finite Dirichlet and stick-breaking take fractional sizes.

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
    """Log weight of a seat in a cluster of n other objects: the part of ``log_mass`` that samplers keep.

    Only for exchangeable priors, whose weights depend on a cluster's own size alone.
    """


@generic
def log_new_seat(prior, N, K):
    """Log weight of a new cluster beside K others when the N-th object takes its seat."""


@generic
def log_eppf(prior, n, K):
    """Log probability of one partition whose clusters have the sizes ``n[:K]`` (all of them at least 1).

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

    The sum over all label vectors is 1. With expected sizes in place of ``n`` this is the term of the
    collapsed variational bound that belongs to the weights.

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
    """The same prior with its parameters checked, and in the types that kernels are compiled for.

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
    """The same prior with its tables prepared for N objects (most priors have none and come back unchanged).

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
    """The same prior with another concentration (``gamma`` in a mixture of finite mixtures).

    The result is not bound to any total.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, with_concentration
    >>> with_concentration(DirichletProcess(1.0), 3.0)
    DirichletProcess(concentration=3.0)
    """
    return prior._replace(concentration=float(concentration))


@singledispatch
def expect_log_weights(prior: Any, n: np.ndarray) -> np.ndarray:
    """``E[log pi]`` under the posterior of the weights given (expected) sizes: the M step of VB.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, expect_log_weights
    >>> expect_log_weights(FiniteDirichlet(2.0, 2), np.array([1.0, 1.0])).round(4)
    array([-0.8333, -0.8333])
    """
    _refuse(prior, "expect_log_weights")


@singledispatch
def mode_log_weights(prior: Any, n: np.ndarray, flat: bool = False) -> np.ndarray:
    """Log weights at the posterior mode (the M step of EM); with ``flat=True`` the maximum likelihood.

    The mode is that of the prior's own parameters: weights for the finite Dirichlet, sticks for
    stick-breaking. Where the density grows towards the boundary the mode is on it, and the log weight is
    ``-inf``.

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
    """Log prior density of the weights: the penalty that ``mode_log_weights`` maximizes.

    Weights on the boundary are left out of the sum, so values compare only between equal supports.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, log_prior_weights
    >>> log_prior_weights(FiniteDirichlet(2.0, 2), np.log([0.3, 0.7]))
    0.0
    """
    _refuse(prior, "log_prior_weights")


@singledispatch
def mean_log_weights(prior: Any, n: np.ndarray) -> np.ndarray:
    """Log of the posterior mean weights: what a predictive density wants.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, mean_log_weights
    >>> np.exp(mean_log_weights(FiniteDirichlet(2.0, 2), np.array([2.0, 1.0])))
    array([0.6, 0.4])
    """
    _refuse(prior, "mean_log_weights")


@singledispatch
def draw_log_weights(prior: Any, n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One draw of the log weights from their posterior given the sizes (the conditional Gibbs sampler).

    Drawn on the log scale: a weight of 1e-400 is small, not zero.

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
    """``E_q[log p(z_i = k | z of the others)]`` for a block of objects: collapsed variational inference.

    Parameters
    ----------
    n : ndarray (K,)
        Expected sizes over all objects.
    own : ndarray (B, K)
        Responsibilities of the block's objects; each row is taken out of ``n`` for its own object.
    spread : (var_n, var_tail), optional
        ``count_spread`` summed over all objects. None expands to first order (CVB0, Asuncion et al. 2009:
        plug in the expected sizes), otherwise to second order (Teh, Newman and Welling 2007), each object's
        own variance taken out.

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
    """Variances of the sizes ``n_k`` and of their tails ``n_{>k}`` when labels are drawn from the rows of R.

    They add over blocks of rows. A row of weight w stands for w objects with independent labels.

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
    """``n_{>k}`` along the last axis, summed from the far end so that it is never negative.

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

    Exchangeable priors give labels in order of appearance, stick-breaking its own labels; the Indian buffet
    gives a binary matrix of N rows.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, simulate
    >>> simulate(DirichletProcess(1.0), 6, np.random.default_rng(0)).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    _refuse(prior, "simulate")


@singledispatch
def n_clusters_prior(prior: Any, N: int) -> np.ndarray:
    """Prior distribution of the number of occupied clusters among N objects: entry K is P(K clusters).

    Exact (a tail below 1e-16 in all is cut off, so the array may be shorter than N + 1). Stick-breaking
    with more than 500 objects is the exception: it is estimated from 20,000 draws with a fixed seed.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, n_clusters_prior
    >>> n_clusters_prior(DirichletProcess(1.0), 3).round(4)
    array([0.    , 0.3333, 0.5   , 0.1667])
    """
    _refuse(prior, "n_clusters_prior")


@singledispatch
def expected_n_clusters(prior: Any, N: int) -> float:
    """Prior mean of the number of occupied clusters among N objects.

    Exact, except for stick-breaking with more than 500 objects: that averages 20,000 draws of the weights.

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
    """One MCMC update of the concentration (and discount) given the sizes; leaves their posterior invariant.

    Give stick-breaking the sizes of all its labels, in order; the other priors skip empty clusters. For the
    Indian buffet ``n`` is the binary matrix, and the hyperprior holds for both its parameters. The
    hyperprior on the discount is used by Pitman-Yor alone. A prior bound to a total comes back bound.

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
    """Empirical Bayes: the concentration (and discount) under which these sizes are the most probable.

    Maximizes ``log_labeled`` (finite Dirichlet, stick-breaking; n may be fractional, and then the
    variational bound cannot fall) or ``log_eppf`` (the others) over concentrations from 1e-3 to 1e3 and
    discounts from 0 to 0.99; the box is needed because one cluster, or all singletons, have their maximum
    at infinity. The result is never less probable than the prior that came in.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, fit_hyper
    >>> fit_hyper(DirichletProcess(1.0), np.array([8.0]))  # one cluster
    DirichletProcess(concentration=0.001)
    """
    _refuse(prior, "fit_hyper")
