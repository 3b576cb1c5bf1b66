"""Trees of dissimilarities against their definitions, and as users meet them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.cluster import hierarchy
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage, leaves_list
from scipy.spatial.distance import pdist, squareform

from partita import Agglomerative, BisectingClusters, Diana, KMedoids, load
from partita.trees import lifetimes
from partita.trees.divisive import medoid_split
from partita.trees.pairs import point_pairs

sys.path.insert(0, str(Path(__file__).parent))
import naive_trees

TREES = [Agglomerative, Diana, BisectingClusters]
has_medoids = importlib.util.find_spec("kmedoids") is not None


def random_pairs(seed, n=14):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return squareform(pdist(X)), X


def same_merges(found, expected):
    assert [pair for pair, _ in found] == [pair for pair, _ in expected]
    assert np.allclose([height for _, height in found], [height for _, height in expected])


@pytest.mark.parametrize("seed", range(5))
def test_diana_is_the_naive_one(seed, global_random_seed):
    D, _ = random_pairs(global_random_seed + seed)
    model = Diana(metric="precomputed").fit(D)
    found = naive_trees.merges_of(model.linkage_)[::-1]
    expected = naive_trees.diana(D)
    order = sorted(range(len(found)), key=lambda t: -found[t][1])
    same_merges([found[t] for t in order], sorted(expected, key=lambda entry: -entry[1]))


@pytest.mark.parametrize("link", ["single", "complete", "average"])
@pytest.mark.parametrize("seed", range(3))
def test_links_are_the_naive_ones(link, seed, global_random_seed):
    D, _ = random_pairs(global_random_seed + seed)
    model = Agglomerative(linkage=link, metric="precomputed").fit(D)
    same_merges(naive_trees.merges_of(model.linkage_), naive_trees.agglomerate(D, link))
    condensed = Agglomerative(linkage=link, metric="precomputed").fit(squareform(D))
    assert np.array_equal(condensed.linkage_, model.linkage_)


@pytest.mark.parametrize("seed", range(5))
def test_a_split_by_medoids_is_at_rest(seed, global_random_seed):
    """Members are with the nearer medoid, and each medoid has the least sum of its side."""
    D, _ = random_pairs(global_random_seed + seed, 20)
    leave = medoid_split(D, np.arange(20))
    sides = [np.flatnonzero(leave == side) for side in (False, True)]
    medoids = [side[D[np.ix_(side, side)].sum(axis=1).argmin()] for side in sides]
    for k, side in enumerate(sides):
        assert (D[side, medoids[k]] <= D[side, medoids[1 - k]]).all()


@pytest.mark.parametrize("splitter", ["kmeans", "kmedoids"])
def test_bisection_divides_the_widest(splitter, global_random_seed):
    """Three groups on a line: the first cut is where the widest gap is, and the tree goes down to single rows."""
    X = np.concatenate([np.arange(5), 20 + np.arange(5), 60 + np.arange(5)])[:, None].astype(float)
    model = BisectingClusters(3, splitter=splitter, random_state=global_random_seed).fit(X)
    assert model.labels_.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert is_valid_linkage(model.linkage_) and is_monotonic(model.linkage_)
    full = BisectingClusters(splitter=splitter, random_state=global_random_seed).fit(X)
    widths = [height for _, height in naive_trees.merges_of(full.linkage_)]
    D = np.abs(np.subtract.outer(X[:, 0], X[:, 0])) / X.std()
    expected = [
        max(D[i, j] for i in a | b for j in a | b)
        for (a, b), _ in [(tuple(pair), h) for pair, h in naive_trees.merges_of(full.linkage_)]
    ]
    assert np.allclose(widths, expected)


@pytest.mark.parametrize("cls", TREES)
def test_two_groups(cls, two_groups, quiet, same_partition, global_random_seed):
    X, z = two_groups
    with quiet():
        model = cls(random_state=global_random_seed).fit(X)
    same_partition(model.labels_, z)
    assert model.n_clusters_ == 2 and max(model.n_clusters_scores_, key=model.n_clusters_scores_.get) == 2
    assert is_valid_linkage(model.linkage_) and is_monotonic(model.linkage_)
    for K in (1, 3, 80):
        assert cls(K, random_state=global_random_seed).fit(X).n_clusters_ == K
        assert len(set(cls(K, random_state=global_random_seed).fit(X).labels_)) == K


@pytest.mark.parametrize("cls", TREES)
def test_centres_first(cls, two_groups, same_partition, global_random_seed):
    X, z = two_groups
    model = cls(2, max_exact=50, n_centers=10, random_state=global_random_seed).fit(X)
    same_partition(model.labels_, z)
    assert "reduced" in model.fit_report_ and len(model.linkage_) < 10
    assert len(model.row_leaves_) == 80 and model.row_leaves_.max() == len(model.linkage_)


def test_the_gap_can_say_one(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    noise = [
        Agglomerative(criterion="gap", random_state=global_random_seed).fit(rng.uniform(size=(60, 2)))
        for _ in range(5)
    ]
    assert np.median([model.n_clusters_ for model in noise]) == 1 and len(noise[0].n_clusters_scores_) == 10
    X = rng.normal(size=(60, 2)) + 9.0 * (np.arange(60) % 2)[:, None]
    assert Agglomerative(criterion="gap", random_state=global_random_seed).fit(X).n_clusters_ == 2
    with pytest.raises(ValueError, match=r"criterion='gap' .* needs a table of numbers"):
        Agglomerative(criterion="gap", metric="precomputed").fit(squareform(pdist(X)))


def test_lifetimes_add_up_to_the_heights(global_random_seed):
    D, _ = random_pairs(global_random_seed)
    Z = Agglomerative(metric="precomputed").fit(D).linkage_
    assert sum(lifetimes(Z).values()) == pytest.approx(Z[-1, 2] - Z[0, 2])  # every object alone is left out


def test_optimal_ordering_only_turns_branches(global_random_seed):
    D, _ = random_pairs(global_random_seed + 1, 20)
    plain, ordered = (Agglomerative(metric="precomputed", optimal_ordering=o).fit(D) for o in (False, True))
    same_merges(naive_trees.merges_of(ordered.linkage_), naive_trees.merges_of(plain.linkage_))

    def length(Z):
        leaves = leaves_list(Z)
        return D[leaves[:-1], leaves[1:]].sum()

    assert length(ordered.linkage_) < length(plain.linkage_)


def test_metrics(two_groups):
    X, _ = two_groups
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for metric in ("euclidean", "cityblock", "cosine"):
        model = Agglomerative(metric=metric).fit(X)
        given = Agglomerative(metric="precomputed").fit(pdist(scaled, metric))
        assert np.allclose(model.linkage_[:, 2], given.linkage_[:, 2])


def test_mixed_tables_with_holes(two_groups, same_partition):
    X, z = two_groups
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "town": np.array(["Ulm", "Bonn"])[z]})
    frame.loc[3, "x"] = np.nan
    for model in (Agglomerative(2), Diana(2), BisectingClusters(2)):
        same_partition(model.fit(frame).labels_, z)
    same_partition(Agglomerative(2, metric="city_block").fit(X).labels_, z)


def test_what_a_metric_cannot_read(two_groups):
    X, _ = two_groups
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"metric='cityblock' .* metric='auto'"):
        Agglomerative(metric="cityblock").fit(X)


@pytest.mark.parametrize(
    "D, message",
    [
        (np.ones((3, 2)), "give a square matrix"),
        (np.zeros(4), "which is not n"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), r"not symmetric: X\[0, 1\] is 1"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), r"\[0, 1\] is -1"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "finite"),
        (np.array([[1.0, 2.0], [2.0, 0.0]]), r"X\[0, 0\] is 1.0: an object is not dissimilar from itself"),
    ],
)
def test_bad_dissimilarities(D, message):
    with pytest.raises(ValueError, match=message):
        Agglomerative(metric="precomputed").fit(D)


@pytest.mark.parametrize("linkage", ["single", "average", "ward"])
def test_given_dissimilarities_are_not_overwritten(linkage, global_random_seed):
    _, X = random_pairs(global_random_seed)
    given = pdist(X)
    found = Agglomerative(3, linkage=linkage, metric="precomputed").fit(given).linkage_
    assert np.array_equal(given, pdist(X))
    assert np.allclose(found, hierarchy.linkage(given, linkage))
    units = (X - X.mean(axis=0)) / X.std(axis=0)
    assert np.allclose(
        Agglomerative(3, linkage=linkage).fit(X).linkage_, hierarchy.linkage(pdist(units), linkage)
    )


def test_distances_beyond_numbers():
    X = np.zeros((6, 2))
    X[3:, 0] = [1.0, 2.0, 3.0]
    assert point_pairs(X, "cosine").condensed.tolist() == [1.0] * 12 + [0.0] * 3  # rows of zeros: not defined
    assert np.isfinite(point_pairs(X * 1e200, "sqeuclidean").condensed).all()


@pytest.mark.parametrize("cls", TREES)
def test_odd_tables(cls, quiet, one_warning, global_random_seed):
    with quiet():
        assert cls().fit([[1.5, 2.0]]).labels_.tolist() == [0]
        assert cls(random_state=global_random_seed).fit(np.full((9, 2), 3.5)).n_clusters_ == 1
        assert (
            cls(random_state=global_random_seed)
            .fit(np.repeat([[0.0, 0.5], [1.0, 1.0]], 5, axis=0))
            .n_clusters_
            == 2
        )
    with one_warning("n_clusters is 5, and there are only 3 rows"):
        assert cls(5, random_state=global_random_seed).fit([[1.5], [2.5], [4.0]]).n_clusters_ == 3
    with pytest.raises(ValueError, match="every cell is missing"):
        cls().fit(np.full((4, 2), np.nan))
    with pytest.raises(ValueError, match=r"column 'x1', row 1 .*replace inf"):
        cls().fit([[1.0, 2.0], [3.0, np.inf]])


@pytest.mark.parametrize("cls", TREES)
def test_save_and_load(cls, tmp_path, two_groups, global_random_seed):
    X, _ = two_groups
    for model in (
        cls(random_state=global_random_seed).fit(X),
        cls(metric="precomputed", random_state=global_random_seed),
    ):
        if model.metric == "precomputed":
            model.fit(squareform(pdist(X)))
        model.save(tmp_path / "tree.npz")
        other = load(tmp_path / "tree.npz")
        assert np.array_equal(other.linkage_, model.linkage_) and np.array_equal(other.labels_, model.labels_)
        assert (
            other.n_clusters_scores_ == model.n_clusters_scores_ and other.get_params() == model.get_params()
        )


def test_more_pairs_than_memory():
    frame = pd.DataFrame({"a": pd.array(["u", "v"] * 500_000)})
    with pytest.raises(ValueError, match="the dissimilarities of 1,000,000 rows need about"):
        Agglomerative().fit(frame)


@pytest.mark.skipif(not has_medoids, reason="kmedoids is not installed")
def test_medoids(two_groups, tmp_path, same_partition, global_random_seed):
    X, z = two_groups
    model = KMedoids(2, random_state=global_random_seed).fit(X)
    same_partition(model.labels_, z)
    D = squareform(pdist((X - X.mean(axis=0)) / X.std(axis=0)))
    assert model.inertia_ == pytest.approx(D[:, model.medoids_].min(axis=1).sum())
    assert model.labels_[model.medoids_].tolist() == [0, 1]
    for k in (0, 1):  # each is the middle of its cluster
        own = np.flatnonzero(model.labels_ == k)
        assert model.medoids_[k] == own[D[np.ix_(own, own)].sum(axis=1).argmin()]
    model.save(tmp_path / "medoids.npz")
    assert np.array_equal(load(tmp_path / "medoids.npz").medoids_, model.medoids_)


@pytest.mark.skipif(has_medoids, reason="kmedoids is installed")
def test_medoids_say_what_to_install(two_groups):
    with pytest.raises(ImportError, match=r"pip install 'partita\[medoids\]'"):
        KMedoids(2).fit(two_groups[0])
