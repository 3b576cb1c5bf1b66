"""Row factors: their conditional laws, the scores given them, new rows, and tables in which rows share a brightness."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal

from partita import CrossCat, OverlappingViews, load
from partita.datasets import make_planted_views, make_stick_figures
from partita.families import GaussianDiagonal
from partita.metrics import match_labelings
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.new_rows import place_rows
from partita.views.nuisance import draw_row_factors, log_row_volume, mean_row_factors, regress_on_rows
from partita.views.overlapping.additive import AdditiveScores, Effects, read_reals
from partita.views.overlapping.row_factors import find_row_factors
from partita.views.predictive import log_density_rows

SHORT = {"n_chains": 1, "n_draws": 4, "burn_in": 4, "random_state": 0}


def test_moments_of_row_factors_and_loadings(rng):
    """Means and covariances of the draws are those of the joint normal distribution."""
    loadings, precision = rng.normal(size=(2, 4)), rng.uniform(0.5, 2.0, 4)
    raw = rng.normal(size=(1, 4))
    raw[0, 1] = np.nan
    seen = ~np.isnan(raw[0])
    L = loadings[:, seen]
    covariance = np.linalg.inv(np.eye(2) + L * precision[seen] @ L.T)
    mean = covariance @ L @ (precision[seen] * raw[0, seen])
    draws = draw_row_factors(np.repeat(raw, 40_000, axis=0), loadings, precision, rng)
    assert draw_row_factors(raw, loadings, precision, None)[0] == pytest.approx(mean)
    z = (draws.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / len(draws))
    assert np.abs(z).max() < 6
    assert np.abs(np.cov(draws.T) - covariance).max() < 6 * np.sqrt(2.0 / len(draws)) * covariance.max()
    assert log_row_volume(seen[None], loadings, precision) == pytest.approx(
        0.5 * np.log(np.linalg.det(2 * np.pi * covariance))
    )
    # loadings are to rows what rows are to loadings
    turned = regress_on_rows(raw.T, loadings.T, np.where(seen, precision, 0.0)[:, None], 1.0, None)
    assert turned[:, 0] == pytest.approx(mean)


def test_scores_given_row_factors(rng):
    """The score of a column is the density of a multivariate t distribution."""
    N, X, z = 7, rng.normal(size=(7, 2)), np.array([0, 0, 1, 1, 2, 2, 2])
    X[3, 1] = np.nan
    hyper = Effects(effect=1.5, center=9.0, a=1.2, b=0.4, loading=0.8, rows=rng.normal(size=(N, 2)))
    scores = AdditiveScores(read_reals(X), (z,), hyper)
    W = np.column_stack([np.eye(3)[z], np.ones(N), hyper.rows])
    for views, prior in (((), [0, 0, 0, 9.0, 0.8, 0.8]), ((0,), [1.5, 1.5, 1.5, 9.0, 0.8, 0.8])):
        for d in range(2):
            seen = ~np.isnan(X[:, d])
            x, n = X[seen, d], seen.sum()
            V = np.eye(n) + (W[seen] * prior) @ W[seen].T
            expected = gammaln(hyper.a + n / 2) - gammaln(hyper.a) + hyper.a * np.log(hyper.b)
            expected -= 0.5 * np.linalg.slogdet(2 * np.pi * V)[1]
            expected -= (hyper.a + n / 2) * np.log(hyper.b + 0.5 * x @ np.linalg.solve(V, x))
            assert scores(views)[d] == pytest.approx(expected)


def normal_draw(means, variances, loadings, n=1e7):
    """A draw of one view with almost certain means [column, state] and variances."""
    D, K = means.shape
    family = GaussianDiagonal(np.zeros(D), np.full(D, 1e-3), np.full(D, 1.0), np.full(D, 1e-3))
    S = np.zeros((3 * D, K))
    S[0::3], S[1::3], S[2::3] = n, n * means, n * (means**2 + variances[:, None])
    factor = Factor(np.arange(D), np.log(np.full(K, 1 / K)), (FactorBlock(0, np.arange(D), family, S),))
    rows = np.zeros((1, len(loadings)))
    return Draw(np.ones((D, 1), bool), np.zeros((1, 1), int), (factor,), 0.0, 0, np.ones(2), rows, loadings)


def test_density_of_new_rows(rng):
    """With one state the correction is exact; without row factors nothing changes."""
    variances, loadings = rng.uniform(0.2, 1.0, 5), rng.normal(size=(2, 5))
    draw, X = normal_draw(np.zeros((5, 1)), variances, loadings), rng.normal(size=(6, 5))
    X[0, 2] = np.nan
    placed = place_rows(draw, [X])
    found = log_density_rows(draw, placed.data) + placed.log_correction
    covariance = np.diag(variances) + loadings.T @ loadings
    for x, value in zip(X, found, strict=True):
        seen = ~np.isnan(x)
        exact = multivariate_normal(np.zeros(seen.sum()), covariance[np.ix_(seen, seen)]).logpdf(x[seen])
        assert value == pytest.approx(exact, abs=1e-3)
    plain = draw._replace(rows=np.zeros((1, 0)), loadings=np.zeros((0, 5)))
    assert place_rows(plain, [X]).data[0] is X


def test_states_of_new_rows_do_not_depend_on_row_factors(rng):
    """Rows of two clusters, far apart beside a large brightness that hides them in every single column."""
    means = np.array([[-1.0, 1.0], [1.0, -1.0]] * 10)
    draw = normal_draw(means, np.full(20, 0.1), np.full((1, 20), 3.0))
    z, f = rng.integers(2, size=200), rng.normal(size=200)
    X = means.T[z] + 3.0 * f[:, None] + np.sqrt(0.1) * rng.normal(size=(200, 20))
    placed = place_rows(draw, [X])
    assert np.abs(placed.rows[:, 0] - f).max() < 0.2
    assert (np.abs(placed.data[0] - means.T[z]) < 2.5).all()


def test_mean_row_factors_do_not_depend_on_rotations(rng):
    rows, loadings = rng.normal(size=(30, 2)), rng.normal(size=(2, 6))
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    one = Draw(np.ones((6, 1), bool), np.zeros((30, 1), int), (), 0.0, 0, np.ones(2), rows, loadings)
    other = one._replace(rows=rows @ turn, loadings=turn.T @ loadings)
    F, mean_loadings = mean_row_factors([one, other], 6)
    assert pytest.approx(rows @ loadings) == F @ mean_loadings.T
    assert pytest.approx(np.eye(2)) == F.T @ F / 30


def test_planted_views_need_no_row_factor(rng):
    planted = make_planted_views(1, 500, 40, 4, random_state=rng)
    X = (planted.X - planted.X.mean(axis=0)) / planted.X.std(axis=0)
    assert find_row_factors(read_reals(X), "auto", rng, 4) is None


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [OverlappingViews, CrossCat])
def test_stick_figures(estimator, global_random_seed, tmp_path):
    figures = make_stick_figures(600, 14, random_state=global_random_seed)
    options = SHORT | ({"n_init": 1} if estimator is OverlappingViews else {})
    model = estimator(**options).fit(figures.X)
    found = match_labelings(figures.view_labels, model.view_labels_)
    assert found.average > 0.95
    assert model.row_factors_.shape[1] >= 1
    assert "row_factors" in model.fit_report_
    assert model.loadings_.shape == (196, model.row_factors_.shape[1])
    assert match_labelings(figures.view_labels, model.predict(figures.X)).average > 0.9
    model.save(tmp_path / "model.partita")
    again = load(tmp_path / "model.partita")
    assert np.array_equal(again.row_factors_, model.row_factors_)
    assert again.score_samples(figures.X[:5]) == pytest.approx(model.score_samples(figures.X[:5]))


def test_nuisance_off_and_refused(rng):
    X = rng.normal(size=(40, 6)) + 3 * rng.normal(size=(40, 1))
    for estimator in (OverlappingViews, CrossCat):
        assert estimator(nuisance=0, **SHORT).fit(X).row_factors_.shape == (40, 0)
        assert estimator(nuisance=1, **SHORT).fit(X).row_factors_.shape == (40, 1)
        with pytest.raises(ValueError, match="nuisance=1 needs"):
            estimator(nuisance=1, **SHORT).fit((X > 0).astype(int))
