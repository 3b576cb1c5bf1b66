"""A table whose rows have several known groupings, with the columns that tell each of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# of the values of a column between two groups, for a column that depends on the grouping
MIN_DIFFERENCE = 0.1


class KnownViews(NamedTuple):
    """A table with several known groupings of its rows.

    Attributes
    ----------
    X : ndarray (n_rows, n_columns)
        Integers for counts and answers on a scale, otherwise floats.
    labels : dict of str to ndarray of int
        The group of each row, per grouping.
    columns : dict of str to ndarray of int
        The columns that depend on this grouping and no other, for tables that are made by a recipe; empty for collected
        tables, where they are not known.
    """

    X: np.ndarray
    labels: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]

    @property
    def n_groups(self) -> dict[str, int]:
        return {name: int(z.max()) + 1 for name, z in self.labels.items()}


def dependent_columns(templates: np.ndarray) -> list[np.ndarray]:
    """For each grouping, the columns that depend on it and on no other.

    Parameters
    ----------
    templates : ndarray (n_groups of the first grouping, ..., n_groups of the last one, n_columns)
        The values of all columns without noise, for each combination of groups.
    """
    n_columns = templates.shape[-1]
    depends = np.array(
        [
            (np.ptp(templates, axis=axis) > MIN_DIFFERENCE).reshape(-1, n_columns).any(axis=0)
            for axis in range(templates.ndim - 1)
        ]
    )
    alone = depends.sum(axis=0) == 1
    return [np.flatnonzero(one & alone) for one in depends]
