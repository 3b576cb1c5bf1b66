"""The signal of real columns: scores, densities of whole rows, moments, and its use in a mixture."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import partita
from partita import Mixture
from partita.families import Signal, find_signal
from partita.families.contract import held, unconstrained
from partita.families.gaussian_full import GaussianFull


def make_signal(rng, n_columns=4, n_scores=2):
    A = rng.normal(size=(n_columns, n_columns))
    variances, axes = np.linalg.eigh(A @ A.T)
    return Signal(axes.T[::-1].copy(), variances[::-1].copy(), n_scores)


def covariance(signal):
    return (signal.axes.T * signal.variances) @ signal.axes


def test_scores_and_rest_are_the_density_of_whole_rows(rng):
    """Under one Gaussian for all rows the density of a row is that of its scores times that of the rest."""
    signal = make_signal(rng)
    Z = rng.normal(size=(5, 4))
    d = signal.n_scores
    log_scores = multivariate_normal(np.zeros(d), np.diag(signal.variances[:d])).logpdf(signal.scores(Z))
    whole = multivariate_normal(np.zeros(4), covariance(signal)).logpdf(Z)
    np.testing.assert_allclose(log_scores + signal.log_rest(Z), whole, rtol=1e-10)


def test_missing_cells_have_the_density_of_the_observed_ones(rng):
    signal = make_signal(rng)
    Z = rng.normal(size=(3, 4))
    Z[1, [0, 2]] = np.nan
    Z[2] = np.nan
    scores, rest = signal.scores(Z), signal.log_rest(Z)
    R, d = covariance(signal), signal.n_scores
    seen = [1, 3]
    expected = multivariate_normal(np.zeros(2), R[np.ix_(seen, seen)]).logpdf(Z[1, seen])
    law = multivariate_normal(np.zeros(d), np.diag(signal.variances[:d]))
    np.testing.assert_allclose(law.logpdf(scores[1]) + rest[1], expected, rtol=1e-10)
    filled = Z[1].copy()
    filled[[0, 2]] = R[np.ix_([0, 2], seen)] @ np.linalg.solve(R[np.ix_(seen, seen)], Z[1, seen])
    np.testing.assert_allclose(scores[1], signal.axes[:d] @ filled, rtol=1e-10)
    assert np.isnan(scores[2]).all() and rest[2] == 0.0


def test_moments_of_columns(rng):
    """Means and variances of simulated rows, within five standard errors."""
    signal = make_signal(rng)
    C = np.array([[1.0, 0.4], [0.4, 0.5]])
    mean = np.array([2.0, -1.0])
    n = 40_000
    X = signal.rows(rng.multivariate_normal(mean, C, size=n), rng)
    variances = signal.column_variances(C[None])[0]
    np.testing.assert_array_less(
        np.abs(X.mean(axis=0) - signal.column_means(mean[None])[0]), 5 * np.sqrt(variances / n)
    )
    np.testing.assert_array_less(np.abs(X.var(axis=0) / variances - 1), 5 * np.sqrt(2 / n))


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_directions_that_follow_from_others_are_left_out(rng):
    X = rng.normal(size=(300, 4))
    assert find_signal(standardized(X), np.ones(300)) is None
    almost = X @ rng.normal(size=4) + 0.01 * rng.normal(size=300)
    found = find_signal(standardized(np.column_stack([X, almost])), np.ones(300))
    assert found.n_scores == 4 and found.variances[4] < 0.01 < found.variances[3]
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(5), atol=1e-12)


def test_of_many_columns_the_directions_beyond_chance_are_the_signal(rng):
    """Eight factors in fifty columns; a table of noise has the smallest number of directions."""
    factors = rng.normal(size=(400, 8)) @ rng.normal(size=(8, 50))
    found = find_signal(standardized(factors + 0.5 * rng.normal(size=(400, 50))), np.ones(400))
    assert found.n_scores == 8
    assert find_signal(standardized(rng.normal(size=(400, 50))), np.ones(400)).n_scores == 6


def test_fewer_rows_than_columns(rng):
    found = find_signal(standardized(rng.normal(size=(30, 100))), np.ones(30))
    assert found.n_scores == 3, "ten rows per direction"


def test_rows_of_weight_zero_take_no_part(rng):
    X = rng.normal(size=(100, 3))
    X[50:] *= 100.0
    weights = np.repeat([1.0, 0.0], 50)
    one = find_signal(np.column_stack([X, X[:, 0]]), weights)
    two = find_signal(np.column_stack([X, X[:, 0]])[:50], np.ones(50))
    np.testing.assert_allclose(one.variances, two.variances)


def test_the_law_of_the_means_is_held():
    family = GaussianFull.default(3)
    assert set(held(family)) < set(unconstrained(family))


# ---- in a mixture ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redundant():
    """Three groups in two columns, which two further columns almost repeat."""
    rng = np.random.default_rng(3)
    z = np.repeat([0, 1, 2], 40)
    X = rng.normal(size=(120, 2)) + 7.0 * np.column_stack([z == 1, z == 2])
    return np.column_stack([X, X.sum(axis=1) + 0.01 * rng.normal(size=120), 5.0 - 3.0 * X[:, 0]]), z


@pytest.fixture(scope="module")
def fitted(redundant):
    return Mixture(n_draws=10, burn_in=10, n_chains=2, random_state=0).fit(redundant[0])


def test_the_report_names_the_signal_and_how_to_switch_it_off(fitted, redundant):
    note = fitted.fit_report_["signal"].message
    assert "2 principal directions of 4 real columns" in note and "('auto', {'signal': False})" in note
    explicit = Mixture({"real": "gaussian_full"}, n_draws=3, burn_in=3, n_chains=2, random_state=0)
    with pytest.warns(Warning, match="too short"):
        explicit.fit(redundant[0])
    assert "signal" not in explicit.fit_report_


def test_profiles_and_samples_are_in_the_units_of_the_columns(fitted, redundant):
    X, z = redundant
    np.testing.assert_array_equal(fitted.labels_[z == 0], fitted.labels_[0])
    for k in range(3):
        own = X[fitted.labels_ == k]
        for name, mean in zip(fitted.profiles_, own.mean(axis=0), strict=True):
            assert abs(fitted.profiles_[name]["mean"][k] - mean) < 0.3
    drawn, labels = fitted.sample(2000)
    assert np.abs(drawn[:, 2] - drawn[:, 0] - drawn[:, 1]).max() < 0.2, "the columns keep their relation"
    assert np.abs(drawn[:, 3] - 5.0 + 3.0 * drawn[:, 0]).max() < 0.2
    assert abs(drawn[:, 0].mean() - X[:, 0].mean()) < 0.5


def test_densities_do_not_depend_on_units(fitted, redundant):
    X = redundant[0]
    units = np.array([2.0, 10.0, 0.1, 1.0])
    other = Mixture(n_draws=10, burn_in=10, n_chains=2, random_state=0).fit(X * units)
    expected = fitted.score_samples(X) - np.log(units).sum()
    np.testing.assert_allclose(other.score_samples(X * units), expected, atol=1e-6)


def test_new_rows_with_missing_cells(fitted, redundant):
    """A cell that follows from the others may be missing; a row without cells has the shares of the clusters."""
    X = redundant[0][::10].copy()
    whole = fitted.predict(X)
    X[:, 2] = np.nan
    np.testing.assert_array_equal(fitted.predict(X), whole)
    np.testing.assert_allclose(fitted.predict_proba(np.full((1, 4), np.nan))[0], fitted.weights_)
    assert fitted.score_samples(np.full((1, 4), np.nan))[0] == pytest.approx(0.0, abs=1e-9)


def test_a_saved_model_keeps_its_signal(fitted, redundant, tmp_path):
    fitted.save(tmp_path / "model.npz")
    loaded = partita.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(redundant[0]), fitted.predict(redundant[0]))
    np.testing.assert_allclose(loaded.score_samples(redundant[0]), fitted.score_samples(redundant[0]))
    assert loaded.profiles_.keys() == fitted.profiles_.keys()


def test_tables_with_missing_cells_are_modeled_in_their_columns(redundant):
    X = redundant[0].copy()
    X[0, 0] = np.nan
    model = Mixture(n_draws=10, burn_in=10, n_chains=2, random_state=0).fit(X)
    assert "signal" not in model.fit_report_
