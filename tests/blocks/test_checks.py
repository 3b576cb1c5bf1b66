"""scikit-learn's estimator checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from partita import RelationalBlocks


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([RelationalBlocks(n_chains=1, n_draws=10, burn_in=10, n_moves=2)])
def test_scikit_learn_check(estimator, check):
    check(estimator)
