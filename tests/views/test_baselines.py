"""The paper's baselines: de-correlated k-means and orthogonal views."""

import numpy as np
import pandas as pd
import pytest

from partita import DecorrelatedKMeans, OrthogonalViews, load
from partita.estimator import DataWarning
from partita.metrics import match_labelings
from partita.views.decorrelated import _solve


@pytest.fixture(scope="module")
def two_views():
    # one example: whether these baselines see a view depends on where its clusters lie
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.integers(3, size=300), rng.integers(2, size=300)])
    X = np.hstack([rng.normal(size=(3, 4))[Z[:, 0]] * 5, rng.normal(size=(2, 3))[Z[:, 1]] * 4])
    return X + rng.normal(size=X.shape), Z


@pytest.mark.parametrize(
    "model",
    [
        DecorrelatedKMeans([3, 2], random_state=0),
        OrthogonalViews([3, 2], random_state=0),
        OrthogonalViews([3, 2], variant="clustering", random_state=0),
    ],
    ids=["decorrelated", "features", "clustering"],
)
def test_two_views_are_found(model, two_views):
    X, Z = two_views
    labels = model.fit_predict(X)
    assert labels.shape == (300, 2)
    assert match_labelings(Z, labels).average > (0.6 if "clustering" in str(model) else 0.9)
    assert (model.predict(X) == labels).mean() > 0.99


def test_representatives_solve_their_equation():
    rng = np.random.default_rng(1)
    means, others, n = rng.normal(size=(2, 5)), rng.normal(size=(3, 5)), np.array([7.0, 11.0])
    found = _solve(means, n, others, 4.0)
    for k in range(2):
        A = n[k] * np.eye(5) + 4.0 * others.T @ others
        assert np.allclose(A @ found[k], n[k] * means[k])


def test_features_are_orthogonal_to_the_first_clustering(two_views):
    X, _ = two_views
    model = OrthogonalViews([3, 2], random_state=0).fit(X)
    assert model.residual_share_[0] == pytest.approx(1.0) and model.residual_share_[1] < 0.8
    assert np.allclose(model._centers[1] @ model._axes[0].T, 0.0, atol=1e-8)


def test_objective_does_not_rise(two_views):
    trace = DecorrelatedKMeans([3, 2], n_init=1, random_state=0).fit(two_views[0]).objective_trace_
    assert trace[-1] <= trace[0]


def test_numbers_that_do_not_fit():
    X = np.random.default_rng(0).normal(size=(5, 2))
    with pytest.raises(ValueError, match="one per view"):
        DecorrelatedKMeans([2, 2, 2]).fit(X)
    with pytest.raises(ValueError, match="only 5 rows"):
        OrthogonalViews(6).fit(X)


MODELS = [DecorrelatedKMeans, OrthogonalViews]


@pytest.mark.parametrize("cls", MODELS)
def test_the_number_of_clusters_is_found(cls):
    rng = np.random.default_rng(3)
    Z = rng.integers(3, size=(200, 2))
    X = np.hstack([10.0 * np.eye(3)[Z[:, v]] for v in (0, 1)]) + rng.normal(size=(200, 6))
    first = cls(n_views=1, random_state=0).fit(X[:, :3])
    assert first.n_clusters_.tolist() == [3]
    assert cls(random_state=0).fit(np.ones((9, 2))).n_clusters_.tolist() == [1, 1]


@pytest.mark.parametrize("cls", MODELS)
def test_save_and_load(cls, two_views, tmp_path):
    X, _ = two_views
    model = cls([3, 2], random_state=0).fit(pd.DataFrame(X, columns=list("abcdefg")))
    model.save(tmp_path / "views.npz")
    other = load(tmp_path / "views.npz")
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    assert np.array_equal(other.predict(frame), model.predict(frame))
    assert np.array_equal(other.view_labels_, model.view_labels_)
    assert other.feature_names_in_.tolist() == list("abcdefg")


@pytest.mark.parametrize("cls", MODELS)
def test_stopped_and_resumed(cls, two_views, tmp_path):
    X, _ = two_views
    whole = cls([3, 2], random_state=0).fit(X)
    with pytest.warns(DataWarning, match="stopped by the callback"):
        stopped = cls([3, 2], random_state=0, callback=lambda progress: True, resume=tmp_path).fit(X)
    assert len(stopped.view_labels_) == 300
    resumed = cls([3, 2], random_state=0, resume=tmp_path).fit(X)
    assert np.array_equal(resumed.view_labels_, whole.view_labels_)
    with pytest.warns(DataWarning, match="stopped by the time limit"):
        cls([3, 2], random_state=0, time_limit=1e-9).fit(X)

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cls([3, 2], random_state=0, callback=interrupt).fit(X)
    with pytest.warns(DataWarning, match="stopped by an interrupt"):
        cls([3, 2], random_state=0, callback=interrupt, keep_partial=True).fit(X)


def test_starts_in_threads(two_views):
    one, two = (DecorrelatedKMeans([3, 2], random_state=0, n_jobs=n).fit(two_views[0]) for n in (None, 2))
    assert np.array_equal(one.view_labels_, two.view_labels_)
