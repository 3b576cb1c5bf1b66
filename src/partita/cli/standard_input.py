"""Standard input as a file: ``-`` in the place of a path, with its format given or recognized by its first bytes."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from partita.table import FileError

STANDARD = "-"
NAME = "stdin"  # of standard input in messages, and in the names of files that are written
_BEGINNINGS = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF", "h5ad"),
    (b"\xd0\xcf\x11\xe0", "xls"),
    (b"\x1f\x8b", "csv.gz"),
)


class LocalFile(NamedTuple):
    """A file that can be read by its path; `content` is that of standard input, which cannot be read again."""

    path: Path
    format: str | None
    content: bytes | None = None


@contextmanager
def local_file(path: str | Path, format: str | None = None) -> Iterator[LocalFile]:
    """Give a file for a path, and a temporary one for standard input, which errors call "stdin"."""
    if str(path) != STANDARD:
        yield LocalFile(Path(path), format)
        return
    content = sys.stdin.buffer.read()
    if not content:
        raise FileError("standard input is empty: pipe a table into the command, or give the path of a file")
    format = format or format_of(content)
    with tempfile.TemporaryDirectory() as folder:
        # the reader decompresses files whose names end in .gz
        name = f"{NAME}.gz" if content.startswith(b"\x1f\x8b") else NAME
        local = Path(folder, name)
        local.write_bytes(content)
        try:
            yield LocalFile(local, format.removesuffix(".gz"), content)
        except FileError as error:
            raise FileError(str(error).replace(str(local), NAME)) from None


def format_of(content: bytes) -> str:
    """The format of a file, by its first bytes; text if they show nothing else.

    Examples
    --------
    >>> format_of(b"size,color\\n1,red\\n"), format_of(b"PAR1...")
    ('csv', 'parquet')
    """
    for beginning, name in _BEGINNINGS:
        if content.startswith(beginning):
            return name
    if content.startswith(b"PK\x03\x04"):
        try:
            names = zipfile.ZipFile(BytesIO(content)).namelist()
        except zipfile.BadZipFile:
            return "xlsx"  # whose reader tells what is wrong
        return "ods" if "content.xml" in names else "xlsb" if "xl/workbook.bin" in names else "xlsx"
    return "csv"
