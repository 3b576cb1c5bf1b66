"""Latent class analysis by EM: time per iteration and peak memory of partita and of StepMix.

The time of an iteration is that of a fit of 15 iterations minus that of a fit of 5, divided by 10, so that reading the
table, starting values and final labels do not count. Both programs get the same table of integer codes, one start, one
thread, and a process per fit.
"""

from __future__ import annotations

import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

from benchmarks.processes import in_own_process, peak_mb, stopwatch
from benchmarks.record import spread

SHORT, LONG = 5, 15
FULL = {"n_rows": 1_000_000, "n_columns": 20, "n_levels": 5, "n_clusters": 10}
SMALL = {**FULL, "n_rows": 300_000}
LEAST_RATIO, MOST_MB = 20.0, 500.0


def run(*, full: bool, repeats: int) -> dict:
    size = FULL if full else SMALL
    programs = {"partita": fit_partita}
    if find_spec("stepmix"):
        programs["stepmix"] = fit_stepmix
    else:
        print("   StepMix is not installed (extra `peers`): partita is measured alone")
    with tempfile.TemporaryDirectory() as folder:
        table = str(Path(folder) / "table.npy")
        in_own_process(make_table, path=table, **size)
        runs: dict[str, list[dict]] = {name: [] for name in programs}
        for repeat in range(repeats):
            for name, fit in programs.items():
                short, long = (
                    in_own_process(fit, path=table, n_clusters=size["n_clusters"], max_iter=n)
                    for n in (SHORT, LONG)
                )
                runs[name].append(_difference(short, long))
                print(f"   {name:8} run {repeat + 1}: {_in_words(runs[name][-1])}", flush=True)
    summary = {name: _summary(found) for name, found in runs.items()}
    result = {"size": size, "repeats": repeats, "runs": runs, "summary": summary, "bars": {}}
    if "stepmix" in summary:
        summary["ratio_per_iteration"] = _ratio(summary, "wall_s_per_iteration")
        summary["ratio_cpu_per_iteration"] = _ratio(summary, "cpu_s_per_iteration")
        summary["ratio_peak_memory"] = _ratio(summary, "peak_mb")
        print(
            f"   partita is {summary['ratio_per_iteration']} times as fast an iteration "
            f"and takes 1/{summary['ratio_peak_memory']} of the memory"
        )
    if full:
        result["bars"][f"peak memory below {MOST_MB:.0f} MB"] = summary["partita"]["peak_mb"]["max"] < MOST_MB
        if "stepmix" in summary:
            bar = f"at least {LEAST_RATIO:.0f} times as fast an iteration as StepMix"
            result["bars"][bar] = summary["ratio_per_iteration"] >= LEAST_RATIO
    return result


def _difference(short: dict, long: dict) -> dict:
    if (short["n_iter"], long["n_iter"]) != (SHORT, LONG):
        raise RuntimeError(
            f"asked for {SHORT} and {LONG} iterations, got {short['n_iter']} and {long['n_iter']}"
        )
    return {
        "wall_s_per_iteration": (long["wall_s"] - short["wall_s"]) / (LONG - SHORT),
        "cpu_s_per_iteration": (long["cpu_s"] - short["cpu_s"]) / (LONG - SHORT),
        "fit_wall_s": long["wall_s"],
        "peak_mb": long["peak_mb"],
        "peak_before_fit_mb": long["before_mb"],
        "log_likelihood_per_row": long["log_likelihood_per_row"],
    }


def _summary(found: list[dict]) -> dict:
    return {key: spread([one[key] for one in found]) for key in found[0]}


def _ratio(summary: dict, key: str) -> float:
    return round(summary["stepmix"][key]["median"] / summary["partita"][key]["median"], 1)


def _in_words(one: dict) -> str:
    return (
        f"{one['wall_s_per_iteration']:.3f} s an iteration (CPU {one['cpu_s_per_iteration']:.3f} s), "
        f"fit of {LONG} iterations {one['fit_wall_s']:.1f} s, peak {one['peak_mb']:.0f} MB"
    )


# ---- in processes of their own ---------------------------------------------------------------------------------


def make_table(path: str, n_rows: int, n_columns: int, n_levels: int, n_clusters: int) -> dict:
    """Codes 0, 1, ... drawn from a latent class model, one byte each."""
    import numpy as np

    rng = np.random.default_rng(0)
    z = rng.integers(n_clusters, size=n_rows)
    X = np.empty((n_rows, n_columns), np.int8)
    for d in range(n_columns):
        upper = np.cumsum(rng.dirichlet(np.ones(n_levels), n_clusters), axis=1)
        X[:, d] = (rng.random((n_rows, 1)) > upper[z, :-1]).sum(axis=1)
    np.save(path, X)
    return {}


def fit_partita(path: str, n_clusters: int, max_iter: int) -> dict:
    import numpy as np

    from partita import LatentClass

    warnings.simplefilter("ignore")  # it does not converge in so few iterations, and says so
    X = np.load(path)
    model = LatentClass(n_clusters=n_clusters, n_init=1, max_iter=max_iter, tol=0, random_state=0, n_jobs=1)
    model.fit(X[:2000])  # compiled code is loaded here
    before = peak_mb()
    with stopwatch() as seconds:
        model.fit(X)
    return {
        **seconds,
        "n_iter": len(model.objective_trace_),
        "before_mb": round(before, 1),
        "log_likelihood_per_row": float(model.log_likelihood_) / len(X),
    }


def fit_stepmix(path: str, n_clusters: int, max_iter: int) -> dict:
    import numpy as np
    from stepmix.stepmix import StepMix

    warnings.simplefilter("ignore")
    X = np.load(path)
    model = StepMix(
        n_components=n_clusters,
        measurement="categorical",
        n_init=1,
        max_iter=max_iter,
        abs_tol=0,
        rel_tol=0,
        random_state=0,
        progress_bar=0,
        verbose=0,
    )
    model.fit(X[:2000])
    before = peak_mb()
    with stopwatch() as seconds:
        model.fit(X)
    return {
        **seconds,
        "n_iter": int(model.n_iter_),
        "before_mb": round(before, 1),
        "log_likelihood_per_row": float(model.lower_bound_),
    }
