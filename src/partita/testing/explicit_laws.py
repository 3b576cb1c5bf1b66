"""The law of a family that is not conjugate: updating parameters with data simulated from them changes nothing.

Many clusters are drawn from the prior, a few objects are simulated in each, and the sampler's own update moves the
parameters given those objects. What comes out must be distributed as what went in (Geweke 2004), which ties ``draw``,
``log_prior``, ``simulate`` and ``project`` (and the family's ``update``, if it has one) to each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.dispatch import interpreted
from partita.engines.nonconjugate.parameters import first_parameters, log_densities, update_parameters
from partita.engines.passes.rows import n_stats
from partita.families.contract import draw, is_conjugate, simulate
from partita.families.registry import Block
from partita.testing.laws import LawViolation

N_CLUSTERS = 1500
SIGMAS = 5.0


def check_explicit_family(
    lik: Any, rng: np.random.Generator | None = None, *, n_objects: int = 2, n_updates: int = 4
) -> None:
    """Check that prior, density and simulation of a family without conjugate prior agree.

    Runs uncompiled. A correct family fails one in a hundred thousand; a violation names the parameter (or the density
    of the data) whose distribution the update has changed. Parameters enter by bounded
    functions, so that heavy tails do no harm.

    Parameters
    ----------
    lik : NamedTuple
        The family.
    rng : Generator, default=None
        For the draws; by default the same ones every time.
    n_objects, n_updates : int
        Objects in each cluster, and updates of the parameters given them.

    Examples
    --------
    >>> from partita.families import Student
    >>> check_explicit_family(Student.default(1))
    """
    if is_conjugate(lik):
        raise ValueError(f"{type(lik).__name__} has a log_marginal: check it with check_family")
    rng = np.random.default_rng(0) if rng is None else rng
    K = N_CLUSTERS
    z = np.arange(K).repeat(n_objects)
    with interpreted():
        theta = draw(lik, np.zeros((n_stats(lik), K)), rng)
        block = Block(lik, simulate(lik, theta, z, rng), ())
        # steps as wide as the prior; what it starts from is thrown away
        _, walk = first_parameters(block._replace(data=block.data[:0]), z[:0], K, rng)
        before = np.vstack([theta, log_densities(block, z, theta)])
        for _ in range(n_updates):
            theta, walk = update_parameters(block, z, theta, walk, rng, n_walks=1)
        after = np.vstack([theta, log_densities(block, z, theta)])
    low, middle, high = np.quantile(before, [0.16, 0.5, 0.84], axis=1, keepdims=True)
    scale = np.maximum(0.5 * (high - low), 1e-12)
    old, new = np.tanh((before - middle) / scale), np.tanh((after - middle) / scale)
    for what, change in (("centre", new - old), ("spread", new**2 - old**2)):
        error = change.std(axis=1) / np.sqrt(K)
        far = np.abs(change.mean(axis=1)) > SIGMAS * error + 1e-9
        if far.any():
            e = int(np.flatnonzero(far)[0])
            name = "the density of the data" if e == n_stats(lik) else f"parameter {e}"
            raise LawViolation(
                f"{type(lik).__name__} breaks p(theta) p(x | theta) = p(x) p(theta | x): updates given simulated data "
                f"move the {what} of {name}; compare draw() with log_prior(), and simulate() with project()"
            )
