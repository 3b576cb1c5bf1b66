"""Simulation-based calibration of the samplers: ranks of the truth among posterior draws, over all of the hyperprior.

The models and their small tables are those of ``calibration_models``. Ranks of a correct sampler are uniform; a
p-value below ``FALSE_ALARM`` for any trait of a model would refuse it.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.quality.calibration_models import MODELS, N_DRAWS, N_ROWS
from partita.testing import FALSE_ALARM, calibration_ranks, rank_p_value

N_TABLES = 200


def run(*, full: bool, repeats: int) -> dict:
    n_tables = N_TABLES if full else 10
    models = {}
    for number, (name, simulate) in enumerate(MODELS.items()):
        begun = time.process_time()
        ranks = calibration_ranks(simulate, np.random.default_rng([number, 24]), n_tables)
        p = {trait: rank_p_value(values, N_DRAWS) for trait, values in ranks.items()}
        models[name] = {
            "histograms": {
                trait: np.bincount(values, minlength=N_DRAWS + 1).tolist() for trait, values in ranks.items()
            },
            "p_values": p,
            "n_traits": len(p),
            "smallest_p": min(p.values()),
            "adjusted_p": min(1.0, len(p) * min(p.values())),
            "cpu_s": time.process_time() - begun,
        }
        print(f"   {name:32} smallest p of {len(p)}: {min(p.values()):.3g}", flush=True)
    smallest = min(model["adjusted_p"] for model in models.values())
    summary = {
        "n_models": len(models),
        "smallest_adjusted_p": smallest,
        "n_traits": sum(m["n_traits"] for m in models.values()),
    }
    bars = {f"{name}: calibrated": model["adjusted_p"] > FALSE_ALARM for name, model in models.items()}
    sizes = {"n_tables": n_tables, "n_draws": N_DRAWS, "n_rows": N_ROWS}
    return sizes | {"models": models, "summary": summary, "bars": bars if full else {}}
