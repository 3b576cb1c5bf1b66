"""Bayesian trees: CPU time and memory of the exact algorithm as rows double, and of the reduced one at 100,000 rows.

Ten real columns with eight planted Gaussian clusters. The exact fits have fixed hyper-parameters and independent
columns, so that the time is that of merging; one fit with learning, the default, is measured too. Every fit runs in a
process of its own, after a small one that has compiled the kernels.
"""

from __future__ import annotations

import math

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

N_COLUMNS, N_CLUSTERS = 10, 8


def run(*, full: bool, repeats: int) -> dict:
    sizes = (625, 1250, 2500, 5000) if full else (200, 400)
    summary: dict = {"n_columns": N_COLUMNS, "exact": {}}
    for n in sizes:
        fits = [in_own_process(fit, n_rows=n, exact=True, learn=False, seed=s) for s in range(repeats)]
        summary["exact"][str(n)] = {
            "cpu_s": spread([f["cpu_s"] for f in fits]),
            "peak_mb": max(f["peak_mb"] for f in fits),
        }
        print(f"   exact, {n:,} rows: {summary['exact'][str(n)]}", flush=True)
    summary["learned"] = in_own_process(fit, n_rows=sizes[-1], exact=True, learn=True, seed=0)
    print(f"   with learning, {sizes[-1]:,} rows: {summary['learned']}", flush=True)
    summary["reduced"] = in_own_process(
        fit, n_rows=100_000 if full else 2000, exact=False, learn=True, seed=0
    )
    print(f"   reduced: {summary['reduced']}", flush=True)
    times = [summary["exact"][str(n)]["cpu_s"]["median"] for n in sizes]
    summary["exponent"] = round(math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2]), 3)
    bars = {
        "5,000 rows in less than 1 GB": summary["exact"][str(sizes[-1])]["peak_mb"] < 1000,
        "CPU time grows no faster than the square of the rows (exponent below 2.2)": summary["exponent"]
        < 2.2,
        "100,000 rows in less than 1 GB": summary["reduced"]["peak_mb"] < 1000,
    }
    return {"summary": summary, "bars": bars if full else {}}


# ---- in a process of its own -------------------------------------------------------------------------------------


def fit(n_rows: int, exact: bool, learn: bool, seed: int) -> dict:
    import warnings

    from partita import BayesianTree
    from partita.datasets import make_gaussian_clusters
    from partita.metrics import adjusted_rand
    from partita.metrics.trees import dendrogram_purity

    warnings.simplefilter("ignore")
    data = make_gaussian_clusters(n_rows, N_COLUMNS, N_CLUSTERS, 4.0, random_state=seed)
    limit = max(n_rows, 2) if exact else (5000 if n_rows > 5000 else 500)

    def model():
        return BayesianTree("gaussian", learn_hyper=learn, max_exact=limit, random_state=0)

    model().fit(data.X[:60])
    with stopwatch() as clock:
        found = model().fit(data.X)
    return {
        "cpu_s": round(clock["cpu_s"], 2),
        "n_clusters": int(found.n_clusters_),
        "rand": round(float(adjusted_rand(found.labels_, data.labels)), 3),
        "purity": round(float(dendrogram_purity(found.linkage_, data.labels)), 3),
        "lower_bound_per_row": round(found.lower_bound_ / n_rows, 4),
    }
