"""Consensus of label matrices whose codes are not held in memory: distinct rows, or a sample and passes over chunks."""

import numpy as np
import pytest
from alike import label_matrix

from partita import LACA, Consensus, EvidenceAccumulation
from partita.consensus import LWEA, QMI, BipartiteModularity, Voting, reduction
from partita.execution import open_chunks
from partita.metrics import adjusted_rand

pytestmark = pytest.mark.filterwarnings("ignore")

METHODS = {
    "Consensus": Consensus(random_state=0),
    "EvidenceAccumulation": EvidenceAccumulation(max_exact=300, random_state=0),
    "LWEA": LWEA(4, max_exact=300, random_state=0),
    "LACA": LACA(max_exact=300, random_state=0),
    "Voting": Voting(4, random_state=0),
    "QMI": QMI(4, random_state=0),
    "BipartiteModularity": BipartiteModularity(random_state=0),
}


@pytest.fixture(params=METHODS)
def model(request):
    if request.param == "BipartiteModularity":
        pytest.importorskip("igraph")
    return METHODS[request.param]


def limit(monkeypatch, n_rows, n_members=6):
    monkeypatch.setattr(reduction, "MAX_BYTES", n_rows * n_members)


def fitted(model, X, **given):
    return type(model)(**model.get_params()).fit(X, **given)


def test_distinct_rows_give_the_result_of_all_rows(model, monkeypatch, global_random_seed):
    Y = label_matrix(0.2, 5000, global_random_seed)
    here = fitted(model, Y)
    limit(monkeypatch, 4000)
    assert len(np.unique(Y, axis=0)) < 4000
    for rows in (700, None):
        there = fitted(model, open_chunks(Y, rows=rows))
        np.testing.assert_array_equal(there.labels_, here.labels_)
        np.testing.assert_allclose(there.confidence_, here.confidence_, atol=1e-9)
        np.testing.assert_allclose(there.member_weights_, here.member_weights_, rtol=1e-9)
        np.testing.assert_array_equal(there.predict(open_chunks(Y, rows=999)), here.predict(Y))
        assert "sample" not in there.fit_report_
    if hasattr(here, "grain_"):
        np.testing.assert_array_equal(there.at(3).labels, here.at(3).labels)
        np.testing.assert_allclose(there.at(3).confidence, here.at(3).confidence, atol=1e-9)
    if hasattr(here, "coclustering"):
        i, j = np.array([0, 5, 4999]), np.array([1, 17, 3])
        np.testing.assert_allclose(there.coclustering(i, j), here.coclustering(i, j), atol=1e-9)


def test_objects_of_different_weights(model, monkeypatch, rng):
    Y, weights = label_matrix(0.2, 3000), rng.integers(0, 4, size=3000).astype(float)
    here = fitted(model, Y, sample_weight=weights)
    limit(monkeypatch, 2500)
    there = fitted(model, open_chunks(Y, rows=900), sample_weight=weights)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.confidence_, here.confidence_, atol=1e-9)


def test_a_sample_is_the_same_in_memory_and_in_chunks(model, monkeypatch, tmp_path, global_random_seed):
    Y = label_matrix(0.2, 5000, global_random_seed)
    whole = fitted(model, Y)
    limit(monkeypatch, 300)
    monkeypatch.setattr(reduction, "MAX_SAMPLE", 1500)
    here = fitted(model, Y)
    assert "1500 rows" in here.fit_report_["sample"].message
    np.save(tmp_path / "labels.npy", Y)
    for source in (open_chunks(Y, rows=700), open_chunks(tmp_path / "labels.npy", rows=2048)):
        there = fitted(model, source)
        np.testing.assert_array_equal(there.labels_, here.labels_)
        np.testing.assert_allclose(there.confidence_, here.confidence_, rtol=1e-12)
    np.testing.assert_array_equal(here.predict(Y), here.labels_)
    assert here.confidence_kind_ == "share of members" and len(here.labels_) == 5000
    assert adjusted_rand(here.labels_, whole.labels_) > 0.7
    assert getattr(here, "grain_", None) is None  # of a sample there are no other scales
    here.save(tmp_path / "model.npz")
    from partita import load

    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(Y), here.labels_)


def test_confidence_of_a_sample_is_the_agreement_over_all_rows(monkeypatch, rng):
    from partita.consensus.member_statistics import own_agreement

    Y = label_matrix(0.2, 4000)
    limit(monkeypatch, 300)
    monkeypatch.setattr(reduction, "MAX_SAMPLE", 1500)
    model = Voting(4, random_state=0).fit(open_chunks(Y, rows=999))
    expected = own_agreement(model.labels_, Y, np.full(6, 4), (Y >= 0).any(axis=1).astype(float), np.ones(6))
    np.testing.assert_allclose(model.confidence_, expected, rtol=1e-12)


def test_pairs_of_a_sample_are_refused(monkeypatch):
    limit(monkeypatch, 300)
    monkeypatch.setattr(reduction, "MAX_SAMPLE", 1500)
    model = Consensus(random_state=0).fit(label_matrix(0.2, 4000))
    with pytest.raises(AttributeError, match="sample of the rows"):
        model.coclustering(0, 1)
    with pytest.raises(AttributeError, match="sample of the rows"):
        model.at(2)


def test_everything_predicts_in_chunks(global_random_seed):
    """Estimators that are fitted in memory label tables in chunks, with or without a scale."""
    from partita import (
        AffinityPropagation,
        BayesianTree,
        CrossCat,
        EnsembleClustering,
        SpectralClustering,
    )
    from partita.trees import BisectingClusters

    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(6.0 * np.eye(3)[rng.integers(3, size=60)], 1.0)
    models = [
        AffinityPropagation(),
        BayesianTree(),
        BisectingClusters(3, random_state=0),
        CrossCat(inference="vb", random_state=0),
        EnsembleClustering(n_members=4, random_state=0),
        SpectralClustering(3, random_state=0),
    ]
    for model in models:
        model.fit(X)
        source = open_chunks(X, rows=25)
        np.testing.assert_array_equal(model.predict(source), model.predict(X))
        if isinstance(model, (BayesianTree, EnsembleClustering)):
            np.testing.assert_allclose(model.predict_proba(source, at=2), model.predict_proba(X, at=2))
        if isinstance(model, CrossCat):
            np.testing.assert_allclose(model.score_samples(source), model.score_samples(X))


def test_uncertain_rows_that_are_too_many_are_not_kept(monkeypatch):
    """In memory as in chunks; labels, confidence and log likelihood are the same, and the grain uses labels alone."""
    from partita import NBCE, MixtureConsensus
    from partita.engines.passes import values

    Y = label_matrix(0.5, 6000)
    for model in (
        MixtureConsensus(4, n_init=1, max_iter=30, criterion="icl", random_state=0),
        NBCE(inference="vb", max_clusters=6, n_init=1, max_iter=30, random_state=0),
    ):
        kept = fitted(model, Y)
        assert "uncertain_rows" not in kept.fit_report_ and len(kept._uncertain[0]) > 100
        monkeypatch.setattr(values, "MAX_UNCERTAIN", 100)
        for given in (Y, open_chunks(Y, rows=900)):
            found = fitted(model, given)
            np.testing.assert_array_equal(found.labels_, kept.labels_)
            np.testing.assert_allclose(found.confidence_, kept.confidence_, atol=1e-12)
            assert "uncertain_rows" in found.fit_report_ and not len(found._uncertain[0])
            assert set(found.at(2).labels) == {0, 1}
        if isinstance(model, MixtureConsensus):
            assert found.log_likelihood_ == pytest.approx(kept.log_likelihood_, rel=1e-12)
            assert found.n_clusters_scores_ == pytest.approx(kept.n_clusters_scores_, rel=1e-9)
        monkeypatch.undo()
