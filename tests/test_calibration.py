"""Simulation-based calibration: true parameters have uniform ranks among draws, over all of the hyperprior.

A correct model fails once in a million runs. The ranks of more tables are in ``benchmarks/results/calibration.json``.
"""

import numpy as np
import pytest

from benchmarks.quality import calibration_models as models
from partita.testing import calibration_ranks, check_calibration, rank_p_value, size_traits

N_TABLES = 100


@pytest.mark.slow
@pytest.mark.parametrize("name", models.MODELS)
def test_ranks_of_the_truth_are_uniform(name, global_random_seed):
    rng = np.random.default_rng([global_random_seed, *name.encode()])
    check_calibration(calibration_ranks(models.MODELS[name], rng, N_TABLES), models.N_DRAWS)


@pytest.mark.slow
def test_a_wrong_hyperprior_is_noticed(monkeypatch, rng):
    """Chains that assume the hyper-parameters to be nearly known."""

    def narrow(generator):
        with monkeypatch.context() as patch:
            patch.setattr("partita.engines.gibbs.chain.HYPER_SPREAD", 0.2)
            return models.mixture(["bernoulli"], models.MFM, 0.0, generator)

    ranks = calibration_ranks(narrow, rng, 2 * N_TABLES)
    with pytest.raises(AssertionError, match=r"the ranks of .* are not uniform"):
        check_calibration(ranks, models.N_DRAWS)


@pytest.mark.slow
def test_a_wrong_concentration_is_noticed(monkeypatch, rng):
    """Chains that never learn the concentration: its draws are one constant."""

    def fixed(generator):
        with monkeypatch.context() as patch:
            patch.setattr("partita.engines.gibbs.chain.sample_hyper", lambda prior, n, rng: prior)
            return models.mixture(["bernoulli"], models.MFM, 0.0, generator)

    ranks = calibration_ranks(fixed, rng, N_TABLES)
    with pytest.raises(AssertionError, match="the ranks of concentration are not uniform"):
        check_calibration(ranks, models.N_DRAWS)


def conjugate(rng, bias=0.0, scale=1.0):
    """One datum of a normal mean, and exact draws from its posterior, unless they are moved or widened."""
    mean = rng.normal()
    x = rng.normal(mean)
    return {"mean": mean, "none": 1.0}, [
        {"mean": value, "none": 1.0} for value in x / 2 + bias + scale * np.sqrt(0.5) * rng.normal(size=9)
    ]


def test_exact_draws_are_calibrated_and_others_are_not(rng):
    ranks = calibration_ranks(conjugate, rng, 1000)
    check_calibration(ranks, 9)
    for wrong in ({"bias": 0.4}, {"scale": 1.8}, {"scale": 0.5}):
        ranks = calibration_ranks(lambda generator, wrong=wrong: conjugate(generator, **wrong), rng, 1000)
        with pytest.raises(AssertionError, match="the ranks of mean are not uniform"):
            check_calibration(ranks, 9)
        assert rank_p_value(ranks["none"], 9) > 1e-6  # equal values are ranked at random


def test_traits_do_not_depend_on_the_names_of_clusters(rng):
    z = rng.integers(-1, 4, size=30)
    renamed = np.where(z < 0, -1, rng.permutation(4)[z])
    assert size_traits(z) == pytest.approx(size_traits(renamed))
    assert size_traits(np.array([-1, -1]))["clusters"] == 0.0


@pytest.mark.parametrize("name", ["Mixture, missing cells", "RelationalBlocks, undirected", "BCE"])
def test_the_truth_and_the_draws_have_the_same_traits(name, rng):
    truth, draws = models.MODELS[name](rng)
    assert len(draws) == models.N_DRAWS and all(draw.keys() == truth.keys() for draw in draws)
    assert np.isfinite([*truth.values(), *draws[-1].values()]).all()
