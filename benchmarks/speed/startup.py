"""Time before the first result: import, first fit of a process, first compilation on a machine.

Imports are timed from outside, and the time of a bare interpreter is subtracted. "First fit" is a fit on a small table
in a fresh process that finds the compiled code on disk; "first compile" is the same with an empty cache. The targets
are in CPU time, which changes little on a busy machine; wall time is recorded too.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

from benchmarks.processes import ROOT, THREADS, in_own_process, stopwatch
from benchmarks.record import spread

IMPORTS = {
    "partita": "import partita",
    "partita_mixture": "from partita import Mixture",
    "sklearn": "import sklearn",
    "sklearn_mixture": "from sklearn.mixture import GaussianMixture",
}
ENGINES = ("vb", "gibbs")
MODELS = ("categorical", "gaussian", "gaussian_full", "mixed")
SMALL_MODELS = ("categorical",)
MOST_FIRST_FIT_S, MOST_COMPILE_S = 1.0, 15.0


def run(*, full: bool, repeats: int) -> dict:
    imports = _imports(repeats if not full else max(repeats, 5))
    for name, seconds in imports.items():
        print(
            f"   {IMPORTS[name]:45} {seconds['wall_s']['median']:.3f} s (CPU {seconds['cpu_s']['median']:.3f} s)"
        )
    compiles: dict[str, dict] = {engine: {} for engine in ENGINES}
    fits: dict[str, dict] = {engine: {} for engine in ENGINES}
    for engine in ENGINES:
        for model in MODELS if full else SMALL_MODELS:
            compiles[engine][model], fits[engine][model] = _cold_and_warm(engine, model, repeats, full)
    worst_compile, worst_fit = _worst(compiles), _worst(fits)
    return {
        "repeats": repeats,
        "summary": {
            "import": imports,
            "first_compile": compiles,
            "first_fit": fits,
            "worst_first_compile_cpu_s": worst_compile,
            "worst_first_fit_cpu_s": worst_fit,
        },
        "bars": {
            **{
                f"{engine}: first compile of every model within {MOST_COMPILE_S:.0f} s of CPU": seconds
                < MOST_COMPILE_S
                for engine, seconds in worst_compile.items()
            },
            **{
                f"{engine}: first fit of a process within {MOST_FIRST_FIT_S:.0f} s of CPU": seconds
                < MOST_FIRST_FIT_S
                for engine, seconds in worst_fit.items()
            },
        },
    }


def _cold_and_warm(engine: str, model: str, repeats: int, full: bool) -> tuple[dict, dict]:
    cold, warm = [], []
    for _ in range(repeats if full else 1):
        with tempfile.TemporaryDirectory() as cache:
            env = {"NUMBA_CACHE_DIR": cache}
            cold.append(in_own_process(first_fit, env, engine=engine, model=model))
            warm += [in_own_process(first_fit, env, engine=engine, model=model) for _ in range(repeats)]
    compiles = {key: spread([one[key] for one in cold]) for key in ("wall_s", "cpu_s")}
    fits = {key: spread([one[key] for one in warm]) for key in ("wall_s", "cpu_s")}
    print(
        f"   {engine:5} {model:14} first compile {compiles['wall_s']['median']:5.1f} s "
        f"(CPU {compiles['cpu_s']['median']:5.1f} s), then first fit of a process "
        f"{fits['wall_s']['median']:.2f} s (CPU {fits['cpu_s']['median']:.2f} s)",
        flush=True,
    )
    return compiles, fits


def _worst(seconds: dict[str, dict]) -> dict[str, float]:
    return {
        engine: max(one["cpu_s"]["median"] for one in models.values()) for engine, models in seconds.items()
    }


def _imports(repeats: int) -> dict[str, dict[str, dict[str, float]]]:
    bare = [seconds_of("pass") for _ in range(repeats)]
    out = {}
    for name, statement in IMPORTS.items():
        seconds_of(statement)  # files into the disk cache
        found = [seconds_of(statement) for _ in range(repeats)]
        out[name] = {
            key: spread([one[key] - statistics.median(b[key] for b in bare) for one in found], 3)
            for key in ("wall_s", "cpu_s")
        }
    return out


def seconds_of(statement: str) -> dict[str, float]:
    """Wall and CPU seconds of an interpreter that executes one statement."""
    env = {**os.environ, **dict.fromkeys(THREADS, "1")}
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], cwd=ROOT, env=env, check=True)
    wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall_s": wall, "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


# ---- in a process of its own -----------------------------------------------------------------------------------


def first_fit(engine: str, model: str) -> dict:
    """Make a small table and time the first fit on it."""
    import numpy as np

    from partita import Mixture
    from partita.datasets import load_visitors

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=300)
    kinds = None
    if model == "mixed":
        X = load_visitors(as_frame="pandas").frame[:200]
        kinds = {"rooms_visited": "count", "photos_taken": "count"}
    elif model == "categorical":
        X = np.where(rng.random((300, 5)) < 0.8, z[:, None], rng.integers(3, size=(300, 5)))
    else:
        X = rng.normal(size=(300, 4)) + 6 * z[:, None]
    family = "auto" if model == "mixed" else model
    short = {"max_clusters": 8, "n_init": 1, "max_iter": 50, "n_chains": 1, "n_draws": 2, "burn_in": 2}
    estimator = Mixture(family, inference=engine, kinds=kinds, **short, random_state=0)
    with stopwatch() as seconds:
        estimator.fit(X)
    seconds["cpu_s"] += resource.getrusage(
        resource.RUSAGE_CHILDREN
    ).ru_utime  # should a compiler be a process
    return seconds
