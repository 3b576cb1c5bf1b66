import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from partita.estimator import DataWarning


@pytest.fixture
def two_groups():
    """Two Gaussian groups that nobody can confuse (12 standard deviations apart), of 44 and 36 rows."""
    rng = np.random.default_rng(7)
    z = np.repeat([0, 1], [44, 36])
    return rng.normal(12.0 * z[:, None] - 6.0, 1.0, (80, 2)), z


@pytest.fixture
def two_answers():
    """Two latent classes over eight items: 95% against 5%; 44 and 36 rows, as codes 0 and 1."""
    rng = np.random.default_rng(7)
    z = np.repeat([0, 1], [44, 36])
    return np.where(rng.random((80, 8)) < 0.95, z[:, None], 1 - z[:, None]), z


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

    return expect


@pytest.fixture
def same_partition():
    """Equal up to the names of the clusters."""

    def check(a, b):
        pairs = set(zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True))
        assert len(pairs) == len(set(a)) == len(set(b)), (a, b)

    return check
