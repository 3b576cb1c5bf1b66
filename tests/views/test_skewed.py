"""Skewed real columns in models of views: fewer clusters, and answers in the user's units."""

import numpy as np
import pytest

from partita import CrossCat, OverlappingViews, load
from partita.metrics import match_labelings

SHORT = {"n_chains": 1, "n_draws": 6, "burn_in": 6, "random_state": 0}


def skewed_table(rng, n_rows=300):
    """Two views of lognormal columns, two groups in each, and a normal column of the second view."""
    labels = rng.integers(2, size=(n_rows, 2))
    columns = [np.exp(2.5 * labels[:, v] + 0.7 * rng.normal(size=n_rows)) for v in (0, 0, 0, 1, 1)]
    columns.append(4.0 * labels[:, 1] + rng.normal(size=n_rows))
    X = 100.0 * np.column_stack(columns)
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, labels


@pytest.fixture(scope="module")
def table(global_random_seed):
    return skewed_table(np.random.default_rng(global_random_seed))


@pytest.fixture(scope="module")
def model(table):
    return CrossCat(**SHORT).fit(table[0])


@pytest.mark.parametrize("estimator", [CrossCat, OverlappingViews])
def test_skewed_columns_do_not_open_clusters(estimator, table):
    X, labels = table
    model = estimator(**SHORT).fit(X)
    assert "powers" in model.fit_report_
    assert match_labelings(labels, model.view_labels_[:, model.counted_views_]).average > 0.85
    plain = estimator(family={"real": "gaussian"}, **SHORT).fit(X)
    assert "powers" not in plain.fit_report_
    assert model.score(X) > plain.score(X) + 0.3  # nats per row
    assert model.view_labels_.max() <= plain.view_labels_.max()


def test_densities_are_in_the_units_of_the_table(model):
    """The density of a cell integrates to 1, alone and given another cell; surprisal is minus its log.

    Surprisal averages conditional densities over the draws, `log_density` divides the averages of two.
    """
    x = np.exp(np.linspace(-3.0, 14.0, 4000))
    X = np.full((len(x), 6), np.nan)
    X[:, 1] = x
    given = np.full((len(x), 6), np.nan)
    given[:, 0] = 900.0
    for p in (np.exp(model.log_density(X)), np.exp(model.log_density(X, given=given))):
        assert np.trapezoid(p, x) == pytest.approx(1.0, abs=0.02)
    both = np.where(np.isnan(X), given, X)
    assert model.surprisal(both)[:, 1] == pytest.approx(-model.log_density(X, given=given), abs=0.02)


def test_cells_are_in_the_units_of_the_table(model, table):
    """Mean and deviation of a missing cell are those of its density, and of simulated cells; profiles agree."""
    x = np.exp(np.linspace(-3.0, 14.0, 4000))
    X, given = np.full((len(x), 6), np.nan), np.full((len(x), 6), np.nan)
    X[:, 1], given[:, 0] = x, 900.0
    p = np.exp(model.log_density(X, given=given))
    p /= np.trapezoid(p, x)
    mean = np.trapezoid(p * x, x)
    sd = np.sqrt(np.trapezoid(p * (x - mean) ** 2, x))
    found = model.predict_column(given[:1], 1)
    # tails beyond the range of the table are cut, and normal cells stand for Student's t
    assert found["mean"][0] == pytest.approx(mean, rel=0.1)
    assert found["sd"][0] == pytest.approx(sd, rel=0.4)
    filled, doubt = model.impute(given[:1])
    assert filled[0, 1] == found["mean"][0] and doubt[0, 1] == found["sd"][0] and filled[0, 0] == 900.0
    drawn = model.simulate(2000, random_state=0)
    quantiles = [0.1, 0.5, 0.9]
    for d in range(6):
        seen = np.quantile(table[0][~np.isnan(table[0][:, d]), d], quantiles)
        spread = np.nanstd(table[0][:, d])
        assert np.abs(np.quantile(drawn[:, d], quantiles) - seen).max() < 0.5 * spread
    profiles = [view["x1"] for view in model.profiles_ if "x1" in view][0]
    assert (profiles["mean"] > 0).all() and "median" in profiles


def test_skewed_columns_are_stored(model, table, tmp_path):
    model.save(tmp_path / "model.partita")
    again = load(tmp_path / "model.partita")
    X = table[0][:10]
    assert again.score_samples(X) == pytest.approx(model.score_samples(X))
    assert again.simulate(3, random_state=0) == pytest.approx(model.simulate(3, random_state=0))
    assert np.array_equal(again.predict(X), model.predict(X))


def test_units_do_not_matter(model, table):
    """Another unit changes densities by its logarithm."""
    X = table[0]
    other = CrossCat(**SHORT).fit(X / 100.0)
    assert np.array_equal(other.view_labels_, model.view_labels_)
    n_seen = (~np.isnan(X[:20])).sum(axis=1)
    assert other.score_samples(X[:20] / 100.0) == pytest.approx(
        model.score_samples(X[:20]) + n_seen * np.log(100.0)
    )
