"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from partita import NBCE, MixtureConsensus

LABELS = "the data are continuous, and label matrices are not"
EXPECTED = dict.fromkeys(
    [
        "check_positive_only_tag_during_fit",
        "check_sample_weight_equivalence_on_dense_data",
        "check_clustering",
    ],
    LABELS,
)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [MixtureConsensus(2, n_init=2), NBCE(inference="vb", n_init=1)],
    expected_failed_checks=lambda model: EXPECTED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [NBCE(n_chains=2, n_draws=8, burn_in=4), NBCE(inference="cvb", n_init=1, max_clusters=5)],
    expected_failed_checks=lambda model: EXPECTED,
)
def test_scikit_learn_check_of_chains(estimator, check):
    check(estimator)
