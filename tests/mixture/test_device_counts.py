"""Counts, durations and answers on a device: every engine gives the answer of the host."""

import numpy as np
import pytest

from partita import DPMultinomial, LatentClass, Mixture
from partita.engines.passes import device_rows
from partita.execution import device

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
DEVICE = xp.Device("device1")
CLIMB = {"n_clusters": 3, "n_init": 1, "max_iter": 30, "tol": 0.0, "random_state": 0}
CHAINS = {"n_chains": 2, "burn_in": 4, "n_draws": 8, "random_state": 0}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(device, "CHUNK_BYTES", 400_000)


def on(values):
    return xp.asarray(values, device=DEVICE)


def off(values):
    return np.asarray(xp.asarray(values, device=xp.Device("CPU_DEVICE")))


def table(family, rng, n_rows=300):
    """Three groups; counts and durations with missing cells where the family reads single cells."""
    z = rng.integers(3, size=n_rows)
    level = (z[:, None] + np.arange(6)) % 3
    if family == "bernoulli":
        return (rng.random((n_rows, 6)) < np.array([0.05, 0.3, 0.9])[level]).astype(np.int64)
    if family == "multinomial":
        shares = np.array([1.0, 3.0, 9.0])[level] / 26.0
        total = rng.integers(0, 30, n_rows)  # some rows are empty
        return np.stack([rng.multinomial(n, p) for n, p in zip(total, shares, strict=True)])
    X = rng.poisson(4.0**level) * 1.0 if family == "poisson" else rng.exponential(10.0**level)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.filterwarnings("ignore:Mixture did not converge")
@pytest.mark.parametrize("inference", ["em", "vb", "memoized", "subclusters"])
@pytest.mark.parametrize("family", ["multinomial", "poisson", "exponential", "bernoulli"])
def test_the_answer_is_that_of_the_host(family, inference, global_random_seed):
    X = table(family, np.random.default_rng(global_random_seed))
    asked = {"inference": inference, **(CHAINS if inference == "subclusters" else CLIMB)}
    here, there = (Mixture(family, **asked).fit(rows) for rows in (X, on(X)))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-5)
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-6)
    if inference in ("vb", "memoized"):
        assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-6)
    if inference == "subclusters":
        np.testing.assert_array_equal(there.trace_.labels, here.trace_.labels)
    new = X[:50]
    for method in ("predict", "predict_proba", "score_samples"):
        found = getattr(there, method)(on(new))
        assert found.device == DEVICE
        np.testing.assert_allclose(off(found), getattr(here, method)(new), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(off(getattr(here, method)(on(new))), off(found), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("inference", ["vb", "memoized", "subclusters"])
def test_the_preset_of_count_vectors_runs_on_a_device(inference, global_random_seed):
    X = table("multinomial", np.random.default_rng(global_random_seed))
    asked = CHAINS if inference == "subclusters" else {"max_clusters": 5, "random_state": 0}
    here, there = (DPMultinomial(inference, **asked).fit(rows) for rows in (X, on(X)))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    S = [model._fitted.statistics.S[0] for model in (there, here)]
    np.testing.assert_allclose(S[0], S[1], rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Mixture did not converge")
@pytest.mark.parametrize("family", ["multinomial", "poisson", "exponential", "bernoulli"])
def test_weights_count_as_on_the_host(family, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = table(family, rng)
    w = rng.integers(0, 3, len(X)).astype(float)
    asked = {"inference": "vb", **CLIMB}
    here = Mixture(family, **asked).fit(X, sample_weight=w)
    there = Mixture(family, **asked).fit(on(X), sample_weight=on(w))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-6)


@pytest.mark.filterwarnings("ignore:Mixture did not converge")
@pytest.mark.parametrize("inference", ["em", "vb", "memoized", "subclusters"])
def test_columns_of_several_kinds(inference, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(3, size=300)
    X = np.column_stack(
        [
            rng.normal(6.0 * z, 1.0),
            np.where(rng.random(300) < 0.1, rng.integers(3, size=300), z),
            rng.poisson(5.0 * z + 1.0),
            rng.random(300) < np.array([0.05, 0.5, 0.95])[z],
            rng.normal(size=300),
        ]
    )
    kinds = ["real", "categorical", "count", "binary", "ignore"]
    asked = {"kinds": kinds, "inference": inference, **(CHAINS if inference == "subclusters" else CLIMB)}
    family = {"real": "gaussian"}
    here, there = (Mixture(family, **asked).fit(rows) for rows in (X, on(X)))
    names = [type(block.family).__name__ for block in there._fitted.blocks]
    assert names == [type(block.family).__name__ for block in here._fitted.blocks]
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-6)
    np.testing.assert_allclose(off(there.score_samples(on(X[:40]))), here.score_samples(X[:40]), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:4 rows without any observed value")
def test_latent_classes_have_the_criteria_of_the_host(global_random_seed):
    X = table("bernoulli", np.random.default_rng(global_random_seed)).astype(float)
    X[:4] = np.nan  # rows without an answer
    here, there = (LatentClass(3, n_init=2, random_state=0).fit(rows) for rows in (X, on(X)))
    assert there.weight_answered_ == here.weight_answered_ == len(X) - 4
    assert there.bic_ == pytest.approx(here.bic_, rel=1e-5)


@pytest.mark.filterwarnings("ignore:Mixture did not converge")
def test_coefficients_of_count_vectors_are_computed_once(monkeypatch, global_random_seed):
    """When the table is read, not in every pass."""
    X = on(table("multinomial", np.random.default_rng(global_random_seed), 2500).astype(float))
    monkeypatch.setattr(device, "CHUNK_BYTES", 1 << 26)
    computed, log_gamma = [], device_rows.log_gamma

    def counted(x):
        computed.append(int(np.prod(x.shape)))
        return log_gamma(x)

    monkeypatch.setattr(device_rows, "log_gamma", counted)
    Mixture("multinomial", inference="em", **{**CLIMB, "max_iter": 5}).fit(X)
    assert computed == [2500, 2500 * 6]


def test_what_a_device_cannot_read_is_said(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = table("multinomial", rng).astype(float)
    model = Mixture("multinomial", inference="vb", n_clusters=3, random_state=0).fit(on(X))
    cases = [
        (-1.0, r"'x2', row 7 .*-1 is negative but the column is 'count'"),
        (0.5, r"'x2', row 7 .*0.5 is not an integer"),
        (np.inf, "'x2', row 7 is infinite"),
        (np.nan, "'x2', row 7 is missing, and vectors with missing cells are completed on the host only"),
    ]
    for value, message in cases:
        bad = X.copy()
        bad[7, 2] = value
        with pytest.raises(ValueError, match=message):
            Mixture("multinomial", inference="vb").fit(on(bad))
        with pytest.raises(ValueError, match=message):
            model.predict(on(bad))
    with pytest.raises(ValueError, match=r"'x1', row 3 .*-1 is negative"):
        whole = table("multinomial", rng)
        whole[3, 1] = -1
        Mixture("multinomial", inference="vb").fit(on(whole))
    durations = table("exponential", rng)
    durations[4, 5] = 0.0
    with pytest.raises(ValueError, match="'x5', row 4: 0 is not positive"):
        Mixture("exponential", inference="vb").fit(on(durations))
    with pytest.raises(ValueError, match=r"codes or amounts: .*kinds='count'"):
        Mixture(inference="vb").fit(on(whole))
    with pytest.raises(ValueError, match="'x0' is declared 'binary' but has 3 distinct values"):
        Mixture("bernoulli", inference="vb").fit(on(np.arange(30).reshape(10, 3) % 9 // 3))
    with pytest.raises(ValueError, match=r"VonMisesFisher does not run on a device: .*multinomial"):
        Mixture("vonmises_fisher", inference="vb").fit(on(rng.normal(size=(30, 3))))


def test_models_of_the_host_that_a_device_cannot_apply_are_refused(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(200, 2)) + 6.0 * rng.integers(2, size=(200, 1))
    full = Mixture("gaussian_full", inference="em", n_clusters=2, random_state=0).fit(X)
    holes = X.copy()
    holes[5, 1] = np.nan
    with pytest.raises(ValueError, match="'x1', row 5 is missing, and vectors with missing cells"):
        full.predict(on(holes))
    plain = Mixture(("gaussian", {"standardize": False}), inference="em", n_clusters=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="column 'x0' are coded before they are modeled"):
        plain.predict(on(X))
    counts = rng.poisson(3.0, size=(200, 3)).astype(float)
    asked = {"inference": "em", "n_clusters": 2, "exposure": "x2", "random_state": 0}
    exposed = Mixture(kinds={"x[01]": "count", "x2": "real"}, **asked).fit(counts + 1.0)
    with pytest.raises(ValueError, match="outliers= and exposure= are for tables on the host"):
        exposed.predict(on(counts + 1.0))
