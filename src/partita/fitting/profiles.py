"""What clusters look like, and new rows drawn from them, in the user's units and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.families import Block, Categorical, Counts, CountVectors, Levels, Lumps, Values, entry_of
from partita.families.contract import draw, simulate, summarize
from partita.table import CODED_KINDS, Schema


def profile_columns(
    blocks: Sequence[Block], statistics: Statistics, schema: Schema
) -> dict[str, dict[str, np.ndarray]]:
    """For each column: posterior means of its parameters, one entry (or row) per cluster.

    Real columns have ``mean`` and ``sd`` in the user's units, counts a ``rate`` (or a share of the vector),
    binary, categorical and ordinal columns ``probabilities`` with the ``levels`` they belong to. Ordinal columns also
    have ``latent_mean`` and ``latent_sd``, where the whole column has about mean 0 and deviation 1. Transformed columns
    also have a ``median``. Columns with one value in most rows also have this ``lump``, its ``lump_share``, and mean
    and deviation of the other values.
    """
    out: dict[str, dict[str, np.ndarray]] = {}
    for block, S in zip(blocks, statistics.S, strict=True):
        summary = summarize(block.family, S)
        if block.coding is not None:
            for name, found in _coded_profiles(block, summary).items():
                out[name] = _with_lump(out[name], found) if name in out else found
            continue
        start = 0
        for d, name in enumerate(block.columns):
            column = schema.column(name)
            if "means" in summary:
                means, variances = _moments_of_columns(block, summary)
                out[name] = {
                    "mean": column.center + column.scale * means[:, d],
                    "sd": column.scale * np.sqrt(variances[:, d]),
                }
            elif column.kind in ("categorical", "ordinal"):
                P = summary["probabilities"][:, start : start + column.n_levels]
                start += column.n_levels
                out[name] = {"levels": np.array(column.levels, dtype=object), "probabilities": P}
                if "latent_means" in summary:
                    out[name]["latent_mean"] = summary["latent_means"][:, d]
                    out[name]["latent_sd"] = np.sqrt(summary["latent_variances"][:, d])
            elif column.kind == "binary":
                p = summary["probabilities"][:, d]
                out[name] = {
                    "levels": np.array(column.levels, dtype=object),
                    "probabilities": np.column_stack([1 - p, p]),
                }
            elif "rates" in summary:
                out[name] = {"rate": summary["rates"][:, d]}
            else:
                out[name] = {"share": summary["probabilities"][:, d]}
    return out


def _coded_profiles(block: Block, summary: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Profiles of columns that are not modeled as they are."""
    if isinstance(block.coding, Lumps):
        share = 1.0 - summary["probabilities"]
        coding = block.coding
        return {
            name: _with_lump(
                {"lump": np.full(len(share), coding.values[d]), "lump_share": share[:, d]},
                {"mean": np.full(len(share), coding.centers[d]), "sd": np.full(len(share), coding.scales[d])},
            )
            for d, name in enumerate(block.columns)
        }
    assert block.coding is not None
    means, deviations, medians = block.coding.moments(*_moments_of_columns(block, summary))
    out = {}
    for d, name in enumerate(block.columns):
        out[name] = {"mean": means[:, d], "sd": deviations[:, d]}
        if block.coding.is_skewed[d]:
            out[name]["median"] = medians[:, d]
    return out


def _with_lump(lump: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The profile of a column with a lump, from those of the lump and of the other values."""
    value, share = lump["lump"], lump["lump_share"]
    mean = share * value + (1.0 - share) * others["mean"]
    second = share * value**2 + (1.0 - share) * (others["mean"] ** 2 + others["sd"] ** 2)
    return {
        "mean": mean,
        "sd": np.sqrt(np.maximum(second - mean**2, 0.0)),
        "lump": value,
        "lump_share": share,
        **{f"{name}_elsewhere": found for name, found in others.items()},
    }


def _moments_of_columns(block: Block, summary: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of standardized columns, [cluster, column]."""
    if block.signal is not None:
        return (
            block.signal.column_means(summary["means"]),
            block.signal.column_variances(summary["covariances"]),
        )
    if "variances" in summary:
        return summary["means"], summary["variances"]
    return summary["means"], np.diagonal(summary["covariances"], axis1=1, axis2=2)


def sample_table(
    blocks: Sequence[Block],
    statistics: Statistics,
    thetas: Sequence[np.ndarray] | None,
    z: np.ndarray,
    schema: Schema,
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows with labels z, columns in the order of the training table (ignored ones are missing).

    Without ``thetas`` the parameters are drawn from their posterior.
    """
    columns = sample_columns(blocks, statistics, thetas, z, schema, rng)
    for name, values in columns.items():
        if schema.column(name).kind in CODED_KINDS:
            columns[name] = _natural_type(schema.decode(name, values))
    numeric = all(columns[name].dtype.kind in "fiu" for name in columns)
    X = np.full((len(z), schema.n_features), np.nan, dtype=float if numeric else object)
    for j, name in enumerate(schema.names):
        if name in columns:
            X[:, j] = columns[name]
        elif not numeric:
            X[:, j] = None
    return X


def sample_columns(
    blocks: Sequence[Block],
    statistics: Statistics,
    thetas: Sequence[np.ndarray] | None,
    z: np.ndarray,
    schema: Schema,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Columns of rows with labels z: numbers in the user's units, levels as codes."""
    columns: dict[str, np.ndarray] = {}
    for b, block in enumerate(blocks):
        theta = draw(block.family, statistics.S[b], rng) if thetas is None else thetas[b]
        data = simulate(block.family, theta, z, rng)
        if block.signal is not None:
            data = block.signal.rows(data, rng)
        for name, values in zip(block.columns, _in_user_units(data, block, schema, rng), strict=True):
            known = columns.get(name)  # the lumps of a column, with gaps for its other values
            columns[name] = values if known is None else np.where(np.isnan(known), values, known)
    return columns


def _in_user_units(data: Any, block: Block, schema: Schema, rng: np.random.Generator) -> list[np.ndarray]:
    if isinstance(block.coding, Lumps):
        return list(block.coding.decode(data, rng).T)
    if isinstance(block.coding, Values):
        return list(block.coding.decode(data).T)
    if isinstance(data, Counts):
        return list(data.X.T)
    if isinstance(data, Levels):
        return list(data.codes.T)
    if isinstance(data, CountVectors):
        dense = np.zeros((len(data.indptr) - 1, len(block.columns)))
        rows = np.repeat(np.arange(len(dense)), np.diff(data.indptr))
        dense[rows, data.indices] = data.counts
        return list(dense.T)
    is_coded = isinstance(block.family, Categorical) or entry_of(block.family).kind == "binary"
    if is_coded or entry_of(block.family).raw:
        return list(data.T)
    scaled = [(schema.column(name), data[:, d]) for d, name in enumerate(block.columns)]
    return [column.center + column.scale * values for column, values in scaled]


def _natural_type(values: np.ndarray) -> np.ndarray:
    """Numbers as numbers where every level is one."""
    if all(isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool) for v in values):
        return values.astype(float)
    return values
