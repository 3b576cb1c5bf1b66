"""Views whose columns are correlated inside the clusters, with and without row factors of groups of columns.

Planted views of six or eight columns and three clusters: the columns of a view share a continuous factor, whose
loadings have a standard deviation of 1.5 where the clusters have one of 1 and their means one of 3. Beside the
defaults, `nuisance=0` fits models of independent columns inside clusters. Tables without such factors show what the
search for them costs. The oracle knows the factors and all parameters.
"""

from __future__ import annotations

import numpy as np

from benchmarks.processes import in_own_process

SHAPES = ((2, 8), (4, 6), (8, 6))  # views, columns per view
N_ROWS, N_CLUSTERS, SEPARATION, LOADING = 500, 3, 3.0, 1.5
MODELS = ("CrossCat", "OverlappingViews")
LEAST_SHARE = 0.97  # of the NMI of the oracle


def run(*, full: bool, repeats: int) -> dict:
    seeds = (100, 101, 102) if full else (100,)
    cases = [(*shape, LOADING) for shape in SHAPES[: len(SHAPES) if full else 1]] + [(4, 6, 0.0)] * full
    runs = []
    for n_views, n_columns, loading in cases:
        for name in MODELS:
            for nuisance in ("auto", 0):
                size = {"n_views": n_views, "n_columns": n_columns, "loading": loading}
                found = [in_own_process(fit, name=name, nuisance=nuisance, seed=s, **size) for s in seeds]
                means = {key: round(float(np.mean([one[key] for one in found])), 3) for key in found[0]}
                runs.append({"model": name, "nuisance": str(nuisance), **size, **means})
                print(f"   {runs[-1]}", flush=True)
    ours = [one for one in runs if one["nuisance"] == "auto"]
    bars = {
        f"{name}: at least {LEAST_SHARE:g} of the oracle": all(
            one["nmi"] >= LEAST_SHARE * one["oracle"] for one in ours if one["model"] == name
        )
        for name in MODELS
    }
    return {"size": {"n_rows": N_ROWS, "seeds": len(seeds)}, "summary": {"runs": runs}, "bars": bars}


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit(name: str, nuisance: str | int, n_views: int, n_columns: int, loading: float, seed: int) -> dict:
    """A fit with the defaults but for ``nuisance``."""
    import time
    import warnings

    import partita
    from partita.datasets import make_planted_views
    from partita.metrics import match_labelings

    warnings.simplefilter("ignore")
    planted = make_planted_views(
        1, N_ROWS, n_views * n_columns, n_views, N_CLUSTERS, SEPARATION, loading=loading, random_state=seed
    )
    estimator = getattr(partita, name)
    estimator(n_chains=1, n_draws=2, burn_in=1, random_state=0).fit(planted.X[:60])  # compiles
    start = time.process_time()
    model = estimator(nuisance=nuisance, random_state=0).fit(planted.X)
    cpu = time.process_time() - start
    return {
        "nmi": match_labelings(planted.view_labels, model.view_labels_).average,
        "oracle": match_labelings(planted.view_labels, planted.oracle).average,
        "views_found": model.n_views_,
        "clusters_per_view": float(1 + model.view_labels_[:, model.counted_views_].max(axis=0).mean()),
        "row_factors": model.row_factors_.shape[1],
        "cpu": cpu,
    }
