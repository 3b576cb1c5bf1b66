"""Append columns to a text file: what is there stays as it is written, byte for byte."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from partita.table.errors import FileError
from partita.table.text_files import records_of, text_and_layout


def append_to_text(
    path: Path,
    content: bytes,
    columns: Mapping[str, Sequence[str]],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    to_separator: str | None = None,
    skip: Collection[int] = (),
    rewrite: Callable[[str], str] | None = None,
) -> tuple[bytes, bool]:
    """Return a text file with further columns at the end of its lines, and whether its first line names the columns.

    The records keep quotes, numbers, line ends, empty lines, byte-order mark and encoding. Only with another separator,
    or with `rewrite`, are they written anew.

    Parameters
    ----------
    path : Path
        Named in errors.
    content : bytes
        The file, not compressed.
    columns : mapping from names to texts
        One text per row of the table.
    separator, encoding, skip
        As in `read_file`; lines that are left out are not in the result.
    to_separator : str, default=None
        The separator of the result; None is that of the file.
    rewrite : callable, default=None
        What each cell of the file becomes.

    Examples
    --------
    >>> append_to_text(Path("a.csv"), b'x;y\\r\\n"1,0";b\\r\\n', {"group": ["2"]})
    (b'x;y;group\\r\\n"1,0";b;2\\r\\n', True)
    """
    text, known, layout = text_and_layout(path, content, separator, encoding, skip)
    added = zip(*columns.values(), strict=True)
    ends = [list(columns)] if layout.has_header else []
    ends += [list(cells) for cells in added]
    kept = to_separator in (None, layout.separator) and rewrite is None
    joined = layout.separator if to_separator is None else to_separator
    lines = io.StringIO(text, newline="").readlines()
    parts: list[str] = []
    done = count = 0
    for last, cells in records_of(text, layout.separator):
        if count == len(ends):
            count += 1
            break
        record = "".join(lines[done:last])
        body = record.rstrip("\r\n") if kept else _line([(rewrite or str)(cell) for cell in cells], joined)
        parts += [body, joined, _line(ends[count], joined), record[len(record.rstrip("\r\n")) :]]
        done, count = last, count + 1
    if count != len(ends):
        raise FileError(f"{path}: the file has changed since it was read; run the command again")
    parts += lines[done:]  # empty lines
    return _encoded("".join(parts), known, content), layout.has_header


def _line(cells: Sequence[str], separator: str) -> str:
    """Cells as one line of CSV, without its end."""
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="").writerow(cells)
    return line.getvalue()


def _encoded(text: str, encoding: str, original: bytes) -> bytes:
    """The text in the encoding of a file, with its byte-order mark if the file has one."""
    if encoding == "utf-16":  # Python would write the order of bytes of this machine
        little = original.startswith(codecs.BOM_UTF16_LE)
        mark = codecs.BOM_UTF16_LE if little else codecs.BOM_UTF16_BE
        return mark + text.encode("utf-16-le" if little else "utf-16-be")
    data = text.encode(encoding)
    has_mark = original.startswith(codecs.BOM_UTF8) and not data.startswith(codecs.BOM_UTF8)
    return codecs.BOM_UTF8 + data if has_mark else data
