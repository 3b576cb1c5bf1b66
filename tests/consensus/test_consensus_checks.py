"""scikit-learn's own checks of Consensus."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from partita import Consensus

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
@parametrize_with_checks([Consensus()], expected_failed_checks=lambda model: EXPECTED)
def test_scikit_learn_check(estimator, check):
    check(estimator)
