"""Predictive checks of a fitted mixture: named columns, holes, categories; a wrong family is seen."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse as sp

from partita import Mixture


@pytest.fixture(scope="module")
def frame(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    group = rng.integers(2, size=400)
    X = pd.DataFrame(
        {
            "size": rng.normal(20.0 * group, 1.0),
            "wait": np.exp(rng.normal(size=400)),  # no Gaussian
            "color": np.where(rng.random(400) < 0.8, np.array(["red", "blue"])[group], "green"),
        }
    )
    X.loc[:19, "size"] = np.nan
    X.loc[5, "color"] = None
    return X


@pytest.fixture(scope="module")
def checks(frame, global_random_seed):
    model = Mixture(
        family={"real": "gaussian"}, n_clusters=2, inference="vb", random_state=global_random_seed
    ).fit(frame)
    found = model.predictive_checks(frame, n_tables=60)
    return {name: {check.statistic: check for check in column} for name, column in found.items()}


def test_every_column_is_checked_by_its_kind(checks):
    assert set(checks) == {"size", "wait", "color"}
    assert set(checks["color"]) == {"levels", "share of the commonest", "entropy"}
    assert "skewness" in checks["size"]


def test_values_are_in_the_users_units(frame, checks):
    assert checks["size"]["mean"].observed == pytest.approx(frame["size"].mean())
    assert checks["color"]["levels"].observed == 3


def test_a_right_family_passes_and_a_wrong_one_is_seen(checks):
    assert checks["size"]["sd"].p_value > 0.01
    assert checks["color"]["entropy"].p_value > 0.01
    assert checks["wait"]["skewness"].p_value < 0.05


def test_sparse_tables_are_refused(global_random_seed):
    X = sp.csr_array(np.random.default_rng(global_random_seed).poisson(2.0, size=(30, 5)))
    model = Mixture("multinomial", n_clusters=1, inference="vb").fit(X)
    with pytest.raises(ValueError, match="sparse"):
        model.predictive_checks(X)
