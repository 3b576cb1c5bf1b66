"""The result does not depend on chunks, files and executors."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from alike import label_matrix, same

from partita import LACA, NBCE, Consensus, LatentClass, Mixture, MixtureConsensus
from partita.dispatch import interpreted
from partita.execution import open_chunks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EM = {
    "family": "gaussian",
    "inference": "em",
    "n_clusters": 3,
    "n_init": 2,
    "max_iter": 40,
    "random_state": 0,
}
VB = {
    "family": "gaussian",
    "inference": "vb",
    "max_clusters": 6,
    "n_init": 1,
    "max_iter": 30,
    "random_state": 0,
}
MEMOIZED = {**VB, "inference": "memoized", "tol": 1e-9}

CHAIN = {
    "family": "gaussian", "inference": "subclusters", "n_chains": 1, "n_draws": 5, "burn_in": 6, "random_state": 0
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore")


def parquet(X, path):
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])}), path, row_group_size=2500)
    return path


@pytest.fixture(scope="module")
def mixtures(reals):
    return {
        name: Mixture(**options).fit(reals)
        for name, options in (("em", EM), ("vb", VB), ("memoized", MEMOIZED))
    }


@pytest.fixture(scope="module")
def full(reals):
    """Without holes."""
    return np.nan_to_num(reals)


@pytest.fixture(scope="module")
def chain(full):
    return Mixture(**CHAIN).fit(full)


@pytest.fixture(scope="module")
def consensus(labels):
    return {
        "mm": MixtureConsensus(4, n_init=1, max_iter=40, random_state=0).fit(labels),
        "nbce": NBCE(inference="vb", max_clusters=6, n_init=1, max_iter=30, random_state=0).fit(labels),
    }


@pytest.mark.parametrize("rows", [1, 7, 1000, None])
def test_mixtures_in_chunks(mixtures, reals, rows):
    for name, options in (("em", EM), ("vb", VB)):
        if rows in (1, 7) and name == "vb":
            continue  # chunks of an array are cut anew: one model is enough
        model = Mixture(**options).fit(open_chunks(reals, rows=rows))
        same(mixtures[name], model)
        assert model.log_likelihood_ == pytest.approx(mixtures[name].log_likelihood_, rel=1e-12)
        assert "execution" in model.fit_report_


def test_mixtures_of_files_and_maps(mixtures, reals, tmp_path):
    np.save(tmp_path / "x.npy", reals)
    same(mixtures["vb"], Mixture(**VB).fit(open_chunks(tmp_path / "x.npy", rows=1234)))
    model = Mixture(**EM).fit(open_chunks(parquet(reals, tmp_path / "x.parquet")))
    same(mixtures["em"], model)
    np.testing.assert_array_equal(model.predict(tmp_path / "x.parquet"), model.labels_)
    proba = model.predict_proba(open_chunks(tmp_path / "x.parquet"))
    np.testing.assert_allclose(proba.max(axis=1), model.confidence_, atol=1e-12)
    densities = model.score_samples(open_chunks(tmp_path / "x.parquet"))
    assert densities.sum() == pytest.approx(model.log_likelihood_, rel=1e-12)


def test_a_small_file_is_read_as_a_whole(mixtures, reals, tmp_path):
    model = Mixture(**{**EM, "inference": "em"}).fit(str(parquet(reals, tmp_path / "x.parquet")))
    same(mixtures["em"], model)
    assert any("in memory" in note.message for note in model.fit_report_.notes if note.code == "execution")


@pytest.mark.parametrize("executor", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_joblib(mixtures, reals, executor):
    options = {**EM, "max_iter": 3, "n_init": 1}
    one = Mixture(**options).fit(reals)
    same(one, Mixture(**options, executor=executor, n_jobs=2).fit(open_chunks(reals)))


@pytest.mark.parametrize("rows", [7, None])
def test_consensus_in_chunks(consensus, labels, rows):
    source = open_chunks(labels, rows=rows)
    mm = MixtureConsensus(4, n_init=1, max_iter=40, random_state=0).fit(source)
    same(consensus["mm"], mm)
    nbce = NBCE(inference="vb", max_clusters=6, n_init=1, max_iter=30, random_state=0).fit(source)
    same(consensus["nbce"], nbce)
    np.testing.assert_array_equal(nbce.predict(source), consensus["nbce"].predict(labels))


def test_rows_that_are_nearly_all_distinct_are_walked_over_in_shards(tmp_path):
    Y = np.column_stack([label_matrix(0.5, 9000, seed) for seed in (1, 2)])
    Y[5] = 0  # a row that takes no part would move the chunks of all others
    model = MixtureConsensus(3, n_init=1, max_iter=5, criterion="mdl", random_state=0)
    here, there = model.fit(Y), MixtureConsensus(**model.get_params()).fit(open_chunks(Y, rows=999))
    same(here, there, 0.0)
    assert here.n_clusters_scores_[3] == pytest.approx(there.n_clusters_scores_[3], rel=1e-12)


@pytest.mark.parametrize("criterion", ["mdl", "icl"])
def test_the_number_of_clusters_is_chosen_in_chunks(criterion):
    Y = label_matrix(0.1, 5000)
    model = MixtureConsensus(max_clusters=5, n_init=1, max_iter=20, criterion=criterion, random_state=0)
    here, there = model.fit(Y), MixtureConsensus(**model.get_params()).fit(open_chunks(Y))
    assert here.n_clusters_scores_.keys() == there.n_clusters_scores_.keys()
    same(here, there)


@pytest.mark.parametrize("estimator", [LACA(max_exact=300, random_state=0), Consensus(random_state=0)])
def test_what_needs_the_codes_has_them_in_memory(estimator, tmp_path):
    Y = label_matrix(0.2, 5000)
    here = estimator.fit(Y).labels_
    np.testing.assert_array_equal(
        estimator.fit(open_chunks(parquet(Y, tmp_path / "y.parquet"))).labels_, here
    )


def test_counts_and_exposures_and_kinds(tmp_path):
    rng = np.random.default_rng(5)
    n = 5000
    z = rng.integers(2, size=n)
    hours = rng.uniform(1, 3, size=n)
    columns = {
        "calls": rng.poisson(np.array([2.0, 20.0])[z] * hours).astype(float),
        "hours": hours,
        "size": rng.normal(size=n) + 4 * z,
        "color": np.array(["red", "blue", "green"])[rng.integers(3, size=n)],
        "yes": rng.random(n) < 0.5,
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1500)
    model = Mixture(
        inference="em",
        n_clusters=2,
        exposure="hours",
        kinds={"calls": "count"},
        n_init=1,
        max_iter=6,
        random_state=0,
    )
    here = model.fit(table)
    there = Mixture(**model.get_params()).fit(open_chunks(tmp_path / "t.parquet"))
    same(here, there)
    assert here.profiles_.keys() == there.profiles_.keys()


def test_weights(reals):
    w = np.random.default_rng(0).integers(0, 3, size=len(reals)).astype(float)
    options = {**EM, "n_init": 1, "max_iter": 5}
    one = Mixture(**options).fit(reals, sample_weight=w)
    same(one, Mixture(**options).fit(open_chunks(reals, rows=500), sample_weight=w))


def test_presets_take_chunks(labels):
    Y = np.where(labels < 0, 4, labels)
    one, other = (LatentClass(3, n_init=1, max_iter=4, random_state=0).fit(X) for X in (Y, open_chunks(Y)))
    same(one, other)
    assert one.bic_ == pytest.approx(other.bic_, rel=1e-12)


def test_a_model_of_blocks_is_saved_and_read(reals, tmp_path):
    import partita

    model = Mixture(**{**EM, "n_init": 1, "max_iter": 2}).fit(open_chunks(reals))
    model.save(tmp_path / "m.partita")
    np.testing.assert_array_equal(partita.load(tmp_path / "m.partita").predict(reals), model.labels_)


def test_ensembles_and_metrics_of_files(reals, tmp_path):
    from partita.ensembles import generate
    from partita.metrics import adjusted_rand

    X = reals[:300]
    options = {"n_members": 2, "n_clusters": 3, "random_state": 0}
    Y = generate(parquet(X, tmp_path / "x.parquet"), **options)
    np.testing.assert_array_equal(Y, generate(X, **options))
    da = pytest.importorskip("dask.array")
    assert adjusted_rand(da.from_array(Y[:, 0], chunks=100), da.from_array(Y[:, 0], chunks=77)) == 1.0


def test_the_choice_is_printed(reals, capsys):
    Mixture(**{**EM, "n_init": 1, "max_iter": 1}, verbose=True).fit(open_chunks(reals))
    assert "in chunks of rows" in capsys.readouterr().err


def test_chains_over_rows_read_blocks_into_memory():
    X = np.random.default_rng(0).normal(size=(40, 1))
    options = {"n_chains": 1, "n_draws": 3, "burn_in": 2, "random_state": 0}
    with interpreted():
        one, other = (Mixture("gaussian", **options).fit(given) for given in (X, open_chunks(X)))
    np.testing.assert_array_equal(one.labels_, other.labels_)


# ---- resume ----------------------------------------------------------------------------------------------------


class Killed(Exception):
    pass


@pytest.mark.parametrize("name", ["em", "vb", "memoized"])
def test_a_fit_that_was_killed_goes_on(mixtures, reals, tmp_path, name):
    options = {"em": EM, "vb": VB, "memoized": MEMOIZED}[name]
    calls = []

    def kill(progress):
        calls.append(progress)
        if len(calls) == 2:
            raise Killed

    with pytest.raises(Killed):
        Mixture(**options, resume=tmp_path, callback=kill).fit(open_chunks(reals))
    before = sorted(os.listdir(tmp_path))
    written = {file: os.stat(tmp_path / file).st_mtime_ns for file in before}
    model = Mixture(**options, resume=tmp_path).fit(open_chunks(reals))
    same(mixtures[name], model, 1e-10)
    assert before and len(os.listdir(tmp_path)) > len(before)
    assert all(os.stat(tmp_path / file).st_mtime_ns == at for file, at in written.items())  # not done again


DRIVER = """
import os, signal, sys
import numpy as np
import partita.execution.shards
from partita import Mixture
from partita.execution import open_chunks

partita.execution.shards.SHARD_CHUNKS = 1

def kill(progress):
    if progress.iteration == 2:
        os.kill(os.getpid(), signal.SIGKILL)

options = {options!r}
Mixture(**options, resume=sys.argv[2], callback=kill).fit(open_chunks(np.load(sys.argv[1]), rows=1000))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vb", "chain"])
def test_a_driver_that_is_killed_as_a_process(mixtures, reals, full, chain, tmp_path, name):
    X, options, here = {"vb": (reals, VB, mixtures["vb"]), "chain": (full, CHAIN, chain)}[name]
    np.save(tmp_path / "x.npy", X)
    script = DRIVER.replace("{options!r}", repr(options))
    command = [sys.executable, "-c", script, str(tmp_path / "x.npy"), str(tmp_path / "kept")]
    assert subprocess.run(command, timeout=300, check=False).returncode == -signal.SIGKILL
    model = Mixture(**options, resume=tmp_path / "kept").fit(open_chunks(X))
    if name == "vb":
        same(here, model)
    else:
        same_chain(here, model)


def test_a_folder_of_another_fit_is_refused(reals, tmp_path):
    options = {**EM, "n_init": 1, "max_iter": 2}
    Mixture(**options, resume=tmp_path).fit(reals)
    with pytest.raises(ValueError, match="belongs to another fit"):
        Mixture(**options, resume=tmp_path).fit(reals + np.arange(len(reals))[:, None] % 5)


def test_a_file_that_was_cut_short_is_named(reals, tmp_path):
    options = {**EM, "n_init": 1, "max_iter": 2}
    Mixture(**options, resume=tmp_path).fit(reals)
    file = sorted(tmp_path.glob("pass*"))[1]
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"pass000001\.npz cannot be read"):
        Mixture(**options, resume=tmp_path).fit(reals)


# ---- chains ----------------------------------------------------------------------------------------------------


def same_chain(one, other):
    np.testing.assert_array_equal(one.trace_.labels, other.trace_.labels)
    np.testing.assert_allclose(one.trace_.log_joint, other.trace_.log_joint, rtol=1e-10)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.confidence_, other.confidence_, atol=1e-12)


@pytest.mark.parametrize("rows", [7, None])
def test_the_same_chain_in_chunks(chain, full, rows):
    same_chain(chain, Mixture(**CHAIN).fit(open_chunks(full, rows=rows)))


def test_the_same_chain_of_copies(full):
    w = np.random.default_rng(0).integers(0, 3, size=len(full)).astype(float)
    one, other = (Mixture(**CHAIN).fit(X, sample_weight=w) for X in (full, open_chunks(full, rows=1000)))
    same_chain(one, other)


def test_a_chain_that_was_killed_goes_on(chain, full, tmp_path):
    def kill(progress):
        if progress.iteration == 8:
            raise Killed

    with pytest.raises(Killed):
        Mixture(**CHAIN, resume=tmp_path, callback=kill).fit(open_chunks(full))
    assert len(list(tmp_path.glob("chain0_draw*.npz"))) == 2
    seen = []
    again = Mixture(**CHAIN, resume=tmp_path, callback=lambda progress: seen.append(progress.iteration))
    same_chain(chain, again.fit(open_chunks(full)))
    assert seen == list(range(seen[0], 12)) and 1 < seen[0] <= 9  # it goes on from the last checkpoint
    with pytest.raises(ValueError, match="belongs to another fit"):
        Mixture(**{**CHAIN, "random_state": 1}, resume=tmp_path).fit(full)


def test_nbce_by_subclusters(labels):
    options = {"inference": "subclusters", "n_chains": 1, "n_draws": 4, "burn_in": 6, "random_state": 0}
    one, other = (NBCE(**options).fit(Y) for Y in (labels, open_chunks(labels, rows=1000)))
    same_chain(one, other)
    assert 3 <= one.n_clusters_ <= 6
    np.testing.assert_array_equal(one.object_rows_, other.object_rows_)
    assert 5 not in one.object_rows_  # the row of nothing
