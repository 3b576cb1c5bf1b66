"""Variants of the default `Mixture` that were compared on the tables with which the default was chosen.

Each variant changes one choice: what it is worth on the tables of `real_tables`, one seed. Parameters that users have
are given as such; the breadth of the hyperprior of the size is changed in the code.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from benchmarks.processes import in_own_process
from benchmarks.quality.labeled_tables import TABLES

SMALL = ("iris", "wine", "seeds")
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "narrow_size": {},  # the hyperprior of the size is as wide as those of other hyper-parameters
    "learned_concentration": {"prior": "mfm"},
    "concentration_10": {"concentration": 10.0},
    "no_ties": {"family": {"real": ("auto", {"ties": False})}},
    "coarse_ties": {},  # only cells wider than a quarter of the deviation of the column
    "learned_shape": {"family": {"real": ("auto", {"shape": True})}},
}
COARSE = 0.25


def run(*, full: bool, repeats: int) -> dict:
    found = {name: in_own_process(fit_variants, name=name) for name in (TABLES if full else SMALL)}
    summary = {}
    for variant in VARIANTS:
        behind = [one["default"]["ari"] - one[variant]["ari"] for one in found.values()]
        error = statistics.stdev(behind) / math.sqrt(len(behind))
        summary[variant] = {
            "ari": round(statistics.mean(one[variant]["ari"] for one in found.values()), 4),
            "off_k": round(statistics.mean(one[variant]["off_k"] for one in found.values()), 2),
            "behind": round(statistics.mean(behind), 4),
            "standard_error": round(error, 4),
        }
        print(f"   {variant:22} {summary[variant]}", flush=True)
    return {"found": found, "summary": summary}


# ---- in a process of its own -----------------------------------------------------------------------------------


def fit_variants(name: str) -> dict:
    """All variants on one table."""
    import warnings
    from unittest.mock import patch

    import numpy as np

    from benchmarks.quality.labeled_tables import load_table
    from partita import Mixture
    from partita.families import gaussian_full_arrays, ties
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    table = load_table(name)
    n_classes = len(np.unique(table.classes))
    changed = {
        "narrow_size": patch.object(gaussian_full_arrays, "SIZE_BREADTH", 1.0),
        "coarse_ties": patch.object(ties, "MIN_WIDTH", COARSE),
    }
    out: dict[str, Any] = {}
    for variant, parameters in VARIANTS.items():
        with changed.get(variant, patch.object(ties, "MIN_WIDTH", ties.MIN_WIDTH)):
            labels = Mixture(random_state=0, **parameters).fit_predict(table.frame)
        n_clusters = len(np.unique(labels))
        out[variant] = {
            "ari": adjusted_rand(table.classes, labels),
            "n_clusters": n_clusters,
            "off_k": abs(n_clusters - n_classes),
        }
    return out
