"""Affinity propagation on a sparse graph: CPU time and peak memory against the number of rows.

Rows in five columns, planted in round groups of about 25, with twenty neighbors each. In addition, on all pairs of 400
rows, whether the exemplars are those of scikit-learn at the same preference and damping.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process, peak_mb, stopwatch
from benchmarks.record import spread

N_COLUMNS, GROUP, N_NEIGHBORS = 5, 25, 20
N_DENSE, DAMPINGS = 400, (0.5, 0.7, 0.9)
MOST_MB = 1000.0


def run(*, full: bool, repeats: int) -> dict:
    sizes = (12_500, 25_000, 50_000) if full else (1000, 3000)
    runs: dict[str, list[dict]] = {}
    for n_rows in sizes:
        seeds = range(repeats if n_rows == sizes[-1] else 1)
        runs[str(n_rows)] = [in_own_process(fit, n_rows=n_rows, seed=seed) for seed in seeds]
        for one in runs[str(n_rows)]:
            print(f"   {n_rows:,} rows: {_in_words(one)}", flush=True)
    agreement = [in_own_process(compare, damping=damping) for damping in DAMPINGS]
    print(f"   scikit-learn's exemplars: {[one['same_exemplars'] for one in agreement]}", flush=True)
    keys = ("cpu_s", "cpu_s_per_round", "n_rounds", "n_restless", "n_clusters", "rand", "peak_mb", "n_edges")
    summary = {n: {key: spread([one[key] for one in found], 5) for key in keys} for n, found in runs.items()}
    largest = summary[str(sizes[-1])]
    bars = {
        f"peak memory below {MOST_MB:.0f} MB": largest["peak_mb"]["max"] < MOST_MB,
        "dense: the exemplars of scikit-learn": all(one["same_exemplars"] for one in agreement),
    }
    size = {"n_rows": list(sizes), "n_columns": N_COLUMNS, "group": GROUP, "n_neighbors": N_NEIGHBORS}
    return {
        "size": size,
        "repeats": repeats,
        "runs": runs,
        "agreement": agreement,
        "summary": summary,
        "bars": bars if full else {},
    }


def _in_words(one: dict) -> str:
    return (
        f"{one['n_edges']:,} edges, {one['n_rounds']} rounds in {one['cpu_s']:.1f} s of CPU, {one['n_clusters']} "
        f"clusters (Rand {one['rand']:.3f}), {one['n_restless']} restless, peak {one['peak_mb']:.0f} MB "
        f"({one['before_mb']:.0f} before)"
    )


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit(n_rows: int, seed: int) -> dict:
    import warnings

    import numpy as np

    from partita import AffinityPropagation
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    K = n_rows // GROUP
    z = rng.integers(K, size=n_rows)
    X = (10.0 * rng.normal(size=(K, N_COLUMNS)))[z] + 0.15 * rng.normal(size=(n_rows, N_COLUMNS))
    before = peak_mb()
    with stopwatch() as watch:
        model = AffinityPropagation(n_neighbors=N_NEIGHBORS, random_state=seed).fit(X)
    return {
        "cpu_s": watch["cpu_s"],
        "cpu_s_per_round": watch["cpu_s"] / model.n_iter_,
        "n_rounds": model.n_iter_,
        "n_edges": model.n_edges_,
        "n_clusters": model.n_clusters_,
        "n_planted": len(np.unique(z)),
        "rand": adjusted_rand(model.labels_, z),
        "converged": bool(model.converged_),
        "n_restless": model.n_unsettled_,
        "before_mb": round(before, 1),
    }


def compare(damping: float) -> dict:
    import numpy as np
    from sklearn.cluster import affinity_propagation

    from partita import AffinityPropagation
    from partita.similarity import dissimilarity

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_DENSE, 2)) + 5.0 * rng.integers(0, 4, (N_DENSE, 1))
    S = -dissimilarity(X, standardize=False)
    preference = float(np.median(S))
    theirs, _ = affinity_propagation(S, preference=preference, damping=damping, max_iter=1000, random_state=0)
    model = AffinityPropagation("precomputed", preference=preference, damping=damping, random_state=0).fit(S)
    same = np.array_equal(np.sort(theirs), np.sort(model.exemplars_))
    return {"damping": damping, "n_clusters": model.n_clusters_, "same_exemplars": bool(same)}
