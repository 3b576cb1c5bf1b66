"""Read columns of text: words that mean missing, and numbers or dates that are written as text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from partita.table.cells import RawColumn, first_row, place
from partita.table.formats import (
    MISSING_BESIDE_NUMBERS,
    MISSING_WORDS,
    PLAIN_NUMBER,
    TextFormat,
    find_date_format,
    find_format,
    find_units,
)
from partita.table.schema import ColumnSchema

MAX_TEXT_LEVELS = 20  # plain integers in text with at most so many distinct values may be codes
MAX_STRAY_SHARE = 0.1  # a column of numbers may have so many cells that are none
_COMPACT_DATE = TextFormat("date", pattern="%Y%m%d")


def read_text(
    raw: RawColumn,
    kind: str | None,
    active: np.ndarray | None = None,
    decimal: str | None = None,
    levels: Sequence[str] = (),
) -> RawColumn:
    """Find the missing words in a column of text, and read it as numbers or dates if all its cells agree.

    Parameters
    ----------
    raw : RawColumn
        Columns that hold no text, and columns that the container declares as categorical, are returned as they are.
    kind : str or None
        The declared kind. In columns that are declared categorical or binary, every text is a level; in ordinal ones
        every text but the words that mean missing.
    active : ndarray of bool, default=None
        The rows that decide; by default all.
    decimal : str, default=None
        The decimal mark of the file.
    levels : sequence of str, default=()
        The declared levels of an ordinal column, which are not missing.

    Returns
    -------
    RawColumn
        Its `format` says how text was read; its `words` are those that were read as missing; its `strays` are
        texts among at least 90% numbers that are none, and are missing too.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> raw = parse_values(np.array(["$5", "-", "$1,200"]), "price")
    >>> read_text(raw, None).as_floats(), read_text(raw, None).words
    (array([   5.,   nan, 1200.]), ('-',))
    """
    if kind == "date" and raw.family in ("int", "float") and not raw.holds_dates:
        return _read_compact_dates(raw)
    if raw.family != "str" or raw.labeled or kind in ("categorical", "binary"):
        return raw
    counts = raw.value_counts(active)
    stripped = {text: text.strip() for text in counts}
    if kind == "ordinal":
        return _without_words(raw, stripped, levels)
    beside = [text for text, short in stripped.items() if short.lower() in MISSING_BESIDE_NUMBERS]
    others = [short for short in stripped.values() if short.lower() not in MISSING_BESIDE_NUMBERS]
    found, strays = _decide(others, counts, stripped, kind, decimal)
    if found is not None:
        return apply_format(raw, found, beside, strays)
    if kind == "date" and others:
        raise _no_date(raw, set(beside))
    return _without_words(raw, stripped)


def number_texts(raw: RawColumn, active: np.ndarray | None = None) -> list[str]:
    """Return the distinct texts of a column, without spaces around them and without words that mean missing."""
    short = {text.strip() for text in raw.value_counts(active)}
    return [text for text in short if text.lower() not in MISSING_BESIDE_NUMBERS]


def _without_words(raw: RawColumn, stripped: Mapping[str, str], levels: Collection[str] = ()) -> RawColumn:
    """Return the column with the words that mean missing as missing cells, unless they are levels."""
    words = [
        text for text, short in stripped.items() if short.lower() in MISSING_WORDS and text not in levels
    ]
    return raw.recoded(dict.fromkeys(words), "str", words=tuple(sorted(words))) if words else raw


def apply_format(
    raw: RawColumn, how: TextFormat, words: Sequence[str] = (), strays: Sequence[str] = ()
) -> RawColumn:
    """Read the text of a column by a given format; what cannot be read is missing.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> raw = parse_values(np.array(["5%", "five"]), "share")
    >>> apply_format(raw, TextFormat("number", unit="%"), strays=["five"]).as_floats()
    array([ 5., nan])
    """
    texts = list(set(raw.observed().tolist()))
    values = how.read([text.strip() for text in texts])
    values_of: dict[str, Any] = {
        text: None if np.isnan(value) else value for text, value in zip(texts, values.tolist(), strict=True)
    }
    return raw.recoded(
        values_of, "float", format=how, words=tuple(sorted(words)), strays=tuple(sorted(strays))
    )


def read_known_text(raw: RawColumn, column: ColumnSchema) -> RawColumn:
    """Read text of new data in the format of the fitted column; texts that cannot be read are its `strays`.

    Parameters
    ----------
    raw : RawColumn
        A column of new data.
    column : ColumnSchema
        The fitted column. Text of binary and categorical columns stays text; words that mean missing are missing
        unless they are levels.
    """
    if raw.family != "str" or raw.labeled:
        return raw
    texts = {text: text.strip() for text in set(raw.observed().tolist())}
    if column.kind not in ("real", "count"):
        return _without_words(raw, texts, set(column.levels))
    known = column.format
    words = [text for text, short in texts.items() if short.lower() in MISSING_BESIDE_NUMBERS]
    others = [text for text in texts if text not in words]
    how = known or PLAIN_NUMBER
    if known is not None and known.pattern == "native":
        how = find_date_format([texts[text] for text in others]) or known
    unread = [text for text in others if np.isnan(how.read([texts[text]])[0])]
    if others and len(unread) == len(others):
        return raw  # the column holds something else: the caller says so
    return apply_format(raw, how, words, unread)


def _decide(
    others: Sequence[str],
    counts: Mapping[str, int],
    stripped: Mapping[str, str],
    kind: str | None,
    decimal: str | None,
) -> tuple[TextFormat | None, list[str]]:
    """Return the format of a column, and the texts that do not have it."""
    if kind == "date":
        return find_date_format(others) or (_COMPACT_DATE if _is_compact(others) else None), []
    found = find_format(others, decimal)
    if found is not None:
        return (None if kind is None and _may_be_codes(found, others) else found), []
    if kind is not None:
        return None, []
    numbers = {text for text in others if find_units([text])}
    n_numbers = sum(count for text, count in counts.items() if stripped[text] in numbers)
    n_others = sum(count for text, count in counts.items() if stripped[text] in set(others))
    if len(numbers) <= MAX_TEXT_LEVELS or n_numbers < (1.0 - MAX_STRAY_SHARE) * n_others:
        return None, []
    found = find_format(sorted(numbers), decimal)
    return found, [text for text in others if text not in numbers]


def _may_be_codes(found: TextFormat, texts: Sequence[str]) -> bool:
    return found.is_plain and len(texts) <= MAX_TEXT_LEVELS and all(text.isdigit() for text in texts)


def _is_compact(texts: Sequence[str]) -> bool:
    return bool(texts) and not np.isnan(_COMPACT_DATE.read(texts)).any()


def _read_compact_dates(raw: RawColumn) -> RawColumn:
    """Read integers like 20240131, in a column that is declared 'date'."""
    seen = ~np.isnan(raw.as_floats())
    days = np.full(len(raw.values), np.nan)
    days[seen] = _COMPACT_DATE.read([f"{value:.0f}" for value in raw.values[seen].tolist()])
    wrong = seen & np.isnan(days)
    if wrong.any():
        row = first_row(wrong)
        raise ValueError(
            f"{place(raw.name, row)}: {raw.values[row]} is no date but the column is 'date'; write dates as 2024-01-31 "
            "or 20240131, or declare the column 'real' if it already counts days"
        )
    return replace(raw, values=days, family="float", format=_COMPACT_DATE)


def _no_date(raw: RawColumn, words: set[str]) -> ValueError:
    for row, text in enumerate(raw.values):
        if text is not None and text not in words and find_date_format([text.strip()]) is None:
            return ValueError(
                f"{place(raw.name, row)}: {text!r} is no date but the column is 'date'; write dates as 2024-01-31, or "
                "give the text as a missing code"
            )
    return ValueError(
        f"column {raw.name!r} is 'date' but its cells have different formats; write all dates as 2024-01-31"
    )
