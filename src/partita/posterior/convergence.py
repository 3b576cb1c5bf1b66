"""Rank-normalized split R-hat and effective sample sizes (Vehtari et al. 2021) of arrays [chain, draw].

For a quantity that is the same in all draws R-hat is 1 and the effective sample size is the number of draws, by
definition. For one that is constant within every chain but differs between them R-hat is infinite and the
effective sample size is the number of chains.

References
----------
Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16; Geyer (1992), Statistical Science 7.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import next_fast_len
from scipy.special import ndtri
from scipy.stats import rankdata

MIN_DRAWS = 4


def rhat(values: ArrayLike) -> float:
    """Rank-normalized split R-hat: the larger of that of the values and of their distances from the median.

    Parameters
    ----------
    values : array-like of float, shape (n_chains, n_draws)
        One quantity; chains of at least 4 draws.

    Returns
    -------
    float
        Close to 1 if the halves of all chains have the same distribution.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(rhat(rng.normal(size=(4, 500))), 2)
    1.0
    >>> rhat([[2, 2, 2, 2], [3, 3, 3, 3]]), rhat([[2, 2, 2, 2], [2, 2, 2, 2]])
    (inf, 1.0)
    """
    halves = _split(_chains(values))
    folded = np.abs(halves - np.median(halves))
    return max(_plain_rhat(_normalized(halves)), _plain_rhat(_normalized(folded)))


def ess_bulk(values: ArrayLike) -> float:
    """Effective sample size for the center of the distribution, from rank-normalized split chains.

    Parameters
    ----------
    values : array-like of float, shape (n_chains, n_draws)
        One quantity; chains of at least 4 draws.

    Returns
    -------
    float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> 1500 < ess_bulk(rng.normal(size=(4, 500))) < 2500
    True
    """
    chains = _chains(values)
    return _ess(_normalized(_split(chains)), len(chains))


def ess_tail(values: ArrayLike) -> float:
    """Effective sample size for the tails: the smaller of those of the 5% and the 95% quantile.

    Parameters
    ----------
    values : array-like of float, shape (n_chains, n_draws)
        One quantity; chains of at least 4 draws.

    Returns
    -------
    float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> 1000 < ess_tail(rng.normal(size=(4, 500))) < 2500
    True
    """
    chains = _chains(values)
    halves = _split(chains)
    return min(_ess((halves <= q).astype(float), len(chains)) for q in np.quantile(halves, [0.05, 0.95]))


def _chains(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < MIN_DRAWS:
        raise ValueError(
            f"values has shape {array.shape}: give chains x draws, with at least {MIN_DRAWS} draws per chain"
        )
    if not np.isfinite(array).all():
        chain, draw = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"values[{chain}, {draw}] is {array[chain, draw]}: only finite numbers can be ranked"
        )
    return array


def _split(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Halves of each chain; the middle draw of an odd number is left out."""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _normalized(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = rankdata(chains, method="average").reshape(chains.shape)
    return ndtri((ranks - 0.375) / (chains.size + 0.25))


def _variances(chains: NDArray[np.float64]) -> tuple[float, float]:
    """Mean variance within the chains, and the estimate of the total variance, which includes that of their means."""
    n = chains.shape[1]
    moving = (chains != chains[:, :1]).any(
        axis=1
    )  # a constant chain has variance 0, not the rounding of its mean
    within = float(np.where(moving, chains.var(axis=1, ddof=1), 0.0).mean())
    between = float(chains.mean(axis=1).var(ddof=1)) if len(chains) > 1 else 0.0
    return within, within * (n - 1) / n + between


def _constant(chains: NDArray[np.float64]) -> bool:
    return bool((chains == chains[:1, :1]).all())


def _plain_rhat(chains: NDArray[np.float64]) -> float:
    if _constant(chains):
        return 1.0
    within, total = _variances(chains)
    return float(np.sqrt(total / within)) if within > 0 else float("inf")


def _ess(chains: NDArray[np.float64], n_chains: int) -> float:
    """Effective sample size by Geyer's initial monotone sequence of autocorrelations over all chains."""
    M, n = chains.shape
    if _constant(chains):
        return float(M * n)
    within, total = _variances(chains)
    if within == 0.0:
        return float(n_chains)
    # every chain's autocovariance at lag 0 is its variance over n, hence the correction of `within`
    rho = 1.0 - (within - _autocovariances(chains).mean(axis=0) * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    positive = np.flatnonzero(pairs <= 0)
    last = int(positive[0]) if len(positive) else len(pairs)
    monotone = np.minimum.accumulate(pairs[: max(last, 1)])
    tau = -1.0 + 2.0 * float(monotone.sum())
    # bound the effective sample size of antithetic chains
    return float(M * n / max(tau, 1.0 / np.log10(max(M * n, 11))))


def _autocovariances(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    n = chains.shape[1]
    centered = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centered, n=next_fast_len(2 * n), axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, n=next_fast_len(2 * n), axis=1)[:, :n] / n
