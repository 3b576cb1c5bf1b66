"""Time before the first result: import, short commands, first fit of a process, first compilation on a machine.

"First answers" are the default fit of a table with four kinds of columns on a machine that has compiled nothing, of the
same table again, and of a second table with another mix of kinds; then all of `partita warm`. "From the wheel" is the
same first fit from the wheel with compiled kernels (only where the extra `wheel` is installed).

Imports are timed from outside, and the time of a bare interpreter is subtracted. "First fit" is a fit on a small table
in a fresh process that finds the compiled code on disk; "first compile" is the same with an empty cache. Commands that
only read or refuse are timed as whole processes, beside a bare interpreter and `import numpy`. The targets
are in CPU time, which changes little on a busy machine; wall time is recorded too.
"""

from __future__ import annotations

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec

from benchmarks.processes import ROOT, THREADS, in_own_process, stopwatch
from benchmarks.record import spread

IMPORTS = {
    "partita": "import partita",
    "partita_mixture": "from partita import Mixture",
    "sklearn": "import sklearn",
    "sklearn_mixture": "from sklearn.mixture import GaussianMixture",
}
COMMANDS = {  # labels.csv and others.csv hold 500 labels each
    "version": "--version",
    "help": "--help",
    "help_of_a_command": "cluster --help",
    "compare": "compare labels.csv others.csv",
    "absent_file": "cluster absent.csv",
    "broken_file": "cluster broken.csv",
    "wrong_option": "cluster labels.csv --no-such-option",
}
ENGINES = ("vb", "gibbs")
MODELS = ("categorical", "gaussian", "gaussian_full", "mixed")
SMALL_MODELS = ("categorical",)
MOST_FIRST_FIT_S, MOST_COMPILE_S, MOST_COMMAND_S = 0.9, 15.0, 0.7
MOST_SECOND_MIX_S, MOST_WARM_S = 1.5, 60.0


def run(*, full: bool, repeats: int) -> dict:
    imports = _imports(repeats if not full else max(repeats, 5))
    for name, seconds in imports.items():
        print(
            f"   {IMPORTS[name]:45} {seconds['wall_s']['median']:.3f} s (CPU {seconds['cpu_s']['median']:.3f} s)"
        )
    commands = _commands(repeats if not full else max(repeats, 5))
    for name, seconds in commands.items():
        print(f"   {COMMANDS.get(name, name):45} CPU {seconds['cpu_s']['median']:.3f} s")
    worst_command = max(commands[name]["cpu_s"]["median"] for name in COMMANDS)
    compiles: dict[str, dict] = {engine: {} for engine in ENGINES}
    fits: dict[str, dict] = {engine: {} for engine in ENGINES}
    for engine in ENGINES:
        for model in MODELS if full else SMALL_MODELS:
            compiles[engine][model], fits[engine][model] = _cold_and_warm(engine, model, repeats, full)
    worst_compile, worst_fit = _worst(compiles), _worst(fits)
    first, first_bars = _first_answers() if full else ({}, {})
    return {
        "repeats": repeats,
        "summary": {
            "import": imports,
            "command": commands,
            "worst_command_cpu_s": worst_command,
            "first_compile": compiles,
            "first_fit": fits,
            "worst_first_compile_cpu_s": worst_compile,
            "worst_first_fit_cpu_s": worst_fit,
            **first,
        },
        "bars": {
            **first_bars,
            f"commands that read or refuse within {MOST_COMMAND_S} s of CPU": worst_command < MOST_COMMAND_S,
            **{
                f"{engine}: first compile of every model within {MOST_COMPILE_S:.0f} s of CPU": seconds
                < MOST_COMPILE_S
                for engine, seconds in worst_compile.items()
            },
            **{
                f"{engine}: first fit of a process within {MOST_FIRST_FIT_S} s of CPU": seconds
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


def _first_answers() -> tuple[dict, dict]:
    """CPU seconds of the first fits on a machine that has compiled nothing, of `partita warm`, and of the wheel."""
    with tempfile.TemporaryDirectory() as cache:
        first = in_own_process(default_fits, {"NUMBA_CACHE_DIR": cache})
    with tempfile.TemporaryDirectory() as cache:
        warm = in_own_process(warm_all, {"NUMBA_CACHE_DIR": cache})
    found = {"first_answers": first, "warm": warm}
    if find_spec("build") is not None:
        with tempfile.TemporaryDirectory() as folder:
            found["from_the_wheel"] = _from_the_wheel(pathlib.Path(folder))
    for name, seconds in found.items():
        print(f"   {name:20} {seconds}")
    bars = {
        f"first fit ever of a table of four kinds within {MOST_COMPILE_S:.0f} s of CPU": first["first_cpu_s"]
        < MOST_COMPILE_S,
        f"then a table with another mix within {MOST_SECOND_MIX_S} s of CPU": first["second_mix_cpu_s"]
        < MOST_SECOND_MIX_S,
        f"all kernels compiled within {MOST_WARM_S:.0f} s of CPU": warm["cpu_s"] < MOST_WARM_S,
    }
    return found, bars


def _from_the_wheel(folder: pathlib.Path) -> dict:
    """The first fits in a process that has the package from the wheel with compiled kernels, and an empty cache."""
    quiet = {"check": True, "capture_output": True}
    subprocess.run([sys.executable, str(ROOT / "scripts" / "build_wheel.py"), "--out", str(folder)], **quiet)
    (wheel,) = folder.glob("partita-*-cp3*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder / "site"), str(wheel)]
    subprocess.run(pip, **quiet)
    env = {"PYTHONPATH": str(folder / "site"), "NUMBA_CACHE_DIR": str(folder / "cache")}
    return {**in_own_process(default_fits, env), "wheel_mb": round(wheel.stat().st_size / 1e6, 1)}


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


def _commands(repeats: int) -> dict[str, dict[str, dict[str, float]]]:
    """Seconds of whole processes: commands that read or refuse, a bare interpreter, and `import numpy`."""
    statements = {"bare interpreter": "pass", "import numpy": "import numpy"}
    for name, command in COMMANDS.items():
        call = f"main({command.split()!r})"
        statements[name] = (
            f"import contextlib, io\nfrom partita.cli import main\n"
            f"with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()): {call}"
        )
    with tempfile.TemporaryDirectory() as folder:
        for file, step in (("labels.csv", 7), ("others.csv", 11)):
            lines = "".join(f"{row},{row * row % step}\n" for row in range(500))
            (pathlib.Path(folder) / file).write_text("row,cluster\n" + lines)
        (pathlib.Path(folder) / "broken.csv").write_text('x,y\n1,2\n"')
        out = {}
        for name, statement in statements.items():
            seconds_of(statement, folder)
            found = [seconds_of(statement, folder) for _ in range(repeats)]
            out[name] = {key: spread([one[key] for one in found], 3) for key in ("wall_s", "cpu_s")}
    return out


def seconds_of(statement: str, folder: str | os.PathLike = ROOT) -> dict[str, float]:
    """Wall and CPU seconds of an interpreter that executes one statement in a folder."""
    env = {**os.environ, **dict.fromkeys(THREADS, "1")}
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], cwd=folder, env=env, check=True)
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


def default_fits() -> dict:
    """CPU seconds of three default fits: a table of four kinds, the same again, and a table with another mix."""
    import numpy as np
    import pandas as pd

    from partita import Mixture

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    n = 300
    z = rng.integers(3, size=n)
    words = np.where(rng.random(n) < 0.8, z, rng.integers(3, size=n))
    mixed = pd.DataFrame(
        {
            "height": rng.normal(6.0 * z),
            "weight": rng.normal(-3.0 * z, 2.0),
            "visits": rng.poisson(3 + 4 * z),
            "member": rng.random(n) < 0.2 + 0.3 * z,
            "color": np.array(["red", "green", "blue"])[words],
        }
    )
    other = mixed[["height", "visits", "color"]].assign(shape=mixed["color"].to_numpy()[::-1])
    out = {}
    for name, table in (("first", mixed), ("again", mixed), ("second_mix", other)):
        with stopwatch() as seconds:
            Mixture(kinds={"visits": "count"}, n_jobs=1, random_state=0).fit(table)
        out[f"{name}_cpu_s"] = round(seconds["cpu_s"], 2)
    return out


def warm_all() -> dict:
    """CPU seconds of `partita warm`."""
    from partita.cli.warming import warm

    with stopwatch() as seconds:
        done = warm(verbose=False)
    return {"cpu_s": round(seconds["cpu_s"], 1), "n_tasks": len(done.figures["tasks"])}
