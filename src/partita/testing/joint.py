"""Labels, hyper-parameters and data drawn jointly from a model, for Geweke's test of a sampler."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import chain as chains
from partita.families.contract import (
    breadth,
    constrained,
    draw,
    held,
    n_columns,
    simulate,
    stats_start,
    unconstrained,
)
from partita.families.registry import Block
from partita.partitions import PitmanYor, bind, with_concentration
from partita.partitions import simulate as simulate_labels


class Joint(NamedTuple):
    """A prior and a family with their current hyper-parameters, labels and data."""

    prior: Any
    family: Any
    z: np.ndarray
    data: Any

    @property
    def blocks(self) -> list[Block]:
        """The data as the engines read them."""
        return [Block(self.family, self.data, ())]

    def traits(self) -> dict[str, float]:
        """Quantities that do not depend on the labels of clusters: K, largest size, hyper-parameters, log joint."""
        sizes = np.bincount(self.z)
        chain = chains.start(self.blocks, self.prior, self.z, seed=0, dtype=np.float64)
        traits = {"K": float(np.count_nonzero(sizes)), "largest": float(sizes.max())}
        traits["concentration"] = getattr(self.prior, "concentration", getattr(self.prior, "gamma", np.nan))
        traits["discount"] = getattr(self.prior, "discount", np.nan)
        for name, value in unconstrained(self.family).items():
            traits[name] = float(value.ravel()[0])
        return traits | {"log joint": chains.log_joint(chain)}


def draw_joint(
    prior: Any,
    family: Any,
    N: int,
    rng: np.random.Generator,
    *,
    learn_concentration: bool = False,
    spread: float = 0.0,
) -> Joint:
    """Draw hyper-parameters, then labels, then data of N objects.

    Parameters
    ----------
    prior, family
        The model; hyperpriors are centered on its values.
    N : int
        Number of objects.
    rng : Generator
        Source of all draws.
    learn_concentration : bool, default=False
        Draw the concentration from the unit exponential and the discount from the uniform distribution.
    spread : float, default=0.0
        Standard deviation of the family's hyper-parameters on their unconstrained scale, of those of usual breadth.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> from partita.partitions import DirichletProcess
    >>> joint = draw_joint(DirichletProcess(1.0), Bernoulli.default(2), 5, np.random.default_rng(0))
    >>> joint.z.shape, joint.data.shape
    ((5,), (5, 2))
    """
    if learn_concentration:
        prior = with_concentration(prior, rng.exponential())
        if isinstance(prior, PitmanYor):
            prior = prior._replace(discount=rng.random())
    prior = bind(prior, N)
    if spread > 0.0:
        for name, value in unconstrained(family).items():
            if name in held(family):
                continue
            step = breadth(family, name) * spread * rng.standard_normal(value.shape)
            family = constrained(family, name, value + step)
    return redraw_data(Joint(prior, family, simulate_labels(prior, N, rng), None), rng)


def redraw_data(joint: Joint, rng: np.random.Generator) -> Joint:
    """Draw parameters of the clusters and then new data, given labels and hyper-parameters.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> from partita.partitions import DirichletProcess
    >>> joint = Joint(DirichletProcess(1.0), Bernoulli.default(2), np.array([0, 0, 1]), None)
    >>> redraw_data(joint, np.random.default_rng(0)).data.shape
    (3, 2)
    """
    n_stats = int(stats_start(joint.family, n_columns(joint.family)))
    theta = draw(joint.family, np.zeros((n_stats, int(joint.z.max()) + 1)), rng)
    return joint._replace(data=simulate(joint.family, theta, joint.z, rng))
