"""How the time of OverlappingViews grows with the number of rows: ten disjoint planted views, CPU seconds, memory, NMI.

lace at its defaults took 45 s at N = 10,000, D = 100, and reached an average NMI of 0.2 (measured once, on another
machine); the benchmark `crosscat` measures it if it is installed.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process

LACE_SECONDS = 45.0


def run(*, full: bool, repeats: int) -> dict:
    sizes = [(1000, 100), (3000, 100), (10_000, 100), (100_000, 50)] if full else [(500, 40), (2000, 40)]
    in_own_process(one, n_rows=200, n_columns=20)  # compiles
    rows = []
    for n_rows, n_columns in sizes:
        rows.append(in_own_process(one, n_rows=n_rows, n_columns=n_columns))
        print(
            f"   N = {n_rows}, D = {n_columns}: {rows[-1]['cpu']:.1f} s, NMI {rows[-1]['nmi']:.3f} (oracle "
            f"{rows[-1]['oracle']:.3f}), {rows[-1]['peak_mb']:.0f} MB",
            flush=True,
        )
    bars = {}
    if full:
        bars = {
            "N = 10,000, D = 100: NMI at least 0.97": rows[2]["nmi"] >= 0.97,
            "in no more than lace's 45 s": rows[2]["cpu"] <= LACE_SECONDS,
            "N = 100,000, D = 50 in under 4 GB": rows[3]["peak_mb"] < 4000,
            "ten times the rows, at most fifteen times the time": rows[2]["cpu"] <= 15 * rows[0]["cpu"],
        }
    return {"summary": {"sizes": rows}, "bars": bars}


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
