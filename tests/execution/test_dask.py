"""A Dask cluster of processes on this machine, one of which is killed."""

import operator
import os
import signal

import numpy as np
import pytest
from alike import label_matrix, same, worst

from partita import NBCE, Consensus, Mixture, MixtureConsensus
from partita.execution import open_chunks

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EM = {
    "family": "gaussian",
    "inference": "em",
    "n_clusters": 3,
    "n_init": 1,
    "max_iter": 12,
    "random_state": 0,
}
MM = {"n_clusters": 4, "n_init": 1, "max_iter": 10, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def mixture(reals):
    return Mixture(**EM).fit(reals)


def several_workers(client):
    """More workers than one, also where a test is run by itself or after one that has killed a worker."""
    client.cluster.scale(3)
    client.wait_for_workers(3, timeout=120)


def test_one_worker(client, mixture, reals):
    same(mixture, Mixture(**EM, executor=client).fit(da.from_array(reals, chunks=(4096, 2))))


def test_three_workers_and_chunks_of_any_size(client, mixture, reals, labels):
    several_workers(client)
    same(mixture, Mixture(**EM).fit(da.from_array(reals, chunks=(1000, 2))))  # the client that is open
    model = MixtureConsensus(**MM, executor=client).fit(da.from_array(labels, chunks=(1500, 6)))
    same(MixtureConsensus(**MM).fit(labels), model)
    np.testing.assert_array_equal(model.predict(da.from_array(labels, chunks=(1500, 6))), model.labels_)


def test_files_are_read_by_the_workers(client, mixture, reals, tmp_path):
    pq.write_table(
        pa.table({"a": reals[:, 0], "b": reals[:, 1]}), tmp_path / "x.parquet", row_group_size=2500
    )
    same(mixture, Mixture(**EM, executor=client).fit(tmp_path / "x.parquet"))


def test_columns_on_different_hosts(client, labels, monkeypatch):
    Y = np.column_stack([labels, np.zeros(len(labels), int)])  # a member that says nothing
    chunked = da.from_array(Y, chunks=(3000, 2))

    def refuse(*args, **kwargs):
        raise AssertionError("the pieces of a row have met")

    monkeypatch.setattr("partita.execution.columns.GridShards.map", refuse)
    model = MixtureConsensus(**MM, executor=client, criterion="mdl").fit(chunked)
    here = MixtureConsensus(**MM, criterion="mdl").fit(Y)
    same(here, model)
    assert model.n_clusters_scores_[4] == pytest.approx(here.n_clusters_scores_[4], rel=1e-12)
    options = {"inference": "vb", "max_clusters": 5, "n_init": 1, "max_iter": 5, "random_state": 0}
    same(NBCE(**options).fit(Y), NBCE(**options, executor=client).fit(chunked))


def test_data_frames_with_an_empty_partition(client, reals):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pd.DataFrame(reals, columns=["a", "b"])
    parts = [dd.from_pandas(part, npartitions=1) for part in (frame[:4096], frame[4096:4097], frame[4097:])]
    parts[1] = parts[1][parts[1]["a"] > 1e9]  # nobody is left
    model = Mixture(**EM).fit(dd.concat([parts[0], parts[1], parts[2]]))
    rest = np.delete(reals, 4096, axis=0)
    assert worst(Mixture(**EM).fit(rest), model) < 1e-10


def test_consensus_and_nbce_of_a_dask_array(client):
    Y = label_matrix(0.2, 5000)
    chunked = da.from_array(Y, chunks=(2000, 6))
    np.testing.assert_array_equal(
        Consensus(random_state=0).fit(chunked).labels_, Consensus(random_state=0).fit(Y).labels_
    )
    options = {"inference": "vb", "max_clusters": 5, "n_init": 1, "max_iter": 15, "random_state": 0}
    same(NBCE(**options).fit(Y), NBCE(**options, executor=client).fit(chunked))


def test_the_same_chain(client, reals):
    X = np.nan_to_num(reals)
    options = {
        "family": "gaussian", "inference": "subclusters", "n_chains": 1, "n_draws": 3, "burn_in": 4, "random_state": 0
    }  # fmt: skip
    one = Mixture(**options).fit(X)
    other = Mixture(**options, executor=client).fit(da.from_array(X, chunks=(2500, 2)))
    np.testing.assert_array_equal(one.trace_.labels, other.trace_.labels)


def test_nothing_is_scattered(client, reals, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("scattered")

    monkeypatch.setattr(client, "scatter", refuse)
    Mixture(**{**EM, "max_iter": 1}, executor=client).fit(da.from_array(reals, chunks=(4096, 2)))


def test_a_worker_is_killed_in_mid_fit(client, mixture, reals):
    pids = list(client.run(os.getpid).values())
    killed = []

    def kill(progress):
        if progress.iteration == 3 and not killed:
            os.kill(pids[0], signal.SIGKILL)  # a process of the cluster that this module started
            killed.append(pids[0])

    model = Mixture(**EM, executor=client, callback=kill).fit(da.from_array(reals, chunks=(1000, 2)))
    assert killed
    same(mixture, model)


def test_bad_chunks_are_reported_before_iterating(client, reals):
    bad = reals.copy()
    bad[8000, 1] = np.inf
    with pytest.raises(ValueError, match=r"row 8000 .*infinity"):
        Mixture(**EM, executor=client).fit(da.from_array(bad, chunks=(3000, 2)))
    with pytest.raises(ValueError, match="whole table in memory"):
        Mixture("gaussian", inference="gibbs", random_state=0).fit(da.from_array(reals, chunks=(3000, 2)))
    assert Mixture("gaussian", random_state=0).fit(da.from_array(reals, chunks=(3000, 2))).inference_ == "vb"


def test_without_a_cluster_chunks_are_computed_here(mixture, reals, monkeypatch):
    import partita.execution.choosing
    import partita.execution.reading

    for module in (partita.execution.choosing, partita.execution.reading):
        monkeypatch.setattr(module, "running_client", lambda: None)
    same(mixture, Mixture(**EM).fit(da.from_array(reals, chunks=(1000, 2))))
    assert open_chunks(da.from_array(reals, chunks=(1000, 2))).sizes == (1000,) * 9 + (1,)


def test_a_pass_is_one_task_per_thread_of_a_worker(client, rng):
    """Statistics added up where shards are do not depend on who holds them, to the last bit."""
    from partita.engines.climb.seeding import label_statistics
    from partita.engines.passes.rows import Parameters, collect
    from partita.execution import Cluster, ShardData
    from partita.execution.reading import open_shards
    from partita.families import Block, GaussianDiagonal
    from partita.families.contract import expect

    X = rng.normal(size=(40_000, 2))
    family = GaussianDiagonal.default(2)
    block, weights = Block(family, X, ("a", "b")), np.ones(len(X))
    start = label_statistics([block], weights, np.random.default_rng(0).integers(3, size=len(X)), 3)
    at = Parameters(np.zeros(3), (expect(family, start.S[0]),))
    here = collect([block], weights, at)
    raw, _ = open_shards(open_chunks(X, rows=1000), Cluster(client))
    parts = raw.derive(_as_data, None)
    there = collect([Block(family, ShardData(parts, 0), ("a", "b"))], weights, at)
    np.testing.assert_array_equal(there.S[0], here.S[0])
    assert there.log_likelihood == here.log_likelihood
    groups = [group for held in parts._grouped().values() for group in held]
    assert len(groups) <= sum(client.nthreads().values()) < len(parts.starts) - 1
    assert sorted(i for group in groups for i in group) == list(range(len(parts.starts) - 1))


def _shards_of_numbers(client, n_shards=12):
    from partita.execution import Cluster
    from partita.execution.reading import open_shards

    raw, _ = open_shards(open_chunks(np.arange(4096.0 * n_shards)[:, None]), Cluster(client))
    return raw.derive(_as_data, None)


def _added(data, common, own):
    return float(data[0].sum()) * common + own


def test_a_pass_is_calls_from_worker_to_worker(client, monkeypatch):
    """With as many levels as there are workers; nothing goes through the scheduler."""
    from partita.execution import worker_tree

    monkeypatch.setattr(worker_tree, "BRANCHES", 1)
    parts = _shards_of_numbers(client)
    parts._grouped()

    def refuse(*args, **kwargs):
        raise AssertionError("a task of the scheduler")

    for name in ("map", "submit", "compute"):
        monkeypatch.setattr(client, name, refuse)
    n = parts.n_rows
    total = parts.reduce(_added, 2.0, list(range(12)), operator.add, in_any_order=True)
    assert total == n * (n - 1) + sum(range(12))
    assert len(parts._grouped()) > 1 and parts._n_failed == 0


def _dies_once(data, common, _):
    """Kill the first worker that gets here, if it is one of the cluster of this module."""
    path, own = common
    if os.getpid() != own and not os.path.exists(path):
        with open(path, "w") as file:
            file.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return float(data[0].sum())


def test_a_worker_dies_in_the_middle_of_a_pass(client, tmp_path):
    several_workers(client)
    parts, n = _shards_of_numbers(client), 12 * 4096
    about = (str(tmp_path / "killed"), os.getpid())
    for _ in range(2):  # the pass itself, and the next one, which calls the workers that are left
        assert parts.reduce(_dies_once, about, None, operator.add, in_any_order=True) == n * (n - 1) / 2
    assert (tmp_path / "killed").exists()


def test_shards_that_have_moved_are_found_again(client):
    """A worker that no longer holds a shard fails the pass, and the next one has other groups."""
    parts, n = _shards_of_numbers(client), 12 * 4096
    groups = parts._grouped()
    first, second = list(groups)[:2]
    parts._groups = groups | {first: groups[second], second: groups[first]}
    for failed in (1, 0):
        total = parts.reduce(_added, 1.0, [0] * 12, operator.add, in_any_order=True)
        assert total == n * (n - 1) / 2 and parts._n_failed == failed


def _refuses(data, common, own):
    raise FloatingPointError("the third pass")


def test_an_error_of_a_pass_is_raised_as_it_is(client):
    with pytest.raises(FloatingPointError, match="the third pass"):
        _shards_of_numbers(client).reduce(_refuses, None, None, operator.add, in_any_order=True)


def _as_data(container, _common, _own):
    return (np.ascontiguousarray(container),)


def test_ensembles_and_views_of_a_sample(client, monkeypatch):
    """Rows are sampled and labeled where they are."""
    from partita import CrossCat, EnsembleClustering
    from partita.consensus import ensemble_clustering
    from partita.views.crosscat import estimator

    monkeypatch.setattr(ensemble_clustering, "MAX_ROWS", 800)
    monkeypatch.setattr(estimator, "MAX_VB_ROWS", 800)
    rng = np.random.default_rng(0)
    X = rng.normal(8.0 * np.eye(3)[rng.integers(3, size=3000)], 1.0)
    chunked = da.from_array(X, chunks=(1100, 3))
    for model, labels in (
        (EnsembleClustering(n_members=4, random_state=0), "labels_"),
        (CrossCat(inference="vb", n_draws=4, random_state=0), "view_labels_"),
    ):
        here = getattr(model.fit(X), labels)
        there = model.set_params(executor=client).fit(chunked)
        np.testing.assert_array_equal(getattr(there, labels), here)
        assert "sample" in there.fit_report_


def test_a_worker_is_killed_in_memoized_vb(client):
    several_workers(client)
    rng = np.random.default_rng(0)
    X = rng.normal(2.0 * np.eye(3)[rng.integers(3, size=40_000)], 1.0)
    options = {"family": "gaussian", "inference": "memoized", "n_init": 1, "tol": 1e-7, "random_state": 0}
    here, killed = Mixture(**options).fit(X), []

    def kill(progress):
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)  # a process of the cluster that this module started

    there = Mixture(**options, executor=client, callback=kill).fit(da.from_array(X, chunks=(8192, 3)))
    assert killed and here.n_iter_ > 1
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-12)


def test_memoized_statistics_of_parts(client):
    """The parts of a table are the same on workers as in memory."""
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=40_000)
    X = rng.normal(5.0 * np.eye(3)[z], 1.0)
    options = {"family": "gaussian", "inference": "memoized", "n_init": 1, "random_state": 0}
    here = Mixture(**options).fit(X)
    there = Mixture(**options, executor=client).fit(da.from_array(X, chunks=(8192, 3)))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-12)


def _kills_once(client, killed):
    """A callback that kills the first worker of the cluster of this module."""

    def kill(progress):
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    return kill


def test_a_worker_is_killed_in_a_chain(client, reals):
    several_workers(client)
    X, killed = np.nan_to_num(reals), []
    options = {
        "family": "gaussian", "inference": "subclusters", "n_chains": 1, "n_draws": 2, "burn_in": 2, "random_state": 0
    }  # fmt: skip
    here = Mixture(**options).fit(X)
    kill = _kills_once(client, killed)
    there = Mixture(**options, executor=client, callback=kill).fit(da.from_array(X, chunks=(2500, 2)))
    assert killed
    np.testing.assert_array_equal(there.trace_.labels, here.trace_.labels)
    np.testing.assert_array_equal(there.labels_, here.labels_)


def test_a_worker_is_killed_before_the_rows_beside_a_sample_are_labeled(client, monkeypatch):
    from partita.consensus import reduction

    several_workers(client)
    monkeypatch.setattr(reduction, "MAX_BYTES", 6 * 300)
    monkeypatch.setattr(reduction, "MAX_SAMPLE", 1500)
    Y, killed = label_matrix(0.3, 5000), []
    chunked = da.from_array(Y, chunks=(1100, 6))
    here = Consensus(4, random_state=0).fit(Y)
    kill = _kills_once(client, killed)
    there = Consensus(4, random_state=0, executor=client, callback=kill).fit(chunked)
    assert killed and "sample" in there.fit_report_
    np.testing.assert_array_equal(there.labels_, here.labels_)
