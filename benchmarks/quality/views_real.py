"""`CrossCat` and `OverlappingViews` on six tables with two or three known groupings.

The tables are those of `view_tables`. The score is the NMI (geometric mean) between each known grouping and the view
that is matched to it, one to one; "best" is the NMI with the best view, which may be the same for several groupings.
CrossCat, OverlappingViews and lace are given nothing (the former two a limit of time, two chains instead of four, and
one search instead of up to three; lace no constant columns, which it refuses); orthogonal views and
decorrelated k-means are given the numbers of views and clusters, k-means of all columns the number of clusters of the
grouping. The oracle is k-means of the columns that depend on the grouping and no other; where these are not known, of
the columns of which the known grouping explains most, with the number of columns that gives the largest NMI. Views with
a single cluster do not count.

The result of each fit is stored when it is done: the same command goes on from there if a run was ended (`parts`).
"""

from __future__ import annotations

import importlib.util
import statistics

from benchmarks.parts import Parts
from benchmarks.processes import stopwatch

METHODS = ("crosscat", "overlapping", "lace", "orthogonal", "decorrelated", "kmeans", "oracle")
WITHOUT_NUMBERS = ("crosscat", "overlapping", "lace")
SEEDS = (0,)
N_ROWS = 300  # of each table: CPU time is scarce where this benchmark is run
TIME_LIMIT = 300.0  # wall seconds of one fit of partita
OPTIONS = {
    "crosscat": {"n_chains": 2},
    "overlapping": {"n_init": 1},
}  # fewer chains and searches: CPU time again
SMALL = {"tables": ("stick_figures", "survey"), "n_rows": 120, "seeds": (0,)}
SMALL_CHAINS = {"n_chains": 1, "n_draws": 2, "burn_in": 2, "time_limit": 120.0}
SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)  # of the columns, for the oracle where they are not known
MIN_SHARE_OF_ORACLE = 0.8
FIGURES_BAR = 0.95  # NMI of both groupings of the stick figures


def run(*, full: bool, repeats: int) -> dict:
    from benchmarks.quality.view_tables import TABLES

    methods = [m for m in METHODS if m != "lace" or importlib.util.find_spec("lace")]
    tables, seeds = (TABLES, SEEDS) if full else (SMALL["tables"], SMALL["seeds"])
    parts = Parts("views_real")
    found: dict[str, dict] = {}
    for table in tables:
        rows: dict[str, list[dict]] = {}
        for method in methods:
            rows[method] = [
                parts.run(fit_one, table=table, method=method, seed=seed, full=full) for seed in seeds
            ]
            if "skipped" in rows[method][0]:
                print(f"   {table}: skipped, {rows[method][0]['skipped']}", flush=True)
                break
            for one in rows[method]:
                print(f"   {table:13} {method:12} {in_words(one)}", flush=True)
        else:
            found[table] = rows
    summary = {table: summarize(rows) for table, rows in found.items()}
    parts.forget()
    return {
        "time_limit": TIME_LIMIT,
        "max_rows": N_ROWS if full else SMALL["n_rows"],
        "n_seeds": len(seeds),
        "runs": found,
        "summary": summary,
        "bars": bars(summary) if full else {},
    }


def summarize(rows: dict[str, list[dict]]) -> dict:
    """The mean NMI over the seeds per grouping and method; views, clusters and CPU seconds per method."""
    first = next(iter(rows.values()))[0]
    return {
        "n_rows": first["n_rows"],
        "n_columns": first["n_columns"],
        "kinds": first["kinds"],
        "groups": {
            name: {"n_groups": n, "nmi": means(rows, "nmi", name), "best": means(rows, "best", name)}
            for name, n in first["n_groups"].items()
        },
        "methods": {
            method: {
                "n_views": [one["n_views"] for one in found],
                "clusters": "; ".join(clusters_in_words(one["clusters"]) for one in found),
                "cpu_s": round(statistics.mean(one["cpu_s"] for one in found), 1),
                "stopped": sum(one["stopped"] for one in found),
            }
            for method, found in rows.items()
        },
    }


def means(rows: dict[str, list[dict]], score: str, grouping: str) -> dict[str, float]:
    """Of a score over the seeds, per method."""
    return {
        method: round(statistics.mean(one[score][grouping] for one in found), 4)
        for method, found in rows.items()
    }


def clusters_in_words(clusters: list[int]) -> str:
    """Numbers of clusters per view, or their range if there are many views."""
    if len(clusters) <= 4:
        return ", ".join(map(str, clusters)) or "none"
    return f"{min(clusters)} to {max(clusters)}"


def in_words(one: dict) -> str:
    scores = ", ".join(f"{name} {value:.2f} ({one['best'][name]:.2f})" for name, value in one["nmi"].items())
    late = ", stopped by the time limit" if one["stopped"] else ""
    return f"{scores}; {one['n_views']} views of {clusters_in_words(one['clusters'])}, {one['cpu_s']:.1f} s{late}"


def bars(summary: dict) -> dict[str, bool]:
    out = {}
    for table, one in summary.items():
        for name, group in one["groups"].items():
            best = max(group["nmi"]["crosscat"], group["nmi"]["overlapping"])
            if table == "stick_figures":
                out[f"{table}, {name}: NMI at least {FIGURES_BAR}"] = best >= FIGURES_BAR
            elif table not in ("faces", "web_pages"):
                least = MIN_SHARE_OF_ORACLE * group["nmi"]["oracle"]
                out[f"{table}, {name}: NMI at least {MIN_SHARE_OF_ORACLE} of the oracle"] = best >= least
    return out


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit_one(table: str, method: str, seed: int, full: bool) -> dict:
    """One method on one table."""
    import warnings

    import numpy as np

    from benchmarks.matching import matched_nmi, nmi
    from benchmarks.quality.view_tables import load_known_views

    warnings.simplefilter("ignore")
    try:
        known = load_known_views(table, N_ROWS if full else SMALL["n_rows"])
    except FileNotFoundError as error:
        return {"skipped": str(error)}
    if method in ("crosscat", "overlapping"):
        fit_views(method, known._replace(X=known.X[:40, :5]), seed, full=False)  # loads the compiled code
    with stopwatch() as watch:
        labels, more = fit(method, known, seed, full)
    labels = labels[:, np.ptp(labels, axis=0) > 0]
    truths = list(known.labels.values())
    matched = matched_nmi(truths, labels)
    best = [max((nmi(z, view) for view in labels.T), default=0.0) for z in truths]
    return {
        "nmi": dict(zip(known.labels, matched.round(4).tolist())),
        "best": dict(zip(known.labels, np.round(best, 4).tolist())),
        "n_views": int(labels.shape[1]),
        "clusters": [len(np.unique(view)) for view in labels.T],
        "cpu_s": round(watch["cpu_s"], 2),
        "n_rows": len(known.X),
        "n_columns": known.X.shape[1],
        "n_groups": known.n_groups,
        **{"kinds": {}, "stopped": False, **more},
    }


def fit(method: str, known, seed: int, full: bool):
    """Labels (rows x views), and what else is reported of the fit."""
    import numpy as np

    from partita import DecorrelatedKMeans, OrthogonalViews

    sizes = list(known.n_groups.values())
    if method in ("crosscat", "overlapping"):
        return fit_views(method, known, seed, full)
    if method == "lace":
        from benchmarks.papers.ofv import fit_lace

        return fit_lace(known.X[:, np.ptp(known.X, axis=0) > 0], seed), {}
    A = on_one_scale(known.X)
    if method == "orthogonal":
        return OrthogonalViews(sizes, len(sizes), random_state=seed).fit(A).view_labels_, {}
    if method == "decorrelated":
        return DecorrelatedKMeans(sizes, len(sizes), random_state=seed).fit(A).view_labels_, {}
    chosen = kmeans if method == "kmeans" else oracle
    return np.column_stack(
        [chosen(A, z, known.columns.get(name), seed) for name, z in known.labels.items()]
    ), {}


def fit_views(method: str, known, seed: int, full: bool):
    """CrossCat or OverlappingViews; small runs have short chains."""
    from collections import Counter

    from partita import CrossCat, OverlappingViews

    estimator = {"crosscat": CrossCat, "overlapping": OverlappingViews}[method]
    options = {"time_limit": TIME_LIMIT} | OPTIONS[method] if full else SMALL_CHAINS
    frame = {f"c{j}": known.X[:, j] for j in range(known.X.shape[1])}
    model = estimator(random_state=seed, **options).fit(frame)
    more = {"kinds": dict(Counter(model.schema_.kinds)), "stopped": not model.converged_}
    return model.view_labels_[:, model.counted_views_], more


def on_one_scale(X):
    """Floats for k-means; counts of words as square roots of their shares in the page."""
    import numpy as np

    from benchmarks.papers.ofv_real import shares

    if X.dtype.kind == "i" and X.min() == 0:
        return shares(X)
    return np.asarray(X, dtype=float)


def kmeans(A, z, columns, seed: int):
    """Of all columns, with the number of groups."""
    from sklearn.cluster import KMeans

    return KMeans(int(z.max()) + 1, n_init=10, random_state=seed).fit_predict(A)


def oracle(A, z, columns, seed: int):
    """k-means of the columns of a grouping, or of those that it explains best."""
    import numpy as np

    from benchmarks.matching import nmi

    if columns is not None:
        return kmeans(A[:, columns], z, None, seed)
    order = np.argsort(-explained(A, z))
    fits = [kmeans(A[:, order[: max(int(s * len(order)), 2)]], z, None, seed) for s in SHARES]
    return max(fits, key=lambda labels: nmi(z, labels))


def explained(A, z):
    """The share of the variance of each column that is between the groups."""
    import numpy as np

    member = np.eye(int(z.max()) + 1)[z]
    sizes = np.maximum(member.sum(axis=0), 1.0)
    means = member.T @ A / sizes[:, None]
    between = (sizes[:, None] * (means - A.mean(axis=0)) ** 2).sum(axis=0)
    return between / np.maximum(len(A) * A.var(axis=0), 1e-12)
