"""Rows of length 1 are directions: how the default reads them."""

import numpy as np
import pytest

import partita
from partita import Mixture
from partita.families import GaussianFull, VonMisesFisher
from partita.families.von_mises_fisher import draw_vectors
from partita.metrics import adjusted_rand

OFF = {"real": ("auto", {"directions": False})}


@pytest.fixture
def directions(rng):
    """Three groups around orthogonal directions, unit vectors in six dimensions."""
    z = np.repeat([0, 1, 2], 40)
    return draw_vectors(np.eye(6)[z], np.full(len(z), 60.0), rng), z


def family_of(model):
    (block,) = model._fitted.blocks
    return block.family


@pytest.mark.parametrize("inference", ["auto", "gibbs", "vb"])
def test_unit_rows_are_compared_by_angles(directions, inference):
    X, z = directions
    model = Mixture(inference=inference, random_state=0).fit(X)
    assert isinstance(family_of(model), VonMisesFisher)
    assert model.inference_ == ("vb" if inference == "auto" else inference)
    note = model.fit_report_["directions"].message
    assert "length 1" in note and "'directions': False" in note
    assert adjusted_rand(model.labels_, z) > 0.95  # the groups are ten deviations apart


def test_the_step_is_switched_off_and_the_report_names_the_family(directions):
    X, _ = directions
    model = Mixture(OFF, random_state=0).fit(X)
    assert isinstance(family_of(model), GaussianFull)
    assert "vonmises_fisher" in model.fit_report_["directions"].message


def test_other_rows_are_no_directions(directions):
    X, _ = directions
    hole = X.copy()
    hole[0, 0] = np.nan
    for other in (1.01 * X, hole, X[:, :5]):
        model = Mixture(inference="vb", random_state=0).fit(other)
        assert not isinstance(family_of(model), VonMisesFisher)


def test_chains_are_taken_where_their_parameters_are_given(directions):
    X, _ = directions
    assert Mixture(n_draws=5, burn_in=5, n_chains=2, random_state=0).fit(X).inference_ == "gibbs"


def test_directions_without_groups_are_one_group(rng):
    """Uniform directions: independent normal coordinates that are divided by their length."""
    X = rng.normal(size=(150, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert Mixture(random_state=0).fit(X).n_clusters_ == 1


def test_a_saved_model_labels_new_directions(directions, tmp_path):
    X, z = directions
    model = Mixture(random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = partita.load(tmp_path / "model")
    assert np.array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(again.score_samples(X), model.score_samples(X))
