"""Variants of the default `Mixture` that were compared on the tables with which the default was chosen.

Each variant changes one choice: what it is worth on the tables of `real_tables`, two seeds. Parameters that users have
are given as such; other choices are changed in the code while the variant is fitted. What a variant costs is told by
its iterations.

The result of each table is stored when it is done: the same command goes on from there if a run was ended (`parts`).
"""

from __future__ import annotations

import math
import statistics
from contextlib import nullcontext
from typing import Any

from benchmarks.parts import Parts
from benchmarks.quality.labeled_tables import TABLES

SMALL = ("iris", "wine", "seeds")
SEEDS = (0, 1)
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "longer_chains": {},  # chains that do not agree after 160 iterations run on
    "learned_concentration": {"prior": "mfm"},
    "concentration_10": {"concentration": 10.0},
}
LATER_CHECKS = (240, 360)  # iterations


def run(*, full: bool, repeats: int) -> dict:
    parts = Parts("real_variants")
    found = {}
    for name in TABLES if full else SMALL:
        found[name] = parts.run(fit_variants, name=name)
        text = ", ".join(
            f"{v} {found[name][v]['ari']:.2f}/{found[name][v]['n_clusters']:.1f}" for v in VARIANTS
        )
        print(f"   {name}: {text}", flush=True)
    summary = {variant: _summary(variant, found) for variant in VARIANTS}
    for variant, one in summary.items():
        print(f"   {variant:22} {one}", flush=True)
    parts.forget()
    return {"found": found, "n_seeds": len(SEEDS), "summary": summary}


def _summary(variant: str, found: dict[str, dict]) -> dict[str, float]:
    behind = [one["default"]["ari"] - one[variant]["ari"] for one in found.values()]
    error = statistics.stdev(behind) / math.sqrt(len(behind))
    means = {
        key: statistics.mean(one[variant][key] for one in found.values())
        for key in ("ari", "off_k", "between_seeds")
    }
    return {
        "ari": round(means["ari"], 4),
        "off_k": round(means["off_k"], 2),
        "between_seeds": round(means["between_seeds"], 3),
        "n_iter": round(statistics.mean(one[variant]["n_iter"] for one in found.values())),
        "behind": round(statistics.mean(behind), 4),
        "standard_error": round(error, 4),
    }


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit_variants(name: str) -> dict:
    """All variants on one table."""
    import warnings

    import numpy as np

    from benchmarks.quality.labeled_tables import load_table
    from partita import Mixture
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    table = load_table(name)
    n_classes = len(np.unique(table.classes))
    out: dict[str, Any] = {}
    for variant, parameters in VARIANTS.items():
        with changed_for(variant):
            models = [Mixture(random_state=seed, **parameters).fit(table.frame) for seed in SEEDS]
        labels = [model.labels_ for model in models]
        n_clusters = statistics.mean(len(np.unique(z)) for z in labels)
        out[variant] = {
            "ari": statistics.mean(adjusted_rand(table.classes, z) for z in labels),
            "n_clusters": n_clusters,
            "off_k": abs(n_clusters - n_classes),
            "between_seeds": adjusted_rand(*labels),
            "n_iter": statistics.mean(model.n_iter_ for model in models),
        }
    return out


def changed_for(variant: str):
    """The change of the code that makes a variant, for as long as the context lasts."""
    from unittest.mock import patch

    from partita.fitting import settling

    if variant == "longer_chains":
        return patch.object(settling, "CHECKS", (*settling.CHECKS, *LATER_CHECKS))
    return nullcontext()
