"""partial_fit: a stream of batches after a first fit."""

import warnings

import numpy as np
import pytest
from scipy.special import betaln

from partita import Mixture, load
from partita.dispatch import interpreted
from partita.engines.sequential import particles
from partita.families import Bernoulli, Block
from partita.partitions import DirichletProcess, log_eppf, log_new_seat, log_seat


@pytest.fixture(autouse=True)
def short_chains_say_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def stream(**parameters):
    defaults = {"n_chains": 2, "n_draws": 15, "burn_in": 15, "random_state": 0}
    return Mixture("gaussian", **(defaults | parameters))


def groups(n, centers, seed):
    rng = np.random.default_rng(seed)
    z = rng.integers(len(centers), size=n)
    return rng.normal(size=(n, 2)) + np.array(centers)[z][:, None], z


def test_a_resumed_filter_is_exact_while_all_seats_fit():
    """One cluster of three known objects, then two more: five partitions, all of them held."""
    family, prior = Bernoulli.default(1), DirichletProcess(1.5)
    known = np.array([[1.0], [2.0]])
    with interpreted():
        state = particles.resume([family], prior, np.array([3.0]), [known], 20)
        state = particles.update(state, [Block(family, np.array([[1], [0]]), ("a",))])
        P = particles.n_clusters_posterior(state)

        def joint(sizes, cells):
            a, b = float(family.a[0]), float(family.b[0])
            likelihood = sum(betaln(a + ones, b + zeros) - betaln(a, b) for zeros, ones in cells)
            return np.exp(log_eppf(prior, np.array(sizes, float), len(sizes)) + likelihood)

        zeros, ones = known[:, 0]
        together = joint([5], [(zeros + 1, ones + 1)])
        first_apart = joint([4, 1], [(zeros + 1, ones), (0, 1)])
        second_apart = joint([4, 1], [(zeros, ones + 1), (1, 0)])
        pair = joint([3, 2], [(zeros, ones), (1, 1)])
        all_apart = joint([3, 1, 1], [(zeros, ones), (0, 1), (1, 0)])
    two = first_apart + second_apart + pair
    expected = np.array([0.0, together, two, all_apart])
    np.testing.assert_allclose(P, expected / expected.sum(), atol=1e-10)


def test_batches_grow_clusters_and_open_new_ones(global_random_seed):
    model = stream()
    X, z = groups(80, [-8.0, 8.0], global_random_seed)
    model.partial_fit(X)
    assert model.n_clusters_ == 2
    first = model.predict([[-8.0, -8.0], [8.0, 8.0]])
    more, _ = groups(60, [-8.0, 8.0], global_random_seed + 1)
    model.partial_fit(more)
    assert model.n_clusters_ == 2 and len(model.labels_) == 60 and model.weight_total_ == 140
    np.testing.assert_array_equal(model.predict([[-8.0, -8.0], [8.0, 8.0]]), first)  # numbers are kept
    far, _ = groups(40, [60.0], global_random_seed + 2)
    model.partial_fit(far)
    assert model.n_clusters_ == 3 and set(model.labels_) == {2}
    assert model.weights_[2] == pytest.approx(40 / 180, abs=0.02)
    assert sum(model.n_clusters_posterior_.values()) == pytest.approx(1.0)
    assert not hasattr(model, "trace_")  # it spoke of the first batch only
    assert np.isfinite(model.score_samples(X)).all()


def test_batches_or_one_batch_after_the_first(global_random_seed):
    """The t-th row meets the t-th uniform, in whatever batches it comes."""
    X, _ = groups(60, [-4.0, 4.0], global_random_seed)
    more, _ = groups(50, [-4.0, 4.0], global_random_seed + 3)
    one = stream().partial_fit(X).partial_fit(more)
    two = stream().partial_fit(X).partial_fit(more[:7]).partial_fit(more[7:])
    np.testing.assert_allclose(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_a_stream_goes_on_from_any_fit_and_from_a_file(tmp_path, global_random_seed):
    X, _ = groups(60, [-8.0, 8.0], global_random_seed)
    more, _ = groups(30, [-8.0, 8.0, 60.0], global_random_seed + 1)
    for parameters in ({}, {"inference": "vb"}, {"inference": "em", "n_clusters": 2}):
        model = stream(**parameters).fit(X)
        model.save(tmp_path / "model.npz")
        for going in (model, load(tmp_path / "model.npz")):
            wanted = 2 if parameters.get("inference") == "em" else 3  # a finite mixture has no seat for more
            assert going.partial_fit(more).n_clusters_ == wanted


def test_weights_are_copies_and_a_bad_batch_changes_nothing(global_random_seed):
    X, _ = groups(60, [-8.0, 8.0], global_random_seed)
    model = stream().partial_fit(X)
    model.partial_fit(X[:3], sample_weight=[2, 0, 1])
    assert model.weight_total_ == 63
    before = model.weights_.copy()
    with pytest.raises(ValueError, match="whole number"):
        model.partial_fit(X[:2], sample_weight=[0.5, 1])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:2, :1])
    np.testing.assert_array_equal(model.weights_, before)


def test_seats_of_the_filter_are_those_of_the_prior():
    prior = DirichletProcess(2.0)
    with interpreted():
        state = particles.resume([Bernoulli.default(1)], prior, np.array([3.0, 1.0]), [np.zeros((2, 2))], 5)
        seats = particles.seat_weights(state, 0)
    mass = np.exp([log_seat(prior, 3.0), log_seat(prior, 1.0), log_new_seat(prior, 5.0, 2)])
    np.testing.assert_allclose(seats, mass / mass.sum())


def test_forgotten_rows_are_rows_of_less_weight():
    """Half of the weight of four objects is that of two: the same predictive, the same seats for later objects."""
    family, prior = Bernoulli.default(1), DirichletProcess(1.5)
    half = [Block(family, np.array([[1], [0]]), ("a",))]
    with interpreted():
        more = particles.resume([family], prior, np.array([4.0]), [np.array([[2.0], [2.0]])], 20)
        less = particles.resume([family], prior, np.array([2.0]), [np.array([[1.0], [1.0]])], 20)
        forgetful = particles.update(particles.forget(more, 0.5), half)
        expected = particles.update(less, half)
        np.testing.assert_allclose(
            particles.n_clusters_posterior(forgetful), particles.n_clusters_posterior(expected)
        )
        np.testing.assert_array_equal(particles.mixture(forgetful).n, particles.mixture(expected).n)
        untouched = particles.mixture(more)
        assert untouched.n[0] == 4.0 and untouched.S[0][0, 0] == 2.0
    with pytest.raises(ValueError, match="between 0"):
        particles.forget(more, 1.5)


def test_a_stream_that_forgets_follows_a_group_that_moves(global_random_seed):
    """After ten batches at another place, a mixture that forgets has its weight there."""
    start, _ = groups(60, [0.0], global_random_seed)
    keeping, forgetful = stream().partial_fit(start), stream().partial_fit(start)
    for step in range(10):
        batch, _ = groups(30, [20.0], global_random_seed + 1 + step)
        keeping.partial_fit(batch)
        forgetful.partial_fit(batch, forget=0.3)
    assert keeping.weights_[0] == pytest.approx(60 / 360, abs=0.02)
    assert forgetful.weights_[0] < 0.05
    left = 0.7 ** np.arange(10, -1, -1)
    assert forgetful.weight_total_ == pytest.approx(left @ np.array([60] + [30] * 10))


def test_drift_is_reported_and_new_groups_are_announced(global_random_seed):
    model = stream()
    assert not hasattr(model.partial_fit(groups(200, [-8.0, 8.0], global_random_seed)[0]), "drift_")
    model.partial_fit(groups(200, [-8.0, 8.0], global_random_seed + 1)[0])
    assert model.drift_.new_clusters == () and abs(model.drift_.surprise) < 6.0
    np.testing.assert_allclose(model.drift_.shares, 0.5, atol=0.2)
    assert "new_clusters" not in model.fit_report_
    far = np.concatenate([groups(150, [-8.0, 8.0], 1)[0], groups(50, [60.0], global_random_seed + 2)[0]])
    model.partial_fit(far)
    assert model.drift_.new_clusters == (2,) and model.drift_.surprise < -4.0
    assert model.drift_.shares[2] == pytest.approx(0.25) and model.drift_.weights_before[2] == 0.0
    assert "2 (25.0% of the rows)" in model.fit_report_["new_clusters"].message
    assert "drift" in model.fit_report_
    model.partial_fit(groups(200, [-8.0, 8.0, 60.0], global_random_seed + 3)[0])
    assert model.drift_.new_clusters == () and "new_clusters" not in model.fit_report_
