"""Lumps, transformations and their densities; and what a mixture makes of such columns."""

import numpy as np
import pytest
from scipy.integrate import quad

import partita
from partita import Mixture
from partita.families import Lumps, Power
from partita.families.codings import code_lumps, code_values, find_lump, fit_power, skewness
from partita.fitting.real_columns import Steps, describe_steps, real_blocks

POWERS = [Power(), Power(0.0, 2.0, 0.0), Power(1.0, 0.5, -0.7), Power(-1.0, 3.0, 2.0), Power(0.0, 1.0, 2.6)]


@pytest.mark.parametrize("power", POWERS)
def test_a_power_is_increasing_and_has_an_inverse_and_a_slope(power, rng):
    x = np.sort(rng.normal(size=200) * 5)
    y = power.forward(x)
    assert (np.diff(y) > 0).all()
    np.testing.assert_allclose(power.backward(y), x, rtol=1e-9, atol=1e-9)
    step = 1e-6
    slope = (power.forward(x + step) - power.forward(x - step)) / (2 * step)
    np.testing.assert_allclose(np.log(slope), power.log_slope(x), atol=1e-5)
    assert np.isnan(power.forward(np.array([np.nan]))).all()


def test_the_fitted_power_undoes_the_exponential(rng):
    """Log-normal values become normal, whatever their unit; weights count as replicates."""
    x = np.exp(rng.normal(2.0, 1.0, 4000))
    for unit in (1.0, 1e-3, 1e5):
        power = fit_power(unit * x, np.ones(4000))
        assert (
            abs(skewness(power.forward(unit * x), np.ones(4000))) < 0.25
        )  # six standard errors of sqrt(6 / n)
    weights = rng.integers(1, 3, 4000).astype(float)
    twice = np.repeat(x, weights.astype(int))
    assert fit_power(x, weights).exponent == pytest.approx(
        fit_power(twice, np.ones(len(twice))).exponent, abs=0.05
    )


def test_values_come_back_and_their_density_has_the_jacobian(rng):
    X = np.column_stack([np.exp(rng.normal(size=300)), rng.normal(size=300), rng.gamma(2.0, size=300)])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[::3, 2] = 0.0
    powers = tuple(fit_power(X[:, d], np.ones(300)) if d != 1 else Power() for d in range(3))
    coding = code_values(X, np.ones(300), np.array([np.nan, np.nan, 0.0]), powers)
    Z, log_slope = coding.encode(X)
    assert np.array_equal(np.isnan(Z), np.isnan(X) | at_lumps(X, 2))
    np.testing.assert_allclose(np.nanmean(Z, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(Z, axis=0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(coding.decode(Z)[~np.isnan(Z)], X[~np.isnan(Z)], rtol=1e-9)
    step = 1e-6
    ahead, behind = (coding.encode(X + s)[0] for s in (step, -step))
    at_lump = np.isnan(Z)
    slopes = np.where(
        at_lump, 1.0, (np.where(at_lump, 0.0, ahead) - np.where(at_lump, 0.0, behind)) / (2 * step)
    )
    np.testing.assert_allclose(np.log(slopes).sum(axis=1), log_slope, atol=1e-4)


def test_moments_are_those_of_draws(rng):
    x = np.exp(rng.normal(1.0, 0.6, 500))
    coding = code_values(x[:, None], np.ones(500), np.array([np.nan]), (fit_power(x, np.ones(500)),))
    mean, sd, median = coding.moments(np.array([[0.3]]), np.array([[0.2]]))
    drawn = coding.decode(rng.normal(0.3, np.sqrt(0.2), (200_000, 1)))
    error = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - mean[0, 0]) < 5 * error
    assert drawn.std() == pytest.approx(sd[0, 0], rel=0.03)
    assert np.median(drawn) == pytest.approx(median[0, 0], rel=0.02)


def at_lumps(X, *columns):
    """Zeros of the given columns."""
    return (X == 0.0) & np.isin(np.arange(X.shape[1]), columns)


def test_medians_are_values_that_occur_or_between_them(rng):
    """A cluster may lie below zero on the transformed scale, where the model has a tail that no row supports."""
    x = np.floor(rng.lognormal(2.0, 1.5, 500))[:, None]
    coding = code_values(x, np.ones(500), np.array([np.nan]), (fit_power(x[:, 0], np.ones(500)),))
    median = coding.moments(np.array([[-9.0], [0.0], [9.0]]), np.full((3, 1), 0.1))[2][:, 0]
    assert median[0] == x.min() and x.min() < median[1] < x.max() and median[2] == x.max()


def test_lumps_are_found_whatever_the_weights(rng):
    x = np.array([0.0, 0.0, 5.0, np.nan, 7.0])
    assert find_lump(x, np.ones(5)).value == 0.0
    assert find_lump(x, np.array([1.0, 1.0, 9.0, 1.0, 0.0])).value == 5.0
    weights = rng.integers(0, 3, 5) + np.array([1.0, 0, 0, 0, 0])
    assert find_lump(x, weights) == find_lump(np.repeat(x, weights.astype(int)), np.ones(int(weights.sum())))


def test_codes_of_lumps_come_back(rng):
    X = np.where(rng.random((400, 2)) < 0.95, [0.0, 3.0], rng.normal(10, 2, (400, 2)))
    coding = code_lumps(X, np.ones(400), np.array([0.0, 3.0]), np.array([True, False]))
    codes, log_rest = coding.encode(X)
    back = coding.decode(codes, rng)
    assert np.array_equal(back[codes == 0], X[codes == 0])
    assert np.isnan(back[:, 1][codes[:, 1] == 1]).all() and np.isfinite(back[:, 0]).all()
    assert (log_rest[codes[:, 0] == 0] == 0).all()  # the second column has a block of its own


def test_values_beside_a_lump_have_a_density(rng):
    """The few values beside the lump of a column are one normal variable, whose density integrates to 1."""
    x = np.where(np.arange(200) < 195, 0.0, rng.normal(5.0, 2.0, 200))
    coding = code_lumps(x[:, None], np.ones(200), np.zeros(1), np.array([True]))

    def density(value):
        codes, log_rest = coding.encode(np.array([[value]]))
        return float(codes[0, 0] * np.exp(log_rest[0]))

    center, scale = float(coding.centers[0]), float(coding.scales[0])
    total = quad(density, center - 12 * scale, center + 12 * scale, points=[center], limit=200)[0]
    assert total == pytest.approx(1.0, abs=1e-6)


def mixed_columns(rng, n=400):
    """Two groups; a skewed column, one with many zeros, one with few other values, and a rounded one."""
    z = rng.integers(2, size=n)
    spend = np.where(rng.random(n) < np.where(z, 0.3, 0.8), 0.0, np.exp(rng.normal(3 + z, 0.5)))
    spend[: int(0.5 * n) - np.count_nonzero(spend == 0)] = 0.0
    rare = np.where(rng.random(n) < 0.95, 0.0, rng.normal(5, 1, n))
    income = np.exp(rng.normal(3.0 * z, 0.8))
    return np.column_stack([income, np.round(rng.normal(30 + 20 * z, 4)), spend, rare]), z


def test_the_density_of_rows_sums_to_one(rng):
    """A lump has a probability, the other values a density: together they integrate to 1."""
    X, _ = mixed_columns(rng)
    X = X[:, [2]]  # half zeros
    model = Mixture(n_clusters=2, inference="em", random_state=0).fit(X)
    assert "lumps" in model.fit_report_
    at_lump = float(np.exp(model.score_samples(np.zeros((1, 1))))[0])

    def density(log_x):
        return float(np.exp(model.score_samples(np.exp([[log_x]]))[0] + log_x))

    total = quad(density, -8, 12, limit=200)[0]
    assert at_lump == pytest.approx(np.mean(X == 0), abs=0.02)
    assert at_lump + total == pytest.approx(1.0, abs=0.01)


def test_each_step_is_noted_and_switched_off(rng):
    X, _ = mixed_columns(rng)
    names = ["income", "age", "spend", "rare"]
    for step in ("lumps", "powers", "ties"):
        on = dict(describe_steps(real_blocks(X, names, np.ones(len(X)), Steps(), True)))
        off = dict(
            describe_steps(real_blocks(X, names, np.ones(len(X)), Steps()._replace(**{step: False}), True))
        )
        assert step in on and step not in off
        assert f"'{step}': False" in on[step]


def test_a_learned_shape_is_noted(rng):
    X = rng.normal(size=(100, 2))
    on, off = (
        dict(describe_steps(real_blocks(X, ["a", "b"], np.ones(100), Steps(shape=shape), True)))
        for shape in (True, False)
    )
    assert "a, b" in on["shape"] and "'shape': False" in on["shape"] and "shape" not in off


def test_steps_are_parameters_of_the_family(rng):
    X, _ = mixed_columns(rng, 60)
    off = {step: False for step in ("lumps", "powers", "ties", "signal")}
    model = Mixture({"real": ("auto", off)}, inference="vb", random_state=0).fit(X)
    assert not {"lumps", "powers", "ties", "signal"} & set(note.code for note in model.fit_report_)
    with pytest.raises(ValueError, match="no option 'lump'"):
        Mixture({"real": ("auto", {"lump": False})}).fit(X)
    with pytest.raises(ValueError, match="True or False"):
        Mixture({"real": ("auto", {"lumps": 0})}).fit(X)


def test_profiles_draws_and_storage_of_coded_columns(rng, tmp_path):
    X, z = mixed_columns(rng)
    model = Mixture(inference="vb", max_clusters=4, random_state=0).fit(X)
    spend, rare = model.profiles_["x2"], model.profiles_["x3"]
    whole = model.weights_ @ spend["mean"]
    assert whole == pytest.approx(X[:, 2].mean(), rel=0.15)
    assert model.weights_ @ spend["lump_share"] == pytest.approx(np.mean(X[:, 2] == 0), abs=0.03)
    assert model.weights_ @ rare["lump_share"] == pytest.approx(np.mean(X[:, 3] == 0), abs=0.03)
    drawn = model.sample(5000)[0]
    assert np.mean(drawn[:, 2] == 0) == pytest.approx(np.mean(X[:, 2] == 0), abs=0.06)
    assert np.median(drawn[:, 0]) == pytest.approx(np.median(X[:, 0]), rel=0.5)
    again = partita.load(model.save(tmp_path / "model.npz") or tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_units_of_the_columns_do_not_matter(rng):
    """Lumps, transformations and densities follow a change of units."""
    X, _ = mixed_columns(rng)
    scale = np.array([1e-3, 1.0, 1e4, 10.0])
    fits = [Mixture(inference="vb", max_clusters=4, random_state=0).fit(table) for table in (X, X * scale)]
    assert np.array_equal(fits[0].labels_, fits[1].labels_)
    observed = ~at_lumps(X, 2, 3) @ np.log(scale)
    np.testing.assert_allclose(
        fits[0].score_samples(X) - observed, fits[1].score_samples(X * scale), rtol=1e-4, atol=1e-4
    )


def test_wide_tables_keep_their_lumps(rng):
    """In a table of pixels most columns have a lump: it is the shape of all columns."""
    X = np.where(rng.random((100, 40)) < 0.6, 0.0, rng.normal(size=(100, 40)))
    blocks = real_blocks(X, [f"p{d}" for d in range(40)], np.ones(100), Steps(), True)
    assert len(blocks) == 1 and not isinstance(blocks[0].coding, Lumps)


def test_skewed_groups_are_found(rng):
    """Two log-normal groups: without the transformation their tails become groups of their own."""
    z = np.repeat([0, 1], 200)
    X = np.exp(np.column_stack([rng.normal(3.0 * z, 0.7), rng.normal(2.5 * z, 0.7)]))
    model = Mixture(random_state=0).fit(X)
    assert "powers" in model.fit_report_
    assert model.n_clusters_ in (2, 3)  # 27 of 400 rows are a third group for one seed in ten
    assert partita.metrics.adjusted_rand(z, model.labels_) > 0.85
