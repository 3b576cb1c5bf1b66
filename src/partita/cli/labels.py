"""Labels of clusterings as they stand in a file: text, until all labels of a column are proved to be integers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from partita.table import FileError
from partita.table.cells import is_number

INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # the one way to write an integer: 007 and 7 are different labels
WHOLE = re.compile(r"(0|-?[1-9][0-9]*)\.0*")  # as a column of integers with missing cells is often written
INT64 = np.iinfo(np.int64)


def as_labels(values: np.ndarray, name: str, path: Path) -> np.ndarray:
    """Labels of one clustering: integers if all are, so that -1 keeps its meaning; otherwise text; missing ones None.

    Examples
    --------
    >>> as_labels(np.array(["7", None, "-1"], dtype=object), "first", Path("labels.csv"))
    array([7, None, -1], dtype=object)
    >>> as_labels(np.array(["7", "07"], dtype=object), "first", Path("labels.csv"))
    array(['7', '07'], dtype=object)
    """
    if values.dtype.kind == "f":
        return _of_floats(values, name, path)
    if values.dtype.kind != "O":
        return values
    labels = set(values.tolist()) - {None}
    if not all(isinstance(label, str) for label in labels):
        return values
    integers = _integers(labels)
    if integers is None:
        _refuse_numbers(values, labels, name, path)
        return values
    found = [None if label is None else integers[label] for label in values.tolist()]
    return np.array(found, dtype=object if None in found or not found else np.int64)


def _integers(labels: set[str]) -> dict[str, int] | None:
    """The labels as integers; None if one is no integer, or is one in another way of writing."""
    for pattern in (INTEGER, WHOLE):
        matches = {label: pattern.fullmatch(label) for label in labels}
        if all(matches.values()):
            found = {label: int(label.partition(".")[0]) for label in labels}
            inside = all(INT64.min <= number <= INT64.max for number in found.values())
            return found if inside and len(set(found.values())) == len(labels) else None
    return None


def _refuse_numbers(values: np.ndarray, labels: set[str], name: str, path: Path) -> None:
    """Refuse a column of numbers that are no labels: fractions and infinity."""
    if not labels or not all(map(is_number, labels)):
        return
    numbers = {label: float(label) for label in labels}
    wrong = {
        label for label, number in numbers.items() if not np.isfinite(number) or number != np.rint(number)
    }
    if wrong:
        row = next(row for row, label in enumerate(values.tolist()) if label in wrong)
        _refuse(values[row], row, name, path)


def _of_floats(values: np.ndarray, name: str, path: Path) -> np.ndarray:
    seen = ~np.isnan(values)
    wrong = seen & ~(np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) <= 2.0**53))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        _refuse(values[row], row, name, path)
    labels = np.full(len(values), None, dtype=object)
    labels[seen] = values[seen].astype(np.int64).tolist()
    return labels if not seen.all() else values.astype(np.int64)


def _refuse(value: object, row: int, name: str, path: Path) -> None:
    raise FileError(
        f"{path}, column {name!r}, row {row + 1}: labels must be names or whole numbers, and there is {value}: leave "
        "columns that are not clusterings out with --ignore, or use `partita cluster` for a table of measurements"
    )
