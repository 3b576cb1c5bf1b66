"""A table in shards: each pass of an engine is a map over the shards, with results in their order.

An encoded shard is a tuple of the data of its blocks. Shards are in memory, in scratch files, or on the workers of a
cluster; a pass is the same in all three cases. The size of a shard depends only on the number of columns, and results
are added in a fixed tree, so that the result of a fit does not depend on chunks, jobs or workers.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.execution.executors import CHUNK_ROWS, Executor, Processes, Serial

FAN_IN = 16  # results that a node of the reduction tree adds up
SHARD_BYTES, SHARD_CHUNKS = 1 << 26, 64  # upper limits of a shard: bytes (8 per cell) and chunks
ALIGNMENT = 64  # bytes, of an array in a scratch file
MEMORY_BYTES = 1 << 28  # if all shards together are larger, they are written to scratch files


def shard_rows(n_columns: int) -> int:
    """Return the number of rows of a shard: whole chunks, and fewer of them for wide tables.

    Examples
    --------
    >>> shard_rows(20), shard_rows(1000)
    (262144, 8192)
    """
    fit = SHARD_BYTES // (8 * max(n_columns, 1) * CHUNK_ROWS)
    return CHUNK_ROWS * min(SHARD_CHUNKS, 1 << max(int(fit).bit_length() - 1, 0))


def fold(results: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Combine results in a tree of fixed shape, as they arrive.

    Examples
    --------
    >>> fold(range(40), lambda a, b: a + b)
    780
    """
    return fold_with(results, lambda held: _in_order(held, combine))


def fold_with(results: Iterable[Any], join: Callable[[Sequence[Any]], Any]) -> Any:
    """Combine results in the same tree, with a function that joins all results of a node.

    Examples
    --------
    >>> fold_with("abc", "".join)
    'abc'
    """
    levels: list[list[Any]] = [[]]
    for result in results:
        levels[0].append(result)
        for height, held in enumerate(levels):
            if len(held) < FAN_IN:
                break
            if height + 1 == len(levels):
                levels.append([])
            levels[height + 1].append(join(list(held)))
            held.clear()
    total: list[Any] = []
    for held in levels:  # the ends of all levels, from the leaves up
        total = [join([*held, *total])] if len(held) + len(total) > 1 else held or total
    return total[0]


def _in_order(results: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    total = results[0]
    for result in results[1:]:
        total = combine(total, result)
    return total


class Shards:
    """The shards of a table; a subclass decides where passes over them run."""

    starts: np.ndarray  # first row of each shard, then the number of all rows

    @property
    def n_rows(self) -> int:
        """The number of rows of all shards."""
        return int(self.starts[-1])

    def map(
        self, function: Callable[..., Any], common: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield ``function(data, common, own[i])`` of every shard, in order.

        The function must be defined at the top level of a module, so that it can be sent to other processes.
        """
        raise NotImplementedError

    def reduce(
        self,
        function: Callable[..., Any],
        common: Any,
        own: Sequence[Any] | None,
        combine: Callable[[Any, Any], Any],
        *,
        in_any_order: bool = False,
    ) -> Any:
        """Return the results of all shards, combined in the fixed tree.

        With ``in_any_order`` the result does not depend on the tree, so that those of a worker may be combined there.
        """
        return fold(self.map(function, common, own), combine)

    def derive(self, function: Callable[..., Any], common: Any) -> Shards:
        """Apply a function to every shard once; the results are the data of new shards."""
        raise NotImplementedError

    def split(self, array: np.ndarray | None) -> list[Any]:
        """Split an array over all rows into one piece per shard."""
        if array is None:
            return [None] * (len(self.starts) - 1)
        return [array[lo:hi] for lo, hi in pairwise(self.starts)]


class ShardData:
    """Data of a block that are in shards: the entry ``index`` of the tuple of every shard."""

    def __init__(self, shards: Shards, index: int):
        self.shards, self.index = shards, index

    def __len__(self) -> int:
        return self.shards.n_rows


class MemoryShard(NamedTuple):
    """A shard in memory."""

    data: Any

    def load(self) -> Any:
        """Return the data."""
        return self.data


class FileShard(NamedTuple):
    """A shard in a scratch file, and the places of its arrays in it."""

    path: str
    layout: Any

    def load(self) -> Any:
        """Map all arrays of the file: a pass over a part of the rows reads no others."""
        return _rebuilt(self.layout, self.path)


class ArrayPlace(NamedTuple):
    """The place of an array in a scratch file."""

    offset: int
    dtype: str
    shape: tuple[int, ...]


class LocalShards(Shards):
    """Shards on this machine: in memory, or in scratch files that are removed with this object."""

    def __init__(self, starts: np.ndarray, loaders: Sequence[Any], executor: Executor, folder: Any = None):
        self.starts, self._loaders, self._executor = np.asarray(starts), loaders, executor
        self._folder = folder

    def map(
        self, function: Callable[..., Any], common: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        own = own if own is not None else [None] * len(self._loaders)
        items = zip(self._loaders, own, strict=True)
        return iter(self._executor.map(Task(function, common), items))

    def derive(self, function: Callable[..., Any], common: Any, *, spill: bool | None = None) -> LocalShards:
        """As in the base class; results are kept in memory while they are small and stay in this process.

        ``spill=True`` writes them to scratch files in any case.
        """
        if isinstance(self._executor, Processes):
            spill = True
        folder, held = None, 0
        loaders: list[Any] = []
        for number, data in enumerate(self.map(function, common)):
            held += _bytes_of(data)
            if spill is None and held > MEMORY_BYTES:
                spill = True
            if spill:
                folder = folder or Scratch()
                loaders = [
                    _spilled(shard.data, folder.path / f"shard{n}")
                    if isinstance(shard, MemoryShard)
                    else shard
                    for n, shard in enumerate(loaders)
                ]
                loaders.append(_spilled(data, folder.path / f"shard{number}"))
            else:
                loaders.append(MemoryShard(data))
        return LocalShards(self.starts, loaders, self._executor, folder)


class Task:
    """The task for one shard; a class, because other processes need an object that can be pickled."""

    travels = True

    def __init__(self, function: Callable[..., Any], common: Any):
        self.function, self.common = function, common

    def __call__(self, item: tuple[Any, Any]) -> Any:
        loader, own = item
        return self.function(loader.load(), self.common, own)


class Scratch:
    """A temporary folder that is removed with the object."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="partita-")
        self.path = Path(self._folder.name)
        weakref.finalize(self, self._folder.cleanup)


def local_shards(
    n_rows: int, loader: Callable[[int, int], Any], size: int, executor: Executor | None
) -> LocalShards:
    """Make local shards of ``size`` rows each."""
    starts = np.append(np.arange(0, n_rows, size), n_rows)
    loaders = [loader(int(lo), int(hi)) for lo, hi in pairwise(starts)]
    return LocalShards(starts, loaders, executor or Serial())


def _bytes_of(data: Any) -> int:
    if isinstance(data, np.ndarray):
        return data.nbytes
    return sum(_bytes_of(item) for item in data) if isinstance(data, tuple) else 0


def _spilled(data: Any, path: Path) -> FileShard:
    with open(path, "wb") as file:
        return FileShard(str(path), _written(data, file))


def _written(data: Any, file: Any) -> Any:
    if isinstance(data, np.ndarray):
        file.write(bytes(-file.tell() % ALIGNMENT))
        place = ArrayPlace(file.tell(), data.dtype.str, data.shape)
        np.ascontiguousarray(data).tofile(file)
        return place
    if isinstance(data, tuple):
        items = [_written(item, file) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else tuple(items)
    return data


def _rebuilt(layout: Any, path: str) -> Any:
    if isinstance(layout, ArrayPlace):
        if 0 in layout.shape:
            return np.empty(layout.shape, layout.dtype)
        # "c": writable, as arrays in memory are, so that kernels are not compiled for read-only arrays too
        return np.asarray(np.memmap(path, layout.dtype, "c", layout.offset, layout.shape))
    if isinstance(layout, tuple):
        items = [_rebuilt(item, path) for item in layout]
        return type(layout)(*items) if hasattr(layout, "_fields") else tuple(items)
    return layout
