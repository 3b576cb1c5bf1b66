"""An encoded table in shards: each pass of an engine is a map over them, and results come back in their order.

A shard is a tuple of what the engine walks over. Shards lie in memory, in a scratch file each, or with the workers of a
cluster; a pass does not know which. The size of a shard depends on the width of the table alone, and results are added
up in one fixed tree, so that the answer does not depend on blocks, jobs or workers.
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

__all__ = ["FAN", "LocalShards", "ShardData", "Shards", "fold", "fold_with", "local_shards", "shard_rows"]

FAN = 16  # results that a node of the reduction tree adds up
SHARD_BYTES, SHARD_CHUNKS = 1 << 26, 64  # most bytes (8 a cell) and blocks of a shard
KEPT_BYTES = 1 << 28  # shards that are larger together go to scratch files


def shard_rows(n_columns: int) -> int:
    """Rows of a shard: whole blocks of the engines, fewer of them where rows are wide.

    Examples
    --------
    >>> shard_rows(20), shard_rows(1000)
    (262144, 8192)
    """
    fit = SHARD_BYTES // (8 * max(n_columns, 1) * CHUNK_ROWS)
    return CHUNK_ROWS * min(SHARD_CHUNKS, 1 << max(int(fit).bit_length() - 1, 0))


def fold(results: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Combine results in a tree of fixed shape, as they come.

    Examples
    --------
    >>> fold(range(40), lambda a, b: a + b)
    780
    """
    return fold_with(results, lambda held: _in_order(held, combine))


def fold_with(results: Iterable[Any], join: Callable[[Sequence[Any]], Any]) -> Any:
    """The same tree, with a function that joins the results of a node.

    Examples
    --------
    >>> fold_with("abc", "".join)
    'abc'
    """
    levels: list[list[Any]] = [[]]
    for result in results:
        levels[0].append(result)
        for height, held in enumerate(levels):
            if len(held) < FAN:
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
    """Shards of a table, and where passes over them run."""

    starts: np.ndarray  # first row of each shard, then the number of all rows

    @property
    def n_rows(self) -> int:
        """Rows of all shards."""
        return int(self.starts[-1])

    def map(
        self, function: Callable[..., Any], common: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """``function(data, common, own[i])`` of every shard, in order. It must be at the top level of a module."""
        raise NotImplementedError

    def reduce(
        self,
        function: Callable[..., Any],
        common: Any,
        own: Sequence[Any] | None,
        combine: Callable[[Any, Any], Any],
    ) -> Any:
        """The results of all shards, combined in the fixed tree."""
        return fold(self.map(function, common, own), combine)

    def derive(self, function: Callable[..., Any], common: Any) -> Shards:
        """Shards of what the function makes of each, once and for all."""
        raise NotImplementedError

    def split(self, array: np.ndarray | None) -> list[Any]:
        """An array over all rows, cut as the shards are."""
        if array is None:
            return [None] * (len(self.starts) - 1)
        return [array[lo:hi] for lo, hi in pairwise(self.starts)]


class ShardData:
    """Stands in a block for data that lie in shards: the ``index``-th entry of every shard."""

    def __init__(self, shards: Shards, index: int):
        self.shards, self.index = shards, index

    def __len__(self) -> int:
        return self.shards.n_rows


class Held(NamedTuple):
    """A shard in memory."""

    data: Any

    def load(self) -> Any:
        """The data."""
        return self.data


class Spilled(NamedTuple):
    """A shard in a scratch file: where each array lies in it."""

    path: str
    layout: Any

    def load(self) -> Any:
        """Read all arrays."""
        return _rebuilt(self.layout, self.path)


class Place(NamedTuple):
    """Of an array in a scratch file."""

    offset: int
    dtype: str
    shape: tuple[int, ...]


class LocalShards(Shards):
    """Shards of this machine: in memory, or in scratch files that vanish with them."""

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
        """The results stay in memory while they are small, and in the same process."""
        if isinstance(self._executor, Processes):
            spill = True
        folder, held = None, 0
        loaders: list[Any] = []
        for number, data in enumerate(self.map(function, common)):
            held += _bytes_of(data)
            if spill is None and held > KEPT_BYTES:
                spill = True
            if spill:
                folder = folder or Scratch()
                loaders = [
                    _spilled(shard.data, folder.path / f"shard{n}") if isinstance(shard, Held) else shard
                    for n, shard in enumerate(loaders)
                ]
                loaders.append(_spilled(data, folder.path / f"shard{number}"))
            else:
                loaders.append(Held(data))
        return LocalShards(self.starts, loaders, self._executor, folder)


class Task:
    """What runs for one shard; a class, since processes want something that can be pickled."""

    travels = True

    def __init__(self, function: Callable[..., Any], common: Any):
        self.function, self.common = function, common

    def __call__(self, item: tuple[Any, Any]) -> Any:
        loader, own = item
        return self.function(loader.load(), self.common, own)


class Scratch:
    """A folder that is removed with the object."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="partita-")
        self.path = Path(self._folder.name)
        weakref.finalize(self, self._folder.cleanup)


def local_shards(
    n_rows: int, loader: Callable[[int, int], Any], size: int, executor: Executor | None
) -> LocalShards:
    """Shards of so many rows each."""
    starts = np.append(np.arange(0, n_rows, size), n_rows)
    loaders = [loader(int(lo), int(hi)) for lo, hi in pairwise(starts)]
    return LocalShards(starts, loaders, executor or Serial())


def _bytes_of(data: Any) -> int:
    if isinstance(data, np.ndarray):
        return data.nbytes
    return sum(_bytes_of(item) for item in data) if isinstance(data, tuple) else 0


def _spilled(data: Any, path: Path) -> Spilled:
    with open(path, "wb") as file:
        return Spilled(str(path), _written(data, file))


def _written(data: Any, file: Any) -> Any:
    if isinstance(data, np.ndarray):
        place = Place(file.tell(), data.dtype.str, data.shape)
        np.ascontiguousarray(data).tofile(file)
        return place
    if isinstance(data, tuple):
        items = [_written(item, file) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else tuple(items)
    return data


def _rebuilt(layout: Any, path: str) -> Any:
    if isinstance(layout, Place):
        count = int(np.prod(layout.shape))
        return np.fromfile(path, layout.dtype, count, offset=layout.offset).reshape(layout.shape)
    if isinstance(layout, tuple):
        items = [_rebuilt(item, path) for item in layout]
        return type(layout)(*items) if hasattr(layout, "_fields") else tuple(items)
    return layout
