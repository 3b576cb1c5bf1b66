"""How much time Dask adds to an iteration as a function of the number of workers, and how far a fit can scale.

A pass of EM over a label matrix (20 members of six labels, 8 clusters) on a cluster of two processes of this machine is
compared with the same pass in one process. Then 4 to 128 workers, which two further processes host, run passes with
simulated compute: four shards per worker, which sleep for a moment and return statistics of the size of those of EM.
The CPU time of the process that holds both the scheduler and the driver is the overhead: everything passes through it,
so it limits a cluster. It is a straight line in the number of tasks (one per worker, one for the parameters, and a node
for every 16 results). The model for more workers combines these:

    seconds = rows / workers x seconds per row + overhead(tasks) + bytes at the driver / bandwidth

Seconds are CPU seconds, the smallest of the repetitions because the machine is shared.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager

from benchmarks.processes import ROOT, in_own_process

N_MEMBERS, N_LABELS, N_CLUSTERS = 20, 6, 8
MEASURED, FEW_MEASURED = (4, 16, 64, 128), (4, 16)  # workers
HOSTS = 2  # processes that these are in
WORKERS = (10, 100, 1000)
PARTS_EACH, SLEEP = 4, 0.005  # shards per worker, and simulated seconds of each
LEAST_BUSY = 0.8  # share of the time of 1,000 workers over 1e10 rows
IDLE_SECONDS = 3.0
BANDWIDTH = 1e9  # bytes a second into the driver: a common network, not measured here
FAN_IN = 16  # as in partita.execution.shards, which the parent process does not import
MODEL_ROWS = (10**8, 10**9, 10**10)


def run(*, full: bool, repeats: int) -> dict:
    n_rows = 2_000_000 if full else 100_000
    repeats = max(repeats, 5 if full else 2)
    found = in_own_process(measure, n_rows=n_rows, repeats=repeats)
    found["passes"] = []
    for workers in MEASURED if full else FEW_MEASURED:
        one = in_own_process(simulate, workers=workers, repeats=2 * repeats, bytes_back=found["bytes_back"])
        found["passes"].append({"workers": workers, "tasks": _n_tasks(workers), **one})
        print(
            f"   {workers} workers: {1e3 * one['seconds']:.1f} ms of CPU of driver and scheduler an iteration",
            flush=True,
        )
    slope, intercept = _line([(o["tasks"], o["seconds"]) for o in found["passes"]])
    model = [_predicted(n, w, found, slope, intercept) for n in MODEL_ROWS for w in WORKERS]
    print(
        f"   a pass over {n_rows:,} rows: {found['serial_s']:.3f} s in one process; on Dask its driver and scheduler "
        f"take {found['driver_s']:.3f} s; overhead {1e3 * intercept:.0f} ms and {1e3 * slope:.2f} ms a task",
        flush=True,
    )
    for one in model:
        print(
            f"   {one['n_rows']:.0e} rows, {one['workers']} workers: {one['seconds']:.2f} s an iteration, efficiency "
            f"{one['efficiency']:.0%}",
            flush=True,
        )
    size = {"n_rows": n_rows, "n_members": N_MEMBERS, "n_labels": N_LABELS, "n_clusters": N_CLUSTERS}
    line = {"seconds_a_task": slope, "seconds_a_pass": intercept}
    bars = {f"1,000 workers busy to {LEAST_BUSY:.0%} with 1e10 rows": model[-1]["efficiency"] >= LEAST_BUSY}
    return {
        "size": size,
        **found,
        "summary": {"overhead": line, "model": model},
        "bars": bars if full else {},
    }


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope and intercept by least squares."""
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return slope, max(y - slope * x, 0.0)


def _n_tasks(workers: int) -> int:
    """The parameters, the passes of the workers, and the nodes of the tree that adds them up."""
    tasks, level = 1 + workers, workers
    while level > FAN_IN:
        level = -(-level // FAN_IN)
        tasks += level
    return tasks


def _predicted(n_rows: int, workers: int, found: dict, slope: float, intercept: float) -> dict:
    tasks = _n_tasks(workers)
    work = n_rows / workers * found["seconds_a_row"]
    # parameters go out once, and the tree leaves at most 16 results for the driver
    moved = found["bytes_out"] + min(workers, FAN_IN) * found["bytes_back"]
    seconds = work + intercept + tasks * slope + moved / BANDWIDTH
    return {
        "n_rows": n_rows,
        "workers": workers,
        "tasks": tasks,
        "driver_bytes": moved,
        "seconds": round(seconds, 4),
        "efficiency": round(work / seconds, 4),
    }


# ---- in a process of its own -----------------------------------------------------------------------------------


def measure(n_rows: int, repeats: int) -> dict:
    """Passes of this process, and of two workers."""
    import numpy as np
    from distributed import Client, LocalCluster

    from partita.engines.passes.rows import Parameters, collect, n_stats, pack
    from partita.execution import Cluster, ShardData, open_chunks
    from partita.execution.reading import open_shards
    from partita.families import Block, Categorical
    from partita.families.contract import expect

    rng = np.random.default_rng(0)
    Y = rng.integers(N_LABELS, size=(n_rows, N_MEMBERS), dtype=np.int8)
    family, columns = Categorical.default([N_LABELS] * N_MEMBERS), tuple(range(N_MEMBERS))
    S = rng.random((n_stats(family), N_CLUSTERS)) * 100.0
    at, weights = Parameters(np.zeros(N_CLUSTERS), (expect(family, S),)), np.ones(n_rows)
    here = pack([Block(family, Y, columns)], n_rows)
    expected = collect(here, weights, at)
    serial = _least(lambda: collect(here, weights, at), repeats)
    # what travels is of packed states, and sums are of two numbers each
    walked = np.ascontiguousarray(here[0].levels.T @ at.thetas[0])
    sums = tuple([np.zeros(N_CLUSTERS), np.zeros(3), np.zeros_like(walked)] for _ in range(2))
    found = {"serial_s": serial, "seconds_a_row": serial / n_rows, "bytes_back": len(pickle.dumps(sums))}
    found["bytes_out"] = len(pickle.dumps((here[0].states, walked, at.log_weights)))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as local,
        Client(local) as client,
    ):
        cluster = Cluster(client)
        raw, _ = open_shards(open_chunks(Y), cluster)
        there = pack([Block(family, ShardData(raw.derive(as_part, None), 0), columns)], n_rows)
        result = collect(there, weights, at)
        assert np.array_equal(result.S[0], expected.S[0])  # to the last bit
        found["driver_s"] = _least(lambda: collect(there, weights, at), repeats)
        found["n_parts"] = len(raw.starts) - 1
    return found


def simulate(workers: int, repeats: int, bytes_back: int) -> dict:
    """Passes over four shards per worker, which sleep and return statistics of a given size."""
    import numpy as np
    from distributed import Client, LocalCluster

    from partita.engines.passes.exact_sums import merge_sums
    from partita.execution import Cluster
    from partita.execution.cluster import ClusterShards
    from partita.execution.shards import FAN_IN as fan_in

    assert fan_in == FAN_IN
    sums = tuple([np.zeros(bytes_back // 16)] for _ in range(2))
    with (
        LocalCluster(
            n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None
        ) as local,
        Client(local) as client,
        _hosted(local.scheduler_address, workers),
    ):
        client.wait_for_workers(workers)
        places = list(client.scheduler_info(n_workers=-1)["workers"])
        futures = [
            client.submit(abs, number, workers=[places[number % workers]], pure=False)
            for number in range(PARTS_EACH * workers)
        ]
        parts = ClusterShards(np.arange(len(futures) + 1), futures, Cluster(client))

        def one_pass():
            return parts.reduce(sleep_a_little, sums, None, merge_sums, in_any_order=True)

        seconds = _least_beside_idle(one_pass, repeats)
        assert len(parts._grouped()) == workers
    return {"seconds": seconds}


@contextmanager
def _hosted(address: str, workers: int):
    """Workers in further processes, as long as the context lasts."""
    shares = [len(range(host, workers, HOSTS)) for host in range(HOSTS)]
    command = [sys.executable, "-m", "benchmarks.scale.worker_host", address]
    hosts = [subprocess.Popen([*command, str(n)], cwd=ROOT, stderr=subprocess.DEVNULL) for n in shares if n]
    try:
        yield
    finally:
        for host in hosts:
            host.terminate()
            host.wait()


def as_part(container, _common, _own):
    """A part of one array."""
    return (container,)


def sleep_a_little(_data, sums, _own):
    """A pass with simulated compute."""
    time.sleep(SLEEP)
    return sums


def _least_beside_idle(function: Callable, repeats: int) -> float:
    """Seconds of CPU of this process, without those that it takes in the same time without work: a scheduler monitors
    its workers and itself, which on a shared machine is a large part of a pass that takes long.
    """
    function()
    start, began = time.process_time(), time.perf_counter()
    time.sleep(IDLE_SECONDS)
    idle = (time.process_time() - start) / (time.perf_counter() - began)
    seconds = []
    for _ in range(repeats):
        start, began = time.process_time(), time.perf_counter()
        function()
        seconds.append(time.process_time() - start - idle * (time.perf_counter() - began))
    return min(seconds)


def _least(function: Callable, repeats: int) -> float:
    """Seconds of CPU of this process."""
    function()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)
