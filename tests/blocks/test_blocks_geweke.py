"""Geweke's test of the blocks: partitions, concentrations, hyper-parameters and cells together.

A correct sampler fails a check once in 1e6 times; what is suspicious is run again with more draws.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

from partita.blocks.chain import start_grid, step_grid
from partita.blocks.sweep import DIRECTED, TABLE, UNDIRECTED, cell_clusters
from partita.engines.gibbs.chain import HYPER_CUT, HYPER_SPREAD, Schedule
from partita.engines.passes.rows import n_stats
from partita.families import Bernoulli
from partita.families.contract import constrained, draw, simulate, unconstrained
from partita.partitions import DirichletProcess
from partita.partitions import simulate as simulate_partition
from partita.testing import check_geweke

pytestmark = pytest.mark.slow

SHAPES = {TABLE: (5, 4), DIRECTED: (5,), UNDIRECTED: (5,)}
CENTER = Bernoulli.default(1, a=1.0, b=1.5)
SCHEDULE = Schedule(n_moves=3)


class Joint(NamedTuple):
    mode: int
    priors: tuple[Any, ...]
    family: Any
    labels: tuple[np.ndarray, ...]
    data: np.ndarray


def redraw(joint, rng):
    """New cells, given everything else; one of them stays missing."""
    rows, columns = joint.labels[0], joint.labels[-1]
    where = cell_clusters(TABLE, rows, columns, int(columns.max()) + 1)
    if joint.mode == UNDIRECTED:
        upper = cell_clusters(joint.mode, rows, columns, int(columns.max()) + 1)
        where = np.where(upper < 0, 0, upper)
    theta = draw(joint.family, np.zeros((n_stats(joint.family), int(where.max()) + 1)), rng)
    data = simulate(joint.family, theta, where, rng)
    if joint.mode == UNDIRECTED:
        X = np.triu(data.reshape(len(rows), -1))
        data = np.ascontiguousarray((X + np.triu(X, 1).T).reshape(-1, 1))
    data[0] = -1
    return joint._replace(data=data)


def draw_all(mode):
    def from_prior(rng):
        priors = tuple(DirichletProcess(float(rng.gamma(1.0))) for _ in SHAPES[mode])
        labels = tuple(
            np.asarray(simulate_partition(p, N, rng)) for p, N in zip(priors, SHAPES[mode], strict=True)
        )
        family = CENTER
        for name, mean in unconstrained(CENTER).items():
            gap = rng.normal()
            while abs(gap) > HYPER_CUT:
                gap = rng.normal()
            family = constrained(family, name, mean + HYPER_SPREAD * gap)
        return redraw(Joint(mode, priors, family, labels, np.zeros((0, 1))), rng)

    return from_prior


def step(joint, rng, center=CENTER):
    seed = int(rng.integers(2**62))
    chain = start_grid(joint.mode, joint.family, joint.data, joint.labels, joint.priors, seed)
    chain = step_grid(chain._replace(reference=center), SCHEDULE)
    labels = tuple(side.z.copy() for side in chain.grid.sides)
    return redraw(joint._replace(priors=chain.priors, family=chain.grid.family, labels=labels), rng)


def traits(joint):
    out = {"a": np.log(joint.family.a[0]), "b": np.log(joint.family.b[0])}
    seen = joint.data[joint.data >= 0]
    out["ones"] = float(seen.mean())
    for side, (prior, z) in enumerate(zip(joint.priors, joint.labels, strict=True)):
        out[f"K{side}"] = float(len(np.unique(z)))
        out[f"largest{side}"] = float(np.bincount(z).max())
        out[f"concentration{side}"] = float(np.log(prior.concentration))
        out[f"pair{side}"] = float(z[0] == z[1])
    return out


@pytest.mark.parametrize("mode", SHAPES, ids=["table", "directed", "undirected"])
def test_the_chain_agrees_with_the_prior(mode):
    check_geweke(draw_all(mode), step, traits, seed=1, n_draws=4000)


def test_a_wrong_hyperprior_is_noticed():
    def wrong(joint, rng):
        return step(joint, rng, Bernoulli.default(1, a=3.0, b=1.5))

    with pytest.raises(AssertionError, match="has another distribution in the chain"):
        check_geweke(draw_all(DIRECTED), wrong, traits, seed=1, n_draws=1500, more=2)
