"""Operations that must stay quick, each beside a yardstick of the same process: ratios that survive another machine.

A yardstick is the least that has to be done (a pass of numpy over the same array, a bare interpreter), or the same
operation on a fourth of the data, times four: a ratio far below 1 there means that the time grows faster than the data.
Ours and the yardstick take turns, and the smallest time of each counts.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.processes import in_own_process
from benchmarks.speed.startup import seconds_of

GROWTH = 4  # the large case has so many times the objects of the small one


def run(*, full: bool, repeats: int) -> dict:
    n_turns = max(repeats, 3)
    summary = {"import": imports("import partita", "pass", n_turns)}
    summary["import_mixture"] = imports("from partita import Mixture", "import sklearn.base", n_turns)
    for operation in (reading, purity, particle_filter, beam, large_report):
        summary[operation.__name__] = in_own_process(operation, n_turns=n_turns)
    for name, found in summary.items():
        seconds = f"{found['ours_s']:.3g} s beside {found['yardstick_s']:.3g} s"
        print(f"   {name:16} {seconds}: {found['ratio']:.2f}", flush=True)
    return {"repeats": n_turns, "summary": summary, "bars": {}}


def imports(ours: str, yardstick: str, n_turns: int) -> dict:
    """CPU seconds of a whole interpreter that executes a statement, compared with those of another statement."""
    return compared(
        lambda: seconds_of(ours)["cpu_s"], lambda: seconds_of(yardstick)["cpu_s"], n_turns, timed=True
    )


def compared(
    ours: Callable, yardstick: Callable, n_turns: int, *, times: int = 1, timed: bool = False
) -> dict:
    """Smallest CPU times of both, and ``times`` the yardstick's over ours: higher is better."""

    def seconds(function: Callable) -> float:
        start = time.process_time()
        found = function()
        return found if timed else time.process_time() - start

    best = {"ours": math.inf, "yardstick": math.inf}
    for _ in range(n_turns + 1):  # the first turn compiles and fills caches; the smallest time drops it
        best["ours"] = min(best["ours"], seconds(ours))
        best["yardstick"] = min(best["yardstick"], seconds(yardstick))
    ratio = times * best["yardstick"] / best["ours"]
    return {
        "ours_s": round(best["ours"], 4),
        "yardstick_s": round(best["yardstick"], 4),
        "ratio": round(ratio, 3),
    }


# ---- each in a process of its own ------------------------------------------------------------------------------


def reading(n_turns: int) -> dict:
    """A million rows of codes, compared with finding the range of each column and copying the codes to bytes."""
    from partita.table import read_table

    X = np.random.default_rng(0).integers(0, 8, (1_000_000, 20), dtype=np.int8).astype(np.int64)
    return compared(lambda: read_table(X), lambda: (X.min(axis=0), X.max(axis=0), X.astype(np.int8)), n_turns)


def purity(n_turns: int) -> dict:
    """Dendrogram purity of a chain of merges with many classes, compared with a fourth of it."""
    from partita.metrics import dendrogram_purity

    def case(n: int) -> Callable:
        chain = np.column_stack(
            [np.r_[0, n : 2 * n - 2], np.arange(1, n), np.arange(1, n), np.arange(2, n + 1)]
        )
        labels = np.random.default_rng(0).integers(0, n // 4, n)
        return lambda: dendrogram_purity(chain, labels)

    return compared(case(40_000), case(40_000 // GROWTH), n_turns, times=GROWTH)


def particle_filter(n_turns: int) -> dict:
    """A thousand objects and 50 particles, compared with 250 objects."""
    from partita.engines.sequential import particles
    from partita.partitions import DirichletProcess

    def case(n: int) -> Callable:
        block = blobs(n)
        return lambda: particles.update(
            particles.init([block.family], DirichletProcess(0.8), 50), [block], None
        )

    return compared(case(1000), case(1000 // GROWTH), n_turns, times=GROWTH)


def beam(n_turns: int) -> dict:
    """Beam search for 400 objects, compared with 100."""
    from partita.engines.sequential.beam import beam_search
    from partita.partitions import DirichletProcess

    def case(n: int) -> Callable:
        return lambda: beam_search([blobs(n)], DirichletProcess(0.8), width=20)

    return compared(case(400), case(400 // GROWTH), n_turns, times=GROWTH)


def blobs(n: int):
    """Three Gaussian clusters in five columns."""
    from partita.families import Block, GaussianDiagonal

    rng = np.random.default_rng(0)
    X = rng.normal(0, 3.0, (3, 5))[rng.integers(3, size=n)] + rng.normal(size=(n, 5))
    return Block(GaussianDiagonal.default(5), (X - X.mean(axis=0)) / X.std(axis=0), tuple(range(5)))


class Labels:
    """A model of many objects: labels and confidences, and nothing that was fitted."""

    def __init__(self, n: int, n_clusters: int = 500):
        rng = np.random.default_rng(0)
        self.labels_ = np.minimum((n_clusters * rng.random(n) ** 2).astype(int), n_clusters - 1)
        self.confidence_, self.n_clusters_, self.n_features_in_ = rng.random(n), n_clusters, 3

    def coclustering(self, i, j):
        """Probability that the objects i and j share a cluster."""
        return np.where(self.labels_[i] == self.labels_[j], 0.9, 0.05)


def large_report(n_turns: int) -> dict:
    """The report of a million objects, compared with that of a fourth of them."""
    from partita.report import write_report

    def case(n: int) -> Callable:
        model = Labels(n)

        def write() -> None:
            with tempfile.TemporaryDirectory() as folder:
                write_report(model, Path(folder) / "report.html")

        return write

    return compared(case(1_000_000), case(1_000_000 // GROWTH), n_turns, times=GROWTH)
