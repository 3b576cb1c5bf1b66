"""Small distributions for the portrait of a group: one column in the group and in the whole table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from partita.descriptions.columns import level_text, value_text
from partita.summaries.pairs import spread
from partita.table import ColumnSchema, Table

MAX_ROWS = 20_000  # from which the distributions are counted
N_BINS = 24
TAIL = 0.005  # share of the values on either side that goes into the outermost bins
MIN_RATIO = 30.0  # between the ends of the axis, from which a skewed column has logarithmic bins
MAX_BARS = 6  # levels that have a bar


class Distribution(NamedTuple):
    """One column in one group and in the whole table: shares of bins between edges, or of levels."""

    here: NDArray[np.float64]
    whole: NDArray[np.float64]
    edges: NDArray[np.float64] | None  # of bins; None for levels
    labels: list[str]  # of both ends of the axis, or of the levels
    is_log: bool = False  # whether the bins are equal in logarithms


class Portraits:
    """The distributions of the columns in the groups, each counted when it is asked for.

    With a table they are those of its rows (of an even sample, if there are more than 20,000); without one they are
    drawn from the profiles of the model.

    Parameters
    ----------
    labels : ndarray (n_rows,)
    profiles : dict
        By column, for models without a table.
    weights : ndarray (n_groups,)
        Sizes of the groups.
    table : Table or None
    column_of : callable, optional
        Kind and levels of a column of the profiles, without a table.
    """

    def __init__(
        self,
        labels: NDArray[np.int64],
        profiles: Mapping[str, Mapping[str, Any]],
        weights: NDArray[np.float64],
        table: Table | None,
        column_of: Callable[[str], ColumnSchema] | None,
    ) -> None:
        self._profiles, self._table, self._column_of = profiles, table, column_of
        self._weights = np.maximum(np.asarray(weights, float), 1e-300)
        inside = np.flatnonzero(np.asarray(labels) >= 0)
        self.rows = inside[spread(len(inside), MAX_ROWS)]
        self.is_sample = len(self.rows) < len(inside)
        self._labels = np.asarray(labels)[self.rows]
        self._columns = {} if table is None else {column.name: column for column in table.columns}

    @property
    def counts_rows(self) -> bool:
        """Whether the distributions are counted, not those of the model."""
        return bool(self._columns)

    def of(self, name: str, k: int) -> Distribution | None:
        """One column in group k; None if its distribution is not known."""
        if name in self._columns and self._table is not None:
            cells = np.asarray(self._columns[name].values)[self.rows]
            schema = self._table.schema.column(name)
            found = _counted_numbers if cells.dtype.kind == "f" else _counted_levels
            return found(cells, self._labels == k, schema)
        if name not in self._profiles or self._column_of is None:
            return None
        return _modeled(self._profiles[name], k, self._weights / self._weights.sum(), self._column_of(name))


def _counted_numbers(
    x: NDArray[np.float64], inside: NDArray[np.bool_], column: ColumnSchema
) -> Distribution | None:
    seen = ~np.isnan(x)
    if not (seen & inside).any():
        return None
    values = x[seen]
    low, high = np.quantile(values, [TAIL, 1.0 - TAIL])
    if low == high:
        low, high = float(values.min()), float(values.max())
    is_log = low > 0.0 and high > MIN_RATIO * low and float(np.median(values)) < 0.25 * (low + high)
    if is_log:
        edges = np.geomspace(low, high, N_BINS + 1)
    elif (values == np.round(values)).all():
        low, high = np.floor(low), np.ceil(high)
        step = np.ceil((high - low + 1.0) / N_BINS)  # whole numbers per bin
        edges = np.arange(low, high + step + 0.5, step) - 0.5
    elif low == high:
        edges = np.array([low - 0.5, low + 0.5])
    else:
        edges = np.linspace(low, high, N_BINS + 1)
    clipped = np.clip(x, edges[0], edges[-1])
    here, whole = (np.histogram(clipped[of], edges)[0].astype(float) for of in (seen & inside, seen))
    labels = [value_text(column, float(end)) for end in (low, high)]
    return Distribution(here / here.sum(), whole / whole.sum(), edges, labels, is_log)


def _counted_levels(
    codes: NDArray[Any], inside: NDArray[np.bool_], column: ColumnSchema
) -> Distribution | None:
    n_levels = max(len(column.levels), int(codes.max(initial=0)) + 1)
    here, whole = (
        np.bincount(codes[of & (codes >= 0)], minlength=n_levels).astype(float) for of in (inside, codes >= 0)
    )
    if not here.sum():
        return None
    return _levels(here / here.sum(), whole / whole.sum(), column)


def _levels(here: NDArray[np.float64], whole: NDArray[np.float64], column: ColumnSchema) -> Distribution:
    """The levels that differ or occur most; all others together."""
    names = [level_text(level) for level in column.levels]
    names += ["(other)"] * (len(here) - len(names))
    if len(here) > MAX_BARS:
        most = np.sort(np.argsort(-np.maximum(here, whole), kind="stable")[: MAX_BARS - 1])
        rest = np.setdiff1d(np.arange(len(here)), most)
        names = [*(names[v] for v in most), f"{len(rest)} others"]
        here, whole = (np.append(p[most], p[rest].sum()) for p in (here, whole))
    return Distribution(here, whole, None, names)


def _modeled(
    profile: Mapping[str, Any], k: int, weights: NDArray[np.float64], column: ColumnSchema
) -> Distribution | None:
    if "probabilities" in profile:
        P = np.asarray(profile["probabilities"], float)
        return _levels(P[k], weights @ P, column)
    if "mean" in profile:
        mean, sd = np.asarray(profile["mean"], float), np.asarray(profile["sd"], float)
    elif "rate" in profile and column.kind == "count":
        mean = np.asarray(profile["rate"], float)
        sd = np.sqrt(mean)
    else:
        return None
    sd = np.maximum(sd, 1e-9 * max(float(np.abs(mean).max()), 1e-300))
    low, high = float((mean - 2.5 * sd).min()), float((mean + 2.5 * sd).max())
    edges = np.linspace(low, high, N_BINS + 1)
    shares = np.diff(ndtr((edges - mean[:, None]) / sd[:, None]), axis=1)
    return Distribution(shares[k], weights @ shares, edges, [value_text(column, end) for end in (low, high)])
