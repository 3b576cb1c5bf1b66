"""Animals in blocks: Murphy's figure 25.18, and P(K) of animals and features beside the published 12 and 33.

50 animals x 85 features, yes or no (Osherson; Kemp et al. 2006, whose best solution has 12 clusters of animals and 33
of features; the printed figure shows a part of it). Here both numbers have a posterior. Then random cells are hidden
and predicted: accuracy and log score of the blocks, beside a prediction by the share of yes in the column of the cell
(with one pseudo-count each).

The nations (14 x 111 attributes; the relations between nations are not among our data) are read as a table too.

The picture is written to docs/images (with --full) or benchmarks/out; without matplotlib only the numbers are written.
"""

from __future__ import annotations

import importlib.util

from benchmarks.processes import ROOT, in_own_process

PUBLISHED = {"animals": 12, "features": 33}
HIDDEN = 0.1


def run(*, full: bool, repeats: int) -> dict:
    folder = ROOT / ("docs/images" if full else "benchmarks/out")
    folder.mkdir(parents=True, exist_ok=True)
    n_draws, n_chains = (1000, 4) if full else (40, 1)
    animals = in_own_process(fit_animals, folder=str(folder), n_draws=n_draws, n_chains=n_chains)
    print(f"   animals {animals['rows']['mean']:.1f}, features {animals['columns']['mean']:.1f}", flush=True)
    links = in_own_process(predict_links, n_draws=200 if full else 40, n_sets=5 if full else 1)
    print(
        f"   hidden cells: accuracy {links['accuracy']:.3f}, by column {links['column_accuracy']:.3f}",
        flush=True,
    )
    nations = in_own_process(fit_nations, n_draws=n_draws, n_chains=n_chains)
    bars = {
        "the published 12 clusters of animals have at least 5%": animals["rows"]["published_share"] >= 0.05,
        "the published 33 clusters of features have at least 5%": animals["columns"]["published_share"]
        >= 0.05,
        "hidden cells are predicted better than by their columns": links["log_score"]
        > links["column_log_score"],
    }
    return {
        "summary": {"animals": animals, "hidden_cells": links, "nations": nations},
        "bars": bars if full else {},
    }


# ---- in processes of their own ---------------------------------------------------------------------------------


def fit_animals(folder: str, n_draws: int, n_chains: int) -> dict:
    """The posterior of both numbers of clusters, and the picture."""
    model, data, cpu_s = fitted("animals_50x85", n_draws, n_chains)
    if importlib.util.find_spec("matplotlib"):
        draw(model, data, f"{folder}/irm_animals.png")
    names = data.ids
    members = [
        [str(names[i]) for i in range(len(names)) if model.row_labels_[i] == k]
        for k in range(model.n_row_clusters_)
    ]
    return {**summary(model, PUBLISHED["animals"], PUBLISHED["features"]), "cpu_s": cpu_s, "animals": members}


def fit_nations(n_draws: int, n_chains: int) -> dict:
    model, data, cpu_s = fitted("nations_14x111", n_draws, n_chains)
    members = [
        [str(data.ids[i]) for i in range(len(data.ids)) if model.row_labels_[i] == k]
        for k in range(model.n_row_clusters_)
    ]
    return {**summary(model), "cpu_s": cpu_s, "nations": members}


def fitted(name: str, n_draws: int, n_chains: int):
    import time
    import warnings

    from benchmarks.data import load_benchmark
    from partita import RelationalBlocks

    data = load_benchmark(name)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the diagnostics say is in the result
        model = RelationalBlocks(n_chains=n_chains, n_draws=n_draws, burn_in=200, random_state=0).fit(data.X)
    return model, data, round(time.process_time() - began, 1)


def summary(model, rows: int | None = None, columns: int | None = None) -> dict:
    out = {"found": [model.n_row_clusters_, model.n_column_clusters_]}
    sides = {
        "rows": (model.row_trace_, model.n_row_clusters_posterior_, model.row_diagnostics_, rows),
        "columns": (
            model.column_trace_,
            model.n_column_clusters_posterior_,
            model.column_diagnostics_,
            columns,
        ),
    }
    for side, (trace, shares, diagnostics, published) in sides.items():
        n_clusters = diagnostics.quantities[0]
        out[side] = {
            "mean": round(float(trace.n_clusters.mean()), 2),
            "mode": max(shares, key=shares.get),
            "posterior": {str(K): round(p, 4) for K, p in shares.items()},
            "rhat": round(n_clusters.rhat, 3),
            "ess_bulk": round(n_clusters.ess_bulk),
            "published": published,
            "published_share": None if published is None else round(shares.get(published, 0.0), 4),
        }
    return out


def predict_links(n_draws: int, n_sets: int) -> dict:
    """Hidden cells of the animals, several random sets of them."""
    import warnings

    import numpy as np

    from benchmarks.data import load_benchmark
    from partita import RelationalBlocks

    X = load_benchmark("animals_50x85").X
    found = []
    for seed in range(n_sets):
        shown = X.copy()
        shown[np.random.default_rng(seed).random(X.shape) < HIDDEN] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RelationalBlocks(n_chains=2, n_draws=n_draws, burn_in=100, random_state=seed).fit(shown)
        cells = model.missing_cells()
        truth = X[tuple(cells.T)]
        seen = (~np.isnan(shown)).sum(axis=0)
        by_column = ((np.nansum(shown, axis=0) + 1) / (seen + 2))[cells[:, 1]]
        found.append(
            [
                np.mean(model.predict_cells() == truth),
                model.score_cells(truth).mean(),
                np.mean((by_column > 0.5) == truth),
                np.log(np.where(truth == 1, by_column, 1 - by_column)).mean(),
                len(cells),
            ]
        )
    accuracy, log_score, column_accuracy, column_log_score, n_cells = np.mean(found, axis=0)
    return {
        "n_sets": n_sets,
        "cells": round(float(n_cells), 1),
        "accuracy": round(float(accuracy), 4),
        "log_score": round(float(log_score), 4),
        "column_accuracy": round(float(column_accuracy), 4),
        "column_log_score": round(float(column_log_score), 4),
    }


# ---- the picture -----------------------------------------------------------------------------------------------


def draw(model, data, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from partita.plotting import plot_blocks, plot_side_clusters

    figure = plt.figure(figsize=(11.0, 9.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[3.2, 1.0])
    ax = figure.add_subplot(grid[0, :])
    plot_blocks(model, data.X, row_names=data.ids, column_names=data.feature_names, ax=ax)
    ax.set_title(f"50 animals x 85 features: {ax.get_title(loc='left')}", loc="left")
    for column, side, published, name in (
        (0, "rows", PUBLISHED["animals"], "animals"),
        (1, "columns", PUBLISHED["features"], "features"),
    ):
        below = plot_side_clusters(model, side, reference=published, ax=figure.add_subplot(grid[1, column]))
        below.set_xlabel(f"clusters of {name}")
    figure.savefig(path, dpi=130)
