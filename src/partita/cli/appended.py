"""``--output``: the table that was read, with columns of groups, confidence and scales at its end."""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.cli.output import as_texts, without_formula, write_arrow_table
from partita.cli.sources import InputTable
from partita.cli.standard_input import STANDARD
from partita.files import write_atomically
from partita.table.arrow_files import ARROW, PARQUET, checked, library
from partita.table.files import TEXT, ending_of
from partita.table.text_records import append_to_text

IN_FOLDER = "table"  # the value of --output that means a file beside the other results
PREFIX = "partita_"  # of a name that the table has already


class Appended(NamedTuple):
    """Where the table was written (nothing for standard output), and what the user should know about it."""

    files: dict[str, str]
    notes: list[str]


def check_output(output: str | None) -> None:
    """Refuse what names no table, before anything is read."""
    if output in (None, IN_FOLDER, STANDARD):
        return
    if ending_of(Path(str(output))) not in {*TEXT, *ARROW}:
        raise ValueError(
            f"--output {output}: give {IN_FOLDER!r}, a file that ends in {', '.join([*TEXT, *sorted(ARROW)])}, or - "
            "for standard output; --out names the place of the other results"
        )


def write_appended(
    output: str | None, table: InputTable, columns: Mapping[str, Any], default: Path
) -> Appended:
    """Write the table that was read, with further columns, where `output` says.

    Text keeps its cells as they are written, and Parquet and Arrow files keep their types; tables of other formats are
    written as CSV. A name that the table has already gets a prefix, which is noted.

    Parameters
    ----------
    output : str or None
        ``"table"`` for `default`, a path, or ``"-"`` for standard output. None writes nothing.
    table : InputTable
        What was read.
    columns : mapping
        Further columns by name.
    default : Path
        A path without an ending.
    """
    if output is None:
        return Appended({}, [])
    ending = f".{table.format}" if table.format else ending_of(table.path)
    added, notes = _free_names(columns, list(table.all_columns))
    if output == IN_FOLDER:
        target: Path | None = default.with_name(f"{default.name}{_own_ending(table, ending)}")
    else:
        target = None if output == STANDARD else Path(output)
    own = ending if ending in TEXT else ".csv"
    wanted = own if target is None else ending_of(target)
    if wanted in ARROW:
        _write_arrow(target, wanted, table, ending, added)
    elif ending in TEXT:
        data, has_header = _appended_text(table, added, ending, wanted)
        _write_bytes(target, data)
        if not has_header:
            notes.append(f"the table has no line with names, so these columns have none: {', '.join(added)}")
    else:
        _write_bytes(
            target, _as_csv(_own_texts(table, ending) | added, TEXT[wanted] or ",", table.escape_formulas)
        )
    files = {} if target is None else {str(target): f"the table with {', '.join(added)}"}
    return Appended(files, notes)


# ---- names ---------------------------------------------------------------------------------------------------------


def _free_names(columns: Mapping[str, Any], taken: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The columns under names that the table does not have, and a note on those that were changed."""
    used, free, changed = {name.casefold() for name in taken}, {}, []
    for name, values in columns.items():
        own, number = name, 1
        while own.casefold() in used:
            own = f"{PREFIX}{name}" + (f"_{number}" if number > 1 else "")
            number += 1
        used.add(own.casefold())
        free[own] = values
        if own != name:
            changed.append(f"{name!r} is written as {own!r}")
    if not changed:
        return free, []
    return free, [f"the table has columns of these names already: {', '.join(changed)}"]


def _own_ending(table: InputTable, ending: str) -> str:
    """The ending of a table in the format of the one that was read, as far as that can be written."""
    if ending not in {*TEXT, *ARROW}:
        return ".csv"
    return f"{ending}.gz" if table.path.name.lower().endswith(".gz") else ending


# ---- text ----------------------------------------------------------------------------------------------------------


def _content(table: InputTable) -> bytes:
    return table.path.read_bytes() if table.content is None else table.content


def _appended_text(
    table: InputTable, added: Mapping[str, Any], ending: str, wanted: str
) -> tuple[bytes, bool]:
    """The file with further columns, and whether it names its columns."""
    content = _content(table)
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    texts = {name: list(as_texts(values)) for name, values in added.items()}
    changes = wanted != ending and TEXT[wanted] != TEXT[ending]
    if not changes and any(
        note.code == "decimal_comma" for note in table.notes
    ):  # as in the rest of the file
        texts = {name: [text.replace(".", ",") for text in found] for name, found in texts.items()}
    return append_to_text(
        table.path,
        content,
        texts,
        separator=table.separator or TEXT[ending],
        encoding=table.encoding,
        skip=table.skip,
        to_separator=(TEXT[wanted] or ",") if changes else None,
        rewrite=without_formula if table.escape_formulas else None,
    )


def _write_bytes(target: Path | None, data: bytes) -> None:
    if target is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.name.lower().endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    with write_atomically(target) as part:
        part.write_bytes(data)


# ---- other formats -------------------------------------------------------------------------------------------------


def _own_texts(table: InputTable, ending: str) -> dict[str, list[str]]:
    """The columns of a table that is not text, with all digits."""
    if ending in ARROW:
        columns = _arrow_table(table, ending)
        return {str(name): _texts(columns.column(name).to_pylist()) for name in columns.column_names}
    return {name: _texts(values.tolist()) for name, values in table.all_columns.items()}


def _texts(values: Sequence[Any]) -> list[str]:
    """Cells as text; missing ones are empty, and whole numbers have no point.

    Examples
    --------
    >>> _texts([1.0, 0.1, None, float("nan"), "a"])
    ['1', '0.1', '', '', 'a']
    """
    return [
        "" if value is None or value != value
        else str(value).removesuffix(".0") if isinstance(value, float) else str(value)
        for value in values
    ]  # fmt: skip


def _as_csv(columns: Mapping[str, Any], separator: str, escape_formulas: bool) -> bytes:
    out = StringIO()
    rows = csv.writer(out, delimiter=separator, lineterminator="\n")
    shown = without_formula if escape_formulas else str
    rows.writerow(map(shown, columns))
    rows.writerows(zip(*(map(shown, as_texts(values)) for values in columns.values()), strict=True))
    return out.getvalue().encode()


def _arrow_table(table: InputTable, ending: str) -> Any:
    pyarrow = library(table.path)
    source = pyarrow.BufferReader(_content(table))
    if ending in PARQUET:
        from pyarrow import parquet

        return checked(parquet.read_table(source), table.path)
    from pyarrow import feather

    return checked(feather.read_table(source, memory_map=False), table.path)


def _write_arrow(
    target: Path | None, wanted: str, table: InputTable, ending: str, added: Mapping[str, Any]
) -> None:
    assert target is not None  # standard output is text
    pyarrow = library(target)
    if ending in ARROW:
        whole = _arrow_table(table, ending)
    else:
        whole = pyarrow.table({name: pyarrow.array(values) for name, values in table.all_columns.items()})
    for name, values in added.items():
        whole = whole.append_column(name, pyarrow.array(np.asarray(values)))
    target.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(target) as part:
        write_arrow_table(part, wanted, whole)
