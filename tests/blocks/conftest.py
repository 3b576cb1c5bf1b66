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
    """Binary cells in 2 x 3 clear blocks, three of them wrong: the table, its row and its column clusters.

    A row or column with two wrong cells may rightly be a cluster of its own; here none has more than one.
    """
    rng = np.random.default_rng(global_random_seed)
    rows, columns = np.repeat([0, 1], 8), np.repeat([0, 1, 2], 6)
    X = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])[rows][:, columns]
    wrong = rng.permutation(16)[:3], rng.permutation(18)[:3]
    X[wrong] = 1.0 - X[wrong]
    return X, rows, columns


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
