"""Time limit, callback, interrupt, resumption and the kinds of confidence, for every iterative consensus method."""

import numpy as np
import pytest

from partita import (
    BCE,
    CSPA,
    HBGF,
    HGPA,
    LACA,
    LWEA,
    MCLA,
    NBCE,
    QMI,
    Consensus,
    EnsembleClustering,
    EvidenceAccumulation,
    MixtureConsensus,
    Voting,
)
from partita.consensus.base import CONFIDENCE_KINDS
from partita.datasets import make_gaussian_clusters
from partita.engines.run import Progress

POINTS = make_gaussian_clusters(120, n_clusters=3, separation=3.0, random_state=1).X


@pytest.fixture(scope="module")
def labels():
    """Noisy members, so that no loop ends in its first iteration."""
    rng = np.random.default_rng(0)
    z = rng.integers(4, size=300)
    noisy = [np.where(rng.random(300) < 0.45, rng.integers(4, size=300), (z + s) % 4) for s in range(9)]
    return np.column_stack(noisy)


LOOPS = {
    "Consensus": lambda **options: Consensus(n_clusters=4, random_state=0, **options),
    "LACA": lambda **options: LACA(random_state=0, **options),
    "QMI": lambda **options: QMI(4, n_init=3, random_state=0, **options),
    "Voting": lambda **options: Voting(4, random_state=0, **options),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_callback_sees_every_iteration_and_stops_the_fit(name, labels):
    seen = []
    model = LOOPS[name](callback=lambda progress: seen.append(progress) or len(seen) == 2).fit(labels)
    assert len(seen) == 2 and all(isinstance(progress, Progress) for progress in seen)
    assert [progress.iteration for progress in seen] == [1, 2]
    assert all(np.isfinite(progress.objective) and progress.n_clusters > 1 for progress in seen)
    assert "by the callback" in model.fit_report_["cut_short"].message
    assert not model.converged_ and model.labels_.shape == (300,)


@pytest.mark.parametrize("name", LOOPS)
def test_no_iteration_begins_after_the_time_limit(name, labels):
    model = LOOPS[name](time_limit=1e-9).fit(labels)
    assert model.n_iter_ == 1 and "by the time limit" in model.fit_report_["cut_short"].message


@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupt_raises_or_keeps_the_best_so_far(name, labels):
    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LOOPS[name](callback=interrupt).fit(labels)
    model = LOOPS[name](callback=interrupt, keep_partial=True).fit(labels)
    assert "by an interrupt" in model.fit_report_["cut_short"].message
    assert model.n_iter_ == 2


@pytest.mark.parametrize("name", LOOPS)
def test_a_fit_continues_after_a_kill(name, labels, tmp_path):
    whole = LOOPS[name]().fit(labels)
    seen = []

    def kill(progress):
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LOOPS[name](callback=kill, resume=tmp_path).fit(labels)
    after = []
    model = LOOPS[name](callback=lambda p: after.append(p), resume=tmp_path).fit(labels)
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    np.testing.assert_allclose(model.confidence_, whole.confidence_)
    assert model.n_iter_ == whole.n_iter_
    again = []
    model = LOOPS[name](callback=lambda p: again.append(p), resume=tmp_path).fit(labels)
    assert not again or len(again) < len(after)
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    with pytest.raises(ValueError, match="belongs to another fit"):
        LOOPS[name](resume=tmp_path).fit(labels[::-1][:250])


@pytest.mark.parametrize("name", LOOPS)
def test_verbose_prints_a_line_per_iteration(name, labels, capsys):
    LOOPS[name](verbose=True).fit(labels)
    assert "iteration" in capsys.readouterr().err


# ---- members of an ensemble ------------------------------------------------------------------------------------


def ensemble(**options):
    return EnsembleClustering(n_members=4, member_clusters=3, random_state=0, **options)


def test_members_stop_at_the_time_limit_and_are_combined():
    model = ensemble(time_limit=1e-9).fit(POINTS)
    assert len(model.members_) == 1 and "1 of 4 members" in model.fit_report_["cut_short"].message


def test_an_interrupt_combines_the_members_so_far():
    def interrupt(progress):
        if progress.member == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensemble(callback=interrupt).fit(POINTS)
    model = ensemble(callback=interrupt, keep_partial=True).fit(POINTS)
    assert len(model.members_) == 2 and "by an interrupt" in model.fit_report_["cut_short"].message


@pytest.mark.parametrize("base", ["kmeans", "ward", "gmm"])
def test_finished_members_are_not_fitted_again(base, tmp_path, monkeypatch):
    import partita.ensembles.generating as generating

    whole = ensemble(base=base).fit(POINTS)

    def kill(progress):
        if progress.member == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensemble(base=base, callback=kill, resume=tmp_path).fit(POINTS)
    fitted = []
    original = generating._fit_member
    monkeypatch.setattr(generating, "_fit_member", lambda *given: fitted.append(given[2]) or original(*given))
    model = ensemble(base=base, resume=tmp_path).fit(POINTS)
    assert fitted == [2, 3]
    np.testing.assert_array_equal(model.label_matrix_, whole.label_matrix_)
    np.testing.assert_array_equal(model.predict(POINTS), whole.predict(POINTS))
    with pytest.raises(ValueError, match="belongs to another fit"):
        ensemble(base=base, resume=tmp_path).fit(POINTS[:100])


def test_processes_give_the_same_members():
    one, two = ensemble().fit(POINTS), ensemble(n_jobs=2, executor="processes").fit(POINTS)
    np.testing.assert_array_equal(one.label_matrix_, two.label_matrix_)


# ---- confidence and the number of clusters -----------------------------------------------------------------------

KINDS = {
    "Consensus": (Consensus(random_state=0), "probability and share of members"),
    "LACA": (LACA(), "share of members"),
    "LWEA": (LWEA(4), "share of members"),
    "EvidenceAccumulation": (EvidenceAccumulation(4), "share of members"),
    "HBGF": (HBGF(4, random_state=0), "share of members"),
    "QMI": (QMI(4, random_state=0), "share of members"),
    "Voting": (Voting(4), "share of members"),
    "MixtureConsensus": (MixtureConsensus(4, n_init=1, random_state=0), "posterior probability"),
    "NBCE vb": (NBCE(inference="vb", n_init=1, random_state=0), "posterior probability"),
    "NBCE gibbs": (NBCE(n_chains=1, n_draws=8, burn_in=5, random_state=0), "co-clustering probability"),
    "BCE": (BCE(4, n_init=1, random_state=0), "membership"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_every_confidence_says_what_it_is(name, labels):
    model, kind = KINDS[name]
    model.fit(labels)
    assert model.confidence_kind_ == kind and kind in CONFIDENCE_KINDS
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()


def test_confidence_of_meta_clusters_is_a_membership(labels):
    pytest.importorskip("pymetis")
    assert MCLA(4, random_state=0).fit(labels).confidence_kind_ == "membership"


@pytest.mark.parametrize("method", [CSPA, HGPA, MCLA, HBGF, QMI])
def test_methods_that_cannot_find_the_number_require_it(method, labels):
    with pytest.raises(ValueError, match="needs n_clusters"):
        method().fit(labels)
