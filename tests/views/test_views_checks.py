"""scikit-learn's estimator checks of CrossCat."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from partita import CrossCat


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CrossCat("gaussian", inference="vb", n_chains=1, n_draws=2, max_iter=20)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        CrossCat(n_chains=1, n_draws=2, burn_in=2),
        CrossCat(inference="search", n_chains=1, max_iter=3),
    ]
)
def test_scikit_learn_check_of_chains(estimator, check):
    check(estimator)
