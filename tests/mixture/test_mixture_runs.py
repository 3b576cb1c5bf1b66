"""How a fit runs: starts, limits, callbacks, interrupts, options, messages."""

import numpy as np
import pandas as pd
import pytest

from partita import LatentClass, Mixture


def test_given_labels(mixture, two_groups, same_partition):
    X, z = two_groups
    for init in (
        z,
        z.tolist(),
        np.array(["b", "a"])[z],
        np.where(np.arange(80) % 4 == 0, z, -1),
        pd.Series(z),
    ):
        model = mixture(init=init, n_clusters=2).fit(X)
        same_partition(model.labels_, z)


def test_bad_given_labels(mixture, two_groups):
    X, z = two_groups
    with pytest.raises(
        ValueError, match=r"init has 3 labels of 2 clusters: give one label for each of the 80 rows"
    ):
        mixture(init=[0, 1, 1]).fit(X)
    with pytest.raises(ValueError, match=r"init has 80 labels of 80 clusters.* at most 2 clusters"):
        mixture(init=np.arange(80), n_clusters=2).fit(X)
    with pytest.raises(ValueError, match="init gives no row a cluster"):
        mixture(init=np.full(80, -1), n_clusters=2).fit(X)
    with pytest.raises(ValueError, match="'init' parameter of Mixture"):
        mixture(init="kmeans").fit(X)


def test_more_starts_are_never_worse(global_random_seed):
    """The first start of ten is the only start of one; answers at random have so many local optima that one start
    is the best of ten in one case of ten, or in all of five cases in one of 100,000.
    """
    X = np.random.default_rng(global_random_seed).integers(3, size=(100, 6))
    best = np.array(
        [
            [
                LatentClass(5, n_init=n, max_iter=5000, random_state=global_random_seed + seed)
                .fit(X)
                .log_likelihood_
                for n in (1, 3, 10)
            ]
            for seed in range(5)
        ]
    )
    assert (np.diff(best, axis=1) >= 0).all() and (best[:, 2] > best[:, 0] + 1e-3).any()


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_objective_rises(inference, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = Mixture(
        n_clusters=3, inference=inference, n_init=1, max_iter=3000, random_state=global_random_seed
    ).fit(X)
    trace = model.objective_trace_
    assert len(trace) == model.n_iter_ and (np.diff(trace) >= -1e-8 * (1 + np.abs(trace[1:]))).all()


def test_time_limit(mixture, clock, rng):
    """Iterations of two seconds and a limit of nine: the run ends with the first iteration after the limit."""
    X = rng.normal(size=(80, 2))  # one blob, which two clusters share out slowly
    seen = []

    def slow(progress):
        seen.append(progress.iteration)
        clock.advance(2.0)

    model = mixture(time_limit=9.0, callback=slow, tol=0.0, max_iter=10**6, n_clusters=2).fit(X)
    assert len(seen) == model.n_iter_ == 5
    assert not model.converged_ and "time_limit" in model.fit_report_["not_converged"].message


def test_callback_sees_and_stops(mixture, two_groups):
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration == 2

    model = mixture(callback=callback, n_init=3, init="random", tol=0.0, n_clusters=2).fit(two_groups[0])
    assert [p.iteration for p in seen] == [1, 2]
    assert all(np.isfinite(p.objective) and p.n_clusters >= 1 and p.seconds >= 0 for p in seen)
    assert "callback" in model.fit_report_["not_converged"].message
    assert np.array_equal(model.predict(two_groups[0]), model.labels_)


def _interrupt(progress):
    if progress.iteration == 2:
        raise KeyboardInterrupt


def test_interrupt_keeps_the_partial_fit(mixture, two_groups):
    X, _ = two_groups
    settings = {"callback": _interrupt, "init": "random", "tol": 0.0, "n_clusters": 2}
    model = mixture(keep_partial=True, **settings).fit(X)
    assert not model.converged_ and "interrupted" in model.fit_report_["not_converged"].message
    assert np.array_equal(model.predict(X), model.labels_)
    clean = mixture(keep_partial=False, **settings)
    with pytest.raises(KeyboardInterrupt):
        clean.fit(X)
    assert not [name for name in vars(clean) if name.endswith("_")]


@pytest.mark.parametrize("with_callback", [False, True])
def test_verbose_prints_to_standard_error(mixture, two_groups, capsys, with_callback):
    seen = []
    mixture(verbose=True, callback=seen.append if with_callback else None, n_init=1).fit(two_groups[0])
    out, err = capsys.readouterr()
    assert out == "" and "iteration    1" in err and "objective" in err
    assert bool(seen) == with_callback
    mixture(n_init=1).fit(two_groups[0])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"family": "gausian"}, r"unknown family 'gausian': choose one of bernoulli, .*gaussian"),
        ({"family": 3}, r"family is 3: give 'auto', one of"),
        ({"family": {"reel": "gaussian"}}, r"'reel', which is no kind of column: use real"),
        ({"family": {"real": "poisson"}}, r"family 'poisson' reads count columns, not real"),
        ({"family": ("gaussian", {"kapa": 1})}, r"'gaussian' has no option 'kapa': it takes a, b, k, m"),
        ({"family": ("gaussian", {"k": -1})}, r"option 'k' of family 'gaussian' is -1: give a number above"),
        ({"family": ("gaussian", {"m": np.nan})}, r"option 'm' of family 'gaussian' is nan: give a number"),
        ({"family": "categorical"}, r"column 'x0', row \d+ .*not an integer code"),
        ({"family": "poisson"}, r"column 'x0', row 0 .*'count'; counts are integers from 0 on"),
        ({"prior": "dp"}, r'unknown prior "dp": choose dirichlet_process'),
        ({"prior": "mfm", "inference": "vb"}, r"works with the priors 'dirichlet_process'"),
        ({"inference": "em"}, r"needs the number of clusters: pass n_clusters="),
        ({"inference": "gibs"}, r"'inference' parameter of Mixture"),
        ({"kinds": {"y": "real"}}, r"kinds names the column 'y', which the data do not have"),
        ({"kinds": {0: "reel"}}, r"unknown kind 'reel' for column 'x0'"),
        ({"kinds": ["real"]}, r"kinds has 1 entries but the data have 2 columns"),
        ({"exposure": "e"}, r"kinds names the column 'e', which the data do not have"),
        ({"exposure": "x1", "family": "poisson"}, r"exposure='x1' needs columns of two kinds"),
        ({"concentration": 0.0}, r"'concentration' parameter"),
        ({"n_clusters": 0}, r"'n_clusters' parameter"),
        ({"time_limit": 0}, r"'time_limit' parameter"),
        ({"callback": 3}, r"'callback' parameter"),
    ],
    ids=lambda p: "-".join(p) if isinstance(p, dict) else "",
)
def test_messages(parameters, message, two_groups):
    with pytest.raises(ValueError, match=message):
        Mixture(**parameters).fit(two_groups[0])


def test_options_reach_the_family(two_answers, global_random_seed):
    X, _ = two_answers
    weak, strong = (
        Mixture(
            ("categorical", {"alpha": a}),
            inference="vb",
            n_clusters=2,
            learn_hyper=False,
            random_state=global_random_seed,
        ).fit(X)
        for a in (0.1, 50.0)
    )
    spread = [np.ptp(m.profiles_["x0"]["probabilities"]) for m in (weak, strong)]
    assert spread[0] > spread[1] + 0.1


def test_latent_class_offers_only_its_own_parameters():
    assert "family" not in LatentClass().get_params() and "inference" not in LatentClass().get_params()
    with pytest.raises(TypeError, match="family"):
        LatentClass(family="gaussian")
