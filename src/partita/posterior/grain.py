"""A clustering at several scales: a tree over its groups, with the support of each level.

No rule finds the scale at which somebody draws classes. So a clustering comes with a tree: from its finest groups, two
groups are joined in each step, and every number of groups has labels, which are nested, and a support. The three best
supported levels, a coarse, a medium and a fine one, are the alternatives to the one answer of a model. Where there are
other clusterings of the same rows, the level that agrees best with them is known too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Numbers of groups, least and most, of the alternatives; None is no bound.
BANDS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {"coarse": (2, 3), "medium": (4, 8), "fine": (9, None)}
)
AGREED = "agreed"  # name of the level that agrees best with other clusterings
# What the height of a join can be, and what it means.
HEIGHTS = {
    "confusion": "share of the rows of one group that would be confused with the other",
    "dissimilarity": "dissimilarity of the two groups, by the linkage of the tree",
    "members apart": "1 minus the share of the members that put an object of one group with one of the other",
    "information loss": "information about the labels of a member that is lost, in nats per object",
    "log-likelihood ratio": "largest possible log-likelihood ratio of a pair, minus the mean ratio of the pairs",
    "probability of the join": "minus the log probability that the two groups are one cluster",
}
# What the support of a level can be, and what it means.
SUPPORTS = {
    "probability": "probability of being in one cluster with the others of the group, minus that for the next group",
    "lifetime": "range of heights over which the tree has so many groups, as a share of the height of its root",
    "members": "share of the members that put an object with the others of its group, minus that for the next",
}


class Alternative(NamedTuple):
    """One of the answers that a grain offers: the best supported level with so many groups.

    ``splits`` says what has changed from the alternative before it, which is coarser: by its group, the groups of this
    one that are parts of it. Groups that are in both are left out.
    """

    name: str  # "coarse", "medium" or "fine"
    n_clusters: int
    labels: NDArray[np.int64]  # 0 is the largest group; -1 belongs to none
    support: float
    splits: dict[int, tuple[int, ...]]


class Grain(NamedTuple):
    """A tree over the groups of a clustering.

    The finest groups are the nodes 0, 1, ..., G - 1; step t joins the two nodes ``joins[t]`` into the node G + t, so
    that G - 1 - t groups are left. :meth:`at` gives the labels of every number of groups.

    Attributes
    ----------
    labels : ndarray (n_rows,)
        Finest group of each row; -1 belongs to no group at any level.
    joins : ndarray (G - 1, 2)
        The nodes that are joined, step by step, the smaller number first.
    heights : ndarray (G - 1,)
        Height of each step, see ``height_meaning``.
    support : ndarray (G,)
        Support of the levels with 1, 2, ..., G groups, between 0 and 1; high is good. See ``support_meaning``.
    sizes : ndarray (G,)
        Total weight of the rows of each finest group.
    height_kind, support_kind : str
        What heights and supports are: keys of ``HEIGHTS`` and ``SUPPORTS``.
    agreement : ndarray (G,) or None
        Agreement of the levels with 1, 2, ..., G groups with other clusterings of the rows (mean adjusted Rand index);
        None where there are none.

    Examples
    --------
    >>> sizes = np.array([3.0, 2.0, 1.0])
    >>> joins, heights, support = np.array([[1, 2], [0, 3]]), np.array([0.1, 0.9]), np.array([0.4, 0.8, 0.5])
    >>> grain = Grain(
    ...     np.array([0, 0, 0, 1, 1, 2]), joins, heights, support, sizes, "dissimilarity", "probability"
    ... )
    >>> grain.at(3), grain.at(2)
    (array([0, 0, 0, 1, 1, 2]), array([0, 0, 0, 1, 1, 1]))
    >>> grain.parts(2, 3)
    {0: (0,), 1: (1, 2)}
    >>> [(one.name, one.n_clusters) for one in grain.alternatives()]
    [('coarse', 2)]
    """

    labels: NDArray[np.int64]
    joins: NDArray[np.int64]
    heights: NDArray[np.float64]
    support: NDArray[np.float64]
    sizes: NDArray[np.float64]
    height_kind: str
    support_kind: str
    agreement: NDArray[np.float64] | None = None

    # ---- what the numbers are ------------------------------------------------------------------------------------

    @property
    def n_groups(self) -> int:
        """Number of the finest groups."""
        return len(self.sizes)

    @property
    def n_clusters_range(self) -> tuple[int, int]:
        """Smallest and largest number of groups."""
        return min(1, self.n_groups), self.n_groups

    @property
    def height_meaning(self) -> str:
        """What the height of a join is, in words."""
        return HEIGHTS[self.height_kind]

    @property
    def support_meaning(self) -> str:
        """What the support of a level is, in words."""
        return SUPPORTS[self.support_kind]

    # ---- levels --------------------------------------------------------------------------------------------------

    def at(self, n_clusters: int) -> NDArray[np.int64]:
        """Group of each row where there are so many groups; 0 is the largest, and -1 stays -1."""
        return np.append(self.groups(n_clusters), -1)[self.labels]

    def groups(self, n_clusters: int) -> NDArray[np.int64]:
        """For each finest group, the number of its group where there are ``n_clusters``, the largest group first.

        Groups of equal size are in the order of their first finest groups.
        """
        G = self.n_groups
        self._check(n_clusters)
        if n_clusters == G:
            return np.arange(G)
        node = np.arange(2 * G - 1)
        for t in range(
            G - n_clusters - 1, -1, -1
        ):  # from the top, so that a node knows its group before its parts
            node[self.joins[t]] = node[G + t]
        _, first, group = np.unique(node[:G], return_index=True, return_inverse=True)
        sizes = np.bincount(group, self.sizes)
        rank = np.empty(len(sizes), np.int64)
        rank[np.lexsort((first, -sizes))] = np.arange(len(sizes))
        return rank[group]

    def parts(self, n_clusters: int, finer: int) -> dict[int, tuple[int, ...]]:
        """For each group where there are ``n_clusters``, the groups of the finer level that are in it."""
        if finer < n_clusters:
            raise ValueError(f"finer is {finer}: give at least n_clusters, {n_clusters}")
        coarse, fine = self.groups(n_clusters), self.groups(finer)
        return {k: tuple(np.unique(fine[coarse == k]).tolist()) for k in range(n_clusters)}

    def splits(self, n_clusters: int, finer: int) -> dict[int, tuple[int, ...]]:
        """The groups of :meth:`parts` that have more than one part: what is split towards the finer level."""
        return {k: parts for k, parts in self.parts(n_clusters, finer).items() if len(parts) > 1}

    @property
    def agreed(self) -> int | None:
        """The number of groups, at least two, that agrees best with other clusterings; the smallest of several.

        Examples
        --------
        >>> sizes, joins = np.array([3.0, 2.0, 1.0]), np.array([[1, 2], [0, 3]])
        >>> grain = Grain(
        ...     np.repeat([0, 1, 2], [3, 2, 1]),
        ...     joins,
        ...     np.zeros(2),
        ...     np.zeros(3),
        ...     sizes,
        ...     "confusion",
        ...     "probability",
        ...     np.array([0.0, 0.9, 0.7]),
        ... )
        >>> grain.agreed, grain.n_clusters_at("agreed")
        (2, 2)
        """
        if self.agreement is None or self.n_groups < 2:
            return None
        return 2 + int(np.argmax(self.agreement[1:]))

    # ---- alternatives --------------------------------------------------------------------------------------------

    def alternatives(self, bands: Mapping[str, tuple[int, int | None]] = BANDS) -> list[Alternative]:
        """The best supported level in each band of numbers of groups, from coarse to fine.

        Parameters
        ----------
        bands : mapping of names to pairs
            Least and most groups of each band; None is no bound. By default 2 to 3 groups are coarse, 4 to 8 medium,
            and more are fine.

        Returns
        -------
        list of Alternative
            Bands without a level are left out.
        """
        found: list[Alternative] = []
        for name, (low, high) in bands.items():
            last = self.n_groups if high is None else min(high, self.n_groups)
            if low > last:
                continue
            K = low + int(np.argmax(self.support[low - 1 : last]))
            splits = self.splits(found[-1].n_clusters, K) if found and found[-1].n_clusters <= K else {}
            found.append(Alternative(name, K, self.at(K), float(self.support[K - 1]), splits))
        return found

    def n_clusters_at(self, at: Any) -> int:
        """The number of groups that a user means: a number, the name of an alternative, or "agreed"."""
        if not isinstance(at, str):
            self._check(at)
            return int(at)
        found = {one.name: one.n_clusters for one in self.alternatives()}
        if self.agreed is not None:
            found[AGREED] = self.agreed
        if at not in found:
            has = ", ".join(f"{name!r} ({K} groups)" for name, K in found.items())
            instead = f"it has {has}" if has else "it has no alternatives"
            low, high = self.n_clusters_range
            raise ValueError(
                f"this answer has no alternative {at!r}: {instead}; a number of groups from {low} to {high} is also "
                "possible"
            )
        return found[at]

    def _check(self, n_clusters: Any) -> None:
        low, high = self.n_clusters_range
        is_number = isinstance(n_clusters, (int, np.integer)) and not isinstance(n_clusters, bool)
        if not is_number or not low <= n_clusters <= high:
            raise ValueError(
                f"no level with {n_clusters!r} groups: this answer has groups for {low} to {high}; fit the model with "
                "n_clusters= for others"
            )


class GrainLevel(NamedTuple):
    """An answer at another scale, from ``model.at(n_clusters)``: what the model would show with so many groups."""

    n_clusters: int
    labels: NDArray[np.int64]  # 0 is the largest group; -1 belongs to none
    confidence: (
        NDArray[np.float64] | None
    )  # of each label, see `confidence_kind_`; None where the model has none
    support: float
    profiles: Any  # as `profiles_` of the model; None where it has none


def checked_grain(grain: Grain, n_rows: int) -> Grain:
    """The same grain; raises if its arrays are not a tree over groups of so many rows."""
    G = len(grain.sizes)
    shapes = {"labels": (n_rows,), "joins": (max(G - 1, 0), 2), "heights": (max(G - 1, 0),), "support": (G,)}
    for name, shape in shapes.items():
        if np.shape(getattr(grain, name)) != shape:
            raise ValueError(
                f"{name} of the grain has the shape {np.shape(getattr(grain, name))}, not {shape}"
            )
    if grain.agreement is not None and np.shape(grain.agreement) != (G,):
        raise ValueError(f"agreement of the grain has the shape {np.shape(grain.agreement)}, not {(G,)}")
    if grain.height_kind not in HEIGHTS or grain.support_kind not in SUPPORTS:
        raise ValueError(f"the grain has heights {grain.height_kind!r} and support {grain.support_kind!r}")
    if grain.labels.dtype.kind != "i" or not ((grain.labels >= -1) & (grain.labels < G)).all():
        raise ValueError(f"the labels of the grain are not -1 to {G - 1}")
    check_joins(grain.joins)
    return grain


def check_joins(joins: ArrayLike) -> None:
    """Refuse joins that are not a tree: each node but the root is joined once, after it was made."""
    joins = np.asarray(joins)
    G = len(joins) + 1
    made = G + np.arange(G - 1)[:, None]
    is_tree = joins.dtype.kind == "i" and (joins < made).all()
    if not is_tree or not np.array_equal(np.sort(joins, axis=None), np.arange(2 * (G - 1))):
        raise ValueError(f"the joins are not a tree over {G} groups")
