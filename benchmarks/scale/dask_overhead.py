"""How much time Dask adds to an iteration as a function of the number of workers, and how far a fit can scale.

A pass of EM over a label matrix (20 members of six labels, 8 clusters) on a cluster of two processes of this machine is
compared with the same pass in one process. Then 2 to 64 workers, each a process of its own, run passes with simulated
compute: four shards per worker, which sleep for a moment and return statistics of the size of those of EM. Two ways are
measured: calls from worker to worker in a tree, as passes are run, and tasks of the scheduler (one per worker, and a
node for every 16 results), which take their place after a call has failed. Of each way there are the CPU time of the
process that holds both the scheduler and the driver, and that of a worker.

The model for more workers: with calls, the driver's time hardly depends on the number of workers, and a worker waits
for the calls to at most four others on each level of the tree, one after the other. With tasks, everything passes
through the scheduler, whose time is a straight line in their number.

    seconds = rows / workers x seconds per row + driver + levels x 4 x (seconds per call + bytes per call / bandwidth)

Seconds are CPU seconds: of whole passes in one process the smallest of the repetitions, because the machine is shared;
of Dask the mean over several passes in a row, the median of the repetitions. Processes of Dask use the processor
without a task too, to report to each other. What they use in as long a time without a pass is measured in the same way
and subtracted. The simulated workers do not watch themselves (profiler, ticks, system monitor), because up to 64 of
them share the cores of this machine.
"""

from __future__ import annotations

import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager

from benchmarks.processes import ROOT, in_own_process

N_MEMBERS, N_LABELS, N_CLUSTERS = 20, 6, 8
MEASURED, FEW_MEASURED = (2, 8, 32, 64), (2, 8)  # workers
WORKERS = (10, 100, 1000)
PARTS_EACH, SLEEP = 4, 0.005  # shards per worker, and simulated seconds of each
IN_A_ROW = 8  # passes that are measured together
LEAST_BUSY = 0.8  # share of the time of 1,000 workers over 1e10 rows
BANDWIDTH = 1e9  # bytes a second of a connection: a common network, not measured here
FAN_IN, BRANCHES = 16, 4  # as in partita.execution, which the parent process does not import
MODEL_ROWS = (10**8, 10**9, 10**10)
WAYS = ("calls", "tasks")


def run(*, full: bool, repeats: int) -> dict:
    n_rows = 1_000_000 if full else 100_000
    repeats = max(repeats, 3 if full else 2)
    found = in_own_process(measure, n_rows=n_rows, repeats=repeats)
    found["passes"] = []
    for workers in MEASURED if full else FEW_MEASURED:
        one = in_own_process(simulate, workers=workers, repeats=repeats, bytes_back=found["bytes_back"])
        found["passes"].append({"workers": workers, "tasks": _n_tasks(workers), **one})
        print(
            f"   {workers} workers: {1e3 * one['calls_driver_s']:.1f} ms of CPU of driver and scheduler an iteration "
            f"by calls ({1e3 * one['tasks_driver_s']:.1f} by tasks), {1e3 * one['calls_worker_s']:.1f} of a worker",
            flush=True,
        )
    overhead = fitted(found["passes"])
    model = [predicted(n, w, found, overhead, way) for n in MODEL_ROWS for w in WORKERS for way in WAYS]
    print(
        f"   a pass over {n_rows:,} rows: {found['serial_s']:.3f} s in one process; on Dask its driver and scheduler "
        f"take {found['driver_s']:.3f} s; {1e3 * overhead['seconds_a_call']:.1f} ms a call and "
        f"{1e3 * overhead['seconds_a_task']:.2f} ms a task",
        flush=True,
    )
    for one in model:
        print(
            f"   {one['n_rows']:.0e} rows, {one['workers']} workers by {one['way']}: {one['seconds']:.2f} s an "
            f"iteration, efficiency {one['efficiency']:.0%}",
            flush=True,
        )
    size = {"n_rows": n_rows, "n_members": N_MEMBERS, "n_labels": N_LABELS, "n_clusters": N_CLUSTERS}
    busy = min(
        o["efficiency"]
        for o in model
        if (o["n_rows"], o["workers"]) == (10**10, 1000) and o["way"] == "calls"
    )
    bars = {f"1,000 workers busy to {LEAST_BUSY:.0%} with 1e10 rows": busy >= LEAST_BUSY}
    return {
        "size": size,
        **found,
        "summary": {"overhead": overhead, "busy": busy, "model": model},
        "bars": bars if full else {},
    }


def fitted(passes: list[dict]) -> dict[str, float]:
    """Both ways: the line of the CPU time of driver and scheduler, and the time of a call at a worker."""
    slope, intercept = _line([(o["tasks"], o["tasks_driver_s"]) for o in passes])
    growth, driver = _line([(o["workers"], o["calls_driver_s"]) for o in passes])
    return {
        "seconds_a_task": slope,
        "seconds_a_pass": intercept,
        "driver_s": driver,
        "driver_s_a_worker": max(growth, 0.0),
        "seconds_a_call": max(o["calls_worker_s"] for o in passes),
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


def _n_levels(workers: int) -> int:
    """Levels of calls below the first worker."""
    levels, reached, width = 0, 1, BRANCHES
    while reached < workers:
        levels, reached, width = levels + 1, reached + width, width * BRANCHES
    return levels


def overhead_seconds(workers: int, found: dict, overhead: dict, way: str = "calls") -> float:
    """Seconds of an iteration in which the workers do not compute."""
    moved = found["bytes_out"] + found["bytes_back"]
    if way == "tasks":
        at_driver = found["bytes_out"] + min(workers, FAN_IN) * found["bytes_back"]
        tasks = _n_tasks(workers) * overhead["seconds_a_task"]
        return overhead["seconds_a_pass"] + tasks + at_driver / BANDWIDTH
    calls = 1 + _n_levels(workers) * min(BRANCHES, workers)
    driver = overhead["driver_s"] + workers * overhead["driver_s_a_worker"]
    return driver + calls * (overhead["seconds_a_call"] + moved / BANDWIDTH)


def predicted(n_rows: int, workers: int, found: dict, overhead: dict, way: str) -> dict:
    """An iteration by the model."""
    work = n_rows / workers * found["seconds_a_row"]
    seconds = work + overhead_seconds(workers, found, overhead, way)
    return {
        "n_rows": n_rows,
        "workers": workers,
        "way": way,
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
    import logging

    import numpy as np
    from distributed import Client, LocalCluster

    from partita.execution import Cluster, cluster, worker_tree
    from partita.execution.shards import FAN_IN as fan_in

    assert (fan_in, worker_tree.BRANCHES) == (FAN_IN, BRANCHES)
    logging.getLogger("distributed").setLevel(logging.ERROR)
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
        found = {}
        for way in WAYS:
            parts = cluster.ClusterShards(np.arange(len(futures) + 1), futures, Cluster(client))
            if way == "tasks":
                parts._n_failed = cluster.MAX_FAILED
            found |= {f"{way}_{name}": value for name, value in _passes(client, parts, sums, repeats).items()}
            assert len(parts._grouped()) == workers
            assert parts._n_failed == (cluster.MAX_FAILED if way == "tasks" else 0)
    return found


def _passes(client, parts, sums, repeats: int) -> dict[str, float]:
    """Of one pass: CPU seconds of this process and of a worker, and wall seconds beyond the simulated compute.

    What the processes use in as long a time without a pass is subtracted from CPU seconds, and with it the question
    for the CPU time.
    """
    from partita.engines.passes.exact_sums import merge_sums

    def used(work: Callable[[], None]) -> tuple[float, float, float]:
        before = client.run(time.process_time).values()
        here, wall = time.process_time(), time.perf_counter()
        work()
        here, wall = time.process_time() - here, time.perf_counter() - wall
        after = client.run(time.process_time).values()
        return here, (sum(after) - sum(before)) / len(after), wall

    def passes() -> None:
        for _ in range(IN_A_ROW):
            parts.reduce(sleep_a_little, sums, None, merge_sums, in_any_order=True)

    passes()
    found = []
    for _ in range(repeats):
        here, below, wall = used(passes)
        here_idle, below_idle, _ = used(lambda wall=wall: time.sleep(wall))
        found.append((here - here_idle, below - below_idle, wall, here_idle, below_idle))
    names = ("driver_s", "worker_s", "wall_s", "driver_idle_s", "worker_idle_s")
    medians = (statistics.median(values) / IN_A_ROW for values in zip(*found, strict=True))
    result = dict(zip(names, medians, strict=True))
    result["wall_s"] -= PARTS_EACH * SLEEP
    return result


@contextmanager
def _hosted(address: str, workers: int):
    """Workers in processes of their own, as long as the context lasts."""
    command = [sys.executable, "-m", "benchmarks.scale.worker_host", address, str(workers)]
    host = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        host.terminate()
        host.wait()


def as_part(container, _common, _own):
    """A part of one array."""
    return (container,)


def sleep_a_little(_data, sums, _own):
    """A pass with simulated compute."""
    time.sleep(SLEEP)
    return sums


def _least(function: Callable, repeats: int) -> float:
    """Seconds of CPU of this process."""
    function()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)
