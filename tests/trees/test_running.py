"""Fits of trees and medoids that are stopped, interrupted and resumed."""

import importlib.util

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage
from scipy.spatial.distance import pdist, squareform

from partita import BayesianTree, BisectingClusters, Diana, KMedoids, load
from partita.estimator import DataWarning

needs_medoids = pytest.mark.skipif(
    importlib.util.find_spec("kmedoids") is None, reason="kmedoids is not installed"
)
MODELS = [
    pytest.param(lambda **options: Diana(**options), id="diana"),
    pytest.param(lambda **options: BisectingClusters(random_state=0, **options), id="bisecting"),
    pytest.param(lambda **options: BayesianTree(random_state=0, tol=0.0, **options), id="bayesian"),
    pytest.param(lambda **options: KMedoids(2, random_state=0, **options), id="medoids", marks=needs_medoids),
]


class Killed(BaseException):
    """What a test raises in the place of a kill."""


class Stop:
    """A callback that stops, interrupts or kills the fit after some calls."""

    def __init__(self, after, error=None):
        self.after, self.error, self.seen = after, error, []

    def __call__(self, progress):
        self.seen.append(progress)
        if len(self.seen) < self.after:
            return False
        if self.error is not None:
            raise self.error
        return True


@pytest.mark.parametrize("make", MODELS)
def test_callback_stops(make, two_groups, same_partition):
    X, z = two_groups
    stop = Stop(1)
    with pytest.warns(DataWarning, match="stopped by the callback"):
        model = make(callback=stop).fit(X)
    assert len(stop.seen) == 1 and "cut_short" in model.fit_report_
    assert stop.seen[0].iteration >= 1 and np.isfinite(stop.seen[0].objective)
    same_partition(model.labels_, z)


@pytest.mark.parametrize("make", MODELS)
def test_time_limit(make, two_groups):
    model = make(time_limit=1e-9)
    with pytest.warns(DataWarning, match="stopped by the time limit"):
        model.fit(two_groups[0])
    assert len(model.labels_) == 80


@pytest.mark.parametrize("make", MODELS)
def test_interrupt_raises_or_keeps(make, two_groups):
    X, _ = two_groups
    with pytest.raises(KeyboardInterrupt):
        make(callback=Stop(2, KeyboardInterrupt())).fit(X)
    with pytest.warns(DataWarning, match="stopped by an interrupt"):
        model = make(callback=Stop(2, KeyboardInterrupt()), keep_partial=True).fit(X)
    assert len(model.labels_) == 80


@pytest.mark.parametrize("make", MODELS)
def test_resume_after_a_kill_gives_the_same(make, two_groups, tmp_path):
    X, _ = two_groups
    whole = make().fit(X)
    with pytest.raises(Killed):
        make(callback=Stop(2, Killed()), resume=tmp_path / "fit").fit(X)
    watch = Stop(10**9)
    resumed = make(callback=watch, resume=tmp_path / "fit").fit(X)
    assert np.array_equal(resumed.labels_, whole.labels_)
    if hasattr(whole, "linkage_"):
        assert np.allclose(resumed.linkage_, whole.linkage_)
    again = make(resume=tmp_path / "fit").fit(X)
    assert np.array_equal(again.labels_, whole.labels_)
    with pytest.raises(ValueError, match="belongs to another fit"):
        make(resume=tmp_path / "fit").fit(X + np.arange(80)[:, None] ** 2)


def test_groups_that_were_not_divided_have_a_tree(two_groups):
    X, _ = two_groups
    with pytest.warns(DataWarning, match="complete linkage"):
        model = Diana(callback=Stop(5)).fit(X)
    assert is_valid_linkage(model.linkage_) and len(model.linkage_) == 79
    full = Diana().fit(X)
    assert np.allclose(model.linkage_[-5:, 2], full.linkage_[-5:, 2])


def test_groups_of_rows_in_threads(two_groups):
    X, _ = two_groups
    one, two = (BayesianTree(max_exact=30, random_state=0, n_jobs=n_jobs).fit(X) for n_jobs in (None, 2))
    assert np.array_equal(one.linkage_, two.linkage_)


@needs_medoids
def test_medoids_predict(two_groups, tmp_path):
    X, _ = two_groups
    D = squareform(pdist((X - X.mean(axis=0)) / X.std(axis=0)))
    for model, rows in (
        (KMedoids(3, random_state=0), X),
        (KMedoids(3, metric="precomputed", random_state=0), D),
    ):
        model.fit(rows)
        assert np.array_equal(model.predict(rows), model.labels_)
        model.save(tmp_path / "medoids.npz")
        assert np.array_equal(load(tmp_path / "medoids.npz").predict(rows), model.labels_)
    for metric in ("cityblock", "city_block", "cosine"):
        model = KMedoids(3, metric=metric, random_state=0).fit(X)
        assert np.array_equal(model.predict(X), model.labels_)
    holes = X[:4].copy()
    holes[0, 0] = np.nan
    assert KMedoids(2, random_state=0).fit(X).predict(holes).tolist() == [0] * 4


@needs_medoids
def test_medoids_find_their_number(two_groups):
    model = KMedoids(random_state=0).fit(two_groups[0])
    assert model.n_clusters_ == 2 == max(model.n_clusters_scores_, key=model.n_clusters_scores_.get)
    assert KMedoids().fit(np.ones((30, 2))).n_clusters_ == 1
    threads = KMedoids(n_jobs=2, random_state=0).fit(two_groups[0])
    assert np.array_equal(threads.medoids_, model.medoids_)


@pytest.mark.parametrize("splitter", ["kmeans", "kmedoids"])
@pytest.mark.parametrize("max_exact", [5000, 40])
def test_bisection_predicts_its_labels(splitter, max_exact, tmp_path):
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 40.0], [35.0, 45.0]])
    X = centers[np.repeat(np.arange(4), [10, 20, 15, 25])] + rng.normal(size=(70, 2))
    model = BisectingClusters(4, splitter=splitter, max_exact=max_exact, n_centers=12, random_state=0).fit(X)
    assert np.array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "tree.npz")
    assert np.array_equal(load(tmp_path / "tree.npz").predict(X), model.labels_)
    assert BisectingClusters(1).fit(X).predict(X[:3]).tolist() == [0, 0, 0]


def test_bisection_of_dissimilarities_predicts(two_groups):
    D = squareform(pdist(two_groups[0]))
    model = BisectingClusters(3, metric="precomputed").fit(D)
    assert np.array_equal(model.predict(D), model.labels_)
    with pytest.raises(ValueError, match="new objects x the 80 objects of fit"):
        model.predict(D[:, :5])
