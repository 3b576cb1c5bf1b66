"""How the time of every engine grows: with rows, columns (members) and clusters, beside the peers that are there.

Label matrices: K planted groups, M members of K labels, a fifth of them redrawn. Real tables: K planted normal groups
in D columns. From a middle size one axis is stretched at a time; CPU seconds of one fit on one thread, compiled code
loaded before, and the slope of log time on log size. Iterations are fixed where an engine iterates (10 passes, 10
sweeps of one chain), so that the figure is about the engine rather than about when it stops. A peer's fit is what its
users call.
"""

from __future__ import annotations

import importlib.util

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.speed.growth import _slope

MIDDLE = {"n_rows": 20_000, "n_columns": 10, "n_clusters": 8}
AXES = {"n_rows": (5_000, 20_000, 80_000), "n_columns": (5, 10, 20, 40), "n_clusters": (4, 8, 16, 32)}
SMALL_MIDDLE = {"n_rows": 2_000, "n_columns": 6, "n_clusters": 4}
SMALL_AXES = {"n_rows": (1_000, 4_000), "n_columns": (6, 12), "n_clusters": (4, 8)}
LABELS = (
    "Mixture em", "Mixture vb", "Mixture cvb", "Mixture gibbs", "Mixture subclusters", "MixtureConsensus", "NBCE vb",
    "LACA", "Consensus", "EvidenceAccumulation", "LWEA", "QMI", "Voting", "CSPA", "MCLA", "HBGF",
)  # fmt: skip
REALS = ("Gaussian em", "Gaussian vb", "Gaussian gibbs", "full covariance vb")
PEERS = {
    "StepMix": "stepmix",
    "one-hot k-means": "sklearn",
    "bipartite Leiden": "leidenalg",
    "GaussianMixture (scikit-learn)": "sklearn",
    "BayesianGaussianMixture (scikit-learn)": "sklearn",
}
ON_REALS = (*REALS, "GaussianMixture (scikit-learn)", "BayesianGaussianMixture (scikit-learn)")


def run(*, full: bool, repeats: int) -> dict:
    middle, axes = (MIDDLE, AXES) if full else (SMALL_MIDDLE, SMALL_AXES)
    there = [name for name, module in PEERS.items() if importlib.util.find_spec(module)]
    names = [*LABELS, *REALS, *there] if full else ["Mixture em", "Mixture vb", "Consensus", "Gaussian vb"]
    summary: dict = {}
    for name in names:
        found = in_own_process(measure, name=name, middle=middle, axes={k: list(v) for k, v in axes.items()})
        exponents = {axis: round(_slope(points), 2) for axis, points in found["seconds"].items()}
        summary[name] = {
            "exponents": exponents,
            "seconds": found["seconds"],
            "middle_s": found["middle_s"],
            "ari": found["ari"],
            "peak_mb": found["peak_mb"],
        }
        words = ", ".join(f"{axis.removeprefix('n_')} {e:.2f}" for axis, e in exponents.items())
        print(
            f"   {name:38} {found['middle_s']:8.3f} s, exponents: {words}; ARI {found['ari']:.2f}", flush=True
        )
    return {
        "middle": middle,
        "axes": axes,
        "peers_not_there": [n for n in PEERS if n not in there],
        "summary": summary,
        "bars": {},
    }


# ---- in processes of their own ---------------------------------------------------------------------------------


def measure(name: str, middle: dict, axes: dict) -> dict:
    import warnings

    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    real = name in ON_REALS
    fit_one(name, *planted(real, 300, middle["n_columns"], 3)[:1], 3)  # compiled code is loaded here
    seconds: dict = {}
    memory: dict = {}
    for axis, values in axes.items():
        for value in values:
            size = {**middle, axis: value}
            key = tuple(size.values())
            if key not in memory:
                X, z = planted(real, **size)
                with stopwatch() as watch:
                    labels = fit_one(name, X, size["n_clusters"])
                memory[key] = round(watch["cpu_s"], 4), adjusted_rand(labels, z)
            seconds.setdefault(axis, []).append((value, memory[key][0]))
    middle_s, ari = memory[tuple(middle.values())]
    return {"seconds": seconds, "middle_s": middle_s, "ari": round(ari, 3)}


def planted(real: bool, n_rows: int, n_columns: int, n_clusters: int):
    import numpy as np

    rng = np.random.default_rng(0)
    z = rng.integers(n_clusters, size=n_rows)
    if real:
        return rng.normal(size=(n_rows, n_columns)) + 2.0 * rng.normal(size=(n_clusters, n_columns))[z], z
    renamed = np.argsort(rng.random((n_columns, n_clusters)), axis=1).T[z]
    redrawn = rng.integers(n_clusters, size=renamed.shape)
    return np.where(rng.random(renamed.shape) < 0.2, redrawn, renamed).astype(np.int64), z


def fit_one(name: str, X, K: int):
    """Labels by one engine, told K where it takes it."""
    import partita

    steps = {"n_init": 1, "max_iter": 10, "tol": 0.0, "random_state": 0}
    chain = {"n_chains": 1, "n_draws": 5, "burn_in": 5, "random_state": 0}
    kind, _, inference = name.rpartition(" ")
    if kind in ("Mixture", "Gaussian", "full covariance"):
        family = {"Mixture": "categorical", "Gaussian": "gaussian", "full covariance": "gaussian_full"}[kind]
        options = chain if inference in ("gibbs", "subclusters") else {**steps, "n_clusters": K}
        return partita.Mixture(family, inference=inference, **options).fit(X).labels_
    if name == "MixtureConsensus":
        return partita.MixtureConsensus(K, **steps).fit(X).labels_
    if name == "NBCE vb":
        return partita.NBCE(inference="vb", n_clusters=K, **steps).fit(X).labels_
    if name in ("LACA", "Consensus"):
        return getattr(partita, name)().fit(X).labels_
    if name in PEERS:
        return fit_peer(name, X, K)
    cls = getattr(partita, name)
    options = {} if name in ("EvidenceAccumulation", "LWEA", "MCLA") else {"random_state": 0}
    return cls(K, **options).fit(X).labels_


def fit_peer(name: str, X, K: int):
    if name == "StepMix":
        from stepmix.stepmix import StepMix

        model = StepMix(
            n_components=K, measurement="categorical", max_iter=10, random_state=0, progress_bar=0
        )
        return model.fit(X).predict(X)
    if name == "one-hot k-means":
        from sklearn.cluster import KMeans
        from sklearn.preprocessing import OneHotEncoder

        return KMeans(K, n_init=1, random_state=0).fit_predict(OneHotEncoder().fit_transform(X))
    if name == "bipartite Leiden":
        return bipartite_leiden(X)
    import sklearn.mixture

    cls = getattr(sklearn.mixture, name.split()[0])
    return cls(n_components=K, covariance_type="diag", max_iter=10, tol=0.0, random_state=0).fit_predict(X)


def bipartite_leiden(X):
    """Communities of the graph of objects and labels, by modularity."""
    import igraph
    import leidenalg
    import numpy as np

    N, M = X.shape
    first = N + np.concatenate([[0], np.cumsum(X.max(axis=0) + 1)[:-1]])
    edges = np.column_stack([np.repeat(np.arange(N), M), (X + first).ravel()])
    graph = igraph.Graph(n=int(edges.max()) + 1, edges=edges.tolist())
    found = leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, seed=0)
    return np.array(found.membership[:N])
