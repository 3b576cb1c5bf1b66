"""QMI and Voting as estimators."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from partita import load
from partita.consensus import QMI, Voting
from partita.estimator import DataWarning

MODELS = {
    "qmi": lambda: QMI(3, n_init=5, random_state=0),
    "plurality": lambda: Voting(3),
    "soft": lambda: Voting(3, votes="soft"),
}


@pytest.fixture(params=list(MODELS))
def make(request):
    return MODELS[request.param]


def fitted(model, Y, **weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # -1 is read as missing
        return model.fit(Y, **weights)


def test_finds_planted_groups_and_their_agreement(make, ensemble):
    z, Y = ensemble
    model = fitted(make(), Y)
    assert adjusted_rand_score(z, model.labels_) > 0.9
    assert np.bincount(model.labels_).tolist() == sorted(np.bincount(model.labels_), reverse=True)
    assert model.n_clusters_ == 3 and model.converged_
    assert ((model.confidence_ > 0) & (model.confidence_ <= 1)).all()
    torn = ((z[:, None] != Y) & (Y >= 0)).sum(axis=1) >= 2
    assert model.confidence_[~torn].mean() > model.confidence_[torn].mean() + 0.1
    np.testing.assert_array_equal(model.predict(Y), model.labels_)
    np.testing.assert_allclose(model.predict_proba(Y).sum(axis=1), 1.0)


def test_weights_are_repeated_rows(make, ensemble, global_random_seed):
    Y = ensemble[1]
    w = np.random.default_rng(global_random_seed).integers(0, 3, size=len(Y))
    weighted, repeated = fitted(make(), Y, sample_weight=w), fitted(make(), np.repeat(Y, w, axis=0))
    assert adjusted_rand_score(np.repeat(weighted.labels_, w), repeated.labels_) == 1.0
    np.testing.assert_allclose(np.repeat(weighted.confidence_, w), repeated.confidence_)
    without = fitted(make(), Y, member_weight=[1, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(without.labels_, fitted(make(), Y[:, :5]).labels_)
    assert without.member_weights_.tolist() == [1, 1, 1, 1, 1, 0]


def test_faults_of_label_matrices(make, ensemble):
    z, Y = ensemble
    np.testing.assert_array_equal(fitted(make(), np.repeat(z[:, None], 4, axis=1)).labels_, z)
    assert fitted(make(), np.repeat(z[:, None], 4, axis=1)).confidence_.min() == pytest.approx(1.0)
    np.testing.assert_array_equal(fitted(make(), z[:, None]).labels_, z)
    more = np.column_stack([Y, np.zeros(len(Y), int), np.arange(len(Y))])
    silent = fitted(make(), more)
    assert silent.member_weights_.tolist() == [1] * 6 + [0, 0]
    np.testing.assert_array_equal(silent.labels_, fitted(make(), Y).labels_)
    words = np.where(Y < 0, None, np.array(["a", "b", "c"], dtype=object)[Y])
    np.testing.assert_array_equal(fitted(make(), words).labels_, fitted(make(), Y).labels_)
    with pytest.raises(ValueError):
        make().fit(np.empty((5, 0)))
    Y = Y.copy()
    Y[4] = -1
    assert fitted(make(), Y).labels_[4] == 0  # nobody saw it: with the largest


def test_members_that_saw_different_objects(make, global_random_seed):
    z = np.tile([0, 1, 2], 40)
    Y = np.repeat(z[:, None], 12, axis=1)
    Y[np.random.default_rng(global_random_seed).random(Y.shape) < 0.4] = -1
    assert adjusted_rand_score(z, fitted(make(), Y).labels_) > 0.95


def test_soft_members(make, ensemble):
    z, Y = ensemble
    soft = np.full((len(z), 3), 0.1)
    soft[np.arange(len(z)), z] = 0.8
    model = fitted(make(), [*Y[:, :4].T, soft])
    assert adjusted_rand_score(z, model.labels_) > 0.9
    assert model.member_weights_ == pytest.approx([1] * 5)


def test_same_answer_after_storage(make, ensemble, tmp_path):
    Y = ensemble[1]
    model = fitted(make(), Y)
    model.save(tmp_path / "model.npz")
    for other in (fitted(clone(model), Y), pickle.loads(pickle.dumps(model)), load(tmp_path / "model.npz")):
        np.testing.assert_array_equal(other.labels_, model.labels_)
        np.testing.assert_array_equal(other.predict_proba(Y), model.predict_proba(Y))


def test_utility_adds_up(ensemble, global_random_seed):
    Y = np.maximum(ensemble[1], 0)
    model = fitted(QMI(3, random_state=global_random_seed), Y, member_weight=[1, 2, 1, 1, 1, 1])
    assert model.utility_ == pytest.approx(model.utilities_ @ [1, 2, 1, 1, 1, 1])
    one = fitted(QMI(1, random_state=global_random_seed), Y, member_weight=[1, 2, 1, 1, 1, 1])
    assert model.inertia_ == pytest.approx(one.inertia_ - len(Y) * model.utility_)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        QMI(5, max_iter=1, n_init=1, random_state=global_random_seed).fit(
            np.random.default_rng(global_random_seed).integers(4, size=(200, 5))
        )
    with pytest.warns(DataWarning, match="only 2 distinct rows"):
        QMI(3).fit([[0, 0], [1, 1], [1, 1]])


def test_votes_of_a_row(ensemble, global_random_seed):
    z, Y = ensemble
    model = fitted(Voting(3), Y)
    np.testing.assert_array_equal(model.votes_, model.predict_proba(Y))
    assert model.votes_[0].sum() == pytest.approx(1.0)
    n_seen = (Y >= 0).sum(axis=1)
    np.testing.assert_allclose(
        model.votes_ * n_seen[:, None], (model.votes_ * n_seen[:, None]).round(), atol=1e-9
    )
    agree = [(model.labels_[Y[:, m] >= 0] == Y[Y[:, m] >= 0, m]).mean() for m in range(6)]
    np.testing.assert_allclose(model.agreements_, agree, atol=0.03)  # ties aside
    noisy = Y.copy()
    noisy[:, 0] = np.random.default_rng(global_random_seed).integers(3, size=len(Y))
    assert fitted(Voting(3), noisy).reference_ != 0
    assert fitted(Voting(reference=0), noisy).reference_ == 0


def test_references_that_do_not_fit(ensemble, global_random_seed):
    Y = ensemble[1]
    for model, match in (
        (Voting(reference=9), "reference is 9"),
        (Voting(2, reference=1), "member 1, has 3 clusters"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(Y)
    coarse = fitted(Voting(2, random_state=global_random_seed), Y)
    assert coarse.reference_ == -1 and coarse.n_clusters_ == 2
