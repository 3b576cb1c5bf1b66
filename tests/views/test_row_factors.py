"""Row factors: their conditional laws, the scores given them, new rows, and tables in which rows share a brightness."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal, multivariate_t, norm

from partita import CrossCat, OverlappingViews, load
from partita.datasets import make_planted_views, make_stick_figures
from partita.engines.passes.rows import n_cache
from partita.families import GaussianDiagonal
from partita.families.contract import draw
from partita.families.rows import add_statistics, log_marginals, refresh_clusters, score_rows
from partita.families.sized_gaussian import SizedGaussian
from partita.families.sized_noise import Sized, SizedNoise
from partita.metrics import match_labelings
from partita.views.draw_queries import predict_cells, simulate_rows
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.new_rows import place_rows
from partita.views.nuisance import (
    along_rows,
    draw_row_factors,
    log_row_volume,
    mean_row_factors,
    regress_on_rows,
    row_sizes,
)
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


@pytest.mark.parametrize(
    ("gain", "parts"),
    [(None, None), (np.array([0.3, -0.2]), None), (None, np.array([[True, False], [True, True]]))],
)
def test_scores_given_row_factors(gain, parts, rng):
    """The score of a column is the density of a multivariate t distribution."""
    N, X, z = 7, rng.normal(size=(7, 2)), np.array([0, 0, 1, 1, 2, 2, 2])
    X[3, 1] = np.nan
    hyper = Effects(1.5, 9.0, 1.2, 0.4, 0.8, rows=rng.normal(size=(N, 2)), gain=gain, parts=parts)
    scores = AdditiveScores(read_reals(X), (z,), hyper)
    sizes = np.ones(N) if gain is None else 1.0 + hyper.rows @ gain
    W = np.column_stack([sizes[:, None] * np.eye(3)[z], sizes, hyper.rows])
    for views, of_view in (((), 0.0), ((0,), 1.5)):
        for d in range(2):
            own = np.ones(2) if parts is None else parts[:, d]
            prior = np.concatenate([np.full(3, of_view), [9.0], 0.8 * own])
            seen = ~np.isnan(X[:, d])
            x, n = X[seen, d], seen.sum()
            V = np.eye(n) + (W[seen] * prior) @ W[seen].T
            expected = gammaln(hyper.a + n / 2) - gammaln(hyper.a) + hyper.a * np.log(hyper.b)
            expected -= 0.5 * np.linalg.slogdet(2 * np.pi * V)[1]
            expected -= (hyper.a + n / 2) * np.log(hyper.b + 0.5 * x @ np.linalg.solve(V, x))
            assert scores(views)[d] == pytest.approx(expected)
            assert scores.of_columns(views, [d])[0] == pytest.approx(expected)


def test_labels_given_sizes(rng):
    """Evidence and predictive densities of clusters whose means are multiplied by the sizes of the rows."""
    X, size, prior = rng.normal(size=(6, 2)), rng.uniform(0.3, 2.0, 6), np.array([0.4, 1.5])
    X[2, 1] = np.nan
    family, data, z = SizedNoise(prior), Sized(X, size), np.array([0, 0, 0, 1, 1, 1])
    S = np.zeros((4, 2))
    add_statistics(family, data, z, S)
    found = log_marginals(family, S)
    C, L = np.zeros((n_cache(family), 2)), np.zeros((6, 2))
    refresh_clusters(family, S, C, 2)
    score_rows(family, data, np.arange(6), C, L)
    expected = np.zeros((6, 2))
    for d, k in itertools.product(range(2), range(2)):
        own = (z == k) & ~np.isnan(X[:, d])
        b, x = size[own], X[own, d]
        V = np.eye(len(x)) + np.outer(b, b) / prior[d]
        value = multivariate_normal(np.zeros(len(x)), V).logpdf(x) - norm.logpdf(x).sum()
        assert found[d, k] == pytest.approx(value)
        weight = prior[d] + b @ b
        for i in np.flatnonzero(~np.isnan(X[:, d])):
            law = norm(size[i] * (b @ x) / weight, np.sqrt(1.0 + size[i] ** 2 / weight))
            expected[i, k] += law.logpdf(X[i, d]) - norm.logpdf(X[i, d])
    assert pytest.approx(expected) == L


def test_columns_given_sizes(rng):
    """Evidence and predictive densities with unknown variances: a multivariate t distribution."""
    X, size = rng.normal(size=(7, 2)), rng.uniform(-0.3, 2.0, 7)
    X[2, 1] = np.nan
    family = SizedGaussian(
        np.array([0.3, -0.5]), np.array([0.4, 1.5]), np.array([1.5, 2.5]), np.array([0.4, 0.8])
    )
    data, z = Sized(X, size), np.array([0, 0, 0, 1, 1, 1, 1])

    def density(d, rows):
        b, x, V = size[rows], X[rows, d], np.eye(len(rows))
        V = (V + np.outer(b, b) / family.k[d]) * family.b[d] / family.a[d]
        return multivariate_t(b * family.m[d], V, df=2.0 * family.a[d]).logpdf(x) if len(rows) else 0.0

    S, C, L = np.zeros((8, 2)), np.zeros((n_cache(family), 2)), np.zeros((7, 2))
    add_statistics(family, data, z, S)
    refresh_clusters(family, S, C, 2)
    score_rows(family, data, np.arange(7), C, L)
    found, expected = log_marginals(family, S), np.zeros((7, 2))
    for d, k in itertools.product(range(2), range(2)):
        own = np.flatnonzero((z == k) & ~np.isnan(X[:, d]))
        assert found[d, k] == pytest.approx(density(d, own))
        for i in np.flatnonzero(~np.isnan(X[:, d])):
            # a row of the cluster as if it were new: the predictive knows its own cell, too
            b, x = np.append(size[own], size[i]), np.append(X[own, d], X[i, d])
            V = (np.eye(len(x)) + np.outer(b, b) / family.k[d]) * family.b[d] / family.a[d]
            both = multivariate_t(b * family.m[d], V, df=2.0 * family.a[d]).logpdf(x)
            expected[i, k] += both - density(d, own)
    assert pytest.approx(expected) == L


def test_means_and_precisions_given_sizes(rng):
    """Moments of the drawn parameters are those of the normal-inverse-gamma posterior, found by quadrature."""
    size, x = np.array([0.5, 2.0, 1.0, 1.5]), np.array([[1.0], [3.0], [1.5], [2.0]])
    family = SizedGaussian(np.array([0.2]), np.array([0.5]), np.array([3.0]), np.array([1.0]))
    S = np.zeros((4, 1))
    add_statistics(family, Sized(x, size), np.zeros(4, np.int64), S)
    n = 40_000
    mean, tau = draw(family, np.repeat(S, n, axis=1), rng)
    grid_mean, grid_tau = np.meshgrid(np.linspace(-2, 5, 700), np.linspace(1e-3, 15, 700), indexing="ij")
    log_p = 2.0 * np.log(grid_tau) - grid_tau + 0.5 * np.log(grid_tau)
    log_p -= 0.25 * grid_tau * (grid_mean - 0.2) ** 2
    for s, value in zip(size, x[:, 0], strict=True):
        log_p += 0.5 * np.log(grid_tau) - 0.5 * grid_tau * (value - s * grid_mean) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    for drawn, grid in ((mean, grid_mean), (tau, grid_tau)):
        exact = (p * grid).sum()
        sd = np.sqrt((p * (grid - exact) ** 2).sum())
        assert abs(drawn.mean() - exact) < 6 * sd / np.sqrt(n) + 1e-3 * sd
        assert abs(drawn.std() - sd) < 0.05 * sd


def test_moments_of_row_factors_with_sizes(rng):
    """A row factor that also multiplies the means has the slopes of its cells as loadings."""
    rows, gain, loadings = rng.normal(size=(200, 1)), np.array([0.4]), rng.normal(size=(1, 30))
    z, means = rng.integers(2, size=200), rng.normal(0.0, 2.0, size=(2, 30))
    slopes = loadings[:, None, :] + gain[:, None, None] * means[z]
    X = along_rows(rows, slopes) + means[z] + 0.1 * rng.normal(size=(200, 30))
    assert pytest.approx(rows @ loadings + row_sizes(rows, gain)[:, None] * means[z], abs=1.0) == X
    found = draw_row_factors(X - means[z], slopes, np.full(30, 100.0), None)
    assert np.abs(found - rows).max() < 0.2


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
    gain = rng.normal(size=2)
    one, other = one._replace(gain=gain), other._replace(gain=turn.T @ gain)
    found = mean_row_factors([one, other], 6)
    F, mean_loadings = found.rows, found.loadings
    nearest = F @ np.linalg.lstsq(F, rows @ gain, rcond=None)[0]
    assert found.sizes == pytest.approx(1.0 + nearest)
    assert pytest.approx(rows @ loadings) == F @ mean_loadings.T
    assert pytest.approx(np.eye(2)) == F.T @ F / 30


def test_planted_views_need_no_row_factor(rng):
    planted = make_planted_views(1, 500, 40, 4, random_state=rng)
    X = (planted.X - planted.X.mean(axis=0)) / planted.X.std(axis=0)
    assert find_row_factors(read_reals(X), "auto", rng, 4, gain=True).rows is None


def test_new_rows_with_sizes(rng):
    """Rows of two clusters whose difference grows with the brightness."""
    means, gain = np.array([[0.0, 2.0], [2.0, 0.0]] * 10), np.array([0.3])
    draw = normal_draw(means, np.full(20, 0.01), np.ones((1, 20)))._replace(gain=gain)
    z, f = rng.integers(2, size=100), rng.uniform(-1.5, 1.5, 100)
    sizes = 1.0 + 0.3 * f
    X = sizes[:, None] * means.T[z] + f[:, None] + 0.1 * rng.normal(size=(100, 20))
    placed = place_rows(draw, [X])
    assert np.abs(placed.sizes - sizes).max() < 0.1
    assert np.abs(placed.data[0] - means.T[z]).max() < 1.5
    mean = predict_cells([draw], [X], 3).mean
    assert np.abs(mean - (sizes * means.T[z, 3] + f)).max() < 0.3
    drawn = simulate_rows([draw], [X], 1, np.random.default_rng(0))[0][0]
    assert np.abs(drawn - X).max() < 1.5


@pytest.mark.slow
def test_contrast(global_random_seed, tmp_path):
    """Images that differ in brightness and in contrast at once."""
    figures = make_stick_figures(
        300, 12, brightness=0.0, contrast=0.2, noise=0.1, random_state=global_random_seed
    )
    model = OverlappingViews(n_init=1, **SHORT).fit(figures.X + 0.5 * figures.X.mean(axis=1, keepdims=True))
    assert match_labelings(figures.view_labels, model.view_labels_).average > 0.95
    assert "row_sizes" in model.fit_report_
    assert np.ptp(model.row_sizes_) > 0.3
    model.save(tmp_path / "model.partita")
    again = load(tmp_path / "model.partita")
    assert np.array_equal(again.row_sizes_, model.row_sizes_)
    assert again.score_samples(figures.X[:5]) == pytest.approx(model.score_samples(figures.X[:5]))


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
