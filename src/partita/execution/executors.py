"""Executors: an ordered map over chunks of rows, run serially, in threads, in processes or on a cluster.

Chunks have a fixed size and results come back in the order of the chunks. Sums are therefore added in the same order
for any number of jobs, and the result does not depend on it. Kernels release the global interpreter lock, so threads
are sufficient for data in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

CHUNK_ROWS = 4096  # the responsibilities of this many rows fit into the processor's cache


class Executor(Protocol):
    """An object with an ordered map."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        ...


class Serial:
    """Run one task after the other."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        return map(function, items)


class Threads:
    """Run tasks in ``n_jobs`` joblib threads (-1: one per core)."""

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        from joblib import Parallel, delayed

        # return_as="generator" keeps the order, and the caller can add up results while other tasks still run
        parallel = Parallel(n_jobs=self.n_jobs, backend="threading", return_as="generator")
        return parallel(delayed(function)(item) for item in items)


class Processes(Threads):
    """Run passes over shards in joblib processes, which read the shards themselves; data in memory use threads."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        if not getattr(function, "travels", False):  # a closure over arrays of this process stays in it
            return super().map(function, items)
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        return parallel(delayed(function)(item) for item in items)


def make_executor(n_jobs: int | None, executor: Any = None) -> Any:
    """Return the executor for a number of jobs (None or 1: serial), or the requested one.

    Parameters
    ----------
    n_jobs : int or None
        The number of threads or processes; -1 means one per core.
    executor : {"threads", "processes", "dask"}, Dask client, address of a scheduler or None, default=None
        Where the work runs.

    Examples
    --------
    >>> list(make_executor(2).map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    if n_jobs == 0:
        raise ValueError(
            "n_jobs is 0: use a positive number of jobs, -1 for one per core, or None for one job"
        )
    if executor is None or (isinstance(executor, str) and executor == "threads"):
        return Serial() if n_jobs in (None, 1) else Threads(int(n_jobs))  # type: ignore[arg-type]
    if isinstance(executor, str) and executor == "processes":
        return Processes(-1 if n_jobs is None else int(n_jobs))
    if not isinstance(executor, str) and hasattr(executor, "map") and not hasattr(executor, "submit"):
        return executor
    from partita.execution.cluster import make_cluster

    return make_cluster(executor)


def n_workers(executor: Any) -> int:
    """How many calls an executor runs at once, on the processors that this process may use."""
    n_jobs = getattr(executor, "n_jobs", 1)
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


class Part(NamedTuple):
    """One of several parts of a table, which have every n-th chunk of its rows each.

    Rows from everywhere in the table are in each part, whatever the order of the table is, and in the same part
    wherever the table is.
    """

    number: int
    of: int

    def has(self, row: int) -> bool:
        """Whether the chunk that begins with this row of the table belongs to the part."""
        return row // CHUNK_ROWS % self.of == self.number

    def count(self, n_rows: int) -> int:
        """How many rows the part has of a table of ``n_rows``.

        Examples
        --------
        >>> [Part(number, 3).count(5 * CHUNK_ROWS + 7) for number in range(3)]
        [8192, 8192, 4103]
        """
        n_chunks, rest = divmod(n_rows, CHUNK_ROWS)
        whole = len(range(self.number, n_chunks, self.of))
        return whole * CHUNK_ROWS + (rest if self.has(n_rows - rest) else 0)

    def rows(self, places: Any) -> Any:
        """The rows of the table at these places among the rows of the part; an array of any library.

        Examples
        --------
        >>> Part(1, 3).rows(np.array([0, CHUNK_ROWS - 1, CHUNK_ROWS])) - CHUNK_ROWS
        array([    0,  4095, 12288])
        """
        return (places // CHUNK_ROWS * self.of + self.number) * CHUNK_ROWS + places % CHUNK_ROWS


def row_chunks(
    n_rows: int, size: int = CHUNK_ROWS, start: int = 0, part: Part | None = None
) -> Iterator[np.ndarray]:
    """Yield the row indices of each chunk.

    If the rows are part of a larger table, in which the first of them has the number ``start``, the chunks end at the
    same rows as the chunks of the whole table. With ``part``, only its chunks are given.

    Examples
    --------
    >>> [len(rows) for rows in row_chunks(5, size=2)]
    [2, 2, 1]
    >>> [len(rows) for rows in row_chunks(5, size=2, start=7)]
    [1, 2, 2]
    """
    lo = 0
    while lo < n_rows:
        hi = min(lo + size - (start + lo) % size, n_rows)
        if part is None or part.has(start + lo):
            yield np.arange(lo, hi)
        lo = hi
