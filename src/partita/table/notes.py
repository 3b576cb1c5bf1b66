"""Notes on what was unusual about a table, collected while it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# code -> (level, message; {columns} lists names with counts)
_TEXTS = {
    "missing": ("info", "missing cells, which are left out of the likelihood: {columns}"),
    "in_order": (
        "info",
        "dates that never fall from row to row, as in a log: {columns}; groups may be stretches of time: declare them "
        "'ignore' if they should not be",
    ),
    "choices": (
        "warning",
        "cells that seem to list several choices, where each combination is a category: {columns}; give each choice a "
        "column of its own with yes and no",
    ),
    "constant": ("info", "constant columns carry no information: {columns}"),
    "negative_levels": (
        "info",
        "negative integers that are read as levels of a categorical column: {columns}",
    ),
    "unweighted_levels": (
        "info",
        "levels that occur only in rows of zero weight are read as missing: {columns}",
    ),
    "lone_minus_one": (
        "warning",
        "-1 is the only negative value, and it is read as a level: {columns}; replace it by NaN or None if it means "
        "missing, or convert the column to text if it is a level",
    ),
    "missing_code": ("warning", "cells that hold the missing code are read as missing: {columns}"),
    "empty_columns": ("warning", "columns without any observed value are ignored: {columns}"),
    "missing_words": ("info", "words that are read as missing: {columns}"),
    "text_numbers": ("info", "text that is read as numbers: {columns}"),
    "decimal_comma": ("info", "numbers with a decimal comma: {columns}"),
    "dates": ("info", "dates and times, which are modeled as numbers of days: {columns}"),
    "uniform": (
        "info",
        "all columns seem to measure the same thing and get the same kind ({columns}); declare kinds to change this",
    ),
    "ordered": (
        "info",
        "columns whose levels have an order, which are read as ordinal: {columns}; declare a column 'categorical' if "
        "its levels have no order (on the command line --kind column=categorical)",
    ),
    "no_answers": (
        "info",
        "columns whose levels would have an order without answers such as: {columns}; if these mean missing, give "
        "missing_codes={{column: word}} (on the command line --na word)",
    ),
    "ticks": (
        "info",
        "columns with one value and empty cells, which carry no information: {columns}; if an empty cell means no, "
        "write no there",
    ),
    "one_scale": (
        "info",
        "columns of integers on the same scale, which are read as categorical because it is not clear whether they are "
        "answers from low to high or codes of names: {columns}; if they are answers, declare kinds='ordinal' or "
        "kinds={{'q*': 'ordinal'}} (on the command line --kind 'q*=ordinal')",
    ),
    "ambiguous_text": (
        "warning",
        "text that could also be read in another way: {columns}; if this is wrong, write the values in an unambiguous "
        "format such as 2024-01-31, or convert the column first",
    ),
    "strays": (
        "warning",
        "words in a column of numbers or dates, which are read as missing: {columns}; declare the column 'categorical' "
        "if its numbers are codes",
    ),
    "mixed_units": (
        "warning",
        "columns of numbers in several units, which cannot be compared: {columns}; convert them to one unit",
    ),
    "pairs": (
        "warning",
        "cells that hold two numbers, which are not modeled as numbers: {columns}; divide them into two columns",
    ),
    "spellings": (
        "info",
        "words that differ only in upper and lower case or in spaces, which are read as different levels: {columns}; "
        "write them alike if they mean the same",
    ),
    "suspected_code": (
        "warning",
        "values far outside the range of the others, which may be missing codes: {columns}; if they are, give "
        "missing_codes={{column: code}} (on the command line --na column=code, or --na code for all columns)",
    ),
    "identifier": (
        "warning",
        "every observed value is distinct, which looks like an identifier: {columns}; it is set aside (not modeled): "
        "declare a kind, for example 'categorical' or 'real', to model it",
    ),
    "identifier_modeled": (
        "warning",
        "every observed value is distinct, which looks like an identifier: {columns}; leave such a column "
        "out, or declare it 'ignore', if it only names the rows",
    ),
    "postal_code": (
        "warning",
        "numbers that look like identifiers, postal or article codes: {columns} distinct values; set aside (not "
        "modeled): declare a kind, for example 'categorical', to model it",
    ),
    "free_text": (
        "warning",
        "text that looks like names or remarks: {columns} distinct values; set aside (not modeled): to model it, merge "
        "its values into fewer categories, or declare it 'categorical'",
    ),
    "unknown_levels": ("warning", "values not seen at fit are read as missing: {columns}"),
    "unreadable": (
        "warning",
        "texts that do not have the format of the fitted column are read as missing: {columns}; write them in this "
        "format",
    ),
}


#: Notes without a warning that are about an unusual way of reading; the command line prints them.
READING_CODES = (
    "missing_words",
    "text_numbers",
    "dates",
    "in_order",
    "constant",
    "repeats",
    "uniform",
    "ordered",
    "one_scale",
    "no_answers",
    "ticks",
    "spellings",
    "encoding",
    "decimal_comma",
)

#: Notes on new rows that tell how they differ from the training table.
PREDICT_CODES = ("unknown_levels", "unreadable", "reordered")


@dataclass(frozen=True)
class Note:
    """A note on one unusual property of a table.

    Attributes
    ----------
    code : str
        A short name for programs. `READING_CODES` are about cells and columns that were read in an unusual way.
    message : str
        One sentence for users.
    columns : tuple of str
        The columns concerned.
    level : {"info", "warning"}
        Whether it deserves a warning.

    Examples
    --------
    >>> Note("constant", "constant columns carry no information: 'a'", ("a",)).level
    'info'
    """

    code: str
    message: str
    columns: tuple[str, ...] = ()
    level: str = "info"


def list_names(names: Sequence[str], counts: Sequence[int | str | None] | None = None, limit: int = 5) -> str:
    """List a few names with counts or words about them, and the number of the other names.

    Examples
    --------
    >>> list_names(["a", "b", "c"], [1, 2, None], limit=2)
    "'a' (1), 'b' (2) and 1 more"
    """
    parts = []
    for position, name in enumerate(names[:limit]):
        shown = repr(name if len(name) <= 40 else name[:37] + "...")
        count = counts[position] if counts is not None else None
        parts.append(shown if count is None else f"{shown} ({count})")
    more = len(names) - limit
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


class Findings:
    """Collects findings per column, and makes one note per type of finding.

    Examples
    --------
    >>> findings = Findings()
    >>> findings.add("missing", "age", 3)
    >>> [note.message for note in findings.notes()]
    ["missing cells, which are left out of the likelihood: 'age' (3)"]
    """

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, int | str | None]]] = {}
        self._notes: list[Note] = []

    def add(self, code: str, column: str, count: int | str | None = None) -> None:
        """Add the finding `code` for a column: in `count` cells, or with words about it."""
        self._found.setdefault(code, []).append((column, count))

    def add_note(self, note: Note) -> None:
        """Add a note that is not about single columns."""
        self._notes.append(note)

    def about(self, column: str) -> dict[str, int | str | None]:
        """Return the findings about one column."""
        return {code: count for code, found in self._found.items() for name, count in found if name == column}

    def notes(self) -> list[Note]:
        """Return all notes."""
        written = list(self._notes)
        for code, found in self._found.items():
            level, text = _TEXTS[code]
            names = tuple(name for name, _ in found)
            listed = list_names(names, [count for _, count in found])
            written.append(Note(code, text.format(columns=listed), names, level))
        return written
