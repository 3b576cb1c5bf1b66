"""Depths of rows: their conditional law, new rows, the choice by evidence, and tables of counts of unequal depth."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, poisson

from partita import CrossCat, OverlappingViews, load
from partita.engines.gibbs.chain import Schedule
from partita.families import Block, Counts, Poisson
from partita.metrics import match_labelings
from partita.views.crosscat.depth_choice import find_depths
from partita.views.crosscat.state import CrossCatPlan
from partita.views.depths import draw_depths, draw_shape
from partita.views.draw_queries import predict_cells, simulate_rows
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.new_rows import place_rows
from partita.views.predictive import log_density_rows

SHORT = {"n_chains": 1, "n_draws": 4, "burn_in": 4, "random_state": 0}
PLAN = CrossCatPlan(Schedule(n_moves=1))


def two_views(rng, n_rows, spread):
    """Two views of ten columns of counts, and the depths of the rows."""
    labels = rng.integers(3, size=(n_rows, 2))
    rates = rng.gamma(2.0, 2.0, size=(2, 3, 10))
    depths = np.exp(spread * rng.normal(size=n_rows))
    X = rng.poisson(depths[:, None] * np.hstack([rates[v][labels[:, v]] for v in range(2)]))
    return X, labels, depths


def counts_block(X, exposure=None):
    data = Counts(np.asarray(X, float), np.ones(len(X)) if exposure is None else exposure)
    return Block(Poisson.default(data), data, tuple(f"c{d}" for d in range(X.shape[1])))


def rate_draw(rates, shape, n=1e7):
    """A draw of one view with almost certain rates [column, state], and depths."""
    D, K = rates.shape
    S = np.zeros((3 * D, K))
    S[0::3], S[1::3] = n, n * rates
    family = Poisson(np.full(D, 1e-3), np.full(D, 1e-3))
    factor = Factor(np.arange(D), np.log(np.full(K, 1 / K)), (FactorBlock(0, np.arange(D), family, S),))
    draw = Draw(np.ones((D, 1), bool), np.zeros((1, 1), int), (factor,), 0.0, 0, np.ones(2))
    return draw._replace(loadings=np.zeros((0, D)), depths=np.ones(1), depth_shape=shape)


def test_law_of_depths(rng):
    """The conditional of a depth is a gamma distribution; that of the shape is the density times its prior."""
    n = 40_000
    drawn = draw_depths(np.full(n, 5.0), np.full(n, 4.0), 2.0, rng)
    exact = gamma(7.0, scale=1 / 6.0)
    assert abs(drawn.mean() - exact.mean()) < 6 * exact.std() / np.sqrt(n)
    assert abs(drawn.std() - exact.std()) < 0.03 * exact.std()
    depths = rng.gamma(3.0, size=200) / 3.0
    shape, values = 3.0, []
    for _ in range(3000):
        shape = draw_shape(depths, shape, rng)
        values.append(shape)

    def density(s):
        return np.exp(gamma(s, scale=1 / s).logpdf(depths).sum() + 200.0 - 0.2 * s)

    grid = np.linspace(1.5, 6.0, 1000)
    p = np.array([density(s) for s in grid])
    p /= p.sum()
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    assert abs(np.mean(values) - mean) < 6 * sd / np.sqrt(300)  # of 3,000 dependent draws, a tenth counts
    assert abs(np.std(values) - sd) < 0.35 * sd


@pytest.mark.parametrize("shape", [1.5, 20.0])
def test_density_of_new_rows(shape, rng):
    """Laplace's approximation beside the integral over the depth of a row, with an exposure and a missing cell."""
    rates = rng.uniform(1.0, 6.0, size=(6, 1))
    X = rng.poisson(2.0 * rates[:, 0], size=(5, 6)).astype(float)
    X[0, 2] = np.nan
    exposure = np.array([1.0, 0.5, 2.0, 1.0, 3.0])
    draw = rate_draw(rates, shape)
    placed = place_rows(draw, [Counts(X, exposure)])
    found = log_density_rows(draw, placed.data) + placed.log_correction
    for x, e, value in zip(X, exposure, found, strict=True):
        seen = ~np.isnan(x)

        def density(depth, x=x, e=e, seen=seen):
            law = poisson(e * depth * rates[seen, 0])
            return np.exp(law.logpmf(x[seen]).sum()) * gamma(shape, scale=1 / shape).pdf(depth)

        exact = np.log(quad(density, 0.0, 60.0, limit=500, points=[0.1, 0.5, 1.0, 2.0, 5.0])[0])
        assert value == pytest.approx(exact, abs=0.02)
    plain = draw._replace(depths=np.zeros(0), depth_shape=0.0)
    assert place_rows(plain, [Counts(X, exposure)]).data[0].X is X


def test_cells_of_new_rows(rng):
    """Mean and standard deviation of a cell, and simulated cells, have the depth of the row and its uncertainty."""
    rates, shape = rng.uniform(2.0, 6.0, size=(20, 1)), 4.0
    draw, depths = rate_draw(rates, shape), np.array([0.4, 1.0, 3.0])
    X = rng.poisson(depths[:, None] * rates[:, 0]).astype(float)
    X[:, 0] = np.nan
    events, expected = shape + np.nansum(X, axis=1), shape + rates[1:].sum()
    mean = rates[0, 0] * events / expected
    variance = mean + (rates[0, 0] / expected) ** 2 * events
    found = predict_cells([draw], [Counts(X, np.ones(3))], 0)
    assert found.mean == pytest.approx(mean, rel=1e-3)
    assert found.sd == pytest.approx(np.sqrt(variance), rel=1e-3)
    drawn = simulate_rows([draw], [Counts(X, np.ones(3))], 4000, rng)[0][:, :, 0]
    assert np.abs((drawn.mean(axis=0) - mean) / np.sqrt(variance / 4000)).max() < 6
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(variance), rel=0.1)


def test_depths_by_evidence(rng):
    deep, _, _ = two_views(rng, 150, 0.7)
    flat, _, _ = two_views(rng, 150, 0.0)
    assert find_depths([counts_block(deep)], "auto", PLAN, rng) is not None
    assert find_depths([counts_block(flat)], "auto", PLAN, rng) is None
    assert find_depths([counts_block(deep)], 0, PLAN, rng) is None
    assert find_depths([counts_block(deep[:, :3])], "auto", PLAN, rng) is None
    first = find_depths([counts_block(flat[:, :3])], 1, PLAN, rng)
    assert first.rows.mean() == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [CrossCat, OverlappingViews])
def test_views_of_rows_of_unequal_depth(estimator, global_random_seed, tmp_path):
    rows, labels, depths = two_views(np.random.default_rng(global_random_seed), 450, 0.7)
    X, new, labels, depths = rows[:250], rows[250:], labels[:250], depths[:250]
    options = SHORT | ({"n_init": 1} if estimator is OverlappingViews else {})
    model = estimator(**options).fit(X)
    assert match_labelings(labels, model.view_labels_).average > 0.6
    assert np.corrcoef(np.log(model.row_depths_), np.log(depths))[0, 1] > 0.9
    assert "row_depths" in model.fit_report_
    model.save(tmp_path / "model.partita")
    again = load(tmp_path / "model.partita")
    assert np.array_equal(again.row_depths_, model.row_depths_)
    assert again.score_samples(X[:5]) == pytest.approx(model.score_samples(X[:5]))
    without = estimator(nuisance=0, **options).fit(X)
    assert (without.row_depths_ == 1.0).all() and "row_depths" not in without.fit_report_
    assert match_labelings(labels, without.view_labels_).average < 0.5
    assert model.score(new) > without.score(new)
