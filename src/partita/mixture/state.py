"""The fitted state of a mixture as plain data, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.engines.passes import Parameters, Statistics
from partita.estimator import FitReport
from partita.families import Block, entry_of, family_entry
from partita.mixture.profiles import profile_columns
from partita.partitions import FiniteDirichlet, StickBreaking
from partita.table import Schema

__all__ = ["restore_state", "saved_state"]

ARRAYS = ("labels_", "confidence_", "weights_", "objective_trace_")
NUMBERS = (
    "n_clusters_",
    "label_entropy_",
    "log_likelihood_",
    "converged_",
    "n_iter_",
    "n_parameters_",
    "weight_total_",
)
PRIORS = {cls.__name__: cls for cls in (FiniteDirichlet, StickBreaking)}


def saved_state(model: Any) -> dict[str, Any]:
    """Everything that ``predict`` and the attributes need."""
    statistics = model._statistics
    return {
        "schema": model.schema_.to_dict(),
        "report": model.fit_report_.to_list(),
        "blocks": [
            {"family": entry_of(b.family).name, "hyper": list(b.family), "columns": list(b.columns)}
            for b in model._blocks
        ],
        "prior": [type(model.prior_).__name__, list(model.prior_)],
        "sizes": statistics.n,
        "statistics": list(statistics.S),
        "sums": list(statistics[2:]),
        "log_weights": model._log_weights,
        "parameters": None
        if model._parameters is None
        else {"log_weights": model._parameters.log_weights, "thetas": list(model._parameters.thetas)},
        "lower_bound": getattr(model, "lower_bound_", None),
    } | {name: getattr(model, name) for name in ARRAYS + NUMBERS}


def restore_state(model: Any, state: dict[str, Any]) -> None:
    """Make a fresh estimator the fitted one."""
    model._remember(Schema.from_dict(state["schema"]))
    model.fit_report_ = FitReport.from_list(state["report"])
    model._blocks = tuple(
        Block(family_entry(b["family"]).cls(*b["hyper"]), None, tuple(b["columns"])) for b in state["blocks"]
    )
    model.prior_ = PRIORS[state["prior"][0]](*state["prior"][1])
    model._statistics = Statistics(state["sizes"], tuple(state["statistics"]), *state["sums"])
    model._log_weights = state["log_weights"]
    saved = state["parameters"]
    model._parameters = saved and Parameters(saved["log_weights"], tuple(saved["thetas"]))
    _check_shapes(model)
    if state["lower_bound"] is not None:
        model.lower_bound_ = state["lower_bound"]
    for name in ARRAYS + NUMBERS:
        setattr(model, name, state[name])
    model.profiles_ = profile_columns(model._blocks, model._statistics, model.schema_)


def _check_shapes(model: Any) -> None:
    """A file whose parts do not fit together is refused here rather than read out of bounds in a kernel."""
    from partita.engines.passes import n_stats

    K = len(model._log_weights)
    for block, S in zip(model._blocks, model._statistics.S, strict=True):
        if S.shape != (n_stats(block.family), K) or S.dtype != np.float64:
            raise ValueError(f"statistics of {type(block.family).__name__} have shape {S.shape}")
