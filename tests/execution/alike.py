"""Shared by the tests of execution: an example, and the comparison of fitted estimators."""

import numpy as np


def label_matrix(flips, n=9000, seed=1):
    """Six members of four clusters; a third of the labels are random, some are missing, and one row is empty."""
    rng = np.random.default_rng(seed)
    z = rng.integers(4, size=n)
    Y = np.column_stack([np.where(rng.random(n) < flips, rng.integers(4, size=n), z) for _ in range(6)])
    Y[rng.random(Y.shape) < 0.05] = -1
    Y[5] = -1
    return Y


def worst(one, other):
    """The largest difference of two fitted estimators, in what they are made of."""
    if hasattr(one, "_fitted"):
        left, right = (_parameters(model._fitted) for model in (one, other))
    else:
        left, right = [one._counts / one._counts.max()], [other._counts / one._counts.max()]
    pairs = [
        (one.weights_, other.weights_),
        (one.confidence_, other.confidence_),
        *zip(left, right, strict=True),
    ]
    return max(float(np.nanmax(np.abs(a - b))) for a, b in pairs)


def _parameters(fitted):
    """Parameters of the clusters, or their statistics per row where parameters are integrated out."""
    if fitted.parameters is not None:
        return [*fitted.parameters.thetas]
    return [S / fitted.statistics.n.sum() for S in fitted.statistics.S]


def same(one, other, tolerance=1e-10):
    """Identical labels, parameters within ``tolerance``, and the same number of iterations."""
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert worst(one, other) <= tolerance
