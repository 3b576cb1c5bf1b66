"""Lines of a file that are no part of its table: a title above the names, units below them, totals at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from partita.table.cells import is_number
from partita.table.formats import MISSING_BESIDE_NUMBERS, find_units, is_measure
from partita.table.notes import Note, list_names

MAX_LINES = 12  # above the names, and below the table
MAX_BELOW_NAMES = 3  # units, a second line of names, a rule
MIN_VALUES = 3  # values of a column from which it is known to hold numbers
MOST = 0.7  # share of the values of a column that are numbers
KEEP_ALL = 0  # as a line that is left out: nothing is looked for
_RULE = re.compile(r":?-{2,}:?|=+")
_REMARK = re.compile(
    r"[*(\[©†]|(?:sources?|notes?|quellen?|hinweise?|stand|generated|printed|exported|copyright)\b", re.I
)
_TOTALS = frozenset(
    ("total", "totals", "grand total", "sum", "sums", "subtotal", "overall", "average", "mean", "median", "summe",
     "gesamt", "gesamtsumme", "insgesamt", "mittelwert", "durchschnitt", "somme", "moyenne", "suma", "media", "totale",
     "totaal", "итого")
)  # fmt: skip

Record = Sequence[str]


class Head(NamedTuple):
    """Where the names of the columns are among the first records: so many are above them, so many below are no rows."""

    n_above: int
    n_below: int


def find_head(records: Sequence[Record]) -> Head:
    """Find the record with the names of the columns, and the records below it that hold no values.

    The first record has the names unless it has less than half of the cells that most records have, and a later one has
    all of them, none of which is a number. A record below the names is left out if it is a rule, or holds words in
    the columns of numbers.

    Parameters
    ----------
    records : sequence of sequences of str
        The first records of the file, without empty lines.

    Examples
    --------
    >>> find_head([["Report of May"], ["a", "b"], ["1", "2"], ["3", "4"]])
    Head(n_above=1, n_below=0)
    >>> find_head([["mass", "size"], ["kg", "cm"], ["1", "2"], ["3", "4"], ["5", "6"]])
    Head(n_above=0, n_below=1)
    """
    if len(records) < 2:
        return Head(0, 0)
    width = usual_width(records)
    above = _first_with_names(records, width)
    below = 0
    while below < MAX_BELOW_NAMES and above + below + 2 < len(records):
        record, rest = records[above + below + 1], records[above + below + 2 :]
        if not (_is_rule(record) or _is_line_of_units(record, rest)):
            break
        below += 1
    return Head(above, below)


def usual_width(records: Sequence[Record]) -> int:
    """The number of cells that most records have; of several such numbers the largest."""
    times = Counter(len(record) for record in records)
    return max(times, key=lambda width: (times[width], width))


def _first_with_names(records: Sequence[Record], width: int) -> int:
    if width < 2 or _could_be_names(records[0], width):
        return 0
    for position in range(1, min(MAX_LINES, len(records) - 2) + 1):
        if not _is_sparse(records[position - 1], width):
            return 0
        record, following = records[position], records[position + 1 : position + 4]
        if _are_names(record, width) and all(len(other) == width for other in following):
            return position
    return 0


def _could_be_names(record: Record, width: int) -> bool:
    """Whether the first line of a file is taken as it is; R leaves out the name of the names of the rows."""
    fits = len(record) == width or 1 < len(record) == width - 1
    return fits and 2 * len(_filled(record)) >= width and record[0][:1] != "#"


def _are_names(record: Record, width: int) -> bool:
    filled = _filled(record)
    distinct = len(set(filled)) == len(filled)
    return len(record) == width and 2 * len(filled) >= width and distinct and not any(map(is_number, filled))


def _is_sparse(record: Record, width: int) -> bool:
    return 2 * len(_filled(record)) <= width or record[0].startswith("#")


def _filled(record: Record) -> list[str]:
    return [cell.strip() for cell in record if cell.strip()]


def _is_rule(record: Record) -> bool:
    filled = _filled(record)
    return len(filled) > 1 and all(map(_RULE.fullmatch, filled))


def _is_line_of_units(record: Record, rest: Sequence[Record]) -> bool:
    """Whether a record has words where the records below have numbers, in two columns or more."""
    words: list[str] = []
    n_numeric = 0
    for position, cell in enumerate(record):
        below = [other[position].strip() for other in rest if position < len(other)]
        values = [text for text in below if text.lower() not in MISSING_BESIDE_NUMBERS]
        if len(values) < MIN_VALUES or sum(map(_holds_number, values)) < MOST * len(values):
            continue
        n_numeric += 1
        text = cell.strip()
        if _holds_number(text):
            return False
        if text.lower() not in MISSING_BESIDE_NUMBERS and text not in values:
            words.append(text)
    differ = len(set(words)) > 1 or all(is_measure(word) for word in words)
    return len(words) > 1 and 2 * len(words) >= n_numeric and differ


def _holds_number(text: str) -> bool:
    return is_number(text) or bool(find_units([text]))


def is_below_table(record: Record, width: int) -> bool:
    """Whether a record at the end of a file is a total or a remark.

    Examples
    --------
    >>> (
    ...     is_below_table(["Total", "", "12"], 3),
    ...     is_below_table(["Source: the shop"], 3),
    ...     is_below_table(["a", "", "1"], 3),
    ... )
    (True, True, False)
    """
    filled = _filled(record)
    if not filled:
        return True
    if len(record) != width:
        return (len(filled) == 1 or 2 * len(filled) < width) and not any(map(is_number, filled))
    if len(filled) == 1 and width > 2 and _REMARK.match(filled[0]):
        return True
    if filled[0].rstrip(":").casefold() not in _TOTALS:
        return False
    return len(filled) < width or all(map(_holds_number, filled[1:]))


def notes_on_lines(
    above: Sequence[Record], below_names: Sequence[Record], below_table: Sequence[Record]
) -> list[Note]:
    """Notes on the records that are left out, with their words."""
    how = "(--skip 0 keeps all lines)"
    notes = []
    if above:
        shown = list_names([words for record in above if (words := " ".join(_filled(record)))], limit=3)
        notes.append(
            Note("lines_above", f"lines above the names of the columns, which are left out: {shown} {how}")
        )
    for record in below_names:
        if _is_rule(record):
            continue
        notes.append(
            Note(
                "lines_below_names",
                "a line below the names of the columns holds units or words instead of values, and is left out: "
                f"{list_names(_filled(record), limit=4)} {how}",
                level="warning",
            )
        )
    if below_table:
        shown = list_names([" ".join(_filled(record)) for record in below_table], limit=3)
        notes.append(
            Note(
                "lines_below_table",
                f"lines below the table, which look like totals or remarks and are left out: {shown} {how}",
                level="warning",
            )
        )
    return notes
