"""Mixtures of arrays on a device: the answer of the host, in the library of the user."""

import pickle
import sys

import numpy as np
import pytest

from partita import Agglomerative, CrossCat, Mixture, RelationalBlocks, SpectralClustering
from partita.execution import device

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
DEVICE = xp.Device("device1")


def on(values, device=DEVICE):
    return xp.asarray(values, device=device)


def off(values):
    return np.asarray(xp.asarray(values, device=xp.Device("CPU_DEVICE")))


def codes(rng, N=400):
    z = rng.integers(3, size=N)
    return np.where(rng.random((N, 5)) < 0.8, z[:, None], rng.integers(4, size=(N, 5)))


def reals(rng, N=400):
    return rng.normal(size=(N, 3)) + 4.0 * rng.normal(size=(3, 3))[rng.integers(3, size=N)]


@pytest.mark.filterwarnings("ignore:Mixture did not converge")
@pytest.mark.parametrize("inference", ["em", "vb"])
@pytest.mark.parametrize("family", ["categorical", "gaussian", "gaussian_full"])
def test_the_answer_is_that_of_the_host(family, inference, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = codes(rng) * 10 + 3 if family == "categorical" else reals(rng)
    # as many iterations here as there: in single precision the last digits of an objective say when to stop
    asked = {"n_clusters": 3, "n_init": 1, "max_iter": 30, "tol": 0.0, "random_state": 0}
    here = Mixture(family, inference=inference, **asked).fit(X)
    there = Mixture(family, inference=inference, **asked).fit(on(X))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-5)
    np.testing.assert_allclose(
        there._fitted.statistics.S[0], here._fitted.statistics.S[0], rtol=1e-4, atol=1e-3
    )
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-5)
    assert "device1" in there.fit_report_.notes[0].message
    new = X[:50]
    for method in ("predict", "predict_proba", "score_samples"):
        found = getattr(there, method)(on(new))
        assert found.device == DEVICE
        np.testing.assert_allclose(off(found), getattr(here, method)(new), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(
        there.predict(new), here.predict(new)
    )  # a model of a device reads the host too


def test_missing_cells_and_weights_count_as_on_the_host(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = reals(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    w = rng.integers(0, 3, len(X)).astype(float)
    asked = {"inference": "vb", "n_clusters": 3, "n_init": 1, "random_state": 0}
    here = Mixture("gaussian", **asked).fit(X, sample_weight=w)
    there = Mixture("gaussian", **asked).fit(on(X), sample_weight=on(w))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-9)
    with pytest.raises(ValueError, match="completed on the host only"):
        Mixture("gaussian_full", **asked).fit(on(X))
    assert Mixture(**asked).fit(on(X))._fitted.blocks[0].family.__class__.__name__ == "GaussianDiagonal"


def test_labels_to_start_from_and_levels_not_seen(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = codes(rng).astype(float)
    z = rng.integers(3, size=len(X))
    asked = {"inference": "em", "n_clusters": 3, "init": z}
    here, there = (Mixture("categorical", **asked).fit(rows) for rows in (X, on(X)))
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-3)
    X[0] = 99.0
    alone = there.predict_proba(on(X[:1]))  # nothing is known of it
    np.testing.assert_allclose(off(alone)[0], there.weights_, rtol=1e-5)
    there.set_params(handle_unknown="error")
    with pytest.raises(ValueError, match=r"'x0', row 0: .*99\.0.* was not seen at fit"):
        there.predict(on(X[:1]))


@pytest.mark.parametrize("model", [Agglomerative(3), CrossCat(), RelationalBlocks(), SpectralClustering(3)])
def test_estimators_that_do_not_run_there_say_which_do(model, rng):
    with pytest.raises(
        ValueError, match=r"the array is on .*device1.*: copy it to the host, .*Mixture, LatentClass"
    ):
        model.fit(on(codes(rng)))


def test_the_default_is_an_engine_that_runs_on_the_device(global_random_seed):
    model = Mixture(random_state=0).fit(on(reals(np.random.default_rng(global_random_seed))))
    assert model.inference_ == "vb"
    assert "the table is on a device" in model.fit_report_["engine"].message


def test_what_a_device_cannot_do_is_said(global_random_seed):
    X = on(reals(np.random.default_rng(global_random_seed)))
    engines = "use 'em', 'memoized', 'subclusters' or 'vb'"
    with pytest.raises(ValueError, match=f"inference='gibbs' does not run on a device: {engines}"):
        Mixture(precision="single").fit(X)
    with pytest.raises(ValueError, match="codes or amounts"):
        Mixture(inference="vb").fit(on(np.ones((5, 2), np.int64)))
    with pytest.raises(
        ValueError, match=r"'x1' is declared 'ordinal', which does not run on a device: .*'count'"
    ):
        Mixture(inference="vb", kinds={"x1": "ordinal"}).fit(X)
    elsewhere = on(np.ones(X.shape[0]), xp.Device("device2"))
    with pytest.raises(ValueError, match=r"X is on .*device1.* and sample_weight on .*device2"):
        Mixture(inference="vb").fit(X, sample_weight=elsewhere)
    bad = reals(np.random.default_rng(global_random_seed))
    bad[7, 1] = np.inf
    with pytest.raises(ValueError, match="'x1', row 7 is infinite"):
        Mixture(inference="vb").fit(on(bad))


@pytest.mark.parametrize("inference", ["em", "vb"])
@pytest.mark.parametrize("n_columns", [5, 40])
def test_the_signal_is_that_of_the_host(inference, n_columns, rng):
    """Few columns of which some almost follow from the others, and many columns with fewer directions."""
    base = 3.0 * rng.normal(size=(3, 3))[rng.integers(3, size=600)] + rng.normal(size=(600, 3))
    noise = 0.01 if n_columns == 5 else 1.0
    X = base @ rng.normal(size=(3, n_columns)) + noise * rng.normal(size=(600, n_columns))
    size = {"n_clusters": 3} if inference == "em" else {"max_clusters": 5}
    asked = {"inference": inference, **size, "n_init": 1, "max_iter": 20, "random_state": 0}
    here = Mixture({"real": ("auto", {"lumps": False, "powers": False})}, **asked).fit(X)
    there = Mixture(**asked).fit(on(X))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.fit_report_["signal"].message == here.fit_report_["signal"].message
    assert "move the table to the host" in there.fit_report_["steps"].message
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-5)
    new = X[:50]
    np.testing.assert_allclose(off(there.score_samples(on(new))), here.score_samples(new), rtol=1e-4)
    np.testing.assert_allclose(there.score_samples(new), here.score_samples(new), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Mixture did not converge")
@pytest.mark.parametrize(
    "family, inference", [("categorical", "em"), ("categorical", "vb"), ("gaussian_full", "em")]
)
def test_nothing_of_the_size_of_the_table_is_copied(family, inference, monkeypatch, global_random_seed):
    """Neither to the host nor from it, but for 2000 rows that a start is found on; labels are fetched when read."""
    n_rows = 12_000
    rng = np.random.default_rng(global_random_seed)
    X = on((codes if family == "categorical" else reals)(rng, n_rows))
    sizes = []

    def watched(move):
        def moved(values, *args, **options):
            sizes.append(int(np.prod(values.shape)))
            return move(values, *args, **options)

        return moved

    moves = device.to_host, device.to_device
    for module in [m for name, m in sys.modules.items() if name.startswith("partita.")]:
        for move in moves:
            if vars(module).get(move.__name__) is move:
                monkeypatch.setattr(module, move.__name__, watched(move))
    asked = {"inference": inference, "n_clusters": 3, "n_init": 1, "max_iter": 2, "random_state": 0}
    model = Mixture(family, **asked).fit(X)
    assert sizes and max(sizes) < n_rows
    held = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
    assert max((value.size for value in held), default=0) < n_rows
    del sizes[:]
    assert model.labels_.shape == model.confidence_.shape == (n_rows,)
    assert sizes == [n_rows, n_rows]
    again = pickle.loads(pickle.dumps(model))
    assert "_later" not in vars(again) or not again._later
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert sizes[:2] == [n_rows, n_rows]  # labels were not fetched again; the uncertain rows were
