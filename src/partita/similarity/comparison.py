"""How two rows are compared: a dissimilarity per column, groups of columns with the same one, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.execution.memory import check_memory
from partita.table import Schema, Table
from partita.table.scaling import center_and_scale, standardize

METRICS = ("squared_euclidean", "city_block", "correlation", "ordinal", "hamming")
DEFAULT_METRICS = {
    "real": "squared_euclidean",
    "count": "squared_euclidean",
    "binary": "hamming",
    "categorical": "hamming",
    "ordinal": "ordinal",
}
LEVEL_KINDS = ("binary", "categorical", "ordinal")


class Group(NamedTuple):
    """Columns with the same metric.

    ``weights`` of the columns are positive; ``means`` are the expected dissimilarities of two random rows per column;
    ``centers`` and ``scales`` transform numbers to the units in which they are compared; ``ranks`` holds the position
    of each level of an ordinal column, between 0 and 1.
    """

    metric: str
    columns: tuple[str, ...]
    weights: np.ndarray
    means: np.ndarray
    centers: np.ndarray
    scales: np.ndarray
    ranks: tuple[np.ndarray, ...] = ()

    @property
    def weight(self) -> float:
        """The weight of the group in the sum; columns under correlation count as one column."""
        return float(self.weights.mean() if self.metric == "correlation" else self.weights.sum())


class Comparison(NamedTuple):
    """All groups: together they define the dissimilarity of two rows of a table."""

    groups: tuple[Group, ...]

    @property
    def mean(self) -> float:
        """The expected dissimilarity of two random rows."""
        return float(
            sum(group.weight * (group.weights @ group.means) / group.weights.sum() for group in self.groups)
        )

    def to_state(self) -> list[dict[str, Any]]:
        """For a model file."""
        return [group._asdict() for group in self.groups]

    @classmethod
    def from_state(cls, saved: list[dict[str, Any]]) -> Comparison:
        """The inverse of ``to_state``."""
        return cls(tuple(Group(**group) for group in saved))


def learn_comparison(
    table: Table, metric: Any = "auto", weights: Any = None, orders: Any = None, standardized: bool = True
) -> Comparison:
    """Learn how the rows of a table are compared; the parameters are those of :func:`dissimilarity`.

    Examples
    --------
    >>> from partita.table import read_table
    >>> comparison = learn_comparison(read_table([[0.5, "a"], [1.5, "b"]]))
    >>> [(group.metric, group.columns) for group in comparison.groups]
    [('squared_euclidean', ('x0',)), ('hamming', ('x1',))]
    """
    chosen = _metrics_of_columns(metric, table.schema)
    given = _weights_of_columns(weights, table.schema)
    orders = _orders_of_columns(orders, table.schema, chosen)
    groups = []
    for name in METRICS:
        columns = [column for column, wanted in chosen.items() if wanted == name and given[column] > 0]
        if columns:
            group = _learn_group(table, name, columns, orders, standardized)
            groups.append(group._replace(weights=np.array([given[column] for column in columns])))
    comparison = Comparison(tuple(groups))
    return _balanced(comparison) if isinstance(weights, str) else comparison


def coordinates(table: Table, group: Group) -> np.ndarray:
    """The values of a group's columns as they are compared: floats, NaN where missing."""
    if table.sparse is not None:
        n_bytes = 8 * table.n_rows * len(group.columns)
        check_memory(n_bytes, f"{table.n_rows:,} dense rows", "give fewer columns, or a similarity graph")
        names = [column.name for column in table.schema.columns]
        values = table.sparse.toarray()[:, [names.index(column) for column in group.columns]]
        return (values - group.centers) / group.scales
    out = np.empty((table.n_rows, len(group.columns)))
    for j, column in enumerate(group.columns):
        values = table.column(column).values
        if values.dtype.kind == "i":
            codes = values.astype(np.int64)
            lookup = group.ranks[j] if group.ranks else np.arange(codes.max(initial=0) + 1.0)
            out[:, j] = np.append(lookup, np.nan)[codes]  # code -1 (missing) selects the last entry
        else:
            out[:, j] = standardize(values, group.centers[j], group.scales[j])
    return out


def _learn_group(
    table: Table, metric: str, columns: list[str], orders: Mapping[str, Any], standardized: bool
) -> Group:
    D = len(columns)
    group = Group(metric, tuple(columns), np.ones(D), np.ones(D), np.zeros(D), np.ones(D))
    if metric == "ordinal":
        return _with_means(table, group._replace(ranks=tuple(_ranks(table, c, orders) for c in columns)))
    if metric == "correlation":
        if D < 2:
            raise ValueError(
                f"only column {columns[0]!r} has the metric 'correlation', which needs two columns or more: change it"
            )
        return _in_common_units(table, group)
    if metric != "hamming" and standardized:
        known = [table.schema.column(column) for column in columns]
        if any(column.kind == "count" for column in known):
            raw = coordinates(table, group)
            units = [center_and_scale(raw[:, j], table.weights) for j in range(D)]
        for j, column in enumerate(known):
            unit = units[j] if column.kind == "count" else (column.center, column.scale)
            group.centers[j], group.scales[j] = unit
    return _with_means(table, group)


def _in_common_units(table: Table, group: Group) -> Group:
    """Divide the group by a power of two: correlations do not change, and squares do not overflow."""
    largest = np.nanmax(np.abs(coordinates(table, group)), initial=0.0)
    group.scales[:] = 2.0 ** np.frexp(largest)[1] if 0 < largest < 1e300 else max(largest, 1.0)
    return group


def _with_means(table: Table, group: Group) -> Group:
    values = coordinates(table, group)
    spans = np.nanmax(values, axis=0, initial=-np.inf) - np.nanmin(values, axis=0, initial=np.inf)
    if group.metric == "squared_euclidean" and not (spans < 1e150).all():
        column = group.columns[int(np.argmax(~(spans < 1e150)))]
        raise ValueError(
            f"the squared differences of column {column!r} overflow: set standardize=True, or change its units"
        )
    for j in range(values.shape[1]):
        group.means[j] = _mean_of_pairs(values[:, j], group.metric)
    return group


def _mean_of_pairs(values: np.ndarray, metric: str) -> float:
    """The mean dissimilarity of two random cells, from sorted values, without forming pairs."""
    seen = np.sort(values[~np.isnan(values)])
    n = len(seen)
    if n == 0:
        return 0.0
    if metric == "hamming":
        shares = np.unique(seen, return_counts=True)[1] / n
        return float(1.0 - shares @ shares)
    if metric == "city_block":
        return float(2.0 * ((2.0 * np.arange(1, n + 1) - n - 1.0) @ (seen / n)) / n)
    return float(2.0 * np.var(seen))


def _balanced(comparison: Comparison) -> Comparison:
    """Weights under which every column has the same mean contribution."""
    groups = []
    for group in comparison.groups:
        # a constant column has the mean 0 and contributes 0 at any weight
        weights = np.divide(1.0, group.means, out=np.ones_like(group.means), where=group.means > 0)
        groups.append(group._replace(weights=weights))
    return Comparison(tuple(groups))


# ---- parameters -----------------------------------------------------------------------------------------


def _metrics_of_columns(metric: Any, schema: Schema) -> dict[str, str]:
    modeled = [column for column in schema.columns if column.kind != "ignore"]
    if isinstance(metric, str) and metric != "auto":
        if metric not in METRICS:
            raise ValueError(f"unknown metric {metric!r}: choose 'auto' or one of {', '.join(METRICS)}")
        chosen = {column.name: metric for column in modeled}
    elif isinstance(metric, (str, Mapping)):
        asked = {} if isinstance(metric, str) else dict(metric)
        by_kind = {
            kind: asked[kind] for kind in DEFAULT_METRICS if kind in asked and kind not in schema.names
        }
        by_name = _by_name({k: v for k, v in asked.items() if k not in by_kind}, schema, "metric")
        chosen = {
            column.name: by_name.get(column.name, by_kind.get(column.kind, DEFAULT_METRICS[column.kind]))
            for column in modeled
        }
    else:
        raise ValueError(
            f"metric is {metric!r}: give 'auto', a name, or a mapping from columns or kinds to names"
        )
    for column in modeled:
        _check_metric(chosen[column.name], column)
    return chosen


def _check_metric(metric: Any, column: Any) -> None:
    if metric not in METRICS:
        raise ValueError(
            f"unknown metric {metric!r} for column {column.name!r}: choose from {', '.join(METRICS)}"
        )
    if metric == "ordinal" and column.kind not in LEVEL_KINDS:
        raise ValueError(
            f"column {column.name!r} is {column.kind!r}, but the metric 'ordinal' is for levels: declare it "
            "'categorical' in kinds, or use 'city_block'"
        )
    if metric not in ("ordinal", "hamming") and column.kind in ("categorical", "ordinal"):
        raise ValueError(
            f"column {column.name!r} is {column.kind}, and the metric {metric!r} is for numbers: pass a "
            f"mapping such as metric={{'real': {metric!r}, 'categorical': 'hamming'}}, or kinds='real' if its values "
            "are numbers"
        )


def _by_name(asked: Mapping[Any, Any], schema: Schema, what: str) -> dict[str, Any]:
    """Replace column positions in the keys by names."""
    out = {}
    for key, value in asked.items():
        try:
            out[schema.column(key if isinstance(key, str) else int(key)).name] = value
        except (TypeError, ValueError) as problem:
            raise ValueError(f"{what} names the column {key!r}, which the table does not have") from problem
    return out


def _weights_of_columns(weights: Any, schema: Schema) -> dict[str, float]:
    if weights is None or isinstance(weights, str):
        if weights not in (None, "balanced"):
            raise ValueError(
                f"weights is {weights!r}: give None, 'balanced', numbers, or a mapping from columns"
            )
        return dict.fromkeys(schema.names, 1.0)
    if isinstance(weights, Mapping):
        given = {**dict.fromkeys(schema.names, 1.0), **_by_name(weights, schema, "weights")}
    else:
        values = np.asarray(weights)
        if values.shape != (schema.n_features,):
            raise ValueError(
                f"weights has the shape {values.shape}, and the table has {schema.n_features} columns: give one weight "
                "per column"
            )
        given = dict(zip(schema.names, values.tolist(), strict=True))
    for name, weight in given.items():
        if not np.isfinite(weight) or weight < 0:
            raise ValueError(f"the weight of column {name!r} is {weight}: give a number that is not negative")
    if not any(given[column.name] > 0 for column in schema.columns if column.kind != "ignore"):
        raise ValueError("every column has the weight 0: give at least one a positive weight")
    return {name: float(weight) for name, weight in given.items()}


def _orders_of_columns(orders: Any, schema: Schema, chosen: Mapping[str, str]) -> dict[str, Sequence[Any]]:
    named = _by_name(orders or {}, schema, "orders")
    for name in named:
        if chosen.get(name) != "ordinal":
            raise ValueError(
                f"orders names the column {name!r}, whose metric is not 'ordinal': set its metric to 'ordinal'"
            )
    return named


def _ranks(table: Table, name: str, orders: Mapping[str, Any]) -> np.ndarray:
    """Position of each level: 1/L, 2/L, ..., 1 in the given order, the declared order of the column, or value order."""
    column = table.schema.column(name)
    declared = (
        () if column.kind == "ordinal" else column.levels_declared
    )  # the levels are in their order already
    order = list(orders.get(name) or declared or column.levels)
    absent = [level for level in column.levels if level not in order]
    if absent:
        raise ValueError(f"the order of column {name!r} lacks the level {absent[0]!r}: list all its levels")
    return np.array([(order.index(level) + 1.0) / len(order) for level in column.levels])
