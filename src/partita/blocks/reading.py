"""Reading of relations: all cells of a relation have one kind, one set of levels and one unit.

The columns of a table for a mixture may differ in kind and unit. The cells of a relation may not: the columns of a
block share their parameters.
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

AUTO_FAMILIES = {"real": "gaussian", "count": "poisson", "binary": "bernoulli", "categorical": "categorical"}
COLUMN_NOTES = ("constant", "identifier", "empty_columns")  # notes on columns that do not apply to relations


class Relations(NamedTuple):
    """One or more matrices over the same rows and columns."""

    kind: str
    schemas: tuple[Schema, ...]  # of each relation; all columns of a schema have the same kind and levels
    values: tuple[np.ndarray, ...]  # floats with NaN in the user's units, or codes with -1
    notes: list[Note]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.values[0].shape[0], self.values[0].shape[1]


def split_relations(X: Any) -> list[Any]:
    """The matrices in X: an array of three dimensions, a list of matrices, or one table.

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
            raise ValueError("X holds 0 relations: pass at least one")
        return list(X)
    return [X]


def read_relations(X: Any, kind: str | None, name: str) -> Relations:
    """Read X; ``kind`` is the kind that the family reads, or None to infer one for all cells."""
    matrices = split_relations(X)
    tables = [read_table(x, kind, infer_ordinal=False, estimator_name=name) for x in matrices]
    if any(table.sparse is not None for table in tables):
        raise ValueError(f"{name} reads dense relations only: pass X.toarray(), in which 0 is a value")
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
    """Read new rows in the way the training relations were read."""
    matrices = split_relations(X)
    if len(matrices) != len(schemas):
        raise ValueError(
            f"X holds {len(matrices)} relations, but the model was fitted to {len(schemas)}: pass the new rows of each "
            "relation, in the same order"
        )
    tables = [
        read_table(x, schema=schema, handle_unknown=handle_unknown, estimator_name=name)
        for x, schema in zip(matrices, schemas, strict=True)
    ]
    if len({table.n_rows for table in tables}) > 1:
        raise ValueError(f"the relations have {[t.n_rows for t in tables]} rows: pass the same rows of each")
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
    if symmetric:  # the cells (i, j) and (j, i) are one observation
        weights = np.triu(np.ones(relations.shape)).ravel()
    try:
        return name, entry.block(cells, names, weights, n_levels=n_levels, exposure=None, **options)
    except TypeError as error:
        raise ValueError(f"family {name!r} does not take these options: {error}") from error


def kind_of_family(family: Any) -> str | None:
    """The kind of cell that a family reads; None for "auto". Refuses families that do not read single cells."""
    if isinstance(family, str) and family == "auto":
        return None
    entry = family_entry(_name_and_options(family, None)[0])
    if entry.vector or entry.kind == "ordinal":
        reads = "latent variables" if entry.kind == "ordinal" else "whole rows"
        raise ValueError(
            f"family {entry.name!r} reads {reads}, but a block consists of single cells: choose one of "
            f"{', '.join(sorted(AUTO_FAMILIES.values()))}, exponential"
        )
    return entry.kind


def cells_of(relations: Relations, entry: Entry) -> np.ndarray:
    """All cells, row by row, one column per relation; real cells standardized unless the family reads raw values."""
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
        return (AUTO_FAMILIES[kind], {}) if family == "auto" and kind else (family_entry(family).name, {})
    if isinstance(family, (tuple, list)) and len(family) == 2 and isinstance(family[1], dict):
        return family_entry(family[0]).name, dict(family[1])
    raise ValueError(f"family is {family!r}: pass 'auto', the name of a family, or a pair (name, options)")


def _check_alike(tables: Sequence[Table]) -> None:
    shapes = [(table.n_rows, table.schema.n_features) for table in tables]
    if len(set(shapes)) > 1:
        raise ValueError(
            f"the relations have the shapes {shapes}: all must have the same rows and columns; mark cells that were "
            "not observed as missing"
        )


def _common_kind(tables: Sequence[Table]) -> str:
    """One kind for all cells, the narrowest that fits."""
    columns = [c for table in tables for c in table.schema.columns if c.kind != "ignore"]
    kinds = {c.kind for c in columns}
    text = [c.name for c in columns if c.family == "str"]
    if text and len(text) < len(columns):
        other = next(c.name for c in columns if c.family != "str")
        raise ValueError(
            f"column {text[0]!r} holds text and column {other!r} numbers: the cells of a relation must be of one kind; "
            "leave columns out, or use Mixture, which gives each column its own parameters"
        )
    levels = {level for c in columns for level in c.levels}
    if text or kinds in ({"binary"}, {"count"}, {"real"}):
        return "categorical" if text else kinds.pop()
    # Levels that are few in each column may be many in all columns together.
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
    """Notes on unusual data, worded for relations."""
    notes = [note for note in table.notes if note.code not in COLUMN_NOTES]
    missing = np.isnan(matrix) if matrix.dtype.kind == "f" else matrix < 0
    empty = np.flatnonzero(missing.all(axis=0))
    if len(empty):
        names = tuple(table.schema.columns[d].name for d in empty)
        listed = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        notes.append(
            Note(
                "empty_columns",
                f"columns without any observed cell are clustered by the prior only: {listed}",
                names,
                "warning",
            )
        )
    if n_relations > 1:
        notes = [replace(note, message=f"relation {m}: {note.message}") for note in notes]
    return notes


def _check_positive(relations: Relations, entry: Entry) -> None:
    """Refuse cells that are not positive where the family reads positive numbers."""
    if not entry.raw:
        return
    for schema, values in zip(relations.schemas, relations.values, strict=True):
        for row, d in np.argwhere(values <= 0)[:1]:
            raise ValueError(
                f"column {schema.columns[d].name!r}, row {row} (rows count from 0): {values[row, d]} is not "
                f"positive, but family={entry.name!r} reads durations; mark it as missing, or use family='gaussian'"
            )
