"""The kinds of columns, how a user declares them, and how they are inferred.

Rules of inference for a column of a data frame or file (from the observed cells of rows with positive weight):

- bool: `binary`;
- dates, also in text: `date`, which is modeled as `real` in days;
- text that is numbers (see :mod:`partita.table.formats`): `real` with a unit or separators, otherwise as these
  numbers;
- other text, and columns that the container declares as categorical: `categorical` (also with two levels);
- integers, also when stored as floats: `binary` if only 0 and 1 occur, `categorical` with up to 10 distinct
  values, `count` with more if none is negative, a zero occurs, their mean is at most 20 and their variance not below
  it (a mixture of Poisson distributions has no smaller one), otherwise `real`;
- other numbers: `binary` with two distinct values in at least 20 cells, otherwise `real`.

A frame or file of at least 30 numeric columns and nothing else holds one measurement (pixels, word counts, expression,
answers on one scale) if in nine of ten columns half of the cells are zero or the range is at least a quarter of the
widest, or if all are integers whose highest values are rare and differ; ten columns of integers are enough if half have
more than ten distinct values. It gets one kind for all columns: see `infer_uniform_kind`.

A two-dimensional array or a list of lists that holds only numbers has one kind for all columns, because its columns
share one dtype: floats are `real` unless every value is 0 or 1 (`binary`); integers follow the rules above, applied to
the whole array ("up to 10 distinct values" must then hold in every column).

Columns with an order are `ordinal` (see :mod:`partita.table.scales`): ordered categories, words of a usual scale,
numbered answers, ranges, and answers in whole numbers on one scale. The order may also be declared, by the name of the
kind or by the levels from low to high ("low < high").
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from partita.table.cells import RawColumn
from partita.table.levels import distinct_values, has_more_distinct_than
from partita.table.notes import list_names

KINDS = ("real", "count", "binary", "categorical", "ordinal", "date", "ignore")
CODED_KINDS = ("binary", "categorical", "ordinal")  # columns of levels, stored as codes

#: What a user may pass as `kinds`.
KindsLike: TypeAlias = str | Mapping[Any, str] | Sequence[str] | None

MAX_INFERRED_LEVELS = 10  # integers with at most this many distinct values are codes rather than quantities

MAX_COUNT_MEAN = 20.0  # larger counts are nearly normal, and few of them are Poisson
MIN_COUNT_DISPERSION = 0.9  # variance of counts, in units of their mean

MIN_SWITCH_CELLS = 20  # fractions with two distinct values in so many cells are codes of two states

MIN_UNIFORM_COLUMNS = 30  # tables with fewer columns rarely hold a single measurement
MIN_INTEGER_COLUMNS = 10  # the same, if all of them are integers and half have more than ten distinct values
MAX_UNIFORM_LEVELS = 10  # up to so many distinct values, all columns of a bounded scale are categorical
MAX_UNIFORM_COUNTS = 100  # integers with more distinct values, most of them not zero, are measurements
_MOST = 0.9  # share of the columns that must look alike
_MIN_RANGE = 0.25  # of the widest column
_MIN_BOUND_SHARE = 0.01  # of the cells: the highest value of a bounded scale is no rare event
_MAX_HIGH_SHARE = 0.02  # of the cells: the highest number of things is rare


def resolve_kinds(
    kinds: KindsLike, names: Sequence[str], labels: Sequence[Hashable] | None = None
) -> list[str | None]:
    """Return the declared kind of every column, None if it is to be inferred.

    Parameters
    ----------
    kinds : None, str, mapping or sequence
        One kind for all columns, a mapping from column name, pattern (``"word*"``) or position to kind, one kind per
        column, or None. A name or position has precedence over a pattern. The levels of an ordinal column from low to
        high, as in "low < high", stand for "ordinal".
    names : sequence of str
        The column names.
    labels : sequence, default=None
        The column labels of the data frame, if they are not text.

    Examples
    --------
    >>> resolve_kinds({"b": "count", 0: "low < high"}, ["a", "b", "c"])
    ['ordinal', 'count', None]
    >>> resolve_kinds({"word*": "count", "words": "real"}, ["age", "word1", "words"])
    [None, 'count', 'real']
    >>> resolve_kinds("text", ["a"])
    Traceback (most recent call last):
    ValueError: unknown kind 'text' for column 'a'; choose from real, count, binary, categorical, ordinal, date, ignore
    """
    resolved = _declared_kinds(kinds, names, labels)
    for name, declared in zip(names, resolved, strict=True):
        if declared is not None and declared not in KINDS and not level_order(declared):
            raise ValueError(f"unknown kind {declared!r} for column {name!r}; choose from {', '.join(KINDS)}")
    return ["ordinal" if level_order(kind) else kind for kind in resolved]


def resolve_orders(
    kinds: KindsLike, names: Sequence[str], labels: Sequence[Hashable] | None = None
) -> list[tuple[str, ...]]:
    """Return the declared order of the levels of every column, as text; empty if none is declared.

    Examples
    --------
    >>> resolve_orders({"a": "low < high"}, ["a", "b"])
    [('low', 'high'), ()]
    """
    return [level_order(kind) for kind in _declared_kinds(kinds, names, labels)]


def level_order(kind: Any) -> tuple[str, ...]:
    """Return the levels that a declaration such as "low < mid < high" lists; empty for the name of a kind.

    Examples
    --------
    >>> level_order("low < mid < high"), level_order("real")
    (('low', 'mid', 'high'), ())
    """
    if not isinstance(kind, str) or "<" not in kind:
        return ()
    levels = tuple(level.strip() for level in kind.split("<"))
    if "" in levels or len(set(levels)) < len(levels):
        raise ValueError(f"the order {kind!r} has empty or equal levels; write it as 'low < mid < high'")
    return levels


def _declared_kinds(
    kinds: KindsLike, names: Sequence[str], labels: Sequence[Hashable] | None
) -> list[str | None]:
    """Return the declaration of every column, None where there is none."""
    resolved: list[str | None] = [None] * len(names)
    if kinds is None:
        return resolved
    if isinstance(kinds, str):
        resolved = [kinds] * len(names)
    elif isinstance(kinds, Mapping):
        for position, entries in enumerate(entries_by_column(kinds, names, labels, "kinds")):
            if len(set(entries)) > 1:
                raise ValueError(f"kinds declares column {names[position]!r} twice; keep one of the entries")
            resolved[position] = entries[0] if entries else None
    else:
        resolved = list(kinds)
        if len(resolved) != len(names):
            raise ValueError(
                f"kinds has {len(resolved)} entries but the data have {len(names)} columns; pass one kind "
                "per column, or a mapping from column to kind"
            )
    return resolved


def entries_by_column(
    given: Mapping[Any, Any], names: Sequence[str], labels: Sequence[Hashable] | None, option: str
) -> list[list[Any]]:
    """Return the entries of a mapping that concern each column.

    Parameters
    ----------
    given : mapping
        Its keys are column names, patterns or positions. Entries for a name or position replace those for a pattern.
    names, labels
        As in `resolve_kinds`.
    option : str
        The name of the option, for messages.

    Examples
    --------
    >>> entries_by_column({"q*": 9, "q2": 99}, ["q1", "q2", "age"], None, "missing_codes")
    [[9], [99], []]
    """
    positions = {label: position for position, label in enumerate(labels or names)}
    exact: list[list[Any]] = [[] for _ in names]
    by_pattern: list[list[Any]] = [[] for _ in names]
    for key, entry in given.items():
        if key not in positions and isinstance(key, str) and any(mark in key for mark in "*?["):
            matching = [position for position, name in enumerate(names) if fnmatchcase(name, key)]
            if not matching:
                raise ValueError(f"{option}: no column matches {key!r}; the columns are {list_names(names)}")
            for position in matching:
                by_pattern[position].append(entry)
        else:
            exact[_position_of(key, positions, names, option)].append(entry)
    return [one or other for one, other in zip(exact, by_pattern, strict=True)]


def _position_of(key: Any, positions: Mapping[Hashable, int], names: Sequence[str], option: str) -> int:
    if key in positions:
        return positions[key]
    try:
        position = -1 if isinstance(key, bool) else operator.index(key)
    except TypeError:
        position = -1
    if 0 <= position < len(names):
        return position
    raise ValueError(
        f"{option} names the column {key!r}, which the data do not have; use a name ({list_names(names)}), a pattern "
        f"like 'word*', or a position from 0 to {len(names) - 1}"
    )


def infer_kind(raw: RawColumn, active: np.ndarray | None = None) -> str:
    """Infer the kind of one column of a data frame; see the rules at the top of this module.

    Parameters
    ----------
    raw : RawColumn
        A column with at least one observed cell.
    active : ndarray of bool, default=None
        The rows that are used; by default all.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> infer_kind(parse_values(np.array(["no", "yes"]), "smokes"))
    'categorical'
    >>> infer_kind(parse_values(np.arange(30), "visits"))
    'count'
    """
    if raw.holds_dates:
        return "date"
    if raw.format is not None and not raw.format.is_plain:
        return "real"  # money, percent and separated thousands are quantities
    if raw.labeled or raw.family == "str":
        return "categorical"
    if raw.family == "bool":
        return "binary"
    seen = raw.observed(active)
    if raw.is_integral(active):
        return _kind_of_integers([raw], active)
    is_switch = raw.n_observed(active) >= MIN_SWITCH_CELLS and not has_more_distinct_than(seen, 2)
    return "binary" if is_switch else "real"


def infer_common_kind(columns: Iterable[RawColumn], family: str, active: np.ndarray | None = None) -> str:
    """Infer one kind for all columns of a numeric array; see the rules at the top of this module.

    Parameters
    ----------
    columns : iterable of RawColumn
        The columns; read only as far as needed.
    family : {"bool", "int", "float"}
        The type of the values of the array.
    active : ndarray of bool, default=None
        The rows that are used; by default all.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> infer_common_kind([parse_values(np.array([0.5, 1.0]), "x0")], "float")
    'real'
    """
    if family == "bool":
        return "binary"
    if family == "int":
        return _kind_of_integers(columns, active)
    return "binary" if all(_only_zero_and_one(raw.observed(active)) for raw in columns) else "real"


def _kind_of_integers(columns: Iterable[RawColumn], active: np.ndarray | None) -> str:
    binary = few = True
    nonnegative, zero = True, False
    means, poisson = [], []
    for raw in columns:
        values = raw.observed(active)
        if len(values) == 0:
            continue
        binary = binary and _only_zero_and_one(values)
        few = few and (binary or not has_more_distinct_than(values, MAX_INFERRED_LEVELS))
        nonnegative = nonnegative and bool(values.min() >= 0)
        zero = zero or bool((values == 0).any())
        mean, variance = raw.mean_and_variance(active)
        means.append(mean)
        poisson.append(_may_be_poisson(raw.n_observed(active), mean, variance))
        if not (few or nonnegative):
            return "real"
    if binary:
        return "binary"
    if few:
        return "categorical"
    is_count = nonnegative and zero and np.median(means) <= MAX_COUNT_MEAN
    return "count" if is_count and np.mean(poisson) >= _MOST else "real"


def _hold_amounts(facts: Sequence[ColumnFacts]) -> bool:
    """Whether many columns of integers are numbers of things of different frequency, such as reads of genes.

    Their highest values differ and are rare, while those of scales and codes are few and common. One kind for all is
    better than counts, codes and measurements by chance; counts of Poisson would need clusters for their dispersion.
    """
    if len(facts) < MIN_UNIFORM_COLUMNS or not all(fact.integral and fact.low >= 0.0 for fact in facts):
        return False
    rare = [fact.n_high <= max(_MAX_HIGH_SHARE * fact.n_seen, 2.0) for fact in facts]
    return bool(np.mean(rare) >= _MOST) and len({fact.high for fact in facts}) > MAX_INFERRED_LEVELS


def _may_be_poisson(n_cells: int, mean: float, variance: float) -> bool:
    """Whether the variance is not too small for a mixture of Poisson distributions, up to two standard errors.

    A constant column says nothing.
    """
    return variance == 0.0 or variance >= (MIN_COUNT_DISPERSION - 2.0 * np.sqrt(2.0 / n_cells)) * mean


def _only_zero_and_one(values: np.ndarray) -> bool:
    # the first rows almost always decide
    return all(bool(np.all((part == 0) | (part == 1))) for part in (values[:1000], values))


# ---- tables of one measurement ---------------------------------------------------------------------------------


class ColumnFacts(NamedTuple):
    """What decides whether the columns of a table hold one measurement.

    Attributes
    ----------
    integral : bool
        Whether all observed values are integers.
    low, high : float
        The range of the observed values.
    n_seen, n_zero, n_high : int
        The numbers of observed cells, of zeros, and of cells that hold the highest value.
    values : tuple of float
        The distinct values, if they are integers and few; otherwise empty.
    mean, variance : float
        Of the observed values.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> facts_of(parse_values(np.array([0, 0, 3]), "word")).n_zero
    2
    """

    integral: bool
    low: float
    high: float
    n_seen: int
    n_zero: int
    n_high: int
    values: tuple[float, ...]
    mean: float = 0.0
    variance: float = 0.0


def facts_of(raw: RawColumn, active: np.ndarray | None = None) -> ColumnFacts:
    """Collect the facts about a column of numbers."""
    seen = raw.observed(active)
    low, high = float(seen.min()), float(seen.max())
    integral = raw.is_integral(active)
    few = integral and not has_more_distinct_than(seen, MAX_UNIFORM_COUNTS)
    n_seen, n_zero, n_high = raw.count_marks(active)
    values = tuple(distinct_values(seen)) if few else ()
    return ColumnFacts(integral, low, high, n_seen, n_zero, n_high, values, *raw.mean_and_variance(active))


def infer_uniform_kind(facts: Sequence[ColumnFacts]) -> str | None:
    """Infer one kind for all columns of a table that holds one measurement; None if it does not.

    The kind is `real` if a value is not an integer, `binary` if only 0 and 1 occur, and `count` if in nine of ten
    columns half of the cells are zero. On a bounded scale, whose highest value is common in half of the columns, it is
    `categorical` with up to 10 distinct values and `real` with more. Other integers are `count` with a zero, up to 100
    distinct values and variances that counts have in nine of ten columns, otherwise `real`. Columns of
    different range are `real` if they are numbers of things, such as reads of genes (`_hold_amounts`).

    Parameters
    ----------
    facts : sequence of ColumnFacts
        One entry per column that is not declared; all of them numbers.

    Examples
    --------
    >>> from partita.table.cells import parse_values
    >>> words = np.random.default_rng(0).poisson(0.3, size=(200, 40))
    >>> infer_uniform_kind([facts_of(parse_values(word, "w")) for word in words.T])
    'count'
    """
    if len(facts) < MIN_INTEGER_COLUMNS:
        return None
    width = max(fact.high - fact.low for fact in facts)
    mostly_zero = [fact.n_zero >= 0.5 * fact.n_seen for fact in facts]
    alike = [
        zeros or fact.high - fact.low >= _MIN_RANGE * width
        for zeros, fact in zip(mostly_zero, facts, strict=True)
    ]
    if np.mean(alike) < _MOST:
        return "real" if _hold_amounts(facts) else None
    integral, is_wide = all(fact.integral for fact in facts), len(facts) >= MIN_UNIFORM_COLUMNS
    if not integral:
        return "real" if is_wide else None
    low, high = min(fact.low for fact in facts), max(fact.high for fact in facts)
    if (low, high) in ((0.0, 1.0), (0.0, 0.0)):
        return "binary" if is_wide else None
    n_binary = sum(fact.low >= 0.0 and fact.high <= 1.0 for fact in facts)
    if is_wide and np.mean(mostly_zero) >= _MOST and low >= 0.0:
        # answers of yes and no beside a few counts are a table of several measurements
        return "count" if n_binary <= len(facts) / 2 else None
    n_distinct = len({value for fact in facts for value in fact.values})
    few = all(fact.values for fact in facts) and n_distinct <= MAX_UNIFORM_LEVELS
    reaching = [fact for fact in facts if fact.high == high]
    bounded = len(reaching) >= len(facts) / 2 and sum(fact.n_high for fact in reaching) >= (
        _MIN_BOUND_SHARE * sum(fact.n_seen for fact in reaching)
    )
    if is_wide and bounded:
        return "categorical" if few else "real"
    n_measured = sum(not 0 < len(fact.values) <= MAX_INFERRED_LEVELS for fact in facts)
    if not is_wide and n_measured < len(facts) / 2:
        return None
    counts = [_may_be_poisson(fact.n_seen, fact.mean, fact.variance) for fact in facts]
    return (
        "count"
        if low == 0.0
        and all(fact.values for fact in facts)
        and n_distinct <= MAX_UNIFORM_COUNTS
        and np.mean(counts) >= _MOST
        else "real"
    )
