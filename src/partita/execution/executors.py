"""Executors: the same map over blocks of rows, one after the other, in threads, in processes or on a cluster.

Blocks are cut by a fixed size and results come back in the order of the blocks, so that sums are added in the
same order whatever the number of jobs: the answer does not depend on it. Kernels release the interpreter's
lock, which is why threads are enough in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np

__all__ = ["CHUNK_ROWS", "Executor", "Processes", "Serial", "Threads", "make_executor", "row_chunks"]

CHUNK_ROWS = 4096  # a block's responsibilities stay in the processor's cache


class Executor(Protocol):
    """Anything with an ordered map."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        ...


class Serial:
    """One block after the other."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        return map(function, items)


class Threads:
    """Blocks in joblib threads; as many as ``n_jobs`` says (-1: one a core)."""

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        from joblib import Parallel, delayed

        # return_as="generator" keeps the order and lets the caller add results up while others still run
        parallel = Parallel(n_jobs=self.n_jobs, backend="threading", return_as="generator")
        return parallel(delayed(function)(item) for item in items)


class Processes(Threads):
    """Shards of a table in joblib processes, which read them by themselves; what is in memory stays in threads."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        if not getattr(function, "travels", False):  # a closure over arrays of this process
            return super().map(function, items)
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        return parallel(delayed(function)(item) for item in items)


def make_executor(n_jobs: int | None, executor: Any = None) -> Any:
    """The executor for a number of jobs (None or 1: serial), or the one that is asked for.

    Parameters
    ----------
    n_jobs : int or None
        Threads or processes; -1 is one a core.
    executor : None, "threads", "processes", a Dask client, or an address of its scheduler
        Where the work runs.

    Examples
    --------
    >>> list(make_executor(2).map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    if n_jobs == 0:
        raise ValueError("n_jobs is 0: give the number of threads, -1 for one a core, or None for one")
    if executor is None or (isinstance(executor, str) and executor == "threads"):
        return Serial() if n_jobs in (None, 1) else Threads(int(n_jobs))  # type: ignore[arg-type]
    if isinstance(executor, str) and executor == "processes":
        return Processes(-1 if n_jobs is None else int(n_jobs))
    if not isinstance(executor, str) and hasattr(executor, "map") and not hasattr(executor, "submit"):
        return executor
    from partita.execution.cluster import make_cluster

    return make_cluster(executor)


def row_chunks(n_rows: int, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[np.ndarray]:
    """Row indices of each block.

    Where these rows are part of a table, and the first of them is its row ``start``, blocks end where those of the
    whole table do.

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
        yield np.arange(lo, hi)
        lo = hi
