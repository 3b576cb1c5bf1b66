"""The Dirichlet process."""

from __future__ import annotations

import math
from typing import NamedTuple

from partita.partitions import contract
from partita.partitions.gibbs_type import (
    log_gibbs_weight,
    log_new_seat,
    mean_occupied,
    n_occupied,
    register_gibbs_type,
    seat_discount,
    seat_in_turn,
)
from partita.partitions.learning import UNIFORM, UNIT_GAMMA, check_positive, maximise_positive
from partita.partitions.registry import register_examples


class DirichletProcess(NamedTuple):
    """Dirichlet process with its Chinese restaurant: a seat weighs ``n_k``, a new one ``concentration``.

    Good for: an open-ended number of clusters, about ``concentration * log(1 + N / concentration)`` a
    priori, with the simplest and fastest seats. Not for: estimating the number of clusters of a finite
    population: however much data come in, it keeps adding small ones (Miller and Harrison 2013), which the
    mixture of finite mixtures does not; nor for sizes with a heavy tail, which want Pitman-Yor.

    References
    ----------
    Ferguson (1973), Annals of Statistics 1; Escobar and West (1995), JASA 90, for learning the concentration.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.partitions import DirichletProcess, log_eppf
    >>> round(float(log_eppf(DirichletProcess(1.0), np.array([3.0]), 1)), 4)  # log 1/3
    -1.0986
    """

    concentration: float = 1.0

    @property
    def fixed_labels(self) -> bool:
        """False: labels are exchangeable."""
        return False


def specify(concentration: float = 1.0) -> DirichletProcess:
    """A checked Dirichlet process.

    Examples
    --------
    >>> specify(concentration=2)
    DirichletProcess(concentration=2.0)
    """
    return contract.checked(DirichletProcess(concentration))


@contract.checked.register(DirichletProcess)
def _(prior):
    check_positive(concentration=prior.concentration)
    return DirichletProcess(float(prior.concentration))


@seat_discount.register(DirichletProcess)
def _(prior):
    return 0.0


@log_new_seat.register(DirichletProcess)
def _(prior, N, K):
    return math.log(prior.concentration)


@log_gibbs_weight.register(DirichletProcess)
def _(prior, N, K):
    alpha = prior.concentration
    if K == 0:
        return 0.0
    # alpha^K Gamma(alpha) / Gamma(alpha + N), with one alpha absorbed so that tiny alpha keeps its digits
    return (K - 1) * math.log(alpha) + math.lgamma(alpha + 1.0) - math.lgamma(alpha + N)


register_gibbs_type(DirichletProcess)


@contract.simulate.register(DirichletProcess)
def _(prior, N, rng):
    return seat_in_turn(prior.concentration, 0.0, N, rng)


@contract.n_clusters_prior.register(DirichletProcess)
def _(prior, N):
    return n_occupied(prior.concentration, 0.0, N)


@contract.expected_n_clusters.register(DirichletProcess)
def _(prior, N):
    return float(mean_occupied(prior.concentration, 0.0, N))


@contract.sample_hyper.register(DirichletProcess)
def _(prior, n, rng, hyperprior=UNIT_GAMMA, discount_hyperprior=UNIFORM):
    """Escobar and West (1995): given an auxiliary beta variable, a mixture of two gammas."""
    sizes = n[n > 0]
    K, N = len(sizes), float(sizes.sum())
    if K == 0:
        return DirichletProcess(max(float(rng.gamma(hyperprior.shape) / hyperprior.rate), 1e-300))
    rate = hyperprior.rate - math.log(rng.beta(prior.concentration + 1.0, N))
    odds = (hyperprior.shape + K - 1.0) / (N * rate)
    shape = hyperprior.shape + K - (0.0 if rng.random() * (1.0 + odds) < odds else 1.0)
    return DirichletProcess(max(float(rng.gamma(shape) / rate), 1e-300))


@contract.fit_hyper.register(DirichletProcess)
def _(prior, n):
    sizes = n[n > 0]
    K, N = len(sizes), float(sizes.sum())
    return DirichletProcess(
        maximise_positive(
            lambda alpha: log_gibbs_weight(DirichletProcess(alpha), N, K), float(prior.concentration)
        )
    )


register_examples(DirichletProcess(0.7), DirichletProcess(3.0))
