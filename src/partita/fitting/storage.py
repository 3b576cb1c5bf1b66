"""A fitted mixture as plain data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Parameters, Statistics, n_stats
from partita.families import Background, Block, Signal, Student, entry_of, family_entry
from partita.fitting.fitted_mixture import FittedMixture
from partita.fitting.outliers import OutlierModel
from partita.partitions import DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking
from partita.table import CODED_KINDS, Schema
from partita.trace import Trace

PRIORS = {
    cls.__name__: cls
    for cls in (DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking)
}
SIGNED = {"m", "cuts", "log_det"}  # hyper-parameters that may be negative, and a mean of logarithms:
SIGNED_OF_STUDENT = SIGNED | {"a"}


def pack_mixture(fitted: FittedMixture) -> dict[str, Any]:
    """Everything that predictions need."""
    statistics, parameters, outliers = fitted.statistics, fitted.parameters, fitted.outliers
    return {
        "schema": fitted.schema.to_dict(),
        "exposure": fitted.exposure,
        "blocks": [
            {
                "family": entry_of(b.family).name,
                "hyper": list(b.family),
                "columns": list(b.columns),
                "signal": b.signal and list(b.signal),
            }
            for b in fitted.blocks
        ],
        "prior": [type(fitted.prior).__name__, list(fitted.prior)],
        "sizes": statistics.n,
        "statistics": list(statistics.S),
        "sums": list(statistics[2:]),
        "log_weights": fitted.log_weights,
        "parameters": None
        if parameters is None
        else {"log_weights": parameters.log_weights, "thetas": list(parameters.thetas)},
        "at_parameters": fitted.at_parameters,
        "outliers": None
        if outliers is None
        else {
            "hyper": [list(law.family) for law in outliers.laws],
            "statistics": [law.S for law in outliers.laws],
            "share": outliers.share,
        },
    }


def unpack_mixture(state: dict[str, Any]) -> FittedMixture:
    """The inverse of :func:`pack_mixture`; refuses a state whose arrays do not belong together."""
    schema = Schema.from_dict(state["schema"])
    blocks = tuple(
        Block(
            family_entry(b["family"]).cls(*b["hyper"]),
            None,
            tuple(b["columns"]),
            b["signal"] and Signal(*b["signal"]),
        )
        for b in state["blocks"]
    )
    saved = state["parameters"]
    fitted = FittedMixture(
        schema=schema,
        exposure=state["exposure"],
        blocks=blocks,
        statistics=Statistics(state["sizes"], tuple(state["statistics"]), *state["sums"]),
        parameters=saved and Parameters(saved["log_weights"], tuple(saved["thetas"])),
        log_weights=state["log_weights"],
        prior=PRIORS[state["prior"][0]](*state["prior"][1]),
        outliers=_unpack_outliers(state["outliers"], blocks, schema),
        at_parameters=bool(state["at_parameters"]),
    )
    _check_shapes(fitted)
    return fitted


def _unpack_outliers(
    saved: dict[str, Any] | None, blocks: Sequence[Block], schema: Schema
) -> OutlierModel | None:
    """The background has the families of the blocks with other hyper-parameters."""
    if saved is None:
        return None
    families = [type(block.family)(*hyper) for block, hyper in zip(blocks, saved["hyper"], strict=True)]
    for family, block, S in zip(families, blocks, saved["statistics"], strict=True):
        check_family(block._replace(family=family), schema)
        check_array("statistics of the background", S, (n_stats(family), 1))
    laws = tuple(Background(*law) for law in zip(families, saved["statistics"], strict=True))
    return OutlierModel(laws, float(saved["share"]))


def checked_trace(fields: Sequence[Any], n_objects: int) -> Trace:
    """The trace that a file holds; refuses arrays that do not belong together."""
    trace = Trace(*fields)
    B = len(trace.log_joint)
    if trace.labels.shape != (B, n_objects) or any(np.shape(field) != (B,) for field in trace[1:]):
        raise ValueError(f"the trace does not hold {B} draws of {n_objects} objects")
    return trace


def _check_shapes(fitted: FittedMixture) -> None:
    """Refuse arrays of wrong shapes here, before a compiled kernel reads out of bounds."""
    K = len(fitted.log_weights)
    check_array("log weights", fitted.log_weights, (K,))
    check_array("sizes", fitted.statistics.n, (K,))
    for block in fitted.blocks:
        check_family(block, fitted.schema)
    for block, S in zip(fitted.blocks, fitted.statistics.S, strict=True):
        check_array(f"statistics of {type(block.family).__name__}", S, (n_stats(block.family), K))
    if fitted.parameters is not None:
        check_array("log weights of the parameters", fitted.parameters.log_weights, (K,))
        for block, theta in zip(fitted.blocks, fitted.parameters.thetas, strict=True):
            check_array(f"parameters of {type(block.family).__name__}", theta, (n_stats(block.family), K))


def check_family(block: Block, schema: Schema) -> None:
    """Refuse a family whose layout differs from that of a new family for the same columns."""
    entry = entry_of(block.family)
    columns = [schema.column(name) for name in block.columns]
    if any(column.kind != entry.kind for column in columns):
        raise ValueError(f"family {entry.name!r} does not read the kinds of {block.columns}")
    codes = entry.kind in CODED_KINDS
    n_coordinates = len(columns) if block.signal is None else _check_signal(block.signal, len(columns))
    one = (np.zeros if codes else np.ones)((1, n_coordinates), np.int8 if codes else np.float64)
    n_levels = np.array([column.n_levels for column in columns], dtype=np.int64)
    fresh = entry.block(one, block.columns, np.ones(1), n_levels=n_levels, exposure=None).family
    for field, value, new in zip(fresh._fields, block.family, fresh, strict=True):
        if isinstance(new, np.ndarray):
            check_array(f"{field} of {entry.name}", value, new.shape, new.dtype)
            if new.dtype.kind != "f" and not np.array_equal(value, new):
                raise ValueError(f"{field} of {entry.name} does not fit the columns")
        elif not isinstance(value, (int, float)):
            raise ValueError(f"{field} of {entry.name} is {value!r}")
    check_hyper(block.family)


def check_hyper(family: Any) -> None:
    """Refuse hyper-parameters that are not finite, negative, not positive definite, or of different columns."""
    lengths = {len(value) for field, value in zip(family._fields, family, strict=True)
               if np.ndim(value) and field != "cuts" and np.asarray(value).dtype.kind == "f"}  # fmt: skip
    for field, value in zip(family._fields, family, strict=True):
        if np.ndim(value) and np.asarray(value).dtype.kind == "i":
            rises = value.ndim == 1 and len(value) and value[0] == 0 and (np.diff(value) >= 0).all()
            if not rises or not lengths <= {len(value) - 1}:
                raise ValueError(f"{field} of {type(family).__name__} does not fit the columns")
    if len(lengths) > 1:
        raise ValueError(
            f"the hyper-parameters of {type(family).__name__} are of different numbers of columns"
        )
    signed = SIGNED_OF_STUDENT if isinstance(family, Student) else SIGNED
    for field, value in zip(family._fields, family, strict=True):
        what = f"{field} of {type(family).__name__}"
        if np.isnan(value).any() or (field != "cuts" and np.isinf(value).any()):
            raise ValueError(f"{what} is not finite")
        if np.ndim(value) == 2 and field not in signed:
            if not (np.allclose(value, value.T) and np.linalg.eigvalsh(value).min() > 0):
                raise ValueError(f"{what} is not positive definite")
        elif field not in signed and np.any(np.asarray(value) < 0):
            raise ValueError(f"{what} is negative")


def _check_signal(signal: Signal, n_columns: int) -> int:
    """Refuse a signal of other columns; returns the number of its scores."""
    check_array("axes of the signal", signal.axes, (n_columns, n_columns))
    check_array("variances of the signal", signal.variances, (n_columns,))
    if (signal.variances < 0).any():
        raise ValueError("variances of the signal are negative")
    if not (isinstance(signal.n_scores, int) and 1 <= signal.n_scores <= n_columns):
        raise ValueError(f"the signal has {signal.n_scores!r} scores of {n_columns} columns")
    return signal.n_scores


def check_array(what: str, array: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
    """Refuse an array of another shape or type."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = f"{array.dtype}{array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{what}: {found} where {np.dtype(dtype)}{shape} belongs")
