"""Moons and spirals: spectral clustering of partita and of scikit-learn.

All programs get the raw table. partita runs with its defaults (it then finds the number of clusters too) and with the
number of clusters given; scikit-learn runs with the number of clusters given, by its default (a Gaussian kernel) and on
a graph of neighbors. The score is the adjusted Rand index to the two shapes. Generated sets: five draws.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process
from benchmarks.record import spread

MADE = {
    "moons": {"shape": "moons", "n_rows": 300, "noise": 0.05},
    "noisy moons": {"shape": "moons", "n_rows": 300, "noise": 0.1},
    "spirals": {"shape": "spirals", "n_rows": 400, "noise": 0.3},
}
KEPT = ("two_spirals_1000_handl", "two_spirals_200_generated", "half_rings_400_generated", "jain_373")
PROGRAMS = ("partita", "partita_given", "sklearn", "sklearn_neighbors")
SOLVED = ("moons", "spirals", "two_spirals_1000_handl", "two_spirals_200_generated")
N_DRAWS = 5


def run(*, full: bool, repeats: int) -> dict:
    n_draws = N_DRAWS if full else 1
    asked = [({"made": made, "seed": s}, name) for name, made in MADE.items() for s in range(n_draws)]
    if full:
        asked += [({"kept": name, "seed": 0}, name) for name in KEPT]
    runs: dict[str, list[dict]] = {}
    for arguments, name in asked:
        runs.setdefault(name, []).append(in_own_process(fit_all, **arguments))
    summary = {
        name: {
            program: {
                "rand": spread([one[program]["rand"] for one in found]),
                "n_clusters": spread([one[program]["n_clusters"] for one in found], 1),
            }
            for program in PROGRAMS
        }
        for name, found in runs.items()
    }
    for name, programs in summary.items():
        words = [
            f"{program} {p['rand']['median']:.2f} (least {p['rand']['min']:.2f}, K {p['n_clusters']['median']:.0f})"
            for program, p in programs.items()
        ]
        print(f"   {name}: {', '.join(words)}", flush=True)
    bars = {
        f"{name}: solved with the number of clusters": summary[name]["partita_given"]["rand"]["min"] == 1.0
        for name in SOLVED
        if name in summary
    }
    bars["moons and spirals: solved without any parameter"] = all(
        summary[name]["partita"]["rand"]["min"] == 1.0 for name in ("moons", "spirals")
    )
    return {"n_draws": n_draws, "runs": runs, "summary": summary, "bars": bars if full else {}}


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit_all(seed: int, made: dict | None = None, kept: str | None = None) -> dict:
    import warnings

    import numpy as np
    from sklearn.cluster import SpectralClustering as Theirs

    from partita import SpectralClustering
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    X, z = make(seed=seed, **made) if kept is None else read(kept)
    models = {
        "partita": SpectralClustering(random_state=seed),
        "partita_given": SpectralClustering(2, random_state=seed),
        "sklearn": Theirs(2, random_state=seed),
        "sklearn_neighbors": Theirs(2, affinity="nearest_neighbors", random_state=seed),
    }
    out = {}
    for program, model in models.items():
        labels = model.fit_predict(X)
        out[program] = {"rand": adjusted_rand(labels, z), "n_clusters": len(np.unique(labels))}
    return out


def read(name: str):
    import numpy as np

    from benchmarks.data import load_benchmark

    data = load_benchmark(name)
    return np.asarray(data.X, dtype=float), data.target


def make(shape: str, n_rows: int, noise: float, seed: int):
    """Two moons, or two arms of one and a half turns that are evenly filled."""
    import numpy as np
    from sklearn.datasets import make_moons

    if shape == "moons":
        return make_moons(n_rows, noise=noise, random_state=seed)
    angle = np.sqrt(np.linspace(0.04, 1.0, n_rows // 2)) * 3 * np.pi
    arm = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    shake = noise * np.random.default_rng(seed).normal(size=(n_rows, 2))
    return np.concatenate([arm, -arm]) + shake, np.repeat([0, 1], n_rows // 2)
