"""Groups as people describe them: a short name and a sentence for each, by fixed rules from its traits.

A column is told if one of its cells gives at least 0.05 nats about the group, and so much that the rows of the group
together give clearly more than chance would. A sentence has the six most telling columns; in parentheses is the whole
table. A name has the most telling column, a second one if it tells nearly as much, and more only where two groups would
have the same name. A group that no column tells apart is called typical.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.descriptions.traits import Trait, find_traits
from partita.table import ColumnSchema

MAX_TELLING = 6  # columns of a sentence
MIN_TYPICAL = 10  # rows of a group of which it can be said that it is like the whole table
MAX_NAMED = 4  # columns of a name
MIN_NATS = 0.05  # information of a cell from which a column is told
MIN_TOTAL = 5.0  # the same of all cells of the group together, times the share of the other rows: a likelihood ratio of
# twice as many nats is beyond the 0.998 quantile of chi squared with one degree of freedom
# the columns of a few rows are told from this share of the largest possible information
MAX_SHARE_OF_BOUND = 0.3
NEARLY = 0.5  # of the information of the first column, from which a second one is in the name
TYPICAL, FEW, ALONE = "typical", "few rows", "all rows"


class GroupDescription(NamedTuple):
    """One group in words.

    Attributes
    ----------
    label : int
        Its label in ``labels_``; people read the number that follows it.
    size : int
        Number of rows.
    share : float
        The same as a share of all rows.
    name : str
        A few words, different for each group.
    sentence : str
        The name, and the columns that distinguish the group with the whole table in parentheses.
    telling : tuple of Trait
        These columns, the most telling one first.
    """

    label: int
    size: int
    share: float
    name: str
    sentence: str
    telling: tuple[Trait, ...]

    @property
    def number(self) -> int:
        """The number of the group for people: groups are counted from 1."""
        return self.label + 1


class GroupsDescription(NamedTuple):
    """All groups of one clustering in words, and what it was made from."""

    groups: tuple[GroupDescription, ...]  # those that have rows
    traits: list[list[Trait]]  # of each label, all columns, the most telling one first
    informative_columns: list[tuple[str, float]]  # name and information about the groups, the largest first
    sizes: np.ndarray  # rows of each label
    weights: np.ndarray  # with which the whole table is made of the groups
    n_rows: int


def describe_labels(
    labels: np.ndarray,
    profiles: Mapping[str, Mapping[str, Any]],
    schema_of: Callable[[str], ColumnSchema],
    weights: np.ndarray | None = None,
    *,
    by_members: bool = False,
    observed: Mapping[str, float] | None = None,
) -> GroupsDescription:
    """Name and describe the groups of a clustering.

    Parameters
    ----------
    labels : ndarray (n_rows,)
        Group of each row, -1 for none.
    profiles : dict
        By column, as :func:`partita.descriptions.profile_groups` and ``profiles_`` of a mixture give them. Empty: the
        groups are only numbered.
    schema_of : callable
        The schema of a column, by its name.
    weights : ndarray (n_groups,), optional
        Sizes with which the whole table is made of the groups; by default the numbers of rows.
    by_members : bool, default=False
        Whether the columns are members of an ensemble, whose labels give no names.
    observed : dict, optional
        The share of the cells of a column that are observed; by default it follows from the profiles.

    Examples
    --------
    >>> from partita.descriptions import profile_groups
    >>> from partita.table import read_table
    >>> spend = np.concatenate([np.linspace(330.2, 350.2, 50), np.linspace(10.2, 30.2, 50)])
    >>> table = read_table({"spend": spend, "channel": ["web"] * 50 + ["shop"] * 50})
    >>> z = np.repeat([0, 1], 50)
    >>> found = describe_labels(z, profile_groups(z, table, 2), table.schema.column)
    >>> found.groups[0].sentence
    'high spend, channel web: spend 340 (all: 180), channel web 100% (50%)'
    """
    labels = np.asarray(labels)
    K = max(len(weights) if weights is not None else 0, int(labels.max(initial=-1)) + 1)
    sizes = np.bincount(labels[labels >= 0], minlength=K)
    weights = sizes.astype(float) if weights is None or len(weights) != K else np.asarray(weights, float)
    traits, informative = find_traits(profiles, schema_of, weights, observed)
    shown = np.flatnonzero(sizes).tolist()
    telling = {
        k: telling_traits(traits[k], int(sizes[k]), len(labels)) if len(shown) > 1 else () for k in shown
    }
    if by_members or not profiles:
        names = {k: f"group {k + 1}" for k in shown}
    elif len(shown) == 1:
        names = {shown[0]: ALONE}
    else:
        untold = [TYPICAL if sizes[k] >= MIN_TYPICAL else FEW for k in shown]
        names = dict(zip(shown, distinct_names([telling[k] for k in shown], untold)))
    groups = tuple(
        GroupDescription(
            k,
            int(sizes[k]),
            float(sizes[k] / max(len(labels), 1)),
            names[k],
            _sentence(names[k], telling[k], bool(profiles), len(shown), int(sizes[k])),
            telling[k],
        )
        for k in shown
    )
    return GroupsDescription(groups, traits, informative, sizes, weights, len(labels))


def telling_traits(traits: Sequence[Trait], size: int, n_rows: int) -> tuple[Trait, ...]:
    """The traits that are told of a group of `size` of the rows, of all its traits in their order."""
    least = least_information(size, n_rows)
    return tuple(
        trait
        for trait in traits[:MAX_TELLING]
        if trait.nats >= (least if trait.floor is None else trait.floor)
    )


def least_information(size: int, n_rows: int) -> float:
    """Nats from which a column is told of a group: more than chance would give in a group of this size.

    Examples
    --------
    >>> (
    ...     least_information(400, 1000),
    ...     round(least_information(20, 1000), 3),
    ...     round(least_information(1, 1000), 1),
    ... )
    (0.05, 0.245, 2.1)
    """
    share = max(size, 1) / max(n_rows, 1)
    return max(MIN_NATS, min(MIN_TOTAL * (1.0 - share) / max(size, 1), -MAX_SHARE_OF_BOUND * math.log(share)))


def distinct_names(telling: Sequence[Sequence[Trait]], untold: Sequence[str]) -> list[str]:
    """A name for each group, from its telling traits; groups with the same name get further words, then numbers.

    `untold` are the names of groups that no column tells apart.
    """
    n_words = [_n_words(traits) for traits in telling]
    names = [_name(traits, n, False) or other for traits, n, other in zip(telling, n_words, untold)]
    for _ in range(MAX_NAMED):
        shared = _shared(names)
        if not shared:
            return names
        for i in shared:
            n_words[i] += 1
            names[i] = _name(telling[i], n_words[i], False) or untold[i]
    for i in _shared(names):
        names[i] = _name(telling[i], _n_words(telling[i]), True) or untold[i]
    seen: Counter[str] = Counter()
    for i, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[i] = f"{name} ({seen[name]})"
    return names


def _shared(names: Sequence[str]) -> list[int]:
    """Positions of names that occur more than once."""
    times = Counter(names)
    return [i for i, name in enumerate(names) if times[name] > 1]


def _worded(traits: Sequence[Trait]) -> list[Trait]:
    """The traits that names are made of; those that are only medium or varied come last."""
    worded = [trait for trait in traits if trait.reading.words]
    return sorted(worded, key=lambda trait: not trait.reading.is_clear)


def _n_words(traits: Sequence[Trait]) -> int:
    """One column, or two if the second one tells nearly as much."""
    worded = _worded(traits)
    return 1 + int(len(worded) > 1 and worded[1].nats >= NEARLY * worded[0].nats)


def _name(traits: Sequence[Trait], n_words: int, exact: bool) -> str:
    worded = [trait.reading for trait in _worded(traits)[: min(n_words, MAX_NAMED)]]
    return ", ".join(reading.exact if exact else reading.words for reading in worded)


def _sentence(name: str, traits: Sequence[Trait], known: bool, n_groups: int, size: int) -> str:
    if not known:
        return f"{name}: the columns are not known; describe it by a table of the same rows"
    if n_groups == 1:
        return f"{name}: there is one group"
    if not traits and size < MIN_TYPICAL:
        return f"{name}: no column distinguishes {'it' if size == 1 else 'them'} clearly"
    if not traits:
        return f"{name}: near the whole table in every column"
    facts = [
        f"{trait.reading.fact} ({'all: ' if i == 0 else ''}{trait.reading.contrast})"
        for i, trait in enumerate(traits)
    ]
    return f"{name}: {', '.join(facts)}"
