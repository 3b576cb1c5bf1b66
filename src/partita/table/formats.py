"""Numbers and dates as people write them: money, percent, separators, brackets, dates in common orders.

A column of text is read as numbers or dates only if *all* its cells agree on one format. `find_format` decides it from
the distinct texts of a column, and the schema stores it, so that new data are read in the same way.

Numbers may have a currency before or after them, a percent sign, a unit of measurement (28 m²), a period ($900/mo), a
common denominator (4.5/5), separators of thousands, a decimal comma, a sign before or after them, or the brackets of
accountants: `(1,234)` is -1234. Some of them may have letters for thousands and millions (1.2M), another unit of the
same quantity (300 g among kg), or the sign of a limit or of an approximation (`<0.5` and `~0.5` are read as 0.5).
Whether a comma separates thousands or decimals is decided by the whole column: beside `1,5`, the text `1,477` is 1.477.
If nothing in the column decides it, a single comma before three digits separates thousands, and a single point is a
decimal point (but a separator of thousands in money).

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
from typing import Any, NamedTuple

import numpy as np

#: Texts that mean missing in every column, in lower case.
MISSING_WORDS = frozenset(
    ("", "na", "n/a", "#n/a", "n.a.", "nan", "-nan", "null", "<na>", "nat", "?", "-", "--", ".", "..", "\\n")
)
#: Texts that mean missing only in columns of numbers or dates: among words, "none" or "unknown" may be an answer.
MISSING_BESIDE_NUMBERS = MISSING_WORDS | frozenset(
    (
        "none", "nil", "unknown", "missing", "not available", "not applicable", "n.d.", "nd", "#ref!", "#value!",
        "<lod", "lod", "<loq", "loq", "<mdl", "bdl", "n.n.",
    )
)  # fmt: skip

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
_COUNTED_WORDS = _WORDS[:6]  # units that have a plural
_MEASURES = (
    "mmHg", "km/h", "kmh", "mph", "m/s", "kg", "mg", "µg", "oz", "km", "cm", "mm", "ft", "m²", "m2", "m³", "m3", "km²",
    "km2", "sqm", "sq m", "sqft", "sq ft", "sq. ft.", "ha", "ml", "mL", "kcal", "kWh", "kW", "kHz", "MHz", "GHz", "KB",
    "kB", "MB", "GB", "TB", "dpi", "px", "bpm", "rpm", "ppm", "ppb", "mmol/L", "mmol/l", "mg/dL", "mg/dl", "g/dL",
    "g/L", "ms", "°C", "°F", "m", "g", "l", "L", "h",
)  # fmt: skip
_MEASURE = "|".join(
    [*(f"{word}s?" for word in _WORDS), *map(re.escape, sorted(_MEASURES, key=len, reverse=True))]
)
_PER = r"/(?:month|mo|year|yr|week|wk|day|hour|hr|h)|\s?/\s?\d{1,3}"
# Units of one quantity, of which one column may have several: their sizes.
_QUANTITIES = (
    {"mg": 1e-6, "g": 1e-3, "kg": 1.0},
    {"oz": 0.0625, "lb": 1.0},
    {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3},
    {"ml": 1e-3, "mL": 1e-3, "l": 1.0, "L": 1.0},
    {"kB": 1e-3, "KB": 1e-3, "MB": 1.0, "GB": 1e3, "TB": 1e6},
    {"MHz": 1e-3, "GHz": 1.0},
    {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "h": 3600, "day": 86400},
)  # fmt: skip
_QUANTITY_OF = {unit: sizes for sizes in _QUANTITIES for unit in sizes}
_SIZES = {"k": 1e3, "K": 1e3, "M": 1e6, "Mio": 1e6, "mio": 1e6, "mn": 1e6, "bn": 1e9, "Mrd": 1e9}
_SIZE = "|".join(sorted(_SIZES, key=len, reverse=True))
MIN_BESIDE_LIMITS = 5  # distinct numbers without the sign of a limit, from which a column may have such signs
MAX_DATE_FORMATS = 4  # of one column
_SPACES = " \u00a0\u202f\u2009"
_MINUS = "\u2212\u2013-"  # the hyphen comes last: it makes no range in a character class
_NUMBER = re.compile(
    rf"(?P<limit>[<>≤≥]=?)?(?P<about>[~≈])?[{_SPACES}]*(?P<open>\()?[{_SPACES}]*(?P<sign>[+{_MINUS}])?[{_SPACES}]*(?P<before>{_CURRENCY})?[{_SPACES}]*"
    rf"(?P<sign_after>[+{_MINUS}])?(?P<body>\d(?:[\d.,'’{_SPACES}]*\d)?[.,]?|[.,]\d+)(?P<exponent>[eE][-+]?\d+)?"
    rf"(?:[{_SPACES}]?(?P<size>{_SIZE})\.?(?![A-Za-z]))?[{_SPACES}]*(?P<after>%|{_CURRENCY}|{_MEASURE})?(?P<per>{_PER})?[{_SPACES}]*(?P<minus_after>[{_MINUS}])?[{_SPACES}]*(?P<close>\))?"
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
        The format of dates for `strptime`, several divided by "|"; "iso", or "native" if the container holds dates.
    ambiguous : bool
        Whether day and month could also be the other way round.
    remark : str
        What else happens to some of the texts, in words.

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
    remark: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the numbers have no unit and no separators."""
        found = (self.decimal, self.thousands, self.unit, self.remark)
        return self.holds == "number" and found == (".", "", "", "")

    @property
    def has_marks(self) -> bool:
        """Whether the numbers have separators of thousands or decimal commas."""
        return self.holds == "number" and (self.decimal, self.thousands) != (".", "")

    @property
    def is_time_of_day(self) -> bool:
        """Whether the values are fractions of a day."""
        return self.pattern in _CLOCKS

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
        >>> TextFormat("date", pattern="%H:%M").write(0.75)
        '18:00'
        """
        if self.holds == "number":
            return f"{value:.6g}"
        if self.is_time_of_day:
            minutes = round(value * 1440.0)
            return f"{minutes // 60:02d}:{minutes % 60:02d}"
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
            ways = [_readable(pattern) for pattern in self.pattern.split("|")]
            how = "" if self.pattern in (_ISO, _NATIVE) else f", written as {' or '.join(ways)}"
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
        marks += f", {self.remark}" if self.remark else ""
        if self.unit == "%":
            return f"percent: 12.0% is read as 12{marks}"
        if "/" in self.unit and self.unit.strip(" /").isdigit():
            return f"numbers out of {self.unit.strip(' /')}{marks}"
        return f"numbers in {unit_of_many(self.unit)}{marks}" if self.unit else f"numbers{marks}"

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain Python objects."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TextFormat:
        """Restore from `to_dict`; raise an error for content that it cannot have written."""
        made = cls(**saved)
        types_fit = all(isinstance(text, str) for text in (made.unit, made.remark, made.pattern))
        types_fit = types_fit and isinstance(made.ambiguous, bool)
        marks_fit = made.decimal in (".", ",") and made.thousands in ("", ",", ".", " ", "'")
        known = ("", _ISO, _NATIVE, "%Y%m%d", *_PATTERNS)
        dates_fit = types_fit and all(pattern in known for pattern in made.pattern.split("|"))
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
    >>> find_format(["1.5 kg", "300 g"]).read(["300 g"]), find_format(["63k", "1.2M"]).read(["63k", "1.2M"])
    (array([0.3]), array([  63000., 1200000.]))
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


def is_measure(text: str) -> bool:
    """Whether a text is a unit of measurement, possibly in brackets.

    Examples
    --------
    >>> is_measure("[kg]"), is_measure("red")
    (True, False)
    """
    return re.fullmatch(rf"[(\[]?(?:%|{_CURRENCY}|{_MEASURE})[)\]]?", text) is not None


# ---- numbers ---------------------------------------------------------------------------------------------------


def unit_of_many(unit: str) -> str:
    """A unit beside another number than one.

    Examples
    --------
    >>> unit_of_many("year"), unit_of_many("kg")
    ('years', 'kg')
    """
    return f"{unit}s" if unit in _COUNTED_WORDS else unit


def _unit(found: re.Match[str]) -> str:
    unit = found["before"] or found["after"] or ""
    singular = unit.removesuffix("s")
    per = (found["per"] or "").replace(" ", "")
    return (singular if singular in _WORDS else unit) + per


class _Numbers(NamedTuple):
    """What the texts of a column have in common, if all of them are numbers."""

    units: set[str]  # that are written
    bodies: set[str]  # the digits with their marks
    limits: list[str]  # texts with the sign of a limit
    abouts: list[str]  # texts with the sign of an approximation
    sizes: set[str]  # letters for thousands and millions
    bare: bool  # whether a number other than zero has no unit


def _match_all(texts: Iterable[str]) -> _Numbers | None:
    found = _Numbers(set(), set(), [], [], set(), False)
    for text in texts:
        match = _NUMBER.fullmatch(text)
        if match is None or not _is_balanced(match):
            return None
        unit = _unit(match)
        if unit == "":
            found = found._replace(bare=found.bare or match["body"].strip("0.,") != "")
        else:
            found.units.add(unit)
        found.bodies.add(match["body"])
        if match["limit"]:
            found.limits.append(text)
        if match["about"]:
            found.abouts.append(text)
        if match["size"]:
            found.sizes.add(match["size"])
    return found


def _number_format(texts: Sequence[str], decimal: str | None) -> TextFormat | None:
    found = _match_all(texts)
    if found is None or has_leading_zeros(found.bodies):
        return None
    unit = _common_unit(found.units)
    # a bare number beside percentages may be a fraction: 0.12 beside 12%
    if unit is None or (found.bare and (unit == "%" or len(found.units) > 1)):
        return None
    if found.limits and len(texts) - len(found.limits) < MIN_BESIDE_LIMITS:
        return None  # ranges such as "<10" and ">50" are levels
    if any(body.isdigit() and len(body) > _MAX_DIGITS for body in found.bodies):
        return None
    marks = _marks_of(found.bodies, unit, decimal)
    if marks is None:
        return None
    return TextFormat("number", *marks, unit, remark=_remark(found, unit))


def _common_unit(units: set[str]) -> str | None:
    """The unit in which a column is read, the largest of one quantity; None for units of several quantities."""
    if len(units) < 2:
        return next(iter(units), "")
    sizes = _QUANTITY_OF.get(min(units), {})
    return max(units, key=lambda unit: (sizes[unit], unit)) if units <= sizes.keys() else None


def _remark(found: _Numbers, unit: str) -> str:
    parts = []
    if found.limits:
        parts.append(f"where {min(found.limits)!r} is read as its limit")
    if found.abouts:
        parts.append(f"where {min(found.abouts)!r} is read without its sign")
    if found.sizes:
        parts.append(f"where {' and '.join(sorted(found.sizes))} stand for {_sizes_in_words(found.sizes)}")
    if len(found.units) > 1:
        parts.append(f"into which {' and '.join(sorted(found.units - {unit}))} are converted")
    return ", ".join(parts)


def _sizes_in_words(sizes: Iterable[str]) -> str:
    words = {1e3: "thousands", 1e6: "millions", 1e9: "billions"}
    return " and ".join(words[size] for size in sorted({_SIZES[size] for size in sizes}))


def _marks_of(bodies: set[str], unit: str, decimal: str | None) -> tuple[str, str] | None:
    """The decimal mark and the separator of thousands that fit all numbers; None if there are none."""
    fitting = [marks for marks in _MARKS if all(map(_body_pattern(*marks).fullmatch, bodies))]
    if not fitting:
        return None
    if decimal == ",":
        fitting.sort(key=lambda marks: marks[0] != ",")
    if any(mark in unit for mark in (*_SYMBOLS, *_CODES)):
        # money has no three decimals: 1.477 € are 1477 €
        fitting.sort(key=lambda marks: not any(marks[1] in body for body in bodies) if marks[1] else True)
    if not any(_digits(body, *fitting[0]) != body for body in bodies):
        return ".", ""  # no mark occurs: float reads all of them
    return fitting[0]


def _is_balanced(found: re.Match[str]) -> bool:
    """Whether brackets are closed, and at most one sign and one unit are written."""
    opened, closed, minus = found["open"], found["close"], found["minus_after"]
    n_signs = sum(sign is not None for sign in (opened, found["sign"], found["sign_after"], minus))
    return (
        (opened is None) == (closed is None)
        and n_signs <= 1
        and (found["before"] is None or found["after"] is None)
    )


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
    if found is None or not _is_balanced(found):
        return float("nan")
    unit = _unit(found) or how.unit
    sizes = {how.unit: 1.0} if unit == how.unit else _QUANTITY_OF.get(how.unit, {})
    if unit not in sizes:
        return float("nan")
    if not _body_pattern(how.decimal, how.thousands).fullmatch(found["body"]):
        return float("nan")
    value = float(_digits(found["body"], how.decimal, how.thousands) + (found["exponent"] or ""))
    value *= sizes[unit] / sizes[how.unit] * _SIZES.get(found["size"], 1.0)
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
    found = _one_date_format(texts)
    return found or _several_date_formats(texts)


def _one_date_format(texts: Sequence[str]) -> TextFormat | None:
    fitting = _fitting_patterns(texts)
    if not fitting:
        return None
    return TextFormat("date", pattern=fitting[0], ambiguous=len({*map(_day_first, fitting)}) > 1)


def _fitting_patterns(texts: Sequence[str]) -> list[str]:
    few = list(islice(texts, 20))
    likely = [pattern for pattern in (_ISO, *_PATTERNS) if _all_days(few, pattern)]
    return [pattern for pattern in likely if _all_days(texts, pattern)]


def _several_date_formats(texts: Sequence[str]) -> TextFormat | None:
    """Dates of a few shapes, such as 31.01.2024 and 2024-01-31; what decides day and month in one decides it in all."""
    by_shape: dict[str, list[str]] = {}
    for text in texts:
        shape = re.sub(
            r"[A-Za-z]+", "a", re.sub(r"\d+", lambda digits: "9" if len(digits[0]) < 3 else "99", text)
        )
        by_shape.setdefault(shape, []).append(text)
    fitting = [_fitting_patterns(alike) for alike in by_shape.values()]
    if len(fitting) < 2 or not all(fitting):
        return None
    decided = {_day_first(patterns[0]) for patterns in fitting if len({*map(_day_first, patterns)}) == 1} - {
        None
    }
    if len(decided) > 1:
        return None
    day_first = next(iter(decided), None)
    chosen = [
        next((pattern for pattern in patterns if _day_first(pattern) in (day_first, None)), patterns[0])
        for patterns in fitting
    ]
    ways = list(dict.fromkeys(chosen))
    if len(ways) > MAX_DATE_FORMATS:
        return None
    doubtful = day_first is None and any(len({*map(_day_first, patterns)}) > 1 for patterns in fitting)
    return TextFormat("date", pattern="|".join(ways), ambiguous=doubtful)


def _day_first(pattern: str) -> bool | None:
    """Whether the day stands before the month in digits; None if the year or words decide it."""
    if "%m" not in pattern or pattern.startswith("%Y"):
        return None
    return pattern.index("%d") < pattern.index("%m")


def _all_days(texts: Iterable[str], pattern: str) -> bool:
    return all(not np.isnan(_days(text, pattern)) for text in texts)


def _days(text: str, pattern: str) -> float:
    if "|" in pattern:
        return next(
            (found for way in pattern.split("|") if not math.isnan(found := _days(text, way))), math.nan
        )
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
        "%Y": "year", "%y": "short year", "%m": "month", "%d": "day", "%b": "month", "%B": "month", "%H": "hour",
        "%I": "hour", "%M": "minute", "%S": "second", "%f": "fraction", "%p": "am/pm",
    }  # fmt: skip
    return (
        "year-month-day" if pattern == _ISO else re.sub(r"%[A-Za-z]", lambda found: words[found[0]], pattern)
    )
