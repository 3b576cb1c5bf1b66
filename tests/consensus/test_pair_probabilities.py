"""Pair probabilities of `Consensus`: the formula by brute force, the operator, and the confidence that follows."""

import numpy as np
import pytest

from partita import Consensus
from partita.consensus.default.association_cosines import AssociationCosines
from partita.consensus.default.pair_probabilities import PairProbabilities, mean_within
from partita.labels import Coassociation, signatures

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")  # holes are reported


def random_labels(rng, n=25, members=4, levels=3):
    """Labels with holes, one object without any label, and objects that share all labels."""
    Y = rng.integers(-1, levels, (n, members))
    Y[0] = -1
    Y[1] = Y[2] = rng.integers(0, levels, members)
    return Y


def cosines_by_brute_force(Y, member_weights=None):
    """From the N x N matrix, entry by entry."""
    n, w = len(Y), np.ones(Y.shape[1]) if member_weights is None else member_weights
    C = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            C[i, j] = sum(w[m] for m in range(Y.shape[1]) if Y[i, m] >= 0 and Y[i, m] == Y[j, m]) / sum(w)
    np.testing.assert_allclose(C, Coassociation(Y, w).dense(), atol=1e-12)
    norms = np.sqrt((C**2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(C @ C.T / np.outer(norms, norms))


def by_brute_force(Y, z, g, member_weights=None):
    e, u = (z[:, None] == z[None, :]).astype(float), cosines_by_brute_force(Y, member_weights)
    return g * e + (1 - g) * (0.07 + 0.31 * u + 0.26 * e)


@pytest.fixture
def operator(rng):
    Y, w = random_labels(rng), rng.uniform(0.1, 2.0, 4)
    z, g = rng.integers(0, 3, len(Y)), rng.random()
    distinct = signatures(Y)
    return PairProbabilities(distinct.rows, z, distinct.inverse, w, g), by_brute_force(Y, z, g, w)


def test_the_operator_is_the_formula(operator, rng):
    P, expected = operator
    np.testing.assert_allclose(P.dense(), expected, atol=1e-12)
    np.testing.assert_allclose(P @ np.eye(P.shape[0]), expected, atol=1e-12)
    v = rng.normal(size=P.shape[0])
    np.testing.assert_allclose(P @ v, expected @ v, atol=1e-12)
    np.testing.assert_allclose(P.T @ v, P @ v, atol=0)
    i, j = rng.integers(0, P.shape[0], (2, 7, 5))
    np.testing.assert_allclose(P.pairs(i, j), expected[i, j], atol=1e-12)
    assert P.pairs(3, 4).shape == ()


def test_they_are_probabilities(operator):
    dense = operator[0].dense()
    np.testing.assert_allclose(dense, dense.T, atol=1e-12)
    assert dense.min() >= 0.0 and dense.max() <= 1.0 + 1e-12


def test_few_pairs_and_many_pairs_agree(rng, monkeypatch):
    """With few rows H is not formed; chunks do not matter."""
    Y = random_labels(rng, n=40, members=3, levels=2)
    distinct = signatures(Y)
    i, j = np.triu_indices(len(distinct.rows))
    many = AssociationCosines(distinct.rows, distinct.weights)
    assert many.shape[0] > many.labels.shape[1]
    everything = many.pairs(i, j)
    assert "metric" in vars(many)
    monkeypatch.setattr("partita.consensus.default.association_cosines.CHUNK_ENTRIES", 20)
    for a, b, expected in zip(i[::7], j[::7], everything[::7], strict=True):
        few = AssociationCosines(distinct.rows, distinct.weights)
        assert few.pairs(np.array([a]), np.array([b]))[0] == pytest.approx(expected, abs=1e-12)
        assert "metric" not in vars(few)
    np.testing.assert_allclose(
        AssociationCosines(distinct.rows, distinct.weights).pairs(i, j), everything, atol=1e-12
    )


@pytest.mark.parametrize("members", [4, 25, 40])
def test_a_weight_is_so_many_objects(members, rng, monkeypatch):
    """Cosines are those of the matrix in which each row is repeated; norms by pairs of members or of rows."""
    monkeypatch.setattr("partita.consensus.default.association_cosines.CHUNK_ENTRIES", 60)
    Y, w, powers = random_labels(rng, members=members), rng.integers(1, 4, 25), rng.uniform(0.1, 2.0, members)
    where = np.repeat(np.arange(25), w)
    first = np.searchsorted(where, np.arange(25))
    expected = cosines_by_brute_force(Y[where], powers)[np.ix_(first, first)]
    np.testing.assert_allclose(AssociationCosines(Y, w, powers).rows(np.arange(25)), expected, atol=1e-12)


@pytest.mark.parametrize("single", [False, True])
def test_the_mean_within_a_cluster_is_that_of_the_pairs(rng, single):
    Y, w, powers, g = random_labels(rng), rng.integers(1, 4, 25), rng.uniform(0.1, 2.0, 4), rng.random()
    z = rng.integers(0, 3, 25)
    if single:
        z[7], w[7] = 3, 1
    where = np.repeat(np.arange(25), w)
    P = by_brute_force(Y[where], z[where], g, powers)
    found = mean_within(z, Y, w.astype(float), powers, g)[where]
    for i in range(len(where)):
        others = np.flatnonzero((z[where] == z[where][i]) & (np.arange(len(where)) != i))
        if len(others):
            expected = P[i, others].mean()
        elif (Y[where[i]] >= 0).any():
            expected = P[i, i]
        else:
            expected = g + (1 - g) * 0.33
        assert found[i] == pytest.approx(expected, abs=1e-9)


def test_a_fitted_consensus_uses_the_formula(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.arange(90) % 3
    Y = np.where(rng.random((90, 9)) < 0.25, rng.integers(3, size=(90, 9)), z[:, None])
    Y = np.where(rng.random(Y.shape) < 0.1, -1, Y)
    weights, powers = rng.integers(1, 3, 90), rng.uniform(0.5, 2.0, 9)
    model = Consensus(3, random_state=global_random_seed).fit(Y, sample_weight=weights, member_weight=powers)
    where = np.repeat(np.arange(90), weights)
    first = np.searchsorted(where, np.arange(90))
    labels = (Y >= 0) @ (powers / powers.mean())
    g = min(1.0, model.independent_members_ / np.average(labels, weights=weights))
    expected = by_brute_force(Y[where], model.labels_[where], g, powers)[np.ix_(first, first)]
    np.testing.assert_allclose(model.coclustering().dense(), expected, atol=1e-9)
    i, j = rng.integers(0, 90, (2, 20))
    np.testing.assert_allclose(model.coclustering(i, j), expected[i, j], atol=1e-9)
    # confidence: the mean of the probability of the label, of the share of members that put the object with the others
    # of its cluster, and of the mean of these probabilities over all objects
    certainty = model.predict_proba(Y)[np.arange(90), model.labels_]
    agreed, paired = np.empty(90), np.empty(90)
    for object_ in range(90):
        others = np.flatnonzero(model.labels_[where] == model.labels_[object_])
        others = others[others != first[object_]]
        both = (Y[where][others] >= 0) & (Y[object_] >= 0)
        votes = ((Y[where][others] == Y[object_]) & both) @ powers
        agreed[object_] = votes.sum() / (both @ powers).sum()
        paired[object_] = expected[object_][where][others].mean()
    confidence = (certainty + agreed + np.average(paired, weights=weights)) / 3
    np.testing.assert_allclose(model.confidence_, confidence, atol=1e-9)
