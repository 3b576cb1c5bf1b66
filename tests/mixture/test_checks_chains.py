"""scikit-learn's own checks for the estimators that sample; short chains, the checks do not ask for good ones."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from partita import DPGaussian, DPMultinomial, Mixture

FEW = {"n_chains": 2, "n_draws": 8, "burn_in": 4}

# check -> why it cannot pass
EXPECTED = {}


def expected(model):
    return EXPECTED.get(type(model).__name__, {})


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([Mixture(**FEW)], expected_failed_checks=expected)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [Mixture(inference="subclusters", **FEW), DPGaussian(**FEW), DPMultinomial(**FEW)],
    expected_failed_checks=expected,
)
def test_scikit_learn_check_of_presets(estimator, check):
    check(estimator)
