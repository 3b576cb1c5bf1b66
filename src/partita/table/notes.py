"""Notes on what was unusual about a table, collected while it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# code -> (level, message; {columns} lists names with counts)
_TEXTS = {
    "missing": ("info", "missing cells, left out of the likelihood: {columns}"),
    "constant": ("info", "constant columns carry no information: {columns}"),
    "negative_levels": ("info", "negative integers read as levels of a categorical column: {columns}"),
    "unweighted_levels": (
        "info",
        "levels that occur only in rows of zero weight are read as missing: {columns}",
    ),
    "lone_minus_one": (
        "warning",
        "-1 is the only negative value and is read as a level: {columns}; replace it by NaN or None if it means "
        "missing, or convert the column to text if it is a level",
    ),
    "missing_code": ("warning", "cells that hold the missing code are read as missing: {columns}"),
    "empty_columns": ("warning", "columns without any observed value are ignored: {columns}"),
    "identifier": (
        "warning",
        "every observed value is distinct, which looks like an identifier: {columns}; leave such a column "
        "out, or declare it 'ignore', if it only names the rows",
    ),
    "text_numbers": (
        "warning",
        "text that is nearly all numbers is read as categories: {columns}; convert it to numbers (with NaN for "
        "other values), or declare it 'categorical' if these are names",
    ),
    "text_dates": (
        "warning",
        "text that looks like dates is read as categories: {columns}; convert it to a number (days since a reference "
        "date) or to a category (month, weekday), or declare it 'ignore'",
    ),
    "rare_levels": (
        "warning",
        "categories that rarely occur twice carry little information about groups: {columns} distinct values; declare "
        "such a column 'ignore', or merge its values into fewer categories",
    ),
    "unknown_levels": ("warning", "values not seen at fit are read as missing: {columns}"),
}


@dataclass(frozen=True)
class Note:
    """A note on one unusual property of a table.

    Attributes
    ----------
    code : str
        A short name for programs: "kinds", "missing", "constant", "empty_columns", "empty_rows",
        "identifier", "missing_code", "lone_minus_one", "negative_levels", "text_numbers", "text_dates",
        "rare_levels", "unknown_levels" or "unweighted_levels".
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


def list_names(names: Sequence[str], counts: Sequence[int | None] | None = None, limit: int = 5) -> str:
    """List a few names, and the number of the others.

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
    ["missing cells, left out of the likelihood: 'age' (3)"]
    """

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, int | None]]] = {}
        self._notes: list[Note] = []

    def add(self, code: str, column: str, count: int | None = None) -> None:
        """Add the finding `code` for a column, in `count` cells."""
        self._found.setdefault(code, []).append((column, count))

    def add_note(self, note: Note) -> None:
        """Add a note that is not about single columns."""
        self._notes.append(note)

    def notes(self) -> list[Note]:
        """Return all notes."""
        written = list(self._notes)
        for code, found in self._found.items():
            level, text = _TEXTS[code]
            names = tuple(name for name, _ in found)
            listed = list_names(names, [count for _, count in found])
            written.append(Note(code, text.format(columns=listed), names, level))
        return written
