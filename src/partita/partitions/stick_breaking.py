"""Truncated stick-breaking (TSB)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, gammaln

from partita.partitions import contract
from partita.partitions.finite import check_components, draw_log_gamma, expect_log_shifted
from partita.partitions.learning import (
    UNIFORM,
    UNIT_GAMMA,
    check_positive,
    maximise_positive,
    sample_positive,
)
from partita.partitions.registry import register_examples

EXACT_UP_TO = 500  # objects; beyond, the distribution of the number of clusters is estimated from draws
N_DRAWS = 20_000


class StickBreaking(NamedTuple):
    """Label k takes a Beta(1, concentration) share of what the labels before it left (truncated).

    The last of the ``n_components`` labels takes all that remains. Labels are not exchangeable: the early
    ones are larger a priori, so engines must not renumber them, and should try swaps.

    Good for: variational inference with the Dirichlet process, which it approximates within
    ``truncation_bound``. Not for: chains that can have the untruncated Dirichlet process, nor a truncation
    below the number of clusters: the last label then is a bin for everything else.

    References
    ----------
    Ishwaran and James (2001), JASA 96; Blei and Jordan (2006), Bayesian Analysis 1. The collapsed formulas
    are those of Wang, Domeniconi and Laskey (2010) with three corrections: a factor ``concentration`` for
    each stick, sticks for k < n_components only, and no share factor for the last label.

    Examples
    --------
    >>> from partita.partitions import StickBreaking, log_labelled
    >>> round(float(np.exp(log_labelled(StickBreaking(1.0, 2), np.array([1.0, 0.0])))), 6)
    0.5
    """

    concentration: float = 1.0
    n_components: int = 20

    @property
    def fixed_labels(self) -> bool:
        """True: early labels are larger a priori, and every label keeps its place."""
        return True


def specify(concentration: float = 1.0, n_components: int = 20) -> StickBreaking:
    """A checked truncated stick-breaking prior.

    Examples
    --------
    >>> specify(n_components=5)
    StickBreaking(concentration=1.0, n_components=5)
    """
    return contract.checked(StickBreaking(concentration, n_components))


@contract.checked.register(StickBreaking)
def _(prior):
    check_positive(concentration=prior.concentration)
    return StickBreaking(float(prior.concentration), check_components(prior.n_components))


@contract.log_mass.register(StickBreaking)
def _(prior, n, K, out):
    alpha = prior.concentration
    # tails are summed from the far end, so that a tail of nothing is 0 and not 1e-17 below it
    tail = 0.0
    for k in range(K - 1, -1, -1):
        out[k] = tail
        tail += n[k]
    log_before = 0.0
    for k in range(K - 1):
        above = out[k]
        log_from = math.log(1.0 + alpha + above + n[k])
        out[k] = log_before + math.log(1.0 + n[k]) - log_from
        log_before += math.log(alpha + above) - log_from
    out[K - 1] = log_before


@contract.log_labelled.register(StickBreaking)
def _(prior, n):
    alpha = prior.concentration
    K = n.shape[0]
    tail = n[K - 1]
    total = (K - 1) * math.log(alpha)
    for k in range(K - 2, -1, -1):
        total += math.lgamma(1.0 + n[k]) + math.lgamma(alpha + tail)
        tail += n[k]
        total -= math.lgamma(1.0 + alpha + tail)
    return total


def along_sticks(log_share: np.ndarray, log_rest: np.ndarray) -> np.ndarray:
    """Log weights from the log shares of the sticks before the last and of what they leave (last axis).

    Examples
    --------
    >>> np.exp(along_sticks(np.log([0.5, 0.5]), np.log([0.5, 0.5])))
    array([0.5 , 0.25, 0.25])
    """
    nothing = np.zeros((*log_share.shape[:-1], 1))
    before = np.concatenate([nothing, np.cumsum(log_rest, axis=-1)], axis=-1)
    return before + np.concatenate([log_share, nothing], axis=-1)


def _stick_posterior(prior: StickBreaking, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return 1.0 + n[:-1], prior.concentration + contract.tail_above(n)[:-1]


@contract.expect_log_weights.register(StickBreaking)
def _(prior, n):
    a, b = _stick_posterior(prior, n)
    return along_sticks(digamma(a) - digamma(a + b), digamma(b) - digamma(a + b))


@contract.mean_log_weights.register(StickBreaking)
def _(prior, n):
    a, b = _stick_posterior(prior, n)
    return along_sticks(np.log(a) - np.log(a + b), np.log(b) - np.log(a + b))


@contract.mode_log_weights.register(StickBreaking)
def _(prior, n, flat=False):
    """The mode in the sticks: at concentration <= 1 a stick with nothing after it is taken whole."""
    taken, left = n[:-1], contract.tail_above(n)[:-1]
    left = left if flat else np.maximum(left + prior.concentration - 1.0, 0.0)
    total = taken + left
    # no object here or after: any share is a mode, and half keeps every label open
    share = np.where(total > 0.0, taken / np.where(total > 0.0, total, 1.0), 0.5)
    rest = np.where(total > 0.0, left / np.where(total > 0.0, total, 1.0), 0.5)
    with np.errstate(divide="ignore"):
        return along_sticks(np.log(share), np.log(rest))


@contract.log_prior_weights.register(StickBreaking)
def _(prior, log_weights):
    alpha, pi = prior.concentration, np.exp(log_weights)
    tail = contract.tail_above(pi)[:-1]
    rest = tail / np.where(tail > 0.0, tail + pi[:-1], 1.0)
    inside = rest[rest > 0.0]
    return float((len(pi) - 1) * np.log(alpha) + (alpha - 1.0) * np.log(inside).sum())


@contract.draw_log_weights.register(StickBreaking)
def _(prior, n, rng):
    a, b = _stick_posterior(prior, n)
    log_a, log_b = draw_log_gamma(a, rng), draw_log_gamma(b, rng)
    log_sum = np.logaddexp(log_a, log_b)
    return along_sticks(log_a - log_sum, log_b - log_sum)


@contract.cvb_log_mass.register(StickBreaking)
def _(prior, n, own, spread=None):
    alpha = prior.concentration
    own_above = contract.tail_above(own)
    mean, mean_above = n - own, contract.tail_above(n) - own_above
    var = var_above = var_from = None
    if spread is not None:
        var = (spread[0] - own * (1.0 - own))[:, :-1]
        var_above = (spread[1] - own_above * (1.0 - own_above))[:, :-1]
        # n_{>=k} is n_{>k-1}, and n_{>=1} is everybody else: no variance
        var_from = np.concatenate([np.zeros((len(own), 1)), var_above[:, :-1]], axis=1)[:, : own.shape[1] - 1]
    mean_above, mean = mean_above[:, :-1], mean[:, :-1]
    log_from = expect_log_shifted(1.0 + alpha, mean_above + mean, var_from)
    log_share = expect_log_shifted(1.0, mean, var) - log_from
    log_rest = expect_log_shifted(alpha, mean_above, var_above) - log_from
    return along_sticks(log_share, log_rest)


@contract.simulate.register(StickBreaking)
def _(prior, N, rng):
    pi = np.exp(contract.draw_log_weights(prior, np.zeros(prior.n_components), rng))
    return rng.choice(prior.n_components, size=N, p=pi / pi.sum())


@contract.n_clusters_prior.register(StickBreaking)
def _(prior, N):
    if N > EXACT_UP_TO:
        return _n_clusters_by_draws(prior, N)
    alpha, K = prior.concentration, prior.n_components
    # taken[m, j]: probability that a stick takes m - j of the m objects that reach it (beta-binomial)
    m, j = np.arange(N + 1)[:, None], np.arange(N + 1)[None, :]
    took = np.maximum(m - j, 0)
    log_taken = (
        gammaln(m + 1) - gammaln(took + 1) - gammaln(j + 1) + betaln(1 + took, alpha + j) - betaln(1, alpha)
    )
    taken = np.where(j <= m, np.exp(log_taken), 0.0)
    p = np.zeros((N + 1, min(N, K) + 1))  # objects still unseated, clusters occupied so far
    p[N, 0] = 1.0
    stays = np.diag(taken)[:, None]
    for _ in range(K - 1):
        moved = taken.T @ p - stays * p
        p = stays * p
        p[:, 1:] += moved[:, :-1]
    total = p[0].copy()  # nobody left for the last label
    total[1:] += p[1:, :-1].sum(axis=0)
    return np.maximum(total, 0.0) / total.sum()


def _n_clusters_by_draws(prior: StickBreaking, N: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    pi = _draw_many_weights(prior, rng)
    occupied = np.count_nonzero(rng.multinomial(N, pi / pi.sum(axis=1, keepdims=True)), axis=1)
    return np.bincount(occupied, minlength=min(N, prior.n_components) + 1) / N_DRAWS


def _draw_many_weights(prior: StickBreaking, rng: np.random.Generator) -> np.ndarray:
    """Prior draws by inversion, so that with one seed they move smoothly with the concentration."""
    log_rest = -rng.standard_exponential((N_DRAWS, prior.n_components - 1)) / prior.concentration
    return np.exp(along_sticks(np.log(-np.expm1(log_rest)), log_rest))


@contract.expected_n_clusters.register(StickBreaking)
def _(prior, N):
    if N <= EXACT_UP_TO:
        p = contract.n_clusters_prior(prior, N)
        return float(p @ np.arange(len(p)))
    pi = _draw_many_weights(prior, np.random.default_rng(0))
    # given the weights, label k is empty with probability (1 - pi_k)^N
    with np.errstate(divide="ignore"):
        return float(-np.expm1(N * np.log1p(-np.minimum(pi, 1.0))).sum() / N_DRAWS)


@contract.sample_hyper.register(StickBreaking)
def _(prior, n, rng, hyperprior=UNIT_GAMMA, discount_hyperprior=UNIFORM):
    alpha = sample_positive(
        lambda x: contract.log_labelled(StickBreaking(x, prior.n_components), n),
        prior.concentration,
        rng,
        hyperprior,
    )
    return StickBreaking(alpha, prior.n_components)


@contract.fit_hyper.register(StickBreaking)
def _(prior, n):
    alpha = maximise_positive(
        lambda x: contract.log_labelled(StickBreaking(x, prior.n_components), n), float(prior.concentration)
    )
    return StickBreaking(alpha, prior.n_components)


def truncation_bound(concentration: float, N: int, n_components: int) -> float:
    """Bound on the L1 distance between data under the Dirichlet process and under its truncation.

    ``4 N exp(-(n_components - 1) / concentration)``, the approximation of Ishwaran and James (2001).

    Examples
    --------
    >>> round(truncation_bound(1.0, 1000, 20), 8)
    2.241e-05
    """
    check_positive(concentration=concentration)
    return 4.0 * N * math.exp(-(n_components - 1) / concentration)


def truncation_level(concentration: float, N: int, tolerance: float = 1e-3) -> int:
    """Fewest components whose ``truncation_bound`` is at most the tolerance.

    Examples
    --------
    >>> truncation_level(1.0, 1000, 1e-3)
    17
    """
    check_positive(concentration=concentration, N=N, tolerance=tolerance)
    level = max(1, 1 + math.ceil(concentration * math.log(4.0 * N / tolerance)))
    # the logarithm may round across the integer
    return level if truncation_bound(concentration, N, level) <= tolerance else level + 1


register_examples(StickBreaking(0.8, 3), StickBreaking(2.5, 4))
