"""The prior of the number of clusters where the concentration and the discount are learned: averaged over their prior.

The concentration has a Gamma hyperprior and the discount a Beta hyperprior (:mod:`partita.partitions.learning`), as in
the engines that learn them. With one unknown parameter the average is a sum over a grid of its logarithm, with an error
below 1e-5. Pitman-Yor has two, and stick-breaking has no fast exact distribution for many objects: there the average is
over draws with a fixed seed, up to 65,536 of them.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.stats import beta as beta_law
from scipy.stats import gamma as gamma_law

from partita.partitions.dirichlet_process import DirichletProcess
from partita.partitions.finite import FiniteDirichlet
from partita.partitions.gibbs_type import MIN_PROBABILITY, log_stirling
from partita.partitions.learning import UNIFORM, UNIT_GAMMA, Beta, Gamma
from partita.partitions.mfm import MixtureOfFinite, most_components, tabulate_log_V
from partita.partitions.pitman_yor import PitmanYor
from partita.partitions.stick_breaking import StickBreaking, along_sticks

STEP = 0.25  # of the grid of log concentrations
LOWER_TAIL, UPPER_TAIL = 1e-7, 1e-11  # of the hyperprior beyond the grid
MAX_DRAWS, MAX_STEPS = 1 << 16, 400_000_000  # draws of the hyperprior, and objects of all draws together


def marginal_n_clusters_prior(
    prior: Any,
    N: int,
    *,
    max_clusters: int | None = None,
    hyperprior: Gamma = UNIT_GAMMA,
    discount_hyperprior: Beta = UNIFORM,
) -> np.ndarray:
    """Return the prior of the number of clusters among N objects where the concentration is learned: entry K is P(K).

    Parameters
    ----------
    prior : partition prior
        Its concentration (``gamma`` in a mixture of finite mixtures) and discount are not used.
    N : int
        Number of objects.
    max_clusters : int, default=None
        Limit on the number of clusters: partitions with more have no mass.
    hyperprior : Gamma, default=Gamma(1, 1)
        Of the concentration.
    discount_hyperprior : Beta, default=Beta(1, 1)
        Of the discount of Pitman-Yor.

    Returns
    -------
    ndarray

    See Also
    --------
    n_clusters_prior : the same at one concentration.

    Examples
    --------
    With the concentration alpha, the second of two objects opens a cluster with the probability alpha / (1 + alpha).

    >>> from partita.partitions import DirichletProcess, marginal_n_clusters_prior
    >>> marginal_n_clusters_prior(DirichletProcess(), 2).round(4)
    array([0.    , 0.5963, 0.4037])
    """
    p = _average(prior, int(N), hyperprior, discount_hyperprior)
    if max_clusters is not None:
        p = p[: max_clusters + 1]
    return p / p.sum()


def log_hyperprior(
    concentration: float,
    discount: float = math.nan,
    hyperprior: Gamma = UNIT_GAMMA,
    discount_hyperprior: Beta = UNIFORM,
) -> float:
    """Return the log prior density of a learned concentration, and of a learned discount if it is not NaN.

    Examples
    --------
    >>> from partita.partitions import log_hyperprior
    >>> log_hyperprior(2.0), log_hyperprior(2.0, 0.3)
    (-2.0, -2.0)
    """
    total = hyperprior.log_density(concentration)
    return total if math.isnan(discount) else total + discount_hyperprior.log_density(discount)


def _grid(hyperprior: Gamma) -> tuple[np.ndarray, np.ndarray]:
    """Concentrations, and their weights."""
    law = gamma_law(hyperprior.shape, scale=1.0 / hyperprior.rate)
    first, last = np.log(law.ppf(LOWER_TAIL)), np.log(law.isf(UPPER_TAIL))
    alpha = np.exp(np.linspace(first, last, int((last - first) / STEP) + 1))
    weights = law.pdf(alpha) * alpha
    return alpha, weights / weights.sum()


def _draws(N: int, hyperprior: Gamma, rng: np.random.Generator) -> np.ndarray:
    """Concentrations at equal distances in probability, in random order."""
    T = int(np.clip(MAX_STEPS // N, 1000, MAX_DRAWS))
    u = (rng.permutation(T) + rng.random(T)) / T
    return np.asarray(gamma_law.ppf(u, hyperprior.shape, scale=1.0 / hyperprior.rate))


@singledispatch
def _average(prior: Any, N: int, hyperprior: Gamma, discount_hyperprior: Beta) -> np.ndarray:
    raise TypeError(f"{type(prior).__name__} has no hyperprior of its concentration")


@_average.register(DirichletProcess)
def _(prior, N, hyperprior, discount_hyperprior):
    alpha, weights = _grid(hyperprior)
    return weights @ occupied_by_node(alpha, np.zeros_like(alpha), N)


@_average.register(FiniteDirichlet)
def _(prior, N, hyperprior, discount_hyperprior):
    alpha, weights = _grid(hyperprior)
    return weights @ occupied_by_node(alpha, -alpha / prior.n_components, N)


@_average.register(MixtureOfFinite)
def _(prior, N, hyperprior, discount_hyperprior):
    gamma, weights = _grid(hyperprior)
    log_S = log_stirling(-gamma, N, most_components(prior, N))
    K = np.arange(log_S.shape[1])
    log_V = [tabulate_log_V(prior._replace(gamma=float(g)), float(N), K) for g in gamma]
    return weights @ np.exp(log_S + log_V + K * np.log(gamma)[:, None])


@_average.register(PitmanYor)
def _(prior, N, hyperprior, discount_hyperprior):
    rng = np.random.default_rng(0)
    alpha = _draws(N, hyperprior, rng)
    u = (rng.permutation(len(alpha)) + rng.random(len(alpha))) / len(alpha)
    sigma = beta_law.ppf(u, discount_hyperprior.a, discount_hyperprior.b)
    K = np.ones(len(alpha))
    for n in range(1, N):
        K += rng.random(len(K)) * (alpha + n) < alpha + sigma * K
    return np.bincount(K.astype(np.int64)) / len(K)


@_average.register(StickBreaking)
def _(prior, N, hyperprior, discount_hyperprior):
    rng = np.random.default_rng(0)
    alpha = _draws(N, hyperprior, rng)
    log_rest = -rng.standard_exponential((len(alpha), prior.n_components - 1)) / alpha[:, None]
    with np.errstate(divide="ignore"):  # a stick that takes nothing, in floating-point numbers
        pi = np.exp(along_sticks(np.log(-np.expm1(log_rest)), log_rest))
    occupied = np.count_nonzero(rng.multinomial(N, pi / pi.sum(axis=1, keepdims=True)), axis=1)
    return np.bincount(occupied) / len(alpha)


def occupied_by_node(alpha: np.ndarray, sigma: np.ndarray, N: int) -> np.ndarray:
    """Distribution of the number of clusters for several pairs of alpha and sigma: [pair, K].

    As :func:`partita.partitions.gibbs_type.n_occupied`, which serves a single pair faster.

    Examples
    --------
    >>> occupied_by_node(np.array([1.0, 2.0]), np.zeros(2), 2).round(4)
    array([[0.    , 0.5   , 0.5   ],
           [0.    , 0.3333, 0.6667]])
    """
    alpha, sigma = alpha[:, None], sigma[:, None]
    p = np.ones((len(alpha), 1))
    for n in range(1, N):
        K = np.arange(1, p.shape[1] + 1)
        opened = p * (np.maximum(alpha + sigma * K, 0.0) / (alpha + n))
        p -= opened
        if opened[:, -1].max() > MIN_PROBABILITY:
            p = np.pad(p, ((0, 0), (0, 1)))
            p[:, 1:] += opened
        else:
            p[:, 1:] += opened[:, :-1]
    return np.pad(p, ((0, 0), (1, 0)))
