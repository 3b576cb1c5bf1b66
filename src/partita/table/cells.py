"""Raw columns: the values of one column as they were given, their type, and which cells are missing."""

from __future__ import annotations

import datetime
import numbers
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from partita.table.formats import MISSING_BESIDE_NUMBERS, NATIVE_DATE, TextFormat, days_of
from partita.table.scaling import center_and_scale
from partita.table.statistics import value_statistics
from partita.table.suspicion import CodeEvidence, code_evidence

ANSWERS = range(-5, 11)  # whole numbers that may be answers on a scale

# The class names of missing scalars in pandas. They are recognized by name because pandas is never imported.
_MISSING_TYPE_NAMES = frozenset({"NoneType", "NAType", "NaTType", "MaskedConstant"})


def place(name: str, row: int) -> str:
    """Describe the place of a cell, for error messages.

    Examples
    --------
    >>> place("age", 3)
    "column 'age', row 3 (rows count from 0)"
    """
    return f"column {name!r}, row {row} (rows count from 0)"


def is_number(text: str) -> bool:
    """Whether `float` can read a text.

    Examples
    --------
    >>> is_number("1e3"), is_number("1,5")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def common_number_type(families: set[str]) -> str | None:
    """Return the type of numbers that columns of these families have in common; None if there is none.

    Examples
    --------
    >>> common_number_type({"int", "float"}), common_number_type({"bool", "int"})
    ('float', None)
    """
    if families <= {"int", "float"}:
        return "float" if "float" in families or not families else "int"
    return "bool" if families == {"bool"} else None


def first_row(hits: np.ndarray) -> int:
    """Return the position of the first True.

    Examples
    --------
    >>> first_row(np.array([False, True, True]))
    1
    """
    return int(np.argmax(hits))


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column before its kind is applied.

    Attributes
    ----------
    name : str
        The name of the column, for error messages.
    values : ndarray
        One value per row, owned and contiguous: bool, an integer dtype, float64, or object holding `str`.
        Missing cells may hold any value (NaN in float columns).
    missing : ndarray of bool or None
        True for missing cells; None if no cell is missing.
    family : {"bool", "int", "float", "str"}
        The type of the values; integers are "int" in any storage.
    labeled : bool
        Whether the container declares the column as categorical (pandas Categorical, polars Enum, ...). Negative or
        fractional values are then names of categories.
    declared : tuple
        The categories that the container declares, including unused ones, in its order.
    ordered : bool
        Whether the container says that these categories have an order.
    format : TextFormat or None
        How the cells were written, if they are numbers or dates that were read from text, or dates.
    words : tuple of str
        The texts that were read as missing.
    strays : tuple of str
        Texts among numbers that could not be read.

    Examples
    --------
    >>> raw = parse_values(np.array([1.0, np.nan, 3.0]), "height")
    >>> raw.family, raw.observed().tolist(), raw.n_missing
    ('float', [1.0, 3.0], 1)
    """

    name: str
    values: np.ndarray
    missing: np.ndarray | None
    family: str
    labeled: bool = False
    declared: tuple[Any, ...] = ()
    ordered: bool = False
    format: TextFormat | None = None
    words: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()

    @property
    def n_missing(self) -> int:
        """The number of missing cells."""
        return 0 if self.missing is None else int(np.count_nonzero(self.missing))

    @property
    def holds_dates(self) -> bool:
        """Whether the values are days."""
        return self.format is not None and self.format.holds == "date"

    def n_observed(self, active: np.ndarray | None = None) -> int:
        """Return the number of observed cells in the rows where `active` is True (by default in all rows)."""
        return len(self.observed(active))

    @property
    def is_part(self) -> bool:
        """Whether the values are only some of the distinct values of the column."""
        return False

    def rises(self) -> bool:
        """Whether no cell is missing and every value is above the one before it."""
        values = self.values
        is_full = self.missing is None and len(values) > 1
        return is_full and all(bool(np.all(part[1:] > part[:-1])) for part in (values[:10], values))

    def never_falls(self) -> bool:
        """Whether no observed value is below the one before it, and some are above."""
        seen = self.observed()
        return len(seen) > 1 and bool(np.all(seen[1:] >= seen[:-1])) and bool(seen[-1] > seen[0])

    def count_marks(self, active: np.ndarray | None = None) -> tuple[int, int, int]:
        """Return the numbers of observed cells, of zeros, and of cells that hold the highest value."""
        seen = self.observed(active)
        return len(seen), int(np.count_nonzero(seen == 0)), int(np.count_nonzero(seen == seen.max()))

    def mean_and_variance(self, active: np.ndarray | None = None) -> tuple[float, float]:
        """Return mean and variance of the observed numbers, whatever the weights of their rows."""
        seen = self.observed(active)
        return (float(seen.mean()), float(seen.var())) if len(seen) else (0.0, 0.0)

    def center_and_scale(self, values: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
        """Return mean and standard deviation; `values` is the column as floats."""
        return center_and_scale(values, weights)

    def code_evidence(self, active: np.ndarray | None = None) -> CodeEvidence:
        """Return the evidence for missing codes among the numbers of the column."""
        return code_evidence(self.observed(active))

    def statistics(self, rows: slice) -> dict[str, Any]:
        """Return the statistics of the observed cells of some rows, for the account of the table."""
        values = self.values[rows]
        return value_statistics(values if self.missing is None else values[~self.missing[rows]])

    def value_counts(self, active: np.ndarray | None = None) -> dict[Any, int]:
        """Return how often each observed value occurs in the rows where `active` is True."""
        seen = self.observed(active)
        if seen.dtype.kind == "O":
            return dict(Counter(seen.tolist()))
        values, counts = np.unique(seen, return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def observed(self, active: np.ndarray | None = None) -> np.ndarray:
        """Return the observed values in the rows where `active` is True (by default in all rows)."""
        keep = active
        if self.missing is not None:
            keep = ~self.missing if active is None else active & ~self.missing
        return self.values if keep is None else self.values[keep]

    def joint_counts(
        self, other: RawColumn, distance: int, active: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return how often each pair of answers in `ANSWERS` occurs in the rows of two columns.

        None if a column holds something else. `distance` is the number of columns from this one to the other.
        """
        keep = np.ones(len(self.values), bool) if active is None else active.copy()
        for column in (self, other):
            if column.missing is not None:
                keep &= ~column.missing
        n, codes = len(ANSWERS), []
        for column in (self, other):
            if column.family not in ("int", "float") or not column.is_integral(active):
                return None
            seen = column.observed(active)
            if len(seen) and not (seen.min() >= ANSWERS[0] and seen.max() <= ANSWERS[-1]):
                return None
            codes.append(column.values[keep].astype(np.int64) - ANSWERS[0])
        return np.bincount(codes[0] * n + codes[1], minlength=n * n).reshape(n, n)

    def as_floats(self) -> np.ndarray:
        """Return a float64 copy with NaN for missing cells."""
        if self.family == "str":
            raise ValueError(f"column {self.name!r} holds text, not numbers")
        floats = self.values.astype(np.float64)
        if self.missing is not None:
            floats[self.missing] = np.nan
        return floats

    def is_integral(self, active: np.ndarray | None = None) -> bool:
        """Whether all observed values are integers, possibly stored as floats.

        Beyond 2**53 every float is an integer, so such floats count as measurements, not as codes.
        """
        if self.family == "int":
            return True
        if self.family != "float":
            return False
        seen = self.observed(active)
        head = seen[:1000]  # measurements are usually recognized from a few values
        return all(bool(np.all((x == np.floor(x)) & (np.abs(x) < 2.0**53))) for x in (head, seen))

    def without(self, codes: Collection[Any]) -> tuple[RawColumn, int]:
        """Mark every cell that holds one of the codes as missing; return the column and the number of these cells.

        Numbers are compared as numbers, also if a code is the text of a number; text is compared as text.
        """
        if self.family == "bool" or not codes:
            return self, 0
        if self.family == "str":
            wanted = {str(code).strip() for code in codes}
            texts = {text for text in set(self.observed().tolist()) if text.strip() in wanted}
            hits = np.fromiter((value in texts for value in self.values), bool, len(self.values))
        else:
            hits = np.isin(self.values, [number for code in codes if (number := as_number(code)) is not None])
        if self.missing is not None:
            hits &= ~self.missing
        count = int(np.count_nonzero(hits))
        if count == 0:
            return self, 0
        return replace(self, missing=hits if self.missing is None else hits | self.missing), count

    def recoded(self, values_of: Mapping[str, Any], family: str, **changes: Any) -> RawColumn:
        """Replace each text by ``values_of[text]``; None marks the cell as missing. Texts that are not listed stay."""
        given = self.values.tolist()
        texts = list(set(given))
        position = {text: code for code, text in enumerate(texts)}
        codes = np.fromiter(map(position.__getitem__, given), np.intp, len(given))
        values = [None if text is None else values_of.get(text, text) for text in texts]
        missing = np.array([value is None for value in values])[codes]
        if self.missing is not None:
            missing |= self.missing
        if family == "float":
            distinct = np.array([value if isinstance(value, float) else np.nan for value in values])
        else:
            distinct = np.array(values, dtype=object)
        return replace(
            self,
            values=distinct[codes],
            missing=missing if missing.any() else None,
            family=family,
            **changes,
        )


def as_number(code: Any) -> float | int | None:
    """Return a code as a number; None if it is text.

    Examples
    --------
    >>> as_number("-9"), as_number(999), as_number("-")
    (-9.0, 999, None)
    """
    if isinstance(code, str):
        return float(code) if is_number(code) else None
    return code


def parse_values(
    values: np.ndarray,
    name: str,
    missing: np.ndarray | None = None,
    *,
    labeled: bool = False,
    declared: Iterable[Any] = (),
    ordered: bool = False,
) -> RawColumn:
    """Turn a one-dimensional array of any dtype into a `RawColumn`.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        It is copied and never changed.
    name : str
        The name of the column, for messages.
    missing : ndarray of bool, default=None
        Cells that are missing whatever they hold, in addition to NaN, None, NA and NaT.
    labeled, declared, ordered
        See `RawColumn`.

    Examples
    --------
    >>> parse_values(np.array([1, None, 3], dtype=object), "x").family
    'int'
    >>> parse_values(np.array([1, "a"], dtype=object), "x")
    Traceback (most recent call last):
    ValueError: column 'x' mixes text (row 1: 'a') and numbers (row 0: 1); convert it to one type, ...
    """
    if missing is not None and not missing.any():
        missing = None
    kind = values.dtype.kind
    if kind in "UT":
        values, kind = values.astype(object), "O"
    if kind == "O":
        raw = _parse_objects(values, name, missing)
    elif kind in "biu":
        native = np.array(values, dtype=values.dtype.newbyteorder("="), order="C", copy=True)
        raw = RawColumn(name, native, missing, "bool" if kind == "b" else "int")
    elif kind == "f":
        raw = _parse_floats(values, name, missing)
    elif kind in "Mm":
        raw = replace(_parse_floats(days_of(values), name, missing), format=NATIVE_DATE)
    else:
        raise _unsupported_dtype(values.dtype, name)
    return replace(raw, labeled=labeled, declared=tuple(declared), ordered=ordered)


def _unsupported_dtype(dtype: np.dtype[Any], name: str) -> ValueError:
    if dtype.kind == "c":
        return ValueError(f"Complex data not supported\ncolumn {name!r}: split it into two real columns")
    if dtype.kind == "S":
        return ValueError(f"column {name!r} holds bytes; decode them to text first, e.g. with .astype(str)")
    return ValueError(f"column {name!r} has the unsupported dtype {dtype}; convert it to numbers or text")


def _parse_floats(values: np.ndarray, name: str, missing: np.ndarray | None) -> RawColumn:
    with np.errstate(over="ignore"):
        floats = np.array(values, dtype=np.float64, order="C", copy=True)
    if missing is not None:
        floats[missing] = np.nan
    finite = np.isfinite(floats)
    if finite.all():
        return RawColumn(name, floats, None, "float")
    infinite = np.isinf(floats)
    if infinite.any():
        row = first_row(infinite)
        if np.isfinite(values[row]):  # longdouble has a larger range than float64
            raise ValueError(f"{place(name, row)}: {values[row]} overflows float64; rescale the column")
        raise ValueError(
            f"{place(name, row)}: the value is infinity ({floats[row]}); replace inf by a finite number, "
            "or by NaN to mark it as missing"
        )
    return RawColumn(name, floats, ~finite, "float")


def _parse_objects(values: np.ndarray, name: str, missing: np.ndarray | None) -> RawColumn:
    """Read Python objects: find the missing ones, then check that all others have the same type."""
    types = {kind: _type_family(kind) for kind in set(map(type, values))}
    if any(family in ("float", "missing", "time") for family in types.values()):
        absent = np.fromiter((_is_missing(value, types) for value in values), bool, len(values))
        missing = absent if missing is None else absent | missing
    if missing is not None and not missing.any():
        missing = None
    seen = values if missing is None else values[~missing]
    families = {types[kind] for kind in set(map(type, seen))}
    if families == {"time"}:
        return _parse_dates(values, name, missing)
    if "str" in families and families <= {"int", "float", "str"} and len(families) > 1:
        words = np.fromiter((_is_missing_word(value) for value in values), bool, len(values))
        if words.any():  # the usual words for missing, among numbers
            return _parse_objects(values, name, words if missing is None else words | missing)
    if families - {"bool", "int", "float", "str"}:
        _raise_bad_object(values, name, missing, types)
    if not families:
        return RawColumn(name, np.full(len(values), np.nan), np.ones(len(values), bool), "float")
    if families == {"str"}:
        text = np.full(len(values), None, dtype=object)
        text[slice(None) if missing is None else ~missing] = seen
        return RawColumn(name, text, missing, "str")
    if "str" in families:
        raise _mixed_error(values, name, missing, types)
    return _parse_object_numbers(values, seen, name, missing, families)


def _is_missing_word(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in MISSING_BESIDE_NUMBERS


def _parse_dates(values: np.ndarray, name: str, missing: np.ndarray | None) -> RawColumn:
    """Read dates, times of the day and durations of the standard library as days."""
    days = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if missing is None or not missing[row]:
            days[row] = _days_of_object(value)
    return replace(_parse_floats(days, name, missing), format=NATIVE_DATE)


def _days_of_object(value: Any) -> float:
    if isinstance(value, datetime.time):
        value = datetime.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        )
    elif isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    kind = "timedelta64[us]" if isinstance(value, (datetime.timedelta, np.timedelta64)) else "datetime64[us]"
    return float(days_of(np.array([value], dtype=kind))[0])


def _parse_object_numbers(
    values: np.ndarray, seen: np.ndarray, name: str, missing: np.ndarray | None, families: set[str]
) -> RawColumn:
    where = slice(None) if missing is None else ~missing
    if "float" in families:
        floats = np.full(len(values), np.nan)
        floats[where] = [float(value) for value in seen]
        return _parse_floats(floats, name, missing)
    if families == {"bool"}:
        flags = np.zeros(len(values), bool)
        flags[where] = seen.astype(bool)
        return RawColumn(name, flags, missing, "bool")
    low, high = min(map(int, seen)), max(map(int, seen))
    if low < -(2**63) or high >= 2**64 or (low < 0 and high >= 2**63):
        raise ValueError(f"column {name!r} holds integers beyond 64 bits; convert it to float or to text")
    integers = np.zeros(len(values), np.uint64 if high >= 2**63 else np.int64)
    integers[where] = [int(value) for value in seen]
    return RawColumn(name, integers, missing, "int")


def _type_family(kind: type) -> str:
    if kind.__name__ in _MISSING_TYPE_NAMES:
        return "missing"
    if issubclass(kind, (bool, np.bool_)):
        return "bool"
    if issubclass(kind, str):
        return "str"
    if issubclass(kind, (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)):
        return "time"
    if issubclass(kind, (bytes, bytearray)):
        return "bytes"
    if issubclass(kind, numbers.Integral):
        return "int"
    # Decimal is not a numbers.Real, but float() accepts it
    if issubclass(kind, numbers.Real) or kind.__name__ == "Decimal":
        return "float"
    return "complex" if issubclass(kind, numbers.Complex) else "other"


def _is_missing(value: Any, types: dict[type, str]) -> bool:
    family = types[type(value)]
    # NaN and NaT are the only values that differ from themselves
    return family == "missing" or (family in ("float", "time") and bool(value != value))


def _raise_bad_object(
    values: np.ndarray, name: str, missing: np.ndarray | None, types: dict[type, str]
) -> None:
    for row, value in enumerate(values):
        family = types[type(value)]
        if family in ("bool", "int", "float", "str") or (missing is not None and missing[row]):
            continue
        if family == "time":
            raise ValueError(
                f"{place(name, row)}: the date or time {value!s} stands among other values; convert the column to one "
                "type, or declare it 'ignore'"
            )
        if family == "bytes":
            raise ValueError(f"{place(name, row)}: bytes are not supported; decode them to text first")
        if family == "complex":
            raise ValueError(f"Complex data not supported\n{place(name, row)}: {value!r}")
        # the words and the type of the error that the estimator checks of scikit-learn expect
        raise TypeError(
            f"{place(name, row)}: argument must be a string or a number, not {type(value).__name__!r}; "
            "convert the column, e.g. with .astype(str), or declare it 'ignore'"
        )


def _mixed_error(
    values: np.ndarray, name: str, missing: np.ndarray | None, types: dict[type, str]
) -> ValueError:
    rows: dict[bool, int] = {}
    for row, value in enumerate(values):
        if missing is None or not missing[row]:
            rows.setdefault(types[type(value)] == "str", row)
    text, number = rows[True], rows[False]
    return ValueError(
        f"column {name!r} mixes text (row {text}: {values[text]!r}) and numbers (row {number}: "
        f"{values[number]!r}); convert it to one type, e.g. with .astype(str)"
    )
