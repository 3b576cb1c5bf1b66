"""The finite symmetric Dirichlet (FSD)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from partita.labels import canonical
from partita.partitions import contract
from partita.partitions.gibbs_type import (
    log_gibbs_weight,
    log_new_seat,
    mean_occupied,
    n_occupied,
    register_gibbs_type,
    seat_discount,
)
from partita.partitions.learning import (
    UNIFORM,
    UNIT_GAMMA,
    check_positive,
    maximise_positive,
    sample_positive,
)
from partita.partitions.registry import register_examples


class FiniteDirichlet(NamedTuple):
    """``n_components`` labels with weights Dirichlet(concentration / n_components, ...).

    Good for: EM, VB and CVB with a known or bounded number of clusters; with many components it approaches
    the Dirichlet process of the same concentration, and unlike truncated stick-breaking it has exchangeable
    labels. Not for: an unknown number of clusters at concentration / n_components >= 1, where every
    component is filled.

    References
    ----------
    Ishwaran and Zarepour (2002), Canadian Journal of Statistics 30; Kurihara, Welling and Teh (2007), IJCAI.

    Examples
    --------
    >>> from partita.partitions import FiniteDirichlet, log_eppf
    >>> round(float(np.exp(log_eppf(FiniteDirichlet(2.0, 2), np.array([1.0, 1.0]), 2))), 6)
    0.333333
    """

    concentration: float = 1.0
    n_components: int = 10

    @property
    def fixed_labels(self) -> bool:
        """False: labels are exchangeable."""
        return False


def specify(concentration: float = 1.0, n_components: int = 10) -> FiniteDirichlet:
    """A checked finite Dirichlet prior.

    Examples
    --------
    >>> specify(n_components=3)
    FiniteDirichlet(concentration=1.0, n_components=3)
    """
    return contract.checked(FiniteDirichlet(concentration, n_components))


def check_components(n_components: int) -> int:
    """A number of components as a plain int; refuses anything that is not an integer of at least 1.

    Examples
    --------
    >>> check_components(3)
    3
    """
    if isinstance(n_components, bool) or not (n_components >= 1 and int(n_components) == n_components):
        raise ValueError(f"n_components is {n_components}: it must be an integer, at least 1")
    return int(n_components)


@contract.checked.register(FiniteDirichlet)
def _(prior):
    check_positive(concentration=prior.concentration)
    return FiniteDirichlet(float(prior.concentration), check_components(prior.n_components))


@seat_discount.register(FiniteDirichlet)
def _(prior):
    return -prior.concentration / prior.n_components


@log_new_seat.register(FiniteDirichlet)
def _(prior, N, K):
    empty = prior.n_components - K
    return math.log(empty * prior.concentration / prior.n_components) if empty > 0 else -math.inf


@log_gibbs_weight.register(FiniteDirichlet)
def _(prior, N, K):
    alpha, M = prior.concentration, prior.n_components
    if K > M:
        return -math.inf
    # M! / (M - K)! ways to name the clusters, each with a factor alpha / M
    log_namings = math.lgamma(M + 1.0) - math.lgamma(M - K + 1.0)
    return log_namings + K * math.log(alpha / M) + math.lgamma(alpha) - math.lgamma(alpha + N)


register_gibbs_type(FiniteDirichlet)


@contract.log_labelled.register(FiniteDirichlet)
def _(prior, n):
    alpha = prior.concentration
    a = alpha / prior.n_components
    N = 0.0
    total = -n.shape[0] * math.lgamma(a)
    for k in range(n.shape[0]):
        N += n[k]
        total += math.lgamma(a + n[k])
    return total + math.lgamma(alpha) - math.lgamma(alpha + N)


@contract.expect_log_weights.register(FiniteDirichlet)
def _(prior, n):
    return digamma(n + prior.concentration / prior.n_components) - digamma(n.sum() + prior.concentration)


@contract.mode_log_weights.register(FiniteDirichlet)
def _(prior, n, flat=False):
    """Clipped at 0; where nothing survives that, the maximum likelihood (uniform without any object)."""
    excess = 0.0 if flat else prior.concentration / prior.n_components - 1.0
    for weights in (np.maximum(n + excess, 0.0), np.maximum(n, 0.0), np.ones_like(n, dtype=float)):
        if weights.sum() > 0.0:
            break
    with np.errstate(divide="ignore"):
        return np.log(weights / weights.sum())


@contract.log_prior_weights.register(FiniteDirichlet)
def _(prior, log_weights):
    a = prior.concentration / prior.n_components
    inside = log_weights[np.isfinite(log_weights)]
    return float((a - 1.0) * inside.sum() + gammaln(prior.concentration) - prior.n_components * gammaln(a))


@contract.mean_log_weights.register(FiniteDirichlet)
def _(prior, n):
    alpha = prior.concentration
    return np.log(n + alpha / prior.n_components) - np.log(n.sum() + alpha)


def draw_log_gamma(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Logs of gamma variables; a shape of 1e-3 would underflow to 0 on the plain scale.

    Uses that a gamma(a + 1) variable times ``u ** (1 / a)`` is gamma(a).

    Examples
    --------
    >>> bool(np.isfinite(draw_log_gamma(np.array([1e-5]), np.random.default_rng(0))).all())
    True
    """
    return np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(np.shape(shape)) / shape


@contract.draw_log_weights.register(FiniteDirichlet)
def _(prior, n, rng):
    log_g = draw_log_gamma(n + prior.concentration / prior.n_components, rng)
    return log_g - np.logaddexp.reduce(log_g)


def expect_log_shifted(shift: float, mean: np.ndarray, variance: np.ndarray | None) -> np.ndarray:
    """``E[log(shift + x)]`` to first order (no variance given) or second order around the mean of x.

    Examples
    --------
    >>> expect_log_shifted(1.0, np.array([1.0]), np.array([0.8])).round(4)
    array([0.5931])
    """
    # subtracting an object's own share can leave -1e-17
    center = shift + np.maximum(mean, 0.0)
    first = np.log(center)
    return first if variance is None else first - 0.5 * np.maximum(variance, 0.0) / center**2


@contract.cvb_log_mass.register(FiniteDirichlet)
def _(prior, n, own, spread=None):
    alpha = prior.concentration
    variance = None if spread is None else spread[0] - own * (1.0 - own)
    others = n.sum() - own.sum(axis=1, keepdims=True)
    return expect_log_shifted(alpha / prior.n_components, n - own, variance) - np.log(alpha + others)


@contract.simulate.register(FiniteDirichlet)
def _(prior, N, rng):
    pi = np.exp(contract.draw_log_weights(prior, np.zeros(prior.n_components), rng))
    return canonical(rng.choice(prior.n_components, size=N, p=pi / pi.sum()))


@contract.n_clusters_prior.register(FiniteDirichlet)
def _(prior, N):
    return n_occupied(prior.concentration, -prior.concentration / prior.n_components, N)


@contract.expected_n_clusters.register(FiniteDirichlet)
def _(prior, N):
    return float(mean_occupied(prior.concentration, -prior.concentration / prior.n_components, N))


@contract.sample_hyper.register(FiniteDirichlet)
def _(prior, n, rng, hyperprior=UNIT_GAMMA, discount_hyperprior=UNIFORM):
    alpha = sample_positive(
        lambda x: contract.log_labelled(FiniteDirichlet(x, prior.n_components), n),
        prior.concentration,
        rng,
        hyperprior,
    )
    return FiniteDirichlet(alpha, prior.n_components)


@contract.fit_hyper.register(FiniteDirichlet)
def _(prior, n):
    alpha = maximise_positive(
        lambda x: contract.log_labelled(FiniteDirichlet(x, prior.n_components), n), float(prior.concentration)
    )
    return FiniteDirichlet(alpha, prior.n_components)


register_examples(FiniteDirichlet(1.7, 3), FiniteDirichlet(6.0, 4))
