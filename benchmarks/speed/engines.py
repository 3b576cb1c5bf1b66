"""How the time of every engine grows with rows, columns (members) and clusters, beside the other programs installed.

Four arenas. *Label matrices*: K planted groups, M members of K labels, a fifth redrawn. *Real tables*: K planted
normal groups in D columns. *Trees and graphs*: the same at sizes for which all pairs of rows can be used. *Views*: two
planted views of K clusters each. From a middle size, one axis is varied at a time. Reported are the CPU seconds of one
fit on one thread (compiled code is loaded before), peak memory, agreement with the planted groups, and the slope of
log time on log size. Each arena has a reference among the other programs; *speed* is its time divided by that of the
engine.

The number of iterations is fixed if an engine iterates (10 passes, 10 sweeps of one chain), so that the figure does not
depend on when it stops. Other programs run as their users call them. A fit that by the last slope would take longer
than `MOST_S` is not run. ClustPy, another program for views, has no wheel and is left out.
"""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import slope

MOST_S = 120.0


class Arena(NamedTuple):
    """Engines that are fitted to the same data, other programs (name -> module), and the sizes."""

    ours: tuple[str, ...]
    peers: dict[str, str]
    yardstick: str
    middle: dict[str, int]
    axes: dict[str, tuple[int, ...]]
    small: tuple[str, ...]  # engines of a small run


FLAT_SIZES = {
    "middle": {"n_rows": 100_000, "n_columns": 10, "n_clusters": 8},
    "axes": {
        "n_rows": (25_000, 100_000, 400_000),
        "n_columns": (5, 10, 20, 40),
        "n_clusters": (4, 8, 16, 32),
    },
}
ARENAS = {
    "label matrices": Arena(
        ours=(
            "Mixture em", "Mixture vb", "Mixture cvb", "Mixture gibbs", "Mixture subclusters", "MixtureConsensus",
            "BCE", "NBCE vb", "NBCE gibbs", "LACA", "Consensus", "EvidenceAccumulation", "LWEA", "QMI", "Voting",
            "CSPA", "MCLA", "HBGF", "BipartiteModularity",
        ),
        peers={"StepMix": "stepmix", "one-hot k-means": "sklearn", "bipartite Leiden": "leidenalg"},
        yardstick="StepMix",
        small=("Mixture em", "Consensus"),
        **FLAT_SIZES,
    ),
    "real tables": Arena(
        ours=("Gaussian em", "Gaussian vb", "Gaussian cvb", "Gaussian gibbs", "Gaussian subclusters",
              "full covariance em", "full covariance vb", "full covariance gibbs"),
        peers={
            "GaussianMixture, diagonal": "sklearn",
            "BayesianGaussianMixture, diagonal": "sklearn",
            "GaussianMixture, full": "sklearn",
            "BayesianGaussianMixture, full": "sklearn",
        },
        yardstick="GaussianMixture, diagonal",
        small=("Gaussian vb",),
        **FLAT_SIZES,
    ),
    "trees and graphs": Arena(
        ours=("Agglomerative", "BayesianTree", "Diana", "SpectralClustering", "AffinityPropagation"),
        peers={
            "fastcluster, average link": "fastcluster",
            "SpectralClustering (scikit-learn)": "sklearn",
            "AffinityPropagation (scikit-learn)": "sklearn",
        },
        yardstick="fastcluster, average link",
        middle={"n_rows": 2_000, "n_columns": 10, "n_clusters": 8},
        axes={"n_rows": (1_000, 2_000, 4_000), "n_columns": (5, 10, 20, 40), "n_clusters": (4, 8, 16, 32)},
        small=("Agglomerative",),
    ),
    "views": Arena(
        ours=("CrossCat vb", "CrossCat gibbs", "OverlappingViews", "DecorrelatedKMeans", "OrthogonalViews"),
        peers={"lace": "lace"},
        yardstick="lace",
        middle={"n_rows": 1_000, "n_columns": 20, "n_clusters": 3},
        axes={"n_rows": (500, 1_000, 2_000, 4_000), "n_columns": (10, 20, 40), "n_clusters": (3, 6, 12)},
        small=("CrossCat vb",),
    ),
}  # fmt: skip
SMALL_AXES = {
    "n_rows": (1, 2),
    "n_columns": (1, 2),
    "n_clusters": (1, 2),
}  # times a tenth of the middle's rows
N_VIEWS = 2


def run(*, full: bool, repeats: int) -> dict:
    summary: dict = {}
    sizes, absent, failed = {}, [], {}
    for arena_name, arena in ARENAS.items():
        middle, axes = arena.middle, arena.axes
        if not full:
            middle = {**middle, "n_rows": max(middle["n_rows"] // 10, 1000)}
            axes = {axis: [times * middle[axis] for times in SMALL_AXES[axis]] for axis in axes}
        sizes[arena_name] = {"middle": middle, "axes": {axis: list(values) for axis, values in axes.items()}}
        there = [name for name, module in arena.peers.items() if importlib.util.find_spec(module)]
        absent += [name for name in arena.peers if name not in there]
        if full:
            names = [*arena.ours, *there]
        else:
            names = [*arena.small, *(name for name in there if name == arena.yardstick)]
        print(f"   {arena_name}: {middle}", flush=True)
        summary[arena_name] = {}
        for name in names:
            try:
                found = in_own_process(measure, arena=arena_name, name=name, **sizes[arena_name])
            except RuntimeError as error:  # the others still count
                failed[name] = str(error).strip().splitlines()[-1]
                print(f"      {name:36} failed: {failed[name]}", flush=True)
                continue
            found["exponents"] = {
                axis: round(slope(points), 2) if len(points) > 1 else None
                for axis, points in found["seconds"].items()
            }
            summary[arena_name][name] = found
            print(f"      {name:36} {_in_words(found)}", flush=True)
        yardstick = summary[arena_name].get(arena.yardstick)
        for found in summary[arena_name].values():
            found["speed"] = yardstick and float(f"{yardstick['middle_s'] / found['middle_s']:.3g}")
    return {
        "sizes": sizes,
        "yardsticks": {name: arena.yardstick for name, arena in ARENAS.items()},
        "peers": {name: list(arena.peers) for name, arena in ARENAS.items()},
        "peers_not_there": absent,
        "failed": failed,
        "summary": summary,
        "bars": {},
    }


def _in_words(found: dict) -> str:
    exponents = ", ".join(
        f"{axis.removeprefix('n_')} {e if e is None else format(e, '.2f')}"
        for axis, e in found["exponents"].items()
    )
    return f"{found['middle_s']:8.3f} s, exponents: {exponents}; {found['quality']:.2f}, {found['peak_mb']:.0f} MB"


# ---- in processes of their own ---------------------------------------------------------------------------------


def measure(arena: str, name: str, middle: dict, axes: dict) -> dict:
    import warnings

    warnings.simplefilter("ignore")
    # compiled code is loaded here; large tables run code that small ones do not, and so do rows that repeat
    X = planted(arena, min(middle["n_rows"] // 2, 6000), middle["n_columns"], 3)[0]
    fit_one(arena, name, X, 3)
    if arena == "label matrices":
        fit_one(arena, name, X[:300].repeat(20, axis=0), 3)
    seconds: dict = {}
    known: dict = {}
    for axis, values in axes.items():
        points = seconds.setdefault(axis, [])
        for value in values:
            size = {**middle, axis: value}
            key = tuple(size.values())
            if key not in known:
                if _expected(points, value) > MOST_S:
                    continue
                X, z = planted(arena, **size)
                with stopwatch() as watch:
                    labels = fit_one(arena, name, X, size["n_clusters"])
                known[key] = round(watch["cpu_s"], 4), agreement(arena, z, labels)
            points.append((value, known[key][0]))
    middle_s, quality = known[tuple(middle.values())]
    return {"seconds": seconds, "middle_s": middle_s, "quality": round(float(quality), 3)}


def _expected(points: list, value: float) -> float:
    """Seconds that the last two points foretell."""
    if len(points) < 2:
        return 0.0
    return points[-1][1] * (value / points[-1][0]) ** max(slope(points[-2:]), 0.0)


def planted(arena: str, n_rows: int, n_columns: int, n_clusters: int):
    import numpy as np

    from partita.datasets.views import make_planted_views

    if arena == "views":
        data = make_planted_views(
            1, n_rows, n_columns, N_VIEWS, n_clusters=n_clusters, separation=2.0, random_state=0
        )
        return data.X, data.view_labels
    rng = np.random.default_rng(0)
    z = rng.integers(n_clusters, size=n_rows)
    if arena != "label matrices":
        return rng.normal(size=(n_rows, n_columns)) + 2.0 * rng.normal(size=(n_clusters, n_columns))[z], z
    renamed = np.argsort(rng.random((n_columns, n_clusters)), axis=1).T[z]
    redrawn = rng.integers(n_clusters, size=renamed.shape)
    return np.where(rng.random(renamed.shape) < 0.2, redrawn, renamed).astype(np.int64), z


def agreement(arena: str, z, labels) -> float:
    """With what was planted: adjusted Rand index, for views the average NMI of the best matching."""
    from partita.metrics import adjusted_rand, match_labelings

    return match_labelings(z, labels).average if arena == "views" else adjusted_rand(z, labels)


def fit_one(arena: str, name: str, X, K: int):
    """Labels by one engine; K is given to the engines that take it."""
    import partita

    if name in ARENAS[arena].peers:
        return PEER_FITS[name](X, K)
    steps = {"n_init": 1, "max_iter": 10, "tol": 0.0, "random_state": 0}
    chain = {"n_chains": 1, "n_draws": 5, "burn_in": 5, "random_state": 0}
    kind, _, inference = name.rpartition(" ")
    families = {"Mixture": "categorical", "Gaussian": "gaussian", "full covariance": "gaussian_full"}
    if kind in families:
        options = chain if inference in ("gibbs", "subclusters") else {**steps, "n_clusters": K}
        return partita.Mixture(families[kind], inference=inference, **options).fit(X).labels_
    if kind == "NBCE":
        options = chain if inference == "gibbs" else {**steps, "n_clusters": K}
        return partita.NBCE(inference=inference, **options).fit(X).labels_
    if kind == "CrossCat":
        options = chain if inference == "gibbs" else {"max_iter": 10, "random_state": 0}
        return partita.CrossCat(inference=inference, **options).fit(X).view_labels_
    if name == "OverlappingViews":
        return partita.OverlappingViews(random_state=0).fit(X).view_labels_
    if name in ("DecorrelatedKMeans", "OrthogonalViews"):
        return getattr(partita, name)(K, N_VIEWS, random_state=0).fit(X).view_labels_
    arguments = {
        **dict.fromkeys(("LACA", "Consensus", "BipartiteModularity", "AffinityPropagation"), ()),
        "BayesianTree": ("gaussian",),
    }.get(name, (K,))
    options = steps if name in ("MixtureConsensus", "BCE") else {}
    if not options and name not in ("EvidenceAccumulation", "LWEA", "MCLA", "LACA", "Agglomerative", "Diana"):
        options = {"random_state": 0}
    return getattr(partita, name)(*arguments, **options).fit(X).labels_


# ---- the peers, as their users call them -----------------------------------------------------------------------


def stepmix(X, K: int):
    from stepmix.stepmix import StepMix

    model = StepMix(n_components=K, measurement="categorical", max_iter=10, random_state=0, progress_bar=0)
    return model.fit(X).predict(X)


def onehot_kmeans(X, K: int):
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import OneHotEncoder

    return KMeans(K, n_init=1, random_state=0).fit_predict(OneHotEncoder().fit_transform(X))


def bipartite_leiden(X, K: int):
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


def sklearn_mixture(cls: str, covariance: str):
    def fit(X, K: int):
        import sklearn.mixture

        options = {"covariance_type": covariance, "max_iter": 10, "tol": 0.0, "random_state": 0}
        return getattr(sklearn.mixture, cls)(n_components=K, **options).fit_predict(X)

    return fit


def fastcluster_average(X, K: int):
    import fastcluster
    from scipy.cluster.hierarchy import fcluster
    from scipy.spatial.distance import pdist

    return fcluster(fastcluster.average(pdist(X)), K, "maxclust")


def sklearn_spectral(X, K: int):
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(K, affinity="nearest_neighbors", random_state=0).fit_predict(X)


def sklearn_affinity(X, K: int):
    from sklearn.cluster import AffinityPropagation

    return AffinityPropagation(random_state=0).fit_predict(X)


def lace(X, K: int):
    from benchmarks.papers.ofv import fit_lace

    return fit_lace(X, seed=0)


PEER_FITS = {
    "StepMix": stepmix,
    "one-hot k-means": onehot_kmeans,
    "bipartite Leiden": bipartite_leiden,
    **{
        f"{cls}, {words}": sklearn_mixture(cls, covariance)
        for cls in ("GaussianMixture", "BayesianGaussianMixture")
        for words, covariance in (("diagonal", "diag"), ("full", "full"))
    },
    "fastcluster, average link": fastcluster_average,
    "SpectralClustering (scikit-learn)": sklearn_spectral,
    "AffinityPropagation (scikit-learn)": sklearn_affinity,
    "lace": lace,
}
