"""Small ensembles, and the simplest consensus there is."""

import sys
from pathlib import Path

import numpy as np
import pytest

from partita.consensus import ConsensusEstimator, Found
from partita.labels import canonical

sys.path.insert(0, str(Path(__file__).parent))  # for the naive implementations beside the tests


class FirstLabels(ConsensusEstimator):
    """A consensus that believes the first label each row has; only for the tests of what all of them share."""

    def __init__(self, noise="missing", handle_unknown="missing", random_state=None):
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fit_labelings(self, labelings, rng, control):
        self.seen = labelings  # no such attribute in a true method
        codes = labelings.codes
        first = codes[np.arange(len(codes)), (codes >= 0).argmax(axis=1)]
        return Found(canonical(first), np.ones(len(codes)), n_iter=1, converged=True)


@pytest.fixture
def first_labels():
    return FirstLabels


@pytest.fixture
def ensemble(global_random_seed):
    """Three planted groups seen by six members, 10% of the labels redrawn, 10% missing."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1, 2], [40, 30, 20])
    Y = np.repeat(z[:, None], 6, axis=1)
    Y = np.where(rng.random(Y.shape) < 0.1, rng.integers(3, size=Y.shape), Y)
    return z, np.where(rng.random(Y.shape) < 0.1, -1, Y)


@pytest.fixture
def clear_ensemble(global_random_seed):
    """Three planted groups seen by six members, 5% of the labels redrawn, 10% missing; at most one of each in a row.

    A row that differs from its group in several labels may rightly be a cluster of its own; here there is none.
    """
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1, 2], [40, 30, 20])
    Y = np.repeat(z[:, None], 6, axis=1)
    redrawn = np.flatnonzero(rng.random(90) < 0.3)
    Y[redrawn, rng.integers(6, size=len(redrawn))] = rng.integers(3, size=len(redrawn))
    missing = np.flatnonzero(rng.random(90) < 0.6)
    Y[missing, rng.integers(6, size=len(missing))] = -1
    return z, Y
