"""Row factors of groups of columns: where they are found, and what views with correlated columns become."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from partita import CrossCat, OverlappingViews, load
from partita.datasets import make_planted_views
from partita.metrics import adjusted_rand, match_labelings
from partita.views.draws import Draw
from partita.views.new_rows import place_rows
from partita.views.nuisance import mean_row_factors, regress_on_rows
from partita.views.overlapping.additive import read_reals
from partita.views.overlapping.group_factors import choose_tied, factor_analysis, find_group_factors, fit_tied
from partita.views.overlapping.row_factors import find_row_factors
from partita.views.predictive import log_density_rows, log_states
from tests.views.test_row_factors import normal_draw

SHORT = {"n_chains": 2, "n_draws": 10, "burn_in": 10, "random_state": 0}


def correlated_views(seed, n_views=4, loading=1.5):
    """Three clusters per view in six columns, which share a factor inside the clusters."""
    return make_planted_views(
        1, 500, 6 * n_views, n_views, 3, separation=3.0, loading=loading, random_state=seed
    )


def standardized(X):
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


def test_covariances_of_factors_are_recovered(rng):
    """With many rows the fitted covariance is that of the data, and no other labels are better."""
    loadings = rng.normal(size=(2, 7))
    noise = rng.uniform(0.3, 1.0, 7)
    covariance = loadings.T @ loadings + np.diag(noise)
    found, left = factor_analysis(covariance, None, None, 2, 3000)
    assert found.T @ found + np.diag(left) == pytest.approx(covariance, abs=0.02)
    z = rng.integers(3, size=4000)
    A = 4.0 * rng.normal(size=(3, 7))[z] + rng.multivariate_normal(np.zeros(7), covariance, 4000)
    fitted = fit_tied(A, z, 2)
    assert adjusted_rand(fitted.labels, z) > 0.9
    assert np.abs(fitted.loadings.T @ fitted.loadings + np.diag(fitted.noise) - covariance).max() < 0.4


@pytest.mark.parametrize("rank", [0, 1])
def test_the_criterion_tells_factors_from_clusters(rank, global_random_seed):
    rng = np.random.default_rng([7, global_random_seed])
    z, f = rng.integers(3, size=500), rng.normal(size=500)
    centers = np.array([[4, 0, -4], [-4, 4, 0], [0, -4, 4], [4, -4, 0], [4, 0, -4], [0, 4, -4]]).T
    X = centers[z] + rng.normal(size=(500, 6)) + rank * 2.0 * np.outer(f, [1, -1, 1, 1, -1, 1])
    found = choose_tied(standardized(X), rng)
    assert found.rank == rank
    assert adjusted_rand(found.labels, z) > 0.95


def test_groups_of_columns_have_their_own_factors(global_random_seed):
    planted = correlated_views(global_random_seed)
    X = standardized(planted.X)
    found = find_group_factors(X, np.arange(len(X)), np.random.default_rng(0))
    # columns with small loadings may be left out, but no factor is one of columns of two views
    n_views = (found.parts.astype(int) @ planted.feature_views > 0).sum(axis=1)
    assert (n_views == 1).all()
    assert len(found.parts) >= 3
    # the factors of a group are no factors of the others
    assert found.rows.shape == (500, len(found.parts))
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    holes = find_group_factors(X, np.arange(0, 500, 2), np.random.default_rng(0))
    assert np.isfinite(holes.rows).all()
    assert np.array_equal(np.isnan(holes.rest), np.isnan(X))


def test_views_of_independent_columns_have_no_factors(global_random_seed):
    planted = correlated_views(global_random_seed, loading=0.0)
    X = standardized(planted.X)
    assert find_group_factors(X, np.arange(len(X)), np.random.default_rng(0)).parts.sum() == 0
    few = find_row_factors(read_reals(X[:20]), "auto", np.random.default_rng(0), 1)
    assert few.rows is None


def test_loadings_of_columns_without_a_part_are_zero(rng):
    """The others are those of a regression on the factors that they have."""
    F, rest = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    weight, parts = rng.uniform(0.5, 2.0, size=(30, 3)), np.array([[True, False, True], [True, True, False]])
    found = regress_on_rows(rest, F, weight, 0.7, None, parts)
    assert (found[~parts] == 0).all()
    for d in range(3):
        own = np.flatnonzero(parts[:, d])
        alone = regress_on_rows(rest[:, [d]], F[:, own], weight[:, [d]], 0.7, None)
        assert found[own, d] == pytest.approx(alone[:, 0])
    drawn = regress_on_rows(rest, F, weight, 0.7, rng, parts)
    assert (drawn[~parts] == 0).all()
    assert (drawn[parts] != 0).all()


def test_factors_of_different_columns_are_not_mixed(rng):
    """Draws agree up to signs; a factor of a group stays one of this group."""
    rows = rng.normal(size=(40, 2))
    loadings = np.array([[1.0, 2.0, 1.5, -1.0], [0.0, 0.0, 3.0, 3.0]])
    one = Draw(np.ones((4, 1), bool), np.zeros((40, 1), int), (), 0.0, 0, np.ones(2), rows, loadings)
    other = one._replace(rows=rows * [1.0, -1.0], loadings=loadings * [[1.0], [-1.0]])
    swapped = one._replace(rows=rows[:, ::-1], loadings=loadings[::-1])
    found = mean_row_factors([one, other, swapped], 4)
    assert (found.loadings[:2, 1] == 0).all()
    assert found.rows @ found.loadings.T == pytest.approx(rows @ loadings)
    assert (found.rows**2).mean(axis=0) == pytest.approx(1.0)


@pytest.mark.parametrize("estimator", [CrossCat, OverlappingViews])
def test_correlated_columns_open_no_clusters(estimator, tmp_path):
    planted = correlated_views(3, n_views=2)
    options = SHORT | ({} if estimator is CrossCat else {"n_init": 2})
    X, new, labels = planted.X[:400], planted.X[400:], planted.view_labels[:400]
    model = estimator(**options).fit(X)
    found = match_labelings(labels, model.view_labels_).average
    without = estimator(nuisance=0, **options).fit(X)
    assert found > 0.93
    assert model.n_views_ == 2
    # without factors, further clusters or further views describe the covariance
    n_clusters, more = (int((1 + one.view_labels_.max(axis=0)).sum()) for one in (model, without))
    assert n_clusters <= 9
    assert more > n_clusters + 2
    assert match_labelings(planted.view_labels[400:], model.predict(new)).average > 0.9
    if estimator is CrossCat:  # chains begin with the clusters that were found with the factors
        assert all(posterior[3] > 0.8 for posterior in model.n_clusters_posterior_)
    groups = (model.loadings_ != 0).sum(axis=0)
    assert (groups == 6).sum() >= 2
    assert "group" in str(model.fit_report_)
    model.save(tmp_path / "model.partita")
    again = load(tmp_path / "model.partita")
    assert np.array_equal(again.loadings_, model.loadings_)
    assert again.score_samples(new[:9]) == pytest.approx(model.score_samples(new[:9]))
    assert model.score(new) > without.score(new)


def test_states_of_new_rows_with_factors_of_groups(rng):
    """Two clusters that are near each other along the factor: without it every row seems to be in the wrong one."""
    loadings = np.concatenate([np.full((1, 6), 2.0), np.zeros((1, 2))], axis=1)
    means = np.array([[0.5, -0.5] * 3 + [0.0] * 2, [-0.5, 0.5] * 3 + [1.0] * 2]).T
    means[:6] += [[0.0, 6.0]]
    draw = normal_draw(means, np.full(8, 0.05), loadings)
    z, f = rng.integers(2, size=300), rng.normal(size=300)
    f = f + 3.0 * (1 - 2 * z)  # where the other cluster begins
    X = means.T[z] + f[:, None] * loadings + np.sqrt(0.05) * rng.normal(size=(300, 8))
    X[0, 1:3] = np.nan
    placed = place_rows(draw, [X])
    assert (log_states(draw.factors[0], placed.data).argmax(axis=1) == z).mean() > 0.97
    density = log_density_rows(draw, placed.data) + placed.log_correction
    covariance = loadings.T @ loadings + 0.05 * np.eye(8)
    exact = logsumexp([multivariate_normal(m, covariance).logpdf(X[1:]) for m in means.T], axis=0) - np.log(2)
    assert density[1:] == pytest.approx(exact, abs=0.3)
    assert density[1:].mean() == pytest.approx(exact.mean(), abs=0.03)
