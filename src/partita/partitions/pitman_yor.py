"""The Pitman-Yor process."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

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
from partita.partitions.learning import (
    MAX_VALUE,
    MIN_VALUE,
    UNIFORM,
    UNIT_GAMMA,
    sample_fraction,
    sample_positive,
)
from partita.partitions.registry import register_examples

MAX_DISCOUNT = 0.99


class PitmanYor(NamedTuple):
    """Pitman-Yor process: cluster k has weight ``n_k - discount``, a new one ``concentration + discount * K``.

    Good for: cluster sizes with a power-law tail (words, species, links), that is about ``N ** discount`` clusters,
    most of them small. Not for: a few groups of similar size; a positive discount adds singletons that are hard to
    interpret. With discount 0 it is the Dirichlet process.

    References
    ----------
    Pitman and Yor (1997), Annals of Probability 25; Ishwaran and James (2001), JASA 96.

    Examples
    --------
    >>> from partita.partitions import PitmanYor, log_eppf
    >>> round(float(np.exp(log_eppf(PitmanYor(1.0, 0.5), np.array([1.0, 1.0]), 2))), 6)  # 1.5 / 2
    0.75
    """

    concentration: float = 1.0
    discount: float = 0.25

    @property
    def fixed_labels(self) -> bool:
        """False: labels are exchangeable."""
        return False


def specify(concentration: float = 1.0, discount: float = 0.25) -> PitmanYor:
    """Make a Pitman-Yor prior and check its parameters.

    Examples
    --------
    >>> specify(discount=0.5)
    PitmanYor(concentration=1.0, discount=0.5)
    """
    return contract.checked(PitmanYor(concentration, discount))


@contract.checked.register(PitmanYor)
def _(prior):
    if not 0.0 <= prior.discount < 1.0:
        raise ValueError(f"discount is {prior.discount}: it must be at least 0 and below 1")
    if not (np.isfinite(prior.concentration) and prior.concentration > -prior.discount):
        raise ValueError(
            f"concentration is {prior.concentration}: it must be a finite number greater than -discount = "
            f"{-prior.discount}"
        )
    return PitmanYor(float(prior.concentration), float(prior.discount))


@seat_discount.register(PitmanYor)
def _(prior):
    return prior.discount


@log_new_seat.register(PitmanYor)
def _(prior, N, K):
    if K == 0:
        return 0.0  # the first object opens a cluster in any case; the concentration may be 0 or negative
    return math.log(prior.concentration + prior.discount * K)


@log_gibbs_weight.register(PitmanYor)
def _(prior, N, K):
    alpha, sigma = prior.concentration, prior.discount
    if K == 0:
        return 0.0
    total = math.lgamma(alpha + 1.0) - math.lgamma(alpha + N)
    for k in range(1, K):
        total += math.log(alpha + sigma * k)
    return total


register_gibbs_type(PitmanYor)


@contract.simulate.register(PitmanYor)
def _(prior, N, rng):
    return seat_in_turn(prior.concentration, prior.discount, N, rng)


@contract.n_clusters_prior.register(PitmanYor)
def _(prior, N):
    return n_occupied(prior.concentration, prior.discount, N)


@contract.expected_n_clusters.register(PitmanYor)
def _(prior, N):
    return float(mean_occupied(prior.concentration, prior.discount, N))


@contract.sample_hyper.register(PitmanYor)
def _(prior, n, rng, hyperprior=UNIT_GAMMA, discount_hyperprior=UNIFORM):
    """Slice updates of the concentration, then of the discount; the hyperprior keeps the concentration positive."""
    sizes = n[n > 0]
    # a start of at most 0 is outside the support of the hyperprior
    alpha = prior.concentration if prior.concentration > 0.0 else MIN_VALUE
    sigma = prior.discount
    alpha = sample_positive(
        lambda x: contract.log_eppf(PitmanYor(x, sigma), sizes, len(sizes)), alpha, rng, hyperprior
    )
    sigma = sample_fraction(
        lambda x: contract.log_eppf(PitmanYor(alpha, x), sizes, len(sizes)), sigma, rng, discount_hyperprior
    )
    return PitmanYor(alpha, sigma)


@contract.fit_hyper.register(PitmanYor)
def _(prior, n):
    sizes = n[n > 0]

    def depth(x):
        return -contract.log_eppf(PitmanYor(math.exp(x[0]), float(x[1])), sizes, len(sizes))

    box = [(math.log(MIN_VALUE), math.log(MAX_VALUE)), (0.0, MAX_DISCOUNT)]
    grid = [(a, s) for a in np.linspace(*box[0], 9) for s in np.linspace(*box[1], 9)]
    climbed = minimize(depth, min(grid, key=depth), method="L-BFGS-B", bounds=box).x
    # Nelder-Mead improves the last digits, because the gradient was approximated by differences
    climbed = minimize(
        depth, climbed, method="Nelder-Mead", bounds=box, options={"xatol": 1e-6, "fatol": 1e-10}
    ).x
    fitted = PitmanYor(min(max(math.exp(climbed[0]), MIN_VALUE), MAX_VALUE), float(climbed[1]))
    better = contract.log_eppf(fitted, sizes, len(sizes)) > contract.log_eppf(prior, sizes, len(sizes))
    return fitted if better else prior


register_examples(PitmanYor(0.8, 0.3), PitmanYor(-0.2, 0.6))
