"""One chain of `DPGaussian` until it has the right K, and scikit-learn's Bayesian mixture until it converges.

Ten planted Gaussian clusters in twenty columns. The time of the chain runs from the call of `fit` (the search for a
start is included) to the first iteration with the planted number of clusters, at which its callback stops it; the
agreement of the labels with the planted ones at that moment is reported too. The other program runs with thirty
components until its bound no longer rises. Both run on one thread, one after the other on the same data, after a small
fit that loads the code.
"""

from __future__ import annotations

import statistics

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

N_CLUSTERS, N_COLUMNS, SEPARATION, N_COMPONENTS = 10, 20, 2.0, 30
LEAST_RAND = 0.98


def run(*, full: bool, repeats: int) -> dict:
    n_rows = 10_000 if full else 2000
    runs: dict[str, list[dict]] = {"partita": [], "sklearn": []}
    for seed in range(repeats):
        for name, found in runs.items():
            function = {"partita": chain_to_right_k, "sklearn": fit_sklearn}[name]
            found.append(in_own_process(function, n_rows=n_rows, seed=seed))
            print(f"   {name:7} data {seed}: {_in_words(found[-1])}", flush=True)
    ratios = [
        other["cpu_s"] / own["cpu_s"] for own, other in zip(runs["partita"], runs["sklearn"], strict=True)
    ]
    keys = ("cpu_s", "n_clusters", "rand", "n_iterations")
    summary: dict = {
        name: {key: spread([one[key] for one in found]) for key in keys} for name, found in runs.items()
    }
    summary["ratio"] = round(statistics.median(ratios), 2)
    print(f"   partita takes {1 / summary['ratio']:.2f} of the other's CPU time")
    own = runs["partita"]
    bars = {
        "the chain reaches the right K": all(one["n_clusters"] == N_CLUSTERS for one in own),
        f"its labels are the planted ones (Rand {LEAST_RAND})": summary["partita"]["rand"]["min"]
        >= LEAST_RAND,
        "in no more CPU time than scikit-learn takes": summary["ratio"] >= 1.0,
    }
    size = {"n_rows": n_rows, "n_columns": N_COLUMNS, "n_clusters": N_CLUSTERS, "n_components": N_COMPONENTS}
    return {"size": size, "repeats": repeats, "runs": runs, "summary": summary, "bars": bars if full else {}}


def _in_words(one: dict) -> str:
    return (
        f"{one['cpu_s']:.2f} s of CPU, {one['n_iterations']} iterations, {one['n_clusters']} clusters, "
        f"Rand {one['rand']:.4f}"
    )


# ---- in processes of their own ---------------------------------------------------------------------------------


def chain_to_right_k(n_rows: int, seed: int) -> dict:
    """CPU time from the call of fit to the first iteration with the planted number of clusters."""
    import time
    import warnings

    from partita import DPGaussian
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")  # a chain that is stopped early says so
    data = make_data(n_rows, seed)
    DPGaussian(n_chains=1, n_draws=2, burn_in=1, random_state=seed).fit(data.X[:300])  # loads compiled code
    seen: dict = {}

    def stop(progress) -> bool:
        seen.update(
            cpu_s=time.process_time() - began, n_iterations=progress.iteration, n_clusters=progress.n_clusters
        )
        return progress.n_clusters == N_CLUSTERS

    model = DPGaussian(n_chains=1, callback=stop, random_state=seed)
    began = time.process_time()
    model.fit(data.X)
    return {**seen, "rand": adjusted_rand(model.trace_.labels[-1], data.labels)}


def fit_sklearn(n_rows: int, seed: int) -> dict:
    import warnings

    import numpy as np
    from sklearn.mixture import BayesianGaussianMixture

    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    data = make_data(n_rows, seed)
    model = BayesianGaussianMixture(n_components=N_COMPONENTS, max_iter=2000, random_state=seed)
    model.fit(data.X[:300])
    with stopwatch() as watch:
        model.fit(data.X)
    labels = model.predict(data.X)
    return {
        "cpu_s": watch["cpu_s"],
        "n_iterations": int(model.n_iter_),
        "n_clusters": len(np.unique(labels)),
        "rand": adjusted_rand(labels, data.labels),
        "converged": bool(model.converged_),
    }


def make_data(n_rows: int, seed: int):
    from partita.datasets import make_gaussian_clusters

    return make_gaussian_clusters(n_rows, N_COLUMNS, N_CLUSTERS, SEPARATION, random_state=seed)
