"""The fitted state of blocks as plain data, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.blocks.fitting import DrawnBlocks
from partita.blocks.predicting import check_family
from partita.estimator import FitReport
from partita.families import family_entry
from partita.table import Schema
from partita.trace import Trace

__all__ = ["restore_state", "saved_state"]

ARRAYS = ("row_labels_", "column_labels_", "row_confidence_", "column_confidence_")
PLAIN = ("family_name_", "accepted_", "n_iter_", "converged_")


def saved_state(model: Any) -> dict[str, Any]:
    """Everything that predictions and the attributes need."""
    drawn = model._drawn
    square = len(drawn.labels) == 1
    return {
        "schemas": [schema.to_dict() for schema in model._schemas],
        "report": model.fit_report_.to_list(),
        "family": list(model.family_),
        "statistics": model._statistics,
        "missing": list(model._missing),
        "concentration": list(model.concentration_),
        "traces": [list(model.row_trace_)] + ([] if square else [list(model.column_trace_)]),
        "drawn": {
            "labels": list(drawn.labels),
            "families": [list(family) for family in drawn.families],
            "statistics": np.concatenate([S.reshape(-1, S.shape[2]) for S in drawn.statistics]),
            "shapes": np.array([S.shape[:2] for S in drawn.statistics]),
        },
    } | {name: getattr(model, name) for name in ARRAYS + PLAIN}


def restore_state(model: Any, state: dict[str, Any]) -> None:
    """Make a fresh estimator the fitted one."""
    model._schemas = tuple(Schema.from_dict(schema) for schema in state["schemas"])
    model._remember(model._schemas[0])
    model.fit_report_ = FitReport.from_list(state["report"])
    for name in ARRAYS + PLAIN:
        setattr(model, name, state[name])
    cls = family_entry(model.family_name_).cls
    model.family_ = cls(*state["family"])
    model._statistics, model._missing = state["statistics"], tuple(state["missing"])
    model.concentration_ = tuple(state["concentration"])
    model._drawn = _restored_draws(state["drawn"], cls)
    _check(model)
    traces = tuple(Trace(*fields) for fields in state["traces"])
    for trace, labels in zip(traces, (model.row_labels_, model.column_labels_), strict=False):
        _check_trace(trace, len(labels))
    model._settle_draws(traces)
    model._describe()


def _restored_draws(saved: dict[str, Any], cls: type) -> DrawnBlocks:
    statistics, lo = [], 0
    for K, J in saved["shapes"].tolist():
        statistics.append(saved["statistics"][lo : lo + K * J].reshape(K, J, -1))
        lo += K * J
    families = [cls(*family) for family in saved["families"]]
    labels = tuple(saved["labels"])
    if not len(families) == len(statistics) == len(labels[0]) == len(labels[-1]):
        raise ValueError("the draws of the blocks do not fit together")
    for t, S in enumerate(statistics):
        if max(labels[0][t].max() - S.shape[0], labels[-1][t].max() - S.shape[1]) >= 0:
            raise ValueError("the labels of a draw do not fit its blocks")
    return DrawnBlocks(labels, families, statistics)


def _check_trace(trace: Trace, n_objects: int) -> None:
    B = len(trace.log_joint)
    if trace.labels.shape != (B, n_objects) or any(np.shape(field) != (B,) for field in trace[1:]):
        raise ValueError(f"the trace does not hold {B} draws of {n_objects} objects")


def _check(model: Any) -> None:
    """A file whose parts do not fit together is refused here rather than read out of bounds in a kernel."""
    for family in (model.family_, *model._drawn.families):
        check_family(family, [model._statistics, *model._drawn.statistics], len(model._schemas))
    K, J = model._statistics.shape[:2]
    if model.row_labels_.max() != K - 1 or model.column_labels_.max() != J - 1:
        raise ValueError("the labels do not fit the blocks")
    if model._drawn.labels[0].shape[1] != len(model.row_labels_):
        raise ValueError("the draws hold another number of rows")
    if len(model.column_labels_) != model.n_features_in_:
        raise ValueError("the labels of the columns do not fit the schema")
