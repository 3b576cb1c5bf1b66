"""Columns that name the rows or hold remarks: they say nothing about groups, and are set aside with a note."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from partita.table.cells import RawColumn
from partita.table.formats import has_leading_zeros
from partita.table.levels import distinct_values
from partita.table.scales import ordered_levels

MAX_DISTINCT_ROWS = 20  # in at most this many rows, all values may be distinct by chance
MAX_ROW_STEP = 20  # numbers of rows rise by at most this much on average
MAX_NUMBERED_ROWS = (
    1 << 17
)  # in larger tables it is not checked whether whole numbers in any order are consecutive
# identifiers and article numbers have so many digits; smaller numbers may be those of stations
MIN_LONG_CODE = 1e5
MAX_TEXT_LEVELS = 20  # text with more distinct values may be names or remarks rather than categories
MIN_REMARK_WORDS = 5  # categories have fewer words on average
_IDENTIFIER_NAME = re.compile(
    r"(.*[_. -])?(id|ids|index|key|uuid|guid|rowid|row|nr|no|number|unnamed: 0)", re.I
)
_CODE_NAME = re.compile(r"(.*[_. -])?(id|uuid|guid|ean|gtin|upc|isbn|sku|barcode|phone|phone_?number)", re.I)
_POSTAL_NAME = re.compile(r"(.*[_. -])?(zip|zip_?code|postal|postal_?code|post_?code|plz)", re.I)


class Reason(NamedTuple):
    """Why a column is set aside: the code of its note, and the number of its distinct values."""

    code: str
    n_distinct: int


def reason_to_set_aside(raw: RawColumn, active: np.ndarray | None = None) -> Reason | None:
    """Return why a column whose kind is not declared should be set aside; None if it should be modeled.

    Parameters
    ----------
    raw : RawColumn
        A column with at least one observed cell, after its text was read.
    active : ndarray of bool, default=None
        The rows that are used; by default all.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> reason_to_set_aside(parse_values(np.array([f"visitor {k}" for k in range(30)]), "name"))
    Reason(code='identifier', n_distinct=30)
    >>> reason_to_set_aside(parse_values(np.array(["no", "yes"] * 15), "member"))
    """
    n_seen = raw.n_observed(active)
    if raw.labeled or raw.holds_dates or n_seen <= MAX_DISTINCT_ROWS:
        return None
    if raw.family == "str":
        return _text_reason(raw, active, n_seen)
    if raw.family not in ("int", "float") or (raw.format is not None and not raw.format.is_plain):
        return None
    if not raw.is_integral(active):
        return None
    if _numbers_rows(raw, active, n_seen):
        return Reason("identifier", n_seen)
    is_identifier = _IDENTIFIER_NAME.fullmatch(raw.name) is not None
    is_code = _POSTAL_NAME.fullmatch(raw.name) is not None or _holds_long_codes(raw, active)
    if not (is_identifier or is_code):
        return None
    n_distinct = len(distinct_values(raw.observed(active)))
    if is_identifier and n_distinct == n_seen and not raw.is_part:
        return Reason("identifier", n_distinct)
    return Reason("postal_code", n_distinct) if is_code and n_distinct > MAX_TEXT_LEVELS else None


def _holds_long_codes(raw: RawColumn, active: np.ndarray | None) -> bool:
    """Whether the name is that of article numbers or identifiers, which may repeat, and the numbers are long."""
    return _CODE_NAME.fullmatch(raw.name) is not None and float(raw.observed(active).min()) >= MIN_LONG_CODE


def _numbers_rows(raw: RawColumn, active: np.ndarray | None, n_seen: int) -> bool:
    """Whether whole numbers only number the rows: they rise from row to row in steps that are not large."""
    seen = raw.observed(active)
    span = float(seen.max()) - float(seen.min())
    return raw.format is None and span <= MAX_ROW_STEP * n_seen and raw.rises()


def is_shuffled_numbering(raw: RawColumn, active: np.ndarray | None = None) -> bool:
    """Whether a column holds consecutive whole numbers, each once and in any order: shuffled numbers of rows, or ranks.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> is_shuffled_numbering(parse_values(np.random.default_rng(0).permutation(30), "record"))
    True
    """
    n_seen = raw.n_observed(active)
    if not MAX_DISTINCT_ROWS < n_seen <= MAX_NUMBERED_ROWS or raw.family not in ("int", "float"):
        return False
    if raw.labeled or raw.is_part or (raw.format is not None and not raw.format.is_plain):
        return False
    seen = raw.observed(active)
    if float(seen.max()) - float(seen.min()) != n_seen - 1 or not raw.is_integral(active):
        return False
    return len(distinct_values(seen)) == n_seen


def _text_reason(raw: RawColumn, active: np.ndarray | None, n_seen: int) -> Reason | None:
    levels = distinct_values(raw.observed(active))
    if len(levels) <= MAX_TEXT_LEVELS or ordered_levels(raw, active):
        return None
    if len(levels) == n_seen:
        return Reason("identifier", len(levels))
    if all(level.isdigit() for level in levels) and has_leading_zeros(levels):
        return Reason("postal_code", len(levels))
    n_words = np.mean([len(level.split()) for level in levels])
    if len(levels) > n_seen / 2 or n_words >= MIN_REMARK_WORDS:
        return Reason("free_text", len(levels))
    return None
