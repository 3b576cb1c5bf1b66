"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from partita import LatentClass, Mixture

# check -> why it cannot pass
EXPECTED = {
    "LatentClass": {
        "check_positive_only_tag_during_fit": "the data are continuous, and latent classes read codes",
        "check_sample_weight_equivalence_on_dense_data": "the data are continuous, and latent classes read codes",
        "check_clustering": "the data are continuous, and latent classes read codes",
    }
}


def expected(model):
    return EXPECTED.get(type(model).__name__, {})


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [Mixture(inference="vb", n_init=1), Mixture(inference="em", n_clusters=3), LatentClass()],
    expected_failed_checks=expected,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [Mixture(noise=True, n_chains=1, n_draws=10, burn_in=10)], expected_failed_checks=expected
)
def test_scikit_learn_check_of_noise(estimator, check):
    check(estimator)


@pytest.mark.slow  # its sweeps are one object at a time
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [Mixture(inference="cvb", n_init=1, max_clusters=5)], expected_failed_checks=expected
)
def test_scikit_learn_check_of_cvb(estimator, check):
    check(estimator)
