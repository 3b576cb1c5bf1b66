"""Beam search against all partitions of a few rows; what a fit by beam search has and has not."""

import numpy as np
import pytest

from partita import Mixture, load
from partita.dispatch import interpreted
from partita.fitting.chains import resolve_sampling_prior
from partita.fitting.families import assemble, plan_families
from partita.labels import canonical
from partita.table import read_table
from partita.testing import enumerate_partitions


@pytest.fixture(autouse=True)
def uncompiled():
    with interpreted():
        yield


def small_table(seed, n=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + 3.0 * rng.integers(2, size=(n, 1))
    X[0, 1] = np.nan
    return X


def exact_best(X, prior="auto", weights=None):
    """The most probable partition of the objects, and its log joint."""
    rows = np.arange(len(X)) if weights is None else np.repeat(np.arange(len(X)), weights)
    blocks = assemble(read_table(X, sample_weight=weights), plan_families("auto", None), completes=False)
    objects = [block._replace(data=block.data[rows]) for block in blocks]
    found = enumerate_partitions(objects, resolve_sampling_prior(prior, None, None, None))
    return found.labels[found.log_joint.argmax()], found.log_joint.max()


@pytest.mark.parametrize("prior", ["auto", "dirichlet_process", "pitman_yor"])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_the_most_probable_partition(prior, seed):
    X = small_table(seed)
    labels, log_joint = exact_best(X, prior)
    model = Mixture(prior=prior, inference="beam", beam_width=203).fit(X)
    np.testing.assert_array_equal(canonical(model.labels_), canonical(labels))
    assert model.objective_trace_[-1] == pytest.approx(log_joint, abs=1e-9)
    assert model.n_iter_ == 6 and model.converged_


def test_a_row_of_weight_two_is_two_objects():
    X, weights = small_table(4, n=4), np.array([2, 1, 0, 2])
    labels, log_joint = exact_best(X, weights=weights)
    model = Mixture(inference="beam", beam_width=203).fit(X, sample_weight=weights)
    assert model.objective_trace_[-1] == pytest.approx(log_joint, abs=1e-9)
    assert model.n_iter_ == 5 and len(model.labels_) == 4
    np.testing.assert_array_equal(canonical(model.labels_[[0, 1, 3]]), canonical(labels[[0, 2, 3]]))
    with pytest.raises(ValueError, match="whole number"):
        Mixture(inference="beam").fit(X, sample_weight=[0.5, 1, 1, 1])


def test_one_partition_without_uncertainty(tmp_path):
    X = small_table(1)
    model = Mixture(inference="beam", beam_width=20).fit(X)
    for name in ("trace_", "diagnostics_", "n_clusters_posterior_", "lower_bound_"):
        assert not hasattr(model, name), name
    proba = model.predict_proba(X)
    np.testing.assert_allclose(model.confidence_, proba[np.arange(6), model.labels_])
    assert model.confidence_kind_ == "posterior probability"
    assert np.isfinite(model.log_likelihood_) and len(model.weights_) == model.n_clusters_
    model.save(tmp_path / "beam.npz")
    again = load(tmp_path / "beam.npz")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict_proba(X), proba)


def test_the_same_whatever_the_seed():
    X = small_table(2, n=9)
    one, other = (Mixture(inference="beam", beam_width=10, random_state=seed).fit(X) for seed in (0, 1))
    np.testing.assert_array_equal(one.labels_, other.labels_)


def test_at_most_the_given_number_of_clusters():
    X = np.array([[0.0], [5.0], [10.0], [15.0], [0.1], [5.1]])
    assert Mixture(inference="beam", n_clusters=2).fit(X).n_clusters_ <= 2


def test_a_callback_ends_the_search_and_every_row_has_a_label():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-5, 1, (50, 1)), rng.normal(5, 1, (50, 1))])
    seen = []
    model = Mixture(
        inference="beam", beam_width=2, callback=lambda progress: seen.append(progress.iteration) or True
    ).fit(X)
    assert seen == [64] and model.n_iter_ == 64 and not model.converged_
    assert "not_converged" in model.fit_report_
    assert model.labels_.min() == 0 and len(model.labels_) == 100
    assert len(np.unique(model.labels_[:50])) == len(np.unique(model.labels_[50:])) == 1


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"prior": "stick_breaking"}, "exchangeable prior"),
        ({"max_clusters": 3}, "cannot bound the number of clusters"),
        ({"outliers": True}, "outliers=True needs inference='gibbs'"),
        ({"family": "student"}, "not conjugate"),
    ],
)
def test_what_beam_search_cannot_do(parameters, message):
    with pytest.raises(ValueError, match=message):
        Mixture(inference="beam", **parameters).fit(small_table(0))
