"""The number of clusters in planted mixtures: the default `Mixture`, and scikit-learn's Bayesian mixture.

Gaussian clusters have covariances 0.7 A A'/D + 0.3 I, weights Dirichlet(5) and means N(0, s^2 I); categorical clusters
have cell probabilities Dirichlet(0.5). Every seed has data of its own. The oracle labels each row by the true
parameters: no method can be expected to agree better with the planted labels. CPU seconds are those of one thread,
after a small fit that loads the compiled code.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

N_SEEDS = 5
MOST_BEHIND = 0.02  # adjusted Rand index, behind the oracle
GAUSSIAN = {"kind": "gaussian", "n_rows": 10_000}
SETS = {
    "ten_in_2d": {**GAUSSIAN, "n_columns": 2, "n_clusters": 10, "separation": 10.0, "most_off": 1, "peer": 30},
    "ten_in_20d": {**GAUSSIAN, "n_columns": 20, "n_clusters": 10, "separation": 2.0, "most_off": 1, "peer": 30},
    "fifty_in_20d": {
        **GAUSSIAN, "n_columns": 20, "n_clusters": 50, "separation": 2.0, "most_off": 3, "peer": 100,
    },
    "ten_categorical": {
        "kind": "categorical", "n_rows": 100_000, "n_columns": 20, "n_levels": 10, "n_clusters": 10, "most_off": 1,
    },
}  # fmt: skip
SMALL = {"ten_in_2d": 2000, "ten_categorical": 4000}  # rows


def run(*, full: bool, repeats: int) -> dict:
    sets = SETS if full else {name: {**SETS[name], "n_rows": n_rows} for name, n_rows in SMALL.items()}
    n_seeds = N_SEEDS if full else 1
    runs: dict[str, dict[str, list[dict]]] = {}
    for name, planted in sets.items():
        programs = ("partita", "sklearn") if "peer" in planted else ("partita",)
        runs[name] = {program: [] for program in programs}
        for seed in range(n_seeds):
            for program in programs:
                one = in_own_process(fit, program=program, planted=planted, seed=seed)
                runs[name][program].append(one)
                print(f"   {name:15} {program:7} seed {seed}: {_in_words(one)}", flush=True)
    summary = {
        name: {program: _summary(found, sets[name]["n_clusters"]) for program, found in programs.items()}
        for name, programs in runs.items()
    }
    bars = {}
    for name, planted in sets.items():
        found = summary[name]["partita"]
        bars[f"{name}: K within {planted['most_off']}"] = found["most_off"] <= planted["most_off"]
        bars[f"{name}: ARI within {MOST_BEHIND} of the oracle"] = found["behind_oracle"]["max"] <= MOST_BEHIND
    return {"sets": sets, "n_seeds": n_seeds, "runs": runs, "summary": summary, "bars": bars if full else {}}


def _summary(found: list[dict], n_clusters: int) -> dict:
    keys = ("n_clusters", "ari", "oracle_ari", "behind_oracle", "cpu_s")
    return {
        **{key: spread([one[key] for one in found]) for key in keys},
        "found": ", ".join(str(one["n_clusters"]) for one in found),
        "most_off": max(abs(one["n_clusters"] - n_clusters) for one in found),
    }


def _in_words(one: dict) -> str:
    shares = one.get("n_clusters_posterior", {})
    shares = ", ".join(f"{K}: {p:.2f}" for K, p in shares.items() if p >= 0.01)
    return (
        f"K = {one['n_clusters']}{f' (P: {shares})' if shares else ''}, ARI {one['ari']:.4f}, "
        f"oracle {one['oracle_ari']:.4f}, {one['cpu_s']:.1f} s of CPU"
    )


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit(program: str, planted: dict, seed: int) -> dict:
    """Fit one program to one planted set."""
    import warnings

    import numpy as np

    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    data = make_data(planted, seed)
    make = {"partita": make_partita, "sklearn": make_sklearn}[program]
    make(planted, seed).fit(data.X[:300])  # compiled code is loaded here
    model = make(planted, seed)
    with stopwatch() as watch:
        labels = model.fit_predict(data.X)
    ari, oracle = adjusted_rand(labels, data.labels), adjusted_rand(data.oracle, data.labels)
    result = {
        "n_clusters": len(np.unique(labels)),
        "ari": ari,
        "oracle_ari": oracle,
        "behind_oracle": oracle - ari,
        "cpu_s": watch["cpu_s"],
        "converged": bool(model.converged_),
    }
    if program == "partita":
        result["n_clusters_posterior"] = {str(K): p for K, p in model.n_clusters_posterior_.items()}
        result["trust"] = model.diagnostics_.sentence
    return result


def make_partita(planted: dict, seed: int):
    from partita import Mixture

    return Mixture(random_state=seed)


def make_sklearn(planted: dict, seed: int):
    from sklearn.mixture import BayesianGaussianMixture

    return BayesianGaussianMixture(n_components=planted["peer"], max_iter=1000, random_state=seed)


def make_data(planted: dict, seed: int):
    """Rows, planted labels and the oracle's."""
    from partita.datasets import make_categorical_clusters, make_gaussian_clusters

    n_rows, n_columns, n_clusters = (planted[key] for key in ("n_rows", "n_columns", "n_clusters"))
    if planted["kind"] == "gaussian":
        return make_gaussian_clusters(n_rows, n_columns, n_clusters, planted["separation"], random_state=seed)
    return make_categorical_clusters(n_rows, n_columns, planted["n_levels"], n_clusters, random_state=seed)
