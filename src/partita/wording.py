"""Text from the data made safe and short, and numbers written for readers."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from typing import Any

MAX_LENGTH = 60


def one_line(text: Any, limit: int = MAX_LENGTH) -> str:
    """Text on one line, without control and direction characters, at most `limit` long.

    Examples
    --------
    >>> one_line("two\\nlines")
    'two lines'
    >>> one_line("x" * 10_000, limit=8)
    'xxxxxxx…'
    """
    raw = str(text)[: 20 * limit]  # limits the work for very long texts
    spaced = " ".join("".join(c if unicodedata.category(c)[0] != "C" else " " for c in raw).split())
    return spaced if len(spaced) <= limit and len(str(text)) <= 20 * limit else spaced[: limit - 1] + "…"


def safe(text: Any, limit: int = MAX_LENGTH) -> str:
    """Text for an HTML page: ``one_line``, escaped.

    Examples
    --------
    >>> safe("<script>alert(1)</script>")
    '&lt;script&gt;alert(1)&lt;/script&gt;'
    """
    return html.escape(one_line(text, limit), quote=True)


def number(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, with an exponent if it is very large or very small.

    Examples
    --------
    >>> number(131.23), number(0.0412), number(20_500.0), number(3_141_592.0), number(3e12)
    ('131', '0.0412', '20,500', '3,140,000', '3e+12')
    """
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-4:
        return f"{value:.{digits}g}"
    if size >= 1e6:
        return f"{float(f'{value:.{digits}g}'):,.0f}"
    places = 0 if size == 0 else max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:,.{places}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def percent(share: float) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.4), percent(0.004), percent(0.0)
    ('40%', '0.4%', '0%')
    """
    return f"{100 * share:.0f}%" if share >= 0.0095 or share == 0 else f"{100 * share:.1g}%"


def first_sentence(text: str) -> str:
    """The first sentence of a text.

    Examples
    --------
    >>> first_sentence("The chains agree (0.98). The number of groups is 3.")
    'The chains agree (0.98).'
    """
    return re.split(r"(?<=[.:]) (?=[A-Z])", text, maxsplit=1)[0]


def count(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    Examples
    --------
    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
