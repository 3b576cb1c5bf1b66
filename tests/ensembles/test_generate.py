import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans

from partita.datasets import make_gaussian_clusters
from partita.ensembles import (
    Recipe,
    bootstrap_ensemble,
    fit_members,
    generate,
    kmeans_ensemble,
    mixed_ensemble,
    read_features,
    subspace_ensemble,
)
from partita.ensembles.members import ALGORITHMS
from partita.metrics import adjusted_rand

PLANTED = make_gaussian_clusters(120, 4, 3, separation=9.0, random_state=1)
RECIPES = {
    "subspaces": {"space": "subspace"},
    "projections": {"space": "projection"},
    "bootstrap": {"rows": "bootstrap"},
    "shares": {"rows": 0.5, "left_out": "predict"},
    "noise": {"label_noise": 0.1},
    "in turn": {"base": ["ward", "gmm", "spectral", "minibatch_kmeans"]},
}


@pytest.mark.parametrize("name", RECIPES)
def test_an_ensemble_does_not_depend_on_jobs_or_on_how_many_follow(name):
    first = generate(PLANTED.X, n_members=5, random_state=3, **RECIPES[name])
    np.testing.assert_array_equal(
        first, generate(PLANTED.X, n_members=5, random_state=3, n_jobs=2, **RECIPES[name])
    )
    np.testing.assert_array_equal(
        first[:, :3], generate(PLANTED.X, n_members=3, random_state=3, **RECIPES[name])
    )
    assert (first != generate(PLANTED.X, n_members=5, random_state=4, **RECIPES[name])).any()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_finds_clear_groups_and_knows_them_again(name):
    features = read_features(PLANTED.X)
    (member,) = fit_members(features, Recipe(name, 3), 1, random_state=0)
    assert adjusted_rand(PLANTED.labels, member.labels) == 1.0
    np.testing.assert_array_equal(member.predict(features.values), member.labels)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_tiny_tables(name, n_rows):
    X = np.arange(n_rows)[:, None] * 1.0
    Y = generate(X, name, n_clusters=2, n_members=2, kinds="real", random_state=0)
    assert Y.shape == (n_rows, 2) and (Y.max(axis=0) == min(n_rows, 2) - 1).all()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_copies_of_one_row(name):
    Y = generate(np.ones((20, 2)), name, n_clusters=3, n_members=2, kinds="real", random_state=0)
    assert (Y >= 0).all()


def test_labels_count_from_zero_without_gaps():
    Y = generate(
        PLANTED.X, ["kmeans", "gmm"], n_clusters=(2, 30), rows="bootstrap", n_members=8, random_state=0
    )
    for member in Y.T:
        seen = member[member >= 0]
        assert set(seen) == set(range(seen.max() + 1))


def test_the_rule_of_the_nbce_paper():
    Y = kmeans_ensemble(PLANTED.X, n_classes=6, random_state=0)
    assert (Y.max(axis=0) + 1).tolist() == [3, 5, 6, 9, 12] * 2
    assert (kmeans_ensemble(PLANTED.X, n_classes=2, random_state=0).max(axis=0) + 1).min() == 2


def test_the_rule_of_the_laca_paper():
    features = read_features(np.random.default_rng(0).normal(size=(90, 6)))
    members = fit_members(features, Recipe("kmeans", (2, 6), "subspace"), 200, random_state=0)
    sizes = [member.columns.size for member in members]
    assert set(sizes) == {3, 4, 5, 6}
    assert {len(np.unique(member.labels)) for member in members} == {2, 3, 4, 5, 6}
    assert subspace_ensemble(features.values, 30, random_state=0).max() + 1 <= 6


def test_the_levels_of_a_category_stay_together():
    X = {f"c{i}": np.array(list("abc" * 10)) for i in range(5)}
    features = read_features(X)
    for member in fit_members(features, Recipe("kmeans", 2, "subspace"), 10, random_state=0):
        assert (
            np.bincount(features.scaling.source[member.columns])[
                np.unique(features.scaling.source[member.columns])
            ]
            == 3
        ).all()


def test_who_was_not_drawn_misses_a_label():
    Y = bootstrap_ensemble(PLANTED.X, 100, random_state=0)
    # the share of objects that a bootstrap sample leaves out is (1 - 1/n)^n; four standard errors either way
    assert abs((Y < 0).mean() - (1 - 1 / 120) ** 120) < 4 * np.sqrt(0.1 / 12000)
    told = generate(
        PLANTED.X, rows="bootstrap", left_out="predict", n_clusters=3, n_members=3, random_state=0
    )
    assert (told >= 0).all()
    assert min(adjusted_rand(PLANTED.labels, member) for member in told.T) > 0.95


def test_a_share_of_the_rows():
    Y = generate(PLANTED.X, rows=0.25, n_members=4, random_state=0)
    assert ((Y >= 0).sum(axis=0) == 30).all()


def test_quadratic_algorithms_see_a_sample():
    Y = generate(PLANTED.X, ["ward", "spectral"], n_clusters=3, n_members=4, max_exact=60, random_state=0)
    assert (Y >= 0).all()
    assert min(adjusted_rand(PLANTED.labels, member) for member in Y.T) > 0.9
    both = generate(
        PLANTED.X, "ward", rows="bootstrap", n_members=1, max_exact=30, n_clusters=3, random_state=0
    )
    assert 0.5 < (both >= 0).mean() < 0.8


def test_clusterers_of_the_users():
    Y = generate(PLANTED.X, KMeans(4, n_init=1), n_members=2, random_state=0)
    assert (Y.max(axis=0) == 3).all()  # as it is
    Y = generate(PLANTED.X, KMeans(4, n_init=1), n_members=2, n_clusters=2, random_state=0)
    assert (Y.max(axis=0) == 1).all()  # as asked
    noisy = generate(PLANTED.X, DBSCAN(eps=0.2, min_samples=4), n_members=1, random_state=0)
    assert noisy.min() == -1  # its noise is missing


def test_four_algorithms_in_turn():
    assert mixed_ensemble(PLANTED.X, 8, random_state=0).shape == (120, 8)


def test_tables_of_any_columns():
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=80)
    X = {"size": z * 8.0 + rng.normal(size=80), "town": np.array(["Ulm", "Bonn"], dtype=object)[z]}
    X["size"][0], X["town"][1] = np.nan, None
    Y = generate(X, n_clusters=2, n_members=3, random_state=0)
    assert min(adjusted_rand(z, member) for member in Y.T) > 0.9


def test_progress_is_told_and_can_stop(capsys):
    seen = []
    Y = generate(
        PLANTED.X,
        n_members=6,
        random_state=0,
        verbose=True,
        callback=lambda p: seen.append(p) or p.member == 2,
    )
    assert Y.shape[1] == 3 and [p.member for p in seen] == [0, 1, 2]
    assert capsys.readouterr().err.startswith("ensemble: member 1  clusters")


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()
    generate(PLANTED.X, n_members=2)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_members": 0}, "at least one member"),
        ({"base": "kmean"}, "choose from kmeans"),
        ({"base": []}, "at least one algorithm"),
        ({"base": 3}, "no fit_predict"),
        ({"n_clusters": 0}, "from 1 up"),
        ({"n_clusters": (5, 2)}, "low <= high"),
        ({"n_clusters": [2.5]}, "whole numbers"),
        ({"space": "some"}, "choose from all, subspace, projection"),
        ({"rows": "half"}, "a share between 0 and 1"),
        ({"rows": 1.5}, "at most 1"),
        ({"left_out": "drop"}, "'missing' or 'predict'"),
        ({"label_noise": 2}, "between 0 and 1"),
        ({"max_exact": 1}, "at least 2 rows"),
    ],
)
def test_what_is_wrong_is_said(options, words):
    with pytest.raises(ValueError, match=words):
        generate(PLANTED.X, **options)
