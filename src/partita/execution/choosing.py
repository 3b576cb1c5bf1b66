"""Choose where a table is read and fitted: in memory, in chunks or on a cluster, before anything is allocated."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from partita.execution.cluster import Cluster, DaskChunks, running_client
from partita.execution.memory import memory_limit
from partita.execution.sources import ChunkSource

TABLE_SHARE = 0.25  # a table that takes at most this share of the memory limit is read as a whole
CELLS_PER_SECOND = 4e8  # cells times clusters that one core passes over per second, roughly


class Choice(NamedTuple):
    """Where the work is done, and estimates of its size."""

    where: str  # "memory", "chunks" or "cluster"
    table_bytes: int | None  # of the table in memory; None if the number of rows is not known yet
    pass_seconds: float | None  # of one pass over all rows on one core

    @property
    def sentence(self) -> str:
        """The choice as a sentence for users."""
        places = {
            "memory": "in memory",
            "chunks": "in chunks of rows",
            "cluster": "on the Dask workers that hold the chunks",
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
    """Choose where the work is done, from the size of the table.

    Parameters
    ----------
    source : ChunkSource
        The table.
    n_clusters : int
        The largest number of clusters of the model.
    executor : Executor, optional
        Where the user wants the work to run.
    in_chunks : bool, default=False
        Whether the user has opened the table with ``open_chunks``: it is then never read as a whole.
    verbose : bool, default=False
        Whether to print the choice to standard error.

    Returns
    -------
    Choice

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
        where = "chunks"
    else:
        where = (
            "memory" if limit is None or n_cells is None or 8 * n_cells <= TABLE_SHARE * limit else "chunks"
        )
    choice = Choice(
        where,
        None if n_cells is None else 8 * n_cells,
        None if n_cells is None else n_cells * n_clusters / CELLS_PER_SECOND,
    )
    if verbose:
        print(choice.sentence, file=sys.stderr)
    return choice
