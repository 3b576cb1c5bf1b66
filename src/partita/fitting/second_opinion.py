"""A second opinion: whether an ensemble of k-means clusterings finds the same groups.

Chains of the same model can agree even if the model does not fit the data. Evidence accumulation assumes little about
the shape of a group and is fast on a sample of the rows; its agreement with the result shows whether the groups depend
on the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from partita.ensembles import Features, Recipe, fit_members, learn_scaling, scaled
from partita.metrics import adjusted_rand
from partita.table import Table

MAX_ROWS = 1000  # of the sample: the time grows with its square
MIN_ROWS = 10
N_MEMBERS = 20
SEED = 0  # fixed: the second opinion does not depend on the seed of the fit


def second_opinion(table: Any, labels: NDArray[np.integer]) -> float | None:
    """Adjusted Rand index between the labels and the groups that an ensemble finds in a sample of the rows.

    None if the table is not in memory, is sparse, or has very few rows.

    Examples
    --------
    >>> from partita.table import read_table
    >>> z = np.repeat([0, 1, 2], 20)
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 9.0 * np.column_stack([z == 1, z == 2])
    >>> second_opinion(read_table(X), z)
    1.0
    """
    if not isinstance(table, Table) or table.sparse is not None:
        return None
    rows = np.flatnonzero((table.weights > 0) & (labels >= 0))
    if len(rows) < MIN_ROWS:
        return None
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).round().astype(np.int64))]
    return float(adjusted_rand(labels[rows], ensemble_labels(table.take(rows))))


def ensemble_labels(table: Table) -> NDArray[np.int64]:
    """Labels by evidence accumulation: average link of how often k-means puts two rows together.

    The number of groups is where the tree can be cut over the widest range of heights.
    """
    scaling = learn_scaling(table)
    features = Features(scaled(table, scaling), scaling, table.schema)
    members = fit_members(features, Recipe("kmeans"), N_MEMBERS, SEED)
    together = np.mean([member.labels[:, None] == member.labels for member in members], axis=0)
    tree = linkage(1.0 - together[np.triu_indices(table.n_rows, 1)], "average")
    longest = int(np.diff(tree[:, 2]).argmax())  # between the merge into K + 1 and that into K groups
    return fcluster(tree, table.n_rows - 1 - longest, "maxclust")
