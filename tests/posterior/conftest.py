import numpy as np
import pytest

from partita.labels import set_partitions


@pytest.fixture(scope="session")
def partitions_of_8():
    return np.array(list(set_partitions(8)))


@pytest.fixture(scope="session")
def random_posterior(partitions_of_8):
    """Draws of 8 objects and their weights, of four kinds: noise, one mode with noise, few partitions, two modes."""

    def make(rng, kind):
        B = int(rng.integers(3, 60))
        noise = rng.integers(rng.integers(2, 9), size=(B, 8))
        if kind == 0:
            draws = noise
        elif kind == 1:
            draws = np.where(rng.random((B, 8)) < 0.4, noise, rng.integers(4, size=8))
        elif kind == 2:
            odds = rng.dirichlet(np.full(len(partitions_of_8), 0.01))
            draws = partitions_of_8[rng.choice(len(partitions_of_8), size=B, p=odds)]
        else:
            modes = rng.integers(4, size=(2, 8))
            draws = np.where(rng.random((B, 8)) < 0.2, noise, modes[rng.integers(2, size=B)])
        return draws, rng.dirichlet(np.ones(B))

    return make


@pytest.fixture(scope="session")
def noisy_copies():
    """Copies of a planted partition in which some objects move, each to a second cluster of its own."""

    def make(rng, n_draws, n_objects, n_clusters, noise):
        z = rng.integers(n_clusters, size=n_objects)
        second = rng.integers(n_clusters, size=n_objects)
        stray = rng.random((n_draws, n_objects)) < 2 * noise * rng.random(n_objects)
        return np.where(stray, second, z), z

    return make
