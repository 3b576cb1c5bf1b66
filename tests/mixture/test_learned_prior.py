"""What is said of the prior of a fit by chains: averaged over the hyperprior, or over the draws of all chains."""

import numpy as np
import pytest

from partita import NBCE, Mixture, RelationalBlocks, load
from partita.partitions import marginal_n_clusters_prior, n_clusters_prior
from partita.posterior import n_clusters_posterior
from partita.summaries import cluster_counts

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")

QUICK = {"n_chains": 3, "n_draws": 10, "burn_in": 5}
N_GROUPS = 12


def many_groups(rng):
    return rng.normal(size=(20 * N_GROUPS, 1)) + 30.0 * np.repeat(np.arange(N_GROUPS), 20)[:, None]


@pytest.fixture
def fitted(rng, global_random_seed):
    """Twelve groups that nobody can miss: they teach the concentration to be large."""
    prior = {"prior": "dirichlet_process", "inference": "gibbs"}
    return Mixture("gaussian", random_state=global_random_seed, **prior, **QUICK).fit(many_groups(rng))


def test_the_shown_prior_does_not_know_the_data(fitted):
    N = 20 * N_GROUPS
    expected = marginal_n_clusters_prior(fitted.prior_, N)
    assert fitted.n_clusters_ in (N_GROUPS - 1, N_GROUPS)  # short chains
    shown = cluster_counts(fitted)
    np.testing.assert_allclose(shown.prior, expected[shown.n_clusters], atol=1e-12)
    both = n_clusters_posterior(fitted.trace_.labels, fitted.n_clusters_prior_)
    np.testing.assert_allclose(both.prior, expected[both.n_clusters], atol=1e-12)
    learned = n_clusters_prior(fitted.prior_, N)
    many = sum(p for K, p in fitted.n_clusters_prior_.items() if K >= 10)
    assert many == pytest.approx(expected[10:].sum())
    assert learned[10:].sum() != pytest.approx(many, rel=0.01)


@pytest.mark.parametrize(
    "options", [{"concentration": 2.0}, {"n_clusters": 3}, {"concentration": 2.0, "max_clusters": 4}]
)
def test_a_given_concentration_is_not_averaged(options, rng, global_random_seed):
    model = Mixture("gaussian", random_state=global_random_seed, **QUICK, **options)
    model.fit(rng.normal(size=(30, 1)))
    expected = n_clusters_prior(model.prior_, 30)
    expected = expected[: options.get("max_clusters", 30) + 1]
    found = [model.n_clusters_prior_.get(K, 0.0) for K in range(len(expected))]
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-11)


def test_other_models_have_the_prior_too(rng, global_random_seed, tmp_path):
    Y = rng.integers(3, size=(25, 4))
    for model in (NBCE(random_state=global_random_seed, **QUICK), RelationalBlocks(random_state=0, **QUICK)):
        model.fit(Y)
        expected = marginal_n_clusters_prior(model.prior_, 25)
        assert model.n_clusters_prior_[2] == pytest.approx(expected[2])
        model.save(tmp_path / "model.npz")
        assert load(tmp_path / "model.npz").n_clusters_prior_ == model.n_clusters_prior_
    with pytest.raises(AttributeError, match="it belongs to the draws of chains"):
        _ = NBCE(inference="vb", random_state=0).fit(Y).n_clusters_prior_


@pytest.mark.parametrize("prior", ["dirichlet_process", "pitman_yor", "mfm"])
def test_the_prior_of_a_fit_is_a_summary_of_all_draws(prior, rng, global_random_seed):
    model = Mixture("gaussian", prior, "gibbs", random_state=global_random_seed, **QUICK)
    trace = model.fit(rng.normal(size=(40, 1))).trace_
    concentration = getattr(model.prior_, "concentration", getattr(model.prior_, "gamma", None))
    assert concentration == pytest.approx(np.exp(np.log(trace.concentration).mean()))
    if prior == "pitman_yor":
        assert model.prior_.discount == pytest.approx(trace.discount.mean())
