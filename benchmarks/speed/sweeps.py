"""The collapsed Gibbs sweep over categorical columns, beside a sweep that recomputes its logarithms and one in C.

All three start from the planted labels, do the same sweeps with the same uniform numbers, and take turns, in one
process on one core. An update is one object scored in one cluster on one column. The C loop (``sweep.c``) has
partita's layout and does the same work; without a compiler it is left out.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread
from partita.dispatch import kernel

N_COLUMNS, N_LEVELS, ALPHA, CONCENTRATION = 20, 10, 0.5, 1.0
CLUSTERS = (12, 50)
LEAST_OVER_LOGS, LEAST_OF_C = 6.0, 0.7
COMPILERS = ("cc", "gcc", "clang")


def run(*, full: bool, repeats: int) -> dict:
    summary = {}
    for n_clusters in CLUSTERS:
        # many turns, because the machine may be busy: what counts is the median
        found = in_own_process(
            take_turns,
            n_rows=100_000 if full else 20_000,
            n_clusters=n_clusters,
            n_turns=5 * repeats if full else max(repeats, 5),
        )
        summary[f"clusters_{n_clusters}"] = found
        print(f"   {_in_words(n_clusters, found)}", flush=True)
    bars = {}
    for name, found in summary.items():
        bars[f"{name}: at least {LEAST_OVER_LOGS:g} times a sweep that recomputes logs"] = (
            found["ratio_to_logs"]["median"] >= LEAST_OVER_LOGS
        )
        if "ratio_to_c" in found:
            bars[f"{name}: at least {LEAST_OF_C:g} of a C loop"] = found["ratio_to_c"]["median"] >= LEAST_OF_C
    return {"repeats": repeats, "summary": summary, "bars": bars if full else {}}


def _in_words(n_clusters: int, found: dict) -> str:
    rates = ", ".join(f"{name} {rate['median'] / 1e9:.2f}e9" for name, rate in found["updates_per_s"].items())
    words = (
        f"{n_clusters} clusters: {rates} updates a second; {found['ratio_to_logs']['median']:.1f} times logs"
    )
    if "ratio_to_c" in found:
        words += f", {found['ratio_to_c']['median']:.2f} of C"
    return words


# ---- in a process of its own -----------------------------------------------------------------------------------


def take_turns(n_rows: int, n_clusters: int, n_turns: int) -> dict:
    """Sweep after sweep, each by every program in turn."""
    rng = np.random.default_rng(0)
    X, z = planted(n_rows, n_clusters, rng)
    programs = {"partita": Partita(X, z), "logs": Logs(X, z)}
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(Path(folder))
        if library is not None:
            programs["c"] = InC(library, X, z)
        seconds: dict[str, list[float]] = {name: [] for name in programs}
        n_occupied = []
        for turn in range(n_turns + 1):
            u = rng.random(n_rows)
            for name, program in programs.items():
                with stopwatch() as watch:
                    program.sweep(u)
                if turn > 0:  # the first compiles, and settles what the planted labels left to settle
                    seconds[name].append(watch["cpu_s"])
            n_occupied.append(programs["partita"].n_clusters)
        agreement = {
            name: float(np.mean(program.labels == programs["partita"].labels))
            for name, program in programs.items()
        }
    work = n_rows * N_COLUMNS * statistics.median(n_occupied)
    result = {
        "n_rows": n_rows,
        "n_clusters_in_use": statistics.median(n_occupied),
        "updates_per_s": {name: spread([work / s for s in found], 0) for name, found in seconds.items()},
        "same_labels_as_partita": agreement,
    }
    for name in ("logs", "c"):
        if name in seconds:
            ratios = [other / ours for other, ours in zip(seconds[name], seconds["partita"], strict=True)]
            result[f"ratio_to_{name}"] = spread(ratios, 3)
    return result


def planted(n_rows: int, n_clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Codes of one byte with cell probabilities Dirichlet(0.5), and the labels."""
    z = rng.integers(n_clusters, size=n_rows)
    X = np.empty((n_rows, N_COLUMNS), np.int8)
    for d in range(N_COLUMNS):
        upper = np.cumsum(rng.dirichlet(np.full(N_LEVELS, 0.5), n_clusters), axis=1)
        X[:, d] = (rng.random((n_rows, 1)) > upper[z, :-1]).sum(axis=1)
    return X, z


class Partita:
    """The engine's own sweep, float32 cache."""

    def __init__(self, X, z):
        from partita.engines.gibbs import sweep as gibbs
        from partita.families import Block, Categorical
        from partita.partitions import DirichletProcess

        family = Categorical.default([N_LEVELS] * N_COLUMNS, alpha=ALPHA)
        self.engine, self.prior, self.rows = gibbs, DirichletProcess(CONCENTRATION), np.arange(len(X))
        self.seating = gibbs.seat([Block(family, X, tuple(range(N_COLUMNS)))], z, dtype=np.float32)

    def sweep(self, u):
        self.seating = self.engine.reseat(self.seating, self.prior, self.rows, u)

    @property
    def labels(self):
        return self.seating.z

    @property
    def n_clusters(self):
        return int(self.seating.K[0])


class Logs:
    """Counts only, in partita's layout; every log is taken when it is needed."""

    def __init__(self, X, z):
        self.X, self.labels, self.K = X, z.copy(), np.array([z.max() + 1])
        capacity = 2 * len(np.bincount(z)) + 16
        self.n = np.bincount(z, minlength=capacity).astype(float)
        self.S = np.zeros((N_COLUMNS, N_LEVELS, capacity))
        for d in range(N_COLUMNS):
            np.add.at(self.S[d], (X[:, d], z), 1.0)

    def sweep(self, u):
        sweep_with_logs(self.X, self.labels, self.n, self.S, self.K, ALPHA, CONCENTRATION, u)


@kernel
def sweep_with_logs(X, z, n, S, K, alpha, concentration, u):
    """As partita's sweep, each cell of each cluster scored by a log of its counts; a dying cluster relabels."""
    M, J, capacity = S.shape
    lp = np.empty(capacity)
    for i in range(X.shape[0]):
        k = z[i]
        n[k] -= 1.0
        for d in range(M):
            S[d, X[i, d], k] -= 1.0
        if n[k] == 0.0:
            last = K[0] - 1
            n[k], n[last] = n[last], 0.0
            S[:, :, k] = S[:, :, last]
            S[:, :, last] = 0.0
            for j in range(z.shape[0]):
                if z[j] == last:
                    z[j] = k
            K[0] = last
        for h in range(K[0] + 1):
            lp[h] = math.log(n[h] if h < K[0] else concentration)
        for d in range(M):
            level = S[d, X[i, d]]
            for h in range(K[0] + 1):
                lp[h] += math.log((level[h] + alpha) / (n[h] + J * alpha))
        top = lp[: K[0] + 1].max()
        total = 0.0
        for h in range(K[0] + 1):
            lp[h] = math.exp(lp[h] - top)
            total += lp[h]
        left, k = u[i] * total, 0
        while k < K[0] and left >= lp[k]:
            left -= lp[k]
            k += 1
        K[0] += k == K[0]
        z[i] = k
        n[k] += 1.0
        for d in range(M):
            S[d, X[i, d], k] += 1.0


class Table(ctypes.Structure):
    """``table`` of sweep.c."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("n_columns", "n_levels", "capacity", "K")),
        *((name, ctypes.c_double) for name in ("alpha", "concentration")),
        *((name, ctypes.c_void_p) for name in ("X", "S", "C", "z", "slot_of", "name_of", "n", "mass")),
    ]


def compile_c(folder: Path) -> ctypes.CDLL | None:
    """``sweep.c`` as a library, where there is a compiler."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        return None
    target = folder / "sweep.so"
    source = Path(__file__).with_name("sweep.c")
    subprocess.run(
        [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(target), "-lm"],
        check=True,
    )
    library = ctypes.CDLL(str(target))
    library.sweep.restype = ctypes.c_int64
    return library


class InC:
    """The loop of sweep.c."""

    def __init__(self, library: ctypes.CDLL, X, z):
        started = Partita(X, z).seating  # statistics and cache of the start; the arrays are copied
        live = started.blocks[0]
        K, capacity = int(started.K[0]), (int(started.K[0]) + 32) // 8 * 8
        self.library, self.n_rows = library, len(X)

        def wide(array, fill=0):
            pad = [(0, 0)] * (array.ndim - 1) + [(0, capacity - array.shape[-1])]
            return np.ascontiguousarray(np.pad(array, pad, constant_values=fill))

        self.arrays = {
            "X": X,
            "S": wide(live.S),
            "C": wide(live.C),
            "z": started.z.copy(),
            "slot_of": wide(started.slot_of, -1),
            "name_of": wide(started.name_of, -1),
            "n": wide(started.n),
            "mass": np.zeros(capacity),
        }
        pointers = (array.ctypes.data for array in self.arrays.values())
        self.table = Table(N_COLUMNS, N_LEVELS, capacity, K, ALPHA, CONCENTRATION, *pointers)
        self.lp = np.empty(capacity, np.float32)

    def sweep(self, u):
        moved = self.library.sweep(
            ctypes.byref(self.table),
            ctypes.c_int64(self.n_rows),
            ctypes.c_void_p(u.ctypes.data),
            ctypes.c_void_p(self.lp.ctypes.data),
        )
        if moved < 0:
            raise RuntimeError("the C loop ran out of clusters: give it more capacity")

    @property
    def labels(self):
        return self.arrays["z"]
