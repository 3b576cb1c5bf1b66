"""The default `Mixture` on 25 planted tables with overlapping groups in 2 to 20 columns, beside other methods.

13 tables are Gaussian, 12 skewed, with lumps at zero and rounded cells (`benchmarks/quality/overlapping_tables.py`).
Adjusted Rand index to the planted labels, number of clusters, grade of the answer, CPU seconds. The oracle knows the
law that drew the rows; methods that are given the number of groups are shown for comparison.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from benchmarks.processes import in_own_process
from benchmarks.quality.overlapping_tables import PLANTED

SMALL = ("gaussian_3", "gaussian_10a", "skewed_3", "skewed_10")
METHODS = ("partita", "ensemble", "kmeans_silhouette", "gmm_bic", "kmeans_k", "gmm_k")


def run(*, full: bool, repeats: int) -> dict:
    names, seeds = (tuple(PLANTED), (0, 1)) if full else (SMALL, (0,))
    found: dict[str, dict] = {}
    for name in names:
        found[name] = in_own_process(fit_all, name=name, methods=METHODS, seeds=seeds)
        text = ", ".join(
            f"{m} {r['ari']:.2f}/{r['n_clusters']:.0f}" for m, r in found[name]["methods"].items()
        )
        one = found[name]
        print(
            f"   {name:13} K {one['planted']['n_clusters']}, oracle {one['oracle']:.2f}; {text}", flush=True
        )
    summary = {
        kind: _summary([one for one in found.values() if one["planted"]["kind"] == kind])
        for kind in ("gaussian", "skewed")
    }
    for kind, methods in summary.items():
        for method, r in methods.items():
            print(f"   {kind:9} {method:18} {_in_words(r)}", flush=True)
    return {"found": found, "summary": summary}


def _summary(found: list[dict]) -> dict[str, dict]:
    out: dict[str, dict] = {
        "oracle": {"ari": round(statistics.mean(one["oracle"] for one in found), 4), "off_k": 0.0}
    }
    for method in METHODS:
        runs = [one["methods"][method] for one in found]
        ahead = [one["methods"]["partita"]["ari"] - one["methods"][method]["ari"] for one in found]
        error = statistics.stdev(ahead) / math.sqrt(len(ahead)) if len(ahead) > 1 else math.nan
        off = [abs(r["n_clusters"] - one["planted"]["n_clusters"]) for r, one in zip(runs, found)]
        out[method] = {
            "ari": round(statistics.mean(r["ari"] for r in runs), 4),
            "off_k": round(statistics.mean(off), 2),
            "cpu_s": round(statistics.median(r["cpu_s"] for r in runs), 3),
            "partita_ahead": round(statistics.mean(ahead), 4),
            "standard_error": round(error, 4),
        }
    return out


def _in_words(r: dict) -> str:
    text = f"ARI {r['ari']:.3f}  |K - planted| {r['off_k']:4.1f}"
    if "cpu_s" not in r:
        return text
    ahead = f"partita ahead {r['partita_ahead']:+.3f} ({r['standard_error']:.3f})"
    return f"{text}  CPU {r['cpu_s']:.2f} s  {ahead}"


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit_all(name: str, methods: tuple[str, ...], seeds: tuple[int, ...]) -> dict:
    """All methods on one table."""
    import time
    import warnings

    import numpy as np
    from sklearn.preprocessing import StandardScaler

    from benchmarks.quality.overlapping_tables import make_planted
    from benchmarks.quality.real_tables import cluster, make_partita
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    planted = PLANTED[name]
    table = make_planted(planted)
    X = StandardScaler().fit_transform(table.X)
    if "partita" in methods:
        make_partita(0).fit(table.X)  # compiled code is loaded here
    out: dict[str, Any] = {}
    for method in methods:
        aris, counts, seconds, grades = [], [], [], []
        for seed in seeds:
            began = time.process_time()
            found = cluster(method, table.X, X, planted.n_clusters, seed)
            seconds.append(time.process_time() - began)
            z, grade = found if isinstance(found, tuple) else (found, None)
            aris.append(adjusted_rand(table.labels, z))
            counts.append(len(np.unique(z)))
            grades.append(grade)
        out[method] = {
            "ari": statistics.mean(aris),
            "aris": aris,
            "n_clusters": statistics.mean(counts),
            "cpu_s": statistics.mean(seconds),
            **({"grades": grades} if method == "partita" else {}),
        }
    oracle = adjusted_rand(table.labels, table.oracle)
    return {"planted": planted._asdict(), "oracle": oracle, "methods": out}
