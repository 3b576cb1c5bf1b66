"""What must not change the answer, and what must change it in a known way."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partita import Mixture

INFERENCES = {"em": {"inference": "em", "n_clusters": 2}, "vb": {"inference": "vb", "max_clusters": 4}}
few = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def fit(inference, X, sample_weight=None, **parameters):
    settled = {"tol": 1e-7, "max_iter": 5000, "n_init": 1, "random_state": 0, "learn_hyper": False}
    return Mixture(**(INFERENCES[inference] | settled | parameters)).fit(X, sample_weight=sample_weight)


@st.composite
def tables(draw):
    """Two groups, 10 standard deviations apart: two real columns and two of text, some cells missing."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(12, 30))
    z = np.arange(n) % 3 == 0
    X = np.empty((n, 4), dtype=object)
    X[:, :2] = rng.normal(10.0 * z[:, None], 1.0, (n, 2))
    X[:, 2:] = np.where(rng.random((n, 2)) < 0.9, np.where(z, "a", "b")[:, None], "c")
    holes = rng.random(X.shape) < 0.05
    X[holes] = None
    return X, rng


def agree(a, b, same=1e-6):
    assert np.allclose(a.log_likelihood_, b.log_likelihood_, rtol=same, atol=1e-3), (
        a.log_likelihood_,
        b.log_likelihood_,
    )


@pytest.mark.parametrize("inference", INFERENCES)
@few
@given(tables())
def test_order_of_rows(same_partition, inference, table):
    X, rng = table
    order = rng.permutation(len(X))
    a, b = fit(inference, X), fit(inference, X[order])
    same_partition(a.labels_[order], b.labels_)
    agree(a, b)


@pytest.mark.parametrize("inference", INFERENCES)
@few
@given(tables())
def test_order_of_columns(same_partition, inference, table):
    X, rng = table
    order = rng.permutation(4)
    a, b = fit(inference, X), fit(inference, X[:, order])
    same_partition(a.labels_, b.labels_)
    agree(a, b)


@pytest.mark.parametrize("inference", INFERENCES)
@few
@given(tables(), st.permutations(["x", "y", "z"]))
def test_names_of_categories(same_partition, inference, table, names):
    X, _ = table
    renamed = X.copy()
    for old, new in zip("abc", names, strict=True):
        renamed[:, 2:][X[:, 2:] == old] = new
    a, b = fit(inference, X), fit(inference, renamed)
    same_partition(a.labels_, b.labels_)
    agree(a, b)


@pytest.mark.parametrize("inference", INFERENCES)
@few
@given(tables(), st.floats(0.01, 100), st.floats(-1000, 1000))
def test_units(same_partition, inference, table, scale, shift):
    X, _ = table
    moved = X.copy()
    moved[:, 0] = [None if x is None else scale * x + shift for x in X[:, 0]]
    a, b = fit(inference, X), fit(inference, moved)
    same_partition(a.labels_, b.labels_)
    seen = sum(x is not None for x in X[:, 0])
    assert b.log_likelihood_ == pytest.approx(a.log_likelihood_ - seen * np.log(scale), rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("inference", INFERENCES)
@few
@given(tables())
def test_constant_column(same_partition, inference, table):
    X, _ = table
    wider = np.column_stack([X, np.full(len(X), "same", dtype=object)])
    a, b = fit(inference, X), fit(inference, wider)
    same_partition(a.labels_, b.labels_)
    agree(a, b)


@pytest.mark.parametrize("inference", INFERENCES)
@few
@given(tables())
def test_twice_is_weight_two(same_partition, inference, table):
    X, rng = table
    weights = rng.integers(1, 4, len(X))
    a, b = fit(inference, X, weights), fit(inference, np.repeat(X, weights, axis=0))
    same_partition(np.repeat(a.labels_, weights), b.labels_)
    agree(a, b)
    assert np.allclose(np.sort(a.weights_), np.sort(b.weights_), atol=1e-4)


@pytest.mark.parametrize("inference", INFERENCES)
@few
@given(tables())
def test_weight_zero_is_absent(same_partition, inference, table):
    X, rng = table
    keep = rng.random(len(X)) < 0.8
    keep[:6] = True
    a, b = fit(inference, X, keep.astype(float)), fit(inference, X[keep])
    same_partition(a.labels_[keep], b.labels_)
    agree(a, b)


def test_weights_are_not_ignored(global_random_seed):
    """All the weight on one group: the other has no say in the profile."""
    rng = np.random.default_rng(global_random_seed)
    X = np.concatenate([rng.normal(0, 1, (50, 1)), rng.normal(10, 1, (50, 1))])
    weights = np.r_[np.full(50, 9.0), np.full(50, 1.0)]
    model = Mixture(n_clusters=2, inference="em", random_state=global_random_seed).fit(
        X, sample_weight=weights
    )
    assert np.allclose(model.weights_, [0.9, 0.1], atol=0.01)
