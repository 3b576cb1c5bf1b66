"""Tables 2 to 7 of the NBCE paper (Wang, Domeniconi and Laskey 2010) beside ours.

Some printed perplexities are below 1 or above the number of labels, which is impossible, so neither they nor their
order can serve as targets. Ours have a stated p(Y). For mixtures (NBCE, MM) it is the sum over clusters at the
posterior means of the label probabilities, with the label counts of MM smoothed by half a count; for BCE the labels of
a row are predicted one by one from the memberships given the labels before. Perplexity is ``exp(-log p(Y) / labels)``.
A label that a member has only among the held-out rows is missing for every method.

Ensembles as in the paper: ten k-means clusterings, k being 50 to 200% of the number of classes in turn; a quarter of
the rows is held out. Synthetic: two clusters with outliers, ten copies of the labels with 5 to 20% noise. NBCE by Gibbs
has the stick-breaking prior truncated at 100; MM and BCE are given the number of classes. Differences are paired: the
perplexity of one method minus that of another on the same rows, with mean and standard error over the data sets.

Table 2 is the F1 of set matching with the classes, on the rows that were not held out. CSPA, HGPA and MCLA are given
the number of classes and cut with an imbalance of 5%; NBCE finds the number of clusters. `Consensus` without
`n_clusters` and NBCE with a finite prior of as many clusters as classes are added, and compared with the best of the
three graph methods on each set by paired t-tests over the sets.

segmentation_210 is the training file of ImageSegmentation, letter_aj700 is our sample of 700 letters, and sets of more
than 600 rows are cut to 600, drawn anew for each seed.
"""

from __future__ import annotations

import statistics
from itertools import combinations

from benchmarks.processes import in_own_process

NOISE = (0.05, 0.10, 0.15, 0.20)
MOST_ROWS, N_MEMBERS, TRUNCATION = 600, 10, 100
TABLE_2 = {  # F1 as printed: best and mean member, CSPA, HGPA, MCLA, NBCE
    "glass": (0.57, 0.51, 0.66, 0.59, 0.61, 0.69),
    "ecoli": (0.61, 0.56, 0.67, 0.65, 0.68, 0.72),
    "segmentation_210": (0.52, 0.42, 0.53, 0.44, 0.59, 0.65),
    "isolet_abcdeg": (0.53, 0.41, 0.59, 0.50, 0.65, 0.66),
    "letter_aj700": (0.48, 0.40, 0.49, 0.50, 0.53, 0.62),
    "trace": (0.49, 0.44, 0.51, 0.62, 0.61, 0.66),
    "control_chart": (0.62, 0.56, 0.73, 0.70, 0.67, 0.77),  # took part in no choice of ours
}
SETS = tuple(TABLE_2)
BESIDE = ("NBCE_told_K", "Consensus")
GRAPH_METHODS = ("CSPA", "HGPA", "MCLA")
TABLE_2_METHODS = ("best_member", "mean_member", *GRAPH_METHODS, "NBCE")
COUNTED = ("NBCE", "Consensus")  # without n_clusters: the numbers that they find are kept
PRINTED = {
    "table_3_synthetic": "NBCE < BCE < MM at every level of noise",
    "table_4_train": "NBCE < BCE < MM on all seven sets",
    "table_5_test": "NBCE < BCE < MM on all seven sets",
    "table_6_singletons": "TSB < FSD on all five sets",
    "table_7_inference": "Gibbs < CVB < VB on all five sets (training)",
}
PRINTED_VALUES = {  # by level of noise, or in the order of the sets; tables 6 and 7 have the first five only
    "table_3_synthetic": {
        "NBCE": (5.63, 8.31, 11.16, 15.87),
        "BCE": (7.92, 9.76, 14.22, 18.98),
        "MM": (10.04, 13.27, 17.36, 21.20),
    },
    "table_4_train": {
        "NBCE": (0.77, 0.92, 1.03, 1.24, 1.76, 2.38, 3.63),
        "BCE": (0.99, 1.10, 1.23, 1.34, 1.98, 2.53, 4.01),
        "MM": (1.02, 1.33, 1.40, 1.63, 2.21, 2.97, 4.34),
    },
    "table_5_test": {
        "NBCE": (0.98, 1.18, 1.16, 1.47, 1.96, 2.62, 4.58),
        "BCE": (1.07, 1.39, 1.37, 1.60, 2.33, 2.94, 4.88),
        "MM": (1.15, 1.51, 1.49, 1.72, 2.51, 3.22, 5.56),
    },
    "table_6_singletons": {
        "NBCE": (0.032, 0.043, 0.032, 0.029, 0.033),
        "NBCE_finite": (0.054, 0.051, 0.035, 0.031, 0.036),
    },
    "table_7_inference": {
        "NBCE": (0.77, 0.92, 1.03, 1.24, 1.76),
        "NBCE_cvb": (0.85, 0.96, 1.06, 1.28, 1.80),
        "NBCE_vb": (0.91, 1.02, 1.11, 1.30, 1.88),
    },
}


def printed_values(key: str) -> dict[str, dict[str, float]]:
    """The printed figures of a table by method and column; nothing where the paper has no such table."""
    columns = [noise_name(share) for share in NOISE] if key == "table_3_synthetic" else SETS
    return {
        method: dict(zip(columns, values, strict=False))
        for method, values in PRINTED_VALUES.get(key, {}).items()
    }


def noise_name(share: float) -> str:
    return f"noise {share:.0%}"


def run(*, full: bool, repeats: int) -> dict:
    seeds = list(range(4 if full else 1))
    chains = {"n_chains": 2, "n_draws": 100 if full else 30, "burn_in": 60 if full else 20}
    real = in_own_process(measure_sets, seeds=seeds, chains=chains)
    noisy = in_own_process(measure_noise, seeds=seeds, chains=chains)
    matched = in_own_process(measure_f1, sets=list(TABLE_2), seeds=seeds, chains=chains)
    summary = {
        "table_2_f1": table_2(matched["rows"]),
        "table_3_synthetic": compared(noisy["rows"], "test", ("NBCE", "BCE", "MM")),
        "table_4_train": compared(real["rows"], "train", ("NBCE", "BCE", "MM")),
        "table_5_test": compared(real["rows"], "test", ("NBCE", "BCE", "MM")),
        "table_6_singletons": compared(real["rows"], "singletons", ("NBCE", "NBCE_finite")),
        "table_7_inference": compared(real["rows"], "train", ("NBCE", "NBCE_cvb", "NBCE_vb")),
        "table_7_held_out": compared(real["rows"], "test", ("NBCE", "NBCE_cvb", "NBCE_vb")),
    }
    for name, table in summary.items():
        if name != "table_2_f1":
            show(name, table)
    return {"summary": summary, "printed_order": PRINTED, "settings": {"seeds": seeds, **chains}, "bars": {}}


def table_2(rows: list[dict]) -> dict:
    """Mean F1 of each method by data set with the printed ones, and paired t-tests of NBCE."""
    from scipy.stats import ttest_rel

    out: dict = {}
    for name, printed in TABLE_2.items():
        of_set = [row for row in rows if row["data"] == name]
        values = {method: [row[method] for row in of_set] for method in (*TABLE_2_METHODS, *BESIDE)}
        ours = {method: round(statistics.fmean(found), 3) for method, found in values.items()}
        out[name] = {
            "ours": ours,
            "standard_errors": {method: standard_error(found, 3) for method, found in values.items()},
            "printed": dict(zip(TABLE_2_METHODS, printed, strict=True)),
            "n_classes": of_set[0]["n_classes"],
            "n_clusters": {
                method: round(statistics.fmean(row["n_clusters"][method] for row in of_set), 1)
                for method in COUNTED
            },
        }
        cells = (
            f"{method} {value:.2f}"
            + (f" ({out[name]['printed'][method]:.2f})" if method in TABLE_2_METHODS else "")
            for method, value in ours.items()
        )
        print(f"   table 2, F1, {name:17} {'  '.join(cells)}")
    others = [max(out[name]["ours"][method] for method in GRAPH_METHODS) for name in TABLE_2]
    tests = {}
    for method in ("NBCE", *BESIDE):
        scores = [out[name]["ours"][method] for name in TABLE_2]
        test = ttest_rel(scores, others)
        gaps = [a - b for a, b in zip(scores, others, strict=True)]
        tests[method] = {
            "mean_difference": round(statistics.fmean(gaps), 4),
            "t": round(float(test.statistic), 3),
            "p": round(float(test.pvalue), 4),
            "ahead_on": f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}",
        }
        print(
            f"   {method} less the best of CSPA, HGPA and MCLA: {statistics.fmean(gaps):+.3f}, t {test.statistic:.2f}, "
            f"p {test.pvalue:.3f}, ahead on {tests[method]['ahead_on']}"
        )
    printed = "NBCE ahead on 7 of 7, significant at 0.002"
    print(f"   printed: {printed}")
    return {"sets": out, "paired_t_tests": tests, "printed": printed}


def compared(rows: list[dict], what: str, methods: tuple[str, ...]) -> dict:
    """Means of each method by data set, their standard errors over the seeds, and paired differences over the sets."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    values = {
        method: {name: [row[method][what] for row in rows if row["data"] == name] for name in names}
        for method in methods
        if all(method in row for row in rows)
    }
    means = {method: {name: statistics.fmean(v) for name, v in of.items()} for method, of in values.items()}
    return {
        "means": {method: {name: round(v, 4) for name, v in of.items()} for method, of in means.items()},
        "standard_errors": {
            method: {name: standard_error(v, 4) for name, v in of.items()} for method, of in values.items()
        },
        "differences": {
            f"{first} - {second}": difference(means[first], means[second])
            for first, second in combinations(means, 2)
        },
    }


def difference(first: dict[str, float], second: dict[str, float]) -> dict:
    """The means of the first method minus those of the second: mean and standard error over the data sets."""
    gaps = [first[name] - second[name] for name in first]
    return {
        "mean": round(statistics.fmean(gaps), 4),
        "standard_error": round(statistics.stdev(gaps) / len(gaps) ** 0.5, 4),
        "lower_on": f"{sum(gap < 0 for gap in gaps)} of {len(gaps)}",
    }


def standard_error(values: list[float], digits: int) -> float | None:
    """Of the mean over seeds; none where there is one seed."""
    if len(values) < 2:
        return None
    return round(statistics.stdev(values) / len(values) ** 0.5, digits)


def show(name: str, table: dict) -> None:
    print(f"   {name} (printed: {PRINTED.get(name, 'not printed')})")
    printed = printed_values(name)
    for method, means in table["means"].items():
        cells = [
            f"{data} {value:.3f}"
            + (f" ({printed[method][data]:.3g})" if data in printed.get(method, {}) else "")
            for data, value in means.items()
        ]
        print(f"     {method:12s}" + "  ".join(cells))
    for pair, gap in table["differences"].items():
        print(f"     {pair}: {gap['mean']:+.4f} (se {gap['standard_error']:.4f}), lower on {gap['lower_on']}")


# ---- in a process of its own -----------------------------------------------------------------------------------


def measure_sets(seeds: list[int], chains: dict) -> dict:
    """Every method on the k-means ensembles of the real sets (of the folder that PARTITA_DATA names)."""
    import numpy as np

    from benchmarks.data import load_benchmark
    from partita.ensembles import kmeans_ensemble

    rows = []
    for name in SETS:
        data = load_benchmark(name)
        for seed in seeds:
            rng = np.random.default_rng(seed)
            keep = rng.permutation(len(data.X))[:MOST_ROWS]
            X, classes = np.asarray(data.X, float)[keep], data.target[keep]
            K = len(np.unique(classes))
            Y = kmeans_ensemble(X, K, N_MEMBERS, random_state=seed)
            rows.append({"data": name, "seed": seed, **measure(Y, K, seed, chains)})
    return {"rows": rows}


def measure_f1(sets: list[str], seeds: list[int], chains: dict) -> dict:
    """F1 of members and methods with the classes, on three quarters of the rows."""
    import warnings

    import numpy as np

    from benchmarks.data import load_benchmark
    from partita import CSPA, HGPA, MCLA, NBCE, Consensus
    from partita.ensembles import kmeans_ensemble
    from partita.metrics import set_matching_f1

    warnings.simplefilter("ignore")  # short chains say that they are short
    rows = []
    for name in sets:
        data = load_benchmark(name)
        for seed in seeds:
            rng = np.random.default_rng(seed)
            keep = rng.permutation(len(data.X))[:MOST_ROWS]
            X, classes = np.asarray(data.X, float)[keep], data.target[keep]
            K = len(np.unique(classes))
            train = np.random.default_rng([seed, 1]).permutation(len(X))[len(X) // 4 :]
            Y, classes = kmeans_ensemble(X, K, N_MEMBERS, random_state=seed)[train], classes[train]
            options = {"balance": 0.05, "random_state": seed}
            models = {
                "CSPA": CSPA(K, identical="apart", **options),
                "HGPA": HGPA(K, identical="apart", **options),
                "MCLA": MCLA(K, **options),
                "NBCE": NBCE("stick_breaking", max_clusters=TRUNCATION, random_state=seed, **chains),
                "NBCE_told_K": NBCE("finite", n_clusters=K, random_state=seed, **chains),
                "Consensus": Consensus(random_state=seed),
            }
            labels = {method: model.fit_predict(Y) for method, model in models.items()}
            f1 = {method: set_matching_f1(classes, found) for method, found in labels.items()}
            members = [set_matching_f1(classes, member) for member in Y.T]
            f1 |= {"best_member": max(members), "mean_member": statistics.fmean(members)}
            counts = {method: len(np.unique(labels[method])) for method in COUNTED}
            rows.append({"data": name, "seed": seed, **f1, "n_classes": K, "n_clusters": counts})
    return {"rows": rows}


def measure_noise(seeds: list[int], chains: dict) -> dict:
    """Noisy copies of the labels of two equal clusters; where the objects lie, outliers or not, plays no part."""
    import numpy as np

    from partita.ensembles import noisy_copies

    rows = []
    for share in NOISE:
        for seed in seeds:
            labels = np.random.default_rng(seed).permutation(np.arange(400) % 2)
            Y = noisy_copies(labels, N_MEMBERS, share, random_state=seed)
            rows.append({"data": noise_name(share), "seed": seed, **measure(Y, 2, seed, chains)})
    return {"rows": rows}


def measure(Y, K: int, seed: int, chains: dict) -> dict:
    """Perplexities of the rows that were fitted and of a quarter that was not, and shares of singletons."""
    import warnings

    import numpy as np

    from partita import NBCE, MixtureConsensus, consensus

    warnings.simplefilter("ignore")  # short chains say that they are short
    order = np.random.default_rng([seed, 1]).permutation(len(Y))
    test, train = Y[order[: len(Y) // 4]], Y[order[len(Y) // 4 :]]
    bound = min(TRUNCATION, len(train))
    options = {"max_clusters": bound, "random_state": seed}
    models = {
        "NBCE": NBCE("stick_breaking", **options, **chains),
        "NBCE_finite": NBCE("finite", **options, **chains),
        "NBCE_vb": NBCE("stick_breaking", "vb", **{**options, "max_clusters": min(30, bound)}),
        "NBCE_cvb": NBCE("stick_breaking", "cvb", **{**options, "max_clusters": min(30, bound)}),
        "MM": MixtureConsensus(K, random_state=seed),
    }
    if hasattr(consensus, "BCE"):
        models["BCE"] = consensus.BCE(K, random_state=seed)
    out = {}
    for name, model in models.items():
        model.fit(train)
        out[name] = {"train": model.perplexity(train), "test": model.perplexity(test)}
        out[name] |= {"n_clusters": model.n_clusters_}
        if hasattr(model, "singleton_share_"):
            out[name]["singletons"] = model.singleton_share_
    return out
