"""Spectral clustering: the laws of the Laplacians, cuts by hand, shapes that k-means cannot find."""

import os

import numpy as np
import pandas as pd
import pytest
from scipy import sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_moons

from benchmarks.data import load_benchmark
from partita import SpectralClustering, load
from partita.estimator import DataWarning
from partita.metrics import adjusted_rand
from partita.similarity import cut, dissimilarity, laplacian_matrix, neighbor_graph, normalized_cut
from partita.similarity.laplacians import LAPLACIANS, eigengap, smallest_eigenpairs
from partita.similarity.neighbors import Nearest, self_tuning_graph


def random_graph(seed, n=40, parts=1, share=0.2):
    """A symmetric graph that falls into about so many parts, with one node alone."""
    rng = np.random.default_rng(seed)
    of = np.sort(rng.integers(0, parts, n))
    W = np.triu((rng.random((n, n)) < share) * (of[:, None] == of) * rng.exponential(size=(n, n)), 1)
    W[:, 0] = W[0] = 0.0
    return sp.csr_array(W + W.T)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("seed", range(6))
def test_zero_eigenvalues_are_connected_parts(seed, laplacian, global_random_seed):
    W = random_graph(global_random_seed + seed, parts=1 + seed)
    n_parts = connected_components(W)[0]
    values = np.linalg.eigvals(laplacian_matrix(W, laplacian).toarray()).real
    assert np.count_nonzero(np.abs(values) < 1e-9) == n_parts
    found = smallest_eigenpairs(W, n_parts + 4, laplacian, np.random.default_rng(global_random_seed))
    assert np.count_nonzero(found.values < 1e-9) == n_parts
    # indicators of the parts span the zero space of L and L_rw; D^1/2 times them that of L_sym
    d = np.asarray(W.sum(axis=1)).ravel()
    stretch = np.sqrt(np.where(d > 0, d, 1.0)) if laplacian == "symmetric" else 1.0
    indicators = np.eye(n_parts)[found.parts].T * stretch
    L = laplacian_matrix(W, laplacian)
    np.testing.assert_allclose(L @ indicators.T, 0.0, atol=1e-12)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("solver", ["whole", "factor", "products"])
def test_eigenpairs_are_those_of_the_whole_matrix(laplacian, solver, monkeypatch, global_random_seed):
    if solver != "whole":
        monkeypatch.setattr("partita.similarity.laplacians.MAX_DENSE_NODES", 5)
    if solver == "products":
        monkeypatch.setattr("partita.similarity.laplacians.MAX_FACTOR_NODES", 5)
    W = random_graph(global_random_seed + 11, 90, parts=2)
    L = laplacian_matrix(W, laplacian).toarray()
    found = smallest_eigenpairs(W, 7, laplacian, np.random.default_rng(global_random_seed))
    expected = np.sort(np.linalg.eigvals(L).real)[:7]
    np.testing.assert_allclose(found.values, expected, atol=1e-5)
    np.testing.assert_allclose(L @ found.vectors, found.vectors * found.values, atol=1e-3)


def test_quadratic_form(global_random_seed):
    # (25.45): f'Lf is half the sum of w_ij (f_i - f_j)^2
    W = random_graph(global_random_seed + 3)
    f = np.random.default_rng(global_random_seed).normal(size=40)
    by_hand = 0.5 * (W.toarray() * (f[:, None] - f) ** 2).sum()
    assert f @ (laplacian_matrix(W, "unnormalized") @ f) == pytest.approx(by_hand)


def test_cuts_by_hand(global_random_seed):
    W = random_graph(global_random_seed + 4, 15, share=0.6).toarray()
    z = np.random.default_rng(global_random_seed).integers(0, 3, 15)
    leaving = [W[z == k][:, z != k].sum() for k in range(3)]
    volumes = [W[z == k].sum() for k in range(3)]
    assert cut(sp.csr_array(W), z) == pytest.approx(sum(leaving) / 2)
    assert normalized_cut(sp.csr_array(W), z) == pytest.approx(
        sum(a / b for a, b in zip(leaving, volumes, strict=True))
    )


def test_normalised_cut_is_the_chance_to_leave(global_random_seed):
    # (25.48), by the random walk itself: p(B | A) under the stationary distribution
    W = random_graph(global_random_seed + 5, 20, share=0.7).toarray()[1:, 1:]
    z = np.arange(19) % 2
    P, pi = W / W.sum(axis=1, keepdims=True), W.sum(axis=1) / W.sum()
    chance = sum((pi[z == k] @ P[z == k][:, z != k]).sum() / pi[z == k].sum() for k in (0, 1))
    assert normalized_cut(sp.csr_array(W), z) == pytest.approx(chance)


def test_second_eigenvalue_bounds_the_cut(global_random_seed):
    # the relaxation: no two clusters have an Ncut below the second eigenvalue of L_sym
    W = random_graph(global_random_seed + 6, 12, share=0.7).toarray()[1:, 1:]
    second = eigh(laplacian_matrix(W).toarray(), eigvals_only=True)[1]
    for code in range(1, 2**10):
        z = np.array([code >> i & 1 for i in range(11)])
        assert normalized_cut(sp.csr_array(W), z) >= second - 1e-12


def test_self_tuning_weights_by_hand(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(30, 2))
    D = dissimilarity(X, standardize=False)
    order = np.argsort(D + np.diag(np.full(30, np.inf)), axis=1)[:, :9]
    found = Nearest(order, np.take_along_axis(D, order, axis=1))
    W = self_tuning_graph(found, 0.5).toarray()
    groups = [set(row) | {i} for i, row in enumerate(order.tolist())]
    scales = np.sqrt(found.dissimilarities[:, 6])
    for i in range(30):
        for j in range(30):
            asked = (j in order[i]) + (i in order[j])
            jaccard = len(groups[i] & groups[j]) / len(groups[i] | groups[j])
            expected = jaccard**1.5 * np.exp(-D[i, j] / (scales[i] * scales[j])) * {0: 0, 1: 0.5, 2: 1}[asked]
            if i != j:
                assert W[i, j] == pytest.approx(max(expected, 1e-9 * (asked > 0)))


@pytest.mark.parametrize("seed", range(5))
def test_one_cluster_stays_one(seed, global_random_seed):
    rng = np.random.default_rng([global_random_seed, seed])
    for X in (rng.normal(size=(150, 2)), rng.uniform(size=(150, 2)), rng.normal(size=(150, 5))):
        assert SpectralClustering(random_state=global_random_seed).fit(X).n_clusters_ == 1


def test_eigengap():
    assert eigengap(np.array([0.0, 0.0, 0.0, 0.1, 0.15]), 3) == 3
    assert eigengap(np.array([0.0, 0.0, 0.001, 0.1, 0.15]), 2) == 3
    assert eigengap(np.array([0.0, 1.0, 4.0, 9.0, 16.0])) == 1  # a chain
    assert eigengap(np.array([0.0])) == 1


def spirals(n, rng):
    """Two arms of one and a half turns, evenly filled, as in figure 25.11."""
    angle = np.sqrt(np.linspace(0.04, 1.0, n // 2)) * 3 * np.pi
    arm = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    return np.concatenate([arm, -arm]) + 0.3 * rng.normal(size=(n, 2)), np.repeat([0, 1], n // 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_clusters", [None, 2])
def test_moons_and_spirals(seed, n_clusters, global_random_seed):
    rng = np.random.default_rng([global_random_seed, seed])
    for X, z in (make_moons(200, noise=0.05, random_state=global_random_seed + seed), spirals(400, rng)):
        model = SpectralClustering(n_clusters, random_state=global_random_seed + seed).fit(X)
        assert model.n_clusters_ == 2 and adjusted_rand(model.labels_, z) == 1.0
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        near = X + 1e-4 * rng.normal(size=X.shape)
        assert np.mean(model.predict(near) == model.labels_) == 1.0


@pytest.mark.skipif("PARTITA_DATA" not in os.environ, reason="the folder of benchmark data is not there")
@pytest.mark.parametrize("name", ["two_spirals_1000_handl", "two_spirals_200_generated"])
def test_published_spirals(name, global_random_seed):
    data = load_benchmark(name)
    model = SpectralClustering(2, random_state=global_random_seed).fit(data.X)
    assert model.n_clusters_ == 2 and adjusted_rand(model.labels_, data.target) == 1.0


@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_new_rows_go_where_their_neighbours_are(laplacian, global_random_seed):
    X, z = make_moons(400, noise=0.04, random_state=global_random_seed)
    model = SpectralClustering(2, laplacian=laplacian, random_state=global_random_seed).fit(X[:300])
    assert adjusted_rand(model.labels_, z[:300]) == 1.0
    assert adjusted_rand(model.predict(X[300:]), z[300:]) == 1.0


@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_nystrom_gives_the_vectors_back(laplacian, global_random_seed):
    # a known node with its own weights: the extension is exact, so that the labels are the same
    W = neighbor_graph(make_moons(120, noise=0.15, random_state=global_random_seed + 1)[0], 8)
    W.data = np.exp(-W.data)
    model = SpectralClustering(
        3, laplacian=laplacian, metric="precomputed", random_state=global_random_seed
    ).fit(W)
    np.testing.assert_array_equal(model.predict(W), model.labels_)


def test_ready_graph_and_its_values(global_random_seed):
    X, z = make_moons(150, noise=0.03, random_state=global_random_seed + 2)
    W = np.exp(-20 * dissimilarity(X, standardize=False))
    np.fill_diagonal(W, 0.0)
    model = SpectralClustering(2, metric="precomputed", random_state=global_random_seed).fit(W)
    assert adjusted_rand(model.labels_, z) == 1.0
    assert model.cut_ == pytest.approx(cut(sp.csr_array(W), z))
    assert model.ncut_ == pytest.approx(normalized_cut(sp.csr_array(W), z))
    again = SpectralClustering(2, metric="precomputed", random_state=global_random_seed).fit(sp.coo_array(W))
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_parts_are_clusters(global_random_seed):
    blocks = sp.csr_array(sp.block_diag([np.ones((k, k)) - np.eye(k) for k in (3, 5, 4)]))
    model = SpectralClustering(metric="precomputed").fit(blocks)
    assert model.n_clusters_ == model.n_connected_components_ == 3 and model.cut_ == 0.0
    assert np.bincount(model.labels_).tolist() == [5, 4, 3]
    with pytest.warns(DataWarning, match="has 3 connected components, more than n_clusters=2"):
        fewer = SpectralClustering(2, metric="precomputed", random_state=global_random_seed).fit(blocks)
    assert fewer.n_clusters_ == 2 and fewer.cut_ == 0.0  # parts are joined, never cut


def test_mixed_table_with_holes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], 40)
    frame = pd.DataFrame({"x": rng.normal(size=80) + 9 * z, "color": np.where(z == 1, "red", "blue")})
    frame.loc[rng.random(80) < 0.1, "x"] = np.nan
    model = SpectralClustering(2, random_state=global_random_seed).fit(frame)
    assert adjusted_rand(model.labels_, z) == 1.0
    np.testing.assert_array_equal(model.predict(frame), model.labels_)


@pytest.mark.parametrize("kind", ["table", "given"])
def test_saved_and_loaded(kind, tmp_path, global_random_seed):
    X, _ = make_moons(100, noise=0.05, random_state=global_random_seed)
    new, metric = X + 0.01, "auto"
    if kind == "given":
        X, metric = np.exp(-10 * dissimilarity(X)), "precomputed"
        new = X
    model = SpectralClustering(2, metric=metric, random_state=global_random_seed).fit(X)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert (again.graph_ != model.graph_).nnz == 0 and again.ncut_ == model.ncut_


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (-np.ones((3, 3)), {"metric": "precomputed"}, "negative weights"),
        (np.triu(np.ones((3, 3))), {"metric": "precomputed"}, "not symmetric"),
        (np.ones((3, 2)), {"metric": "precomputed"}, "square"),
        (np.eye(3), {"laplacian": "round"}, "laplacian"),
        (np.eye(3), {"n_clusters": 0}, "n_clusters"),
    ],
)
def test_what_cannot_be_is_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        SpectralClustering(**options).fit(X)
