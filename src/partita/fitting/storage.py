"""The fitted state of a mixture as plain data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Parameters, Statistics, n_stats
from partita.estimator import FitReport, diagnose_chains
from partita.families import Background, Block, entry_of, family_entry
from partita.fitting.outliers import Noise
from partita.fitting.profiles import profile_columns
from partita.partitions import DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking
from partita.table import Schema
from partita.trace import Trace

__all__ = ["check_array", "check_family", "checked_trace", "restore_state", "saved_state"]

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
PRIORS = {
    cls.__name__: cls
    for cls in (DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking)
}


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
        "trace": list(model.trace_) if hasattr(model, "trace_") else None,
        "object_rows": getattr(model, "object_rows_", None),
        "noise": None if model._noise is None else _saved_noise(model),
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
    _restore_noise(model, state.get("noise"))
    _check_shapes(model)
    if state["lower_bound"] is not None:
        model.lower_bound_ = state["lower_bound"]
    for name in ARRAYS + NUMBERS:
        setattr(model, name, state[name])
    if state["trace"] is not None:
        model.object_rows_ = state["object_rows"]
        model.trace_ = checked_trace(state["trace"], len(model.object_rows_))
        provisional = "provisional" in model.fit_report_
        model.n_clusters_posterior_ = {} if provisional else model.trace_.n_clusters_posterior
        model.diagnostics_ = diagnose_chains(model.trace_, provisional=provisional)
    model.profiles_ = profile_columns(model._blocks, model._statistics, model.schema_)


def _saved_noise(model: Any) -> dict[str, Any]:
    return {
        "hyper": [list(law.family) for law in model._noise.laws],
        "statistics": [law.S for law in model._noise.laws],
        "share": model._noise.share,
        "probability": model.noise_probability_,
    }


def _restore_noise(model: Any, saved: dict[str, Any] | None) -> None:
    """The background has the families of the blocks, with other numbers."""
    model._noise = None
    if saved is None:
        return
    families = [
        type(block.family)(*hyper) for block, hyper in zip(model._blocks, saved["hyper"], strict=True)
    ]
    for family, block, S in zip(families, model._blocks, saved["statistics"], strict=True):
        check_family(block._replace(family=family), model.schema_)
        check_array("statistics of the background", S, (n_stats(family), 1))
    laws = tuple(Background(*law) for law in zip(families, saved["statistics"], strict=True))
    model._noise = Noise(laws, float(saved["share"]))
    model.noise_share_, model.noise_probability_ = model._noise.share, saved["probability"]


def checked_trace(fields: Sequence[Any], n_objects: int) -> Trace:
    """The trace that a file holds, if its parts fit together."""
    trace = Trace(*fields)
    B = len(trace.log_joint)
    if trace.labels.shape != (B, n_objects) or any(np.shape(field) != (B,) for field in trace[1:]):
        raise ValueError(f"the trace does not hold {B} draws of {n_objects} objects")
    return trace


def _check_shapes(model: Any) -> None:
    """A file whose parts do not fit together is refused here rather than read out of bounds in a kernel."""
    K = len(model._log_weights)
    check_array("log weights", model._log_weights, (K,))
    check_array("sizes", model._statistics.n, (K,))
    for block in model._blocks:
        check_family(block, model.schema_)
    for block, S in zip(model._blocks, model._statistics.S, strict=True):
        check_array(f"statistics of {type(block.family).__name__}", S, (n_stats(block.family), K))
    if model._parameters is not None:
        check_array("log weights of the parameters", model._parameters.log_weights, (K,))
        for block, theta in zip(model._blocks, model._parameters.thetas, strict=True):
            check_array(f"parameters of {type(block.family).__name__}", theta, (n_stats(block.family), K))


def check_family(block: Block, schema: Schema) -> None:
    """Compare with a fresh family for the same columns: equal layout, other numbers."""
    entry = entry_of(block.family)
    columns = [schema.column(name) for name in block.columns]
    if any(column.kind != entry.kind for column in columns):
        raise ValueError(f"family {entry.name!r} does not read the kinds of {block.columns}")
    codes = entry.kind in ("binary", "categorical")
    one = (np.zeros if codes else np.ones)((1, len(columns)), np.int8 if codes else np.float64)
    n_levels = np.array([column.n_levels for column in columns], dtype=np.int64)
    fresh = entry.block(one, block.columns, np.ones(1), n_levels=n_levels, exposure=None).family
    for field, value, model in zip(fresh._fields, block.family, fresh, strict=True):
        if isinstance(model, np.ndarray):
            check_array(f"{field} of {entry.name}", value, model.shape, model.dtype)
            if model.dtype.kind != "f" and not np.array_equal(value, model):
                raise ValueError(f"{field} of {entry.name} does not fit the columns")
        elif not isinstance(value, (int, float)):
            raise ValueError(f"{field} of {entry.name} is {value!r}")


def check_array(what: str, array: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
    """Refuse an array of another shape or type."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = f"{array.dtype}{array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{what}: {found} where {np.dtype(dtype)}{shape} belongs")
