"""The ensembles of the LACA paper: k-means with a random k on random features."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from benchmarks.data import load_benchmark


def real_ensemble(name, n_members, holes_seed, seed=1):
    """The ensemble of a real table; "iris with holes" misses three labels in ten."""
    try:
        X = load_iris().data if name.startswith("iris") else load_benchmark(name).X
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    Y = subspace_kmeans(X, n_members, seed)
    if name.endswith("holes"):
        Y = np.where(np.random.default_rng(holes_seed).random(Y.shape) < 0.3, -1, Y)
    return Y


def subspace_kmeans(X, n_members, seed):
    """k from 2 to n/15, at least three features, one random start."""
    rng = np.random.default_rng(seed)
    n, m = X.shape
    members = []
    for _ in range(n_members):
        features = rng.choice(m, rng.integers(min(3, m), m + 1), replace=False)
        k = rng.integers(2, n // 15 + 1)
        kmeans = KMeans(k, init="random", n_init=1, random_state=int(rng.integers(2**31)))
        members.append(kmeans.fit_predict(X[:, features]))
    return np.array(members).T
