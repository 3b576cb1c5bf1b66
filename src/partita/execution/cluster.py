"""Dask: collections as tables in blocks, and passes that run where the blocks are.

A block stays with the worker that has read it; what travels are parameters, labels and statistics. Nothing is
scattered: a result that is lost with its worker is made again from the task that made it, by another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.execution.shards import FAN, Shards, fold_with
from partita.execution.sources import ChunkSource, Rows

__all__ = ["Cluster", "ClusterShards", "DaskChunks", "find_dask", "make_cluster"]

PATIENCE = 20.0  # seconds without a result after which the workers are counted


class DaskChunks(ChunkSource):
    """A Dask array or data frame by its row chunks; the number of their rows may not be known yet."""

    def __init__(self, chunks: Sequence[Any], n_columns: int, sizes: Sequence[float] | None):
        self.chunks, self.n_columns = list(chunks), n_columns
        self.grid: list[list[Any]] | None = None  # of an array whose columns are cut too, with their numbers
        self.widths: tuple[int, ...] = ()
        known = sizes is not None and not any(np.isnan(size) for size in sizes)
        self.sizes = tuple(int(size) for size in sizes) if known and sizes is not None else ()

    def load(self, i: int) -> Any:
        """Compute a chunk here: only where there is no cluster."""
        return self.chunks[i].compute(scheduler="threads")

    def place(self, i: int) -> str:
        return f"chunk {i} of the Dask collection"

    def counted(self) -> DaskChunks:
        """The same with known sizes."""
        if not self.sizes:
            self.sizes = tuple(len(self.load(i)) for i in range(len(self.chunks)))
        return self


def find_dask(X: Any) -> DaskChunks | None:
    """A Dask collection as a source; None for anything else (Dask is not imported for it).

    Examples
    --------
    >>> find_dask([1, 2]) is None
    True
    """
    if "dask" not in sys.modules or not hasattr(X, "__dask_graph__") or not hasattr(X, "to_delayed"):
        return None
    from dask import delayed

    if hasattr(X, "columns"):
        return DaskChunks(X.to_delayed(), len(X.columns), None)
    if X.ndim != 2:
        raise ValueError(f"a table has rows and columns, and this Dask array has {X.ndim} dimensions")
    grid = X.to_delayed()
    beside = delayed(_beside)
    rows = [row[0] if len(row) == 1 else beside(list(row)) for row in grid]
    source = DaskChunks(rows, X.shape[1], X.chunks[0])
    if len(grid[0]) > 1:
        source.grid, source.widths = [list(row) for row in grid], X.chunks[1]
    return source


def _beside(pieces: Sequence[Any]) -> np.ndarray:
    return np.concatenate(pieces, axis=1)


def running_client() -> Any:
    """The client that this process has open; None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def make_cluster(executor: Any) -> Cluster:
    """From a Dask client, or the address of its scheduler ("dask": the client that is open)."""
    if isinstance(executor, Cluster):
        return executor
    if isinstance(executor, str):
        try:
            from distributed import Client
        except ImportError:
            raise ValueError(
                f'executor={executor!r} needs Dask: pip install "partita[dask]", or choose "threads" or "processes"'
            ) from None
        client = running_client() if executor == "dask" else None
        if client is None and "://" not in executor:
            raise ValueError(
                f"executor={executor!r}: give 'threads', 'processes', a Dask client, the address of its scheduler, or "
                "'dask' where a client is open"
            )
        return Cluster(client or Client(executor))
    if hasattr(executor, "submit") and hasattr(executor, "scheduler_info"):
        return Cluster(executor)
    raise ValueError(
        f"executor is a {type(executor).__name__}: give 'threads', 'processes', a Dask client, or the address of its "
        "scheduler"
    )


class Cluster:
    """Passes over shards run on the workers of a Dask client; all else runs here."""

    def __init__(self, client: Any):
        self.client = client

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """What is in the memory of this process stays in it."""
        return map(function, items)

    @property
    def n_workers(self) -> int:
        """Workers there are now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])


class OnWorker:
    """What runs on a worker; Dask does not look into it."""

    __name__ = "partita-pass"  # what its pages show

    def __init__(self, function: Callable[..., Any], common: Any, own: Any, loads: bool):
        self.function, self.common, self.own, self.loads = function, common, own, loads

    def __call__(self, item: Any) -> Any:
        data = item.load() if self.loads else item
        return self.function(data, self.common, self.own)


class InOrder:
    """A node of the reduction tree."""

    __name__ = "partita-sum"

    def __init__(self, combine: Callable[[Any, Any], Any]):
        self.combine = combine

    def __call__(self, results: Sequence[Any]) -> Any:
        total = results[0]
        for result in results[1:]:
            total = self.combine(total, result)
        return total


class ClusterShards(Shards):
    """Shards that are futures on workers, Dask's own chunks, or rows that a worker reads by itself."""

    def __init__(self, starts: np.ndarray, items: Sequence[Any], cluster: Cluster):
        self.starts, self._items, self._cluster = np.asarray(starts), items, cluster

    def map(
        self, function: Callable[..., Any], common: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        futures = self._submit(function, common, own)
        done = 0
        try:
            for future in futures:
                result = _wait(future, self._cluster)
                done += 1
                yield result
        finally:
            if done < len(futures):
                self._cluster.client.cancel(futures[done:])

    def reduce(
        self,
        function: Callable[..., Any],
        common: Any,
        own: Sequence[Any] | None,
        combine: Callable[[Any, Any], Any],
    ) -> Any:
        client, node = self._cluster.client, InOrder(combine)
        futures = self._submit(function, common, own)
        if len(futures) <= FAN:
            return node([_wait(future, self._cluster) for future in futures])
        total = fold_with(futures, lambda held: client.submit(node, list(held), pure=False))
        return _wait(total, self._cluster)

    def derive(self, function: Callable[..., Any], common: Any) -> ClusterShards:
        return ClusterShards(self.starts, self._submit(function, common, None), self._cluster)

    def _submit(self, function: Callable[..., Any], common: Any, own: Sequence[Any] | None) -> list[Any]:
        from dask import delayed

        client, futures = self._cluster.client, []
        for number, item in enumerate(self._items):
            task = OnWorker(function, common, None if own is None else own[number], isinstance(item, Rows))
            if hasattr(item, "__dask_graph__") and not isinstance(item, Rows):
                futures.append(client.compute(delayed(task, pure=False, traverse=False)(item)))
            else:
                futures.append(client.submit(task, item, pure=False))
        return futures


def _wait(future: Any, cluster: Cluster) -> Any:
    """The result of a future; an error, not a long silence, where no worker is left to make it."""
    from distributed import TimeoutError as Late

    while True:
        try:
            return future.result(timeout=PATIENCE)
        except (Late, TimeoutError):
            if future.status == "error":
                raise
            if cluster.n_workers == 0:
                raise RuntimeError(
                    "the Dask cluster has no workers left: start some and fit again (with resume= where it was given)"
                ) from None
