import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from partita import LatentClass, Mixture
from partita.estimator import DataWarning

INFERENCES = {
    "em": {"inference": "em", "n_clusters": 2},
    "vb": {"inference": "vb", "max_clusters": 6},
    "cvb": {"inference": "cvb", "max_clusters": 3, "tol": 1e-3},  # slow: a sweep is one object at a time
}


@pytest.fixture(params=list(INFERENCES))
def mixture(request):
    """A maker of mixtures for two groups, once for each inference."""

    def make(**parameters):
        return Mixture(**({"n_init": 2, "random_state": 0} | INFERENCES[request.param] | parameters))

    make.inference = request.param
    return make


@pytest.fixture(params=[*INFERENCES, "latent_class"])
def categorical(request):
    """A maker of models for categorical tables, once for each estimator and inference."""

    def make(**parameters):
        if request.param == "latent_class":
            return LatentClass(2, n_init=2, random_state=0, **parameters)
        defaults = {"kinds": "categorical", "n_clusters": 2, "n_init": 2, "random_state": 0}
        return Mixture(**(defaults | INFERENCES[request.param] | parameters))

    make.inference = request.param
    return make


@pytest.fixture
def two_groups():
    """Two Gaussian groups that nobody can confuse (12 standard deviations apart), of 44 and 36 rows."""
    rng = np.random.default_rng(7)
    z = np.repeat([0, 1], [44, 36])
    return rng.normal(12.0 * z[:, None] - 6.0, 1.0, (80, 2)), z


@pytest.fixture
def two_answers():
    """Two latent classes over six items: 90% against 10%; 44 and 36 rows, as codes 0 and 1."""
    rng = np.random.default_rng(7)
    z = np.repeat([0, 1], [44, 36])
    return np.where(rng.random((80, 6)) < 0.9, z[:, None], 1 - z[:, None]), z


@pytest.fixture
def quiet():
    """Any warning is an error."""

    @contextmanager
    def silence():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    return silence


@pytest.fixture
def one_warning():
    """Exactly one warning, a DataWarning that matches."""

    @contextmanager
    def expect(match, category=DataWarning):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        assert [w.category for w in caught] == [category], [str(w.message) for w in caught]
        assert match in str(caught[0].message)
        assert "/partita/" not in caught[0].filename  # it points at the user's line

    return expect


@pytest.fixture
def same_partition():
    """Equal up to the names of the clusters."""

    def check(a, b):
        pairs = set(zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True))
        assert len(pairs) == len(set(a)) == len(set(b)), (a, b)

    return check
