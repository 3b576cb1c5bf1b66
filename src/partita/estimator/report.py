"""The report of a fit: what was unusual about the data and the run, in words and for programs."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from partita.table import Note

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the user's line: the first one outside this package, however deep the call."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(PACKAGE + os.sep):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class DataWarning(UserWarning):
    """Something about the data that the user should know; the details are in ``fit_report_``."""


class FitReport:
    """A list of notes that prints as text.

    Examples
    --------
    >>> report = FitReport([Note("constant", "constant columns carry no information: 'a'", ("a",))])
    >>> print(report)
    - constant columns carry no information: 'a'
    >>> "constant" in report
    True
    """

    def __init__(self, notes: Iterable[Note] = ()):
        self.notes = list(notes)

    def add(self, code: str, message: str, columns: tuple[str, ...] = (), level: str = "info") -> None:
        """Add a note."""
        self.notes.append(Note(code, message, columns, level))

    def __contains__(self, code: str) -> bool:
        return any(note.code == code for note in self.notes)

    def __getitem__(self, code: str) -> Note:
        return next(note for note in self.notes if note.code == code)

    def __iter__(self) -> Iterator[Note]:
        return iter(self.notes)

    def __len__(self) -> int:
        return len(self.notes)

    def __str__(self) -> str:
        return "\n".join(f"- {note.message}" for note in self.notes) or "nothing unusual"

    def __repr__(self) -> str:
        return f"FitReport({[note.code for note in self.notes]})"

    def warn(self) -> None:
        """One warning for all notes that deserve one."""
        messages = [note.message for note in self.notes if note.level == "warning"]
        if messages:
            warn_user("; ".join(messages), DataWarning)

    def to_list(self) -> list[dict[str, Any]]:
        """For JSON."""
        return [
            {"code": n.code, "message": n.message, "columns": list(n.columns), "level": n.level} for n in self
        ]

    @classmethod
    def from_list(cls, saved: list[dict[str, Any]]) -> FitReport:
        """The inverse of ``to_list``."""
        return cls(Note(n["code"], n["message"], tuple(n["columns"]), n["level"]) for n in saved)
