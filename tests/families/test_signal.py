"""The signal of real columns: scores, densities of whole rows, moments, and its use in a mixture."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import partita
from partita import Mixture
from partita.families import Signal, find_signal
from partita.families.contract import held, unconstrained
from partita.families.factors import RowsInMemory
from partita.families.factors import fit_factors as factors_of_moments
from partita.families.gaussian_full import GaussianFull


def make_low_rank(rng, n_columns=5, n_axes=3, n_scores=2):
    """Fewer axes than columns, and columns with noise of their own."""
    axes = np.linalg.qr(rng.normal(size=(n_columns, n_axes)))[0].T.copy()
    return Signal(axes, np.array([4.0, 2.0, 1.1])[:n_axes], n_scores, rng.uniform(0.5, 2.0, n_columns), 0.7)


def make_signal(rng, n_columns=4, n_scores=2):
    A = rng.normal(size=(n_columns, n_columns))
    variances, axes = np.linalg.eigh(A @ A.T)
    return Signal.of(axes.T[::-1].copy(), variances[::-1].copy(), n_scores)


def covariance(signal):
    """Of the columns, under one Gaussian for all rows."""
    A = signal.axes
    R = signal.noise * (np.eye(A.shape[1]) - A.T @ A) + (A.T * signal.variances) @ A
    return R * np.outer(signal.widths, signal.widths)


SIGNALS = {"all axes": make_signal, "low rank": make_low_rank}


@pytest.fixture(params=SIGNALS)
def signal(request, rng):
    return SIGNALS[request.param](rng)


def test_scores_and_rest_are_the_density_of_whole_rows(signal, rng):
    """Under one Gaussian for all rows the density of a row is that of its scores times that of the rest."""
    D, d = signal.axes.shape[1], signal.n_scores
    Z = rng.normal(size=(6, D))
    log_scores = multivariate_normal(np.zeros(d), np.diag(signal.variances[:d])).logpdf(signal.scores(Z))
    whole = multivariate_normal(np.zeros(D), covariance(signal)).logpdf(Z)
    np.testing.assert_allclose(log_scores + signal.log_rest(Z), whole, rtol=1e-10)


def test_missing_cells_have_the_density_of_the_observed_ones(signal, rng):
    D, d = signal.axes.shape[1], signal.n_scores
    Z = rng.normal(size=(3, D))
    lost = [0, 2]
    seen = np.setdiff1d(np.arange(D), lost)
    Z[1, lost] = np.nan
    Z[2] = np.nan
    scores, rest = signal.scores(Z), signal.log_rest(Z)
    R = covariance(signal)
    expected = multivariate_normal(np.zeros(len(seen)), R[np.ix_(seen, seen)]).logpdf(Z[1, seen])
    law = multivariate_normal(np.zeros(d), np.diag(signal.variances[:d]))
    np.testing.assert_allclose(law.logpdf(scores[1]) + rest[1], expected, rtol=1e-9)
    filled = Z[1].copy()
    regression = np.linalg.solve(R[np.ix_(seen, seen)], R[np.ix_(seen, lost)]).T
    filled[lost] = regression @ Z[1, seen]
    np.testing.assert_allclose(scores[1], signal.axes[:d] @ (filled / signal.widths), rtol=1e-9)
    assert np.isnan(scores[2]).all() and rest[2] == 0.0
    left = R[np.ix_(lost, lost)] - regression @ R[np.ix_(seen, lost)]
    A = signal.axes[:d, lost] / signal.widths[lost]
    share = np.trace(A @ left @ A.T) / signal.variances[:d].sum()
    np.testing.assert_allclose(signal.undetermined(Z), [0.0, share, 1.0], rtol=1e-8)


def test_moments_of_columns(signal, rng):
    """Means and variances of simulated rows, within five standard errors."""
    C = np.array([[1.0, 0.4], [0.4, 0.5]])
    mean = np.array([2.0, -1.0])
    n = 40_000
    scores = rng.multivariate_normal(mean, C, size=n)
    X = signal.rows(scores, rng)
    np.testing.assert_allclose(signal.scores(X), scores, atol=1e-9)
    variances = signal.column_variances(C[None])[0]
    np.testing.assert_array_less(
        np.abs(X.mean(axis=0) - signal.column_means(mean[None])[0]), 5 * np.sqrt(variances / n)
    )
    np.testing.assert_array_less(np.abs(X.var(axis=0) / variances - 1), 5 * np.sqrt(2 / n))


def test_the_share_is_that_of_the_variance_of_the_columns(signal):
    whole = np.trace(covariance(signal))
    A, d = signal.axes[: signal.n_scores] * signal.widths, signal.n_scores
    assert signal.share() == pytest.approx(np.trace((A.T * signal.variances[:d]) @ A) / whole)


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
    """Eight factors in fifty columns."""
    factors = rng.normal(size=(400, 8)) @ rng.normal(size=(8, 50))
    found = find_signal(standardized(factors + 0.5 * rng.normal(size=(400, 50))), np.ones(400))
    assert found.n_scores == 8 and found.axes.shape == (8, 50)


def test_many_columns_that_do_not_depend_on_each_other_have_no_signal():
    """Principal scores are uncorrelated, so that no direction in them varies more than by chance."""
    X = np.linalg.qr(standardized(np.random.default_rng(0).normal(size=(200, 40))))[0]
    assert find_signal(standardized(X), np.ones(200)) is None


def test_fewer_rows_than_columns(rng):
    """Three strong factors; at most one direction for ten rows."""
    factors = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 2000))
    X = factors + rng.normal(size=(60, 2000))
    found = find_signal(standardized(X), np.ones(60))
    assert found.n_scores == 3 and found.axes.shape == (3, 2000)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(3), atol=1e-12)
    assert find_signal(standardized(X[:20]), np.ones(20)).n_scores == 2


def test_no_array_of_all_pairs_of_columns_is_formed(rng):
    D = 4000
    X = standardized(rng.normal(size=(40, 2)) @ rng.normal(size=(2, D)) + rng.normal(size=(40, D)))
    tracemalloc.start()
    try:
        find_signal(X, np.ones(40))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < D * D * 8 / 4


def fit_factors(Z, weights, n_factors, **options):
    return factors_of_moments(RowsInMemory(Z, weights).moments(), n_factors, **options)


def log_likelihood(signal, Z):
    return multivariate_normal(np.zeros(Z.shape[1]), covariance(signal)).logpdf(Z).mean()


def test_factors_are_those_of_maximum_likelihood(rng):
    """Against scikit-learn's factor analysis; the shrinkage of the widths costs little with many rows."""
    from sklearn.decomposition import FactorAnalysis

    loadings, widths = rng.normal(size=(2, 12)), rng.uniform(0.4, 1.2, 12)
    Z = standardized(rng.normal(size=(3000, 2)) @ loadings + widths * rng.normal(size=(3000, 12)))
    signal = fit_factors(Z, np.ones(len(Z)), 2)
    best = FactorAnalysis(2, tol=1e-8, max_iter=5000, svd_method="lapack").fit(Z).score(Z)
    assert best - 2e-3 < log_likelihood(signal, Z) < best + 1e-6


def test_columns_of_equal_noise_have_nearly_equal_widths(rng):
    """The differences of 400 estimated variances are drawn together; 0.1 is their spread without that."""
    Z = rng.normal(size=(200, 1)) + rng.normal(size=(200, 400))
    signal = fit_factors(standardized(Z), np.ones(200), 1)
    assert np.log(signal.widths**2).std() < 0.05


def test_factors_weigh_rows(rng):
    """As rows that are repeated, apart from the degrees of freedom, which are those of distinct rows."""
    Z = rng.normal(size=(60, 1)) + rng.normal(size=(60, 40))
    weights = rng.integers(1, 4, size=60)
    one = fit_factors(Z, weights.astype(float), 1, own_noise=False)
    repeated = fit_factors(np.repeat(Z, weights, axis=0), np.ones(weights.sum()), 1, own_noise=False)
    np.testing.assert_allclose(abs(one.axes[0] @ repeated.axes[0]), 1.0, rtol=1e-6)
    np.testing.assert_allclose(one.variances, repeated.variances, rtol=1e-6)
    np.testing.assert_allclose(
        fit_factors(Z, 3.0 * weights, 1).widths, fit_factors(Z, 1.0 * weights, 1).widths
    )


def test_missing_cells_of_wide_tables_are_filled_in(rng):
    """The scores of a table with a tenth of its cells missing are nearly those of the whole table."""
    Z = standardized(rng.normal(size=(300, 3)) @ rng.normal(size=(3, 60)) + 0.7 * rng.normal(size=(300, 60)))
    whole = find_signal(Z, np.ones(300))
    lost = np.where(rng.random(Z.shape) < 0.1, np.nan, Z)
    found = find_signal(lost, np.ones(300))
    assert found.n_scores == whole.n_scores == 3
    angles = np.linalg.svd(
        (found.axes / found.widths) @ np.linalg.pinv(whole.axes / whole.widths), compute_uv=False
    )
    assert angles.min() > 0.9
    own, other = found.scores(lost), found.scores(Z)
    error = ((own - other) ** 2).mean(axis=0).sum() / found.variances.sum()
    assert error < 2 * found.undetermined(lost).mean() < 0.1


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


# ---- wide tables -----------------------------------------------------------------------------------------------


def wide(rng, n_rows=120, n_columns=300):
    """Three groups in a plane of many columns, with noise that columns share."""
    z = np.arange(n_rows) % 3
    scores = 4.0 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[z] + 0.3 * rng.normal(size=(n_rows, 2))
    X = scores @ rng.normal(size=(2, n_columns)) + rng.normal(size=(n_rows, 1)) @ rng.normal(
        size=(1, n_columns)
    )
    return 10.0 + 3.0 * (X + rng.normal(size=X.shape)), z


@pytest.fixture(scope="module")
def wide_table():
    return wide(np.random.default_rng(5))


@pytest.fixture(scope="module")
def wide_model(wide_table):
    return Mixture(n_draws=10, burn_in=10, n_chains=2, random_state=0).fit(wide_table[0])


def test_more_columns_than_rows(wide_model, wide_table, tmp_path):
    X, z = wide_table
    assert partita.metrics.adjusted_rand(wide_model.labels_, z) == 1.0
    assert "3 principal directions of 300 real columns" in wide_model.fit_report_["signal"].message
    mean = next(iter(wide_model.profiles_.values()))["mean"]
    own = [X[wide_model.labels_ == k, 0].mean() for k in range(3)]
    assert np.abs(mean - own).max() < X[:, 0].std()
    wide_model.save(tmp_path / "wide.npz")
    loaded = partita.load(tmp_path / "wide.npz")
    np.testing.assert_allclose(loaded.score_samples(X), wide_model.score_samples(X))
    size = (tmp_path / "wide.npz").stat().st_size
    assert size < 300 * 300 * 8 / 2, "the file holds no matrix of all pairs of columns"


def test_a_wide_table_with_missing_cells(wide_table):
    X, z = wide_table
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    model = Mixture(n_draws=10, burn_in=10, n_chains=2, random_state=0).fit(X)
    assert partita.metrics.adjusted_rand(model.labels_, z) == 1.0
    assert "signal" in model.fit_report_
    note = model.fit_report_["filled"].message
    assert "filled in" in note and "family={'real': 'gaussian'}" in note
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_wide_table_with_few_observed_cells_is_modeled_in_its_columns(wide_table):
    X = np.where(np.random.default_rng(0).random(wide_table[0].shape) < 0.98, np.nan, wide_table[0])
    model = Mixture(n_draws=5, burn_in=5, n_chains=2, random_state=0).fit(X[:, :40])
    assert "signal" not in model.fit_report_
