"""What result files record besides the figures: command, machine, versions, commit."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import statistics
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT

PACKAGES = ("partita", "numpy", "scipy", "scikit-learn", "numba", "stepmix", "igraph")


def spread(values: list[float], digits: int = 4) -> dict[str, float]:
    """Median, smallest and largest of the repetitions."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }


def save(name: str, result: dict[str, Any], *, full: bool) -> str:
    """Write a result; returns the path from the root of the repository."""
    folder = ROOT / "benchmarks" / ("results" if full else "out")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    document = {
        "benchmark": name,
        "command": f"python -m benchmarks {name}{' --full' if full else ''}",
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
        "machine": _machine(),
        "versions": versions(),
        **result,
    }
    path.write_text(as_text(json.loads(json.dumps(document))) + "\n", encoding="utf-8")
    return str(path.relative_to(ROOT))


def as_text(value: Any, depth: int = 0) -> str:
    """JSON with one value per line, except that a list of numbers or strings stays on one line."""
    inside = list(value.values()) if isinstance(value, dict) else value
    nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(one, dict | list) for one in value)
    )
    if not (nested and inside):
        return json.dumps(value)
    texts = [as_text(one, depth + 1) for one in inside]
    opening, closing = "[]"
    if isinstance(value, dict):
        opening, closing = "{}"
        texts = [f"{json.dumps(key)}: {text}" for key, text in zip(value, texts, strict=True)]
    margin = "\n" + " " * depth
    return opening + ",".join(f"{margin} {text}" for text in texts) + margin + closing


def _commit() -> str:
    """The commit of the measured source; "+" where the source differs from it."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.system()}


def versions() -> dict[str, str]:
    """Of Python and the packages that are measured or compared."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def slope(points: list[tuple[float, float]]) -> float:
    """Of log time on log size: the exponent of growth."""
    x, y = ([math.log(max(value, 1e-9)) for value in axis] for axis in zip(*points))
    return statistics.linear_regression(x, y).slope
