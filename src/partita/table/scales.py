"""Columns with an order: ordered categories, words of a usual scale, and answers in whole numbers on one scale.

Whole numbers from 1 to 5 may be answers from low to high, or codes of names. What tells them apart is how columns that
share a scale depend on each other: answers rise and fall together, so that most of the dependence of two columns is in
their correlation; codes of names depend on each other in all cells of their contingency table alike. `order_evidence`
compares the two. Ordered categories and words need no such evidence: somebody has said their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita.table.cells import RawColumn
from partita.table.kinds import ColumnFacts
from partita.table.levels import distinct_values

MIN_ITEMS = 5  # columns that share a scale of answers
MIN_STEPS = 4  # of a scale; with three, correlations of codes are often high by chance
MAX_STEPS = 11
MIN_ORDER_SHARE = 0.5  # of the dependence between columns that their correlations hold
MIN_DEPENDENCE = 3.0  # of all pairs together, in standard deviations of independent columns
PAIR_DISTANCES = (1, 2)  # columns are compared with the next two
MAX_COMPARED_COLUMNS = 1000  # the first ones speak for the others on their scale

# Answers in their usual order; the words between bars mean the same.
_SCALES = tuple(
    tuple(frozenset(step.split("|")) for step in scale.split(", "))
    for scale in (
        "strongly disagree|disagree strongly|completely disagree|totally disagree, disagree|rather disagree, "
        "somewhat disagree|slightly disagree, neutral|neither|neither agree nor disagree|undecided|not sure, "
        "somewhat agree|slightly agree|rather agree, agree, "
        "strongly agree|agree strongly|completely agree|totally agree",
        "very dissatisfied|very unsatisfied, dissatisfied|unsatisfied, somewhat dissatisfied, neutral|neither, "
        "somewhat satisfied, satisfied, very satisfied",
        "definitely not, probably not, neutral|undecided|not sure|maybe, probably, definitely",
        "very unlikely, unlikely, neutral|neither|undecided, likely, very likely",
        "never, rarely|seldom, sometimes|occasionally, often|frequently|usually, always",
        "never, yearly, monthly, weekly, daily",
        "very bad|very poor, bad|poor, fair|average|ok|neutral, good, very good, excellent",
        "none|no, very mild, mild, moderate, severe, very severe",
        "not at all, a little|slightly, somewhat|moderately, quite a bit|very, extremely|very much",
        "very low, low, medium|moderate|middle|normal, high, very high",
        "very small, small, medium, large, very large",
        "xxs, xs, s, m, l, xl, xxl",
    )
)


# Answers that have no place on a scale.
NO_ANSWERS = frozenset(
    (
        "don't know", "do not know", "dont know", "dk", "refused", "prefer not to say", "prefer not to answer",
        "no answer", "no opinion", "not applicable", "not answered", "skip", "skipped", "weiss nicht", "weiß nicht",
        "keine angabe", "k.a.",
    )
)  # fmt: skip
_NUMBERED = re.compile(r"(\d{1,2})(?:\s*[-–.:)=]\s*\D*)?")  # "1 - strongly disagree", "2"
_AMOUNT = r"[$€£]?\s?(\d[\d.,]*)\s?([kKM]?)[$€£%]?"
_RANGE = re.compile(rf"{_AMOUNT}\s*(?:-|–|to|bis)\s*{_AMOUNT}(?:\s*[A-Za-z]+)?")
_BELOW = re.compile(rf"(?:under|below|less than|up to|unter|bis|<=?|≤)\s*{_AMOUNT}(?:\s*[A-Za-z]+)?", re.I)
_ABOVE = re.compile(
    rf"(?:over|above|more than|über|>=?|≥)\s*{_AMOUNT}(?:\s*[A-Za-z]+)?|"
    rf"{_AMOUNT}\s*(?:\+|plus|and over|and more|or more)",
    re.I,
)


def ordered_levels(raw: RawColumn, active: np.ndarray | None = None) -> tuple[Any, ...] | None:
    """Return the observed levels of an ordinal column in their order; None if the column is not ordinal.

    Ordered categories of pandas, polars (Enum) and Arrow are ordinal, and so are words that all belong to one of the
    usual scales of answers, numbered answers ("1 - never", "2") and ranges that follow each other ("18-24", "25-34",
    "35+"), with at least three of them.

    Parameters
    ----------
    raw : RawColumn
        A column with at least one observed cell.
    active : ndarray of bool, default=None
        The rows that are used; by default all.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> ordered_levels(parse_values(np.array(["Agree", "Neutral", "Disagree", "Agree"]), "answer"))
    ('Disagree', 'Neutral', 'Agree')
    >>> ordered_levels(parse_values(np.array(["red", "blue", "green"]), "color"))
    """
    levels = distinct_values(raw.observed(active))
    if raw.ordered:
        rank = {level: position for position, level in enumerate(raw.declared)}
        known = all(level in rank for level in levels)
        return tuple(sorted(levels, key=rank.__getitem__)) if known and len(levels) > 2 else None
    return None if raw.family != "str" or raw.labeled else order_of_texts(levels)


def order_of_texts(levels: Sequence[str]) -> tuple[str, ...] | None:
    """Return texts in their usual order; None if they have none.

    Examples
    --------
    >>> order_of_texts(["over 50k", "under 10k", "10k-50k", "5k-10k"])
    >>> order_of_texts(["over 50k", "under 5k", "10k-50k", "5k-10k"])
    ('under 5k', '5k-10k', '10k-50k', 'over 50k')
    >>> order_of_texts(["7 - always", "1 - never", "4", "5"])
    ('1 - never', '4', '5', '7 - always')
    """
    if len(levels) < 3:
        return None
    words = {level: " ".join(level.lower().replace("-", " ").split()) for level in levels}
    for scale in _SCALES:
        rank = {word: position for position, step in enumerate(scale) for word in step}
        found = [rank.get(word) for word in words.values()]
        if None not in found and len(set(found)) == len(levels):
            return tuple(sorted(levels, key=lambda level: rank[words[level]]))
    return _order_of_numbered(levels) or _order_of_ranges(levels)


def answers_without_place(levels: Sequence[str]) -> list[str]:
    """Return the levels such as "don't know", without which the others would have an order; none if they would not.

    Of whole numbers and a single word, it is that word.

    Examples
    --------
    >>> answers_without_place(["agree", "Don't know", "neutral", "disagree"])
    ["Don't know"]
    >>> answers_without_place(["1", "2", "3", "absent"])
    ['absent']
    """
    words = [level for level in levels if not level.strip().isdigit()]
    if len(words) == 1 and len(levels) > 3 and order_of_texts(levels) is None:
        return words
    apart = [level for level in levels if level.strip().lower() in NO_ANSWERS]
    others = [level for level in levels if level not in apart]
    return apart if apart and order_of_texts(others) else []


def _order_of_numbered(levels: Sequence[str]) -> tuple[str, ...] | None:
    """Answers with their numbers, some of them with words, as 1 - never, 2, 3, 4 - always."""
    found = [_NUMBERED.fullmatch(level.strip()) for level in levels]
    if not all(found) or all(level.strip().isdigit() for level in levels):
        return None
    rank = {level: int(match[1]) for level, match in zip(levels, found, strict=True) if match}
    return tuple(sorted(levels, key=rank.__getitem__)) if len(set(rank.values())) == len(levels) else None


def _order_of_ranges(levels: Sequence[str]) -> tuple[str, ...] | None:
    """Ranges of numbers that do not overlap; two of them at least have both ends."""
    ends = {level: _ends_of_range(level.strip()) for level in levels}
    known = {level: found for level, found in ends.items() if found is not None}
    if len(known) < len(levels) or sum(np.isfinite(found).all() for found in known.values()) < 2:
        return None
    order = sorted(levels, key=known.__getitem__)
    apart = all(known[one][1] <= known[other][0] for one, other in pairwise(order))
    return tuple(order) if apart else None


def _ends_of_range(text: str) -> tuple[float, float] | None:
    found = _RANGE.fullmatch(text)
    if found is not None:
        low, high = _amount(found[1], found[2] or found[4]), _amount(found[3], found[4])
        return (low, high) if low < high else None
    if (found := _BELOW.fullmatch(text)) is not None:
        return -np.inf, _amount(found[1], found[2])
    if (found := _ABOVE.fullmatch(text)) is not None:
        return _amount(found[1] or found[3], found[2] or found[4] or ""), np.inf
    return None


def _amount(digits: str, size: str) -> float:
    """A number of a range: all its commas and points before three digits separate thousands."""
    plain = re.sub(r"[.,](?=\d{3}(?!\d))", "", digits).replace(",", ".").rstrip(".")
    try:
        return float(plain) * {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}[size]
    except ValueError:
        return np.nan


def scale_of(fact: ColumnFacts) -> tuple[float, float] | None:
    """Return the lowest and the highest answer, if a column of numbers could hold answers on a scale.

    A scale begins with 0 or 1, or lies symmetrically around 0, and has 4 to 11 steps, of which at most one is not used.

    Examples
    --------
    >>> scale_of(ColumnFacts(True, 1.0, 5.0, 90, 0, 9, (1.0, 2.0, 3.0, 5.0)))
    (1.0, 5.0)
    """
    n_steps = fact.high - fact.low + 1
    begins_well = fact.low in (0.0, 1.0) or fact.low == -fact.high
    is_scale = fact.integral and begins_well and MIN_STEPS <= n_steps <= MAX_STEPS
    return (fact.low, fact.high) if is_scale and len(fact.values) >= n_steps - 1 else None


class Ratings(NamedTuple):
    """Columns that share scales: those that have an order by the evidence, and those that may also be codes."""

    ordered: set[int]
    doubtful: set[int]


def find_ratings(
    facts: Mapping[int, ColumnFacts],
    column: Callable[[int], RawColumn],
    names: Mapping[int, str] | Sequence[str],
    active: np.ndarray | None = None,
) -> Ratings:
    """Find the columns of whole numbers that are answers on one scale, such as 1 to 5 or 0 to 10.

    At least five columns share a scale, and `order_evidence` speaks for an order. Columns with the same stem of the
    name (``q7`` beside ``q1``, ``q2``) whose answers do not reach the ends of the scale belong to it, too.

    Parameters
    ----------
    facts : mapping from position to ColumnFacts
        The columns of numbers.
    column : callable
        Returns the column at a position.
    names : mapping from position to str, or sequence of str
        The names of the columns.
    active : ndarray of bool, default=None
        The rows that are used; by default all.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> from partita.table.kinds import facts_of
    >>> rng = np.random.default_rng(0)
    >>> mood = rng.integers(0, 3, size=200)
    >>> answers = [parse_values(1 + mood + rng.integers(0, 3, size=200), f"q{j}") for j in range(5)]
    >>> facts = {j: facts_of(answer) for j, answer in enumerate(answers)}
    >>> sorted(find_ratings(facts, answers.__getitem__, [answer.name for answer in answers]).ordered)
    [0, 1, 2, 3, 4]
    """
    by_scale: dict[tuple[float, float], set[int]] = {}
    for position, fact in facts.items():
        if (scale := scale_of(fact)) is not None:
            by_scale.setdefault(scale, set()).add(position)
    ordered: set[int] = set()
    doubtful: set[int] = set()
    for (low, high), members in by_scale.items():
        if len(members) < MIN_ITEMS:
            continue
        share, strength = order_evidence(_joint_tables(members, column, active))
        if share < MIN_ORDER_SHARE or strength < MIN_DEPENDENCE:
            doubtful |= members
            continue
        stems = {_stem(names[position]) for position in members} - {""}
        ordered |= members | {
            position
            for position, fact in facts.items()
            if _stem(names[position]) in stems
            and fact.integral
            and low <= fact.low < fact.high - 1 <= high - 1
            and len(fact.values) > 2
        }
    return Ratings(ordered, doubtful - ordered)


def _stem(name: str) -> str:
    """Return a name without the number at its end; nothing if it has none."""
    found = re.fullmatch(r"(.*?)\d+[a-z]?", name.lower())
    return found[1] if found else ""


def _joint_tables(
    members: set[int], column: Callable[[int], RawColumn], active: np.ndarray | None
) -> Iterable[np.ndarray]:
    """Yield the contingency tables of columns that are next to each other."""
    window: dict[int, RawColumn] = {}
    for position in sorted(members):
        if position >= MAX_COMPARED_COLUMNS:
            return
        window = {other: raw for other, raw in window.items() if position - other <= max(PAIR_DISTANCES)}
        here = column(position)
        for other, raw in window.items():
            if (table := raw.joint_counts(here, position - other, active)) is not None:
                yield table
        window[position] = here


def order_evidence(tables: Iterable[np.ndarray]) -> tuple[float, float]:
    """Return the share of the dependence between columns that is in their order, and the strength of the dependence.

    The dependence of two columns is the excess of the chi-squared statistic of their table over its degrees of freedom;
    the part in their order is the excess of n r^2, with the correlation r, over its one degree (Agresti, Categorical
    Data Analysis, section 2.5). Both are summed over the tables.

    Parameters
    ----------
    tables : iterable of ndarray
        Contingency tables, whose rows and columns are the answers in `partita.table.cells.ANSWERS`.

    Examples
    --------
    >>> share, strength = order_evidence([np.diag([50.0, 50.0, 50.0])])
    >>> round(share, 2), round(strength, 1)
    (0.5, 104.7)
    """
    in_order = total = variance = 0.0
    for counts in tables:
        n = counts.sum()
        rows, columns = counts.sum(axis=1), counts.sum(axis=0)
        degrees = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1)
        if degrees < 1:
            continue
        expected = np.outer(rows, columns) / n
        seen = expected > 0
        chi_squared = float(((counts - expected)[seen] ** 2 / expected[seen]).sum())
        scores = np.arange(len(counts), dtype=np.float64)
        x, y = scores - rows @ scores / n, scores - columns @ scores / n
        correlation = float(x @ counts @ y / np.sqrt((rows @ x**2) * (columns @ y**2)))
        in_order += n * correlation**2 - 1.0
        total += chi_squared - degrees
        variance += 2.0 * degrees
    if total <= 0.0:
        return 0.0, 0.0
    return float(in_order / total), float(total / np.sqrt(variance))
