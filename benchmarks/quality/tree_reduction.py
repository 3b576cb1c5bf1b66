"""LACA and evidence accumulation on a sample of the distinct rows, compared with exact runs.

Members are k-means runs with one random start on standardized features, k from half to twice the number of classes
(kind "kmeans"), or on random features with k from 2 to 60 ("subspaces"). The exact run has one leaf per distinct row.
ARI is the adjusted Rand index; "to classes" is printed for both runs, because a different result is not always a worse
one. Evidence accumulation is average linkage with the number of classes given; LACA finds its own number.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

# classes and kinds; letters in subspaces have 20,000 distinct rows, for which exact LACA takes more than half an hour
SETS = {"pendigits": (10, ("kmeans", "subspaces")), "letter": (26, ("kmeans",))}
N_MEMBERS = 20
LIMITS = (4000, 1000)
N_SEEDS = 2
METHODS = ("LACA", "EvidenceAccumulation")


def run(*, full: bool, repeats: int) -> dict:
    runs = []
    for name, (n_classes, kinds) in SETS.items():
        if not full and name != "pendigits":
            continue
        for kind in kinds:
            for seed in range(N_SEEDS if full else 1):
                asked = {"name": name, "n_classes": n_classes, "kind": kind, "seed": seed}
                found = in_own_process(compare, **asked, n_rows=None if full else 1500)
                for method in METHODS:
                    runs.append({"set": name, "kind": kind, "seed": seed, "method": method, **found[method]})
                    print(f"   {name} {kind} {seed} {method}: {_in_words(found[method])}", flush=True)
    summary = {
        method: {
            str(limit): spread(
                [one["reduced"][str(limit)]["ari_to_exact"] for one in runs if one["method"] == method]
            )
            for limit in LIMITS
        }
        for method in METHODS
    }
    return {"n_members": N_MEMBERS, "runs": runs, "summary": {"ari_to_exact": summary}}


def compare(*, name: str, n_classes: int, kind: str, seed: int, n_rows: int | None) -> dict:
    import warnings

    import numpy as np

    from benchmarks.data import load_benchmark

    data = load_benchmark(name)
    rng = np.random.default_rng(seed)
    keep = rng.permutation(len(data.X))[:n_rows]
    X, target = data.X[keep], data.target[keep]
    Y = ensemble((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), n_classes, kind, rng)
    scale = 1 if n_rows is None else len(data.X) // n_rows
    warnings.simplefilter("ignore")
    return {method: compare_runs(method, Y, target, n_classes, scale, seed) for method in METHODS}


def compare_runs(method: str, Y, target, n_classes: int, scale: int, seed: int) -> dict:
    """The exact run, and runs with fewer leaves."""
    import partita
    from partita.labels import signatures
    from partita.metrics import adjusted_rand

    parameters = {} if method == "LACA" else {"n_clusters": n_classes}

    def fit(max_exact: int) -> dict:
        model = getattr(partita, method)(max_exact=max_exact, random_state=seed, **parameters)
        with stopwatch() as time:
            model.fit(Y)
        return {
            "labels": model.labels_,
            "n_clusters": model.n_clusters_,
            "ari_to_classes": adjusted_rand(target, model.labels_),
            "cpu_s": time["cpu_s"],
        }

    getattr(partita, method)(**parameters).fit(Y[:100])  # loads the compiled code
    exact = fit(len(Y))
    reduced = {str(limit): fit(limit // scale) for limit in LIMITS}
    for found in reduced.values():
        found["ari_to_exact"] = adjusted_rand(exact["labels"], found.pop("labels"))
    del exact["labels"]
    return {"n_objects": len(Y), "n_distinct": len(signatures(Y).rows), "exact": exact, "reduced": reduced}


def ensemble(X, n_classes: int, kind: str, rng):
    import numpy as np
    from sklearn.cluster import KMeans

    members = []
    for _ in range(N_MEMBERS):
        columns = np.arange(X.shape[1])
        k = rng.integers(max(2, n_classes // 2), 2 * n_classes + 1)
        if kind == "subspaces":
            columns = rng.choice(X.shape[1], rng.integers(3, X.shape[1] + 1), replace=False)
            k = rng.integers(2, 61)
        kmeans = KMeans(k, init="random", n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
        members.append(kmeans.fit_predict(X[:, columns]))
    return np.array(members).T


def _in_words(one: dict) -> str:
    exact = one["exact"]
    words = [
        f"{one['n_distinct']} distinct rows, exact K {exact['n_clusters']}, ARI to classes "
        f"{exact['ari_to_classes']:.3f}, {exact['cpu_s']:.1f} s"
    ]
    for limit, found in one["reduced"].items():
        words.append(
            f"{limit}: to exact {found['ari_to_exact']:.3f}, K {found['n_clusters']}, to classes "
            f"{found['ari_to_classes']:.3f}, {found['cpu_s']:.1f} s"
        )
    return "; ".join(words)
