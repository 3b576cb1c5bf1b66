"""The mixture as a step of scikit-learn's pipelines and searches."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from partita import Mixture


@pytest.fixture
def blobs(global_random_seed):
    z = np.tile([0, 1, 2], 30)
    return np.random.default_rng(global_random_seed).normal(size=(90, 2)) + 6 * np.column_stack(
        [z == 1, z == 2]
    ), z


def em(**parameters):
    return Mixture("gaussian", inference="em", random_state=0, **parameters)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_memberships_as_data_frames(blobs, container):
    pytest.importorskip(container)
    X, _ = blobs
    model = em(n_clusters=3).set_output(transform=container)
    frame = model.fit_transform(X)
    assert list(frame.columns) == ["mixture0", "mixture1", "mixture2"]
    np.testing.assert_allclose(frame.to_numpy(), model.predict_proba(X))


def test_features_of_a_classifier(blobs):
    X, z = blobs
    pipeline = make_pipeline(em(n_clusters=3), LogisticRegression())
    assert pipeline.fit(X, z).score(X, z) > 0.95


def test_held_out_likelihood_chooses_the_number(blobs):
    X, _ = blobs
    search = GridSearchCV(em(), {"n_clusters": [1, 3]}, cv=3).fit(X)
    assert search.best_params_ == {"n_clusters": 3}
