"""Labeled sets and the five kinds of ensembles on which consensus methods are compared, cached on disk.

Sets: features standardized, at most 600 rows, drawn once. Kinds: a = k-means, k = 50, 75, 100, 150 and 200% of the
number of classes, 10 members; b50 and b200 = k-means on random subspaces, k from 2 to n/15, 50 or 200 members; c =
k-means on bootstrap samples, k from 2 to sqrt(n), left-out objects missing (about 37%), 30 members; d = k-means, Ward,
diagonal GMM and spectral clustering in turn on random subspaces, k from half to twice the number of classes, 20
members.

The sets of `HELD_OUT` were not used to choose any default; they are also reported on their own.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.files import write_atomically

MOST_ROWS = 600
KINDS = ("a", "b50", "b200", "c", "d")
RECIPES = 1  # raise it when a recipe changes: what is cached is then made again

# name -> which labeling counts, where a set has several (from 0)
TUNED_ON = {
    "iris": 0,
    "wine": 0,
    "digits": 0,
    "glass": 0,
    "ecoli": 0,
    "segmentation_210": 0,
    "libras": 0,
    "pima": 0,
    "pendigits": 0,
    "letter": 0,
    "letter_aj700": 0,
    "isolet_abcdeg": 0,
    "trace": 0,
    "spambase": 0,
    "newsgroups_w100": 0,
    "jain_373": 0,
    "half_rings_400_generated": 0,
    "dpmm_2d_100_generated": 0,
    "cmu_faces_640": 0,
    "webkb_linqs": 1,
}
HELD_OUT = {
    "seeds": 0,
    "breast_cancer": 0,
    "control_chart": 0,
    "segmentation_2310": 0,
    "webkb_1041": 1,
    "height_weight": 0,
}
BUNDLED = {"wine": "load_wine", "digits": "load_digits", "breast_cancer": "load_breast_cancer"}


class LabeledSet(NamedTuple):
    """Standardised features and classes of at most 600 objects."""

    X: np.ndarray
    classes: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(np.unique(self.classes).size)


def labeled_set(name: str) -> LabeledSet:
    """Read a set; FileNotFoundError where PARTITA_DATA does not name a folder that has it."""
    X, classes = _read(name)
    if len(X) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False))
        X, classes = X[rows], classes[rows]
    spread = X.std(axis=0)
    return LabeledSet((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), classes)


def _read(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in BUNDLED:
        import sklearn.datasets

        return getattr(sklearn.datasets, BUNDLED[name])(return_X_y=True)
    from benchmarks.data import load_benchmark

    table = load_benchmark(name)
    classes = np.asarray(table.target)
    if classes.ndim == 2:
        classes = classes[:, {**TUNED_ON, **HELD_OUT}[name]]
    return np.asarray(table.X, dtype=float), classes


def ensemble(name: str, kind: str, seed: int, folder: str | None = None) -> np.ndarray:
    """The label matrix of a set, kind and seed; generated once and stored in the folder."""
    path = Path(folder or default_folder()) / f"{name}-{kind}-{seed}.npy"
    if path.exists():
        return np.load(path)
    Y = make_ensemble(labeled_set(name), kind, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as temporary:  # two processes may make the same one
        np.save(temporary, Y)
    return Y


def default_folder() -> str:
    stamp = f"{RECIPES}-{version('scikit-learn')}-{version('numpy')}"
    return str(Path(tempfile.gettempdir()) / f"partita-ensembles-{stamp}")


def make_ensemble(data: LabeledSet, kind: str, seed: int) -> np.ndarray:
    """One ensemble of one of the five kinds."""
    from partita.ensembles import bootstrap_ensemble, kmeans_ensemble, mixed_ensemble, subspace_ensemble

    C = data.n_classes
    options: dict[str, Any] = {
        "random_state": np.random.SeedSequence([seed, KINDS.index(kind)]),
        "kinds": "real",
    }
    if kind == "a":
        return kmeans_ensemble(data.X, C, 10, **options)
    if kind in ("b50", "b200"):
        return subspace_ensemble(data.X, int(kind[1:]), **options)
    if kind == "c":
        return bootstrap_ensemble(data.X, 30, **options)
    return mixed_ensemble(data.X, 20, n_clusters=(max(2, (C + 1) // 2), max(2, 2 * C)), **options)
