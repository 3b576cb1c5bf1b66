"""Run each measurement in a process of its own, with one thread.

This module imports nothing but the standard library: the parent stays small, and what a child reports as its peak
memory is its own.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
MARK = "benchmark result: "


def in_own_process(
    function: Callable[..., dict], env: Mapping[str, str] | None = None, **arguments: Any
) -> dict:
    """Call a function of a module in a fresh, single-threaded interpreter.

    Arguments and result go through JSON; ``peak_mb`` (peak resident memory) is added to the result.
    """
    command = [sys.executable, "-m", "benchmarks.processes", function.__module__, function.__qualname__]
    done = subprocess.run(
        [*command, json.dumps(arguments)],
        cwd=ROOT,
        env={**os.environ, **dict.fromkeys(THREADS, "1"), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"{function.__qualname__}({arguments}) failed:\n{done.stdout}\n{done.stderr}")
    return json.loads(lines[-1].removeprefix(MARK))


def peak_mb() -> float:
    """Peak resident memory of this process, in millions of bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent held before the child became itself
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


@contextmanager
def stopwatch():
    """Measure a block: a dict that holds ``wall_s`` and ``cpu_s`` afterwards."""
    out: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield out
    out["wall_s"] = time.perf_counter() - wall
    out["cpu_s"] = time.process_time() - cpu


def main(module: str, name: str, arguments: str) -> None:
    result = getattr(importlib.import_module(module), name)(**json.loads(arguments))
    print(MARK + json.dumps({**result, "peak_mb": round(peak_mb(), 1)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
