"""The typed table that `read_table` returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from partita.table.kinds import CODED_KINDS
from partita.table.levels import code_dtype
from partita.table.notes import Note
from partita.table.scaling import standardize
from partita.table.schema import ColumnSchema, Schema


class Column(NamedTuple):
    """One modeled column: `values` is float64 with NaN (real, count) or integer codes with -1 (others).

    Examples
    --------
    >>> from partita.table import read_table
    >>> read_table([["b"], ["a"], [None]]).columns[0].values
    array([ 1,  0, -1], dtype=int8)
    """

    name: str
    kind: str
    values: np.ndarray


class KindBlock(NamedTuple):
    """All columns of one kind as one array.

    `values` is (n_rows, n_columns), C-contiguous, writable and owned by the caller (a CSR array if the table
    is sparse). `n_levels` holds the number of levels per column; it is empty for real and count columns.

    Examples
    --------
    >>> from partita.table import read_table
    >>> block = read_table([["b", "u"], ["a", "u"]]).block("categorical")
    >>> block.values.tolist(), block.names, block.n_levels.tolist()
    ([[1, 0], [0, 0]], ('x0', 'x1'), [2, 1])
    """

    values: Any
    names: tuple[str, ...]
    n_levels: np.ndarray


@dataclass(frozen=True, eq=False)
class Table:
    """Typed columns, and the schema with which new data are read.

    Attributes
    ----------
    schema : Schema
        All columns with their kinds, levels, centers and scales.
    columns : list of Column
        The modeled columns, that is, those that are not ignored, as read-only arrays. Empty if `sparse` is set.
    n_rows : int
        The number of rows.
    weights : ndarray of shape (n_rows,)
        The validated sample weights, ones by default.
    notes : list of Note
        What was unusual about the data.
    sparse : scipy.sparse.csr_array or None
        The counts, if the input was sparse.

    Examples
    --------
    >>> from partita.table import read_table
    >>> table = read_table([[1.5, 2.0], [2.5, None]])
    >>> table.reals()
    array([[-1.,  0.],
           [ 1., nan]])
    >>> table.take([1]).n_rows
    1
    """

    schema: Schema
    columns: list[Column]
    n_rows: int
    weights: np.ndarray
    notes: list[Note] = field(default_factory=list)
    sparse: Any = None

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> Column:
        """Find a modeled column by name."""
        if name in self._by_name:
            return self._by_name[name]
        known = self.schema.column(name)  # an unknown name fails here, with the list of names
        why = "the table is sparse" if self.sparse is not None else f"it is {known.kind!r}"
        raise ValueError(f"column {name!r} has no array of values: {why}")

    def take(self, rows: Any) -> Table:
        """Return the table of some rows, with the same schema.

        Parameters
        ----------
        rows : array-like of int or bool, or slice
            As in numpy indexing; an integer array may repeat rows and choose their order.
        """
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            if rows.size == 0 and rows.dtype.kind == "f":  # numpy makes [] a float array
                rows = rows.astype(np.intp)
        weights = self.weights[rows]
        if weights.ndim != 1:
            raise ValueError("rows must be one-dimensional: a slice, a mask or a list of row numbers")
        return replace(
            self,
            columns=[column._replace(values=_locked(column.values[rows])) for column in self.columns],
            n_rows=len(weights),
            weights=weights,
            sparse=None if self.sparse is None else self.sparse[rows],
        )

    def block(self, kind: str) -> KindBlock:
        """Return the columns of one kind: real columns standardized, counts as floats, the others as codes.

        Parameters
        ----------
        kind : {"real", "count", "binary", "categorical", "ordinal"}
            The kind of the columns.

        Returns
        -------
        KindBlock
            `values`, `names` and `n_levels`; without columns if the table has none of that kind.
        """
        if kind == "ignore":
            raise ValueError(
                "ignored columns are not read; choose real, count, binary, categorical or ordinal"
            )
        schemas = self.schema.of_kind(kind)
        names = tuple(schema.name for schema in schemas)
        if self.sparse is not None and schemas:
            return KindBlock(self.sparse.copy(), names, _level_counts(kind, schemas))
        dtype: np.dtype[Any] = np.dtype(np.float64)
        if kind in CODED_KINDS:
            dtype = code_dtype(max((schema.n_levels for schema in schemas), default=0))
        values = np.empty((self.n_rows, len(schemas)), dtype=dtype)
        members = (column for column in self.columns if column.kind == kind)
        for position, (schema, column) in enumerate(zip(schemas, members, strict=True)):
            if kind == "real":
                values[:, position] = standardize(column.values, schema.center, schema.scale)
            else:
                values[:, position] = column.values
        return KindBlock(values, names, _level_counts(kind, schemas))

    def reals(self) -> np.ndarray:
        """Return the standardized real columns, (n_rows, number of real columns), with NaN for missing cells."""
        return self.block("real").values

    def standardized(self, name: str) -> np.ndarray:
        """Return one real column minus its center, divided by its scale."""
        column, schema = self.column(name), self.schema.column(name)
        if column.kind != "real":
            raise ValueError(f"column {name!r} is {column.kind}; only real columns are standardized")
        return standardize(column.values, schema.center, schema.scale)

    def log_scale_rows(self) -> np.ndarray:
        """Return the term that turns log densities of standardized values into log densities in the user's units.

        Returns
        -------
        ndarray of shape (n_rows,)
            The sum of -log(scale) over the observed real cells of every row (the log Jacobian), to be added to a log
            density of `reals()`.
        """
        total = np.zeros(self.n_rows)
        for column in self.columns:
            if column.kind == "real":
                log_scale = math.log(self.schema.column(column.name).scale)
                total -= np.where(np.isnan(column.values), 0.0, log_scale)
        return total

    @property
    def counts(self) -> Any:
        """The count columns: a CSR array if the table is sparse, otherwise a dense array."""
        return self.sparse if self.sparse is not None else self.block("count").values


def _level_counts(kind: str, schemas: tuple[ColumnSchema, ...]) -> np.ndarray:
    coded = kind in CODED_KINDS
    return np.array([schema.n_levels for schema in schemas] if coded else [], dtype=np.int64)


def _locked(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values
