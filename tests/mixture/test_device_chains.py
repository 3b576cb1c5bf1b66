"""Chains of mixtures over rows on a device: the draws and the answer of the host, which stay on the device."""

import pickle
import sys

import numpy as np
import pytest

from partita import DPGaussian, Mixture
from partita.execution import device
from partita.execution.device_labels import DeviceDraws
from partita.fitting import chains
from partita.posterior import confidence, device_votes, vote
from partita.posterior.draws import canonical_draws

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
DEVICE = xp.Device("device1")
SHORT = {"inference": "subclusters", "n_chains": 2, "burn_in": 4, "n_draws": 8, "random_state": 0}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(device, "CHUNK_BYTES", 400_000)


def on(values):
    return xp.asarray(values, device=DEVICE)


def off(values):
    return np.asarray(xp.asarray(values, device=xp.Device("CPU_DEVICE")))


def overlapping(rng, N=120):
    """Rows of which some are between two groups, so that draws differ."""
    return rng.normal(size=(N, 2)) + 2.5 * np.array([[0, 0], [1, 1], [2, 0]])[rng.integers(3, size=N)]


@pytest.mark.parametrize(
    "family, asked",
    [
        ("gaussian", {}),
        pytest.param("gaussian_full", {}, marks=pytest.mark.slow),
        ("gaussian_full", {"partition": "map"}),
        pytest.param("gaussian", {"init": "random"}, marks=pytest.mark.slow),
    ],
)
def test_draws_and_answer_are_those_of_the_host(family, asked, global_random_seed):
    X = overlapping(np.random.default_rng(global_random_seed))
    here, there = (Mixture(family, **SHORT, **asked).fit(rows) for rows in (X, on(X)))
    assert there.n_clusters_prior_ == here.n_clusters_prior_  # before the draws are fetched
    assert "trace_" in there._waiting()
    np.testing.assert_array_equal(there.trace_.labels, here.trace_.labels)
    np.testing.assert_allclose(there.trace_.log_joint, here.trace_.log_joint)
    np.testing.assert_allclose(there.trace_.concentration, here.trace_.concentration)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.confidence_, here.confidence_, atol=1e-12)
    assert there.n_clusters_ == here.n_clusters_
    assert there.n_clusters_posterior_ == here.n_clusters_posterior_
    assert there.n_clusters_prior_ == here.n_clusters_prior_
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_)
    np.testing.assert_allclose(there.weights_, here.weights_)
    np.testing.assert_array_equal(there.object_rows_, here.object_rows_)
    for one, other in zip(there.diagnostics_.quantities, here.diagnostics_.quantities, strict=True):
        assert one.name == other.name
        np.testing.assert_allclose(one[1:], other[1:], rtol=1e-6)
    assert there.diagnostics_.agreement == here.diagnostics_.agreement
    np.testing.assert_array_equal(there.grain_.joins, here.grain_.joins)
    new = X[:40] + 0.1
    for method in ("predict", "predict_proba", "score_samples"):
        found = getattr(there, method)(on(new))
        assert found.device == DEVICE
        np.testing.assert_allclose(off(found), getattr(here, method)(new), atol=1e-9)
        np.testing.assert_allclose(getattr(there, method)(new), getattr(here, method)(new), atol=1e-9)


@pytest.mark.slow
def test_chains_that_stop_by_themselves_stop_as_on_the_host(global_random_seed):
    X = overlapping(np.random.default_rng(global_random_seed), 80)
    here, there = (
        Mixture("gaussian", inference="subclusters", n_chains=2, random_state=0).fit(rows)
        for rows in (X, on(X))
    )
    assert (there.burn_in_, there.n_iter_) == (here.burn_in_, here.n_iter_)
    np.testing.assert_array_equal(there.labels_, here.labels_)


def test_categories_have_nearly_the_answer_of_the_host(global_random_seed):
    """Their log joints are in single precision on a device, so that a draw at the very edge may differ."""
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(3, size=150)
    X = np.where(rng.random((150, 10)) < 0.15, rng.integers(4, size=(150, 10)), z[:, None])
    here, there = (Mixture("categorical", **SHORT).fit(rows) for rows in (X, on(X)))
    assert there.n_clusters_ == here.n_clusters_ == 3
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-2)


def test_presets_and_chain_parameters_choose_the_sampler(global_random_seed):
    X = on(overlapping(np.random.default_rng(global_random_seed), 120))
    short = {"n_chains": 1, "burn_in": 4, "n_draws": 4, "random_state": 0}
    assert Mixture("gaussian", **short).fit(X).inference_ == "subclusters"
    preset = DPGaussian(inference="subclusters", **short).fit(X)
    assert preset.trace_.labels.shape == (4, 120)


@pytest.mark.parametrize(
    "asked, weights, message",
    [
        ({}, np.full(60, 2.0), "every row is one object of a chain: leave sample_weight out"),
        ({"partition": "vi"}, None, "partition='vi' searches over draws on the host: use 'votes' or 'map'"),
    ],
)
def test_what_chains_on_a_device_cannot_do_is_said(asked, weights, message, global_random_seed):
    X = on(overlapping(np.random.default_rng(global_random_seed), 60))
    with pytest.raises(ValueError, match=message):
        Mixture("gaussian", **SHORT, **asked).fit(X, sample_weight=weights)


def test_labels_to_start_from(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = overlapping(rng)
    z = rng.integers(-1, 4, size=len(X))
    here, there = (Mixture("gaussian", **SHORT, init=z).fit(rows) for rows in (X, on(X)))
    np.testing.assert_array_equal(there.trace_.labels, here.trace_.labels)


def test_a_killed_fit_continues_to_the_same_draws(tmp_path, global_random_seed):
    X = on(overlapping(np.random.default_rng(global_random_seed), 120))
    whole = Mixture("gaussian", **SHORT).fit(X)

    class Killed(Exception):
        pass

    def kill(progress):
        if (progress.run, progress.iteration) == (1, 8):
            raise Killed

    with pytest.raises(Killed):
        Mixture("gaussian", **SHORT, resume=tmp_path, callback=kill).fit(X)
    again = Mixture("gaussian", **SHORT, resume=tmp_path).fit(X)
    np.testing.assert_array_equal(again.trace_.labels, whole.trace_.labels)
    np.testing.assert_array_equal(again.trace_.log_joint, whole.trace_.log_joint)
    np.testing.assert_array_equal(again.labels_, whole.labels_)


def test_nothing_of_the_size_of_the_table_is_copied(monkeypatch, global_random_seed):
    """But for 2000 rows that a start is found on, and samples of 20,000 labels of each draw."""
    n_rows = 30_000
    X = on(overlapping(np.random.default_rng(global_random_seed), n_rows))
    monkeypatch.setattr(device, "CHUNK_BYTES", 1 << 24)
    sizes = []

    def watched(move):
        def moved(values, *args, **options):
            sizes.append(int(np.prod(values.shape)))
            return move(values, *args, **options)

        return moved

    moves = device.to_host, device.to_device
    monkeypatch.setattr("partita.posterior.votes.PIVOT_ROWS", 20_000)
    for module in [m for name, m in sys.modules.items() if name.startswith("partita.")]:
        for move in moves:
            if vars(module).get(move.__name__) is move:
                monkeypatch.setattr(module, move.__name__, watched(move))
    asked = {**SHORT, "burn_in": 1, "n_draws": 2}
    model = Mixture("gaussian", **asked).fit(X)
    assert sizes and max(sizes) < n_rows
    held = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
    assert max((value.size for value in held), default=0) < n_rows
    del sizes[:]
    assert model.labels_.shape == model.confidence_.shape == (n_rows,)
    assert sizes == [n_rows, n_rows]
    assert model.trace_.labels.shape == (4, n_rows)
    assert sizes == [n_rows] * 6
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_, model.labels_)


# ---- the summary of draws --------------------------------------------------------------------------------------


def drawn(rng, T=30, N=101):
    """Canonical draws around two partitions, some with clusters of one object."""
    base = rng.integers(4, size=N)
    noisy = np.where(rng.random((T, N)) < 0.3, rng.integers(5, size=(T, N)), base)
    noisy[rng.random(T) < 0.5, 0] = 5
    return canonical_draws(noisy).astype(np.int64)


def there(labels):
    return DeviceDraws([on(z.astype(np.int8)) for z in labels], labels.max(axis=1) + 1)


def test_votes_and_confidence_are_those_of_the_host(rng):
    labels = drawn(rng)
    found = device_votes.vote_on_device(there(labels))
    np.testing.assert_array_equal(off(found), vote(labels).labels)
    partition = canonical_draws(np.where(np.arange(101) == 0, 9, labels[0])[None])[0].astype(np.int64)
    sure = device_votes.confidence_on_device(there(labels), on(partition.astype(np.int32)))
    np.testing.assert_allclose(off(sure), confidence(labels, partition).objects, atol=1e-12)


def test_a_cluster_that_wins_no_object_has_its_most_probable_ones():
    """The second cluster of the pivot is that of the last object in a third of the draws."""
    labels = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
    labels = np.concatenate([labels[[0]], labels[[0]], labels[[3]], labels[1:3], labels[1:2]])
    found = device_votes.vote_on_device(there(labels))
    np.testing.assert_array_equal(off(found), vote(labels).labels)


def test_labels_are_counted_and_numbered_where_they_are(rng):
    from partita.execution import device_labels
    from partita.labels import canonical, contingency

    a, b = rng.integers(7, size=(2, 40_000))
    a[30_000] = 7  # appears late
    np.testing.assert_array_equal(device_labels.count_labels(on(a), 9), np.bincount(a, minlength=9))
    np.testing.assert_array_equal(
        device_labels.count_pairs(on(a), on(b), 8, 7), contingency(a, b, sparse=False)
    )
    np.testing.assert_array_equal(off(device_labels.canonical_labels(on(3 * a))), canonical(a))
    assert device_labels.first_names(on(a), 9)[[7, 8]].tolist() == [7, 8]


def test_the_limit_of_labels_that_are_searched_thins_draws_alike(monkeypatch, rng):
    monkeypatch.setattr(chains, "MAX_LABELS", 500)
    monkeypatch.setattr(chains, "MIN_DRAWS", 3)
    X = overlapping(rng, 60)
    here, far = (Mixture("gaussian", **SHORT).fit(rows) for rows in (X, on(X)))
    np.testing.assert_array_equal(far.labels_, here.labels_)
