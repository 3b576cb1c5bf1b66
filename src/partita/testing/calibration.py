"""Simulation-based calibration: the true parameters have a uniform rank among draws from their posterior.

Parameters are drawn from the prior, data given them, and a chain draws from the posterior given the data. If prior,
likelihood and chain agree, the rank of the true value of any quantity among the draws is uniform (Cook, Gelman and
Rubin 2006; Talts et al. 2018). Draws must be nearly independent, so the chain is thinned. Quantities must not depend on
the names of clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from partita.testing.monte_carlo import FALSE_ALARM, MIN_EXPECTED, chi_square

Table = tuple[
    Mapping[str, float], Sequence[Mapping[str, float]]
]  # true traits, traits of the posterior draws


def calibration_ranks(
    simulate: Callable[[np.random.Generator], Table], rng: np.random.Generator, n_tables: int
) -> dict[str, np.ndarray]:
    """Rank of the truth among the draws of every simulated table, for each trait; equal values are ranked at random.

    Parameters
    ----------
    simulate : callable
        ``simulate(rng)``: the traits of parameters drawn from the prior, and those of the draws from the posterior
        given data simulated with them.
    rng : Generator
        Source of all draws.
    n_tables : int
        Number of tables.

    Returns
    -------
    dict of str to ndarray
        Ranks from 0 to the number of draws.

    Examples
    --------
    >>> def conjugate(rng):  # one datum of a normal mean with a standard normal prior
    ...     mean = rng.normal()
    ...     x = rng.normal(mean)
    ...     draws = rng.normal(x / 2, np.sqrt(0.5), 9)
    ...     return {"mean": mean}, [{"mean": value} for value in draws]
    >>> ranks = calibration_ranks(conjugate, np.random.default_rng(0), 500)
    >>> ranks["mean"].shape, rank_p_value(ranks["mean"], 9) > 0.01
    ((500,), True)
    """
    ranks: dict[str, list[int]] = {}
    for _ in range(n_tables):
        truth, draws = simulate(rng)
        for name, value in truth.items():
            values = np.array([draw[name] for draw in draws])
            tolerance = 1e-9 * (1.0 + abs(value))  # sums in another order differ in their last digits
            equal = int(np.count_nonzero(np.abs(values - value) <= tolerance))
            below = int(np.count_nonzero(values < value - tolerance))
            ranks.setdefault(name, []).append(below + int(rng.integers(equal + 1)))
    return {name: np.array(found) for name, found in ranks.items()}


def rank_p_value(ranks: np.ndarray, n_draws: int) -> float:
    """P-value of Pearson's chi-square of the ranks against the uniform distribution.

    Neighboring ranks are pooled, as many as are needed to expect ``MIN_EXPECTED`` tables in each bin; at least two bins
    remain.

    Examples
    --------
    >>> rank_p_value(np.repeat(np.arange(10), 20), 9), rank_p_value(np.repeat([0, 9], 100), 9) < 1e-6
    (1.0, True)
    >>> rank_p_value(np.repeat([8, 9], 50), 9) < 1e-6  # five bins of two ranks
    True
    """
    n_ranks = n_draws + 1
    most = max(2.0, len(ranks) / MIN_EXPECTED)
    n_bins = max(
        bins for bins in range(1, n_ranks + 1) if bins <= most and (n_ranks % bins == 0 or bins == 2)
    )
    bins = ranks * n_bins // n_ranks
    p = np.bincount(np.arange(n_ranks) * n_bins // n_ranks) / n_ranks
    return chi_square(np.bincount(bins, minlength=n_bins), p)


def check_calibration(ranks: Mapping[str, np.ndarray], n_draws: int) -> None:
    """Raise an error if some ranks are not uniform; all of a correct model are refused once in 1e6 times.

    Examples
    --------
    >>> check_calibration({"K": np.repeat([0, 9], 100)}, 9)
    Traceback (most recent call last):
    ...
    AssertionError: the ranks of K are not uniform: p = ...
    """
    p = {name: rank_p_value(values, n_draws) for name, values in ranks.items()}
    worst = min(p, key=lambda name: p[name])
    if p[worst] * len(p) < FALSE_ALARM:
        raise AssertionError(f"the ranks of {worst} are not uniform: p = {p[worst]:.1e}")


def size_traits(z: Any) -> dict[str, float]:
    """Traits of a partition: the number of clusters, the entropy of their sizes, and whether 0 and 1 are together.

    Examples
    --------
    >>> size_traits(np.array([0, 0, 1, -1]))
    {'clusters': 2.0, 'entropy': 0.6365141682948128, 'pair': 1.0}
    """
    z = np.asarray(z)
    n = np.bincount(z[z >= 0])
    p = n[n > 0] / max(n.sum(), 1)
    return {
        "clusters": float(len(p)),
        "entropy": float(-(p * np.log(p)).sum()),
        "pair": float(z[0] == z[1] and z[0] >= 0),
    }
