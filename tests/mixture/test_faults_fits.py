"""Rows 33 to 38, 44, 45, 51, 52, 64 and 65 of the table of bad inputs: what may go wrong in a fit."""

import copy
import multiprocessing
import pickle
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from partita import LatentClass, Mixture
from partita.engines.climb import cvb, em, vb
from partita.engines.run import EngineError
from partita.execution import memory
from partita.mixture import estimator as model_module

ENGINES = {"em": em, "vb": vb, "cvb": cvb}


def test_row_33_duplicates_on_two_points(mixture, quiet):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 25, axis=0)
    with quiet():
        model = mixture(n_clusters=5).fit(X)
    assert model.n_clusters_ == 2
    assert len(set(model.labels_[:25])) == len(set(model.labels_[25:])) == 1
    assert np.isfinite(model.log_likelihood_)


def test_row_34_component_without_mass(mixture, two_groups, quiet):
    """Five clusters of which the given labels fill two: the others start, and stay, without mass."""
    X, z = two_groups
    with quiet():
        model = mixture(n_clusters=5, init=z, max_iter=3000).fit(X)
    assert np.isfinite(model.weights_).all() and model.weights_.sum() == pytest.approx(1.0)
    assert np.isfinite(model.predict_proba(X)).all()
    assert all(np.isfinite(p["mean"]).all() for p in model.profiles_.values())


def test_row_34_latent_class_without_mass(two_answers, quiet):
    X, z = two_answers
    with quiet():
        model = LatentClass(5, init=z, max_iter=5000).fit(X)
    assert np.isfinite(model.weights_).all() and np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize("kind", ["categorical", "real"])
def test_row_35_ten_thousand_columns(mixture, kind, quiet, global_random_seed):
    """The likelihood of a row is about exp(-10,000): far below the smallest float."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], 15)
    if kind == "real":
        X = rng.normal(size=(30, 10_000)) + 0.5 * z[:, None]
    else:
        X = np.where(rng.random((30, 10_000)) < 0.6, z[:, None], 1 - z[:, None])
    with quiet():
        model = mixture(n_clusters=2, kinds=kind, n_init=1, learn_hyper=False).fit(X)
    assert model.log_likelihood_ < -100_000 and np.isfinite(model.log_likelihood_)
    P = model.predict_proba(X)
    assert np.isfinite(P).all() and np.allclose(P.sum(axis=1), 1.0)


def _broken(engine, monkeypatch, change, at=3):
    """Spoil the objective from one iteration on."""
    step, seen = engine.step, []

    def spoiled(state, *args, **kwargs):
        new = step(state, *args, **kwargs)
        seen.append(new.objective)
        return change(new) if len(seen) >= at else new

    monkeypatch.setattr(engine, "step", spoiled)


def test_row_36_objective_is_nan(mixture, two_groups, monkeypatch):
    X, _ = two_groups
    # stays at a corner of the likelihood so that no start converges before the fault
    _broken(ENGINES[mixture.inference], monkeypatch, lambda s: s._replace(objective=np.nan), at=2)
    model = mixture(init="random", tol=0.0, max_iter=5)
    with pytest.raises(ValueError, match=r"not a number at iteration 2 \(last good: -?\d.*rescale"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_row_36_last_good_fit_is_kept(mixture, two_groups, monkeypatch):
    X, _ = two_groups
    model = mixture().fit(X)
    before = {name: copy.deepcopy(value) for name, value in vars(model).items()}
    _broken(ENGINES[mixture.inference], monkeypatch, lambda s: s._replace(objective=np.nan), at=1)
    with pytest.raises(ValueError, match="not a number"):
        model.fit(X[:, :1])
    assert model.n_features_in_ == 2 and set(vars(model)) == set(before)
    assert np.array_equal(model.predict(X), before["labels_"])


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_row_37_objective_falls(inference, two_groups, monkeypatch, one_warning, global_random_seed):
    X, _ = two_groups
    _broken(ENGINES[inference], monkeypatch, lambda s: s._replace(objective=s.objective - 1e3), at=2)
    model = Mixture(
        n_clusters=2, inference=inference, n_init=1, init="random", random_state=global_random_seed
    )
    with one_warning("the objective fell by"):
        model.fit(X)
    assert model.fit_report_["objective_fell"].level == "warning"


def test_row_37_is_an_error_in_debug(two_groups, monkeypatch, global_random_seed):
    X, _ = two_groups
    make_request = model_module.make_request
    monkeypatch.setattr(
        model_module, "make_request", lambda *a, **options: make_request(*a, **options)._replace(debug=True)
    )
    _broken(em, monkeypatch, lambda s: s._replace(objective=s.objective - 1e3), at=2)
    with pytest.raises(EngineError, match=r"fell by .* at iteration 2"):
        Mixture(n_clusters=2, inference="em", init="random", random_state=global_random_seed).fit(X)


def test_row_38_not_converged(mixture, two_groups, one_warning):
    with one_warning("did not converge in 1 iterations: raise max_iter", ConvergenceWarning):
        model = mixture(max_iter=1, max_clusters=200, n_clusters=2, init="random").fit(two_groups[0])
    assert not model.converged_ and "not_converged" in model.fit_report_


@pytest.mark.parametrize("family", ["gaussian", "gaussian_full"])
@pytest.mark.parametrize("weight", [0.37, 1e10])
def test_row_44_weights_of_any_size(mixture, two_groups, quiet, weight, family, same_partition):
    X, z = two_groups
    with quiet():
        model = mixture(n_clusters=2, family=family).fit(X, sample_weight=np.full(80, weight))
    same_partition(model.labels_, z)
    assert model.weight_total_ == pytest.approx(80 * weight)
    assert np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize("family", ["gaussian", "gaussian_full"])
@pytest.mark.parametrize("inference", ["vb", "cvb"])
def test_row_44_huge_weights_without_a_number_of_clusters(
    two_groups, quiet, inference, family, same_partition, global_random_seed
):
    """A row that stands for 1e10 objects may well be a cluster of its own; the answer must not be that of rounding:
    it is the same for weights a hundred times as large, an object.
    """
    X, z = two_groups
    found = []
    for weight in (1e10, 1e12):
        model = Mixture(
            family, inference=inference, max_clusters=20, n_init=1, random_state=global_random_seed
        )
        with quiet():
            warnings.filterwarnings("ignore", "all 20 clusters that were allowed")
            model.fit(X, sample_weight=np.full(80, weight))
        assert model.converged_ and "objective_fell" not in model.fit_report_
        assert (
            len(set(zip(model.labels_, z, strict=True))) == model.n_clusters_
        )  # no cluster has rows of both
        assert all(np.isfinite(p["sd"]).all() and (p["sd"] > 0).all() for p in model.profiles_.values())
        assert np.isfinite(model.score_samples(X)).all()
        found.append((model.labels_, model.lower_bound_ / model.weight_total_, model.score(X)))
    same_partition(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1:], found[1][1:], atol=1e-4)


@pytest.mark.parametrize("family", ["gaussian", "gaussian_full"])
def test_row_44_huge_weights_are_the_limit_of_maximum_likelihood(two_groups, quiet, family):
    """The prior counts for nothing beside 1e12 objects, nor does what is uncertain about parameters."""
    X, _ = two_groups
    settings = {"n_clusters": 2, "n_init": 1, "random_state": 0}
    expected = Mixture(family, inference="em", estimate="ml", **settings).fit(X)
    for inference in ("vb", "cvb"):
        with quiet():
            model = Mixture(family, inference=inference, **settings).fit(
                X, sample_weight=np.full(80, 1.25e10)
            )
        assert model.score(X) == pytest.approx(expected.score(X), abs=1e-6)


@pytest.mark.parametrize("weight", [0.37, 1e10])
def test_row_44_weights_of_answers(categorical, two_answers, quiet, weight):
    X, _ = two_answers
    with quiet():
        model = categorical().fit(X, sample_weight=np.full(80, weight))
    assert np.isfinite(model.log_likelihood_) and model.weight_total_ == pytest.approx(80 * weight)


def test_row_44_effective_n_of_bic(two_answers, global_random_seed):
    X, _ = two_answers
    one = LatentClass(2, random_state=global_random_seed).fit(X)
    half = LatentClass(2, random_state=global_random_seed).fit(X, sample_weight=np.full(80, 0.5))
    assert half.bic_ == pytest.approx(-one.log_likelihood_ + one.n_parameters_ * np.log(40), rel=1e-6)


def test_row_45_bound_reached(two_groups, one_warning, global_random_seed):
    X = np.concatenate([two_groups[0], two_groups[0] + [200, 0]])
    with one_warning("all 2 clusters that were allowed are in use: raise max_clusters"):
        model = Mixture(inference="vb", max_clusters=2, random_state=global_random_seed).fit(X)
    assert "bound_reached" in model.fit_report_


def test_row_45_memory_is_estimated_first(mixture, two_groups, monkeypatch):
    X, _ = two_groups
    monkeypatch.setattr(memory, "memory_limit", lambda: 100_000)
    for engine in ENGINES.values():
        monkeypatch.setattr(engine, "init", None)  # nothing starts
    with pytest.raises(
        ValueError, match=r"2 clusters of 2 columns need about .* bytes.*ask for fewer clusters"
    ):
        mixture(n_clusters=2).fit(X)


@pytest.mark.slow
def test_row_45_ten_thousand_clusters(global_random_seed):
    X = np.random.default_rng(global_random_seed).integers(5, size=(12_000, 3)).astype(str)
    model = Mixture(n_clusters=10_000, n_init=1, max_iter=1, inference="em", random_state=global_random_seed)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert model.n_clusters_ <= 125 and len(model.weights_) == 10_000


def test_row_45_estimate_covers_the_real_peak(two_groups, global_random_seed):
    """The largest matrices of each engine are in the estimate."""
    from partita.engines.run import Control
    from partita.fitting.climb import bytes_needed
    from partita.fitting.contract import Settings
    from partita.fitting.families import assemble, plan_families
    from partita.fitting.request import make_request
    from partita.table import read_table

    table = read_table(two_groups[0])
    blocks = assemble(table, plan_families("auto", None))
    model = Mixture(inference="vb", max_clusters=50, random_state=global_random_seed).fit(two_groups[0])
    settings = Settings.of(model)
    ask = make_request(settings, table, blocks, control=Control(), executor=None, report=model.fit_report_)
    rows = model._fitted.statistics.S[0].shape[0]
    statistics = 8 * 50 * rows
    assert bytes_needed(blocks, 80, ask, "vb") > 4 * statistics
    assert bytes_needed(blocks, 10**6, ask, "cvb") > 2 * 8 * 50 * 10**6
    assert bytes_needed(blocks, 10**6, ask._replace(init="random"), "vb") > 8 * 50 * 10**6


@pytest.mark.parametrize(
    "state",
    [
        lambda: 3,
        lambda: np.int64(3),
        lambda: np.random.RandomState(3),
        lambda: np.random.default_rng(3),
        lambda: np.random.SeedSequence(3),
    ],
    ids=["int", "int64", "RandomState", "Generator", "SeedSequence"],
)
def test_row_51_random_states(mixture, two_groups, state):
    X, _ = two_groups
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    a, b = (mixture(random_state=state(), init="random").fit(X) for _ in range(2))
    a.sample(3)
    assert np.array_equal(np.random.get_state()[1], before)
    assert np.array_equal(a.labels_, b.labels_) and a.log_likelihood_ == b.log_likelihood_


def test_row_51_other_random_states(mixture, two_groups):
    X, _ = two_groups
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    mixture(random_state=None).fit(X)
    assert np.array_equal(np.random.get_state()[1], before)
    with pytest.raises(ValueError, match=r"random_state is -1: give a number that is not negative"):
        mixture(random_state=-1).fit(X)
    with pytest.raises(ValueError, match=r"random_state is 'x': give None, an int"):
        mixture(random_state="x").fit(X)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_row_52_number_of_jobs(mixture, monkeypatch, global_random_seed):
    """Several blocks of rows, so that threads have something to share."""
    from partita.execution import executors

    monkeypatch.setattr(executors.row_chunks, "__defaults__", (16, 0, None))
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(60, 2)) + 6 * rng.integers(2, size=(60, 1))
    settings = {"n_init": 1, "max_clusters": 4, "max_iter": 25}
    models = [mixture(n_jobs=n_jobs, **settings).fit(X) for n_jobs in (None, 1, 2, 3, -1)]
    for model in models[1:]:
        assert np.array_equal(model.labels_, models[0].labels_)
        assert model.log_likelihood_ == models[0].log_likelihood_
        assert np.array_equal(model.predict_proba(X), models[0].predict_proba(X))


def test_row_52_block_size(mixture, two_groups, monkeypatch):
    from partita.execution import executors

    X, _ = two_groups
    labels = []
    for size in (1, 7, 80, 4096):
        monkeypatch.setattr(executors.row_chunks, "__defaults__", (size, 0, None))
        labels.append(mixture(n_init=1, max_clusters=4).fit(X).labels_)
    assert all(np.array_equal(labels[0], other) for other in labels[1:])


def test_row_52_no_jobs(mixture, two_groups):
    with pytest.raises(ValueError, match=r"n_jobs is 0: use a positive number"):
        mixture(n_jobs=0).fit(two_groups[0])


def test_row_64_fit_twice_and_clone(mixture, two_groups):
    X, _ = two_groups
    fresh = mixture().fit(X)
    used = mixture().fit(X[:, :1] * 5)
    used.fit(X)
    for other in (used, clone(used).fit(X)):
        assert np.array_equal(other.labels_, fresh.labels_)
        assert other.log_likelihood_ == fresh.log_likelihood_
        assert set(vars(other)) == set(vars(fresh))


def test_row_64_no_state_of_another_inference(two_groups, global_random_seed):
    X, _ = two_groups
    model = Mixture(inference="vb", random_state=global_random_seed).fit(X)
    model.set_params(inference="em", n_clusters=2).fit(X)
    assert set(vars(model)) == set(vars(clone(model).fit(X)))


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_row_64_copies(mixture, two_groups, copier, quiet):
    X, _ = two_groups
    model = mixture().fit(X)
    with quiet():
        other = copier(model)
    assert np.array_equal(other.predict(X), model.labels_) and set(vars(other)) == set(vars(model))
    other.fit(X[:, :1])
    assert model.n_features_in_ == 2


def test_row_64_pickle_of_another_version(two_groups, one_warning, monkeypatch, global_random_seed):
    from partita.estimator import base

    monkeypatch.setattr(base, "__version__", "0.0.1")
    written = pickle.dumps(
        Mixture(inference="vb", n_init=1, random_state=global_random_seed).fit(two_groups[0])
    )
    monkeypatch.undo()
    with one_warning("was pickled by partita 0.0.1", UserWarning):
        model = pickle.loads(written)
    assert np.array_equal(model.predict(two_groups[0]), model.labels_)


def test_row_64_threads(mixture, two_groups):
    X, _ = two_groups
    expected, found = mixture().fit(X), [None] * 4

    def work(i):
        found[i] = mixture(n_jobs=2 if i % 2 else None).fit(X)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(model.labels_, expected.labels_) for model in found)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork a process"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")  # which is what is tried here
def test_row_64_fork_after_threads(mixture, monkeypatch, global_random_seed):
    """A child inherits the parent's locks as they stand, but none of its threads."""
    from partita.execution import executors

    monkeypatch.setattr(
        executors.row_chunks, "__defaults__", (16, 0, None)
    )  # several blocks: threads at work
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(60, 2)) + 6 * rng.integers(2, size=(60, 1))
    expected = mixture(n_clusters=2, n_init=1, n_jobs=2).fit(X)
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)

    def work():
        model = mixture(n_clusters=2, n_init=1, n_jobs=2).fit(X)
        there.send((model.labels_, expected.predict(X), model.log_likelihood_))

    child = fork.Process(target=work, daemon=True)
    child.start()
    try:
        assert here.poll(60), "the child hangs, or died"
        labels, predicted, log_likelihood = here.recv()
        child.join(10)
    finally:
        child.kill()
    assert child.exitcode == 0
    assert np.array_equal(labels, expected.labels_) and np.array_equal(predicted, expected.labels_)
    assert log_likelihood == expected.log_likelihood_


def test_row_65_not_fitted(mixture, categorical, two_groups, tmp_path):
    X, _ = two_groups
    for model in (mixture(), categorical()):
        for use in (model.predict, model.predict_proba, model.score_samples, model.score, model.perplexity):
            with pytest.raises(NotFittedError, match="fit"):
                use(X)
        with pytest.raises(NotFittedError):
            model.sample()
        with pytest.raises(NotFittedError):
            model.save(tmp_path / "model.npz")


def test_row_65_a_failed_fit_is_no_fit(mixture, two_groups):
    X, _ = two_groups
    model = mixture(random_state=-1)  # fails after the table is read
    with pytest.raises(ValueError, match="random_state"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_row_65_labels_agree(mixture, two_groups, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(70, 3))  # no clear groups: ties and doubts
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0] = [0.0, 0.0, 0.0]
    settings = {"max_clusters": 4, "n_init": 1, "max_iter": 3000}
    model = mixture(**settings)
    labels = model.fit_predict(X)
    assert np.array_equal(labels, model.labels_)
    assert np.array_equal(labels, mixture(**settings).fit(X).predict(X))
    P = model.predict_proba(X)
    assert np.array_equal(P.argmax(axis=1), labels) and np.array_equal(P.max(axis=1), model.confidence_)
