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

OF_NOISE = {
    "check_sample_weight_equivalence_on_dense_data": "shares of draws are equal up to Monte Carlo error",
    "check_fit_score_takes_y": "partial_fit refuses later rows, whose outliers it cannot tell",
    "check_n_features_in_after_fitting": "partial_fit refuses later rows, whose outliers it cannot tell",
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
    [Mixture(outliers=True, n_chains=1, n_draws=10, burn_in=10)],
    expected_failed_checks=lambda model: OF_NOISE,
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
