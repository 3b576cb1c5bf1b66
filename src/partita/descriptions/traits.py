"""How much each column tells about each group, and how the group and the whole table read in that column.

How strongly a column distinguishes a group is measured by the relative entropy of the distribution of the column in the
group to its distribution in the whole table: the information that one cell of a row of the group gives about its
membership, on average. It is comparable across kinds of columns. It cannot exceed ``-log(share of the group)``, and is
given as a fraction of this bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from partita.descriptions.columns import Reading, described_column
from partita.table import ColumnSchema


class Trait(NamedTuple):
    """One column in one group, compared with the whole table, as text."""

    column: str
    kind: str
    here: str  # "1.1 ± 0.1", or the share of the level that differs most: "62% web"
    whole: str
    strength: float  # from 0 (as in the whole table) to 1 (one cell identifies the group)
    nats: float  # the same as information
    reading: Reading


def find_traits(
    profiles: Mapping[str, Mapping[str, Any]],
    schema_of: Callable[[str], ColumnSchema],
    weights: np.ndarray,
) -> tuple[list[list[Trait]], list[tuple[str, float]]]:
    """The traits of each group, the strongest first, and all columns by their information about the groups.

    Parameters
    ----------
    profiles : dict
        By column, as :func:`partita.descriptions.profile_groups` and ``profiles_`` of a mixture give them.
    schema_of : callable
        The schema of a column, by its name.
    weights : ndarray (n_groups,)
        Sizes of the groups.

    Returns
    -------
    traits : list of list of Trait
        By group.
    informative : list of (str, float)
        Name and information of each column, the largest first.
    """
    shares = np.maximum(np.asarray(weights, float), 1e-300)
    shares = shares / shares.sum()
    possible = -np.log(shares)
    traits: list[list[Trait]] = [[] for _ in shares]
    informative = []
    for name, profile in profiles.items():
        observed = np.maximum(np.asarray(profile.get("n", weights), float), 1e-300)
        column = schema_of(name)
        described = described_column(column, profile, observed / observed.sum())
        nats = np.clip(np.nan_to_num(described.information()), 0.0, possible)
        for k in range(len(shares)):
            strength = float(nats[k] / possible[k]) if possible[k] > 0 else 0.0
            found = described.read(k)
            traits[k].append(
                Trait(name, column.kind, found.here, found.whole, strength, float(nats[k]), found)
            )
        informative.append((name, float(shares @ nats)))
    for one in traits:
        one.sort(key=lambda trait: -trait.strength)
    return traits, sorted(informative, key=lambda item: -item[1])
