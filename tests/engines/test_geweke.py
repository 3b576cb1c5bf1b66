"""Geweke's test of every sampler with every prior: parameters and data together, by the prior and by the chain.

It sees what enumeration on five objects cannot: hyper-parameters that move, larger clusters, and a model and a sampler
that disagree about the prior. A correct sampler fails a check once in 1e6 times; what is suspicious is run again with
ten times the draws.
"""

import numpy as np
import pytest

from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.engines.gibbs.split_merge import split_merge
from partita.engines.subclusters import sampler
from partita.families import Categorical, GaussianDiagonal, GaussianFull, VonMisesFisher
from partita.partitions import DirichletProcess, FiniteDirichlet, PitmanYor, StickBreaking, specify
from partita.testing import check_geweke, draw_joint, redraw_data

pytestmark = pytest.mark.slow

N = 8
PRIORS = {
    "dirichlet_process": DirichletProcess(1.0),
    "pitman_yor": PitmanYor(0.6, 0.3),
    "mfm": specify("mfm", rate=0.3, max_components=25),
    "finite": FiniteDirichlet(1.5, 4),
    "stick_breaking": StickBreaking(1.0, 4),
}
VECTORS = GaussianFull.of(np.array([0.3, -0.2]), 0.4, 9.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
EXCHANGEABLE = [name for name in PRIORS if name != "stick_breaking"]
FAMILIES = {
    # variances of a light tail: a datum of 1e6 would leave a chain and the test no digits
    "gaussian": GaussianDiagonal(np.array([0.3]), np.array([0.4]), np.array([3.0]), np.array([2.0])),
    "categorical": Categorical.default(np.array([3, 2])),
    "vonmises_fisher": VonMisesFisher.of(np.array([0.6, -0.8]), 1.0, 3.0),
}
NOTHING_LEARNED = chains.Schedule(n_moves=0, learn_concentration=False, learn_likelihood=False)
SPREAD = 0.4  # of the hyper-parameters in these tests, for the same reason


def by_chain(family, schedule, dtype=np.float32):
    """One iteration of a chain."""

    def move(joint, rng):
        chain = chains.start(joint.blocks, joint.prior, joint.z, int(rng.integers(2**62)), dtype)
        chain = chains.step(chain._replace(reference=(family,)), schedule)
        return joint._replace(
            prior=chain.prior, family=chain.seating.blocks[0].family, z=sweep.labels(chain.seating)
        )

    return move


def by_split_merge(n_scans, n_moves=3):
    """Split-merge moves and nothing else."""

    def move(joint, rng):
        z = np.unique(joint.z, return_inverse=True)[1]
        seating = sweep.seat(joint.blocks, z)
        for _ in range(n_moves):
            seating, _ = split_merge(seating, joint.prior, rng, n_scans)
        return joint._replace(z=sweep.labels(seating))

    return move


def by_subclusters(joint, rng):
    """One step of the sub-cluster sampler."""
    z = np.unique(joint.z, return_inverse=True)[1]
    state = sampler.init(joint.blocks, np.ones(N, int), joint.prior, rng, labels=z)
    state = sampler.step(state, joint.blocks, joint.prior, n_launch=1, n_crowds=1)
    return joint._replace(z=state.labels.astype(np.int64))


def check(prior, family, move, n_draws, **hyper):
    check_geweke(
        lambda rng: draw_joint(prior, family, N, rng, **hyper),
        lambda joint, rng: redraw_data(move(joint, rng), rng),
        lambda joint: joint.traits(),
        seed=0,
        n_draws=n_draws,
    )


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_gibbs(family, prior):
    check(PRIORS[prior], FAMILIES[family], by_chain(FAMILIES[family], NOTHING_LEARNED), 5000)


@pytest.mark.parametrize(
    ("family", "n_scans"),
    [("gaussian", 0), ("gaussian", 2), ("categorical", 0)],
    ids=["gaussian-sequential", "gaussian-restricted", "categorical-sequential"],
)
@pytest.mark.parametrize("prior", EXCHANGEABLE)
def test_split_merge(family, prior, n_scans):
    check(PRIORS[prior], FAMILIES[family], by_split_merge(n_scans), 5000)


@pytest.mark.parametrize(
    ("family", "prior"),
    [*(("gaussian", prior) for prior in EXCHANGEABLE), ("categorical", "dirichlet_process")],
)
def test_subclusters(family, prior):
    check(PRIORS[prior], FAMILIES[family], by_subclusters, 2500)


@pytest.mark.parametrize("prior", PRIORS)
def test_learned_concentration(prior):
    family = FAMILIES["gaussian"]
    schedule = NOTHING_LEARNED._replace(learn_concentration=True, n_moves=1)
    check(PRIORS[prior], family, by_chain(family, schedule), 4000, learn_concentration=True)


@pytest.mark.parametrize(
    ("family", "prior"),
    [
        *(("gaussian", prior) for prior in PRIORS),
        ("categorical", "dirichlet_process"),
        ("vonmises_fisher", "dirichlet_process"),
        ("vectors", "mfm"),
    ],
)
def test_learned_likelihood(family, prior, monkeypatch):
    monkeypatch.setattr(chains, "HYPER_SPREAD", SPREAD)
    family = VECTORS if family == "vectors" else FAMILIES[family]
    schedule = NOTHING_LEARNED._replace(learn_likelihood=True, n_moves=1)
    check(PRIORS[prior], family, by_chain(family, schedule, np.float64), 4000, spread=SPREAD)
