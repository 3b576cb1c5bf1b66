"""Simulation-based calibration of the samplers: ranks of the truth among posterior draws, over all of the hyperprior.

The models and their small tables are those of ``calibration_models``. Ranks of a correct sampler are uniform; a
p-value below ``FALSE_ALARM`` for any quantity of a model refuses it.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.quality.calibration_models import MODELS, N_DRAWS, N_ROWS
from partita.testing import FALSE_ALARM, calibration_ranks, rank_p_value

N_TABLES = 100


def run(*, full: bool, repeats: int) -> dict:
    n_tables = N_TABLES if full else 10
    models = {}
    for name in MODELS:
        models[name] = measure(name, n_tables)
        print(f"   {name:32} adjusted p {models[name]['adjusted_p']:.3g}", flush=True)
    return summarized(models, n_tables, full)


def measure(name: str, n_tables: int) -> dict:
    """Histograms of the ranks of one model, and their p-values."""
    begun = time.process_time()
    ranks = calibration_ranks(MODELS[name], np.random.default_rng([24, *name.encode()]), n_tables)
    p = {trait: rank_p_value(values, N_DRAWS) for trait, values in ranks.items()}
    return {
        "model": name,
        "histograms": {
            trait: np.bincount(values, minlength=N_DRAWS + 1).tolist() for trait, values in ranks.items()
        },
        "p_values": p,
        "n_traits": len(p),
        "adjusted_p": min(1.0, len(p) * min(p.values())),
        "cpu_s": time.process_time() - begun,
    }


def summarized(models: dict[str, dict], n_tables: int, full: bool) -> dict:
    smallest = min(model["adjusted_p"] for model in models.values())
    summary = {
        "n_models": len(models),
        "n_traits": sum(model["n_traits"] for model in models.values()),
        "smallest_adjusted_p": smallest,
    }
    bars = {f"{name}: calibrated": model["adjusted_p"] > FALSE_ALARM for name, model in models.items()}
    sizes = {"n_tables": n_tables, "n_draws": N_DRAWS, "n_rows": N_ROWS}
    return sizes | {"models": models, "summary": summary, "bars": bars if full else {}}
