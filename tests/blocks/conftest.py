"""Planted blocks, and the warnings that are allowed."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from partita import RelationalBlocks
from partita.estimator import DataWarning

SHORT = {"n_chains": 2, "n_draws": 40, "burn_in": 40, "n_moves": 5, "random_state": 0}


@pytest.fixture
def blocks():
    """A model with short chains, without warnings about mixing."""

    def make(**options):
        return RelationalBlocks(**{**SHORT, **options})

    return make


@pytest.fixture
def planted(global_random_seed):
    """Binary cells in 2 x 3 clear blocks: the table, its row and its column clusters."""
    rng = np.random.default_rng(global_random_seed)
    rows, columns = np.repeat([0, 1], 8), np.repeat([0, 1, 2], 6)
    p = np.array([[0.99, 0.01, 0.99], [0.01, 0.01, 0.99]])[rows][:, columns]
    return (rng.random(p.shape) < p).astype(float), rows, columns


@pytest.fixture
def quiet():
    """Allow warnings about short chains; any other warning is a failure."""

    @contextmanager
    def check():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            assert issubclass(warning.category, DataWarning), warning
            assert str(warning.message).startswith(("rows: ", "columns: ")), warning

    return check
