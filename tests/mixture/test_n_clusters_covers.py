"""P(K) means what it says: sets of 90% hold the true number of clusters as often as their own mass promises."""

import warnings

import numpy as np
import pytest

from partita import Mixture
from partita.families import Categorical
from partita.partitions import specify, with_concentration
from partita.posterior import credible_set
from partita.testing.joint import draw_joint

N_SETS, N_ROWS, N_COLUMNS, N_LEVELS = 200, 30, 4, 3
LEVEL = 0.9
# (hits - promised) / its standard deviation is a standard normal variable if P(K) is right: a false alarm in 1500 runs
MOST_DEVIATIONS = 3.4
CONCENTRATION = {"dirichlet_process": 1.0, "mfm": 1.0}


def draw_table(prior, rng):
    """The number of clusters, and rows drawn from the very model that is fitted.

    A level that no row shows would be unknown to the fit, so such tables are drawn again. That is allowed: whether a
    table is kept depends on the table alone, and given the table the posterior is the same.
    """
    family = Categorical.default([N_LEVELS] * N_COLUMNS)
    while True:
        joint = draw_joint(prior, family, N_ROWS, rng)
        if all(len(np.unique(column)) == N_LEVELS for column in joint.data.T):
            return len(np.unique(joint.z)), joint.data


def deviations(name, fitted_concentration, n_sets=N_SETS):
    """By how many standard deviations the sets hold the truth more often than promised."""
    rng = np.random.default_rng(2026)
    prior = with_concentration(specify(name), CONCENTRATION[name])
    hits = promised = variance = 0.0
    for number in range(n_sets):
        K, X = draw_table(prior, rng)
        model = Mixture(
            "categorical", name, concentration=fitted_concentration, learn_hyper=False, partition="map",
            n_chains=1, n_draws=400, burn_in=40, random_state=number,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short chains say that they are short
            found = credible_set(model.fit(X).n_clusters_posterior_, LEVEL)
        hits += K in found.n_clusters
        promised += found.mass
        variance += found.mass * (1.0 - found.mass)
    return (hits - promised) / np.sqrt(variance)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONCENTRATION)
def test_sets_of_numbers_of_clusters_cover_as_promised(name):
    assert abs(deviations(name, CONCENTRATION[name])) < MOST_DEVIATIONS


@pytest.mark.slow
@pytest.mark.parametrize("name", CONCENTRATION)
def test_a_wrong_prior_is_noticed(name):
    """What the test above could see: of far too few clusters expected, in a third of the tables."""
    assert deviations(name, CONCENTRATION[name] / 10, N_SETS // 3) < -MOST_DEVIATIONS
