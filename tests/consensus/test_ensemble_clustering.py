"""Raw data in, consensus out. Most tests use the simplest consensus there is: the medoid member."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import homogeneity_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import partita
from partita import EnsembleClustering
from partita.consensus import ConsensusEstimator, Found
from partita.datasets import load_visitors, make_gaussian_clusters
from partita.ensembles import generate, medoid_member
from partita.metrics import adjusted_rand

PLANTED = make_gaussian_clusters(150, 4, 3, separation=9.0, random_state=1)


class Medoid(ConsensusEstimator):
    """The member that agrees best with the others."""

    def __init__(self, noise="missing", handle_unknown="missing", random_state=None):
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fit_labelings(self, labelings, rng, control):
        labels = labelings.codes[:, medoid_member(labelings.codes)].astype(np.int64)
        labels[labels < 0] = 0
        return Found(labels, np.ones(len(labels)))


def make(**parameters):
    defaults = {"consensus": Medoid(), "n_members": 6, "member_clusters": 3, "random_state": 0}
    return EnsembleClustering(**(defaults | parameters))


def test_the_default_finds_clear_groups_by_itself(global_random_seed):
    """Groups that are clearly apart are never mixed. Some are divided: 3 clusters in about three of four runs."""
    model = EnsembleClustering(random_state=global_random_seed).fit(PLANTED.X)
    assert homogeneity_score(PLANTED.labels, model.labels_) > 0.97
    assert 3 <= model.n_clusters_ <= 6
    assert type(model.consensus_) is partita.Consensus
    assert model.label_matrix_.shape == (150, 20)
    assert model.confidence_.shape == (150,)
    told = EnsembleClustering(n_clusters=2, random_state=global_random_seed).fit(PLANTED.X)
    assert told.n_clusters_ == 2


def test_members_are_those_of_generate(global_random_seed):
    model = make(rows="bootstrap", space="subspace", random_state=global_random_seed).fit(PLANTED.X)
    Y = generate(
        PLANTED.X,
        n_members=6,
        n_clusters=3,
        rows="bootstrap",
        space="subspace",
        random_state=global_random_seed,
    )
    seen = (Y >= 0).any(axis=1)
    np.testing.assert_array_equal(model.label_matrix_[seen], Y[seen])


def test_the_answer_does_not_depend_on_jobs():
    one, two = (make(base=["kmeans", "gmm"], n_jobs=n).fit(PLANTED.X) for n in (1, 2))
    np.testing.assert_array_equal(one.label_matrix_, two.label_matrix_)
    np.testing.assert_array_equal(one.labels_, two.labels_)


@pytest.mark.parametrize(
    "base", ["kmeans", "minibatch_kmeans", "ward", "gmm", "spectral", KMeans(3, n_init=1)]
)
def test_new_rows_go_where_the_old_ones_are(base, global_random_seed):
    model = make(base=base, n_members=3).fit(PLANTED.X)
    np.testing.assert_array_equal(model.predict(PLANTED.X), model.labels_)
    near = PLANTED.X + 0.01 * np.random.default_rng(global_random_seed).normal(size=PLANTED.X.shape)
    assert adjusted_rand(model.labels_, model.predict(near)) > 0.97
    proba = model.predict_proba(near)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba.shape == (150, model.n_clusters_)


@pytest.mark.filterwarnings("error")
def test_holes_of_our_own_making_are_no_news_and_notes_of_the_consensus_are(global_random_seed):
    assert "missing_code" not in make(rows="bootstrap").fit(PLANTED.X).fit_report_
    noise = np.random.default_rng(global_random_seed).normal(size=(40, 3))
    model = EnsembleClustering(n_members=1, random_state=global_random_seed).fit(noise)
    assert "one_labeling" in model.fit_report_


def test_an_object_that_no_member_drew_is_labelled_all_the_same():
    model = make(rows=0.2, n_members=2).fit(PLANTED.X)
    assert (model.label_matrix_ >= 0).any(axis=1).all()
    assert ((model.label_matrix_ >= 0).sum(axis=0) > 30).all()


def test_mixed_columns_with_holes_in_a_data_frame():
    visitors = load_visitors(as_frame="pandas")
    model = make(n_members=4, member_clusters=4).fit(visitors.frame)
    assert list(model.feature_names_in_) == list(visitors.frame)
    assert adjusted_rand(visitors.target, model.labels_) > 0.3
    np.testing.assert_array_equal(model.predict(visitors.frame[:50]), model.predict(visitors.frame)[:50])
    with pytest.warns(UserWarning, match="not seen at fit"):
        model.predict(visitors.frame[:5].assign(ticket="free"))


@pytest.mark.parametrize("base", ["kmeans", ["ward", "gmm"], "spectral"])
def test_saved_and_loaded(tmp_path, base, global_random_seed):
    model = EnsembleClustering(base, n_members=4, space="subspace", random_state=global_random_seed).fit(
        PLANTED.X
    )
    model.save(tmp_path / "model.npz")
    again = partita.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(PLANTED.X), model.predict(PLANTED.X))
    np.testing.assert_array_equal(again.confidence_, model.confidence_)
    np.testing.assert_array_equal(again.label_matrix_, model.label_matrix_)


def test_a_users_clusterer_cannot_be_saved_but_pickled(tmp_path, global_random_seed):
    model = EnsembleClustering(KMeans(3, n_init=1), n_members=2, random_state=global_random_seed).fit(
        PLANTED.X
    )
    with pytest.raises(ValueError, match="KMeans, which cannot be written to a file"):
        model.save(tmp_path / "model.npz")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(PLANTED.X), model.labels_)


def test_clone_and_nested_parameters():
    model = clone(make()).set_params(consensus__noise="cluster")
    assert model.get_params()["consensus__noise"] == "cluster"
    pipeline = make_pipeline(FunctionTransformer(), make())
    assert pipeline.fit_predict(PLANTED.X).shape == (150,)


def test_a_failed_fit_leaves_the_last_good_one():
    model = make().fit(PLANTED.X)
    labels = model.labels_
    with pytest.raises(ValueError, match="unknown"):
        model.set_params(base="kmean").fit(PLANTED.X[:50])
    assert model.labels_ is labels


def test_a_consensus_that_cannot_be_told():
    with pytest.raises(ValueError, match="Medoid has no such parameter"):
        make(n_clusters=3).fit(PLANTED.X)


def test_members_so_far_are_combined_when_the_callback_says_stop():
    model = make(callback=lambda progress: progress.member == 1).fit(PLANTED.X)
    assert model.label_matrix_.shape == (150, 2) and len(model.members_) == 2


def test_one_row_and_copies_of_one_row():
    for X in ([[1.0, 2.0]], [[1.0, 2.0]] * 8):
        model = make().fit(np.array(X))
        assert set(model.labels_) == {0}
