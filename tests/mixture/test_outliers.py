"""Outliers: rows that belong to no cluster."""

import numpy as np
import pytest

from partita import Mixture, load
from partita.report import write_report

N_OUT = 15


def two_groups_and_outliers(seed, n=285):
    """Two round groups, and one row in twenty anywhere."""
    rng = np.random.default_rng(seed)
    groups = rng.normal(np.repeat([[-3.0, 0.0], [3.0, 1.0]], [n // 2, n - n // 2], axis=0), 0.6)
    return np.concatenate([groups, rng.uniform(-8, 8, (N_OUT, 2))])


def short(**parameters):
    return Mixture(**({"n_chains": 2, "n_draws": 40, "burn_in": 60, "random_state": 0} | parameters))


@pytest.fixture(scope="module")
def fits(global_random_seed):
    tables = [two_groups_and_outliers(global_random_seed + seed) for seed in range(3)]
    return tables, [[short(outliers=outliers).fit(X) for X in tables] for outliers in (False, True)]


pytestmark = pytest.mark.filterwarnings("ignore")  # short chains say so


def test_outliers_take_no_clusters(fits):
    """20 such tables, chains of 100 draws: with noise 17 had 2 clusters and three had 3, without it 3 to 8 (mean 4.7).
    8 to 15 of 15 outliers were found (mean 12.6, deviation 1.6), and 0 to 2 rows of the groups with them (mean 0.6).
    By these figures the limits are passed by chance once in some ten thousand runs, mostly by the numbers of clusters.
    """
    _, (without, with_noise) = fits
    extra = [sum(model.n_clusters_ - 2 for model in models) for models in (without, with_noise)]
    assert extra[1] <= 3
    assert extra[1] < extra[0]
    found = sum((model.labels_[-N_OUT:] < 0).sum() for model in with_noise)
    false = sum((model.labels_[:-N_OUT] < 0).sum() for model in with_noise)
    assert found >= 0.55 * 3 * N_OUT
    assert false <= 12
    for model in without:
        assert model.labels_.min() == 0
        assert not hasattr(model, "outlier_probability_")


def test_attributes_agree(fits):
    _, (_, models) = fits
    for model in models:
        outlier = model.labels_ < 0
        np.testing.assert_array_equal(outlier, model.outlier_probability_ > 0.5)
        np.testing.assert_array_equal(model.confidence_[outlier], model.outlier_probability_[outlier])
        assert model.n_clusters_ == len(set(model.labels_[~outlier].tolist())) == len(model.weights_)
        np.testing.assert_array_equal((model.trace_.labels < 0).mean(axis=0), model.outlier_probability_)
        n_clusters = [len(set(z[z >= 0].tolist())) for z in model.trace_.labels]
        np.testing.assert_array_equal(model.trace_.n_clusters, n_clusters)
        assert 0 < model.outlier_share_ < 0.2
        assert model._fitted.statistics.n.sum() == np.count_nonzero(~outlier)  # no outlier in the profiles


def test_predictions_know_outliers(fits):
    tables, (_, models) = fits
    X, model = tables[0], models[0]
    new = np.array([[-3.0, 0.0], [3.0, 1.0], [0.0, -7.0], [80.0, -90.0], [np.nan, np.nan]])
    labels, proba = model.predict(new), model.predict_proba(new)
    assert sorted(labels[:2]) == [0, 1]
    np.testing.assert_array_equal(labels[2:4], -1)
    outside = 1.0 - proba.sum(axis=1)
    np.testing.assert_array_equal(labels < 0, outside > 0.5)
    assert outside[4] == pytest.approx(model.outlier_share_)  # nothing seen: the share
    firm = (np.abs(model.outlier_probability_ - 0.5) > 0.4) & (model.confidence_ > 0.9)
    np.testing.assert_array_equal(model.predict(X)[firm], model.labels_[firm])


def test_densities_add_up(fits):
    """Over the range and far beyond, in the user's units, on a grid."""
    X, model = fits[0][0], fits[1][1][0]
    edges = np.sinh(np.linspace(-7, 7, 700)) * 2
    middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    grid = np.array([(x, y) for x in middle for y in middle])
    mass = np.exp(model.score_samples(grid)) * np.outer(width, width).ravel()
    assert mass.sum() == pytest.approx(1.0, abs=0.02)
    assert model.score_samples(X[-N_OUT:]).min() > -12  # an outlier is rare, not impossible


def test_units_do_not_matter(global_random_seed):
    X = two_groups_and_outliers(global_random_seed + 4, 100)
    one, two = (short(outliers=True, n_draws=20, burn_in=20).fit(table) for table in (X, 4.0 * X))
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_saved_and_loaded(fits, tmp_path):
    X, model = fits[0][0], fits[1][1][0]
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for name in ("labels_", "outlier_probability_", "outlier_share_", "confidence_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_report_leaves_outliers_out(fits, tmp_path):
    X, model = fits[0][0], fits[1][1][0]
    page = write_report(model, tmp_path / "page.html", X=X, truth=model.labels_).read_text(encoding="utf-8")
    assert "outliers" in page
    assert "cluster -1" not in page


def test_weights_and_rows_that_take_no_part(global_random_seed):
    X = two_groups_and_outliers(global_random_seed + 5, 60)[:65]  # the last five rows are outliers
    weights = np.ones(65)
    weights[[0, 64]], weights[1] = 0, 2
    model = short(outliers=True, n_draws=30, burn_in=30).fit(X, sample_weight=weights)
    assert np.isfinite(model.outlier_probability_).all()
    assert model.labels_[0] == model.predict(X[:1])[0]
    assert model.labels_[64] == model.predict(X[64:])[0]
    refit = model.set_params(outliers=False).fit(X)
    assert not hasattr(refit, "outlier_probability_")


@pytest.mark.slow
def test_mixed_tables_with_holes(global_random_seed):
    """Twelve answers, a count and a number; the last row of either group contradicts itself."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], 60)
    table = {f"q{j}": np.where(rng.random(120) < 0.95, z, 1 - z) for j in range(12)}
    table["count"] = rng.poisson(np.where(z == 0, 3, 30)).astype(float)
    table["real"] = rng.normal(5.0 * z, 1.0)
    for j in range(12):
        table[f"q{j}"][[59, 119]] = j % 2
    table["real"][::7] = np.nan
    kinds = {name: "categorical" if name[0] == "q" else name for name in table}
    X = np.column_stack(list(table.values()))
    model = short(outliers=True, kinds=list(kinds.values())).fit(X)
    assert model.n_clusters_ == 2
    assert set(np.flatnonzero(model.labels_ < 0)) >= {59, 119}
    assert np.count_nonzero(model.labels_ < 0) <= 6


def test_partial_fit_is_refused_for_later_rows(fits):
    X, model = fits[0][0], fits[1][1][0]
    with pytest.raises(ValueError, match="cannot tell outliers"):
        model.partial_fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inference": "vb"}, "outliers=True needs inference='gibbs'"),
        ({"inference": "subclusters"}, "outliers=True needs inference='gibbs'"),
        ({"family": "student"}, "outliers=True needs conjugate families"),
    ],
)
def test_refused_where_no_engine_can(parameters, message, global_random_seed):
    with pytest.raises(ValueError, match=message):
        Mixture(outliers=True, **parameters).fit(two_groups_and_outliers(global_random_seed, 40))
