"""The engine that ``inference="auto"`` chooses; the estimate is replaced, so no table here is large."""

import numpy as np
import pytest

from partita import Mixture
from partita.estimator import load
from partita.execution import open_chunks
from partita.families import Bernoulli, Block, Categorical, CountVectors, GaussianDiagonal, Multinomial
from partita.fitting import choice
from partita.fitting.choice import chain_seconds, choose_engine, choose_for_chunks
from partita.fitting.contract import Settings
from partita.partitions import StickBreaking
from partita.report import write_report

N_ROWS = 60


@pytest.fixture
def two_groups(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    return rng.normal(np.repeat([[0.0], [9.0]], N_ROWS // 2, axis=0), 1.0, size=(N_ROWS, 2))


@pytest.fixture
def real():
    return [Block(GaussianDiagonal.default(2), np.zeros((N_ROWS, 2)), ("a", "b"))]


def slow(monkeypatch, **seconds):
    """Let chains of these engines seem to take so long."""
    estimate = {"gibbs": 0.1, "subclusters": 0.1} | seconds
    monkeypatch.setattr(choice, "chain_seconds", lambda name, *_: estimate[name])


def chosen(blocks, weights=None, **settings):
    return choose_engine(
        Settings(**settings), np.ones(N_ROWS) if weights is None else weights, blocks
    ).inference


@pytest.mark.parametrize(
    ("seconds", "inference"),
    [({}, "gibbs"), ({"gibbs": 59.0}, "gibbs"), ({"gibbs": 61.0}, "subclusters"),
     ({"gibbs": 61.0, "subclusters": 61.0}, "vb")],
)  # fmt: skip
def test_the_first_engine_that_ends_in_a_minute(real, monkeypatch, seconds, inference):
    slow(monkeypatch, **seconds)
    assert chosen(real) == inference


def test_the_estimate_grows_with_rows_columns_and_chains(real):
    def seconds(blocks, n_objects=1000, n_chains=4):
        return chain_seconds("gibbs", blocks, n_objects, n_chains)

    assert seconds(real, 3000) == pytest.approx(3 * seconds(real))
    assert seconds(real, n_chains=2) == pytest.approx(seconds(real) / 2)
    wide = [Block(GaussianDiagonal.default(6), np.zeros((5, 6)), tuple("abcdef"))]
    assert seconds(wide) == pytest.approx(3 * seconds(real))
    yes_no = [Block(Bernoulli.default(2), np.zeros((5, 2), np.int8), ("a", "b"))]
    assert seconds([*yes_no, *real]) == pytest.approx(seconds(yes_no) + seconds(real))
    assert seconds(yes_no) < seconds(real)


def test_count_vectors_cost_what_their_counts_cost():
    X = np.zeros((4, 1000))
    X[:, :3] = 2.0
    vectors = Block(Multinomial.default(1000), CountVectors.from_dense(X), tuple(range(1000)))
    dense = Block(Multinomial.default(1000), CountVectors.from_dense(np.ones((4, 1000))), tuple(range(1000)))
    ratio = chain_seconds("gibbs", [dense], 100, 1) / chain_seconds("gibbs", [vectors], 100, 1)
    assert ratio == pytest.approx(1000 / 3)


def test_the_default_scale():
    """A thousand rows run chains, ten million rows do not, whatever the columns."""
    for block in (
        Block(Categorical.default([4] * 20), np.zeros((5, 20), np.int8), tuple(range(20))),
        Block(GaussianDiagonal.default(20), np.zeros((5, 20)), tuple(range(20))),
    ):
        assert chosen([block], np.ones(1000)) == "gibbs"
        assert chosen([block], np.broadcast_to(1.0, 10_000_000)) == "memoized"


@pytest.mark.parametrize(
    "given",
    [{"outliers": True}, {"n_draws": 10}, {"burn_in": 10}, {"n_chains": 2}, {"thin": 2}, {"partition": "vi"},
     {"precision": "double"}, {"prior": "pitman_yor", "max_clusters": 4}],
)  # fmt: skip
def test_what_only_gibbs_can_do_leads_to_gibbs(real, monkeypatch, given):
    slow(monkeypatch, gibbs=1e6, subclusters=1e6)
    assert chosen(real) == "vb"
    assert chosen(real, **given) == "gibbs"


def test_what_subclusters_cannot_do(real, monkeypatch):
    slow(monkeypatch, gibbs=1e6)
    assert chosen(real) == chosen(real, n_clusters=3) == chosen(real, prior="mfm") == "subclusters"
    assert chosen(real, max_clusters=5) == "vb"
    assert chosen(real, prior=StickBreaking(1.0, 5)) == "vb"


def test_what_variational_bayes_cannot_do(real, monkeypatch):
    slow(monkeypatch, gibbs=1e6, subclusters=1e6)
    assert chosen(real, prior="dirichlet_process") == "vb"
    assert chosen(real, prior="mfm") == "gibbs"
    slow(monkeypatch, gibbs=1e6, subclusters=1e5)
    assert chosen(real, prior="mfm") == "subclusters"


def test_families_and_holes(two_groups, monkeypatch):
    slow(monkeypatch, gibbs=1e6)
    fast = {"random_state": 0, "n_init": 1, "time_limit": 0.01, "keep_partial": True}
    holes = two_groups.copy()
    holes[3, 0] = np.nan
    assert Mixture(**fast).fit(holes).inference_ == "vb"  # full covariance: a partly observed vector
    levels = np.clip(np.round(two_groups), 0, 3).astype(int)
    assert Mixture(kinds="ordinal", **fast).fit(levels).inference_ == "vb"
    assert (
        Mixture("student", **fast).fit(two_groups).inference_ == "gibbs"
    )  # not conjugate: nothing else fits it


def test_fractional_weights_lead_to_variational_bayes(two_groups):
    model = Mixture(random_state=0).fit(two_groups, sample_weight=np.full(N_ROWS, 0.5))
    assert model.inference_ == "vb"
    assert "not a whole number" in model.fit_report_["engine"].message
    with pytest.raises(ValueError, match="must be a whole number"):
        Mixture(inference="gibbs").fit(two_groups, sample_weight=np.full(N_ROWS, 0.5))


# ---- notes and attributes ------------------------------------------------------------------------------------------


def test_the_note_has_the_estimate_and_the_other_choice(two_groups, monkeypatch):
    slow(monkeypatch, gibbs=720.0, subclusters=700.0)
    model = Mixture(random_state=0).fit(two_groups)
    assert model.inference == "auto"
    assert model.inference_ == "vb"
    assert model.lower_bound_ < 0 and not hasattr(model, "trace_")
    note = model.fit_report_["engine"]
    assert note.level == "info"
    assert "variational Bayes was chosen" in note.message
    assert "about 12 minutes" in note.message
    assert "inference='gibbs'" in note.message


def test_chains_of_some_seconds_are_noted_and_shorter_ones_are_not(real, monkeypatch):
    for seconds, words in ((5.0, ""), (40.0, "about 40 seconds on one core; inference='vb'")):
        slow(monkeypatch, gibbs=seconds)
        found = choose_engine(Settings(), np.ones(N_ROWS), real)
        assert found.inference == "gibbs"
        assert (words in found.sentence) if words else found.sentence == ""


def test_what_is_asked_for_is_what_runs(two_groups, monkeypatch):
    slow(monkeypatch, gibbs=1e6, subclusters=1e6)
    for asked in ({"inference": "gibbs", "n_draws": 4, "burn_in": 4}, {"inference": "em", "n_clusters": 2}):
        model = Mixture(**asked, random_state=0).fit(two_groups)
        assert model.inference_ == asked["inference"]
        assert "engine" not in model.fit_report_


def test_a_refit_forgets_the_choice_before(two_groups, monkeypatch):
    model = Mixture(random_state=0, time_limit=0.01).fit(two_groups)
    assert model.inference_ == "gibbs" and hasattr(model, "trace_")
    slow(monkeypatch, gibbs=1e6, subclusters=1e6)
    model.fit(two_groups)
    assert model.inference_ == "vb" and not hasattr(model, "trace_")


def test_a_saved_model_keeps_the_engine(two_groups, tmp_path, monkeypatch):
    slow(monkeypatch, gibbs=1e6, subclusters=1e6)
    model = Mixture(random_state=0).fit(two_groups)
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert again.inference_ == "vb"
    assert again.inference == "auto"
    page = write_report(again, tmp_path / "report.html", X=two_groups).read_text(encoding="utf-8")
    assert "variational Bayes" in page


# ---- other places --------------------------------------------------------------------------------------------------


def test_tables_in_chunks_are_fitted_by_an_engine_that_reads_chunks(two_groups):
    model = Mixture(random_state=0).fit(open_chunks(two_groups))
    assert model.inference_ == "vb"
    assert "inference='subclusters'" in model.fit_report_["engine"].message
    assert choose_for_chunks(Settings(outliers=True), 10).inference == "gibbs"


def test_variational_bayes_is_memoized_where_a_table_has_parts(real, monkeypatch):
    """By the same number of rows in memory as in chunks; chunks that are not counted yet may be many."""
    slow(monkeypatch, gibbs=1e6, subclusters=1e6)
    for n_rows, inference in ((10_000, "vb"), (20_000, "memoized")):
        assert chosen(real, np.ones(n_rows)) == choose_for_chunks(Settings(), n_rows).inference == inference
    assert choose_for_chunks(Settings(), None).inference == "memoized"
    assert chosen(real, np.ones(20_000), prior="mfm") == "gibbs"
    monkeypatch.setattr(choice, "chain_seconds", lambda *_: 40.0)
    assert "inference='memoized' is faster" in choose_engine(Settings(), np.ones(20_000), real).sentence
