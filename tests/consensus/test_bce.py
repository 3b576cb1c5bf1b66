"""Bayesian cluster ensembles as an estimator; the engine is proved in test_bce_engines.py."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from partita import load
from partita.consensus import BCE
from partita.consensus.bce import vb as cells_vb
from partita.estimator import DataWarning

SHORT = {"n_chains": 2, "n_draws": 60, "burn_in": 30}


def bce(inference="vb", **parameters):
    return BCE(
        **({"n_clusters": 3, "n_init": 2, "random_state": 0, "inference": inference} | SHORT | parameters)
    )


def fitted(Y, inference="vb", *, sample_weight=None, member_weight=None, **parameters):
    """Without its warnings: -1 is read as missing, and chains this short may complain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return bce(inference, **parameters).fit(Y, sample_weight=sample_weight, member_weight=member_weight)


@pytest.fixture(params=["vb", "gibbs"])
def inference(request):
    return request.param


def test_finds_planted_groups_and_says_how_sure(ensemble, inference):
    """Rows with two wrong labels are less sure, and clearly so where the memberships are mixed a priori.

    Chains that learn the concentration find a small one here (memberships are almost pure), and then believe four
    labels out of six: a confidence of 0.97 is the posterior, also that of a sampler that does not integrate out.
    No false alarm in 400 fresh seeds per engine: the scores were 0.89 and 0.94 or more, the two gaps 0.06 and 0.22.
    """
    z, Y = ensemble
    Y[[0, 40, 70], :2] = [[1], [2], [0]]  # without these, one ensemble in seventy has no such row (binomial)
    model = fitted(Y, inference)
    assert adjusted_rand_score(z, model.labels_) > 0.8
    assert np.bincount(model.labels_).tolist() == sorted(np.bincount(model.labels_), reverse=True)
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.labels_, model.memberships_.argmax(axis=1))
    np.testing.assert_array_equal(model.confidence_, model.memberships_.max(axis=1))
    unanimous = ((z[:, None] == Y) | (Y < 0)).all(axis=1) & ((Y >= 0).sum(axis=1) > 4)
    torn = ((z[:, None] != Y) & (Y >= 0)).sum(axis=1) >= 2
    assert model.confidence_[unanimous].mean() > model.confidence_[torn].mean()
    mixed = fitted(Y, inference, concentration=0.5, learn_concentration=False).confidence_
    assert mixed[unanimous].mean() > mixed[torn].mean() + 0.15
    assert model.n_clusters_ == 3 and model.concentration_.shape == (3,)
    np.testing.assert_array_equal(model.member_weights_, 1.0)
    assert adjusted_rand_score(model.predict(Y), model.labels_) > 0.8


def test_vb_predicts_training_rows_as_it_labelled_them(ensemble):
    Y = ensemble[1]
    model = fitted(Y)
    np.testing.assert_array_equal(model.predict_proba(Y), model.memberships_)
    np.testing.assert_array_equal(model.predict(Y), model.labels_)
    np.testing.assert_array_equal(bce().fit_predict(Y), model.labels_)
    assert model.converged_ and model.n_iter_ == len(model.objective_trace_) > 1
    assert model.lower_bound_ == model.objective_trace_[-1]
    assert np.diff(model.objective_trace_).min() > -1e-8


def test_a_mixed_object_has_mixed_memberships(inference):
    Y = np.repeat([[0] * 8, [1] * 8, [0, 1] * 4], [30, 30, 3], axis=0)
    P = fitted(Y, inference, n_clusters=2).memberships_
    assert P[:60].max(axis=1).min() > 0.95
    assert np.abs(P[60:] - 0.5).max() < 0.15


def test_chains_and_vb_agree_where_there_is_no_doubt(ensemble):
    Y = ensemble[1]
    options = {"concentration": 0.5, "learn_concentration": False}
    vb, chains = fitted(Y, **options), fitted(Y, "gibbs", **options)
    assert adjusted_rand_score(vb.labels_, chains.labels_) > 0.95
    assert np.abs(vb.memberships_ - chains.memberships_).mean() < 0.05
    assert chains.trace_.labels.shape == (120, len(Y)) and chains.diagnostics_.n_draws == 60


def test_weights_are_repeated_rows(ensemble, global_random_seed):
    Y = ensemble[1]
    w = np.random.default_rng([global_random_seed, 1]).integers(0, 3, size=len(Y))
    weighted, repeated = fitted(Y, sample_weight=w), fitted(np.repeat(Y, w, axis=0))
    np.testing.assert_allclose(
        weighted.memberships_[w > 0].repeat(w[w > 0], axis=0), repeated.memberships_, atol=1e-6
    )
    np.testing.assert_allclose(weighted.memberships_[w == 0], repeated.predict_proba(Y[w == 0]), atol=1e-6)
    order = np.random.default_rng([global_random_seed, 2]).permutation(len(Y))
    np.testing.assert_allclose(fitted(Y[order]).memberships_, fitted(Y).memberships_[order], atol=1e-6)


def test_chains_take_whole_weights_only(ensemble):
    z, Y = ensemble
    w = np.resize([1.0, 2.0, 0.0], len(Y))
    model = fitted(Y, "gibbs", sample_weight=w, member_weight=[1, 2, 1, 1, 0, 1])
    assert model.memberships_.shape == (len(Y), 3)
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0)
    assert adjusted_rand_score(z, model.labels_) > 0.8
    with pytest.raises(ValueError, match=r"sample_weight has 0\.5 at position 0.*inference='vb'"):
        fitted(Y, "gibbs", sample_weight=np.full(len(Y), 0.5))
    with pytest.raises(ValueError, match=r"member_weight has 1\.5 at position 2"):
        fitted(Y, "gibbs", member_weight=[1, 1, 1.5, 1, 1, 1])


def test_member_weights_pull(ensemble):
    Y = ensemble[1]
    without = fitted(Y[:, :5])
    model = fitted(Y, member_weight=[1, 1, 1, 1, 1, 0])
    np.testing.assert_allclose(model.memberships_, without.memberships_, atol=1e-9)
    assert model.member_weights_.tolist() == [1, 1, 1, 1, 1, 0]
    torn = np.repeat([[0, 0], [1, 1], [0, 1]], [20, 20, 1], axis=0)
    for weight, side in (([3, 1], 0), ([1, 3], 20)):
        model = fitted(torn, n_clusters=2, member_weight=weight)
        assert model.labels_[40] == model.labels_[side]


def test_soft_members(ensemble):
    z, Y = ensemble
    soft = np.full((len(z), 3), 0.1)
    soft[np.arange(len(z)), z] = 0.8
    members = [Y[:, m] for m in range(4)] + [soft]
    model = fitted(members)
    assert adjusted_rand_score(z, model.labels_) > 0.9
    assert model.member_weights_.tolist() == pytest.approx([1, 1, 1, 1, 1])
    assert model.predict_proba(members).shape == (len(z), 3)
    with pytest.raises(ValueError, match="soft members"):
        fitted(members, "gibbs")


def test_number_of_clusters_by_the_bound(ensemble, global_random_seed):
    z, Y = ensemble
    model = BCE(max_clusters=5, n_init=2, random_state=global_random_seed).fit(Y)
    assert model.n_clusters_ == 3 and max(model.n_clusters_scores_, key=model.n_clusters_scores_.get) == 3
    assert list(model.n_clusters_scores_) == [1, 2, 3, 4, 5]
    chains = fitted(Y, "gibbs", n_clusters=None, max_clusters=4)
    assert chains.memberships_.shape[1] == 3
    with pytest.warns(DataWarning, match="raise max_clusters"):
        BCE(max_clusters=2, n_init=1, random_state=global_random_seed).fit(Y)


# ---- FAULTS 4, 8, 10-16, 47-50 -----------------------------------------------------------------------------


def test_noise_has_no_consensus(global_random_seed):
    Y = np.random.default_rng(global_random_seed).integers(4, size=(200, 10))
    assert BCE(max_clusters=3, n_init=2, random_state=global_random_seed).fit(Y).n_clusters_ == 1


def test_one_labeling_comes_back(inference):
    """By VB. One label an object leaves the latent clusters of a chain free: it has no consensus to report."""
    y = np.repeat([5, 7, 9], [20, 15, 10])
    found = fitted(y[:, None], inference).labels_
    assert inference == "gibbs" or adjusted_rand_score(y, found) == 1.0


def test_identical_labelings_come_back(inference):
    y = np.repeat([0, 1, 2], [20, 15, 10])
    model = fitted(np.repeat(y[:, None], 12, axis=1), inference)
    np.testing.assert_array_equal(model.labels_, y)
    assert model.confidence_.min() > 0.95


def test_identical_rows_are_one_cluster(inference):
    assert fitted(np.tile([0, 1, 0], (10, 1)), inference).n_clusters_ == 1


def test_no_members_and_few_objects(inference):
    with pytest.raises(ValueError):
        bce(inference).fit(np.empty((5, 0)))
    with pytest.warns(DataWarning, match="n_clusters is 3, and only 2 objects"):
        bce(inference).fit([[0, 0], [1, 1]])


@pytest.mark.parametrize("noise", ["missing", "cluster", "singletons"])
def test_noise_policies(ensemble, noise):
    z, Y = ensemble
    model = fitted(Y, noise=noise)
    assert adjusted_rand_score(z, model.labels_) > 0.8
    assert model.predict_proba(Y).shape == (len(z), 3)


def test_strings_are_labels_and_other_negatives_are_not(ensemble):
    Y = ensemble[1]
    words = np.where(Y < 0, None, np.array(["a", "b", "c"], dtype=object)[Y])
    np.testing.assert_array_equal(fitted(words).labels_, fitted(Y).labels_)
    with pytest.raises(ValueError, match="-5"):
        bce().fit(np.where(Y == 2, -5, Y))


def test_members_that_saw_different_objects(inference, global_random_seed):
    z = np.tile([0, 1, 2], 40)
    Y = np.repeat(z[:, None], 12, axis=1)
    Y[np.random.default_rng(global_random_seed).random(Y.shape) < 0.5] = -1
    assert adjusted_rand_score(z, fitted(Y, inference).labels_) > 0.95


def test_members_that_say_nothing(ensemble, inference):
    Y = ensemble[1]
    more = np.column_stack([Y, np.zeros(len(Y), int), np.arange(len(Y))])
    model = fitted(more, inference)
    assert model.member_weights_.tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert "one_cluster" in model.fit_report_ and "all_alone" in model.fit_report_
    np.testing.assert_array_equal(model.labels_, fitted(Y, inference).labels_)


def test_an_object_without_labels_has_the_prior(ensemble, inference):
    Y = ensemble[1].copy()
    Y[7] = -1
    model = fitted(Y, inference)
    np.testing.assert_allclose(model.memberships_[7], model.concentration_ / model.concentration_.sum())
    np.testing.assert_allclose(model.predict_proba(Y[7:8])[0], model.memberships_[7])


# ---- p(Y) --------------------------------------------------------------------------------------------------


def test_probabilities_of_all_possible_rows_sum_to_one(ensemble, inference):
    Y = ensemble[1][:, :4]
    model = fitted(Y, inference)
    every = np.array(np.meshgrid(*[[0, 1, 2]] * 4)).reshape(4, -1).T
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0)


def test_perplexity_is_better_than_guessing(ensemble, inference, global_random_seed):
    Y = ensemble[1]
    model = fitted(Y[::2], inference)
    assert 1.0 < model.perplexity(Y[::2]) < 2.0
    assert 1.0 < model.perplexity(Y[1::2]) < 2.2
    assert model.perplexity(np.random.default_rng(global_random_seed).integers(3, size=(300, 6))) > 2.9
    n_seen = (Y[1::2] >= 0).sum()
    assert model.perplexity(Y[1::2]) == pytest.approx(np.exp(-model.score_samples(Y[1::2]).sum() / n_seen))


# ---- runs --------------------------------------------------------------------------------------------------


def test_same_seed_same_answer(ensemble, inference, tmp_path):
    Y = ensemble[1]
    before = np.random.get_state()[1].copy()
    model = fitted(Y, inference)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    again = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        again.fit(Y)
    model.save(tmp_path / "model.npz")
    for other in (again, pickle.loads(pickle.dumps(model)), load(tmp_path / "model.npz")):
        np.testing.assert_array_equal(other.memberships_, model.memberships_)
        np.testing.assert_array_equal(other.predict_proba(Y[:9]), model.predict_proba(Y[:9]))
        assert other.perplexity(Y) == model.perplexity(Y)


def test_starts_on_a_sample_end_on_all_rows(ensemble, monkeypatch):
    Y = ensemble[1]
    whole = fitted(Y, n_init=4)
    monkeypatch.setattr(cells_vb, "SAMPLE_ROWS", 30)
    sampled = fitted(Y, n_init=4)
    assert adjusted_rand_score(sampled.labels_, whole.labels_) > 0.95
    assert sampled.lower_bound_ == pytest.approx(whole.lower_bound_, rel=0.01)


def test_callback_and_limits(ensemble):
    Y = ensemble[1]
    seen = []
    model = fitted(Y, callback=lambda p: seen.append(p) or p.iteration == 3, n_init=5)
    assert len(seen) == 3 and not model.converged_ and model.n_iter_ == 3
    chains = fitted(Y, "gibbs", callback=lambda p: p.iteration == 45, n_chains=3)
    assert len(chains.trace_.labels) == 15 and not chains.converged_ and "cut_short" in chains.fit_report_
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        bce(max_iter=2).fit(Y)
    assert not fitted(Y, time_limit=1e-9, tol=0.0).converged_


def test_concentration_is_checked_and_kept(ensemble):
    Y = ensemble[1]
    given = fitted(Y, concentration=[1.0, 2.0, 3.0], learn_concentration=False)
    assert sorted(given.concentration_) == [1.0, 2.0, 3.0]
    assert len(set(fitted(Y, learn_concentration="symmetric").concentration_)) == 1
    with pytest.raises(ValueError, match=r"shape \(2,\), and there are 3 clusters"):
        fitted(Y, concentration=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"from 0\.005"):
        fitted(Y, concentration=1e-6)
