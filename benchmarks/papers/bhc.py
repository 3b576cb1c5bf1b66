"""Murphy's Table 25.1 (Heller and Ghahramani 2005, Table 1): dendrogram purity of linkages and of Bayesian trees.

Five sets, ten draws each, beside the printed figures. The printed figures are not targets, because no set has the rows
of the paper: two sets are substitutes, one is generated, and the other two have other rows.

- Synthetic: 200 points in the plane, 50 of each of four Gaussian clusters with standard deviations 1 and 0.3 along
  axes of random direction and means of standard deviation 1.5, new for every draw. The paper's points are not
  published; with these two numbers the three linkages have about their printed purity.
- Newsgroups: 800 documents, 200 of each of four groups of newsgroups, 100 words (paper: four newsgroups, 500 words).
- Spambase: 100 rows; values above the median of their column are ones.
- Digits: 200 of scikit-learn's digits, 20 of each, 64 pixels, above half of the range (paper: CEDAR Buffalo).
- Glass: 171 (four fifths) of the 214 rows, standardized (paper: all 214).

Linkages use Euclidean distances. Bayesian trees learn their hyper-parameters and the concentration; "fixed" is the
same tree with the default ones. Real columns have full covariance, as by default; "diagonal" is without covariances.
"""

from __future__ import annotations

import importlib.util

from benchmarks.processes import ROOT, in_own_process

SETS = ("synthetic", "newsgroups", "spambase", "digits", "glass")
LINKS = ("single", "complete", "average", "ward")
N_GLASS, N_GLASS_DRAWN = 214, 171
PRINTED = {  # mean and what the table prints after its sign +-
    "synthetic": {
        "single": (0.599, 0.033),
        "complete": (0.634, 0.024),
        "average": (0.668, 0.040),
        "bayesian": (0.828, 0.025),
    },
    "newsgroups": {
        "single": (0.275, 0.001),
        "complete": (0.315, 0.008),
        "average": (0.282, 0.002),
        "bayesian": (0.465, 0.016),
    },
    "spambase": {
        "single": (0.598, 0.017),
        "complete": (0.699, 0.017),
        "average": (0.668, 0.019),
        "bayesian": (0.728, 0.029),
    },
    "digits": {
        "single": (0.224, 0.004),
        "complete": (0.299, 0.006),
        "average": (0.342, 0.005),
        "bayesian": (0.393, 0.015),
    },
    "glass": {
        "single": (0.478, 0.009),
        "complete": (0.476, 0.009),
        "average": (0.491, 0.009),
        "bayesian": (0.467, 0.011),
    },
}


def run(*, full: bool, repeats: int) -> dict:
    summary: dict = {}
    for name in SETS:
        found = in_own_process(measure, name=name, n_draws=10 if full else 2, small=not full)
        printed = {method: mean for method, (mean, _) in PRINTED[name].items()}
        summary[name] = {**found, "printed": printed}
        row = ", ".join(f"{m} {v['mean']:.3f}" for m, v in found["purity"].items())
        print(f"   {name}: {row} ({found['cpu_s']:.0f} s)", flush=True)
    folder = ROOT / ("docs/images" if full else "benchmarks/out")
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("matplotlib"):
        summary["pictures"] = in_own_process(pictures, folder=str(folder), n_documents=800 if full else 200)
    wins = [
        name
        for name in SETS
        if summary[name]["purity"]["bayesian"]["mean"] >= summary[name]["purity"]["average"]["mean"]
    ]
    print(f"   at least as pure as average linkage: {', '.join(wins)}", flush=True)
    bars = {"Bayesian trees are at least as pure as average linkage on four of five sets": len(wins) >= 4}
    return {"summary": summary, "bars": bars if full else {}}


# ---- in processes of their own -----------------------------------------------------------------------------------


def measure(name: str, n_draws: int, small: bool) -> dict:
    """Purity of every method on each draw."""
    import time
    import warnings

    import numpy as np

    from partita import Agglomerative, BayesianTree
    from partita.metrics.trees import dendrogram_purity

    warnings.simplefilter("ignore")
    family = "auto" if name in ("synthetic", "glass") else "bernoulli"
    models = {link: Agglomerative(linkage=link) for link in LINKS}
    models["bayesian"] = BayesianTree(family, random_state=0)
    models["fixed"] = BayesianTree(family, learn_hyper=False)
    if family == "auto":
        models["diagonal"] = BayesianTree("gaussian", random_state=0)
    values: dict = {method: [] for method in models}
    started = time.process_time()
    for draw in range(n_draws):
        X, classes = draw_set(name, np.random.default_rng(draw), small)
        for method, model in models.items():
            values[method].append(dendrogram_purity(model.fit(X).linkage_, classes))
    return {
        "n": len(X),
        "n_columns": X.shape[1],
        "n_draws": n_draws,
        "purity": {method: mean_and_error(v) for method, v in values.items()},
        "bayesian_less": {
            method: mean_and_error([a - b for a, b in zip(values["bayesian"], v, strict=True)])
            for method, v in values.items()
            if method != "bayesian"
        },
        "cpu_s": round(time.process_time() - started, 1),
    }


def draw_set(name: str, rng, small: bool):
    """One draw of a set: table and classes."""
    import numpy as np

    if name == "synthetic":
        return tilted_clusters(rng)
    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        rows = balanced(rng, digits.target, 5 if small else 20)
        return (digits.data[rows] > 8).astype(int), digits.target[rows]
    from benchmarks.data import load_benchmark

    if name == "glass":
        glass = load_benchmark("glass")
        rows = rng.choice(len(glass.X), size=N_GLASS_DRAWN, replace=False)
        return glass.X[rows], glass.target[rows]
    data = load_benchmark("spambase" if name == "spambase" else "newsgroups_w100")
    middle = np.median(data.X, axis=0)
    if name == "spambase":
        rows = rng.choice(len(data.X), size=100, replace=False)
    else:
        rows = balanced(rng, data.target, 25 if small else 200)
    return (data.X[rows] > middle).astype(int), data.target[rows]


def tilted_clusters(rng):
    """Four narrow clusters of 50 points, each with a direction of its own."""
    import numpy as np

    X, z = np.empty((200, 2)), np.repeat(np.arange(4), 50)
    for k in range(4):
        angle = rng.uniform(0.0, np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        X[z == k] = rng.normal(size=(50, 2)) * [1.0, 0.3] @ turn.T + 1.5 * rng.normal(size=2)
    return X, z


def balanced(rng, target, n_each: int):
    """So many rows of each class."""
    import numpy as np

    return np.concatenate(
        [rng.choice(np.flatnonzero(target == c), n_each, replace=False) for c in range(target.max() + 1)]
    )


def mean_and_error(values: list) -> dict:
    import numpy as np

    return {
        "mean": round(float(np.mean(values)), 4),
        "standard_error": round(float(np.std(values, ddof=1) / np.sqrt(len(values))), 4),
    }


def pictures(folder: str, n_documents: int) -> dict:
    import warnings

    from benchmarks.papers.bhc_pictures import draw_all

    warnings.simplefilter("ignore")
    return draw_all(folder, n_documents)
