"""How time and memory grow with the number of rows: EM on categorical columns, VB on real ones.

The exponent is the slope of log time on log rows: 1 is linear. Small tables lower it, because some of the work of an
iteration does not depend on the number of rows.
"""

from __future__ import annotations

import warnings

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import slope, spread

SHORT, LONG = 5, 25
FULL = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SMALL = (10_000, 30_000, 100_000)
MOST_EXPONENT = 1.15


def run(*, full: bool, repeats: int) -> dict:
    summary: dict = {}
    for name, fit in {"em_categorical": fit_em_categorical, "vb_gaussian": fit_vb_gaussian}.items():
        points = []
        for n_rows in FULL if full else SMALL:
            found = [in_own_process(fit, n_rows=n_rows) for _ in range(repeats)]
            points.append(
                {
                    "n_rows": n_rows,
                    "wall_s_per_iteration": spread([one["wall_s"] for one in found], 6),
                    "cpu_s_per_iteration": spread([one["cpu_s"] for one in found], 6),
                    "peak_mb": spread([one["peak_mb"] for one in found], 1),
                }
            )
            print(
                f"   {name:15} {n_rows:>9,} rows: {points[-1]['cpu_s_per_iteration']['median']:.4f} s of CPU "
                f"an iteration, peak {points[-1]['peak_mb']['median']:.0f} MB",
                flush=True,
            )
        exponent = slope([(p["n_rows"], p["cpu_s_per_iteration"]["median"]) for p in points])
        print(f"   {name:15} grows as rows to the power {exponent:.2f}", flush=True)
        summary[name] = {"exponent": round(exponent, 3), "points": points}
    bars = {
        f"{name} grows no faster than rows to the power {MOST_EXPONENT}": one["exponent"] <= MOST_EXPONENT
        for name, one in summary.items()
    }
    return {"repeats": repeats, "summary": summary, "bars": bars}


# ---- in processes of their own ---------------------------------------------------------------------------------


def fit_em_categorical(n_rows: int) -> dict:
    import numpy as np

    from partita import LatentClass

    rng = np.random.default_rng(0)
    z = rng.integers(5, size=n_rows)
    X = np.where(rng.random((n_rows, 10)) < 0.6, z[:, None], rng.integers(5, size=(n_rows, 10))).astype(
        np.int8
    )
    return _per_iteration(
        lambda n: LatentClass(5, n_init=1, max_iter=n, tol=0, random_state=0, n_jobs=1).fit(X)
    )


def fit_vb_gaussian(n_rows: int) -> dict:
    import numpy as np

    from partita import Mixture

    rng = np.random.default_rng(0)
    # close together, or the bound would stand still before the last iteration
    X = rng.normal(size=(n_rows, 10)) + 0.5 * rng.normal(size=(5, 10))[rng.integers(5, size=n_rows)]
    options = {"inference": "vb", "n_clusters": 5, "n_init": 1, "tol": 0, "random_state": 0, "n_jobs": 1}
    return _per_iteration(lambda n: Mixture("gaussian", max_iter=n, **options).fit(X))


def _per_iteration(fit) -> dict:
    warnings.simplefilter("ignore")
    fit(1)  # compiled code is loaded here
    seconds, iterations = {}, {}
    for n in (SHORT, LONG):
        with stopwatch() as seconds[n]:
            iterations[n] = len(fit(n).objective_trace_)
    n = iterations[LONG] - iterations[SHORT]
    return {key: (seconds[LONG][key] - seconds[SHORT][key]) / n for key in ("wall_s", "cpu_s")}
