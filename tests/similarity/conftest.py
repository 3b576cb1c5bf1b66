"""Data that the tests of this folder share."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest


@contextmanager
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def quiet():
    """A block in which any warning is an error."""
    return _quiet


@pytest.fixture
def two_groups():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], [25, 20])
    return rng.normal(size=(45, 2)) + 12.0 * z[:, None], z
