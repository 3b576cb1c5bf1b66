"""A label matrix in a Parquet file that is larger than the memory of its fit: time per iteration, peak memory, growth.

Twenty members of six labels each over eight planted clusters, three labels in ten at random, so that nearly all rows
are distinct and duplicates save no time: `MixtureConsensus` and `NBCE` by variational Bayes pass over the rows in
chunks. Every fit is a process of its own, with one start and five iterations; seconds are CPU seconds. The fit of the
same array in memory is measured at the smallest size, and both must have the same result.

The methods without passes over chunks are fitted to a sample of so many distinct rows, in memory as in chunks, and
label all rows chunk by chunk; of these the whole fit is measured. `EnsembleClustering` and `CrossCat` by variational
Bayes take the matrix as a table of categorical columns.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from benchmarks.processes import in_own_process, peak_mb, stopwatch

N_MEMBERS, N_LABELS, N_CLUSTERS, FLIPS = 20, 6, 8, 0.3
GROUP = 1 << 20  # rows of a row group
ITERATIONS = 5
MOST_MB = 2000.0
METHODS = ("MixtureConsensus", "NBCE")
LARGEST = 50_000_000  # rows, 1e9 labels; only the first method
# methods without passes over chunks, with the parameters of the benchmark
DOORS: dict[str, dict] = {
    "Consensus": {"n_clusters": N_CLUSTERS},
    "EvidenceAccumulation": {"n_clusters": N_CLUSTERS},
    "LWEA": {"n_clusters": N_CLUSTERS},
    "LACA": {"n_clusters": N_CLUSTERS},
    "Voting": {"n_clusters": N_CLUSTERS},
    "EnsembleClustering": {
        "n_clusters": N_CLUSTERS, "base": "minibatch_kmeans", "n_members": 8, "member_clusters": N_CLUSTERS,
        "kinds": "categorical",
    },
    "CrossCat": {"inference": "vb", "max_clusters": N_CLUSTERS + 2, "kinds": "categorical"},
}  # fmt: skip


def run(*, full: bool, repeats: int) -> dict:
    sizes = (2_000_000, 10_000_000, 50_000_000) if full else (100_000, 200_000)
    beside = sizes[:1]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in sizes:
            path = str(Path(folder) / f"labels{n_rows}.parquet")
            in_own_process(write, path=path, n_rows=n_rows)
            for method in METHODS if n_rows < LARGEST else METHODS[:1]:
                for in_memory in (False, True) if n_rows in beside else (False,):
                    one = in_own_process(fit, path=path, method=method, in_memory=in_memory)
                    runs.append({"n_rows": n_rows, "method": method, "in_memory": in_memory, **one})
                    where = "in memory" if in_memory else "in blocks"
                    print(
                        f"   {n_rows:,} rows, {method} {where}: {one['cpu_s_per_iteration']:.2f} s an iteration, "
                        f"{one['cpu_s']:.0f} s in all, peak {one['peak_mb']:.0f} MB",
                        flush=True,
                    )
        doors = _through_doors(folder, sizes[:1])
    exponents = {method: round(_exponent(runs, method), 3) for method in METHODS}
    bars = {
        f"peak memory below {MOST_MB:.0f} MB": max(o["peak_mb"] for o in runs if not o["in_memory"])
        < MOST_MB,
        "time of an iteration grows as the rows do (exponent 0.9 to 1.1)": all(
            0.9 <= value <= 1.1 for value in exponents.values()
        ),
        "blocks and memory find the same": _alike(runs) and _doors_alike(doors),
        f"peak memory of every front door below {MOST_MB:.0f} MB": max(
            one["peak_mb"] for one in doors if not one["in_memory"]
        )
        < MOST_MB,
    }
    size = {"n_members": N_MEMBERS, "n_labels": N_LABELS, "n_clusters": N_CLUSTERS, "iterations": ITERATIONS}
    peak = max(one["peak_mb"] for one in runs if not one["in_memory"])
    summary = {"exponents": exponents, "peak_mb": peak, "doors": {}}
    for one in doors:
        summary["doors"].setdefault(one["method"], []).append(one)
    return {"size": size, "runs": runs, "summary": summary, "bars": bars if full else {}}


def _through_doors(folder: str, sizes: tuple[int, ...]) -> list[dict]:
    """Whole fits of the methods without passes over chunks; those of the smallest size in memory too."""
    doors = []
    for n_rows in sizes:
        path = str(Path(folder) / f"labels{n_rows}.parquet")
        if not Path(path).exists():
            in_own_process(write, path=path, n_rows=n_rows)
        for method in DOORS:
            for in_memory in (False, True) if n_rows == sizes[0] else (False,):
                one = in_own_process(fit, path=path, method=method, in_memory=in_memory)
                doors.append({"n_rows": n_rows, "method": method, "in_memory": in_memory, **one})
                print(
                    f"   {n_rows:,} rows, {method} {'in memory' if in_memory else 'in blocks'}: {one['cpu_s']:.0f} s, "
                    f"peak {one['peak_mb']:.0f} MB",
                    flush=True,
                )
    return doors


def _doors_alike(doors: list[dict]) -> bool:
    labels: dict[tuple, set] = {}
    for one in doors:
        labels.setdefault((one["n_rows"], one["method"]), set()).add(one["labels"])
    return all(len(found) == 1 for found in labels.values())


def _exponent(runs: list[dict], method: str) -> float:
    """Slope of log time against log rows."""
    points = [
        (math.log(o["n_rows"]), math.log(o["cpu_s_per_iteration"]))
        for o in runs
        if o["method"] == method and not o["in_memory"]
    ]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def _alike(runs: list[dict]) -> bool:
    found: dict[tuple, list[dict]] = {}
    for one in runs:
        found.setdefault((one["n_rows"], one["method"]), []).append(one)
    return all(
        pair[0]["labels"] == pair[1]["labels"] and abs(pair[0]["objective"] - pair[1]["objective"]) < 1e-6
        for pair in found.values()
        if len(pair) == 2
    )


# ---- in a process of its own -----------------------------------------------------------------------------------


def write(path: str, n_rows: int) -> dict:
    """Write the matrix, a row group at a time."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    meanings = rng.integers(N_LABELS, size=(N_CLUSTERS, N_MEMBERS)).astype(np.int8)
    schema = pa.schema([(f"member{m}", pa.int8()) for m in range(N_MEMBERS)])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, GROUP):
            n = min(GROUP, n_rows - start)
            Y = meanings[rng.integers(N_CLUSTERS, size=n)]
            flipped = rng.random(Y.shape, dtype=np.float32) < FLIPS
            Y = np.where(flipped, rng.integers(N_LABELS, size=Y.shape, dtype=np.int8), Y)
            writer.write_table(pa.table(list(np.ascontiguousarray(Y.T)), schema=schema))
    return {}


def fit(path: str, method: str, in_memory: bool) -> dict:
    """A few iterations of one start."""
    import hashlib
    import time
    import warnings
    from itertools import pairwise

    import numpy as np

    import partita
    from partita import consensus
    from partita.execution import open_chunks

    stamps: list[float] = []
    options = {"random_state": 0, **DOORS.get(method, {})}
    if method in METHODS:
        options |= {"n_clusters": N_CLUSTERS, "n_init": 1, "max_iter": ITERATIONS, "tol": 0.0}
        options["callback"] = lambda _: stamps.append(time.process_time())
    options |= {"inference": "vb"} if method == "NBCE" else {}
    model = (getattr(partita, method, None) or getattr(consensus, method))(**options)
    warnings.simplefilter("ignore")
    source = open_chunks(path)
    given = source.rows(0, source.n_rows) if in_memory else source
    before = peak_mb()
    with stopwatch() as watch:
        model.fit(given)
    gaps = [b - a for a, b in pairwise(stamps)]
    labels = model.view_labels_ if method == "CrossCat" else model.labels_
    found = {
        "cpu_s": round(watch["cpu_s"], 2),
        "wall_s": round(watch["wall_s"], 2),
        "before_mb": round(before, 1),
        "n_clusters": int(labels.max()) + 1,
        "labels": hashlib.blake2b(np.ascontiguousarray(labels).tobytes(), digest_size=8).hexdigest(),
    }
    if method in METHODS:
        found["cpu_s_per_iteration"] = round(sorted(gaps)[len(gaps) // 2], 4)
        found["objective"] = float(model.objective_trace_[-1]) / len(model.labels_)
    return found
