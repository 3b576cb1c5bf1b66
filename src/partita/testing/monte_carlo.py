"""Tests of chains: against the exact posterior, and Geweke's test where that is not available.

Every result is a p-value, so that a test has a known rate of false alarms. Draws of a chain depend on each other: each
statistic is scaled down to the effective number of draws, so a chain should be thinned until its draws are nearly
independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2, ks_2samp, kstwobign, rankdata

from partita.testing.enumeration import EnumerationResult

FALSE_ALARM = 1e-6  # probability that the check of a correct chain fails
RETRY_P_VALUE = 1e-3  # below this p-value Geweke's test is repeated with more draws
MIN_EXPECTED = 20.0  # expected draws per bin of a chi-square test; rarer states are pooled


def effective_size(x: np.ndarray) -> float:
    """Number of independent draws that estimate the mean as well as the draws ``x`` of a chain.

    Sums of neighboring pairs of autocorrelations are added up while they are positive (Geyer 1992).

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=1000)
    >>> effective_size(x) > 800, effective_size(np.repeat(x, 4)) < 1200
    (True, True)
    """
    n = len(x)
    centered = x - x.mean()
    if not np.any(centered):
        return float(n)
    spectrum = np.fft.rfft(centered, 2 * n)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum))[: n - n % 2]
    pairs = (covariance / covariance[0]).reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    time = 2.0 * pairs[: ends[0] if len(ends) else len(pairs)].sum() - 1.0
    return float(n / max(time, 1.0))


def chi_square(counts: np.ndarray, p: np.ndarray, effective: float | None = None) -> float:
    """P-value of Pearson's chi-square: ``counts`` of draws from probabilities ``p``.

    Bins that expect few draws are pooled; ``effective`` is the effective number of draws, if it is not their sum.

    Examples
    --------
    >>> round(chi_square(np.array([60, 40]), np.array([0.5, 0.5])), 4)
    0.0455
    """
    n = counts.sum()
    if np.any(counts[p <= 0.0]):
        return 0.0
    share = 1.0 if effective is None else min(effective / n, 1.0)
    order = np.argsort(p)
    expected, seen = share * n * p[order], share * counts[order]
    # pool the rarest bins, as many as are needed to expect enough draws in the pool
    n_rare = int(np.count_nonzero(expected < MIN_EXPECTED))
    while 0 < n_rare < len(p) and expected[:n_rare].sum() < MIN_EXPECTED:
        n_rare += 1
    if n_rare:
        expected = np.append(expected[n_rare:], expected[:n_rare].sum())
        seen = np.append(seen[n_rare:], seen[:n_rare].sum())
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), max(len(expected) - 1, 1)))


def posterior_p_value(exact: EnumerationResult, draws: np.ndarray) -> float:
    """P-value of the draws of a chain under the exact posterior of the clusterings and of their number of clusters.

    Parameters
    ----------
    exact : EnumerationResult
        From :func:`enumerate_partitions` or :func:`enumerate_labels`.
    draws : ndarray (draws, objects)
        Labels in the form of those in ``exact``: canonical ones for partitions.

    Examples
    --------
    >>> exact = EnumerationResult(np.array([[0, 0], [0, 1]]), np.log([0.3, 0.1]))
    >>> draws = np.repeat(exact.labels, [300, 100], axis=0)[np.random.default_rng(0).permutation(400)]
    >>> posterior_p_value(exact, draws) > 0.5, posterior_p_value(exact, 1 * (draws == 0)) < 1e-6
    (True, True)
    """
    place = {tuple(z): s for s, z in enumerate(exact.labels.tolist())}
    states = np.array([place.get(tuple(z), -1) for z in draws.tolist()])
    if np.any(states < 0):
        return 0.0  # a clustering of probability 0
    n_clusters = np.array([len(set(z)) for z in exact.labels.tolist()])
    n_alone = np.array([sum(z.count(k) == 1 for k in set(z)) for z in exact.labels.tolist()])
    log_joint = np.where(np.isfinite(exact.log_joint), exact.log_joint, 0.0)
    effective = min(effective_size(trait[states].astype(float)) for trait in (n_clusters, n_alone, log_joint))
    counts = np.bincount(states, minlength=len(place))
    counts_by_number, p_by_number = (np.bincount(n_clusters, w)[1:] for w in (counts, exact.posterior))
    both = (
        chi_square(counts, exact.posterior, effective),
        chi_square(counts_by_number, p_by_number, effective),
    )
    return min(1.0, 2.0 * min(both))


def geweke(
    draw: Callable[[np.random.Generator], Any],
    step: Callable[[Any, np.random.Generator], Any],
    traits: Callable[[Any], Mapping[str, float]],
    rng: np.random.Generator,
    n_draws: int,
) -> dict[str, float]:
    """P-values of Geweke's test of a sampler: two ways to draw parameters and data jointly must agree.

    One way draws everything from the prior. The other is a chain that alternates between drawing the data given the
    parameters and moving the parameters given the data. Each trait is compared by a Kolmogorov-Smirnov test with the
    effective number of draws of the chain, which is conservative. A chain that drifts has few effective draws and may
    pass, so the chain must be long enough.

    Parameters
    ----------
    draw : callable
        ``draw(rng)``: a state, parameters and data, from the prior.
    step : callable
        ``step(state, rng)``: the sampler under test moves the parameters, then new data are drawn.
    traits : callable
        ``traits(state)``: numbers by name.
    rng : Generator
        Source of both kinds of draws.
    n_draws : int
        Number of states of each kind.

    Examples
    --------
    >>> def step(x, rng):  # leaves the standard normal invariant
    ...     return 0.6 * x + 0.8 * rng.normal()
    >>> p = geweke(lambda rng: rng.normal(), step, lambda x: {"x": x}, np.random.default_rng(0), 2000)
    >>> p["x"] > 0.01
    True

    References
    ----------
    Geweke (2004), Getting it right, JASA 99.
    """
    names = list(traits(draw(rng)))
    prior = np.array([list(traits(draw(rng)).values()) for _ in range(n_draws)])
    state, chain = draw(rng), np.empty((n_draws, len(names)))
    for t in range(n_draws):
        state = step(state, rng)
        chain[t] = list(traits(state).values())
    out = {}
    for name, x, y in zip(names, prior.T, chain.T, strict=True):
        if np.isnan(x).all() or (np.ptp(x) == 0.0 and np.array_equal(x, y)):
            continue  # the model lacks this trait, or keeps it fixed
        free = effective_size(rankdata(y))  # of ranks, which needs no moments
        distance = ks_2samp(x, y, method="asymp").statistic
        out[name] = float(kstwobign.sf(distance * np.sqrt(n_draws * free / (n_draws + free))))
    return out


def check_geweke(
    draw: Callable[[np.random.Generator], Any],
    step: Callable[[Any, np.random.Generator], Any],
    traits: Callable[[Any], Mapping[str, float]],
    seed: int,
    n_draws: int,
    *,
    more: int = 10,
) -> None:
    """Geweke's test with one retry: below ``RETRY_P_VALUE``, ``more`` times the draws decide at :data:`FALSE_ALARM`.

    Examples
    --------
    >>> def step(x, rng):
    ...     return 0.6 * x + 0.8 * rng.normal() + 0.2
    >>> check_geweke(lambda rng: rng.normal(), step, lambda x: {"x": x}, 0, 2000)
    Traceback (most recent call last):
    ...
    AssertionError: x has another distribution in the chain than in the prior: p = ...
    """
    rng = np.random.default_rng(seed)
    p = geweke(draw, step, traits, rng, n_draws)
    if min(p.values()) * len(p) >= RETRY_P_VALUE:
        return
    p = geweke(draw, step, traits, rng, more * n_draws)
    worst = min(p, key=lambda name: p[name])
    if p[worst] * len(p) < FALSE_ALARM:
        raise AssertionError(
            f"{worst} has another distribution in the chain than in the prior: p = {p[worst]:.1e}"
        )
