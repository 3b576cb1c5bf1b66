"""The prior of chains by default: a mixture of finite mixtures whose Dirichlet parameter is held."""

import pytest

from partita import Mixture
from partita.fitting.chains import AUTO_GAMMA
from partita.partitions import marginal_n_clusters_prior, n_clusters_prior

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")

QUICK = {"n_chains": 2, "n_draws": 10, "burn_in": 5}


def test_the_concentration_is_held_unless_a_prior_is_named(rng, global_random_seed):
    X = rng.normal(size=(40, 2))
    default, named, given = (
        Mixture(random_state=global_random_seed, **options, **QUICK).fit(X)
        for options in ({}, {"prior": "mfm"}, {"concentration": 0.7})
    )
    assert set(default.trace_.concentration) == {AUTO_GAMMA} and default.prior_.gamma == AUTO_GAMMA
    assert len(set(named.trace_.concentration)) > 5
    assert set(given.trace_.concentration) == {0.7}
    expected = n_clusters_prior(default.prior_, 40), marginal_n_clusters_prior(named.prior_, 40)
    for model, p in zip((default, named), expected, strict=True):
        assert model.n_clusters_prior_[3] == pytest.approx(p[3])


def test_variational_bayes_learns_its_own(rng):
    assert Mixture(inference="vb", random_state=0).fit(rng.normal(size=(60, 2))).prior_.concentration != 1.0


def test_few_scattered_rows_are_no_group(rng):
    """One heavy-tailed group: a learned concentration makes clusters of its outer rows."""
    X = rng.standard_t(4, size=(300, 2))
    held, learned = (
        Mixture("gaussian_full", prior, random_state=0, n_draws=60, burn_in=60).fit(X).n_clusters_posterior_
        for prior in ("auto", "mfm")
    )
    mean = [sum(K * p for K, p in found.items()) for found in (held, learned)]
    assert mean[0] < mean[1]
