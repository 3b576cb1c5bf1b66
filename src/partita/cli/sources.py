"""The table of a command: read, with names of rows and known classes taken out of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.table import KINDS, FileError, read_file

__all__ = ["InputTable", "kinds_of", "open_table"]


class InputTable(NamedTuple):
    """Columns to model, what the rows are called, and known classes (None: not given)."""

    path: Path
    columns: dict[str, np.ndarray]
    n_rows: int
    names: np.ndarray | None
    truth: np.ndarray | None

    def matrix(self) -> np.ndarray:
        """All columns as one array, for tables of one kind."""
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
    """Read a file; leave out what is not to be modelled."""
    path = Path(path)
    table = read_file(path, separator=separator, header=header, key=key)
    aside = {name: table.take([name], path).columns[name] for name in (id_column, truth) if name}
    if columns:
        table = table.take(columns, path)
    kept = table.drop([name for name in (*ignore, *aside) if name in table.columns or name in ignore], path)
    if not kept.columns:
        raise FileError(f"{path}: no column is left to model")
    names = None if id_column is None else aside[id_column]
    return InputTable(path, kept.columns, table.n_rows, names, aside.get(truth) if truth else None)


def kinds_of(asked: Sequence[str], table: InputTable) -> dict[str, str] | None:
    """``["col=count"]`` as a mapping, every part of it checked."""
    kinds = {}
    for text in asked:
        name, equals, kind = text.rpartition("=")
        if not equals or kind not in KINDS:
            raise ValueError(f"--kind {text}: write --kind column=kind, kind being one of {', '.join(KINDS)}")
        if name not in table.columns:
            raise FileError(
                f"--kind {text}: {table.path} has no column {name!r}; it has {', '.join(table.columns)}"
            )
        kinds[name] = kind
    return kinds or None


def shown_kinds(schema: Any) -> str:
    """The kinds of the columns, grouped."""
    by_kind: dict[str, list[str]] = {}
    for column in schema.columns:
        by_kind.setdefault(column.kind, []).append(str(column.name))
    parts = []
    for kind, names in by_kind.items():
        some = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        parts.append(f"{kind}: {some}")
    return "; ".join(parts)
