"""Numbers and dates as people write them: money, percent, separators, brackets, dates in common orders.

A column of text is read as numbers or dates only if *all* its cells agree on one format. `find_format` decides it from
the distinct texts of a column, and the schema stores it, so that new data are read in the same way.

Numbers may have a currency before or after them, a percent sign, a unit of measurement (28 m²), a period ($900/mo),
separators of thousands, a decimal comma, a sign before or after them, or the brackets of accountants: `(1,234)` is
-1234. Whether a comma separates thousands or decimals is decided by the whole column: beside `1,5`, the text `1,477` is
1.477. If nothing in the column decides it, a single comma before three digits separates thousands, and a single point
is a decimal point (but a separator of thousands in money).

Dates become days since 1970-01-01, with the time of the day as a fraction. Whether `03/04/2024` is in March or in April
is decided by the whole column too; if nothing decides it, the month comes first with slashes, and the day otherwise.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

#: Texts that mean missing in every column, in lower case.
MISSING_WORDS = frozenset(
    ("", "na", "n/a", "#n/a", "n.a.", "nan", "-nan", "null", "<na>", "nat", "?", "-", "--", ".", "..", "\\n")
)
#: Texts that mean missing only in columns of numbers or dates: among words, "none" or "unknown" may be an answer.
MISSING_BESIDE_NUMBERS = MISSING_WORDS | frozenset(
    ("none", "nil", "unknown", "missing", "not available", "not applicable", "n.d.", "nd", "#ref!", "#value!")
)

_SYMBOLS = (
    "R$",
    "US$",
    "C$",
    "A$",
    "$",
    "€",
    "£",
    "¥",
    "₹",
    "₽",
    "₩",
    "₺",
    "₪",
    "฿",
    "kr",
    "zł",
    "Kč",
    "Ft",
    "Fr.",
)
_CODES = (
    "USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "INR", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF",
    "RUB", "BRL", "MXN", "ZAR", "KRW", "TRY", "SGD", "HKD", "ILS", "AED", "SAR", "THB",
)  # fmt: skip
_CURRENCY = "|".join(re.escape(unit) for unit in (*_SYMBOLS, *_CODES))
# Units of measurement that are written after numbers; one of the plain words may have an s.
_WORDS = ("year", "month", "week", "day", "hour", "minute", "min", "second", "sec", "yr", "hr", "lb", "pc")
_MEASURES = (
    "mmHg", "km/h", "kmh", "mph", "m/s", "kg", "mg", "µg", "oz", "km", "cm", "mm", "ft", "m²", "m2", "m³", "m3", "km²",
    "km2", "sqm", "sq m", "sqft", "sq ft", "sq. ft.", "ha", "ml", "mL", "kcal", "kWh", "kW", "kHz", "MHz", "GHz", "KB",
    "kB", "MB", "GB", "TB", "dpi", "px", "bpm", "rpm", "ppm", "ppb", "mmol/L", "mmol/l", "mg/dL", "mg/dl", "g/dL",
    "g/L", "ms", "°C", "°F", "m", "g", "l", "L", "h",
)  # fmt: skip
_MEASURE = "|".join(
    [*(f"{word}s?" for word in _WORDS), *map(re.escape, sorted(_MEASURES, key=len, reverse=True))]
)
_PER = "/(?:month|mo|year|yr|week|wk|day|hour|hr|h)"
_SPACES = " \u00a0\u202f\u2009"
_MINUS = "\u2212\u2013-"  # the hyphen comes last: it makes no range in a character class
_NUMBER = re.compile(
    rf"(?P<open>\()?[{_SPACES}]*(?P<sign>[+{_MINUS}])?[{_SPACES}]*(?P<before>{_CURRENCY})?[{_SPACES}]*"
    rf"(?P<sign_after>[+{_MINUS}])?(?P<body>\d(?:[\d.,'’{_SPACES}]*\d)?[.,]?|[.,]\d+)(?P<exponent>[eE][-+]?\d+)?"
    rf"[{_SPACES}]*(?P<after>%|{_CURRENCY}|{_MEASURE})?(?P<per>{_PER})?[{_SPACES}]*(?P<minus_after>[{_MINUS}])?[{_SPACES}]*(?P<close>\))?"
)
_MARKS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_MAX_DIGITS = 15  # longer integers name things: a float cannot hold them
_LEADING_ZEROS = re.compile(r"0\d+")
_NATIVE = "native"
_ISO = "iso"
_DATE_SHAPE = re.compile(r"\d{1,4}([-/. ]|:\d)|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}|\d{1,2}[- ][A-Za-z]{3}")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_DAYS = (
    "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%Y",
    "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    "%b %d %Y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S.%f")
_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p")
_PATTERNS = tuple(day + time for time in _TIMES for day in _DAYS) + _CLOCKS
_EPOCH = datetime.datetime(1970, 1, 1)
_SECONDS_PER_DAY = 86400.0


@dataclass(frozen=True)
class TextFormat:
    """How the text of a column is read.

    Attributes
    ----------
    holds : {"number", "date"}
        What the text stands for.
    decimal, thousands : str
        The decimal mark and the separator of thousands of numbers.
    unit : str
        The currency, the unit or "%" that is written beside the numbers.
    pattern : str
        The format of dates for `strptime`; "iso", or "native" if the container holds dates.
    ambiguous : bool
        Whether day and month could also be the other way round.

    Examples
    --------
    >>> find_format(["$1,340.76", "($12)"]).read(["$1,340.76", "($12)", "two"])
    array([1340.76,  -12.  ,      nan])
    """

    holds: str
    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    pattern: str = ""
    ambiguous: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the numbers have no unit and no separators."""
        return self.holds == "number" and (self.decimal, self.thousands, self.unit) == (".", "", "")

    @property
    def has_marks(self) -> bool:
        """Whether the numbers have separators of thousands or decimal commas."""
        return self.holds == "number" and (self.decimal, self.thousands) != (".", "")

    def read(self, texts: Iterable[str]) -> np.ndarray:
        """Return the numbers, or the days since 1970-01-01; NaN for texts of another format."""
        if self.holds == "number":
            return np.array([_number(text, self) for text in texts], dtype=np.float64)
        return np.array([_days(text, self.pattern) for text in texts], dtype=np.float64)

    def write(self, value: float) -> str:
        """Write one of the numbers as the user would know it: days as dates, times and money as they are.

        Examples
        --------
        >>> TextFormat("date", pattern="iso").write(19753.0), TextFormat("number", unit="$").write(12.5)
        ('2024-01-31', '12.5')
        """
        if self.holds == "number" or self.pattern in _CLOCKS:
            return f"{value:.6g}"
        return str(np.datetime64(math.floor(value), "D"))

    def describe(self) -> str:
        """Say how the text is read, for notes.

        Examples
        --------
        >>> TextFormat("number", ",", ".", "€").describe()
        'numbers in €, with decimal comma and thousands separated by a point'
        >>> TextFormat("number", unit="%").describe()
        'percent: 12.0% is read as 12'
        """
        if self.holds == "date":
            how = {_ISO: "", _NATIVE: ""}.get(self.pattern, f", written as {_readable(self.pattern)}")
            doubt = "; day and month could also be the other way round" if self.ambiguous else ""
            if self.pattern in _CLOCKS:
                return f"times of the day{how}, read as fractions of a day"
            return f"dates{how}, read as days since 1970-01-01{doubt}"
        parts = []
        if self.decimal == ",":
            parts.append("decimal comma")
        if self.thousands:
            mark = {",": "a comma", ".": "a point", " ": "a space", "'": "an apostrophe"}[self.thousands]
            parts.append(f"thousands separated by {mark}")
        marks = f", with {' and '.join(parts)}" if parts else ""
        if self.unit == "%":
            return f"percent: 12.0% is read as 12{marks}"
        return f"numbers in {self.unit}{marks}" if self.unit else f"numbers{marks}"

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain Python objects."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TextFormat:
        """Restore from `to_dict`; raise an error for content that it cannot have written."""
        made = cls(**saved)
        types_fit = isinstance(made.unit, str) and isinstance(made.ambiguous, bool)
        marks_fit = made.decimal in (".", ",") and made.thousands in ("", ",", ".", " ", "'")
        dates_fit = made.pattern in ("", _ISO, _NATIVE, "%Y%m%d", *_PATTERNS)
        if made.holds not in ("number", "date") or not (types_fit and marks_fit and dates_fit):
            raise ValueError(f"{saved!r} is no format of text")
        return made


#: Text that `float` reads.
PLAIN_NUMBER = TextFormat("number")
#: Dates of the container itself: datetime64, or columns of dates in a frame.
NATIVE_DATE = TextFormat("date", pattern=_NATIVE)


def find_format(texts: Sequence[str], decimal: str | None = None) -> TextFormat | None:
    """Find the format that all texts of a column have; None if there is none.

    Parameters
    ----------
    texts : sequence of str
        The distinct observed texts of a column, without missing words and without spaces around them.
    decimal : {".", ","}, default=None
        The decimal mark of other columns of the same file; it decides where this column decides nothing.

    Examples
    --------
    >>> find_format(["1,477", "1,5"]).read(["1,477"]), find_format(["1,477", "2,000"]).read(["1,477"])
    (array([1.477]), array([1477.]))
    >>> find_format(["28 m²", "65 m²"]).read(["65 m²"]), find_format(["1 year", "2.5 years"]).unit
    (array([65.]), 'year')
    >>> find_format(["31/01/2024", "01/02/2024"]).pattern
    '%d/%m/%Y'
    >>> find_format(["$5", "€5"]), find_format(["00501", "10115"])
    (None, None)
    """
    if not texts:
        return None
    found = _number_format(texts, decimal) if all(map(_NUMBER.fullmatch, islice(texts, 20))) else None
    return found or find_date_format(texts)


def find_decimal_mark(columns: Iterable[Sequence[str]]) -> str | None:
    """Return the decimal comma if some columns can only be read with it, and no column only with a decimal point.

    Parameters
    ----------
    columns : iterable of sequences of str
        The texts of each column, as for `find_format`.

    Examples
    --------
    >>> find_decimal_mark([["1,5", "2,25"], ["1,477"]]), find_decimal_mark([["1,477"]])
    (',', None)
    """
    marks = set()
    for texts in columns:
        if not any("," in text for text in texts):
            continue
        found = find_format(texts)
        if found is not None and found.holds == "number" and found == find_format(texts, ","):
            marks.add(found.decimal)
    return "," if marks == {","} else None


def has_leading_zeros(texts: Iterable[str]) -> bool:
    """Whether some text is an integer that begins with a zero, as postal codes and article numbers do.

    Examples
    --------
    >>> has_leading_zeros(["00501"]), has_leading_zeros(["0", "0.5"])
    (True, False)
    """
    return any(map(_LEADING_ZEROS.fullmatch, texts))


def find_units(texts: Iterable[str]) -> set[str]:
    """Return the currencies, percent signs and units of the texts that are numbers; "" for numbers without one.

    Examples
    --------
    >>> sorted(find_units(["$5", "€5", "five"]))
    ['$', '€']
    """
    return {_unit(found) for text in texts if (found := _NUMBER.fullmatch(text))}


# ---- numbers ---------------------------------------------------------------------------------------------------


def _unit(found: re.Match[str]) -> str:
    unit = found["before"] or found["after"] or ""
    singular = unit.removesuffix("s")
    return (singular if singular in _WORDS else unit) + (found["per"] or "")


def _number_format(texts: Sequence[str], decimal: str | None) -> TextFormat | None:
    units: set[str] = set()
    bodies: set[str] = set()
    bare_values = False
    for text in texts:
        found = _NUMBER.fullmatch(text)
        if found is None or not _is_balanced(found):
            return None
        unit = _unit(found)
        bare_values |= unit == "" and found["body"].strip("0.,") != ""
        units.add(unit)
        bodies.add(found["body"])
    units.discard("")
    # a bare number beside percentages may be a fraction: 0.12 beside 12%
    if len(units) > 1 or (units == {"%"} and bare_values) or has_leading_zeros(bodies):
        return None
    if any(body.isdigit() and len(body) > _MAX_DIGITS for body in bodies):
        return None
    fitting = [marks for marks in _MARKS if all(map(_body_pattern(*marks).fullmatch, bodies))]
    if not fitting:
        return None
    if decimal == ",":
        fitting.sort(key=lambda marks: marks[0] != ",")
    if any(mark in unit for unit in units for mark in (*_SYMBOLS, *_CODES)):
        # money has no three decimals: 1.477 € are 1477 €
        fitting.sort(key=lambda marks: not any(marks[1] in body for body in bodies) if marks[1] else True)
    decimal, thousands = fitting[0]
    if not any(_digits(body, *fitting[0]) != body for body in bodies):
        decimal, thousands = ".", ""  # no mark occurs: float reads all of them
    return TextFormat("number", decimal, thousands, "".join(units))


def _is_balanced(found: re.Match[str]) -> bool:
    """Whether brackets are closed, and at most one sign and one unit are written."""
    opened, sign, before, after_sign, _, _, after, _, minus, closed = found.groups()
    n_signs = (opened is not None) + (sign is not None) + (after_sign is not None) + (minus is not None)
    return (opened is None) == (closed is None) and n_signs <= 1 and (before is None or after is None)


@cache
def _body_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of digits with these marks."""
    mark = {"": "", " ": f"[{_SPACES}]", "'": "['’]"}.get(thousands, re.escape(thousands))
    grouped = rf"|[1-9]\d{{0,2}}(?:{mark}\d{{2,3}})*{mark}\d{{3}}" if thousands else ""
    return re.compile(rf"(?:\d+{grouped})(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+")


def _digits(body: str, decimal: str, thousands: str) -> str:
    if thousands == " ":
        body = "".join(c for c in body if c not in _SPACES)
    elif thousands == "'":
        body = body.replace("'", "").replace("’", "")
    elif thousands:
        body = body.replace(thousands, "")
    return body.replace(decimal, ".") if decimal != "." else body


def _number(text: str, how: TextFormat) -> float:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or not _is_balanced(found) or _unit(found) not in ("", how.unit):
        return float("nan")
    if not _body_pattern(how.decimal, how.thousands).fullmatch(found["body"]):
        return float("nan")
    value = float(_digits(found["body"], how.decimal, how.thousands) + (found["exponent"] or ""))
    negative = found["open"] or found["minus_after"] or (found["sign"] or found["sign_after"] or "+") != "+"
    return -value if negative else value


# ---- dates -----------------------------------------------------------------------------------------------------


def find_date_format(texts: Sequence[str]) -> TextFormat | None:
    """Find the format of dates that all texts have; None if there is none.

    Examples
    --------
    >>> find_date_format(["2024-01-31", "2024-02-01 10:30"]).pattern
    'iso'
    >>> find_date_format(["03/04/2024"]).ambiguous
    True
    """
    if not all(map(_DATE_SHAPE.match, islice(texts, 20))):
        return None
    if all(map(_ISO_DATE.fullmatch, texts)):
        return TextFormat("date", pattern=_ISO) if _all_days(texts, _ISO) else None
    few = list(islice(texts, 20))
    likely = [pattern for pattern in _PATTERNS if _all_days(few, pattern)]
    fitting = [pattern for pattern in likely if _all_days(texts, pattern)]
    if not fitting:
        return None
    return TextFormat("date", pattern=fitting[0], ambiguous=len(fitting) > 1)


def _all_days(texts: Iterable[str], pattern: str) -> bool:
    return all(not np.isnan(_days(text, pattern)) for text in texts)


def _days(text: str, pattern: str) -> float:
    try:
        if pattern in (_ISO, _NATIVE):
            moment = datetime.datetime.fromisoformat(text.strip())
            if moment.tzinfo is not None:
                moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        else:
            moment = datetime.datetime.strptime(text.strip(), pattern)
    except ValueError:
        return float("nan")
    begin = datetime.datetime(1900, 1, 1) if pattern in _CLOCKS else _EPOCH  # strptime's date of a bare time
    return (moment - begin).total_seconds() / _SECONDS_PER_DAY


def days_of(values: np.ndarray) -> np.ndarray:
    """Return datetime64 as days since 1970-01-01, and timedelta64 as days; NaN for NaT.

    Examples
    --------
    >>> days_of(np.array(["1970-01-02T12:00", "NaT"], dtype="datetime64[m]"))
    array([1.5, nan])
    """
    nothing = np.isnat(values)
    if values.dtype == np.dtype("datetime64[D]"):
        days = values.astype(np.int64).astype(np.float64)
    else:
        kind = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
        days = values.astype(kind).astype(np.int64) / (_SECONDS_PER_DAY * 1e6)
    days[nothing] = np.nan
    return days


def _readable(pattern: str) -> str:
    words = {
        "%Y": "year", "%y": "year", "%m": "month", "%d": "day", "%b": "month", "%B": "month", "%H": "hour",
        "%I": "hour", "%M": "minute", "%S": "second", "%f": "fraction", "%p": "am/pm",
    }  # fmt: skip
    return re.sub(r"%[A-Za-z]", lambda found: words[found[0]], pattern)
