"""What the default fit costs beside the schedule that it had before: four chains of 100 + 200 iterations.

CPU seconds of one thread, after a small fit that loads the compiled code; K, and the agreement of the default with the
long schedule and with the classes or planted labels. Of large tables the long schedule is measured over its first
iterations and multiplied, and only the planted labels are compared. The groups of the sensors overlap: their oracle
knows the centers and the spread of the groups, and is the best that any method can reach.

`PARTITA_BEFORE` may name a checkout of an older version: its default is then measured on the same tables, side by side
(not on the two largest, where it takes many minutes).
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from benchmarks.processes import in_own_process, stopwatch

LONG = {"burn_in": 100, "n_draws": 200}
SHORT = {"burn_in": 5, "n_draws": 5}  # of large tables
SMALL_TABLES = ("iris", "wine", "visitors", "digits")
LARGE_TABLES = ("planted_1e4_20", "sensors_2e5_12", "categorical_1e5_20")
LEAST_RATIO = 6.0
BEFORE = os.environ.get("PARTITA_BEFORE")


def run(*, full: bool, repeats: int) -> dict:
    names = (*SMALL_TABLES, *LARGE_TABLES) if full else SMALL_TABLES[:2]
    found = {}
    for name in names:
        one = in_own_process(measure, name=name, repeats=repeats)
        found[name] = one
        if BEFORE and name not in LARGE_TABLES[1:]:
            one["before"] = in_own_process(
                measure_before, {"PYTHONPATH": str(Path(BEFORE) / "src")}, name=name
            )
            one["ratio_before"] = round(one["before"]["cpu_s"] / one["cpu_s"], 2)
            print(f"   {name}: {one['ratio_before']} times less than before: {one['before']}", flush=True)
        print(
            f"   {name}: {one['cpu_s']:.2f} s instead of {one['long_cpu_s']:.1f} s ({one['ratio']:.1f} times less), K "
            f"{one['n_clusters']}, ARI to the truth {one['ari']:.3f}, to the long schedule {one['ari_to_long']}",
            flush=True,
        )
    ratio = statistics.median(one["ratio"] for one in found.values())
    ratios_before = [one["ratio_before"] for one in found.values() if "before" in one]
    ratio_before = statistics.median(ratios_before) if ratios_before else None
    bars = {
        f"median of at least {LEAST_RATIO:g} times less CPU": (ratio_before or ratio) >= LEAST_RATIO,
        "iris within 1 s": found["iris"]["cpu_s"] <= 1.0,
    }
    if full:
        bars |= {
            "visitors within 3 s": found["visitors"]["cpu_s"] <= 3.0,
            "sensors within 60 s at 0.99 of the ARI of the oracle": found["sensors_2e5_12"]["cpu_s"] <= 60.0
            and found["sensors_2e5_12"]["ari"] >= 0.99 * found["sensors_2e5_12"]["ari_oracle"],
        }
    summary = {**found, "median_ratio": round(ratio, 2), "median_ratio_before": ratio_before}
    return {"summary": summary, "bars": bars}


# ---- in a process of its own -----------------------------------------------------------------------------------


def measure(name: str, repeats: int) -> dict:
    import warnings

    from partita import Mixture
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    X, truth, options, oracle = load(name)
    is_large = name in LARGE_TABLES
    for schedule in ({}, SHORT):
        Mixture(random_state=0, **options, **schedule).fit(X[:300])  # compiled code is loaded here
    seconds, model = [], None
    for _ in range(1 if is_large else repeats):
        with stopwatch() as watch:
            model = Mixture(random_state=0, **options).fit(X)
        seconds.append(watch["cpu_s"])
    long = Mixture(inference="gibbs", random_state=0, **options, **(SHORT if is_large else LONG))
    with stopwatch() as watch:
        long.fit(X)
    times = sum(LONG.values()) / sum(SHORT.values()) if is_large else 1.0
    cpu = statistics.median(seconds)
    return {
        "n_rows": len(X),
        "cpu_s": round(cpu, 3),
        "long_cpu_s": round(watch["cpu_s"] * times, 2),
        "ratio": round(watch["cpu_s"] * times / cpu, 2),
        "n_clusters": model.n_clusters_,
        "n_iter": model.n_iter_,
        "inference": getattr(model, "inference_", "gibbs"),
        "ari": round(adjusted_rand(truth, model.labels_), 4),
        "ari_oracle": None if oracle is None else round(adjusted_rand(truth, oracle), 4),
        "ari_to_long": None if is_large else round(adjusted_rand(long.labels_, model.labels_), 4),
    }


def measure_before(name: str) -> dict:
    """The default fit of the version in the path; compiled code is loaded by a small fit before."""
    import warnings

    from partita import Mixture
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    X, truth, options, _ = load(name)
    Mixture(random_state=0, n_draws=2, burn_in=2, **options).fit(X[:300])
    with stopwatch() as watch:
        model = Mixture(random_state=0, **options).fit(X)
    ari = adjusted_rand(truth, model.labels_)
    return {"cpu_s": round(watch["cpu_s"], 2), "n_clusters": model.n_clusters_, "ari": round(ari, 4)}


def load(name: str):
    """Rows, classes or planted labels, options that the table needs, and the labels of an oracle if there is one."""
    import numpy as np

    from partita.datasets import load_visitors, make_categorical_clusters, make_gaussian_clusters

    if name == "visitors":
        visitors = load_visitors(as_frame="pandas")
        return (
            visitors.frame,
            visitors.target,
            {"kinds": {"rooms_visited": "count", "photos_taken": "count"}},
            None,
        )
    if name in SMALL_TABLES:
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        return found.data, found.target, {}, None
    if name == "planted_1e4_20":
        found = make_gaussian_clusters(10_000, 20, 10, 2.0, random_state=0)
        return found.X, found.labels, {}, None
    if name == "categorical_1e5_20":
        found = make_categorical_clusters(100_000, 20, 10, 10, random_state=0)
        return found.X, found.labels, {}, None
    rng = np.random.default_rng(0)
    z = rng.integers(5, size=200_000)
    centers = rng.normal(size=(5, 12)) * 1.2
    X = centers[z] + rng.normal(size=(200_000, 12))
    oracle = (X @ centers.T - 0.5 * (centers**2).sum(axis=1)).argmax(axis=1)
    return X, z, {}, oracle
