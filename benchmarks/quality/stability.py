"""How much the result depends on the seed: twenty seeds on iris and digits, beside scikit-learn's Bayesian mixture.

On iris, a setting with fixed hyper-parameters is run besides the default. Reported are the range of K, the mean
adjusted Rand index between the labels of two seeds, and the mean adjusted Rand index to the classes (which no program
sees). Both programs get the raw table; CPU seconds are those of one thread.
"""

from __future__ import annotations

from itertools import combinations

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

PEER_COMPONENTS = {"iris": 10, "digits": 40}
LEAST_RAND = 0.9
SETTINGS: dict[str, dict] = {"default": {}, "fixed_hyper": {"learn_hyper": False}}
ASKED = {"iris": ("default", "fixed_hyper"), "digits": ("default",)}
N_SEEDS = 20


def run(*, full: bool, repeats: int) -> dict:
    names = ("iris", "digits") if full else ("iris",)
    seeds = range(N_SEEDS if full else 2)
    runs: dict[str, dict[str, list[dict]]] = {}
    for name in names:
        runs[name] = {}
        for program, setting in [*(("partita", key) for key in ASKED[name]), ("sklearn", "sklearn")]:
            found = [in_own_process(fit, program=program, setting=setting, name=name, seed=s) for s in seeds]
            runs[name][setting] = found
            print(f"   {name:6} {setting:11}: {_in_words(summarize(found))}", flush=True)
    summary = {
        name: {setting: summarize(found) for setting, found in settings.items()}
        for name, settings in runs.items()
    }
    bars = {}
    for name, settings in summary.items():
        own, peer = settings["default"], settings["sklearn"]
        bars[f"{name}: seeds agree (Rand {LEAST_RAND})"] = own["between_seeds"]["mean"] >= LEAST_RAND
        bars[f"{name}: classes no worse than scikit-learn"] = (
            own["classes"]["mean"] >= peer["classes"]["mean"]
        )
    for settings in runs.values():
        for found in settings.values():
            for one in found:
                del one["labels"]  # long, and they can be made again
    return {"n_seeds": len(seeds), "runs": runs, "summary": summary, "bars": bars if full else {}}


def summarize(found: list[dict]) -> dict:
    """Spread of K, and the two means."""
    from partita.metrics import adjusted_rand

    between = [adjusted_rand(a["labels"], b["labels"]) for a, b in combinations(found, 2)]
    classes = [one["classes"] for one in found]
    return {
        "n_clusters": spread([one["n_clusters"] for one in found]),
        "between_seeds": {"mean": sum(between) / len(between), **spread(between)},
        "classes": {"mean": sum(classes) / len(classes), **spread(classes)},
        "cpu_s": spread([one["cpu_s"] for one in found], 2),
    }


def _in_words(summary: dict) -> str:
    K = summary["n_clusters"]
    return (
        f"K {K['min']} to {K['max']}, Rand between seeds {summary['between_seeds']['mean']:.3f} (least "
        f"{summary['between_seeds']['min']:.3f}), to the classes {summary['classes']['mean']:.3f}, "
        f"{summary['cpu_s']['median']:.1f} s of CPU"
    )


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit(program: str, setting: str, name: str, seed: int) -> dict:
    import warnings

    import numpy as np
    from sklearn import datasets
    from sklearn.mixture import BayesianGaussianMixture

    from partita import Mixture
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    X, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
    if program == "partita":
        model = Mixture(**SETTINGS[setting], random_state=seed)
    else:
        model = BayesianGaussianMixture(n_components=PEER_COMPONENTS[name], max_iter=1000, random_state=seed)
    with stopwatch() as watch:
        labels = model.fit_predict(X)
    return {
        "labels": labels.tolist(),
        "n_clusters": len(np.unique(labels)),
        "classes": adjusted_rand(labels, classes),
        "cpu_s": watch["cpu_s"],
        "converged": bool(model.converged_),
    }
