"""How much each column tells about each group, and how the group and the whole table read in that column.

How strongly a column distinguishes a group is measured by the relative entropy of the distribution of the column in the
group to its distribution in the whole table: the information that one cell of a row of the group gives about its
membership, on average. A missing cell gives none. It is comparable across kinds of columns. It cannot exceed
``-log(share of the group)``, and is given as a fraction of this bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from partita.descriptions.columns import DescribedColumn, Reading, described_column
from partita.table import ColumnSchema

MAX_TRAITS = 20_000  # columns x groups, of which all are described; of more,
N_OWN, N_COMMON = 12, 30  # those that tell most about the group, and those that tell most about all groups


class Trait(NamedTuple):
    """One column in one group, compared with the whole table, as text."""

    column: str
    kind: str
    here: str  # "1.1 ± 0.1", or the share of the level that differs most: "62% web"
    whole: str
    strength: float  # from 0 (as in the whole table) to 1 (one cell identifies the group)
    nats: float  # the same as information
    reading: Reading
    floor: float | None = None  # nats from which the column is told; None: by the rule of all columns


def find_traits(
    profiles: Mapping[str, Mapping[str, Any]],
    schema_of: Callable[[str], ColumnSchema],
    weights: np.ndarray,
    observed: Mapping[str, float] | None = None,
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
    observed : dict, optional
        The share of the cells of a column that are observed; by default it follows from the ``n`` of the profiles.

    Returns
    -------
    traits : list of list of Trait
        By group. In wide tables with many groups only the most telling columns are described.
    informative : list of (str, float)
        Name and information of each column, the largest first.
    """
    shares = np.maximum(np.asarray(weights, float), 1e-300)
    shares = shares / shares.sum()
    possible = -np.log(shares)
    names = list(profiles)
    known = observed_shares(profiles) | dict(observed or {})
    described = []
    nats = np.zeros((len(names), len(shares)))
    for d, name in enumerate(names):
        n = np.maximum(np.asarray(profiles[name].get("n", weights), float), 1e-300)
        described.append(described_column(schema_of(name), profiles[name], n / n.sum()))
        nats[d] = known.get(name, 1.0) * np.clip(np.nan_to_num(described[d].information()), 0.0, possible)
    about = nats @ shares
    by_information = np.argsort(-about, kind="stable")
    traits = []
    for k in range(len(shares)):
        order = np.argsort(-nats[:, k], kind="stable")
        if nats.size > MAX_TRAITS:  # texts of all columns in all groups would fill the memory
            kept = np.zeros(len(names), bool)
            kept[order[:N_OWN]] = kept[by_information[:N_COMMON]] = True
            order = order[kept[order]]
        scale = 1.0 / possible[k] if possible[k] > 0 else 0.0
        traits.append([_trait(described[d], k, nats[d, k], scale) for d in order.tolist()])
    return traits, [(names[d], float(about[d])) for d in by_information.tolist()]


def observed_shares(profiles: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The share of the cells of each column that are observed, relative to the column with the fewest missing cells.

    Examples
    --------
    >>> observed_shares({"a": {"n": np.array([3.0, 5.0])}, "b": {"n": np.array([3.0, 1.0])}, "c": {}})
    {'a': 1.0, 'b': 0.5}
    """
    totals = {name: float(np.sum(profile["n"])) for name, profile in profiles.items() if "n" in profile}
    most = max(totals.values(), default=0.0)
    return {name: total / most for name, total in totals.items()} if most > 0 else {}


def _trait(column: DescribedColumn, k: int, nats: float, scale: float) -> Trait:
    found = column.read(k)
    known = column.column
    return Trait(
        known.name,
        known.kind,
        found.here,
        found.whole,
        float(nats * scale),
        float(nats),
        found,
        column.floor(k),
    )
