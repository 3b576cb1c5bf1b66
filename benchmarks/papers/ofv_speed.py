"""What models of views cost: growth with the number of rows, and default fits beside those of an older version.

Growth: ten disjoint planted views, one search and one short chain of `OverlappingViews`, CPU seconds, memory, NMI.
lace at its defaults took 45 s at N = 10,000, D = 100, and reached an average NMI of 0.2 (measured once, on another
machine); the benchmark `crosscat` measures it if it is installed.

Default fits: `OverlappingViews()` and `CrossCat()` on planted tables. `PARTITA_BEFORE` may name a checkout of an older
version, which is measured on the same tables in the same run, each fit in a process of its own.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.processes import in_own_process

LACE_SECONDS = 45.0
DEFAULTS = {"OverlappingViews": (1000, 100), "CrossCat": (10_000, 100)}  # rows and columns
SMALL_DEFAULTS = {"OverlappingViews": (200, 20), "CrossCat": (200, 20)}
LEAST_RATIO, MAX_LOSS = 3.0, 0.005  # of CPU seconds, and of NMI
BEFORE = os.environ.get("PARTITA_BEFORE")


def run(*, full: bool, repeats: int) -> dict:
    sizes = [(1000, 100), (3000, 100), (10_000, 100)] if full else [(500, 40)]
    in_own_process(one, n_rows=200, n_columns=20)  # compiles
    rows = []
    for n_rows, n_columns in sizes:
        rows.append(in_own_process(one, n_rows=n_rows, n_columns=n_columns))
        print(
            f"   N = {n_rows}, D = {n_columns}: {rows[-1]['cpu']:.1f} s, NMI {rows[-1]['nmi']:.3f} (oracle "
            f"{rows[-1]['oracle']:.3f}), {rows[-1]['peak_mb']:.0f} MB",
            flush=True,
        )
    found = {
        name: beside_before(name, *size) for name, size in (DEFAULTS if full else SMALL_DEFAULTS).items()
    }
    bars = {}
    if full:
        bars = {
            "N = 10,000, D = 100: NMI at least 0.97": rows[2]["nmi"] >= 0.97,
            "in no more than lace's 45 s": rows[2]["cpu"] <= LACE_SECONDS,
            "ten times the rows, at most fifteen times the time": rows[2]["cpu"] <= 15 * rows[0]["cpu"],
        }
        for name, each in found.items():
            if "before" in each:
                is_good = each["nmi"] >= each["before"]["nmi"] - MAX_LOSS
                bars[f"{name}: at least {LEAST_RATIO:g} times less CPU at the same NMI"] = (
                    is_good and each["ratio"] >= LEAST_RATIO
                )
    return {"summary": {"sizes": rows, "defaults": found}, "bars": bars}


def beside_before(name: str, n_rows: int, n_columns: int) -> dict:
    """The default fit of this version, and of the older one if there is a checkout."""
    size = {"name": name, "n_rows": n_rows, "n_columns": n_columns}
    found = in_own_process(default_fit, **size)
    if BEFORE:
        found["before"] = in_own_process(default_fit, {"PYTHONPATH": str(Path(BEFORE) / "src")}, **size)
        found["ratio"] = round(found["before"]["cpu"] / found["cpu"], 2)
    print(f"   {name}: {found}", flush=True)
    return found


# ---- in a process of its own -----------------------------------------------------------------------------------


def default_fit(name: str, n_rows: int, n_columns: int) -> dict:
    """A fit with the defaults; compiled code is loaded by a small fit before."""
    import time
    import warnings

    import partita
    from partita.datasets import make_planted_views
    from partita.metrics import match_labelings

    warnings.simplefilter("ignore")
    planted = make_planted_views(1, n_rows, n_columns, max(n_columns // 10, 2), random_state=2000)
    estimator = getattr(partita, name)
    estimator(n_chains=1, n_draws=2, burn_in=1, random_state=0).fit(planted.X[:60])
    start = time.process_time()
    model = estimator(random_state=0).fit(planted.X)
    cpu = time.process_time() - start
    return {
        "n_rows": n_rows,
        "n_columns": n_columns,
        "cpu": round(cpu, 2),
        "nmi": match_labelings(planted.view_labels, model.view_labels_).average,
        "oracle": match_labelings(planted.view_labels, planted.oracle).average,
        "n_views": model.n_views_,
        "n_iter": model.n_iter_,
    }


def one(n_rows: int, n_columns: int) -> dict:
    """One search, one short chain."""
    import time
    import warnings

    from partita import OverlappingViews
    from partita.datasets import make_planted_views
    from partita.metrics import match_labelings

    warnings.simplefilter("ignore")
    planted = make_planted_views(1, n_rows, n_columns, max(n_columns // 10, 2), random_state=2000)
    start = time.process_time()
    model = OverlappingViews(n_init=1, n_chains=1, n_draws=5, burn_in=2, random_state=0).fit(planted.X)
    cpu = time.process_time() - start
    return {
        "n_rows": n_rows,
        "n_columns": n_columns,
        "cpu": round(cpu, 2),
        "nmi": match_labelings(planted.view_labels, model.view_labels_).average,
        "oracle": match_labelings(planted.view_labels, planted.oracle).average,
        "n_views": model.n_views_,
    }
