"""Small mixtures of every family, simulated from its own prior, with holes."""

from functools import partial

import numpy as np
import pytest

from partita.engines.passes.rows import n_stats
from partita.families import FAMILIES, Block, CountVectors, GaussianFull, Multinomial
from partita.families.contract import draw, simulate
from partita.testing import n_rows, with_missing_cells


def mixture_of(name, N=40, K=3, holes=0.15, seed=0, example=0, global_seed=0):
    """A block of N objects from K clusters of a family's first example."""
    rng = np.random.default_rng([global_seed, seed, *name.encode()])
    lik, _ = FAMILIES[name].examples(rng)[example]
    theta = draw(lik, np.zeros((n_stats(lik), K)), rng)
    data = simulate(lik, theta, rng.integers(K, size=N), rng)
    return Block(lik, with_missing_cells(data, holes, rng) if holes else data, ("x",))


def tiny(name, N=5, seed=0, global_seed=0):
    """Few objects, two of them partly observed: what can be enumerated, hidden coordinates integrated."""
    block = mixture_of(name, N, 2, 0.0, seed, global_seed=global_seed)
    rng = np.random.default_rng([global_seed, seed])
    if isinstance(block.family, GaussianFull):
        block.data[[0, 3], [1, 0]] = np.nan
    elif isinstance(block.family, Multinomial):
        X = rng.multinomial(4, [0.4, 0.3, 0.2, 0.1], size=N).astype(float)
        X[[0, 3], [1, 0]] = np.nan
        X[[0, 3], [0, 1]] += 1.0
        block = block._replace(data=CountVectors.from_dense(X))
    else:
        block = block._replace(data=with_missing_cells(block.data, 0.2, rng))
    assert n_rows(block.data) == N
    return block


@pytest.fixture(params=list(FAMILIES))
def family_name(request):
    return request.param


@pytest.fixture
def make_mixture(global_random_seed):
    """``mixture_of`` with data of the seed of the run; ``seed`` numbers the tables of one test."""
    return partial(mixture_of, global_seed=global_random_seed)


@pytest.fixture
def make_tiny(global_random_seed):
    """``tiny`` with data of the seed of the run."""
    return partial(tiny, global_seed=global_random_seed)
