"""The ensembles of the LACA paper: k-means with a random k on random features."""

import numpy as np
from sklearn.cluster import KMeans


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
