"""A second opinion: whether an ensemble of k-means clusterings finds the same groups.

Chains of the same model can agree even if the model does not fit the data. Evidence accumulation assumes little about
the shape of a group and is fast on a sample of the rows; its agreement with the result shows whether the groups depend
on the model. The level of the grain that agrees best with the clusterings of the ensemble is often coarser than the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from partita.ensembles import Features, Recipe, fit_members, learn_scaling, scaled
from partita.metrics import adjusted_rand
from partita.posterior.grain import Grain
from partita.table import Table

MAX_ROWS = 1000  # of the sample: the time grows with its square
MIN_ROWS = 10
N_MEMBERS = 20
SEED = 0  # fixed: the second opinion does not depend on the seed of the fit


class SecondOpinion(NamedTuple):
    """What an ensemble of k-means clusterings says of a sample of the rows."""

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]  # of their consensus
    members: NDArray[np.int16]  # labels [member, row]

    def agreement(self, labels: NDArray[np.integer]) -> float:
        """Adjusted Rand index of the consensus with labels of all rows of the table."""
        return float(adjusted_rand(labels[self.rows], self.labels))

    def agreement_by_level(self, grain: Grain) -> NDArray[np.float64]:
        """Mean adjusted Rand index of the members with the levels of a grain that have 1, 2, ... groups.

        The members have different numbers of groups, so that no single scale decides, as that of the consensus would.
        """
        levels = (grain.at(K)[self.rows] for K in range(1, grain.n_groups + 1))
        return np.array([np.mean([adjusted_rand(z, member) for member in self.members]) for z in levels])


def ask_ensemble(table: Any, labels: NDArray[np.integer]) -> SecondOpinion | None:
    """The groups of an ensemble in a sample of the rows that have labels.

    None if the table is not in memory, is sparse, or has very few rows.

    Examples
    --------
    >>> from partita.table import read_table
    >>> z = np.repeat([0, 1, 2], 20)
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 9.0 * np.column_stack([z == 1, z == 2])
    >>> ask_ensemble(read_table(X), z).agreement(z)
    1.0
    """
    if not isinstance(table, Table) or table.sparse is not None:
        return None
    rows = np.flatnonzero((table.weights > 0) & (labels >= 0))
    if len(rows) < MIN_ROWS:
        return None
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).round().astype(np.int64))]
    members = _cluster_sample(table.take(rows))
    return SecondOpinion(rows, consensus_of(members), members)


def _cluster_sample(table: Table) -> NDArray[np.int16]:
    """Labels [member, row] by k-means with different numbers of clusters."""
    scaling = learn_scaling(table)
    features = Features(scaled(table, scaling), scaling, table.schema)
    return np.array(
        [member.labels for member in fit_members(features, Recipe("kmeans"), N_MEMBERS, SEED)], np.int16
    )


def consensus_of(members: NDArray[np.int16]) -> NDArray[np.int64]:
    """Labels by evidence accumulation: average link of how often the members put two rows together.

    The number of groups is where the tree can be cut over the widest range of heights.

    Examples
    --------
    >>> consensus_of(np.array([[0, 0, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 2]], np.int16))
    array([1, 1, 2, 2, 2])
    """
    n_rows = members.shape[1]
    together = np.mean([labels[:, None] == labels for labels in members], axis=0)
    tree = linkage(1.0 - together[np.triu_indices(n_rows, 1)], "average")
    longest = int(np.diff(tree[:, 2]).argmax())  # between the merge into K + 1 and that into K groups
    return fcluster(tree, n_rows - 1 - longest, "maxclust").astype(np.int64)


def pack_opinion(opinion: SecondOpinion | None) -> list[np.ndarray] | None:
    """A second opinion as plain data."""
    return None if opinion is None else list(opinion)


def unpack_opinion(state: Sequence[np.ndarray] | None) -> SecondOpinion | None:
    """The inverse of :func:`pack_opinion`."""
    return None if state is None else SecondOpinion(*state)
