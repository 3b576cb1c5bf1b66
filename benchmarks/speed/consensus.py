"""Consensus of twenty members on up to a million objects: CPU time, peak memory and agreement of every method.

Two ensembles. `k-means`: k-means on ten overlapping Gaussian clusters in eight dimensions, k being 50, 75, 100, 150 and
200% of ten in turn, each member fitted to its own 20,000 objects, from which it labels all; it splits some clusters and
merges others, as on real data. `noise`: ten equal groups, every label redrawn with probability 0.2.

Every fit has one thread and a process of its own, after a small fit that loads the compiled code. "told K" in the name
of a method, which is a key of the result file, means that K is given. If the last fit of a method lets expect more than
`MOST_S` seconds for ten times as many objects, larger sizes are not run.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.processes import in_own_process, peak_mb, stopwatch

SIZES = (10_000, 100_000, 1_000_000)
N_MEMBERS, N_GROUPS = 20, 10
ENSEMBLES = ("k-means", "noise")
KMEANS_ROWS = 20_000
MOST_S = 60.0
SMALL = 1000  # objects of the fit that loads compiled code
# orientation: a sketch of `Consensus` took 3.4 s and 0.8 GB, NBCE by Gibbs 13 s; twice that is the limit
LIMITS = {"Consensus": {"cpu_s": 6.8, "fit_peak_mb": 1600.0}, "NBCE, Gibbs": {"cpu_s": 26.0}}
SWEEPS = {"n_chains": 1, "n_draws": 10, "burn_in": 10}

# name -> (class of partita, parameters)
OURS = {
    "Consensus": ("Consensus", {}),
    "Consensus, told K": ("Consensus", {"n_clusters": N_GROUPS}),
    "LACA": ("LACA", {}),
    "NBCE, Gibbs": ("NBCE", SWEEPS),
    "NBCE, VB": ("NBCE", {"inference": "vb", "n_init": 1, "max_clusters": 30}),
    "MixtureConsensus, told K": ("MixtureConsensus", {"n_clusters": N_GROUPS, "n_init": 3}),
    "BCE, told K": ("BCE", {"n_clusters": N_GROUPS, "n_init": 1}),
    "EAC average link, told K": ("EvidenceAccumulation", {"n_clusters": N_GROUPS}),
    "LWEA, told K": ("LWEA", {"n_clusters": N_GROUPS}),
    "QMI, told K": ("QMI", {"n_clusters": N_GROUPS, "n_init": 3}),
    "Voting, told K": ("Voting", {"n_clusters": N_GROUPS}),
    "HBGF, told K": ("HBGF", {"n_clusters": N_GROUPS}),
    "CSPA, told K": ("CSPA", {"n_clusters": N_GROUPS, "balance": 0.05}),
    "MCLA, told K": ("MCLA", {"n_clusters": N_GROUPS, "balance": 0.05}),
}
QUICK = ("Consensus", "NBCE, Gibbs", "MixtureConsensus, told K", "StepMix, told K", "one-hot k-means, told K")
PEERS = {
    "StepMix, told K": "stepmix",
    "one-hot k-means, told K": "sklearn",
    "bipartite Leiden": "igraph",
}


def run(*, full: bool, repeats: int) -> dict:
    import partita

    sizes = SIZES if full else SIZES[:1]
    absent = [name for name, (cls, _) in OURS.items() if not hasattr(partita, cls)]
    absent += [name for name, module in PEERS.items() if find_spec(module) is None]
    for name in absent:
        print(f"   {name} is not there (peers: extra `peers`): skipped")
    methods = [name for name in [*OURS, *PEERS] if name not in absent and (full or name in QUICK)]
    runs: dict[str, dict[str, dict[str, dict]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ENSEMBLES if full else ENSEMBLES[:1]:
            for n in sizes:
                path = str(Path(folder) / f"{kind}-{n}.npz")
                made = in_own_process(make_ensemble, kind=kind, n_objects=n, path=path)
                print(
                    f"   {kind}, {n:,} objects, {made['share_distinct']:.1%} of the rows distinct", flush=True
                )
                for name in methods:
                    before = runs.get(kind, {}).get(name, {})
                    if before and max(one["cpu_s"] for one in before.values()) * 10 > MOST_S:
                        print(f"      {name:25} would take more than {MOST_S:.0f} s: not run")
                        continue
                    one = in_own_process(fit, method=name, path=path)
                    runs.setdefault(kind, {}).setdefault(name, {})[str(n)] = one
                    print(f"      {name:25} {_in_words(one)}", flush=True)
    summary = {
        kind: {name: {n: _short(one) for n, one in found.items()} for name, found in of_kind.items()}
        for kind, of_kind in runs.items()
    }
    return {
        "sizes": list(sizes),
        "n_members": N_MEMBERS,
        "n_groups": N_GROUPS,
        "methods_not_there": absent,
        "runs": runs,
        "summary": summary,
        "bars": _bars(runs, str(sizes[-1])) if full else {},
    }


def _bars(runs: dict, n: str) -> dict[str, bool]:
    bars = {}
    for name, limits in LIMITS.items():
        for kind, found in runs.items():
            for key, most in limits.items():
                bar = f"{name} on {kind}, {int(n):,} objects: {key} at most {most:g}"
                bars[bar] = n in found.get(name, {}) and found[name][n][key] <= most
    return bars


def _short(one: dict) -> dict:
    return {key: one[key] for key in ("cpu_s", "fit_peak_mb", "ari", "n_clusters")}


def _in_words(one: dict) -> str:
    return (
        f"{one['cpu_s']:8.2f} s of CPU, peak {one['fit_peak_mb']:6.0f} MB ({one['before_mb']:.0f} before), "
        f"ARI {one['ari']:.4f}, K = {one['n_clusters']}"
    )


# ---- in processes of their own ---------------------------------------------------------------------------------


def make_ensemble(kind: str, n_objects: int, path: str) -> dict:
    """A label matrix of one byte a label and the planted groups."""
    import numpy as np

    from partita.datasets import make_gaussian_clusters, make_planted_ensemble
    from partita.ensembles import generate
    from partita.labels import signatures

    if kind == "noise":
        planted = make_planted_ensemble(n_objects, N_GROUPS, N_MEMBERS, redrawn=0.2, random_state=0)
        Y = planted.X
    else:
        planted = make_gaussian_clusters(n_objects, 8, N_GROUPS, separation=1.5, random_state=0)
        share = min(1.0, KMEANS_ROWS / n_objects)
        Y = generate(
            planted.X,
            rows=share,
            left_out="predict",
            n_members=N_MEMBERS,
            n_clusters=[5, 8, 10, 15, 20],
            random_state=0,
        )
    Y = Y.astype(np.int8)
    np.savez(path, Y=Y, groups=planted.labels)
    return {"share_distinct": len(signatures(Y).weights) / len(Y)}


def fit(method: str, path: str) -> dict:
    """Fit one method to one ensemble."""
    import warnings

    import numpy as np

    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    with np.load(path) as saved:
        Y, groups = saved["Y"], saved["groups"]
    solve = solver(method)
    for few in (Y[:SMALL], Y[: SMALL // 10].repeat(50, axis=0)):  # compiled code is loaded here
        solve(few)
    before = peak_mb()
    with stopwatch() as watch:
        labels = solve(Y)
    peak = peak_mb()  # the score below has needs of its own
    return {
        **watch,
        "before_mb": round(before, 1),
        "fit_peak_mb": round(peak, 1),
        "ari": adjusted_rand(groups, labels),
        "n_clusters": int(np.unique(labels).size),
    }


def solver(method: str):
    """A function from a label matrix to labels."""
    if method in OURS:
        import partita

        name, parameters = OURS[method]
        return lambda Y: getattr(partita, name)(random_state=0, **parameters).fit(Y).labels_
    return {
        "StepMix, told K": by_stepmix,
        "one-hot k-means, told K": by_one_hot_kmeans,
        "bipartite Leiden": by_leiden,
    }[method]


def by_stepmix(Y):
    from stepmix.stepmix import StepMix

    model = StepMix(N_GROUPS, measurement="categorical", n_init=1, random_state=0, progress_bar=0, verbose=0)
    return model.fit(Y).predict(Y)


def by_one_hot_kmeans(Y):
    import numpy as np
    from scipy import sparse
    from sklearn.cluster import MiniBatchKMeans

    from partita.labels import one_hot

    A = one_hot(Y).matrix
    parts = (np.ones(A.nnz, np.float32), A.indices.astype(np.int32), A.indptr.astype(np.int32))
    return (
        MiniBatchKMeans(N_GROUPS, n_init=3, random_state=0)
        .fit(sparse.csr_matrix(parts, shape=A.shape))
        .labels_
    )


def by_leiden(Y):
    """Modularity of the graph that joins every object with its labels."""
    import random

    import igraph
    import numpy as np

    from partita.labels import one_hot

    random.seed(0)
    N, M = Y.shape
    matrix, offsets = one_hot(Y)
    edges = np.column_stack([np.repeat(np.arange(N), np.diff(matrix.indptr)), N + matrix.indices])
    graph = igraph.Graph(n=N + int(offsets[-1]), edges=edges)
    found = graph.community_leiden(objective_function="modularity", n_iterations=2)
    return np.array(found.membership[:N])
