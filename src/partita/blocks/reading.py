"""Relations from anything that holds a table: one kind of value, one set of levels, one unit for all its cells.

A table for a mixture has columns that differ in kind and unit. The cells of a relation are all of one sort: a block of
several columns shares its parameters, so its columns must share what their numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from partita.families import Block, Entry, family_entry
from partita.table import ColumnSchema, Note, Schema, Table, read_table
from partita.table.kinds import MAX_INFERRED_LEVELS
from partita.table.levels import code_dtype
from partita.table.scaling import center_and_scale, standardize

__all__ = [
    "Relations",
    "cells_of",
    "kind_of_family",
    "make_family",
    "read_again",
    "read_relations",
    "split_relations",
]

AUTOMATIC = {"real": "gaussian", "count": "poisson", "binary": "bernoulli", "categorical": "categorical"}
OF_COLUMNS = ("constant", "identifier", "empty_columns")  # what such a note says is not so of a relation


class Relations(NamedTuple):
    """Matrices over the same rows and columns."""

    kind: str
    schemas: tuple[Schema, ...]  # of each relation: all its columns are alike
    values: tuple[np.ndarray, ...]  # floats with NaN in the user's units, or codes with -1
    notes: list[Note]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values[0].shape[0], self.values[0].shape[1]


def split_relations(X: Any) -> list[Any]:
    """The matrices in X: a stack of three axes, a list of matrices, or one table.

    Examples
    --------
    >>> len(split_relations(np.zeros((3, 2, 2)))), len(split_relations([[1, 0], [0, 1]]))
    (3, 1)
    """
    if isinstance(X, (list, tuple)):
        if len(X) and all(len(getattr(x, "shape", ())) == 2 for x in X):
            return list(X)
        return [list(X)]
    if isinstance(X, np.ndarray) and X.ndim == 3:
        if not len(X):
            raise ValueError("X is a stack of 0 relations: give at least one")
        return list(X)
    return [X]


def read_relations(X: Any, kind: str | None, name: str) -> Relations:
    """Read X; the kind is that of the family, or None to infer one for all cells."""
    matrices = split_relations(X)
    tables = [read_table(x, kind, estimator_name=name) for x in matrices]
    if any(table.sparse is not None for table in tables):
        raise ValueError(f"{name} reads dense relations only, where 0 is a value: pass X.toarray()")
    _check_alike(tables)
    kind = kind or _common_kind(tables)
    schemas, values, notes = [], [], []
    for m, (x, table) in enumerate(zip(matrices, tables, strict=True)):
        schema = _common_schema(table, kind)
        again = read_table(x, schema=schema, estimator_name=name)
        matrix = np.column_stack([column.values for column in again.columns])
        if kind == "real":
            center, scale = center_and_scale(matrix.ravel())
            columns = tuple(replace(c, center=center, scale=scale) for c in schema.columns)
            schema = Schema(columns, schema.named)
        schemas.append(schema)
        values.append(matrix)
        notes += _notes(table, matrix, m, len(matrices))
    return Relations(kind, tuple(schemas), tuple(values), notes)


def read_again(X: Any, schemas: Sequence[Schema], name: str, handle_unknown: str) -> Relations:
    """Read new rows as the training relations were read."""
    matrices = split_relations(X)
    if len(matrices) != len(schemas):
        raise ValueError(
            f"X holds {len(matrices)} relations, and the model was fitted to {len(schemas)}: give the new rows of each "
            "of them, in the same order"
        )
    tables = [
        read_table(x, schema=schema, handle_unknown=handle_unknown, estimator_name=name)
        for x, schema in zip(matrices, schemas, strict=True)
    ]
    if len({table.n_rows for table in tables}) > 1:
        raise ValueError(f"the relations have {[t.n_rows for t in tables]} rows: give the same rows of each")
    values = tuple(np.column_stack([column.values for column in table.columns]) for table in tables)
    notes = [note for table in tables for note in table.notes]
    return Relations(schemas[0].columns[0].kind, tuple(schemas), values, notes)


def make_family(relations: Relations, family: Any, symmetric: bool = False) -> tuple[str, Block]:
    """The name of the family, and the block of cells with its default hyper-parameters."""
    name, options = _name_and_options(family, relations.kind)
    entry = family_entry(name)
    _check_positive(relations, entry)
    cells = cells_of(relations, entry)
    n_levels = np.array([schema.columns[0].n_levels for schema in relations.schemas])
    names = [f"relation {m}" for m in range(len(relations.schemas))]
    weights = np.ones(len(cells))
    if symmetric:  # a cell and its mirror image are one datum
        weights = np.triu(np.ones(relations.shape)).ravel()
    try:
        return name, entry.block(cells, names, weights, n_levels=n_levels, exposure=None, **options)
    except TypeError as error:
        raise ValueError(f"family {name!r} does not take these options: {error}") from error


def kind_of_family(family: Any) -> str | None:
    """The kind of value that a family reads; None for "auto". Refuses families that do not read single cells."""
    if isinstance(family, str) and family == "auto":
        return None
    entry = family_entry(_name_and_options(family, None)[0])
    if entry.vector:
        raise ValueError(
            f"family {entry.name!r} reads whole rows, and a block is made of single cells: choose one of "
            f"{', '.join(sorted(AUTOMATIC.values()))}, exponential"
        )
    return entry.kind


def cells_of(relations: Relations, entry: Entry) -> np.ndarray:
    """All cells, row by row, one relation a column; real ones standardised unless the family wants them raw."""
    columns = []
    for schema, values in zip(relations.schemas, relations.values, strict=True):
        if relations.kind == "real" and not entry.raw:
            first = schema.columns[0]
            values = standardize(values, first.center, first.scale)
        columns.append(values.ravel())
    out = np.column_stack(columns)
    if relations.kind in ("binary", "categorical"):
        out = out.astype(code_dtype(max(schema.columns[0].n_levels for schema in relations.schemas)))
    return np.ascontiguousarray(out)


def _name_and_options(family: Any, kind: str | None) -> tuple[str, dict[str, Any]]:
    if isinstance(family, str):
        return (AUTOMATIC[kind], {}) if family == "auto" and kind else (family_entry(family).name, {})
    if isinstance(family, (tuple, list)) and len(family) == 2 and isinstance(family[1], dict):
        return family_entry(family[0]).name, dict(family[1])
    raise ValueError(f"family is {family!r}: give 'auto', the name of a family, or a pair (name, options)")


def _check_alike(tables: Sequence[Table]) -> None:
    shapes = [(table.n_rows, table.schema.n_features) for table in tables]
    if len(set(shapes)) > 1:
        raise ValueError(
            f"the relations have the shapes {shapes}: all of them must be over the same rows and columns; mark cells "
            "that were not observed as missing"
        )


def _common_kind(tables: Sequence[Table]) -> str:
    """One kind for all cells: the narrowest that can hold them."""
    columns = [c for table in tables for c in table.schema.columns if c.kind != "ignore"]
    kinds = {c.kind for c in columns}
    text = [c.name for c in columns if c.family == "str"]
    if text and len(text) < len(columns):
        other = next(c.name for c in columns if c.family != "str")
        raise ValueError(
            f"column {text[0]!r} holds text and column {other!r} numbers: the cells of a relation must be of one sort; "
            "leave columns out, or use Mixture, which gives each column its own parameters"
        )
    levels = {level for c in columns for level in c.levels}
    if text or kinds in ({"binary"}, {"count"}, {"real"}):
        return "categorical" if text else kinds.pop()
    # what is few in a column may be many in all of them
    if kinds <= {"binary", "categorical"} and len(levels) <= MAX_INFERRED_LEVELS:
        return "categorical"
    return "count" if "real" not in kinds and min(levels, default=0) >= 0 else "real"


def _common_schema(table: Table, kind: str) -> Schema:
    """The schema with all columns of one kind and one set of levels."""
    columns = table.schema.columns
    if kind in ("real", "count"):
        alike = tuple(ColumnSchema(c.name, kind) for c in columns)
        return Schema(alike, table.schema.named)
    coded = [c for c in columns if c.kind != "ignore"]
    families = {str(c.family) for c in coded}
    sort = next((s for s in ("str", "float", "int", "bool") if s in families), "int")
    cast: Any = {"str": str, "float": float, "int": int, "bool": bool}[sort]
    levels = tuple(sorted({cast(level) for c in coded for level in c.levels}))
    if kind == "binary" and len(levels) > 2:
        raise ValueError(
            f"the cells hold {len(levels)} different values ({', '.join(map(repr, levels[:4]))}, ...), and "
            "family='bernoulli' reads two: use family='categorical'"
        )
    alike = tuple(ColumnSchema(c.name, kind, sort, levels) for c in columns)
    return Schema(alike, table.schema.named)


def _notes(table: Table, matrix: np.ndarray, m: int, n_relations: int) -> list[Note]:
    """What was unusual, in words that fit a relation."""
    notes = [note for note in table.notes if note.code not in OF_COLUMNS]
    missing = np.isnan(matrix) if matrix.dtype.kind == "f" else matrix < 0
    empty = np.flatnonzero(missing.all(axis=0))
    if len(empty):
        names = tuple(table.schema.columns[d].name for d in empty)
        listed = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        notes.append(
            Note(
                "empty_columns",
                f"columns without any observed cell are clustered by the prior alone: {listed}",
                names,
                "warning",
            )
        )
    if n_relations > 1:
        notes = [replace(note, message=f"relation {m}: {note.message}") for note in notes]
    return notes


def _check_positive(relations: Relations, entry: Entry) -> None:
    """Families in the user's units read positive numbers: say which cell is none."""
    if not entry.raw:
        return
    for schema, values in zip(relations.schemas, relations.values, strict=True):
        for row, d in np.argwhere(values <= 0)[:1]:
            raise ValueError(
                f"column {schema.columns[d].name!r}, row {row} (rows count from 0): {values[row, d]} is not above "
                f"zero, and family={entry.name!r} reads durations; mask it, or use family='gaussian'"
            )
