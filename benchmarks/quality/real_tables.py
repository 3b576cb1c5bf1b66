"""The default `Mixture` on ordinary labelled tables, beside what users would pick instead.

Adjusted Rand index to the classes, |K - number of classes|, agreement of two seeds, CPU seconds. Classes are what
somebody once wrote down: no method is expected to reach 1, and the mean over tables says which default is the better
one. Methods that are given the number of classes are shown for comparison. `--full` confirms the result on tables that
were kept apart while the default was chosen.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from benchmarks.processes import in_own_process
from benchmarks.quality.labeled_tables import KEPT_APART, SEEN_ONCE, TABLES

SMALL = ("iris", "wine", "seeds")
FREE = ("partita", "ensemble", "kmeans_silhouette", "gmm_bic", "bayesian_gmm", "hdbscan")
GIVEN_K = ("kmeans_k", "gmm_k", "ward_k")
# other levels of partita's answer: the one that agrees best with an ensemble of k-means clusterings, the alternative
# nearest to the classes (what a user's choice is worth), and the one whose band of K contains the number of classes
ALTERNATIVES = ("partita_agreed", "partita_choice", "partita_band")
SEEDS = (0, 1)
RIDGE = 1e-3
MOST_CLUSTERS = 15  # that silhouette and BIC are compared over


def run(*, full: bool, repeats: int) -> dict:
    tables = (*TABLES, *SEEN_ONCE, *KEPT_APART) if full else SMALL
    found: dict[str, dict] = {}
    skipped = []
    for name in tables:
        try:
            found[name] = in_own_process(fit_all, name=name)
        except RuntimeError as error:
            if "No module named" not in str(error) and "PARTITA_DATA" not in str(error):
                raise
            skipped.append(name)
            print(f"   {name}: skipped, its data are not here", flush=True)
            continue
        text = ", ".join(
            f"{m} {r['ari']:.2f}/{r['n_clusters']:.0f}" for m, r in found[name]["methods"].items()
        )
        print(f"   {name}: {found[name]['n_classes']} classes; {text}", flush=True)
    summary = {
        "tables": _summary({name: one for name, one in found.items() if name in TABLES}),
        "seen_once": _summary({name: one for name, one in found.items() if name in SEEN_ONCE}),
        "kept_apart": _summary({name: one for name, one in found.items() if name in KEPT_APART}),
    }
    for part, methods in summary.items():
        _show(part, methods)
    grades = _by_grade(found)
    print("   by grade:", grades, flush=True)
    return {"found": found, "skipped": skipped, "summary": summary, "by_grade": grades}


def _summary(found: dict[str, dict]) -> dict[str, dict]:
    if not found:
        return {}
    out = {}
    for method in (*FREE, *GIVEN_K, *ALTERNATIVES):
        runs = [one["methods"][method] for one in found.values()]
        behind = [one["methods"]["partita"]["ari"] - one["methods"][method]["ari"] for one in found.values()]
        error = statistics.stdev(behind) / math.sqrt(len(behind)) if len(behind) > 1 else math.nan
        out[method] = {
            "ari": round(statistics.mean(r["ari"] for r in runs), 4),
            "off_k": round(
                statistics.mean(
                    abs(r["n_clusters"] - one["n_classes"]) for r, one in zip(runs, found.values())
                ),
                2,
            ),
            "between_seeds": round(statistics.mean(r["between_seeds"] for r in runs), 3),
            "cpu_s": round(statistics.median(r["cpu_s"] for r in runs), 3),
            "partita_ahead": round(statistics.mean(behind), 4),
            "standard_error": round(error, 4),
        }
    return out


def _by_grade(found: dict[str, dict]) -> dict[str, dict]:
    """Agreement with the classes by the grade of the answer, beside that of the ensemble on the same tables."""
    grades: dict[str, list[tuple[float, float]]] = {}
    for one in found.values():
        own, other = one["methods"]["partita"], one["methods"]["ensemble"]
        for grade, ari, of_ensemble in zip(own["grades"], own["aris"], other["aris"]):
            grades.setdefault(grade or "none", []).append((ari, of_ensemble))
    out = {}
    for grade, pairs in sorted(grades.items()):
        aris, others = zip(*pairs)
        ahead = [a - b for a, b in pairs]
        error = statistics.stdev(ahead) / math.sqrt(len(ahead)) if len(ahead) > 1 else math.nan
        out[grade] = {
            "n": len(pairs),
            "ari": round(statistics.mean(aris), 3),
            "worst": round(min(aris), 3),
            "ensemble": round(statistics.mean(others), 3),
            "ahead": round(statistics.mean(ahead), 3),
            "standard_error": round(error, 3),
        }
    return out


def _show(part: str, methods: dict[str, dict]) -> None:
    for method, r in methods.items():
        print(
            f"   {part:10} {method:18} ARI {r['ari']:.3f}  |K - C| {r['off_k']:5.1f}  seeds {r['between_seeds']:.2f}  "
            f"CPU {r['cpu_s']:.2f} s  partita ahead {r['partita_ahead']:+.3f} ({r['standard_error']:.3f})",
            flush=True,
        )


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit_all(name: str) -> dict:
    """All methods on one table."""
    import time
    import warnings

    import numpy as np
    from sklearn.preprocessing import StandardScaler

    from benchmarks.quality.labeled_tables import load_table
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    table = load_table(name)
    X = StandardScaler().fit_transform(table.numbers)
    n_classes = len(np.unique(table.classes))
    make_partita(0).fit(table.frame)  # compiled code is loaded here
    methods: dict[str, Any] = {}
    fitted: dict[int, Any] = {}  # by seed: alternatives are of the same fit
    for method in (*FREE, *GIVEN_K, *ALTERNATIVES):
        aris, counts, seconds, labels, grades = [], [], [], [], []
        for seed in SEEDS:
            began = time.process_time()
            if method == "partita":
                fitted[seed] = make_partita(seed).fit(table.frame)
                found = fitted[seed].labels_, getattr(fitted[seed].diagnostics_, "grade", None)
            elif method in ALTERNATIVES:
                found = choose_alternative(method, table, fitted[seed])
            else:
                found = cluster(method, table.frame, X, n_classes, seed)
            seconds.append(time.process_time() - began)
            z, grade = found if isinstance(found, tuple) else (found, None)
            aris.append(adjusted_rand(table.classes, z))
            counts.append(len(np.unique(z)))
            labels.append(z)
            grades.append(grade)
        methods[method] = {
            "ari": statistics.mean(aris),
            "aris": aris,
            "n_clusters": statistics.mean(counts),
            "between_seeds": adjusted_rand(*labels),
            "cpu_s": methods["partita"]["cpu_s"] if method in ALTERNATIVES else statistics.mean(seconds),
            **({"grades": grades} if method == "partita" else {}),
        }
    return {"n_classes": n_classes, "n_rows": len(X), "n_columns": X.shape[1], "methods": methods}


def make_partita(seed: int):
    """The default."""
    from partita import Mixture

    return Mixture(random_state=seed)


def choose_alternative(method: str, table, model):
    """Labels of another level of the default, or its answer where it has none."""
    import numpy as np

    from partita.metrics import adjusted_rand
    from partita.posterior.grain import BANDS

    if method == "partita_agreed":
        return model.labels_ if model.grain_.agreed is None else model.at("agreed").labels
    offered = model.alternatives_
    if not offered:
        return model.labels_
    if method == "partita_choice":
        return max((one.labels for one in offered), key=lambda z: adjusted_rand(table.classes, z))
    n_classes = len(np.unique(table.classes))
    inside = [one for one in offered if n_classes <= (BANDS[one.name][1] or n_classes)]
    return (inside or offered[-1:])[0].labels


def cluster(method: str, frame, X, n_classes: int, seed: int):
    """Labels by one method (and the grade of the answer, by partita)."""
    import numpy as np
    from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
    from sklearn.metrics import silhouette_score
    from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

    from partita import EnsembleClustering

    def kmeans(K):
        return KMeans(K, n_init=10, random_state=seed).fit_predict(X)

    if method == "partita":
        model = make_partita(seed).fit(frame)
        return model.labels_, getattr(model.diagnostics_, "grade", None)
    if method == "ensemble":
        return EnsembleClustering(random_state=seed).fit_predict(frame)
    if method == "kmeans_silhouette":
        return max((kmeans(K) for K in range(2, MOST_CLUSTERS + 1)), key=lambda z: silhouette_score(X, z))
    if method == "gmm_bic":
        fits = [GaussianMixture(K, random_state=seed).fit(X) for K in range(1, MOST_CLUSTERS + 1)]
        return min(fits, key=lambda model: model.bic(X)).predict(X)
    if method == "bayesian_gmm":
        mixture = BayesianGaussianMixture(n_components=30, max_iter=500, random_state=seed)
        try:
            return mixture.fit_predict(X)
        except (
            ValueError
        ):  # columns that follow from others: the prior, the covariance of all rows, is singular
            covariance = np.cov(X.T) + RIDGE * np.eye(X.shape[1])
            return mixture.set_params(covariance_prior=covariance).fit_predict(X)
    if method == "hdbscan":
        return HDBSCAN(5, copy=True).fit_predict(X) + 1  # noise is one more cluster
    if method == "kmeans_k":
        return kmeans(n_classes)
    if method == "gmm_k":
        return GaussianMixture(n_classes, n_init=3, random_state=seed).fit_predict(X)
    return AgglomerativeClustering(n_classes).fit_predict(X)
