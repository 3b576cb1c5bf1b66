"""Hyper-parameters in the units of the table: the option `standardize`."""

import numpy as np
import pytest

import partita
from partita import Mixture

SHORT = {"n_chains": 2, "n_draws": 20, "burn_in": 20, "random_state": 0, "learn_hyper": False}
FAMILIES = {
    "gaussian": lambda c, m: {"b": 0.3 * c**2, "m": m},
    "gaussian_full": lambda c, m: {"scale": 0.2 * c**2, "m": m},
}


@pytest.fixture
def table(rng):
    X = np.concatenate([rng.normal(-2, 1, (60, 3)), rng.normal(2, 1, (60, 3))])
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_answer_is_that_of_standardized_columns_with_the_same_prior(table, name):
    """A standardized table, shifted and stretched together with its prior, gives the same answer."""
    c, shift = 7.0, 300.0
    plain = Mixture(name, **SHORT).fit(table)
    given = Mixture((name, {"standardize": False, **FAMILIES[name](c, shift)}), **SHORT).fit(
        shift + c * table
    )
    assert np.array_equal(given.labels_, plain.labels_)
    np.testing.assert_allclose(given.trace_.log_joint, plain.trace_.log_joint - 360 * np.log(c), rtol=1e-6)
    new = table[:5] + 0.1
    np.testing.assert_allclose(
        given.score_samples(shift + c * new), plain.score_samples(new) - 3 * np.log(c), rtol=1e-6
    )
    np.testing.assert_allclose(given.profiles_["x0"]["mean"], shift + c * plain.profiles_["x0"]["mean"])
    np.testing.assert_allclose(given.profiles_["x0"]["sd"], c * plain.profiles_["x0"]["sd"])


def test_missing_cells_draws_and_storage(table, tmp_path):
    table[::7, 1] = np.nan
    model = Mixture(("gaussian", {"standardize": False}), inference="vb", random_state=0).fit(50 + table)
    model.save(tmp_path / "model")
    again = partita.load(tmp_path / "model")
    np.testing.assert_allclose(again.score_samples(50 + table), model.score_samples(50 + table))
    drawn, _ = again.sample(2000)
    assert abs(np.nanmean(drawn, axis=0) - 50).max() < 0.5  # about ten standard errors


@pytest.mark.parametrize(
    ("family", "parameters", "message"),
    [
        (("gaussian", {"standardize": 0}), {}, "True or False"),
        (("vonmises_fisher", {"standardize": False}), {}, "no option 'standardize'"),
        (("categorical", {"standardize": False}), {}, "no option 'standardize'"),
        (("gaussian", {"standardize": False}), {"outliers": True}, "only Mixture without outliers"),
    ],
)
def test_it_is_refused_where_it_means_nothing(table, family, parameters, message):
    X = np.abs(table).round().astype(int) if family[0] == "categorical" else table
    with pytest.raises(ValueError, match=message):
        Mixture(family, **parameters).fit(X)
