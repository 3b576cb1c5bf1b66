"""Partition priors: the distribution of a clustering before the data are seen.

A prior is a small NamedTuple. The module `contract` lists the functions of a prior, and the docstring of each prior
says what it is good for. `PRIORS` holds the priors that a mixture can use; `specify(name, ...)` makes and checks one.
"""

import math
from collections.abc import Callable
from typing import Any

from scipy.optimize import brentq

from partita.partitions import dirichlet_process, finite, mfm, pitman_yor, stick_breaking
from partita.partitions.buffet import IndianBuffet, left_ordered, log_odds, log_probability, new_dish_rate
from partita.partitions.contract import (
    bind,
    checked,
    count_spread,
    cvb_log_mass,
    draw_log_weights,
    expect_log_weights,
    expected_n_clusters,
    fit_hyper,
    log_eppf,
    log_labeled,
    log_mass,
    log_new_seat,
    log_prior_weights,
    log_seat,
    mean_log_weights,
    mode_log_weights,
    n_clusters_prior,
    sample_hyper,
    simulate,
    with_concentration,
    with_parameters,
)
from partita.partitions.dirichlet_process import DirichletProcess
from partita.partitions.finite import FiniteDirichlet
from partita.partitions.hyperprior import log_hyperprior, marginal_n_clusters_prior
from partita.partitions.learning import Beta, Gamma, slice_sample
from partita.partitions.mfm import MixtureOfFinite
from partita.partitions.pitman_yor import PitmanYor
from partita.partitions.registry import examples, register_examples
from partita.partitions.stick_breaking import StickBreaking, truncation_bound, truncation_level

__all__ = [
    "PRIORS",
    "Beta",
    "DirichletProcess",
    "FiniteDirichlet",
    "Gamma",
    "IndianBuffet",
    "MixtureOfFinite",
    "PitmanYor",
    "StickBreaking",
    "bind",
    "checked",
    "concentration_for",
    "count_spread",
    "cvb_log_mass",
    "draw_log_weights",
    "examples",
    "expect_log_weights",
    "expected_n_clusters",
    "fit_hyper",
    "left_ordered",
    "log_eppf",
    "log_hyperprior",
    "log_labeled",
    "log_mass",
    "log_new_seat",
    "log_odds",
    "log_prior_weights",
    "log_probability",
    "log_seat",
    "marginal_n_clusters_prior",
    "mean_log_weights",
    "mode_log_weights",
    "n_clusters_prior",
    "new_dish_rate",
    "register_examples",
    "sample_hyper",
    "simulate",
    "slice_sample",
    "specify",
    "truncation_bound",
    "truncation_level",
    "with_concentration",
    "with_parameters",
]

PRIORS: dict[str, Callable[..., Any]] = {
    "dirichlet_process": dirichlet_process.specify,
    "pitman_yor": pitman_yor.specify,
    "mfm": mfm.specify,
    "finite": finite.specify,
    "stick_breaking": stick_breaking.specify,
}


def specify(name: str, **parameters: Any) -> Any:
    """Make a prior by its name in `PRIORS`, and check its parameters.

    Examples
    --------
    >>> specify("pitman_yor", discount=0.5)
    PitmanYor(concentration=1.0, discount=0.5)
    >>> specify("crp")
    Traceback (most recent call last):
    ...
    ValueError: unknown prior "crp": choose dirichlet_process, pitman_yor, mfm, finite or stick_breaking
    """
    if name not in PRIORS:
        *names, last = PRIORS
        raise ValueError(f'unknown prior "{name}": choose {", ".join(names)} or {last}')
    return PRIORS[name](**parameters)


def concentration_for(prior: Any, n_clusters: float, N: int) -> float:
    """Return the concentration for which the prior expects ``n_clusters`` clusters among N objects.

    The other parameters of the prior are kept. The result is the smallest such concentration between 1e-6 and 1e6: the
    expected number increases with the concentration, except under truncated stick-breaking, which puts all objects
    into its last label when the concentration is very large.

    Examples
    --------
    >>> alpha = concentration_for(DirichletProcess(), 5.0, 100)
    >>> round(alpha, 4), round(expected_n_clusters(DirichletProcess(alpha), 100), 4)
    (0.9476, 5.0)
    """

    def surplus(log_alpha: float) -> float:
        return expected_n_clusters(with_concentration(prior, math.exp(log_alpha)), N) - n_clusters

    steps = [math.log(1e-6) + i * math.log(1e12) / 24 for i in range(25)]
    heights = [surplus(steps[0])]
    while heights[-1] < 0.0 and len(heights) < len(steps):
        heights.append(surplus(steps[len(heights)]))
    if not heights[0] < 0.0 <= heights[-1]:
        raise ValueError(
            f"the prior mean of {type(prior).__name__} for {N} objects cannot be {n_clusters} clusters: "
            f"it ranges from {heights[0] + n_clusters:.4g} to {max(heights) + n_clusters:.4g}"
        )
    return math.exp(brentq(surplus, steps[len(heights) - 2], steps[len(heights) - 1], xtol=1e-10))
