"""Xie et al. (2013), tables 2 and 3 and figures 2 and 3: LACA beside evidence accumulation and the graph methods.

Ensembles as in the paper: 200 k-means clusterings of random subsets of the columns (3 to all of them), k from 2 to
n / 15, 30 ensembles per set; of pendigits, 100 objects of each class. Columns are raw, not standardized: the paper does
not say which, and raw columns come nearer to its figures on iris. EAC-AL is average linkage on the co-associations,
cut at the longest lifetime.

Tables 2 and 3: numbers of clusters of LACA and EAC-AL, pairwise F and NMI (by the geometric mean) with the classes.
Figures 2 and 3: F and NMI with k given, five values from the number of classes to three times that number (the paper
takes every k), for k-LACA, average linkage, and CSPA, HGPA and MCLA with the imbalance of 5% of Strehl and Ghosh. The
printed figures are curves without numbers; the paper says that k-LACA is better or at least competitive on almost all
sets, except for NMI on pima.
"""

from __future__ import annotations

import importlib.util
import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.processes import ROOT, in_own_process

SETS = ("iris", "glass", "ecoli", "libras", "segmentation_210", "seeds", "pima", "pendigits")
N_MEMBERS, PER_CLASS, PROCESSES = 200, 100, 2
SCORES = ("f", "nmi")
TIMES_CLASSES = (1.0, 1.5, 2.0, 2.5, 3.0)
WITH_K = ("k-LACA", "EAC-AL", "CSPA", "HGPA", "MCLA")
# min, max, mean and standard deviation of the numbers of clusters; F; NMI
PRINTED = {
    "iris": {"LACA": (3, 4, 3.73, 0.45, 0.8533, 0.7535), "EAC-AL": (2, 4, 2.73, 0.98, 0.7995, 0.7528)},
    "glass": {"LACA": (5, 6, 5.03, 0.18, 0.5502, 0.3869), "EAC-AL": (2, 6, 4.40, 1.65, 0.5395, 0.3614)},
    "ecoli": {"LACA": (3, 5, 3.73, 0.83, 0.7693, 0.6790), "EAC-AL": (3, 12, 4.30, 2.37, 0.7545, 0.6712)},
    "libras": {"LACA": (7, 9, 7.70, 0.70, 0.4267, 0.5014), "EAC-AL": (6, 21, 11.50, 5.54, 0.4470, 0.5333)},
    "segmentation_210": {
        "LACA": (5, 7, 5.23, 0.57, 0.6091, 0.6052),
        "EAC-AL": (2, 13, 2.53, 2.08, 0.4091, 0.4617),
    },
    "seeds": {"LACA": (4, 5, 4.40, 0.50, 0.8423, 0.6680), "EAC-AL": (2, 7, 4.53, 0.97, 0.8333, 0.6613)},
    "pima": {"LACA": (4, 10, 8.70, 1.06, 0.3751, 0.0674), "EAC-AL": (4, 30, 11.80, 8.04, 0.3597, 0.0665)},
    "pendigits": {
        "LACA": (10, 16, 14.03, 1.75, 0.7712, 0.7721),
        "EAC-AL": (4, 48, 20.53, 12.27, 0.6809, 0.7389),
    },
}
RIVALS = WITH_K[1:]
FIGURES_OF_TABLES = ("min", "max", "mean", "deviation", "f", "nmi")


def run(*, full: bool, repeats: int) -> dict:
    n_ensembles = 30 if full else 3
    sets = SETS if full else SETS[:2]

    def one_set(name: str) -> tuple[str, dict]:
        return name, in_own_process(compare, name=name, n_ensembles=n_ensembles)

    found: dict[str, dict] = {}
    with ThreadPoolExecutor(PROCESSES) as pool:
        for name, result in pool.map(one_set, sets):
            found[name] = result
            show(name, result)
    summary = {
        "tables_2_and_3": {name: with_printed(name, result["free"]) for name, result in found.items()},
        "figures_2_and_3": {name: result["told"] for name, result in found.items()},
    }
    if importlib.util.find_spec("matplotlib"):
        draw(summary["figures_2_and_3"], ROOT / ("docs/images" if full else "benchmarks/out"))
    verdict = verdicts(summary)
    for line in verdict.values():
        print(f"   {line}")
    return {"summary": summary, "n_ensembles": n_ensembles, "verdicts": verdict, "bars": {}}


def with_printed(name: str, free: dict) -> dict:
    return {
        method: {
            "ours": ours,
            "printed": dict(zip(FIGURES_OF_TABLES, PRINTED[name][method], strict=True)),
        }
        for method, ours in free.items()
    }


def show(name: str, result: dict) -> None:
    for method, ours in result["free"].items():
        printed = PRINTED[name][method]
        print(
            f"   {name:17} {method:7} K {ours['min']}-{ours['max']}, mean {ours['mean']:.2f} ({printed[2]:.2f}), "
            f"deviation {ours['deviation']:.2f} ({printed[3]:.2f}), F {ours['f']:.3f} ({printed[4]:.3f}), "
            f"NMI {ours['nmi']:.3f} ({printed[5]:.3f})",
            flush=True,
        )
    by_k = result["told"]
    cells = "  ".join(f"{method} {statistics.fmean(by_k[method]['nmi']):.3f}" for method in WITH_K)
    print(f"   {name:17} NMI with k given, mean over k {by_k['k']}: {cells}", flush=True)


def verdicts(summary: dict) -> dict[str, str]:
    """What the paper claims, counted on ours."""
    tables, figures = summary["tables_2_and_3"], summary["figures_2_and_3"]
    ours = {name: {method: both["ours"] for method, both in table.items()} for name, table in tables.items()}
    n = len(ours)

    def count(better) -> str:
        return f"{sum(better(table['LACA'], table['EAC-AL']) for table in ours.values())} of {n} sets"

    out = {
        "stability": "K of LACA spreads less than that of EAC-AL on "
        + count(lambda a, b: a["deviation"] < b["deviation"])
        + " (printed: 8 of 8)",
        "f": f"F of LACA is higher on {count(lambda a, b: a['f'] > b['f'])} (printed: 7 of 8)",
        "nmi": f"NMI of LACA is higher on {count(lambda a, b: a['nmi'] > b['nmi'])} (printed: 7 of 8)",
    }
    for score in ("nmi", "f"):
        for other in RIVALS:
            points, first = no_lower(figures, score, other), no_lower(figures, score, other, at_classes=True)
            out[f"told_{score}_{other}"] = (
                f"{score} of k-LACA is no lower than that of {other} at {sum(points)} of {len(points)} (set, k), with "
                f"k = classes on {sum(first)} of {len(first)} sets"
            )
    return out


def no_lower(figures: dict, score: str, other: str, *, at_classes: bool = False) -> list[bool]:
    """Whether k-LACA is at least as good as another method, at every (set, k) or where k is the number of classes."""
    last = 1 if at_classes else None
    return [
        mine >= theirs
        for figure in figures.values()
        for mine, theirs in zip(figure["k-LACA"][score][:last], figure[other][score][:last], strict=True)
    ]


def draw(figures: dict, folder) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for score, title in (("nmi", "NMI"), ("f", "pairwise F")):
        n_rows = (len(figures) + 3) // 4
        figure, grid = plt.subplots(n_rows, 4, figsize=(12, 3 * n_rows), layout="constrained", squeeze=False)
        for axes in grid.flat[len(figures) :]:
            axes.set_visible(False)
        for axes, (name, by_k) in zip(grid.flat, figures.items(), strict=False):
            for method in WITH_K:
                axes.plot(by_k["k"], by_k[method][score], "o-", markersize=3, label=method)
            axes.set(title=name, xlabel="k")
        grid[0, 0].set_ylabel(title)
        grid[0, 0].legend(frameon=False, fontsize=7)
        figure.savefig(folder / f"laca_{score}.png", dpi=100)
        plt.close(figure)


# ---- in processes of their own ---------------------------------------------------------------------------------


def compare(name: str, n_ensembles: int) -> dict:
    """LACA and EAC-AL by themselves, and all methods with k given."""
    import warnings

    import numpy as np

    from partita import LACA, EvidenceAccumulation
    from partita.ensembles import subspace_ensemble

    warnings.simplefilter("ignore")
    X, classes = read(name)
    n_classes = len(np.unique(classes))
    ks = sorted({round(times * n_classes) for times in TIMES_CLASSES})
    free: dict[str, list[dict]] = {"LACA": [], "EAC-AL": []}
    by_k: dict[str, list[list[dict]]] = {method: [] for method in WITH_K}
    for seed in range(n_ensembles):
        Y = subspace_ensemble(X, N_MEMBERS, random_state=seed, kinds="real", standardize=False)
        fits = {"LACA": LACA(random_state=seed).fit(Y), "EAC-AL": EvidenceAccumulation().fit(Y)}
        for method, fit in fits.items():
            free[method].append(judge(classes, fit.labels_))
        for method, cuts in (("k-LACA", fits["LACA"]), ("EAC-AL", fits["EAC-AL"])):
            by_k[method].append([judge(classes, cut_tree(cuts, k)) for k in ks])
        for method, make in graph_methods().items():
            by_k[method].append([judge(classes, make(k, seed).fit_predict(Y)) for k in ks])
    return {
        "free": {method: in_table(found) for method, found in free.items()},
        "told": {"k": ks} | curves(by_k),
    }


def read(name: str):
    import numpy as np

    from benchmarks.data import load_benchmark

    data = load_benchmark(name)
    X, classes = np.asarray(data.X, float), data.target
    if name == "pendigits":
        rng = np.random.default_rng(0)
        of_class = [rng.permutation(np.flatnonzero(classes == c))[:PER_CLASS] for c in np.unique(classes)]
        X, classes = X[np.concatenate(of_class)], classes[np.concatenate(of_class)]
    return X, classes


def cut_tree(fit: Any, k: int):
    """The labels of the objects when the tree of the distinct rows is cut at k, as k-LACA does after it converged."""
    from scipy.cluster.hierarchy import cut_tree

    return cut_tree(fit.linkage_, k).ravel()[fit.row_leaves_]


def graph_methods() -> dict[str, Any]:
    from partita import CSPA, HGPA, MCLA

    return {
        "CSPA": lambda k, seed: CSPA(k, balance=0.05, identical="apart", random_state=seed),
        "HGPA": lambda k, seed: HGPA(k, balance=0.05, identical="apart", random_state=seed),
        "MCLA": lambda k, seed: MCLA(k, balance=0.05, random_state=seed),
    }


def judge(classes, labels) -> dict:
    import numpy as np

    from partita.metrics import normalized_mutual_info, pairwise_f

    nmi = normalized_mutual_info(classes, labels, average="geometric")
    return {"K": int(np.unique(labels).size), "f": pairwise_f(classes, labels), "nmi": nmi}


def in_table(found: list[dict]) -> dict:
    numbers = [one["K"] for one in found]
    scores = {score: [one[score] for one in found] for score in SCORES}
    return {
        "min": min(numbers),
        "max": max(numbers),
        "mean": round(statistics.fmean(numbers), 2),
        "deviation": round(statistics.stdev(numbers), 2),
        **{score: round(statistics.fmean(values), 4) for score, values in scores.items()},
        **{f"{score}_error": standard_error(values) for score, values in scores.items()},
    }


def curves(by_k: dict) -> dict:
    """Means over the ensembles at each k, and their standard errors."""
    out: dict[str, dict[str, list[float]]] = {}
    for method, found in by_k.items():
        at_each_k = list(zip(*found, strict=True))
        out[method] = {}
        for score in SCORES:
            values = [[one[score] for one in at_k] for at_k in at_each_k]
            out[method][score] = [round(statistics.fmean(of_k), 4) for of_k in values]
            out[method][f"{score}_error"] = [standard_error(of_k) for of_k in values]
    return out


def standard_error(values: list[float]) -> float:
    return round(statistics.stdev(values) / len(values) ** 0.5, 4)
