"""How chains run and what they leave: limits, callbacks, interrupts, verdicts, memory, copies and files."""

import _thread
import copy
import pickle
import signal
import time

import numpy as np
import pytest
from sklearn.base import clone

import partita
from partita import Mixture
from partita.engines.gibbs.chain import Start, collapsed_gibbs
from partita.engines.run import Control, Progress
from partita.estimator import DataWarning, FitReport
from partita.execution import memory
from partita.metrics import adjusted_rand
from partita.posterior import align_draws, coclustering, coclustering_matrix, confidence, summarize_aligned

short_chains = pytest.mark.filterwarnings("ignore:.*(Do not trust K|too short to be judged|No draw was kept)")
SHORT = {"n_chains": 2, "n_draws": 12, "burn_in": 4, "random_state": 0}
PRIORS = ["mfm", "dirichlet_process", "pitman_yor", "finite", "stick_breaking"]


def short(family="gaussian", **parameters):
    return Mixture(family, **(SHORT | parameters))


# ---- limits, callbacks, interrupts -------------------------------------------------------------------------------


@short_chains
def test_the_callback_sees_each_iteration(two_groups):
    seen = []
    model = short(callback=seen.append, n_draws=10).fit(two_groups[0])
    assert len(seen) == 28 and all(isinstance(p, Progress) for p in seen)
    assert [p.run for p in seen] == [0] * 14 + [1] * 14
    draws = [p for p in seen if p.iteration > 4]
    assert np.array_equal([p.n_clusters for p in draws], model.trace_.n_clusters)
    assert np.array_equal([p.objective for p in draws], model.trace_.log_joint)
    assert np.all(np.diff([p.seconds for p in seen]) >= 0)


@short_chains
@pytest.mark.parametrize("at, n_draws", [(2, 1), (9, 5)])
def test_the_callback_stops(two_groups, at, n_draws):
    """Before the first draw a chain leaves the state it is in; no other chain begins."""
    model = short(callback=lambda progress: progress.iteration == at).fit(two_groups[0])
    assert model.trace_.chain.tolist() == [0] * n_draws
    assert not model.converged_ and "by the callback" in model.fit_report_["cut_short"].message
    assert model.labels_.shape == (80,)


@short_chains
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_time_limit(two_groups, n_jobs):
    seen = []
    model = short(
        n_draws=10**6, time_limit=0.4, callback=lambda _: seen.append(time.sleep(0.005)), n_jobs=n_jobs
    )
    model.fit(two_groups[0])
    assert len(seen) <= 2 * (
        0.4 / 0.005 + 1
    )  # an iteration lasts 0.005 s at least; without the limit: two million
    assert not model.converged_ and "time limit" in model.fit_report_["cut_short"].message
    assert set(model.trace_.chain) <= {0, 1}


@short_chains
def test_a_stop_is_no_time_limit(two_groups):
    model = short(time_limit=1000.0, callback=lambda progress: progress.iteration == 6).fit(two_groups[0])
    assert "by the callback" in model.fit_report_["cut_short"].message


def _ctrl_c_inside(progress):
    if progress.iteration == 8:
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell that starts tests in the background makes them deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _ctrl_c_from_outside(progress):
    if progress.iteration == 8 and progress.run == 0:
        _thread.interrupt_main()
    time.sleep(0.02)


def _no_chain_runs(seen):
    """No thread goes on with an iteration."""
    before = len(seen)
    time.sleep(0.2)
    return len(seen) == before


INTERRUPTS = [
    (_ctrl_c_inside, None),
    (_ctrl_c_inside, 2),
    (_ctrl_c_from_outside, None),
    (_ctrl_c_from_outside, 2),
]


@short_chains
@pytest.mark.parametrize("interrupt, n_jobs", INTERRUPTS)
def test_row_53_interrupt_keeps_the_draws(two_groups, interrupt, n_jobs):
    seen = []
    model = short(
        callback=lambda p: (seen.append(p), interrupt(p))[1], keep_partial=True, n_jobs=n_jobs, n_draws=500
    )
    model.fit(two_groups[0])
    assert _no_chain_runs(seen)
    assert 1 <= len(model.trace_.labels) < 100 and not model.converged_
    assert "interrupt" in model.fit_report_["cut_short"].message
    assert model.predict(two_groups[0]).shape == (80,)


@short_chains
@pytest.mark.parametrize("interrupt, n_jobs", INTERRUPTS)
def test_row_53_interrupt_leaves_nothing(two_groups, interrupt, n_jobs):
    seen = []
    model = short(callback=lambda p: (seen.append(p), interrupt(p))[1], n_jobs=n_jobs, n_draws=500)
    with pytest.raises(KeyboardInterrupt):
        model.fit(two_groups[0])
    assert _no_chain_runs(seen)
    assert not [name for name in vars(model) if name.endswith("_")]


@short_chains
def test_verbose(two_groups, capsys):
    short(verbose=True, n_draws=3).fit(two_groups[0])
    out, err = capsys.readouterr()
    assert out == "" and err.count("iteration    1") == 2 and "clusters" in err


# ---- verdicts ----------------------------------------------------------------------------------------------------


@pytest.fixture
def stuck_chains(monkeypatch):
    """Makes chains stay at the given labels, one array per chain."""
    from partita.fitting import chains

    def stuck(dtype):
        return collapsed_gibbs(dtype)._replace(steps=[lambda chain, schedule: chain])

    def stay_at(*starts):
        monkeypatch.setattr(chains, "collapsed_gibbs", stuck)
        monkeypatch.setattr(
            chains,
            "start_chain",
            lambda blocks, prior, schedule, init, *, number, **options: Start(
                starts[number], prior, tuple(block.family for block in blocks)
            ),
        )

    return stay_at


def test_row_39_chains_in_different_groups(two_groups, stuck_chains):
    """The same number of groups does not hide that the groups differ; the answer is that of one of the chains."""
    one, other = np.arange(80) // 40, np.arange(80) % 2
    stuck_chains(one, other)
    with pytest.warns(
        DataWarning, match=r"Weak: the chains find different groups \(adjusted Rand index -?0.0.*Run longer"
    ):
        model = short().fit(two_groups[0])
    # a pair that is together in all draws of one chain and in none of the other: K is not trusted either
    assert not model.converged_ and not model.diagnostics_.trust_n_clusters
    note = model.fit_report_["weak"]
    assert note.level == "warning" and note.message == model.diagnostics_.sentence
    assert max(adjusted_rand(model.labels_, z) for z in (one, other)) == 1.0
    names = [q.name for q in model.diagnostics_.quantities]
    assert names[:3] == ["n_clusters", "log_joint", "concentration"] and "entropy" in names


def test_row_40_each_chain_is_reported(two_groups, stuck_chains):
    """Two chains that never leave where they began: one from one cluster, one from forty."""
    stuck_chains(np.zeros(80, int), np.arange(80) // 2)
    with pytest.warns(DataWarning, match="not converged: K is 1 and 40 in the chains"):
        model = short().fit(two_groups[0])
    assert model.n_clusters_posterior_ == {1: 0.5, 40: 0.5} and not model.diagnostics_.chains_agree


def test_row_38_too_few_draws_to_judge(two_groups):
    with pytest.warns(DataWarning, match="Chains of 3 draws are too short to be judged: raise n_draws"):
        model = short(n_draws=3).fit(two_groups[0])
    assert not model.converged_ and "too short to be judged" in model.diagnostics_.sentence


def test_chains_that_agree_are_trusted(two_groups, quiet):
    """Hyper-parameters that stay, so that everything mixes at once."""
    with quiet():
        model = short(n_chains=4, n_draws=200, burn_in=20, learn_hyper=False, concentration=1.0).fit(
            two_groups[0]
        )
    assert model.converged_ and model.diagnostics_.trust_n_clusters
    assert model.diagnostics_.grade == "firm"


# ---- memory ------------------------------------------------------------------------------------------------------


def test_row_46_pairs_of_200_000_objects(monkeypatch):
    draws = np.broadcast_to(np.int8(0), (3, 200_000))  # takes no memory itself
    monkeypatch.setattr(memory, "memory_limit", lambda: 8 * 10**9)
    with pytest.raises(MemoryError, match=r"200,000 objects need about 320.0 GB.*use the operator"):
        coclustering_matrix(draws)
    operator = coclustering(draws)
    assert operator.shape == (200_000, 200_000) and (operator @ np.ones(200_000))[0] == pytest.approx(200_000)


def test_row_46_chains_are_estimated_first(two_groups, monkeypatch):
    from partita.fitting import chains

    monkeypatch.setattr(memory, "memory_limit", lambda: 100_000)
    monkeypatch.setattr(chains, "start_chain", None)  # nothing starts
    with pytest.raises(ValueError, match=r"4 chains of 1000 draws over 160 objects need about .*fewer draws"):
        short(n_chains=4, n_draws=1000).fit(two_groups[0], sample_weight=np.full(80, 2))


def test_the_estimate_covers_the_trace(two_groups):
    from partita.fitting.chains import bytes_of_chains
    from partita.fitting.contract import Settings
    from partita.fitting.families import assemble, plan_families
    from partita.fitting.request import make_request
    from partita.table import read_table

    table = read_table(two_groups[0])
    blocks = assemble(table, plan_families("gaussian", None))

    def ask(n_draws):
        settings = Settings.of(short(n_draws=n_draws, inference="gibbs"))
        return make_request(settings, table, blocks, control=Control(), executor=None, report=FitReport([]))

    few, many = (bytes_of_chains(blocks, table.weights, ask(n)) for n in (10, 1010))
    assert many - few >= 2 * 1000 * 80  # one byte per label


# ---- copies, files, parameters -----------------------------------------------------------------------------------


def same_fit(a, b, X):
    assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a.trace_, b.trace_, strict=True))
    assert [field.dtype for field in a.trace_] == [field.dtype for field in b.trace_]
    for name in ("labels_", "confidence_", "weights_", "objective_trace_"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("n_clusters_", "n_clusters_posterior_", "converged_", "log_likelihood_", "n_iter_"):
        assert getattr(a, name) == getattr(b, name), name
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert np.array_equal(a.score_samples(X), b.score_samples(X))
    assert str(getattr(a, "diagnostics_", "")) == str(getattr(b, "diagnostics_", ""))
    assert type(a.prior_) is type(b.prior_) and str(a.fit_report_) == str(b.fit_report_)


@short_chains
@pytest.mark.parametrize("prior", PRIORS)
def test_save_and_load(two_answers, prior, tmp_path):
    X, _ = two_answers
    model = short("bernoulli", prior=prior).fit(X, sample_weight=1 + np.arange(80) % 2)
    model.save(tmp_path / "model.npz")
    again = partita.load(tmp_path / "model.npz")
    same_fit(model, again, X)
    assert again.get_params() == model.get_params()


@short_chains
def test_save_and_load_a_family_without_a_predictive(two_groups, tmp_path):
    X, _ = two_groups
    model = short("student").fit(X)
    model.save(tmp_path / "model.npz")
    same_fit(model, partita.load(tmp_path / "model.npz"), X)


@short_chains
@pytest.mark.parametrize("cut", [{"trace": 3}, {"object_rows": 3}])
def test_a_file_whose_trace_does_not_fit_is_refused(two_groups, cut, tmp_path, monkeypatch):
    model, state_of = short().fit(two_groups[0]), Mixture._state

    def damaged(model):
        state = state_of(model)
        if "trace" in cut:
            state["trace"][0] = state["trace"][0][:, :3]
        else:
            state["object_rows"] = state["object_rows"][:3]
        return state

    monkeypatch.setattr(Mixture, "_state", damaged)
    model.save(tmp_path / "model.npz")
    with pytest.raises(partita.estimator.ModelFileError, match=r"where \(O\) belongs"):
        partita.load(tmp_path / "model.npz")


@short_chains
@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_row_64_copies(two_groups, copier):
    X, _ = two_groups
    model = short().fit(X)
    other = copier(model)
    same_fit(model, other, X)
    other.fit(X[:, :1])
    assert model.n_features_in_ == 2


@short_chains
def test_row_64_fit_twice_clone_and_other_parameters(two_groups):
    X, _ = two_groups
    fresh, used = short().fit(X), short(n_draws=3).fit(X[:, :1])
    used.set_params(n_draws=12).fit(X)
    for other in (used, clone(used).fit(X)):
        same_fit(fresh, other, X)
        assert set(vars(other)) == set(vars(fresh))
    used.set_params(inference="vb", n_init=1, max_clusters=4).fit(X)
    assert not {"trace_", "diagnostics_", "n_clusters_posterior_"} & set(vars(used)) and hasattr(
        used, "lower_bound_"
    )
    used.set_params(**short().get_params()).fit(X)
    assert set(vars(used)) == set(vars(fresh))


@short_chains
@pytest.mark.parametrize(
    "state",
    [
        lambda: 3,
        lambda: np.random.RandomState(3),
        lambda: np.random.default_rng(3),
        lambda: np.random.SeedSequence(3),
    ],
    ids=["int", "RandomState", "Generator", "SeedSequence"],
)
def test_row_51_random_states(two_groups, state):
    X, _ = two_groups
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    a, b = (short(random_state=state(), partition="vi").fit(X) for _ in range(2))
    a.sample(3)
    assert np.array_equal(np.random.get_state()[1], before)
    same_fit(a, b, X)


@short_chains
def test_row_51_no_random_state(two_groups):
    X, _ = two_groups
    before = np.random.get_state()[1].copy()
    one, two = (short(random_state=None).fit(X) for _ in range(2))
    assert np.array_equal(np.random.get_state()[1], before)
    assert not np.array_equal(one.trace_.log_joint, two.trace_.log_joint)
    with pytest.raises(ValueError, match="random_state is -1: give a number that is not negative"):
        short(random_state=-1).fit(X)


# ---- one cluster through the draws -------------------------------------------------------------------------------


@short_chains
def test_row_66_a_row_alone_in_its_cluster(two_groups):
    X = np.concatenate([two_groups[0], [[500.0, -500.0]]])
    model = short().fit(X)
    assert model.n_clusters_ == 3 and np.bincount(model.labels_)[2] == 1
    found = confidence(model.trace_.labels, model.labels_)
    assert np.isfinite(found.objects).all() and np.isfinite(found.separation).all()
    alone = [np.count_nonzero(row == row[80]) == 1 for row in model.trace_.labels]
    assert model.confidence_[80] == pytest.approx(np.mean(alone)) and model.confidence_[80] > 0.9


@short_chains
def test_row_68_labels_that_switch_between_draws(two_groups):
    X, z = two_groups
    draws = short(n_clusters=2).fit(X).trace_.labels
    switched = np.where(np.arange(len(draws))[:, None] % 2, 1 - draws, draws)
    aligned = align_draws(switched, z)
    assert aligned.cluster_quality.min() > 0.95
    means = [[X[row == k, 0].mean() for k in (0, 1)] for row in switched]
    summary = summarize_aligned(means, aligned)
    assert summary.mean == pytest.approx([-6.0, 6.0], abs=1.0) and (summary.standard_error < 0.5).all()
    noise = np.random.default_rng(0).integers(2, size=draws.shape)
    with pytest.raises(ValueError, match="no standard errors: the draws do not have cluster"):
        summarize_aligned(np.zeros((len(draws), 2)), align_draws(noise, z))
