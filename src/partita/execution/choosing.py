"""Where a table is read and fitted: in memory, in blocks, or on a cluster; estimated before anything is allocated."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from partita.execution.cluster import Cluster, DaskChunks, running_client
from partita.execution.memory import memory_limit
from partita.execution.sources import ChunkSource

__all__ = ["Choice", "choose"]

FITS = 0.25  # share of what a fit may take that a table may, to be read into memory of its own accord
CELLS = 4e8  # cells x clusters that one core passes over in a second, about


class Choice(NamedTuple):
    """Where the work is done, and about what it takes."""

    where: str  # "memory", "blocks" or "cluster"
    table_bytes: int | None  # in memory, as it is read; None where the number of rows is not known yet
    pass_seconds: float | None  # of one pass on one core

    @property
    def sentence(self) -> str:
        """For people."""
        places = {
            "memory": "in memory",
            "blocks": "in blocks of rows",
            "cluster": "where the blocks are, on Dask",
        }
        if self.table_bytes is None:
            return f"the work is done {places[self.where]}; the number of rows is not known yet"
        return (
            f"the work is done {places[self.where]}: the table takes about {self.table_bytes / 1e9:,.3g} GB in memory, "
            f"a pass over it about {self.pass_seconds:,.2g} s on one core"
        )


def choose(
    source: ChunkSource,
    n_clusters: int,
    executor: Any = None,
    *,
    in_chunks: bool = False,
    verbose: Any = False,
) -> Choice:
    """Choose, and say so.

    Parameters
    ----------
    source : ChunkSource
    n_clusters : int
        Of the model, at most.
    executor : Executor, optional
    in_chunks : bool
        Whether the user has asked for blocks by opening them.
    verbose : bool
        Whether to print the choice to standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.execution import open_chunks
    >>> choose(open_chunks(np.zeros((1000, 10))), 5).where
    'memory'
    """
    known = bool(source.sizes) or not isinstance(source, DaskChunks)
    n_cells = source.n_rows * source.n_columns if known else None
    remote = isinstance(executor, Cluster) or (
        isinstance(source, DaskChunks) and running_client() is not None
    )
    limit = memory_limit()
    if remote:
        where = "cluster"
    elif in_chunks or isinstance(source, DaskChunks):
        where = "blocks"
    else:
        where = "memory" if limit is None or n_cells is None or 8 * n_cells <= FITS * limit else "blocks"
    choice = Choice(
        where,
        None if n_cells is None else 8 * n_cells,
        None if n_cells is None else n_cells * n_clusters / CELLS,
    )
    if verbose:
        print(choice.sentence, file=sys.stderr)
    return choice
