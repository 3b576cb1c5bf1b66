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
    LARGEST,
    SMALLEST,
    UNIFORM,
    UNIT_GAMMA,
    sample_fraction,
    sample_positive,
)
from partita.partitions.registry import register_examples

LARGEST_DISCOUNT = 0.99


class PitmanYor(NamedTuple):
    """Pitman-Yor process: a seat weighs ``n_k - discount``, a new one ``concentration + discount * K``.

    Good for: cluster sizes with a power-law tail (words, species, links): about ``N ** discount`` clusters,
    most of them small. Not for: a few groups of like size; with discount 0 it is the Dirichlet process, and
    a discount adds singletons that nobody will interpret.

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
    """A checked Pitman-Yor process.

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
            f"concentration is {prior.concentration}: it must be a finite number above -discount = "
            f"{-prior.discount}"
        )
    return PitmanYor(float(prior.concentration), float(prior.discount))


@seat_discount.register(PitmanYor)
def _(prior):
    return prior.discount


@log_new_seat.register(PitmanYor)
def _(prior, N, K):
    if K == 0:
        return 0.0  # the first object has no choice; the concentration may be 0 or negative
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
    """Slice updates of concentration, then discount; the hyperprior keeps the concentration positive."""
    sizes = n[n > 0]
    # a start at or below 0 is outside the hyperprior's support
    alpha = prior.concentration if prior.concentration > 0.0 else SMALLEST
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

    box = [(math.log(SMALLEST), math.log(LARGEST)), (0.0, LARGEST_DISCOUNT)]
    grid = [(a, s) for a in np.linspace(*box[0], 9) for s in np.linspace(*box[1], 9)]
    climbed = minimize(depth, min(grid, key=depth), method="L-BFGS-B", bounds=box).x
    # the last digits: the gradient is by differences, Nelder-Mead's simplex is not
    climbed = minimize(
        depth, climbed, method="Nelder-Mead", bounds=box, options={"xatol": 1e-6, "fatol": 1e-10}
    ).x
    fitted = PitmanYor(min(max(math.exp(climbed[0]), SMALLEST), LARGEST), float(climbed[1]))
    better = contract.log_eppf(fitted, sizes, len(sizes)) > contract.log_eppf(prior, sizes, len(sizes))
    return fitted if better else prior


register_examples(PitmanYor(0.8, 0.3), PitmanYor(-0.2, 0.6))
