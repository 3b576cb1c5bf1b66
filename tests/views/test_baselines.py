"""The paper's baselines: de-correlated k-means and orthogonal views."""

import numpy as np
import pytest

from partita import DecorrelatedKMeans, OrthogonalViews
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


def test_representatives_solve_their_equation(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    means, others, n = rng.normal(size=(2, 5)), rng.normal(size=(3, 5)), np.array([7.0, 11.0])
    found = _solve(means, n, others, 4.0)
    for k in range(2):
        A = n[k] * np.eye(5) + 4.0 * others.T @ others
        assert np.allclose(A @ found[k], n[k] * means[k])


def test_features_are_orthogonal_to_the_first_clustering(two_views, global_random_seed):
    X, _ = two_views
    model = OrthogonalViews([3, 2], random_state=global_random_seed).fit(X)
    assert model.residual_share_[0] == pytest.approx(1.0) and model.residual_share_[1] < 0.8
    assert np.allclose(model._centres[1] @ model._axes[0].T, 0.0, atol=1e-8)


def test_objective_does_not_rise(two_views, global_random_seed):
    trace = (
        DecorrelatedKMeans([3, 2], n_init=1, random_state=global_random_seed)
        .fit(two_views[0])
        .objective_trace_
    )
    assert trace[-1] <= trace[0]


def test_numbers_that_do_not_fit(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(5, 2))
    with pytest.raises(ValueError, match="one for each view"):
        DecorrelatedKMeans([2, 2, 2]).fit(X)
    with pytest.raises(ValueError, match="only 5 rows"):
        OrthogonalViews(6).fit(X)
