"""Table 2 of NBMC-OFV: faces by person, pose, expression and glasses; web pages by university and type.

The score is the NMI (geometric mean) between each known labeling and the view that is matched to it, one to one.
Methods that need the numbers of clusters and views are given the true ones. `OverlappingViews` is given neither, but
has at most twelve views and five minutes (a picture of many smooth pixels supports ever more views). The small size
has fewer pixels and words. The machine sounds of the paper (280 recordings) are not available.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process

NAMES = {
    "cmu_faces_640": ("person", "pose", "expression", "glasses"),
    "webkb_1041": ("university", "type"),
}
PAPER = {
    "cmu_faces_640": {
        "NBMC-OFV": (0.89, 0.57),
        "OrthProj": (0.83, 0.48),
        "D-kmeans": (0.70, 0.40),
        "CRP-CRP": (0.86, 0.53),
        "DP-Gaussian": (0.84, 0.03),
    },
    "webkb_1041": {
        "NBMC-OFV": (0.85, 0.70),
        "OrthProj": (0.78, 0.75),
        "D-kmeans": (0.48, 0.57),
        "CRP-CRP": (0.63, 0.68),
        "DP-multinomial": (0.26, 0.39),
    },
}
PAPER_MACHINE_SOUND = {  # pump, motor, fan
    "NBMC-OFV": (0.89, 0.86, 0.87),
    "OrthProj": (0.73, 0.68, 0.47),
    "D-kmeans": (0.64, 0.58, 0.75),
    "CRP-CRP": (0.81, 0.78, 0.83),
    "DP-Gaussian": (0.25, 0.32, 0.16),
}
MAX_VIEWS = 12
METHODS = ("ours", "disjoint", "decorrelated", "features", "clustering", "one_view")


def run(*, full: bool, repeats: int) -> dict:
    table = {}
    for data, names in NAMES.items():
        table[data] = {}
        for method in METHODS:
            found = in_own_process(one, data=data, method=method, full=full)
            table[data][method] = found
            if "skipped" in found:
                print(f"   {data}: skipped, {found['skipped']}", flush=True)
                break
            values = ", ".join(f"{n} {v:.2f}" for n, v in zip(names, found["nmi"], strict=True))
            print(f"   {data} {method}: {values}; {found['n_views']} views, {found['cpu']:.0f} s", flush=True)
    return {"summary": {"ours": table, "paper": PAPER}, "bars": {}}


def one(data: str, method: str, full: bool) -> dict:
    """One method on one table."""
    import time
    import warnings

    import numpy as np

    from benchmarks.data import load_benchmark
    from benchmarks.matching import matched_nmi

    warnings.simplefilter("ignore")
    try:
        table = load_benchmark(data)
    except FileNotFoundError as error:
        return {"skipped": str(error)}
    X = thinned(table.X, data, full)
    truth = [np.asarray(z) for z in table.target.T]
    start = time.process_time()
    labels = fit(method, X, data, [int(z.max()) + 1 for z in truth], full)
    cpu = time.process_time() - start
    return {
        "nmi": matched_nmi(truth, labels).round(3).tolist(),
        "n_views": int(labels.shape[1]),
        "cpu": round(cpu, 1),
        "columns": X.shape[1],
    }


def thinned(X, data: str, full: bool):
    """All columns, or fewer: pixels by blocks of four, the words of largest variance."""
    import numpy as np

    if full:
        return X
    if data == "cmu_faces_640":
        return X.reshape(len(X), 15, 2, 16, 2).mean(axis=(2, 4)).reshape(len(X), -1)
    return X[:, np.sort(np.argsort(-X.var(axis=0))[:60])]


def fit(method: str, X, data: str, sizes: list[int], full: bool):
    from partita import DecorrelatedKMeans, DPGaussian, DPMultinomial, OrthogonalViews, OverlappingViews

    text = data.startswith("webkb")
    if method in ("ours", "disjoint"):
        options = {"kinds": "count", "exposure": "length"} if text else {}
        largest = 1 if method == "disjoint" else None
        model = OverlappingViews(
            max_views_per_feature=largest,
            max_views=MAX_VIEWS,
            time_limit=300.0 if full else 10.0,
            n_init=2,
            n_chains=1,
            n_draws=10,
            burn_in=5,
            random_state=0,
            **options,
        )
        return model.fit(X).view_labels_
    A = shares(X) if text else X
    if method == "decorrelated":
        return DecorrelatedKMeans(sizes, len(sizes), random_state=0).fit(A).view_labels_
    if method in ("features", "clustering"):
        return OrthogonalViews(sizes, len(sizes), variant=method, random_state=0).fit(A).view_labels_
    preset = DPMultinomial if text else DPGaussian
    return preset(n_chains=1, n_draws=20, burn_in=30, random_state=0).fit(X).labels_[:, None]


def shares(X):
    """Words as shares of their document, on the scale of square roots."""
    import numpy as np

    return np.sqrt(X / np.maximum(X.sum(axis=1, keepdims=True), 1.0))
