"""Dask: collections as tables in chunks, and passes that run on the workers.

A chunk stays on the worker that has read it; only parameters, labels and statistics are sent. No data are scattered to
the workers in advance: if a worker is lost, Dask computes its results again from their tasks on another worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from partita.execution.shards import FAN_IN, Shards, fold_with
from partita.execution.sources import ChunkSource, MappedChunks, RowRange
from partita.execution.worker_tree import plant, run_tree

# passes in sequence that calls between workers do not complete; the scheduler then gets all others
MAX_FAILED = 5
WORKER_CHECK_SECONDS = 20.0  # after this time without a result, check that there are workers


class DaskChunks(ChunkSource):
    """A Dask array or data frame in chunks of rows; the sizes of the chunks may not be known yet."""

    def __init__(self, chunks: Sequence[Any], n_columns: int, sizes: Sequence[float] | None):
        self.chunks, self.n_columns = list(chunks), n_columns
        self.grid: list[list[Any]] | None = None  # the pieces of each chunk, if columns are cut too
        self.widths: tuple[int, ...] = ()  # number of columns of each piece
        known = sizes is not None and not any(np.isnan(size) for size in sizes)
        self.sizes = tuple(int(size) for size in sizes) if known and sizes is not None else ()

    def load(self, i: int) -> Any:
        """Compute a chunk in this process; used only without a cluster."""
        return self.chunks[i].compute(scheduler="threads")

    def place(self, i: int) -> str:
        return f"chunk {i} of the Dask collection"

    def counted(self) -> DaskChunks:
        """Return this source after its chunks were counted."""
        if not self.sizes:
            self.sizes = tuple(len(self.load(i)) for i in range(len(self.chunks)))
        return self


def mapped(source: ChunkSource, function: Callable[[Any], Any], n_columns: int) -> ChunkSource:
    """The source of ``function(rows)``, computed where the rows are; it has as many rows."""
    if not isinstance(source, DaskChunks):
        return MappedChunks(source, function, n_columns)
    from dask import delayed

    task = delayed(function, pure=False, traverse=False)
    return DaskChunks([task(chunk) for chunk in source.chunks], n_columns, source.sizes or None)


def find_dask(X: Any) -> DaskChunks | None:
    """Open a Dask collection as a source; None for anything else (without importing Dask).

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
        raise ValueError(f"this Dask array has {X.ndim} dimensions; a table needs two (rows and columns)")
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
    """Return the open Dask client of this process, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def make_cluster(executor: Any) -> Cluster:
    """Make a Cluster from a Dask client, the address of a scheduler, or "dask" (the open client)."""
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
                f"executor={executor!r} is not known: use 'threads', 'processes', a Dask client, the address of a Dask "
                "scheduler, or 'dask' if a client is open"
            )
        return Cluster(client or Client(executor))
    if hasattr(executor, "submit") and hasattr(executor, "scheduler_info"):
        return Cluster(executor)
    raise ValueError(
        f"executor is a {type(executor).__name__}: use 'threads', 'processes', a Dask client, or the address of a "
        "Dask scheduler"
    )


class Cluster:
    """An executor that runs passes over shards on the workers of a Dask client, and everything else in this process."""

    def __init__(self, client: Any):
        self.client = client

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Map in this process: data in its memory are not sent to workers."""
        return map(function, items)

    @property
    def n_workers(self) -> int:
        """The present number of workers."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])


class OnWorker:
    """A task for a worker; a class, so that Dask does not search the arguments for tasks."""

    __name__ = "partita-pass"  # shown on the Dask dashboard

    def __init__(self, function: Callable[..., Any], common: Any, own: Any, loads: bool):
        self.function, self.common, self.own, self.loads = function, common, own, loads

    def __call__(self, item: Any) -> Any:
        data = item.load() if self.loads else item
        return self.function(data, self.common, self.own)


class Constant:
    """A task that returns a value, which other tasks then fetch from each other instead of from the scheduler."""

    __name__ = "partita-parameters"

    def __init__(self, value: Any):
        self.value = value

    def __call__(self) -> Any:
        return self.value


class OnGroup:
    """A pass over shards that a worker holds: their results are combined there."""

    def __init__(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], common: Any):
        self.function, self.combine, self.common = function, combine, common

    def __call__(self, items: Sequence[Any], own: Sequence[Any]) -> Any:
        results = (self.function(item, self.common, mine) for item, mine in zip(items, own, strict=True))
        total = next(results)
        for result in results:
            total = self.combine(total, result)
        return total


def call(items: Sequence[Any], own: Sequence[Any], task: OnGroup) -> Any:
    """A pass whose parameters are the result of another task."""
    return task(items, own)


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
    """Shards on workers: futures, chunks of a Dask collection, or ranges of rows that a worker reads."""

    def __init__(self, starts: np.ndarray, items: Sequence[Any], cluster: Cluster):
        self.starts, self._items, self._cluster = np.asarray(starts), items, cluster
        self._groups: dict[str, list[list[int]]] | None = None  # shards by the worker that holds them
        self._n_failed = 0  # passes that calls between workers did not complete

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
        *,
        in_any_order: bool = False,
    ) -> Any:
        node = InOrder(combine)
        if in_any_order and self._held_by_workers():
            each = own if own is not None else [None] * len(self._items)
            return self._reduce_in_tree(function, common, each, node)
        client = self._cluster.client
        futures = self._submit(function, common, own)
        if len(futures) <= FAN_IN:
            return node([_wait(future, self._cluster) for future in futures])
        total = fold_with(futures, lambda held: client.submit(node, list(held), pure=False))
        return _wait(total, self._cluster)

    def _reduce_in_tree(
        self, function: Callable[..., Any], common: Any, own: Sequence[Any], node: InOrder
    ) -> Any:
        """The results of all shards, by calls from worker to worker; where a call fails, by tasks of the scheduler."""
        task = OnGroup(function, node.combine, common)
        if self._n_failed < MAX_FAILED:
            try:
                root = plant(self._grouped(), [item.key for item in self._items], own)
                found = run_tree(self._cluster.client, root, task, node.combine)
                self._n_failed = 0
                return found
            except Exception:  # of the network, or of the pass, which then fails again below
                self._n_failed += 1
                self._groups = None
        return node(self._reduce_groups(task, own, node))

    def _reduce_groups(self, task: OnGroup, own: Sequence[Any], node: InOrder) -> list[Any]:
        """Results of at most FAN_IN nodes of a tree over one task per thread of a worker.

        The scheduler gets the tasks of a level of the tree in one message, and the parameters once.
        If a worker is lost, its groups go to other workers as they are.
        """
        client = self._cluster.client
        groups = [group for held in self._grouped().values() for group in held]
        shared = client.submit(Constant(task), pure=False)
        level = client.map(
            call,
            [[self._items[i] for i in group] for group in groups],
            [[own[i] for i in group] for group in groups],
            task=shared,
            pure=False,
        )
        while len(level) > FAN_IN:
            held = [level[lo : lo + FAN_IN] for lo in range(0, len(level), FAN_IN)]
            level = client.map(node, held, pure=False)
        return [_wait(future, self._cluster) for future in level]

    def _held_by_workers(self) -> bool:
        """Whether all shards are results on workers, rather than data that a pass reads."""
        from distributed import Future

        return len(self._items) > 1 and all(isinstance(item, Future) for item in self._items)

    def _grouped(self) -> dict[str, list[list[int]]]:
        """Shards by the worker that holds them, in as many groups as it has threads; formed in the first pass."""
        if self._groups is None:
            client = self._cluster.client
            for item in self._items:
                _wait_until_done(item, self._cluster)
            threads, holders = client.nthreads(), client.who_has(self._items)
            by_worker: dict[str, list[int]] = {}
            for number, item in enumerate(self._items):
                by_worker.setdefault(min(holders[item.key], default=""), []).append(number)
            self._groups = {
                worker: [
                    held[thread :: threads.get(worker, 1)]
                    for thread in range(min(threads.get(worker, 1), len(held)))
                ]
                for worker, held in by_worker.items()
            }
        return self._groups

    def derive(self, function: Callable[..., Any], common: Any) -> ClusterShards:
        return ClusterShards(self.starts, self._submit(function, common, None), self._cluster)

    def _submit(self, function: Callable[..., Any], common: Any, own: Sequence[Any] | None) -> list[Any]:
        from dask import delayed

        client, futures = self._cluster.client, []
        for number, item in enumerate(self._items):
            task = OnWorker(
                function, common, None if own is None else own[number], isinstance(item, RowRange)
            )
            if hasattr(item, "__dask_graph__") and not isinstance(item, RowRange):
                futures.append(client.compute(delayed(task, pure=False, traverse=False)(item)))
            else:
                futures.append(client.submit(task, item, pure=False))
        return futures


def _wait(future: Any, cluster: Cluster) -> Any:
    """Wait for the result of a future; raise an error if no worker is left to compute it."""
    return _patiently(future, cluster, lambda: future.result(timeout=WORKER_CHECK_SECONDS))


def _wait_until_done(future: Any, cluster: Cluster) -> None:
    """Wait until the result of a future is on a worker; it stays there."""
    from distributed import wait

    _patiently(future, cluster, lambda: wait(future, timeout=WORKER_CHECK_SECONDS))
    if future.status == "error":
        future.result()


def _patiently(future: Any, cluster: Cluster, attempt: Callable[[], Any]) -> Any:
    from distributed import TimeoutError as Late

    while True:
        try:
            return attempt()
        except (Late, TimeoutError):
            if future.status == "error":
                raise
            if cluster.n_workers == 0:
                raise RuntimeError(
                    "the Dask cluster has no workers left: start workers and fit again (with the same resume= folder, "
                    "if there was one)"
                ) from None
