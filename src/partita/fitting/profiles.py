"""What clusters look like, and new rows drawn from them, in the user's units and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from partita.engines.passes.rows import Statistics
from partita.families import Block, Categorical, Counts, CountVectors, Levels, Lumps, Values, entry_of
from partita.families.contract import draw, simulate, summarize
from partita.table import CODED_KINDS, Schema

N_HALVINGS = 60  # of the interval with a median


def profile_columns(
    blocks: Sequence[Block], statistics: Statistics, schema: Schema
) -> dict[str, dict[str, np.ndarray]]:
    """For each column: posterior means of its parameters, one entry (or row) per cluster.

    Real columns have ``mean`` and ``sd`` in the user's units, counts a ``rate`` (or a share of the vector),
    binary, categorical and ordinal columns ``probabilities`` with the ``levels`` they belong to. Ordinal columns also
    have ``latent_mean`` and ``latent_sd``, where the whole column has about mean 0 and deviation 1. Transformed columns
    also have a ``median`` and, for each cluster the same, that of the whole table, ``whole_median``. Columns with one
    value in most rows also have this ``lump``, its ``lump_share``, and mean and deviation of the other values.
    """
    out: dict[str, dict[str, np.ndarray]] = {}
    for block, S in zip(blocks, statistics.S, strict=True):
        summary = summarize(block.family, S)
        if block.coding is not None:
            for name, found in _coded_profiles(block, summary, statistics.n).items():
                out[name] = with_lump(out[name], found) if name in out else found
            continue
        start = 0
        for d, name in enumerate(block.columns):
            column = schema.column(name)
            if "means" in summary:
                means, variances = _moments_of_columns(block, summary)
                center, scale = (0.0, 1.0) if entry_of(block.family).raw else (column.center, column.scale)
                out[name] = {
                    "mean": center + scale * means[:, d],
                    "sd": scale * np.sqrt(variances[:, d]),
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


def _coded_profiles(
    block: Block, summary: dict[str, np.ndarray], sizes: np.ndarray
) -> dict[str, dict[str, np.ndarray]]:
    """Profiles of columns that are not modeled as they are."""
    if isinstance(block.coding, Lumps):
        share = 1.0 - summary["probabilities"]
        coding = block.coding
        return {
            name: with_lump(
                {"lump": np.full(len(share), coding.values[d]), "lump_share": share[:, d]},
                {"mean": np.full(len(share), coding.centers[d]), "sd": np.full(len(share), coding.scales[d])},
            )
            for d, name in enumerate(block.columns)
        }
    assert block.coding is not None
    coded = _moments_of_columns(block, summary)
    means, deviations, medians = block.coding.moments(*coded)
    whole = (
        block.coding.decode(_medians_of_mixtures(*coded, sizes)[None])[0]
        if block.coding.is_skewed.any()
        else None
    )
    if whole is not None:
        whole = np.where(block.coding.is_skewed, np.clip(whole, block.coding.lows, block.coding.highs), whole)
    out = {}
    for d, name in enumerate(block.columns):
        out[name] = {"mean": means[:, d], "sd": deviations[:, d]}
        if block.coding.is_skewed[d]:
            assert whole is not None
            out[name]["median"] = medians[:, d]
            out[name]["whole_median"] = np.full(len(medians), whole[d])
    return out


def _medians_of_mixtures(means: np.ndarray, variances: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Median of each column [cluster, column] of normal clusters in all of them together, by bisection.

    Examples
    --------
    >>> means, variances = np.array([[0.0, 0.0], [0.0, 4.0]]), np.ones((2, 2))
    >>> _medians_of_mixtures(means, variances, np.ones(2)).round(3)
    array([0., 2.])
    """
    shares, sd = np.maximum(sizes, 1e-300) / np.maximum(sizes, 1e-300).sum(), np.sqrt(variances)
    low, high = means.min(axis=0), means.max(axis=0)  # the median of a mixture is between those of its parts
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2.0
        below = shares @ ndtr((middle - means) / np.maximum(sd, 1e-300)) < 0.5
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2.0


def with_lump(lump: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
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


def join_moments(
    profile: dict[str, np.ndarray], groups: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """The profile of a column in groups of clusters, from those of the clusters and their weights.

    Examples
    --------
    >>> profile = {"mean": np.array([0.0, 2.0, 9.0]), "sd": np.ones(3)}
    >>> join_moments(profile, np.array([0, 0, 1]), np.ones(3))["sd"].round(3)
    array([1.414, 1.   ])
    """
    whole = _shares(groups, weights)
    elsewhere = _shares(groups, weights * (1.0 - profile["lump_share"])) if "lump_share" in profile else whole
    out = {}
    for name, values in profile.items():
        share = elsewhere if name.endswith("_elsewhere") else whole
        if name == "levels":
            out[name] = values
        elif name.startswith("sd") or name == "latent_sd":
            mean = profile[name.replace("sd", "mean")]
            out[name] = np.sqrt(np.maximum(share @ (values**2 + mean**2) - (share @ mean) ** 2, 0.0))
        else:
            out[name] = share @ values
    return out


def _shares(groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Share of each cluster in its group, [group, cluster]."""
    share = np.zeros((int(groups.max()) + 1, len(groups)))
    share[groups, np.arange(len(groups))] = np.maximum(weights, np.finfo(float).tiny)
    return share / share.sum(axis=1, keepdims=True)


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
