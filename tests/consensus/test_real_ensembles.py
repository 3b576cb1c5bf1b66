"""The classical methods beside the definitions of their papers, object by object: iris, glass, and a set with holes."""

import warnings
from importlib.util import find_spec
from itertools import permutations

import naive_graphs as naive
import numpy as np
import pytest
from subspaces import real_ensemble

from partita.consensus import CSPA, HBGF, HGPA, MCLA, QMI, Voting
from partita.consensus.graphs.hbgf import spectral_embedding
from partita.estimator import DataWarning
from partita.labels import canonical, signatures

needs_metis = pytest.mark.skipif(find_spec("pymetis") is None, reason="no pymetis")
needs_kahypar = pytest.mark.skipif(find_spec("mtkahypar") is None, reason="no mtkahypar")


@pytest.fixture(params=["iris", "glass", "iris with holes"], scope="module")
def Y(request):
    """Ten k-means clusterings of random features; a third of the labels deleted in the last set."""
    labels = real_ensemble(request.param, 10, holes_seed=0, seed=3)
    return np.column_stack([canonical(column, missing=-1) for column in labels.T])


def fitted(model, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # -1 is read as missing; a coarse cut may be uneven
        return model.fit(Y)


def cut_by_others(Y, K, rng):
    """Even partitions to compare a cut with: objects in the order of a member's labels, in blocks of one size."""
    for member in Y.T:
        order = np.lexsort([rng.random(len(Y)), member])
        labels = np.empty(len(Y), int)
        labels[order] = np.arange(len(Y)) * K // len(Y)
        yield labels


@needs_metis
def test_cspa_cuts_less_than_any_even_cut_of_a_member(Y):
    model = fitted(CSPA(3, balance=0.05, identical="apart", random_state=0), Y)
    C = naive.naive_coassociation(Y, np.ones(Y.shape[1]))
    found = naive.naive_cut(C, model.labels_)
    others = [naive.naive_cut(C, labels) for labels in cut_by_others(Y, 3, np.random.default_rng(1))]
    print(f"CSPA: cut {found:.1f}, members in even blocks {min(others):.1f} to {max(others):.1f}")
    assert model.imbalance_ <= 0.05 + 3 / len(Y)
    assert found <= min(others)


@needs_kahypar
def test_hgpa_breaks_fewer_clusters_than_any_even_cut_of_a_member(Y):
    model = fitted(HGPA(3, balance=0.05, identical="apart", random_state=0), Y)
    clusters = naive.clusters_of(Y)
    found = naive.broken(clusters, model.labels_)
    others = [naive.broken(clusters, labels) for labels in cut_by_others(Y, 3, np.random.default_rng(1))]
    print(f"HGPA: {found} clusters broken of {len(clusters)}, members in even blocks {min(others)}")
    assert model.imbalance_ <= 0.05 + 3 / len(Y)
    assert found <= min(others)


@needs_metis
def test_mcla_is_the_mean_of_its_clusters(Y):
    model = fitted(MCLA(3, random_state=0), Y)
    groups = [np.flatnonzero(row) for row in model.meta_clusters_]
    association = naive.naive_association(naive.clusters_of(Y), groups, len(Y))
    association = association[association.sum(axis=1) > 0]
    seen = (Y >= 0).any(axis=1)
    proba = association / association.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(Y)[seen], proba, atol=1e-8)


def test_hbgf_has_the_eigenvectors_of_the_whole_graph(Y):
    Y = Y[(Y >= 0).any(axis=1)]
    n_levels = Y.max(axis=0) + 1
    distinct = signatures(Y)
    found = spectral_embedding(distinct.rows, n_levels, distinct.weights, np.ones(Y.shape[1]), 3)
    vectors = naive.naive_bipartite_vectors(Y, 3)
    ours = np.concatenate([found.rows[distinct.inverse], found.clusters])
    np.testing.assert_allclose(ours @ ours.T, vectors @ vectors.T, atol=1e-6)
    assert len(np.unique(fitted(HBGF(3, random_state=0), Y).labels_)) == 3


def test_qmi_has_the_utility_of_its_definition(Y):
    model = fitted(QMI(3, random_state=0), Y)
    utilities = []
    for member in Y.T:
        seen = member >= 0
        labels, z = member[seen], model.labels_[seen]
        total = -sum((labels == level).mean() ** 2 for level in set(labels))
        for k in set(z):
            inside = labels[z == k]
            total += (z == k).mean() * sum((inside == level).mean() ** 2 for level in set(inside))
        utilities.append(total)
    np.testing.assert_allclose(model.utilities_, utilities, atol=1e-12)
    assert model.utility_ == pytest.approx(sum(utilities))


def test_votes_follow_the_best_names_of_all(Y):
    """Members of three clusters renamed in all six ways: none agrees more with the reference."""
    rng = np.random.default_rng(2)
    truth = canonical(np.where(Y[:, 0] < 0, 0, Y[:, 0]) % 3)
    noisy = np.where(rng.random((len(truth), 5)) < 0.3, rng.integers(3, size=(len(truth), 5)), truth[:, None])
    Z = np.column_stack([rng.permutation(3)[member] for member in noisy.T])
    model = fitted(Voting(3, reference=0), Z)
    reference, votes = Z[:, 0], np.zeros((len(Z), 3))
    for member in Z.T:
        names = max(permutations(range(3)), key=lambda p: (np.array(p)[member] == reference).sum())
        votes[np.arange(len(Z)), np.array(names)[member]] += 1
    ours = model.votes_[:, [np.bincount(model.labels_[reference == k]).argmax() for k in range(3)]]
    np.testing.assert_allclose(ours, votes / 5)


@needs_metis
@needs_kahypar
@pytest.mark.parametrize("method", [CSPA, HGPA])
def test_an_even_cut_of_rows_that_are_all_alike(method):
    """Three signatures of 62, 50 and 38 objects: together they cannot be even, and the fit says so; apart they can."""
    Y = np.repeat(np.arange(3), [62, 50, 38])[:, None] + np.zeros((1, 5), int)
    with pytest.warns(DataWarning, match='identical="apart" separates them'):
        method(3, balance=0.05, random_state=0).fit(Y)
    apart = method(3, balance=0.05, identical="apart", random_state=0).fit(Y)
    print(method.__name__, np.bincount(apart.labels_))
    assert apart.imbalance_ <= 0.05 and "unbalanced" not in apart.fit_report_
    assert apart.predict(Y).shape == (150,)
    auto = method(3, random_state=0).fit(Y)
    assert np.bincount(auto.labels_).tolist() == [62, 50, 38]
