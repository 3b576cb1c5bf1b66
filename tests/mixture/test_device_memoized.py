"""Memoized variational Bayes of arrays on a device: the parts, the births and the answer of the host."""

import sys

import numpy as np
import pytest

from partita import Mixture
from partita.engines.climb import births, memoized
from partita.execution import device
from partita.metrics import adjusted_rand

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
N = 21_000  # six chunks of 4096 rows, the last of which is not full: three parts


def on(values):
    return xp.asarray(values, device=xp.Device("device1"))


def table(family, rng, n_rows=N):
    """Four groups that are far apart."""
    z = rng.integers(4, size=n_rows)
    if family == "categorical":
        levels = (np.arange(4)[:, None] + rng.integers(4, size=8)) % 4  # no two groups agree in a column
        return np.where(rng.random((n_rows, 8)) < 0.2, rng.integers(4, size=(n_rows, 8)), levels[z]), z
    return rng.normal(10.0 * np.eye(4)[z][:, :3], 1.0), z


def asked(n_rows=N, **options):
    """One cluster at the start: only births lead to more."""
    together = np.zeros(n_rows, np.int64)
    return {"inference": "memoized", "init": together, "max_clusters": 6, "random_state": 0, **options}


@pytest.fixture
def counted(monkeypatch):
    """The divisions that were proposed, as lists of the clusters that are divided."""
    found = []
    divided = births.divided

    def noted(statistics, divisions):
        found.append([division.parent for division in divisions])
        return divided(statistics, divisions)

    monkeypatch.setattr(births, "divided", noted)
    return found


@pytest.mark.parametrize("family", ["categorical", "gaussian", "gaussian_full"])
def test_the_answer_is_that_of_the_host(family, counted, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X, planted = table(family, rng)
    assert memoized.n_parts(N) == 3
    here = Mixture(family, **asked()).fit(X)
    on_host = counted[:]
    del counted[:]
    there = Mixture(family, **asked()).fit(on(X))
    assert counted and counted == on_host
    assert there.n_clusters_ == here.n_clusters_ >= 4
    # single precision of categories: a row in a thousand may be between two clusters
    assert np.mean(there.labels_ != here.labels_) <= (1e-3 if family == "categorical" else 0.0)
    assert adjusted_rand(planted, there.labels_) > 0.8  # a group may be two clusters, here and there
    # both stop when the bound per row rises by less than tol
    rounding = 1e-5 * abs(here.lower_bound_) if family == "categorical" else 1e-4
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, abs=rounding)
    alone = Mixture(family, **asked(inference="vb")).fit(on(X))
    assert alone.n_clusters_ == 1  # without births


def test_weights_and_missing_cells_count_as_on_the_host(counted, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X, _ = table("gaussian", rng)
    X[rng.random(X.shape) < 0.05] = np.nan
    w = rng.integers(0, 3, N).astype(float)
    here = Mixture("gaussian", **asked()).fit(X, sample_weight=w)
    on_host = counted[:]
    del counted[:]
    there = Mixture("gaussian", **asked()).fit(on(X), sample_weight=on(w))
    assert counted and counted == on_host
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-9)


@pytest.mark.parametrize("family", ["categorical", "gaussian"])
def test_nothing_of_the_size_of_the_table_is_copied(family, monkeypatch, global_random_seed):
    """Neither rows nor labels of parts, and of each cluster a sample: births are sought where a run has converged."""
    monkeypatch.setattr(births, "SAMPLE", 300)  # times clusters and columns: fewer cells than rows
    X = on(table(family, np.random.default_rng(global_random_seed))[0])
    moves, sizes, samples = (device.to_host, device.to_device), [], []
    search = births.rows_of_ranks

    def watched(move):
        def moved(values, *args, **options):
            sizes.append(int(np.prod(values.shape)))
            return move(values, *args, **options)

        return moved

    def watched_search(labels, ranks):
        assert device.is_on_device(labels)
        samples.append(search(labels, ranks))
        return samples[-1]

    for module in [m for name, m in sys.modules.items() if name.startswith("partita.")]:
        for move in moves:
            if vars(module).get(move.__name__) is move:
                monkeypatch.setattr(module, move.__name__, watched(move))
    monkeypatch.setattr(births, "rows_of_ranks", watched_search)
    Mixture(family, **asked(init="seeds", n_init=1)).fit(X)
    assert samples and max(len(rows) for rows in samples[0]) == 300
    assert sizes and max(sizes) < N


def test_a_fit_goes_on_where_it_was_stopped(tmp_path, global_random_seed):
    X = on(table("gaussian", np.random.default_rng(global_random_seed))[0])
    options = asked(tol=1e-9, resume=tmp_path)
    whole = Mixture("gaussian", **asked(tol=1e-9)).fit(X)
    first = Mixture("gaussian", **options, callback=lambda progress: progress.iteration == 2).fit(X)
    assert first.n_iter_ == 2 < whole.n_iter_
    again = Mixture("gaussian", **options).fit(X)
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert again.lower_bound_ == whole.lower_bound_


def test_what_a_device_cannot_do_is_said(global_random_seed):
    X = table("gaussian", np.random.default_rng(global_random_seed))[0]
    with pytest.raises(ValueError, match="outliers= and exposure= are for tables on the host"):
        Mixture("gaussian", **asked(outliers=True)).fit(on(X))
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match="completed on the host only"):
        Mixture("gaussian_full", **asked()).fit(on(X))
    with pytest.raises(ValueError, match="Student does not run on a device: categorical, gaussian"):
        Mixture("student", **asked()).fit(on(X))
