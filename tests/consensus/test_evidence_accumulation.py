"""Evidence accumulation against its naive twin on the co-association matrix, and the laws it keeps."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage
from sklearn.metrics import adjusted_rand_score

import partita
from partita import EvidenceAccumulation
from partita.estimator import DataWarning
from partita.labels import canonical, signatures

sys.path.insert(0, str(Path(__file__).parent))
from naive_eac import naive_cut, naive_eac, naive_lifetime
from subspaces import real_ensemble

LINKS = ["average", "single", "complete"]


def fit(Y, sample_weight=None, member_weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = EvidenceAccumulation(**parameters)
        return model.fit(Y, sample_weight=sample_weight, member_weight=member_weight)


def same_partition(a, b):
    return np.array_equal(canonical(a), canonical(b))


def assert_equals_naive(Y, link, member_weight=None):
    """Merge heights, the partition at every K there is, and the lifetime criterion."""
    naive = naive_eac(Y, link, member_weight)
    model = fit(Y, linkage=link, member_weight=member_weight)
    S = len(signatures(Y).rows)
    # the merges of identical rows come first, at 1
    assert np.allclose(1 - model.linkage_[:, 2], naive[2][len(Y) - S :], rtol=0, atol=1e-12)
    assert np.allclose(naive[2][: len(Y) - S], 1.0)
    assert model.n_clusters_ == naive_lifetime(naive[2])
    assert same_partition(model.labels_, naive_cut(naive, model.n_clusters_))
    for K in range(1, min(S, 12) + 1):
        labels = fit(Y, n_clusters=K, linkage=link, member_weight=member_weight).labels_
        assert same_partition(labels, naive_cut(naive, K)), K


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", ["iris", "glass", "iris with holes"])
def test_equals_the_naive_one_on_real_ensembles(name, link, global_random_seed):
    Y = real_ensemble(name, 20, global_random_seed)
    assert_equals_naive(Y, link)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_naive_one_on_small_ensembles_full_of_ties(seed, link, global_random_seed):
    rng = np.random.default_rng([global_random_seed, seed])
    Y = np.where(rng.random((30, 4)) < 0.4, rng.integers(3, size=(30, 4)), rng.integers(3, size=(30, 1)))
    assert_equals_naive(Y, link)
    holes = np.where(rng.random(Y.shape) < 0.25, -1, Y)
    holes[:, 3] = Y[
        :, 3
    ]  # every two objects share a member: without one, ties of the pooled ratio are not ordered
    assert_equals_naive(holes, link, member_weight=[1, 2, 0.5, 1])


@pytest.fixture
def planted(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1, 2], [60, 40, 30])
    return z, np.where(rng.random((130, 9)) < 0.15, rng.integers(3, size=(130, 9)), z[:, None])


@pytest.mark.parametrize("link", LINKS)
def test_weights_are_copies_and_row_order_does_not_matter(planted, link, global_random_seed):
    _, Y = planted
    rng = np.random.default_rng(global_random_seed)
    w = rng.integers(0, 4, size=len(Y))
    rows = rng.permutation(np.repeat(np.arange(len(Y)), w))
    for K in (None, 4):
        weighted, repeated = (
            fit(Y, sample_weight=w, linkage=link, n_clusters=K),
            fit(Y[rows], linkage=link, n_clusters=K),
        )
        assert same_partition(weighted.labels_[rows], repeated.labels_)
        assert np.array_equal(weighted.linkage_, repeated.linkage_)
        assert np.allclose(weighted.confidence_[rows], repeated.confidence_)


def test_finds_planted_groups(planted, tmp_path):
    z, Y = planted
    model = fit(Y, n_clusters=3)
    assert adjusted_rand_score(z, model.labels_) > 0.9
    assert is_valid_linkage(model.linkage_)
    assert np.array_equal(model.predict(Y), model.labels_)
    assert sum(model.n_clusters_scores_.values()) == pytest.approx(1)
    new = np.repeat(np.arange(3)[:, None], 9, axis=1)
    assert model.predict(new).tolist() == [np.bincount(model.labels_[z == k]).argmax() for k in range(3)]
    proba = model.predict_proba(np.vstack([new, np.full(9, -1)]))
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.allclose(proba[3], np.bincount(model.labels_) / 130)
    model.save(tmp_path / "eac.npz")
    assert np.array_equal(partita.load(tmp_path / "eac.npz").predict_proba(new), proba[:3])
    with pytest.warns(DataWarning, match="only 2 distinct rows"):
        EvidenceAccumulation(n_clusters=5).fit([[0, 0], [1, 1], [1, 1]])


def test_a_sample_of_rows_gives_nearly_the_exact_answer(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(5, size=1500)
    Y = np.where(rng.random((1500, 10)) < 0.25, rng.integers(6, size=(1500, 10)), z[:, None])
    exact, reduced = (
        fit(Y, n_clusters=5),
        fit(Y, n_clusters=5, max_exact=400, random_state=global_random_seed),
    )
    assert "reduced" in reduced.fit_report_
    ari = adjusted_rand_score(exact.labels_, reduced.labels_)
    print(f"ARI of the reduced run to the exact one: {ari:.3f}")
    assert ari > 0.9
    assert np.array_equal(reduced.predict(Y), reduced.labels_)


def test_faults_8_12_47():
    assert fit(np.ones((5, 2), int)).n_clusters_ == 1
    y = np.repeat([4, 2, 9], [5, 6, 7])
    for Y in (y[:, None], np.repeat(y[:, None], 4, axis=1)):
        model = fit(Y)
        assert same_partition(model.labels_, y)
        assert np.all(model.confidence_ == 1)
