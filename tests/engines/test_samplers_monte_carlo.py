"""Compiled chains against full enumeration: every family and prior, both caches, within their Monte Carlo error.

The exactness tests ask the kernels for probabilities; here the sweep itself runs, with its running counts, births,
deaths and cached seats. Each verdict is a p-value with a false-alarm rate of 1e-6, and each is shown to be sharp: the
same draws are refused by a posterior in which the weight of a new cluster is 25% off (2.5 times the right one for
sub-clusters, which give fewer independent draws a second). Refusal takes 4.8 standard deviations. Of 13 cases over
12 seeds, the least sharp (Gaussian columns, finite prior) was at 10.6 with a weight that is 20% off, give or take 1.2.
"""

import numpy as np
import pytest

from partita.engines.gibbs import sweep
from partita.engines.subclusters import sampler
from partita.families import FAMILIES, Block, Counts, Levels
from partita.labels import canonical
from partita.partitions import (
    DirichletProcess,
    FiniteDirichlet,
    PitmanYor,
    StickBreaking,
    bind,
    specify,
)
from partita.testing import (
    FALSE_ALARM,
    enumerate_labels,
    enumerate_partitions,
    posterior_p_value,
    take,
)

PRIORS = {
    "dirichlet_process": DirichletProcess(1.3),
    "pitman_yor": PitmanYor(0.8, 0.3),
    "mfm": specify("mfm", rate=0.1),
    "finite": FiniteDirichlet(1.5, 3),
    "stick_breaking": StickBreaking(1.2, 3),
}
EXCHANGEABLE = [name for name in PRIORS if name != "stick_breaking"]
N_DRAWS, THIN = 30_000, 8  # sweeps of six objects: draws so far apart are nearly independent


def few_objects(name, N):
    """The first objects of a family's example, one cell missing where the family reads cells."""
    lik, data = FAMILIES[name].examples(np.random.default_rng(1))[0]
    data = take(data, range(N))
    cells = data.X if isinstance(data, Counts) else data.codes if isinstance(data, Levels) else data
    if not FAMILIES[name].vector:
        cells[0, 0] = -1 if cells.dtype.kind == "i" else np.nan
    return [Block(lik, data, ())]


def exact_posterior(blocks, prior):
    labeled = isinstance(prior, StickBreaking)
    return enumerate_labels(blocks, prior) if labeled else enumerate_partitions(blocks, prior)


def n_objects(prior):
    """Six have 203 partitions, five have 243 vectors of three labels."""
    return 5 if isinstance(prior, StickBreaking) else 6


def gibbs_draws(blocks, prior, N, dtype, seed=0):
    """Labels after every few sweeps: canonical, unless the prior has its own."""
    fixed = prior.n_components if isinstance(prior, StickBreaking) else None
    rng, rows = np.random.default_rng(seed), np.tile(np.arange(N), THIN)
    seating = sweep.seat(blocks, np.zeros(N, int), n_components=fixed, dtype=dtype)
    draws = np.empty((N_DRAWS, N), np.int64)
    for t in range(N_DRAWS):
        seating = sweep.reseat(seating, prior, rows, rng.random(len(rows)))
        draws[t] = sweep.labels(seating)
    return draws if fixed else canonical_rows(draws)


def canonical_rows(draws):
    known, which = np.unique(draws, axis=0, return_inverse=True)
    return np.array([canonical(z) for z in known])[which.ravel()]


def with_wrong_weight(exact, factor=1.25):
    """The posterior of a sampler whose weight of a new cluster (of an empty label) is off by a factor."""
    n_clusters = np.array([len(np.unique(z)) for z in exact.labels])
    return exact._replace(log_joint=exact.log_joint + n_clusters * np.log(factor))


def cases():
    """Each family with one exchangeable prior and with fixed labels in the default run; the rest is slow to compile."""
    for f, family in enumerate(sorted(FAMILIES)):
        for prior in PRIORS:
            for dtype in (np.float64, np.float32):
                quick = (
                    prior in (EXCHANGEABLE[f % 4], "stick_breaking")
                    and dtype is (np.float32, np.float64)[f % 2]
                )
                name = f"{family}-{prior}-{dtype.__name__}"
                yield pytest.param(family, prior, dtype, id=name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("family", "prior", "dtype"), list(cases()))
def test_gibbs_draws_from_the_exact_posterior(family, prior, dtype, global_random_seed):
    prior = PRIORS[prior]
    N = n_objects(prior)
    blocks, prior = few_objects(family, N), bind(prior, N)
    exact = exact_posterior(blocks, prior)
    draws = gibbs_draws(blocks, prior, N, dtype, seed=global_random_seed)
    assert posterior_p_value(exact, draws) > FALSE_ALARM
    assert posterior_p_value(with_wrong_weight(exact), draws) < FALSE_ALARM


# few clusters a priori: this sampler is slow to leave singletons, and a test lives on independent draws
FEW_CLUSTERS = {
    "dirichlet_process": DirichletProcess(0.5),
    "pitman_yor": PitmanYor(0.2, 0.2),
    "mfm": specify("mfm", gamma=0.5, rate=0.5),
    "finite": FiniteDirichlet(1.2, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("prior", EXCHANGEABLE)
@pytest.mark.parametrize("family", ["categorical", "gaussian", "poisson"])
def test_subclusters_draw_from_the_exact_posterior(family, prior, global_random_seed):
    N = 5
    blocks, prior = few_objects(family, N), bind(FEW_CLUSTERS[prior], N)
    state = sampler.init(blocks, np.ones(N, int), prior, np.random.default_rng(global_random_seed))
    draws = np.empty((3000, N), np.int64)
    for t in range(len(draws)):
        state = sampler.step(state, blocks, prior, n_launch=1, n_crowds=1)
        draws[t] = state.labels
    exact, draws = enumerate_partitions(blocks, prior), canonical_rows(draws)
    assert posterior_p_value(exact, draws) > FALSE_ALARM
    assert posterior_p_value(with_wrong_weight(exact, 2.5), draws) < FALSE_ALARM
