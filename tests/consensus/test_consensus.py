"""Consensus: what it finds, what it reports, and what it does with inputs that go wrong elsewhere."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import partita
from partita import Consensus
from partita.consensus.default import pipeline
from partita.estimator import DataWarning

# holes are reported, which is tested where labelings are read
pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")


def planted(seed, n=120, groups=4, members=8, redrawn=0.1, holes=0.0):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % groups
    Y = np.stack([rng.permutation(groups)[z] for _ in range(members)], axis=1)
    Y = np.where(rng.random(Y.shape) < redrawn, rng.integers(groups, size=Y.shape), Y)
    return z, np.where(rng.random(Y.shape) < holes, -1, Y)


@pytest.fixture(scope="module")
def fitted(global_random_seed):
    z, Y = planted(global_random_seed, holes=0.2)
    return z, Y, Consensus(random_state=global_random_seed).fit(Y)


# ---- what it finds ------------------------------------------------------------------------------------------


def test_planted_groups_come_back_with_holes(fitted):
    z, Y, model = fitted
    assert model.n_clusters_ == 4 and adjusted_rand_score(z, model.labels_) > 0.95
    assert max(model.n_clusters_posterior_, key=model.n_clusters_posterior_.get) == 4
    assert sum(model.n_clusters_posterior_.values()) == pytest.approx(1.0)
    assert max(model.n_clusters_scores_, key=model.n_clusters_scores_.get) == 4
    assert 4 < model.independent_members_ <= 8  # independent given the groups, by construction
    assert "independent clusterings" in model.sentence_ and "evidence" in model.fit_report_
    assert (model.predict(Y) == model.labels_).all()
    np.testing.assert_allclose(model.predict_proba(Y).sum(axis=1), 1.0)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()


def test_members_that_repeat_each_other_are_worth_few(global_random_seed):
    z, Y = planted(global_random_seed + 1, members=3, redrawn=0.25)
    model = Consensus(random_state=global_random_seed).fit(np.repeat(Y, 10, axis=1))
    assert model.independent_members_ < 4.5


def test_the_number_of_clusters_may_be_given(global_random_seed):
    z, Y = planted(global_random_seed + 2)
    for K in (1, 2, 4, 9):
        model = Consensus(K, random_state=global_random_seed).fit(Y)
        assert model.n_clusters_ == K and len(np.unique(model.labels_)) == K
        assert "no_consensus" not in model.fit_report_
    with pytest.raises(ValueError, match="only 2 objects differ"):
        Consensus(3).fit([[0, 0], [1, 1], [1, 1]])


def test_members_are_weighed_by_what_they_share(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z, Y = planted(global_random_seed + 3)
    Y = np.column_stack([Y, np.zeros(120, int), np.arange(120), rng.permutation(Y[:, 0])])
    model = Consensus(random_state=global_random_seed).fit(Y)
    assert model.n_clusters_ == 4
    assert model.member_weights_[:8].min() > 0.3 and model.member_weights_[8:].max() < 0.03
    report = str(model.fit_report_)
    assert "'x8'" in report and "'x9'" in report and model.fit_report_["poor_members"].columns == ("x10",)
    given = Consensus(random_state=global_random_seed).fit(Y[:, :8], member_weight=[2, 1, 1, 1, 1, 1, 1, 0])
    assert given.member_weights_[7] == 0 and given.member_weights_[0] > 1.5 * given.member_weights_[1]


def test_a_chance_result_is_said_to_be_one(global_random_seed):
    """Pure noise: no consensus. Sized: each fit has a chance of at most 1/10 by exchangeability of the shuffles."""
    rng = np.random.default_rng(global_random_seed)
    for _ in range(3):
        with pytest.warns(DataWarning, match="no consensus"):
            model = Consensus(random_state=global_random_seed).fit(rng.integers(0, 4, (150, 12)))
        assert model.n_clusters_ == 1 and model.n_clusters_posterior_ == {1: 1.0}
        assert "no_consensus" in model.fit_report_ and (model.labels_ == 0).all()
        assert model.predict_proba(rng.integers(0, 4, (5, 12))).shape == (5, 1)
        assert 0.0 <= model.coclustering(0, 1) <= 1.0


def test_a_copy_of_one_member_is_no_consensus(global_random_seed):
    """Few members of noise: the best cut is one of them. Sized: a chance of 1/10 a fit, so 5 of 12 once in 200 runs."""
    rng = np.random.default_rng(global_random_seed)
    found = [Consensus(random_state=s).fit(rng.integers(0, 2, (60, 3))).n_clusters_ for s in range(12)]
    assert sum(K > 1 for K in found) < 5


def test_weak_agreement_is_not_noise(global_random_seed):
    z, Y = planted(global_random_seed + 4, n=300, groups=3, members=15, redrawn=0.6)
    assert Consensus(random_state=global_random_seed).fit(Y).n_clusters_ > 1


# ---- laws ---------------------------------------------------------------------------------------------------


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1.0


def test_order_of_rows_and_names_of_labels_do_not_matter(fitted, global_random_seed):
    z, Y, model = fitted
    rng = np.random.default_rng(global_random_seed)
    order = rng.permutation(len(Y))
    shuffled = Consensus(random_state=global_random_seed).fit(Y[order])
    assert same_partition(shuffled.labels_, model.labels_[order])
    np.testing.assert_allclose(shuffled.confidence_, model.confidence_[order], atol=1e-6)
    names = np.array(["d", "a", "c", "b"], dtype=object)
    renamed = np.where(Y < 0, None, names[Y])
    assert same_partition(Consensus(random_state=global_random_seed).fit(renamed).labels_, model.labels_)


def test_a_weight_is_so_many_rows(global_random_seed):
    z, Y = planted(global_random_seed + 6, n=80, holes=0.1)
    w = np.random.default_rng(global_random_seed).integers(0, 4, 80)
    rows = np.repeat(np.arange(80), w)
    weighted = Consensus(random_state=global_random_seed).fit(Y, sample_weight=w)
    repeated = Consensus(random_state=global_random_seed).fit(Y[rows])
    assert (weighted.labels_[rows] == repeated.labels_).all()
    np.testing.assert_allclose(weighted.confidence_[rows], repeated.confidence_, atol=1e-9)
    assert weighted.independent_members_ == pytest.approx(repeated.independent_members_)
    scaled = Consensus(random_state=global_random_seed).fit(Y, sample_weight=np.full(80, 1e-3))
    assert same_partition(scaled.labels_, Consensus(random_state=global_random_seed).fit(Y).labels_)


def test_a_sample_of_rows_finds_what_all_rows_do(monkeypatch, global_random_seed):
    z, Y = planted(global_random_seed + 7, n=900, groups=3, members=10)
    monkeypatch.setattr(pipeline.pick_leaves, "__defaults__", (150,))
    model = Consensus(random_state=global_random_seed).fit(Y)
    assert model.n_clusters_ == 3 and adjusted_rand_score(z, model.labels_) > 0.98
    again = Consensus(random_state=global_random_seed).fit(Y[::-1])
    assert (again.labels_[::-1] == model.labels_).all()  # the sample follows the labels, not the order


# ---- pairs --------------------------------------------------------------------------------------------------


def test_pair_probabilities_as_operator_pairs_and_matrix(fitted, global_random_seed):
    z, Y, model = fitted
    dense = model.coclustering().dense()
    i, j = np.triu_indices(len(Y))
    np.testing.assert_allclose(dense[i, j], model.coclustering(i, j), atol=1e-12)
    np.testing.assert_allclose(dense, dense.T, atol=1e-12)
    assert dense.min() >= 0 and dense.max() <= 1 + 1e-12
    full = planted(global_random_seed + 8)[1]  # without holes a product is that of the matrix
    operator = Consensus(random_state=global_random_seed).fit(full).coclustering()
    v = np.random.default_rng(global_random_seed).normal(size=(len(full), 2))
    np.testing.assert_allclose(operator @ v, operator.dense() @ v, atol=1e-9)
    with pytest.raises(ValueError, match="both i and j"):
        model.coclustering(0)
    with pytest.raises(ValueError, match="from 0 to 119"):
        model.coclustering(0, 120)


def test_pairs_are_calibrated_on_planted_groups(global_random_seed):
    """Expected calibration error below 0.05: 5 and 10 equal groups, 20 members, 10% of the labels redrawn."""
    for groups in (5, 10):
        z, Y = planted(global_random_seed + 9, n=200, groups=groups, members=20)
        model = Consensus(random_state=global_random_seed).fit(Y)
        i, j = np.triu_indices(200, 1)
        p, same = model.coclustering(i, j), z[i] == z[j]
        bins = np.minimum((10 * p).astype(int), 9)
        gaps = [
            abs(p[bins == b].mean() - same[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)
        ]
        assert model.n_clusters_ == groups and sum(gaps) < 0.05


def test_all_pairs_of_many_objects_are_refused_before_anything_is_allocated(global_random_seed):
    Y = np.tile([[0, 0], [0, 1], [1, 1]], (200_000, 1))
    model = Consensus(random_state=global_random_seed).fit(Y)
    with pytest.raises(MemoryError, match=r"600,000 objects.*P\.pairs"):
        model.coclustering().dense()


# ---- inputs -------------------------------------------------------------------------------------------------


def test_one_labeling_is_returned_as_it_is(global_random_seed):
    labels = np.array(["a", "b", "b", "c", "b", "a"], dtype=object)[:, None]
    model = Consensus().fit(labels)
    assert same_partition(model.labels_, labels[:, 0]) and model.n_clusters_ == 3
    assert (
        model.sentence_.startswith("there is one member, with 3 clusters")
        and "one_labeling" in model.fit_report_
    )
    assert np.isnan(model.confidence_).all()
    assert (model.predict(labels) == model.labels_).all()
    assert Consensus(2, random_state=global_random_seed).fit(labels).n_clusters_ == 2


def test_identical_members_are_one_clustering():
    y = np.array([0, 1, 1, 2, 0, 1])
    model = Consensus().fit(np.column_stack([y, 2 - y, y + 5]))
    assert (
        same_partition(model.labels_, y)
        and (model.confidence_ == 1).all()
        and model.independent_members_ == 1
    )
    assert "identical" in model.fit_report_ and "does not show that it is right" in model.sentence_
    assert (model.predict(np.column_stack([y, 2 - y, y + 5])) == model.labels_).all()


def test_no_members_are_an_error():
    with pytest.raises(ValueError):
        Consensus().fit(np.empty((5, 0)))


def test_minus_one_follows_the_policy_and_other_negatives_are_refused(global_random_seed):
    z, Y = planted(global_random_seed + 10, holes=0.1)
    assert "missing" in Consensus(random_state=global_random_seed).fit(Y).fit_report_
    for noise in ("cluster", "singletons"):
        model = Consensus(noise=noise, random_state=global_random_seed).fit(Y)
        assert adjusted_rand_score(z, model.labels_) > 0.9 and "noise" in model.fit_report_
    with pytest.raises(ValueError, match="-7"):
        Consensus().fit(np.where(Y == 2, -7, Y))


def test_members_that_saw_different_objects(global_random_seed):
    z, Y = planted(global_random_seed + 11, n=160, members=10)
    Y[:80, ::2] = -1
    Y[80:, 1::4] = -1
    model = Consensus(random_state=global_random_seed).fit(Y)
    assert adjusted_rand_score(z, model.labels_) > 0.9


def test_members_that_never_saw_the_same_objects(global_random_seed):
    """Nothing links the two halves: they stay apart, and nothing fails."""
    z, Y = planted(global_random_seed + 12, n=80, members=6)
    Y[:40, :3] = -1
    Y[40:, 3:] = -1
    model = Consensus(random_state=global_random_seed).fit(Y)
    assert np.isfinite(model.confidence_).all() and model.n_clusters_ >= 2


def test_soft_members_count_once(global_random_seed):
    z, Y = planted(global_random_seed + 13, members=4)
    members = [Y[:, 0], Y[:, 1], np.eye(4)[Y[:, 2]] * 0.8 + 0.05, np.eye(4)[Y[:, 3]]]
    model = Consensus(random_state=global_random_seed).fit(members)
    assert model.member_weights_.shape == (4,) and model.independent_members_ <= 4.0 + 1e-9
    assert adjusted_rand_score(z, model.labels_) > 0.8


def test_rows_without_a_label_get_one_afterwards(global_random_seed):
    z, Y = planted(global_random_seed + 14)
    Y[0] = -1
    model = Consensus(random_state=global_random_seed).fit(Y)
    assert model.labels_.shape == (120,) and model.labels_[0] == 0
    assert model.coclustering(0, 1) >= 0.0


def test_silent_members_alone_do_not_fail(global_random_seed):
    assert Consensus(random_state=global_random_seed).fit(np.zeros((6, 3), int)).n_clusters_ == 1
    mixed = np.column_stack([np.zeros(6, int), np.arange(6)])
    assert Consensus(random_state=global_random_seed).fit(mixed).n_clusters_ >= 1


# ---- storage ------------------------------------------------------------------------------------------------


def test_save_load_pickle_clone(tmp_path, fitted):
    z, Y, model = fitted
    model.save(tmp_path / "model.npz")
    for other in (partita.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert (other.predict(Y) == model.labels_).all()
        assert (
            other.n_clusters_scores_ == model.n_clusters_scores_
            and other.n_clusters_posterior_ == model.n_clusters_posterior_
        )
        assert other.sentence_ == model.sentence_ and str(other.fit_report_) == str(model.fit_report_)
        assert other.coclustering(0, 5) == model.coclustering(0, 5)
    assert not hasattr(clone(model), "labels_")
    again = clone(model).fit(Y)
    assert (again.labels_ == model.labels_).all()
    assert again.n_clusters_posterior_ == model.n_clusters_posterior_
