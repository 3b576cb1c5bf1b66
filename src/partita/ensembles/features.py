"""Numeric features of a table of any columns, for base clusterers that use distances.

Every column of the table has the same weight: real and count columns are centered and divided by their standard
deviation; a categorical column becomes one-hot columns divided by a common number, so that together they have variance
1. A missing cell is replaced by the mean of its column, as the base algorithms need complete rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.execution import check_memory, find_chunks, read_whole
from partita.table import Schema, Table, read_table


class Scaling(NamedTuple):
    """How the columns of a table become features: one entry per feature."""

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    source: NDArray[np.int64]  # position of the feature's column among the modeled ones


class Features(NamedTuple):
    """Features of all rows (without missing values), and how they were computed."""

    values: NDArray[np.float64]
    scaling: Scaling
    schema: Schema


def read_features(X: Any, kinds: Any = None, *, standardize: bool = True) -> Features:
    """Read a table into features.

    Parameters
    ----------
    X : array, data frame, or source of blocks
        As for :func:`partita.table.read_table`; a path, a memory map or a Dask collection is read into memory.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; kinds that are not given are inferred.
    standardize : bool, default=True
        False leaves real and count columns in their own units.

    Returns
    -------
    Features

    Examples
    --------
    >>> features = read_features([[1.0, "a"], [3.0, "b"], [None, "a"]])
    >>> features.values.round(2)
    array([[-1.  , -0.71],
           [ 1.  ,  1.41],
           [ 0.  , -0.71]])
    >>> features.scaling.source
    array([0, 1])
    """
    source = find_chunks(X)
    if source is not None:
        n_bytes = 16 * source.n_rows * source.n_columns if source.sizes else 0
        check_memory(
            n_bytes, f"the features of {source.n_rows:,} rows", "give a sample of the rows, or fewer columns"
        )
        X = read_whole(source)
    table = read_table(X, kinds, infer_ordinal=False, estimator_name="an ensemble")
    scaling = learn_scaling(table, standardize=standardize)
    return Features(scaled(table, scaling), scaling, table.schema)


def learn_scaling(table: Table, *, standardize: bool = True) -> Scaling:
    """Learn centers and scales from a table.

    Examples
    --------
    >>> from partita.table import read_table
    >>> learn_scaling(read_table([[1.0], [3.0]])).scale
    array([1.])
    """
    _refuse_sparse(table)
    center, scale, source = [], [], []
    for position, column in enumerate(table.columns):
        values = _numbers(table, position)
        middle, spread = np.nanmean(values, axis=0), math.sqrt(np.nanvar(values, axis=0).sum())
        if not standardize and column.kind in ("real", "count"):
            spread = 1.0 / table.schema.column(column.name).scale if column.kind == "real" else 1.0
        center.append(middle)
        scale.append(np.full(middle.size, spread if spread > 0 else 1.0))
        source.append(np.full(middle.size, position))
    return Scaling(np.concatenate(center), np.concatenate(scale), np.concatenate(source))


def scaled(table: Table, scaling: Scaling) -> NDArray[np.float64]:
    """Features of a table under a scaling that was learned before.

    Examples
    --------
    >>> from partita.table import read_table
    >>> table = read_table([[1.0], [3.0]])
    >>> scaled(table, learn_scaling(table)).ravel()
    array([-1.,  1.])
    """
    _refuse_sparse(table)
    values = np.empty((table.n_rows, scaling.source.size))
    for position in range(len(table.columns)):
        values[:, scaling.source == position] = _numbers(table, position)
    values -= scaling.center
    values /= scaling.scale
    values[np.isnan(values)] = 0.0
    return values


def _numbers(table: Table, position: int) -> NDArray[np.float64]:
    """One column of the table as numbers (rows, features), NaN where missing; real columns are standardized."""
    column = table.columns[position]
    if column.kind == "real":
        return table.standardized(column.name)[:, None]
    if column.kind == "count":
        return column.values[:, None].astype(np.float64)
    if column.kind == "ordinal":
        return np.where(column.values < 0, np.nan, column.values.astype(np.float64))[:, None]
    n_levels = table.schema.column(column.name).n_levels
    # two levels need one feature: the second would be redundant
    levels = np.arange(1, 2) if n_levels <= 2 else np.arange(n_levels)
    return np.where(column.values[:, None] < 0, np.nan, column.values[:, None] == levels)


def _refuse_sparse(table: Table) -> None:
    if table.sparse is not None:
        raise TypeError(
            "an ensemble cannot be made from a sparse matrix: reduce it first (for example with "
            "sklearn.decomposition.TruncatedSVD), or pass X.toarray()"
        )
