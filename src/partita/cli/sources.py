"""The table that a command reads: columns to model, names of the rows, known classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.table import KINDS, FileError, Table, read_file, read_table
from partita.table.kinds import level_order

MAX_ROWS_BY_CHANCE = 20  # in so few rows all values of a column may differ by chance


class InputTable(NamedTuple):
    """Columns to model, names of the rows and known classes; the last two are None if they are not given."""

    path: Path
    columns: dict[str, np.ndarray]
    n_rows: int
    names: np.ndarray | None
    truth: np.ndarray | None
    id_column: str | None = None  # column of the names
    truth_column: str | None = None
    note: str = ""  # what the user should know about how the file was read

    def typed(self, kinds: Any = None) -> Table:
        """The columns with their kinds, for the fit and for the report."""
        return read_table(self.columns, kinds)

    def matrix(self) -> np.ndarray:
        """All columns as one array, for tables of one kind."""
        texts = [name for name, values in self.columns.items() if values.dtype.kind == "O"]
        if texts and len(texts) < len(self.columns):
            raise FileError(
                f"{self.path}: column {texts[0]!r} holds text and others hold numbers, and all cells must be of one "
                f"kind; if it names the rows give --id {texts[0]}, otherwise leave it out with --ignore, or use "
                "`partita cluster`"
            )
        return np.column_stack(list(self.columns.values()))


def open_table(
    path: str | Path,
    *,
    id_column: str | None = None,
    truth: str | None = None,
    ignore: Sequence[str] = (),
    columns: Sequence[str] = (),
    separator: str | None = None,
    header: bool | None = None,
    key: str | None = None,
) -> InputTable:
    """Read a file and separate the columns to model from names of rows and known classes.

    A first column whose values are all different texts, or 0, 1, 2, ..., is taken as the names of the rows, unless
    the caller says which columns to use or which column has the names.
    """
    path = Path(path)
    table = read_file(path, separator=separator, header=header, key=key)
    note = ""
    if id_column is None and not columns and (found := _naming_column(table, {truth, *ignore})):
        id_column = found
        note = (
            f"column {found!r} is taken as the names of the rows (choose the columns to model with --column)"
        )
    aside = {name: table.take([name], path).columns[name] for name in (id_column, truth) if name}
    if columns:
        table = table.take(columns, path)
    kept = table.drop([name for name in (*ignore, *aside) if name in table.columns or name in ignore], path)
    if not kept.columns:
        raise FileError(f"{path}: no column is left to model")
    names = None if id_column is None else aside[id_column]
    known = aside.get(truth) if truth else None
    return InputTable(path, kept.columns, table.n_rows, names, known, id_column, truth, note)


def _naming_column(table: Any, used: set[str | None]) -> str | None:
    """The first column, if it only names the rows and has no other use."""
    name, values = next(iter(table.columns.items()))
    if name in used or len(table.columns) == 1 or table.n_rows <= MAX_ROWS_BY_CHANCE:
        return None
    if values.dtype.kind == "O":
        texts = values.tolist()
        return name if None not in texts and len(set(texts)) == len(texts) else None
    if values.dtype.kind in "iuf" and values[0] in (0, 1):
        return name if np.array_equal(values - values[0], np.arange(len(values))) else None
    return None


def kinds_by_column(declared: Sequence[str], table: InputTable) -> dict[str, str] | None:
    """``["col=count"]`` as a mapping, with names and kinds checked."""
    kinds = {}
    for text in declared:
        name, equals, kind = text.rpartition("=")
        if not equals or not (kind in KINDS or level_order(kind)):
            raise ValueError(
                f"--kind {text}: write --kind column=kind, where kind is one of {', '.join(KINDS)}, or the levels of "
                "an ordinal column from low to high, as in --kind 'answer=no < maybe < yes'"
            )
        if name not in table.columns:
            raise FileError(
                f"--kind {text}: {table.path} has no column {name!r}; it has {', '.join(table.columns)}"
            )
        kinds[name] = kind
    return kinds or None


def list_kinds(schema: Any) -> str:
    """The columns of each kind, in one line."""
    by_kind: dict[str, list[str]] = {}
    for column in schema.columns:
        by_kind.setdefault(column.kind, []).append(str(column.name))
    return "; ".join(f"{kind}: {join_names(names)}" for kind, names in by_kind.items())


def join_names(names: Sequence[str], limit: int = 6) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
