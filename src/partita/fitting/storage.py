"""A fitted mixture as plain data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Parameters, Statistics, n_stats
from partita.families import Background, Block, Lumps, Power, Signal, Student, Values, entry_of, family_entry
from partita.fitting.fitted_mixture import FittedMixture
from partita.fitting.outliers import OutlierModel
from partita.fitting.predictive import PredictiveDraw
from partita.partitions import DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking
from partita.table import CODED_KINDS, Schema
from partita.trace import Trace

PRIORS = {
    cls.__name__: cls
    for cls in (DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking)
}
# hyper-parameters that may be negative, and a mean of logarithms:
SIGNED = {"m", "mean", "cuts", "log_det", "log_height", "log_prior_height"}
SIGNED_OF_STUDENT = SIGNED | {"a"}


def pack_mixture(fitted: FittedMixture) -> dict[str, Any]:
    """Everything that predictions need."""
    statistics, parameters, outliers = fitted.statistics, fitted.parameters, fitted.outliers
    return {
        "schema": fitted.schema.to_dict(),
        "exposure": fitted.exposure,
        "blocks": [pack_block(block) for block in fitted.blocks],
        "prior": [type(fitted.prior).__name__, list(fitted.prior)],
        "sizes": statistics.n,
        "statistics": list(statistics.S),
        "sums": list(statistics[2:]),
        "log_weights": fitted.log_weights,
        "parameters": None
        if parameters is None
        else {"log_weights": parameters.log_weights, "thetas": list(parameters.thetas)},
        "at_parameters": fitted.at_parameters,
        "draws": pack_draws(fitted.draws, [block.family for block in fitted.blocks]),
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
    blocks = tuple(unpack_block(saved) for saved in state["blocks"])
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
        draws=unpack_draws(state["draws"], [block.family for block in blocks]),
    )
    _check_shapes(fitted)
    return fitted


def pack_draws(draws: Sequence[PredictiveDraw], families: Sequence[Any]) -> dict[str, Any] | None:
    """All draws in a few arrays: clusters side by side, and the hyper-parameters that differ from ``families``."""
    if not draws:
        return None
    hyper = []
    for family, same in zip(families, zip(*(draw.families for draw in draws), strict=True), strict=True):
        stacked = {
            name: np.stack([np.asarray(getattr(one, name)) for one in same]) for name in family._fields
        }
        hyper.append(
            {name: values for name, values in stacked.items() if (values != getattr(family, name)).any()}
        )
    return {
        "n_clusters": np.array([len(draw.log_weights) - 1 for draw in draws]),
        "log_weights": np.concatenate([draw.log_weights for draw in draws]),
        "clusters": [
            np.concatenate(columns, axis=1)
            for columns in zip(*(draw.clusters for draw in draws), strict=True)
        ],
        "hyper": hyper,
        "outlier_shares": np.array([draw.outlier_share for draw in draws]),
    }


def unpack_draws(state: dict[str, Any] | None, families: Sequence[Any]) -> tuple[PredictiveDraw, ...]:
    """The inverse of :func:`pack_draws`, with the same ``families``."""
    if state is None:
        return ()
    sizes, T = state["n_clusters"], len(state["n_clusters"])
    if sizes.dtype.kind != "i" or sizes.min(initial=0) < 0:
        raise ValueError("the numbers of clusters of the draws are not counts")
    total = int(sizes.sum())
    check_array("log weights of the draws", state["log_weights"], (total + T,))
    check_array("outlier shares of the draws", state["outlier_shares"], (T,))
    ends = np.cumsum(sizes)
    parts = []
    for family, columns, hyper in zip(families, state["clusters"], state["hyper"], strict=True):
        check_array(f"clusters of the draws of {type(family).__name__}", columns, (n_stats(family), total))
        for name, values in hyper.items():
            like = np.asarray(getattr(family, name))
            check_array(f"{name} of the draws", values, (T, *like.shape), like.dtype)
        parts.append(np.split(columns, ends[:-1], axis=1))
    log_weights = np.split(state["log_weights"], (ends + np.arange(1, T + 1))[:-1])
    return tuple(
        PredictiveDraw(
            tuple(_at_draw(family, hyper, t) for family, hyper in zip(families, state["hyper"], strict=True)),
            tuple(np.ascontiguousarray(part[t]) for part in parts),
            log_weights[t],
            float(state["outlier_shares"][t]),
        )
        for t in range(T)
    )


def _at_draw(family: Any, hyper: dict[str, np.ndarray], t: int) -> Any:
    """The family with its hyper-parameters in draw t; numbers stay numbers."""
    values = {name: stacked[t] for name, stacked in hyper.items()}
    return family._replace(
        **{
            name: np.ascontiguousarray(value)
            if isinstance(getattr(family, name), np.ndarray)
            else value.item()
            for name, value in values.items()
        }
    )


def pack_block(block: Block) -> dict[str, Any]:
    """A block without its data."""
    return {
        "family": entry_of(block.family).name,
        "hyper": list(block.family),
        "columns": list(block.columns),
        "signal": block.signal and list(block.signal),
        "coding": pack_coding(block.coding),
    }


def unpack_block(saved: dict[str, Any]) -> Block:
    """The inverse of :func:`pack_block`; :func:`check_family` refuses hyper-parameters that no family has."""
    return Block(
        family_entry(saved["family"]).cls(*saved["hyper"]),
        None,
        tuple(saved["columns"]),
        saved["signal"] and Signal(*saved["signal"]),
        coding=unpack_coding(saved["coding"]),
    )


def pack_coding(coding: Values | Lumps | None) -> dict[str, Any] | None:
    """A coding as plain data."""
    if coding is None:
        return None
    found: dict[str, Any] = {"kind": type(coding).__name__, **coding._asdict()}
    if isinstance(coding, Values):
        found["powers"] = np.array(coding.powers, float).reshape(-1, len(Power._fields))
    return found


def unpack_coding(saved: dict[str, Any] | None) -> Values | Lumps | None:
    """The inverse of :func:`pack_coding`; refuses values that no coding has."""
    if saved is None:
        return None
    fields = {name: value for name, value in saved.items() if name != "kind"}
    n = len(fields["lumps" if saved["kind"] == "Values" else "values"])
    for name, array in fields.items():
        check_array(f"{name} of the coding", array, (n, 3) if name == "powers" else (n,))
    if saved["kind"] == "Lumps":
        alone = ~np.isnan(fields["centers"])
        if not (np.isfinite(fields["values"]).all() and _are_scales(fields["scales"][alone])):
            raise ValueError(
                "the coding of lumps has values that are not finite, or scales that are not positive"
            )
        return Lumps(**fields)
    numbers = [fields[name] for name in ("powers", "centers", "scales", "lows", "highs")]
    if not all(np.isfinite(values).all() for values in numbers) or not _are_scales(
        np.concatenate([fields["scales"], fields["powers"][:, 1]])
    ):
        raise ValueError(
            "the coding of columns has numbers that are not finite, or scales that are not positive"
        )
    fields["powers"] = tuple(Power(*map(float, row)) for row in fields["powers"])
    return Values(**fields)


def _are_scales(values: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(values) & (values > 0)))


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
    kind = "real" if isinstance(block.coding, Lumps) else entry.kind
    if any(column.kind != kind for column in columns) or not _fits(block.coding, len(columns)):
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


def _fits(coding: Values | Lumps | None, n_columns: int) -> bool:
    """Whether a coding is one of so many columns."""
    return coding is None or len(coding[0]) == n_columns


def _check_signal(signal: Signal, n_columns: int) -> int:
    """Refuse a signal of other columns; returns the number of its scores."""
    n_axes = len(signal.variances) if isinstance(signal.variances, np.ndarray) else 0
    check_array("variances of the signal", signal.variances, (n_axes,))
    check_array("axes of the signal", signal.axes, (n_axes, n_columns))
    check_array("widths of the signal", signal.widths, (n_columns,))
    if (signal.variances < 0).any() or not (signal.widths > 0).all():
        raise ValueError("variances of the signal are negative, or widths are not positive")
    if not (isinstance(signal.n_scores, int) and 1 <= signal.n_scores <= n_axes <= n_columns):
        raise ValueError(f"the signal has {signal.n_scores!r} scores of {n_columns} columns")
    if not (isinstance(signal.noise, float) and signal.noise >= 0.0):
        raise ValueError(f"the noise of the signal is {signal.noise!r}")
    return signal.n_scores


def check_array(what: str, array: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
    """Refuse an array of another shape or type."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = f"{array.dtype}{array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{what}: {found} where {np.dtype(dtype)}{shape} belongs")
