"""The table that a command reads: columns to model, names of the rows, known classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.cli.labels import as_labels
from partita.cli.standard_input import NAME, STANDARD, local_file
from partita.progress import tell_stage
from partita.table import KINDS, FileError, FileTable, Note, Table, read_file, read_table
from partita.table.aside import reason_to_set_aside
from partita.table.cells import is_number, parse_values
from partita.table.kinds import level_order
from partita.table.notes import list_names
from partita.table.text import read_text

MAX_WHOLE = 2.0**53  # whole numbers up to this are exact
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
    notes: tuple[Note, ...] = ()  # what the user should know about how the file was read
    missing_codes: Any = None  # as in `read_table`
    encoding: str | None = None  # as it was given
    na: Sequence[str] = ()
    words: Mapping[str, Sequence[str]] = {}  # texts of the file that were read as missing
    levels: Mapping[str, tuple[str, ...]] = {}  # of the columns that have an order in the file
    escape_formulas: bool = False  # in the files of text that are written
    all_columns: Mapping[str, np.ndarray] = {}  # of the file, in its order
    separator: str | None = None  # as it was given
    format: str | None = None  # of standard input, or as it was given
    content: bytes | None = None  # of standard input, which cannot be read again
    skip: Sequence[int] = ()  # lines that were left out
    key: str | None = None  # as it was given

    def ordered(self) -> Any:
        """The columns to model; those that have an order in the file keep it."""
        return FileTable(self.columns, self.n_rows, levels=self.levels).ordered()

    def matrix(self) -> np.ndarray:
        """All columns as one array, for tables of one kind; text that is numbers or dates is read as such."""
        table = read_table(self.ordered(), missing_codes=self.missing_codes)
        columns = {
            name: values if table.schema.column(name).format is None else table.column(name).values
            for name, values in self.columns.items()
        }
        texts = [name for name, values in columns.items() if values.dtype.kind == "O"]
        if texts and len(texts) < len(columns):
            raise FileError(
                f"{self.path}: column {texts[0]!r} holds text and others hold numbers, and all cells must be of one "
                f"kind; if it names the rows give --id {texts[0]}, otherwise leave it out with --ignore, or use "
                "`partita cluster`"
            )
        return np.column_stack(list(columns.values()))


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
    encoding: str | None = None,
    na: Sequence[str] = (),
    format: str | None = None,
    skip: Sequence[int] = (),
    id_is_optional: bool = False,
    labels: bool = False,
    mark_codes: bool = False,
    escape_formulas: bool = False,
) -> InputTable:
    """Read a file and separate the columns to model from names of rows and known classes.

    With `labels` the columns hold labels of clusterings, which stay as they are written unless all of a column are
    integers. `na` holds missing codes, ``"999"`` for all columns or ``"age=999"`` for one or a pattern of names; cells
    that hold them are missing in a table of labels, and in any table with `mark_codes`. In other tables they are left
    to :func:`partita.table.read_table`, which reads the `missing_codes` of the table that is returned.

    With `id_is_optional` a file may lack the column of names.

    A first column whose values are all different texts, or 0, 1, 2, ..., or whole numbers that look like identifiers,
    is taken as the names of the rows, unless the caller says which columns to use or which column has the names.
    """
    everywhere = [code for code in na if "=" not in code]
    tell_stage(f"reading {Path(path).name if str(path) != STANDARD else 'standard input'}")
    with local_file(path, format) as (local, format, content):
        table = read_file(
            local, separator=separator, header=header, key=key, encoding=encoding, missing=everywhere, exact=labels,
            format=format, skip=skip,
        )  # fmt: skip
    path = Path(path) if content is None else Path(NAME)
    notes = list(table.notes)
    if labels or mark_codes:
        marked, found = _without_codes(table.columns, _codes_by_column(na, list(table.columns), path))
        table, notes = table._replace(columns=marked), notes + found
    all_columns = table.columns
    if labels:
        used = {id_column, *ignore}
        columns_read = {
            name: values if name in used else as_labels(values, name, path)
            for name, values in table.columns.items()
        }
        table = table._replace(columns=columns_read)
    if id_is_optional and id_column not in table.columns:
        id_column = None
    if id_column is None and not columns and (found := _naming_column(table, {truth, *ignore})):
        id_column = found
        message = (
            f"column {found!r} is taken as the names of the rows (choose the columns to model with --column)"
        )
        notes.append(Note("row_names", message, (found,)))
    aside = {name: table.take([name], path).columns[name] for name in (id_column, truth) if name}
    if columns:
        table = table.take(columns, path)
    kept = table.drop([name for name in (*ignore, *aside) if name in table.columns or name in ignore], path)
    if not kept.columns:
        raise FileError(f"{path}: no column is left to model")
    names = None if id_column is None else _as_written(aside[id_column])
    known = aside.get(truth) if truth else None
    tell_stage("loading the estimator")
    codes = _codes_by_column(na, list(kept.columns), path)
    return InputTable(
        path, kept.columns, table.n_rows, names, known, id_column, truth, tuple(notes), codes,
        encoding, tuple(na), table.words, table.levels, escape_formulas, all_columns, separator, format, content,
        tuple(skip), key,
    )  # fmt: skip


def _as_written(names: np.ndarray) -> np.ndarray:
    """Names of rows; whole numbers stay whole in what people read."""
    is_whole = names.dtype.kind == "f" and bool(np.all(np.abs(names) < MAX_WHOLE)) and not np.any(names % 1)
    return names.astype(np.int64) if is_whole else names


def open_typed(
    path: str | Path, kinds: Sequence[str] = (), *, infer_ordinal: bool = False, **reading: Any
) -> tuple[InputTable, Any, Table]:
    """Read a file and type its columns: the file's table, the declared kinds, and the typed table of a fit.

    Parameters
    ----------
    path, **reading
        As in :func:`open_table`.
    kinds : sequence of str, default=()
        As in :func:`kinds_by_column`.
    infer_ordinal : bool, default=False
        Whether columns with an order become ordinal; few models use the order of levels.
    """
    table = open_table(path, **reading)
    declared = kinds_by_column(kinds, table)
    typed = read_table(
        table.ordered(), declared, missing_codes=table.missing_codes, infer_ordinal=infer_ordinal
    )
    return table, declared, _with_notes_of_file(typed, table)


def _with_notes_of_file(typed: Table, table: InputTable) -> Table:
    """The typed table with what is known from the file: its notes, and the texts that were read as missing."""
    account, schema = typed.schema.account, typed.schema
    notes = [*table.notes, *typed.notes]
    if account is not None:
        if (repeated := account.repeats_note()) is not None:
            notes.append(repeated)
        schema = replace(schema, account=account.with_words(table.words))
    return replace(typed, schema=schema, notes=notes)


def _naming_column(table: Any, used: set[str | None]) -> str | None:
    """The first column, if it only names the rows and has no other use."""
    name, values = next(iter(table.columns.items()))
    if name in used or len(table.columns) == 1 or table.n_rows <= MAX_ROWS_BY_CHANCE:
        return None
    if values.dtype.kind == "O":
        read = read_text(parse_values(values, name), None)  # money and dates name no rows
        texts = read.values.tolist()
        is_name = read.family == "str" and None not in texts and len(set(texts)) == len(texts)
        return name if is_name else None
    if name == "column_1" and "column_2" not in table.columns and not np.any(values != np.floor(values)):
        return name  # whole numbers under no name: the index that pandas writes
    if values.dtype.kind not in "iuf":
        return None
    if values[0] in (0, 1):
        return name if np.array_equal(values - values[0], np.arange(len(values))) else None
    reason = reason_to_set_aside(parse_values(values, name))
    return name if reason is not None and reason.code == "identifier" else None


def kinds_by_column(declared: Sequence[str], table: InputTable) -> Any:
    """``["col=count", "word*=count"]`` as a mapping, and ``["count"]`` as one kind for all columns."""
    if len(declared) == 1 and declared[0] in KINDS:
        return declared[0]
    kinds = {}
    for text in declared:
        name, equals, kind = text.rpartition("=")
        if not equals or not (kind in KINDS or level_order(kind)):
            raise ValueError(
                f"--kind {text}: write --kind column=kind, or --kind kind for all columns, where kind is one of "
                f"{', '.join(KINDS)}, or the levels of an ordinal column from low to high, as in "
                "--kind 'answer=no < maybe < yes'"
            )
        _check_name(f"--kind {text}", name, list(table.columns), table.path)
        kinds[name] = kind
    return kinds or None


def _codes_by_column(na: Sequence[str], names: Sequence[str], path: Path) -> Any:
    """``["999", "age=-9"]`` as `missing_codes` of `read_table`."""
    everywhere = [code for code in na if "=" not in code]
    by_column: dict[str, list[str]] = {}
    for text in na:
        name, equals, code = text.rpartition("=")
        if equals:
            _check_name(f"--na {text}", name, names, path)
            by_column.setdefault(name, list(everywhere)).append(code)
    if not by_column:
        return everywhere or None
    return {"*": everywhere} | by_column if everywhere else by_column


def _without_codes(columns: Mapping[str, np.ndarray], codes: Any) -> tuple[dict[str, np.ndarray], list[Note]]:
    """The columns with the cells that hold a missing code as missing ones, and a note about them."""
    codes = codes if isinstance(codes, Mapping) else {"*": codes or []}
    out, hits = {}, {}
    for name, values in columns.items():
        own = {
            code
            for pattern, some in codes.items()
            if fnmatchcase(name, pattern) or name == pattern
            for code in some
        }
        is_code = _hold_codes(values, own)
        if is_code.any():
            hits[name] = int(is_code.sum())
            values = values.astype(float if values.dtype.kind == "f" else object)
            values[is_code] = np.nan if values.dtype.kind == "f" else None
        out[name] = values
    if not hits:
        return out, []
    listed = list_names(list(hits), list(hits.values()))
    message = f"cells that hold the missing code are read as missing: {listed}"
    return out, [Note("missing_code", message, tuple(hits))]


def _hold_codes(values: np.ndarray, codes: set[str]) -> np.ndarray:
    """Whether each cell is one of some codes: the same number in a column of numbers, otherwise the same text."""
    if values.dtype.kind == "f":
        return np.isin(values, [float(code) for code in codes if is_number(code)])
    return np.array([value is not None and str(value).strip() in codes for value in values.tolist()], bool)


def _check_name(option: str, name: str, names: Sequence[str], path: Path) -> None:
    if name not in names and not any(fnmatchcase(one, name) for one in names):
        raise FileError(f"{option}: {path} has no column {name!r}; it has {', '.join(names)}")


def list_kinds(schema: Any) -> str:
    """The columns of each kind, in one line."""
    by_kind: dict[str, list[str]] = {}
    for column in schema.columns:
        by_kind.setdefault(column.declared_kind, []).append(str(column.name))
    order = sorted(by_kind, key=lambda kind: kind == "ignore")  # what is not modeled comes last
    return "; ".join(f"{kind}: {join_names(by_kind[kind])}" for kind in order)


def join_names(names: Sequence[str], limit: int = 6) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
