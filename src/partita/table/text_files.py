"""Read text files: encoding, separator, header, and columns of numbers or text.

Cells are divided by pyarrow if it is installed, and by the csv module otherwise. The csv module also reads what pyarrow
refuses, because its errors name the line.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from partita.table.cells import is_number
from partita.table.encodings import guess_encoding, marked_encoding
from partita.table.errors import FileError
from partita.table.formats import (
    MISSING_BESIDE_NUMBERS,
    MISSING_WORDS,
    find_decimal_mark,
    find_format,
    has_leading_zeros,
)
from partita.table.notes import Findings, Note, list_names
from partita.table.surroundings import (
    KEEP_ALL,
    MAX_LINES,
    Record,
    find_head,
    is_below_table,
    notes_on_lines,
    usual_width,
)

SEPARATORS = (",", ";", "\t", "|")
SAMPLED_LINES = 20
ROW_NAMES = "row"  # the name of a column of names that has none
_SAMPLED_BYTES = 1 << 18


class TextTable(NamedTuple):
    """Columns by name, what is unusual about the file, and the words that were read as missing in each column."""

    columns: dict[str, NDArray[Any]]
    notes: list[Note]
    words: dict[str, list[str]]


def read_text_file(
    path: Path,
    *,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    missing: Collection[str] = (),
    exact: bool = False,
    skip: Collection[int] = (),
) -> TextTable:
    """Read a text file; see `read_file` for the parameters.

    A column is numbers if all its cells are numbers or missing; it stays text if some integer has leading zeros. The
    formats of other text are found when the table is read.
    """
    data, notes, _ = _utf8_bytes(path, _bytes_of(path), encoding)
    alone = KEEP_ALL in skip or header is not None
    data, layout, left_out = _find_layout(path, without_lines(data, skip), separator, header, alone)
    columns = _divide(path, data, layout)
    found = convert(columns, layout.separator, missing, exact=exact)
    return found._replace(notes=[*notes, *left_out, *found.notes])


class TextLayout(NamedTuple):
    """How a text file is divided: the separator of cells, the names of the columns, whether the first line has them.

    The first line may have no name for the first column, which then has the names of the rows.
    """

    separator: str
    names: list[str]
    has_header: bool


def text_and_layout(
    path: Path,
    content: bytes,
    separator: str | None,
    encoding: str | None,
    skip: Collection[int] = (),
) -> tuple[str, str, TextLayout]:
    """Return the text of a table without byte-order mark and other lines, the name of its encoding, and its layout.

    Examples
    --------
    >>> text_and_layout(Path("a.csv"), b"size;color\\n1;red\\n", None, None)
    ('size;color\\n1;red\\n', 'utf-8', TextLayout(separator=';', names=['size', 'color'], has_header=True))
    """
    data, _, known = _utf8_bytes(path, content, encoding)
    data, layout, _ = _find_layout(path, without_lines(data, skip), separator, None, KEEP_ALL in skip)
    return data.decode(), known or "utf-8", layout


def _find_layout(
    path: Path, data: bytes, separator: str | None, header: bool | None, alone: bool
) -> tuple[bytes, TextLayout, list[Note]]:
    """Return the content without the lines around the table, unless it is left alone, its layout, and notes on them."""
    sample = _sample(data)
    separator = separator or _find_separator(sample)
    notes: list[Note] = []
    if not alone:
        data, notes = _without_surroundings(data, sample, separator)
        sample = _sample(data) if notes else sample
    return data, TextLayout(separator, *_find_names(path, sample, separator, header)), notes


# ---- bytes -----------------------------------------------------------------------------------------------------


def _bytes_of(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else open(path, "rb") as file:
            return file.read()
    except (OSError, EOFError) as error:
        raise FileError(f"{path}: {error}") from None


def _utf8_bytes(path: Path, data: bytes, encoding: str | None) -> tuple[bytes, list[Note], str | None]:
    """Return the content in UTF-8 without a mark, a note if the encoding was guessed, and the encoding if it is not
    UTF-8.
    """
    notes: list[Note] = []
    known = encoding or marked_encoding(data)
    if known is None and not _is_utf8(data):
        known = guess_encoding(data)
        message = f"the text is not UTF-8 and is read as {known}; give the encoding if names look wrong"
        notes.append(Note("encoding", f"{message} (--encoding on the command line)"))
    if known is not None:
        data = _decoded(path, data, known, encoding is not None).encode()
    zero = data.find(b"\0")
    if zero >= 0:
        line = data[:zero].count(b"\n") + 1
        raise FileError(f"{path}, line {line}: a zero byte, so the file is not text: save it as UTF-8")
    return data, notes, known


def without_lines(data: bytes, skip: Collection[int]) -> bytes:
    """Leave out some lines, which count from 1.

    Examples
    --------
    >>> without_lines(b"Report of May\\n\\na,b\\n1,2\\n", {1, 2})
    b'a,b\\n1,2\\n'
    """
    if not skip:
        return data
    lines = io.StringIO(data.decode(), newline="").readlines()  # ends of lines as the csv module counts them
    return "".join(line for number, line in enumerate(lines, 1) if number not in skip).encode()


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decoded(path: Path, data: bytes, encoding: str, given: bool) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise FileError(
            f"{path}: there is no encoding {encoding!r}; usual ones are utf-8, cp1252, utf-16"
        ) from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        remedy = "give another encoding" if given else "give its encoding (--encoding), or save it as UTF-8"
        raise FileError(
            f"{path}, line {line}: the text is not {encoding} ({error.reason}): {remedy}"
        ) from None


# ---- lines and cells -------------------------------------------------------------------------------------------


def _sample(data: bytes) -> str:
    """Return the beginning of the file, up to the end of a line; at least the whole first line."""
    part = data[:_SAMPLED_BYTES]
    if len(part) < len(data):
        ends = [end for mark in (b"\n", b"\r") if (end := data.find(mark, len(part))) >= 0]
        whole = data[: min(ends, default=len(data))]  # if the first line is longer than the sample
        part = part[: max(part.rfind(b"\n"), part.rfind(b"\r")) + 1] or whole
    return part.decode(errors="ignore")


def records_of(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each record with the number of its last line; empty lines are skipped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise FileError(f"line {reader.line_num}: {error}; check the quotes") from None


def _without_surroundings(data: bytes, sample: str, separator: str) -> tuple[bytes, list[Note]]:
    """Leave out the lines that are no part of the table, and note them."""
    found = list(islice(_records_until_error(sample, separator), SAMPLED_LINES))
    records = [record for _, record in found]
    ends = [0, *(line for line, _ in found)]
    n_above, n_below = find_head(records)
    lines = (
        {*range(1, ends[n_above] + 1), *range(ends[n_above + 1] + 1, ends[n_above + 1 + n_below] + 1)}
        if found
        else set()
    )
    table = records[n_above + n_below :]
    tail = _lines_below(data, separator, usual_width(table)) if len(table) > 2 else {}
    notes = notes_on_lines(
        records[:n_above], records[n_above + 1 : n_above + 1 + n_below], list(reversed(tail.values()))
    )
    data = without_lines(data, lines | tail.keys())
    return (data.lstrip(b"\r\n") if n_above else data), notes


def _lines_below(data: bytes, separator: str, width: int) -> dict[int, Record]:
    """The lines at the end that are no part of the table with their cells, from the last one upwards."""
    text = data.rstrip(b"\r\n")
    number = text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n") + 1  # as `without_lines` counts them
    found: dict[int, Record] = {}
    while len(found) < MAX_LINES:
        begin = text.rfind(b"\n") + 1
        line = text[begin:].decode().strip("\r")
        if begin == 0 or '"' in line or "\r" in line:  # quotes may hold several lines
            break
        cells = line.split(separator)
        if line.strip() and not is_below_table(cells, width):
            break
        if line.strip():
            found[number] = cells
        text, number = text[: begin - 1], number - 1
    return found


def _records_until_error(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first records; those of a file with wrong quotes end early."""
    try:
        yield from records_of(text, separator)
    except FileError:
        return


def _find_separator(sample: str) -> str:
    """Return the separator that divides the lines of the table into the largest number of cells, the same in all lines.

    Lines above the table, and the first of a file whose names of rows have no name, may have other numbers.
    """
    best, most = ",", (False, 1)
    for separator in SEPARATORS:
        try:
            records = [row for _, row in islice(records_of(sample, separator), SAMPLED_LINES)]
        except FileError:  # the quotes do not fit this separator
            continue
        if not records:
            continue
        width = usual_width(records)
        n_above = find_head(records).n_above
        n_names, rows = len(records[n_above]), records[n_above + 1 :]
        while len(rows) > 2 and is_below_table(rows[-1], width):
            rows.pop()
        exact, short = n_names == width, 1 < n_names == width - 1
        if (
            width > 1
            and (exact or short)
            and all(len(row) == width for row in rows)
            and (exact, width) > most
        ):
            best, most = separator, (exact, width)
    return " " if most[1] == 1 and _is_divided_by_spaces(sample) else best


def _is_divided_by_spaces(sample: str) -> bool:
    """Whether spaces divide all lines into the same number of cells, and some columns hold numbers (tables of R)."""
    records = [row for _, row in islice(_records_until_error(sample, " "), SAMPLED_LINES)]
    if len(records) < 3:
        return False
    width = usual_width(records)
    rows = records[1:]
    fits = len(records[0]) in (width, width - 1) and all(len(row) == width for row in rows)
    return (
        fits
        and width > 2
        and any(all(map(_is_number_or_missing, column)) for column in zip(*rows, strict=True))
    )


def _find_names(path: Path, sample: str, separator: str, header: bool | None) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the first line holds them."""
    try:
        first = next(records_of(sample, separator), None)
    except FileError as error:
        raise FileError(f"{path}, {error}") from None
    if first is None:
        raise FileError(f"{path}: the file is empty")
    cells = first[1]
    has_header = header
    if has_header is None:
        has_header = _counts_columns(cells) or not all(_is_number_or_missing(cell) for cell in cells)
    if has_header and _is_one_short(cells, islice(_records_until_error(sample, separator), 1, SAMPLED_LINES)):
        cells = [ROW_NAMES if ROW_NAMES not in cells else "", *cells]
    names = [
        (cell.strip() if has_header else "") or f"column_{position + 1}"
        for position, cell in enumerate(cells)
    ]
    twice = repeated_names(names)
    if twice:
        raise FileError(f"{path}: several columns are called {', '.join(twice[:5])}: rename them")
    return names, has_header


def _is_one_short(names: Sequence[str], following: Iterable[tuple[int, Sequence[str]]]) -> bool:
    """Whether the rows have one cell more than names, as R writes tables: the first cell is the name of the row."""
    rows = [row for _, row in following]
    one_more = bool(rows) and 1 < len(names) == len(rows[0]) - 1 and len(set(map(len, rows))) == 1
    return one_more and any(row[-1].strip() for row in rows) and all(row[0].strip() for row in rows)


def repeated_names(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once.

    Examples
    --------
    >>> repeated_names(["a", "b", "a"])
    ['a']
    """
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _counts_columns(cells: Sequence[str]) -> bool:
    """Whether the cells are 0, 1, 2, ..., as pandas names columns without names; the first may be that of the index."""
    numbers = [cell.strip() for cell in (cells[1:] if cells[0].strip() == "" else cells)]
    return len(numbers) > 2 and numbers == [str(position) for position in range(len(numbers))]


def _is_number_or_missing(cell: str) -> bool:
    return is_number(cell) or (cell.strip().lower() in MISSING_WORDS and cell.strip() != "")


class Cells(Protocol):
    """The cells of one column as text."""

    def as_floats(self, missing: Collection[str]) -> tuple[NDArray[np.float64], list[str]] | None:
        """Return numbers, with NaN for cells that are `missing`, and these cells; None if another cell is no number."""

    def distinct(self) -> tuple[list[str], NDArray[np.intp]]:
        """Return the distinct texts, and the position of each cell's text among them."""

    def begin_with_zero(self) -> list[str]:
        """Return the distinct texts of at least two characters that begin with a zero."""


class ListCells:
    """Cells in a list."""

    def __init__(self, cells: list[str]) -> None:
        self._cells = cells

    def as_floats(self, missing: Collection[str]) -> tuple[NDArray[np.float64], list[str]] | None:
        try:
            numbers = np.array([np.nan if cell in missing else float(cell) for cell in self._cells])
        except ValueError:
            return None
        return numbers, sorted({cell for cell in self._cells if cell in missing})

    def distinct(self) -> tuple[list[str], NDArray[np.intp]]:
        position: dict[str, int] = {}
        codes = [position.setdefault(cell, len(position)) for cell in self._cells]
        return list(position), np.array(codes, dtype=np.intp)

    def begin_with_zero(self) -> list[str]:
        return list({cell for cell in self._cells if cell.startswith("0") and len(cell) > 1})


class ArrowCells:
    """Cells in an Arrow column of text."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def as_floats(self, missing: Collection[str]) -> tuple[NDArray[np.float64], list[str]] | None:
        import pyarrow
        from pyarrow import compute

        try:
            numbers = self._cast(self._column)
            if not np.isinf(numbers).any():  # infinity may be declared missing
                return numbers, []
        except pyarrow.ArrowInvalid:
            pass
        holes = compute.is_in(self._column, pyarrow.array(sorted(missing), pyarrow.string()))
        try:
            numbers = self._cast(compute.if_else(holes, None, self._column))
        except pyarrow.ArrowInvalid:
            return None
        return numbers, sorted(self._column.filter(holes).unique().to_pylist())

    @staticmethod
    def _cast(column: Any) -> NDArray[np.float64]:
        # from the buffers: Arrow's own conversion to numpy imports pandas
        parts = [np.empty(0)]
        for chunk in column.cast("float64").chunks:
            valid, values = chunk.buffers()
            numbers = (
                np.frombuffer(values, np.float64, len(chunk), 8 * chunk.offset) if len(chunk) else parts[0]
            )
            if chunk.null_count:
                bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
                seen = bits[chunk.offset : chunk.offset + len(chunk)]
                numbers = np.where(seen == 1, numbers, np.nan)
            parts.append(numbers)
        return np.concatenate(parts)

    def distinct(self) -> tuple[list[str], NDArray[np.intp]]:
        column = self._column.combine_chunks().dictionary_encode()
        indices = column.indices  # of type int32, without missing ones; from the buffer, as above
        if not len(indices):
            return [], np.zeros(0, np.intp)
        codes = np.frombuffer(indices.buffers()[1], np.int32, len(indices), 4 * indices.offset).astype(
            np.intp
        )
        return column.dictionary.to_pylist(), codes

    def begin_with_zero(self) -> list[str]:
        from pyarrow import compute

        found = self._column.filter(compute.starts_with(self._column, "0"))
        return [text for text in found.unique().to_pylist() if len(text) > 1]


def _divide(path: Path, data: bytes, layout: TextLayout) -> dict[str, Cells]:
    """Divide the file into columns of text."""
    separator, names, has_header = layout
    divided = _divide_by_arrow(data, separator, names, has_header)
    if divided is not None:
        return divided
    rows: list[list[str]] = []
    try:
        for number, row in records_of(data.decode(), separator):
            if len(row) != len(names) and not (has_header and not rows):  # R's first line is one cell short
                raise FileError(
                    f"line {number}: {len(row)} cells, but the first line has {len(names)}; check that the separator "
                    f"is {separator!r}, put text that contains separators in quotes, and leave out lines above the "
                    "table (--skip 1-3)"
                )
            rows.append(row)
    except FileError as error:
        raise FileError(f"{path}, {error}") from None
    rows = rows[1:] if has_header else rows
    return {name: ListCells([row[position] for row in rows]) for position, name in enumerate(names)}


def _divide_by_arrow(
    data: bytes, separator: str, names: list[str], has_header: bool
) -> dict[str, Cells] | None:
    """Return None without pyarrow, and for files that it refuses."""
    try:
        import pyarrow
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    places = [f"{position}" for position in range(len(names))]
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(data.lstrip(b"\r\n")),  # Arrow counts empty lines above the names
            read_options=arrow_csv.ReadOptions(column_names=places, skip_rows_after_names=int(has_header)),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in data),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(places, pyarrow.string()), strings_can_be_null=False
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    return {name: ArrowCells(table.column(position)) for position, name in enumerate(names)}


# ---- columns ---------------------------------------------------------------------------------------------------


def convert(
    columns: dict[str, Cells], separator: str, missing: Collection[str], *, exact: bool = False
) -> TextTable:
    """Turn columns of text into numbers where all cells are numbers or missing.

    Parameters
    ----------
    columns : mapping from name to Cells
        The columns.
    separator : str
        That of the file; with semicolons, numbers may have a decimal comma.
    missing : collection of str
        Texts that mean missing, besides the usual ones.
    exact : bool
        Whether all columns stay text.
    """
    findings = Findings()
    words_read: dict[str, list[str]] = {}
    given = {code.strip() for code in missing}
    usual = _spellings(MISSING_BESIDE_NUMBERS) | given
    converted: dict[str, NDArray[Any]] = {}
    texts: dict[str, tuple[list[str], NDArray[np.intp]]] = {}
    for name, cells in columns.items():
        found = None if exact else cells.as_floats(usual)
        if found is None or _has_leading_zeros(found[0], cells):
            texts[name] = cells.distinct()
        else:
            converted[name] = found[0]
            words_read[name] = found[1]
    mark = (
        None if exact else find_decimal_mark(_numbers_of(distinct, given) for distinct, _ in texts.values())
    )
    decimal = "," if separator == ";" else mark
    for name, (distinct, codes) in texts.items():
        values, words, has_comma = _read_distinct(distinct, given, None if exact else decimal, exact=exact)
        words_read[name] = words
        if has_comma:
            findings.add("decimal_comma", name)
        converted[name] = values[codes]
    if mark is not None:
        for name in [name for name in converted if name not in texts]:
            _read_points_as_thousands(name, columns[name], converted, given, findings)
    named = {name: shown for name, words in words_read.items() if (shown := [w for w in words if w.strip()])}
    for name, words in named.items():
        findings.add("missing_words", name, list_names(words, limit=3))
    return TextTable({name: converted[name] for name in columns}, findings.notes(), named)


def _spellings(words: Collection[str]) -> set[str]:
    return {
        spelled for word in words for spelled in (word, word.upper(), word.capitalize(), word.title())
    } | {"NaN"}


def _has_leading_zeros(numbers: NDArray[np.float64], cells: Cells) -> bool:
    for part in (numbers[:1000], numbers):  # measurements are usually recognized from a few values
        if not np.all((part == np.floor(part)) | np.isnan(part)):
            return False
    return has_leading_zeros(cells.begin_with_zero())


def _numbers_of(distinct: Sequence[str], given: Collection[str]) -> list[str]:
    short = [text.strip() for text in distinct]
    return [text for text in short if text.lower() not in MISSING_BESIDE_NUMBERS and text not in given]


def _read_points_as_thousands(
    name: str, cells: Cells, converted: dict[str, NDArray[Any]], given: Collection[str], findings: Findings
) -> None:
    """Read 1.234 as 1234 in a file with decimal commas, if all points of a column can separate thousands."""
    seen = converted[name][~np.isnan(converted[name])]
    thousandths = seen * 1000
    if np.any(seen != np.floor(seen)) and np.allclose(thousandths, np.rint(thousandths), rtol=1e-12, atol=0):
        distinct, codes = cells.distinct()
        how = find_format(_numbers_of(distinct, given), ",")
        if how is not None and how.thousands == ".":
            converted[name] = how.read([text.strip() for text in distinct])[codes]
            findings.add("text_numbers", name, how.describe())


def _read_distinct(
    distinct: Sequence[str], given: Collection[str], decimal: str | None, *, exact: bool = False
) -> tuple[NDArray[Any], list[str], bool]:
    """Return the value of each distinct text as numbers or text, the missing words, and whether commas are decimal."""
    short = [text.strip() for text in distinct]
    beside = [text.lower() in MISSING_BESIDE_NUMBERS or text in given for text in short]
    others = _numbers_of(distinct, given)
    if not exact and others and all(map(is_number, others)) and not has_leading_zeros(others):
        numbers = [np.nan if hole else float(text) for text, hole in zip(short, beside, strict=True)]
        return np.array(numbers), _named(short, beside), False
    how = find_format(others, ",") if decimal == "," and any("," in text for text in others) else None
    if how is not None and how.holds == "number" and (how.decimal, how.thousands, how.unit) == (",", "", ""):
        return np.where(beside, np.nan, how.read(short)), _named(short, beside), True
    holes = [text.lower() in MISSING_WORDS or text in given for text in short]
    values = np.empty(len(short), dtype=object)
    values[:] = [None if hole else text for text, hole in zip(short, holes, strict=True)]
    return values, _named(short, holes), False


def _named(texts: Sequence[str], holes: Sequence[bool]) -> list[str]:
    return sorted({text for text, hole in zip(texts, holes, strict=True) if hole})
