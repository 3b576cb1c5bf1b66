"""What LACA's sample of distinct rows costs: the reduced run against the exact one on real k-means ensembles.

Members are k-means runs with one random start on standardised features, k from half to twice the number of classes
(kind "kmeans"), or on random features with k from 2 to 60 ("subspaces"). The exact run has a leaf for every distinct
row. ARI is the adjusted Rand index; "to classes" is printed for both, so that a loss can be told from a difference.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

SETS = {"pendigits": 10, "letter": 26}  # classes
N_MEMBERS = 20
LIMITS = (4000, 1000)
N_SEEDS = 3


def run(*, full: bool, repeats: int) -> dict:
    runs = []
    for name, n_classes in SETS.items() if full else [("pendigits", 10)]:
        for kind in ("kmeans", "subspaces"):
            for seed in range(N_SEEDS if full else 1):
                one = in_own_process(
                    compare,
                    name=name,
                    n_classes=n_classes,
                    kind=kind,
                    seed=seed,
                    n_rows=None if full else 1500,
                )
                runs.append({"set": name, "kind": kind, "seed": seed, **one})
                print(f"   {name:10} {kind:9} seed {seed}: {_in_words(one)}", flush=True)
    summary = {
        str(limit): spread([one["reduced"][str(limit)]["ari_to_exact"] for one in runs]) for limit in LIMITS
    }
    return {"n_members": N_MEMBERS, "runs": runs, "summary": {"ari_to_exact": summary}}


def compare(*, name: str, n_classes: int, kind: str, seed: int, n_rows: int | None) -> dict:
    import warnings

    import numpy as np
    from sklearn.metrics import adjusted_rand_score

    from partita import LACA
    from partita.datasets import load_benchmark
    from partita.labels import signatures

    data = load_benchmark(name)
    rng = np.random.default_rng(seed)
    keep = rng.permutation(len(data.X))[:n_rows]
    X, target = data.X[keep], data.target[keep]
    Y = ensemble((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), n_classes, kind, rng)
    scale = 1 if n_rows is None else len(data.X) // n_rows
    warnings.simplefilter("ignore")
    LACA().fit(Y[:100])  # loads the compiled code
    with stopwatch() as time:
        exact = LACA(max_signatures=len(Y)).fit(Y)
    result = {
        "n_objects": len(Y),
        "n_distinct": len(signatures(Y).rows),
        "exact": _figures(exact, target, time["cpu_s"]),
        "reduced": {},
    }
    for limit in LIMITS:
        with stopwatch() as time:
            model = LACA(max_signatures=limit // scale, random_state=seed).fit(Y)
        ari = adjusted_rand_score(exact.labels_, model.labels_)
        result["reduced"][str(limit)] = {**_figures(model, target, time["cpu_s"]), "ari_to_exact": ari}
    return result


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


def _figures(model, target, cpu_s: float) -> dict:
    from sklearn.metrics import adjusted_rand_score

    return {
        "n_clusters": model.n_clusters_,
        "ari_to_classes": adjusted_rand_score(target, model.labels_),
        "n_iter": model.n_iter_,
        "cpu_s": cpu_s,
    }


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
