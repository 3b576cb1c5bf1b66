"""One set of rules for every estimator that samples: time limit, Ctrl-C, callback, burn-in, resume."""

import time
import warnings

import numpy as np
import pytest

import partita
from partita import BCE, NBCE, CrossCat, Mixture, OverlappingViews, RelationalBlocks
from partita.dispatch import interpreted

BURN_IN, N_DRAWS, N_CHAINS = 6, 5, 2
SHORT = {"n_chains": N_CHAINS, "n_draws": N_DRAWS, "burn_in": BURN_IN, "random_state": 0}


def reals():
    rng = np.random.default_rng(0)
    return rng.normal(size=(16, 2)) + np.repeat([[0.0], [6.0]], 8, axis=0)


def labelings():
    rng = np.random.default_rng(1)
    Y = np.repeat(np.repeat([0, 1], 8)[:, None], 4, axis=1)
    return np.where(rng.random(Y.shape) < 0.15, 1 - Y, Y)


def relation():
    rng = np.random.default_rng(2)
    p = np.where(np.repeat([0, 1], 5)[:, None] == np.repeat([0, 1], 4), 0.9, 0.1)
    return (rng.random(p.shape) < p).astype(float)


CHAINS = {
    "gibbs": (Mixture, {}, reals),
    "gibbs_full": (Mixture, {"family": "gaussian_full"}, reals),
    "outliers": (Mixture, {"family": "gaussian", "outliers": True}, reals),
    "neal8": (Mixture, {"family": "student"}, reals),
    "stick_breaking": (Mixture, {"prior": "stick_breaking", "max_clusters": 4}, reals),
    "subclusters": (Mixture, {"inference": "subclusters"}, reals),
    "nbce": (NBCE, {}, labelings),
    "bce": (BCE, {"n_clusters": 2, "inference": "gibbs"}, labelings),
    "crosscat": (CrossCat, {}, reals),
    "overlapping": (OverlappingViews, {"n_init": 1}, reals),
    "blocks": (RelationalBlocks, {"n_moves": 2}, relation),
}


@pytest.fixture(params=list(CHAINS))
def chains(request):
    """Fits a model with short chains, uncompiled."""
    cls, options, data = CHAINS[request.param]
    X = data()

    def fit(**parameters):
        model = cls(**{**SHORT, **options, **parameters})
        with interpreted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X)

    return fit


def drawn(model):
    """What the draws of any model are: chain, log joint, labels."""
    if hasattr(model, "draws_"):
        draws = model.draws_
        return [d.chain for d in draws], [d.log_joint for d in draws], [d.labels for d in draws]
    return list(model.trace_.chain), list(model.trace_.log_joint), list(model.trace_.labels)


def assert_same_draws(one, two):
    (chains, values, labels), (other_chains, other_values, other_labels) = drawn(one), drawn(two)
    assert chains == other_chains
    np.testing.assert_array_equal(values, other_values)
    for a, b in zip(labels, other_labels, strict=True):
        np.testing.assert_array_equal(a, b)


def stop_at(run, iteration):
    def callback(progress):
        return (progress.run, progress.iteration) == (run, iteration)

    return callback


def raise_at(run, iteration, error):
    def callback(progress):
        if (progress.run, progress.iteration) == (run, iteration):
            raise error

    return callback


def diagnostics(model):
    return model.row_diagnostics_ if hasattr(model, "row_diagnostics_") else model.diagnostics_


def test_every_chain_has_its_draws(chains):
    model = chains()
    assert drawn(model)[0] == [0] * N_DRAWS + [1] * N_DRAWS
    assert "cut_short" not in model.fit_report_ and "provisional" not in model.fit_report_


def test_a_callback_sees_every_iteration_and_stops_the_fit(chains):
    seen = []

    def callback(progress):
        seen.append((progress.run, progress.iteration))
        return progress.run == 1 and progress.iteration == BURN_IN + 2

    model = chains(callback=callback)
    total = BURN_IN + N_DRAWS
    assert seen == [(0, i + 1) for i in range(total)] + [(1, i + 1) for i in range(BURN_IN + 2)]
    assert drawn(model)[0] == [0] * N_DRAWS + [1] * 2
    assert "by the callback" in str(model.fit_report_)
    assert not model.converged_


def test_a_chain_that_ends_in_burn_in_adds_nothing(chains):
    model = chains(callback=stop_at(1, BURN_IN - 1))
    assert drawn(model)[0] == [0] * N_DRAWS
    assert "provisional" not in model.fit_report_


def test_a_fit_without_a_draw_is_provisional(chains):
    model = chains(callback=stop_at(0, 2))
    assert len(drawn(model)[0]) == 1
    assert "provisional" in model.fit_report_
    assert "provisional" in diagnostics(model).sentence
    assert getattr(model, "n_views_posterior_", getattr(model, "n_clusters_posterior_", {})) == {}
    assert not model.converged_


def test_a_provisional_fit_is_saved_as_one(chains, tmp_path):
    model = chains(callback=stop_at(0, 2))
    model.save(tmp_path / "model.npz")
    again = partita.load(tmp_path / "model.npz")
    assert "provisional" in diagnostics(again).sentence


def test_ctrl_c_raises_and_leaves_the_model_unfitted(chains):
    with pytest.raises(KeyboardInterrupt):
        chains(callback=raise_at(1, BURN_IN + 3, KeyboardInterrupt()))


def test_ctrl_c_keeps_what_there_is_with_keep_partial(chains):
    model = chains(callback=raise_at(1, BURN_IN + 3, KeyboardInterrupt()), keep_partial=True)
    assert drawn(model)[0] == [0] * N_DRAWS + [1] * 3
    assert "by an interrupt" in str(model.fit_report_)


def test_ctrl_c_in_burn_in_keeps_no_draw_of_that_chain(chains):
    model = chains(callback=raise_at(1, 2, KeyboardInterrupt()), keep_partial=True)
    assert drawn(model)[0] == [0] * N_DRAWS


def test_an_error_in_a_callback_is_not_swallowed(chains):
    with pytest.raises(ZeroDivisionError):
        chains(callback=raise_at(0, 1, ZeroDivisionError()), keep_partial=True)


@pytest.mark.parametrize(("limit", "n_jobs"), [(0.5, None), (15.0, None), (7.5, 2)])
def test_the_time_limit_is_kept_to_within_two_iterations(chains, monkeypatch, limit, n_jobs):
    """An iteration takes one second of a clock that nothing else moves."""
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def tick(progress):
        clock[0] += 1.0

    model = chains(time_limit=limit, callback=tick, n_jobs=n_jobs)
    at_once = n_jobs or 1
    assert clock[0] - 100.0 <= limit + 2 * at_once
    assert "by the time limit" in str(model.fit_report_)
    if limit == 15.0 and n_jobs is None:  # both chains had a share that goes past burn-in
        assert set(drawn(model)[0]) == {0, 1}


def test_resume_after_a_kill_gives_the_same_draws(chains, tmp_path):
    whole = chains()
    with pytest.raises(MemoryError):
        chains(resume=tmp_path, callback=raise_at(1, BURN_IN + 3, MemoryError("killed")))
    iterations = []
    resumed = chains(resume=tmp_path, callback=lambda progress: iterations.append(progress.run) and None)
    assert_same_draws(whole, resumed)
    assert 0 not in iterations, "the first chain had ended"
    assert len(iterations) < BURN_IN + N_DRAWS, "the second chain had begun"


def test_resume_refuses_the_folder_of_another_fit(chains, tmp_path):
    chains(resume=tmp_path)
    with pytest.raises(ValueError, match="belongs to another fit"):
        chains(resume=tmp_path, random_state=1)


def test_resume_refuses_the_folder_of_a_fit_to_other_data(tmp_path):
    """Tables of one shape, so that only their contents differ."""
    for name, (cls, options, data) in CHAINS.items():
        X = data()
        with interpreted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cls(**{**SHORT, **options}, resume=tmp_path / name).fit(X)
            with pytest.raises(ValueError, match="belongs to another fit"):
                model.fit(X[::-1].copy() if X.ndim == 2 and not np.array_equal(X, X[::-1]) else X + 1)


def test_resume_refuses_the_folder_of_another_sampler(tmp_path):
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Mixture("gaussian", **SHORT, resume=tmp_path).fit(reals())
        for other in ({"outliers": True}, {"inference": "subclusters"}, {"prior": "pitman_yor"}):
            with pytest.raises(ValueError, match="belongs to another fit"):
                Mixture("gaussian", **SHORT, resume=tmp_path, **other).fit(reals())


def test_chains_begin_even_if_the_fit_was_stopped_before():
    """The callback stops the variational fit that finds the number of clusters; one chain makes one iteration."""
    for model in (
        BCE(inference="gibbs", max_clusters=2, callback=lambda progress: True, **SHORT),
        NBCE(power="estimated", callback=lambda progress: True, **SHORT),
    ):
        with interpreted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(labelings())
        assert "provisional" in model.fit_report_ and model.n_iter_ == 1


def test_a_stop_in_the_last_iteration_cuts_nothing_short(chains):
    model = chains(callback=stop_at(N_CHAINS - 1, BURN_IN + N_DRAWS))
    assert drawn(model)[0] == [0] * N_DRAWS + [1] * N_DRAWS
    assert "cut_short" not in model.fit_report_


def test_random_states_of_any_kind_can_be_resumed(tmp_path):
    options = {**SHORT, "n_clusters": 2, "inference": "gibbs"}
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            options["random_state"] = np.random.Generator(np.random.Philox(0))
            model = BCE(**options, resume=tmp_path).fit(labelings())
    assert len(drawn(model)[0]) == N_CHAINS * N_DRAWS


def test_an_interrupt_keeps_finished_restarts_of_engines_that_climb():
    model = Mixture(
        "gaussian", inference="vb", n_init=3, max_clusters=3, random_state=0, keep_partial=True,
        callback=raise_at(1, 1, KeyboardInterrupt()),
    )  # fmt: skip
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(reals())
    assert not model.converged_ and model.n_clusters_ >= 1


def test_a_callback_in_a_later_restart_is_not_convergence():
    for inference in ("vb", "em", "cvb"):
        model = Mixture(
            "gaussian", inference=inference, n_init=3, n_clusters=2, random_state=0, callback=stop_at(1, 1)
        )
        with interpreted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(reals())
        assert not model.converged_, inference


def test_the_number_of_jobs_does_not_change_the_draws(chains):
    assert_same_draws(chains(), chains(n_jobs=2))
