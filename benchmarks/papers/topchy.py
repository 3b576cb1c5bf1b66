"""Topchy, Jain and Punch (2004), tables 1 and 5 to 8 and figures 3 and 4: error rates of five consensus functions.

Table 1: twelve objects in four clusterings, the posteriors of EM after six iterations and at convergence beside the
printed ones, from many single starts (the paper's start is not known).

Errors are in percent, with clusters matched to classes by the Hungarian method, as means over independent runs.
Members are k-means clusterings of the raw columns from one random start each; EM and QMI take the best of three starts
by their objective; the graph methods have the imbalance of 5% of the paper's programs. Half-rings and spirals are
generated from the paper's description (their points are not published), so the printed figures show the level to
expect. Two of the five sets, "Galaxy" and "Biochemistry" (tables 3, 4 and 8, figure 3), are not available: pendigits
(10,992 objects, ten classes) replaces them, and its figures cannot be compared with the printed ones.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.processes import ROOT, in_own_process

METHODS = ("EM", "QMI", "CSPA", "HGPA", "MCLA")
LARGE, LARGE_H = "pendigits", 20
LARGE_K = (6, 8, 10, 12, 15, 20, 30)
NOT_DRAWN = "HGPA"  # far above the others: it would flatten them
DELETED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
DELETED_FROM = {"iris": ((5, 3), (10, 3)), LARGE: ((5, 10), (10, 10), (5, 15), (10, 15))}
NAMES = {"half_rings_400_generated": "table_5", "two_spirals_200_generated": "table_6", "iris": "table_7"}
N_STARTS, EARLY, FIRST, LATE = 100, 6, 10, 200  # iterations: as printed, looked at, of a run
TABLE_1 = {  # labels of each object in the four clusterings, and E[z_1] after six iterations as printed
    "y1": ("2BXb", 0.999),
    "y2": ("2AXa", 0.997),
    "y3": ("2AYb", 0.943),
    "y4": ("2BXb", 0.999),
    "y5": ("1AXb", 0.999),
    "y6": ("2AYb", 0.943),
    "y7": ("2BYa", 0.124),
    "y8": ("1BYa", 0.019),
    "y9": ("1BYb", 0.260),
    "y10": ("1AYa", 0.115),
    "y11": ("2BYa", 0.124),
    "y12": ("1BYa", 0.019),
}
PRINTED_CONSENSUS = (1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2)
PRINTED_KMEANS = {
    "table_5": 25.6,
    "table_6": 43.5,
    "table_7": 15.1,
}  # mean error of a member, the paper's table 2
# (H, k): errors of EM, QMI, CSPA, HGPA, MCLA as printed
PRINTED = {
    "half_rings_400_generated": {
        (5, 2): (25.4, 25.4, 25.5, 50.0, 25.4),
        (5, 3): (24.0, 36.8, 26.2, 48.8, 25.1),
        (10, 2): (26.7, 33.2, 28.6, 50.0, 23.7),
        (10, 3): (33.5, 39.7, 24.9, 26.0, 24.2),
        (30, 2): (26.9, 40.6, 26.2, 50.0, 26.0),
        (30, 3): (29.3, 35.9, 26.2, 27.5, 26.2),
        (50, 2): (27.2, 32.3, 29.5, 50.0, 21.1),
        (50, 3): (28.8, 35.3, 25.0, 24.8, 24.6),
    },
    "two_spirals_200_generated": {
        (5, 2): (43.5, 43.6, 43.9, 50.0, 43.8),
        (5, 3): (41.1, 41.3, 39.9, 49.5, 40.5),
        (5, 5): (41.2, 41.0, 40.0, 43.0, 40.0),
        (5, 7): (45.9, 45.4, 45.4, 42.4, 43.7),
        (5, 10): (47.3, 45.4, 47.7, 46.4, 43.9),
        (10, 2): (43.4, 43.7, 44.0, 50.0, 43.9),
        (10, 3): (36.9, 40.0, 39.0, 49.2, 41.7),
        (10, 5): (38.6, 39.4, 38.3, 40.6, 38.9),
        (10, 7): (46.7, 46.7, 46.2, 43.0, 45.7),
        (10, 10): (46.7, 45.6, 47.7, 47.1, 42.4),
        (20, 2): (43.3, 43.6, 43.8, 50.0, 43.9),
        (20, 3): (40.7, 40.2, 37.1, 49.3, 40.0),
        (20, 5): (38.6, 39.5, 38.2, 40.0, 38.1),
        (20, 7): (45.9, 47.6, 46.7, 44.4, 44.2),
        (20, 10): (48.2, 47.2, 48.7, 47.3, 42.2),
    },
    "iris": {
        (5, 3): (11.0, 14.7, 11.2, 41.4, 10.9),
        (10, 3): (10.8, 10.8, 11.3, 38.2, 10.9),
        (15, 3): (10.9, 11.9, 9.8, 42.8, 11.1),
        (20, 3): (10.9, 14.5, 9.8, 39.1, 10.9),
        (30, 3): (10.9, 12.8, 7.9, 43.4, 11.3),
        (40, 3): (11.0, 12.4, 7.7, 41.9, 11.1),
        (50, 3): (10.9, 13.8, 7.9, 42.7, 11.2),
    },
}


def run(*, full: bool, repeats: int) -> dict:
    n_runs, n_large, rows = (20, 10, None) if full else (3, 2, 1000)
    summary: dict[str, Any] = {"table_1": in_own_process(table_1, n_starts=N_STARTS)}
    show_table_1(summary["table_1"])
    for name, printed in PRINTED.items():
        shapes = list(printed) if full else list(printed)[:2]
        found = in_own_process(complete, name=name, shapes=shapes, n_runs=n_runs, methods=METHODS, rows=None)
        summary[NAMES[name]] = table(found, printed)
        show(f"{NAMES[name]}, {name}", summary[NAMES[name]])
    shapes = [(LARGE_H, k) for k in (LARGE_K if full else LARGE_K[2:4])]
    without = [method for method in METHODS if method != "CSPA"]  # as in the paper: it compares all pairs
    found = in_own_process(complete, name=LARGE, shapes=shapes, n_runs=n_large, methods=without, rows=rows)
    summary["figure_3"] = table(found, {})
    show(f"figure 3, on {LARGE}", summary["figure_3"])
    summary["figure_4_and_table_8"] = {}
    for name, shapes in DELETED_FROM.items():
        runs, most = (n_runs, None) if name == "iris" else (n_large, rows)
        found = in_own_process(incomplete, name=name, shapes=list(shapes), n_runs=runs, rows=most)
        summary["figure_4_and_table_8"][name] = found["errors"]
        show_deleted(name, found["errors"])
    if importlib.util.find_spec("matplotlib"):
        draw(summary, ROOT / ("docs/images" if full else "benchmarks/out"))
    return {
        "summary": summary,
        "n_runs": n_runs,
        "n_runs_large": n_large,
        "verdicts": verdicts(summary),
        "bars": {},
    }


def table(found: dict, printed: dict) -> list[dict]:
    """A row for each (H, k): means, standard errors and the printed errors by method."""
    rows = []
    for shape in found["shapes"]:
        H, k = shape["H"], shape["k"]
        row = {
            "H": H,
            "k": k,
            "kmeans": shape["kmeans"],
            "ours": shape["means"],
            "standard_errors": shape["errors"],
        }
        if (H, k) in printed:
            row["printed"] = dict(zip(METHODS, printed[H, k], strict=True))
        rows.append(row)
    return rows


def show_table_1(found: dict) -> None:
    n, gaps = found["n_starts"], found["largest_difference"]
    print(
        f"   table 1: log likelihood {found['log_likelihood']:.4f}, reached by {found['reach_it']} of {n} starts; "
        f"the printed consensus from {found['give_printed_consensus']}; posteriors within {gaps['early']:.3f} of print "
        f"after {EARLY} iterations (nearest start), within {gaps['converged']:.3f} at convergence",
        flush=True,
    )


def show(title: str, rows: list[dict]) -> None:
    print(f"   {title}: ours (printed), % of objects in the wrong cluster", flush=True)
    for row in rows:
        cells = [
            f"{method} {mean:4.1f}" + (f" ({row['printed'][method]:4.1f})" if "printed" in row else "")
            for method, mean in row["ours"].items()
        ]
        print(f"     H {row['H']:2} k {row['k']:2}  {'  '.join(cells)}", flush=True)


def show_deleted(name: str, errors: dict) -> None:
    for shape, by_share in errors.items():
        cells = "  ".join(f"{share} {found['mean']:.1f}" for share, found in by_share.items())
        print(f"   EM with labels deleted, {name}, {shape}: {cells}", flush=True)


def verdicts(summary: dict) -> dict[str, str]:
    """Mean distance of ours from print, by table and method."""
    out = {}
    for name in NAMES.values():
        rows = [row for row in summary[name] if "printed" in row]
        gaps = {
            method: statistics.fmean(row["ours"][method] - row["printed"][method] for row in rows)
            for method in METHODS
        }
        out[name] = "ours minus printed: " + ", ".join(f"{method} {gap:+.1f}" for method, gap in gaps.items())
        print(f"   {name}: {out[name]}")
    return out


def draw(summary: dict, folder) -> None:
    """Figure 3 (error against k) and figure 4 (error against the share of labels deleted)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    rows = summary["figure_3"]
    for method in rows[0]["ours"]:
        if method != NOT_DRAWN:
            left.plot([row["k"] for row in rows], [row["ours"][method] for row in rows], "o-", label=method)
    left.set(xlabel="clusters in each member (k)", ylabel="error (%)", title=f"{LARGE}, H = {LARGE_H}")
    for name, errors in summary["figure_4_and_table_8"].items():
        for shape, by_share in errors.items():
            shares = [100 * float(share) for share in by_share]
            right.plot(shares, [found["mean"] for found in by_share.values()], "o-", label=f"{name}, {shape}")
    right.set(xlabel="labels deleted (%)", ylabel="error of EM (%)", ylim=(0, None), title="Labels deleted")
    left.legend(frameon=False, fontsize=8)
    right.legend(frameon=False, fontsize=8, ncols=2, loc=(0.02, 0.52))
    figure.savefig(folder / "topchy_3_4.png", dpi=110)
    plt.close(figure)


# ---- in processes of their own ---------------------------------------------------------------------------------


def table_1(n_starts: int) -> dict:
    """EM on the example from random parameters: posteriors of the first object's cluster, early and at convergence.

    Beside it how often one start of `MixtureConsensus`, which begins from the data, gives the printed consensus.
    """
    import warnings

    import numpy as np

    from partita import MixtureConsensus
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")  # twelve objects are few
    Y = np.array([list(labels) for labels, _ in TABLE_1.values()], dtype=object)
    printed = np.array([posterior for _, posterior in TABLE_1.values()])
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in Y.T], dtype=np.int8).T

    def as_printed(labels) -> bool:
        return adjusted_rand(labels, PRINTED_CONSENSUS) == 1.0

    runs = [em_from_random_parameters(codes, seed) for seed in range(n_starts)]
    best = max(run["log_likelihood"] for run in runs)
    reach = [run["log_likelihood"] > best - 1e-3 for run in runs]
    agree = [as_printed(run["converged"] > 0.5) for run in runs]

    def distance(posterior) -> float:
        return float(np.abs(posterior - printed).max())

    nearest = [min((run["first"][i] for run in runs), key=distance) for i in range(FIRST)]
    posteriors = {
        "early": nearest[EARLY - 1],
        "converged": max(runs, key=lambda run: run["log_likelihood"])["converged"],
    }
    own = [MixtureConsensus(2, n_init=1, random_state=seed).fit_predict(Y) for seed in range(n_starts)]
    return {
        "n_starts": n_starts,
        "log_likelihood": round(best, 4),
        "reach_it": sum(reach),
        "give_printed_consensus": sum(agree),
        "reach_it_and_give_printed_consensus": sum(a and b for a, b in zip(reach, agree, strict=True)),
        "own_starts_give_printed_consensus": sum(map(as_printed, own)),
        "posteriors": {when: [round(float(p), 4) for p in found] for when, found in posteriors.items()},
        "largest_difference": {when: round(distance(found), 4) for when, found in posteriors.items()},
        "nearest_by_iteration": {i: round(distance(found), 4) for i, found in enumerate(nearest, 1)},
    }


def em_from_random_parameters(codes, seed: int) -> dict:
    """Posteriors of the first object's cluster after the first iterations and after many, and the log likelihood."""
    import numpy as np

    from partita.engines.climb import em
    from partita.engines.passes.rows import Parameters, collect, label_rows, plug_in
    from partita.families import FAMILIES
    from partita.families.contract import draw
    from partita.partitions import FiniteDirichlet

    n, n_members = codes.shape
    weights = np.ones(n)
    blocks = [FAMILIES["categorical"].block(codes, range(n_members), weights, n_levels=[2] * n_members)]
    uniform = blocks[0].family._replace(alpha=np.ones(n_members))
    theta = draw(uniform, np.zeros((3 * n_members, 2)), np.random.default_rng(seed))
    start = collect(blocks, weights, Parameters(np.log([0.5, 0.5]), (theta,)))
    state = em.init(blocks, FiniteDirichlet(2.0, 2), start, maximum_likelihood=True)
    first = []
    for iteration in range(1, LATE + 1):
        state = em.step(state, blocks, weights)
        if iteration <= FIRST or iteration == LATE:
            R, _ = label_rows(plug_in(blocks, em.parameters(state)), n, 2)
            first.append(R[:, R[0].argmax()])
    return {"first": first[:FIRST], "converged": first[-1], "log_likelihood": float(state.objective)}


def complete(name: str, shapes: list, n_runs: int, methods: list[str], rows: int | None) -> dict:
    """Mean errors of the methods over ensembles of H members with k clusters each."""
    import numpy as np

    X, classes = read(name, rows)
    n_classes = len(np.unique(classes))
    out = []
    for H, k in shapes:
        errors: dict[str, list[float]] = {method: [] for method in methods}
        members: list[float] = []
        for seed in range(n_runs):
            Y = kmeans_members(X, H, k, seed)
            if k == n_classes:
                members += [wrong(classes, member) for member in Y.T]
            for method in methods:
                labels = consensus_functions()[method](n_classes, seed).fit_predict(Y)
                errors[method].append(wrong(classes, labels))
        shape = {"H": H, "k": k, "kmeans": round(statistics.fmean(members), 1) if members else None}
        shape["means"] = {method: round(statistics.fmean(values), 1) for method, values in errors.items()}
        shape["errors"] = {
            method: round(statistics.stdev(values) / n_runs**0.5, 2) for method, values in errors.items()
        }
        out.append(shape)
    return {"shapes": out}


def incomplete(name: str, shapes: list, n_runs: int, rows: int | None) -> dict:
    """EM on ensembles from which labels were deleted, a share of every member's."""
    import numpy as np

    X, classes = read(name, rows)
    n_classes = len(np.unique(classes))
    out: dict[str, dict] = {}
    for H, k in shapes:
        found: dict[float, list[float]] = {share: [] for share in DELETED}
        for seed in range(n_runs):
            Y = kmeans_members(X, H, k, seed)
            ranks = np.argsort(np.random.default_rng([seed, 2]).random(Y.shape), axis=0)
            for share in DELETED:
                holes = np.where(ranks < share * len(Y), -1, Y)
                labels = consensus_functions()["EM"](n_classes, seed).fit_predict(holes)
                known = labels >= 0  # an object that lost its labels in every member has none
                found[share].append(wrong(classes[known], labels[known]))
        out[f"H = {H}, k = {k}"] = {
            str(share): {
                "mean": round(statistics.fmean(values), 2),
                "standard_error": round(statistics.stdev(values) / n_runs**0.5, 2),
            }
            for share, values in found.items()
        }
    return {"errors": out}


def read(name: str, rows: int | None):
    """The raw columns and the classes, of the first rows of a random order where a number is given."""
    import warnings

    import numpy as np

    from benchmarks.data import load_benchmark

    warnings.simplefilter("ignore")  # missing labels are what is studied here
    data = load_benchmark(name)
    keep = np.random.default_rng(0).permutation(len(data.X))[:rows]
    return np.asarray(data.X, float)[keep], data.target[keep]


def kmeans_members(X, H: int, k: int, seed: int):
    import numpy as np
    from sklearn.cluster import KMeans

    return np.column_stack(
        [KMeans(k, init="random", n_init=1, random_state=1000 * seed + h).fit_predict(X) for h in range(H)]
    )


def consensus_functions() -> dict[str, Callable[[int, int], Any]]:
    from partita import CSPA, HGPA, MCLA, QMI, MixtureConsensus

    return {
        "EM": lambda K, seed: MixtureConsensus(K, n_init=3, random_state=seed),
        "QMI": lambda K, seed: QMI(K, n_init=3, random_state=seed),
        "CSPA": lambda K, seed: CSPA(K, balance=0.05, identical="apart", random_state=seed),
        "HGPA": lambda K, seed: HGPA(K, balance=0.05, identical="apart", random_state=seed),
        "MCLA": lambda K, seed: MCLA(K, balance=0.05, random_state=seed),
    }


def wrong(classes, labels) -> float:
    from partita.metrics import error_rate

    return 100 * error_rate(classes, labels)
